/* SPDX-License-Identifier: MIT */
/*
 * A rig for tests of srv/: the in-memory API behind real caches, watches and certificates, both
 * registration listeners on loopback sockets, and what cmd/parts.c does between them (names of
 * Secrets wanted, listeners refreshed). The clock is fake, so deadlines are reached by
 * loop_advance(); a test that waits for what never comes is ended by its suite's timeout.
 */
#ifndef TESTS_SRV_TESTING_H
#define TESTS_SRV_TESTING_H

#include <criterion/criterion.h>
#include <inttypes.h>

#include "fake/transport.h"
#include "net/net_testing.h"
#include "srv/srv_keys.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/base/uuid.h"
#include "tec/k8s/watch.h"
#include "tec/model/ak.h"
#include "tec/model/content.h"
#include "tec/model/machine.h"
#include "tec/render/regkey.h"
#include "tec/srv/regak.h"
#include "tec/srv/regignition.h"

#define NS          "ns"
#define API_PATH    "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/" NS
#define MACHINES    API_PATH "/machines"
#define AKS         API_PATH "/attestationkeys"
#define START_MS    1000000
#define START_S     1790000000
#define SUITE_LIMIT 60

#define RIG_N (CACHES_AKS + 1) /* what listeners need */

struct rig {
	struct loop *loop;
	struct fake_api *api;
	struct fake_transport *ft;
	struct caches caches;
	struct k8s_watch *watch[RIG_N];
	struct k8s_events *events;
	struct srv_env env;
	struct srv_listener *ign;
	struct srv_listener *ak;
	struct defer refresh;
	unsigned port, ak_port;
	struct strbuf log;
};

/* ---- what cmd/parts.c does */

static inline void rig_refresh(void *arg)
{
	struct rig *r = arg;
	const struct model_cluster *c = caches_cluster_oldest(&r->caches);
	const char *names[3 + MODEL_CLUSTER_SERVERS_MAX] = {NULL};
	size_t n = 0;

	if (c) {
		names[n++] = c->register_secret;
		names[n++] = c->trustee_secret;
		names[n++] = c->ak_secret;
		for (unsigned i = 0; i < c->n_servers; i++)
			names[n++] = c->server_ca[i];
	}
	srv_certs_want(r->env.certs, names, n, c ? c->ca_sha256 : NULL);
	if (c && (c->reg_machine == MODEL_REG_AT_KEY ||
			 model_cluster_announced(c, RENDER_REGKEY_CURRENT)))
		srv_regkey_want(r->env.regkey);
	srv_listener_refresh(r->ign);
	srv_listener_refresh(r->ak);
}

static inline void rig_changed(void *arg)
{
	struct rig *r = arg;

	defer_call(&r->refresh, r->loop, rig_refresh, r);
}

static inline void rig_cluster_changed(void *arg, const struct kobj *was, const struct kobj *now)
{
	rig_changed(arg);
}

static inline void rig_log(enum log_level level, const char *line, void *arg)
{
	struct rig *r = arg;

	strbuf_adds(&r->log, line);
	strbuf_addc(&r->log, '\n');
}

/* ---- life */

/* Everything but the watches' start, so that a test can put faults before the first list. */
static inline void rig_init(struct rig *r)
{
	struct err err = ERR_INIT;

	memset(r, 0, sizeof(*r));
	clock_fake_start(START_MS, START_S);
	log_capture(rig_log, r);
	r->loop = loop_new();
	r->api = fake_api_new(r->loop);
	r->ft = fake_transport_new(r->loop);
	fake_transport_set_api(r->ft, r->api);
	for (int i = 0; i < RIG_N; i++) {
		struct k8s_watch_conf conf = {.gvk = caches_kinds[i].gvk, .ns = NS};

		r->caches.cache[i] = k8s_cache_new(&caches_kinds[i].cache);
		r->watch[i] = k8s_watch_new(
			r->loop, fake_transport_seam(r->ft), r->caches.cache[i], &conf);
		k8s_watch_on_state(r->watch[i], rig_changed, r);
	}
	k8s_cache_listen(r->caches.cache[CACHES_CLUSTERS], rig_cluster_changed, r);
	r->events = k8s_events_new(fake_transport_seam(r->ft), NS, "tec-operator", "test");
	r->env = (struct srv_env){
		.loop = r->loop,
		.api = fake_transport_seam(r->ft),
		.ns = NS,
		.caches = &r->caches,
		.events = r->events,
		.max_connections = 100,
	};
	r->env.certs = srv_certs_new(r->loop, r->env.api, NS, rig_changed, r);
	r->env.pending = srv_pending_new(&r->caches);
	r->env.regkey = srv_regkey_new(r->loop, r->env.api, NS);
	r->ign = srv_regignition_new(&r->env);
	r->ak = srv_regak_new(&r->env);
	cr_assert_eq(
		httpd_listen(srv_listener_httpd(r->ign), "127.0.0.1:0", &err), 0, "%s", err.text);
	cr_assert_eq(
		httpd_listen(srv_listener_httpd(r->ak), "127.0.0.1:0", &err), 0, "%s", err.text);
	r->port = httpd_port(srv_listener_httpd(r->ign));
	r->ak_port = httpd_port(srv_listener_httpd(r->ak));
}

