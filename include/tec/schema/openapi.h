/* SPDX-License-Identifier: MIT */
/*
 * OpenAPI documents, for kubectl explain and kubectl's own validation. Version 3: one document per
 * group and version, and an index whose paths contain hashes; version 2: one swagger document, as
 * JSON or as gnostic's protobuf, which kubectl before 1.24 requires.
 *
 * Kinds of CRDs are described in full, built-in kinds only in their metadata; members that their
 * schemas do not name are allowed. Pure: the caller releases the results.
 */
#ifndef TEC_SCHEMA_OPENAPI_H
#define TEC_SCHEMA_OPENAPI_H

#include "tec/schema/discovery.h"

struct json_object *schema_openapi_index(const struct schema_served *s); /* /openapi/v3 */
/* /openapi/v3/api/v1 (group "") and /openapi/v3/apis/GROUP/VERSION; NULL: not found. */
struct json_object *schema_openapi_v3(
	const struct schema_served *s, const char *group, const char *version);
struct json_object *schema_openapi_v2(const struct schema_served *s); /* /openapi/v2 */
/* Encode an openapi.v2.Document; swagger: the result of schema_openapi_v2(). */
void schema_openapi_v2_protobuf(struct json_object *swagger, struct strbuf *out);

#endif
