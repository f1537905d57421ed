/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/k8s/watch.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "fake/transport.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"

#define LIST_PATH "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/ns/machines?"

static struct loop *loop;
static struct fake_transport *fake;
static struct fake_api *api;
static struct k8s_cache *cache;
static struct k8s_watch *watch;
static unsigned warnings, changes;
static struct kobj *(*extract_hook)(struct json_object *o, struct err *err);

static struct kobj *extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct kobj k = {0};

	if (extract_hook)
		return extract_hook(o, err);
	if (json_get_bool(o, "spec/bad", false)) {
		err_set(err, ERR_INVALID, "spec.bad");
		return NULL;
	}
	if (json_get_bool(o, "spec/boring", false) || kobj_meta_read(&p, o, &k, err) < 0)
		return NULL;
	return kobj_pack_finish(&p, &k, sizeof(k));
}

static void on_log(enum log_level level, const char *line, void *arg)
{
	(void)arg;
	(void)line;
	warnings += level >= LOG_WARN;
}

static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	(void)arg;
	(void)was;
	(void)now;
	changes++;
}

static const struct k8s_cache_type type = {extract, sizeof(struct kobj), NULL, 0};

static void setup(void)
{
	clock_fake_start(1000000, 1767323045);
	log_capture(on_log, NULL);
	loop = loop_new();
	fake = fake_transport_new(loop);
	cache = k8s_cache_new(&type);
	k8s_cache_listen(cache, on_change, NULL);
	watch = k8s_watch_new(loop, fake_transport_seam(fake), cache,
		&(struct k8s_watch_conf){.gvk = &kobj_machine, .ns = "ns"});
}

static void setup_api(void)
{
	setup();
	api = fake_api_new(loop);
	fake_transport_set_api(fake, api);
}

static void teardown(void)
{
	k8s_watch_free(watch);
	k8s_cache_free(cache);
	fake_transport_free(fake);
	if (api)
		fake_api_free(api);
	loop_free(loop);
	metric_reset_all();
	log_capture(NULL, NULL);
	clock_fake_stop();
}

TestSuite(k8s_watch, .init = setup, .fini = teardown);
TestSuite(k8s_watch_api, .init = setup_api, .fini = teardown);

#define ITEM(name, rv)                                                                             \
	"{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" rv    \
	"\"}}"
#define LIST(rv, items)     "{\"metadata\":{\"resourceVersion\":\"" rv "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define ERROR_EVENT(code)                                                                          \
	EVENT("ERROR", "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"no\"}")
#define BOOKMARK(rv) EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" rv "\"}}")

/* Up to the open stream of a list with one item at rv 10. */
static struct fake_expect *start_watching(void)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500"), *w;

	fake_expect_answer(e, 200, LIST("10", ITEM("a", "5")));
	w = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&watch=true*");
	k8s_watch_start(watch);
	loop_drain(loop);
	cr_assert(fake_expect_open(w));
	cr_assert_eq(k8s_watch_state(watch), K8S_WATCH_WATCHING);
	return w;
}

Test(k8s_watch, a_list_fills_the_cache_and_a_watch_goes_on_from_it)
{
	struct fake_expect *w = start_watching();
	const struct fake_request *r = fake_expect_request(w);

	cr_expect(k8s_cache_filled(cache));
	cr_expect_str_eq(k8s_cache_find(cache, "a")->rv, "5");
	cr_expect(strstr(r->path, "allowWatchBookmarks=true"));
	cr_expect(strstr(r->path, "timeoutSeconds="));
	cr_expect_str_eq(r->verb, "watch");
	cr_expect_eq(r->silence_ms, 120000);
	cr_expect_eq(r->deadline_ms, 0);
	fake_stream_send(w, EVENT("ADDED", ITEM("b", "11")) EVENT("MODIFIED", ITEM("a", "12")));
	fake_stream_send(w, EVENT("DELETED", ITEM("b", "13")));
	loop_drain(loop);
	cr_expect_null(k8s_cache_find(cache, "b"));
	cr_expect_str_eq(k8s_cache_find(cache, "a")->rv, "12");
	cr_expect_eq(changes, 4);
	cr_expect_eq(fake_transport_requests(fake), 2);
	cr_expect_eq(warnings, 0);
}

