/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"
#include "tec/store/gc.h"
#include "tec/apireq/stream.h"

static struct store_objects *s;
static struct strbuf seen;
static unsigned calls; /* of ready */

static void on_ready(void *arg)
{
	calls++;
}

static struct apireq_stream *watch(const char *path, uint64_t rv)
{
	cleanup_free char *with_rv = xasprintf("%s%sresourceVersion=%llu", path,
		strchr(path, '?') ? "&" : "?", (unsigned long long)rv);
	struct apireq_answer refused = {0};
	struct apireq_request_info t;
	struct apireq_stream *w;
	struct err err = ERR_INIT;

	cr_assert_eq(apireq_request_info_parse(with_rv, &t, &err), 0);
	w = apireq_stream_new(s, &t, on_ready, NULL, &refused);
	cr_assert_not_null(w, "%s", refused.body);
	return w;
}

/* Stores what was written, and takes what w has in pieces of about max bytes. */
static enum store_watch_next take(struct apireq_stream *w, size_t max)
{
	struct body out = BODY_INIT;
	enum store_watch_next next;
	struct err err = ERR_INIT;

	cr_assert_eq(store_objects_commit(s, &err), 0, "%s", err.text);
	while ((next = apireq_stream_take(w, &out, max)) == STORE_WATCH_MORE)
		;
	for (char *line = out.data, *end; line && *line; line = end + 1) {
		cleanup_json struct json_object *o = NULL;

		end = strchr(line, '\n');
		cr_assert_not_null(end);
		*end = '\0';
		o = json_of(line);
		strbuf_addf(&seen, "%s %s%s;", json_get_str(o, "type"),
			json_get_str(o, "object/metadata/name")
				? json_get_str(o, "object/metadata/name")
				: "",
			json_get_str(o, "object/reason") ? json_get_str(o, "object/reason") : "");
	}
	body_fini(&out);
	return next;
}

static void expect_seen(const char *text)
{
	cr_expect_str_eq(strbuf_str(&seen), text);
	strbuf_reset(&seen);
	if (seen.data)
		seen.data[0] = '\0';
}

static void put(const struct store_key *key, const char *text)
{
	json_object_put(store_objects_put(s, key, json_of(text)));
}

static void drop(const struct store_key *key)
{
	json_object_put(store_gc_delete(s, key, STORE_POLICY_DEFAULT));
}

static void up(void)
{
	s = things_new(NULL);
}

static void down(void)
{
	store_objects_free(s);
	strbuf_fini(&seen);
}

TestSuite(apireq_stream, .init = up, .fini = down);

Test(apireq_stream, what_was_missed_comes_first_then_each_change)
{
	struct apireq_stream *w, *other;
	uint64_t rv;

	put(A_THING("a"), "{}");
	rv = store_objects_rv(s);
	put(A_THING("b"), "{}");
	put(A_SECRET("s"), "{}");
	drop(A_THING("a"));
	w = watch(THINGS "?watch=1", rv);
	take(w, 1);
	expect_seen("ADDED b;DELETED a;");
	put(A_THING("b"), "{\"spec\":1}");
	cr_expect_eq(apireq_stream_take(w, &(struct body)BODY_INIT, 1), STORE_WATCH_IDLE,
		"not stored yet");
	cr_expect_eq(take(w, 1), STORE_WATCH_IDLE);
	cr_expect_eq(calls, 2);
	expect_seen("MODIFIED b;");
	other = watch(SECRETS "?watch=1", store_objects_rv(s));
	put(A_SECRET("t"), "{}");
	take(w, 1000);
	expect_seen("");
	take(other, 1000);
	expect_seen("ADDED t;");
	apireq_stream_free(w);
	apireq_stream_free(other);
}

Test(apireq_stream, without_a_version_all_there_is_comes_first)
{
	static const char *const paths[] = {
		THINGS "?watch=1", "/apis/example.io/v1/things?watch=1"};

	put(A_THING("a"), "{}");
	put(A_THING("b"), "{}");
	drop(A_THING("a"));
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct apireq_stream *w = watch(paths[i], 0);

		take(w, 1);
		expect_seen("ADDED b;");
		put(A_THING("c"), "{}");
		take(w, 1);
		expect_seen("ADDED c;");
		drop(A_THING("c"));
		take(w, 1);
		expect_seen("DELETED c;");
		apireq_stream_free(w);
	}
}

