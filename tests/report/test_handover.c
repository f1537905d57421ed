/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "report_testing.h"
#include "tec/report/handover.h"

#define SELF      MODEL_AUTHORITY_SELF
#define FOLLOWING MODEL_AUTHORITY_FOLLOWING
#define FROZEN    MODEL_AUTHORITY_FROZEN
#define RETIRED   MODEL_AUTHORITY_RETIRED

static const char *const reason_of[] = {
	[SELF] = "Self", [FOLLOWING] = "Following", [FROZEN] = "Frozen", [RETIRED] = "Retired"};

/* One whose operator has done all that spec says. */
static struct report_authority one(enum model_authority is, const char *uid, const char *ticket)
{
	return (struct report_authority){.is = is,
		.known = true,
		.observed = true,
		.synced = true,
		.name = "tec",
		.uid = uid,
		.ticket = ticket,
		.reason = reason_of[is],
		.message = "",
		.digest = is == SELF ? NULL : "d",
		.peer = is == FOLLOWING ? "https://peer" : NULL,
		.peer_uid = is == FOLLOWING ? (str_eq(uid, "s") ? "t" : "s") : NULL};
}

static const struct report_promotion fresh = {.deleting = 0};

static enum report_do promote(
	enum model_authority from, const char *at_from, enum model_authority to, const char *at_to)
{
	struct report_authority s = one(from, "s", at_from), t = one(to, "t", at_to);

	return report_promote_next(&s, &t, &fresh).act;
}

/* ---- what is read */

Test(report_handover, what_a_cluster_shows)
{
	cleanup_show_world struct report_world w;
	struct report_authority a;

	world_of(&w,
		"{\"cluster\":[{\"metadata\":{\"name\":\"tec\",\"uid\":\"u\",\"generation\":7,\"annotations\":{\"" REPORT_TICKET
		"\":\"x\"}},\"spec\":{\"authority\":\"Following\"},\"status\":{\"authority\":{\"digest\":\"d\",\"machines\":3,"
		"\"attestationKeys\":2,\"images\":1,\"peer\":\"p\",\"peerUID\":\"q\"},\"conditions\":[{\"type\":\"Authority\","
		"\"status\":\"False\",\"reason\":\"FollowingBehind\",\"message\":\"m\",\"observedGeneration\":7}]}}]}");
	report_authority(report_cluster(&w), &a);
	cr_expect(a.known && a.observed && !a.synced);
	cr_expect_eq(a.is, FOLLOWING);
	cr_expect_str_eq(a.uid, "u");
	cr_expect_str_eq(a.ticket, "x");
	cr_expect_str_eq(a.reason, "FollowingBehind");
	cr_expect_str_eq(a.digest, "d");
	cr_expect_str_eq(a.peer_uid, "q");
	cr_expect(a.machines == 3 && a.keys == 2 && a.images == 1);
}

Test(report_handover, what_a_cluster_shows_of_its_trustee)
{
	cleanup_show_world struct report_world w;
	struct report_authority a;

	world_of(&w,
		"{\"cluster\":[{\"metadata\":{\"name\":\"tec\"},\"spec\":{\"publicTrusteeAddr\":\"x:1\","
		"\"trustee\":{\"deploy\":\"External\",\"takeOver\":\"u\"}},\"status\":{\"conditions\":["
		"{\"type\":\"TrusteeSynced\",\"status\":\"False\",\"reason\":\"Conflict\",\"message\":\"m\"}]}}]}");
	report_authority(report_cluster(&w), &a);
	cr_expect_str_eq(a.trustee, "x:1");
	cr_expect_str_eq(a.take_over, "u");
	cr_expect_str_eq(a.conflict, "m");
	report_world_fini(&w);
	world_of(&w,
		"{\"cluster\":[{\"metadata\":{\"name\":\"tec\"},\"spec\":{\"publicTrusteeAddr\":\"x:1\"},"
		"\"status\":{\"conditions\":[{\"type\":\"TrusteeSynced\",\"status\":\"False\","
		"\"reason\":\"NotAvailable\",\"message\":\"m\"}]}}]}");
	report_authority(report_cluster(&w), &a);
	cr_expect_null(a.trustee);
	cr_expect_null(a.take_over);
	cr_expect_null(a.conflict);
}

Test(report_handover, a_cluster_that_says_nothing)
{
	static const struct {
		const char *spec;
		bool known;
	} rows[] = {{"{}", true}, {"{\"authority\":\"Self\"}", true},
		{"{\"authority\":\"Later\"}", false}, {"{\"authority\":7}", true}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *text = xasprintf(
			"{\"cluster\":[{\"metadata\":{\"name\":\"tec\",\"generation\":1},\"spec\":%s}]}",
			rows[i].spec);
		cleanup_show_world struct report_world w;
		struct report_authority a;

		world_of(&w, text);
		report_authority(report_cluster(&w), &a);
		cr_expect_eq(a.known, rows[i].known, "%s", rows[i].spec);
		cr_expect(!a.observed && !a.ticket && !a.digest && !a.uid);
	}
}