Test(k8s_watch, one_that_must_be_fresh_notices_a_dead_connection_in_time)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500"), *w;

	k8s_watch_free(watch);
	watch = k8s_watch_new(loop, fake_transport_seam(fake), cache,
		&(struct k8s_watch_conf){.gvk = &kobj_machine, .ns = "ns", .fresh_s = 20});
	fake_expect_answer(e, 200, LIST("10", ITEM("a", "5")));
	w = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&watch=true*");
	k8s_watch_start(watch);
	loop_drain(loop);
	cr_expect(strstr(fake_expect_request(w)->path, "timeoutSeconds=20"));
	/* Nothing comes, and nobody ends it: it is dead. */
	w = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&watch=true*");
	loop_advance(loop, 24000);
	cr_expect_str_eq(
		strstr(fake_expect_request(w)->path, "timeoutSeconds"), "timeoutSeconds=2");
	cr_expect(*k8s_watch_problem(watch));
}

Test(k8s_watch, it_says_when_it_last_heard_and_why_not_since)
{
	struct fake_expect *w = start_watching(), *e;
	int64_t listed_s = k8s_watch_seen_s(watch);

	cr_expect_eq(listed_s, clock_wall_s());
	loop_advance(loop, 30000);
	cr_expect_eq(k8s_watch_seen_s(watch), listed_s, "silence says nothing");
	fake_stream_send(w, BOOKMARK("12"));
	loop_drain(loop);
	cr_expect_eq(k8s_watch_seen_s(watch), listed_s + 30);
	cr_expect_str_empty(k8s_watch_problem(watch));
	fake_stream_error(w, ERR_TRANSIENT, "the cable is out");
	loop_drain(loop);
	cr_expect(strstr(k8s_watch_problem(watch), "cable"));
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=12&*");
	loop_advance(loop, 5000);
	cr_expect_str_not_empty(k8s_watch_problem(watch), "a connection is not an answer");
	fake_stream_send(e, BOOKMARK("13"));
	loop_drain(loop);
	cr_expect_str_empty(k8s_watch_problem(watch));
}

/* Nothing comes of a quiet resource until the next bookmark. */
Test(k8s_watch, a_short_stream_shows_that_the_server_is_back)
{
	struct fake_expect *w = start_watching(), *e, *next;

	loop_advance(loop, 2000);
	fake_stream_error(w, ERR_TRANSIENT, "the cable is out");
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&*");
	loop_advance(loop, 1300);
	cr_assert(fake_expect_open(e));
	cr_expect(strstr(k8s_watch_problem(watch), "cable"));
	loop_advance(loop, 2000);
	next = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&*");
	fake_stream_end(e);
	loop_drain(loop);
	cr_assert(fake_expect_open(next));
	cr_expect_str_eq(
		strstr(fake_expect_request(e)->path, "timeoutSeconds"), "timeoutSeconds=2");
	cr_expect_gt(strlen(strstr(fake_expect_request(next)->path, "timeoutSeconds")),
		strlen("timeoutSeconds=2"));
	cr_expect_str_empty(k8s_watch_problem(watch));
	cr_expect_eq(k8s_watch_seen_s(watch), clock_wall_s());
}

Test(k8s_watch, metrics_show_state_and_events)
{
	struct fake_expect *w = start_watching();
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	fake_stream_send(w, EVENT("ADDED", ITEM("b", "11")) BOOKMARK("12"));
	loop_drain(loop);
	metric_render(&out);
	cr_expect(strstr(
		strbuf_str(&out), "tec_watch_state{resource=\"machines\",state=\"watching\"} 1"));
	cr_expect(strstr(
		strbuf_str(&out), "tec_watch_state{resource=\"machines\",state=\"listing\"} 0"));
	cr_expect(strstr(strbuf_str(&out),
		"tec_watch_events_total{resource=\"machines\",type=\"ADDED\"} 1"));
	cr_expect(strstr(strbuf_str(&out),
		"tec_watch_events_total{resource=\"machines\",type=\"BOOKMARK\"} 1"));
}

