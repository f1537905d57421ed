/* SPDX-License-Identifier: MIT */
/*
 * Each line is a request: a letter for the verb, then a path up to a blank, then the body. Every
 * answer is JSON with the code it was given, an object that is stored can be read back under its
 * name and keeps its uid, and no write that is refused changes anything.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apistore/request.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct apistore_kind kinds[] = {{.group = "g", .generation = true, .status = true}};
static const struct apistore_list lists[] = {{"c", {"type"}}, {"ports", {"port", "protocol"}}};
static const struct apistore_schema schema = {kinds, ARRAY_LEN(kinds), {lists, ARRAY_LEN(lists)}};

static const struct apistore_request *verb_of(char letter)
{
	static const struct apistore_request verbs[] = {{"GET", NULL, NULL, 0},
		{"POST", NULL, NULL, 0}, {"PUT", NULL, NULL, 0},
		{"PATCH", "application/merge-patch+json", NULL, 0},
		{"PATCH", "application/apply-patch+yaml", NULL, 0}, {"DELETE", NULL, NULL, 0}};

	return &verbs[(unsigned char)letter % ARRAY_LEN(verbs)];
}

static void check_object(struct apistore_objects *s, const struct apistore_target *t,
	const char *uid, bool was_there)
{
	struct json_object *o = apistore_objects_get(s, t->collection, t->name);

	if (!o)
		return;
	if (!str_eq(json_get_str(o, "metadata/name"), t->name) ||
		!json_get_str(o, "metadata/uid") || !json_get_str(o, "metadata/resourceVersion") ||
		!json_get_str(o, "kind"))
		DIE("an object without what the server gives it");
	if (was_there && !str_eq(uid, json_get_str(o, "metadata/uid")))
		DIE("a write changed the uid");
}

static void one(struct apistore_objects *s, char letter, const char *path, const char *body)
{
	cleanup_apistore_target struct apistore_target t;
	cleanup_free char *uid = NULL;
	struct apistore_request r = *verb_of(letter);
	struct apistore_answer a;
	struct err err = ERR_INIT;
	uint64_t rv = apistore_objects_rv(s);
	bool was_there;

	if (apistore_target_parse(path, &t, &err) < 0)
		return;
	r.body = body;
	r.len = strlen(body);
	was_there = apistore_objects_get(s, t.collection, t.name) != NULL;
	uid = xstrdup(json_get_str(apistore_objects_get(s, t.collection, t.name), "metadata/uid"));
	a = apistore_request(s, &t, &r);
	cleanup_json struct json_object *o = json_tokener_parse(a.body);

	if (!json_object_is_type(o, json_type_object) || a.len != strlen(a.body))
		DIE("an answer that is not a JSON object");
	if (a.code >= 300 && (json_get_int(o, "code", 0) != a.code || apistore_objects_rv(s) != rv))
		DIE("a refusal that is none");
	check_object(s, &t, uid, was_there);
	apistore_answer_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct apistore_objects *s = apistore_objects_new(&schema);
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
	apistore_objects_free(s);
	return 0;
}
