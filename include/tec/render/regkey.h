/* SPDX-License-Identifier: MIT */
/*
 * The registration key: Secret tec-registration-key, with which listeners sign the machine ids they
 * issue, and tec-registration-key-previous, whose ids remain valid for a while after a change. An
 * id lives for pendingTTL (0: 24 hours), which is also its epoch, and contains 10 bits of epoch: a
 * key is replaced long before epochs recur. render_regkey_plan() is pure and settles: a change
 * creates previous with the content of current, deletes current, creates current again and finally
 * deletes previous; it can stop after any step and continues from there.
 */
#ifndef TEC_RENDER_REGKEY_H
#define TEC_RENDER_REGKEY_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/base/secret.h"
#include "tec/model/cluster.h"

#define RENDER_REGKEY_CURRENT  "tec-registration-key"
#define RENDER_REGKEY_PREVIOUS "tec-registration-key-previous"
#define RENDER_REGKEY_MEMBER   "key"
#define RENDER_REGKEY_LEN      32

/* An existing Secret that belongs to the operator. */
struct render_regkey {
	bool there;
	int64_t created_s;
	const char *content; /* its hash, borrowed */
};
enum render_regkey_do {
	RENDER_REGKEY_NOTHING,
	RENDER_REGKEY_MAKE,          /* current, with a new key */
	RENDER_REGKEY_COPY,          /* previous, with the content of current */
	RENDER_REGKEY_DROP,          /* current */
	RENDER_REGKEY_DROP_PREVIOUS, /* previous */
};
/* What to do next. */
struct render_regkey_plan {
	enum render_regkey_do what;
	int64_t again_s; /* when time alone changes the plan; INT64_MAX: never */
};

/* Without at_key no key is created; existing ones stay until they would have been replaced and
 * their last ids have expired. */
void render_regkey_plan(int64_t now_s, bool at_key, int64_t pending_ttl_ms,
	const struct render_regkey *current, const struct render_regkey *previous,
	struct render_regkey_plan *out);
/* Invalidate every issued id, whatever its age: delete previous, then current. */
enum render_regkey_do render_regkey_end(
	const struct render_regkey *current, const struct render_regkey *previous);
/* The JSON text of a Secret with either name. */
struct secret *render_regkey_secret(
	const struct model_cluster *c, const char *ns, const char *name, const struct secret *key);

#endif
