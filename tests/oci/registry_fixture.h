/* SPDX-License-Identifier: MIT */
/* Three registries, an image, and one question to them. r1 and r2 speak TLS, r3 does not. */
#ifndef TESTS_OCI_REGISTRY_FIXTURE_H
#define TESTS_OCI_REGISTRY_FIXTURE_H

#include "oci/oci_testing.h"

#define CHALLENGE "401 No\r\nWWW-Authenticate: Bearer realm=\"%s/token\",service=\"svc\""
#define AUTH      "{\"auths\":{\"%s\":{\"auth\":\"dTpwdw==\"}}}"

static struct pair ca, leaf;
static struct httpc_tls *trust;
static struct image img;
static struct reg r1, r2, r3;
static struct strbuf mirror, insecure;
static size_t n_mirrors; /* how often `mirror` is listed */

struct got {
	bool done;
	struct err err;
	char value[128]; /* "none": no such label */
	struct op *op;
};

static inline void setup(void)
{
	struct err err = ERR_INIT;

	srv = (struct server){0};
	ca = make_pair("test ca", NULL, NULL, 86400);
	leaf = make_pair("registry", &ca, "IP:127.0.0.1,DNS:localhost", 86400);
	setup_client();
	trust = httpc_tls_new(ca.cert_pem, strlen(ca.cert_pem), NULL, 0, NULL, 0, NULL, &err);
	cr_assert(trust, "%s", err.text);
	img = image_of("{\"config\":{\"Labels\":{\"l\":\"the value\"}}}");
	reg_open(&r1, &leaf);
	reg_open(&r2, &leaf);
	reg_open(&r3, NULL);
}

static inline void teardown(void)
{
	reg_stop(&r1);
	reg_stop(&r2);
	reg_stop(&r3);
	image_fini(&img);
	strbuf_fini(&mirror);
	strbuf_fini(&insecure);
	httpc_tls_unref(trust);
	teardown_client();
	pair_free(&ca);
	pair_free(&leaf);
}

static inline struct rule *serve(struct reg *r, const char *line, const struct doc *d)
{
	return reg_rule(r, line, "200 OK", d->text, d->len);
}

static inline void serve_image(struct reg *r, const struct image *i)
{
	serve(r, i->index.manifest_line, &i->index);
	serve(r, i->manifest.manifest_line, &i->manifest);
	serve(r, i->config.blob_line, &i->config);
}

static inline void on_label(void *arg, const struct err *err, const char *value, size_t len)
{
	struct got *g = arg;

	cr_assert_not(g->done);
	g->done = true;
	g->err = *err;
	cr_assert(!err_is_set(err) || !value);
	cr_assert_eq(value ? strlen(value) : 0, len);
	snprintf(g->value, sizeof(g->value), "%s", value ? value : "none");
}

static inline void start_ask(
	struct got *g, const char *host, const char *digest, const char *config)
{
	cleanup_free char *text = xasprintf("%s/a/b@%s", host, digest);
	cleanup_secret struct secret *s = config ? secret_new_copy(config, strlen(config)) : NULL;
	const struct secret *const configs[] = {s};
	const char *mirrors[5] = {strbuf_str(&mirror), strbuf_str(&mirror), strbuf_str(&mirror),
		strbuf_str(&mirror), strbuf_str(&mirror)},
		   *plain[] = {strbuf_str(&insecure)};
	struct oci_conf conf = {.mirrors = mirrors,
		.n_mirrors = n_mirrors,
		.insecure = plain,
		.n_insecure = insecure.len > 0,
		.tls = trust,
		.platform_os = "linux",
		.platform_arch = "amd64"};

	memset(g, 0, sizeof(*g));
	op_hold(&g->op,
		oci_label_get(l, c, &ops, &conf, text, "l", configs, config != NULL, on_label, g));
	cr_assert_not(g->done);
}

static inline struct got ask(const char *host, const char *digest, const char *config)
{
	struct got g;

	start_ask(&g, host, digest, config);
	wait_for(&g.done);
	cr_assert_null(g.op);
	return g;
}

static inline void expect(const struct got *g, enum err_kind kind, const char *text)
{
	cr_assert_eq(g->err.kind, kind, "%s: %s", err_kind_name(g->err.kind), g->err.text);
	cr_assert(strstr(kind ? g->err.text : g->value, text), "%s%s", g->err.text, g->value);
}

static inline char *auth_for(const char *host)
{
	return xasprintf(AUTH, host);
}

static inline void challenge(struct reg *r, const char *realm_scheme, const struct reg *tokens)
{
	cleanup_free char *realm = xasprintf("%s://%s", realm_scheme, tokens->host);
	cleanup_free char *head = xasprintf(CHALLENGE, realm);

	reg_rule(r, "GET /v2/", head, "no", 2)->without = "Authorization: Bearer good";
}

static inline void redirect(struct reg *r, const char *line, const char *to)
{
	cleanup_free char *head = xasprintf("307 There\r\nLocation: %s", to);

	reg_rule(r, line, head, "", 0);
}

#endif
