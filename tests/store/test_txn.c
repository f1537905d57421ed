/* SPDX-License-Identifier: MIT */
/* What the loop adds: one transaction per turn, answers after it, upkeep and garbage by itself. */
#include "config.h"

#include "store/fault_vfs.h"
#include "store/store_dir.h"
#include "apireq/things.h"
#include "tec/store/gc.h"
#include "tec/apireq/transport.h"
#include "tec/base/metric.h"
#include "tec/k8s/transport.h"

#define REF "\"apiVersion\":\"example.io/v1\",\"kind\":\"Thing\",\"name\":\"owner\","

static struct loop *loop;
static struct store_objects *s;
static struct k8s_transport *t;
static struct store_gc *gc;
static struct op_scope ops;
static int codes[16];
static size_t n_codes;
static char text[4096]; /* of the last answer */

static const struct store_schema with_namespaces = {.kinds = thing_kinds,
	.n_kinds = ARRAY_LEN(thing_kinds),
	.lists = {thing_lists, ARRAY_LEN(thing_lists)},
	.namespaces = true};

static void open_store(const char *vfs, const struct store_schema *schema)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_open(vfs, &err);

	cr_assert_not_null(db, "%s", err.text);
	s = store_objects_new(db, schema, loop);
	t = apireq_transport_new(loop, s);
}

static void close_store(void)
{
	op_scope_cancel(&ops);
	store_gc_free(gc);
	k8s_transport_free(t);
	store_objects_free(s);
	gc = NULL;
	t = NULL;
	s = NULL;
}

static void up(void)
{
	clock_fake_start(1000000, 1767323045);
	fault_vfs_register();
	store_dir_up();
	loop = loop_new();
}

static void down(void)
{
	close_store();
	loop_free(loop);
	store_dir_down();
	metric_reset_all();
	clock_fake_stop();
}

TestSuite(store_txn, .init = up, .fini = down);

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	cr_expect_not(err_is_set(err));
	snprintf(text, sizeof(text), "%s", a->body);
	if (n_codes < ARRAY_LEN(codes))
		codes[n_codes++] = a->status;
}

static void send(const char *method, const char *path, const char *body)
{
	struct k8s_request req = {.method = method,
		.content_type = str_eq(method, "PATCH") ? MERGE : NULL,
		.verb = "get",
		.path = xstrdup(path)};

	if (body)
		body_add(&req.body, body, strlen(body), 0);
	k8s_transport_start(t, &ops, &req, NULL, on_answer, NULL);
}

static int ask_now(const char *method, const char *path, const char *body)
{
	n_codes = 0;
	send(method, path, body);
	loop_drain(loop);
	cr_assert_eq(n_codes, 1);
	return codes[0];
}

static char *thing(const char *name, const char *meta)
{
	return xasprintf("{" THING ",\"metadata\":{\"name\":\"%s\"%s}}", name, meta);
}

static bool there(const char *name)
{
	cleanup_json struct json_object *o = store_objects_get(s, A_THING(name));

	return o != NULL;
}

Test(store_txn, a_turn_is_stored_or_refused_as_a_whole)
{
	cleanup_free char *a = thing("a", ""), *b = thing("b", "");

	open_store(FAULT_VFS, &things);
	fault_vfs_set(FAULT_WRITE, 1, true);
	send("POST", THINGS, a);
	send("POST", THINGS, b);
	send("GET", THINGS "/a", NULL);
	cr_expect_eq(n_codes, 0);
	loop_drain(loop);
	cr_expect_eq(n_codes, 3);
	for (size_t i = 0; i < n_codes; i++)
		cr_expect_eq(codes[i], 500, "%zu", i);
	cr_expect(strstr(text, "\"reason\":\"InternalError\""), "%s", text);
	cr_expect_eq(ask_now("GET", THINGS "/a", NULL), 404);
	fault_vfs_set(FAULT_NONE, 0, false);
	n_codes = 0;
	send("POST", THINGS, a);
	send("POST", THINGS, b);
	send("GET", THINGS "/a", NULL);
	loop_drain(loop);
	cr_expect_eq(n_codes, 3);
	cr_expect_eq(codes[0], 201);
	cr_expect_eq(codes[1], 201);
	cr_expect_eq(codes[2], 200);
}