Test(k8s_watch, pages_are_followed_and_the_token_is_encoded)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");

	fake_expect_answer(e, 200,
		"{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"a+b/c=\"},\"items\":[" ITEM(
			"a", "1") "]}");
	e = fake_transport_expect(fake, "GET", LIST_PATH "continue=a%2Bb%2Fc%3D&limit=500");
	fake_expect_answer(e, 200,
		"{\"items\":[" ITEM("b", "2") "],\"metadata\":{\"resourceVersion\":\"10\"}}");
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&*");
	fake_transport_pieces(fake, 1);
	k8s_watch_start(watch);
	loop_drain(loop);
	cr_expect_eq(k8s_cache_count(cache), 2);
	cr_expect(fake_expect_open(e));
}

Test(k8s_watch, old_objects_stay_until_the_new_list_is_complete)
{
	struct fake_expect *w = start_watching(), *e;

	fake_stream_send(w, ERROR_EVENT("410"));
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	loop_drain(loop);
	cr_assert(fake_expect_open(e), "410 lists again at once");
	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_LISTING);
	fake_stream_send(
		e, "{\"metadata\":{\"resourceVersion\":\"30\"},\"items\":[" ITEM("b", "29"));
	loop_drain(loop);
	cr_expect_not_null(k8s_cache_find(cache, "a"));
	cr_expect_not_null(k8s_cache_find(cache, "b"));
	fake_stream_send(e, "]}");
	fake_stream_end(e);
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=30&*");
	loop_drain(loop);
	cr_expect(fake_expect_open(e));
	cr_expect_null(k8s_cache_find(cache, "a"));
}

Test(k8s_watch, http_410_lists_anew_too_and_410_again_waits)
{
	struct fake_expect *w = start_watching(), *e;

	loop_advance(loop, 5000);
	fake_stream_end(w);
	for (int i = 0; i < 2; i++) {
		e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=1*");
		fake_expect_answer(e, 410, "{\"kind\":\"Status\",\"code\":410}");
		e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
		fake_expect_answer(e, 200, LIST("11", ""));
	}
	loop_drain(loop);
	cr_expect_eq(fake_transport_count(fake, "list", NULL), 2, "at once the first time");
	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_BACKOFF, "not in a loop");
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=11*");
	loop_advance(loop, 5000);
	cr_expect(fake_expect_open(e));
}

/* An API server that restarts refuses connections for a while, and its cache starts later than the
 * version that is asked for. */
Test(k8s_watch, a_410_behind_other_failures_lists_at_once_too)
{
	struct fake_expect *w = start_watching(), *e, *gone;

	loop_advance(loop, 5000);
	fake_stream_error(w, ERR_TRANSIENT, "reset");
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=1*");
	fake_expect_answer(e, 503, "");
	loop_advance(loop, 1300);
	gone = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=1*");
	fake_expect_answer(gone, 410, "{\"kind\":\"Status\",\"code\":410}");
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	fake_expect_answer(e, 200, LIST("11", ""));
	w = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=11*");
	while (!fake_expect_started(gone))
		loop_advance(loop, 10);
	loop_drain(loop);
	cr_expect_eq(fake_transport_count(fake, "list", NULL), 2, "in the turn of the 410");
	cr_expect(fake_expect_open(w));
	/* The same again, with nothing that lasted in between, waits. */
	fake_stream_send(w, ERROR_EVENT("410"));
	loop_drain(loop);
	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_BACKOFF);
}

Test(k8s_watch, a_closed_stream_resumes_at_once_from_the_last_version)
{
	struct fake_expect *w = start_watching(), *e;

	loop_advance(loop, 1000);
	fake_stream_send(w, EVENT("ADDED", ITEM("b", "11")) BOOKMARK("25"));
	fake_stream_end(w);
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=25&*");
	loop_drain(loop);
	cr_expect(fake_expect_open(e));
	cr_expect_eq(fake_transport_count(fake, "list", NULL), 1);
	cr_expect_eq(warnings, 0, "the usual case is not a warning");
}

Test(k8s_watch, short_streams_never_become_a_busy_loop)
{
	struct fake_expect *w = start_watching(), *e;

	e = fake_transport_expect(fake, "GET", LIST_PATH "*");
	fake_expect_times(e, 0);
	fake_expect_answer(
		e, 200, LIST("10", "")); /* as a watch: an event without type, as a list: fine */
	fake_stream_end(w);
	loop_drain(loop);
	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_BACKOFF);
	loop_advance(loop, 990);
	cr_expect_eq(fake_transport_requests(fake), 2, "a second at least");
	fake_transport_forget(fake);
	loop_advance(loop, 3600000);
	cr_expect_lt(fake_transport_requests(fake), 2 * 3600 / 25);
}

