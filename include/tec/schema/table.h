/* SPDX-License-Identifier: MIT */
/*
 * An object as a meta.k8s.io/v1 Table, as kubectl get shows it: the columns of a CRD by their
 * JSONPaths, those of built-in kinds by our own rules, which print what kube-apiserver prints.
 * Pure: now is an argument, the caller releases the result.
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
	const char *version; /* version of meta.k8s.io: "v1" or "v1beta1" */
	enum schema_include include;
	bool no_headers; /* omit columnDefinitions (in a watch after the first row) */
	int64_t now_s;
};

/* Make the table of one object. o is borrowed, NULL: no rows; with SCHEMA_INCLUDE_OBJECT the table
 * holds a reference to it. The metadata of a list is missing: the caller adds resourceVersion and
 * continue. */
struct json_object *schema_table_new(const struct schema_table *t, struct json_object *o);
/* Make a PartialObjectMetadata of meta.k8s.io/VERSION: only the object's metadata. */
struct json_object *schema_partial_metadata(struct json_object *o, const char *version);

/* Format an age as kubectl prints it: "5m30s", "3d4h", "2y10d". Below -1 s: "<invalid>". */
#define SCHEMA_AGE_LEN 32
void schema_age_text(int64_t seconds, char out[SCHEMA_AGE_LEN]);

#endif
