/* SPDX-License-Identifier: MIT */
/*
 * GET; on 401, go to the token server once and repeat the GET; on 3xx, follow the redirect.
 * Credentials are sent only while scheme, host and port are those of the registry. After one
 * foreign redirect no later request carries credentials: otherwise that host could send us back
 * with a credential to an address of its choice. A body is delivered only if its length and SHA-256
 * match the descriptor.
 */
#include "config.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/str.h"
#include "tec/net/httpc_proxy.h"

#include "oci_internal.h"

#define REQUEST_MS    30000u
#define MAX_REDIRECTS 3u
#define CLIENT_ID     "tec-operator"
#define SILENCE_MS    30000u /* between two pieces of a streamed body */
#define SMALL_BODY    65536u /* minimum for max_body: error pages may exceed the document */

struct fetch {
	struct op op; /* first */
	const struct oci_net *net;
	struct oci_source *source;
	struct oci_want want;
	struct op_scope ops;
	char *url;
	char *realm; /* owned; URL of the token server used last */
	unsigned redirects;
	bool away;                   /* was redirected to another origin */
	bool sent_auth;              /* the current request carries credentials */
	struct bytes_sha256_run sum; /* of a streamed body */
	size_t came;                 /* its bytes so far */
	oci_fetch_fn done;
	void *arg;
};

static void send_get(struct fetch *f);

static void fetch_free(struct fetch *f)
{
	op_scope_cancel(&f->ops);
	bytes_sha256_fini(&f->sum);
	free(f->url);
	free(f->realm);
	free(f);
}

static void fetch_abort(struct op *op)
{
	fetch_free((struct fetch *)op);
}

static void fetch_end(struct fetch *f, const struct err *err, const char *body, size_t len)
{
	oci_fetch_fn done = f->done;
	void *arg = f->arg;

	op_finish(&f->op);
	fetch_free(f);
	done(arg, err, body, len);
}

/* End with an error that names the host. */
static void fetch_fail(struct fetch *f, struct err *err)
{
	err_wrap(err, "%s of %s", f->want.blob ? "blob" : "manifest", f->source->host);
	fetch_end(f, err, NULL, 0);
}

#define FAIL(f, kind, ...)                                                                         \
	do {                                                                                       \
		struct err fail_err = ERR_INIT;                                                    \
		err_set(&fail_err, (kind), __VA_ARGS__);                                           \
		fetch_fail((f), &fail_err);                                                        \
	} while (0)

/* Fail with the error kind that fits a status. */
static void fail_status(struct fetch *f, const char *who, const struct httpc_answer *a)
{
	struct err err = ERR_INIT;
	enum err_kind kind = ERR_INVALID;

	if (a->status == 404)
		kind = ERR_NOT_FOUND;
	else if (a->status == 401 || a->status == 403)
		kind = ERR_DENIED;
	else if (a->status == 408 || a->status == 429 || a->status >= 500)
		kind = ERR_TRANSIENT;
	err_set_http(&err, kind, a->status, "%s answered %d", who, a->status);
	err.retry_after_ms = a->retry_after_ms;
	fetch_fail(f, &err);
}

/* Replace the error of a blocked connection with one that helps the author of the reference. url:
 * that of the request. */
static void explain_reach(
	const struct fetch *f, const char *url, const struct httpc_answer *a, struct err *err)
{
	const struct oci_place *p = &f->source->place;

	if (err->kind != ERR_DENIED || a->status ||
		oci_redirect_reach(p, url) & ADDR_REACH(a->scope))
		return;
	err_clear(err);
	if (p->answered)
		err_set(err, ERR_DENIED,
			"the registry redirects to a %s address, but its own address is %s: no request was sent",
			addr_scope_name(a->scope), addr_scope_name(p->scope));
	else
		err_set(err, ERR_DENIED,
			"the host name resolves to a %s address: use an IP address or localhost in the reference, or give the registry another address",
			addr_scope_name(a->scope));
}

/* ---- token ---- */