Test(k8s_watch, a_dead_server_is_asked_ever_more_rarely)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", "*");
	size_t last = 0;

	fake_expect_times(e, 0);
	fake_expect_fail(e, ERR_TRANSIENT, "refused");
	k8s_watch_start(watch);
	loop_drain(loop);
	cr_expect_eq(fake_transport_requests(fake), 1);
	loop_advance(loop, 790);
	cr_expect_eq(fake_transport_requests(fake), 1);
	loop_advance(loop, 410);
	cr_expect_eq(fake_transport_requests(fake), 2);
	loop_advance(loop, 600000);
	last = fake_transport_requests(fake);
	loop_advance(loop, 600000);
	cr_expect_geq(fake_transport_requests(fake) - last, 20);
	cr_expect_leq(fake_transport_requests(fake) - last, 23);
	cr_expect_eq(warnings, 1, "one line, not one a try");
	cr_expect_not(k8s_cache_filled(cache));
}

Test(k8s_watch, backoff_is_forgotten_once_a_stream_has_lived)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500"), *w;

	fake_expect_times(e, 5);
	fake_expect_answer(e, 500, "");
	k8s_watch_start(watch);
	loop_advance(loop, 20000);
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	fake_expect_answer(e, 200, LIST("10", ""));
	w = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&*");
	loop_advance(loop, 60000);
	cr_assert(fake_expect_open(w));
	fake_stream_error(w, ERR_TRANSIENT, "reset");
	w = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&*");
	loop_advance(loop, 1300);
	cr_expect(fake_expect_open(w), "the first step of the backoff again");
}

Test(k8s_watch, retry_after_is_honoured)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");

	fake_expect_retry_after(e, 17000);
	fake_expect_answer(e, 429, "");
	k8s_watch_start(watch);
	loop_advance(loop, 16900);
	cr_expect_eq(fake_transport_requests(fake), 1);
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	loop_advance(loop, 200);
	cr_expect(fake_expect_open(e));
}

Test(k8s_watch, a_silent_stream_is_given_up_and_resumed)
{
	struct fake_expect *w = start_watching(), *e;

	for (int i = 0; i < 3; i++) {
		loop_advance(loop, 119000);
		fake_stream_send(w, BOOKMARK("12"));
		loop_drain(loop);
	}
	cr_expect(fake_expect_open(w), "bookmarks keep it");
	fake_stream_send(w, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"half\"");
	loop_advance(loop, 120010);
	cr_expect_not(fake_expect_open(w));
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=12&*");
	loop_advance(loop, 1300);
	cr_expect(fake_expect_open(e));
	cr_expect_null(k8s_cache_find(cache, "half"));
}

Test(k8s_watch, other_errors_in_the_stream_wait_and_resume)
{
	struct fake_expect *w = start_watching(), *e;

	loop_advance(loop, 2000);
	fake_stream_send(w, ERROR_EVENT("500"));
	loop_drain(loop);

	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_BACKOFF);
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&*");
	loop_advance(loop, 1300);
	cr_expect(fake_expect_open(e));
	cr_expect_eq(warnings, 1);
}

Test(k8s_watch, a_version_nobody_takes_ends_in_a_list)
{
	struct fake_expect *w = start_watching(), *e;

	fake_stream_error(w, ERR_TRANSIENT, "reset");
	e = fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&*");
	fake_expect_times(e, 3);
	fake_expect_answer(
		e, 504, "{\"reason\":\"Timeout\",\"message\":\"Too large resource version\"}");
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	loop_advance(loop, 20000);
	cr_expect(fake_expect_open(e));
}

