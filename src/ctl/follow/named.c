/* SPDX-License-Identifier: MIT */
/*
 * Copies ConfigMaps and Secrets that the source's spec names. The caches know their versions but
 * not their content: an object is read on both sides when its version changes, and content is kept
 * only between that read and the write. Of a Secret only one member is copied, so that a private
 * key beside a CA is not.
 */
#include "config.h"

#include "follow_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/input.h"

#define FRAME_MAX 4096 /* JSON around the text of a member */

/* ---- decide */

/* An object without the mark of a copy is never overwritten. With equal content it is adopted;
 * otherwise it is a conflict, unless this cluster may have its own (`own`). */
enum ctl_follow_named_do ctl_follow_named_decide(const struct ctl_follow_named_view *v)
{
	if (!v->there)
		return CTL_FOLLOW_NAMED_NOTHING;
	if (!v->there_read)
		return CTL_FOLLOW_NAMED_READ_THERE;
	if (!v->has)
		return CTL_FOLLOW_NAMED_NOTHING;
	if (!v->here)
		return v->in_hand ? CTL_FOLLOW_NAMED_CREATE : CTL_FOLLOW_NAMED_READ_THERE;
	if (v->deleting) /* copied again when it is gone */
		return CTL_FOLLOW_NAMED_WAIT;
	if (!v->here_read)
		return CTL_FOLLOW_NAMED_READ_HERE;
	if (v->same)
		return v->copied || v->own ? CTL_FOLLOW_NAMED_NOTHING : CTL_FOLLOW_NAMED_ADOPT;
	if (!v->copied)
		return v->own ? CTL_FOLLOW_NAMED_NOTHING : CTL_FOLLOW_NAMED_CONFLICT;
	return v->in_hand ? CTL_FOLLOW_NAMED_UPDATE : CTL_FOLLOW_NAMED_READ_THERE;
}

/* ---- the set */

const struct kobj_gvk *follow_named_gvk(const struct follow_named *n)
{
	return n->part == FOLLOW_CONFIGMAP ? &kobj_input_configmap : &kobj_input_secret;
}

/* The one member that is copied; private keys in other members are left out. */
static const char *member_of(const struct follow_named *n)
{
	return n->part == FOLLOW_CA ? "ca.crt" : "key";
}

/* Called as soon as no write needs the content. */
static void drop_text(struct follow_named *n)
{
	free(steal_ptr(&n->text));
	secret_free(steal_ptr(&n->b64));
}

static void read_fini(struct follow_read *r)
{
	free(r->version);
	free(r->keys);
}

static void named_fini(struct follow_named *n)
{
	drop_text(n);
	read_fini(&n->there);
	read_fini(&n->here);
	free(n->name);
}

static struct follow_named *find(
	struct follow_named_set *s, enum follow_part part, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].part == part && str_eq(s->v[i].name, name))
			return &s->v[i];
	return NULL;
}

/* Move an object from the old set, with what is known of it, or add a new one. */
static void want(struct follow_named_set *now, struct follow_named_set *was, enum follow_part part,
	const char *name)
{
	struct follow_named *old, *n;

	if (!name || find(now, part, name))
		return;
	n = &now->v[now->n++];
	old = find(was, part, name);
	if (old) {
		*n = *old;
		*old = (struct follow_named){.name = NULL};
	} else {
		*n = (struct follow_named){.part = part, .name = xstrdup(name)};
	}
}

/* Objects that spec no longer names are forgotten and their content wiped; copies stay. */
void follow_named_want(struct follow_named_set *s, const struct model_cluster *there)
{
	struct follow_named_set now = {.n = 0};

	for (unsigned i = 0; i < there->n_platforms; i++)
		want(&now, s, FOLLOW_CONFIGMAP, there->platform[i]);
	want(&now, s, FOLLOW_CONFIGMAP, there->endorsement_ca);
	want(&now, s, FOLLOW_TOKEN, there->token_secret);
	for (unsigned i = 0; i < there->n_servers; i++)
		want(&now, s, FOLLOW_CA, there->server_ca[i]);
	follow_named_clear(s);
	*s = now;
}

/* Frees what is kept for a write; struct secret wipes it. */
void follow_named_clear(struct follow_named_set *s)
{
	for (unsigned i = 0; i < s->n; i++)
		named_fini(&s->v[i]);
	s->n = 0;
}

bool follow_named_has(const struct follow_named_set *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (str_eq(s->v[i].name, name))
			return true;
	return false;
}

/* ---- look */

static const struct kobj *cached(const struct state *s, const struct follow_named *n)
{
	return k8s_cache_find(n->part == FOLLOW_CONFIGMAP ? s->configmaps : s->secrets, n->name);
}

