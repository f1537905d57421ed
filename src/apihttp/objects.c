/* SPDX-License-Identifier: MIT */
/*
 * Requests about objects: convert the body to JSON, call the store, answer once the write is
 * durable. Long lists are streamed piece by piece. Reviews and token requests are answered at once
 * and never stored.
 *
 * The lines of a watch are taken from the store only as fast as the client reads, so a client that
 * stops reading costs one connection and one piece of memory. It gets 410 Gone once the store has
 * compacted the history it had not read, unless the listener closes the connection first.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tec/apireq/inproc.h"
#include "tec/apireq/listing.h"
#include "tec/apihttp/negotiation.h"
#include "tec/apihttp/protobuf.h"
#include "tec/apireq/request.h"
#include "tec/apireq/stream.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/base/yaml.h"
#include "tec/loop/timer.h"

#include "apihttp_internal.h"

#define PIECE       (128u << 10) /* bytes of a list per turn of the loop */
#define WATCH_PIECE (64u << 10)
#define BOOKMARK_MS 60000
#define LAST_MS     2000 /* before its end a watch sends a bookmark to resume from */
/* A random-like lifetime, as in kube-apiserver: watches must end, but not all at once. */
#define WATCH_MIN_S  1800
#define WATCH_SPREAD 1800

/* The lifetime of a token. */
#define TOKEN_MIN_S 600
#define TOKEN_MAX_S 315360000 /* 10 years: a following operator keeps one token */
#define TOKEN_S     3600

/* ---- bodies */

/* Compare a media type without its parameters, ignoring case. */
static bool type_is(const char *have, const char *want)
{
	size_t n = have ? strcspn(have, "; \t") : 0;

	return n == strlen(want) && strncasecmp(have, want, n) == 0;
}

/* Parse a JSON, YAML or protobuf body. An empty body is an empty object. NULL: *refusal is set. */
static struct json_object *read_body(struct httpd_req *req, struct apireq_answer *refusal)
{
	const char *type = httpd_req_header(req, "Content-Type");
	struct err err = ERR_INIT;
	struct json_object *o;
	size_t len;
	const char *body = httpd_req_body(req, &len);

	if (len == 0)
		return json_obj();
	if (type_is(type, APIHTTP_PROTOBUF_TYPE)) {
		o = apihttp_protobuf_read(body, len, &err);
		if (!o && err.kind == ERR_NOT_FOUND) {
			*refusal = apireq_status_refusal(415, "%s", err.text);
			return NULL;
		}
	} else if (type_is(type, "application/yaml"))
		o = yaml_parse_go(body, len, &err);
	else
		o = json_parse(body, len, &json_limits_object, &err);
	if (!o)
		*refusal = apireq_status_refusal(400, "the object provided is unrecognized: %s",
			err_is_set(&err) ? err.text : "it is null");
	return o;
}

/* ---- the store */

/* An answer that waits for its commit, or a list that is sent piece by piece. Owned by its
 * request. */
struct reply {
	struct store_wait wait;
	struct apireq_answer answer;
	struct apihttp_pieces stream;
};

/* Release a reply with its request: the client may disconnect before the commit. */
static void reply_gone(void *arg)
{
	struct reply *r = arg;

	store_wait_cancel(&r->wait);
	defer_cancel(&r->stream.next);
	apireq_answer_fini(&r->answer);
	free(r);
}

/* Send one piece of a list, and ask for the next turn of the loop unless the socket is full. */
static void next_piece(void *arg)
{
	struct reply *r = arg;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;
	int rc;

	rc = apireq_listing_pull(r->answer.more, &out, PIECE, &err);
	apihttp_pieces_add(&r->stream, out.data, out.len);
	body_fini(&out);
	if (rc > 0) {
		apihttp_pieces_more(&r->stream);
	} else if (rc == 0) {
		httpd_stream_end(r->stream.req);
	} else {
		log_err(LOG_ERROR, NULL, "reading a list failed", &err);
		httpd_stream_abort(r->stream.req); /* the client must not take it for complete */
	}
}

