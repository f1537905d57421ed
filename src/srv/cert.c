/* SPDX-License-Identifier: MIT */
/*
 * One k8s_watch with field selector metadata.name=NAME per wanted Secret, each with its own cache
 * of at most that object. The extracted object carries ca.crt and a ready TLS context; tls.key
 * exists outside OpenSSL only while the context is being created.
 */
#include "config.h"

#include "tec/srv/cert.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/secret.h"
#include "tec/k8s/cache.h"
#include "tec/k8s/watch.h"
#include "tec/kobj/key.h"
#include "tec/pki/cert.h"

struct secret_obj {
	struct kobj obj;
	const char *ca;        /* PEM; NULL: absent or unusable */
	const char *ca_sha256; /* of its certificates; "": unusable; NULL: absent */
	struct tls_ctx *tls;
};

struct srv_cert {
	struct srv_certs *certs;
	char *name;
	struct k8s_cache *cache;
	struct k8s_watch *watch;
	struct tls_ctx *good; /* the last usable context; stays when the Secret becomes unusable */
	/* The last usable ca.crt, kept for as long as the certificate that it must verify. */
	char *ca, *ca_sha256;
};

struct srv_certs {
	struct loop *loop;
	struct k8s_transport *api; /* borrowed */
	char *ns;
	void (*changed)(void *arg);
	void *arg;
	char *ca_sha256; /* owned: certificates that a ca.crt may contain; NULL: any */
	struct srv_cert *slot[SRV_CERTS_MAX];
};

static void secret_obj_fini(struct kobj *o)
{
	tls_ctx_unref(((struct secret_obj *)o)->tls);
}

/* Decode data[member]. The text in json-c's memory is wiped, as it may be a private key. *there is
 * set if the member exists. */
static struct secret *take_data(struct json_object *o, const char *member, bool *there)
{
	struct json_object *data = json_get_obj(o, "data"), *v = NULL;
	struct secret *s;

	if (!data || !json_object_object_get_ex(data, member, &v))
		return NULL;
	*there = true;
	if (!json_object_is_type(v, json_type_string))
		return NULL;
	s = secret_from_b64(json_object_get_string(v), (size_t)json_object_get_string_len(v));
	json_wipe(v);
	return s;
}

static int undecodable(struct err *err)
{
	return err_set(err, ERR_INVALID, "missing, empty, not base64, or longer than 128 KiB");
}

/* Read ca.crt into the object: usable as PEM and hashes, unusable as empty hashes, which is
 * logged. */
static void read_ca(struct kobj_pack *p, struct json_object *o, const struct log_ctx *lc)
{
	bool there = false;
	cleanup_secret struct secret *ca = take_data(o, "ca.crt", &there);
	cleanup_strbuf struct strbuf text = STRBUF_INIT, hashes = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (!there)
		return;
	/* By length, not as a string: a NUL byte would hide what follows it. */
	if (!ca)
		undecodable(&err);
	else if (pki_cert_read_bundle(
			 (const char *)secret_peek(ca), secret_len(ca), &text, &hashes, &err) == 0)
		kobj_pack_str(p, offsetof(struct secret_obj, ca), strbuf_str(&text));
	kobj_pack_str(p, offsetof(struct secret_obj, ca_sha256),
		err_is_set(&err) ? "" : strbuf_str(&hashes));
	if (err_is_set(&err))
		log_err(LOG_WARN, lc, "ca.crt is unusable, keeping the last good one", &err);
}

/* Read certificate and key. NULL: absent (a Secret may hold a CA alone), or unusable, which is
 * logged. */
static struct tls_ctx *read_identity(struct json_object *o, const struct log_ctx *lc)
{
	bool there = false;
	cleanup_secret struct secret *crt = take_data(o, "tls.crt", &there),
				     *key = take_data(o, "tls.key", &there);
	struct tls_ctx *tls = NULL;
	struct err err = ERR_INIT;

