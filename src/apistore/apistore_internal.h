/* SPDX-License-Identifier: MIT */
/* Private to this folder: the layout of the objects, and what their modules share. */
#ifndef TEC_APISTORE_INTERNAL_H
#define TEC_APISTORE_INTERNAL_H

#include "tec/apistore/objects.h"
#include "tec/apistore/target.h"
#include "tec/base/err.h"
#include "tec/loop/timer.h"

struct apistore_watch;
struct apistore_gc;

TAILQ_HEAD(apistore_waits, apistore_wait);
LIST_HEAD(apistore_watches, apistore_watch);

struct apistore_objects {
	struct apistore_db *db;
	const struct apistore_schema *schema; /* borrowed */
	struct loop *loop;                    /* borrowed; NULL: none */
	struct defer commit;
	struct timer settle, compact, reseal;
	bool open;          /* a transaction: the turn has written */
	struct err doomed;  /* why it will not be committed */
	struct err trouble; /* since it was last asked for */
	uint64_t committed; /* what watches may see */
	uint64_t mark;      /* the history is cut here next time */
	char **changed;     /* resources of the open transaction; owned */
	size_t n_changed;
	struct apistore_waits waits, ringing;
	struct apistore_watches watches; /* borrowed */
	struct apistore_gc *gc;          /* NULL: on demand only; borrowed */
};

/* What a write leaves: the text as stored and the object, both for the caller to release. */
struct apistore_stored {
	struct json_object *o;
	char *text;
	size_t len;
	bool gone;      /* deleted by it */
	bool too_large; /* and therefore not written */
};

/* objects.c */
struct json_object *apistore_objects_meta(struct json_object *o); /* made when it is missing */
bool apistore_objects_same_member(struct json_object *a, struct json_object *b, const char *name);
/* was: the object there, NULL without one. dry: nothing is stored; max: nor is a text longer than
 * that (0: any). -1: the database failed. */
int apistore_objects_store(struct apistore_objects *s, const struct apistore_key *key,
	struct json_object *was, struct json_object *take_o, bool dry, size_t max,
	struct apistore_stored *out) MUST_CHECK;
/* The text of the current object, which the caller wipes and frees. NULL: absent or failed. */
char *apistore_objects_text(
	struct apistore_objects *s, const struct apistore_key *key, size_t *len);
/* Begins the turn's transaction. -1: the database failed; noted. */
int apistore_objects_begin(struct apistore_objects *s) MUST_CHECK;
/* The database failed in what was done last: the turn cannot be stored. Returns -1. */
int apistore_objects_failed(struct apistore_objects *s, const struct err *err);
/* The database's key is another: upkeep seals the rows again. */
void apistore_objects_reseal(struct apistore_objects *s);
/* The open transaction wrote something of this resource. */
void apistore_objects_note_change(struct apistore_objects *s, const char *resource);
void apistore_objects_keep_history_from(struct apistore_objects *s, uint64_t rv);

/* watch.c: the resources in changed[] have new versions, and they are committed. */
void apistore_watch_wake(struct apistore_objects *s, char *const *changed, size_t n);

/* Stands among the uids of owners of what is being deleted and waits for gc.c. */
#define APISTORE_DELETING "!deleting"
/* gc.c: something was written that may leave work: an object of these owners, or (gone: its uid) one
 * that has gone. */
void apistore_gc_note(struct apistore_gc *gc, const struct apistore_key *key, const char *gone,
	const char *const *owners, size_t n);
/* What was written is undone: everything is looked at again, after a while. */
void apistore_gc_undone(struct apistore_gc *gc);

#endif