Test(k8s_watch, a_bad_object_is_absent_and_logged_once)
{
	struct fake_expect *w = start_watching();
	static const char bad[] = EVENT("MODIFIED",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\",\"resourceVersion\":\"20\"},\"spec\":{\"bad\":true}}");

	fake_stream_send(w, bad);
	fake_stream_send(w, EVENT("ADDED", ITEM("b", "21")));
	loop_drain(loop);
	cr_expect_null(k8s_cache_find(cache, "a"));
	cr_expect_not_null(k8s_cache_find(cache, "b"), "it does not stop the others");
	cr_expect_eq(warnings, 1);
	fake_stream_send(w, bad);
	loop_drain(loop);
	cr_expect_eq(warnings, 1);
	fake_stream_send(w, EVENT("MODIFIED", ITEM("a", "22")));
	loop_drain(loop);
	cr_expect_not_null(k8s_cache_find(cache, "a"), "once repaired it is back");
}

Test(k8s_watch, an_uninteresting_object_stays_out_without_a_word)
{
	struct fake_expect *w = start_watching();

	fake_stream_send(w,
		EVENT("MODIFIED",
			"{\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\",\"resourceVersion\":\"20\"},\"spec\":{\"boring\":true}}"));
	loop_drain(loop);
	cr_expect_null(k8s_cache_find(cache, "a"));
	cr_expect_eq(warnings, 0);
}

Test(k8s_watch, bad_items_of_a_list_do_not_stop_it)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");

	fake_expect_answer(e, 200,
		LIST("10",
			ITEM("a", "1") ",{\"metadata\":{\"name\":\"x\\u0000\"}},{\"metadata\":{\"name\":\"y\"}},{\"a\":1,\"a\":2}," ITEM(
				"b", "2")));
	fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10*");
	k8s_watch_start(watch);
	loop_drain(loop);
	cr_expect_eq(k8s_cache_count(cache), 2);
	cr_expect_eq(warnings, 3);
}

Test(k8s_watch, an_escaped_nul_in_somebodys_data_is_no_damage)
{
	struct fake_expect *w = start_watching();

	fake_stream_send(w,
		EVENT("ADDED",
			"{\"metadata\":{\"name\":\"b\",\"uid\":\"u-b\",\"resourceVersion\":\"20\"},\"data\":{\"x\":\"\\u0006\\u0000\"}}"));
	loop_drain(loop);
	cr_expect_not_null(k8s_cache_find(cache, "b"));
	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_WATCHING);
	cr_expect_eq(warnings, 0);
}

Test(k8s_watch, a_malformed_event_leads_to_a_list)
{
	struct fake_expect *w = start_watching(), *e;

	loop_advance(loop, 2000);
	fake_stream_send(w, "{\"type\":\"ADDED\",\"type\":\"X\",\"object\":{}}\n");
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	loop_advance(loop, 1300);
	cr_expect(fake_expect_open(e));
	cr_expect_not_null(k8s_cache_find(cache, "a"));
}

Test(k8s_watch, a_cut_list_is_begun_anew_and_removes_nothing)
{
	struct fake_expect *w = start_watching(), *e;

	fake_stream_send(w, ERROR_EVENT("410"));
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	loop_drain(loop);
	fake_stream_send(e, "{\"metadata\":{\"resourceVersion\":\"30\"},\"items\":[");
	fake_stream_end(e);
	loop_drain(loop);
	cr_expect_not_null(k8s_cache_find(cache, "a"));
	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_BACKOFF);
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	fake_expect_answer(e, 200, LIST("31", ITEM("c", "31")));
	fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=31*");
	loop_advance(loop, 3000);
	cr_expect_null(k8s_cache_find(cache, "a"));
	cr_expect_eq(k8s_cache_count(cache), 1);
}

Test(k8s_watch, a_missing_kind_is_waited_for)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");

	fake_expect_times(e, 0);
	fake_expect_answer(e, 404, "404 page not found\n");
	k8s_watch_start(watch);
	loop_advance(loop, 600000);
	cr_expect_leq(fake_transport_requests(fake), 30);
	cr_expect_eq(warnings, 1);
	cr_expect_not(k8s_cache_filled(cache));
}

static void stop_it(void *arg, const struct kobj *was, const struct kobj *now)
{
	(void)arg;
	(void)was;
	if (now && str_eq(now->name, "stop"))
		k8s_watch_stop(watch);
}