	if (crt && key)
		tls = tls_ctx_new(
			secret_peek(crt), secret_len(crt), secret_peek(key), secret_len(key), &err);
	else if (there)
		undecodable(&err);
	if (err_is_set(&err))
		log_err(LOG_WARN, lc, "certificate is unusable, keeping the last good one", &err);
	return tls;
}

/* An unusable member does not fail the object: the cache must show that the Secret exists. */
static struct kobj *extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct secret_obj fixed = {.obj.fini = secret_obj_fini};
	struct log_ctx lc = {.kind = "Secret", .name = json_get_str(o, "metadata/name")};

	if (kobj_meta_read(&p, o, &fixed.obj, err) < 0)
		return NULL;
	read_ca(&p, o, &lc);
	fixed.tls = read_identity(o, &lc);
	return kobj_pack_finish(&p, &fixed, sizeof(fixed));
}

static void forget_ca(struct srv_cert *c)
{
	free(steal_ptr(&c->ca));
	free(steal_ptr(&c->ca_sha256));
}

/* Whether spec.tls.caSHA256 allows all certificates of this ca.crt; without that field any is
 * allowed. */
static bool is_listed(const struct srv_cert *c, const char *ca_sha256)
{
	return !model_cluster_unlisted_ca(c->certs->ca_sha256, ca_sha256);
}

/* Put the usable parts of the Secret into use; unusable ones leave the last good parts. o NULL:
 * the Secret is gone, and so are they. */
static void take(struct srv_cert *c, const struct secret_obj *o)
{
	struct log_ctx lc = {.kind = "Secret", .name = c->name};

	if (o && !is_listed(c, o->ca_sha256)) {
		log_warn(&lc, "TLS Secret refused, its ca.crt is not in spec.tls.caSHA256",
			"cert=%.64s", o->ca_sha256);
		return;
	}
	if (!o || !str_eq(o->ca_sha256, "")) {
		forget_ca(c);
		c->ca = o ? xstrdup(o->ca) : NULL;
		c->ca_sha256 = o ? xstrdup(o->ca_sha256) : NULL;
	}
	if (o && o->tls) {
		if (c->good)
			log_info(&lc, "certificate replaced", NULL);
		tls_ctx_unref(c->good);
		c->good = tls_ctx_ref(o->tls);
	} else if (!o && c->good) {
		log_warn(&lc, "certificate removed with its Secret", NULL);
		tls_ctx_unref(steal_ptr(&c->good));
	}
}

/* The cache's listener: called for each change of the one Secret. */
static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct srv_cert *c = arg;

	if (now && now->unreadable) /* the watch reports it; the certificate stays in use */
		return;
	take(c, (const struct secret_obj *)now);
	c->certs->changed(c->certs->arg);
}

/* Apply a changed list of allowed certificates: stop using what is no longer allowed, start using
 * what now is. */
static void judge_again(struct srv_cert *c)
{
	const struct kobj *now = k8s_cache_find(c->cache, c->name);

	if (!is_listed(c, c->ca_sha256)) {
		forget_ca(c);
		tls_ctx_unref(steal_ptr(&c->good));
	}
	if (now && !now->unreadable)
		take(c, (const struct secret_obj *)now);
}

/* The watch has filled the cache or lost access; whether the listener may serve can depend on
 * it. */
static void on_state(void *arg)
{
	struct srv_cert *c = arg;

	c->certs->changed(c->certs->arg);
}

static const struct k8s_cache_type cache_type = {extract, sizeof(struct secret_obj), NULL, 0};

/* Start to watch one Secret. The watch calls back later, never from here. */
static struct srv_cert *cert_new(struct srv_certs *certs, const char *name)
{
	struct srv_cert *c = xcalloc(1, sizeof(*c));
	cleanup_free char *selector = xasprintf("metadata.name=%s", name);
	struct k8s_watch_conf conf = {
		.gvk = &kobj_secret,
		.ns = certs->ns,
		.field_selector = selector,
		.secret = true,
	};

