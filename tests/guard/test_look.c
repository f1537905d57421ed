/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/metric.h"
#include "tec/guard/look.h"
#include "tec/loop/signal.h"
#include "tec/net/httpd.h"

struct world {
	struct loop *loop;
	struct httpc *http;
	struct httpd *trustee;
	struct guard_look *look;
	unsigned n;
	bool silent;
	int status;
};

static void on_trustee(struct httpd_req *r, void *arg)
{
	struct world *w = arg;

	cr_expect_str_eq(httpd_req_target(r), "/healthz");
	w->n++;
	if (!w->silent)
		httpd_reply(r, w->status, NULL, "", 0);
}

static const struct httpd_route routes[] = {
	{.path = "/*", .methods = HTTPD_GET, .fn = on_trustee},
};

static void up(struct world *w, unsigned port)
{
	struct httpd_conf conf = httpd_conf_default;
	cleanup_free char *at = xasprintf("127.0.0.1:%u", port);
	struct err err = ERR_INIT;

	conf.name = "trustee";
	conf.routes = routes;
	conf.n_routes = ARRAY_LEN(routes);
	conf.arg = w;
	w->trustee = httpd_new(w->loop, &conf);
	cr_assert_eq(httpd_listen(w->trustee, at, &err), 0, "%s", err.text);
}

static void start(struct world *w)
{
	cleanup_free char *url = NULL;

	memset(w, 0, sizeof(*w));
	loop_ignore_sigpipe();
	w->status = 200;
	w->loop = loop_new();
	w->http = httpc_new(w->loop);
	up(w, 0);
	url = xasprintf("http://127.0.0.1:%u", httpd_port(w->trustee));
	w->look = guard_look_new(w->loop, w->http, url, NULL, 10);
}

static void stop(struct world *w)
{
	guard_look_free(w->look);
	if (w->trustee)
		httpd_free(w->trustee);
	httpc_free(w->http);
	loop_free(w->loop);
	metric_reset_all();
}

static bool becomes(struct world *w, bool answers)
{
	for (unsigned i = 0; i < 5000 && guard_look_answers(w->look) != answers; i++)
		loop_turn(w->loop, 1);
	return guard_look_answers(w->look) == answers;
}

Test(guard_look, it_follows_a_trustee_that_goes_and_comes_back)
{
	struct world w;
	unsigned port;

	start(&w);
	cr_assert_not(guard_look_answers(w.look), "not before the first answer");
	cr_assert(becomes(&w, true));
	port = httpd_port(w.trustee);
	httpd_free(w.trustee);
	w.trustee = NULL;
	cr_assert(becomes(&w, false));
	up(&w, port);
	cr_assert(becomes(&w, true));
	stop(&w);
}

/* Before v0.21 there is no /healthz. */
Test(guard_look, every_answer_counts)
{
	static const int statuses[] = {200, 401, 404, 500, 503};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		struct world w;

		start(&w);
		w.status = statuses[i];
		cr_assert(becomes(&w, true), "%d", statuses[i]);
		stop(&w);
	}
}

Test(guard_look, silence_is_no_answer_and_one_request_is_on_its_way)
{
	struct world w;

	start(&w);
	cr_assert(becomes(&w, true));
	w.silent = true;
	w.n = 0;
	cr_assert(becomes(&w, false));
	cr_assert_leq(w.n, 2, "%u", w.n);
	stop(&w);
}