Test(k8s_watch, it_can_be_stopped_and_started_anytime)
{
	struct fake_expect *w = start_watching(), *e;

	k8s_watch_stop(watch);
	cr_expect_eq(fake_transport_in_flight(fake), 0);
	cr_expect_not(fake_expect_open(w));
	cr_expect_not_null(k8s_cache_find(cache, "a"), "the cache keeps what it has");
	k8s_watch_stop(watch);
	loop_advance(loop, 100000);
	k8s_cache_listen(cache, stop_it, NULL);
	k8s_watch_start(watch);
	e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	fake_expect_answer(e, 200, LIST("40", ITEM("stop", "39") "," ITEM("after", "40")));
	loop_drain(loop);
	cr_expect_eq(k8s_watch_state(watch), K8S_WATCH_STOPPED, "even by a listener");
	cr_expect_null(k8s_cache_find(cache, "after"));
	cr_expect_eq(fake_transport_in_flight(fake), 0);
	loop_advance(loop, 100000);
	cr_expect_eq(fake_transport_requests(fake), 3);
}

static unsigned states_seen;

static void on_state(void *arg)
{
	states_seen |= 1u << k8s_watch_state(arg);
}

Test(k8s_watch, state_changes_are_told)
{
	k8s_watch_on_state(watch, on_state, watch);
	start_watching();
	cr_expect_eq(states_seen, 1u << K8S_WATCH_LISTING | 1u << K8S_WATCH_WATCHING);
	k8s_watch_stop(watch);
	cr_expect(states_seen & 1u << K8S_WATCH_STOPPED);
}

static const char *secret_text;

static struct kobj *extract_secret(struct json_object *o, struct err *err)
{
	(void)err;
	/* json-c's own copy, to be looked at after it was put would be a use after free: only its
	 * content now */
	secret_text = json_get_str(o, "data/root");
	return NULL;
}

Test(k8s_watch, selectors_and_secrets)
{
	static const struct k8s_cache_type secrets = {extract_secret, sizeof(struct kobj), NULL, 0};
	struct k8s_cache *c = k8s_cache_new(&secrets);
	struct k8s_watch *w = k8s_watch_new(loop, fake_transport_seam(fake), c,
		&(struct k8s_watch_conf){.gvk = &kobj_secret,
			.ns = "ns",
			.field_selector = "metadata.name=a",
			.label_selector = "x=y",
			.secret = true});
	struct fake_expect *e = fake_transport_expect(fake, "GET",
		"/api/v1/namespaces/ns/secrets?fieldSelector=metadata.name%3Da&labelSelector=x%3Dy&limit=500");

	fake_expect_answer(e, 200,
		LIST("1", "{\"metadata\":{\"name\":\"a\"},\"data\":{\"root\":\"c2VjcmV0\"}}"));
	fake_transport_expect(fake, "GET",
		"/api/v1/namespaces/ns/secrets?fieldSelector=metadata.name%3Da&labelSelector=x%3Dy&resourceVersion=1*");
	k8s_watch_start(w);
	loop_drain(loop);
	cr_expect_not_null(secret_text);
	k8s_watch_free(w);
	k8s_cache_free(c);
}

/* ---- objects that cannot be read */

/* An item of more than 2 MiB, its metadata behind what makes it so large. */
static char *large(const char *name, const char *rv, const char *more)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	strbuf_adds(&s, "{\"spec\":\"");
	for (int i = 0; i < 420000; i++)
		strbuf_adds(&s, "\\u0001");
	strbuf_addf(&s,
		"\",\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"%s\"%s}}",
		name, name, rv, more);
	return xstrdup(strbuf_str(&s));
}

static void send_large(struct fake_expect *w, const char *type, const char *name, const char *rv)
{
	cleanup_free char *item = large(name, rv, "");
	cleanup_free char *event = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, item);

	fake_stream_send(w, event);
	loop_drain(loop);
}

