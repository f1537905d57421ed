/* SPDX-License-Identifier: MIT */
/*
 * One array of kinds, built-in ones first. It is filled before the API is served and not changed
 * after that, so pointers into it stay valid.
 */
#include "config.h"

#include "tec/apireq/kinds.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/yaml.h"
#include "tec/schema/builtin.h"

struct apireq_kinds {
	struct store_kind *kind; /* owned; points into crds */
	size_t n;
	struct schema_crd **crds; /* owned */
	size_t n_crds;
};

/* Add a kind with the properties that the store needs. Its texts are borrowed from the schema. */
static void add(struct apireq_kinds *k, const struct schema_kind *kind)
{
	ARRAY_GROW(k->kind, k->n);
	k->kind[k->n++] = (struct store_kind){.group = kind->group,
		.resource = kind->plural,
		.kind = kind->kind,
		.generation = kind->generation,
		.status = kind->status,
		.custom = kind->crd != NULL,
		.schema = kind};
}

struct apireq_kinds *apireq_kinds_new(void)
{
	struct apireq_kinds *k = xcalloc(1, sizeof(*k));

	for (size_t i = 0; i < schema_builtin_count(); i++)
		add(k, schema_builtin_at(i));
	return k;
}

/* The kinds point into the definitions, so both are freed together, after all who use them. */
void apireq_kinds_free(struct apireq_kinds *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n_crds; i++)
		schema_crd_free(k->crds[i]);
	free(k->crds);
	free(k->kind);
	free(k);
}

void apireq_kinds_add(struct apireq_kinds *k, const char *definition)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = yaml_parse(definition, strlen(definition), &err);
	struct schema_crd *crd = o ? schema_crd_new(o, &err) : NULL;

	if (!crd)
		DIE("cannot serve a definition from crd/: %s", err.text);
	ARRAY_GROW(k->crds, k->n_crds);
	k->crds[k->n_crds++] = crd;
	add(k, &crd->kind);
}

void apireq_kinds_use(const struct apireq_kinds *k, struct store_schema *out)
{
	out->kinds = k->kind;
	out->n_kinds = k->n;
}

struct schema_served apireq_kinds_served(const struct apireq_kinds *k)
{
	return (struct schema_served){k->crds, k->n_crds};
}