/* Answer after the commit. If it failed, the client gets that error instead of the answer prepared:
 * the write was undone. */
static void on_stored(void *arg, const struct err *failed)
{
	struct reply *r = arg;
	struct apireq_answer a = r->answer;

	/* HEAD gets no stream, only the first piece, whose body is not sent. */
	if (!err_is_set(failed) && a.more && httpd_req_method(r->stream.req) == HTTPD_GET) {
		apihttp_pieces_start(&r->stream, APIHTTP_JSON);
		apihttp_pieces_add(&r->stream, a.body, a.len);
		apihttp_pieces_more(&r->stream);
		return;
	}
	r->answer = (struct apireq_answer){0};
	if (err_is_set(failed)) {
		apireq_answer_fini(&a);
		a = apireq_status_storage(failed);
	}
	apihttp_answer(r->stream.req, a);
}

/* Call the store and answer. JSON bodies and patches are passed as received; YAML and protobuf
 * bodies are converted to JSON first, and the copy is wiped because it may hold a Secret. */
static void ask_store(const struct apihttp_call *c, const char *method)
{
	const char *type = httpd_req_header(c->req, "Content-Type");
	bool whole = type_is(type, "application/yaml") || type_is(type, APIHTTP_PROTOBUF_TYPE);
	struct apireq_request r = {.method = method,
		.content_type = type ? type : "",
		.warns = true,
		.user_agent = httpd_req_header(c->req, "User-Agent")};
	struct apireq_answer refusal = {0};
	cleanup_json struct json_object *body = NULL;
	cleanup_free char *text = NULL;
	struct reply *reply;

	r.body = httpd_req_body(c->req, &r.len);
	if (r.len > 0 && whole && !str_eq(method, "PATCH")) {
		body = read_body(c->req, &refusal);
		if (!body) {
			apihttp_answer(c->req, refusal);
			return;
		}
		r.body = text = json_text(body);
		r.len = strlen(text);
	}
	/* Reads wait for the commit too: they may have seen what was just written. */
	reply = xcalloc(1, sizeof(*reply));
	reply->stream = (struct apihttp_pieces){
		.req = c->req, .loop = c->shared->loop, .piece = next_piece, .arg = reply};
	reply->answer = apireq_request(c->shared->conf.objects, c->t, &r);
	httpd_req_on_gone(c->req, reply_gone, reply);
	store_objects_when_stored(c->shared->conf.objects, &reply->wait, on_stored, reply);
	if (text) {
		secret_wipe(text, strlen(text));
		json_wipe(body);
	}
}

/* ---- watches */

static struct metric watches_gauge =
	METRIC_GAUGE_INIT("tec_api_watches", "Watches that clients have open.", NULL, NULL);

struct apihttp_watch {
	LIST_ENTRY(apihttp_watch) link;
	struct apihttp_shared *shared;
	struct apireq_stream *w; /* owned */
	struct timer tick;       /* the next bookmark, or the end */
	uint64_t end_ms;
	struct apihttp_pieces stream;
};

/* Send the next lines, and ask for the next turn of the loop while the store has more. */
static void take_more(void *arg)
{
	struct apihttp_watch *w = arg;
	struct body out = BODY_INIT;
	enum store_watch_next next = apireq_stream_take(w->w, &out, WATCH_PIECE);

	apihttp_pieces_add(&w->stream, out.data, out.len);
	body_fini(&out);
	if (next == STORE_WATCH_END)
		httpd_stream_end(w->stream.req); /* w is gone */
	else if (next == STORE_WATCH_MORE)
		apihttp_pieces_more(&w->stream);
}

/* Called by the store when there may be more. The work is deferred: the caller is in a commit. */
static void on_ready(void *arg)
{
	struct apihttp_watch *w = arg;

	apihttp_pieces_more(&w->stream);
}

