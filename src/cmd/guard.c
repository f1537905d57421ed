/* SPDX-License-Identifier: MIT */
/* Wiring of the guard: two listeners, their certificate, health, and a shutdown that drops no
 * request. */
#include "config.h"

#include "guard.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/confine.h"
#include "tec/base/file.h"
#include "tec/base/mem.h"
#include "tec/ctl/shutdown.h"
#include "tec/guard/certfile.h"
#include "tec/guard/proxy.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"
#include "tec/srv/health.h"

#define CA_MAX      (1u << 20)
#define SOURCES_MAX 16384 /* bounds the memory for rate limits */
#define ENDING_MS   50    /* between two checks of a shutdown */
#define LOOK_MS     2000  /* between two probes of Trustee */

struct process {
	struct options *options;
	struct loop *loop;
	struct httpc *http;
	struct httpc_tls *upstream_tls;
	struct ratelimit *rate;
	struct guard *guard;
	struct guard_certfile *cert; /* NULL: plain text */
	struct srv_health *health;
	struct timer next_ending;
	uint64_t ending_ms;
	bool ending, draining;
};

/* A guard without its Trustee is not ready: a Service then prefers another Pod. */
static bool is_ready(void *arg, const char **why)
{
	const struct process *p = arg;

	*why = p->ending ? "shutting down" : "Trustee does not answer";
	return !p->ending && guard_upstream_answers(p->guard);
}

/* ---- shutdown */

/* Take the next step of the shutdown, as tec-operator does (ctl/shutdown.h); there is no Lease to
 * release. */
static void go_on_ending(void *arg)
{
	struct process *p = arg;
	struct httpd *node = guard_node_httpd(p->guard), *admin = guard_admin_httpd(p->guard);
	const struct ctl_shutdown_view v = {.since_ms = clock_boot_ms() - p->ending_ms,
		.delay_ms = p->options->shutdown_delay_ms,
		.releasing = true, /* no Lease to release */
		.released = true,
		.draining = p->draining,
		.in_flight = httpd_in_flight(node) + httpd_in_flight(admin) > 0};

	switch (ctl_shutdown_decide(&v)) {
	case CTL_SHUTDOWN_DRAIN:
		p->draining = true;
		httpd_drain(node);
		httpd_drain(admin);
		timer_set(&p->next_ending, 0);
		return;
	case CTL_SHUTDOWN_END:
		loop_stop(p->loop);
		return;
	case CTL_SHUTDOWN_WAIT:
	case CTL_SHUTDOWN_STOP:
	case CTL_SHUTDOWN_RELEASE:
		timer_set(&p->next_ending, ENDING_MS);
	}
}

/* The first signal starts an orderly shutdown, the second one ends the process at once. */
static void on_terminate(int signo, void *arg)
{
	struct process *p = arg;

	if (p->ending) {
		loop_stop(p->loop);
		return;
	}
	log_info(NULL, "shutting down", "signal=%s", log_esc(strsignal(signo)));
	p->ending = true;
	p->ending_ms = clock_boot_ms();
	httpd_leave(guard_node_httpd(p->guard));
	httpd_leave(guard_admin_httpd(p->guard));
	timer_set(&p->next_ending, 0);
}

/* SIGHUP: reread the configuration file, of which only the log options apply, and the
 * certificate. */
static void on_hangup(int signo, void *arg)
{
	struct process *p = arg;

	options_hangup(p->options);
	if (p->cert)
		guard_certfile_reload(p->cert);
}

/* ---- start */

/* Create everything and bind the addresses. On failure guard_run() releases what exists. An https
 * upstream needs TLS; without --upstream-ca the system's CAs count. */
