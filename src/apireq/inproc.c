/* SPDX-License-Identifier: MIT */
/* Requests from within the server: what a client sends, without HTTP and without authorization. */
#include "config.h"

#include "tec/apireq/inproc.h"

#include "tec/apireq/listing.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* The answer may show what is not durable yet; a caller that passes it on must wait for the
 * commit. */
struct apireq_answer apireq_inproc_ask(struct store_objects *s, const char *method,
	const char *path, const char *content_type, const char *body, size_t len)
{
	const struct apireq_request r = {.method = method,
		.content_type = content_type,
		.body = body,
		.len = len,
		.user_agent = "tec-operator"};
	cleanup_apireq_request_info struct apireq_request_info t;
	struct err err = ERR_INIT;

	if (apireq_request_info_parse(path, &t, &err) == 0)
		return apireq_request(s, &t, &r);
	return apireq_status_no_target(&err);
}

int apireq_inproc_must(struct store_objects *s, const char *method, const char *path,
	const char *content_type, const char *body, size_t len, struct err *err)
{
	struct apireq_answer a = apireq_inproc_ask(s, method, path, content_type, body, len);
	int rc = a.code / 100 == 2 ? 0 : err_set(err, ERR_BUG, "%s: %.200s", path, a.body);

	apireq_answer_fini(&a);
	return rc;
}

/* A failure of the database in this turn hides the object: what the turn wrote may be undone. */
struct json_object *apireq_inproc_object(struct store_objects *s, const struct store_key *key)
{
	struct err err = ERR_INIT;
	struct json_object *o;

	if (store_objects_trouble(s, &err))
		return NULL;
	o = store_objects_get(s, key);
	if (!store_objects_trouble(s, &err))
		return o;
	json_object_put(o);
	return NULL;
}

/* Get and parse an object or a list. A list is pulled to its end in one go, so the limits of the
 * parser are raised: the text comes from the store and not from a client. */
struct json_object *apireq_inproc_get(struct store_objects *s, const char *path)
{
	struct apireq_answer a = apireq_inproc_ask(s, "GET", path, NULL, NULL, 0);
	struct json_limits limits = json_limits_api;
	struct json_object *o = NULL;
	struct err err = ERR_INIT;

	limits.bytes = (size_t)1 << 30;
	limits.tokens = UINT32_MAX;
	if (apireq_answer_whole(&a, &err) == 0 && a.code == 200)
		o = json_parse(a.body, a.len, &limits, &err);
	apireq_answer_fini(&a);
	return o;
}
