/* SPDX-License-Identifier: MIT */
/*
 * The kinds that the API serves: the Kubernetes kinds that this system needs (schema/builtin), and
 * those that the caller adds from crd/. They do not change while the program runs.
 */
#ifndef TEC_APIREQ_KINDS_H
#define TEC_APIREQ_KINDS_H

#include "tec/store/objects.h"
#include "tec/schema/discovery.h"

struct apireq_kinds;

struct apireq_kinds *apireq_kinds_new(void);
void apireq_kinds_free(struct apireq_kinds *k); /* after the objects; NULL is fine */
/* Add a CustomResourceDefinition, given as YAML, before apireq_kinds_use(). Definitions are part
 * of the program, so one that cannot be served aborts it. */
void apireq_kinds_add(struct apireq_kinds *k, const char *definition);
/* Set out->kinds, which borrows from k. */
void apireq_kinds_use(const struct apireq_kinds *k, struct store_schema *out);

/* All kinds added from crd/, for discovery and OpenAPI. Borrowed. */
struct schema_served apireq_kinds_served(const struct apireq_kinds *k);

#endif
