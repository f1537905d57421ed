/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"
#include "tec/apireq/transport.h"
#include "tec/store/watch.h"
#include "tec/base/metric.h"

static struct loop *loop;
static struct store_objects *s;
static struct k8s_transport *t;
static struct op_scope ops;
static struct strbuf data;
static int status;
static unsigned answers;
static bool cancel_on_data, fail_on_data;

static void up(void)
{
	clock_fake_start(1000000, 1767323045);
	loop = loop_new();
	s = things_new(loop);
	t = apireq_transport_new(loop, s);
}

static void down(void)
{
	op_scope_cancel(&ops);
	k8s_transport_free(t);
	store_objects_free(s);
	loop_free(loop);
	strbuf_fini(&data);
	metric_reset_all();
	clock_fake_stop();
}

TestSuite(apireq_transport, .init = up, .fini = down);

static int on_data(void *arg, const char *bytes, size_t len, struct err *err)
{
	strbuf_add(&data, bytes, len);
	strbuf_addc(&data, '\0');
	data.len--;
	if (cancel_on_data)
		op_scope_cancel(&ops);
	return fail_on_data ? err_set(err, ERR_BUG, "enough") : 0;
}

static void on_answer(void *arg, const struct err *err, const struct k8s_answer *a)
{
	answers++;
	status = err_is_set(err) ? -1 : a->status;
	strbuf_add(&data, a->body, a->body_len);
	strbuf_addc(&data, '\0');
	data.len--;
}

static void send(const char *method, const char *path, const char *body, bool stream)
{
	struct k8s_request req = {.method = method, .verb = "get", .path = xstrdup(path)};

	strbuf_reset(&data);
	status = 0;
	if (body)
		body_add(&req.body, body, strlen(body), 0);
	k8s_transport_start(t, &ops, &req, stream ? on_data : NULL, on_answer, NULL);
}

static bool there(void)
{
	cleanup_json struct json_object *o = store_objects_get(s, A_THING("a"));

	return o != NULL;
}

static void put(const char *name)
{
	json_object_put(store_objects_put(s, A_THING(name), json_of("{}")));
}

static const char a_thing[] = "{" THING ",\"metadata\":{\"name\":\"a\"}}";

Test(apireq_transport, a_write_is_done_at_once_and_answered_later)
{
	send("POST", THINGS, a_thing, false);
	cr_expect(there());
	cr_expect_eq(answers, 0);
	loop_drain(loop);
	cr_expect_eq(status, 201);
	cr_expect(strstr(data.data, "\"name\":\"a\""));
	cr_expect(op_scope_is_empty(&ops));
	send("GET", THINGS, NULL, true);
	loop_drain(loop);
	cr_expect_eq(status, 200);
	cr_expect(strstr(data.data, "\"items\":[{"), "to on_data");
	send("GET", THINGS "/b", NULL, true);
	loop_drain(loop);
	cr_expect_eq(status, 404);
	send("GET", "/healthz", NULL, false);
	loop_drain(loop);
	cr_expect_eq(status, 404);
	cr_expect_str_eq(data.data, "404 page not found");
	send("GET", THINGS "?labelSelector=a(", NULL, false);
	loop_drain(loop);
	cr_expect_eq(status, 400);
	cr_expect_eq(answers, 5);
}

Test(apireq_transport, a_list_that_is_streamed_has_no_pages)
{
	for (const char *name = "a\0b\0c\0"; *name; name += 2)
		put(name);
	send("GET", THINGS "?fieldSelector=&limit=1", NULL, false);
	loop_drain(loop);
	cr_expect(strstr(data.data, "\"continue\":"));
	cr_expect_null(strstr(data.data, "\"name\":\"b\""));
	send("GET", THINGS "?fieldSelector=&limit=1", NULL, true);
	loop_drain(loop);
	cr_expect_eq(status, 200);
	cr_expect_null(strstr(data.data, "\"continue\":"));
	for (const char *name = "a\0b\0c\0"; *name; name += 2) {
		cleanup_free char *member = xasprintf("\"name\":\"%s\"", name);

		cr_expect(strstr(data.data, member), "%s", name);
	}
	send("GET", THINGS "?limit=-1&limit=x", NULL, false);
	loop_drain(loop);
	cr_expect_eq(status, 400);
}

Test(apireq_transport, a_cancelled_call_is_not_answered)
{
	send("POST", THINGS, a_thing, false);
	op_scope_cancel(&ops);
	loop_drain(loop);
	cr_expect_eq(answers, 0);
	cr_expect(there());
	cancel_on_data = true;
	send("GET", THINGS, NULL, true);
	loop_drain(loop);
	cr_expect_eq(answers, 0);
	cr_expect_gt(data.len, 0);
	cancel_on_data = false;
	fail_on_data = true;
	send("GET", THINGS "?watch=1", NULL, true);
	loop_drain(loop);
	cr_expect_eq(status, -1, "on_data's error");
}

Test(apireq_transport, a_watch_streams_until_its_time_is_over)
{
	send("GET", THINGS "?watch=true&allowWatchBookmarks=true&timeoutSeconds=90", NULL, true);
	loop_drain(loop);
	cr_expect_eq(data.len, 0);
	put("a");
	cr_expect_eq(data.len, 0, "not from within the write");
	loop_drain(loop);
	cr_expect(strstr(data.data, "ADDED"));
	loop_advance(loop, 60000);
	cr_expect(strstr(data.data, "BOOKMARK"));
	cr_expect_eq(answers, 0);
	loop_advance(loop, 30000);
	cr_expect_eq(status, 200);
	send("GET", THINGS "?watch=1", NULL, true);
	loop_drain(loop);
	store_watch_all(s, true);
	put("b");
	loop_drain(loop);
	cr_expect_eq(status, 200);
	cr_expect_null(strstr(data.data, "\"b\""), "after the end");
}

Test(apireq_transport, watches_that_are_none)
{
	static const struct {
		const char *path;
		bool stream;
	} cases[] = {{THINGS "?watch=1", false}, {THINGS "?watch=1&resourceVersion=x", true},
		{THINGS "?watch=1&resourceVersion=-1", true},
		{THINGS "?watch=1&timeoutSeconds=99999999999999999999", true}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		send("GET", cases[i].path, NULL, cases[i].stream);
		loop_drain(loop);
		cr_expect_eq(status, 400, "%s", cases[i].path);
	}
}
