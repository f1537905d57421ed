/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/mem.h"
#include "tec/render/token.h"

#define DAY  INT64_C(86400)
#define YEAR (365 * DAY)
#define LIFE (RENDER_TOKEN_LIFE_DAYS * DAY)
#define NOW  (1000 * YEAR)

/* Made `age` ago. */
static struct render_token_signer signer(const char *name, int64_t age_s, bool mounted)
{
	return (struct render_token_signer){.name = name,
		.created_s = NOW - age_s,
		.not_after_s = NOW - age_s + LIFE,
		.hash = name,
		.mounted = mounted};
}

Test(render_token, names_have_one_number_each)
{
	static const struct {
		const char *name;
		unsigned number;
	} cases[] = {{"trustee-token", 1}, {"trustee-token-2", 2}, {"trustee-token-10", 10},
		{"trustee-token-9999", 9999}, {"trustee-token-10000", 0}, {"trustee-token-1", 0},
		{"trustee-token-0", 0}, {"trustee-token-02", 0}, {"trustee-token-", 0},
		{"trustee-token-2x", 0}, {"trustee-token--2", 0}, {"trustee-token-+2", 0},
		{"trustee-token2", 0}, {"trustee-toke", 0}, {"trustee-auth", 0}, {"", 0},
		{NULL, 0}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char name[RENDER_TOKEN_NAME_SIZE];

		cr_assert_eq(
			render_token_number(cases[i].name), cases[i].number, "%s", cases[i].name);
		if (!cases[i].number)
			continue;
		render_token_name(cases[i].number, name);
		cr_assert_str_eq(name, cases[i].name);
	}
}

