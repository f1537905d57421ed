/* SPDX-License-Identifier: MIT */
/*
 * Three small answers. None of them contacts the API, so an API server that is down does not make
 * the kubelet kill the Pod.
 *
 * Any client that reaches the port, even from the kubelet's own address, may connect and stay
 * silent. Three failed probes end the Pod, so a new connection is always accepted; for it, the
 * connection that has been idle longest is closed, whatever its source. There is no rate limit:
 * it would count the kubelet together with other clients at its address.
 */
#include "config.h"

#include "tec/srv/health.h"

#include "tec/base/json.h"
#include "tec/srv/metrics.h"

#define CONNECTIONS 64
#define TIMEOUT_MS  5000 /* for a request and for reading its reply; probes wait 1 to 5 s */
#define SCRAPES     4    /* at once; a slow reader keeps some ten KiB of reply in memory */

struct srv_health {
	struct httpd *httpd;
	bool (*ready)(void *arg, const char **why);
	void *arg;
};

static const char *error_body(struct strbuf *out, int status, const char *message)
{
	strbuf_addf(out, "%s\n", message);
	return "text/plain; charset=utf-8";
}

static void get_healthz(struct httpd_req *r, void *arg)
{
	httpd_reply(r, 200, "text/plain; charset=utf-8", "ok\n", 3);
}

/* A Pod that is not ready gets no traffic, but is not restarted. */
static void get_readyz(struct httpd_req *r, void *arg)
{
	struct srv_health *s = arg;
	const char *why = "not ready";

	if (s->ready(s->arg, &why))
		httpd_reply(r, 200, "text/plain; charset=utf-8", "ok\n", 3);
	else
		httpd_reply_error(r, 503, 0, "not ready: %s", why);
}

static void get_metrics(struct httpd_req *r, void *arg)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	srv_metrics_render(&out);
	httpd_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", strbuf_str(&out), out.len);
}

static const struct httpd_route routes[] = {
	{.path = "/healthz", .methods = HTTPD_GET | HTTPD_HEAD, .fn = get_healthz},
	{.path = "/readyz", .methods = HTTPD_GET | HTTPD_HEAD, .fn = get_readyz},
	{.path = "/metrics",
		.methods = HTTPD_GET | HTTPD_HEAD,
		.at_once = SCRAPES,
		.fn = get_metrics},
};

struct srv_health *srv_health_new(
	struct loop *l, bool (*ready)(void *arg, const char **why), void *arg)
{
	struct srv_health *s = xcalloc(1, sizeof(*s));
	struct httpd_conf conf = httpd_conf_default;

	s->ready = ready;
	s->arg = arg;
	conf.name = "health";
	conf.max_connections = CONNECTIONS;
	conf.yield_ms = 0;
	conf.request_ms = TIMEOUT_MS;
	conf.idle_ms = TIMEOUT_MS;
	conf.limits.body = 0;
	conf.routes = routes;
	conf.n_routes = ARRAY_LEN(routes);
	conf.arg = s;
	conf.error_body = error_body;
	s->httpd = httpd_new(l, &conf);
	return s;
}

void srv_health_free(struct srv_health *s)
{
	if (!s)
		return;
	httpd_free(s->httpd);
	free(s);
}

struct httpd *srv_health_httpd(struct srv_health *s)
{
	return s->httpd;
}
