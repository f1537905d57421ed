/* SPDX-License-Identifier: MIT */
/*
 * OpenAPI documents, for kubectl explain and for kubectl's own validation. Version 3: one document
 * per group and version, and an index whose paths carry hashes; version 2: one swagger document, as
 * JSON or as gnostic's protobuf, which kubectl before 1.24 insists on.
 *
 * Kinds of CRDs are described in full, built-in kinds only in their metadata; what their schemas do
 * not name is allowed. Pure: the caller puts what it gets.
 */
#ifndef TEC_SCHEMA_OPENAPI_H
#define TEC_SCHEMA_OPENAPI_H

#include "tec/schema/discovery.h"

struct json_object *schema_openapi_index(const struct schema_served *s); /* /openapi/v3 */
/* /openapi/v3/api/v1 (group "") and /openapi/v3/apis/GROUP/VERSION; NULL: there is none. */
struct json_object *schema_openapi_v3(
	const struct schema_served *s, const char *group, const char *version);
struct json_object *schema_openapi_v2(const struct schema_served *s); /* /openapi/v2 */
/* The bytes of an openapi.v2.Document; swagger: what schema_openapi_v2() makes. */
void schema_openapi_v2_protobuf(struct json_object *swagger, struct strbuf *out);

#endif
