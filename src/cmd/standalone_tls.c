/* SPDX-License-Identifier: MIT */
/*
 * Nodes keep the CA certificate as long as they live, so the CA is in the database and in each
 * backup. It is separate from the API's CA, whose key must be in no backup. Of an existing Secret
 * only the public part is read. The Secret is written as text, so that no JSON object of ours
 * holds the key; the store seals the Secret and the rows.
 */
#include "config.h"

#include "standalone_tls.h"

#include "node_ca.h"

#include <string.h>

#include "tec/apistore/inproc.h"
#include "tec/apistore/rows.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"
#include "tec/pki/ca.h"
#include "tec/pki/cert.h"

#define TABLE        "standalone/node-tls"
#define EVERY_MS     (24 * 3600 * 1000) /* between two checks */
#define CA_LEFT_DAYS 730                /* validity left at which the CA certificate is renewed */
#define LEFT_DAYS    60                 /* the same for the listeners' certificate */

struct standalone_tls {
	struct apistore_objects *objects;
	char *path, *host; /* owned; API path of the Secret; host in the nodes' URLs */
	struct pki_key *ca_key, *key;
	struct strbuf ca; /* certificate of the CA, PEM */
	struct timer next;
};

/* ---- rows */

/* Rows are sealed by the store; the PEM is wiped here. */
static int put_key(struct apistore_objects *objects, const char *name, const struct pki_key *key,
	struct err *err)
{
	cleanup_secret struct secret *pem = pki_key_private_pem(key);

	return apistore_rows_set(objects, TABLE, name, secret_peek(pem), secret_len(pem), err);
}

/* ERR_NOT_FOUND: no such key yet. */
static struct pki_key *get_key(struct apistore_objects *objects, const char *name, struct err *err)
{
	cleanup_secret struct secret *pem = NULL;
	void *data = NULL;
	size_t len;

	if (apistore_rows_get(objects, TABLE, name, &data, &len, err) < 0)
		return NULL;
	pem = secret_new_copy(data, len);
	secret_wipe(data, len);
	free(data);
	return pki_key_from_pem(pem, err);
}

/* Create both keys, or store those of a given CA and its certificate, in one commit: a crash in
 * between must not leave half of them. */
static int make_keys(struct apistore_objects *objects, const struct pki_ca *given, struct err *err)
{
	cleanup_pki_key struct pki_key *made = given ? NULL : pki_key_new_p256(),
				       *key = pki_key_new_p256();

	if (put_key(objects, "ca.key", given ? given->key : made, err) < 0 ||
		put_key(objects, "key", key, err) < 0)
		return -1;
	if (given && apistore_rows_set(
			     objects, TABLE, "ca.crt", given->cert.data, given->cert.len, err) < 0)
		return -1;
	return apistore_objects_commit(objects, err);
}

/* Load the keys. given: the CA of --node-ca, used only if there is none yet; or NULL. */
static int load_keys(struct standalone_tls *t, const struct pki_ca *given, struct err *err)
{
	t->ca_key = get_key(t->objects, "ca.key", err);
	if (!t->ca_key && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		if (make_keys(t->objects, given, err) < 0)
			return -1;
		t->ca_key = get_key(t->objects, "ca.key", err);
	}
	if (t->ca_key && given &&
		!pki_issue_fits(strbuf_str(&given->cert), given->cert.len, t->ca_key))
		return err_set(err, ERR_INVALID,
			"the directory of --standalone already has another CA, which its nodes trust; next step: start without the option, or with a new directory");
	t->key = t->ca_key ? get_key(t->objects, "key", err) : NULL;
	return t->key ? 0 : -1;
}

/* Load the keys and the certificate of the CA. */
static int load_rows(struct standalone_tls *t, const char *node_ca, struct err *err)
{
	cleanup_pki_ca struct pki_ca given = {.key = NULL};
	void *data = NULL;
	size_t len;

	if (node_ca && node_ca_read(node_ca, &given, err) < 0)
		return err_wrap(err, "option --node-ca");
	if (load_keys(t, node_ca ? &given : NULL, err) < 0)
		return -1;
	if (apistore_rows_get(t->objects, TABLE, "ca.crt", &data, &len, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err); /* renew_ca() creates it */
		return 0;
	}
	strbuf_add(&t->ca, data, len);
	free(data);
	return 0;
}

/* Renew the CA certificate with the same key and subject, so that nodes with the earlier
 * certificate still trust it. */
static int renew_ca(struct standalone_tls *t, int64_t now_s, struct err *err)
{
	cleanup_strbuf struct strbuf made = STRBUF_INIT;

	if (pki_cert_lasts(strbuf_str(&t->ca), t->ca.len, now_s, CA_LEFT_DAYS))
		return 0;
	if (pki_ca_issue(t->ca_key, t->ca.len ? t->ca.data : NULL, now_s, &made, err) < 0)
		return -1;
	strbuf_reset(&t->ca);
	strbuf_add(&t->ca, made.data, made.len);
	return apistore_rows_set(t->objects, TABLE, "ca.crt", t->ca.data, t->ca.len, err);
}

