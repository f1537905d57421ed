/* SPDX-License-Identifier: MIT */
/* Both bodies are small JSON around base64url (without padding: the real server refuses it). */
#include "config.h"

#include "tec/kbs/policy.h"

#include "kbs_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/str.h"

static struct op *put(struct kbs_transport *t, struct op_scope *scope, const char *path,
	const char *head, const char *rego, kbs_done_fn done, void *arg)
{
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	struct kbs_request req = {.method = "POST",
		.path = path,
		.content_type = "application/json",
		.verb = "policy-put"};

	strbuf_adds(&body, head);
	bytes_to_b64url(&body, rego, strlen(rego));
	strbuf_adds(&body, "\"}");
	req.body = strbuf_str(&body);
	req.body_len = body.len;
	return kbs_simple(t, scope, &req, done, arg);
}

struct op *kbs_policy_put_attestation(struct kbs_transport *t, struct op_scope *scope,
	const char *rego, kbs_done_fn done, void *arg)
{
	return put(t, scope, "/kbs/v0/attestation-policy",
		"{\"type\":\"rego\",\"policy_id\":\"default_cpu\",\"policy\":\"", rego, done, arg);
}

struct op *kbs_policy_put_resource(struct kbs_transport *t, struct op_scope *scope,
	const char *rego, kbs_done_fn done, void *arg)
{
	return put(t, scope, "/kbs/v0/resource-policy", "{\"policy\":\"", rego, done, arg);
}