Test(k8s_watch, an_object_too_large_is_there_and_unreadable_in_a_list)
{
	struct fake_expect *e = fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	cleanup_free char *item = large("b", "6", "");
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_strbuf struct strbuf metrics = STRBUF_INIT;
	const struct kobj *b;

	strbuf_addf(&text, "{\"items\":[%s,%s,%s],\"metadata\":{\"resourceVersion\":\"10\"}}",
		ITEM("a", "5"), item, ITEM("c", "7"));
	fake_expect_answer(e, 200, strbuf_str(&text));
	fake_transport_expect(fake, "GET", LIST_PATH "resourceVersion=10&watch=true*");
	k8s_watch_start(watch);
	loop_drain(loop);
	cr_expect(k8s_cache_filled(cache), "one object does not stop the others");
	cr_expect_eq(k8s_cache_count(cache), 3);
	b = k8s_cache_find(cache, "b");
	cr_assert_not_null(b);
	cr_expect(b->unreadable && !b->deleting);
	cr_expect_str_eq(b->uid, "u-b");
	cr_expect_str_eq(b->rv, "6");
	cr_expect_not(k8s_cache_find(cache, "c")->unreadable);
	cr_expect_eq(k8s_cache_unreadable(cache), 1);
	cr_expect_eq(warnings, 1);
	metric_render(&metrics);
	cr_expect(strstr(strbuf_str(&metrics), "tec_watch_unreadable{resource=\"machines\"} 1"));
}

Test(k8s_watch, an_object_that_grows_turns_unreadable_and_back)
{
	struct fake_expect *w = start_watching();

	send_large(w, "MODIFIED", "a", "11");
	cr_assert(k8s_cache_find(cache, "a")->unreadable);
	cr_expect_str_eq(k8s_cache_find(cache, "a")->rv, "11");
	send_large(w, "MODIFIED", "a", "11");
	cr_expect_eq(warnings, 1, "logged once per version");
	send_large(w, "MODIFIED", "a", "12");
	cr_expect_eq(warnings, 2);
	fake_stream_send(w, EVENT("MODIFIED", ITEM("a", "13")));
	loop_drain(loop);
	cr_expect_not(k8s_cache_find(cache, "a")->unreadable);
	cr_expect_eq(k8s_cache_unreadable(cache), 0);
	send_large(w, "ADDED", "b", "14");
	cr_assert_not_null(k8s_cache_find(cache, "b"));
	send_large(w, "DELETED", "b", "15");
	cr_expect_null(k8s_cache_find(cache, "b"));
	cr_expect_eq(fake_transport_requests(fake), 2, "the stream went on");
}

/* What has more tokens than are parsed is there too. */
Test(k8s_watch, an_object_that_is_not_parsed_is_unreadable)
{
	struct fake_expect *w = start_watching();
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	strbuf_adds(&s,
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\",\"uid\":\"u-b\","
		"\"resourceVersion\":\"11\"},\"spec\":[0");
	for (int i = 0; i < 250000; i++)
		strbuf_adds(&s, ",0");
	strbuf_adds(&s, "]}}\n");
	fake_stream_send(w, strbuf_str(&s));
	loop_drain(loop);
	cr_assert_not_null(k8s_cache_find(cache, "b"));
	cr_expect(k8s_cache_find(cache, "b")->unreadable);
	cr_expect(fake_expect_open(w));
}

Test(k8s_watch, a_large_event_of_nothing_known_leads_to_a_list)
{
	struct fake_expect *w = start_watching();

	fake_transport_expect(fake, "GET", LIST_PATH "limit=500");
	send_large(w, "BOOKMARK", "a", "11");
	loop_advance(loop, 2000);
	cr_expect_not(fake_expect_open(w));
	cr_expect_eq(fake_transport_requests(fake), 3);
	cr_expect_not(k8s_cache_find(cache, "a")->unreadable);
}

/* Metadata that is not ours does not count: this one stays readable. */
Test(k8s_watch, an_object_grown_by_foreign_annotations_is_read)
{
	struct fake_expect *w = start_watching();
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	strbuf_adds(&s, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"annotations\":{");
	for (int i = 0; i < 50; i++) {
		strbuf_addf(&s, "%s\"x/%d\":\"", i ? "," : "", i);
		for (int k = 0; k < 10000; k++)
			strbuf_adds(&s, "\\u003c");
		strbuf_addc(&s, '"');
	}
	strbuf_adds(&s, "},\"name\":\"b\",\"uid\":\"u-b\",\"resourceVersion\":\"11\"}}}\n");
	fake_stream_send(w, strbuf_str(&s));
	loop_drain(loop);
	cr_assert_not_null(k8s_cache_find(cache, "b"));
	cr_expect_not(k8s_cache_find(cache, "b")->unreadable);
}

