/* SPDX-License-Identifier: MIT */
/*
 * Reads a CustomResourceDefinition. The strings of what it hands out are those of its own copy of
 * the object. Every version is compiled, served or not: the stored one decides.
 */
#include "config.h"

#include "tec/schema/crd.h"

#include <ctype.h>
#include <string.h>

#include "crd_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/jsonpath.h"

#define VERSIONS_MAX 50
/* As discovery tells of a kind whose definition is being deleted. */
#define VERBS_ENDING                                                                               \
	(SCHEMA_VERB_DELETE | SCHEMA_VERB_DELETE_COLLECTION | SCHEMA_VERB_GET | SCHEMA_VERB_LIST | \
		SCHEMA_VERB_WATCH)

struct schema_crd {
	struct json_object *o;          /* owned */
	uint64_t since;                 /* 0: it is as it was made */
	struct schema_version *version; /* owned */
	size_t n_versions;
	const char **short_names, **categories; /* owned arrays */
	struct fitting *fitting;                /* owned; a memo, which a borrower may add to */
};

/* A hash table of numbers, 0 is a free place; at most half of it is used. */
struct fitting {
	uint64_t *rv; /* owned */
	size_t size, n;
};

#define VERBS_SUB (SCHEMA_VERB_GET | SCHEMA_VERB_PATCH | SCHEMA_VERB_UPDATE)
/* A kind has both, or one of them. */
static const struct schema_sub subs[] = {
	{.name = "status", .verbs = VERBS_SUB}, {.name = "scale",
							.group = "autoscaling",
							.version = "v1",
							.kind = "Scale",
							.verbs = VERBS_SUB}};

/* ---- defaults */

static struct json_object *sub_object(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, name, &v) || !v) {
		v = json_obj();
		json_add(o, name, v);
	}
	return json_object_is_type(v, json_type_object) ? v : NULL;
}

static void default_names(struct json_object *names)
{
	const char *kind = json_get_str(names, "kind");

	if (!kind || !*kind)
		return;
	if (!json_get(names, "singular")) {
		cleanup_free char *singular = xstrdup(kind);

		for (char *p = singular; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		json_add_str(names, "singular", singular);
	}
	if (!json_get(names, "listKind")) {
		cleanup_free char *list = xasprintf("%sList", kind);

		json_add_str(names, "listKind", list);
	}
}

void schema_crd_default(struct json_object *o)
{
	struct json_object *spec = json_get_obj(o, "spec"), *status, *names, *versions;

	if (!spec)
		return;
	names = json_get_obj(spec, "names");
	if (names)
		default_names(names);
	if (!json_get(spec, "conversion"))
		json_add(spec, "conversion", json_add_str(json_obj(), "strategy", "None"));
	status = sub_object(o, "status");
	versions = json_get_arr(spec, "versions");
	if (!status || json_get(status, "storedVersions"))
		return;
	for (size_t i = 0; versions && i < json_object_array_length(versions); i++) {
		struct json_object *v = json_object_array_get_idx(versions, i);

		if (json_get_bool(v, "storage", false)) {
			json_add(status, "storedVersions",
				json_push_str(json_arr(), json_get_str(v, "name")));
			return;
		}
	}
}

/* ---- reading */

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

static void read_columns(struct schema_version *v, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "additionalPrinterColumns");
	size_t n = a ? json_object_array_length(a) : 0;
	struct schema_column *c;

	if (n == 0)
		return;
	c = xcalloc(n, sizeof(*c));
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_object_array_get_idx(a, i);
		const char *format = json_get_str(e, "format"),
			   *description = json_get_str(e, "description");

		c[i] = (struct schema_column){.name = json_get_str(e, "name"),
			.type = json_get_str(e, "type"),
			.format = format ? format : "",
			.description = description ? description : "",
			.path = json_get_str(e, "jsonPath"),
			.priority = (int)json_get_int(e, "priority", 0)};
	}
	v->columns = c;
	v->n_columns = n;
}

static void read_deprecation(struct schema_version *v, struct json_object *o)
{
	v->deprecated = json_get_bool(o, "deprecated", false);
	v->deprecation = v->deprecated ? json_get_str(o, "deprecationWarning") : NULL;
	if (v->deprecated && !v->deprecation) {
		cleanup_free char *text = xasprintf(
			"%s/%s %s is deprecated", v->kind.group, v->kind.version, v->kind.kind);

		/* In the object, so that it lives as long. */
		json_add_str(o, "deprecationWarning", text);
		v->deprecation = json_get_str(o, "deprecationWarning");
	}
}

static void read_version(struct schema_crd *c, struct schema_version *v, struct json_object *o)
{
	struct json_object *names = json_get_obj(c->o, "spec/names");

	v->crd = c;
	v->served = json_get_bool(o, "served", false);
	v->storage = json_get_bool(o, "storage", false);
	v->openapi = json_get_obj(o, "schema/openAPIV3Schema");
	v->kind = (struct schema_kind){.group = json_get_str(c->o, "spec/group"),
		.version = json_get_str(o, "name"),
		.kind = json_get_str(names, "kind"),
		.list_kind = json_get_str(names, "listKind"),
		.plural = json_get_str(names, "plural"),
		.singular = json_get_str(names, "singular"),
		.short_names = c->short_names,
		.categories = c->categories,
		.verbs = json_get(c->o, "metadata/deletionTimestamp") ? VERBS_ENDING
								      : SCHEMA_VERBS_ALL,
		.namespaced = str_eq(json_get_str(c->o, "spec/scope"), "Namespaced"),
		.generation = true,
		.status = json_get(o, "subresources/status") != NULL,
		.crd = v};
	v->scale_spec = json_get_str(o, "subresources/scale/specReplicasPath");
	v->scale_status = json_get_str(o, "subresources/scale/statusReplicasPath");
	v->scale_selector = json_get_str(o, "subresources/scale/labelSelectorPath");
	v->kind.subs = v->kind.status ? subs : subs + 1;
	v->kind.n_subs = (size_t)v->kind.status + (v->scale_spec != NULL);
	read_columns(v, o);
	read_deprecation(v, o);
}

