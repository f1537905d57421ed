/* SPDX-License-Identifier: MIT */
/*
 * The objects of one Kubernetes API, stored in a database (store/db), which is a file or in
 * memory. No object is cached: a read parses the stored text, and the caller puts the result.
 *
 * All writes in one turn of the loop share a transaction, which is committed in the next turn. Reads
 * see these writes at once, but answers and watches must not show them before the commit:
 * store_objects_when_stored() calls back after it, or after its failure. A failed commit restores
 * the state before the turn, and later writes are attempted as usual.
 *
 * It owns the database, and is freed after the transports and watches that use it. What a client
 * may do is checked by apireq/request.
 */
#ifndef TEC_STORE_OBJECTS_H
#define TEC_STORE_OBJECTS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tec/store/db.h"
#include "tec/loop/loop.h"
#include "tec/schema/kind.h"

/* The properties of a kind. */
struct store_kind {
	const char *group, *resource;     /* resource NULL: all of the group */
	const char *kind;                 /* NULL: unknown; its lists have kind List */
	bool generation;                  /* metadata.generation counts changes of the spec */
	bool status;                      /* has a status subresource: other writes keep status */
	bool custom;                      /* from crd/: items of a list have their kind */
	const struct schema_kind *schema; /* borrowed; NULL: unknown */
};

/* For kinds without a schema, in tests: a list whose elements are identified by keys, found by the
 * name of its member. An element has at least one of the keys. metadata.ownerReferences and
 * finalizers need no entry. */
struct store_list {
	const char *member;
	const char *keys[3];
};

struct store_lists {
	const struct store_list *list; /* borrowed */
	size_t n;
};

struct store_schema {
	const struct store_kind *kinds; /* the first match counts; without one: a plain object */
	size_t n_kinds;
	struct store_lists lists;
	bool namespaces; /* the namespace of an object must exist */
};

struct store_objects;

/* The schema is borrowed. l NULL, in programs without a loop: the caller commits. */
struct store_objects *store_objects_new(
	struct store_db *take_db, const struct store_schema *schema, struct loop *l);
/* Rolls back an open transaction. */
void store_objects_free(struct store_objects *s);
struct store_db *store_objects_db(struct store_objects *s);
const struct store_schema *store_objects_schema(const struct store_objects *s);

/* The last resourceVersion issued; as long as it is unchanged, nothing was written. */
uint64_t store_objects_rv(const struct store_objects *s);
/* Get an object; the caller puts it. NULL: not found, or the database failed
 * (store_objects_trouble). */
struct json_object *store_objects_get(struct store_objects *s, const struct store_key *key);
/* Get its text; the caller wipes and frees it. NULL: as above. */
char *store_objects_text(struct store_objects *s, const struct store_key *key, size_t *len);
size_t store_objects_count(struct store_objects *s, const char *resource, const char *ns);
/* Never NULL. resource without its group. */
const struct store_kind *store_objects_kind(
	const struct store_objects *s, const char *group, const char *resource);

/*
 * Create or replace an object as given, status included, without checking rights, resourceVersion
 * or schema. Name, namespace, generation and resourceVersion are set, missing uid and
 * creationTimestamp are added, and watches are notified. An object with a deletionTimestamp and no
 * finalizers is deleted. An unchanged object is not written. Returns the object as stored, or its
 * last state if it was deleted; the caller puts it. NULL: the database failed.
 */
struct json_object *store_objects_put(
	struct store_objects *s, const struct store_key *key, struct json_object *take_o);

/* The result of a write: the object and its text as stored, both owned by the caller. */
struct store_stored {
	struct json_object *o;
	char *text;
	size_t len;
	bool gone;      /* the write deleted the object: its last finalizer was removed */
	bool too_large; /* nothing was written: the text exceeds the limit */
};
/* The same with more choices. was: the current object, NULL if there is none. dry: change nothing.
 * max: the longest text to store, 0 for no limit. -1: the database failed. */
int store_objects_store(struct store_objects *s, const struct store_key *key,
	struct json_object *was, struct json_object *take_o, bool dry, size_t max,
	struct store_stored *out) MUST_CHECK;

struct json_object *store_objects_meta(struct json_object *o); /* added when missing */
bool store_objects_same_member(struct json_object *a, struct json_object *b, const char *name);

/* ---- the transaction of a turn */

/* Commit now. 0: all writes are durable. -1: all writes of this turn were rolled back; err says
 * why. */
int store_objects_commit(struct store_objects *s, struct err *err) MUST_CHECK;

/* A wait for the commit. fn runs once, from the loop, when all earlier writes are stored (err is
 * not set) or were rolled back (err is set). Embedded and zeroed by its owner, who must cancel it
 * before it ends. */
struct store_wait {
	TAILQ_ENTRY(store_wait) link; /* in s->waits, or in s->ringing */
	struct store_objects *s;      /* NULL: not waiting */
	bool ringing;                 /* in s->ringing, whose callbacks are being called */
	struct defer now;             /* calls fn when there was nothing to store */
	void (*fn)(void *arg, const struct err *err);
	void *arg;
};
void store_objects_when_stored(struct store_objects *s, struct store_wait *w,
	void (*fn)(void *arg, const struct err *err), void *arg);
void store_wait_cancel(struct store_wait *w);

/* Get the last database failure since the previous call. False: there was none. */
bool store_objects_trouble(struct store_objects *s, struct err *err);
/* Note a database failure: the open transaction will be rolled back. Always returns -1. */
int store_objects_failed(struct store_objects *s, const struct err *err);
bool store_objects_is_open(const struct store_objects *s); /* this turn has written */
/* Start sealing all rows again in the background, after the database key changed. */
void store_objects_reseal(struct store_objects *s);

#endif