/* ---- against the in-memory API */

static void put(const char *name, int n)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"n\":%d}}", name, n);

	fake_api_put(api, &kobj_machine, "ns", text);
}

static unsigned wrong;

static void compare(void *arg, const struct kobj *o)
{
	struct json_object *there = fake_api_get(api, &kobj_machine, "ns", o->name);

	(void)arg;
	wrong += !there || !str_eq(json_get_str(there, "metadata/resourceVersion"), o->rv);
}

static bool equal(void)
{
	wrong = 0;
	k8s_cache_each(cache, compare, NULL);
	return wrong == 0 && k8s_cache_count(cache) == fake_api_count(api, &kobj_machine, "ns");
}

Test(k8s_watch_api, the_cache_follows_and_an_idle_watch_asks_nothing)
{
	char name[16];

	for (int i = 0; i < 1200; i++) {
		snprintf(name, sizeof(name), "m-%d", i);
		put(name, i);
	}
	k8s_watch_start(watch);
	loop_drain(loop);
	cr_expect(k8s_cache_filled(cache));
	cr_expect_eq(
		fake_transport_count(fake, "list", "machines"), 1, "without pages in the process");
	cr_expect(equal());
	fake_transport_forget(fake);
	put("m-7", 99);
	put("m-8", 8);
	fake_api_delete(api, &kobj_machine, "ns", "m-9");
	loop_drain(loop);
	cr_expect(equal());
	cr_expect_eq(fake_transport_requests(fake), 0);
	loop_advance(loop, 3600000);
	cr_expect_leq(fake_transport_requests(fake), 12, "only the renewal of streams");
	cr_expect_geq(fake_transport_requests(fake), 6);
	cr_expect_eq(fake_transport_count(fake, "list", NULL), 0);
	cr_expect_eq(warnings, 0);
}

static void churn(unsigned rounds, unsigned seed)
{
	char name[16];

	for (unsigned i = 0; i < rounds; i++) {
		seed = seed * 1664525u + 1013904223u;
		snprintf(name, sizeof(name), "m-%u", (seed >> 10) % 40);
		if ((seed >> 20) % 4 == 0 && fake_api_get(api, &kobj_machine, "ns", name))
			fake_api_delete(api, &kobj_machine, "ns", name);
		else
			put(name, (int)i);
		if ((seed >> 24) % 64 == 0)
			fake_api_forget_history(api);
		if ((seed >> 16) % 32 == 0)
			fake_api_drop_watches(api);
		loop_advance(loop, (seed >> 8) % 700);
	}
}

Test(k8s_watch_api, every_fault_leaves_the_cache_equal_in_the_end)
{
	fake_transport_pieces(fake, 7);
	k8s_watch_start(watch);
	for (int fault = FAKE_FAULT_410; fault <= FAKE_FAULT_SILENCE; fault++) {
		for (unsigned n = 1; n < 4; n++) {
			fake_transport_fault(fake, (enum fake_fault)fault, n + 1);
			churn(150, (unsigned)fault * 10 + n);
			fake_transport_fault(fake, (enum fake_fault)fault, 0);
			loop_advance(loop, 400000);
			cr_expect(equal(), "fault %d every %u", fault, n + 1);
		}
	}
}

Test(k8s_watch_api, a_missing_crd_is_found_when_it_comes)
{
	fake_api_hide(api, &kobj_machine, true);
	k8s_watch_start(watch);
	loop_advance(loop, 200000);
	cr_expect_not(k8s_cache_filled(cache));
	fake_api_hide(api, &kobj_machine, false);
	put("a", 1);
	loop_advance(loop, 31000);
	cr_expect(equal());
}

Test(k8s_watch_api, a_wall_clock_jump_means_nothing)
{
	k8s_watch_start(watch);
	loop_drain(loop);
	fake_transport_forget(fake);
	clock_fake_set_wall(1);
	loop_advance(loop, 1000);
	clock_fake_set_wall(4000000000);
	put("a", 1);
	loop_advance(loop, 1000);
	cr_expect_eq(fake_transport_requests(fake), 0);
	cr_expect(equal());
}
