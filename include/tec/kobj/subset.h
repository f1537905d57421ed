/* SPDX-License-Identifier: MIT */
/*
 * Decide whether an apply would change anything: every member of `want` must be in `have` with an
 * equal value. Lists are compared element by element, except that objects with a merge key of
 * server-side apply (name, containerPort, port+protocol, mountPath, type, uid, key) are matched by
 * that key, so that entries of other managers and server defaults are ignored. Quantities and
 * int-or-string values compare as text after JSON numbers are normalised. kobj_render_hash_set()
 * covers what this comparison cannot see, members that are no longer rendered, by an annotation on
 * the applied object.
 */
#ifndef TEC_KOBJ_SUBSET_H
#define TEC_KOBJ_SUBSET_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/bytes.h"

#define KOBJ_RENDER_HASH_ANNOTATION "trusted-execution-clusters.io/render-hash"

bool kobj_subset(struct json_object *want, struct json_object *have);
/* Set the annotation of `o` to the first 16 hex digits of the SHA-256 of its canonical text without
 * that annotation. */
void kobj_render_hash_set(struct json_object *o);

#endif
