/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/k8s/lease.h"

#include <criterion/criterion.h>
#include <string.h>

#include "fake/transport.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"

/* Two candidates over one API; each with its own transport, so that one can be cut off. */
struct candidate {
	struct fake_transport *fake;
	struct k8s_lease *lease;
	unsigned won, lost;
};
static struct loop *loop;
static struct fake_api *api;
static struct candidate a, b;

static void on_change(void *arg, bool leader)
{
	struct candidate *c = arg;

	c->won += leader;
	c->lost += !leader;
	cr_expect_eq(k8s_lease_may_write(c->lease), leader);
}

static void candidate_init(struct candidate *c, const char *identity)
{
	*c = (struct candidate){.fake = fake_transport_new(loop)};
	fake_transport_set_api(c->fake, api);
	c->lease = k8s_lease_new(loop, fake_transport_seam(c->fake),
		&(struct k8s_lease_conf){.ns = "ns",
			.name = "tec-operator",
			.identity = identity,
			.on_change = on_change,
			.arg = c});
}

static void candidate_fini(struct candidate *c)
{
	k8s_lease_free(c->lease);
	if (c->fake)
		fake_transport_free(c->fake);
	c->lease = NULL;
	c->fake = NULL;
}

static void quiet(enum log_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void setup(void)
{
	clock_fake_start(5000000, 1767323045);
	log_capture(quiet, NULL);
	loop = loop_new();
	api = fake_api_new(loop);
	candidate_init(&a, "pod-a_1");
	candidate_init(&b, "pod-b_2");
}

static void teardown(void)
{
	candidate_fini(&a);
	candidate_fini(&b);
	fake_api_free(api);
	loop_free(loop);
	metric_reset_all();
	log_capture(NULL, NULL);
	clock_fake_stop();
}

TestSuite(k8s_lease, .init = setup, .fini = teardown);

static const char *spec(const char *member)
{
	struct json_object *o = fake_api_get(api, &kobj_lease, "ns", "tec-operator");

	return json_get_str(json_get_obj(o, "spec"), member);
}

static bool leads(const struct candidate *c)
{
	bool state = k8s_lease_state(c->lease) == K8S_LEASE_LEADER;

	cr_expect(state || !k8s_lease_may_write(c->lease));
	return state && k8s_lease_may_write(c->lease);
}

Test(k8s_lease, the_first_makes_it_and_renews_every_two_seconds)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	cr_expect(leads(&a));
	cr_expect_eq(a.won, 1);
	cr_expect_str_eq(spec("holderIdentity"), "pod-a_1");
	cr_expect_str_eq(spec("renewTime"), "2026-01-02T03:04:05.000000Z");
	cr_expect_str_eq(spec("acquireTime"), "2026-01-02T03:04:05.000000Z");
	fake_transport_forget(a.fake);
	loop_advance(loop, 60000);
	cr_expect(leads(&a));
	cr_expect_eq(fake_transport_requests(a.fake), 30);
	cr_expect_eq(
		fake_transport_count(a.fake, "patch", "leases"), 30, "no reads while it goes well");
	cr_expect_str_eq(spec("renewTime"), "2026-01-02T03:05:05.000000Z");
	cr_expect_str_eq(spec("acquireTime"), "2026-01-02T03:04:05.000000Z");
	cr_expect_eq(a.lost, 0);
}

Test(k8s_lease, the_second_waits_and_takes_over_when_the_first_is_cut_off)
{
	uint64_t lost_at = 0, won_at = 0;

	k8s_lease_start(a.lease);
	loop_drain(loop);
	k8s_lease_start(b.lease);
	loop_advance(loop, 60000);
	cr_expect(leads(&a) && !leads(&b));
	fake_transport_fault(a.fake, FAKE_FAULT_SILENCE, 1);
	for (int i = 0; i < 400; i++) {
		loop_advance(loop, 100);
		cr_assert_not(leads(&a) && leads(&b), "two leaders");
		if (!lost_at && !leads(&a))
			lost_at = clock_boot_ms();
		if (!won_at && leads(&b))
			won_at = clock_boot_ms();
	}
	cr_expect(lost_at && won_at);
	cr_expect_geq(won_at - lost_at, 3000, "time for what the first had sent");
	cr_expect_eq(a.lost, 1);
	cr_expect_eq(json_get_int(fake_api_get(api, &kobj_lease, "ns", "tec-operator"),
			     "spec/leaseTransitions", 0),
		1);
	fake_transport_fault(a.fake, FAKE_FAULT_SILENCE, 0);
	loop_advance(loop, 60000);
	cr_expect(leads(&b) && !leads(&a), "it stays with the second");
}