/* Return the time to the next timer: a bookmark each minute, the last one LAST_MS before the end,
 * and then the end itself. */
static uint64_t next_tick(uint64_t left_ms)
{
	uint64_t last = left_ms > LAST_MS ? left_ms - LAST_MS : left_ms;

	return last < BOOKMARK_MS ? last : BOOKMARK_MS;
}

/* Send the next bookmark, or end the stream. Ending it frees w. */
static void on_tick(void *arg)
{
	struct apihttp_watch *w = arg;
	uint64_t now = clock_boot_ms(), left = w->end_ms > now ? w->end_ms - now : 0;

	if (left == 0) {
		httpd_stream_end(w->stream.req);
		return;
	}
	apireq_stream_bookmark(w->w);
	timer_set(&w->tick, next_tick(left));
}

static void watch_gone(void *arg)
{
	struct apihttp_watch *w = arg;

	apireq_stream_free(w->w);
	defer_cancel(&w->stream.next);
	timer_fini(&w->tick);
	LIST_REMOVE(w, link);
	w->shared->n_watches--;
	metric_add(&watches_gauge, NULL, NULL, -1);
	free(w);
}

/* Start a watch or refuse it. timeoutSeconds bounds its life; without it, the server chooses. */
static void start_watch(const struct apihttp_call *c)
{
	cleanup_free char *seconds = apireq_request_info_param(c->t, "timeoutSeconds");
	struct apihttp_watch *w = xcalloc(1, sizeof(*w));
	struct apireq_answer refused = {0};
	uint64_t life = 0;

	if (seconds && str_to_u64(seconds, UINT32_MAX, &life) < 0)
		refused = apireq_status_refusal(400, "timeoutSeconds must be a number");
	else
		w->w = apireq_stream_new(c->shared->conf.objects, c->t, on_ready, w, &refused);
	if (!w->w) {
		free(w);
		apihttp_answer(c->req, refused);
		return;
	}
	/* It need not be unpredictable, only different for every watch. */
	if (life == 0)
		life = WATCH_MIN_S +
		       (clock_boot_us() / 7 + c->shared->n_watches * 61) % WATCH_SPREAD;
	w->shared = c->shared;
	w->stream = (struct apihttp_pieces){
		.req = c->req, .loop = c->shared->loop, .piece = take_more, .arg = w};
	w->end_ms = clock_boot_ms() + life * 1000;
	timer_init(&w->tick, c->shared->loop, on_tick, w);
	timer_set(&w->tick, next_tick(life * 1000));
	LIST_INSERT_HEAD(&c->shared->watches, w, link);
	c->shared->n_watches++;
	metric_add(&watches_gauge, NULL, NULL, 1);
	apihttp_pieces_start(&w->stream, APIHTTP_JSON);
	httpd_req_on_gone(c->req, watch_gone, w); /* which frees it */
	on_ready(w);
}

void apihttp_objects_drain(struct apihttp_shared *shared)
{
	while (!LIST_EMPTY(&shared->watches))
		httpd_stream_end(LIST_FIRST(&shared->watches)->stream.req);
}

/* ---- reviews: the object is returned with the answer in its status */

/* Answer 201 with the spec that was sent and the given status. */
static void answer_review(const struct apihttp_call *c, const char *version, const char *kind,
	struct json_object *body, struct json_object *take_status)
{
	struct json_object *o = json_obj(), *spec = json_get(body, "spec");

	json_add_str(json_add_str(o, "kind", kind), "apiVersion", version);
	json_add(o, "metadata", json_obj());
	if (spec)
		json_add(o, "spec", json_object_get(spec));
	json_add(o, "status", take_status);
	apihttp_answer_json(c->req, 201, o);
}

static const char *text_at(struct json_object *o, const char *path)
{
	const char *s = json_get_str(o, path);

	return s ? s : "";
}

/* Answer a SelfSubjectAccessReview ("kubectl auth can-i") from the rules that authorize
 * requests. */