/* ---- promote */

Test(report_handover, each_step_of_a_promotion)
{
	static const struct {
		enum model_authority from;
		const char *at_from;
		enum model_authority to;
		const char *at_to;
		enum report_do want;
	} rows[] = {
		{SELF, NULL, SELF, NULL, REPORT_DO_FOLLOW},
		{SELF, "x", SELF, "x", REPORT_DO_FOLLOW},
		{SELF, NULL, FOLLOWING, NULL, REPORT_DO_ANNOUNCE},
		{SELF, NULL, FOLLOWING, "", REPORT_DO_ANNOUNCE},
		{SELF, NULL, FOLLOWING, "aborted-x", REPORT_DO_ANNOUNCE},
		{SELF, NULL, FOLLOWING, "x", REPORT_DO_FREEZE},
		{SELF, "x", FOLLOWING, "x", REPORT_DO_FREEZE},
		{SELF, NULL, FROZEN, NULL, REPORT_DO_REFUSE},
		{FROZEN, NULL, FOLLOWING, NULL, REPORT_DO_ANNOUNCE},
		{FROZEN, "x", FOLLOWING, NULL, REPORT_DO_ANNOUNCE},
		{FROZEN, "x", FOLLOWING, "aborted-x", REPORT_DO_ANNOUNCE},
		{FROZEN, NULL, FOLLOWING, "x", REPORT_DO_FREEZE},
		{FROZEN, "y", FOLLOWING, "x", REPORT_DO_FREEZE},
		{FROZEN, "x", FOLLOWING, "x", REPORT_DO_TAKE},
		{FROZEN, "x", SELF, "x", REPORT_DO_SWAP},
		{FROZEN, NULL, SELF, NULL, REPORT_DO_REFUSE},
		{FROZEN, "x", SELF, "y", REPORT_DO_REFUSE},
		{FROZEN, NULL, SELF, "x", REPORT_DO_REFUSE},
		{FROZEN, "aborted-x", SELF, "aborted-x", REPORT_DO_REFUSE},
		{FROZEN, "x", FROZEN, "x", REPORT_DO_REFUSE},
		{FOLLOWING, NULL, SELF, "x", REPORT_DO_DONE},
		{FOLLOWING, NULL, FROZEN, NULL, REPORT_DO_REFUSE},
		{FOLLOWING, NULL, FOLLOWING, NULL, REPORT_DO_REFUSE},
		{RETIRED, NULL, SELF, NULL, REPORT_DO_REFUSE},
		{SELF, NULL, RETIRED, NULL, REPORT_DO_REFUSE},
		{RETIRED, NULL, RETIRED, NULL, REPORT_DO_REFUSE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(promote(rows[i].from, rows[i].at_from, rows[i].to, rows[i].at_to),
			rows[i].want, "row %zu", i);
}

Test(report_handover, one_external_trustee_is_that_of_both)
{
	static const struct {
		const char *from, *from_takes, *to, *to_takes;
		bool shares;
	} rows[] = {
		{"x:1", NULL, "x:1", NULL, true},
		{"x:1", NULL, "y:1", NULL, false},
		{NULL, NULL, NULL, NULL, false},
		{"x:1", NULL, NULL, "s", false}, /* the target has its own */
		{NULL, "t", "x:1", NULL, false},
		{"x:1", NULL, "y:1", "s", true}, /* under another name */
		{"x:1", "t", "y:1", NULL, true},
		{"x:1", "other", "y:1", "other", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct report_authority s = one(SELF, "s", NULL), t = one(FOLLOWING, "t", "x");

		s.trustee = rows[i].from;
		s.take_over = rows[i].from_takes;
		t.trustee = rows[i].to;
		t.take_over = rows[i].to_takes;
		cr_expect_eq(report_shares_trustee(&s, &t), rows[i].shares, "row %zu", i);
		/* The one that fills it must have done so. */
		t.synced = !rows[i].shares;
		cr_expect_eq(
			report_promote_next(&s, &t, &fresh).act, REPORT_DO_FREEZE, "row %zu", i);
		t.synced = rows[i].shares;
		s.synced = !rows[i].shares;
		cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_WAIT, "row %zu", i);
	}
}

Test(report_handover, what_is_missing_is_waited_for_and_named)
{
	struct report_authority s = one(SELF, "s", NULL), t = one(FOLLOWING, "t", "x");
	struct report_promotion p = {.deleting = 2};
	struct report_next n = report_promote_next(&s, &t, &p);

	cr_expect_eq(n.act, REPORT_DO_WAIT);
	cr_expect(strstr(n.why, "2 Machines are being deleted"), "%s", n.why);
	p = (struct report_promotion){.from_version = "0.2.0", .to_version = "0.20.0"};
	n = report_promote_next(&s, &t, &p);
	cr_expect_eq(n.act, REPORT_DO_REFUSE);
	cr_expect(strstr(n.why, "0.2.0 at the source, 0.20.0 at the target"), "%s", n.why);
	p.to_version = "0.2.11";
	cr_expect_eq(report_promote_next(&s, &t, &p).act, REPORT_DO_FREEZE);
	for (int64_t skew = -61; skew <= 61; skew += 61) {
		p = (struct report_promotion){.skew_s = skew};
		n = report_promote_next(&s, &t, &p);
		cr_expect_eq(n.act, skew ? REPORT_DO_REFUSE : REPORT_DO_FREEZE);
		cr_expect(!skew || strstr(n.why, "61 s apart"), "%s", n.why);
	}
	t.synced = false;
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_WAIT);
	t = one(FOLLOWING, "t", "x");
	t.observed = false;
	n = report_promote_next(&s, &t, &fresh);
	cr_expect(n.act == REPORT_DO_WAIT && n.step == REPORT_STEP_FOLLOW && n.next);
	t = one(FOLLOWING, "t", "x");
	t.peer_uid = NULL;
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_WAIT);
	s.observed = false;
	t.peer_uid = "s";
	n = report_promote_next(&s, &t, &fresh);
	cr_expect(n.act == REPORT_DO_WAIT && n.step == REPORT_STEP_PREFLIGHT);
}

