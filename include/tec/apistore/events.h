/* SPDX-License-Identifier: MIT */
/*
 * Events are in two groups and are one set: stored as core/v1 has them, shown and written as
 * events.k8s.io/v1 where a request is for that. They differ in the names of members only.
 */
#ifndef TEC_APISTORE_EVENTS_H
#define TEC_APISTORE_EVENTS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#define APISTORE_EVENTS_GROUP "events.k8s.io"

/* The group's own objects have other names than those that are stored. */
bool apistore_events_renames(const char *group);
/* In place; o NULL is fine. */
void apistore_events_to_core(struct json_object *o);
void apistore_events_from_core(struct json_object *o);

#endif