static void access_review(const struct apihttp_call *c, struct json_object *body)
{
	struct json_object *res = json_get_obj(body, "spec/resourceAttributes");
	struct json_object *non = json_get_obj(body, "spec/nonResourceAttributes");
	struct apireq_act act = {text_at(res, "verb"), text_at(res, "group"),
		text_at(res, "resource"), text_at(res, "subresource"), text_at(res, "namespace"),
		text_at(res, "name"), ""};
	struct json_object *status;

	if (non)
		act = (struct apireq_act){
			text_at(non, "verb"), "", "", "", "", "", text_at(non, "path")};
	/* Both or neither was given. */
	if (!res == !non) {
		apihttp_answer_refuse(c->req, 422,
			"exactly one of spec.resourceAttributes and spec.nonResourceAttributes must be specified");
		return;
	}
	status = json_obj();
	json_add_bool(
		status, "allowed", apireq_rights_allow(c->shared->conf.objects, &c->user, &act));
	answer_review(c, "authorization.k8s.io/v1", "SelfSubjectAccessReview", body, status);
}

/* Answer a SelfSubjectReview ("kubectl auth whoami"). */
static void self_review(const struct apihttp_call *c, struct json_object *body)
{
	struct json_object *info = json_obj(), *groups = json_arr();

	for (size_t i = 0; i < c->user.n_groups; i++)
		json_push_str(groups, c->user.groups[i]);
	json_add_str(info, "username", c->user.name);
	if (c->user.uid[0])
		json_add_str(info, "uid", c->user.uid);
	json_add(info, "groups", groups);
	answer_review(c, "authentication.k8s.io/v1", "SelfSubjectReview", body,
		json_add(json_obj(), "userInfo", info));
}

/* Answer a SelfSubjectRulesReview ("kubectl auth can-i --list"). */
static void rules_review(const struct apihttp_call *c, struct json_object *body)
{
	const char *ns = json_get_str(body, "spec/namespace");

	if (!ns || !*ns) {
		apihttp_answer_refuse(c->req, 400, "no namespace on request");
		return;
	}
	answer_review(c, "authorization.k8s.io/v1", "SelfSubjectRulesReview", body,
		apireq_rights_rules(c->shared->conf.objects, &c->user, ns));
}

/* ---- TokenRequest, a subresource of a ServiceAccount */

/* Read the audiences requested, at most 8; without any, the token is for the API itself. out ends
 * with NULL and borrows from body. */
static size_t audiences(struct json_object *body, const char *out[9])
{
	struct json_object *a = json_get_arr(body, "spec/audiences");
	size_t n = 0;

	for (size_t i = 0; i < json_len(a) && n < 8; i++) {
		struct json_object *s = json_at(a, i);

		if (json_object_is_type(s, json_type_string))
			out[n++] = json_object_get_string(s);
	}
	if (n == 0)
		out[n++] = APIREQ_ISSUER;
	out[n] = NULL;
	return n;
}

/* Issue a token for a ServiceAccount. The lifetime is capped, not refused, when it is too long, and
 * the actual one is returned in spec.expirationSeconds. */
