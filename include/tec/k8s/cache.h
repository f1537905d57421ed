/* SPDX-License-Identifier: MIT */
/*
 * The objects of one kind in one namespace, compact (kobj/meta.h), by name and by up to
 * K8S_CACHE_INDEXES further keys. Filled by k8s/watch. A reader gets borrowed pointers, valid until
 * it returns to the loop; k-ref what must live longer.
 */
#ifndef TEC_K8S_CACHE_H
#define TEC_K8S_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/kobj/meta.h"

#define K8S_CACHE_INDEXES 3

struct k8s_cache;
/* The value of index i for this object, NULL: not indexed. Borrowed from the object. */
typedef const char *(*k8s_cache_index_fn)(const struct kobj *o, unsigned i);
/* was NULL: added; now NULL: deleted. Called after the cache changed; both live for the call. Not
 * called when nothing but resourceVersion differs? It is: rv is part of the object. */
typedef void (*k8s_cache_change_fn)(void *arg, const struct kobj *was, const struct kobj *now);

struct k8s_cache *k8s_cache_new(unsigned n_indexes, k8s_cache_index_fn index);
void k8s_cache_free(struct k8s_cache *c);
/* Several may listen; called in the order of registration; lives as long as the cache. */
void k8s_cache_listen(struct k8s_cache *c, k8s_cache_change_fn fn, void *arg);

const struct kobj *k8s_cache_find(const struct k8s_cache *c, const char *name);
/* All objects whose index i equals value, oldest first (creationTimestamp, then name). */
const struct kobj *k8s_cache_first(const struct k8s_cache *c, unsigned i, const char *value);
const struct kobj *k8s_cache_next(const struct k8s_cache *c, unsigned i, const struct kobj *o);
size_t k8s_cache_count(const struct k8s_cache *c);
/* Every object, in no order; fn must not change the cache. */
void k8s_cache_each(
	const struct k8s_cache *c, void (*fn)(void *arg, const struct kobj *o), void *arg);
bool k8s_cache_filled(const struct k8s_cache *c); /* one complete list has been taken in */

/*
 * Writers take ownership of o. put: a controller that has just seen an answer newer than the cache;
 * an answer that an event overtook (an older resourceVersion, or an object that was removed
 * meanwhile) changes nothing. put_event: k8s/watch only, the word of the API.
 */
void k8s_cache_put(struct k8s_cache *c, struct kobj *take_o);
void k8s_cache_put_event(struct k8s_cache *c, struct kobj *take_o);
void k8s_cache_remove(struct k8s_cache *c, const char *name, const char *uid); /* uid NULL: any */
/* A relist: begin, put everything, end removes what was not put. abandon forgets the marks. */
void k8s_cache_relist_begin(struct k8s_cache *c);
void k8s_cache_relist_end(struct k8s_cache *c);
void k8s_cache_relist_abandon(struct k8s_cache *c);
/* Drops every object (listeners are told) and forgets that the cache was filled. */
void k8s_cache_clear(struct k8s_cache *c);

#endif
