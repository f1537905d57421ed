/* SPDX-License-Identifier: MIT */
/*
 * A single API request over a set of objects: get, list (limit, continue, versions), create,
 * replace, patch, apply, delete, and delete of a collection, with dryRun, preconditions and the
 * errors of kube-apiserver. Kinds with a schema are pruned and validated. A write takes effect
 * before this returns but is not durable yet: the answer may be sent only when
 * store_objects_when_stored() calls back.
 *
 * Authorization is not checked here (apireq/rights).
 */
#ifndef TEC_APIREQ_REQUEST_H
#define TEC_APIREQ_REQUEST_H

#include "tec/store/objects.h"
#include "tec/apireq/status.h"
#include "tec/apireq/request_info.h"

#define APIREQ_BODY_MAX   (3u << 20)    /* bytes of a request body, as in kube-apiserver */
#define APIREQ_OBJECT_MAX (1536u << 10) /* bytes of a stored object, as in etcd */

struct apireq_request {
	const char *method;       /* GET POST PUT PATCH DELETE */
	const char *content_type; /* NULL: JSON */
	const char *body;         /* NULL: none */
	size_t len;
	bool warns;             /* fieldValidation defaults to Warn, not Ignore */
	const char *user_agent; /* the default field manager; NULL: unknown */
};

/* Make a request. It takes the target and empties it. The body of the answer may be only the start
 * of a long list, and `more` the rest (apireq_listing_pull). */
struct apireq_answer apireq_request(struct store_objects *s, struct apireq_request_info *take_t,
	const struct apireq_request *r);

#endif
