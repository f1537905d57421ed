/* SPDX-License-Identifier: MIT */
/* The strings of what it hands out are those of its own copy of the definition. */
#include "config.h"

#include "tec/schema/crd.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define FIRST "spec.versions[0]"

static const struct schema_sub subs[] = {
	{.name = "status", .verbs = SCHEMA_VERB_GET | SCHEMA_VERB_PATCH | SCHEMA_VERB_UPDATE}};

static const char **text_list(struct json_object *names, const char *member)
{
	struct json_object *a = json_get_arr(names, member);
	size_t n = a ? json_object_array_length(a) : 0;
	const char **out;

	if (n == 0)
		return NULL;
	out = xcalloc(n + 1, sizeof(*out));
	for (size_t i = 0; i < n; i++)
		out[i] = json_object_get_string(json_object_array_get_idx(a, i));
	return out;
}

static int read_columns(struct schema_crd *c, struct json_object *version, struct err *err)
{
	struct json_object *a = json_get_arr(version, "additionalPrinterColumns");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *e = json_object_array_get_idx(a, i);
		const char *format = json_get_str(e, "format"),
			   *description = json_get_str(e, "description");
		const struct schema_column column = {.name = json_get_str(e, "name"),
			.type = json_get_str(e, "type"),
			.format = format ? format : "",
			.description = description ? description : "",
			.path = json_get_str(e, "jsonPath"),
			.priority = (int)json_get_int(e, "priority", 0)};

		if (!column.name || !column.type || !column.path)
			return err_set(err, ERR_INVALID,
				FIRST
				".additionalPrinterColumns[%zu]: name, type and jsonPath are required",
				i);
		ARRAY_GROW(c->columns, c->n_columns);
		c->columns[c->n_columns++] = column;
	}
	return 0;
}

static int read_kind(struct schema_crd *c, struct json_object *version, struct err *err)
{
	struct json_object *names = json_get_obj(c->o, "spec/names");
	struct schema_kind *k = &c->kind;

	*k = (struct schema_kind){.group = json_get_str(c->o, "spec/group"),
		.version = json_get_str(version, "name"),
		.kind = json_get_str(names, "kind"),
		.list_kind = json_get_str(names, "listKind"),
		.plural = json_get_str(names, "plural"),
		.singular = json_get_str(names, "singular"),
		.short_names = text_list(names, "shortNames"),
		.categories = text_list(names, "categories"),
		.subs = subs,
		.verbs = SCHEMA_VERBS_ALL,
		.namespaced = str_eq(json_get_str(c->o, "spec/scope"), "Namespaced"),
		.generation = true,
		.status = json_get(version, "subresources/status") != NULL,
		.crd = c};
	k->n_subs = k->status;
	if (k->group && k->version && k->kind && k->list_kind && k->plural && k->singular)
		return 0;
	return err_set(err, ERR_INVALID,
		"spec.group, " FIRST
		".name, spec.names.kind, listKind, plural and singular are required");
}

static int compile(struct schema_crd *c, struct err *err)
{
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};
	cleanup_free char *why = NULL;

	c->schema = schema_structural_new(c->openapi, FIRST ".schema.openAPIV3Schema", &causes);
	if (c->schema)
		return 0;
	why = schema_causes_text(&causes);
	return err_set(err, ERR_INVALID, "%s", why);
}

struct schema_crd *schema_crd_new(struct json_object *o, struct err *err)
{
	struct schema_crd *c = xcalloc(1, sizeof(*c));
	struct json_object *versions, *version;

	c->o = json_copy(o);
	versions = json_get_arr(c->o, "spec/versions");
	if (!versions || json_object_array_length(versions) != 1) {
		err_set(err, ERR_INVALID, "spec.versions must have one version");
		schema_crd_free(c);
		return NULL;
	}
	version = json_object_array_get_idx(versions, 0);
	c->openapi = json_get_obj(version, "schema/openAPIV3Schema");
	if (read_kind(c, version, err) == 0 && read_columns(c, version, err) == 0 &&
		compile(c, err) == 0)
		return c;
	schema_crd_free(c);
	return NULL;
}

void schema_crd_free(struct schema_crd *c)
{
	if (!c)
		return;
	schema_structural_free(c->schema);
	free(c->columns);
	free((void *)c->kind.short_names);
	free((void *)c->kind.categories);
	json_object_put(c->o);
	free(c);
}
