/* SPDX-License-Identifier: MIT */
/* The hosts that may have an image, their credentials, and which of them is the current one. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "oci_internal.h"

#define HUB_HOST "registry-1.docker.io" /* serves the images of docker.io */

/* The host may have a port but no scheme: that depends on the list of insecure hosts. */
int oci_mirror_parse(const char *text, struct oci_mirror *out, struct err *err)
{
	const char *eq = strchr(text, '='), *slash = eq ? strchr(eq, '/') : NULL;
	size_t len = eq ? strcspn(eq + 1, "/") : 0;

	memset(out, 0, sizeof(*out));
	if (!eq || !oci_host_valid(text, (size_t)(eq - text)) || !oci_host_valid(eq + 1, len))
		return err_set(
			err, ERR_INVALID, "\"%s\" is not registry=host[:port][/prefix]", text);
	memcpy(out->registry, text, (size_t)(eq - text));
	memcpy(out->host, eq + 1, len);
	if (!slash)
		return 0;
	len = strlen(slash + 1);
	if (!oci_repository_valid(slash + 1, len))
		return err_set(err, ERR_INVALID,
			"\"%s\": the part after the host is not a repository path", text);
	memcpy(out->prefix, slash + 1, len);
	return 0;
}

/*
 * Mirrors are parsed here, each time: a malformed one fails the call, not the start of the program.
 */
int oci_each_source(const struct oci_conf *conf, const struct oci_ref *ref, oci_source_fn fn,
	void *arg, struct err *err)
{
	for (size_t i = 0; i < conf->n_mirrors; i++) {
		cleanup_free char *repository = NULL;
		struct oci_mirror m;

		if (oci_mirror_parse(conf->mirrors[i], &m, err) != 0)
			return err_wrap(err, "registry mirror");
		if (strcasecmp(m.registry, ref->registry) != 0)
			continue;
		repository = xasprintf("%s%s%s", m.prefix, *m.prefix ? "/" : "", ref->repository);
		if (fn(arg, m.host, m.host, repository, err) != 0)
			return -1;
	}
	return fn(arg, ref->registry, str_eq(ref->registry, "docker.io") ? HUB_HOST : ref->registry,
		ref->repository, err);
}

struct adding {
	struct oci_asking *to;
	const struct secret *const *configs;
	size_t n_configs;
};

/* Add one host. Its scheme is http only if it is listed as insecure. */
static int add_source(
	void *arg, const char *name, const char *connect, const char *repository, struct err *err)
{
	const struct adding *a = arg;
	struct oci_source *s = &a->to->sources[a->to->n_sources++];
	const char *const *insecure = (const char *const *)a->to->net.insecure;
	size_t n = a->to->net.n_insecure;

	s->host = xstrdup(name);
	s->repository = xstrdup(repository);
	s->base = xasprintf("%s://%s/v2/%s",
		oci_host_listed(insecure, n, name, strlen(name)) ? "http" : "https", connect,
		repository);
	s->place = (struct oci_place){.base = s->base, .insecure = insecure, .n_insecure = n};
	return oci_cred_find(a->configs, a->n_configs, name, repository, &s->cred, err);
}

/* Without conf->tls the system's CAs are trusted. */
int oci_asking_init(struct oci_asking *a, struct httpc *http, const struct oci_conf *conf,
	const struct oci_ref *ref, const struct secret *const *configs, size_t n_configs,
	struct err *err)
{
	struct adding adding = {.to = a, .configs = configs, .n_configs = n_configs};

	memset(a, 0, sizeof(*a));
	a->net.http = http;
	a->net.insecure = xcalloc(conf->n_insecure + 1, sizeof(char *));
	for (size_t i = 0; i < conf->n_insecure; i++)
		a->net.insecure[a->net.n_insecure++] = xstrdup(conf->insecure[i]);
	a->net.tls = conf->tls ? httpc_tls_ref(conf->tls)
			       : httpc_tls_new(NULL, 0, NULL, 0, NULL, 0, NULL, err);
	if (!a->net.tls)
		return -1;
	a->sources = xcalloc(conf->n_mirrors + 1, sizeof(*a->sources));
	return oci_each_source(conf, ref, add_source, &adding, err);
}

void oci_asking_fini(struct oci_asking *a)
{
	for (size_t i = 0; i < a->n_sources; i++) {
		struct oci_source *s = &a->sources[i];

		free(s->host);
		free(s->base);
		free(s->repository);
		oci_cred_free(s->cred);
		secret_free(s->token);
	}
	free(a->sources);
	for (size_t i = 0; i < a->net.n_insecure; i++)
		free(a->net.insecure[i]);
	free(a->net.insecure);
	httpc_tls_unref(a->net.tls);
}

/* The state of earlier hosts is kept for oci_asking_name_tried(). */
bool oci_asking_next(struct oci_asking *a, const struct err *err)
{
	if (a->at + 1 >= a->n_sources)
		return false;
	log_err(LOG_WARN, NULL, "registry mirror failed, trying the next host", err);
	a->at++;
	return true;
}

/* The error is that of the last host only, so the text names all of them. */
void oci_asking_name_tried(const struct oci_asking *a, struct err *err)
{
	cleanup_strbuf struct strbuf hosts = STRBUF_INIT;

	if (a->n_sources == 1)
		return;
	for (size_t i = 0; i < a->n_sources; i++)
		strbuf_addf(&hosts, "%s%s", i ? ", " : "", a->sources[i].host);
	err_wrap(err, "tried %.120s", strbuf_str(&hosts));
}
