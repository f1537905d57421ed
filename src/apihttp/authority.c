/* SPDX-License-Identifier: MIT */
/*
 * Every file is written to a temporary name and renamed, keys before the certificates that need
 * them: after a crash in between, the next start completes what is missing. An existing key is
 * never replaced.
 */
#include "config.h"

#include "tec/apihttp/authority.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/bytes.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"

#define FILE_MAX_LEN 65536
#define CA_DAYS      7300
#define CA_LEFT_DAYS 730 /* reissue the CA certificate this long before its end */
#define LEAF_DAYS    365
#define LEFT_DAYS    60 /* the same of the server's and the administrator's */
#define DAY_S        86400
#define ADMIN_NAME   "tec-admin"
#define ADMIN_GROUP  "system:masters"
#define CA_NAME      "tec-operator CA"

struct apihttp_authority {
	char *dir, *server, *ns;
	char *kubeconfig; /* NULL: none is written */
	char **names;     /* NULL-terminated */
	int lock;         /* -1: not taken */
	bool is_new;      /* the CA was created by this process */
	bool look_only;   /* write nothing */
	struct pki_key *ca_key, *server_key, *token_key;
	struct secret *server_pem; /* the private key as PEM */
	struct store_sealing *sealing;
	struct strbuf ca, cert;
};

/* ---- files */

static char *path_of(const struct apihttp_authority *a, const char *name)
{
	return xasprintf("%s/%s", a->dir, name);
}

/* The error of both the real and the simulated creation, so that a check finds what a start
 * would. */
static int cannot_make(const char *dir, struct err *err)
{
	return err_set_errno(err, ERR_INVALID, errno,
		"cannot create directory %s; create it, or choose another with --standalone=DIR",
		log_esc(dir));
}

/* Create the directory, or check the existing one: nobody else may own or read it. */
static int make_dir(const struct apihttp_authority *a, struct err *err)
{
	const char *dir = a->dir;
	cleanup_free char *whole = xstrdup(dir);
	size_t n = strlen(whole);
	struct stat st;
	char *slash;

	/* Check, without creating it, whether mkdir() would be allowed. */
	if (a->look_only && access(dir, F_OK) < 0 && errno == ENOENT) {
		while (n > 1 && whole[n - 1] == '/')
			whole[--n] = '\0';
		slash = strrchr(whole, '/');
		if (slash)
			slash[slash == whole] = '\0';
		return access(slash ? whole : ".", W_OK | X_OK) == 0 ? 0 : cannot_make(dir, err);
	}
	if (!a->look_only && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return cannot_make(dir, err);
	/* A directory that exists is checked too: other users must not be able to read or replace
	 * keys. */
	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a directory", log_esc(dir));
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, ERR_INVALID,
			"%s holds keys and must belong to this user alone; next step: chown and chmod 0700",
			log_esc(dir));
	return 0;
}