	c->certs = certs;
	c->name = xstrdup(name);
	c->cache = k8s_cache_new(&cache_type);
	k8s_cache_listen(c->cache, on_change, c);
	c->watch = k8s_watch_new(certs->loop, certs->api, c->cache, &conf);
	k8s_watch_on_state(c->watch, on_state, c);
	k8s_watch_start(c->watch);
	return c;
}

static void cert_free(struct srv_cert *c)
{
	k8s_watch_free(c->watch);
	k8s_cache_free(c->cache);
	tls_ctx_unref(c->good);
	forget_ca(c);
	free(c->name);
	free(c);
}

struct srv_certs *srv_certs_new(struct loop *l, struct k8s_transport *t, const char *ns,
	void (*changed)(void *arg), void *arg)
{
	struct srv_certs *c = xcalloc(1, sizeof(*c));

	c->loop = l;
	c->api = t;
	c->ns = xstrdup(ns);
	c->changed = changed;
	c->arg = arg;
	return c;
}

void srv_certs_free(struct srv_certs *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < SRV_CERTS_MAX; i++)
		if (c->slot[i])
			cert_free(c->slot[i]);
	free(c->ca_sha256);
	free(c->ns);
	free(c);
}

static struct srv_cert *lookup(const struct srv_certs *c, const char *name)
{
	for (size_t i = 0; name && i < SRV_CERTS_MAX; i++)
		if (c->slot[i] && str_eq(c->slot[i]->name, name))
			return c->slot[i];
	return NULL;
}

_Static_assert(
	3 + MODEL_CLUSTER_SERVERS_MAX <= SRV_CERTS_MAX, "a slot for each Secret of a cluster");

size_t srv_certs_of(const struct model_cluster *c, bool ignition, const char *names[SRV_CERTS_MAX])
{
	size_t n = 0;

	names[n++] = c->ak_secret;
	if (!ignition)
		return n;
	names[n++] = c->register_secret;
	names[n++] = c->trustee_secret;
	for (unsigned i = 0; i < c->n_servers; i++)
		names[n++] = c->server_ca[i];
	return n;
}

void srv_certs_want(struct srv_certs *c, const char *const *names, size_t n, const char *ca_sha256)
{
	size_t slot = 0;

	/* On a change of the allowed certificates, judge all Secrets again. */
	if (!str_eq(c->ca_sha256, ca_sha256)) {
		free(c->ca_sha256);
		c->ca_sha256 = xstrdup(ca_sha256);
		for (size_t i = 0; i < SRV_CERTS_MAX; i++)
			if (c->slot[i])
				judge_again(c->slot[i]);
	}
	/* Free slots of dropped names first: new ones may need them. */
	for (size_t i = 0; i < SRV_CERTS_MAX; i++) {
		bool wanted = !c->slot[i];

		for (size_t k = 0; k < n && !wanted; k++)
			wanted = str_eq(names[k], c->slot[i]->name);
		if (!wanted)
			cert_free(steal_ptr(&c->slot[i]));
	}
	for (size_t i = 0; i < n; i++) {
		/* The CRD checks names too, but a selector must not depend on that. */
		if (!names[i] || lookup(c, names[i]) ||
			!kobj_name_valid(names[i], strlen(names[i])))
			continue;
		while (slot < SRV_CERTS_MAX && c->slot[slot])
			slot++;
		if (slot == SRV_CERTS_MAX)
			DIE("more than %d TLS Secrets are named", SRV_CERTS_MAX);
		c->slot[slot] = cert_new(c, names[i]);
	}
}

int srv_certs_filled(const struct srv_certs *c)
{
	for (size_t i = 0; i < SRV_CERTS_MAX; i++)
		if (c->slot[i] && !k8s_cache_filled(c->slot[i]->cache))
			return 0;
	return 1;
}

const char *srv_certs_ca(const struct srv_certs *c, const char *name)
{
	const struct srv_cert *s = lookup(c, name);

	return s ? s->ca : NULL;
}

struct tls_ctx *srv_certs_tls(const struct srv_certs *c, const char *name)
{
	const struct srv_cert *s = lookup(c, name);

	return s ? s->good : NULL;
}