/*
 * A schema that all versions share is compiled for each, and told once: kube-apiserver has it in
 * spec.validation then.
 */
static void compile_version(struct schema_crd *c, size_t i, struct schema_causes *causes)
{
	struct schema_version *v = &c->version[i];
	cleanup_free char *path = NULL;
	bool shared = true;

	for (size_t j = 1; j < c->n_versions; j++)
		shared = shared && json_object_equal(c->version[0].openapi, c->version[j].openapi);
	if (shared && i > 0 && causes->n)
		return;
	path = shared ? xstrdup("spec.validation.openAPIV3Schema")
		      : xasprintf("spec.versions[%zu].schema.openAPIV3Schema", i);
	v->schema = schema_structural_new(v->openapi, path, causes);
}

static void read_since(struct schema_crd *c)
{
	const char *rv = json_get_str(c->o, "metadata/resourceVersion");

	if (json_get_int(c->o, "metadata/generation", 0) > 1 && rv &&
		str_to_u64(rv, INT64_MAX, &c->since) < 0)
		c->since = 0;
}

struct schema_crd *schema_crd_new(struct json_object *o, struct schema_causes *causes)
{
	struct json_object *versions = json_get_arr(o, "spec/versions");
	size_t n = versions ? json_object_array_length(versions) : 0, before = causes->n;
	struct schema_crd *c;

	crd_check(o, causes);
	if (n > VERSIONS_MAX)
		schema_cause_add(causes, SCHEMA_TOO_MANY, "spec.versions", NULL,
			"must have at most %d items", VERSIONS_MAX);
	if (causes->n != before)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->o = json_copy(o);
	versions = json_get_arr(c->o, "spec/versions");
	c->short_names = text_list(json_get_obj(c->o, "spec/names"), "shortNames");
	c->categories = text_list(json_get_obj(c->o, "spec/names"), "categories");
	c->version = xcalloc(n, sizeof(*c->version));
	c->n_versions = n;
	c->fitting = xcalloc(1, sizeof(*c->fitting));
	for (size_t i = 0; i < n; i++)
		read_version(c, &c->version[i], json_object_array_get_idx(versions, i));
	for (size_t i = 0; i < n; i++)
		compile_version(c, i, causes);
	read_since(c);
	if (causes->n == before)
		return c;
	schema_crd_free(c);
	return NULL;
}

void schema_crd_free(struct schema_crd *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_versions; i++) {
		schema_structural_free(c->version[i].schema);
		free((void *)c->version[i].columns);
	}
	free(c->fitting->rv);
	free(c->fitting);
	free(c->version);
	free(c->short_names);
	free(c->categories);
	json_object_put(c->o);
	free(c);
}

/* ---- what it is */

size_t schema_crd_versions(const struct schema_crd *c)
{
	return c->n_versions;
}

const struct schema_version *schema_crd_at(const struct schema_crd *c, size_t i)
{
	return i < c->n_versions ? &c->version[i] : NULL;
}

const struct schema_version *schema_crd_version(const struct schema_crd *c, const char *name)
{
	for (size_t i = 0; i < c->n_versions; i++)
		if (str_eq(c->version[i].kind.version, name))
			return &c->version[i];
	return NULL;
}

const struct schema_version *schema_crd_storage(const struct schema_crd *c)
{
	for (size_t i = 0; i < c->n_versions; i++)
		if (c->version[i].storage)
			return &c->version[i];
	DIE("CRD %s: no version is stored", schema_crd_name(c));
}

uint64_t schema_crd_since(const struct schema_crd *c)
{
	return c->since;
}

/* The place of a number, or the free one where it belongs. */
static uint64_t *place_of(uint64_t *table, size_t size, uint64_t rv)
{
	size_t i = (size_t)(rv * 0x9e3779b97f4a7c15u >> 32) & (size - 1);

	while (table[i] && table[i] != rv)
		i = (i + 1) & (size - 1);
	return &table[i];
}

bool schema_crd_fits(const struct schema_crd *c, uint64_t rv)
{
	const struct fitting *f = c->fitting;

	return f->size && rv && *place_of(f->rv, f->size, rv) == rv;
}

void schema_crd_note_fits(const struct schema_crd *c, uint64_t rv)
{
	struct fitting *f = c->fitting;

	if (!rv || f->n == SCHEMA_CRD_FITTING || schema_crd_fits(c, rv))
		return;
	if (2 * (f->n + 1) > f->size) {
		size_t size = f->size ? 2 * f->size : 64;
		uint64_t *more = xcalloc(size, sizeof(*more));

		for (size_t i = 0; i < f->size; i++)
			if (f->rv[i])
				*place_of(more, size, f->rv[i]) = f->rv[i];
		free(f->rv);
		f->rv = more;
		f->size = size;
	}
	*place_of(f->rv, f->size, rv) = rv;
	f->n++;
}

const char *schema_crd_name(const struct schema_crd *c)
{
	return json_get_str(c->o, "metadata/name");
}

const char *schema_crd_group(const struct schema_crd *c)
{
	return json_get_str(c->o, "spec/group");
}
