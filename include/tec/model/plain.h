/* SPDX-License-Identifier: MIT */
/* Objects of which only presence, version, owner and rollout matter: Services and Deployments. */
#ifndef TEC_MODEL_PLAIN_H
#define TEC_MODEL_PLAIN_H

#include <json-c/json.h>

#include "tec/kobj/meta.h"

struct model_plain {
	struct kobj obj;
	const char *owner_uid;   /* controller */
	const char *render_hash; /* annotation */
	const char *cluster_ip;  /* of a Service */
	const char *volume;      /* of a PersistentVolumeClaim */
	/* Of a Deployment. seen: the generation that the rest of its status is of. */
	int64_t seen;
	uint64_t shape; /* model_plain_shape() */
	int32_t wanted, ready, updated, replicas;
};
/* Equal in two versions of an object: they differ in the status alone. 0: not known, as the object
 * has no generation. Of this process: keyed. */
uint64_t model_plain_shape(struct json_object *o);
struct kobj *model_plain_extract(struct json_object *o, struct err *err);
/* "reason: message" of a condition or of a container's state, cut: the text comes from outside.
 * NULL: there is no reason. The caller frees it. */
char *model_plain_why(struct json_object *o);

#endif
