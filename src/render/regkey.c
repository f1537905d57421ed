/* SPDX-License-Identifier: MIT */
/*
 * Decides when the registration key is replaced. The previous key is kept for one lifetime plus two
 * epochs after the new one exists: for the last id it signed, and for clocks that differ. Two
 * Secrets with equal content mean that a change is in progress.
 */
#include "config.h"

#include "tec/render/regkey.h"

#include "render_internal.h"
#include "tec/base/str.h"

#define DAY_S      86400
#define EPOCHS_MAX 500 /* of 1,024: epochs of a key's ids must not recur while it is valid */

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Whether the time has come; otherwise plan to look again then. */
static bool due(struct render_regkey_plan *out, int64_t now_s, int64_t at_s)
{
	if (now_s >= at_s)
		return true;
	out->again_s = min(out->again_s, at_s);
	return false;
}

/* The first rule that applies decides one act; the next call decides the next one. */
void render_regkey_plan(int64_t now_s, bool at_key, int64_t pending_ttl_ms,
	const struct render_regkey *current, const struct render_regkey *previous,
	struct render_regkey_plan *out)
{
	int64_t life_s = pending_ttl_ms > 0 ? max(pending_ttl_ms / 1000, 1) : DAY_S;
	/* 30 lifetimes, at least 30 days, but well before the 1,024 epochs recur. */
	int64_t period_s = min(max(30 * life_s, 30 * DAY_S), EPOCHS_MAX * life_s);
	int64_t keep_s = 3 * life_s;
	bool both = current->there && previous->there;
	/* The copy exists, but current was not replaced yet. */
	bool same = both && str_eq(current->content, previous->content);

	*out = (struct render_regkey_plan){.again_s = INT64_MAX};
	if (!current->there)
		out->what = at_key            ? RENDER_REGKEY_MAKE
			    : previous->there ? RENDER_REGKEY_DROP_PREVIOUS
					      : RENDER_REGKEY_NOTHING;
	else if (!at_key && due(out, now_s, current->created_s + period_s + keep_s))
		out->what = RENDER_REGKEY_DROP;
	else if (same && (!at_key || !due(out, now_s, current->created_s + period_s)))
		out->what = RENDER_REGKEY_DROP_PREVIOUS; /* the change is no longer wanted */
	else if (same)
		out->what = RENDER_REGKEY_DROP;
	else if (both) /* until its ids have expired */
		out->what = due(out, now_s, max(current->created_s, previous->created_s) + keep_s)
				    ? RENDER_REGKEY_DROP_PREVIOUS
				    : RENDER_REGKEY_NOTHING;
	else if (at_key && due(out, now_s, current->created_s + period_s))
		out->what = RENDER_REGKEY_COPY;
	else
		out->what = RENDER_REGKEY_NOTHING;
}

enum render_regkey_do render_regkey_end(
	const struct render_regkey *current, const struct render_regkey *previous)
{
	/* Previous first; current is the one that listeners sign with. */
	if (previous->there)
		return RENDER_REGKEY_DROP_PREVIOUS;
	return current->there ? RENDER_REGKEY_DROP : RENDER_REGKEY_NOTHING;
}

/* Immutable: a key is only ever replaced by deleting its Secret, as planned above. */
struct secret *render_regkey_secret(
	const struct model_cluster *c, const char *ns, const char *name, const struct secret *key)
{
	struct json_object *o = render_frame(&kobj_secret, name, ns, c, NULL);

	json_add_bool(o, "immutable", true);
	return render_secret_text(o, RENDER_REGKEY_MEMBER, key, NULL, NULL);
}
