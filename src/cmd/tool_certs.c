/* SPDX-License-Identifier: MIT */
/*
 * Certificates of a cluster that does not exist yet. Private keys go into new files of mode 0600,
 * or into a pipe; that of the CA only into a file. The Secret is written as text, so that no JSON
 * object of ours contains a key.
 */
#include "config.h"

#include "node_ca.h"
#include "tool.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/pki/ca.h"
#include "tec/pki/cert.h"

#define DAY_S       86400
#define HOSTS_MAX   64 /* in one certificate */
#define CN_MAX      64 /* characters of a common name (X.520 ub-common-name) */
#define SECRET_NAME "trustee-tls"

/* Write a new file; an existing one may be somebody's only copy of a key. */
static int create(const char *file, const struct strbuf *text, struct err *err)
{
	if (file_create(file, text->data, text->len, err) == 0)
		return 0;
	if (err->kind == ERR_CONFLICT) {
		err_clear(err);
		return err_set(err, ERR_INVALID,
			"%s exists and is not overwritten; next step: give a new file name",
			log_esc(file));
	}
	return err_wrap(err, "cannot write");
}

/* The file has certificate and key; only the certificate is printed. */
int tool_bootstrap_ca(struct tool *t, struct err *err)
{
	const char *file = conf_str(t->conf, "out");
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_secret struct secret *pem = pki_key_private_pem(key);
	cleanup_strbuf struct strbuf cert = STRBUF_INIT;
	cleanup_wiped_strbuf struct strbuf both = STRBUF_INIT;
	char end[CLOCK_RFC3339_LEN];
	int64_t end_s;

	if (!file)
		return err_set(err, ERR_INVALID,
			"option --out is required for the CA's private key; next step: --out FILE");
	if (pki_ca_issue(key, NULL, clock_wall_s(), &cert, err) < 0 ||
		pki_cert_not_after(cert.data, cert.len, &end_s, err) < 0)
		return -1;
	strbuf_add(&both, cert.data, cert.len);
	strbuf_add(&both, secret_peek(pem), secret_len(pem));
	if (create(file, &both, err) < 0)
		return -1;
	fputs(strbuf_str(&cert), stdout);
	clock_format(end_s, end);
	tool_say(stderr,
		"tecctl: the CA and its private key are in %s, valid until %s. Keep the file secret: its key can impersonate the cluster. Put the printed certificate into a Secret as ca.crt and name that Secret in spec.trusteeServers",
		file, end);
	return 0;
}

/* ---- a Secret */

/* Read --host. The result is NULL-terminated and borrowed from the options. */
static int read_hosts(struct tool *t, const char *hosts[HOSTS_MAX + 1], struct err *err)
{
	size_t n = 0;

	for (const char *h; (h = conf_nth(t->conf, "host", n)); n++) {
		if (n == HOSTS_MAX)
			return err_set(err, ERR_INVALID,
				"option --host is given more than %d times", HOSTS_MAX);
		if (!pki_issue_name_valid(h))
			return err_set(err, ERR_INVALID,
				"option --host: %.100s is not a host name or IP address; next step: give it without scheme, port and brackets",
				log_esc(h));
		hosts[n] = h;
	}
	hosts[n] = NULL;
	return n ? 0
		 : err_set(err, ERR_INVALID,
			   "option --host is required; next step: --host HOST, as nodes will reach the cluster");
}

static void add_member(struct strbuf *out, const char *name, const void *data, size_t len)
{
	strbuf_addf(out, "  %s: ", name);
	bytes_to_b64(out, data, len);
	strbuf_addc(out, '\n');
}

/* Issue a certificate with a new key, which must not outlive its CA, and append the Secret as YAML.
 * A host too long for a common name is named only among the alternative names. Without a namespace
 * kubectl chooses it. */
static int issue(const struct pki_ca *ca, const char *const *hosts, const char *name,
	const char *ns, int64_t *end_s, struct strbuf *out, struct err *err)
{
	int64_t now_s = clock_wall_s(), left = (ca->end_s - now_s) / DAY_S;
	const struct pki_issue what = {PKI_ISSUE_SERVER,
		strlen(hosts[0]) <= CN_MAX ? hosts[0] : "tec-operator", NULL, hosts, now_s,
		left < PKI_CA_LEAF_DAYS ? (unsigned)left : PKI_CA_LEAF_DAYS};
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_secret struct secret *pem = pki_key_private_pem(key);
	cleanup_strbuf struct strbuf cert = STRBUF_INIT;

	if (left < 1)
		return err_set(err, ERR_INVALID,
			"the CA expires in less than a day; next step: tecctl bootstrap ca --out FILE");
	if (pki_issue(&what, key, ca->key, strbuf_str(&ca->cert), &cert, err) < 0 ||
		pki_cert_not_after(cert.data, cert.len, end_s, err) < 0)
		return -1;
	strbuf_addf(out, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: \"%s\"\n", name);
	if (ns)
		strbuf_addf(out, "  namespace: \"%s\"\n", ns);
	strbuf_adds(out, "type: kubernetes.io/tls\ndata:\n");
	add_member(out, "tls.crt", cert.data, cert.len);
	add_member(out, "ca.crt", ca->cert.data, ca->cert.len);
	add_member(out, "tls.key", secret_peek(pem), secret_len(pem));
	return 0;
}

/* The Secret goes to a file of mode 0600, or to a pipe. Names are checked here, as no API server
 * sees them before kubectl apply. */
int tool_bootstrap_cert(struct tool *t, struct err *err)
{
	const char *from = conf_str(t->conf, "ca"), *file = conf_str(t->conf, "out"),
		   *ns = conf_str(t->conf, "namespace"),
		   *name = conf_str(t->conf, "name") ? conf_str(t->conf, "name") : SECRET_NAME;
	const char *hosts[HOSTS_MAX + 1];
	cleanup_pki_ca struct pki_ca ca = {.key = NULL};
	cleanup_wiped_strbuf struct strbuf out = STRBUF_INIT;
	char end[CLOCK_RFC3339_LEN];
	int64_t end_s;

	if (!from)
		return err_set(err, ERR_INVALID,
			"option --ca is required; next step: --ca FILE, as created by tecctl bootstrap ca");
	if (!file && isatty(STDOUT_FILENO))
		return err_set(err, ERR_INVALID,
			"refusing to print a private key to a terminal; next step: --out FILE, or | kubectl apply -f -");
	if (read_hosts(t, hosts, err) < 0)
		return -1;
	if (!kobj_name_valid(name, strlen(name)))
		return err_set(err, ERR_INVALID,
			"option --name: %.100s is not a valid name of a Secret", log_esc(name));
	if (ns && !kobj_label_valid(ns, strlen(ns)))
		return err_set(err, ERR_INVALID,
			"option --namespace: %.100s is not a valid namespace name", log_esc(ns));
	if (node_ca_read(from, &ca, err) < 0)
		return err_wrap(err, "option --ca");
	if (issue(&ca, hosts, name, ns, &end_s, &out, err) < 0 ||
		(file && create(file, &out, err) < 0))
		return -1;
	if (!file && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) == EOF))
		return err_set(err, ERR_INVALID, "cannot write the Secret");
	clock_format(end_s, end);
	tool_say(stderr,
		"tecctl: Secret %s has a certificate valid until %s; next step: kubectl apply -f, and renew it before that date",
		name, end);
	return 0;
}
