/* SPDX-License-Identifier: MIT */
/*
 * struct apistore_target: what a request to the Kubernetes API refers to, parsed from its path and
 * query: /api/V[/namespaces/NS]/RESOURCE[/NAME[/SUB]] or /apis/GROUP/V/...
 *
 * Without a namespace it refers to all namespaces, or to a cluster-scoped kind.
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
	char *qualified;  /* "secrets", "machines.example.io": the resource of the store, which is
			    "events" for those of events.k8s.io too */
	char *name, *sub; /* "" without one */
	char *query;      /* as sent, "" without one */
	struct apistore_form form; /* the form of objects in the answer; the caller may set it */
	struct apistore_selector *select; /* labelSelector and fieldSelector; NULL: all */
};

/* Parse a path with its query. ERR_NOT_FOUND: not an API path. ERR_INVALID: a selector cannot be
 * parsed. out is initialised in every case. */
int apistore_target_parse(
	const char *path, struct apistore_target *out, struct err *err) MUST_CHECK;
void apistore_target_fini(struct apistore_target *t);
#define cleanup_apistore_target __attribute__((cleanup(apistore_target_fini)))

/* Remove a query parameter. */
void apistore_target_drop(struct apistore_target *t, const char *name);
/* Get a query parameter, decoded; the caller frees it. NULL: absent, or it cannot be decoded. */
char *apistore_target_param(const struct apistore_target *t, const char *name);
/* Get all parameters of this name as an array of strings, which the caller puts. */
struct json_object *apistore_target_params(const struct apistore_target *t, const char *name);
/* Is a boolean parameter set? As in kube-apiserver, every value but "0" and "false", in any case,
 * counts as true: the Python client sends "True". */
bool apistore_target_flag(const struct apistore_target *t, const char *name);
/* Return "machines.example.io" for "machines" and "example.io"; the caller frees it. */
char *apistore_target_qualify(const char *resource, const char *group);

#endif