static int set_up(struct process *p, struct err *err)
{
	const struct options *o = p->options;
	const struct options_guard *g = &o->guard;
	struct guard_conf conf = {.upstream = g->upstream,
		.sample = g->sample,
		.additional = g->additional,
		.attest_max = g->attest_max,
		.sessions = g->sessions,
		.sessions_per_source = g->sessions_per_source,
		.session_ms = g->session_ms,
		.max_connections = o->max_connections,
		.look_ms = LOOK_MS};
	struct httpd *listeners[GUARD_CERTFILE_LISTENERS];
	cleanup_free char *ca = NULL;
	size_t len = 0;

	if (str_starts(g->upstream, "https://")) {
		if (g->upstream_ca)
			ca = file_read(g->upstream_ca, CA_MAX, &len, NULL, err);
		if (ca || !g->upstream_ca)
			p->upstream_tls = httpc_tls_new(ca, len, NULL, 0, NULL, 0, NULL, err);
		if (!p->upstream_tls)
			return err_wrap(err, "--upstream-ca");
	}
	conf.upstream_tls = p->upstream_tls;
	if (o->rate_on)
		conf.rate = p->rate = ratelimit_new(o->rate_burst, o->rate_per_s, SOURCES_MAX);
	p->guard = guard_new(p->loop, p->http, &conf);
	listeners[0] = guard_node_httpd(p->guard);
	listeners[1] = guard_admin_httpd(p->guard);
	if (g->tls_cert) {
		p->cert = guard_certfile_new(p->loop, g->tls_cert, g->tls_key, listeners, err);
		if (!p->cert)
			return -1;
	}
	p->health = srv_health_new(p->loop, is_ready, p);
	if (options_listen(listeners[0], "--listen-kbs", g->listen_kbs, err) < 0 ||
		(g->listen_admin &&
			options_listen(listeners[1], "--listen-admin", g->listen_admin, err) < 0))
		return -1;
	return options_listen(
		srv_health_httpd(p->health), "--listen-health", o->listen_health, err);
}

/* Settings that are useful for tests only, or weaken what the guard is for, are logged at each
 * start. confine_drop_code() gives back the pages of code that only the start needed. */
static void run(struct process *p)
{
	const struct options_guard *g = &p->options->guard;
	struct loop_signal *term = loop_signal_new(p->loop, SIGTERM, on_terminate, p),
			   *intr = loop_signal_new(p->loop, SIGINT, on_terminate, p),
			   *hup = loop_signal_new(p->loop, SIGHUP, on_hangup, p);

	log_info(NULL, "the guard starts", "version=%s url=%s pid=%d", PACKAGE_VERSION,
		log_esc(g->upstream), (int)getpid());
	if (g->sample)
		log_warn(NULL,
			"sample evidence is accepted and proves nothing (--tee includes sample)",
			NULL);
	if (g->additional)
		log_warn(NULL, "additional evidence passes unchecked (--allow-additional)", NULL);
	if (!g->tls_cert)
		log_warn(NULL, "nodes are served in plain text, --tls-cert is not set", NULL);
	confine_drop_code();
	loop_run(p->loop);
	loop_signal_free(term);
	loop_signal_free(intr);
	loop_signal_free(hup);
}

/* The limit of descriptors follows --max-connections: a client may need a connection to
 * Trustee, too. */
int guard_run(struct options *o, struct err *err)
{
	struct process p = {.options = o, .loop = loop_new()};
	int rc;

	loop_ignore_sigpipe();
	confine_raise_descriptors((uint64_t)o->max_connections * 3 + 256);
	p.http = httpc_new(p.loop);
	timer_init(&p.next_ending, p.loop, go_on_ending, &p);
	rc = set_up(&p, err);
	if (rc == 0 && conf_bool(o->conf, "check-config"))
		printf("tec-operator: the configuration is usable (role guard)\n");
	else if (rc == 0)
		run(&p);
	timer_fini(&p.next_ending);
	srv_health_free(p.health);
	guard_certfile_free(p.cert);
	guard_free(p.guard);
	ratelimit_free(p.rate);
	httpc_tls_unref(p.upstream_tls);
	httpc_free(p.http);
	loop_free(p.loop);
	return rc;
}
