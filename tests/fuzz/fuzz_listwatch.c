/* SPDX-License-Identifier: MIT */
/*
 * Query parameters of lists and watches. Each line is one: L and a query: a list, with its further
 * pages; W and a query: a watch, which takes what there is; anything else: a change. No object comes
 * twice in a list of one version, pages end, a watch's lines are events whose versions rise, and what
 * is refused is a Status of its code.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apireq/inproc.h"
#include "tec/apireq/listing.h"
#include "tec/apireq/stream.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define PATH      "/apis/g/v1/namespaces/n/things"
#define OBJECTS   5
#define LINES_MAX 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct store_kind kinds[] = {{.group = "g", .kind = "Thing", .custom = true}};
static const struct store_schema schema = {.kinds = kinds, .n_kinds = ARRAY_LEN(kinds)};

static void commit(struct store_objects *s)
{
	struct err err = ERR_INIT;

	if (store_objects_commit(s, &err) < 0)
		DIE("not stored: %s", err.text);
}

static void write_one(struct store_objects *s, unsigned n)
{
	cleanup_free char *name = xasprintf("o%u", n % OBJECTS);
	const struct store_key key = {"things.g", "n", name};
	struct err err = ERR_INIT;
	cleanup_free char *text = xasprintf(
		"{\"apiVersion\":\"g/v1\",\"kind\":\"Thing\",\"metadata\":{\"labels\":{\"l\":\"%u\"}},\"spec\":%u}",
		n % 3, n);

	json_object_put(
		store_objects_put(s, &key, json_parse(text, strlen(text), &json_limits_api, &err)));
	commit(s);
}

static struct json_object *parsed(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, len, &json_limits_api, &err);

	if (!o)
		DIE("not JSON: %s: %.*s", err.text, (int)len, text);
	return o;
}

static void check_refusal(const struct apireq_answer *a)
{
	cleanup_json struct json_object *o = parsed(a->body, a->len);

	if (!str_eq(json_get_str(o, "kind"), "Status") || json_get_int(o, "code", 0) != a->code)
		DIE("a refusal that is none");
	if (a->code >= 500 && a->code != 504)
		DIE("the database failed: %s", a->body);
}

/* The page's token for the next one, for the caller to free. */
static char *page(struct store_objects *s, const char *path, unsigned *seen)
{
	struct apireq_answer a = apireq_inproc_ask(s, "GET", path, NULL, NULL, 0);
	struct body whole = BODY_INIT;
	cleanup_json struct json_object *o = NULL;
	struct json_object *items;
	struct err err = ERR_INIT;
	char *next = NULL;
	int more = a.more != NULL;

	if (a.code != 200) {
		check_refusal(&a);
		apireq_answer_fini(&a);
		return NULL;
	}
	body_add(&whole, a.body, a.len, 0);
	while (more > 0)
		more = apireq_listing_pull(a.more, &whole, 64, &err);
	if (more < 0 && err.kind != ERR_GONE)
		DIE("the database failed: %s", err.text);
	if (more == 0) {
		o = parsed(whole.data, whole.len);
		items = json_get_arr(o, "items");
		for (size_t i = 0; i < json_object_array_length(items); i++) {
			const char *name =
				json_get_str(json_object_array_get_idx(items, i), "metadata/name");
			unsigned bit = 1u << (name[1] - '0');

			if (*seen & bit)
				DIE("%s comes twice", name);
			*seen |= bit;
		}
		if (json_get_str(o, "metadata/continue"))
			next = xstrdup(json_get_str(o, "metadata/continue"));
	}
	body_fini(&whole);
	apireq_answer_fini(&a);
	return next;
}

static void list(struct store_objects *s, const char *query)
{
	cleanup_free char *path = xasprintf(PATH "?%s", query), *token = NULL;
	unsigned seen = 0;

	token = page(s, path, &seen);
	for (unsigned n = 0; token && *token; n++) {
		cleanup_free char *next = xasprintf(PATH "?limit=2&continue=%s", token);

		if (n > OBJECTS)
			DIE("the pages do not end");
		free(token);
		token = page(s, next, &seen);
	}
}

static void check_event(const char *line, size_t len, uint64_t *last, bool *ended)
{
	cleanup_json struct json_object *o = parsed(line, len);
	const char *type = json_get_str(o, "type"),
		   *rv = json_get_str(o, "object/metadata/resourceVersion");
	uint64_t at = 0;

	if (*ended)
		DIE("an event after an error");
	*ended = str_eq(type, "ERROR");
	if (*ended) {
		if (json_get_int(o, "object/code", 0) != 410)
			DIE("an error: %.*s", (int)len, line);
		return;
	}
	if (!str_eq(type, "ADDED") && !str_eq(type, "MODIFIED") && !str_eq(type, "DELETED") &&
		!str_eq(type, "BOOKMARK"))
		DIE("no event: %.*s", (int)len, line);
	if (!rv || str_to_u64(rv, INT64_MAX, &at) < 0)
		DIE("an event without a version: %.*s", (int)len, line);
	/* What was there at the start comes in order of names. */
	if (at < *last && !str_eq(type, "ADDED"))
		DIE("versions fall: %.*s", (int)len, line);
	*last = at > *last ? at : *last;
}

static void on_ready(void *arg)
{
	*(bool *)arg = true;
}

static void take_all(struct apireq_stream *w, uint64_t *last, bool *ended)
{
	struct body out = BODY_INIT;
	enum store_watch_next next;
	unsigned n = 0;

	do {
		next = apireq_stream_take(w, &out, 100);
		if (++n > 1000)
			DIE("a watch that never comes to rest");
	} while (next == STORE_WATCH_MORE);
	for (const char *p = out.data, *end; out.len && p < out.data + out.len; p = end + 1) {
		end = memchr(p, '\n', (size_t)(out.data + out.len - p));
		if (!end)
			DIE("half a line");
		check_event(p, (size_t)(end - p), last, ended);
	}
	if ((next == STORE_WATCH_END) != *ended)
		DIE("an end without an error, or the other way round");
	body_fini(&out);
}

static void watch(struct store_objects *s, const char *query)
{
	cleanup_free char *path = xasprintf(PATH "?watch=1&%s", query);
	cleanup_apireq_request_info struct apireq_request_info t;
	struct apireq_answer refused = {0};
	struct apireq_stream *w;
	struct err err = ERR_INIT;
	bool ready = false, ended = false;
	uint64_t last = 0;

	if (apireq_request_info_parse(path, &t, &err) < 0)
		return;
	w = apireq_stream_new(s, &t, on_ready, &ready, &refused);
	if (!w) {
		check_refusal(&refused);
		apireq_answer_fini(&refused);
		return;
	}
	take_all(w, &last, &ended);
	write_one(s, 7);
	if (!ended) {
		apireq_stream_bookmark(w);
		take_all(w, &last, &ended);
	}
	apireq_stream_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){0}, &err);
	struct store_objects *s = store_objects_new(db, &schema, NULL);
	cleanup_free char *text = xmemdup(data, size);
	char *rest = text, *line;
	unsigned lines = 0;

	for (unsigned n = 0; n < OBJECTS; n++)
		write_one(s, n);
	while ((line = strsep(&rest, "\n")) && lines++ < LINES_MAX) {
		if (line[0] == 'L')
			list(s, line + 1);
		else if (line[0] == 'W')
			watch(s, line + 1);
		else if (line[0] == 'C')
			store_watch_compact(s);
		else
			write_one(s, (unsigned char)line[0]);
	}
	store_objects_free(s);
	return 0;
}
