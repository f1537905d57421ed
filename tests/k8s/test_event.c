/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/k8s/event.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "fake/transport.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/utf8.h"
#include "tec/kobj/key.h"

static struct loop *loop;
static struct fake_transport *fake;
static struct fake_api *api;
static struct k8s_events *events;
static unsigned warnings;
static struct kobj machine = {.name = "machine-1", .uid = "u-1", .rv = "5"};

static void on_log(enum log_level level, const char *line, void *arg)
{
	(void)line;
	(void)arg;
	warnings += level >= LOG_WARN;
}

static void setup(void)
{
	clock_fake_start(1000000, 1767323045);
	log_capture(on_log, NULL);
	loop = loop_new();
	api = fake_api_new(loop);
	fake = fake_transport_new(loop);
	fake_transport_set_api(fake, api);
	events = k8s_events_new(fake_transport_seam(fake), "ns",
		"trusted-execution-clusters.io/tec-operator", "pod-1");
}

static void teardown(void)
{
	k8s_events_free(events);
	fake_transport_free(fake);
	fake_api_free(api);
	loop_free(loop);
	metric_reset_all();
	log_capture(NULL, NULL);
	clock_fake_stop();
}

TestSuite(k8s_event, .init = setup, .fini = teardown);

static void post(const struct kobj *about, const char *note)
{
	k8s_events_post(
		events, &kobj_machine, about, K8S_EVENT_WARNING, "KeyLost", "MakeKey", "%s", note);
}

Test(k8s_event, an_event_says_who_what_and_about_whom)
{
	cleanup_json struct json_object *o = NULL;
	const char *name;

	post(&machine, "the key is gone");
	cr_expect_eq(fake_transport_requests(fake), 1);
	o = fake_request_json(fake_transport_last(fake));
	name = json_get_str(o, "metadata/name");
	cr_expect(str_starts(name, "machine-1."));
	cr_expect_eq(strlen(name), strlen("machine-1.") + 16);
	cr_expect_str_eq(json_get_str(o, "apiVersion"), "events.k8s.io/v1");
	cr_expect_str_eq(json_get_str(o, "metadata/namespace"), "ns");
	cr_expect_str_eq(json_get_str(o, "eventTime"), "2026-01-02T03:04:05.000000Z");
	cr_expect_str_eq(json_get_str(o, "type"), "Warning");
	cr_expect_str_eq(json_get_str(o, "reason"), "KeyLost");
	cr_expect_str_eq(json_get_str(o, "action"), "MakeKey");
	cr_expect_str_eq(json_get_str(o, "note"), "the key is gone");
	cr_expect_str_eq(json_get_str(o, "reportingController"),
		"trusted-execution-clusters.io/tec-operator");
	cr_expect_str_eq(json_get_str(o, "reportingInstance"), "pod-1");
	cr_expect_str_eq(json_get_str(o, "regarding/kind"), "Machine");
	cr_expect_str_eq(
		json_get_str(o, "regarding/apiVersion"), "trusted-execution-clusters.io/v1alpha1");
	cr_expect_str_eq(json_get_str(o, "regarding/uid"), "u-1");
	cr_expect_null(json_get(o, "series"));
	loop_drain(loop);
	cr_expect_eq(fake_api_count(api, &kobj_event, "ns"), 1);
}

static void post_once(const char *key, const char *note)
{
	k8s_events_post_once(events, &kobj_machine, &machine, K8S_EVENT_WARNING, "KeyLost",
		"MakeKey", key, "%s", note);
	loop_drain(loop);
}

