/* SPDX-License-Identifier: MIT */
/* Objects of which only presence, version, owner and rollout matter, such as Services and
 * Deployments. */
#ifndef TEC_MODEL_PLAIN_H
#define TEC_MODEL_PLAIN_H

#include <json-c/json.h>

#include "tec/kobj/meta.h"

#define MODEL_KEPT_IMAGES "trusted-execution-clusters.io/kept-images"

struct model_plain {
	struct kobj obj;
	const char *owner_uid;   /* controller */
	const char *render_hash; /* annotation */
	const char *cluster_ip;  /* of a Service */
	const char *volume;      /* of a PersistentVolumeClaim */
	const char *kept_images; /* of a Deployment: annotation, for render/kbsconfig */
	/* Of a Deployment. seen: the generation to which the rest of its status applies. */
	int64_t seen;
	uint64_t shape; /* model_plain_shape() */
	int32_t wanted, ready, updated, replicas;
};
/* A keyed hash, valid in this process, that is equal in two versions of an object if only their
 * status differs. 0: unknown, because the object has no generation. */
uint64_t model_plain_shape(struct json_object *o);
struct kobj *model_plain_extract(struct json_object *o, struct err *err);
/* Return "reason: message" of a condition or a container's state, truncated, because the text comes
 * from outside. NULL: no reason. The caller frees it. */
char *model_plain_why(struct json_object *o);

/* ---- members of spec, by their path as for json_get() */

/* Append the field as people write it: "spec." and the path with dots. */
void model_plain_field(struct strbuf *out, const char *path);
/* A string; NULL: absent or empty. */
const char *model_plain_text(struct json_object *o, const char *path);
/* spec.MEMBER, a string that an object cannot do without; NULL sets err. */
const char *model_plain_needed(struct json_object *o, const char *member, struct err *err);
/* Set problem to "FIELD WHAT", unless it is set: a condition has room for one sentence. */
void model_plain_complain(struct strbuf *problem, const char *path, const char *what);
/* The name of an object; NULL: absent or empty, or invalid and reported in problem. */
const char *model_plain_name(struct json_object *spec, const char *path, struct strbuf *problem);

#endif
