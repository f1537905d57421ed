/* SPDX-License-Identifier: MIT */
/*
 * A body of a built-in kind as Go's decoder reads it: what was read is read again without a change, a
 * refusal says why.
 */
#include "config.h"

#include <stdint.h>

#include "../../src/apireq/decode.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"
#include "tec/schema/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct json_limits limits = {1u << 16, 128, 4000, true};

/* What is decoded is looked at: nothing of it ends the program, and each look says the same. */
static void looks(const struct schema_kind *k, struct json_object *o)
{
	cleanup_json struct json_object *old = json_copy(o);
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0}, same = {NULL, 0, 0};

	schema_builtin_default(k, o);
	schema_builtin_check(k, NULL, o, &causes);
	schema_builtin_check(k, NULL, o, &same);
	if (causes.n != same.n)
		DIE("%s: another look says something else", k->kind);
	schema_builtin_check(k, old, o, &causes);
}

static void object(struct json_object *o)
{
	cleanup_free char *gv = xstrdup(json_get_str(o, "apiVersion") ?: "");
	const char *kind = json_get_str(o, "kind"), *slash = strchr(gv, '/');
	cleanup_free char *group = xstrndup(gv, slash ? (size_t)(slash - gv) : 0), *once = NULL,
			  *twice = NULL;
	const struct schema_kind *k =
		schema_builtin_kind(group, slash ? slash + 1 : gv, kind ?: "");
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0}, more = {NULL, 0, 0};
	const struct schema_fields *table = schema_fields_table;
	struct err err = ERR_INIT;

	while (table->kind && !(str_eq(table->version, gv) && str_eq(table->kind, kind)))
		table++;
	if (!k || !table->kind)
		return;
	if (apireq_decode(k, o, &unknown, &err) < 0) {
		if (err.kind != ERR_INVALID || !*err.text)
			DIE("a refusal without a reason");
		return;
	}
	once = json_text(o);
	if (apireq_decode(k, o, &more, &err) < 0)
		DIE("refused the second time: %s: %s", err.text, once);
	twice = json_text(o);
	if (more.n > 0 || !str_eq(once, twice))
		DIE("%s becomes %s", once, twice);
	looks(k, o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse((const char *)data, size, &limits, &err);

	if (json_object_is_type(o, json_type_object))
		object(o);
	return 0;
}
