/* SPDX-License-Identifier: MIT */
/* Combines the options with oci/lookup.h and oci/compute.h. */
#include "config.h"

#include "images.h"

#include <stdlib.h>

#include "tec/base/mem.h"
#include "tec/oci/authfile.h"

#define SELF "/proc/self/exe"

struct images {
	const struct options *options;
	struct oci_lookup *lookup;
	struct oci_computes *computes; /* NULL: values are computed by Jobs */
	char *tool, *scratch;          /* owned */
	struct oci_authfile *auth;
};

/* With --standalone there are no Jobs: a child of this process computes, with its scratch space
 * in DIR. */
static void compute_here(struct images *s, struct loop *l)
{
	static const char *const argv[] = {"tec-operator", "--compute-image", NULL};
	struct oci_computes_conf conf = {.file = SELF, .argv = argv};

	conf.tool = s->tool = oci_compute_tool();
	conf.scratch = s->scratch = xasprintf("%s/scratch", s->options->standalone);
	s->computes = oci_computes_new(l, &conf);
}

/* Children are this program itself (/proc/self/exe), so an update on disk cannot mix versions. */
struct images *images_new(struct loop *l, const struct options *o, struct err *err)
{
	static const char *const argv[] = {"tec-operator", "--lookup-label", NULL};
	struct oci_authfile *auth = oci_authfile_new(o->registry_auth, err);
	struct images *s;

	if (!auth) {
		err_wrap(err, "option --registry-auth");
		return NULL;
	}
	s = xcalloc(1, sizeof(*s));
	s->options = o;
	s->auth = auth;
	s->lookup = oci_lookup_new(l, SELF, argv);
	if (o->standalone)
		compute_here(s, l);
	return s;
}

void images_free(struct images *s)
{
	if (!s)
		return;
	oci_authfile_free(s->auth);
	oci_lookup_free(s->lookup);
	oci_computes_free(s->computes);
	free(s->tool);
	free(s->scratch);
	free(s);
}

/* The credentials are read again for each lookup: their file may have been renewed. */
struct op *images_label(void *arg, struct op_scope *scope, const char *reference, const char *label,
	oci_label_fn done, void *done_arg)
{
	struct images *s = arg;
	const struct options *o = s->options;
	const struct secret *config = oci_authfile_get(s->auth);
	const struct oci_conf conf = {
		.mirrors = o->registry_mirrors.items,
		.n_mirrors = o->registry_mirrors.n,
		.insecure = o->insecure_registries.items,
		.n_insecure = o->insecure_registries.n,
		.platform_os = "linux",
		.platform_arch = conf_str(o->conf, "arch"),
	};

	return oci_lookup_get(
		s->lookup, scope, &conf, reference, label, &config, config != NULL, done, done_arg);
}

/* The child gets its options as words of a command line; unset ones are left to its defaults. */
struct op *images_compute(void *arg, struct op_scope *scope, const char *reference,
	const char *nonce, struct json_object *platforms, oci_said_fn said, oci_computed_fn done,
	void *done_arg)
{
	static const char *const names[][2] = {{"registry-mirror", "--registry-mirror"},
		{"insecure-registry", "--insecure-registry"}, {"arch", "--arch"}};
	struct images *s = arg;
	const struct conf *c = s->options->conf;
	const char *options[2 * ARRAY_LEN(names) + 1];
	struct oci_compute_question q = {.reference = reference,
		.nonce = nonce,
		.options = options,
		.ca = conf_str(c, "registry-ca"),
		.auth = oci_authfile_get(s->auth),
		.platforms = platforms};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = conf_str(c, names[i][0]);

		if (!value || !*value)
			continue;
		options[n++] = names[i][1];
		options[n++] = value;
	}
	options[n] = NULL;
	return oci_compute(s->computes, scope, &q, said, done, done_arg);
}