Test(k8s_lease, may_write_ends_by_the_clock_alone)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	/* the process was stopped: no timer has run yet */
	clock_fake_advance(9999);
	cr_expect(k8s_lease_may_write(a.lease));
	clock_fake_advance(1);
	cr_expect_eq(k8s_lease_state(a.lease), K8S_LEASE_LEADER);
	cr_expect_not(k8s_lease_may_write(a.lease));
}

Test(k8s_lease, wall_clock_jumps_change_nothing)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	k8s_lease_start(b.lease);
	for (int i = 0; i < 20; i++) {
		clock_fake_set_wall(i % 2 ? 1 : 4000000000);
		loop_advance(loop, 3000);
		cr_expect(leads(&a) && !leads(&b));
	}
	cr_expect_eq(a.won, 1);
	cr_expect_eq(b.won, 0);
}

static unsigned released;

static void on_released(void *arg)
{
	(void)arg;
	released++;
}

Test(k8s_lease, a_release_hands_over_at_once)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	k8s_lease_start(b.lease);
	loop_advance(loop, 30000);
	k8s_lease_release(a.lease, on_released, NULL);
	cr_expect_not(k8s_lease_may_write(a.lease), "before anything is written");
	cr_expect_eq(released, 0, "never before the call returned");
	loop_drain(loop);
	cr_expect_eq(released, 1);
	cr_expect_str_eq(spec("holderIdentity"), "");
	loop_advance(loop, 2500);
	cr_expect(leads(&b));
	loop_advance(loop, 60000);
	cr_expect_eq(k8s_lease_state(a.lease), K8S_LEASE_RELEASED);
	cr_expect_eq(released, 1);
}

Test(k8s_lease, a_release_takes_two_seconds_at_most)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	fake_transport_fault(a.fake, FAKE_FAULT_SILENCE, 1);
	k8s_lease_release(a.lease, on_released, NULL);
	loop_advance(loop, 1999);
	cr_expect_eq(released, 0);
	loop_advance(loop, 1);
	cr_expect_eq(released, 1);
	cr_expect_eq(fake_transport_in_flight(a.fake), 0);
}

Test(k8s_lease, a_release_in_the_middle_of_a_renewal_still_arrives)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	fake_transport_latency(a.fake, 100);
	loop_advance(loop, 2050);
	cr_assert_eq(fake_transport_in_flight(a.fake), 1);
	k8s_lease_release(a.lease, on_released, NULL);
	loop_advance(loop, 500);
	cr_expect_eq(released, 1);
	cr_expect_str_eq(spec("holderIdentity"), "");
}

Test(k8s_lease, one_that_holds_nothing_releases_without_a_request)
{
	k8s_lease_release(a.lease, on_released, NULL);
	loop_drain(loop);
	cr_expect_eq(released, 1);
	cr_expect_eq(fake_transport_requests(a.fake), 0);
	k8s_lease_start(b.lease);
	loop_drain(loop);
	cr_expect(leads(&b));
}

Test(k8s_lease, a_deleted_lease_ends_leadership_and_is_made_again)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	fake_api_delete(api, &kobj_lease, "ns", "tec-operator");
	loop_advance(loop, 3000);
	cr_expect_eq(a.lost, 1);
	cr_expect_eq(a.won, 2);
	cr_expect(leads(&a));
}

Test(k8s_lease, an_edit_by_others_is_survived_a_takeover_is_obeyed)
{
	k8s_lease_start(a.lease);
	loop_drain(loop);
	fake_api_merge(api, &kobj_lease, "ns", "tec-operator",
		"{\"metadata\":{\"annotations\":{\"x\":\"y\"}}}");
	loop_advance(loop, 5000);
	cr_expect(leads(&a));
	cr_expect_eq(a.lost, 0);
	fake_api_merge(api, &kobj_lease, "ns", "tec-operator",
		"{\"spec\":{\"holderIdentity\":\"pod-c\"}}");
	loop_advance(loop, 3000);
	cr_expect_not(leads(&a));
	cr_expect_eq(a.lost, 1);
	cr_expect_str_eq(spec("holderIdentity"), "pod-c");
	loop_advance(loop, 20000);
	cr_expect(leads(&a), "nobody renewed it");
}

