/* SPDX-License-Identifier: MIT */
/*
 * The kinds that the API serves: the Kubernetes kinds that this system needs (schema/builtin), and
 * those that the caller adds from crd/. They do not change while the program runs.
 */
#ifndef TEC_APISTORE_KINDS_H
#define TEC_APISTORE_KINDS_H

#include "tec/apistore/objects.h"
#include "tec/schema/discovery.h"

struct apistore_kinds;

struct apistore_kinds *apistore_kinds_new(void);
void apistore_kinds_free(struct apistore_kinds *k); /* after the objects; NULL is fine */
/* Add a CustomResourceDefinition, given as YAML, before apistore_kinds_use(). Definitions are part
 * of the program, so one that cannot be served aborts it. */
void apistore_kinds_add(struct apistore_kinds *k, const char *definition);
/* Set out->kinds, which borrows from k. */
void apistore_kinds_use(const struct apistore_kinds *k, struct apistore_schema *out);

/* All kinds added from crd/, for discovery and OpenAPI. Borrowed. */
struct schema_served apistore_kinds_served(const struct apistore_kinds *k);

#endif