Test(report_handover, a_target_that_cannot_follow)
{
	static const struct {
		const char *reason;
		enum report_do want;
	} rows[] = {{"FollowingBehind", REPORT_DO_WAIT}, {"SourceUnreachable", REPORT_DO_WAIT},
		{"SourceDiffers", REPORT_DO_REFUSE}, {"SourceWentBack", REPORT_DO_REFUSE},
		{"Conflict", REPORT_DO_REFUSE}, {"Self", REPORT_DO_WAIT}, {NULL, REPORT_DO_WAIT}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int frozen = 0; frozen < 2; frozen++) {
			struct report_authority s = one(frozen ? FROZEN : SELF, "s", "x"),
						t = one(FOLLOWING, "t", "x");
			struct report_next n;

			t.reason = rows[i].reason;
			t.message = NULL;
			n = report_promote_next(&s, &t, &fresh);
			cr_expect_eq(n.act, rows[i].want, "row %zu", i);
			cr_expect(n.next && n.why[0]);
		}
	struct report_authority s = one(SELF, "s", NULL), t = one(FOLLOWING, "t", NULL);

	t.peer_uid = "another";
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_REFUSE);
	t.uid = "s";
	t.peer_uid = "s";
	cr_expect(strstr(report_promote_next(&s, &t, &fresh).why, "the same cluster"));
	t = one(FOLLOWING, "t", NULL);
	t.known = false;
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_REFUSE);
}

Test(report_handover, digests_decide)
{
	struct report_authority s = one(FROZEN, "s", "x"), t = one(FOLLOWING, "t", "x");
	struct report_next n;

	t.digest = "e";
	s.machines = 3;
	t.machines = 2;
	n = report_promote_next(&s, &t, &fresh);
	cr_expect(n.act == REPORT_DO_WAIT && n.step == REPORT_STEP_COPY);
	cr_expect(strstr(n.why, "Machines 3, 2"), "%s", n.why);
	t.digest = NULL;
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_WAIT);
	s.digest = NULL;
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_WAIT);
	s = one(FROZEN, "s", "x");
	t = one(FOLLOWING, "t", "x");
	s.reason = "Freezing";
	n = report_promote_next(&s, &t, &fresh);
	cr_expect(n.act == REPORT_DO_WAIT && n.step == REPORT_STEP_FREEZE);
}

Test(report_handover, both_sides_of_the_swap_are_waited_for)
{
	struct report_authority s = one(FROZEN, "s", "x"), t = one(SELF, "t", "x");
	struct report_next n;

	t.observed = false;
	n = report_promote_next(&s, &t, &fresh);
	cr_expect(n.act == REPORT_DO_WAIT && n.step == REPORT_STEP_TAKE);
	s = one(FOLLOWING, "s", NULL);
	t = one(SELF, "t", "x");
	s.reason = "SourceUnreachable";
	n = report_promote_next(&s, &t, &fresh);
	cr_expect(n.act == REPORT_DO_WAIT && n.step == REPORT_STEP_SWAP);
	cr_expect(strstr(n.why, "operator of the source cannot reach the target"), "%s", n.why);
	s.reason = "Following";
	n = report_promote_next(&s, &t, &fresh);
	cr_expect(n.act == REPORT_DO_DONE && n.step == REPORT_N_STEPS);
	s.peer_uid = "another";
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_REFUSE);
}

/* ---- abort */

