/* SPDX-License-Identifier: MIT */
/*
 * Which kinds the API has, and the documents that say so: those of Kubernetes itself that this system
 * uses, and one for each version of a CustomResourceDefinition in the store.
 */
#ifndef TEC_APISTORE_KINDS_H
#define TEC_APISTORE_KINDS_H

#include "tec/apistore/objects.h"

struct apistore_kinds;

struct apistore_kind_names {
	char group[128], version[32], kind[64], plural[64], singular[64];
	char short_names[4][16]; /* "" after the last */
	bool namespaced, status, custom, generation;
};

struct apistore_kinds *apistore_kinds_new(void);
void apistore_kinds_free(struct apistore_kinds *k); /* before the objects; NULL is fine */
/* Reads the definitions in the store, now and whenever they change. */
void apistore_kinds_follow(struct apistore_kinds *k, struct loop *l, struct apistore_objects *s);
/* For struct apistore_schema: arg is the struct apistore_kinds. */
const struct apistore_kind *apistore_kinds_of(void *arg, const char *group, const char *resource);

/* Borrowed until the next turn of the loop; NULL: there is no such kind. */
const struct apistore_kind_names *apistore_kinds_find(
	const struct apistore_kinds *k, const char *group, const char *version, const char *plural);

/*
 * The document of a path: /api, /apis, /apis/GROUP, /api/v1, /apis/GROUP/VERSION; server is
 * "host:port". The caller puts it; NULL: no such path.
 */
struct json_object *apistore_kinds_document(
	const struct apistore_kinds *k, const char *path, const char *server);

#endif
