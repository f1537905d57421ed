/* SPDX-License-Identifier: MIT */
/*
 * An object as a meta.k8s.io/v1 Table, as kubectl get shows it: the columns of a CRD by their
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

/* o is borrowed, NULL: no rows; with SCHEMA_INCLUDE_OBJECT the table holds a reference to it. Without
 * metadata of a list: the caller adds resourceVersion and continue. */
struct json_object *schema_table_new(const struct schema_table *t, struct json_object *o);
/* metadata of an object alone, as kind PartialObjectMetadata of meta.k8s.io/VERSION. */
struct json_object *schema_partial_metadata(struct json_object *o, const char *version);

/* "5m30s", "3d4h", "2y10d": as kubectl prints an age. Under -1 s: "<invalid>". */
#define SCHEMA_AGE_LEN 32
void schema_age_text(int64_t seconds, char out[SCHEMA_AGE_LEN]);

#endif
