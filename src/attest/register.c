/* SPDX-License-Identifier: MIT */
/* 409 has two causes: the key is already registered with this UUID, or with another one. The second
 * is normal after a reinstallation, but a person should see it. */
#include "config.h"

#include "tec/attest/register.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define CONNECT_MS  5000
#define DEADLINE_MS 20000
#define ALREADY     "Public key already registered"

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

static void registration_free(struct registration *r)
{
	op_scope_cancel(&r->ops);
	free(r);
}

static void on_abort(struct op *op)
{
	registration_free(container_of(op, struct registration, op));
}

/* Return `message` of an error body, escaped, or NULL. */
static const char *words(const struct httpc_answer *a)
{
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *o =
		a->body_len ? json_parse(a->body, a->body_len, &json_limits_public, &ignored)
			    : NULL;
	const char *text =
		json_object_is_type(o, json_type_object) ? json_get_str(o, "message") : NULL;

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
	}
	op_finish(&r->op);
	r->done(r->arg, fault, &e, note);
	registration_free(r);
}

static char *request_body(const char *uuid, const struct pki_spki *ak)
{
	cleanup_json struct json_object *o = json_obj();
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;

	pki_spki_to_pem(ak, &pem);
	json_add_str(o, "public_key", strbuf_str(&pem));
	json_add_str(o, "uuid", uuid);
	json_add_str(o, "platform", "tpm");
	return json_text(o);
}

struct op *attest_register_start(struct httpc *client, struct op_scope *scope, const char *url,
	struct httpc_tls *tls, const char *uuid, const struct pki_spki *ak, attest_register_fn done,
	void *arg)
{
	struct registration *r = xcalloc(1, sizeof(*r));
	cleanup_free char *body = request_body(uuid, ak);
	const struct httpc_header type = {"Content-Type", "application/json"};
	const struct httpc_request request = {.method = "PUT",
		.url = url,
		.tls = tls,
		.headers = &type,
		.n_headers = 1,
		.body = body,
		.body_len = strlen(body),
		.connect_ms = CONNECT_MS,
		.deadline_ms = DEADLINE_MS};

	r->done = done;
	r->arg = arg;
	op_begin(&r->op, scope, on_abort);
	httpc_start(client, &r->ops, &request, NULL, on_answer, r);
	return &r->op;
}
