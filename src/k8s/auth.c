/* SPDX-License-Identifier: MIT */
/*
 * Choose the token and the TLS identity of the next request. Credential files are checked with
 * stat() at most once a second and read again when they changed; when a file is unreadable or
 * half-written, its previous content stays in use and one warning is logged. An exec plugin runs as
 * a child process, one at a time and at most once a second. Its credential is renewed 60 s before
 * it expires and remains in use until then. Every failure is ERR_DENIED or ERR_TRANSIENT, so that
 * none is mistaken for an answer of the API server.
 */
#include "config.h"

#include "tec/k8s/auth.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/str.h"
#include "tec/loop/child.h"

#include "auth_internal.h"

#define LOOK_EVERY_MS    1000u
#define EXEC_PAUSE_MS    1000u /* between two runs of a plugin */
#define EXEC_DEADLINE_MS 30000u
#define EXEC_MAX_OUT     (256u * 1024)
#define EXPIRY_SLACK_S   60
#define PEM_MAX          (1024u * 1024)
#define TOKEN_MAX        (SECRET_MAX_LEN - 1)

struct auth_file {
	const char *path; /* borrowed from the configuration; NULL: not configured */
	struct stat st;   /* of the content in use; st_ino 0: nothing read yet */
};

/* The parts of the TLS identity. */
enum { CA, CERT, KEY, N_TLS_FILES };

struct waiter {
	struct op op; /* first */
	struct k8s_auth *a;
	LIST_ENTRY(waiter) link;
	struct defer defer;
	k8s_cred_fn done;
	void *arg;
};

struct k8s_auth {
	struct loop *loop;
	struct k8s_kubeconfig *conf;
	struct op_scope ops; /* the plugin */
	LIST_HEAD(, waiter) waiters;

	struct auth_file token_file, tls_file[N_TLS_FILES];
	uint64_t looked_ms;
	bool looked, force, warned;

	struct auth_exec exec; /* the latest credential of the plugin */
	bool have_exec, running;
	uint64_t ran_ms;   /* end of its last run, boot clock; 0: never */
	struct err failed; /* why that run returned no credential */

	struct secret *token; /* in use, NUL-terminated; NULL: none */
	struct httpc_tls *tls;
	unsigned generation;
};

/* ---- files ---- */

/* Compare inode, size and mtime: kubelet replaces a mounted Secret by a rename, others write in
 * place. */
static bool changed(const struct auth_file *f)
{
	struct stat st;

	if (!f->path)
		return false;
	if (stat(f->path, &st) != 0)
		return true; /* reading it reports why */
	return st.st_ino != f->st.st_ino || st.st_dev != f->st.st_dev ||
	       st.st_size != f->st.st_size || st.st_mtim.tv_sec != f->st.st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != f->st.st_mtim.tv_nsec;
}

/* A new generation tells the client that a retry after a 401 is worthwhile. */
static void set_token(struct k8s_auth *a, struct secret *take)
{
	if (!secret_equal(a->token, take))
		a->generation++;
	secret_free(a->token);
	a->token = take;
}

/* The token becomes a header line, so surrounding blanks are trimmed and any other blank or control
 * byte is refused. */
