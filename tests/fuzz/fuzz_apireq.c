/* SPDX-License-Identifier: MIT */
/*
 * Each line is a request: a letter for the verb, then a path up to a blank, then the body. Every
 * answer is JSON with the code it was given, an object that is stored can be read back under its
 * name and keeps its uid, and no write that is refused changes anything. Garbage collection ends.
 */
#include "config.h"

#include <stdint.h>

#include "tec/store/gc.h"
#include "tec/apireq/request.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct store_kind kinds[] = {{.group = "g", .generation = true, .status = true}};
static const struct store_list lists[] = {{"c", {"type"}}, {"ports", {"port", "protocol"}}};
static const struct store_schema schema = {
	.kinds = kinds, .n_kinds = ARRAY_LEN(kinds), .lists = {lists, ARRAY_LEN(lists)}};

static const struct apireq_request *verb_of(char letter)
{
	static const struct apireq_request verbs[] = {{.method = "GET"}, {.method = "POST"},
		{.method = "PUT"},
		{.method = "PATCH", .content_type = "application/merge-patch+json"},
		{.method = "PATCH", .content_type = "application/apply-patch+yaml"},
		{.method = "DELETE"},
		{.method = "PATCH", .content_type = "application/json-patch+json"},
		{.method = "PATCH", .content_type = "application/strategic-merge-patch+json"}};

	return &verbs[(unsigned char)letter % ARRAY_LEN(verbs)];
}

static void check_object(
	struct store_objects *s, const struct store_key *t, const char *uid, bool was_there)
{
	cleanup_json struct json_object *o = store_objects_get(s, t);

	if (!o)
		return;
	if (!str_eq(json_get_str(o, "metadata/name"), t->name) ||
		!json_get_str(o, "metadata/uid") || !json_get_str(o, "metadata/resourceVersion") ||
		!json_get_str(o, "kind"))
		DIE("an object without what the server gives it");
	if (was_there && !str_eq(uid, json_get_str(o, "metadata/uid")))
		DIE("a write changed the uid");
}

static void check_answer(const struct apireq_answer *a, bool changed)
{
	cleanup_json struct json_object *o = json_tokener_parse(a->body);

	if (!json_object_is_type(o, json_type_object) || a->len != strlen(a->body) || a->more)
		DIE("an answer that is not a JSON object");
	if (a->code >= 300 && (json_get_int(o, "code", 0) != a->code || changed))
		DIE("a refusal that is none");
	/* kube-apiserver, too, says 500 of patches that it cannot make sense of. */
	if (a->code == 507 ||
		(a->code == 500 && str_eq(json_get_str(o, "reason"), "InternalError") &&
			strstr(a->body, "database")))
		DIE("the database failed: %s", a->body);
	if (a->code > 500 && a->code != 504)
		DIE("an error of ours: %s", a->body);
}

static void one(struct store_objects *s, char letter, const char *path, const char *body)
{
	cleanup_apireq_request_info struct apireq_request_info t, again;
	cleanup_free char *uid = NULL;
	cleanup_json struct json_object *was = NULL;
	struct apireq_request r = *verb_of(letter);
	struct apireq_answer a;
	struct err err = ERR_INIT, same = ERR_INIT;
	uint64_t rv = store_objects_rv(s);
	struct store_key key;
	int rc = apireq_request_info_parse(path, &t, &err);

	if (apireq_request_info_parse(path, &again, &same) != rc || err.kind != same.kind)
		DIE("a path that is read in two ways");
	if (rc < 0)
		return;
	key = (struct store_key){again.qualified, again.ns, again.name};
	r.body = body;
	r.len = strlen(body);
	was = store_objects_get(s, &key);
	uid = xstrdup(json_get_str(was, "metadata/uid"));
	a = apireq_request(s, &t, &r);
	check_answer(&a, store_objects_rv(s) != rv);
	check_object(s, &key, uid, was != NULL);
	apireq_answer_fini(&a);
	if (store_objects_commit(s, &err) < 0)
		DIE("not stored: %s", err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){0}, &err);
	struct store_objects *s = store_objects_new(db, &schema, NULL);
	cleanup_free char *text = xmemdup(data, size);
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		char *body = strchr(line, ' ');

		if (!*line)
			continue;
		if (body)
			*body++ = '\0';
		one(s, line[0], line + 1, body ? body : "");
	}
	(void)store_gc_collect(s);
	if (store_objects_commit(s, &err) < 0)
		DIE("not stored: %s", err.text);
	store_objects_free(s);
	return 0;
}
