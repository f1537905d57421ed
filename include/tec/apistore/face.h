/* SPDX-License-Identifier: MIT */
/* How the server's own parts ask the store: a path as a client would send it. */
#ifndef TEC_APISTORE_FACE_H
#define TEC_APISTORE_FACE_H

#include "tec/apistore/objects.h"
#include "tec/apistore/request.h"

/* The caller finishes the answer. A path that is none: 404. */
struct apistore_answer apistore_face_ask(struct apistore_objects *s, const char *method,
	const char *path, const char *content_type, const char *body, size_t len);
/* An object or a list; the caller puts it. NULL: any answer but 200. */
struct json_object *apistore_face_get(struct apistore_objects *s, const char *path);

#endif