static int read_token(struct k8s_auth *a, struct err *err)
{
	struct auth_file *f = &a->token_file;
	struct stat st;
	size_t len, from = 0, to;
	char *text = file_read(f->path, TOKEN_MAX, &len, &st, err);
	int rc = 0;

	if (!text)
		return -1;
	to = len;
	while (to && (unsigned char)text[to - 1] <= ' ')
		to--;
	while (from < to && (unsigned char)text[from] <= ' ')
		from++;
	for (size_t i = from; i < to && rc == 0; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			rc = err_set(
				err, ERR_DENIED, "%s does not contain exactly one token", f->path);
	if (rc == 0 && from == to)
		rc = err_set(err, ERR_DENIED, "%s is empty", f->path);
	if (rc == 0) {
		text[to] = '\0';
		set_token(a, secret_new_copy(text + from, to - from + 1));
		f->st = st;
	}
	file_wipe(text, len);
	return rc;
}

struct pem { /* a PEM text, borrowed from a secret or read from a file */
	const char *text;
	size_t len;
	char *owned;
	struct stat st;
};

/* Inline data wins over a file, as in client-go. Without either, the text is NULL and this is no
 * error. */
static int pem_get(
	struct pem *p, const struct secret *data, const struct auth_file *f, struct err *err)
{
	memset(p, 0, sizeof(*p));
	if (data) {
		p->text = (const char *)secret_peek(data);
		p->len = secret_len(data);
	} else if (f->path) {
		p->owned = file_read(f->path, PEM_MAX, &p->len, &p->st, err);
		p->text = p->owned;
		return p->owned ? 0 : -1;
	}
	return 0;
}

/* Replace the TLS identity as a whole. cert, key: data to use instead of files; NULL: none. The
 * file stamps are stored only after success, so that a half-written pair is read again at the next
 * check. */
static int build_tls(
	struct k8s_auth *a, const struct secret *cert, const struct secret *key, struct err *err)
{
	const struct secret *const data[N_TLS_FILES] = {a->conf->ca_data, cert, key};
	struct pem p[N_TLS_FILES] = {{0}};
	struct httpc_tls *tls = NULL;
	int rc = 0;

	for (unsigned i = 0; i < N_TLS_FILES && rc == 0; i++)
		rc = pem_get(&p[i], data[i], &a->tls_file[i], err);
	if (rc == 0)
		tls = httpc_tls_new(p[CA].text, p[CA].len, p[CERT].text, p[CERT].len, p[KEY].text,
			p[KEY].len, a->conf->tls_server_name, err);
	if (tls) {
		if (a->conf->insecure)
			httpc_tls_skip_verify(tls);
		httpc_tls_unref(a->tls);
		a->tls = tls;
		a->generation++;
	}
	for (unsigned i = 0; i < N_TLS_FILES; i++) {
		if (tls)
			a->tls_file[i].st = p[i].st;
		file_wipe(p[i].owned, p[i].len);
	}
	return tls ? 0 : -1;
}

static bool is_https(const struct k8s_auth *a)
{
	return str_starts(a->conf->server, "https://");
}

/* Ignore a failure while an older credential is in use: log one warning and try again a second
 * later. */
static int tolerate(struct k8s_auth *a, bool in_force, struct err *err)
{
	err->kind = ERR_DENIED;
	err_wrap(err, "credentials");
	if (!in_force)
		return -1;
	if (!a->warned)
		log_err(LOG_WARN, NULL,
			"cannot read a credential file, its previous content stays in use", err);
	a->warned = true;
	err_clear(err);
	return 0;
}

/* Read files that changed. Without `force`, at most every LOOK_EVERY_MS, since this runs for each
 * request. A failure is an error only while nothing is in use yet. */
static int look_at_files(struct k8s_auth *a, struct err *err)
{
	uint64_t now = clock_boot_ms();
	bool failed = false, stale = !a->tls;

	if (a->looked && !a->force && now - a->looked_ms < LOOK_EVERY_MS)
		return 0;
	if (a->token_file.path && (a->force || changed(&a->token_file)) &&
		read_token(a, err) != 0) {
		failed = true;
		if (tolerate(a, a->token != NULL, err) != 0)
			return -1;
	}
	for (unsigned i = 0; i < N_TLS_FILES; i++)
		stale |= changed(&a->tls_file[i]);
	if (is_https(a) && stale &&
		build_tls(a, a->have_exec ? a->exec.cert : a->conf->cert_data,
			a->have_exec ? a->exec.key : a->conf->key_data, err) != 0) {
		failed = true;
		if (tolerate(a, a->tls != NULL, err) != 0)
			return -1;
	}
	a->warned = failed;
	a->looked = true;
	a->force = false;
	a->looked_ms = now;
	return 0;
}

/* ---- the plugin ---- */

static void waiter_look(void *arg);

/* Accept the output of the plugin. Any that cannot be used leaves the previous credential in use:
 * it may be valid for a while yet, and the plugin runs again. */
static int take_exec(struct k8s_auth *a, const char *out, size_t len, struct err *err)
{
	struct auth_exec x;
	bool tls_changed;

	if (auth_exec_parse(out, len, a->conf->exec_api_version, &x, err) != 0)
		return -1;
	if (x.expires_s && x.expires_s <= clock_wall_s()) {
		auth_exec_fini(&x);
		return err_set(
			err, ERR_DENIED, "its credential has already expired: check the clocks");
	}
	tls_changed =
		!(x.cert ? secret_equal(a->exec.cert, x.cert) && secret_equal(a->exec.key, x.key)
			 : !a->exec.cert);
	if (is_https(a) && (tls_changed || !a->tls) && build_tls(a, x.cert, x.key, err) != 0) {
		auth_exec_fini(&x);
		err->kind = ERR_DENIED;
		return -1;
	}
	set_token(a, x.token ? secret_new_copy(secret_peek(x.token), secret_len(x.token)) : NULL);
	auth_exec_fini(&a->exec);
	a->exec = x;
	a->have_exec = true;
	return 0;
}

/* Callers waiting in k8s_auth_get() are woken after success and after failure. */
static void on_exec(void *arg, const struct err *child_err, const char *out, size_t len)
{
	struct k8s_auth *a = arg;
	struct err err = *child_err;
	struct waiter *w;

	a->running = false;
	a->ran_ms = clock_boot_ms();
	err_clear(&a->failed);
	if (err_is_set(&err) || take_exec(a, out, len, &err) != 0) {
		if (err.kind != ERR_TRANSIENT)
			err.kind = ERR_DENIED;
		err_wrap(&err, "credential plugin %s (run it manually to see its output)",
			a->conf->exec_argv[0]);
		a->failed = err;
		log_err(LOG_WARN, NULL, "the credential plugin failed", &err);
	}
	LIST_FOREACH (w, &a->waiters, link)
		defer_call(&w->defer, a->loop, waiter_look, w);
}

/* The plugin inherits our environment, extended by the entries of the kubeconfig and
 * KUBERNETES_EXEC_INFO. */
static void start_exec(struct k8s_auth *a)
{
	const struct k8s_kubeconfig *k = a->conf;
	struct err ignored = ERR_INIT;
	cleanup_free char *info = NULL;
	cleanup_free const char **env = NULL;
	struct child_spec spec = {.max_out = EXEC_MAX_OUT, .deadline_ms = EXEC_DEADLINE_MS};
	struct pem ca = {0};
	size_t n = 0;

	if (k->exec_cluster_info && pem_get(&ca, k->ca_data, &a->tls_file[CA], &ignored) != 0)
		log_err(LOG_WARN, NULL, "the credential plugin receives no certificate authority",
			&ignored);
	info = auth_exec_info(k, ca.text, ca.len);
	file_wipe(ca.owned, ca.len);
	while (k->exec_env && k->exec_env[n])
		n++;
	env = xcalloc(n + 2, sizeof(*env));
	for (size_t i = 0; i < n; i++)
		env[i] = k->exec_env[i];
	env[n] = info;
	spec.argv = (const char *const *)k->exec_argv;
	spec.env = env;
	a->running = true;
	(void)child_start(a->loop, &a->ops, &spec, on_exec, a);
}

static bool exec_may_run(const struct k8s_auth *a)
{
	return !a->running && (!a->ran_ms || clock_boot_ms() - a->ran_ms >= EXEC_PAUSE_MS);
}

/* In the last minute before its expiry the credential is still usable, while the plugin already
 * fetches the next one. */
static bool exec_usable(struct k8s_auth *a)
{
	int64_t now = clock_wall_s();

	if (!a->have_exec)
		return false;
	if (!a->exec.expires_s || now + EXPIRY_SLACK_S < a->exec.expires_s)
		return true;
	if (now >= a->exec.expires_s)
		return false;
	if (exec_may_run(a))
		start_exec(a);
	return true;
}

/* ---- the interface ---- */

/* The plugin's last failure is reported only during the pause after it; later, false without an
 * error makes the caller wait for a new run. */
bool k8s_auth_ready(struct k8s_auth *a, struct k8s_cred *cred, struct err *err)
{
	if (a->conf->exec_argv && !exec_usable(a)) {
		if (err_is_set(&a->failed) && !a->running && !exec_may_run(a))
			*err = a->failed;
		return false;
	}
	if (look_at_files(a, err) != 0)
		return false;
	cred->bearer = a->token ? (const char *)secret_peek(a->token) : NULL;
	cred->tls = a->tls;
	cred->generation = a->generation;
	return true;
}

static void waiter_unlink(struct waiter *w)
{
	LIST_REMOVE(w, link);
	defer_cancel(&w->defer);
}

static void waiter_abort(struct op *op)
{
	waiter_unlink((struct waiter *)op);
	free(op);
}

/* A waiter remains in the list while the plugin runs; on_exec() wakes it again. */
static void waiter_look(void *arg)
{
	struct waiter *w = arg;
	struct k8s_cred cred = {0};
	struct err err = ERR_INIT;
	bool ready = k8s_auth_ready(w->a, &cred, &err);

	if (!ready && !err_is_set(&err)) {
		if (!w->a->running)
			start_exec(w->a);
		return;
	}
	waiter_unlink(w);
	op_finish(&w->op);
	w->done(w->arg, &err, ready ? &cred : NULL);
	free(w);
}

/* done runs from the loop even if the credential is ready, as loop/op.h demands. */
struct op *k8s_auth_get(struct k8s_auth *a, struct op_scope *scope, k8s_cred_fn done, void *arg)
{
	struct waiter *w = xcalloc(1, sizeof(*w));

	w->a = a;
	w->done = done;
	w->arg = arg;
	LIST_INSERT_HEAD(&a->waiters, w, link);
	op_begin(&w->op, scope, waiter_abort);
	defer_call(&w->defer, a->loop, waiter_look, w);
	return &w->op;
}

void k8s_auth_refused(struct k8s_auth *a)
{
	a->force = true;
	/* Many requests may be refused because of one bad credential: a plugin's credential younger
	 * than that is kept. */
	if (a->have_exec && clock_boot_ms() - a->ran_ms >= EXEC_PAUSE_MS)
		a->have_exec = false;
}

/* Files are read at the first request, so a missing one is reported there and not here. */
struct k8s_auth *k8s_auth_new(struct loop *l, struct k8s_kubeconfig *take_config)
{
	struct k8s_auth *a = xcalloc(1, sizeof(*a));
	const struct k8s_kubeconfig *k = take_config;

	a->loop = l;
	a->conf = take_config;
	a->token_file.path = k->token_file;
	a->tls_file[CA].path = k->ca_data ? NULL : k->ca_file;
	a->tls_file[CERT].path = k->cert_data ? NULL : k->cert_file;
	a->tls_file[KEY].path = k->key_data ? NULL : k->key_file;
	if (k->token) { /* with a tokenFile as well: used until the file is read */
		a->token = secret_new(secret_len(k->token) + 1);
		memcpy(secret_bytes(a->token), secret_peek(k->token), secret_len(k->token));
	}
	return a;
}

/* Waiters are ops of the callers' scopes and must be gone: they point to this object. */
void k8s_auth_free(struct k8s_auth *a)
{
	if (!a)
		return;
	op_scope_cancel(&a->ops);
	assert(LIST_EMPTY(&a->waiters));
	auth_exec_fini(&a->exec);
	secret_free(a->token);
	httpc_tls_unref(a->tls);
	k8s_kubeconfig_free(a->conf);
	free(a);
}
