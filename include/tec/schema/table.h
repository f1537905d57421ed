/* SPDX-License-Identifier: MIT */
/*
 * Objects as a meta.k8s.io/v1 Table, as kubectl get shows them: the columns of a CRD by their
 * JSONPaths, those of the built-in kinds by our own rules, which print what kube-apiserver prints.
 * Pure: now is an argument, the caller puts the result.
 */
#ifndef TEC_SCHEMA_TABLE_H
#define TEC_SCHEMA_TABLE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/schema/kind.h"

enum schema_include { SCHEMA_INCLUDE_METADATA, SCHEMA_INCLUDE_NONE, SCHEMA_INCLUDE_OBJECT };

struct schema_table {
	const struct schema_kind *kind;
	const char *version; /* of meta.k8s.io: "v1" or "v1beta1" */
	enum schema_include include;
	bool no_headers; /* columnDefinitions are left out (rows of a watch after the first) */
	int64_t now_s;
};

/* Without metadata of the list: the caller adds resourceVersion and continue. objects are borrowed;
 * with SCHEMA_INCLUDE_OBJECT the table holds references to them. */
struct json_object *schema_table_new(
	const struct schema_table *t, struct json_object *const *objects, size_t n);
/* metadata of an object alone, as kind PartialObjectMetadata of meta.k8s.io/VERSION. */
struct json_object *schema_partial_metadata(struct json_object *o, const char *version);

/* "5m30s", "3d4h", "2y10d": as kubectl prints an age. Under -1 s: "<invalid>". */
#define SCHEMA_AGE_LEN 32
void schema_age_text(int64_t seconds, char out[SCHEMA_AGE_LEN]);

#endif
