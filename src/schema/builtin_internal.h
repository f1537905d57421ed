/* SPDX-License-Identifier: MIT */
/*
 * Shared by builtin_check.c and the files for single kinds: the check of one object, with the path
 * of the member being checked and the causes found so far.
 */
#ifndef TEC_SRC_SCHEMA_BUILTIN_INTERNAL_H
#define TEC_SRC_SCHEMA_BUILTIN_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/str.h"
#include "tec/schema/cause.h"
#include "tec/schema/kind.h"

/* The state of a check: the current path, and where causes go. */
struct look {
	struct strbuf path;
	struct schema_causes *causes;
};

/* Add a cause about a member of the current object. */
void look_at(struct look *l, const char *name, enum schema_problem p, struct json_object *v,
	const char *why);
bool look_empty(struct json_object *v);
/* Require a non-empty member; false: missing, and a cause was added. */
bool look_needs(struct look *l, struct json_object *o, const char *name);

/* builtin_data.c: data of Secrets and ConfigMaps. */
void look_secret(struct look *l, struct json_object *o);
void look_configmap(struct look *l, struct json_object *o);
/* builtin.c: fields that an update must not change. */
void look_changed(struct look *l, const struct schema_kind *k, struct json_object *old,
	struct json_object *now);
/* builtin_event.c: Events of core/v1 and of events.k8s.io/v1; the latter on create and on
 * update. */
void look_event(struct look *l, struct json_object *o);
void look_new_event(struct look *l, struct json_object *o);
void look_event_made(struct look *l, struct json_object *o);
void look_event_changed(struct look *l, struct json_object *old, struct json_object *o);

#endif
