/* SPDX-License-Identifier: MIT */
/*
 * One YAML 1.1 document (libyaml) as JSON: the kubeconfig's format. Core-schema scalars: null,
 * true/false, decimal integers; everything else, and every quoted scalar, is a string. Refused:
 * several documents, aliases that would expand (billion laughs), duplicate or non-scalar keys,
 * depth over 32, more than 1 MiB. JSON is YAML, so JSON files work.
 */
#ifndef TEC_BASE_YAML_H
#define TEC_BASE_YAML_H

#include "tec/base/json.h"

/* The caller puts the result; NULL with ERR_INVALID naming line and column. */
struct json_object *yaml_parse(const char *text, size_t len, struct err *err) MUST_CHECK;
/* The same with plain scalars as Go's readers of Kubernetes resolve them, which is more than the core
 * schema: yes, on and y are true, 0.5 and 1e3 numbers, 010 is eight. For bodies that kube-apiserver
 * would take: what it stores, we store. */
struct json_object *yaml_parse_go(const char *text, size_t len, struct err *err) MUST_CHECK;

#endif