Test(render_token, plan)
{
	enum { N = RENDER_TOKEN_NOTHING, M = RENDER_TOKEN_MAKE, D = RENDER_TOKEN_DROP };
	const struct render_token_signer one = signer("trustee-token", YEAR, true),
					 fresh = signer("trustee-token", 0, false),
					 due = signer("trustee-token", 9 * YEAR, true),
					 not_due = signer("trustee-token", 9 * YEAR - 1, true),
					 over = signer("trustee-token", LIFE, true),
					 over_loose = signer("trustee-token", LIFE, false),
					 unread = {.name = "trustee-token",
						 .created_s = NOW - YEAR},
					 loose = signer("trustee-token", 9 * YEAR, false),
					 next = signer("trustee-token-2", 0, false),
					 unripe = signer("trustee-token-2", 3599, false),
					 ripe = signer("trustee-token-2", 3600, false),
					 used = signer("trustee-token-2", DAY - 1, true),
					 old = signer("trustee-token-2", DAY, true),
					 late = signer("trustee-token-2", 5 * DAY, false),
					 due2 = signer("trustee-token-2", 9 * YEAR, true),
					 other = signer("trustee-auth", 0, true);
	const struct {
		const char *what;
		struct render_token_signer s[4];
		int act;
		const char *name, *use[3];
	} cases[] = {
		{"none", {{0}}, M, "trustee-token", {0}},
		{"the first", {fresh}, N, "", {"trustee-token"}},
		{"settled", {one}, N, "", {"trustee-token"}},
		{"a second before it is due", {not_due}, N, "", {"trustee-token"}},
		{"due", {due}, M, "trustee-token-2", {"trustee-token"}},
		{"just made: in nobody's config", {due, next}, N, "", {"trustee-token"}},
		{"one second before", {unripe, due}, N, "", {"trustee-token"}},
		{"switch", {due, ripe}, N, "", {"trustee-token-2", "trustee-token"}},
		{"old tokens live", {due, used}, N, "", {"trustee-token-2", "trustee-token"}},
		{"retired, still mounted", {due, old}, N, "", {"trustee-token-2"}},
		{"dropped", {old, loose}, D, "trustee-token", {"trustee-token-2"}},
		{"back after days: first both are trusted", {due, late}, N, "",
			{"trustee-token-2", "trustee-token"}},
		{"expired, alone", {over}, M, "trustee-token-2", {"trustee-token"}},
		{"expired, a new one does not wait", {over, next}, N, "", {"trustee-token-2"}},
		{"expired and unmounted", {over_loose, next}, D, "trustee-token",
			{"trustee-token-2"}},
		{"one act at a time, the new one first", {over_loose, due2}, M, "trustee-token-3",
			{"trustee-token-2"}},
		{"unreadable", {unread}, M, "trustee-token-2", {"trustee-token"}},
		{"the first was deleted", {old}, N, "", {"trustee-token-2"}},
		{"not a signer", {other, one}, N, "", {"trustee-token"}},
		{"only what is not a signer", {other}, M, "trustee-token", {0}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct render_token_plan p;
		unsigned n = 0, n_use = 0;

		while (n < 4 && cases[i].s[n].name)
			n++;
		while (n_use < 3 && cases[i].use[n_use])
			n_use++;
		render_token_plan(NOW, cases[i].s, n, &p);
		cr_assert_eq((int)p.what, cases[i].act, "%s", cases[i].what);
		cr_assert_str_eq(p.name, cases[i].name, "%s", cases[i].what);
		cr_assert_eq(p.n_use, n_use, "%s: %u", cases[i].what, p.n_use);
		for (unsigned k = 0; k < n_use; k++)
			cr_assert_str_eq(p.use[k].name, cases[i].use[k], "%s", cases[i].what);
		cr_assert_gt(p.again_s, NOW);
	}
}

Test(render_token, former_signers_come_in_one_order)
{
	struct render_token_signer a[] = {signer("trustee-token", 8 * YEAR, true),
		signer("trustee-token-2", 7 * YEAR, true), signer("trustee-token-3", 60, true),
		signer("trustee-token-10", DAY / 2, true)};

	for (int i = 0; i < 4; i++) {
		const struct render_token_signer first = a[0];
		struct render_token_plan p;

		render_token_plan(NOW, a, 4, &p);
		cr_assert_eq(p.n_use, 3, "the unripe one is not used");
		cr_assert_str_eq(p.use[0].name, "trustee-token-10");
		cr_assert_str_eq(p.use[1].name, "trustee-token");
		cr_assert_str_eq(p.use[2].name, "trustee-token-2");
		memmove(a, a + 1, 3 * sizeof(*a));
		a[3] = first;
	}
}

Test(render_token, never_more_than_the_limit)
{
	struct render_token_signer a[RENDER_TOKEN_SIGNERS_MAX] = {
		signer("trustee-token", LIFE + 4, true), signer("trustee-token-2", LIFE + 3, true),
		signer("trustee-token-3", LIFE + 2, true), signer("trustee-token-4", LIFE, true)};
	struct render_token_plan p;

	render_token_plan(NOW, a, RENDER_TOKEN_SIGNERS_MAX, &p);
	cr_assert_eq(p.what, RENDER_TOKEN_NOTHING, "all are mounted");
	cr_assert_str_eq(p.use[0].name, "trustee-token-4");
	a[1].mounted = false;
	render_token_plan(NOW, a, RENDER_TOKEN_SIGNERS_MAX, &p);
	cr_assert_eq(p.what, RENDER_TOKEN_DROP);
	cr_assert_str_eq(p.name, "trustee-token-2");
	a[1] = a[3];
	render_token_plan(NOW, a, 3, &p);
	cr_assert_eq(p.what, RENDER_TOKEN_MAKE);
	cr_assert_str_eq(p.name, "trustee-token-5");
}

struct world {
	struct render_token_signer s[8];
	char names[8][32];
	unsigned n, made, restarts;
	char use[4][32];
	unsigned n_use;
};

static void act(struct world *w, int64_t now_s, const struct render_token_plan *p)
{
	if (p->what == RENDER_TOKEN_MAKE) {
		unsigned slot = w->made++ % 8;

		cr_assert_lt(w->n, 8);
		snprintf(w->names[slot], sizeof(w->names[slot]), "%s", p->name);
		w->s[w->n++] = (struct render_token_signer){
			w->names[slot], now_s, now_s + LIFE, w->names[slot], false};
		return;
	}
	for (unsigned i = 0; i < w->n; i++) {
		if (strcmp(w->s[i].name, p->name) == 0) {
			cr_assert_not(w->s[i].mounted);
			w->s[i] = w->s[--w->n];
			return;
		}
	}
	cr_assert_fail("dropped what is not there");
}

/* The Deployment follows the plan. */
static void deploy(struct world *w, const struct render_token_plan *p)
{
	bool same = w->n_use == p->n_use;

	for (unsigned i = 0; i < p->n_use; i++)
		same = same && strcmp(w->use[i], p->use[i].name) == 0;
	w->restarts += !same;
	w->n_use = p->n_use;
	for (unsigned i = 0; i < w->n; i++)
		w->s[i].mounted = false;
	for (unsigned k = 0; k < p->n_use; k++) {
		snprintf(w->use[k], sizeof(w->use[k]), "%s", p->use[k].name);
		for (unsigned i = 0; i < w->n; i++)
			w->s[i].mounted |= strcmp(w->s[i].name, p->use[k].name) == 0;
	}
}

/* 100 years, woken only when the plan says so: it settles each time, what signs has an end far
 * ahead, who signed before is trusted for a day, and a renewal is two restarts. */
Test(render_token, a_century)
{
	struct world w = {0};
	struct render_token_plan p;
	unsigned woken = 0;

	for (int64_t now = NOW; now < NOW + 100 * YEAR; now = p.again_s, woken++) {
		char before[32];
		int acts = 0;

		snprintf(before, sizeof(before), "%s", w.n_use ? w.use[0] : "");
		for (render_token_plan(now, w.s, w.n, &p); acts < 4; acts++) {
			deploy(&w, &p);
			if (p.what != RENDER_TOKEN_NOTHING)
				act(&w, now, &p);
			render_token_plan(now, w.s, w.n, &p);
			if (p.what == RENDER_TOKEN_NOTHING && acts > 1)
				break;
		}
		cr_assert_eq(p.what, RENDER_TOKEN_NOTHING, "settles");
		cr_assert(w.n == 1 || w.n == 2);
		cr_assert_gt(p.use[0].not_after_s, now + YEAR - DAY);
		if (before[0] && strcmp(before, p.use[0].name) != 0) {
			cr_assert_eq(p.n_use, 2);
			cr_assert_str_eq(p.use[1].name, before);
		}
		cr_assert_gt(p.again_s, now);
	}
	cr_assert_eq(w.made, 1 + 100 / 9);
	cr_assert_leq(w.restarts, 1 + 2 * (w.made - 1));
	cr_assert_lt(woken, 10 * w.made);
}