/* Lock the directory for this process. The kernel releases the lock when the process dies. */
static int take_lock(struct apihttp_authority *a, struct err *err)
{
	cleanup_free char *path = path_of(a, "process.lock");

	a->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (a->lock < 0)
		return err_set_errno(err, ERR_INVALID, errno, "%s", log_esc(path));
	if (flock(a->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_CONFLICT,
			"another tec-operator uses %s; stop it first, or choose another directory",
			log_esc(a->dir));
	return 0;
}

/* Replace a file in the directory, or do nothing when only looking. */
static int put(const struct apihttp_authority *a, const char *name, const void *data, size_t len,
	struct err *err)
{
	cleanup_free char *path = path_of(a, name);

	return a->look_only ? 0 : file_replace(path, data, len, 0600, err);
}

/*
 * ca.crt is written when everything else is there (apihttp_authority_renew). So a directory with it
 * was in use, and what it lacks was lost: made again in silence, another CA would lock every client
 * out, and an empty store would give no node its disk.
 */
static int check_complete(const struct apihttp_authority *a, struct err *err)
{
	static const char again[] = ", or remove ca.crt as well to make another one";
	static const struct {
		const char *name, *means, *else_;
	} files[] = {
		{"ca.key", "clients trust the CA of that key alone", again},
		{"token.key", "tokens of ServiceAccounts end with it", again},
		{STORE_DB_FILE, "it has every Machine and its disk key",
			", restore a backup with --restore, or remove ca.crt as well to start with nothing"},
	};
	cleanup_free char *ca = path_of(a, "ca.crt");
	struct stat st;

	for (size_t i = 0; access(ca, F_OK) == 0 && i < ARRAY_LEN(files); i++) {
		cleanup_free char *path = path_of(a, files[i].name);
		bool missing = stat(path, &st) < 0 && errno == ENOENT;

		if (missing || (S_ISREG(st.st_mode) && st.st_size == 0))
			return err_set(err, ERR_INVALID,
				"%s is %s, and %s; next step: put it back from a copy of the directory%s",
				log_esc(path), missing ? "missing" : "empty", files[i].means,
				files[i].else_);
	}
	return 0;
}

/* ---- keys */

/* Read a key from its sealed file; create both if the file does not exist. An unreadable file is an
 * error and is not replaced: what the old key signed would become invalid. */
static struct pki_key *key_of(const struct apihttp_authority *a, const char *name,
	struct pki_key *(*make)(void), struct err *err)
{
	cleanup_secret struct secret *pem = store_sealing_read(a->sealing, name, err);
	struct pki_key *key;

	if (pem) {
		key = pki_key_from_pem(pem, err);
		if (!key)
			err_wrap(err, "%s/%s", log_esc(a->dir), name);
		return key;
	}
	if (err->kind != ERR_NOT_FOUND)
		return NULL;
	err_clear(err);
	key = make();
	pem = pki_key_private_pem(key);
	if (a->look_only || store_sealing_write(a->sealing, name, pem, err) == 0)
		return key;
	pki_key_free(key);
	return NULL;
}

/* ---- certificates */

/* Read a file into out. A missing or unreadable file gives an empty out, and so a new
 * certificate. */
static void load(const struct apihttp_authority *a, const char *name, struct strbuf *out)
{
	cleanup_free char *path = path_of(a, name);
	struct err err = ERR_INIT;
	size_t len = 0;
	char *text = file_read(path, FILE_MAX_LEN, &len, NULL, &err);

	strbuf_reset(out);
	if (text && !memchr(text, '\0', len))
		strbuf_add(out, text, len);
	file_wipe(text, len);
}

/* Reissue the CA certificate for the existing key if it is missing, does not fit the key or ends
 * soon. */
static int renew_ca(struct apihttp_authority *a, int64_t now_s, struct err *err)
{
	const struct pki_issue what = {PKI_ISSUE_CA, CA_NAME, NULL, NULL, now_s, CA_DAYS};

	load(a, "ca.crt", &a->ca);
	if (pki_issue_fits(strbuf_str(&a->ca), a->ca.len, a->ca_key) &&
		pki_cert_lasts(a->ca.data, a->ca.len, now_s, CA_LEFT_DAYS))
		return 0;
	/* A CA certificate that is only reissued is not new: clients that trust the old one trust
	 * this one too. */
	a->is_new = a->ca.len == 0;
	strbuf_reset(&a->ca);
	if (pki_issue(&what, a->ca_key, a->ca_key, NULL, &a->ca, err) < 0)
		return -1;
	return put(a, "ca.crt", a->ca.data, a->ca.len, err);
}

/* The same for the server certificate, which must also hold all names and be from this CA, which may
 * have been replaced. 1: it was reissued. */
static int renew_server(struct apihttp_authority *a, int64_t now_s, struct err *err)
{
	const struct pki_issue what = {PKI_ISSUE_SERVER, a->names[0], NULL,
		(const char *const *)a->names, now_s, LEAF_DAYS};

	load(a, "server.crt", &a->cert);
	if (pki_issue_is_by(strbuf_str(&a->cert), a->cert.len, a->ca_key) &&
		pki_issue_serves(strbuf_str(&a->cert), a->cert.len, a->server_key,
			(const char *const *)a->names, now_s, LEFT_DAYS))
		return 0;
	strbuf_reset(&a->cert);
	if (pki_issue(&what, a->server_key, a->ca_key, a->ca.data, &a->cert, err) < 0)
		return -1;
	return put(a, "server.crt", a->cert.data, a->cert.len, err) < 0 ? -1 : 1;
}

static void add_b64(struct strbuf *out, const char *name, const void *data, size_t len)
{
	strbuf_addf(out, "    %s: ", name);
	bytes_to_b64(out, data, len);
	strbuf_addc(out, '\n');
}

/* Write the first line of the kubeconfig: a comment with the CA's hash, the server, the namespace
 * and the end of the client certificate. It tells whether the file is current without parsing the
 * rest, so a change of its text makes every installation write the file again. */
static void head_of(const struct apihttp_authority *a, int64_t end_s, struct strbuf *out)
{
	uint8_t ca[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];

	bytes_sha256(a->ca.data, a->ca.len, ca);
	/* Eight bytes of the hash are enough: it detects a change and protects nothing. */
	bytes_to_hex(ca, 8, hex);
	hex[16] = '\0';
	strbuf_addf(out,
		"# Made by tec-operator: an administrator's access; keep it secret. %s %s %s %lld\n",
		hex, a->server, a->ns, (long long)end_s);
}

/* Compare the first line of the file with the one it would get now, except for the end of the
 * certificate, which must only be far enough away. */
static bool kubeconfig_is_current(const struct apihttp_authority *a, int64_t now_s)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	struct err err = ERR_INIT;
	size_t len = 0, n;
	char *text = file_read(a->kubeconfig, FILE_MAX_LEN, &len, NULL, &err);
	uint64_t end = 0;
	char number[24];
	bool ok = false;

	head_of(a, 0, &head);
	/* The line up to the end of the certificate, which is written as "0" and a newline here. */
	n = head.len - 2;
	if (text && len > n && memcmp(text, head.data, n) == 0 &&
		strcspn(text + n, "\n") < sizeof(number)) {
		memcpy(number, text + n, strcspn(text + n, "\n"));
		number[strcspn(text + n, "\n")] = '\0';
		ok = str_to_u64(number, INT64_MAX, &end) == 0 &&
		     (int64_t)end - now_s > (int64_t)LEFT_DAYS * DAY_S;
	}
	file_wipe(text, len);
	return ok;
}

