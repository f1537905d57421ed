/* SPDX-License-Identifier: MIT */
/*
 * One step at a time: register => server i => server i + 1 ... => wait => next round. The server
 * that answered last is asked first. The last error of each server is kept, so that it is printed
 * only once, and so that the final error is the most informative one: a refusal, then a usage
 * error, a TPM failure, a server error, and a network error.
 *
 * The answer 409 to a registration has two causes: the key is already registered with this UUID, or
 * with another one. The second is normal after a reinstallation, but a person should see it.
 */
#include "config.h"

#include "tec/attest/fetch.h"

#include <stdio.h>
#include <string.h>

#include "tec/attest/esys.h"
#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"

#define WAIT_MIN_MS 1000
#define WAIT_MAX_MS 30000
#define SAY_MS      10000
#define CONNECT_MS  5000
#define DEADLINE_MS 20000
#define ALREADY     "Public key already registered"
#define TPM_MS      30000 /* during boot a TPM may appear late, but not later than this */

/* ---- one registration */

struct registration {
	struct op op;        /* first */
	struct op_scope ops; /* the request */
	attest_register_fn done;
	void *arg;
};

/* Only https needs a context. A configured certificate replaces the system's CAs. */
int attest_server_tls(const struct attest_server *s, struct httpc_tls **out, struct err *err)
{
	*out = NULL;
	if (!str_starts(s->url, "https://"))
		return 0;
	*out = httpc_tls_new(s->cert, s->cert ? strlen(s->cert) : 0, NULL, 0, NULL, 0, NULL, err);
	return *out ? 0 : err_wrap(err, "the certificate of %s", log_esc(s->url));
}

static void registration_free(struct op *op)
{
	struct registration *r = container_of(op, struct registration, op);

	op_scope_cancel(&r->ops);
	free(r);
}

/* Return `message` of an error body, escaped, or NULL. */
static const char *words(const struct httpc_answer *a)
{
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *o =
		a->body_len ? json_parse(a->body, a->body_len, &json_limits_public, &ignored)
			    : NULL;
	const char *text = json_get_str(o, "message");

	return text ? log_esc(text) : NULL;
}

/* Classify the answer: 400, 401 and 403 refuse this node, everything else may be temporary. */
static void on_answer(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct registration *r = arg;
	enum attest_fault fault = ATTEST_OK;
	const char *note = NULL, *text;
	struct err e = ERR_INIT;

	if (err_is_set(err)) {
		e = *err;
		fault = ATTEST_NETWORK;
	} else if (a->status == 409) {
		text = words(a);
		note = text && !strstr(text, ALREADY) ? text : NULL;
	} else if (a->status != 200 && a->status != 201) {
		text = words(a);
		fault = a->status == 400 || a->status == 401 || a->status == 403 ? ATTEST_REFUSED
										 : ATTEST_SERVER;
		err_set_http(&e, fault == ATTEST_REFUSED ? ERR_DENIED : ERR_TRANSIENT, a->status,
			"the server answered %d%s%.150s", a->status, text ? ": " : "",
			text ? text : "");
		e.retry_after_ms = a->retry_after_ms;
	}
	op_finish(&r->op);
	r->done(r->arg, fault, &e, note);
	registration_free(&r->op);
}

struct op *attest_register_start(struct httpc *client, struct op_scope *scope, const char *url,
	struct httpc_tls *tls, const char *uuid, const struct pki_spki *ak, attest_register_fn done,
	void *arg)
{
	struct registration *r = xcalloc(1, sizeof(*r));
	cleanup_json struct json_object *o = json_obj();
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	cleanup_free char *body = NULL;
	const struct httpc_header type = {"Content-Type", "application/json"};
	struct httpc_request request = {.method = "PUT",
		.url = url,
		.tls = tls,
		.headers = &type,
		.n_headers = 1,
		.connect_ms = CONNECT_MS,
		.deadline_ms = DEADLINE_MS};

	pki_spki_to_pem(ak, &pem);
	json_add_str(o, "public_key", strbuf_str(&pem));
	json_add_str(json_add_str(o, "uuid", uuid), "platform", "tpm");
	body = json_text(o);
	request.body = body;
	request.body_len = strlen(body);

	r->done = done;
	r->arg = arg;
	op_begin(&r->op, scope, registration_free);
	httpc_start(client, &r->ops, &request, NULL, on_answer, r);
	return &r->op;
}

