/* SPDX-License-Identifier: MIT */
/*
 * What the API holds of one namespace, for programs that show it to people: the objects as JSON,
 * with what belongs together found. It shows what the API says; a list that could not be read says
 * why, and what depends on it is shown as unknown, never as absent.
 */
#ifndef TEC_SHOW_WORLD_H
#define TEC_SHOW_WORLD_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"

enum show_kind {
	SHOW_CLUSTER,
	SHOW_MACHINE,
	SHOW_KEY,
	SHOW_IMAGE,
	SHOW_CONFIGMAP, /* those that are needed */
	SHOW_EVENT,
	SHOW_N_KINDS
};

struct show_list {
	struct json_object **v; /* owned; oldest first, then by name */
	size_t n;
	bool read;     /* it was asked for */
	char *problem; /* owned; why it cannot be read; NULL: it was */
};

struct show_world {
	const char *ns; /* borrowed */
	int64_t now_s;
	struct show_list list[SHOW_N_KINDS];
};
void show_world_fini(struct show_world *w);
#define cleanup_show_world __attribute__((cleanup(show_world_fini)))

/* Takes the object into the list. What is no object with a name is dropped. */
void show_world_take(struct show_world *w, enum show_kind kind, struct json_object *take_o);
void show_world_sort(struct show_world *w);
void show_world_problem(struct show_world *w, enum show_kind kind, const char *why);

/* Borrowed; NULL: there is none. */
struct json_object *show_find(const struct show_world *w, enum show_kind kind, const char *name);
/* The TrustedExecutionCluster that is served: the oldest that is not being deleted. */
struct json_object *show_cluster(const struct show_world *w);
/* A Machine by its name or its id, as `MACHINE` on a command line. ERR_NOT_FOUND says what to do;
 * ERR_CONFLICT: two have that id. */
struct json_object *show_machine_find(
	const struct show_world *w, const char *text, struct err *err) MUST_CHECK;
/* The AttestationKey that holds the Machine; NULL: none. */
struct json_object *show_machine_key(const struct show_world *w, struct json_object *machine);
/* Keys with the Machine's id that do not hold it; *at starts as 0. NULL after the last. */
struct json_object *show_machine_other_key(
	const struct show_world *w, struct json_object *machine, size_t *at);

const char *show_name(struct json_object *o); /* "" when there is none */
bool show_deleting(struct json_object *o);
/* Since it was made; -1: unknown. */
int64_t show_age_of(const struct show_world *w, struct json_object *o);
/* A member of status.conditions; NULL: there is none. */
struct json_object *show_condition(struct json_object *o, const char *type);
bool show_is_true(struct json_object *o, const char *type);

#endif
