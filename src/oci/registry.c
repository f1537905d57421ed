/* SPDX-License-Identifier: MIT */
/*
 * The chain: reference -> index -> manifest -> configuration -> label, each document from the first
 * host that has it. Documents are named by their digest, so a mirror needs no trust and a verified
 * document is never fetched again; one that is verified and is not an image ends the lookup, as
 * every other host would send the same bytes.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "tec/base/log.h"
#include "tec/base/str.h"
#include "tec/loop/timer.h"

#include "oci_internal.h"

#define QUESTION_MS 120000u
#define HUB_HOST    "registry-1.docker.io" /* where docker.io's images are */

enum stage { STAGE_REFERENCE, STAGE_MANIFEST, STAGE_CONFIG };

struct label_call {
	struct op op; /* first */
	struct loop *loop;
	struct oci_net net;
	struct op_scope ops;
	struct timer deadline;
	struct defer fail;
	struct err err; /* of a call that could not start */
	char *os, *arch, *label;
	struct oci_source *sources; /* mirrors, then the registry */
	size_t n_sources, at;
	enum stage stage;
	struct oci_descriptor next;
	oci_label_fn done;
	void *arg;
};

static void fetch_next(struct label_call *k);

static void call_free(struct label_call *k)
{
	op_scope_cancel(&k->ops);
	timer_fini(&k->deadline);
	defer_cancel(&k->fail);
	for (size_t i = 0; i < k->n_sources; i++) {
		struct oci_source *s = &k->sources[i];

		free(s->host);
		free(s->base);
		free(s->repository);
		oci_cred_free(s->cred);
		secret_free(s->token);
	}
	free(k->sources);
	for (size_t i = 0; i < k->net.n_insecure; i++)
		free(k->net.insecure[i]);
	free(k->net.insecure);
	httpc_tls_unref(k->net.tls);
	free(k->os);
	free(k->arch);
	free(k->label);
	free(k);
}

static void call_abort(struct op *op)
{
	call_free((struct label_call *)op);
}

/* err and value are not k's. */
static void call_end(struct label_call *k, const struct err *err, const char *value, size_t len)
{
	oci_label_fn done = k->done;
	void *arg = k->arg;

	op_finish(&k->op);
	call_free(k);
	done(arg, err, value, len);
}

static void on_fail(void *arg)
{
	struct label_call *k = arg;
	struct err err = k->err;

	call_end(k, &err, NULL, 0);
}

static void on_deadline(void *arg)
{
	struct label_call *k = arg;
	struct err err = ERR_INIT;

	err_set(&err, ERR_TRANSIENT, "%s: the registry took longer than %u s",
		k->sources[k->at].host, QUESTION_MS / 1000);
	call_end(k, &err, NULL, 0);
}

/* ---- the chain ---- */

static void on_config(struct label_call *k, const char *body, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_free char *value = NULL;
	size_t value_len = 0;

	(void)!oci_config_label(body, len, k->label, &value, &value_len, &err);
	call_end(k, &err, value, value_len);
}

static void on_manifest(struct label_call *k, const char *body, size_t len)
{
	struct oci_manifest m;
	struct err err = ERR_INIT;
	int rc = oci_manifest_parse(body, len, k->os, k->arch, &m, &err);

	if (rc == 0 && m.index && k->stage == STAGE_MANIFEST)
		rc = err_set(&err, ERR_INVALID, "the index names another index as the image");
	if (rc != 0) {
		call_end(k, &err, NULL, 0);
		return;
	}
	k->next = m.next;
	k->stage = m.index ? STAGE_MANIFEST : STAGE_CONFIG;
	fetch_next(k);
}

static void name_tried(const struct label_call *k, struct err *err)
{
	cleanup_strbuf struct strbuf hosts = STRBUF_INIT;

	if (k->n_sources == 1)
		return;
	for (size_t i = 0; i < k->n_sources; i++)
		strbuf_addf(&hosts, "%s%s", i ? ", " : "", k->sources[i].host);
	err_wrap(err, "tried %.120s", strbuf_str(&hosts));
}

static void on_fetched(void *arg, const struct err *err, const char *body, size_t len)
{
	struct label_call *k = arg;
	struct err e = *err;

	if (!err_is_set(&e) && k->stage == STAGE_CONFIG) {
		on_config(k, body, len);
	} else if (!err_is_set(&e)) {
		on_manifest(k, body, len);
	} else if (k->at + 1 < k->n_sources) {
		log_err(LOG_WARN, NULL, "a registry mirror failed, the next host is tried", &e);
		k->at++;
		fetch_next(k);
	} else {
		name_tried(k, &e);
		call_end(k, &e, NULL, 0);
	}
}

static void fetch_next(struct label_call *k)
{
	struct oci_want want = {
		.blob = k->stage == STAGE_CONFIG,
		.what = k->next,
		.any_size = k->stage == STAGE_REFERENCE,
	};

	(void)oci_fetch_start(&k->net, &k->ops, &k->sources[k->at], &want, on_fetched, k);
}