static void token_request(const struct apihttp_call *c, struct json_object *body)
{
	int64_t life = json_get_int(body, "spec/expirationSeconds", TOKEN_S);
	const struct store_key key = {"serviceaccounts", c->t->ns, c->t->name};
	cleanup_json struct json_object *account =
		apireq_inproc_object(c->shared->conf.objects, &key);
	cleanup_json struct json_object *aud = json_arr();
	cleanup_secret struct secret *token = NULL;
	const char *for_whom[9];
	struct apireq_token t = {.ns = c->t->ns,
		.account = c->t->name,
		.uid = text_at(account, "metadata/uid"),
		.audiences = for_whom,
		.now_s = clock_wall_s()};
	struct json_object *status, *spec;
	char end[CLOCK_RFC3339_LEN];
	struct err err = ERR_INIT;

	if (!account) {
		apihttp_answer(c->req, apireq_status_absent(c->t));
		return;
	}
	if (life < TOKEN_MIN_S) {
		apihttp_answer_refuse(c->req, 422,
			"TokenRequest.authentication.k8s.io \"%s\" is invalid: spec.expirationSeconds: Invalid value: %lld: may not specify a duration less than 10 minutes",
			c->t->name, (long long)life);
		return;
	}
	t.life_s = life > TOKEN_MAX_S ? TOKEN_MAX_S : life;
	for (size_t i = 0, n = audiences(body, for_whom); i < n; i++)
		json_push_str(aud, for_whom[i]);
	token = apireq_token_sign(
		apihttp_authority_identity(c->shared->conf.authority).token_key, &t, &err);
	if (!token) {
		apihttp_answer(c->req, apireq_status_storage(&err));
		return;
	}
	clock_format(t.now_s + t.life_s, end);
	status = json_add_str(json_obj(), "token", (const char *)secret_peek(token));
	json_add_str(status, "expirationTimestamp", end);
	spec = json_get_obj(body, "spec");
	if (!spec)
		json_add(body, "spec", spec = json_obj());
	json_add(spec, "audiences", json_object_get(aud));
	json_add_int(spec, "expirationSeconds", t.life_s);
	answer_review(c, "authentication.k8s.io/v1", "TokenRequest", body, status);
}

static const struct question {
	const char *group, *resource, *sub;
	void (*fn)(const struct apihttp_call *c, struct json_object *body);
} questions[] = {
	{"authorization.k8s.io", "selfsubjectaccessreviews", "", access_review},
	{"authorization.k8s.io", "selfsubjectrulesreviews", "", rules_review},
	{"authentication.k8s.io", "selfsubjectreviews", "", self_review},
	{"", "serviceaccounts", "token", token_request},
};

static const struct question *question_of(const struct apireq_request_info *t)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		if (str_eq(t->group, questions[i].group) &&
			str_eq(t->resource, questions[i].resource) &&
			str_eq(t->sub, questions[i].sub))
			return &questions[i];
	return NULL;
}

/* ---- entry point */

/* Serve a request about an object whose user, kind and verb have been checked. */
void apihttp_objects(const struct apihttp_call *c)
{
	const enum httpd_method m = httpd_req_method(c->req);
	const char *type = httpd_req_header(c->req, "Content-Type");
	bool read = m == HTTPD_GET || m == HTTPD_HEAD;
	cleanup_free char *include = apireq_request_info_param(c->t, "includeObject");
	const struct question *q = m == HTTPD_POST ? question_of(c->t) : NULL;
	struct apireq_answer refusal = {0};
	cleanup_json struct json_object *body = NULL;
	size_t len;

	(void)httpd_req_body(c->req, &len);
	if (!apihttp_negotiation_choose(httpd_req_header(c->req, "Accept"), &c->t->form))
		apihttp_answer_not_acceptable(c->req);
	else if (!apihttp_negotiation_include(&c->t->form, include))
		apihttp_answer_refuse(
			c->req, 400, "unrecognized includeObject value: %s", log_esc(include));
	else if (m == HTTPD_GET && !c->t->name[0] && apireq_request_info_flag(c->t, "watch"))
		start_watch(c);
	/* The types that a browser sends across sites without a preflight (form data, text/plain)
	 * are not accepted: the browser would add the user's certificate. */
	else if (!read && m != HTTPD_PATCH && len > 0 && type && *type &&
		 !type_is(type, "application/json") && !type_is(type, "application/yaml") &&
		 !type_is(type, APIHTTP_PROTOBUF_TYPE))
		apihttp_answer_refuse(c->req, 415,
			"the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, " APIHTTP_PROTOBUF_TYPE);
	else if (!q)
		ask_store(c, read ? "GET" : httpd_method_name(m));
	else if ((body = read_body(c->req, &refusal)))
		q->fn(c, body);
	else
		apihttp_answer(c->req, refusal);
}
