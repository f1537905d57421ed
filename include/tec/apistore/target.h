/* SPDX-License-Identifier: MIT */
/*
 * struct apistore_target: what a request to the Kubernetes API is about, read from its path and
 * query: /api/V[/namespaces/NS]/RESOURCE[/NAME[/SUB]] or /apis/GROUP/V/... Bytes in, values out.
 *
 * Selectors: labelSelector with equality only, fieldSelector with metadata.name only; each other
 * one is refused, as selecting too much would be worse.
 */
#ifndef TEC_APISTORE_TARGET_H
#define TEC_APISTORE_TARGET_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"

struct apistore_target {
	char *collection; /* the path up to RESOURCE, decoded: names the set of objects */
	char *group;      /* "" for core */
	char *ns, *resource;
	char *name, *sub; /* "" without one */
	char *query;      /* as sent, "" without one */
	char *labels;     /* labelSelector, decoded; NULL without one */
	char *field_name; /* metadata.name=...; NULL without one */
};

/* ERR_NOT_FOUND: not a path of the API. ERR_INVALID: a selector that is not supported. out is
 * initialised in every case. */
int apistore_target_parse(
	const char *path, struct apistore_target *out, struct err *err) MUST_CHECK;
void apistore_target_fini(struct apistore_target *t);
#define cleanup_apistore_target __attribute__((cleanup(apistore_target_fini)))

/* A query parameter, decoded; the caller frees. NULL: absent. */
char *apistore_target_param(const struct apistore_target *t, const char *name);
bool apistore_target_selects(const struct apistore_target *t, struct json_object *o);
/* A path segment or a query value: %XX and, in a query, '+'. NULL: cut off or not hexadecimal, or a
 * NUL byte. The caller frees. */
char *apistore_target_decode(const char *s, size_t len, bool query);

#endif