/* Write a kubeconfig with a new key and client certificate unless the file is current. The private
 * key exists only in that file. */
static int renew_kubeconfig(struct apihttp_authority *a, int64_t now_s, struct err *err)
{
	const struct pki_issue what = {
		PKI_ISSUE_CLIENT, ADMIN_NAME, ADMIN_GROUP, NULL, now_s, LEAF_DAYS};
	cleanup_pki_key struct pki_key *key = NULL;
	cleanup_secret struct secret *pem = NULL;
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, text = STRBUF_INIT;
	int rc;

	if (!a->kubeconfig || kubeconfig_is_current(a, now_s))
		return 0;
	key = pki_key_new_p256();
	pem = pki_key_private_pem(key);
	if (pki_issue(&what, key, a->ca_key, a->ca.data, &cert, err) < 0)
		return -1;
	head_of(a, now_s + (int64_t)LEAF_DAYS * DAY_S, &text);
	strbuf_addf(&text,
		"apiVersion: v1\nkind: Config\nclusters:\n- name: tec\n  cluster:\n    server: %s\n",
		a->server);
	add_b64(&text, "certificate-authority-data", a->ca.data, a->ca.len);
	strbuf_addf(&text,
		"contexts:\n- name: tec\n  context:\n    cluster: tec\n    user: %s\n    namespace: %s\n",
		ADMIN_NAME, a->ns);
	strbuf_addf(&text, "current-context: tec\nusers:\n- name: %s\n  user:\n", ADMIN_NAME);
	add_b64(&text, "client-certificate-data", cert.data, cert.len);
	add_b64(&text, "client-key-data", secret_peek(pem), secret_len(pem));
	rc = a->look_only ? 0 : file_replace(a->kubeconfig, text.data, text.len, 0600, err);
	secret_wipe(text.data, text.len);
	return rc;
}

/* The CA goes first: the other two are signed with its certificate. */
int apihttp_authority_renew(struct apihttp_authority *a, int64_t now_s, struct err *err)
{
	int rc;

	if (renew_ca(a, now_s, err) < 0)
		return -1;
	rc = renew_server(a, now_s, err);
	if (rc < 0 || renew_kubeconfig(a, now_s, err) < 0)
		return -1;
	return rc;
}

