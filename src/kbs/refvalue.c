/* SPDX-License-Identifier: MIT */
/* The payload is built as text: values are JSON already and go in as they stand. */
#include "config.h"

#include "tec/kbs/refvalue.h"

#include "kbs_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define PATH "/kbs/v0/reference-value"
#define HEAD "{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\""
#define TAIL "\"}"

void kbs_refvalues_fini(struct kbs_refvalues *m)
{
	strbuf_fini(&m->payload);
	m->n = 0;
}

void kbs_refvalues_add(struct kbs_refvalues *m, const char *name, const char *json, size_t len)
{
	strbuf_addc(&m->payload, m->n++ ? ',' : '{');
	json_quote(&m->payload, name, strlen(name));
	strbuf_addc(&m->payload, ':');
	if (json)
		strbuf_add(&m->payload, json, len);
	else
		strbuf_adds(&m->payload, "null");
}

size_t kbs_refvalues_body_len(const struct kbs_refvalues *m, size_t name_len, size_t json_len)
{
	/* ,"name":value} */
	size_t payload = m->payload.len + name_len + json_len + 5;

	return strlen(HEAD TAIL) + bytes_b64_len(payload);
}

struct op *kbs_refvalues_put(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_refvalues *m, kbs_done_fn done, void *arg)
{
	cleanup_strbuf struct strbuf payload = STRBUF_INIT, body = STRBUF_INIT;
	struct kbs_request req = {.method = "POST",
		.path = PATH,
		.content_type = "application/json",
		.deadline_ms = 30000,
		.verb = "refvalue-put"};

	strbuf_add(&payload, m->n ? strbuf_str(&m->payload) : "{", m->n ? m->payload.len : 1);
	strbuf_addc(&payload, '}');
	strbuf_adds(&body, HEAD);
	bytes_to_b64(&body, strbuf_str(&payload), payload.len);
	strbuf_adds(&body, TAIL);
	req.body = strbuf_str(&body);
	req.body_len = body.len;
	return kbs_simple(t, scope, &req, done, arg);
}

/* ---- reading one */

struct reading {
	struct op op; /* first */
	struct op_scope inner;
	kbs_value_fn done;
	void *arg;
};

static void reading_abort(struct op *op)
{
	struct reading *k = (struct reading *)op;

	op_scope_cancel(&k->inner);
	free(k);
}

static void on_reading(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct reading *k = arg;
	struct err why = ERR_INIT;
	bool ok = kbs_answer_check(err, answer, true, &why) == 0;

	op_finish(&k->op);
	k->done(k->arg, &why, ok ? answer->body : "", ok ? answer->body_len : 0);
	free(k);
}

struct op *kbs_refvalue_get(struct kbs_transport *t, struct op_scope *scope, const char *name,
	kbs_value_fn done, void *arg)
{
	cleanup_free char *path = xasprintf(PATH "/%s", name);
	const struct kbs_request req = {.method = "GET", .path = path, .verb = "refvalue-get"};
	struct reading *k = xcalloc(1, sizeof(*k));

	k->done = done;
	k->arg = arg;
	op_begin(&k->op, scope, reading_abort);
	(void)kbs_transport_start(t, &k->inner, &req, on_reading, k);
	return &k->op;
}