/* Whoever wrote it: another life of the operator, which remembers nothing. */
Test(k8s_event, what_is_posted_once_is_not_written_again)
{
	cleanup_json struct json_object *first = NULL, *again = NULL;

	post_once("a", "gone");
	first = fake_request_json(fake_transport_last(fake));
	post_once("a", "gone");
	cr_expect_eq(fake_transport_requests(fake), 1);
	k8s_events_free(events);
	events = k8s_events_new(fake_transport_seam(fake), "ns", "c", "pod-2");
	post_once("a", "gone");
	again = fake_request_json(fake_transport_last(fake));
	cr_expect_str_eq(
		json_get_str(first, "metadata/name"), json_get_str(again, "metadata/name"));
	cr_expect_eq(fake_api_count(api, &kobj_event, "ns"), 1);
	post_once("b", "another one is gone");
	cr_expect_eq(fake_api_count(api, &kobj_event, "ns"), 2);
	post(&machine, "gone");
	loop_drain(loop);
	cr_expect_eq(fake_api_count(api, &kobj_event, "ns"), 3, "the API has not failed");
	cr_expect_eq(warnings, 0);
}

Test(k8s_event, the_same_again_is_counted_in_the_one_that_is_there)
{
	cleanup_json struct json_object *o = NULL;

	for (int i = 0; i < 4; i++) {
		post(&machine, "gone");
		loop_drain(loop);
		loop_advance(loop, 60000);
	}
	cr_expect_eq(fake_api_count(api, &kobj_event, "ns"), 1);
	cr_expect_eq(fake_transport_count(fake, "create", "events"), 1);
	cr_expect_eq(fake_transport_count(fake, "patch", "events"), 3);
	o = fake_request_json(fake_transport_last(fake));
	cr_expect_eq(json_get_int(o, "series/count", 0), 4);
	cr_expect_str_eq(json_get_str(o, "series/lastObservedTime"), "2026-01-02T03:07:05.000000Z");
	post(&machine, "another note");
	loop_drain(loop);
	cr_expect_eq(fake_api_count(api, &kobj_event, "ns"), 2);
	loop_advance(loop, 600000);
	post(&machine, "gone");
	loop_drain(loop);
	cr_expect_eq(
		fake_api_count(api, &kobj_event, "ns"), 3, "after ten minutes it is a new one");
}

Test(k8s_event, said_while_the_first_is_under_way_it_is_only_counted)
{
	cleanup_json struct json_object *o = NULL;

	for (int i = 0; i < 5; i++)
		post(&machine, "gone");
	cr_expect_eq(fake_transport_requests(fake), 1);
	loop_drain(loop);
	post(&machine, "gone");
	loop_drain(loop);
	o = fake_request_json(fake_transport_last(fake));
	cr_expect_eq(json_get_int(o, "series/count", 0), 6);
}

Test(k8s_event, each_object_has_a_bucket)
{
	struct kobj other = {.name = "machine-2", .uid = "u-2", .rv = "1"};
	char note[32];

	for (int i = 0; i < 100; i++) {
		snprintf(note, sizeof(note), "note %d", i);
		post(&machine, note);
		loop_drain(loop);
	}
	cr_expect_eq(fake_transport_requests(fake), 25);
	post(&other, "another object has its own");
	loop_drain(loop);
	cr_expect_eq(fake_transport_requests(fake), 26);
	loop_advance(loop, 12000 * 3);
	for (int i = 0; i < 100; i++) {
		snprintf(note, sizeof(note), "later %d", i);
		post(&machine, note);
		loop_drain(loop);
	}
	cr_expect_eq(fake_transport_requests(fake), 29, "one back every 12 s");
}

Test(k8s_event, a_failing_api_is_left_alone)
{
	char note[32];
	struct fake_expect *e = fake_transport_expect(fake, "POST", "*");

	fake_expect_times(e, 0);
	fake_expect_answer(e, 500, "");
	for (int i = 0; i < 20; i++) {
		struct kobj o = {.name = "m", .uid = note, .rv = "1"};

		snprintf(note, sizeof(note), "u-%d", i);
		post(&o, "x");
	}
	cr_expect_eq(fake_transport_in_flight(fake), 8, "a bounded number at once");
	loop_drain(loop);
	cr_expect_eq(
		fake_transport_requests(fake), 8, "the rest is dropped, nothing is tried again");
	post(&machine, "y");
	loop_drain(loop);
	cr_expect_eq(fake_transport_requests(fake), 8);
	cr_expect_eq(warnings, 1);
	loop_advance(loop, 30000);
	post(&machine, "y");
	loop_drain(loop);
	cr_expect_eq(fake_transport_requests(fake), 9);
	cr_expect_eq(warnings, 1);
}

