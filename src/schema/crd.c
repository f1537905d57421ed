/* SPDX-License-Identifier: MIT */
/* Strings that are handed out belong to the own copy of the definition, so none of them is
 * copied. */
#include "config.h"

#include "tec/schema/crd.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

/* The only subresource of our CRDs: no scale, and create is not possible on it. */
static const struct schema_sub subs[] = {
	{.name = "status", .verbs = SCHEMA_VERB_GET | SCHEMA_VERB_PATCH | SCHEMA_VERB_UPDATE}};

/* The array is owned by the definition, the strings are borrowed from its JSON. */
static const char **text_list(struct json_object *names, const char *member)
{
	struct json_object *a = json_get(names, member);
	size_t n = json_len(a);
	const char **out;

	if (n == 0)
		return NULL;
	out = xcalloc(n + 1, sizeof(*out));
	for (size_t i = 0; i < n; i++)
		out[i] = json_object_get_string(json_at(a, i));
	return out;
}

/* The server adds the Name column itself; see table.c. */
static void read_columns(struct schema_crd *c, struct json_object *version)
{
	struct json_object *a = json_get(version, "additionalPrinterColumns");

	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *e = json_at(a, i);

		ARRAY_GROW(c->columns, c->n_columns);
		c->columns[c->n_columns++] = (struct schema_column){.name = json_get_str(e, "name"),
			.type = json_get_str(e, "type"),
			.format = json_get_str(e, "format"),
			.description = json_get_str(e, "description"),
			.path = json_get_str(e, "jsonPath"),
			.priority = (int)json_get_int(e, "priority", 0)};
	}
}

/* Only the first version is read: no CRD of crd/ has two. Only subresource status is supported; a
 * definition without it has no subresource. */
struct schema_crd *schema_crd_new(struct json_object *o, struct err *err)
{
	struct schema_crd *c = xcalloc(1, sizeof(*c));
	struct json_object *version, *names;

	c->o = json_copy(o);
	version = json_at(json_get(c->o, "spec/versions"), 0);
	names = json_get_obj(c->o, "spec/names");
	c->openapi = json_get(version, "schema/openAPIV3Schema");
	c->kind = (struct schema_kind){.group = json_get_str(c->o, "spec/group"),
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
	c->kind.n_subs = c->kind.status;
	read_columns(c, version);
	c->schema = schema_structural_new(c->openapi, err);
	if (c->schema)
		return c;
	schema_crd_free(c);
	return NULL;
}

/* The JSON goes last: kind, columns and schema borrow strings from it. */
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