static inline void rig_start(struct rig *r)
{
	for (int i = 0; i < RIG_N; i++)
		k8s_watch_start(r->watch[i]);
	loop_drain(r->loop);
}

/* The one cluster, its spec as JSON; then everything has settled and earlier requests are
 * forgotten. */
static inline void rig_cluster(struct rig *r, const char *spec)
{
	cleanup_free char *text = xasprintf("{\"metadata\":{\"name\":\"tec\"},\"spec\":%s}", spec);

	fake_api_put(r->api, &kobj_cluster, NS, text);
	loop_drain(r->loop);
	fake_transport_forget(r->ft);
}

#define OPEN_SPEC                                                                                  \
	"{\"publicTrusteeAddr\":\"trustee.example.org:8443\","                                     \
	"\"publicAttestationKeyRegisterAddr\":\"register.example.org:8001\"}"

/* Ready, with a cluster (spec NULL: none). */
static inline void rig_open(struct rig *r, const char *spec)
{
	rig_init(r);
	rig_start(r);
	if (spec)
		rig_cluster(r, spec);
	else
		fake_transport_forget(r->ft);
}

static inline void rig_close(struct rig *r)
{
	defer_cancel(&r->refresh);
	srv_listener_free(r->ak);
	srv_listener_free(r->ign);
	srv_certs_free(r->env.certs);
	srv_regkey_free(r->env.regkey);
	for (int i = 0; i < RIG_N; i++)
		k8s_watch_free(r->watch[i]);
	k8s_events_free(r->events);
	for (int i = 0; i < RIG_N; i++)
		k8s_cache_free(r->caches.cache[i]);
	srv_pending_free(r->env.pending);
	ratelimit_free(r->env.rate);
	cr_assert_eq(fake_transport_in_flight(r->ft), 0, "a call outlived its owner");
	fake_transport_free(r->ft);
	fake_api_free(r->api);
	loop_free(r->loop);
	log_capture(NULL, NULL);
	strbuf_fini(&r->log);
	cr_assert_eq(secret_count(), 0, "key material stayed in memory");
	metric_reset_all();
	clock_fake_stop();
}

/* ---- asking */

/* One request on a connection of its own. */
static inline void rig_ask(struct rig *r, unsigned port, const char *text, struct cli_reply *out)
{
	struct cli c = cli_open(r->loop, port);

	cli_send(&c, text);
	cr_assert(cli_reply(&c, out, strncmp(text, "HEAD ", 5) == 0), "no reply to: %.200s", text);
	cli_close(&c);
	loop_drain(r->loop);
}

static inline int rig_status(struct rig *r, unsigned port, const char *text)
{
	struct cli_reply a;
	int status;

	rig_ask(r, port, text, &a);
	status = a.status;
	cli_reply_fini(&a);
	return status;
}

#define GET_IGNITION "GET /ignition HTTP/1.1\r\nHost: x\r\n\r\n"

/* The caller frees. */
static inline char *rig_put_text(const char *method, const char *body, size_t len, const char *type)
{
	struct strbuf b = STRBUF_INIT;

	strbuf_addf(&b, "%s /register-ak HTTP/1.1\r\nHost: x\r\n", method);
	if (type)
		strbuf_addf(&b, "Content-Type: %s\r\n", type);
	strbuf_addf(&b, "Content-Length: %zu\r\n\r\n", len);
	strbuf_add(&b, body, len);
	return strbuf_steal(&b);
}

