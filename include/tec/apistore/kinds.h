/* SPDX-License-Identifier: MIT */
/*
 * Which kinds the API has: those of Kubernetes itself that this system uses (schema/builtin), and one
 * for each served version of a CustomResourceDefinition in the store.
 */
#ifndef TEC_APISTORE_KINDS_H
#define TEC_APISTORE_KINDS_H

#include "tec/apistore/objects.h"
#include "tec/schema/discovery.h"

struct apistore_kinds;

struct apistore_kinds *apistore_kinds_new(void);
void apistore_kinds_free(struct apistore_kinds *k); /* before the objects; NULL is fine */
/* Reads the definitions in the store, now and whenever they change. Watches of what is not served any
 * more end. */
void apistore_kinds_follow(struct apistore_kinds *k, struct loop *l, struct apistore_objects *s);
/* For struct apistore_schema: arg is the struct apistore_kinds. */
const struct apistore_kind *apistore_kinds_of(void *arg, const char *group, const char *resource);

/* Borrowed until the next turn of the loop; NULL: there is no such kind. */
const struct schema_kind *apistore_kinds_find(
	const struct apistore_kinds *k, const char *group, const char *version, const char *plural);
/* All of them, for discovery and OpenAPI. Borrowed as above. */
struct schema_served apistore_kinds_served(const struct apistore_kinds *k);
/* Another number when they are others. */
uint64_t apistore_kinds_state(const struct apistore_kinds *k);

#endif
