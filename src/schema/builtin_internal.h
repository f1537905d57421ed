/* SPDX-License-Identifier: MIT */
/*
 * Shared by builtin_check.c and the files of its kinds: one look at an object, with the path of what
 * is looked at and the causes that were found. look_*() are in builtin_look.c.
 */
#ifndef TEC_SRC_SCHEMA_BUILTIN_INTERNAL_H
#define TEC_SRC_SCHEMA_BUILTIN_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/schema/cause.h"

#define LOOK_PORT     "must be between 1 and 65535, inclusive"
#define LOOK_NEGATIVE "must be greater than or equal to 0"

#define LOOK_PART                                                                                  \
	"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

/* Where in the object, and where the causes go. */
struct look {
	struct strbuf path;
	struct schema_causes *causes;
};

/* Into a member, and out again to where it was. */
size_t look_go(struct look *l, const char *name);
void look_back(struct look *l, size_t before);
/* A cause about a member of what is looked at. */
void look_at(struct look *l, const char *name, enum schema_problem p, struct json_object *v,
	const char *why);
/* The same with a text as value. */
void look_at_text(struct look *l, const char *name, enum schema_problem p, const char *value,
	const char *why);

bool look_empty(struct json_object *v);
bool look_number(struct json_object *o, const char *name, int64_t *out);
/* These add causes. False where they say so. */
bool look_needs(struct look *l, struct json_object *o, const char *name, const char *why);
/* words: in order, NULL at the end. */
bool look_one_of(struct look *l, struct json_object *o, const char *name, const char *const *words);
void look_not_negative(struct look *l, struct json_object *o, const char *name);
void look_port(struct look *l, struct json_object *o, const char *name);
void look_label(struct look *l, struct json_object *o, const char *name);
void look_label_1035(struct look *l, struct json_object *o, const char *name);
void look_subdomain(struct look *l, struct json_object *o, const char *name);
void look_percent(struct look *l, struct json_object *o, const char *name);
void look_percent_any(struct look *l, struct json_object *o, const char *name); /* above 100% too */
/* Labels with their values; one value, told of the field. */
void look_labels(struct look *l, const char *field, struct json_object *labels);
void look_value(struct look *l, const char *field, const char *value);
/* The name of a label or of a resource: "a", "example.io/a". */
bool look_qualified(const char *s);
/* A LabelSelector; False: it has a cause. */
bool look_selector(struct look *l, struct json_object *o, const char *name);

void look_each(struct look *l, struct json_object *o, const char *name,
	void (*fn)(struct look *l, struct json_object *v));
/* A name that an earlier element of the list has. */
void look_unique(struct look *l, struct json_object *o, const char *list);

/* builtin_container.c: what is not its name, image, resources and mounts. */
void look_container(struct look *l, struct json_object *c, bool init);
void look_id(struct look *l, struct json_object *o, const char *name); /* of a user or a group */
void look_seccomp(struct look *l, struct json_object *o);

/* builtin_pod.c, builtin_net.c: by kind. */
void look_pod_spec(struct look *l, struct json_object *spec);
void look_ingress(struct look *l, struct json_object *o);
void look_netpol(struct look *l, struct json_object *o);
void look_budget(struct look *l, struct json_object *o);
/* builtin_event.c: of core/v1 and of events.k8s.io/v1; of the latter when it is made and changed. */
void look_event(struct look *l, struct json_object *o);
void look_new_event(struct look *l, struct json_object *o);
void look_event_made(struct look *l, struct json_object *o);
void look_event_changed(struct look *l, struct json_object *old, struct json_object *o);

#endif
