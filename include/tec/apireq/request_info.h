/* SPDX-License-Identifier: MIT */
/*
 * struct apireq_request_info: what a request to the Kubernetes API refers to, parsed from its path and
 * query: /api/V[/namespaces/NS]/RESOURCE[/NAME[/SUB]] or /apis/GROUP/V/...
 *
 * Without a namespace it refers to all namespaces, or to a cluster-scoped kind.
 */
#ifndef TEC_APIREQ_REQUEST_INFO_H
#define TEC_APIREQ_REQUEST_INFO_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/apireq/representation.h"
#include "tec/store/selector.h"
#include "tec/base/err.h"

struct apireq_request_info {
	char *group, *version; /* group "" for core */
	char *ns, *resource;
	char *qualified;  /* "secrets", "machines.example.io": the resource of the store, which is
			    "events" for those of events.k8s.io too */
	char *name, *sub; /* "" without one */
	char *query;      /* as sent, "" without one */
	struct apireq_representation
		form; /* the form of objects in the answer; the caller may set it */
	struct store_selector *select; /* labelSelector and fieldSelector; NULL: all */
};

/* Parse a path with its query. ERR_NOT_FOUND: not an API path. ERR_INVALID: a selector cannot be
 * parsed. out is initialised in every case. */
int apireq_request_info_parse(
	const char *path, struct apireq_request_info *out, struct err *err) MUST_CHECK;
void apireq_request_info_fini(struct apireq_request_info *t);
#define cleanup_apireq_request_info __attribute__((cleanup(apireq_request_info_fini)))

/* Remove a query parameter. */
void apireq_request_info_drop(struct apireq_request_info *t, const char *name);
/* Get a query parameter, decoded; the caller frees it. NULL: absent, or it cannot be decoded. */
char *apireq_request_info_param(const struct apireq_request_info *t, const char *name);
/* Get all parameters of this name as an array of strings, which the caller puts. */
struct json_object *apireq_request_info_params(
	const struct apireq_request_info *t, const char *name);
/* Is a boolean parameter set? As in kube-apiserver, every value but "0" and "false", in any case,
 * counts as true: the Python client sends "True". */
bool apireq_request_info_flag(const struct apireq_request_info *t, const char *name);
/* Return "machines.example.io" for "machines" and "example.io"; the caller frees it. */
char *apireq_request_info_qualify(const char *resource, const char *group);

#endif