/* The UID matters as well: resourceVersions of different objects are not comparable. */
static bool is_read(const struct follow_read *r, const struct kobj *o)
{
	const char *space = r->version ? strchr(r->version, ' ') : NULL;

	return space && str_eq(space + 1, o->rv) &&
	       strlen(o->uid) == (size_t)(space - r->version) &&
	       strncmp(r->version, o->uid, (size_t)(space - r->version)) == 0;
}

/* Tell whether the part to copy is usable. The cache knows whether ca.crt holds certificates;
 * nothing else is copied in its place. */
static bool is_usable(const struct follow_named *n, const struct kobj *there)
{
	const char *ca = n->part == FOLLOW_CA ? model_secret(there)->ca_sha256 : "-";

	return n->there.has && ca && *ca;
}

/* Content that no write needs next is wiped at once. */
enum ctl_follow_named_do follow_named_look(const struct state *source, const struct state *ours,
	const char *followed_uid, struct follow_named *n)
{
	const struct kobj *there = cached(source, n), *here = cached(ours, n);
	struct ctl_follow_named_view v = {.own = n->part == FOLLOW_CA};
	enum ctl_follow_named_do d;

	if ((there && there->unreadable) || (here && here->unreadable))
		return CTL_FOLLOW_NAMED_WAIT;
	v.there = there && !there->deleting;
	v.there_read = there && is_read(&n->there, there);
	v.has = v.there_read && is_usable(n, there);
	v.here = here != NULL;
	v.deleting = here && here->deleting;
	v.here_read = here && is_read(&n->here, here);
	v.same = v.there_read && v.here_read && n->here.has &&
		 memcmp(n->there.sha256, n->here.sha256, SHA256_LEN) == 0;
	v.copied = v.here_read && str_eq(n->here.copied_from, followed_uid);
	v.in_hand = v.there_read && (n->text || n->b64);
	d = ctl_follow_named_decide(&v);
	if (d != CTL_FOLLOW_NAMED_CREATE && d != CTL_FOLLOW_NAMED_UPDATE &&
		d != CTL_FOLLOW_NAMED_READ_HERE)
		drop_text(n);
	return d;
}

/* ---- reading */

/* All of data and binaryData counts, in the canonical form of model/input.h. */
static void read_configmap(struct follow_read *r, struct json_object *o)
{
	struct err ignored = ERR_INIT;
	struct kobj *k = model_input_configmap_extract(o, &ignored);

	if (!k)
		return;
	r->has = true;
	memcpy(r->sha256, model_input(k)->sha256, SHA256_LEN);
	r->keys = model_input(k)->keys ? xstrdup(model_input(k)->keys) : NULL;
	kobj_unref(k);
}

/* Return the member to copy, borrowed from o, or NULL if it is missing or empty. */
static struct json_object *member(const struct follow_named *n, struct json_object *o)
{
	struct json_object *data = json_get_obj(o, "data"), *v = NULL;

	if (data)
		json_object_object_get_ex(data, member_of(n), &v);
	return json_object_is_type(v, json_type_string) && json_object_get_string_len(v) > 0 ? v
											     : NULL;
}

/* The hash of the base64 text is enough for a comparison, and needs no decoding. */
static void read_secret(const struct follow_named *n, struct follow_read *r, struct json_object *o)
{
	struct json_object *v = member(n, o);
	size_t len = v ? (size_t)json_object_get_string_len(v) : 0;

	if (!v)
		return;
	if (len > SECRET_MAX_LEN - FRAME_MAX) {
		log_warn(NULL, "a member of a Secret is too large to be copied", "secret=%s",
			log_esc(n->name));
		return;
	}
	r->has = true;
	bytes_sha256(json_object_get_string(v), len, r->sha256);
}

/* Keep the content for the write that follows; that of a Secret as struct secret, which is
 * wiped. */
static void hold_text(struct follow_named *n, struct json_object *o)
{
	static const char *const parts[] = {"data", "binaryData"};
	struct json_object *v;
	cleanup_json struct json_object *copy = NULL;

	drop_text(n);
	if (!n->there.has)
		return;
	if (n->part != FOLLOW_CONFIGMAP) {
		v = member(n, o);
		n->b64 = secret_new_copy(
			json_object_get_string(v), (size_t)json_object_get_string_len(v));
		return;
	}
	copy = json_obj();
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		v = json_get_obj(o, parts[i]);
		if (v)
			json_add(copy, parts[i], json_object_get(v));
	}
	n->text = json_text(copy);
}

