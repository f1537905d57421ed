/* SPDX-License-Identifier: MIT */
/*
 * struct schema_crd: a CustomResourceDefinition (apiextensions.k8s.io/v1), read and compiled. It
 * keeps its own copy of what it needs; what it hands out is borrowed and lives as long as it does.
 *
 * Refused, with the words and field paths of kube-apiserver where it has them: what is not
 * structural, conversion webhooks, rules outside our part of CEL (the message names the rule).
 */
#ifndef TEC_SCHEMA_CRD_H
#define TEC_SCHEMA_CRD_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/schema/cause.h"
#include "tec/schema/kind.h"
#include "tec/schema/structural.h"

struct schema_crd;

struct schema_column {
	const char *name, *type, *format, *description, *path; /* format, description: "" without */
	int priority;
};

struct schema_version {
	struct schema_kind kind; /* kind.crd points here */
	const struct schema_crd *crd;
	bool served, storage, deprecated;
	const char *deprecation;             /* the Warning header of every answer; NULL: none */
	struct schema_node *schema;          /* owned by the crd */
	struct json_object *openapi;         /* openAPIV3Schema as given; owned by the crd */
	const struct schema_column *columns; /* without additionalPrinterColumns: Age */
	size_t n_columns;
	/* The subresource scale: ".spec.replicas" and the like; NULL without one, or without a selector. */
	const char *scale_spec, *scale_status, *scale_selector;
};

/* Fills in what kube-apiserver fills in (names.singular, names.listKind, conversion,
 * status.storedVersions), in place. What is not an object stays as it is. */
void schema_crd_default(struct json_object *o);
/* o, after schema_crd_default(), is only read. NULL: causes say why. The caller owns it. */
struct schema_crd *schema_crd_new(struct json_object *o, struct schema_causes *causes) MUST_CHECK;
void schema_crd_free(struct schema_crd *c); /* NULL is fine */
/* What an update may not change: group, scope, names. */
void schema_crd_immutable(
	struct json_object *old, struct json_object *now, struct schema_causes *causes);

size_t schema_crd_versions(const struct schema_crd *c);
const struct schema_version *schema_crd_at(const struct schema_crd *c, size_t i);
const struct schema_version *schema_crd_version(
	const struct schema_crd *c, const char *name); /* NULL: none */
const struct schema_version *schema_crd_storage(const struct schema_crd *c);
/* Objects with a resourceVersion up to this were stored when the definition was another; 0: none. */
uint64_t schema_crd_since(const struct schema_crd *c);
/* Of those, the ones that were looked at and need no change, by their resourceVersion. At most
 * SCHEMA_CRD_FITTING are remembered, with c. */
#define SCHEMA_CRD_FITTING 65536
void schema_crd_note_fits(const struct schema_crd *c, uint64_t rv);
bool schema_crd_fits(const struct schema_crd *c, uint64_t rv);
const char *schema_crd_name(const struct schema_crd *c); /* "machines.example.org" */
const char *schema_crd_group(const struct schema_crd *c);

#endif
