/* SPDX-License-Identifier: MIT */
/* Verbs and subresources of a kind. A mask of verbs is printed in the order of discovery
 * documents. */
#include "config.h"

#include "tec/schema/kind.h"

#include "tec/base/mem.h"
#include "tec/base/str.h"

const struct schema_sub *schema_kind_sub(const struct schema_kind *k, const char *name)
{
	for (size_t i = 0; i < k->n_subs; i++)
		if (str_eq(k->subs[i].name, name))
			return &k->subs[i];
	return NULL;
}

/* out has room for all eight verbs and the NULL. */
size_t schema_verb_names(unsigned verbs, const char *out[9])
{
	/* In the order of the bits SCHEMA_VERB_*. */
	static const char *const names[] = {
		"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (verbs & 1u << i)
			out[n++] = names[i];
	out[n] = NULL;
	return n;
}