Test(store_txn, history_goes_after_a_while)
{
	cleanup_free char *a = thing("a", "");
	uint64_t rv;

	open_store(NULL, &things);
	cr_expect_eq(ask_now("POST", THINGS, a), 201);
	rv = store_objects_rv(s);
	loop_advance(loop, 240000);
	cr_expect_eq(store_db_oldest(store_objects_db(s)), 0);
	cr_expect_eq(ask_now("PATCH", THINGS "/a", "{\"spec\":1}"), 200);
	loop_advance(loop, 1200000);
	cr_expect_geq(store_db_oldest(store_objects_db(s)), rv);
	cr_expect(there("a"));
}

Test(store_txn, orphans_go_by_themselves_and_after_a_restart)
{
	cleanup_free char *owner = thing("owner", ""), *child = NULL, *uid = NULL;

	open_store(NULL, &things);
	cr_expect_eq(ask_now("POST", THINGS, owner), 201);
	cleanup_json struct json_object *o = store_objects_get(s, A_THING("owner"));

	uid = xasprintf(
		",\"ownerReferences\":[{" REF "\"uid\":\"%s\"}]", json_get_str(o, "metadata/uid"));
	child = thing("child", uid);
	cr_expect_eq(ask_now("POST", THINGS, child), 201);
	cr_expect_eq(ask_now("DELETE", THINGS "/owner", NULL), 200);
	cr_expect(there("child"), "nobody collects yet");
	close_store();
	open_store(NULL, &things);
	gc = store_gc_new(s);
	loop_drain(loop);
	cr_expect_not(there("child"));
}

/* An owner, and what refers to it in the metadata of others. */
static char *make_owner(void)
{
	cleanup_free char *owner = thing("owner", "");

	cr_assert_eq(ask_now("POST", THINGS, owner), 201);
	cleanup_json struct json_object *o = store_objects_get(s, A_THING("owner"));

	return xasprintf(
		",\"ownerReferences\":[{" REF "\"uid\":\"%s\"}]", json_get_str(o, "metadata/uid"));
}

Test(store_txn, orphans_that_are_held_keep_no_others)
{
	cleanup_free char *ref = NULL, *last = NULL;

	open_store(NULL, &things);
	gc = store_gc_new(s);
	ref = make_owner();
	for (unsigned i = 0; i < 150; i++) { /* more than one step takes */
		cleanup_free char *name = xasprintf("a%03u", i);
		cleanup_free char *meta = xasprintf("%s,\"finalizers\":[\"f/g\"]", ref);
		cleanup_free char *child = thing(name, meta);

		cr_assert_eq(ask_now("POST", THINGS, child), 201);
	}
	last = thing("z", ref);
	cr_assert_eq(ask_now("POST", THINGS, last), 201);
	cr_expect_eq(ask_now("DELETE", THINGS "/owner", NULL), 200);
	cr_expect_not(there("z"));
	cr_expect_eq(store_objects_count(s, "things.example.io", "ns"), 150);
	/* And one that is made for an owner that has gone. */
	cr_assert_eq(ask_now("POST", THINGS, last), 201);
	cr_expect_not(there("z"));
}

Test(store_txn, a_collection_that_could_not_be_stored_is_tried_again)
{
	cleanup_free char *ref = NULL, *child = NULL;

	open_store(FAULT_VFS, &things);
	ref = make_owner();
	child = thing("child", ref);
	cr_assert_eq(ask_now("POST", THINGS, child), 201);
	cr_assert_eq(ask_now("DELETE", THINGS "/owner", NULL), 200);
	fault_vfs_set(FAULT_WRITE, 1, true);
	gc = store_gc_new(s);
	loop_drain(loop);
	loop_advance(loop, 10000);
	cr_expect(there("child"));
	fault_vfs_set(FAULT_NONE, 0, false);
	loop_advance(loop, 10000);
	cr_expect_not(there("child"));
}

