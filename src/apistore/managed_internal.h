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

/* managed_entries.c. ERR_INVALID: the object's managedFields are none; out is empty then. */
int managed_entries_read(
	struct json_object *o, struct managed_entries *out, struct err *err) MUST_CHECK;
void managed_entries_fini(struct managed_entries *l);
#define cleanup_managed_entries __attribute__((cleanup(managed_entries_fini)))
/* The entry is good until the next one is added or dropped. */
struct managed_entry *managed_entries_add(struct managed_entries *l, const char *manager,
	const char *version, const char *sub, bool apply);
/* An applier is the same in every version. NULL: none. */
struct managed_entry *managed_entries_find(
	const struct managed_entries *l, const struct apistore_manager *m, bool apply);
/* Those that hold no field. */
void managed_entries_drop_empty(struct managed_entries *l);
void managed_entry_set_time(struct managed_entry *e, const char *time); /* NULL: none */
/* For qsort: the applies first, then by time. */
int managed_entries_by_order(const void *a, const void *b);
/* Sorts them, and writes them into the object. */
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

/* What others than self have of taken and not of allowed (NULL: nothing). Borrows the entries. */
struct managed_conflicts managed_conflicts_find(const struct managed_entries *l,
	const struct managed_entry *self, const struct apistore_fieldset *taken,
	const struct apistore_fieldset *allowed);
void managed_conflicts_fini(struct managed_conflicts *c);
struct apistore_answer managed_conflicts_refuse(const struct managed_conflicts *c);

#endif
