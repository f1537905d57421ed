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
/* A cause about what is looked at itself. value: NULL, or a text. */
void look_here(struct look *l, enum schema_problem p, const char *value, const char *why);

bool look_empty(struct json_object *v);
bool look_number(struct json_object *o, const char *name, int64_t *out);
/* These add causes. False where they say so. */
bool look_needs(struct look *l, struct json_object *o, const char *name, const char *why);
/* words: in order, NULL at the end. */
bool look_one_of(struct look *l, struct json_object *o, const char *name, const char *const *words);
void look_not_negative(struct look *l, struct json_object *o, const char *name);
void look_port(struct look *l, struct json_object *o, const char *name);
void look_label(struct look *l, struct json_object *o, const char *name);
void look_subdomain(struct look *l, struct json_object *o, const char *name);
void look_subdomain_at(struct look *l, const char *field, const char *value);
/* One of them also when it is missing. */
void look_word(struct look *l, struct json_object *o, const char *name, const char *const *words);
/* The name of a label: the causes of one that is none. */
void look_name(struct look *l, const char *field, const char *value);
/* Of a path of the API: no "/", no ".". */
void look_segment(struct look *l, const char *field, const char *value);
/* Labels with their values; one value, told of the field. */
void look_labels(struct look *l, const char *field, struct json_object *labels);
void look_value(struct look *l, const char *field, const char *value);
/* Letters, digits and "-_." between them, as in names and values of labels. */
bool look_part(const char *s);
/* The name of a label or of a resource: "a", "example.io/a". */
bool look_qualified(const char *s);
/* A LabelSelector; False: it has a cause. */
bool look_selector(struct look *l, struct json_object *o, const char *name);

void look_each(struct look *l, struct json_object *o, const char *name,
	void (*fn)(struct look *l, struct json_object *v));
/* A name that an earlier element of the list has. */
void look_unique(struct look *l, struct json_object *o, const char *list);

/* builtin_container.c: its ports and environment; then its rights, hooks and probes. */
void look_container(struct look *l, struct json_object *c);
void look_container_life(struct look *l, struct json_object *c, bool init);
void look_port_name(struct look *l, struct json_object *o, const char *name);
/* paths: what it may name, in order, NULL at the end. */
void look_field_ref(struct look *l, struct json_object *r, const char *const *paths);
void look_resource_ref(struct look *l, struct json_object *r, bool volume);
void look_id(struct look *l, struct json_object *o, const char *name); /* of a user or a group */
void look_seccomp(struct look *l, struct json_object *o);
void look_apparmor(struct look *l, struct json_object *o);

/* builtin_volume.c: one volume; a path that stays inside of a folder. */
void look_volume(struct look *l, struct json_object *v);
void look_inside(struct look *l, struct json_object *o, const char *name);
/* What a container mounts; its list of mounts and of devices. */
void look_mounts(struct look *l, struct json_object *spec, struct json_object *c);

/* builtin_place.c: of a Pod's spec, and what comes after its names. */
void look_place(struct look *l, struct json_object *spec);
void look_place_last(struct look *l, struct json_object *spec);

/* builtin_pod.c */
void look_pod_spec(struct look *l, struct json_object *spec);
/* builtin_policy.c: how Pods, their containers and Jobs are run. */
void look_pod_policy(struct look *l, struct json_object *spec);
void look_container_policy(struct look *l, struct json_object *spec, struct json_object *c);
void look_job_policy(struct look *l, struct json_object *spec);
/* builtin_data.c: data of Secrets and ConfigMaps. */
void look_secret(struct look *l, struct json_object *o);
void look_configmap(struct look *l, struct json_object *o);
/* builtin_event.c: of core/v1 and of events.k8s.io/v1; of the latter when it is made and changed. */
void look_event(struct look *l, struct json_object *o);
void look_new_event(struct look *l, struct json_object *o);
void look_event_made(struct look *l, struct json_object *o);
void look_event_changed(struct look *l, struct json_object *old, struct json_object *o);

#endif
