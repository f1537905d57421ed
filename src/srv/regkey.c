/* SPDX-License-Identifier: MIT */
/*
 * One k8s_watch per Secret with a cache of its own, as srv/cert.c has them. What a watch brings is
 * taken only when it is a key of the right length; anything else is logged, and the last good one
 * stays.
 */
#include "config.h"

#include "tec/srv/regkey.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/secret.h"
#include "tec/k8s/cache.h"
#include "tec/k8s/watch.h"
#include "tec/rats/ticket.h"

/* How much later than this listener another one may hear of a new key. */
#define SETTLE_MS 10000

struct key_obj {
	struct kobj obj;
	struct secret *key; /* NULL: unusable, which was logged */
};

enum which { CURRENT, PREVIOUS, N_KEYS };
static const char *const names[N_KEYS] = {SRV_REGKEY_SECRET, SRV_REGKEY_SECRET_PREVIOUS};

struct srv_regkey {
	struct loop *loop;
	struct k8s_transport *api; /* borrowed */
	char *ns;
	struct k8s_cache *cache[N_KEYS]; /* NULL: not wanted yet */
	struct k8s_watch *watch[N_KEYS];
	struct secret *key[N_KEYS]; /* owned copies */
	struct secret *before;      /* what CURRENT was; signs until settled_ms */
	uint64_t settled_ms;
};

static void key_obj_fini(struct kobj *o)
{
	secret_free(((struct key_obj *)o)->key);
}

static struct secret *read_key(struct json_object *o)
{
	struct json_object *v = json_get(json_get_obj(o, "data"), SRV_REGKEY_MEMBER);
	struct secret *s;

	if (!json_object_is_type(v, json_type_string))
		return NULL;
	s = secret_from_b64(json_object_get_string(v), (size_t)json_object_get_string_len(v));
	json_wipe(v);
	if (s && secret_len(s) != RATS_TICKET_KEY_LEN) {
		secret_free(s);
		return NULL;
	}
	return s;
}

static struct kobj *extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct key_obj fixed = {.obj.fini = key_obj_fini};
	struct log_ctx lc = {.kind = "Secret", .name = json_get_str(o, "metadata/name")};

	if (kobj_meta_read(&p, o, &fixed.obj, err) < 0)
		return NULL;
	fixed.key = read_key(o);
	if (!fixed.key)
		log_warn(&lc, "registration key not usable, the last good one stays",
			"wanted=\"32 bytes in " SRV_REGKEY_MEMBER "\"");
	return kobj_pack_finish(&p, &fixed, sizeof(fixed));
}

static struct secret *copy(const struct secret *s)
{
	return secret_new_copy(secret_peek(s), secret_len(s));
}

static void on_current(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct srv_regkey *k = arg;
	const struct key_obj *o = (const struct key_obj *)now;

	/* Gone: for the moment of a rotation, so the last one stays. */
	if (!o || !o->key || secret_equal(o->key, k->key[CURRENT]))
		return;
	log_info(NULL, k->key[CURRENT] ? "registration key replaced" : "registration key read",
		NULL);
	secret_free(k->before);
	k->before = k->key[CURRENT];
	k->key[CURRENT] = copy(o->key);
	k->settled_ms = clock_boot_ms() + SETTLE_MS;
}

static void on_previous(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct srv_regkey *k = arg;
	const struct key_obj *o = (const struct key_obj *)now;

	if (o && !o->key)
		return;
	secret_free(k->key[PREVIOUS]);
	k->key[PREVIOUS] = o ? copy(o->key) : NULL;
}

struct srv_regkey *srv_regkey_new(struct loop *l, struct k8s_transport *t, const char *ns)
{
	struct srv_regkey *k = xcalloc(1, sizeof(*k));

	k->loop = l;
	k->api = t;
	k->ns = xstrdup(ns);
	return k;
}

void srv_regkey_free(struct srv_regkey *k)
{
	if (!k)
		return;
	for (int i = 0; i < N_KEYS; i++) {
		k8s_watch_free(k->watch[i]);
		k8s_cache_free(k->cache[i]);
		secret_free(k->key[i]);
	}
	secret_free(k->before);
	free(k->ns);
	free(k);
}

static const char *no_index(const struct kobj *o, unsigned i)
{
	return NULL;
}

void srv_regkey_want(struct srv_regkey *k)
{
	for (int i = 0; i < N_KEYS && !k->cache[i]; i++) {
		cleanup_free char *selector = xasprintf("metadata.name=%s", names[i]);
		struct k8s_watch_conf conf = {
			.gvk = &kobj_secret,
			.ns = k->ns,
			.field_selector = selector,
			.extract = extract,
			.secret = true,
		};

		k->cache[i] = k8s_cache_new(0, no_index);
		k8s_cache_listen(k->cache[i], i == CURRENT ? on_current : on_previous, k);
		k->watch[i] = k8s_watch_new(k->loop, k->api, k->cache[i], &conf);
		k8s_watch_start(k->watch[i]);
	}
}

static const struct secret *before(const struct srv_regkey *k)
{
	return clock_boot_ms() < k->settled_ms ? k->before : NULL;
}

static struct rats_ticket_scope scope_of(const struct model_cluster *c)
{
	return (struct rats_ticket_scope){
		.cluster_uid = c->obj.uid,
		.mode = model_reg_mode_name(c->reg_mode),
		/* Mode Token is not served, so there is no token whose hash could stand here. */
		.token_sha256 = NULL,
	};
}

bool srv_regkey_make(
	const struct srv_regkey *k, const struct model_cluster *c, char out[UUID_TEXT_LEN + 1])
{
	const struct secret *key = before(k) ? before(k) : k->key[CURRENT];
	struct rats_ticket_scope scope = scope_of(c);
	uint8_t random[RATS_TICKET_RANDOM_LEN];

	if (!key)
		return false;
	bytes_random(random, sizeof(random));
	rats_ticket_make(key, &scope, random, rats_ticket_epoch(clock_wall_s(), c->pending_ttl_ms),
		out);
	return true;
}

bool srv_regkey_valid(
	const struct srv_regkey *k, const struct model_cluster *c, const char *uuid)
{
	const struct secret *const keys[] = {k->key[CURRENT], k->key[PREVIOUS], before(k)};
	uint16_t epoch = rats_ticket_epoch(clock_wall_s(), c->pending_ttl_ms);
	struct rats_ticket_scope scope = scope_of(c);

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i] && rats_ticket_valid(keys[i], &scope, uuid, epoch))
			return true;
	return false;
}

bool srv_regkey_settled(const struct srv_regkey *k)
{
	return k->cache[CURRENT] && k8s_cache_filled(k->cache[CURRENT]) &&
	       k8s_cache_filled(k->cache[PREVIOUS]) &&
	       k8s_cache_find(k->cache[CURRENT], SRV_REGKEY_SECRET);
}
