/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/caches/adoption_cutoff.h"
#include "tec/base/mem.h"

#define START 1800000000
#define PATH  "/api/v1/namespaces/" NS "/configmaps"

static struct world w;
static unsigned n_known;

static void up(void)
{
	world_start(&w);
	n_known = 0;
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(ctl_adoption_cutoff, .init = up, .fini = down);

static void on_known(void *arg)
{
	n_known++;
}

static struct json_object *marker(void)
{
	return world_get(&w, &kobj_configmap, CTL_ADOPTION_CUTOFF_CONFIGMAP);
}

static struct caches own[2];

/* A second operator's, on the same API. */
static struct ctl_adoption_cutoff *another(struct caches *caches)
{
	return ctl_adoption_cutoff_new(&w.life->env, caches, on_known, NULL);
}

Test(ctl_adoption_cutoff, the_first_leader_makes_it_and_it_has_no_owner)
{
	world_boot(&w, "");
	cr_assert(marker());
	cr_assert_null(json_get(marker(), "metadata/ownerReferences"));
	cr_assert(json_get_bool(marker(), "immutable", false));
	cr_assert(caches_adoption_cutoff_known(w.life->env.caches));
	cr_assert_eq(caches_adoption_cutoff_s(w.life->env.caches), clock_wall_s());
}

Test(ctl_adoption_cutoff, a_later_life_takes_the_time_that_is_there_without_a_write)
{
	int64_t first;

	world_boot(&w, "");
	first = caches_adoption_cutoff_s(w.life->env.caches);
	world_kill(&w);
	clock_fake_advance(3600 * 1000);
	world_boot(&w, "");
	cr_assert_eq(caches_adoption_cutoff_s(w.life->env.caches), first);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_adoption_cutoff, of_two_that_make_it_at_once_one_time_counts)
{
	struct ctl_adoption_cutoff *a, *b;

	world_boot(&w, "");
	fake_api_delete(w.api, &kobj_configmap, NS, CTL_ADOPTION_CUTOFF_CONFIGMAP);
	world_run(&w, 100);
	fake_api_hold_watches(w.api, true);
	a = another(&own[0]);
	b = another(&own[1]);
	ctl_adoption_cutoff_on(a);
	ctl_adoption_cutoff_on(b);
	world_run(&w, 1000);
	cr_assert_eq(n_known, 2);
	cr_assert_eq(own[0].marker_s, own[1].marker_s);
	cr_assert_eq(fake_api_count(w.api, &kobj_configmap, NS), 1);
	fake_api_hold_watches(w.api, false);
	world_run(&w, 1000);
	cr_assert_eq(n_known, 2); /* told once */
	ctl_adoption_cutoff_free(a);
	ctl_adoption_cutoff_free(b);
}

Test(ctl_adoption_cutoff, nothing_is_known_before_it_is_turned_on)
{
	struct ctl_adoption_cutoff *s;

	world_boot(&w, "");
	fake_api_delete(w.api, &kobj_configmap, NS, CTL_ADOPTION_CUTOFF_CONFIGMAP);
	world_run(&w, 100);
	s = another(&own[0]);
	world_run(&w, 60000);
	cr_assert(!caches_adoption_cutoff_known(&own[0]));
	cr_assert_null(marker());
	ctl_adoption_cutoff_on(s);
	ctl_adoption_cutoff_off(s); /* no leader any more: the call under way is cancelled */
	world_run(&w, 60000);
	cr_assert(!caches_adoption_cutoff_known(&own[0]));
	ctl_adoption_cutoff_on(s);
	world_run(&w, 1000);
	cr_assert(caches_adoption_cutoff_known(&own[0]));
	ctl_adoption_cutoff_free(s);
}

static void count_refused(enum log_level level, const char *line, void *arg)
{
	if (strstr(line, "can be neither read nor created"))
		++*(unsigned *)arg;
}

Test(ctl_adoption_cutoff, while_the_API_refuses_it_waits_longer_and_longer)
{
	static unsigned refused;
	struct ctl_adoption_cutoff *s;

	world_boot(&w, "");
	fake_api_delete(w.api, &kobj_configmap, NS, CTL_ADOPTION_CUTOFF_CONFIGMAP);
	world_run(&w, 100);
	s = another(&own[1]);
	log_capture(count_refused, &refused);
	fake_transport_fault(w.life->f, FAKE_FAULT_500, 1);
	ctl_adoption_cutoff_on(s);
	world_run(&w, 10 * 60 * 1000);
	fake_transport_fault(w.life->f, FAKE_FAULT_500, 0);
	log_capture(NULL, NULL);
	cr_expect_geq(refused, 20, "%u", refused); /* every 30 s at the latest */
	cr_expect_leq(refused, 32, "%u", refused); /* and doubling until then */
	world_run(&w, 31000);
	cr_expect(caches_adoption_cutoff_known(&own[0]));
	ctl_adoption_cutoff_free(s);
}

Test(ctl_adoption_cutoff, one_deleted_while_running_is_not_made_again_and_the_time_stays)
{
	int64_t first;

	world_boot(&w, "");
	first = caches_adoption_cutoff_s(w.life->env.caches);
	clock_fake_advance(5000);
	fake_api_delete(w.api, &kobj_configmap, NS, CTL_ADOPTION_CUTOFF_CONFIGMAP);
	world_run(&w, 60000);
	cr_assert_null(marker());
	cr_assert_eq(caches_adoption_cutoff_s(w.life->env.caches), first);
	/* nor does one that another client makes later count */
	fake_api_put(w.api, &kobj_configmap, NS,
		"{\"metadata\":{\"name\":\"" CTL_ADOPTION_CUTOFF_CONFIGMAP "\"}}");
	world_run(&w, 1000);
	cr_assert_eq(caches_adoption_cutoff_s(w.life->env.caches), first);
	ctl_adoption_cutoff_off(w.life->since);
	ctl_adoption_cutoff_on(w.life->since); /* leader again */
	world_run(&w, 1000);
	cr_assert_eq(caches_adoption_cutoff_s(w.life->env.caches), first);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_adoption_cutoff, an_api_that_refuses_is_asked_again_ever_more_rarely)
{
	struct fake_expect *e;
	struct ctl_adoption_cutoff *s;

	world_boot(&w, "");
	fake_api_delete(w.api, &kobj_configmap, NS, CTL_ADOPTION_CUTOFF_CONFIGMAP);
	world_run(&w, 100);
	fake_transport_forget(w.life->f);
	e = fake_transport_expect(w.life->f, "POST", PATH "*");
	fake_expect_times(e, 20);
	fake_expect_answer(
		e, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no rights\"}");
	s = another(&own[0]);
	ctl_adoption_cutoff_on(s);
	world_run(&w, 5 * 60000);
	cr_assert(!caches_adoption_cutoff_known(&own[0]));
	cr_assert_leq(fake_transport_requests(w.life->f), 40);
	world_run(&w, 20 * 60000);
	cr_assert(caches_adoption_cutoff_known(&own[0]));
	ctl_adoption_cutoff_free(s);
}

Test(ctl_adoption_cutoff, any_fault_ends_the_same)
{
	for (int fault = FAKE_FAULT_409; fault <= FAKE_FAULT_SILENCE; fault++) {
		struct ctl_adoption_cutoff *s;

		world_stop(&w);
		world_start(&w);
		world_boot(&w, "");
		fake_api_delete(w.api, &kobj_configmap, NS, CTL_ADOPTION_CUTOFF_CONFIGMAP);
		world_run(&w, 100);
		fake_transport_fault(w.life->f, (enum fake_fault)fault, 2);
		s = another(&own[0]);
		ctl_adoption_cutoff_on(s);
		world_run(&w, 10 * 60000);
		cr_assert(caches_adoption_cutoff_known(&own[0]), "fault %d", fault);
		ctl_adoption_cutoff_free(s);
	}
}

static void adopt_before(const char *text)
{
	cleanup_free char *patch = xasprintf(
		"{\"metadata\":{\"annotations\":{\"" MODEL_ADOPT_BEFORE_ANNOTATION "\":%s}}}",
		text);

	fake_api_merge(w.api, &kobj_cluster, NS, "tec", patch);
	world_run(&w, 1000);
}

Test(ctl_adoption_cutoff, an_administrator_may_set_a_later_time_that_has_passed)
{
	static const struct {
		const char *text;
		int64_t s; /* beyond the start; 0: it does not count */
	} t[] = {
		{"\"2027-01-15T09:00:00Z\"", 3600},
		{"\"2027-01-15T10:00:00+01:00\"", 3600},
		{"\"2027-01-15T08:59:59.5Z\"", 3599},
		{"\"2027-01-15T12:00:00Z\"", 0}, /* in the future */
		{"\"2026-01-01T00:00:00Z\"", 0}, /* before the marker */
		{"\"2027-01-15\"", 0},
		{"\"9 o'clock\"", 0},
		{"\"\"", 0},
		{"null", 0},
	};
	int64_t marker_s;

	world_cluster(&w, "tec", "{}");
	world_boot(&w, "");
	marker_s = caches_adoption_cutoff_s(w.life->env.caches);
	clock_fake_advance(2 * 3600 * 1000);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		adopt_before(t[i].text);
		cr_assert_eq(caches_adoption_cutoff_s(w.life->env.caches),
			t[i].s ? START + t[i].s : marker_s, "%s", t[i].text);
	}
}

Test(ctl_adoption_cutoff, without_a_marker_nothing_is_older)
{
	struct caches caches;

	world_cluster(&w, "tec", "{}");
	world_boot(&w, "");
	clock_fake_advance(2 * 3600 * 1000);
	adopt_before("\"2027-01-15T09:00:00Z\"");
	caches = w.life->caches;
	caches.marker_s = INT64_MIN;
	cr_assert_eq(caches_adoption_cutoff_s(&caches), INT64_MIN);
}