/* Both queries for old Events fail: their rows are no longer in SQLite's page cache. */
Test(store_txn, old_events_that_cannot_be_read_are_tried_again)
{
	static const struct store_key events[] = {
		{"events", "ns", "a"}, {"events.events.k8s.io", "ns", "a"}};
	cleanup_free char *much = xmalloc(1000001);

	memset(much, 'x', 1000000);
	much[1000000] = '\0';
	open_store(FAULT_VFS, &things);
	gc = store_gc_new(s);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		json_object_put(store_objects_put(s, &events[i], json_obj()));
	loop_drain(loop);
	for (unsigned i = 0; i < 4; i++) {
		cleanup_free char *name = xasprintf("big%u", i);

		json_object_put(store_objects_put(
			s, A_THING(name), json_add_str(json_obj(), "much", much)));
		loop_drain(loop);
	}
	fault_vfs_set(FAULT_READ, 1, true);
	loop_advance(loop, 3700000);
	cr_expect(fault_vfs_hit());
	fault_vfs_set(FAULT_NONE, 0, false);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		cr_expect_eq(store_objects_count(s, events[i].resource, "ns"), 1);
	loop_advance(loop, 120000);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		cr_expect_eq(store_objects_count(s, events[i].resource, "ns"), 0);
}

/* An owner, a dependent that blocks and one that a finalizer holds. */
static void make_family(void)
{
	cleanup_free char *owner = thing("owner", ""), *a = NULL, *b = NULL, *ref_a = NULL,
			  *ref_b = NULL;

	open_store(NULL, &things);
	gc = store_gc_new(s);
	cr_assert_eq(ask_now("POST", THINGS, owner), 201);
	cleanup_json struct json_object *o = store_objects_get(s, A_THING("owner"));
	const char *uid = json_get_str(o, "metadata/uid");

	ref_a = xasprintf(
		",\"ownerReferences\":[{" REF "\"uid\":\"%s\",\"blockOwnerDeletion\":true}]", uid);
	ref_b = xasprintf("%s,\"finalizers\":[\"f/g\"]", ref_a);
	a = thing("a", ref_a);
	b = thing("b", ref_b);
	cr_assert_eq(ask_now("POST", THINGS, a), 201);
	cr_assert_eq(ask_now("POST", THINGS, b), 201);
}

Test(store_txn, foreground_waits_for_the_dependents)
{
	make_family();
	cr_expect_eq(ask_now("DELETE", THINGS "/owner?propagationPolicy=Foreground", NULL), 200);
	cr_expect_not(there("a"));
	cr_expect(there("b"), "its finalizer holds it");
	cr_expect(there("owner"), "and that holds the owner");
	cr_expect_eq(ask_now("PATCH", THINGS "/b", "{\"metadata\":{\"finalizers\":null}}"), 200);
	cr_expect_not(there("b"));
	cr_expect_not(there("owner"));
}

Test(store_txn, background_and_orphan)
{
	make_family();
	cr_expect_eq(ask_now("DELETE", THINGS "/owner",
			     "{\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Orphan\"}"),
		200);
	cr_expect_not(there("owner"));
	cr_expect(there("a") && there("b"));
	cleanup_json struct json_object *o = store_objects_get(s, A_THING("a"));

	cr_expect_null(json_get(o, "metadata/ownerReferences"));
	cr_expect_eq(ask_now("DELETE", THINGS "/a?propagationPolicy=Sideways", NULL), 422);
	cr_expect_eq(ask_now("DELETE", THINGS "?propagationPolicy=Background", NULL), 200);
	cr_expect_not(there("a"));
	cr_expect(there("b"), "its finalizer");
}

Test(store_txn, a_namespace_is_needed)
{
	cleanup_free char *a = thing("a", "");

	open_store(NULL, &with_namespaces);
	cr_expect_eq(ask_now("POST", THINGS, a), 404);
	cr_expect(strstr(text, "namespaces \\\"ns\\\" not found"), "%s", text);
	cr_expect_eq(
		ask_now("POST", "/api/v1/namespaces",
			"{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"ns\"}}"),
		201);
	cr_expect(strstr(text, "\"kubernetes.io/metadata.name\":\"ns\""), "%s", text);
	cr_expect_eq(ask_now("POST", THINGS, a), 201);
}

