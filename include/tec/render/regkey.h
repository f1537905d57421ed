/* SPDX-License-Identifier: MIT */
/*
 * The registration key: Secret tec-registration-key, with which listeners
 * sign the machine ids they hand out, and tec-registration-key-previous, whose ids still count for
 * a while after a change. An id lives for pendingTTL (0: 24 hours), which is also its epoch, and
 * has 10 bits of epoch: a key is replaced long before they come round. render_regkey_plan() is pure
 * and settles: a change is previous made with the content of current, current deleted, current made
 * again, previous deleted; it can end after any of these steps and goes on from there.
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

/* One that is there, and the operator's own. */
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
struct render_regkey_plan {
	enum render_regkey_do what;
	int64_t again_s; /* when it changes by time alone; INT64_MAX: never */
};

/* Without at_key nothing is made; what is there stays until it would have been replaced and its
 * last ids have ended. */
void render_regkey_plan(int64_t now_s, bool at_key, int64_t pending_ttl_ms,
	const struct render_regkey *current, const struct render_regkey *previous,
	struct render_regkey_plan *out);
/* What ends every id that was handed out, whatever its age: previous deleted, then current. */
enum render_regkey_do render_regkey_end(
	const struct render_regkey *current, const struct render_regkey *previous);
/* The JSON text of a Secret of either name. */
struct secret *render_regkey_secret(
	const struct model_cluster *c, const char *ns, const char *name, const struct secret *key);

#endif
