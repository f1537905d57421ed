/* SPDX-License-Identifier: MIT */
/*
 * Shared by builtin_check.c and the files of its kinds: one look at an object, with the path of what
 * is looked at and the causes that were found.
 */
#ifndef TEC_SRC_SCHEMA_BUILTIN_INTERNAL_H
#define TEC_SRC_SCHEMA_BUILTIN_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/str.h"
#include "tec/schema/cause.h"
#include "tec/schema/kind.h"

/* Where in the object, and where the causes go. */
struct look {
	struct strbuf path;
	struct schema_causes *causes;
};

/* A cause about a member of what is looked at. */
void look_at(struct look *l, const char *name, enum schema_problem p, struct json_object *v,
	const char *why);
bool look_empty(struct json_object *v);
/* False: it has a cause. */
bool look_needs(struct look *l, struct json_object *o, const char *name);

/* builtin_data.c: data of Secrets and ConfigMaps. */
void look_secret(struct look *l, struct json_object *o);
void look_configmap(struct look *l, struct json_object *o);
/* builtin.c: an update. */
void look_changed(struct look *l, const struct schema_kind *k, struct json_object *old,
	struct json_object *now);
/* builtin_event.c: of core/v1 and of events.k8s.io/v1; of the latter when it is made and changed. */
void look_event(struct look *l, struct json_object *o);
void look_new_event(struct look *l, struct json_object *o);
void look_event_made(struct look *l, struct json_object *o);
void look_event_changed(struct look *l, struct json_object *old, struct json_object *o);

#endif
