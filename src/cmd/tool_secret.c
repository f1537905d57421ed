/* SPDX-License-Identifier: MIT */
/* Reads one member of a Secret; k8s/call wipes the rest, which may be a private key, at once. */
#include "config.h"

#include "tool_secret.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/k8s/call.h"
#include "tec/pki/cert.h"

struct reading {
	struct tool *t;
	const char *member;
	struct strbuf *out;
	struct err *err;
	bool done;
};

/* Member names contain dots ("tls.crt"), so they are not read by a path. */
static void take(struct reading *r, struct json_object *o)
{
	struct json_object *text = NULL;
	const char *base64;
	uint8_t *bytes = NULL;
	size_t len;

	json_object_object_get_ex(json_get_obj(o, "data"), r->member, &text);
	base64 = json_object_is_type(text, json_type_string) ? json_object_get_string(text) : NULL;
	if (!base64) {
		err_set(r->err, ERR_NOT_FOUND, "member %s is missing", r->member);
		return;
	}
	if (bytes_from_b64(base64, strlen(base64), &bytes, &len) < 0)
		err_set(r->err, ERR_INVALID, "member %s is not base64", r->member);
	else
		strbuf_add(r->out, bytes, len);
	free(bytes);
}

/* k8s/call hands out the object and wipes the answer's text afterwards. */
static void on_secret(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct reading *r = arg;

	if (err && err_is_set(err))
		*r->err = *err;
	else
		take(r, result->object);
	r->done = true;
	loop_stop(r->t->loop);
}

/* kobj_input_secret keeps every member of data; kobj_secret only those that the operator needs. */
int tool_secret_member(
	struct tool *t, const char *name, const char *member, struct strbuf *out, struct err *err)
{
	struct reading r = {t, member, out, err, false};

	(void)k8s_call_get(t->api, &t->ops, &kobj_input_secret, t->ns, name, on_secret, &r);
	if (tool_run(t, &r.done, err) < 0)
		return -1;
	return err_is_set(err) ? err_wrap(err, "Secret %.80s", name) : 0;
}

/* The same check as the operator's: whoever can write the Secret must not choose the CA of new
 * nodes. */
int tool_secret_ca(struct tool *t, const struct model_cluster *c, const char *secret,
	struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT, sha256 = STRBUF_INIT;
	const char *unlisted;

	if (tool_secret_member(t, secret, "ca.crt", &pem, err) < 0)
		return -1;
	if (pki_cert_read_bundle(strbuf_str(&pem), pem.len, out, &sha256, err) < 0)
		return err_wrap(err, "ca.crt of Secret %.63s", secret);
	unlisted = model_cluster_unlisted_ca(c->ca_sha256, strbuf_str(&sha256));
	if (unlisted)
		return err_set(err, ERR_INVALID,
			"ca.crt of Secret %.63s has a certificate that spec.tls.caSHA256 does not list: SHA-256 %.64s; next step: "
			"list it if it belongs to your CA, else delete the Secret",
			secret, unlisted);
	return 0;
}
