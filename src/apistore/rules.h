/* SPDX-License-Identifier: MIT */
/* What kube-apiserver wants of built-in kinds that this API looks into: Secrets, ConfigMaps,
 * Namespaces. */
#ifndef TEC_APISTORE_RULES_H
#define TEC_APISTORE_RULES_H

#include "apistore_internal.h"
#include "tec/apistore/status.h"

/* Fills in what the server does (type, stringData into data, ...) and refuses what it does not
 * take. t names the object; was NULL: it is new. -1: refused says why. */
int apistore_rules(const struct apistore_target *t, struct json_object *o, struct json_object *was,
	struct apistore_answer *refused) MUST_CHECK;

#endif
