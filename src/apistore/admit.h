/* SPDX-License-Identifier: MIT */
/*
 * What is checked of an object before a write stores it. A check that fails returns -1 and sets
 * *refused, in the words and in the order of kube-apiserver: the order decides which error a client
 * sees when there are several.
 */
#ifndef TEC_SRC_APISTORE_ADMIT_H
#define TEC_SRC_APISTORE_ADMIT_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"

#include "options.h"

/* One write in progress. was: the current object, NULL if there is none. All borrowed. */
struct apistore_admit {
	struct apistore_objects *s;
	const struct apistore_target *t;
	const struct apistore_kind *kind;
	struct apistore_key key;
	struct json_object *was;
	bool patched; /* a patch other than apply */
	struct apistore_options opt;
	struct schema_texts *warnings; /* added to */
};

/* Is there an object with this key? A failure of the database is noted, and counts as no. */
bool apistore_admit_exists(struct apistore_objects *s, const struct apistore_key *key);
/* The answer if the result of a patch is not an object of its kind. */
struct apistore_answer apistore_admit_invalid(const char *why);
/* Report all warnings as one error, for a request with fieldValidation=Strict. */
int apistore_admit_strict(
	const struct apistore_admit *w, struct apistore_answer *refused) MUST_CHECK;

/* Check apiVersion and kind of a body against the URL, and that a PUT of a custom resource names
 * the version it replaces. A PUT to a built-in kind is compared with the stored object instead, by
 * apistore_admit_body. */
int apistore_admit_type(const struct apistore_admit *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
/* Check the types of all values, and rewrite them as Go's decoder would. */
int apistore_admit_decode(const struct apistore_admit *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
/* Decode an object, check that it is the one the write is about, prune unknown fields and set
 * defaults. This comes before the server fills in its fields. */
int apistore_admit_body(const struct apistore_admit *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
/* Complete an object of a built-in kind, and validate the whole: its namespace, which must exist, its
 * metadata and all values. */
int apistore_admit_object(const struct apistore_admit *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
/* Add warnings about metadata of custom resources that is accepted but discouraged. */
void apistore_admit_warn(struct json_object *o, struct schema_texts *out);

#endif
