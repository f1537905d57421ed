/* SPDX-License-Identifier: MIT */
/*
 * Which kinds the API has: those of Kubernetes itself that this system uses (schema/builtin), and
 * those that the caller adds from crd/. They are the same as long as the program runs.
 */
#ifndef TEC_APISTORE_KINDS_H
#define TEC_APISTORE_KINDS_H

#include "tec/apistore/objects.h"
#include "tec/schema/discovery.h"

struct apistore_kinds;

struct apistore_kinds *apistore_kinds_new(void);
void apistore_kinds_free(struct apistore_kinds *k); /* after the objects; NULL is fine */
/* A CustomResourceDefinition as YAML, before apistore_kinds_use(). It is part of the program: one
 * that cannot be served aborts. */
void apistore_kinds_add(struct apistore_kinds *k, const char *definition);
/* Sets out->kinds, borrowed. */
void apistore_kinds_use(const struct apistore_kinds *k, struct apistore_schema *out);

/* Borrowed; NULL: an unknown kind. */
const struct schema_kind *apistore_kinds_find(
	const struct apistore_kinds *k, const char *group, const char *version, const char *plural);
/* All that were added, for discovery and OpenAPI. Borrowed. */
struct schema_served apistore_kinds_served(const struct apistore_kinds *k);

#endif
