/* SPDX-License-Identifier: MIT */
/*
 * A single API request over a set of objects: get, list (limit, continue, versions), create,
 * replace, patch, apply, delete, and delete of a collection, with dryRun, preconditions and the
 * errors of kube-apiserver. Kinds with a schema are pruned and validated. A write takes effect
 * before this returns but is not durable yet: the answer may be sent only when
 * apistore_objects_when_stored() calls back.
 *
 * Authorization is not checked here (apistore/rights).
 */
#ifndef TEC_APISTORE_REQUEST_H
#define TEC_APISTORE_REQUEST_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"

#define APISTORE_BODY_MAX   (3u << 20)    /* bytes of a request body, as in kube-apiserver */
#define APISTORE_OBJECT_MAX (1536u << 10) /* bytes of a stored object, as in etcd */

struct apistore_request {
	const char *method;       /* GET POST PUT PATCH DELETE */
	const char *content_type; /* NULL: JSON */
	const char *body;         /* NULL: none */
	size_t len;
	bool warns;             /* fieldValidation defaults to Warn, not Ignore */
	const char *user_agent; /* the default field manager; NULL: unknown */
};

/* Make a request. It takes the target and empties it. The body of the answer may be only the start
 * of a long list, and `more` the rest (apistore_list_pull). */
struct apistore_answer apistore_request(struct apistore_objects *s, struct apistore_target *take_t,
	const struct apistore_request *r);

#endif
