/* SPDX-License-Identifier: MIT */
/*
 * One op = a token, a request, an answer looked at for its error type. A token is kept for half of
 * its life by the boot clock, so a wall clock that jumps cannot make it look fresh; one that is
 * refused is made anew once, as the far side's clock may differ from when ours was set. Does not
 * follow redirects: an answer that is no 200 is for the caller to judge.
 */
#include "config.h"

#include "tec/kbs/client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/jose/jws.h"

#define DEADLINE_MS 10000u
#define CONNECT_MS  5000u
#define MAX_ANSWER  (256u * 1024)
#define IN_FLIGHT   64u

struct client {
	struct kbs_transport t; /* first */
	struct httpc *http;     /* borrowed */
	struct httpc_tls *tls;  /* a reference; NULL: plain */
	struct pki_key *key;
	char *url, *connect_to;
	struct secret *token;
	uint64_t token_until_ms;
	unsigned n_calls;
};

struct call {
	struct op op; /* first */
	struct client *c;
	struct op_scope inner;
	char *method, *path, *content_type;
	uint8_t *body; /* wiped */
	size_t body_len;
	uint32_t deadline_ms;
	size_t max_answer;
	bool retried;
	kbs_answer_fn done;
	void *arg;
};

static void token_drop(struct client *c)
{
	secret_free(steal_ptr(&c->token));
}

static const char *token(struct client *c)
{
	uint64_t now = clock_boot_ms();
	int64_t wall = clock_wall_s();
	struct err err = ERR_INIT;
	char payload[160];
	int n;

	if (c->token && now < c->token_until_ms)
		return (const char *)secret_peek(c->token);
	token_drop(c);
	n = snprintf(payload, sizeof(payload),
		"{\"iss\":\"tec-operator\",\"aud\":\"kbs\",\"role\":\"admin\",\"iat\":%lld,\"exp\":%lld}",
		(long long)wall, (long long)wall + KBS_TOKEN_LIFE_S);
	c->token = jws_sign_eddsa(c->key, payload, (size_t)n, &err);
	if (!c->token) /* the key was looked at when the client was made */
		DIE("kbs client: %s", err.text);
	c->token_until_ms = now + KBS_TOKEN_LIFE_S * 1000 / 2;
	return (const char *)secret_peek(c->token);
}

static void call_free(struct call *k)
{
	op_scope_cancel(&k->inner);
	if (k->body)
		secret_wipe(k->body, k->body_len);
	free(k->body);
	free(k->method);
	free(k->path);
	free(k->content_type);
	free(k);
}

static void call_abort(struct op *op)
{
	struct call *k = (struct call *)op;

	k->c->n_calls--;
	call_free(k);
}

static void call_send(struct call *k);

static void on_http(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct call *k = arg;
	struct client *c = k->c;
	char type[KBS_TYPE_MAX] = "";
	struct kbs_answer answer = {.type = type, .body = ""};

	if (!err_is_set(err)) {
		answer.status = a->status;
		answer.body = a->body;
		answer.body_len = a->body_len;
		answer.retry_after_ms = a->retry_after_ms;
		if (a->status != 200)
			kbs_answer_type(a->body, a->body_len, type);
		if (str_starts(type, "AdminAuth") && !k->retried) {
			k->retried = true;
			token_drop(c);
			call_send(k);
			return;
		}
	}
	op_finish(&k->op);
	c->n_calls--;
	k->done(k->arg, err, &answer); /* may free the client */
	call_free(k);
}

static void call_send(struct call *k)
{
	struct client *c = k->c;
	cleanup_free char *url = xasprintf("%s%s", c->url, k->path);
	struct httpc_header headers[1] = {{"Content-Type", k->content_type}};
	struct httpc_request req = {
		.method = k->method,
		.url = url,
		.tls = c->tls,
		.connect_to = c->connect_to,
		.headers = headers,
		.n_headers = k->content_type ? 1 : 0,
		.bearer = token(c),
		.body = k->body,
		.body_len = k->body_len,
		.max_body = k->max_answer,
		.deadline_ms = k->deadline_ms,
		.connect_ms = CONNECT_MS,
		.max_in_flight = IN_FLIGHT,
	};

	(void)httpc_start(c->http, &k->inner, &req, NULL, on_http, k);
}

static struct op *client_start(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_request *req, kbs_answer_fn done, void *arg)
{
	struct client *c = (struct client *)t;
	struct call *k = xcalloc(1, sizeof(*k));

	k->c = c;
	k->method = xstrdup(req->method);
	k->path = xstrdup(req->path);
	k->content_type = xstrdup(req->content_type);
	if (req->body) {
		k->body = xmemdup(req->body, req->body_len);
		k->body_len = req->body_len;
	}
	k->deadline_ms = req->deadline_ms ? req->deadline_ms : DEADLINE_MS;
	k->max_answer = req->max_answer ? req->max_answer : MAX_ANSWER;
	k->done = done;
	k->arg = arg;
	c->n_calls++;
	op_begin(&k->op, scope, call_abort);
	call_send(k);
	return &k->op;
}

static void client_free(struct kbs_transport *t)
{
	struct client *c = (struct client *)t;

	assert(c->n_calls == 0);
	token_drop(c);
	httpc_tls_unref(c->tls);
	pki_key_free(c->key);
	free(c->url);
	free(c->connect_to);
	free(c);
}

static const struct kbs_transport_ops client_ops = {client_start, client_free};

struct kbs_transport *kbs_client_new(
	struct loop *l, struct httpc *http, const struct kbs_client_conf *conf, struct err *err)
{
	struct pki_key *key = pki_key_from_pem(conf->admin, err);
	struct client *c;

	if (!key)
		return NULL;
	if (!pki_key_is_ed25519(key)) {
		pki_key_free(key);
		err_set(err, ERR_INVALID, "the administration key is no Ed25519 key");
		return NULL;
	}
	c = xcalloc(1, sizeof(*c));
	c->t.ops = &client_ops;
	c->t.loop = l;
	c->http = http;
	c->tls = conf->tls ? httpc_tls_ref(conf->tls) : NULL;
	c->key = key;
	c->url = xstrdup(conf->url);
	c->connect_to = xstrdup(conf->connect_to);
	return &c->t;
}
