/* SPDX-License-Identifier: MIT */
/* What a replica starts and stops: each case of the decision, and that it settles from every view.
 */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/mem.h"
#include "tec/ctl/leader_tasks.h"

#define LEADER .leads = true, .reads_secrets = true, .cutoff_known = true

Test(ctl_leader_tasks, decides)
{
	static const struct {
		const char *what;
		struct ctl_leader_tasks_view view;
		enum ctl_leader_tasks_do want;
	} t[] = {
		{"another one leads", {.all_filled = true, .revoking_filled = true},
			CTL_LEADER_TASKS_NOTHING},
		{"the Lease was gained", {.leads = true}, CTL_LEADER_TASKS_READ},
		{"the marker is not read yet",
			{.leads = true, .reads_secrets = true, .all_filled = true},
			CTL_LEADER_TASKS_NOTHING},
		{"everything is there", {LEADER, .all_filled = true, .revoking_filled = true},
			CTL_LEADER_TASKS_START_ALL},
		{"it runs",
			{LEADER, .all_filled = true, .revoking_filled = true, .revoking_on = true,
				.all_on = true},
			CTL_LEADER_TASKS_NOTHING},
		{"a list that revoking needs is missing", {LEADER, .waited = true},
			CTL_LEADER_TASKS_NOTHING},
		{"a list that only the others need is missing", {LEADER, .revoking_filled = true},
			CTL_LEADER_TASKS_WAIT},
		{"still missing", {LEADER, .revoking_filled = true, .waiting = true},
			CTL_LEADER_TASKS_NOTHING},
		{"missing for too long", {LEADER, .revoking_filled = true, .waited = true},
			CTL_LEADER_TASKS_START_REVOKING},
		{"revoking alone",
			{LEADER, .revoking_filled = true, .waited = true, .revoking_on = true},
			CTL_LEADER_TASKS_NOTHING},
		{"the others follow",
			{LEADER, .all_filled = true, .revoking_filled = true, .waited = true,
				.revoking_on = true},
			CTL_LEADER_TASKS_START_ALL},
		{"a list is relisted while all run", {LEADER, .revoking_on = true, .all_on = true},
			CTL_LEADER_TASKS_NOTHING},
		{"the Lease was lost",
			{.reads_secrets = true,
				.cutoff_known = true,
				.revoking_on = true,
				.all_on = true},
			CTL_LEADER_TASKS_STOP},
		{"the Lease was lost, controllers are off",
			{.reads_secrets = true, .cutoff_known = true}, CTL_LEADER_TASKS_FORGET},
		{"the Lease was lost in the wait", {.waiting = true}, CTL_LEADER_TASKS_FORGET},
		{"shutting down, before the controllers started", {LEADER, .draining = true},
			CTL_LEADER_TASKS_FORGET},
		{"shutting down, Trustee's state is written",
			{LEADER, .draining = true, .finishing = true, .revoking_on = true},
			CTL_LEADER_TASKS_NOTHING},
		{"the Lease was lost in that",
			{.reads_secrets = true,
				.draining = true,
				.finishing = true,
				.revoking_on = true},
			CTL_LEADER_TASKS_STOP},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_expect_eq(ctl_leader_tasks_decide(&t[i].view), t[i].want, "%s: %d", t[i].what,
			ctl_leader_tasks_decide(&t[i].view));
}

/* What the caller does. */
static void act(struct ctl_leader_tasks_view *v, enum ctl_leader_tasks_do what)
{
	switch (what) {
	case CTL_LEADER_TASKS_NOTHING:
		break;
	case CTL_LEADER_TASKS_STOP:
		v->revoking_on = v->all_on = v->finishing = false;
		break;
	case CTL_LEADER_TASKS_FORGET:
		v->reads_secrets = v->waiting = v->waited = false;
		break;
	case CTL_LEADER_TASKS_READ:
		v->reads_secrets = true;
		break;
	case CTL_LEADER_TASKS_START_ALL:
		v->all_on = true;
		/* fallthrough */
	case CTL_LEADER_TASKS_START_REVOKING:
		v->revoking_on = true;
		v->waiting = false;
		break;
	case CTL_LEADER_TASKS_WAIT:
		v->waiting = true;
		break;
	}
}

Test(ctl_leader_tasks, settles_and_never_runs_without_the_lease)
{
	for (unsigned bits = 0; bits < 1u << 11; bits++) {
		struct ctl_leader_tasks_view v = {.leads = bits & 1,
			.draining = bits & 2,
			.finishing = bits & 4,
			.reads_secrets = bits & 8,
			.cutoff_known = bits & 16,
			.all_filled = bits & 32,
			.revoking_filled = bits & 64,
			.all_on = bits & 128,
			.revoking_on = bits & 256,
			.waiting = bits & 512,
			.waited = bits & 1024};
		enum ctl_leader_tasks_do what;
		unsigned acts = 0;

		if ((v.finishing && !v.draining) || (v.all_on && !v.revoking_on))
			continue;
		while ((what = ctl_leader_tasks_decide(&v)) != CTL_LEADER_TASKS_NOTHING &&
			acts++ < 5) {
			cr_expect(v.leads || what == CTL_LEADER_TASKS_STOP ||
				  what == CTL_LEADER_TASKS_FORGET);
			cr_expect(!v.draining || what == CTL_LEADER_TASKS_STOP ||
				  what == CTL_LEADER_TASKS_FORGET);
			act(&v, what);
		}
		cr_expect_leq(acts, 3, "view %x", bits);
		cr_expect(v.leads || (!v.revoking_on && !v.reads_secrets), "view %x", bits);
	}
}
