/* SPDX-License-Identifier: MIT */
/*
 * Each line is a write to one object: a letter for how and by whom, then the body. Whatever was
 * written: managedFields can be read, a path stands once per entry, an apply that was accepted is
 * accepted again and changes nothing.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apireq/fieldset.h"
#include "tec/apireq/request.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ACCOUNT "/api/v1/namespaces/ns/serviceaccounts/a"

static struct store_kind kinds[] = {
	{.group = "", .resource = "serviceaccounts", .kind = "ServiceAccount"}};
static const struct store_schema schema = {.kinds = kinds, .n_kinds = 1};

static const struct write {
	const char *method, *type, *query;
} writes[] = {{"PUT", NULL, "?fieldManager=u"},
	{"PATCH", "application/merge-patch+json", "?fieldManager=m"},
	{"PATCH", "application/strategic-merge-patch+json", "?fieldManager=s"},
	{"PATCH", "application/json-patch+json", "?fieldManager=j"},
	{"PATCH", "application/apply-patch+yaml", "?fieldManager=a"},
	{"PATCH", "application/apply-patch+yaml", "?fieldManager=b&force=true"},
	{"PATCH", "application/apply-patch+yaml", "?fieldManager=kubectl"}};

static int ask(struct store_objects *s, const struct write *w, const char *body)
{
	cleanup_free char *path = xasprintf(ACCOUNT "%s", w->query);
	cleanup_apireq_request_info struct apireq_request_info t;
	struct err err = ERR_INIT;
	struct apireq_answer a;
	int code;

	if (apireq_request_info_parse(path, &t, &err) < 0)
		DIE("%s", err.text);
	a = apireq_request(s, &t,
		&(const struct apireq_request){.method = w->method,
			.content_type = w->type,
			.body = body,
			.len = strlen(body)});
	code = a.code;
	apireq_answer_fini(&a);
	if (store_objects_commit(s, &err) < 0)
		DIE("not stored: %s", err.text);
	return code;
}

static void check_entries(struct store_objects *s)
{
	const struct store_key key = {"serviceaccounts", "ns", "a"};
	cleanup_json struct json_object *o = store_objects_get(s, &key);
	struct json_object *l = json_get_arr(o, "metadata/managedFields");

	for (size_t i = 0; l && i < json_object_array_length(l); i++) {
		struct json_object *e = json_object_array_get_idx(l, i);
		cleanup_apireq_fieldset struct apireq_fieldset fields;
		cleanup_json struct json_object *again = NULL;
		struct err err = ERR_INIT;

		if (apireq_fieldset_read(json_get(e, "fieldsV1"), &fields, &err) < 0)
			DIE("fields that cannot be read: %s", err.text);
		again = apireq_fieldset_json(&fields);
		if (!json_object_equal(again, json_get(e, "fieldsV1")))
			DIE("fields that are written in another way");
		if (fields.n == 0)
			DIE("an entry with nothing");
	}
}

static void one(struct store_objects *s, char letter, const char *body)
{
	const struct write *w = &writes[(unsigned char)letter % ARRAY_LEN(writes)];
	int code = ask(s, w, body);
	uint64_t rv;

	check_entries(s);
	if (code / 100 != 2 || !str_eq(w->type, "application/apply-patch+yaml"))
		return;
	/* An object without managers gets the one before the first apply. */
	code = ask(s, w, body);
	if (code / 100 != 2 && code != 409)
		DIE("%d for what was accepted before: %s", code, body);
	rv = store_objects_rv(s);
	ask(s, w, body);
	if (store_objects_rv(s) != rv)
		DIE("an apply that changes nothing was a write: %s", body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){0}, &err);
	cleanup_free char *text = xstrndup((const char *)data, size);
	struct store_objects *s;

	if (!db)
		DIE("%s", err.text);
	kinds[0].schema = schema_builtin_kind("", "v1", "ServiceAccount");
	s = store_objects_new(db, &schema, NULL);
	ask(s, &writes[5],
		"{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x.io/f\"]},\"secrets\":[{\"name\":\"1\",\"fieldPath\":\"a\"},{\"name\":\"2\"}]}");
	for (char *line = text, *end; line && *line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (*line)
			one(s, *line, line + 1);
	}
	store_objects_free(s);
	return 0;
}
