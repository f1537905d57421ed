/* SPDX-License-Identifier: MIT */
/* Between crd.c and crd_check.c. */
#ifndef SCHEMA_CRD_INTERNAL_H
#define SCHEMA_CRD_INTERNAL_H

#include <json-c/json.h>

#include "tec/schema/cause.h"

/* Everything but the schemas. Without a cause every member that crd.c reads is there and of its
 * type. */
void crd_check(struct json_object *o, struct schema_causes *causes);

#endif
