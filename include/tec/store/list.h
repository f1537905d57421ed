/* SPDX-License-Identifier: MIT */
/*
 * Lists: the objects of a resource as of one resourceVersion, ordered by namespace and name, taken
 * in pieces. All pages of a list (limit, token) show the same version as long as the history holds
 * it.
 */
#ifndef TEC_STORE_LIST_H
#define TEC_STORE_LIST_H

#include "tec/store/objects.h"
#include "tec/store/selector.h"

/* What to list. Texts and selector are borrowed and must outlive the cursor. */
struct store_list_options {
	const char *resource, *ns;           /* ns NULL: all */
	const struct store_selector *select; /* NULL: all */
	uint64_t limit;                      /* objects of a page; 0: no limit */
	uint64_t rv;                         /* show this version or a later one; 0: any */
	bool exact;                          /* show rv itself */
	const char *token; /* continue after the page that gave it; NULL: the first page */
};

/* A position in a list. Its owner reads at, more, next, left and given. */
struct store_list_cursor {
	struct store_objects *s;
	struct store_list_options of;
	uint64_t at;                 /* the version shown */
	char *after_ns, *after_name; /* owned: the last object given; NULL: none */
	uint64_t given;              /* objects given so far */
	bool more;                   /* there is a next page */
	char *next;                  /* owned: its token */
	uint64_t left;               /* objects after this page; unknown with a selector */
	bool begun, ended;
};

enum store_list_state {
	STORE_LIST_OK,
	STORE_LIST_BAD_TOKEN,
	STORE_LIST_FUTURE,  /* version `at` does not exist yet */
	STORE_LIST_EXPIRED, /* it was compacted; next: a token for the rest as it is now, or NULL */
	STORE_LIST_FAILED,  /* the database; err is set */
};
/* Start a list. *out is set in every case. */
enum store_list_state store_list_start(struct store_objects *s, const struct store_list_options *of,
	struct store_list_cursor **out, struct err *err) MUST_CHECK;
void store_list_free(struct store_list_cursor *c); /* NULL is fine */
/* Give the next objects to fn until it returns false, for enough. 1: call again; 0: the page or
 * list is complete; -1: the database failed, or ERR_GONE: the version was compacted meanwhile. */
int store_list_take(
	struct store_list_cursor *c, store_version_fn fn, void *arg, struct err *err) MUST_CHECK;

#endif