/* ---- fetching */

/* The last result of a server, as printed. */
struct said {
	enum attest_fault fault;
	struct err err;
	uint64_t held_until_ms; /* boot clock; it asked for no request before */
};

struct fetch {
	struct op op;        /* first */
	struct op_scope ops; /* one call at a time */
	struct httpc *client;
	const struct attest_source *source;
	struct attest_fetch_request r;
	struct httpc_tls *tls[ATTEST_SERVERS_MAX], *registration; /* owned references, or NULL */
	struct said said[ATTEST_SERVERS_MAX + 1]; /* the last entry is for the registration */
	bool registered;
	size_t first, next; /* server to ask now; servers asked in this round, 0 to n_servers */
	uint32_t rounds;    /* completed */
	uint64_t started_ms;
	struct backoff backoff;
	struct timer wait, progress, budget;
	attest_fetch_fn done;
	void *arg;
};

static void start_round(void *arg);
static void next_server(struct fetch *f);

/* ---- the end */

static void fetch_free(struct op *op)
{
	struct fetch *f = container_of(op, struct fetch, op);

	op_scope_cancel(&f->ops);
	timer_fini(&f->wait);
	timer_fini(&f->progress);
	timer_fini(&f->budget);
	for (size_t i = 0; i < ATTEST_SERVERS_MAX; i++)
		httpc_tls_unref(f->tls[i]);
	httpc_tls_unref(f->registration);
	free(f);
}

/* Deliver the answer and free everything that `done` did not take. */
static void finish(struct fetch *f, struct attest_fetch_answer *a)
{
	op_finish(&f->op);
	f->done(f->arg, a);
	attest_token_free(a->token);
	body_fini(&a->resource);
	fetch_free(&f->op);
}

/* Return the most informative of the errors, or NULL. */
static const struct said *reason(const struct fetch *f)
{
	static const enum attest_fault order[] = {
		ATTEST_REFUSED, ATTEST_USAGE, ATTEST_TPM, ATTEST_SERVER, ATTEST_NETWORK};

	for (size_t k = 0; k < ARRAY_LEN(order); k++)
		for (size_t i = 0; i <= ATTEST_SERVERS_MAX; i++)
			if (f->said[i].fault == order[k])
				return &f->said[i];
	return NULL;
}

/* End without a result. An error that was printed already is marked, so that the caller does not
 * repeat it. */
static void give_up(void *arg)
{
	struct fetch *f = arg;
	const struct said *why = reason(f);
	struct attest_fetch_answer a = {.fault = why ? why->fault : ATTEST_NETWORK};

	if (why)
		a.err = why->err;
	else
		err_set(&a.err, ERR_TRANSIENT, "no server answered in time");
	a.said = why && f->r.say;
	finish(f, &a);
}

/* ---- messages */

static const char *name_of(const struct fetch *f, size_t i)
{
	return i == ATTEST_SERVERS_MAX ? f->r.config->registration.url : f->r.config->server[i].url;
}

static void say(struct fetch *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct fetch *f, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (f->r.say)
		f->r.say(f->arg, strbuf_str(&text));
}

/* Keep the error of a server, and print it if it differs from the previous one. Certificate errors
 * get the time: a wrong clock is the usual cause of an invalid period. A server that limits
 * requests is left alone for the time that it states. */
