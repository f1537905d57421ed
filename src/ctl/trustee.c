/* SPDX-License-Identifier: MIT */
/*
 * The controller of Trustee servers: their list, the steps of one server, and the memory.
 *
 * The list is updated from spec and memory when one of them changes. A server with the same name
 * but another description is another server. A server stays in the list while its Deployment exists
 * or it may still hold keys.
 *
 * A step changes the transport of its server and never the list, except to drop a server that is
 * no longer wanted.
 *
 * The memory is ConfigMap tec-trustees: servers that the cluster object does not own. A server is
 * added before it gets a transport, and removed after it left the list. Nothing else writes the
 * ConfigMap; tecctl reads it. Its text is an array of {"address","adminSecret","caSecret","primary",
 * "httpsOnly","cluster","replaced","away"}, sorted by address, so that equal memories have equal text.
 * cluster is the uid in the server's sentinel, replaced that of spec.trustee.takeOver once it was
 * replaced.
 */
#include "config.h"

#include "tec/ctl/trustee.h"

#include <string.h>

#include "ctl_internal.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kbs/push.h"
#include "tec/model/content.h"
#include "tec/model/lost.h"
#include "tec/model/pod.h"
#include "tec/render/trustee.h"
#include "tec/caches/record.h"

#define SERVERS_MAX   24
#define KBS_SERVICE   "kbs-service"
#define ADMIN_SERVICE "kbs-admin" /* leads to the admin API if the guard is enabled */
#define AUTH_SECRET   "trustee-auth"
#define MEMBER_MAX    65536 /* bytes of base64 in one member of a Secret */
#define LEAVING_MS    2000  /* polling interval until an unwanted server holds none of our keys */
#define RELEASE_MS    60000 /* longest wait until such a server does not name our cluster */

/* How many values are sent at a time, unless spec.trustee.window is set. */
#define WINDOW_OURS   32 /* LocalFs, or the store of this process */
#define WINDOW_OTHERS 1

/* The description of a server, from spec or memory. Strings are owned. */
struct trustee_desc {
	char *address;      /* host[:port]; NULL: the primary of a cluster without an address */
	char *ca_secret;    /* NULL: plain http */
	char *admin_secret; /* has member private.key */
	bool primary, owned;
	bool https_only; /* spec.trustee.plaintext is Refuse, or may have been */
	bool volumes;    /* nothing is sent to it: ctl/cluster mounts files and confirms */
};

/* A Secret's member, as of one resourceVersion. */
struct trustee_bytes {
	char *rv;                         /* owned; NULL: never read */
	struct secret *value;             /* owned; NULL: the Secret has no such member */
	char content[SHA256_HEX_LEN + 1]; /* hash of all members (model/content.h) */
};

struct trustee_server {
	struct trustee_server *next;
	const struct ctl_trustee *of; /* borrowed: whose list it is in */
	struct trustee_desc desc;
	char *cluster_uid;  /* owned; "": unknown, as no cluster wants it */
	char *earlier_uid;  /* owned: of the cluster before it in this namespace; NULL: none */
	char *replaced_uid; /* owned: spec.trustee.takeOver, once it is replaced; NULL: it is not */
	bool wanted;        /* the served cluster names it */
	uint64_t released_ms; /* boot clock: since when it is to be released; 0: it is not */
	struct trustee_bytes admin, ca;
	bool admin_ours;       /* of the own Trustee: this operator announced the admin key */
	struct kbs_push *push; /* owned; NULL with delivery by volumes */
	bool is_target;        /* registered in kbs_sync without a push */
	char *connected_as;    /* owned: inputs of the transport; NULL: no transport */
	char *reason;          /* owned: why it is not connected */
	char name[];           /* of the target in kbs_sync */
};

struct ctl_trustee {
	const struct ctl_env *env; /* borrowed */
	struct ctl_runner *runner; /* owned */
	struct ctl_acts acts;
	bool on;
	bool has_policies;              /* kbs_sync has the policies */
	unsigned window;                /* spec.trustee.window; 0: the default of each server */
	char *take_over;                /* owned: spec.trustee.takeOver; NULL: unset */
	bool memory_known;              /* read, or found missing, since the start */
	bool adopt;                     /* memory was just read: add its servers to the list */
	struct trustee_server *servers; /* owned list */
	struct defer look;
	char *memory_rv,
		*memory; /* owned: tec-trustees as last read or written; memory NULL: none */
};

/* Where a server is reached. Strings are owned. */
struct trustee_place {
	char *url, *connect_to; /* connect_to NULL: by the URL */
	const char *service;    /* static: the Service of the address; NULL: none of ours */
};

/* The look of a step. */
struct trustee_look {
	struct ctl_trustee_view v;
	struct trustee_place place;
	char *as; /* owned: the inputs of a transport as text, compared with connected_as */
	struct strbuf why;
};

/* ---- which servers spec names, and where each is reached */

static void desc_fini(struct trustee_desc *d)
{
	free(d->address);
	free(d->ca_secret);
	free(d->admin_secret);
	memset(d, 0, sizeof(*d));
}

