/* SPDX-License-Identifier: MIT */
/*
 * A put is one request. So is a delete, usually; if the server cannot distinguish a missing
 * resource from a failure, the resource is created (empty) and deleted, so that the confirmation is
 * meaningful. Bodies are built as text: policies are base64url without padding (the real server
 * refuses it), values are already JSON and are inserted unchanged.
 */
#include "config.h"

#include "tec/kbs/admin.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define API         "/kbs/v0/"
#define VALUES_HEAD "{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\""
#define VALUES_TAIL "\"}"

/* ---- resources */

/* The value is moved into the body, not copied: it is a disk key. */
struct op *kbs_admin_put_resource(struct kbs_transport *t, struct op_scope *scope, const char *path,
	struct secret *take_value, kbs_done_fn done, void *arg)
{
	cleanup_free char *full = xasprintf(API "resource/%s", path);
	struct kbs_request req = {.method = "POST",
		.path = full,
		.content_type = "application/octet-stream",
		.body = body_of_secret(take_value),
		.verb = "resource-put"};

	return kbs_transport_start(t, scope, &req, done, arg);
}

/* Second step of a delete: the empty resource exists, so delete it. */
static bool after_empty(
	struct kbs_request *req, const struct err *err, const struct kbs_answer *answer)
{
	if (err_is_set(err))
		return false;
	*req = (struct kbs_request){
		.method = "DELETE", .path = req->path, .verb = "resource-delete"};
	return true;
}

/* First answer to a delete: if it could mean "missing" or "failed", write an empty resource
 * first. */
static bool after_delete(
	struct kbs_request *req, const struct err *err, const struct kbs_answer *answer)
{
	bool unclear = str_eq(answer->type, "PluginInternalError") || answer->status == 404;

	if (!err_is_set(err) || !unclear)
		return false;
	*req = (struct kbs_request){.method = "POST",
		.path = req->path,
		.content_type = "application/octet-stream",
		.body = body_of_text(xstrdup("{}")),
		.verb = "resource-empty",
		.next = after_empty};
	return true;
}

/* after_delete() and after_empty() continue the op if the first answer is unclear. */
struct op *kbs_admin_delete_resource(struct kbs_transport *t, struct op_scope *scope,
	const char *path, kbs_done_fn done, void *arg)
{
	cleanup_free char *full = xasprintf(API "resource/%s", path);
	struct kbs_request req = {
		.method = "DELETE", .path = full, .verb = "resource-delete", .next = after_delete};

	return kbs_transport_start(t, scope, &req, done, arg);
}

/* max_answer is the caller's: the list grows with the number of Machines. */
struct op *kbs_admin_list_resources(struct kbs_transport *t, struct op_scope *scope,
	size_t max_answer, kbs_done_fn done, void *arg)
{
	struct kbs_request req = {.method = "GET",
		.path = API "resource",
		.max_answer = max_answer,
		.verb = "resource-list"};

	return kbs_transport_start(t, scope, &req, done, arg);
}

/* ---- policies */

/* Trustee evaluates CPU evidence with the attestation policy default_cpu. */
struct op *kbs_admin_put_policy(struct kbs_transport *t, struct op_scope *scope, bool resource,
	const char *rego, kbs_done_fn done, void *arg)
{
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	struct kbs_request req = {.method = "POST",
		.path = resource ? API "resource-policy" : API "attestation-policy",
		.content_type = "application/json",
		.verb = "policy-put"};

	strbuf_adds(
		&body, resource ? "{\"policy\":\""
				: "{\"type\":\"rego\",\"policy_id\":\"default_cpu\",\"policy\":\"");
	bytes_to_b64url(&body, rego, strlen(rego));
	strbuf_adds(&body, "\"}");
	req.body = body_of_text(strbuf_steal(&body));
	return kbs_transport_start(t, scope, &req, done, arg);
}

/* ---- reference values */

void kbs_values_fini(struct kbs_values *m)
{
	strbuf_fini(&m->payload);
	m->n = 0;
}

/* The closing brace is added when the message is sent. */
void kbs_values_add(struct kbs_values *m, const char *name, const char *json, size_t len)
{
	strbuf_addc(&m->payload, m->n++ ? ',' : '{');
	json_quote(&m->payload, name, strlen(name));
	strbuf_addc(&m->payload, ':');
	if (json)
		strbuf_add(&m->payload, json, len);
	else
		strbuf_adds(&m->payload, "null");
}

/* The body is base64 of the payload, so the limit of the server applies to the encoded length. */
size_t kbs_values_body_len(const struct kbs_values *m, size_t name_len, size_t json_len)
{
	/* ,"name":value} */
	size_t payload = m->payload.len + name_len + json_len + 5;

	return strlen(VALUES_HEAD VALUES_TAIL) + bytes_b64_len(payload);
}

/* The deadline is longer than usual: a message can carry thousands of names, stored one by one. */
struct op *kbs_admin_put_values(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_values *m, kbs_done_fn done, void *arg)
{
	cleanup_strbuf struct strbuf payload = STRBUF_INIT, body = STRBUF_INIT;
	struct kbs_request req = {.method = "POST",
		.path = API "reference-value",
		.content_type = "application/json",
		.deadline_ms = 30000,
		.verb = "refvalue-put"};

	/* A message without values is valid: "{}". */
	strbuf_add(&payload, m->n ? strbuf_str(&m->payload) : "{", m->n ? m->payload.len : 1);
	strbuf_addc(&payload, '}');
	strbuf_adds(&body, VALUES_HEAD);
	bytes_to_b64(&body, strbuf_str(&payload), payload.len);
	strbuf_adds(&body, VALUES_TAIL);
	req.body = body_of_text(strbuf_steal(&body));
	return kbs_transport_start(t, scope, &req, done, arg);
}

/* Trustee answers RvpsError for an unknown name, which reads_value turns into ERR_NOT_FOUND. */
struct op *kbs_admin_get_value(struct kbs_transport *t, struct op_scope *scope, const char *name,
	kbs_done_fn done, void *arg)
{
	cleanup_free char *path = xasprintf(API "reference-value/%s", name);
	struct kbs_request req = {
		.method = "GET", .path = path, .reads_value = true, .verb = "refvalue-get"};

	return kbs_transport_start(t, scope, &req, done, arg);
}
