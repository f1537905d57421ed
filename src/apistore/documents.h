/* SPDX-License-Identifier: MIT */
/*
 * Documents about the kinds (OpenAPI, aggregated discovery), as bytes: each is made when it is first asked
 * for, and again only when a definition changed.
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
	DOCUMENTS_CORE,   /* aggregated discovery of /api; version is the one of its form */
	DOCUMENTS_GROUPS, /* and of /apis */
};

struct document {
	char *data; /* owned, as the texts below */
	size_t len;
	char etag[2 * SHA256_LEN + 1]; /* the hash of data, as the index of version 3 has it */
	enum documents_what what;
	char *group, *version;
};

struct documents;
struct documents *documents_new(const struct apistore_kinds *kinds); /* borrowed */
void documents_free(struct documents *d);                            /* NULL is fine */
/* Borrowed until the next call. group and version: "" where they say nothing. NULL: there is none. */
const struct document *documents_get(
	struct documents *d, enum documents_what what, const char *group, const char *version);

#endif