/* ---- hosts ---- */

int oci_mirror_parse(const char *text, struct oci_mirror *out, struct err *err)
{
	const char *eq = strchr(text, '='), *slash, *end = text + strlen(text);
	size_t len;

	memset(out, 0, sizeof(*out));
	if (!eq || !oci_host_valid(text, (size_t)(eq - text)))
		return err_set(
			err, ERR_INVALID, "\"%s\" is not registry=host[:port][/prefix]", text);
	memcpy(out->registry, text, (size_t)(eq - text));
	slash = strchr(eq, '/');
	len = (size_t)((slash ? slash : end) - (eq + 1));
	if (!oci_host_valid(eq + 1, len))
		return err_set(
			err, ERR_INVALID, "\"%s\" is not registry=host[:port][/prefix]", text);
	memcpy(out->host, eq + 1, len);
	if (!slash)
		return 0;
	len = (size_t)(end - (slash + 1));
	if (!oci_repository_valid(slash + 1, len))
		return err_set(err, ERR_INVALID,
			"\"%s\": what follows the host is not a path of a repository", text);
	memcpy(out->prefix, slash + 1, len);
	return 0;
}

int oci_each_source(const struct oci_conf *conf, const char *reference, oci_source_fn fn, void *arg,
	struct err *err)
{
	struct oci_ref ref;

	if (oci_ref_parse(reference, &ref, err) != 0)
		return -1;
	for (size_t i = 0; i < conf->n_mirrors; i++) {
		cleanup_free char *repository = NULL;
		struct oci_mirror m;

		if (oci_mirror_parse(conf->mirrors[i], &m, err) != 0)
			return err_wrap(err, "registry mirror");
		if (strcasecmp(m.registry, ref.registry) != 0)
			continue;
		repository = xasprintf("%s%s%s", m.prefix, *m.prefix ? "/" : "", ref.repository);
		if (fn(arg, m.host, m.host, repository, err) != 0)
			return -1;
	}
	return fn(arg, ref.registry, str_eq(ref.registry, "docker.io") ? HUB_HOST : ref.registry,
		ref.repository, err);
}

struct adding {
	struct label_call *k;
	const struct secret *const *configs;
	size_t n_configs;
};

static int add_source(
	void *arg, const char *name, const char *connect, const char *repository, struct err *err)
{
	const struct adding *a = arg;
	struct oci_source *s = &a->k->sources[a->k->n_sources++];

	s->host = xstrdup(name);
	s->repository = xstrdup(repository);
	s->plain = oci_net_insecure(&a->k->net, name);
	s->base = xasprintf("%s://%s/v2/%s", s->plain ? "http" : "https", connect, repository);
	return oci_cred_find(a->configs, a->n_configs, name, repository, &s->cred, err);
}

static int prepare(struct label_call *k, const struct oci_conf *conf, const char *reference,
	const struct secret *const *configs, size_t n_configs, struct err *err)
{
	struct adding adding = {.k = k, .configs = configs, .n_configs = n_configs};
	struct oci_ref ref;

	if (oci_ref_parse(reference, &ref, err) != 0)
		return -1;
	k->net.insecure = xcalloc(conf->n_insecure + 1, sizeof(char *));
	for (size_t i = 0; i < conf->n_insecure; i++)
		k->net.insecure[k->net.n_insecure++] = xstrdup(conf->insecure[i]);
	memcpy(k->next.digest, ref.digest, sizeof(k->next.digest));
	k->next.size = OCI_MANIFEST_MAX;
	k->net.tls = conf->tls ? httpc_tls_ref(conf->tls)
			       : httpc_tls_new(NULL, 0, NULL, 0, NULL, 0, NULL, err);
	if (!k->net.tls)
		return -1;
	k->sources = xcalloc(conf->n_mirrors + 1, sizeof(*k->sources));
	return oci_each_source(conf, reference, add_source, &adding, err);
}

struct op *oci_label_get(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const char *reference, const char *label,
	const struct secret *const *docker_configs, size_t n_configs, oci_label_fn done, void *arg)
{
	struct label_call *k = xcalloc(1, sizeof(*k));

	k->loop = l;
	k->net.http = http;
	k->os = xstrdup(conf->platform_os);
	k->arch = xstrdup(conf->platform_arch);
	k->label = xstrdup(label);
	k->done = done;
	k->arg = arg;
	timer_init(&k->deadline, l, on_deadline, k);
	op_begin(&k->op, scope, call_abort);
	if (prepare(k, conf, reference, docker_configs, n_configs, &k->err) != 0) {
		defer_call(&k->fail, l, on_fail, k);
		return &k->op;
	}
	timer_set(&k->deadline, QUESTION_MS);
	fetch_next(k);
	return &k->op;
}
