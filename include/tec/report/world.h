/* SPDX-License-Identifier: MIT */
/*
 * The objects of one namespace, for programs that show them to people: as JSON, with functions
 * that find related objects. A list that could not be read carries the reason; what depends on it
 * is shown as unknown, never as absent.
 */
#ifndef TEC_REPORT_WORLD_H
#define TEC_REPORT_WORLD_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/model/pcrs.h"

enum report_kind {
	REPORT_CLUSTER,
	REPORT_MACHINE,
	REPORT_KEY,
	REPORT_IMAGE,
	REPORT_CONFIGMAP, /* only those that the reports need */
	REPORT_EVENT,
	REPORT_N_KINDS
};

struct report_list {
	struct json_object **v; /* owned; oldest first, then by name */
	size_t n;
	char *problem; /* owned; why it could not be read; NULL: it was read */
};

struct report_world {
	const char *ns; /* borrowed */
	int64_t now_s;
	struct report_list list[REPORT_N_KINDS];
};
void report_world_fini(struct report_world *w);
#define cleanup_show_world __attribute__((cleanup(report_world_fini)))

/* Takes ownership of the object and appends it to the list; drops it if it has no name. */
void report_world_take(struct report_world *w, enum report_kind kind, struct json_object *take_o);
void report_world_sort(struct report_world *w);
void report_world_problem(struct report_world *w, enum report_kind kind, const char *why);

/* Finds an object by name. Borrowed; NULL: not found. */
struct json_object *report_find(
	const struct report_world *w, enum report_kind kind, const char *name);
/* The TrustedExecutionCluster that is served: the oldest one that is not being deleted. */
struct json_object *report_cluster(const struct report_world *w);
/* Finds a Machine by name or id, as given on a command line. ERR_NOT_FOUND: the text names the
 * next step; ERR_CONFLICT: two Machines have that id. */
struct json_object *report_machine_find(
	const struct report_world *w, const char *text, struct err *err) MUST_CHECK;
/* The AttestationKey bound to the Machine; NULL: none. */
struct json_object *report_machine_key(const struct report_world *w, struct json_object *machine);
/* Iterates over keys with the Machine's id that are not bound to it; *at starts at 0. NULL after
 * the last. */
struct json_object *report_machine_other_key(
	const struct report_world *w, struct json_object *machine, size_t *at);

const char *report_str(struct json_object *o, const char *path); /* "" if it has none */
const char *report_name(struct json_object *o);                  /* the same */
bool report_deleting(struct json_object *o);
/* Age in seconds; -1: unknown. */
int64_t report_age_of(const struct report_world *w, struct json_object *o);
/* Finds a condition in status.conditions by type; NULL: not found. */
struct json_object *report_condition(struct json_object *o, const char *type);
bool report_is_true(struct json_object *o, const char *type);
/* Counts the objects of a list whose condition of this type is True. */
size_t report_count_true(const struct report_world *w, enum report_kind kind, const char *type);
/* The text of a file in a ConfigMap; NULL: no such map, or no text. Borrowed from w. */
const char *report_file(
	const struct report_world *w, const char *configmap, const char *file, size_t *len);
/* The servers in ConfigMap tec-trustees (model/lost.h), an array; the caller releases it. NULL: absent
 * or malformed. */
struct json_object *report_servers(const struct report_world *w);
/* The PCR values of all images, from their ConfigMap; the caller frees. NULL: absent. */
struct model_pcrs *report_pcrs(const struct report_world *w);

#endif
