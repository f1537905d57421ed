/* SPDX-License-Identifier: MIT */
/*
 * struct apistore_target: what a request to the Kubernetes API is about, read from its path and
 * query: /api/V[/namespaces/NS]/RESOURCE[/NAME[/SUB]] or /apis/GROUP/V/... Bytes in, values out.
 *
 * Without a namespace it is about all of them (or of a kind that is in none).
 */
#ifndef TEC_APISTORE_TARGET_H
#define TEC_APISTORE_TARGET_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/apistore/form.h"
#include "tec/apistore/selector.h"
#include "tec/base/err.h"

struct apistore_target {
	char *group, *version; /* group "" for core */
	char *ns, *resource;
	char *qualified; /* "secrets", "machines.example.io": names the set of objects, which is "events" for
			     those of events.k8s.io too */
	char *name, *sub; /* "" without one */
	char *query;      /* as sent, "" without one */
	struct apistore_form
		form; /* how the answer shows objects; as they are, unless the caller says */
	struct apistore_selector *select; /* labelSelector and fieldSelector; NULL: all */
};

/* ERR_NOT_FOUND: not a path of the API. ERR_INVALID: a selector that cannot be read. out is
 * initialised in every case. */
int apistore_target_parse(
	const char *path, struct apistore_target *out, struct err *err) MUST_CHECK;
void apistore_target_fini(struct apistore_target *t);
#define cleanup_apistore_target __attribute__((cleanup(apistore_target_fini)))

/* As if this query parameter had not been sent. */
void apistore_target_drop(struct apistore_target *t, const char *name);
/* A query parameter, decoded; the caller frees. NULL: absent. */
char *apistore_target_param(const struct apistore_target *t, const char *name);
/* Each that is there under that name, as texts; the caller puts the array. */
struct json_object *apistore_target_params(const struct apistore_target *t, const char *name);
/* A query parameter is there and not "0" or "false" in any case, as kube-apiserver reads it: Python's
 * client sends "True". */
bool apistore_target_flag(const struct apistore_target *t, const char *name);
/* "machines.example.io" of "machines" and "example.io"; the caller frees. */
char *apistore_target_qualify(const char *resource, const char *group);
/* A path segment or a query value: %XX and, in a query, '+'. NULL: cut off or not hexadecimal, a NUL
 * byte, or not UTF-8. The caller frees. */
char *apistore_target_decode(const char *s, size_t len, bool query);

#endif
