/* SPDX-License-Identifier: MIT */
/*
 * Which servers there are, by the cluster's spec and by memory, and where each is. Pure: the
 * memory is an array of {"address","adminSecret","caSecret","primary","httpsOnly"}, sorted by
 * address, so that equal memories are equal texts.
 */
#include "config.h"

#include "trustee_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define KBS_SERVICE "kbs-service"
#define AUTH_SECRET "trustee-auth"

void trustee_desc_fini(struct trustee_desc *d)
{
	free(d->address);
	free(d->ca_secret);
	free(d->admin_secret);
	memset(d, 0, sizeof(*d));
}

bool trustee_desc_same(const struct trustee_desc *a, const struct trustee_desc *b)
{
	return str_eq(a->address, b->address) && str_eq(a->ca_secret, b->ca_secret) &&
	       str_eq(a->admin_secret, b->admin_secret) && a->primary == b->primary &&
	       a->owned == b->owned && a->volumes == b->volumes;
}

const char *ctl_primary_target(const struct model_cluster *c)
{
	return c->public_trustee_addr ? c->public_trustee_addr : KBS_SERVICE;
}

bool trustee_desc_of_cluster(
	const struct model_cluster *c, unsigned i, struct trustee_desc *out, const char **name)
{
	unsigned n = 0;

	memset(out, 0, sizeof(*out));
	/* A spec that lost something may have lost this. */
	out->https_only = c->plaintext == MODEL_PLAINTEXT_REFUSE || c->extended_lost;
	if (i == 0) {
		out->primary = true;
		out->owned = c->deploy == MODEL_DEPLOY_MANAGED;
		out->volumes = out->owned && c->delivery == MODEL_DELIVERY_VOLUMES;
		out->address = xstrdup(c->public_trustee_addr);
		out->ca_secret = xstrdup(c->trustee_secret);
		out->admin_secret = xstrdup(AUTH_SECRET);
		*name = ctl_primary_target(c);
		return true;
	}
	for (unsigned s = 0; s < c->n_servers; s++) {
		if (!c->server_admin[s] || str_eq(c->server_addr[s], c->public_trustee_addr) ||
			++n != i)
			continue;
		out->address = xstrdup(c->server_addr[s]);
		out->ca_secret = xstrdup(c->server_ca[s]);
		out->admin_secret = xstrdup(c->server_admin[s]);
		*name = c->server_addr[s];
		return true;
	}
	return false;
}

/* ---- memory */

bool trustee_desc_of_memory(const char *json, unsigned i, struct trustee_desc *out)
{
	cleanup_json struct json_object *a = NULL;
	struct err ignored = ERR_INIT;
	struct json_object *o;

	memset(out, 0, sizeof(*out));
	if (json)
		a = json_parse(json, strlen(json), &json_limits_object, &ignored);
	if (!a || !json_object_is_type(a, json_type_array) || i >= json_object_array_length(a) ||
		i >= TRUSTEE_SERVERS_MAX)
		return false;
	o = json_object_array_get_idx(a, i);
	out->address = xstrdup(json_get_str(o, "address"));
	out->ca_secret = xstrdup(json_get_str(o, "caSecret"));
	out->admin_secret = xstrdup(json_get_str(o, "adminSecret"));
	out->primary = json_get_bool(o, "primary", false);
	out->https_only = json_get_bool(o, "httpsOnly", false);
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct trustee_server *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

char *trustee_memory_text(const struct trustee_server *servers)
{
	const struct trustee_server *v[TRUSTEE_SERVERS_MAX];
	cleanup_json struct json_object *a = json_arr();
	size_t n = 0;

	for (const struct trustee_server *s = servers; s && n < TRUSTEE_SERVERS_MAX; s = s->next)
		if (!s->desc.owned && s->desc.address)
			v[n++] = s;
	if (n)
		qsort(v, n, sizeof(*v), by_address);
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_obj();

		json_add_str(o, "address", v[i]->desc.address);
		json_add_str(o, "adminSecret", v[i]->desc.admin_secret);
		json_add_str(o, "caSecret", v[i]->desc.ca_secret);
		json_add_bool(o, "primary", v[i]->desc.primary);
		if (v[i]->desc.https_only)
			json_add_bool(o, "httpsOnly", true);
		json_push(a, o);
	}
	return json_text(a);
}

/* ---- places */

/* Length of the host in "host[:port]", brackets included. */
static int host_len(const char *address)
{
	const char *end = address[0] == '[' ? strchr(address, ']') : NULL;

	if (end)
		return (int)(end + 1 - address);
	end = strchr(address, ':');
	return (int)(end ? end - address : (ptrdiff_t)strlen(address));
}

/* "scheme://" and what follows of a --kbs-url. */
static const char *after_scheme(const char *url, const char **scheme)
{
	bool tls = str_starts(url, "https://");

	*scheme = tls ? "https" : "http";
	return url + strlen(*scheme) + 3;
}

bool trustee_is_plain(const struct ctl_env *env, const struct trustee_desc *d)
{
	if (d->primary && env->kbs_url)
		return !str_starts(env->kbs_url, "https://");
	return !d->ca_secret;
}

static char *host_of_primary(const struct ctl_env *env, const struct trustee_server *s)
{
	if (s->desc.address)
		return xstrndup(s->desc.address, (size_t)host_len(s->desc.address));
	return xasprintf(KBS_SERVICE ".%s.svc", env->ns);
}

bool trustee_place(const struct ctl_env *env, const struct model_cluster *c,
	const struct trustee_server *s, char **url, char **connect_to)
{
	const char *scheme = s->desc.ca_secret ? "https" : "http", *rest;
	cleanup_free char *host = NULL;
	const struct model_plain *service;
	int port = c ? c->trustee_port : 8080, n;

	*url = *connect_to = NULL;
	if (s->desc.primary && env->kbs_url) {
		rest = after_scheme(env->kbs_url, &scheme);
		n = host_len(rest);
		host = host_of_primary(env, s);
		*connect_to = rest[n] == ':' ? xstrndup(rest, strcspn(rest, "/"))
					     : xasprintf("%.*s:%s", (int)strcspn(rest, "/"), rest,
						       str_eq(scheme, "https") ? "443" : "80");
		*url = xasprintf("%s://%s%s", scheme, host, strrchr(*connect_to, ':'));
		return true;
	}
	if (!s->desc.owned) {
		*url = xasprintf("%s://%s", scheme, s->desc.address);
		return s->desc.address != NULL;
	}
	host = host_of_primary(env, s);
	*url = xasprintf("%s://%s:%d", scheme, host, port);
	service = (const struct model_plain *)k8s_cache_find(env->state->services, KBS_SERVICE);
	if (!k8s_cache_filled(env->state->services) || (service && service->obj.unreadable))
		return true; /* by its name: what is to be revoked does not wait */
	if (!service || !service->cluster_ip || str_eq(service->cluster_ip, "None"))
		return false;
	*connect_to = xasprintf(
		strchr(service->cluster_ip, ':') ? "[%s]:%d" : "%s:%d", service->cluster_ip, port);
	return true;
}