Test(k8s_event, an_event_deleted_meanwhile_is_made_anew)
{
	cleanup_free char *name = NULL;
	cleanup_json struct json_object *o = NULL;

	post(&machine, "gone");
	o = fake_request_json(fake_transport_last(fake));
	name = xstrdup(json_get_str(o, "metadata/name"));
	loop_drain(loop);
	fake_api_delete(api, &kobj_event, "ns", name);
	post(&machine, "gone");
	loop_drain(loop);
	post(&machine, "gone");
	loop_drain(loop);
	cr_expect_eq(fake_api_count(api, &kobj_event, "ns"), 1);
}

/* The oldest of them makes room, so what happens to it again is a new Event. */
Test(k8s_event, a_thousand_objects_are_remembered_and_no_more)
{
	enum { REMEMBERED = 1000, MORE = 200, ALL = REMEMBERED + MORE };
	char uid[32];
	struct kobj o = {.name = "m", .uid = uid, .rv = "1"};

	for (int i = 0; i < ALL; i++) {
		snprintf(uid, sizeof(uid), "u-%d", i);
		post(&o, "x");
		loop_drain(loop);
		loop_advance(loop, 1);
	}
	cr_expect_eq(fake_transport_count(fake, "create", "events"), ALL);
	for (int i = ALL - 1; i >= MORE; i--) {
		snprintf(uid, sizeof(uid), "u-%d", i);
		post(&o, "x");
		loop_drain(loop);
	}
	cr_expect_eq(fake_transport_count(fake, "patch", "events"), REMEMBERED);
	cr_expect_eq(fake_transport_count(fake, "create", "events"), ALL);
	snprintf(uid, sizeof(uid), "u-%d", MORE - 1);
	post(&o, "x");
	loop_drain(loop);
	cr_expect_eq(fake_transport_count(fake, "create", "events"), ALL + 1);
	cr_expect_eq(fake_transport_requests(fake), 2 * REMEMBERED + MORE + 1);
	cr_expect_eq(fake_transport_in_flight(fake), 0);
}

Test(k8s_event, notes_and_names_fit_the_api)
{
	cleanup_json struct json_object *o = NULL, *bad = NULL;
	char name[254], note[3000];
	struct kobj about = {.name = name, .uid = "u-9", .rv = "1"};
	const char *text;

	memset(name, 'a', 253);
	name[253] = '\0';
	memset(name + 230, '.', 8);
	for (size_t i = 0; i < sizeof(note); i++)
		note[i] = "\xe2\x82\xac"[i % 3];
	note[sizeof(note) - 1] = note[sizeof(note) - 2] = note[sizeof(note) - 3] = '\0';
	post(&about, note);
	o = fake_request_json(fake_transport_last(fake));
	text = json_get_str(o, "metadata/name");
	cr_expect(kobj_name_valid(text, strlen(text)), "%s", text);
	text = json_get_str(o, "note");
	cr_expect_eq(strlen(text), 1023);
	cr_expect(utf8_valid(text, strlen(text)));
	loop_drain(loop);
	post(&about, "bad \xff byte");
	bad = fake_request_json(fake_transport_last(fake));
	cr_expect_str_eq(json_get_str(bad, "note"), "bad ? byte");
}

Test(k8s_event, freeing_ends_what_is_under_way)
{
	post(&machine, "x");
	post(&machine, "y");
	/* teardown asserts that nothing is left in flight */
}
