/* SPDX-License-Identifier: MIT */
/* Views of every state of one child among others: what is decided is allowed, and each comes to rest.
 * The way through the API is tests/e2e/test_trustee_alone.py. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/world.h"
#include "tec/ctl/trusteeconfig.h"

static void check(const struct ctl_trusteeconfig_view *v, int d)
{
	int i = (d - CTL_TRUSTEECONFIG_READ) % RENDER_N_CHILDREN;

	if (d == CTL_TRUSTEECONFIG_NOTHING) {
		MUST(!v->found || v->deleting || v->status_ok);
		return;
	}
	MUST(v->found && !v->deleting);
	if (d == CTL_TRUSTEECONFIG_APPLY_STATUS) {
		MUST(!v->status_ok);
		return;
	}
	MUST(v->usable && v->child[i] != CTL_CHILD_FINE);
	for (int c = RENDER_CHILD_HTTPS_KEY; c <= RENDER_CHILD_TOKEN_CERT; c++) /* no mixed pair */
		MUST(v->child[c] != CTL_CHILD_STALE ||
			(d >= CTL_TRUSTEECONFIG_DELETE && v->child[i] == CTL_CHILD_STALE));
	if (d < CTL_TRUSTEECONFIG_MAKE)
		MUST(v->value != i &&
			(v->child[i] == CTL_CHILD_TLS ||
				render_child_is_copy((enum render_trusteeconfig_child)i)));
	else if (d < CTL_TRUSTEECONFIG_DELETE)
		MUST(v->child[i] != CTL_CHILD_UNWANTED &&
			(v->value == i ||
				!render_child_is_copy((enum render_trusteeconfig_child)i)));
	else /* what the KbsConfig names no more, or a copy that is made again */
		MUST(v->child[i] == CTL_CHILD_UNWANTED
				? v->child[RENDER_CHILD_KBSCONFIG] == CTL_CHILD_FINE ||
					  v->child[RENDER_CHILD_KBSCONFIG] == CTL_CHILD_UNWANTED
				: render_child_is_copy((enum render_trusteeconfig_child)i));
}

static void act(struct ctl_trusteeconfig_view *v, int d)
{
	int i = (d - CTL_TRUSTEECONFIG_READ) % RENDER_N_CHILDREN;

	v->status_ok = d == CTL_TRUSTEECONFIG_APPLY_STATUS;
	if (v->status_ok)
		return;
	v->value = d < CTL_TRUSTEECONFIG_MAKE ? i : -1;
	if (d >= CTL_TRUSTEECONFIG_MAKE)
		v->child[i] = d >= CTL_TRUSTEECONFIG_DELETE && v->child[i] == CTL_CHILD_STALE
				      ? CTL_CHILD_ABSENT
				      : CTL_CHILD_FINE;
}

static void settle(struct ctl_trusteeconfig_view v)
{
	for (int acts = 0;; acts++) {
		int d = ctl_trusteeconfig_decide(&v);

		check(&v, d);
		if (d == CTL_TRUSTEECONFIG_NOTHING)
			break;
		MUST(acts < 4 * RENDER_N_CHILDREN);
		act(&v, d);
	}
	for (int i = 0; v.found && !v.deleting && v.usable && i < RENDER_N_CHILDREN; i++)
		MUST(v.child[i] == CTL_CHILD_FINE);
}

Test(ctl_trusteeconfig, every_view_of_two_children_comes_to_rest)
{
	for (unsigned n = 0; n < 8; n++) {
		for (int a = 0; a < RENDER_N_CHILDREN * CTL_CHILD_N; a++) {
			for (int b = 0; b < RENDER_N_CHILDREN * CTL_CHILD_N; b++) {
				struct ctl_trusteeconfig_view v = {.found = n & 1,
					.deleting = n & 2,
					.usable = n & 4,
					.value = b % (RENDER_N_CHILDREN + 1) - 1};

				v.child[a / CTL_CHILD_N] = (enum ctl_child)(a % CTL_CHILD_N);
				v.child[b / CTL_CHILD_N] = (enum ctl_child)(b % CTL_CHILD_N);
				settle(v);
			}
		}
	}
}

Test(ctl_trusteeconfig, everything_is_made_and_the_kbsconfig_last)
{
	struct ctl_trusteeconfig_view v = {.found = true, .usable = true, .value = -1};
	int last = 0;

	for (int i = 0; i < RENDER_N_CHILDREN; i++)
		v.child[i] = CTL_CHILD_ABSENT;
	for (int d; (d = ctl_trusteeconfig_decide(&v)) != CTL_TRUSTEECONFIG_APPLY_STATUS;) {
		check(&v, d);
		act(&v, d);
		last = d;
	}
	cr_assert_eq(last, CTL_TRUSTEECONFIG_MAKE + RENDER_CHILD_KBSCONFIG);
}