/* PUT /register-ak; body may hold NUL bytes. */
static inline void rig_put(struct rig *r, const char *body, size_t len, struct cli_reply *out)
{
	struct cli c = cli_open(r->loop, r->ak_port);
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	strbuf_addf(&b,
		"PUT /register-ak HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n",
		len);
	strbuf_add(&b, body, len);
	cli_send_some(&c, b.data, b.len, 2000);
	cr_assert(cli_reply(&c, out, false), "no reply to: %.200s", body);
	cli_close(&c);
	loop_drain(r->loop);
}

/* {"public_key": pem, "uuid": uuid or absent}; the caller frees. */
static inline char *rig_key_body(const char *pem, const char *uuid)
{
	cleanup_json struct json_object *o = json_obj();

	json_add_str(json_add_str(o, "public_key", pem), "uuid", uuid);
	return json_text(o);
}

static inline void rig_register(
	struct rig *r, const char *pem, const char *uuid, struct cli_reply *out)
{
	cleanup_free char *body = rig_key_body(pem, uuid);

	rig_put(r, body, strlen(body), out);
}

static inline int rig_register_status(struct rig *r, const char *pem, const char *uuid)
{
	struct cli_reply a;
	int status;

	rig_register(r, pem, uuid, &a);
	status = a.status;
	cli_reply_fini(&a);
	return status;
}

/* Asks on a connection that stays open, and returns when the API call is on its way. */
static inline struct cli rig_begin(
	struct rig *r, unsigned port, const char *text, struct fake_expect *call)
{
	struct cli c = cli_open(r->loop, port);

	cli_send(&c, text);
	while (!fake_expect_started(call))
		loop_turn(r->loop, 1);
	return c;
}

static inline struct cli rig_begin_register(
	struct rig *r, const char *pem, const char *uuid, struct fake_expect *call)
{
	cleanup_free char *body = rig_key_body(pem, uuid);
	cleanup_free char *text = rig_put_text("PUT", body, strlen(body), "application/json");

	return rig_begin(r, r->ak_port, text, call);
}

/* text with every `what` replaced; the caller frees. */
static inline char *rig_replaced(const char *text, const char *what, const char *by)
{
	struct strbuf b = STRBUF_INIT;
	const char *at;

	while ((at = strstr(text, what))) {
		strbuf_add(&b, text, (size_t)(at - text));
		strbuf_adds(&b, by);
		text = at + strlen(what);
	}
	strbuf_adds(&b, text);
	return strbuf_steal(&b);
}

/* ---- judging */

/* Status, Retry-After (0: must be absent) and the exact body; frees the reply. */
static inline void rig_expect(
	struct cli_reply *a, int status, unsigned retry_s, const char *body, const char *what)
{
	const char *retry = cli_header(a, "Retry-After");

	cr_assert_eq(a->status, status, "%s: %d %s", what, a->status, a->body);
	cr_assert_str_eq(a->body, body, "%s", what);
	if (retry_s)
		cr_assert(retry && strtoul(retry, NULL, 10) == retry_s, "%s: Retry-After %s", what,
			retry ? retry : "absent");
	else
		cr_assert_null(retry, "%s: Retry-After %s", what, retry);
	cr_assert_str_eq(cli_header(a, "Content-Type"), "application/json", "%s", what);
	cli_reply_fini(a);
}

static inline size_t rig_posts(const struct rig *r)
{
	return fake_transport_count(r->ft, "POST", NULL);
}

/* Nobody knows whether what was under way was made: it counts for some seconds. */
static inline void rig_forgets(struct rig *r)
{
	clock_fake_advance(10000);
	cr_assert_eq(srv_pending_count(r->env.pending), 0);
}

/* A TLS Secret; NULL members are left out. */
static inline void rig_secret(
	struct rig *r, const char *name, const char *crt, const char *key, const char *ca)
{
	const char *const member[] = {"tls.crt", "tls.key", "ca.crt"};
	const char *const value[] = {crt, key, ca};
	struct json_object *o = json_obj(), *data = json_obj();

	for (int i = 0; i < 3; i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		if (!value[i])
			continue;
		bytes_to_b64(&b, value[i], strlen(value[i]));
		json_add_str(data, member[i], strbuf_str(&b));
	}
	json_add(o, "metadata", json_add_str(json_obj(), "name", name));
	json_add_str(json_add(o, "data", data), "type", "kubernetes.io/tls");
	fake_api_put_json(r->api, &kobj_secret, NS, o);
	loop_drain(r->loop);
}

#endif
