/* SPDX-License-Identifier: MIT */
/*
 * The objects of one kind in one namespace, compact (kobj/meta.h), by name and by up to
 * K8S_CACHE_INDEXES further keys. Filled by k8s/watch. A reader gets borrowed pointers, valid until
 * it returns to the loop; k-ref what must live longer.
 *
 * A cache is made for one type: it extracts what is put into it itself, so that every reader may
 * cast an entry to the struct of that type. The one other way in is an entry of the same size for
 * an object that is there and cannot be read (kobj->unreadable): it is found by name, is in no
 * index, and says nothing about the object; it is not the same as one that is absent.
 */
#ifndef TEC_K8S_CACHE_H
#define TEC_K8S_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/kobj/meta.h"

#define K8S_CACHE_INDEXES 3

/* Object JSON to compact form. NULL with err set: refuse it; NULL without: not interesting, keep it
 * out of the cache. */
typedef struct kobj *(*k8s_extract_fn)(struct json_object *o, struct err *err);
/* The value of index i for this object, NULL: not indexed. Borrowed from the object. */
typedef const char *(*k8s_cache_index_fn)(const struct kobj *o, unsigned i);
/* was NULL: added; now NULL: deleted. Called after the cache changed; both live for the call. Not
 * called when nothing but resourceVersion differs? It is: rv is part of the object. */
typedef void (*k8s_cache_change_fn)(void *arg, const struct kobj *was, const struct kobj *now);

struct k8s_cache_type {
	k8s_extract_fn extract;
	size_t size;              /* of the struct that extract makes; checked with every object */
	k8s_cache_index_fn index; /* NULL: n_indexes is 0 */
	unsigned n_indexes;
};

struct k8s_cache;
struct k8s_cache *k8s_cache_new(const struct k8s_cache_type *type); /* static */
void k8s_cache_free(struct k8s_cache *c);
/* Several may listen; called in the order of registration; lives as long as the cache. */
void k8s_cache_listen(struct k8s_cache *c, k8s_cache_change_fn fn, void *arg);
/* In a listener's call for an object that is gone: somebody saw that it was deleted (an event, or the
 * answer of a delete). False: a list does not show it any more, it is refused, or the cache was
 * cleared. */
bool k8s_cache_saw_delete(const struct k8s_cache *c);

const struct kobj *k8s_cache_find(const struct k8s_cache *c, const char *name);
/* The same, and only this version of this object; NULL as well when it cannot be read. */
const struct kobj *k8s_cache_find_version(
	const struct k8s_cache *c, const char *name, const char *uid, const char *rv);
/* All objects whose index i equals value, oldest first (creationTimestamp, then name). */
const struct kobj *k8s_cache_first(const struct k8s_cache *c, unsigned i, const char *value);
const struct kobj *k8s_cache_next(const struct k8s_cache *c, unsigned i, const struct kobj *o);
size_t k8s_cache_count(const struct k8s_cache *c);
size_t k8s_cache_unreadable(const struct k8s_cache *c); /* how many of them cannot be read */
/* Every object, in no order; fn must not change the cache. */
void k8s_cache_each(
	const struct k8s_cache *c, void (*fn)(void *arg, const struct kobj *o), void *arg);
/* Those of slice i of n, a power of two. An object stays in its slice. */
void k8s_cache_each_in(const struct k8s_cache *c, unsigned i, unsigned n,
	void (*fn)(void *arg, const struct kobj *o), void *arg);
bool k8s_cache_filled(const struct k8s_cache *c); /* one complete list has been taken in */

/*
 * Writers. put: a controller that has just seen an answer newer than the cache; an answer that an
 * event overtook (an older resourceVersion, or an object that was removed meanwhile) changes
 * nothing, nor does one that extract refuses: the watch reports it. put_event: k8s/watch only, the
 * state in the API; what extract does not want leaves the cache. -1 with err set: refused.
 * Extraction may wipe o's key material: o is good for nothing but metadata afterwards.
 */
void k8s_cache_put(struct k8s_cache *c, struct json_object *o);
int k8s_cache_put_event(struct k8s_cache *c, struct json_object *o, struct err *err) MUST_CHECK;
/*
 * k8s/watch only: this version of an object cannot be read. The version before it stays when it
 * says the same still: an immutable object with this uid, not deleted since. -1 with err set:
 * refused.
 */
int k8s_cache_put_unreadable(struct k8s_cache *c, const char *name, const char *uid, const char *rv,
	bool deleting, struct err *err) MUST_CHECK;
void k8s_cache_remove(struct k8s_cache *c, const char *name, const char *uid); /* uid NULL: any */
/* A relist: begin, put everything, end removes what was not put. abandon forgets the marks. */
void k8s_cache_relist_begin(struct k8s_cache *c);
void k8s_cache_relist_end(struct k8s_cache *c);
void k8s_cache_relist_abandon(struct k8s_cache *c);
/* Drops every object (listeners are called) and forgets that the cache was filled. */
void k8s_cache_clear(struct k8s_cache *c);

#endif