/* Keep the token for further fetches from this source, and repeat the GET with it. */
static void on_token(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct fetch *f = arg;
	struct oci_token t = {0};
	struct err e = *err;

	if (err_is_set(&e)) {
		explain_reach(f, f->realm, a, &e);
		err_wrap(&e, "token server");
		fetch_fail(f, &e);
		return;
	}
	if (a->status == 400 ||
		a->status == 404) /* how Docker Hub and others reject wrong credentials */
		FAIL(f, ERR_DENIED, "the token server answered %d", a->status);
	else if (a->status != 200)
		fail_status(f, "the token server", a);
	else if (oci_token_parse(a->body, a->body_len, &t, &e) != 0)
		fetch_fail(f, &e);
	else {
		secret_free(f->source->token);
		f->source->token = t.token;
		f->source->token_until_ms = clock_boot_ms() + t.valid_s * 1000ull;
		send_get(f);
	}
}

static void add_param(struct strbuf *b, const char *name, const char *s, size_t len)
{
	if (b->len && b->data[b->len - 1] != '?')
		strbuf_addc(b, '&');
	strbuf_adds(b, name);
	strbuf_addc(b, '=');
	str_percent_encode(b, s, len);
}

/* Append service and scope. In a URL each scope is a separate parameter; in a form they stay
 * together. */
static void add_params(
	const struct fetch *f, const struct oci_challenge *c, bool form, struct strbuf *b)
{
	cleanup_free char *own = xasprintf("repository:%s:pull", f->source->repository);
	const char *scope = *c->scope ? c->scope : own;

	if (*c->service)
		add_param(b, "service", c->service, strlen(c->service));
	while (*scope) {
		size_t n = form ? strlen(scope) : strcspn(scope, " ");

		if (n)
			add_param(b, "scope", scope, n);
		scope += n;
		scope += *scope == ' ';
	}
}

/* Build the form for an OAuth2 refresh, in locked memory: a refresh token is equivalent to a
 * password. */
static struct secret *refresh_form(const struct fetch *f, const struct oci_challenge *c)
{
	static const char hex[] = "0123456789ABCDEF";
	const struct secret *identity = f->source->cred->identity;
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	struct secret *out;
	uint8_t *p;

	strbuf_adds(&head, "grant_type=refresh_token&client_id=" CLIENT_ID);
	add_params(f, c, true, &head);
	strbuf_adds(&head, "&refresh_token=");
	out = secret_new(head.len + 3 * (secret_len(identity) - 1));
	p = secret_bytes(out);
	memcpy(p, head.data, head.len);
	p += head.len;
	for (size_t i = 0; i + 1 < secret_len(identity); i++) {
		*p++ = '%';
		*p++ = (uint8_t)hex[secret_peek(identity)[i] >> 4];
		*p++ = (uint8_t)hex[secret_peek(identity)[i] & 15];
	}
	return out;
}

/* Request a token: with a POST for an identity token, otherwise with a GET, anonymously if there
 * are no credentials. */
static void ask_token(struct fetch *f, const struct oci_challenge *c)
{
	const struct oci_cred *cred = f->source->cred;
	cleanup_strbuf struct strbuf url = STRBUF_INIT;
	cleanup_secret struct secret *form = NULL;
	struct httpc_header h = {0};
	struct httpc_request req = {.method = "GET",
		.tls = oci_is_https(c->realm) ? f->net->tls : NULL,
		.proxy = httpc_proxy_of_env(c->realm),
		.deadline_ms = REQUEST_MS,
		.reach = oci_redirect_reach(&f->source->place, c->realm),
		.headers = &h};
	struct err err = ERR_INIT;

	/* Credentials are sent to the realm, so it is checked like a redirect. */
	if (oci_redirect_check(&f->source->place, f->source->base, c->realm, &err) != 0) {
		err_wrap(&err, "the token server of the registry is not allowed");
		fetch_fail(f, &err);
		return;
	}
	free(f->realm);
	f->realm = xstrdup(c->realm);
	strbuf_add(&url, c->realm, strcspn(c->realm, "#"));
	if (cred && cred->identity) {
		form = refresh_form(f, c);
		req.method = "POST";
		req.body = secret_peek(form);
		req.body_len = secret_len(form);
		h = (struct httpc_header){"Content-Type", "application/x-www-form-urlencoded"};
		req.n_headers = 1;
	} else {
		if (!strchr(strbuf_str(&url), '?'))
			strbuf_addc(&url, '?');
		add_params(f, c, false, &url);
		if (cred) {
			h = (struct httpc_header){
				"Authorization", (const char *)secret_peek(cred->basic)};
			req.n_headers = 1;
		}
	}
	req.url = strbuf_str(&url);
	(void)httpc_start(f->net->http, &f->ops, &req, NULL, on_token, f);
}