Test(store_txn, events_go_after_an_hour_whatever_the_clock_did)
{
	static const char event[] =
		"{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"generateName\":\"e-\"}}";

	open_store(NULL, &things);
	gc = store_gc_new(s);
	cr_expect_eq(ask_now("POST", "/api/v1/namespaces/ns/events", event), 201);
	loop_advance(loop, 1800000);
	cr_expect_eq(store_objects_count(s, "events", "ns"), 1);
	clock_fake_set_wall(1000); /* back to 1970 */
	cr_expect_eq(ask_now("POST", "/api/v1/namespaces/ns/events", event), 201);
	loop_advance(loop, 120000);
	cr_expect_eq(store_objects_count(s, "events", "ns"), 2);
	clock_fake_set_wall(1767423045);
	loop_advance(loop, 120000);
	cr_expect_eq(store_objects_count(s, "events", "ns"), 0);
}

static int on_line(void *arg, const char *data, size_t len, struct err *err)
{
	for (size_t i = 0; i < len; i++)
		*(unsigned *)arg += data[i] == '\n';
	return 0;
}

static void start_watch(const char *path, unsigned *lines)
{
	struct k8s_request req = {.method = "GET", .verb = "watch", .path = xstrdup(path)};

	n_codes = 0;
	k8s_transport_start(t, &ops, &req, on_line, on_answer, lines);
	loop_drain(loop);
}

/* Reads a member of an object. */
static char *member(const struct store_key *key, const char *path)
{
	cleanup_json struct json_object *o = store_objects_get(s, key);
	const char *value = o ? json_get_str(o, path) : NULL;

	return value ? xstrdup(value) : NULL;
}

#define LEASE     ((const struct store_key){"leases.coordination.k8s.io", "ns", "l"})
#define RENEWED   "2026-01-02T03:04:05.000000Z"
#define HOURS(n)  (INT64_C(3600) * (n))
#define A_WATCH_S 600

static const int64_t jumps_s[] = {HOURS(5), -HOURS(10), HOURS(24) * 3650, -HOURS(24) * 20000, 1};

static void make_what_time_could_touch(void)
{
	cleanup_free char *a = thing("a", "");

	open_store(NULL, &things);
	gc = store_gc_new(s);
	cr_assert_eq(ask_now("POST", THINGS, a), 201);
	cr_assert_eq(
		ask_now("POST", SECRETS,
			"{" SECRET ",\"metadata\":{\"name\":\"s\"},\"data\":{\"root\":\"a2V5\"}}"),
		201);
	cr_assert_eq(ask_now("POST", "/apis/coordination.k8s.io/v1/namespaces/ns/leases",
			     "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
			     "\"metadata\":{\"name\":\"l\"},\"spec\":{\"leaseDurationSeconds\":15,"
			     "\"renewTime\":\"" RENEWED "\"}}"),
		201);
}

static void expect_untouched(const char *uid, const char *created)
{
	cleanup_free char *now_uid = member(A_SECRET("s"), "metadata/uid"),
			  *now_created = member(A_SECRET("s"), "metadata/creationTimestamp"),
			  *data = member(A_SECRET("s"), "data/root"),
			  *renewed = member(&LEASE, "spec/renewTime");

	cr_expect_str_eq(now_uid, uid);
	cr_expect_str_eq(now_created, created);
	cr_expect_str_eq(data, "a2V5");
	cr_expect_str_eq(renewed, RENEWED);
}