Test(report_handover, each_step_of_an_abort)
{
	static const struct {
		enum model_authority from;
		const char *at_from;
		enum model_authority to;
		const char *at_to;
		enum report_do want;
	} rows[] = {
		{SELF, NULL, FOLLOWING, NULL, REPORT_DO_DONE},
		{SELF, NULL, FOLLOWING, "aborted-x", REPORT_DO_DONE},
		{SELF, NULL, FOLLOWING, "x", REPORT_DO_FENCE},
		{SELF, NULL, SELF, NULL, REPORT_DO_REFUSE},
		{FROZEN, "x", FOLLOWING, "x", REPORT_DO_FENCE},
		{FROZEN, NULL, FOLLOWING, "x", REPORT_DO_FENCE},
		{FROZEN, "x", FOLLOWING, "aborted-x", REPORT_DO_UNFREEZE},
		{FROZEN, NULL, FOLLOWING, "aborted-x", REPORT_DO_UNFREEZE},
		{FROZEN, NULL, FOLLOWING, NULL, REPORT_DO_UNFREEZE},
		{FROZEN, "x", FOLLOWING, "aborted-y", REPORT_DO_REFUSE},
		{FROZEN, "x", FOLLOWING, "y", REPORT_DO_REFUSE},
		{FROZEN, "x", FOLLOWING, NULL, REPORT_DO_REFUSE},
		{FROZEN, "x", SELF, "x", REPORT_DO_REFUSE},
		{FROZEN, NULL, SELF, NULL, REPORT_DO_REFUSE},
		{FOLLOWING, NULL, SELF, "x", REPORT_DO_REFUSE},
		{FOLLOWING, NULL, FOLLOWING, NULL, REPORT_DO_REFUSE},
		{RETIRED, NULL, FOLLOWING, "x", REPORT_DO_REFUSE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct report_authority s = one(rows[i].from, "s", rows[i].at_from),
					t = one(rows[i].to, "t", rows[i].at_to);

		cr_expect_eq(report_abort_next(&s, &t).act, rows[i].want, "row %zu", i);
	}
}

/* ---- every state, and every order of two commands */

struct cluster {
	enum model_authority is;
	char ticket[24]; /* "": none */
	int version;
	int epoch;
};

/* A command: it reads the source, reads the target, then does one thing, and so on. */
struct actor {
	bool aborts;
	int at;
	struct cluster from, to;
	char mine[24];
};

struct play {
	struct cluster from, to;
	struct actor actor[2];
	int tickets, restarts;
};

static size_t n_plays, n_takes, n_unfrozen, n_lost;

static struct report_authority seen(const struct cluster *c, const char *uid)
{
	struct report_authority a = one(c->is, uid, c->ticket[0] ? c->ticket : NULL);

	a.epoch = c->epoch;
	return a;
}

static bool set(
	struct cluster *now, const struct cluster *was, enum model_authority is, const char *ticket)
{
	cleanup_free char *copy = xstrdup(ticket); /* it may be now's own */

	if (now->version != was->version)
		return false; /* 409 */
	now->is = is;
	now->version++;
	snprintf(now->ticket, sizeof(now->ticket), "%s", copy);
	return true;
}

static void do_it(struct play *p, struct actor *a)
{
	struct report_authority s = seen(&a->from, "s"), t = seen(&a->to, "t");
	struct report_promotion with = {.ticket = a->mine[0] ? a->mine : NULL};
	enum report_do what =
		a->aborts ? report_abort_next(&s, &t).act : report_promote_next(&s, &t, &with).act;
	char ticket[48];

	switch (what) {
	case REPORT_DO_ANNOUNCE:
		snprintf(ticket, sizeof(ticket), "t%d", p->tickets++);
		if (p->to.version == a->to.version)
			snprintf(a->mine, sizeof(a->mine), "%.20s", ticket);
		set(&p->to, &a->to, FOLLOWING, ticket);
		break;
	case REPORT_DO_FREEZE:
		snprintf(a->mine, sizeof(a->mine), "%s", a->to.ticket);
		set(&p->from, &a->from, FROZEN, a->to.ticket);
		break;
	case REPORT_DO_TAKE:
		if (set(&p->to, &a->to, SELF, a->to.ticket))
			p->to.epoch = (int)report_next_epoch(&s, &t);
		n_takes++;
		break;
	case REPORT_DO_SWAP:
		set(&p->from, &a->from, FOLLOWING, "");
		break;
	case REPORT_DO_FENCE:
		snprintf(ticket, sizeof(ticket), REPORT_TICKET_ABORTED "%s", a->to.ticket);
		set(&p->to, &a->to, a->to.is, ticket);
		break;
	case REPORT_DO_UNFREEZE:
		set(&p->from, &a->from, SELF, "");
		n_unfrozen++;
		break;
	default:
		break;
	}
}

static void explore(const struct play *was, int left)
{
	cr_assert(was->from.is != SELF || was->to.is != SELF, "both decide");
	n_plays++;
	if (!left)
		return;
	for (int i = 0; i < 2; i++) {
		struct play p = *was;
		struct actor *a = &p.actor[i];

		if (a->at == 0)
			a->from = p.from;
		else if (a->at == 1)
			a->to = p.to;
		else
			do_it(&p, a);
		a->at = (a->at + 1) % 3;
		explore(&p, left - 1);
	}
	/* The promotion is killed and started again. */
	if (was->restarts && (was->actor[0].at || was->actor[0].mine[0])) {
		struct play p = *was;

		p.restarts--;
		p.actor[0] = (struct actor){.aborts = false};
		explore(&p, left - 1);
	}
}

Test(report_handover, no_order_of_promote_and_abort_makes_both_decide)
{
	static const struct play starts[] = {
		{.from = {SELF, "", 1}, .to = {FOLLOWING, "", 1}},
		{.from = {FROZEN, "x", 1}, .to = {FOLLOWING, "x", 1}},
		{.from = {FROZEN, "", 1}, .to = {FOLLOWING, "", 1}},
		{.from = {FROZEN, "x", 1}, .to = {FOLLOWING, "aborted-x", 1}},
	};

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		struct play p = starts[i];

		p.actor[1].aborts = true;
		p.restarts = 1;
		n_takes = n_unfrozen = 0;
		explore(&p, 16);
		cr_expect(n_takes && n_unfrozen, "start %zu shows both ends", i);
	}
	cr_expect_gt(n_plays, 100000);
}

