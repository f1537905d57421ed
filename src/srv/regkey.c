/* SPDX-License-Identifier: MIT */
/*
 * One k8s_watch per Secret, each with its own cache as in srv/cert.c, and one for the record of
 * deleted ids. A Secret counts only if it holds a key of the right length; anything else is
 * logged, and the last good key stays in use. The announcement on the cluster arrives by another
 * watch, earlier or later, so it is checked when the key is used.
 */
#include "config.h"

#include "tec/srv/regkey.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/secret.h"
#include "tec/k8s/cache.h"
#include "tec/k8s/watch.h"
#include "tec/model/configmap.h"
#include "tec/model/content.h"
#include "tec/rats/ticket.h"
#include "tec/render/regkey.h"

/* Time within which every other listener learns of a new key. */
#define SETTLE_MS 10000

_Static_assert(RENDER_REGKEY_LEN == RATS_TICKET_KEY_LEN,
	"the leader's key and the key of ids have one length");

struct key_obj {
	struct kobj obj;
	struct secret *key;              /* owned; NULL: unusable (logged) */
	char sha256[SHA256_HEX_LEN + 1]; /* of the Secret's content */
};

enum which { CURRENT, PREVIOUS, DELETED, N_OBJECTS };
static const char *const names[N_OBJECTS] = {
	RENDER_REGKEY_CURRENT, RENDER_REGKEY_PREVIOUS, MODEL_RECORD_IDS};

struct srv_regkey {
	struct loop *loop;
	struct k8s_transport *api; /* borrowed */
	char *ns;
	struct k8s_cache *cache[N_OBJECTS]; /* each of one object; NULL: not wanted yet */
	struct k8s_watch *watch[N_OBJECTS];
	struct secret *key;    /* owned: the current one; was announced when it was read */
	struct secret *before; /* owned: its predecessor, which signs until settled_ms */
	uint64_t settled_ms;   /* boot time from which the current key signs */
};

static void key_obj_fini(struct kobj *o)
{
	secret_free(((struct key_obj *)o)->key);
}

/* The text in json-c's memory is wiped. NULL: missing, not base64, or of another length. */
static struct secret *read_key(struct json_object *o)
{
	struct json_object *v = json_get(json_get_obj(o, "data"), RENDER_REGKEY_MEMBER);
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

/* An unusable key does not fail the object: the cache must show that the Secret exists. */
static struct kobj *extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct key_obj fixed = {.obj.fini = key_obj_fini};
	struct log_ctx lc = {.kind = "Secret", .name = json_get_str(o, "metadata/name")};

	if (kobj_meta_read(&p, o, &fixed.obj, err) < 0)
		return NULL;
	if (!model_content_sha256(o, fixed.sha256) || !(fixed.key = read_key(o)))
		log_warn(&lc, "registration key is unusable, keeping the last good one",
			"wanted=\"32 bytes in " RENDER_REGKEY_MEMBER "\"");
	return kobj_pack_finish(&p, &fixed, sizeof(fixed));
}

/* The key as the API has it, if the cluster announces it; NULL: there is none, or it may not be
 * used. */
static const struct secret *standing(
	const struct srv_regkey *k, const struct model_cluster *c, enum which i)
{
	const struct kobj *o = k->cache[i] ? k8s_cache_find(k->cache[i], names[i]) : NULL;
	const struct key_obj *key = (const struct key_obj *)o;

	return key && key->key && model_cluster_announces(c, names[i], key->sha256) ? key->key
										    : NULL;
}

/* Adopt a new current key. If there is none, as in the moment of a rotation, the last one stays. */
static void follow(struct srv_regkey *k, const struct model_cluster *c)
{
	const struct secret *now = standing(k, c, CURRENT);

	if (!now || secret_equal(now, k->key))
		return;
	log_info(NULL, k->key ? "registration key replaced" : "registration key read", NULL);
	secret_free(k->before);
	k->before = k->key;
	k->key = secret_new_copy(secret_peek(now), secret_len(now));
	k->settled_ms = clock_boot_ms() + SETTLE_MS;
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
	for (int i = 0; i < N_OBJECTS; i++) {
		k8s_watch_free(k->watch[i]);
		k8s_cache_free(k->cache[i]);
	}
	secret_free(k->key);
	secret_free(k->before);
	free(k->ns);
	free(k);
}

