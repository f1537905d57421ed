/* SPDX-License-Identifier: MIT */
/*
 * Events of both API groups are one set of objects. They are stored in the core/v1 form and
 * converted from and to events.k8s.io/v1 for requests to that group. Only the names of members
 * differ.
 */
#ifndef TEC_APISTORE_EVENTS_H
#define TEC_APISTORE_EVENTS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#define APISTORE_EVENTS_GROUP "events.k8s.io"

/* Is this the group whose members have other names than the stored ones? */
bool apistore_events_renames(const char *group);
/* These convert in place; o NULL is fine. */
void apistore_events_to_core(struct json_object *o);
void apistore_events_from_core(struct json_object *o);

#endif
