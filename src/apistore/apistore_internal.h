/* SPDX-License-Identifier: MIT */
/* Private to this folder: struct apistore_objects and the functions its modules share. */
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
	bool open;          /* a transaction is open: this turn has written */
	struct err doomed;  /* set: the open transaction will be rolled back, for this reason */
	struct err trouble; /* the last database failure not yet reported */
	uint64_t committed; /* the newest version that watches may see */
	uint64_t mark;      /* the next compaction drops the history before it */
	char **changed;     /* resources written in the open transaction; owned */
	size_t n_changed;
	struct apistore_waits waits, ringing;
	struct apistore_watches watches; /* borrowed */
	struct apistore_gc *gc;          /* borrowed; NULL: collection runs only when called */
};

/* The result of a write: the object and its text as stored, both owned by the caller. */
struct apistore_stored {
	struct json_object *o;
	char *text;
	size_t len;
	bool gone;      /* the write deleted the object: its last finalizer was removed */
	bool too_large; /* nothing was written: the text exceeds the limit */
};

/* objects.c */
struct json_object *apistore_objects_meta(struct json_object *o); /* added when missing */
bool apistore_objects_same_member(struct json_object *a, struct json_object *b, const char *name);
/* Store an object. was: the current object, NULL if there is none. dry: change nothing. max: the
 * longest text to store, 0 for no limit. -1: the database failed. */
int apistore_objects_store(struct apistore_objects *s, const struct apistore_key *key,
	struct json_object *was, struct json_object *take_o, bool dry, size_t max,
	struct apistore_stored *out) MUST_CHECK;
/* Return the text of the current object; the caller wipes and frees it. NULL: not found, or the
 * database failed. */
char *apistore_objects_text(
	struct apistore_objects *s, const struct apistore_key *key, size_t *len);
/* Begin this turn's transaction unless it is open. -1: the database failed, which is noted. */
int apistore_objects_begin(struct apistore_objects *s) MUST_CHECK;
/* Note a database failure: the turn's transaction will be rolled back. Always returns -1. */
int apistore_objects_failed(struct apistore_objects *s, const struct err *err);
/* Start sealing all rows again in the background, after the database key changed. */
void apistore_objects_reseal(struct apistore_objects *s);
/* Note that the open transaction wrote an object of this resource, so its watches are woken. */
void apistore_objects_note_change(struct apistore_objects *s, const char *resource);
void apistore_objects_keep_history_from(struct apistore_objects *s, uint64_t rv);

/* watch.c: wake the watches of the resources in changed[], whose new versions are committed. */
void apistore_watch_wake(struct apistore_objects *s, char *const *changed, size_t n);

/* A pseudo owner uid, stored with an object whose deletion waits for gc.c. */
#define APISTORE_DELETING "!deleting"
/* gc.c: note a write that may need collection: an object with these owners, or one that was deleted
 * (gone: its uid). */
void apistore_gc_note(struct apistore_gc *gc, const struct apistore_key *key, const char *gone,
	const char *const *owners, size_t n);
/* The transaction was rolled back, and notes of it may be wrong: schedule a check of everything. */
void apistore_gc_undone(struct apistore_gc *gc);

#endif
