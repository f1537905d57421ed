/* SPDX-License-Identifier: MIT */
/*
 * "Is what we would apply already there?": every member of `want` is in `have` with an equal value.
 * Lists are equal element by element, but lists of objects that carry a merge key of server-side
 * apply (name, containerPort, port+protocol, mountPath, type, uid, key) are matched by it, so that
 * entries of others and server defaults do not count. Quantities and ints-or-strings compare as
 * text after normalisation of JSON numbers. kobj_render_hash() covers what subset cannot see
 * (things we no longer render): an annotation on what we apply.
 */
#ifndef TEC_KOBJ_SUBSET_H
#define TEC_KOBJ_SUBSET_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/bytes.h"

#define KOBJ_RENDER_HASH_ANNOTATION "trusted-execution-clusters.io/render-hash"

bool kobj_subset(struct json_object *want, struct json_object *have);
/* Sets the annotation on `o` to the first 16 hex digits of SHA-256 of its canonical text without
 * that annotation. */
void kobj_render_hash_set(struct json_object *o);

#endif
