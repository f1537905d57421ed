/* SPDX-License-Identifier: MIT */
/*
 * How lists and maps of an object are merged, by server-side apply and, for built-in kinds, by a
 * strategic merge patch. struct schema_at is a place in a type; it is a value that lives as long as
 * its kind: start at the object, go to a member or to the elements of a list, and ask.
 *
 * A place that the tables do not know is plain: a map is merged member by member, a list is
 * replaced as a whole.
 */
#ifndef TEC_SCHEMA_MERGE_H
#define TEC_SCHEMA_MERGE_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/schema/kind.h"

enum schema_merge_type {
	SCHEMA_MERGE_PLAIN,  /* map: granular; list: atomic */
	SCHEMA_MERGE_ATOMIC, /* a map or list with one owner as a whole */
	SCHEMA_MERGE_SET,    /* a list of scalars */
	SCHEMA_MERGE_MAP,    /* a list of objects identified by keys */
};

struct schema_merge {
	enum schema_merge_type type;
	const char *keys[4]; /* MERGE_MAP; NULL-terminated unless all four are used */
};

struct schema_node;
struct schema_at {
	const char *in; /* a built-in kind whose members are known; "metadata": that of any kind */
	const struct schema_node *node; /* schema of a CRD */
	const struct schema_merge *merge;
	bool top; /* the object itself */
};

struct schema_at schema_at_object(const struct schema_kind *k);
struct schema_at schema_at_member(struct schema_at at, const char *name);
struct schema_at schema_at_element(struct schema_at at); /* of a list */
/* Never returns NULL. */
const struct schema_merge *schema_at_merge(struct schema_at at);

/* Whether the schema of a CRD names a member (DECLARED), refuses it (UNKNOWN), or does not go that
 * deep (ALLOWED: labels). */
enum schema_declares { SCHEMA_DECLARED, SCHEMA_ALLOWED, SCHEMA_UNKNOWN };
enum schema_declares schema_at_declares(struct schema_at at, const char *name);
/* Describe a value of the wrong type; the caller frees it. NULL: correct, or unknown. */
char *schema_at_mismatch(struct schema_at at, struct json_object *v);

#endif
