/* SPDX-License-Identifier: MIT */
/*
 * What --standalone uses in place of a Kubernetes cluster: the objects, and the API server that
 * serves them to kubectl. Controllers reach the objects without HTTP.
 */
#ifndef TEC_CMD_STANDALONE_H
#define TEC_CMD_STANDALONE_H

#include "options.h"

#include "tec/apihttp/listener.h"
#include "tec/store/objects.h"
#include "tec/base/err.h"
#include "tec/k8s/transport.h"

#define STANDALONE_NS "trusted-execution-clusters"

struct standalone;

/* Opens the directory, creates it if missing, and adds our kinds and the first objects to the
 * store. */
struct standalone *standalone_new(
	struct loop *l, const struct options *o, struct err *err) MUST_CHECK;
void standalone_free(struct standalone *s); /* NULL is fine; after every transport */
/* Checks the certificate for nodes soon, and issues another if it no longer fits. */
void standalone_certify(struct standalone *s);
const char *standalone_ns(const struct standalone *s);
struct store_objects *standalone_objects(struct standalone *s);
struct k8s_transport *standalone_transport(struct standalone *s); /* the caller frees */
/* ready, hand_in: see apihttp/listener.h. */
int standalone_listen(struct standalone *s, bool (*ready)(void *arg, const char **why),
	apihttp_hand_in_fn hand_in, void *arg, struct err *err) MUST_CHECK;
/* Restores a backup into the directory (--restore) and reports it. */
int standalone_restore(const struct options *o, struct err *err) MUST_CHECK;
/* Prints what the first start created and the next command: four lines on standard output. */
void standalone_say(const struct standalone *s);
void standalone_drain(struct standalone *s);

#endif