/* What spec says happens at once, or when the command runs again. */
Test(report_handover, a_promotion_ends_from_wherever_it_was_killed)
{
	for (int killed = 0; killed < 16; killed++) {
		struct play p = {.from = {SELF, "", 1}, .to = {FOLLOWING, "", 1}};
		struct actor *a = &p.actor[0];
		int steps = 0;

		for (; p.from.is != FOLLOWING && steps < 20; steps++) {
			if (steps == killed)
				*a = (struct actor){.aborts = false};
			a->from = p.from;
			a->to = p.to;
			do_it(&p, a);
		}
		cr_expect(p.from.is == FOLLOWING && p.to.is == SELF, "killed after %d", killed);
		cr_expect_eq(steps, 4, "announce, freeze, take, swap");
		cr_expect_str_eq(p.from.ticket, "");
	}
}

/* ---- ... and with a cluster that is lost, and returns */

/* Of two clusters that know each other, or of which only the target knows the source. */
struct pair {
	struct cluster c[2];
	bool knows; /* the source */
};

static void of(const struct pair *p, int end, struct model_cluster *out)
{
	bool knows = end || p->knows;

	*out = (struct model_cluster){.obj.uid = (char *)(end ? "t" : "s"),
		.authority = p->c[end].is,
		.epoch = p->c[end].epoch,
		.follow_secret = knows ? "f" : NULL,
		.followed_uid = knows ? (end ? "s" : "t") : NULL};
}

/* What the operator of that end does when it reads the other one. */
static bool reads(struct pair *p, int end)
{
	struct model_cluster here, there;

	of(p, end, &here);
	of(p, !end, &there);
	if (here.authority != SELF || !model_cluster_peer(&here) ||
		!model_cluster_yields(&here, &there))
		return false;
	p->c[end].is = FROZEN;
	p->c[end].version++;
	return true;
}

/* Both are up and read each other, in both orders: one of them decides at most. */
static void check_return(const struct play *was, bool knows)
{
	for (int first = 0; first < 2; first++) {
		struct pair p = {.c = {was->from, was->to}, .knows = knows};

		reads(&p, first);
		reads(&p, !first);
		if (p.c[0].is != SELF || p.c[1].is != SELF)
			continue;
		/* The source does not know the target, which decides later, and says so. */
		cr_assert(!knows && p.c[1].epoch > p.c[0].epoch, "both decide: epochs %d %d",
			p.c[0].epoch, p.c[1].epoch);
	}
}

static void lost(struct cluster *now, const struct cluster *was, const char *uid)
{
	static const char *const reasons[] = {
		[SELF] = "PeerUnknown", [FOLLOWING] = "SourceUnreachable", [FROZEN] = "Frozen"};
	struct report_authority a = seen(was, uid);

	a.reason = reasons[was->is];
	if (report_from_lost_next(&a).act != REPORT_DO_TAKE_ALONE)
		return;
	a.epoch = was->epoch;
	if (set(now, was, SELF, ""))
		now->epoch = (int)report_next_epoch(NULL, &a);
}