/* Handle a 401. Each kind of failure gets its own text, because most of them are mistakes in a
 * configuration. */
static void on_challenge(struct fetch *f, const struct httpc_answer *a)
{
	const struct oci_cred *cred = f->source->cred;
	struct oci_challenge c;
	struct err err = ERR_INIT;

	if (f->away)
		FAIL(f, ERR_DENIED,
			"the redirect target requires credentials, which are not sent to other hosts");
	else if (f->sent_auth)
		FAIL(f, ERR_DENIED, "the registry rejected the credentials");
	else if (!a->www_authenticate)
		FAIL(f, ERR_DENIED, "the registry requires credentials but sent no challenge");
	else if (oci_challenge_parse(a->www_authenticate, strlen(a->www_authenticate), &c, &err) !=
		 0)
		fetch_fail(f, &err);
	else if (c.bearer)
		ask_token(f, &c);
	else if (!c.basic)
		FAIL(f, ERR_DENIED, "the registry accepts neither a token nor a password");
	else if (!cred || !cred->basic)
		FAIL(f, ERR_DENIED,
			"the registry requires a password, but none is configured for it");
	else {
		f->source->basic = true;
		send_get(f);
	}
}

/* ---- the document ---- */

/* Follow a redirect. `away` is never reset, see above. */
static void on_redirect(struct fetch *f, const char *to)
{
	struct err err = ERR_INIT;

	if (!to)
		FAIL(f, ERR_INVALID, "the redirect has no Location");
	else if (++f->redirects > MAX_REDIRECTS)
		FAIL(f, ERR_INVALID, "more than %u redirects", MAX_REDIRECTS);
	else if (oci_redirect_check(&f->source->place, f->url, to, &err) != 0) {
		err_wrap(&err, "redirect refused");
		fetch_fail(f, &err);
	} else {
		f->away = f->away || !oci_same_origin(to, f->source->base);
		free(f->url);
		f->url = xstrdup(to);
		send_get(f);
	}
}

/* Verify a document. One that was requested by tag has no digest to compare. */
static void on_document(struct fetch *f, const struct httpc_answer *a)
{
	const struct oci_descriptor *d = &f->want.what;
	struct err err = ERR_INIT;

	/* Length and digest of the body are not reported: it may be an internal server's page. */
	if (f->want.any_size ? a->body_len > d->size : a->body_len != d->size)
		FAIL(f, ERR_INVALID, "the response does not have the expected %zu bytes", d->size);
	else if (!f->want.tag && oci_digest_check(d->digest, a->body, a->body_len, &err) != 0)
		fetch_fail(f, &err);
	else
		fetch_end(f, &err, a->body, a->body_len);
}

/* Stop a streamed body that is too long before it is complete, since it goes to disk. */
static int on_piece(void *arg, const void *data, size_t len, struct err *err)
{
	struct fetch *f = arg;
	const struct oci_descriptor *d = &f->want.what;

	if (len > d->size - f->came)
		return err_set(
			err, ERR_INVALID, "the response exceeds the expected %zu bytes", d->size);
	f->came += len;
	bytes_sha256_add(&f->sum, data, len);
	return f->want.piece(f->arg, data, len, err);
}