/* Store what one read showed, for the side it came from. */
static void take(struct follow_named *n, struct json_object *o, bool there)
{
	struct follow_read *r = there ? &n->there : &n->here;
	const char *uid = json_get_str(o, "metadata/uid");
	const char *rv = json_get_str(o, "metadata/resourceVersion");
	const char *from = kobj_annotation(o, MODEL_COPIED_ANNOTATION);

	read_fini(r);
	*r = (struct follow_read){.version = NULL};
	if (!uid || !rv)
		return;
	r->version = xasprintf("%s %s", uid, rv);
	if (from)
		snprintf(r->copied_from, sizeof(r->copied_from), "%s", from);
	if (n->part == FOLLOW_CONFIGMAP)
		read_configmap(r, o);
	else
		read_secret(n, r, o);
	if (there)
		hold_text(n, o);
}

/* One object may be named in several fields; each gets the answer. */
void follow_named_take(struct follow_named_set *s, struct json_object *o, bool there)
{
	const char *name = json_get_str(o, "metadata/name");
	bool map = str_eq(json_get_str(o, "kind"), "ConfigMap");

	for (unsigned i = 0; i < s->n; i++)
		if ((s->v[i].part == FOLLOW_CONFIGMAP) == map && str_eq(s->v[i].name, name))
			take(&s->v[i], o, there);
}

/* ---- writing */

/* A copy carries the UID of the cluster that it comes from. */
static void add_mark(struct json_object *meta, const char *followed_uid)
{
	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_COPIED_ANNOTATION, followed_uid));
}

/* Add null for each key that the source does not have, which removes it from our ConfigMap. */
static void drop_keys(const struct follow_read *have, struct json_object *map)
{
	const char *at = NULL;
	struct model_input in = {.keys = have->keys};

	for (;;) {
		cleanup_free char *key = model_input_next(&in, &at);

		if (!key)
			return;
		if (!json_object_object_get_ex(map, key, NULL))
			json_add(map, key, NULL);
	}
}

/* A key may move between data and binaryData, so removed keys are null in both. */
static void add_maps(const struct follow_named *n, struct json_object *o, bool patch)
{
	static const char *const parts[] = {"data", "binaryData"};
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *text =
		json_parse(n->text, strlen(n->text), &json_limits_api, &ignored);

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		struct json_object *v = json_get_obj(text, parts[i]);
		struct json_object *map = v ? json_object_get(v) : json_obj();

		if (patch)
			drop_keys(&n->here, map);
		json_add(o, parts[i], map);
	}
}

/* A copy has its own type and labels: only the data of the source counts. */
static struct json_object *frame(const struct follow_named *n, const char *followed_uid)
{
	bool map = n->part == FOLLOW_CONFIGMAP;
	struct json_object *o = json_obj(), *meta = json_add_str(json_obj(), "name", n->name);

	json_add_str(json_add_str(o, "apiVersion", "v1"), "kind", map ? "ConfigMap" : "Secret");
	if (!map)
		json_add_str(o, "type", "Opaque");
	add_mark(meta, followed_uid);
	json_add(meta, "labels",
		json_add_str(json_obj(), "app.kubernetes.io/managed-by", "tec-operator"));
	return json_add(o, "metadata", meta);
}

/* A Secret with one member, of type Opaque, whatever the type of the original is. */
struct op *follow_named_create(struct ctl_kind *k, struct ctl_act *a, const struct follow_named *n,
	const char *followed_uid)
{
	cleanup_json struct json_object *o = frame(n, followed_uid);

	if (n->part != FOLLOW_CONFIGMAP)
		return k8s_call_create_secret(k->env->api, &k->acts.ops, &kobj_input_secret,
			k->env->ns, model_secret_text(o, member_of(n), n->b64), ctl_kind_done, a);
	add_maps(n, o, false);
	return ctl_kind_create(k, a, &kobj_input_configmap, o);
}

/* The patch carries the version that was read, so that an edit in between is not overwritten
 * unseen. */
struct op *follow_named_patch(struct ctl_kind *k, struct ctl_act *a, const struct follow_named *n,
	const char *followed_uid, bool adopt)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_of(cached(k->state, n), &meta);

	add_mark(meta, followed_uid);
	if (!adopt && n->part != FOLLOW_CONFIGMAP)
		return k8s_call_patch_secret(k->env->api, &k->acts.ops, &kobj_input_secret,
			k->env->ns, n->name, model_secret_text(patch, member_of(n), n->b64),
			ctl_kind_done, a);
	if (!adopt)
		add_maps(n, patch, true);
	return ctl_kind_patch(k, a, follow_named_gvk(n), n->name, patch);
}
