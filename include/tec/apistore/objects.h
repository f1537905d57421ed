/* SPDX-License-Identifier: MIT */
/*
 * The objects of one Kubernetes API over a database (apistore/db), which is a file or memory. No
 * object is kept in memory: what is read is parsed, and the caller puts it.
 *
 * The writes of one turn of the loop share one transaction, which is committed in the next turn;
 * what reads show already, answers and watches must not: apistore_objects_when_stored() says when
 * they may, or that nothing of it was stored. After such a failure everything is as it was before
 * the turn, and what comes next is tried again.
 *
 * Owns the database; free it after the transports and watches over it. What a client may not do is
 * refused by apistore/request.
 */
#ifndef TEC_APISTORE_OBJECTS_H
#define TEC_APISTORE_OBJECTS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tec/apistore/db.h"
#include "tec/loop/loop.h"
#include "tec/schema/kind.h"

/* What the API knows of a kind beyond its objects. */
struct apistore_kind {
	const char *group, *resource;     /* resource NULL: every one of the group */
	const char *kind;                 /* NULL: not known: its lists are of kind List */
	bool generation;                  /* metadata.generation counts changes of the spec */
	bool status;                      /* status is a subresource: other writes leave it alone */
	bool custom;                      /* of crd/: items of a list say their kind */
	const struct schema_kind *schema; /* borrowed; NULL: not known */
};

/* Kinds whose schema is not known, of tests: lists that are told apart by keys, by their name alone. An
 * element has at least one of the keys. metadata.ownerReferences and finalizers need no entry. */
struct apistore_list {
	const char *member;
	const char *keys[3];
};

struct apistore_lists {
	const struct apistore_list *list; /* borrowed */
	size_t n;
};

struct apistore_answer;
struct apistore_target;

struct apistore_schema {
	const struct apistore_kind *kinds; /* the first that fits; none: a plain object */
	size_t n_kinds;
	struct apistore_lists lists;
	bool namespaces; /* an object needs its namespace */
};

struct apistore_objects;

/* The schema is borrowed. l NULL (programs without a loop): the caller commits. */
struct apistore_objects *apistore_objects_new(
	struct apistore_db *take_db, const struct apistore_schema *schema, struct loop *l);
/* What is not committed is undone. */
void apistore_objects_free(struct apistore_objects *s);
struct apistore_db *apistore_objects_db(struct apistore_objects *s);

/* The last resourceVersion given: unchanged = nothing was written. */
uint64_t apistore_objects_rv(const struct apistore_objects *s);
/* The caller puts it; NULL: absent, or the database failed (apistore_objects_trouble). */
struct json_object *apistore_objects_get(
	struct apistore_objects *s, const struct apistore_key *key);
size_t apistore_objects_count(struct apistore_objects *s, const char *resource, const char *ns);
/* Never NULL. resource without its group. */
const struct apistore_kind *apistore_objects_kind(
	const struct apistore_objects *s, const char *group, const char *resource);

/*
 * Makes or replaces the object as it is given, status too, without a look at rights, versions or
 * kinds: the server sets name, namespace, generation and resourceVersion, fills in uid and
 * creationTimestamp, tells the watches, and drops an object with a deletionTimestamp and no
 * finalizer. What is there already is not written again. Returns the object as stored or as last
 * seen, which the caller puts; NULL: the database failed.
 */
struct json_object *apistore_objects_put(
	struct apistore_objects *s, const struct apistore_key *key, struct json_object *take_o);

/* ---- storing */

/* 0: all that was done is durable. -1: none of what this turn wrote is there, for this reason. */
int apistore_objects_commit(struct apistore_objects *s, struct err *err) MUST_CHECK;

/* fn runs once, from the loop, when all that was done before is stored (err is not set), or could
 * not be. Embedded, zeroed by its owner, who cancels it in its own end. */
struct apistore_wait {
	TAILQ_ENTRY(apistore_wait) link; /* in the list of the objects */
	struct apistore_objects *s;      /* NULL: nothing is waited for */
	bool ringing;                    /* in the list of those that are being told */
	struct defer now;                /* there was nothing to store */
	void (*fn)(void *arg, const struct err *err);
	void *arg;
};
void apistore_objects_when_stored(struct apistore_objects *s, struct apistore_wait *w,
	void (*fn)(void *arg, const struct err *err), void *arg);
void apistore_wait_cancel(struct apistore_wait *w);

/* What went wrong in the database since the last time this was asked; false: nothing. */
bool apistore_objects_trouble(struct apistore_objects *s, struct err *err);

#endif