/* left: steps; losts: how often a cluster is still taken without the other one. */
static void explore_lost(const struct play *was, bool knows, int left, int losts)
{
	check_return(was, knows);
	n_plays++;
	if (!left)
		return;
	for (int i = 0; i < 2; i++) {
		struct play p = *was;
		struct actor *a = &p.actor[i];

		if (a->at == 0)
			a->from = p.from;
		else if (a->at == 1)
			a->to = p.to;
		else
			do_it(&p, a);
		a->at = (a->at + 1) % 3;
		explore_lost(&p, knows, left - 1, losts);
	}
	for (int i = 0; i < 2 && losts; i++) {
		struct play p = *was;

		lost(i ? &p.to : &p.from, i ? &was->to : &was->from, i ? "t" : "s");
		n_lost++;
		explore_lost(&p, knows, left - 1, losts - 1);
	}
	/* The link is there for a moment, and one end reads the other. */
	for (int i = 0; i < 2; i++) {
		struct play p = *was;
		struct pair both = {.c = {p.from, p.to}, .knows = knows};

		if (!reads(&both, i))
			continue;
		p.from = both.c[0];
		p.to = both.c[1];
		explore_lost(&p, knows, left - 1, losts);
	}
}

Test(report_handover, no_order_with_a_lost_cluster_leaves_two_that_see_each_other)
{
	static const struct play starts[] = {
		{.from = {SELF, "", 1, 0}, .to = {FOLLOWING, "", 1, 0}},
		{.from = {SELF, "", 1, 4}, .to = {FOLLOWING, "", 1, 3}},
		{.from = {FROZEN, "x", 1, 1}, .to = {FOLLOWING, "x", 1, 1}},
		{.from = {SELF, "", 1, 1}, .to = {FOLLOWING, "", 1, 5}},
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(starts); i++) {
		struct play p = starts[i / 2];

		p.actor[1].aborts = true;
		n_plays = n_lost = 0;
		explore_lost(&p, i % 2, 10, 2);
		cr_expect(n_lost > 100 && n_plays > 10000, "start %zu: %zu", i, n_plays);
	}
}

