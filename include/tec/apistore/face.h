/* SPDX-License-Identifier: MIT */
/* In-process requests to the store, addressed by the path that a client would send. They run with
 * full rights. */
#ifndef TEC_APISTORE_FACE_H
#define TEC_APISTORE_FACE_H

#include "tec/apistore/objects.h"
#include "tec/apistore/request.h"

/* Make a request; the caller calls apistore_answer_fini. 404: the path is not an API path. */
struct apistore_answer apistore_face_ask(struct apistore_objects *s, const char *method,
	const char *path, const char *content_type, const char *body, size_t len);
/* Get an object or a whole list; the caller puts it. NULL: any answer but 200. */
struct json_object *apistore_face_get(struct apistore_objects *s, const char *path);

#endif
