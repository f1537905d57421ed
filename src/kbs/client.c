/* SPDX-License-Identifier: MIT */
/*
 * One HTTP request for each request of the seam. A token is used for half of its life by the boot
 * clock, so a wall clock that jumps cannot make it look fresh. Redirects are not followed: they are
 * treated like any other status than 200.
 */
#include "config.h"

#include "tec/kbs/client.h"

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
};

/* Drop the cached token; the next request signs a new one. */
static void client_renew(struct kbs_transport *t)
{
	secret_free(steal_ptr(&((struct client *)t)->token));
}

/* The current token, renewed after half of its life. Borrowed until the next call. */
static const char *token(struct client *c)
{
	uint64_t now = clock_boot_ms();
	int64_t wall = clock_wall_s();
	struct err err = ERR_INIT;
	char payload[160];
	int n;

	if (c->token && now < c->token_until_ms)
		return (const char *)secret_peek(c->token);
	client_renew(&c->t);
	n = snprintf(payload, sizeof(payload),
		"{\"iss\":\"tec-operator\",\"aud\":\"kbs\",\"role\":\"admin\",\"iat\":%lld,\"exp\":%lld}",
		(long long)wall, (long long)wall + KBS_TOKEN_LIFE_S);
	/* Trustee checks exp and role; iss and aud for configurations that require them. */
	c->token = jws_sign_eddsa(c->key, payload, (size_t)n, &err);
	if (!c->token) /* impossible: kbs_client_new() checked the key */
		DIE("kbs client: %s", err.text);
	c->token_until_ms = now + KBS_TOKEN_LIFE_S * 1000 / 2;
	return (const char *)secret_peek(c->token);
}

/* Pass the result on unjudged: kbs_call_answer() decides what it means. */
static void on_http(void *call, const struct err *err, const struct httpc_answer *a)
{
	const struct kbs_answer answer = {.status = err_is_set(err) ? 0 : a->status,
		.body = a->body,
		.body_len = a->body_len,
		.retry_after_ms = a->retry_after_ms,
		.sent = a->sent};

	kbs_call_answer(call, err, &answer);
}

/* `once`: only GET may be repeated on a new connection, as a repeated write could overtake a
 * later one. */
static void client_start(struct kbs_transport *t, struct op_scope *scope, struct kbs_request *req,
	struct kbs_call *call)
{
	struct client *c = (struct client *)t;
	cleanup_free char *url = xasprintf("%s%s", c->url, req->path);
	const struct httpc_header type = {"Content-Type", req->content_type};
	const struct httpc_request http = {
		.method = req->method,
		.url = url,
		.tls = c->tls,
		.connect_to = c->connect_to,
		.headers = &type,
		.n_headers = req->content_type ? 1 : 0,
		.bearer = token(c),
		.take_body = &req->body,
		.max_body = req->max_answer ? req->max_answer : MAX_ANSWER,
		.deadline_ms = req->deadline_ms ? req->deadline_ms : DEADLINE_MS,
		.connect_ms = CONNECT_MS,
		/* A write may have been executed although its answer was lost: only kbs_push may
		 * repeat it. */
		.once = strcmp(req->method, "GET") != 0,
		.max_in_flight = IN_FLIGHT,
	};

	(void)httpc_start(c->http, scope, &http, NULL, on_http, call);
}

static void client_free(struct kbs_transport *t)
{
	struct client *c = (struct client *)t;

	client_renew(t);
	httpc_tls_unref(c->tls);
	pki_key_free(c->key);
	free(c->url);
	free(c->connect_to);
	free(c);
}

static const struct kbs_transport_ops client_ops = {client_start, client_renew, client_free};

/* The key is checked here, once, so that signing a token cannot fail later. */
struct kbs_transport *kbs_client_new(
	struct loop *l, struct httpc *http, const struct kbs_client_conf *conf, struct err *err)
{
	struct pki_key *key = pki_key_from_pem(conf->admin, err);
	struct client *c;

	if (!key)
		return NULL;
	if (!pki_key_is_ed25519(key)) {
		pki_key_free(key);
		err_set(err, ERR_INVALID, "the administration key is not an Ed25519 key");
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
