/* SPDX-License-Identifier: MIT */
/*
 * struct schema_kind: what an API server knows about a kind: names, verbs, subresources. The
 * built-in kinds are a static table (schema/builtin.h); a definition of crd/ contains one, which
 * lives as long as the definition (schema/crd.h).
 */
#ifndef TEC_SCHEMA_KIND_H
#define TEC_SCHEMA_KIND_H

#include <stdbool.h>
#include <stddef.h>

#define SCHEMA_VERB_CREATE            (1u << 0)
#define SCHEMA_VERB_DELETE            (1u << 1)
#define SCHEMA_VERB_DELETE_COLLECTION (1u << 2)
#define SCHEMA_VERB_GET               (1u << 3)
#define SCHEMA_VERB_LIST              (1u << 4)
#define SCHEMA_VERB_PATCH             (1u << 5)
#define SCHEMA_VERB_UPDATE            (1u << 6)
#define SCHEMA_VERB_WATCH             (1u << 7)
#define SCHEMA_VERBS_ALL              0xffu

/* A subresource: "status" of custom resources, "token" of ServiceAccounts. */
struct schema_sub {
	const char *name;
	/* The type of requests and answers when it is not the object itself: TokenRequest. NULL:
	 * group, version and kind of the resource. */
	const char *group, *version, *kind;
	unsigned verbs;
};

struct schema_crd; /* schema/crd.h */

struct schema_kind {
	const char *group; /* "" for core */
	const char *version, *kind, *list_kind, *plural, *singular;
	const char *const *short_names; /* ends with NULL; NULL: none */
	const char *const *categories;  /* ends with NULL; NULL: none */
	const struct schema_sub *subs;
	size_t n_subs;
	unsigned verbs;
	bool namespaced;
	bool generation;              /* metadata.generation counts changes of the spec */
	bool status;                  /* status is a subresource: other writes do not change it */
	const struct schema_crd *crd; /* NULL: built in */
	/* Built in: the members other than apiVersion, kind and metadata, separated by blanks. Only
	 * names: OpenAPI documents allow any value, and schema_builtin_check() checks them. */
	const char *members;
};

const struct schema_sub *schema_kind_sub(
	const struct schema_kind *k, const char *name); /* NULL: none */
/* Write the verbs of a mask in kube-apiserver's order into out (9 places), NULL-terminated, and
 * return their number. */
size_t schema_verb_names(unsigned verbs, const char *out[9]);

#endif
