/* SPDX-License-Identifier: MIT */
/* Derives from spec which servers there are, and how each is reached. Pure. */
#include "config.h"

#include "trustee_internal.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/render/trustee.h"

#define KBS_SERVICE   "kbs-service"
#define ADMIN_SERVICE "kbs-admin" /* leads to the admin API if the guard is enabled */
#define AUTH_SECRET   "trustee-auth"

void trustee_desc_fini(struct trustee_desc *d)
{
	free(d->address);
	free(d->ca_secret);
	free(d->admin_secret);
	memset(d, 0, sizeof(*d));
}

/* https_only is not compared: it changes whether a server is used, not which one it is. */
bool trustee_desc_same(const struct trustee_desc *a, const struct trustee_desc *b)
{
	return str_eq(a->address, b->address) && str_eq(a->ca_secret, b->ca_secret) &&
	       str_eq(a->admin_secret, b->admin_secret) && a->primary == b->primary &&
	       a->owned == b->owned && a->volumes == b->volumes;
}

/* Without a public address, the name of the Service stands for the primary. */
const char *ctl_primary_target(const struct model_cluster *c)
{
	return c->public_trustee_addr ? c->public_trustee_addr : KBS_SERVICE;
}

/* Number 0 is the primary. An entry with the primary's address is the same server and is
 * skipped. */
bool trustee_desc_of_cluster(
	const struct model_cluster *c, unsigned i, struct trustee_desc *out, const char **name)
{
	unsigned n = 0;

	memset(out, 0, sizeof(*out));
	/* A spec that lost fields may have lost this one, too. */
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

/* ---- places */

/* Return the length of the host in "host[:port]", including the brackets of an IPv6 address. */
static int host_len(const char *address)
{
	const char *end = address[0] == '[' ? strchr(address, ']') : NULL;

	if (end)
		return (int)(end + 1 - address);
	end = strchr(address, ':');
	return (int)(end ? end - address : (ptrdiff_t)strlen(address));
}

bool trustee_desc_is_here(const struct ctl_env *env, const struct trustee_desc *d)
{
	return d->primary && !d->volumes && env->kbs_in_process;
}

/* The connection inside this process needs no encryption. */
bool trustee_desc_is_plain(const struct ctl_env *env, const struct trustee_desc *d)
{
	if (trustee_desc_is_here(env, d))
		return false;
	if (d->primary && env->kbs_url)
		return !str_starts(env->kbs_url, "https://");
	return !d->ca_secret;
}

/* The name in the URL must be one that the certificate has. */
static char *host_of_primary(const struct ctl_env *env, const struct trustee_server *s)
{
	if (s->desc.address)
		return xstrndup(s->desc.address, (size_t)host_len(s->desc.address));
	return xasprintf(KBS_SERVICE ".%s.svc", env->ns);
}

/* Return the Service that leads to the admin API. Without a spec it is that of the guard, if it
 * exists: then kbs-service does not expose the admin API. */
static const char *admin_service(const struct ctl_env *env, const struct model_cluster *c)
{
	const struct k8s_cache *services = env->state->services;
	bool guarded = !k8s_cache_filled(services) || k8s_cache_find(services, ADMIN_SERVICE);

	if (c && c->deploy == MODEL_DEPLOY_MANAGED)
		guarded = render_trustee_has_admin_service(c);
	return guarded ? ADMIN_SERVICE : KBS_SERVICE;
}

/* Set the place of the cluster's own Trustee. With the guard, the URL keeps the name of the
 * certificate while the connection goes to the other Service; by name if its address is unknown,
 * so that revocation need not wait. */
static bool place_owned(const struct ctl_env *env, const struct model_cluster *c,
	const struct trustee_server *s, const char *scheme, struct trustee_place *out)
{
	cleanup_free char *host = host_of_primary(env, s);
	const struct model_plain *service;
	int port = c ? c->trustee_port : 8080;

	out->service = admin_service(env, c);
	if (str_eq(out->service, ADMIN_SERVICE))
		port = RENDER_TRUSTEE_ADMIN_PORT;
	out->url = xasprintf("%s://%s:%d", scheme, host, port);
	service = (const struct model_plain *)k8s_cache_find(env->state->services, out->service);
	if (!k8s_cache_filled(env->state->services) || (service && service->obj.unreadable)) {
		if (str_eq(out->service, ADMIN_SERVICE))
			out->connect_to = xasprintf("%s.%s.svc:%d", out->service, env->ns, port);
		return true;
	}
	if (!service || !service->cluster_ip || str_eq(service->cluster_ip, "None"))
		return false;
	out->connect_to = xasprintf(
		strchr(service->cluster_ip, ':') ? "[%s]:%d" : "%s:%d", service->cluster_ip, port);
	return true;
}

/* With --kbs-url the primary is reached elsewhere, but its certificate still has the public
 * name. */
bool trustee_desc_place(const struct ctl_env *env, const struct model_cluster *c,
	const struct trustee_server *s, struct trustee_place *out)
{
	const char *scheme = trustee_desc_is_plain(env, &s->desc) ? "http" : "https", *rest;
	cleanup_free char *host = NULL;
	int n;

	*out = (struct trustee_place){.url = NULL};
	if (trustee_desc_is_here(env, &s->desc))
		return true;
	if (s->desc.primary && env->kbs_url) {
		rest = strstr(env->kbs_url, "://") + 3;
		n = (int)strcspn(rest, "/");
		host = host_of_primary(env, s);
		out->connect_to = rest[host_len(rest)] == ':'
					  ? xstrndup(rest, (size_t)n)
					  : xasprintf("%.*s:%s", n, rest,
						    str_eq(scheme, "https") ? "443" : "80");
		out->url = xasprintf("%s://%s%s", scheme, host, strrchr(out->connect_to, ':'));
		return true;
	}
	if (s->desc.owned)
		return place_owned(env, c, s, scheme, out);
	out->url = xasprintf("%s://%s", scheme, s->desc.address);
	return s->desc.address != NULL;
}

bool trustee_desc_is_service(const char *name)
{
	return str_eq(name, KBS_SERVICE) || str_eq(name, ADMIN_SERVICE);
}
