/* SPDX-License-Identifier: MIT */
/*
 * Credentials come from a mounted file and not from the API: reading the pull Secrets of our own
 * ServiceAccount would need the right to read ServiceAccounts, and the kubelet refreshes the file
 * as it is.
 */
#include "config.h"

#include "labels.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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

/* At most SECRET_MAX_LEN bytes. NULL without an error: there is no such file, as of an optional
 * Secret that nobody made. */
static struct secret *read_auth(const char *path, struct err *err)
{
	cleanup_secret struct secret *all = secret_new(SECRET_MAX_LEN);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0 && errno == ENOENT)
		return NULL;
	if (fd < 0) {
		err_set_errno(err, ERR_INVALID, errno, "--registry-auth %s", path);
		return NULL;
	}
	while (len < SECRET_MAX_LEN) {
		n = read(fd, secret_bytes(all) + len, SECRET_MAX_LEN - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (n < 0)
		err_set_errno(err, ERR_INVALID, errno, "--registry-auth %s", path);
	else if (len == 0 || len == SECRET_MAX_LEN)
		err_set(err, ERR_INVALID, "--registry-auth %s: empty, or 64 KiB and more", path);
	close(fd);
	return err_is_set(err) ? NULL : secret_new_copy(secret_peek(all), len);
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
