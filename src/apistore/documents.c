/* SPDX-License-Identifier: MIT */
/*
 * A list of all documents made so far. It is short, a few per group and version served: a request
 * for another group or version finds no document and adds none.
 */
#include "config.h"

#include "documents.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/openapi.h"

struct documents {
	const struct apistore_kinds *kinds;
	struct document **at; /* owned */
	size_t n;
};

struct documents *documents_new(const struct apistore_kinds *kinds)
{
	struct documents *d = xcalloc(1, sizeof(*d));

	d->kinds = kinds;
	return d;
}

void documents_free(struct documents *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++) {
		free(d->at[i]->data);
		free(d->at[i]->group);
		free(d->at[i]->version);
		free(d->at[i]);
	}
	free(d->at);
	free(d);
}

/* Build a document. NULL: this group or version is not served. */
static struct json_object *make(const struct schema_served *s, enum documents_what what,
	const char *group, const char *version)
{
	switch (what) {
	case DOCUMENTS_V2:
	case DOCUMENTS_V2_PROTOBUF:
		return schema_openapi_v2(s);
	case DOCUMENTS_V3_INDEX:
		return schema_openapi_index(s);
	case DOCUMENTS_V3:
		return schema_openapi_v3(s, group, version);
	case DOCUMENTS_CORE:
	case DOCUMENTS_GROUPS:
		return schema_discovery_aggregated(s, what == DOCUMENTS_CORE, version);
	}
	DIE("no such document: %d", (int)what);
}

/* Encode a document, hash it for its ETag, and keep it. */
static struct document *add(struct documents *d, enum documents_what what, const char *group,
	const char *version, struct json_object *o)
{
	struct strbuf bytes = STRBUF_INIT;
	uint8_t hash[SHA256_LEN];
	struct document *doc = xcalloc(1, sizeof(*doc));

	if (what == DOCUMENTS_V2_PROTOBUF) {
		schema_openapi_v2_protobuf(o, &bytes);
		doc->len = bytes.len;
		doc->data = strbuf_steal(&bytes);
	} else {
		doc->data = json_text(o);
		doc->len = strlen(doc->data);
	}
	bytes_sha256(doc->data, doc->len, hash);
	bytes_to_hex(hash, sizeof(hash), doc->etag);
	doc->what = what;
	doc->group = xstrdup(group);
	doc->version = xstrdup(version);
	ARRAY_GROW(d->at, d->n);
	d->at[d->n++] = doc;
	return doc;
}

const struct document *documents_get(
	struct documents *d, enum documents_what what, const char *group, const char *version)
{
	const struct schema_served s = apistore_kinds_served(d->kinds);
	cleanup_json struct json_object *o = NULL;

	for (size_t i = 0; i < d->n; i++)
		if (d->at[i]->what == what && str_eq(d->at[i]->group, group) &&
			str_eq(d->at[i]->version, version))
			return d->at[i];
	o = make(&s, what, group, version);
	return o ? add(d, what, group, version, o) : NULL;
}
