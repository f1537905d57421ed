/* SPDX-License-Identifier: MIT */
/*
 * Asks a registry for one label of an image, as the operator does, for tests/e2e.
 * tec-test-oci [--ca F] [--insecure HOST]... [--mirror A=B]... [--docker-config F] [--arch A] REF
 * LABEL. Prints the label; exit 0 = it is there, 3 = the image has none, 1 = the error is on
 * standard error, its kind first, 2 = usage.
 */
#include "config.h"

#include <stdio.h>

#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/oci/registry.h"

#define LIST_MAX 8

struct args {
	const char *ca, *config, *arch, *ref, *label;
	const char *insecure[LIST_MAX], *mirrors[LIST_MAX];
	size_t n_insecure, n_mirrors;
};

struct answer {
	struct loop *loop;
	int rc;
};

static int usage(void)
{
	fprintf(stderr,
		"usage: tec-test-oci [--ca F] [--insecure HOST] [--mirror A=B] [--docker-config F] [--arch A] REF LABEL\n");
	return 2;
}

static int fail(const struct err *err)
{
	fprintf(stderr, "%s: %s\n", err_kind_name(err->kind), err->text);
	return 1;
}

static bool read_args(struct args *a, int argc, char **argv)
{
	const char **words[] = {&a->ref, &a->label};
	size_t n = 0;

	for (int i = 1; i < argc; i++) {
		const char *v = i + 1 < argc ? argv[i + 1] : NULL;

		if (!str_starts(argv[i], "--")) {
			if (n == ARRAY_LEN(words))
				return false;
			*words[n++] = argv[i];
			continue;
		}
		if (!v)
			return false;
		if (str_eq(argv[i], "--ca"))
			a->ca = v;
		else if (str_eq(argv[i], "--docker-config"))
			a->config = v;
		else if (str_eq(argv[i], "--arch"))
			a->arch = v;
		else if (str_eq(argv[i], "--insecure") && a->n_insecure < LIST_MAX)
			a->insecure[a->n_insecure++] = v;
		else if (str_eq(argv[i], "--mirror") && a->n_mirrors < LIST_MAX)
			a->mirrors[a->n_mirrors++] = v;
		else
			return false;
		i++;
	}
	return n == ARRAY_LEN(words);
}

/* NULL: the error is printed. */
static struct secret *read_file(const char *path)
{
	cleanup_secret struct secret *all = secret_new(SECRET_MAX_LEN);
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f) {
		perror(path);
		return NULL;
	}
	n = fread(secret_bytes(all), 1, SECRET_MAX_LEN, f);
	fclose(f);
	return secret_new_copy(secret_peek(all), n ? n : 1);
}

static void on_label(void *arg, const struct err *err, const char *value, size_t len)
{
	struct answer *a = arg;

	if (err_is_set(err)) {
		a->rc = fail(err);
	} else {
		a->rc = value ? 0 : 3;
		if (value)
			printf("%.*s\n", (int)len, value);
	}
	loop_stop(a->loop);
}

static int ask(const struct args *a, struct httpc_tls *tls, const struct secret *config)
{
	struct oci_conf conf = {.mirrors = a->mirrors,
		.n_mirrors = a->n_mirrors,
		.insecure = a->insecure,
		.n_insecure = a->n_insecure,
		.tls = tls,
		.platform_os = "linux",
		.platform_arch = a->arch ? a->arch : "amd64"};
	struct answer answer = {.loop = loop_new()};
	struct op_scope ops = OP_SCOPE_INIT;
	struct httpc *http = httpc_new(answer.loop);

	(void)oci_label_get(answer.loop, http, &ops, &conf, a->ref, a->label, &config,
		config != NULL, on_label, &answer);
	loop_run(answer.loop);
	httpc_free(http);
	loop_free(answer.loop);
	return answer.rc;
}

int main(int argc, char **argv)
{
	cleanup_secret struct secret *config = NULL, *ca = NULL;
	struct args a = {0};
	struct err err = ERR_INIT;
	struct httpc_tls *tls = NULL;
	int rc;

	secret_process_init();
	if (!read_args(&a, argc, argv))
		return usage();
	if ((a.config && !(config = read_file(a.config))) || (a.ca && !(ca = read_file(a.ca))))
		return 1;
	if (ca) {
		tls = httpc_tls_new(secret_peek(ca), secret_len(ca), NULL, 0, NULL, 0, NULL, &err);
		if (!tls)
			return fail(&err);
	}
	rc = ask(&a, tls, config);
	httpc_tls_unref(tls);
	return rc;
}