static void note(struct fetch *f, size_t i, enum attest_fault fault, const struct err *err)
{
	struct said *s = &f->said[i];
	struct err e = *err;
	char now[CLOCK_RFC3339_LEN];
	uint32_t wait = err->http == 429 ? backoff_asked(err->retry_after_ms) : 0;

	if (strstr(e.text, "expired") || strstr(e.text, "not yet valid")) {
		clock_format(clock_wall_s(), now);
		snprintf(e.text + strlen(e.text), sizeof(e.text) - strlen(e.text),
			"; check this machine's clock, which reads %s", now);
	}
	if (wait)
		snprintf(e.text + strlen(e.text), sizeof(e.text) - strlen(e.text),
			"; retrying in %u s", (wait + 999) / 1000);
	if (s->fault != fault || !str_eq(s->err.text, e.text))
		say(f, "%s: %s", name_of(f, i), e.text);
	s->fault = fault;
	s->err = e;
	s->held_until_ms = clock_boot_ms() + wait;
}

/* Print a line every SAY_MS, so that a person at a boot prompt sees that something happens. */
static void on_progress(void *arg)
{
	struct fetch *f = arg;
	const struct said *why = reason(f);
	unsigned s = (unsigned)((clock_boot_ms() - f->started_ms) / 1000);

	say(f, "still waiting for %s after %u s%s%s",
		f->r.token_only ? "a token" : f->r.config->path, s, why ? ": " : "",
		why ? why->err.text : "");
	timer_set(&f->progress, SAY_MS);
}

/* ---- rounds */

/* The time until the next round: a backoff, or longer if all servers asked for that. */
static uint64_t wait_ms(struct fetch *f)
{
	uint64_t ms = backoff_next(&f->backoff, WAIT_MIN_MS, WAIT_MAX_MS);
	uint64_t now = clock_boot_ms(), soonest = UINT64_MAX;

	for (size_t i = 0; i < f->r.config->n_servers; i++)
		if (f->said[i].held_until_ms < soonest)
			soonest = f->said[i].held_until_ms;
	return soonest > now + ms ? soonest - now : ms;
}

/* Give up if the retries are used up, else start the next round after a wait. A missing or busy
 * TPM gets TPM_MS to recover, other TPM errors are permanent. */
static void end_round(struct fetch *f)
{
	const struct said *why = reason(f);
	bool final = why && why->fault == ATTEST_TPM &&
		     ((why->err.kind != ERR_NOT_FOUND && why->err.kind != ERR_TRANSIENT) ||
			     clock_boot_ms() - f->started_ms >= TPM_MS);

	f->rounds++;
	if ((f->r.config->limited && f->rounds > f->r.config->retries) || final)
		give_up(f);
	else
		timer_set(&f->wait, wait_ms(f));
}

/* Handle the result of one server. A stale token does not count as an attempt: the same server is
 * asked again, with a full attestation. */
static void on_flow(void *arg, struct attest_flow_answer *a)
{
	struct fetch *f = arg;
	size_t i = f->first;
	struct attest_fetch_answer out = {.fault = ATTEST_OK, .server = i};

	if (a->stale) {
		f->r.token = NULL;
		next_server(f);
		return;
	}
	if (a->fault == ATTEST_OK && f->r.accept && f->r.accept(f->arg, &a->resource, &a->err) < 0)
		a->fault = ATTEST_SERVER;
	if (a->fault == ATTEST_OK) {
		out.token = steal_ptr(&a->token);
		out.resource = body_move(&a->resource);
		finish(f, &out);
		return;
	}
	note(f, i, a->fault, &a->err);
	f->next++;
	f->first = (f->first + 1) % f->r.config->n_servers;
	next_server(f);
}

static bool held(const struct said *s)
{
	return clock_boot_ms() < s->held_until_ms;
}

/* Ask the next server of the round, without those that asked for a wait. The token is used only with
 * the server that issued it. */
static void next_server(struct fetch *f)
{
	const struct attest_config *c = f->r.config;
	struct attest_flow_request r = {
		.path = f->r.token_only ? NULL : c->path, .init_data = c->init_data};

	for (; f->next < c->n_servers && held(&f->said[f->first]); f->next++)
		f->first = (f->first + 1) % c->n_servers;
	if (f->next == c->n_servers) {
		end_round(f);
		return;
	}
	r.url = c->server[f->first].url;
	r.tls = f->tls[f->first];
	r.token = f->first == f->r.first ? f->r.token : NULL;
	attest_flow_start(f->client, f->source, &f->ops, &r, on_flow, f);
}

