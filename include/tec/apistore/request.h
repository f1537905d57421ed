/* SPDX-License-Identifier: MIT */
/*
 * One request to the API over a set of objects: get, list (limit, continue, versions), create,
 * replace, merge patch, apply, delete, delete of a collection, with dryRun, preconditions and the
 * refusals of kube-apiserver; kinds with a schema are pruned and validated by it. A write is done when
 * this returns, and not stored yet: the answer goes out when apistore_objects_when_stored() says so.
 *
 * Does not: check who asks (apistore/rights).
 */
#ifndef TEC_APISTORE_REQUEST_H
#define TEC_APISTORE_REQUEST_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"

#define APISTORE_BODY_MAX   (3u << 20)    /* of a request, as kube-apiserver takes it */
#define APISTORE_OBJECT_MAX (1536u << 10) /* as etcd takes it */

struct apistore_request {
	const char *method;       /* GET POST PUT PATCH DELETE */
	const char *content_type; /* NULL: JSON */
	const char *body;         /* NULL: none */
	size_t len;
	bool warns;             /* of fields that are not known, unless the target says otherwise */
	const char *user_agent; /* manages what it writes, without fieldManager; NULL: unknown */
};

/* The target is taken, and emptied. A long list has more than the answer's body holds
 * (apistore_list_pull). */
struct apistore_answer apistore_request(struct apistore_objects *s, struct apistore_target *take_t,
	const struct apistore_request *r);

#endif
