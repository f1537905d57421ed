/* SPDX-License-Identifier: MIT */
/*
 * The objects of one kind in one namespace, in compact form (kobj/meta.h), by name and by up to
 * K8S_CACHE_INDEXES further keys. Filled by k8s/watch. Readers get borrowed pointers, valid until
 * they return to the loop; kobj_ref() what must live longer.
 *
 * A cache has one type: it extracts every object put into it, so that every reader may cast an
 * entry to the struct of that type. The only other kind of entry, of the same size, stands for an
 * object that exists but cannot be read (kobj->unreadable): it is found by name, is in no index,
 * and says nothing about the content. It is not the same as an absent object.
 */
#ifndef TEC_K8S_CACHE_H
#define TEC_K8S_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/kobj/meta.h"

#define K8S_CACHE_INDEXES 3

/* Convert object JSON to compact form. NULL with err set: refuse the object. NULL without err: the
 * object is of no interest, keep it out of the cache. */
typedef struct kobj *(*k8s_extract_fn)(struct json_object *o, struct err *err);
/* Return the value of index i for this object, NULL: not indexed. Borrowed from the object. */
typedef const char *(*k8s_cache_index_fn)(const struct kobj *o, unsigned i);
/* was NULL: added; now NULL: deleted. Called after the cache changed; both live for the call. Also
 * called when only the resourceVersion changed, because it is part of the object. */
typedef void (*k8s_cache_change_fn)(void *arg, const struct kobj *was, const struct kobj *now);

struct k8s_cache_type {
	k8s_extract_fn extract;
	size_t size;              /* of the struct that extract returns; checked for every object */
	k8s_cache_index_fn index; /* NULL: n_indexes is 0 */
	unsigned n_indexes;
};

struct k8s_cache;
struct k8s_cache *k8s_cache_new(const struct k8s_cache_type *type); /* static */
void k8s_cache_free(struct k8s_cache *c);
/* Add a listener. Listeners are called in the order of registration and stay until the cache is
 * freed. */
void k8s_cache_listen(struct k8s_cache *c, k8s_cache_change_fn fn, void *arg);
/* While a listener is called for a removed object: tell whether its deletion was reported (by an
 * event or by the answer to a delete). False: a list no longer contains it, it was refused, or the
 * cache was cleared. */
bool k8s_cache_saw_delete(const struct k8s_cache *c);

const struct kobj *k8s_cache_find(const struct k8s_cache *c, const char *name);
/* Iterate over the objects whose index i equals value, oldest first (creationTimestamp, then
 * name). */
const struct kobj *k8s_cache_first(const struct k8s_cache *c, unsigned i, const char *value);
const struct kobj *k8s_cache_next(const struct k8s_cache *c, unsigned i, const struct kobj *o);
size_t k8s_cache_count(const struct k8s_cache *c);
size_t k8s_cache_unreadable(const struct k8s_cache *c); /* number of unreadable objects */
/* Every object, in no order; fn must not change the cache. */
void k8s_cache_each(
	const struct k8s_cache *c, void (*fn)(void *arg, const struct kobj *o), void *arg);
/* Iterate over slice i of n, a power of two. An object stays in its slice. */
void k8s_cache_each_in(const struct k8s_cache *c, unsigned i, unsigned n,
	void (*fn)(void *arg, const struct kobj *o), void *arg);
bool k8s_cache_filled(const struct k8s_cache *c); /* one complete list was received */

/*
 * Writers. put: for a controller that received an answer newer than the cache. An answer that was
 * overtaken by an event (an older resourceVersion, or an object removed meanwhile) changes nothing,
 * nor does one that extract refuses: the watch reports that. put_event: for k8s/watch only, the
 * state in the API; an object that extract does not want leaves the cache. -1 with err set:
 * refused. Extraction may wipe the key material of o: afterwards only its metadata is usable.
 */
void k8s_cache_put(struct k8s_cache *c, struct json_object *o);
int k8s_cache_put_event(struct k8s_cache *c, struct json_object *o, struct err *err) MUST_CHECK;
/*
 * For k8s/watch only: record that this version of an object cannot be read. The previous version
 * stays while it is still valid: an immutable object with this uid that is not being deleted. -1
 * with err set: refused.
 */
int k8s_cache_put_unreadable(struct k8s_cache *c, const char *name, const char *uid, const char *rv,
	bool deleting, struct err *err) MUST_CHECK;
void k8s_cache_remove(struct k8s_cache *c, const char *name, const char *uid); /* uid NULL: any */
/* A relist: begin, put everything, then end, which removes the objects that were not put. abandon
 * keeps all objects and ends the relist. */
void k8s_cache_relist_begin(struct k8s_cache *c);
void k8s_cache_relist_end(struct k8s_cache *c);
void k8s_cache_relist_abandon(struct k8s_cache *c);
/* Drops every object (listeners are called) and forgets that the cache was filled. */
void k8s_cache_clear(struct k8s_cache *c);

#endif
