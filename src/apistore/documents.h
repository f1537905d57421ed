/* SPDX-License-Identifier: MIT */
/*
 * Encoded documents about the kinds served (OpenAPI, aggregated discovery). Each is built on its
 * first request and kept: the kinds do not change while the program runs.
 */
#ifndef TEC_SRC_APISTORE_DOCUMENTS_H
#define TEC_SRC_APISTORE_DOCUMENTS_H

#include "tec/apistore/kinds.h"
#include "tec/base/bytes.h"

enum documents_what {
	DOCUMENTS_V2,
	DOCUMENTS_V2_PROTOBUF,
	DOCUMENTS_V3_INDEX,
	DOCUMENTS_V3,     /* of one group and version */
	DOCUMENTS_CORE,   /* aggregated discovery of /api; version: of the discovery format */
	DOCUMENTS_GROUPS, /* the same of /apis */
};

struct document {
	char *data; /* owned, as the texts below */
	size_t len;
	char etag[2 * SHA256_LEN + 1]; /* hex SHA-256 of data, as in the OpenAPI v3 index */
	enum documents_what what;
	char *group, *version;
};

struct documents;
struct documents *documents_new(const struct apistore_kinds *kinds); /* borrowed */
void documents_free(struct documents *d);                            /* NULL is fine */
/* Borrowed until documents_free. group and version: "" where they do not apply. NULL: not found. */
const struct document *documents_get(
	struct documents *d, enum documents_what what, const char *group, const char *version);

#endif