Test(k8s_lease, a_record_that_lies_in_the_past_is_still_waited_for)
{
	fake_api_put(api, &kobj_lease, "ns",
		"{\"metadata\":{\"name\":\"tec-operator\"},\"spec\":{\"holderIdentity\":\"old\",\"leaseDurationSeconds\":15,"
		"\"renewTime\":\"2001-01-01T00:00:00.000000Z\",\"leaseTransitions\":7}}");
	k8s_lease_start(a.lease);
	loop_advance(loop, 14900);
	cr_expect_not(leads(&a), "our own clock, not the record's");
	loop_advance(loop, 2600);
	cr_expect(leads(&a));
	cr_expect_eq(json_get_int(fake_api_get(api, &kobj_lease, "ns", "tec-operator"),
			     "spec/leaseTransitions", 0),
		8);
}

/* What the Trustee operator's client-go left AGE seconds ago by the clock of the API server, with a
 * renewTime by the clock of its node, AHEAD of that by so many seconds. */
static void leave(const char *manager, int64_t age, int64_t ahead)
{
	char server[CLOCK_RFC3339_LEN], node[CLOCK_RFC3339_US_LEN];
	cleanup_free char *text = NULL;

	clock_format(clock_wall_s() - age, server);
	clock_format_us((clock_wall_s() - age + ahead) * 1000000, node);
	text = xasprintf(
		"{\"metadata\":{\"name\":\"tec-operator\",\"managedFields\":[{\"manager\":\"%s\","
		"\"operation\":\"Update\",\"apiVersion\":\"coordination.k8s.io/v1\","
		"\"time\":\"%s\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{}}}]},"
		"\"spec\":{\"holderIdentity\":\"theirs\",\"leaseDurationSeconds\":15,"
		"\"leaseTransitions\":0,\"renewTime\":\"%s\"}}",
		manager, server, node);
	fake_api_put(api, &kobj_lease, "ns", text);
}

/* The time until the first candidate has a lease that nobody renews any more. */
static uint64_t waited(void)
{
	uint64_t start = clock_boot_ms();

	k8s_lease_start(a.lease);
	for (int i = 0; i < 400 && !leads(&a); i++)
		loop_advance(loop, 50);
	cr_assert(leads(&a));
	return clock_boot_ms() - start;
}

struct left_behind {
	const char *manager;
	int64_t age, ahead; /* see leave() */
	int64_t ours;       /* our clock, ahead of the API server's */
	uint64_t at_least_ms;
};

/* The full duration is 15 s; 6 s always remain; a second belongs to the API server's times. */
static const struct left_behind left_behind[] = {
	{"manager", 0, 0, 0, 15000},
	{"manager", 4, 0, 0, 12000},
	{"manager", 8, 0, 0, 8000},
	{"manager", 10, 0, 0, 6000},
	{"manager", 15, 0, 0, 6000},
	{"manager", 86400, 0, 0, 6000},
	/* the holder's clock is ahead: renewTime is in the future, or not old enough */
	{"manager", 10, 300, 0, 15000},
	{"manager", 10, 6, 0, 11000},
	/* the holder's clock is behind: the API server's counts */
	{"manager", 0, -300, 0, 15000},
	{"manager", 8, -300, 0, 8000},
	/* our clock is behind, or ahead */
	{"manager", 10, 0, -300, 15000},
	{"manager", 10, 0, -5, 11000},
	{"manager", 0, 0, 300, 6000},
	/* one of our replicas: by our own clock alone */
	{"tec-operator", 10, 0, 0, 15000},
	{"tec-operator", 86400, -300, 300, 15000},
};

Test(k8s_lease, what_the_trustee_operator_left_is_taken_as_soon_as_it_is_safe)
{
	for (size_t i = 0; i < ARRAY_LEN(left_behind); i++) {
		const struct left_behind *c = &left_behind[i];
		uint64_t ms;

		leave(c->manager, c->age, c->ahead);
		clock_fake_set_wall(clock_wall_s() + c->ours);
		ms = waited();
		cr_expect(ms >= c->at_least_ms && ms <= c->at_least_ms + 600, "case %zu: %llu ms",
			i, (unsigned long long)ms);
		teardown();
		setup();
	}
}

static unsigned waits;

static void count_waits(enum log_level level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	waits += strstr(line, "waiting for the Lease") && strstr(line, "holder=\"theirs\"") &&
		 strstr(line, "expires=2");
}