Test(store_txn, a_wall_clock_that_jumps_loses_nothing_and_ends_no_watch)
{
	cleanup_free char *uid = NULL, *created = NULL, *a_created = NULL, *since = NULL;
	unsigned lines = 0, late = 0;
	uint64_t start, rv;

	make_what_time_could_touch();
	uid = member(A_SECRET("s"), "metadata/uid");
	created = member(A_SECRET("s"), "metadata/creationTimestamp");
	a_created = member(A_THING("a"), "metadata/creationTimestamp");
	start = rv = store_objects_rv(s);
	start_watch(THINGS "?watch=1&timeoutSeconds=600", &lines);
	cr_assert_eq(lines, 1);
	for (size_t i = 0; i < ARRAY_LEN(jumps_s); i++) {
		cleanup_free char *patch = xasprintf("{\"spec\":%zu}", i), *now = NULL;

		clock_fake_set_wall(clock_wall_s() + jumps_s[i]);
		loop_advance(loop, 30000);
		send("PATCH", THINGS "/a", patch);
		loop_drain(loop);
		cr_expect_eq(store_objects_rv(s), ++rv, "jump %zu", i);
		cr_expect_eq(lines, 2 + i, "jump %zu", i);
		now = member(A_THING("a"), "metadata/creationTimestamp");
		cr_expect_str_eq(now, a_created);
		expect_untouched(uid, created);
	}
	cr_expect_eq(
		n_codes, ARRAY_LEN(jumps_s), "the patches are answered, and the watch goes on");
	/* The history goes by the time that passed, so it still has all of this. */
	since = xasprintf(
		THINGS "?watch=1&timeoutSeconds=1&resourceVersion=%llu", (unsigned long long)start);
	start_watch(since, &late);
	cr_expect_eq(late, ARRAY_LEN(jumps_s));
	loop_advance(loop, 1000 * (A_WATCH_S - 30 * ARRAY_LEN(jumps_s)) - 1000);
	cr_expect_eq(n_codes, 1, "the late one only");
	loop_advance(loop, 2000);
	cr_expect_eq(n_codes, 2, "when its own time is over");
	close_store();
	clock_fake_set_wall(-HOURS(24));
	open_store(NULL, &things);
	cr_expect_eq(store_objects_rv(s), rv);
	expect_untouched(uid, created);
	cr_expect_eq(ask_now("DELETE", SECRETS "/s", NULL), 200);
	cr_expect_gt(store_objects_rv(s), rv);
}

Test(store_txn, a_dry_run_stores_nothing)
{
	cleanup_free char *a = thing("a", "");
	uint64_t rv;

	open_store(NULL, &things);
	rv = store_objects_rv(s);
	cr_expect_eq(ask_now("POST", THINGS "?dryRun=All", a), 201);
	cr_expect_not(there("a"));
	cr_expect_eq(ask_now("POST", THINGS "?dryRun=Some", a), 422);
	cr_expect_eq(store_objects_rv(s), rv);
	cr_expect_eq(ask_now("POST", THINGS, a), 201);
	cr_expect_eq(ask_now("PATCH", THINGS "/a?dryRun=All", "{\"spec\":1}"), 200);
	cr_expect(strstr(text, "\"spec\":1"));
	cr_expect_eq(ask_now("DELETE", THINGS "/a?dryRun=All", NULL), 200);
	cr_expect_eq(ask_now("DELETE", THINGS "?dryRun=All", NULL), 200);
	cr_expect_eq(store_objects_rv(s), rv + 1);
	cr_expect(there("a"));
}

Test(store_txn, versions_of_lists)
{
	static const struct {
		const char *query;
		int code;
		unsigned items;
	} cases[] = {
		{"", 200, 3},
		{"resourceVersion=", 200, 3},
		{"resourceVersion=0", 200, 3},
		{"resourceVersion=1001", 200, 3},
		{"resourceVersion=1001&resourceVersionMatch=NotOlderThan", 200, 3},
		{"resourceVersion=1001&resourceVersionMatch=Exact", 200, 1},
		{"resourceVersion=1002&limit=5", 200, 2},
		{"resourceVersion=9999", 504, 0},
		{"resourceVersion=9999&resourceVersionMatch=Exact", 504, 0},
		{"resourceVersion=x", 422, 0},
		{"resourceVersionMatch=Exact", 422, 0},
		{"resourceVersion=0&resourceVersionMatch=Exact", 422, 0},
		{"resourceVersion=1&resourceVersionMatch=Roughly", 422, 0},
		{"continue=x", 400, 0},
	};
	static const char *const names[] = {"a", "b", "c"};

	open_store(NULL, &things);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		cleanup_free char *body = thing(names[i], "");

		cr_assert_eq(ask_now("POST", THINGS, body), 201);
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *path = xasprintf(THINGS "?%s", cases[i].query);
		unsigned items = 0;

		cr_expect_eq(ask_now("GET", path, NULL), cases[i].code, "%s", path);
		for (const char *p = text; (p = strstr(p, "\"uid\":")); p++)
			items++;
		cr_expect_eq(items, cases[i].items, "%s: %s", path, text);
	}
	cr_expect_eq(ask_now("GET", "/apis/example.io/v1/things", NULL), 200);
	cr_expect(strstr(text, "\"name\":\"c\""), "of all namespaces");
}

