/* SPDX-License-Identifier: MIT */
/*
 * Resources (trustee-protocol.md section 4): the LUKS keys. A put overwrites. Missing and failing
 * look alike to DELETE, so a delete that is answered PluginInternalError is repeated after a POST
 * of `{}`; only a 200 for the DELETE itself confirms (operator.md section 6).
 */
#ifndef TEC_KBS_RESOURCE_H
#define TEC_KBS_RESOURCE_H

#include "tec/base/secret.h"
#include "tec/kbs/transport.h"

typedef void (*kbs_done_fn)(void *arg, const struct err *err);

/* path: "default/<uuid>/root". value is borrowed for the call. */
struct op *kbs_resource_put(struct kbs_transport *t, struct op_scope *scope, const char *path,
	const struct secret *value, kbs_done_fn done, void *arg);
struct op *kbs_resource_delete(struct kbs_transport *t, struct op_scope *scope, const char *path,
	kbs_done_fn done, void *arg);

#endif