Test(report_handover, who_may_be_taken_without_the_other_one)
{
	static const struct {
		enum model_authority is;
		const char *reason;
		enum report_do want;
	} rows[] = {
		{FOLLOWING, "SourceUnreachable", REPORT_DO_TAKE_ALONE},
		{FOLLOWING, "SourceWentBack", REPORT_DO_TAKE_ALONE},
		{FOLLOWING, "SourceDiffers", REPORT_DO_TAKE_ALONE},
		{FOLLOWING, "Following", REPORT_DO_REFUSE},
		{FOLLOWING, "FollowingBehind", REPORT_DO_REFUSE},
		{FOLLOWING, "Conflict", REPORT_DO_REFUSE},
		{FROZEN, "Frozen", REPORT_DO_TAKE_ALONE},
		{FROZEN, "Freezing", REPORT_DO_WAIT},
		{FROZEN, "PeerDecides", REPORT_DO_REFUSE},
		{SELF, "PeerUnknown", REPORT_DO_TAKE_ALONE},
		{SELF, "PeerDecides", REPORT_DO_REFUSE},
		{SELF, "Self", REPORT_DO_DONE},
		{SELF, "NotServed", REPORT_DO_WAIT},
		{RETIRED, "Retired", REPORT_DO_REFUSE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct report_authority a = one(rows[i].is, "t", "x");

		a.reason = rows[i].reason;
		cr_expect_eq(report_from_lost_next(&a).act, rows[i].want, "row %zu", i);
		/* What its operator has not seen may have changed. */
		a.observed = false;
		cr_expect_eq(report_from_lost_next(&a).act,
			rows[i].is == RETIRED ? REPORT_DO_REFUSE : REPORT_DO_WAIT, "row %zu", i);
	}
	struct report_authority a = one(FOLLOWING, "t", NULL);

	a.known = false;
	cr_expect_eq(report_from_lost_next(&a).act, REPORT_DO_REFUSE);
}

Test(report_handover, an_epoch_is_higher_than_all_that_are_known)
{
	struct report_authority s = one(SELF, "s", NULL), t = one(FOLLOWING, "t", NULL);

	cr_expect_eq(report_next_epoch(&s, &t), 1);
	s.epoch = 3;
	cr_expect_eq(report_next_epoch(&s, &t), 4);
	cr_expect_eq(report_next_epoch(NULL, &t), 1);
	t.peer_epoch = 7;
	cr_expect_eq(report_next_epoch(NULL, &t), 8);
	t.epoch = 9;
	cr_expect_eq(report_next_epoch(&s, &t), 10);
}

Test(report_handover, what_was_last_seen_of_the_lost_one)
{
	struct report_authority t = one(FOLLOWING, "t", NULL);
	cleanup_free char *never = report_last_seen(&t, 1767323045), *then = NULL;

	cr_expect(strstr(never, "never read here"), "%s", never);
	t.seen = "2026-01-02T02:04:05Z";
	t.behind = 3;
	then = report_last_seen(&t, 1767323045);
	cr_expect(strstr(then, "60 minutes ago"), "%s", then);
	cr_expect(strstr(then, "3 objects were not copied"), "%s", then);
	cr_expect(strstr(then, "https://peer"), "%s", then);
}

/* Following a source that was left behind would bring back what was deleted since. */
Test(report_handover, one_that_took_over_does_not_follow_what_returns)
{
	struct report_authority s = one(SELF, "s", NULL), t = one(SELF, "t", NULL);

	t.epoch = 1;
	t.peer_uid = "s";
	cr_expect_eq(report_follow_next(&s, &t, false).act, REPORT_DO_REFUSE);
	cr_expect_eq(report_promote_next(&s, &t, &fresh).act, REPORT_DO_REFUSE);
	cr_expect_eq(report_follow_next(&t, &s, false).act, REPORT_DO_FOLLOW);
	t.peer_uid = "another";
	cr_expect_eq(report_follow_next(&s, &t, false).act, REPORT_DO_FOLLOW);
	/* Frozen by a promotion whose target was taken without it. */
	s = one(FROZEN, "s", "x");
	cr_expect(strstr(report_promote_next(&s, &t, &fresh).next, "tecctl follow"));
}

/* ---- follow and retire */

Test(report_handover, who_may_follow_whom)
{
	static const struct {
		enum model_authority from, to;
		bool given;
		enum report_do want;
	} rows[] = {
		{SELF, SELF, false, REPORT_DO_FOLLOW},
		{SELF, SELF, true, REPORT_DO_FOLLOW},
		{SELF, FROZEN, false, REPORT_DO_FOLLOW},
		{SELF, FOLLOWING, false, REPORT_DO_FOLLOW},
		{SELF, FOLLOWING, true, REPORT_DO_DONE},
		{SELF, RETIRED, false, REPORT_DO_REFUSE},
		{FROZEN, SELF, false, REPORT_DO_REFUSE},
		{FROZEN, FOLLOWING, false, REPORT_DO_FOLLOW},
		{FROZEN, FOLLOWING, true, REPORT_DO_DONE},
		{FROZEN, FROZEN, false, REPORT_DO_FOLLOW},
		{FOLLOWING, SELF, false, REPORT_DO_REFUSE},
		{FOLLOWING, FOLLOWING, false, REPORT_DO_REFUSE},
		{RETIRED, SELF, false, REPORT_DO_REFUSE},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct report_authority s = one(rows[i].from, "s", NULL),
					t = one(rows[i].to, "t", NULL);

		cr_expect_eq(
			report_follow_next(&s, &t, rows[i].given).act, rows[i].want, "row %zu", i);
	}
	struct report_authority s = one(SELF, "s", NULL), t = one(FOLLOWING, "t", NULL);

	/* A kubeconfig that expired is given again; another source is not. */
	t.reason = "SourceUnreachable";
	cr_expect_eq(report_follow_next(&s, &t, false).act, REPORT_DO_FOLLOW);
	cr_expect_eq(report_follow_next(&s, &t, true).act, REPORT_DO_WAIT);
	t.peer_uid = "another";
	cr_expect_eq(report_follow_next(&s, &t, false).act, REPORT_DO_REFUSE);
}

Test(report_handover, who_may_retire)
{
	static const struct {
		enum model_authority is;
		const char *reason;
		bool last;
		enum report_do want;
	} rows[] = {
		{SELF, "Self", false, REPORT_DO_REFUSE},
		{SELF, "Self", true, REPORT_DO_RETIRE},
		{FROZEN, "Frozen", false, REPORT_DO_REFUSE},
		{FROZEN, "Frozen", true, REPORT_DO_RETIRE},
		{FOLLOWING, "Following", false, REPORT_DO_RETIRE},
		{FOLLOWING, "FollowingBehind", false, REPORT_DO_RETIRE},
		{FOLLOWING, "SourceUnreachable", false, REPORT_DO_REFUSE},
		{FOLLOWING, "SourceUnreachable", true, REPORT_DO_RETIRE},
		{RETIRED, "Retiring", false, REPORT_DO_WAIT},
		{RETIRED, "Retired", false, REPORT_DO_DONE},
		{RETIRED, "Retiring", true, REPORT_DO_WAIT},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct report_authority a = one(rows[i].is, "s", NULL);

		a.reason = rows[i].reason;
		cr_expect_eq(report_retire_next(&a, rows[i].last).act, rows[i].want, "row %zu", i);
	}
	struct report_authority a = one(FOLLOWING, "s", NULL);

	a.observed = false;
	cr_expect_eq(report_retire_next(&a, false).act, REPORT_DO_REFUSE);
	a.known = false;
	cr_expect_eq(report_retire_next(&a, true).act, REPORT_DO_REFUSE);
}

#define MACHINE(name, id) "{" META(name, name) ",\"spec\":{\"id\":\"" id "\"}}"

Test(report_handover, machines_that_the_source_does_not_have)
{
	cleanup_show_world struct report_world from, to;
	const char *first = NULL;

	world_of(&from, "{\"machine\":[" MACHINE("a", "1") "," MACHINE("b", "2") "]}");
	world_of(&to, "{\"machine\":[" MACHINE("other", "2") "]}");
	cr_expect_eq(report_strangers(&from, &to, &first), 0);
	cr_expect_null(first);
	report_world_fini(&to);
	world_of(&to, "{\"machine\":[" MACHINE("a", "3") "," MACHINE("b", "2") "," MACHINE(
			      "c", "4") ",{" META("d", "d") "}]}");
	cr_expect_eq(report_strangers(&from, &to, &first), 3);
	cr_expect_str_eq(first, "a");
}

Test(report_handover, versions_of_operators)
{
	static const struct {
		const char *git, *image, *want;
	} rows[] = {
		{"v1.34.0+tec-operator-0.3.0", NULL, "0.3.0"},
		{"v1.34.0", NULL, NULL},
		{NULL, NULL, NULL},
		{NULL, "ghcr.io/x/tec-operator:0.3.0", "0.3.0"},
		{NULL, "localhost:5000/tec-operator", NULL},
		{NULL, "x:latest", NULL},
		{NULL, "x:0.3.0@sha256:00", NULL},
		{NULL, "x", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *found = report_operator_version(rows[i].git, rows[i].image);

		cr_expect(str_eq(found, rows[i].want), "row %zu", i);
		cr_expect_eq(report_is_standalone(rows[i].git), i == 0);
	}
}

/* ---- KUBECONFIG[:NS] */

Test(report_handover, places)
{
	static const struct {
		const char *text, *file, *ns;
	} rows[] = {
		{"k", "k", NULL},
		{"k:ns", "k", "ns"},
		{"/a/k", "/a/k", NULL},
		{"/a/k:ns", "/a/k", "ns"},
		{"/a:b/k", "/a:b/k", NULL},
		{"/a:b/k:ns", "/a:b/k", "ns"},
		{"C:/k", "C:/k", NULL},
		{"", NULL, NULL},
		{":ns", NULL, NULL},
		{"/a/", NULL, NULL},
		{"/a/:ns", NULL, NULL},
		{"/", NULL, NULL},
		{"k:", NULL, NULL},
		{"k:NS", NULL, NULL},
		{"k:a:b", NULL, NULL},
		{"k:a.b", NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *file = NULL, *ns = NULL;
		struct err err = ERR_INIT;
		int rc = report_place(rows[i].text, &file, &ns, &err);

		cr_expect_eq(rc, rows[i].file ? 0 : -1, "%s", rows[i].text);
		cr_expect(str_eq(file, rows[i].file), "%s", rows[i].text);
		cr_expect(str_eq(ns, rows[i].ns), "%s", rows[i].text);
		cr_expect(rows[i].file || err.kind == ERR_INVALID);
	}
}

/* ---- notes */

Test(report_handover, machines_of_a_first_boot)
{
	static const char made[] = "2026-01-02T03:00:05Z", old[] = "2026-01-02T02:50:00Z";
	cleanup_free char *text = xasprintf(
		"{\"machine\":[{\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"%s\"}},"
		"{\"metadata\":{\"name\":\"b\",\"creationTimestamp\":\"%s\"}},"
		"{\"metadata\":{\"name\":\"c\",\"creationTimestamp\":\"%s\",\"deletionTimestamp\":\"%s\"}},"
		"{\"metadata\":{\"name\":\"d\",\"creationTimestamp\":\"%s\"},\"status\":{\"conditions\":[" COND(
			"AttestationKeyBound", "True", "Bound", "") "]}}]}",
		old, made, made, made, made);
	cleanup_show_world struct report_world w;
	const char *first = NULL;

	world_of(&w, text);
	cr_expect_eq(report_unbound(&w, &first), 1);
	cr_expect_str_eq(first, "b");
}

Test(report_handover, nodes_that_ask_one_server)
{
	static const struct {
		const char *spec;
		bool only;
	} rows[] = {{"{\"publicTrusteeAddr\":\"a:1\"}", true},
		{"{\"publicTrusteeAddr\":\"a:1\",\"trusteeServers\":[{\"address\":\"a:1\"}]}",
			true},
		{"{\"publicTrusteeAddr\":\"a:1\",\"trusteeServers\":[{\"address\":\"b:1\"}]}",
			false},
		{"{\"publicTrusteeAddr\":\"b:1\",\"trusteeServers\":[{\"address\":\"a:1\"}]}",
			false},
		{"{\"publicTrusteeAddr\":\"a:1\",\"trusteeServers\":[7]}", false}, {"{}", false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *text =
			xasprintf("{\"cluster\":[{\"metadata\":{\"name\":\"tec\"},\"spec\":%s}]}",
				rows[i].spec);
		cleanup_show_world struct report_world w;

		world_of(&w, text);
		cr_expect_eq(report_asks_only(report_cluster(&w), "a:1"), rows[i].only, "%s",
			rows[i].spec);
	}
}
