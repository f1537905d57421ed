/* SPDX-License-Identifier: MIT */
/*
 * What is checked of an object before a write stores it. A check that fails returns -1 and sets
 * *refused, in the words and in the order of kube-apiserver: the order decides which error a client
 * sees when there are several.
 */
#ifndef TEC_SRC_APIREQ_ADMIT_H
#define TEC_SRC_APIREQ_ADMIT_H

#include "tec/store/objects.h"
#include "tec/apireq/status.h"

#include "options.h"

/* One write in progress. was: the current object, NULL if there is none. All borrowed. */
struct apireq_admit {
	struct store_objects *s;
	const struct apireq_request_info *t;
	const struct store_kind *kind;
	struct store_key key;
	struct json_object *was;
	bool patched; /* a patch other than apply */
	struct apireq_options opt;
	struct schema_texts *warnings; /* added to */
};

/* Is there an object with this key? A failure of the database is noted, and counts as no. */
bool apireq_admit_exists(struct store_objects *s, const struct store_key *key);
/* The answer if the result of a patch is not an object of its kind. */
struct apireq_answer apireq_admit_invalid(const char *why);
/* Report all warnings as one error, for a request with fieldValidation=Strict. */
int apireq_admit_strict(const struct apireq_admit *w, struct apireq_answer *refused) MUST_CHECK;

/* Check apiVersion and kind of a body against the URL, and that a PUT of a custom resource names
 * the version it replaces. A PUT to a built-in kind is compared with the stored object instead, by
 * apireq_admit_body. */
int apireq_admit_type(const struct apireq_admit *w, struct json_object *o,
	struct apireq_answer *refused) MUST_CHECK;
/* Check the types of all values, and rewrite them as Go's decoder would. */
int apireq_admit_decode(const struct apireq_admit *w, struct json_object *o,
	struct apireq_answer *refused) MUST_CHECK;
/* Decode an object, check that it is the one the write is about, prune unknown fields and set
 * defaults. This comes before the server fills in its fields. */
int apireq_admit_body(const struct apireq_admit *w, struct json_object *o,
	struct apireq_answer *refused) MUST_CHECK;
/* Complete an object of a built-in kind, and validate the whole: its namespace, which must exist, its
 * metadata and all values. */
int apireq_admit_object(const struct apireq_admit *w, struct json_object *o,
	struct apireq_answer *refused) MUST_CHECK;
/* Add warnings about metadata of custom resources that is accepted but discouraged. */
void apireq_admit_warn(struct json_object *o, struct schema_texts *out);

#endif
