/* SPDX-License-Identifier: MIT */
/* Every view there is: what is decided is allowed, and every one comes to rest. The way through the API
 * is tests/e2e/test_trustee_alone.py. */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/world.h"
#include "tec/ctl/kbsconfig.h"

#define N_STATES (CTL_INSTALL_UNREADABLE + 1)
#define N_VIEWS  (512u * N_STATES * N_STATES)

static struct ctl_kbsconfig_view view_of(unsigned n)
{
	struct ctl_kbsconfig_view v = {
		.found = n & 1,
		.deleting = n & 2,
		.has_finalizer = n & 4,
		.holds = n & 8,
		.renderable = n & 16,
		.owned = {n & 32, n & 64},
		.leaving = {n & 128, n & 256},
	};

	n /= 512;
	v.object[0] = (enum ctl_install_state)(n % N_STATES);
	v.object[1] = (enum ctl_install_state)(n / N_STATES);
	return v;
}

static void check(const struct ctl_kbsconfig_view *v, int d)
{
	bool alive = v->found && !v->deleting, serves = alive && v->holds && v->renderable;

	if (d == CTL_KBSCONFIG_NOTHING) {
		MUST(!v->found || v->status_ok || (v->deleting && !v->has_finalizer));
	} else if (d == CTL_KBSCONFIG_ADD_FINALIZER) {
		MUST(serves && !v->has_finalizer);
	} else if (d < CTL_KBSCONFIG_TAKE) {
		MUST(serves && v->has_finalizer &&
			v->object[d - CTL_KBSCONFIG_READ] == CTL_INSTALL_UNREAD);
	} else if (d < CTL_KBSCONFIG_APPLY) {
		MUST(serves && v->has_finalizer &&
			v->object[d - CTL_KBSCONFIG_TAKE] == CTL_INSTALL_OF_OTHER);
	} else if (d < CTL_KBSCONFIG_DELETE) {
		enum ctl_install_state s = v->object[d - CTL_KBSCONFIG_APPLY];

		MUST(serves && v->has_finalizer &&
			(s == CTL_INSTALL_ABSENT || s == CTL_INSTALL_STALE));
	} else if (d < CTL_KBSCONFIG_DROP_FINALIZER) {
		int i = d - CTL_KBSCONFIG_DELETE;

		MUST(v->found && v->has_finalizer);
		MUST(v->deleting ? v->owned[i] && !v->leaving[i]
				 : serves && v->object[i] == CTL_INSTALL_REPLACE);
	} else if (d == CTL_KBSCONFIG_DROP_FINALIZER) {
		MUST(v->deleting && v->has_finalizer && !v->owned[0] && !v->owned[1]);
	} else {
		MUST(v->found && !v->status_ok);
	}
}

/* What the act does, as the caches show it afterwards. */
static void act(struct ctl_kbsconfig_view *v, int d)
{
	int i = (d - CTL_KBSCONFIG_READ) % CTL_KBSCONFIG_N_OBJECTS;

	v->status_ok = d == CTL_KBSCONFIG_APPLY_STATUS;
	if (d == CTL_KBSCONFIG_ADD_FINALIZER)
		v->has_finalizer = true;
	else if (d == CTL_KBSCONFIG_DROP_FINALIZER)
		v->has_finalizer = false;
	else if (d == CTL_KBSCONFIG_APPLY_STATUS)
		return;
	else if (d < CTL_KBSCONFIG_TAKE)
		v->object[i] = CTL_INSTALL_OF_OTHER; /* the worst that may be read */
	else if (d < CTL_KBSCONFIG_APPLY)
		v->object[i] = CTL_INSTALL_STALE;
	else if (d < CTL_KBSCONFIG_DELETE)
		v->object[i] = CTL_INSTALL_CURRENT;
	else {
		v->object[i] = CTL_INSTALL_ABSENT;
		v->owned[i] = v->leaving[i] = false;
	}
}

Test(ctl_kbsconfig, every_view_is_decided_rightly_and_comes_to_rest)
{
	for (unsigned n = 0; n < N_VIEWS; n++) {
		struct ctl_kbsconfig_view v = view_of(n);
		int acts = 0;

		for (;; acts++) {
			int d = ctl_kbsconfig_decide(&v);

			check(&v, d);
			if (d == CTL_KBSCONFIG_NOTHING)
				break;
			MUST(acts < 12);
			act(&v, d);
		}
		/* A deletion leaves nothing, unless others hold what it owns. */
		if (v.found && v.deleting && v.has_finalizer)
			MUST((v.owned[0] && v.leaving[0]) || (v.owned[1] && v.leaving[1]));
	}
}
