/* SPDX-License-Identifier: MIT */
/*
 * Decides which signer signs, which ones are trusted, and what is created or deleted. A Secret
 * is deleted only if neither the plan nor the Deployment uses it: a Pod that mounts a missing
 * Secret does not start. Never creates more than RENDER_TOKEN_SIGNERS_MAX, whatever the clock
 * says.
 */
#include "config.h"

#include "tec/render/token.h"

#include <stdio.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

#define FIRST      "trustee-token"
#define NUMBER_MAX 9999

/* "trustee-token" is number 1, so there is no "trustee-token-1". */
unsigned render_token_number(const char *name)
{
	uint64_t n = 0;

	if (str_eq(name, FIRST))
		return 1;
	if (!name || !str_starts(name, FIRST "-"))
		return 0;
	name += sizeof(FIRST);
	/* One name per number: no leading zero. */
	return *name != '0' && str_to_u64(name, NUMBER_MAX, &n) == 0 && n > 1 ? (unsigned)n : 0;
}

void render_token_name(unsigned number, char out[RENDER_TOKEN_NAME_SIZE])
{
	snprintf(out, RENDER_TOKEN_NAME_SIZE, number > 1 ? FIRST "-%u" : FIRST, number);
}

/* Whether a is newer than b; anything is newer than NULL. */
static bool newer(const struct render_token_signer *a, const struct render_token_signer *b)
{
	if (!b || a->not_after_s != b->not_after_s)
		return !b || a->not_after_s > b->not_after_s;
	return render_token_number(a->name) > render_token_number(b->name);
}

/* The newest usable signer that is ripe; otherwise the newest usable one; otherwise, if none is
 * usable, the newest: Trustee does not start without a signer. */
static const struct render_token_signer *choose(
	int64_t now_s, const struct render_token_signer *signers, unsigned n)
{
	const struct render_token_signer *best = NULL;
	int best_rank = -1;

	for (unsigned i = 0; i < n; i++) {
		const struct render_token_signer *s = &signers[i];
		bool ripe = now_s - s->created_s >= RENDER_TOKEN_RIPE_S;
		/* Expired, not ripe, ripe. */
		int rank = s->not_after_s <= now_s ? 0 : ripe ? 2 : 1;

		if (render_token_number(s->name) == 0)
			continue;
		if (rank > best_rank || (rank == best_rank && newer(s, best))) {
			best = s;
			best_rank = rank;
		}
	}
	return best;
}

/* Plan to look again at the earliest time that can change the plan. */
static void again(struct render_token_plan *out, int64_t now_s, int64_t at_s)
{
	if (at_s > now_s && at_s < out->again_s)
		out->again_s = at_s;
}

/* Whether the certificate of s is trusted besides the signer's. One newer than the signer is not
 * ripe yet. */
static bool trusted(int64_t now_s, const struct render_token_signer *s,
	const struct render_token_signer *signer)
{
	if (s->not_after_s <= now_s || newer(s, signer))
		return false;
	return !signer->mounted || now_s - signer->created_s < RENDER_TOKEN_RETIRE_S;
}

/* Renew a year before the newest certificate ends, sign with it once it is ripe, then retire the
 * old one. */
void render_token_plan(int64_t now_s, const struct render_token_signer *signers, unsigned n_signers,
	struct render_token_plan *out)
{
	const struct render_token_signer *signer = choose(now_s, signers, n_signers);
	const struct render_token_signer *newest = NULL;
	unsigned ours = 0, number = 0;

	*out = (struct render_token_plan){.again_s = INT64_MAX};
	for (unsigned i = 0; i < n_signers; i++) {
		const struct render_token_signer *s = &signers[i];
		unsigned its = render_token_number(s->name);

		if (its == 0)
			continue;
		ours++;
		number = its > number ? its : number;
		newest = newer(s, newest) ? s : newest;
		/* Each of these moments can change the choice. */
		again(out, now_s, s->not_after_s);
		again(out, now_s, s->created_s + RENDER_TOKEN_RIPE_S);
		again(out, now_s, s->created_s + RENDER_TOKEN_RETIRE_S);
	}
	if (newest)
		again(out, now_s, newest->not_after_s - RENDER_TOKEN_RENEW_S);
	/* Both limits hold even if a clock jumps or a Secret cannot be read. */
	if ((!newest || newest->not_after_s - now_s <= RENDER_TOKEN_RENEW_S) &&
		ours < RENDER_TOKEN_SIGNERS_MAX && number < NUMBER_MAX) {
		out->what = RENDER_TOKEN_MAKE;
		render_token_name(number + 1, out->name);
	}
	if (!signer)
		return;
	out->use[out->n_use++] = *signer;
	for (unsigned i = 0; i < n_signers; i++) {
		const struct render_token_signer *s = &signers[i];
		unsigned its = render_token_number(s->name);

		if (s == signer || its == 0)
			continue;
		/* Never delete one that is mounted, or one that will sign next. */
		if (trusted(now_s, s, signer) && out->n_use < RENDER_TOKEN_SIGNERS_MAX) {
			unsigned at = out->n_use++;

			/* By number, so that the result does not depend on the list's order. */
			for (; at > 1 && render_token_number(out->use[at - 1].name) > its; at--)
				out->use[at] = out->use[at - 1];
			out->use[at] = *s;
		} else if (!s->mounted && !(newer(s, signer) && s->not_after_s > now_s) &&
			   out->what == RENDER_TOKEN_NOTHING) {
			/* One act per plan: creating a signer takes precedence. */
			out->what = RENDER_TOKEN_DROP;
			snprintf(out->name, sizeof(out->name), "%s", s->name);
		}
	}
}
