/* SPDX-License-Identifier: MIT */
/* Defaults and checks of single built-in kinds: Secrets, ConfigMaps, Namespaces. */
#ifndef TEC_APISTORE_RULES_H
#define TEC_APISTORE_RULES_H

#include "tec/apistore/status.h"

/* Fill in what the server sets (type, data from stringData and the like) and check the rest. t
 * names the object; was NULL: it is new. -1: *refused is set. */
int apistore_rules(const struct apistore_target *t, struct json_object *o, struct json_object *was,
	struct apistore_answer *refused) MUST_CHECK;

#endif
