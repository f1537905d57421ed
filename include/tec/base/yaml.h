/* SPDX-License-Identifier: MIT */
/*
 * Parse one YAML 1.1 document (with libyaml) to JSON: the format of kubeconfig files. Scalars follow
 * the core schema: null, true/false and decimal integers; everything else, and every quoted scalar,
 * is a string. Refused are several documents, every alias (billion laughs), duplicate or non-scalar
 * keys, nesting over 32 levels and more than 1 MiB. JSON is YAML, so JSON files work as well.
 */
#ifndef TEC_BASE_YAML_H
#define TEC_BASE_YAML_H

#include "tec/base/json.h"

/* The caller puts the result; NULL with ERR_INVALID naming line and column. */
struct json_object *yaml_parse(const char *text, size_t len, struct err *err) MUST_CHECK;
/* As yaml_parse(), but resolve plain scalars like the Go libraries of Kubernetes, beyond the core
 * schema: yes, on and y are true, 0.5 and 1e3 are numbers, 010 is eight. For request bodies, so that
 * the stored value equals that of kube-apiserver. */
struct json_object *yaml_parse_go(const char *text, size_t len, struct err *err) MUST_CHECK;

#endif