/* https_only is not compared: it changes whether a server is used, not which one it is. */
static bool desc_same(const struct trustee_desc *a, const struct trustee_desc *b)
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
static bool desc_of_cluster(
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

bool ctl_trustee_is_named(const struct model_cluster *c, const char *name)
{
	for (unsigned i = 0; c && i < c->n_servers; i++)
		if (str_eq(c->server_addr[i], name))
			return true;
	return c && str_eq(ctl_primary_target(c), name);
}

/* The entry of a server in the annotation, to be released; NULL: an administrator did not declare it
 * lost. */
static struct json_object *lost_entry(const struct model_cluster *c, const char *name)
{
	cleanup_json struct json_object *list = model_lost_list(c ? c->lost_servers : NULL);

	return json_object_get(model_lost_find(list, name));
}

/* Tell whether nothing waits for a server any more. One that spec names is in use again. */
static bool is_given_up(const struct model_cluster *c, const char *name)
{
	cleanup_json struct json_object *entry = lost_entry(c, name);

	return entry && !ctl_trustee_is_named(c, name);
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

/* The server is this process, which needs no address, certificate or Secret. */
static bool desc_is_here(const struct ctl_env *env, const struct trustee_desc *d)
{
	return d->primary && !d->volumes && env->caches->kbs_in_process;
}

/* The store is of this operator alone: it deploys the server, or is the server. */
static bool desc_is_ours(const struct ctl_env *env, const struct trustee_desc *d)
{
	return d->owned || desc_is_here(env, d);
}

/* The connection inside this process needs no encryption. */
static bool desc_is_plain(const struct ctl_env *env, const struct trustee_desc *d)
{
	if (desc_is_here(env, d))
		return false;
	if (d->primary && env->kbs_url)
		return !str_starts(env->kbs_url, "https://");
	return !d->ca_secret;
}

/* The name in the URL must be one that the certificate has. */
static char *host_of_primary(const struct ctl_env *env, const struct trustee_desc *d)
{
	if (d->address)
		return xstrndup(d->address, (size_t)host_len(d->address));
	return xasprintf(KBS_SERVICE ".%s.svc", env->ns);
}

/* Set the place of the cluster's own Trustee. Without a spec its Service is that of the guard, if
 * it exists: then kbs-service does not expose the admin API. With the guard, the URL keeps the name of the
 * certificate while the connection goes to the other Service; by name if its address is unknown,
 * so that revocation need not wait. */
static bool place_owned(const struct ctl_env *env, const struct model_cluster *c,
	const struct trustee_desc *d, const char *scheme, struct trustee_place *out)
{
	cleanup_free char *host = host_of_primary(env, d);
	const struct k8s_cache *services = env->caches->services;
	bool guarded = !k8s_cache_filled(services) || k8s_cache_find(services, ADMIN_SERVICE);
	const struct model_plain *service;
	int port;

	if (c && c->deploy == MODEL_DEPLOY_MANAGED)
		guarded = render_trustee_has_admin_service(c);
	port = guarded ? RENDER_TRUSTEE_ADMIN_PORT : c ? c->trustee_port : 8080;
	out->service = guarded ? ADMIN_SERVICE : KBS_SERVICE;
	out->url = xasprintf("%s://%s:%d", scheme, host, port);
	service = (const struct model_plain *)k8s_cache_find(services, out->service);
	if (!k8s_cache_filled(services) || (service && service->obj.unreadable)) {
		if (guarded)
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
static bool desc_place(const struct ctl_env *env, const struct model_cluster *c,
	const struct trustee_desc *d, struct trustee_place *out)
{
	const char *scheme = desc_is_plain(env, d) ? "http" : "https", *rest;
	cleanup_free char *host = NULL;
	int n;

	*out = (struct trustee_place){.url = NULL};
	if (desc_is_here(env, d))
		return true;
	if (d->primary && env->kbs_url) {
		rest = strstr(env->kbs_url, "://") + 3;
		n = (int)strcspn(rest, "/");
		host = host_of_primary(env, d);
		out->connect_to = rest[host_len(rest)] == ':'
					  ? xstrndup(rest, (size_t)n)
					  : xasprintf("%.*s:%s", n, rest,
						    str_eq(scheme, "https") ? "443" : "80");
		out->url = xasprintf("%s://%s%s", scheme, host, strrchr(out->connect_to, ':'));
		return true;
	}
	if (d->owned)
		return place_owned(env, c, d, scheme, out);
	out->url = xasprintf("%s://%s", scheme, d->address);
	return d->address != NULL;
}

/* ---- memory */

/* The text may come from another client: every member may be missing or of another type. The caller
 * frees the uids; that of the cluster is "" in memories of older versions. */
static bool memory_desc(const char *json, unsigned i, struct trustee_desc *out, char **cluster_uid,
	char **replaced_uid)
{
	cleanup_json struct json_object *a = NULL;
	struct err ignored = ERR_INIT;
	struct json_object *o;

	memset(out, 0, sizeof(*out));
	if (json)
		a = json_parse(json, strlen(json), &json_limits_object, &ignored);
	if (!a || !json_object_is_type(a, json_type_array) || i >= json_object_array_length(a) ||
		i >= SERVERS_MAX)
		return false;
	o = json_object_array_get_idx(a, i);
	out->address = xstrdup(json_get_str(o, "address"));
	out->ca_secret = xstrdup(json_get_str(o, "caSecret"));
	out->admin_secret = xstrdup(json_get_str(o, "adminSecret"));
	out->primary = json_get_bool(o, "primary", false);
	out->https_only = json_get_bool(o, "httpsOnly", false);
	*cluster_uid = xstrdup(json_get_str(o, "cluster") ? json_get_str(o, "cluster") : "");
	*replaced_uid = xstrdup(json_get_str(o, "replaced"));
	return true;
}

/* Tell whether a server that is no longer named in spec does not answer: tecctl asks. */
static bool is_away(const struct ctl_trustee *c, const struct trustee_server *s)
{
	struct kbs_target_status t;

	if (ctl_trustee_is_named(caches_cluster(c->env->caches), s->name))
		return false;
	for (unsigned i = 0; kbs_sync_target(c->env->caches->sync, i, &t); i++)
		if (str_eq(t.name, s->name))
			return t.state == KBS_TARGET_UNREACHABLE;
	return false;
}

static int by_address(const void *a, const void *b)
{
	const struct trustee_server *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Servers of the cluster object are left out: the object itself remembers them. */
static char *text_of(const struct ctl_trustee *c)
{
	const struct trustee_server *v[SERVERS_MAX];
	cleanup_json struct json_object *a = json_arr();
	size_t n = 0;

	for (const struct trustee_server *s = c->servers; s && n < SERVERS_MAX; s = s->next)
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
		json_add_str(o, "cluster", v[i]->cluster_uid);
		json_add_str(o, "replaced", v[i]->replaced_uid);
		if (is_away(c, v[i]))
			json_add_bool(o, MODEL_SERVER_AWAY, true);
		json_push(a, o);
	}
	return json_text(a);
}

/* By resourceVersion: a change by another client means reading again. */
static bool memory_is_read(const struct ctl_trustee *c)
{
	const struct kobj *o = k8s_cache_find(c->env->caches->configmaps, CACHES_TRUSTEE_MEMORY);

	/* An unreadable ConfigMap is overwritten, provided that its content was known. */
	if (!k8s_cache_filled(c->env->caches->configmaps) || (o && o->unreadable))
		return c->memory_known;
	return o ? str_eq(o->rv, c->memory_rv) : !c->memory_rv;
}

/* Compares texts: what memory should say, and what it said when last read or written. */
static void memory_look(const struct ctl_trustee *c, struct ctl_trustee_memory_view *v)
{
	const struct kobj *o = k8s_cache_find(c->env->caches->configmaps, CACHES_TRUSTEE_MEMORY);
	cleanup_free char *text = text_of(c);

	v->read = memory_is_read(c);
	v->as_wanted = (!o || !o->unreadable) && str_eq(text, c->memory ? c->memory : "[]");
	v->empty = str_eq(text, "[]");
	v->there = o != NULL;
}

static void memory_set(struct ctl_trustee *c, const char *rv, const char *text)
{
	free(c->memory_rv);
	free(c->memory);
	c->memory_rv = xstrdup(rv);
	c->memory = xstrdup(text);
}

/* ---- the list */

static struct trustee_server *list_find(const struct ctl_trustee *c, const char *name)
{
	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (str_eq(s->name, name))
			return s;
	return NULL;
}

static void bytes_fini(struct trustee_bytes *b)
{
	free(b->rv);
	secret_free(b->value);
	memset(b, 0, sizeof(*b));
}

/* Drop the connection and everything read for it; the server stays in the list. */
static void server_close(const struct ctl_trustee *c, struct trustee_server *s)
{
	kbs_push_free(steal_ptr(&s->push));
	if (s->is_target)
		kbs_sync_target_remove(c->env->caches->sync, s->name);
	s->is_target = false;
	bytes_fini(&s->admin);
	bytes_fini(&s->ca);
	free(steal_ptr(&s->connected_as));
	free(steal_ptr(&s->reason));
	s->released_ms = 0;
}

/* Values declared for it are no longer sent; other servers are not affected. */
static void list_drop(struct ctl_trustee *c, struct trustee_server *s)
{
	struct trustee_server **pp = &c->servers;

	while (*pp != s)
		pp = &(*pp)->next;
	*pp = s->next;
	log_info(NULL, "Trustee is no longer administered", "trustee=%s", log_esc(s->name));
	server_close(c, s);
	desc_fini(&s->desc);
	free(s->cluster_uid);
	free(s->earlier_uid);
	free(s->replaced_uid);
	free(s);
}

/* Name every recorded revocation to a push, which repeats them to a server that may be a
 * restored backup. */
static bool each_revoked(
	void *trustee, void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *fn_arg)
{
	const struct ctl_trustee *c = trustee;

	if (!k8s_cache_filled(c->env->caches->configmaps))
		return false;
	caches_record_each(c->env->caches, caches_record_oldest_s(c->env->caches), fn, fn_arg);
	return true;
}

/* Whether the server's sentinel may be replaced although it names another cluster. A Frozen cluster
 * hands over: spec may name its peer since an earlier promotion in the other direction. A
 * Retired one would revoke the other's keys. */
static bool may_replace(void *server, const char *cluster_uid)
{
	const struct trustee_server *s = server;
	const struct caches *caches = s->of->env->caches;
	const struct model_cluster *served = caches_cluster(caches);
	enum model_authority authority = caches_cluster_authority(caches);

	if (!*s->cluster_uid || str_eq(cluster_uid, s->earlier_uid))
		return true;
	return served && s->wanted && str_eq(cluster_uid, served->take_over) &&
	       !str_eq(cluster_uid, s->replaced_uid) && authority != MODEL_AUTHORITY_FROZEN &&
	       authority != MODEL_AUTHORITY_RETIRED;
}

/* If that cluster comes back, somebody wanted it there: the later one stays. */
static void did_replace(void *server, const char *cluster_uid)
{
	struct trustee_server *s = server;
	const struct model_cluster *served = caches_cluster(s->of->env->caches);

	log_info(NULL, "Trustee is taken over", "trustee=%s cluster=%s", log_esc(s->name),
		log_esc(cluster_uid));
	if (!served || !str_eq(cluster_uid, served->take_over))
		return;
	free(s->replaced_uid);
	s->replaced_uid = xstrdup(cluster_uid);
	ctl_runner_wake(s->of->runner, CACHES_TRUSTEE_MEMORY);
}

/* Another owner's Trustee may use LocalJson storage, which silently loses or corrupts keys that are
 * written at the same time. */
static unsigned window_of(const struct ctl_trustee *c, const struct trustee_server *s)
{
	if (c->window)
		return c->window;
	return desc_is_ours(c->env, &s->desc) ? WINDOW_OURS : WINDOW_OTHERS;
}

/* With delivery by volumes there is no push; ctl/cluster confirms to kbs_sync instead. */
static void server_open(struct ctl_trustee *c, struct trustee_server *s)
{
	cleanup_json struct json_object *lost = lost_entry(caches_cluster(c->env->caches), s->name);
	const struct kbs_push_conf conf = {.target = s->name,
		.cluster_uid = s->cluster_uid,
		.read_back = true,
		.window = window_of(c, s),
		.repeat_revoked_ms = c->env->repeat_revoked_ms,
		/* The store of this process is that of the API: both are restored together. */
		.each_revoked = desc_is_here(c->env, &s->desc) ? NULL : each_revoked,
		.revoked_arg = c,
		.revoke_first = lost != NULL,
		.may_replace = desc_is_ours(c->env, &s->desc) ? NULL : may_replace,
		.did_replace = did_replace,
		.replace_arg = s};

	s->is_target = s->desc.volumes;
	if (s->is_target)
		kbs_sync_target_add(c->env->caches->sync, s->name);
	else
		s->push = kbs_push_new(c->env->loop, c->env->caches->sync, &conf, NULL);
	log_info(NULL, "Trustee is administered", "trustee=%s", log_esc(s->name));
}

/* Warn that a removed server keeps its keys. An administrator decided it, so nothing blocks it;
 * this is the only warning. */
static void tell_left(const struct ctl_trustee *c, const char *name)
{
	const struct model_cluster *served = caches_cluster(c->env->caches);

	if (!served || (caches_trustee_is_followed(c->env->caches) &&
			       str_eq(name, ctl_primary_target(served))))
		return;
	log_warn(NULL, "Trustee was removed from spec and may still hold keys", "trustee=%s",
		log_esc(name));
	k8s_events_post(c->env->events, &kobj_cluster, &served->obj, K8S_EVENT_WARNING,
		"TrusteeLeft", "Administer",
		"Trustee at %s was removed from spec and is no longer administered. It keeps all its keys, and keys that are "
		"revoked from now on stay valid there. Delete its data or stop it; or add it to spec again, with its "
		"adminSecret, before anything is deleted.",
		name);
}

/* Set the cluster of a server. The one before it was of this operator, too, so its sentinel may be
 * replaced. */
static void server_name(struct trustee_server *s, const char *cluster_uid)
{
	if (str_eq(s->cluster_uid, cluster_uid))
		return;
	free(s->earlier_uid);
	s->earlier_uid = s->cluster_uid;
	s->cluster_uid = xstrdup(cluster_uid);
}

/* Record who ended the wait, and what follows from it. */
static void tell_lost(const struct ctl_trustee *c, const char *name)
{
	const struct model_cluster *served = caches_cluster(c->env->caches);
	cleanup_json struct json_object *entry = lost_entry(served, name);
	const char *by = json_get_str(entry, "by");

	log_warn(NULL, "Trustee was declared lost, nothing waits for it", "trustee=%s",
		log_esc(name));
	k8s_events_post(c->env->events, &kobj_cluster, &served->obj, K8S_EVENT_WARNING,
		"TrusteeLost", "Administer",
		"Trustee at %s was declared lost (%s, by %.100s), and nothing waits for it any more. Its store may still hold keys: destroy it. "
		"Revocations are recorded; if the server is added to spec again, they are carried out there before any key is delivered.",
		name, json_get_str(entry, "at"), by ? by : "unknown");
}

/* Add or update a server. wanted false: no cluster wants it, it is only kept. */
static void server_want(struct ctl_trustee *c, const char *name, struct trustee_desc *take_desc,
	const char *cluster_uid, bool wanted)
{
	struct trustee_server *s = list_find(c, name);
	unsigned n = 0;

	for (const struct trustee_server *x = c->servers; x; x = x->next)
		n++;
	if (!s && n >= SERVERS_MAX) {
		log_warn(NULL, "too many Trustee servers are administered", "trustee=%s",
			log_esc(name));
		desc_fini(take_desc);
		return;
	}
	if (!s) {
		s = xcalloc(1, sizeof(*s) + strlen(name) + 1);
		memcpy(s->name, name, strlen(name));
		s->of = c;
		s->next = c->servers;
		c->servers = s;
	} else if (!desc_same(&s->desc, take_desc) || !str_eq(s->cluster_uid, cluster_uid) ||
		   s->released_ms) {
		/* Another server, or one of another cluster, with the same name: earlier
		 * confirmations no longer count. */
		if (!s->desc.owned && take_desc->owned)
			tell_left(c, name);
		server_close(c, s);
	}
	desc_fini(&s->desc);
	s->desc = *take_desc;
	s->wanted = wanted;
	server_name(s, cluster_uid);
	if (!s->push && !s->is_target)
		server_open(c, s);
}

/* Tell whether a server that no cluster names any more may still hold our keys. */
static bool may_hold(const struct ctl_trustee *c, const struct trustee_server *s)
{
	const struct ctl_env *env = c->env;
	size_t declared, confirmed, revoking;

	for (const struct trustee_server *x = c->servers; x && s->desc.owned; x = x->next)
		if (x->wanted && x->desc.owned)
			return false; /* the same server under a new address */
	if (s->desc.owned)
		return caches_trustee_is_left(env->caches);
	if (caches_cluster_unknown(env->caches))
		return true;
	if (caches_cluster(env->caches)) /* an administrator removed it from spec */
		return false;
	kbs_sync_counts(env->caches->sync, &declared, &confirmed, &revoking);
	return declared || revoking;
}

/* Update the settings of all servers: the policies, the window, and which other cluster is replaced.
 * Without a cluster, the last policies stay; after a start, the stricter ones are assumed. */
static void want_settings(struct ctl_trustee *c, const struct model_cluster *served)
{
	static const struct model_cluster none = {.isolation = MODEL_ISOLATION_PER_MACHINE};
	const struct model_cluster *of = served ? served : &none;
	bool replaces;

	if (served || !c->has_policies)
		kbs_sync_policies(c->env->caches->sync, render_trustee_attestation_policy(of),
			render_trustee_resource_policy(of),
			of->isolation == MODEL_ISOLATION_SHARED);
	c->has_policies = true;
	if (!served || served->extended_lost)
		return;
	replaces = !str_eq(c->take_over, served->take_over);
	c->window = (unsigned)served->window;
	free(c->take_over);
	c->take_over = xstrdup(served->take_over);
	for (struct trustee_server *s = c->servers; s; s = s->next) {
		if (!s->push)
			continue;
		kbs_push_set_window(s->push, window_of(c, s));
		if (!str_eq(s->replaced_uid, served->take_over))
			free(steal_ptr(&s->replaced_uid));
		if (replaces) /* asks may_replace() again */
			kbs_push_probe(s->push);
	}
}

/* Servers that spec does not name keep wanted == false, and are dropped once they hold nothing. Number
 * 0, the primary, may be left to the cluster that is followed. */
static void want_by_spec(struct ctl_trustee *c, const struct model_cluster *served)
{
	struct trustee_desc d;
	const char *name;

	for (unsigned i = caches_trustee_is_followed(c->env->caches);
		desc_of_cluster(served, i, &d, &name); i++)
		server_want(c, name, &d, served->obj.uid, true);
}

/* Take the servers of an earlier process into the list: those that no cluster names, and those that
 * spec may have lost. Of the others, only the uids are needed. */
static void adopt(struct ctl_trustee *c, const struct model_cluster *served, bool lost)
{
	struct trustee_desc d;
	char *uid, *replaced;

	for (unsigned i = 0; memory_desc(c->memory, i, &d, &uid, &replaced); i++) {
		struct trustee_server *s = list_find(c, d.address);

		if (s && !s->earlier_uid && !str_eq(uid, s->cluster_uid))
			s->earlier_uid = steal_ptr(&uid);
		if (!s && d.address && d.admin_secret && (!served || lost) &&
			!is_given_up(served, d.address))
			server_want(
				c, d.address, &d, served ? served->obj.uid : uid, served != NULL);
		else
			desc_fini(&d);
		if (s && !s->replaced_uid)
			s->replaced_uid = steal_ptr(&replaced);
		free(uid);
		free(replaced);
	}
}

/* Update the list from spec and memory. A spec that lost fields may have lost servers, or which
 * one is primary: then the list stays until an administrator restores or confirms it. */
static void list_update(void *trustee)
{
	struct ctl_trustee *c = trustee;
	const struct model_cluster *served = caches_cluster(c->env->caches);
	bool lost = served && served->extended_lost, has_primary = false;
	struct trustee_desc d;

	if (!c->on || caches_cluster_unknown(c->env->caches)) /* the list stays */
		return;
	want_settings(c, served);
	for (struct trustee_server *s = c->servers; s; s = s->next)
		s->wanted = s->wanted && lost && !is_given_up(served, s->name);
	if (served && !lost)
		want_by_spec(c, served);
	/* Servers from memory are added only after a start: later the list is more recent. */
	if (c->adopt)
		adopt(c, served, lost);
	c->adopt = false;
	for (struct trustee_server *s = c->servers; s; s = s->next)
		has_primary |= s->desc.primary;
	if (lost && !has_primary && memory_is_read(c))
		want_by_spec(c, served);
	if (!served && !c->servers && caches_trustee_is_left(c->env->caches)) {
		/* Its cluster may have been deleted before this process started. */
		d = (struct trustee_desc){.primary = true, .owned = true};
		server_want(c, "kbs-service", &d, "", false);
	}
	for (struct trustee_server *s = c->servers; s; s = s->next)
		ctl_runner_wake(c->runner, s->name);
	ctl_runner_wake(c->runner, CACHES_TRUSTEE_MEMORY);
}

/* Deferred to the next turn, because many objects change together. */
static void list_update_soon(struct ctl_trustee *c)
{
	if (c->on)
		defer_call(&c->look, c->env->loop, list_update, c);
}

/* ---- memory: decide and act */

/* Take the answer of a read or write. The list is updated afterwards, because memory may name
 * further servers: after a read, those found are added to it (c->adopt), in case spec no longer
 * names them. */
static void on_memory(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_trustee *c = a->table->self;
	bool gone = err->kind == ERR_NOT_FOUND;

	if (err_is_set(err) && !gone) {
		log_err(LOG_WARN, NULL, "ConfigMap tec-trustees cannot be read or written", err);
	} else if (gone || a->doing == CTL_TRUSTEE_DELETE_MEMORY) {
		memory_set(c, NULL, NULL);
		k8s_cache_remove(c->env->caches->configmaps, CACHES_TRUSTEE_MEMORY, NULL);
	} else {
		memory_set(c, json_get_str(r->object, "metadata/resourceVersion"),
			json_get_str(r->object, "data/" MODEL_SERVERS_FILE));
		c->adopt = a->doing == CTL_TRUSTEE_READ_MEMORY;
		ctl_take_answer(c->env->caches->configmaps, r->object, true);
	}
	c->memory_known |= gone || !err_is_set(err);
	ctl_act_end(a, gone ? &(const struct err)ERR_INIT : err, NULL);
	list_update_soon(c);
}

/* READ, APPLY or DELETE of the ConfigMap. The delete carries the UID that the cache shows. */
static struct op *memory_start(struct ctl_trustee *c, enum ctl_trustee_do d, struct ctl_act *a)
{
	const struct ctl_env *env = c->env;
	cleanup_json struct json_object *o = NULL;
	cleanup_free char *text = NULL;

	if (d == CTL_TRUSTEE_READ_MEMORY)
		return k8s_call_get(env->api, &c->acts.ops, &kobj_configmap, env->ns,
			CACHES_TRUSTEE_MEMORY, on_memory, a);
	if (d == CTL_TRUSTEE_DELETE_MEMORY)
		return k8s_call_delete(env->api, &c->acts.ops, &kobj_configmap, env->ns,
			CACHES_TRUSTEE_MEMORY,
			k8s_cache_find(env->caches->configmaps, CACHES_TRUSTEE_MEMORY)->uid, NULL,
			on_memory, a);
	text = text_of(c);
	o = ctl_configmap_new(CACHES_TRUSTEE_MEMORY, env->ns);
	json_add(o, "data", json_add_str(json_obj(), MODEL_SERVERS_FILE, text));
	return k8s_call_apply(env->api, &c->acts.ops, &kobj_configmap, env->ns, o, on_memory, a);
}

/* An empty memory is deleted instead of written. */
enum ctl_trustee_do ctl_trustee_decide_memory(const struct ctl_trustee_memory_view *v)
{
	if (!v->read)
		return CTL_TRUSTEE_READ_MEMORY;
	if (v->as_wanted)
		return CTL_TRUSTEE_NOTHING;
	if (!v->empty)
		return CTL_TRUSTEE_APPLY_MEMORY;
	return v->there ? CTL_TRUSTEE_DELETE_MEMORY : CTL_TRUSTEE_NOTHING;
}

/* Reading comes first, so that servers of an earlier run are not overwritten. */
static struct queue_next step_memory(struct ctl_trustee *c)
{
	const struct kobj *o = k8s_cache_find(c->env->caches->configmaps, CACHES_TRUSTEE_MEMORY);
	struct ctl_trustee_memory_view v;
	enum ctl_trustee_do d;
	struct ctl_act *a;

	memory_look(c, &v);
	d = ctl_trustee_decide_memory(&v);
	if (d == CTL_TRUSTEE_NOTHING || c->adopt) { /* the update of the list wakes this key */
		ctl_act_drop(ctl_act_find(&c->acts, CACHES_TRUSTEE_MEMORY));
		return ctl_settled();
	}
	a = ctl_act_get(&c->acts, CACHES_TRUSTEE_MEMORY);
	if (!ctl_act_begin(a, (int)d, ctl_version(o)))
		return ctl_retry(0, "no-effect");
	op_hold(&a->op, memory_start(c, d, a));
	return ctl_in_flight();
}

/* ---- one server: look and decide */

/* Choose the next act. A server that cannot be used is disconnected once, with the reason. */
enum ctl_trustee_do ctl_trustee_decide(const struct ctl_trustee_view *v)
{
	bool whole = !v->refused && v->admin_there && (!v->needs_ca || v->ca_there) && v->address;

	if (!v->known)
		return CTL_TRUSTEE_NOTHING;
	if (!v->wanted)
		return CTL_TRUSTEE_DROP;
	if (v->volumes)
		return CTL_TRUSTEE_NOTHING; /* ctl/cluster mounts its files */
	if (!whole)
		return v->reported ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_DISCONNECT;
	if (!v->recorded)
		return CTL_TRUSTEE_NOTHING; /* memory is written first, and wakes this key */
	if (!v->admin_read)
		return CTL_TRUSTEE_READ_ADMIN;
	if (v->needs_ca && !v->ca_read)
		return CTL_TRUSTEE_READ_CA;
	if (!v->usable)
		return v->reported ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_DISCONNECT;
	return v->connected ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_CONNECT;
}

/* A Secret that is being deleted counts as missing: its content may be gone at the next read. */
static const struct kobj *secret_there(const struct ctl_env *env, const char *name)
{
	const struct kobj *o = name ? k8s_cache_find(env->caches->secrets, name) : NULL;

	return o && !o->deleting ? o : NULL;
}

/* Tell whether spec.tls.caSHA256 forbids the CA of this server. */
static bool is_ca_refused(const struct ctl_env *env, const struct trustee_server *s)
{
	const struct model_cluster *served = caches_cluster(env->caches);
	const struct model_secret *ca =
		(const struct model_secret *)secret_there(env, s->desc.ca_secret);

	return served && ca && !desc_is_here(env, &s->desc) &&
	       model_cluster_unlisted_ca(served->ca_sha256, ca->ca_sha256);
}

/* Says which setting forbids the connection, and the two ways out: a certificate, or Allow. */
static void say_refused(
	const struct ctl_env *env, const struct trustee_server *s, struct strbuf *out)
{
	const struct model_cluster *served = caches_cluster(env->caches);

	if (is_ca_refused(env, s)) {
		strbuf_addf(out,
			"spec.tls.caSHA256 does not list a certificate in ca.crt of Secret %s: nothing is sent.",
			s->desc.ca_secret);
		return;
	}
	if (served && served->extended_lost)
		strbuf_adds(out, "spec lost fields, perhaps spec.trustee.plaintext");
	else
		strbuf_adds(out, "spec.trustee.plaintext is Refuse");
	if (s->desc.primary && env->kbs_url)
		strbuf_adds(out,
			" and --kbs-url is an http:// URL: nothing is sent. Start the operator with an https:// URL");
	else if (s->desc.primary)
		strbuf_adds(out,
			" and spec.trusteeSecret is not set: nothing is sent. Name a Secret with tls.crt, tls.key and ca.crt there");
	else
		strbuf_adds(out,
			" and its entry in spec.trusteeServers has no caSecret: nothing is sent. Name a Secret with ca.crt there");
	strbuf_adds(out, ", or set spec.trustee.plaintext to Allow.");
}

/* Explain why the server is not connected, in the order of decide; "" if there is no reason. */
static void say_why(
	const struct ctl_env *env, const struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_trustee_view *v = &l->v;
	struct strbuf *out = &l->why;

	if (desc_is_here(env, &s->desc))
		return;
	if (v->refused)
		say_refused(env, s, out);
	else if (!v->admin_there)
		strbuf_addf(out, "Secret %s does not exist yet.", s->desc.admin_secret);
	else if (v->needs_ca && !v->ca_there)
		strbuf_addf(out, "Secret %s does not exist yet.", s->desc.ca_secret);
	else if (!v->address && !l->place.service)
		strbuf_adds(out, "spec.publicTrusteeAddr is not set.");
	else if (!v->address)
		strbuf_addf(out, "Service %s has no cluster IP yet.", l->place.service);
	else if (!s->admin_ours)
		strbuf_addf(out,
			"Secret %s has content that this operator did not announce, so nothing is sent with it.",
			s->desc.admin_secret);
	else if (!s->admin.value)
		strbuf_addf(out, "Secret %s has no usable private.key.", s->desc.admin_secret);
	else if (v->needs_ca && !s->ca.value)
		strbuf_addf(out, "Secret %s has no usable ca.crt.", s->desc.ca_secret);
}

/* Fill the view. `as` lists every input of a transport by version, so that a change of any of
 * them leads to a new connection. */
static void view_look(
	const struct ctl_trustee *c, const struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_env *env = c->env;
	const struct model_cluster *served = caches_cluster(env->caches);
	const struct kobj *admin = secret_there(env, s->desc.admin_secret),
			  *ca = secret_there(env, s->desc.ca_secret);
	bool here = desc_is_here(env, &s->desc);
	struct ctl_trustee_view *v = &l->v;
	struct trustee_place *place = &l->place;
	struct ctl_trustee_memory_view memory;

	v->known = true;
	v->wanted = s->wanted || may_hold(c, s);
	memory_look(c, &memory);
	v->recorded = s->desc.owned || (memory.read && memory.as_wanted);
	v->volumes = s->desc.volumes;
	v->refused = (s->desc.https_only && desc_is_plain(env, &s->desc)) || is_ca_refused(env, s);
	v->admin_there = here || admin;
	v->admin_read = here || (admin && str_eq(s->admin.rv, admin->rv));
	v->needs_ca = !here && s->desc.ca_secret;
	v->ca_there = ca != NULL;
	v->ca_read = ca && str_eq(s->ca.rv, ca->rv);
	v->address = desc_place(env, served, &s->desc, place);
	v->usable = here || (s->admin_ours && s->admin.value && (!v->needs_ca || s->ca.value));
	l->as = xasprintf("%s %s %s %s", place->url ? place->url : "",
		place->connect_to ? place->connect_to : "", s->admin.rv ? s->admin.rv : "",
		s->ca.rv ? s->ca.rv : "");
	v->connected = str_eq(s->connected_as, l->as);
	say_why(env, s, l);
	v->reported = str_eq(s->reason, strbuf_str(&l->why)) && !s->connected_as;
}

/* ---- one server: acts */

/* Close the connection; the reason appears in condition TrusteeSynced. */
static void tell(struct trustee_server *s, const char *why)
{
	free(steal_ptr(&s->connected_as));
	free(s->reason);
	s->reason = xstrdup(why);
	kbs_push_set_transport(s->push, NULL, why);
}

/* No request is made here: the push talks to the server and reports how that ends. */
static void connect_to(struct ctl_trustee *c, struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_kbs_place place = {.url = l->place.url,
		.connect_to = l->place.connect_to,
		.ca = s->ca.value,
		.admin = s->admin.value,
		.in_process = desc_is_here(c->env, &s->desc)};
	struct err err = ERR_INIT;
	struct kbs_transport *t = c->env->kbs_connect(c->env->kbs_connect_arg, &place, &err);

	if (t) {
		free(steal_ptr(&s->reason));
		kbs_push_set_transport(s->push, t, NULL);
	} else {
		log_err(LOG_WARN, NULL, "Trustee cannot be administered", &err);
		tell(s, err.text);
	}
	/* Also after a failure: it is not retried until an input changes. */
	free(s->connected_as);
	s->connected_as = steal_ptr(&l->as);
}

/* Both Secrets of a server end here. Only the member that is needed is kept; all members of the
 * answer are wiped. */
static void on_read(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_trustee *c = a->table->self;
	struct trustee_server *s = list_find(c, a->name);
	bool admin = a->doing == CTL_TRUSTEE_READ_ADMIN;

	if (s && !err_is_set(err)) {
		struct trustee_bytes *b = admin ? &s->admin : &s->ca;
		const char *b64 =
			json_get_str(r->object, admin ? "data/private.key" : "data/ca.crt");

		bytes_fini(b);
		b->rv = xstrdup(json_get_str(r->object, "metadata/resourceVersion"));
		(void)model_content_sha256(r->object, b->content);
		if (b64 && strlen(b64) <= MEMBER_MAX)
			b->value = secret_from_b64(b64, strlen(b64));
		json_wipe(json_get_obj(r->object, "data"));
	}
	/* NOT_FOUND: deleted in the meantime, which the cache will show. */
	ctl_act_end(a, err->kind == ERR_NOT_FOUND ? &(const struct err)ERR_INIT : err, NULL);
}

/* Once everything is taken back from a server that no cluster wants, its sentinel must no longer name
 * ours: another cluster may be waiting. A server that is gone is not waited for. */
static bool is_releasing(const struct ctl_trustee *c, struct trustee_server *s)
{
	size_t declared, confirmed, revoking;
	uint64_t now = clock_boot_ms();

	if (s->wanted || !s->push || desc_is_ours(c->env, &s->desc))
		return false;
	kbs_sync_counts(c->env->caches->sync, &declared, &confirmed, &revoking);
	if (declared || revoking)
		return false;
	if (!s->released_ms) {
		s->released_ms = now;
		kbs_push_release(s->push);
	}
	return !kbs_push_is_released(s->push) && now - s->released_ms < RELEASE_MS;
}

/* Most acts change memory only and complete at once; reading a Secret is the only request. */
static struct queue_next step_server(struct ctl_trustee *c, struct trustee_server *s)
{
	const struct model_cluster *served = caches_cluster(c->env->caches);
	struct trustee_look l = {.why = STRBUF_INIT};
	struct queue_next next = ctl_settled();
	enum ctl_trustee_do d;
	struct ctl_act *a;

	/* The admin key of the cluster's own Trustee must be the one that this operator announced.
	 * The last verdict stays when the cluster object is deleted before its Trustee. */
	if (!s->desc.owned)
		s->admin_ours = true;
	else if (served && s->wanted)
		s->admin_ours =
			model_cluster_announces(served, s->desc.admin_secret, s->admin.content);
	view_look(c, s, &l);
	l.v.wanted = l.v.wanted || is_releasing(c, s);
	d = ctl_trustee_decide(&l.v);
	switch (d) {
	case CTL_TRUSTEE_READ_ADMIN:
	case CTL_TRUSTEE_READ_CA:
		a = ctl_act_get(&c->acts, s->name);
		next = ctl_act_begin(a, (int)d, 0) ? ctl_in_flight() : ctl_retry(0, "no-effect");
		if (next.verdict != QUEUE_IN_FLIGHT)
			break;
		op_hold(&a->op, k8s_call_get(c->env->api, &c->acts.ops, &kobj_secret, c->env->ns,
					d == CTL_TRUSTEE_READ_ADMIN ? s->desc.admin_secret
								    : s->desc.ca_secret,
					on_read, a));
		break;
	case CTL_TRUSTEE_CONNECT:
		connect_to(c, s, &l);
		break;
	case CTL_TRUSTEE_DISCONNECT:
		tell(s, strbuf_str(&l.why));
		break;
	case CTL_TRUSTEE_DROP:
		if (is_given_up(served, s->name))
			tell_lost(c, s->name);
		else if (!s->desc.owned && !s->released_ms)
			tell_left(c, s->name);
		ctl_runner_forget(c->runner, s->name);
		list_drop(c, s);
		ctl_runner_wake(c->runner, CACHES_TRUSTEE_MEMORY);
		break;
	default:
		break;
	}
	free(l.place.url);
	free(l.place.connect_to);
	free(l.as);
	strbuf_fini(&l.why);
	if (d != CTL_TRUSTEE_DROP && next.verdict == QUEUE_SETTLED && !s->wanted)
		/* poll until it holds none of our keys */
		next = ctl_retry(LEAVING_MS, "leaving");
	return next;
}

/* Keys are names of servers, and the name of the memory. */
static struct queue_next step(void *self, const struct kobj_key *key)
{
	struct ctl_trustee *c = self;
	struct trustee_server *s = list_find(c, key->name);
	struct queue_next next = ctl_settled();

	if (ctl_act_busy(ctl_act_find(&c->acts, key->name), &next))
		return next;
	if (str_eq(key->name, CACHES_TRUSTEE_MEMORY))
		return step_memory(c);
	if (s)
		next = step_server(c, s);
	if (next.verdict == QUEUE_SETTLED)
		ctl_act_drop(ctl_act_find(&c->acts, key->name));
	return next;
}

/* ---- which servers a change concerns */

/* Many objects change at once after a start; the update is deferred to the next turn and runs
 * once. */
static void map_any(void *self, const struct kobj *was, const struct kobj *now)
{
	list_update_soon(self);
}

/* The state of some server changed, which memory may have to say. */
static void on_sync(void *self, enum kbs_kind kind, const char *name)
{
	struct ctl_trustee *c = self;

	if (c->on && !name)
		ctl_runner_wake(c->runner, CACHES_TRUSTEE_MEMORY);
}

/* Wake the servers that are reached with this Secret. */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trustee *c = self;
	const char *name = was ? was->name : now->name;

	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (str_eq(s->desc.admin_secret, name) || str_eq(s->desc.ca_secret, name))
			ctl_runner_wake(c->runner, s->name);
}

static void map_configmap(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trustee *c = self;

	if (str_eq(was ? was->name : now->name, CACHES_TRUSTEE_MEMORY))
		ctl_runner_wake(c->runner, CACHES_TRUSTEE_MEMORY);
}

static void map_service(void *self, const struct kobj *was, const struct kobj *now)
{
	const char *name = was ? was->name : now->name;

	if (str_eq(name, KBS_SERVICE) || str_eq(name, ADMIN_SERVICE))
		list_update_soon(self);
}

/* The own Trustee may hold keys as long as its Deployment exists. */
static void map_deployment(void *self, const struct kobj *was, const struct kobj *now)
{
	if (!was || !now)
		list_update_soon(self);
}

/* Ask Trustee again what it holds: a new Pod or container serves now, and may have lost
 * everything. */
static void map_pod(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trustee *c = self;
	const struct model_pod *a = (const struct model_pod *)was,
			       *b = (const struct model_pod *)now;

	if (!b || !str_eq(b->app, "kbs") || !b->ready)
		return;
	if (a && str_eq(was->uid, now->uid) && a->ready && a->restarts == b->restarts)
		return;
	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (s->desc.primary && s->desc.owned && s->push)
			kbs_push_probe(s->push);
}

/* ---- life */

struct ctl_trustee *ctl_trustee_new(const struct ctl_env *env)
{
	struct ctl_trustee *c = xcalloc(1, sizeof(*c));

	c->env = env;
	c->runner = ctl_acts_init(&c->acts, env, "trustee", step, c);
	ctl_runner_watch(c->runner, env->caches->clusters, map_any);
	ctl_runner_watch(c->runner, env->caches->configmaps, map_configmap);
	ctl_runner_watch(c->runner, env->caches->services, map_service);
	ctl_runner_watch(c->runner, env->caches->deployments, map_deployment);
	ctl_runner_watch(c->runner, env->caches->pods, map_pod);
	ctl_runner_watch(c->runner, env->caches->secrets, map_secret);
	kbs_sync_listen(env->caches->sync, on_sync, c);
	return c;
}

void ctl_trustee_on(struct ctl_trustee *c)
{
	if (c->on)
		return;
	c->on = true;
	list_update(c); /* before any controller needs to know what Trustee may hold */
	ctl_runner_on(c->runner);
	list_update(c); /* again, now that the runner accepts keys */
}

/* Every push is freed, which drops its transport and the keys in it. */
void ctl_trustee_off(struct ctl_trustee *c)
{
	c->on = c->has_policies = false;
	free(steal_ptr(&c->take_over));
	ctl_runner_off(c->runner);
	defer_cancel(&c->look);
	ctl_acts_clear(&c->acts);
	while (c->servers)
		list_drop(c, c->servers);
	memory_set(c, NULL, NULL);
	c->memory_known = false;
	/* Keys leave memory with the leadership; what Trustee holds is unknown from now on. */
	kbs_sync_reset(c->env->caches->sync);
}

/* Ends waiting for confirmations; see kbs/push.h. */
void ctl_trustee_finish(struct ctl_trustee *c)
{
	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (s->push)
			kbs_push_finish(s->push);
}

bool ctl_trustee_is_finished(const struct ctl_trustee *c)
{
	for (const struct trustee_server *s = c->servers; s; s = s->next)
		if (s->push && !kbs_push_is_finished(s->push))
			return false;
	return true;
}

void ctl_trustee_free(struct ctl_trustee *c)
{
	if (!c)
		return;
	ctl_trustee_off(c);
	ctl_runner_free(c->runner);
	free(c);
}

/* ---- sentences for conditions; kbs provides only names, states and errors */

/* Tell whether a target may never answer again: spec no longer names it. */
static bool has_left(const struct kbs_target_status *t, const struct model_cluster *served)
{
	return served && t->state == KBS_TARGET_UNREACHABLE &&
	       !ctl_trustee_is_named(served, t->name);
}

static void add_way_out(struct strbuf *out, const char *name)
{
	strbuf_addf(out,
		" does not answer and is no longer in spec. If it is lost for good: tecctl server lost %s",
		name);
}

/* With every server in sync, something is still in flight, otherwise nobody would ask. */
const char *ctl_trustee_why(
	const struct kbs_sync *sync, const struct model_cluster *served, struct strbuf *out)
{
	struct kbs_target_status t;
	unsigned i;

	strbuf_reset(out);
	for (i = 0; kbs_sync_target(sync, i, &t); i++) {
		if (t.state == KBS_TARGET_IN_SYNC && !t.error)
			continue;
		/* A text (delivery by volumes) is complete; an error is a fragment that gets its
		 * context here. */
		strbuf_addf(out, "%sTrustee at %s: ", out->len ? " " : "", t.name);
		if (t.text)
			strbuf_adds(out, t.text);
		else if (t.error && t.state == KBS_TARGET_REFUSED)
			strbuf_addf(out, "it rejects updates: %s.", t.error);
		else if (t.error && t.state == KBS_TARGET_CONFLICT)
			strbuf_addf(out,
				"%s, so nothing is sent. Use another Trustee for one of the two clusters; or, to replace the "
				"other cluster there, set spec.trustee.takeOver to its UID.",
				t.error);
		else if (t.error)
			strbuf_addf(out, "%s.", t.error);
		else if (t.state == KBS_TARGET_POPULATING)
			strbuf_adds(out, "policies, values and keys are being sent.");
		else if (t.state == KBS_TARGET_UNREACHABLE)
			strbuf_adds(out, "it cannot be reached yet.");
		else
			strbuf_adds(out, "it has not answered yet.");
		/* The primary's address cannot be changed, so there is no such way out for it. */
		if (has_left(&t, served)) {
			strbuf_adds(out, " It");
			add_way_out(out, t.name);
		} else if (served && t.state == KBS_TARGET_UNREACHABLE && t.error &&
			   !str_eq(t.name, ctl_primary_target(served))) {
			strbuf_adds(out,
				" If it is lost for good, remove it from spec.trusteeServers.");
		}
	}
	if (i == 0)
		strbuf_adds(out, "No Trustee is administered.");
	else if (!out->len)
		strbuf_adds(out, "Changes are being sent to Trustee.");
	return strbuf_str(out);
}

/* A server that is no longer in spec is told apart, since it may never answer again. Names may be on
 * the way although no server is known to differ: hence the general sentence. */
const char *ctl_trustee_lacking(const struct kbs_sync *sync, const struct model_cluster *served,
	enum kbs_kind kind, const char *name, struct strbuf *out)
{
	cleanup_strbuf struct strbuf away = STRBUF_INIT;
	struct kbs_target_status t;
	unsigned n = 0;

	strbuf_reset(out);
	for (unsigned i = 0; kbs_sync_target(sync, i, &t); i++) {
		if (!kbs_sync_target_differs(sync, i, kind, name))
			continue;
		if (has_left(&t, served)) {
			strbuf_addf(&away, "%sTrustee at %s", away.len ? " " : "", t.name);
			add_way_out(&away, t.name);
			continue;
		}
		strbuf_addf(out, n++ ? ", %s" : "Trustee at %s", t.name);
	}
	if (n || !away.len)
		strbuf_adds(out, n ? " has not confirmed it yet."
				   : "Trustee has not confirmed all of it yet.");
	if (away.len)
		strbuf_addf(out, "%s%s", out->len ? " " : "", strbuf_str(&away));
	return strbuf_str(out);
}