Test(apireq_stream, initial_events_end_with_a_bookmark)
{
	struct apireq_stream *w;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;

	put(A_THING("a"), "{}");
	cr_assert_eq(store_objects_commit(s, &err), 0);
	w = watch(THINGS "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
			 "allowWatchBookmarks=true",
		1);
	cr_expect_eq(apireq_stream_take(w, &out, 1000), STORE_WATCH_MORE);
	cr_expect(strstr(out.data, "\"type\":\"ADDED\""));
	cr_expect(strstr(out.data, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":"
				   "{\"resourceVersion\":\"1001\",\"creationTimestamp\":null,"
				   "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}"));
	cr_expect_eq(apireq_stream_take(w, &out, 1000), STORE_WATCH_IDLE);
	body_fini(&out);
	apireq_stream_free(w);
}

Test(apireq_stream, selectors_hold_for_changes)
{
	struct apireq_stream *w = watch(THINGS "?labelSelector=a%3D1", 1);

	put(A_THING("x"), "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}");
	put(A_THING("y"), "{\"metadata\":{\"labels\":{\"a\":\"2\"}}}");
	take(w, 1);
	expect_seen("ADDED x;");
	apireq_stream_free(w);
	w = watch(THINGS "?fieldSelector=metadata.name%3Dy", 0);
	take(w, 1);
	expect_seen("ADDED y;");
	apireq_stream_free(w);
}

Test(apireq_stream, an_object_comes_into_view_and_leaves_it)
{
	struct apireq_stream *w = watch(THINGS "?labelSelector=a%3D1", 1);

	put(A_THING("x"), "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}");
	put(A_THING("x"), "{\"metadata\":{\"labels\":{\"a\":\"2\"}}}");
	put(A_THING("x"), "{\"metadata\":{\"labels\":{\"a\":\"3\"}}}");
	put(A_THING("x"), "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}");
	put(A_THING("x"), "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"\"}}}");
	drop(A_THING("x"));
	take(w, 1);
	expect_seen("ADDED x;DELETED x;ADDED x;MODIFIED x;DELETED x;");
	apireq_stream_free(w);
}

Test(apireq_stream, a_version_before_the_history_is_expired)
{
	struct apireq_stream *w, *kept;
	uint64_t rv;

	put(A_THING("a"), "{}");
	rv = store_objects_rv(s);
	kept = watch(THINGS, rv);
	take(kept, 1);
	store_watch_compact(s);
	put(A_THING("b"), "{}");
	take(kept, 1);
	expect_seen("ADDED b;");
	w = watch(THINGS, rv);
	cr_expect_eq(take(w, 1), STORE_WATCH_END);
	expect_seen("ERROR Expired;");
	apireq_stream_free(w);
	apireq_stream_free(kept);
	w = watch(THINGS, store_objects_rv(s) - 1);
	take(w, 1);
	expect_seen("ADDED b;");
	apireq_stream_free(w);
}

Test(apireq_stream, a_deleted_secret_is_told_without_its_data)
{
	struct apireq_stream *w = watch(SECRETS, 1);
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;

	put(A_SECRET("s"), "{\"kind\":\"Secret\",\"data\":{\"k\":\"c2VjcmV0\"}}");
	put(A_SECRET("s"),
		"{\"kind\":\"Secret\",\"data\":{\"k\":\"bmV3\"},\"metadata\":{\"annotations\":{\"last\":\"bmV3\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"o\",\"uid\":\"u\"}]}}");
	drop(A_SECRET("s"));
	cr_assert_eq(store_objects_commit(s, &err), 0);
	cr_expect_eq(apireq_stream_take(w, &out, 10000), STORE_WATCH_IDLE);
	cr_expect_null(strstr(out.data, "c2Vj"));
	cr_expect_null(strstr(out.data, "bmV3"));
	cr_assert_not_null(strstr(out.data, "\"type\":\"DELETED\""));
	cr_expect(strstr(out.data, "\"type\":\"DELETED\",\"object\":{\"kind\":\"Secret\""));
	cr_expect(strstr(strstr(out.data, "DELETED"), "\"uid\":\"u\""),
		"a controller makes what it owns again");
	body_fini(&out);
	apireq_stream_free(w);
}

Test(apireq_stream, bookmarks_for_who_asked_and_an_end_for_all)
{
	struct apireq_stream *a = watch(THINGS "?allowWatchBookmarks=true", 1000),
			     *b = watch(THINGS, 1000);

	store_watch_all(s, false);
	take(a, 1);
	take(b, 1);
	expect_seen("BOOKMARK ;");
	store_watch_all(s, true);
	cr_expect_eq(take(a, 1), STORE_WATCH_END);
	cr_expect_eq(take(b, 1), STORE_WATCH_END);
	cr_expect_eq(calls, 3);
	apireq_stream_free(a);
	apireq_stream_free(b);
}