/* ---- open, close, read */

/* Open everything in order of dependency: directory, lock, sealing key, keys. */
static int open_all(
	struct apihttp_authority *a, const struct apihttp_authority_conf *conf, struct err *err)
{
	cleanup_free char *inside = NULL;

	if (make_dir(a, err) < 0 || (!conf->look_only && take_lock(a, err) < 0) ||
		(!conf->sealing_only && check_complete(a, err) < 0))
		return -1;
	a->sealing = store_sealing_open(a->dir, &conf->sealing,
		conf->look_only      ? STORE_SEALING_LOOK
		: conf->sealing_only ? STORE_SEALING_READ
				     : STORE_SEALING_MAKE,
		err);
	if (!a->sealing || conf->sealing_only)
		return a->sealing ? 0 : -1;
	/* If the sealing key is kept outside of the directory, nothing in the directory may give
	 * access to the store, and so no kubeconfig is written there. */
	inside = path_of(a, "kubeconfig");
	if (conf->kubeconfig || store_sealing_is_own(a->sealing))
		a->kubeconfig = xstrdup(conf->kubeconfig ? conf->kubeconfig : inside);
	a->ca_key = key_of(a, "ca.key", pki_key_new_p256, err);
	a->server_key = a->ca_key ? key_of(a, "server.key", pki_key_new_p256, err) : NULL;
	a->token_key = a->server_key ? key_of(a, "token.key", pki_key_new_ed25519, err) : NULL;
	if (!a->token_key)
		return -1;
	if (!pki_key_is_ed25519(a->token_key))
		return err_set(
			err, ERR_INVALID, "%s/token.key is not an Ed25519 key", log_esc(a->dir));
	a->server_pem = pki_key_private_pem(a->server_key);
	/* Remove the kubeconfig that an earlier start left in the directory, if this start writes
	 * it elsewhere. */
	if (!a->look_only && !str_eq(a->kubeconfig, inside) && access(inside, F_OK) == 0) {
		file_remove(inside);
		log_warn(NULL,
			"removed the kubeconfig from the state directory because it holds an administrator's key; next step: choose where to write it with --write-kubeconfig=FILE",
			NULL);
	}
	return 0;
}

/* The configuration is copied. A failure releases the lock with everything else. */
struct apihttp_authority *apihttp_authority_open(
	const struct apihttp_authority_conf *conf, struct err *err)
{
	struct apihttp_authority *a = xcalloc(1, sizeof(*a));
	size_t n = 0;

	a->dir = xstrdup(conf->dir);
	a->server = xstrdup(conf->server);
	a->ns = xstrdup(conf->ns);
	a->lock = -1;
	a->look_only = conf->look_only;
	while (conf->names[n])
		n++;
	a->names = xcalloc(n + 1, sizeof(*a->names));
	for (size_t i = 0; i < n; i++)
		a->names[i] = xstrdup(conf->names[i]);
	if (open_all(a, conf, err) < 0) {
		apihttp_authority_close(a);
		return NULL;
	}
	return a;
}

void apihttp_authority_close(struct apihttp_authority *a)
{
	if (!a)
		return;
	pki_key_free(a->ca_key);
	pki_key_free(a->server_key);
	pki_key_free(a->token_key);
	secret_free(a->server_pem);
	store_sealing_free(a->sealing);
	strbuf_fini(&a->ca);
	strbuf_fini(&a->cert);
	for (char **n = a->names; *n; n++)
		free(*n);
	free(a->names);
	free(a->kubeconfig);
	free(a->ns);
	free(a->server);
	free(a->dir);
	if (a->lock >= 0)
		close(a->lock);
	free(a);
}

struct apihttp_identity apihttp_authority_identity(const struct apihttp_authority *a)
{
	return (struct apihttp_identity){.dir = a->dir,
		.kubeconfig = a->kubeconfig,
		.ca = strbuf_str(&a->ca),
		.cert = strbuf_str(&a->cert),
		.key = a->server_pem,
		.token_key = a->token_key,
		.is_new = a->is_new};
}

struct store_sealing *apihttp_authority_sealing(struct apihttp_authority *a)
{
	return a->sealing;
}