/* ---- the Secret */

/* Decode data/`name` of the Secret; "" if absent. The caller frees. */
static char *member(struct json_object *secret, const char *name)
{
	cleanup_free char *at = xasprintf("data/%s", name);
	const char *b64 = json_get_str(secret, at);
	cleanup_free uint8_t *bytes = NULL;
	size_t len;

	if (!b64 || bytes_from_b64(b64, strlen(b64), &bytes, &len) < 0)
		return xstrdup("");
	return xstrndup((const char *)bytes, len);
}

static void add_member(struct strbuf *out, const char *name, const void *data, size_t len)
{
	strbuf_addf(out, "\"%s\":\"", name);
	bytes_to_b64(out, data, len);
	strbuf_addc(out, '"');
}

/* Write the Secret. The text holds the private key and is wiped. */
static int put(const struct standalone_tls *t, const struct strbuf *cert, struct err *err)
{
	cleanup_secret struct secret *pem = pki_key_private_pem(t->key);
	cleanup_free char *at = xasprintf("%s?fieldManager=tec-operator&force=true", t->path);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct apistore_answer a;
	int rc;

	strbuf_adds(&text,
		"{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"" STANDALONE_TLS_SECRET
		"\"},\"type\":\"kubernetes.io/tls\",\"data\":{");
	add_member(&text, "tls.crt", cert->data, cert->len);
	strbuf_addc(&text, ',');
	add_member(&text, "ca.crt", t->ca.data, t->ca.len);
	strbuf_addc(&text, ',');
	add_member(&text, "tls.key", secret_peek(pem), secret_len(pem));
	strbuf_adds(&text, "}}");
	a = apistore_inproc_ask(
		t->objects, "PATCH", at, "application/apply-patch+yaml", text.data, text.len);
	secret_wipe(text.data, text.len);
	rc = a.code / 100 == 2 ? 0 : err_set(err, ERR_BUG, "%s: %.200s", at, a.body);
	apistore_answer_fini(&a);
	return rc;
}

/* Issue a certificate if the Secret's does not match the CA, the key or the names, or expires
 * soon. */
static int renew(struct standalone_tls *t, struct err *err)
{
	const char *const names[] = {t->host, "localhost", "127.0.0.1", "::1", NULL};
	int64_t now_s = clock_wall_s();
	const struct pki_issue what = {
		PKI_ISSUE_SERVER, names[0], NULL, names, now_s, PKI_CA_LEAF_DAYS};
	cleanup_json struct json_object *secret = apistore_inproc_get(t->objects, t->path);
	cleanup_free char *cert = member(secret, "tls.crt"), *ca = member(secret, "ca.crt");
	cleanup_strbuf struct strbuf made = STRBUF_INIT;

	if (renew_ca(t, now_s, err) < 0)
		return -1;
	if (str_eq(ca, strbuf_str(&t->ca)) &&
		pki_issue_serves(cert, strlen(cert), t->key, names, now_s, LEFT_DAYS))
		return 0;
	if (pki_issue(&what, t->key, t->ca_key, strbuf_str(&t->ca), &made, err) < 0)
		return err_wrap(err, "--public-address");
	if (put(t, &made, err) < 0)
		return -1;
	log_info(NULL, "certificate for nodes created", "secret=%s host=%s", STANDALONE_TLS_SECRET,
		log_esc(t->host));
	return 0;
}

/* After an error the next attempt is a day later: renewal starts LEFT_DAYS before the expiry. */
static void on_time(void *arg)
{
	struct standalone_tls *t = arg;
	struct err err = ERR_INIT;

	if (renew(t, &err) < 0)
		log_err(LOG_ERROR, NULL, "cannot renew the certificate for nodes", &err);
	timer_set(&t->next, EVERY_MS);
}

/* The first renewal is part of the start: without a certificate no node could be served. */
struct standalone_tls *standalone_tls_new(struct loop *l, struct apistore_objects *objects,
	const char *ns, const char *host, const char *node_ca, struct err *err)
{
	struct standalone_tls *t = xcalloc(1, sizeof(*t));

	t->objects = objects;
	t->path = xasprintf("/api/v1/namespaces/%s/secrets/" STANDALONE_TLS_SECRET, ns);
	t->host = xstrdup(host);
	timer_init(&t->next, l, on_time, t);
	if (load_rows(t, node_ca, err) < 0 || renew(t, err) < 0) {
		standalone_tls_free(t);
		return NULL;
	}
	timer_set(&t->next, EVERY_MS);
	return t;
}

void standalone_tls_free(struct standalone_tls *t)
{
	if (!t)
		return;
	timer_fini(&t->next);
	pki_key_free(t->ca_key);
	pki_key_free(t->key);
	strbuf_fini(&t->ca);
	free(t->host);
	free(t->path);
	free(t);
}