Test(k8s_lease, a_trustee_operator_that_renews_is_never_taken_over)
{
	static const int64_t clocks[] = {0, -300, 300};

	for (size_t ours = 0; ours < ARRAY_LEN(clocks); ours++) {
		for (size_t theirs = 0; theirs < ARRAY_LEN(clocks); theirs++) {
			leave("manager", 0, clocks[theirs]);
			clock_fake_set_wall(clock_wall_s() + clocks[ours]);
			log_capture(count_waits, NULL);
			waits = 0;
			k8s_lease_start(a.lease);
			for (int i = 0; i < 30; i++) {
				/* renewed every 2 s, once after a pause of 4 s */
				loop_advance(loop, i == 3 ? 4000 : 2000);
				cr_expect_eq(a.won, 0);
				leave("manager", clocks[ours], clocks[theirs]);
			}
			/* from its last renewal on, the duration passes in full */
			loop_advance(loop, 14900);
			cr_expect_eq(a.won, 0);
			loop_advance(loop, 5000);
			cr_expect(leads(&a));
			cr_expect_eq(waits, 1, "logged once, at the start");
			teardown();
			setup();
		}
	}
}

Test(k8s_lease, an_api_server_that_does_not_answer_may_have_failed_the_holder_too)
{
	leave("manager", 0, 0);
	clock_fake_set_wall(clock_wall_s() + 300);
	k8s_lease_start(a.lease);
	loop_advance(loop, 1000);
	fake_transport_fault(a.fake, FAKE_FAULT_500, 1);
	loop_advance(loop, 8000);
	fake_transport_fault(a.fake, FAKE_FAULT_500, 0);
	loop_advance(loop, 5900);
	cr_expect_not(leads(&a));
	loop_advance(loop, 3000);
	cr_expect(leads(&a));
}

Test(k8s_lease, a_lease_that_the_trustee_operator_released_is_taken_at_once)
{
	leave("manager", 0, 0);
	fake_api_merge(api, &kobj_lease, "ns", "tec-operator",
		"{\"spec\":{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1}}");
	k8s_lease_start(a.lease);
	loop_drain(loop);
	cr_expect(leads(&a));
}

Test(k8s_lease, a_malformed_record_is_no_obstacle)
{
	fake_api_put(api, &kobj_lease, "ns",
		"{\"metadata\":{\"name\":\"tec-operator\"},\"spec\":{\"leaseDurationSeconds\":-5}}");
	k8s_lease_start(a.lease);
	loop_advance(loop, 3000);
	cr_expect(leads(&a));
}

Test(k8s_lease, faults_never_make_two_leaders_nor_a_busy_loop)
{
	k8s_lease_start(a.lease);
	k8s_lease_start(b.lease);
	for (int fault = 0; fault <= FAKE_FAULT_SILENCE; fault++) {
		for (unsigned n = 1; n < 4; n++) {
			fake_transport_fault(a.fake, (enum fake_fault)fault, n);
			fake_transport_fault(b.fake, (enum fake_fault)fault, n == 2 ? 3 : 2);
			fake_transport_forget(a.fake);
			for (int i = 0; i < 300; i++) {
				loop_advance(loop, 200);
				cr_assert_not(leads(&a) && leads(&b),
					"two leaders, fault %d every %u", fault, n);
			}
			cr_expect_leq(fake_transport_requests(a.fake), 400,
				"fault %d every %u: %zu", fault, n,
				fake_transport_requests(a.fake));
			fake_transport_fault(a.fake, (enum fake_fault)fault, 0);
			fake_transport_fault(b.fake, (enum fake_fault)fault, 0);
			loop_advance(loop, 40000);
			cr_expect(leads(&a) || leads(&b), "fault %d every %u", fault, n);
		}
	}
}

static unsigned told;

static void listen(enum log_level level, const char *line, void *arg)
{
	told += level == LOG_WARN && strstr(line, "apply the Role of this release") &&
		strstr(line, "name=tec-operator");
}

Test(k8s_lease, what_a_role_lacks_is_told_once_with_what_to_do)
{
	struct fake_expect *e = fake_transport_expect(a.fake, "GET", "/apis/coordination.k8s.io*");

	fake_expect_times(e, 0);
	fake_expect_answer(e, 403,
		"{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}");
	log_capture(listen, NULL);
	k8s_lease_start(a.lease);
	loop_advance(loop, 60000);
	cr_expect_eq(told, 1);
	cr_expect_not(leads(&a));
}