void srv_regkey_want(struct srv_regkey *k)
{
	static const struct k8s_cache_type key = {extract, sizeof(struct key_obj), NULL, 0},
					   record = {model_configmap_extract,
						   sizeof(struct model_configmap), NULL, 0};

	for (int i = 0; i < N_OBJECTS && !k->watch[i]; i++) {
		cleanup_free char *selector = xasprintf("metadata.name=%s", names[i]);
		const struct k8s_watch_conf conf = {
			.gvk = i == DELETED ? &kobj_configmap : &kobj_secret,
			.ns = k->ns,
			.field_selector = selector,
			.secret = i != DELETED,
		};

		k->cache[i] = k8s_cache_new(i == DELETED ? &record : &key);
		k->watch[i] = k8s_watch_new(k->loop, k->api, k->cache[i], &conf);
		k8s_watch_start(k->watch[i]);
	}
}

bool srv_regkey_filled(const struct srv_regkey *k)
{
	for (int i = 0; i < N_OBJECTS; i++)
		if (k->cache[i] && !k8s_cache_filled(k->cache[i]))
			return false;
	return true;
}

bool srv_regkey_is_deleted(const struct srv_regkey *k, const char *uuid)
{
	const struct kobj *o =
		k->cache[DELETED] ? k8s_cache_find(k->cache[DELETED], MODEL_RECORD_IDS) : NULL;

	if (o && o->unreadable)
		return true; /* it may be; a wrong refusal is safer */
	return o && model_record_find(
			    ((const struct model_configmap *)o)->record, MODEL_RECORD_ID, uuid);
}

/* What an id is bound to besides the key: an id of another cluster or mode is invalid here. */
static struct rats_ticket_scope scope_of(const struct model_cluster *c)
{
	return (struct rats_ticket_scope){
		.cluster_uid = c->obj.uid,
		.mode = model_reg_mode_name(c->reg_mode),
		/* Mode Token is not served, so there is no token to hash. */
		.token_sha256 = NULL,
	};
}

/* The epoch, in units of pendingTTL, lets ids expire without being stored. */
bool srv_regkey_make(
	struct srv_regkey *k, const struct model_cluster *c, char out[UUID_TEXT_LEN + 1])
{
	struct rats_ticket_scope scope = scope_of(c);
	uint8_t random[RATS_TICKET_RANDOM_LEN];
	const struct secret *signer;

	follow(k, c);
	if (!k->key)
		return false;
	/* The previous key signs while another listener may not know the current one yet, provided
	 * that the cluster still announces it as the previous one. */
	signer =
		clock_boot_ms() < k->settled_ms && secret_equal(k->before, standing(k, c, PREVIOUS))
			? k->before
			: k->key;
	bytes_random(random, sizeof(random));
	rats_ticket_make(
		signer, &scope, random, rats_ticket_epoch(clock_wall_s(), c->pending_ttl_ms), out);
	return true;
}

/* Accept ids of the current and the previous key: a node may have fetched its id before a
 * rotation. */
bool srv_regkey_valid(struct srv_regkey *k, const struct model_cluster *c, const char *uuid)
{
	uint16_t epoch = rats_ticket_epoch(clock_wall_s(), c->pending_ttl_ms);
	struct rats_ticket_scope scope = scope_of(c);
	const struct secret *previous = standing(k, c, PREVIOUS);

	follow(k, c);
	return (k->key && rats_ticket_valid(k->key, &scope, uuid, epoch)) ||
	       (previous && rats_ticket_valid(previous, &scope, uuid, epoch));
}

bool srv_regkey_settled(struct srv_regkey *k, const struct model_cluster *c)
{
	follow(k, c);
	return srv_regkey_filled(k) && standing(k, c, CURRENT);
}
