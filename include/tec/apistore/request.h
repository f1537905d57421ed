/* SPDX-License-Identifier: MIT */
/*
 * One request to the API over a set of objects: get, list (limit, continue), create, replace, merge
 * patch, apply, delete, with the preconditions and refusals of kube-apiserver. Synchronous: a write
 * is done, and the watches know of it, when this returns.
 *
 * Does not: validate against a schema, fill in defaults, check who asks; lists are of one
 * namespace.
 */
#ifndef TEC_APISTORE_REQUEST_H
#define TEC_APISTORE_REQUEST_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"

struct apistore_request {
	const char *method;       /* GET POST PUT PATCH DELETE */
	const char *content_type; /* NULL: JSON */
	const char *body;         /* NULL: none */
	size_t len;
};

struct apistore_answer apistore_request(struct apistore_objects *s, const struct apistore_target *t,
	const struct apistore_request *r);

#endif
