/* SPDX-License-Identifier: MIT */
/* Requests to the store from within the process. They run with full rights. Those that create or
 * change an object are addressed by the path that a client would send. */
#ifndef TEC_APIREQ_INPROC_H
#define TEC_APIREQ_INPROC_H

#include "tec/store/objects.h"
#include "tec/apireq/request.h"

/* Make a request; the caller calls apireq_answer_fini. 404: the path is not an API path. */
struct apireq_answer apireq_inproc_ask(struct store_objects *s, const char *method,
	const char *path, const char *content_type, const char *body, size_t len);
/* The same for a request that must succeed: ERR_BUG with the path and the answer, if it does not. */
int apireq_inproc_must(struct store_objects *s, const char *method, const char *path,
	const char *content_type, const char *body, size_t len, struct err *err) MUST_CHECK;
/* Get an object; the caller puts it. NULL: not found, or the database failed. */
struct json_object *apireq_inproc_object(struct store_objects *s, const struct store_key *key);
/* Get an object or a whole list; the caller puts it. NULL: any answer but 200. */
struct json_object *apireq_inproc_get(struct store_objects *s, const char *path);

#endif