/* Verify a streamed body after its last piece. The receiver has used unverified data until now. */
static void on_pieces(struct fetch *f)
{
	const struct oci_descriptor *d = &f->want.what;
	uint8_t sum[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	struct err err = ERR_INIT;

	bytes_sha256_end(&f->sum, sum);
	bytes_to_hex(sum, sizeof(sum), hex);
	if (f->came != d->size)
		FAIL(f, ERR_INVALID, "the response ended after %zu of %zu bytes", f->came, d->size);
	else if (strcmp(d->digest + strlen("sha256:"), hex) != 0)
		FAIL(f, ERR_INVALID, "the content does not match the digest %.19s...", d->digest);
	else
		fetch_end(f, &err, NULL, 0);
}

/* Dispatch an answer. The kind of address that the registry has when it first answers decides where
 * later redirects may lead. */
static void on_answer(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct fetch *f = arg;
	struct err e = *err;

	if (err_is_set(&e)) {
		explain_reach(f, f->url, a, &e);
		fetch_fail(f, &e);
		return;
	}
	if (!f->source->place.answered && oci_same_origin(f->url, f->source->base)) {
		f->source->place.answered = true;
		f->source->place.scope = a->scope;
	}
	switch (a->status) {
	case 200:
		if (f->want.piece)
			on_pieces(f);
		else
			on_document(f, a);
		return;
	case 301:
	case 302:
	case 303:
	case 307:
	case 308:
		on_redirect(f, a->location);
		return;
	case 401:
		on_challenge(f, a);
		return;
	default:
		fail_status(f, "the server", a);
	}
}

/* Send the request. A streamed body has no total deadline, since layers are large, but a limit on
 * silence. */
static void send_get(struct fetch *f)
{
	struct oci_source *s = f->source;
	struct httpc_header h[2];
	struct httpc_request req = {
		.method = "GET",
		.url = f->url,
		.tls = oci_is_https(f->url) ? f->net->tls : NULL,
		.proxy = httpc_proxy_of_env(f->url),
		.headers = h,
		.reach = oci_redirect_reach(&f->source->place, f->url),
		.deadline_ms = f->want.piece ? 0 : REQUEST_MS,
		.silence_ms = f->want.piece ? SILENCE_MS : 0,
		.stream = f->want.piece != NULL,
		.max_body = f->want.what.size < SMALL_BODY ? SMALL_BODY : f->want.what.size,
	};

	if (s->token && clock_boot_ms() >= s->token_until_ms)
		secret_free(steal_ptr(&s->token));
	h[req.n_headers++] =
		(struct httpc_header){"Accept", f->want.blob ? "*/*" : OCI_ACCEPT_MANIFEST};
	f->sent_auth = !f->away && (s->token || s->basic);
	if (f->sent_auth && s->token)
		req.bearer = (const char *)secret_peek(s->token);
	else if (
		f->sent_auth) /* last, so that httpc does not move its buffer and leave a copy of the credential */
		h[req.n_headers++] = (struct httpc_header){
			"Authorization", (const char *)secret_peek(s->cred->basic)};
	f->came = 0;
	(void)httpc_start(
		f->net->http, &f->ops, &req, f->want.piece ? on_piece : NULL, on_answer, f);
}

/* `done` runs from the loop, as httpc_start() never finishes at once. */
struct op *oci_fetch_start(const struct oci_net *net, struct op_scope *scope,
	struct oci_source *source, const struct oci_want *want, oci_fetch_fn done, void *arg)
{
	struct fetch *f = xcalloc(1, sizeof(*f));

	f->net = net;
	f->source = source;
	f->want = *want;
	f->done = done;
	f->arg = arg;
	f->url = xasprintf("%s/%s/%s", source->base, want->blob ? "blobs" : "manifests",
		want->tag ? want->tag : want->what.digest);
	bytes_sha256_init(&f->sum);
	op_begin(&f->op, scope, fetch_abort);
	send_get(f);
	return &f->op;
}
