/* SPDX-License-Identifier: MIT */
/* Options and oci/lookup.h, put together. */
#include "config.h"

#include "labels.h"

#include "tec/base/mem.h"
#include "tec/oci/authfile.h"

struct labels {
	const struct options *options;
	struct oci_lookup *lookup;
	struct oci_authfile *auth;
};

struct labels *labels_new(struct loop *l, const struct options *o, struct err *err)
{
	static const char *const argv[] = {"tec-operator", "--lookup-label", NULL};
	struct oci_authfile *auth = oci_authfile_new(o->registry_auth, err);
	struct labels *s;

	if (!auth) {
		err_wrap(err, "option --registry-auth");
		return NULL;
	}
	s = xcalloc(1, sizeof(*s));
	s->options = o;
	s->auth = auth;
	s->lookup = oci_lookup_new(l, "/proc/self/exe", argv);
	return s;
}

void labels_free(struct labels *s)
{
	if (!s)
		return;
	oci_authfile_free(s->auth);
	oci_lookup_free(s->lookup);
	free(s);
}

struct op *labels_image(void *arg, struct op_scope *scope, const char *reference, const char *label,
	oci_label_fn done, void *done_arg)
{
	struct labels *s = arg;
	const struct options *o = s->options;
	const struct secret *config = oci_authfile_get(s->auth);
	const struct oci_conf conf = {
		.mirrors = o->registry_mirrors.items,
		.n_mirrors = o->registry_mirrors.n,
		.insecure = o->insecure_registries.items,
		.n_insecure = o->insecure_registries.n,
		.platform_os = "linux",
		.platform_arch = REGISTRIES_ARCH,
	};

	return oci_lookup_get(
		s->lookup, scope, &conf, reference, label, &config, config != NULL, done, done_arg);
}
