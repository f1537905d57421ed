/* SPDX-License-Identifier: MIT */
/* Shared by managed.c (updates and applies), managed_entries.c and managed_conflicts.c. */
#ifndef TEC_APISTORE_MANAGED_INTERNAL_H
#define TEC_APISTORE_MANAGED_INTERNAL_H

#include "tec/apistore/managed.h"

#define MANAGED_ENTRIES_MAX 200

struct managed_entry {
	char *manager, *version, *sub, *time; /* owned; time NULL: none */
	bool apply;
	struct apistore_fieldset fields;
};

struct managed_entries {
	struct managed_entry *at; /* owned */
	size_t n;
};

/* managed_entries.c. Read the entries of an object. ERR_INVALID: they are malformed; out is then
 * empty. */
int managed_entries_read(
	struct json_object *o, struct managed_entries *out, struct err *err) MUST_CHECK;
void managed_entries_fini(struct managed_entries *l);
#define cleanup_managed_entries __attribute__((cleanup(managed_entries_fini)))
/* The result is valid until the next entry is added or dropped. */
struct managed_entry *managed_entries_add(struct managed_entries *l, const char *manager,
	const char *version, const char *sub, bool apply);
/* Find an entry. An apply is found in any apiVersion, an update only in the same. NULL: none. */
struct managed_entry *managed_entries_find(
	const struct managed_entries *l, const struct apistore_manager *m, bool apply);
/* Drop entries that own no fields. */
void managed_entries_drop_empty(struct managed_entries *l);
void managed_entry_set_time(struct managed_entry *e, const char *time); /* NULL: none */
/* For qsort: applies first, then by time. */
int managed_entries_by_order(const void *a, const void *b);
/* Sort the entries and write them into the object. */
void managed_entries_write(struct managed_entries *l, struct json_object *o);

/* managed_conflicts.c */
struct managed_conflict {
	const struct managed_entry *with; /* borrowed */
	struct apistore_fieldset fields;
};

struct managed_conflicts {
	struct managed_conflict *at; /* owned, sorted by manager */
	size_t n;
};

/* Find the fields in taken, but not in allowed (NULL: empty), that entries other than self own. The
 * result borrows the entries. */
struct managed_conflicts managed_conflicts_find(const struct managed_entries *l,
	const struct managed_entry *self, const struct apistore_fieldset *taken,
	const struct apistore_fieldset *allowed);
void managed_conflicts_fini(struct managed_conflicts *c);
struct apistore_answer managed_conflicts_refuse(const struct managed_conflicts *c);

#endif
