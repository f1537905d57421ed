/* SPDX-License-Identifier: MIT */
/* Requests about objects: convert the body to JSON, call the store, answer once the write is
 * durable. Long lists are streamed piece by piece. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "tec/apistore/listing.h"
#include "tec/apistore/negotiation.h"
#include "tec/apistore/protobuf.h"
#include "tec/apistore/request.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/yaml.h"

#include "apiserver_internal.h"

#define PIECE (128u << 10) /* bytes of a list per turn of the loop */

/* ---- bodies */

/* Compare a media type without its parameters, ignoring case. */
static bool type_is(const char *have, const char *want)
{
	size_t n = have ? strcspn(have, "; \t") : 0;

	return n == strlen(want) && strncasecmp(have, want, n) == 0;
}

/* Does the server accept this content type? The types that a browser sends across sites without a
 * preflight (form data, text/plain) are not accepted: the browser would add the user's
 * certificate. */
static bool takes_body(struct httpd_req *req)
{
	const char *type = httpd_req_header(req, "Content-Type");
	size_t len;

	(void)httpd_req_body(req, &len);
	return len == 0 || !type || !*type || type_is(type, "application/json") ||
	       type_is(type, "application/yaml") || type_is(type, APISTORE_PROTOBUF_TYPE);
}

/* Parse a JSON, YAML or protobuf body. An empty body is an empty object. NULL: *refusal is set. */
static struct json_object *read_body(struct httpd_req *req, struct apistore_answer *refusal)
{
	const char *type = httpd_req_header(req, "Content-Type");
	struct err err = ERR_INIT;
	struct json_object *o;
	size_t len;
	const char *body = httpd_req_body(req, &len);

	if (len == 0)
		return json_obj();
	if (type_is(type, APISTORE_PROTOBUF_TYPE)) {
		o = apistore_protobuf_read(body, len, &err);
		if (!o && err.kind == ERR_NOT_FOUND) {
			*refusal = apistore_status_refusal(
				415, "UnsupportedMediaType", "%s", err.text);
			return NULL;
		}
	} else if (type_is(type, "application/yaml"))
		o = yaml_parse_go(body, len, &err);
	else
		o = json_parse(body, len, &json_limits_object, &err);
	if (!o)
		*refusal = apistore_status_refusal(400, "BadRequest",
			"the object provided is unrecognized: %s",
			err_is_set(&err) ? err.text : "it is null");
	return o;
}

/* ---- the store */

/* An answer that waits for its commit, or a list that is sent piece by piece. Owned by its
 * request. */
struct reply {
	struct apistore_wait wait;
	struct apistore_answer answer;
	struct apiserver_stream stream;
};

/* Release a reply with its request: the client may disconnect before the commit. */
static void reply_gone(void *arg)
{
	struct reply *r = arg;

	apistore_wait_cancel(&r->wait);
	apiserver_stream_cancel(&r->stream);
	apistore_answer_fini(&r->answer);
	free(r);
}

/* Send one piece of a list, and ask for the next turn of the loop unless the socket is full. */
static void next_piece(void *arg)
{
	struct reply *r = arg;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;
	int rc;

	rc = apistore_listing_pull(r->answer.more, &out, PIECE, &err);
	apiserver_stream_add(&r->stream, out.data, out.len);
	body_fini(&out);
	if (rc > 0) {
		apiserver_stream_more(&r->stream);
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
	struct apistore_answer a = r->answer;

	/* HEAD gets no stream, only the first piece, whose body is not sent. */
	if (!err_is_set(failed) && a.more && httpd_req_method(r->stream.req) == HTTPD_GET) {
		apiserver_stream_start(&r->stream, a.code, APISERVER_JSON);
		apiserver_stream_add(&r->stream, a.body, a.len);
		apiserver_stream_more(&r->stream);
		return;
	}
	r->answer = (struct apistore_answer){0};
	if (err_is_set(failed)) {
		apistore_answer_fini(&a);
		a = apistore_status_storage(failed);
	}
	apiserver_answer(r->stream.req, a);
}

/* Hold an answer back until the turn's transaction is committed. This covers reads too: they may
 * have seen what was just written. */
static void answer_stored(const struct apiserver_call *c, struct apistore_answer take)
{
	struct reply *r = xcalloc(1, sizeof(*r));

	r->stream = (struct apiserver_stream){
		.req = c->req, .loop = c->shared->loop, .piece = next_piece, .arg = r};
	r->answer = take;
	httpd_req_on_gone(c->req, reply_gone, r);
	apistore_objects_when_stored(c->shared->conf.objects, &r->wait, on_stored, r);
}

/* Call the store and answer. JSON bodies and patches are passed as received; YAML and protobuf
 * bodies are converted to JSON first, and the copy is wiped because it may hold a Secret. */
static void ask_store(const struct apiserver_call *c, const char *method)
{
	const char *type = httpd_req_header(c->req, "Content-Type");
	bool whole = type_is(type, "application/yaml") || type_is(type, APISTORE_PROTOBUF_TYPE);
	struct apistore_request r = {.method = method,
		.content_type = type ? type : "",
		.warns = true,
		.user_agent = httpd_req_header(c->req, "User-Agent")};
	struct apistore_answer refusal = {0};
	cleanup_json struct json_object *body = NULL;
	cleanup_free char *text = NULL;

	r.body = httpd_req_body(c->req, &r.len);
	if (r.len > 0 && whole && !str_eq(method, "PATCH")) {
		body = read_body(c->req, &refusal);
		if (!body) {
			apiserver_answer(c->req, refusal);
			return;
		}
		r.body = text = json_text(body);
		r.len = strlen(text);
	}
	answer_stored(c, apistore_request(c->shared->conf.objects, c->t, &r));
	if (text) {
		secret_wipe(text, strlen(text));
		json_wipe(body);
	}
}

static void ask_question(const struct apiserver_call *c)
{
	struct apistore_answer refusal = {0};
	cleanup_json struct json_object *body = read_body(c->req, &refusal);

	if (body)
		apiserver_review(c, body);
	else
		apiserver_answer(c->req, refusal);
}

/* Serve a request about an object whose user, kind and verb have been checked. */
void apiserver_objects(const struct apiserver_call *c)
{
	const enum httpd_method m = httpd_req_method(c->req);
	bool read = m == HTTPD_GET || m == HTTPD_HEAD;
	cleanup_free char *include = apistore_target_param(c->t, "includeObject");

	if (!apistore_negotiation_choose(httpd_req_header(c->req, "Accept"), &c->t->form))
		apiserver_answer_not_acceptable(c->req);
	else if (!apistore_negotiation_include(&c->t->form, include))
		apiserver_answer_refuse(c->req, 400, "BadRequest",
			"unrecognized includeObject value: %s", log_esc(include));
	else if (m == HTTPD_GET && !c->t->name[0] && apistore_target_flag(c->t, "watch"))
		apiserver_watch_start(c);
	else if (!read && m != HTTPD_PATCH && !takes_body(c->req))
		apiserver_answer_refuse(c->req, 415, "UnsupportedMediaType",
			"the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, " APISTORE_PROTOBUF_TYPE);
	else if (m == HTTPD_POST && apiserver_review_knows(c->t))
		ask_question(c);
	else
		ask_store(c, read ? "GET" : httpd_method_name(m));
}