/* ---- Secrets and ConfigMaps */

Test(store_txn, rules_of_secrets_and_configmaps)
{
	static const struct {
		const char *kind, *rest;
		int code;
		const char *says;
	} cases[] = {
		{"Secret", "", 201, "\"type\":\"Opaque\""},
		{"Secret", ",\"stringData\":{\"a\":\"b\"}", 201, "\"data\":{\"a\":\"Yg==\"}"},
		{"Secret", ",\"data\":{\"a\":\"YQ==\"},\"stringData\":{\"a\":\"b\"}", 201,
			"\"data\":{\"a\":\"Yg==\"}"},
		{"Secret", ",\"data\":{\"a\":\"no base64\"}", 400, "a value is not base64"},
		{"Secret", ",\"data\":{\"a b\":\"YQ==\"}", 422, "must be letters, digits"},
		{"Secret", ",\"data\":{\"..\":\"YQ==\"}", 422,
			"must not be '.' or begin with '..'"},
		{"Secret", ",\"data\":[]", 400, "cannot be handled as a Secret"},
		{"Secret", ",\"data\":{\"a\":1}", 400, "cannot be handled as a Secret"},
		{"Secret", ",\"stringData\":{\"a\":1}", 400, "cannot be handled as a Secret"},
		{"Secret", ",\"stringData\":5", 400, "cannot be handled as a Secret"},
		{"Secret", ",\"type\":5", 400, "cannot be handled as a Secret"},
		{"Secret", ",\"type\":\"kubernetes.io/tls\"", 422, "data[tls.crt]: Required value"},
		{"ConfigMap", ",\"data\":{\"a\":\"no base64\"}", 201, "no base64"},
		{"ConfigMap", ",\"binaryData\":{\"a\":\"no base64\"}", 400,
			"a value is not base64"},
		{"ConfigMap", ",\"data\":{\"a\":\"\"},\"binaryData\":{\"a\":\"\"}", 422,
			"is in binaryData, too"},
	};

	open_store(NULL, things_and_data());
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is_secret = cases[i].kind[0] == 'S';
		cleanup_free char *body = xasprintf(
			"{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"n%zu\"}%s}",
			cases[i].kind, i, cases[i].rest);

		cr_expect_eq(
			ask_now("POST", is_secret ? SECRETS : "/api/v1/namespaces/ns/configmaps",
				body),
			cases[i].code, "%s: %s", body, text);
		cr_expect(strstr(text, cases[i].says), "%s: %s", body, text);
	}
	cr_expect_eq(ask_now("PATCH", SECRETS "/n0", "{\"type\":\"x\"}"), 422);
	cr_expect(strstr(text, "field is immutable"));
}

Test(store_txn, what_is_too_large_is_refused)
{
	static const struct {
		size_t size;
		int code;
	} cases[] = {{(1u << 20) + 1, 422}, {(1u << 20) - 1000, 201}, {4u << 20, 413}};

	open_store(NULL, things_and_data());
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf body = STRBUF_INIT;

		strbuf_addf(&body,
			"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"n%zu\"},\"data\":{\"a\":\"",
			i);
		for (size_t k = 0; k < cases[i].size; k++)
			strbuf_addc(&body, 'x');
		strbuf_adds(&body, "\"}}");
		cr_expect_eq(ask_now("POST", "/api/v1/namespaces/ns/configmaps", body.data),
			cases[i].code);
	}
	for (size_t size = 1000000; size <= 2000000; size += 1000000) {
		cleanup_strbuf struct strbuf body = STRBUF_INIT;

		strbuf_addf(&body, "{" THING ",\"metadata\":{\"name\":\"t%zu\"},\"spec\":\"", size);
		for (size_t k = 0; k < size; k++)
			strbuf_addc(&body, 'x');
		strbuf_adds(&body, "\"}");
		cr_expect_eq(ask_now("POST", THINGS, body.data), size > 1500000 ? 413 : 201);
	}
}
