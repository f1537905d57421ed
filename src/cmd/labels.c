/* SPDX-License-Identifier: MIT */
/*
 * Credentials come from a mounted file and not from the API: reading the pull Secrets of our own
 * ServiceAccount would need the right to read ServiceAccounts, and the kubelet refreshes the file
 * as it is.
 */
#include "config.h"

#include "labels.h"

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#if defined(__x86_64__)
#define ARCH "amd64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#elif defined(__s390x__)
#define ARCH "s390x"
#else
#error "name this architecture as GOARCH does"
#endif

struct labels {
	const struct options *options;
	struct oci_lookup *lookup;
	struct secret *auth; /* NULL: no credentials */
};

/* Less than SECRET_MAX_LEN bytes. NULL without an error: there is no such file, as of an optional
 * Secret that nobody made. */
static struct secret *read_auth(const char *path, struct err *err)
{
	struct secret *auth = NULL;
	size_t len;
	char *text = file_read(path, SECRET_MAX_LEN - 1, &len, NULL, err);

	if (!text && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		return NULL;
	}
	if (text && len == 0)
		err_set(err, ERR_INVALID, "%s: empty", path);
	if (err_is_set(err))
		err_wrap(err, "--registry-auth");
	else
		auth = secret_new_copy(text, len);
	file_wipe(text, len);
	return auth;
}

static void take_auth(struct labels *s, struct secret *take_auth, bool first)
{
	if (first || !take_auth != !s->auth)
		log_info(NULL,
			take_auth ? "registries are asked with credentials"
				  : "registries are asked anonymously, there are no credentials",
			"file=%s", log_esc(s->options->registry_auth));
	secret_free(s->auth);
	s->auth = take_auth;
}

struct labels *labels_new(struct loop *l, const struct options *o, struct err *err)
{
	static const char *const argv[] = {"tec-operator", "--lookup-label", NULL};
	struct labels *s = xcalloc(1, sizeof(*s));
	cleanup_secret struct secret *auth = NULL;

	s->options = o;
	s->lookup = oci_lookup_new(l, "/proc/self/exe", argv);
	if (o->registry_auth) {
		auth = read_auth(o->registry_auth, err);
		if (!err_is_set(err))
			take_auth(s, steal_ptr(&auth), true);
	}
	if (!err_is_set(err))
		return s;
	labels_free(s);
	return NULL;
}

void labels_free(struct labels *s)
{
	if (!s)
		return;
	secret_free(s->auth);
	oci_lookup_free(s->lookup);
	free(s);
}

static void refresh(struct labels *s)
{
	struct err err = ERR_INIT;
	struct secret *now;

	if (!s->options->registry_auth)
		return;
	now = read_auth(s->options->registry_auth, &err);
	if (err_is_set(&err))
		log_err(LOG_WARN, NULL, "registry credentials not reread, the old ones stay", &err);
	else
		take_auth(s, now, false);
}

struct op *labels_image(void *arg, struct op_scope *scope, const char *reference, const char *label,
	oci_label_fn done, void *done_arg)
{
	struct labels *s = arg;
	const struct options *o = s->options;
	const struct secret *configs[] = {NULL};
	const struct oci_conf conf = {
		.mirrors = o->registry_mirrors.items,
		.n_mirrors = o->registry_mirrors.n,
		.insecure = o->insecure_registries.items,
		.n_insecure = o->insecure_registries.n,
		.platform_os = "linux",
		.platform_arch = ARCH,
	};

	refresh(s);
	configs[0] = s->auth;
	return oci_lookup_get(s->lookup, scope, &conf, reference, label, configs, s->auth != NULL,
		done, done_arg);
}