/* ---- registration */

/* Go on to the attestation in any case, and print what the server wants a person to see. */
static void on_registered(
	void *arg, enum attest_fault fault, const struct err *err, const char *text)
{
	struct fetch *f = arg;

	if (fault == ATTEST_OK) {
		f->registered = true;
		f->said[ATTEST_SERVERS_MAX].fault = ATTEST_OK;
		if (text)
			say(f, "%s: %s", name_of(f, ATTEST_SERVERS_MAX), text);
	} else {
		note(f, ATTEST_SERVERS_MAX, fault, err);
	}
	next_server(f); /* even after a failure: the key may be registered already */
}

/* Create the AK if necessary, then register it. The TPM commands block the loop. */
static void start_registration(struct fetch *f)
{
	const struct attest_config *c = f->r.config;
	struct err err = ERR_INIT;
	cleanup_esys struct attest_esys *e = attest_esys_open(f->source->tcti, &err);
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct pki_spki ak;

	if (!e || attest_esys_ak_make(e, f->source->ak_handle, &ak, &err) < 0) {
		note(f, ATTEST_SERVERS_MAX, ATTEST_TPM, &err);
		end_round(f);
		return;
	}
	/* Save the public key for the user. A failure does not stop the attestation. */
	pki_spki_to_pem(&ak, &pem);
	if (f->r.ak_file && file_replace(f->r.ak_file, pem.data, pem.len, 0644, &err) < 0)
		say(f, "cannot save the public attestation key: %s", err.text);
	attest_register_start(f->client, &f->ops, c->registration.url, f->registration, c->uuid,
		&ak, on_registered, f);
}

/* Extend PCR 8 with init-data before the first quote. Return -1 if the round has ended. */
static int bind_init_data(struct fetch *f)
{
	const char *toml = f->r.config->init_data;
	cleanup_esys struct attest_esys *e = NULL;
	struct err err = ERR_INIT;

	if (!toml || !f->source->tcti)
		return 0;
	e = attest_esys_open(f->source->tcti, &err);
	if (e && attest_esys_bind(e, toml, &err) == 0)
		return 0;
	note(f, f->first, ATTEST_TPM, &err);
	end_round(f);
	return -1;
}

/* Start a round. A registration that failed is repeated in each round. */
static void start_round(void *arg)
{
	struct fetch *f = arg;

	f->next = 0;
	if (bind_init_data(f) < 0)
		return;
	if (f->r.config->registration.url && f->source->tcti && !f->registered &&
		!held(&f->said[ATTEST_SERVERS_MAX]))
		start_registration(f);
	else
		next_server(f);
}

/* ---- the start */

struct op *attest_fetch_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_fetch_request *r, attest_fetch_fn done,
	void *arg, struct err *err)
{
	const struct attest_config *c = r->config;
	struct fetch *f = xcalloc(1, sizeof(*f));
	int rc = 0;

	f->client = client;
	f->source = source;
	f->r = *r;
	f->first = r->first;
	f->done = done;
	f->arg = arg;
	f->started_ms = clock_boot_ms();
	timer_init(&f->wait, source->loop, start_round, f);
	timer_init(&f->progress, source->loop, on_progress, f);
	timer_init(&f->budget, source->loop, give_up, f);
	/* All TLS contexts are made here: a bad certificate is a usage error, not a failure of one
	 * server. */
	for (size_t i = 0; i < c->n_servers && rc == 0; i++)
		rc = attest_server_tls(&c->server[i], &f->tls[i], err);
	if (rc == 0 && c->registration.url)
		rc = attest_server_tls(&c->registration, &f->registration, err);
	if (rc < 0) {
		fetch_free(&f->op);
		return NULL;
	}
	op_begin(&f->op, scope, fetch_free);
	timer_set(&f->wait, 0);
	timer_set(&f->progress, SAY_MS);
	if (r->budget_ms)
		timer_set(&f->budget, r->budget_ms);
	return &f->op;
}
