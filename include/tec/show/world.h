/* SPDX-License-Identifier: MIT */
/*
 * The objects of one namespace, for programs that show them to people: as JSON, with functions
 * that find related objects. A list that could not be read carries the reason; what depends on it
 * is shown as unknown, never as absent.
 */
#ifndef TEC_SHOW_WORLD_H
#define TEC_SHOW_WORLD_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/model/pcrs.h"

enum show_kind {
	SHOW_CLUSTER,
	SHOW_MACHINE,
	SHOW_KEY,
	SHOW_IMAGE,
	SHOW_CONFIGMAP, /* only those that the reports need */
	SHOW_EVENT,
	SHOW_N_KINDS
};

struct show_list {
	struct json_object **v; /* owned; oldest first, then by name */
	size_t n;
	char *problem; /* owned; why it could not be read; NULL: it was read */
};

struct show_world {
	const char *ns; /* borrowed */
	int64_t now_s;
	struct show_list list[SHOW_N_KINDS];
};
void show_world_fini(struct show_world *w);
#define cleanup_show_world __attribute__((cleanup(show_world_fini)))

/* Takes ownership of the object and appends it to the list; drops it if it has no name. */
void show_world_take(struct show_world *w, enum show_kind kind, struct json_object *take_o);
void show_world_sort(struct show_world *w);
void show_world_problem(struct show_world *w, enum show_kind kind, const char *why);

/* Finds an object by name. Borrowed; NULL: not found. */
struct json_object *show_find(const struct show_world *w, enum show_kind kind, const char *name);
/* The TrustedExecutionCluster that is served: the oldest one that is not being deleted. */
struct json_object *show_cluster(const struct show_world *w);
/* Finds a Machine by name or id, as given on a command line. ERR_NOT_FOUND: the text names the
 * next step; ERR_CONFLICT: two Machines have that id. */
struct json_object *show_machine_find(
	const struct show_world *w, const char *text, struct err *err) MUST_CHECK;
/* The AttestationKey bound to the Machine; NULL: none. */
struct json_object *show_machine_key(const struct show_world *w, struct json_object *machine);
/* Iterates over keys with the Machine's id that are not bound to it; *at starts at 0. NULL after
 * the last. */
struct json_object *show_machine_other_key(
	const struct show_world *w, struct json_object *machine, size_t *at);

const char *show_str(struct json_object *o, const char *path); /* "" if it has none */
const char *show_name(struct json_object *o);                  /* the same */
bool show_deleting(struct json_object *o);
/* Age in seconds; -1: unknown. */
int64_t show_age_of(const struct show_world *w, struct json_object *o);
/* Finds a condition in status.conditions by type; NULL: not found. */
struct json_object *show_condition(struct json_object *o, const char *type);
bool show_is_true(struct json_object *o, const char *type);
/* Counts the objects of a list whose condition of this type is True. */
size_t show_count_true(const struct show_world *w, enum show_kind kind, const char *type);
/* The text of a file in a ConfigMap; NULL: no such map, or no text. Borrowed from w. */
const char *show_file(
	const struct show_world *w, const char *configmap, const char *file, size_t *len);
/* The PCR values of all images, from their ConfigMap; the caller frees. NULL: absent. */
struct model_pcrs *show_pcrs(const struct show_world *w);

#endif
