/* SPDX-License-Identifier: MIT */
/*
 * The TrustedExecutionCluster while following. It records the UID of the followed cluster before
 * anything is copied; then it copies the parts of spec that concern nodes, after the ConfigMaps
 * and Secrets that these name. spec and the annotation that mirrors it are written at once, so
 * that a field removed by the source does not look like one that was lost here. For a peer, it
 * freezes this cluster when the peer decides, and records when the peer is Retired.
 *
 * The caches know the versions of the named ConfigMaps and Secrets but not their content: an object
 * is read on both sides when its version changes, and content is kept only between that read and
 * the write. Of a Secret only one member is copied, so that a private key beside a CA is not.
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

enum follow_part {
	FOLLOW_CONFIGMAP, /* all of its data */
	FOLLOW_TOKEN,     /* a Secret's member key */
	FOLLOW_CA,        /* a Secret's ca.crt */
};

/* The result of the last read of one object. */
struct follow_read {
	char *version;         /* owned: "UID RESOURCEVERSION"; NULL: not read */
	char *keys;            /* owned: keys of a ConfigMap, as in model/input.h */
	char copied_from[128]; /* the mark of a copy; "": it has none */
	bool has;              /* it has the part that is copied; sha256 is its hash */
	uint8_t sha256[SHA256_LEN];
};

struct follow_named {
	enum follow_part part;
	char *name; /* owned */
	struct follow_read there, here;
	/* Owned: what must be written, from the source: JSON of a ConfigMap, or the base64 of a
	 * Secret's member. NULL: not in memory. */
	char *text;
	struct secret *b64;
};

#define FOLLOW_NAMED_MAX (MODEL_PLATFORMS_MAX + 2 + MODEL_CLUSTER_SERVERS_MAX)
struct follow_named_set {
	struct follow_named v[FOLLOW_NAMED_MAX];
	unsigned n;
};

enum cluster_do {
	/* On an object that spec names: a cast converts them. */
	CLUSTER_NOTHING = CTL_FOLLOW_NAMED_NOTHING,
	CLUSTER_READ_THERE = CTL_FOLLOW_NAMED_READ_THERE,
	CLUSTER_READ_HERE = CTL_FOLLOW_NAMED_READ_HERE,
	CLUSTER_CREATE = CTL_FOLLOW_NAMED_CREATE,
	CLUSTER_ADOPT = CTL_FOLLOW_NAMED_ADOPT,
	CLUSTER_UPDATE = CTL_FOLLOW_NAMED_UPDATE,
	/* On the cluster. */
	CLUSTER_NOTE_UID,
	CLUSTER_FREEZE,
	CLUSTER_NOTE_RETIRED,
	CLUSTER_COPY_SPEC,
	CLUSTER_N_DO
};

struct follow_cluster {
	struct follow_kind base;
	struct follow_named_set named;
	char refused[ERR_TEXT_SIZE]; /* why the last request failed; "": it did not */
};

struct cluster_look {
	struct ctl_look base;
	const struct model_cluster *there, *here;
	const struct follow_named *named; /* the object to act on */
	const struct follow_named *waits; /* the object that is waited for */
	bool conflict; /* an object that is not a copy: an administrator must act */
	bool in_step;
};

/* ---- named objects: decide */

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

/* ---- named objects: the set */

static const struct kobj_gvk *named_gvk(const struct follow_named *n)
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

/* Frees what is kept for a write; struct secret wipes it. */
static void named_clear(struct follow_named_set *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		drop_text(&s->v[i]);
		read_fini(&s->v[i].there);
		read_fini(&s->v[i].here);
		free(s->v[i].name);
	}
	s->n = 0;
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
static void named_want(struct follow_named_set *s, const struct model_cluster *there)
{
	struct follow_named_set now = {.n = 0};

	for (unsigned i = 0; i < there->n_platforms; i++)
		want(&now, s, FOLLOW_CONFIGMAP, there->platform[i]);
	want(&now, s, FOLLOW_CONFIGMAP, there->endorsement_ca);
	want(&now, s, FOLLOW_TOKEN, there->token_secret);
	for (unsigned i = 0; i < there->n_servers; i++)
		want(&now, s, FOLLOW_CA, there->server_ca[i]);
	named_clear(s);
	*s = now;
}

/* ---- named objects: look */

static const struct kobj *cached(const struct caches *s, const struct follow_named *n)
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

/* The cache knows whether ca.crt holds certificates; nothing else is copied in its place. Content
 * that no write needs next is wiped at once. */
static enum ctl_follow_named_do named_look(const struct caches *source, const struct caches *ours,
	const char *followed_uid, struct follow_named *n)
{
	const struct kobj *there = cached(source, n), *here = cached(ours, n);
	struct ctl_follow_named_view v = {.own = n->part == FOLLOW_CA};
	const char *ca = "-";
	enum ctl_follow_named_do d;

	if ((there && there->unreadable) || (here && here->unreadable))
		return CTL_FOLLOW_NAMED_WAIT;
	v.there = there && !there->deleting;
	v.there_read = there && is_read(&n->there, there);
	if (there && n->part == FOLLOW_CA)
		ca = model_secret(there)->ca_sha256;
	v.has = v.there_read && n->there.has && ca && *ca;
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

/* ---- named objects: reading */

/* Return the base64 text of the member to copy, borrowed from o, or NULL if it is missing. */
static const char *part_of(const struct follow_named *n, struct json_object *o)
{
	const char *b64 = n->part == FOLLOW_CONFIGMAP ? NULL
			  : n->part == FOLLOW_CA      ? json_get_str(o, "data/ca.crt")
						      : json_get_str(o, "data/key");

	return b64 && *b64 ? b64 : NULL;
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
		n->b64 = secret_new_copy(part_of(n, o), strlen(part_of(n, o)));
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

/* Store what one read showed, for the side it came from. Of a ConfigMap all of data and binaryData
 * counts, in the canonical form of model/input.h. Of a Secret the hash of the base64 text is enough
 * for a comparison, and needs no decoding. */
static void take(struct follow_named *n, struct json_object *o, bool there)
{
	struct follow_read *r = there ? &n->there : &n->here;
	const char *uid = json_get_str(o, "metadata/uid");
	const char *rv = json_get_str(o, "metadata/resourceVersion");
	const char *from = kobj_annotation(o, MODEL_COPIED_ANNOTATION);
	const char *b64 = part_of(n, o);
	cleanup_kobj const struct kobj *map = NULL;
	struct err ignored = ERR_INIT;

	read_fini(r);
	*r = (struct follow_read){.version = NULL};
	if (!uid || !rv)
		return;
	r->version = xasprintf("%s %s", uid, rv);
	if (from)
		snprintf(r->copied_from, sizeof(r->copied_from), "%s", from);
	if (n->part == FOLLOW_CONFIGMAP)
		map = model_input_configmap_extract(o, &ignored);
	if (map) {
		r->has = true;
		memcpy(r->sha256, model_input(map)->sha256, SHA256_LEN);
		r->keys = xstrdup(model_input(map)->keys);
	} else if (b64 && strlen(b64) > SECRET_MAX_LEN - FRAME_MAX) {
		log_warn(NULL, "a member of a Secret is too large to be copied", "secret=%s",
			log_esc(n->name));
	} else if (b64) {
		r->has = true;
		bytes_sha256(b64, strlen(b64), r->sha256);
	}
	if (there)
		hold_text(n, o);
}

/* ---- named objects: writing */

/* A key may move between data and binaryData, so removed keys are null in both. */
static void add_maps(const struct follow_named *n, struct json_object *o, bool patch)
{
	static const char *const parts[] = {"data", "binaryData"};
	const struct model_input have = {.keys = n->here.keys};
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *text =
		json_parse(n->text, strlen(n->text), &json_limits_api, &ignored);

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		struct json_object *v = json_get_obj(text, parts[i]);
		struct json_object *map = v ? json_object_get(v) : json_obj();

		/* null removes a key that the source does not have from our ConfigMap. */
		for (const char *at = NULL; patch;) {
			cleanup_free char *key = model_input_next(&have, &at);

			if (!key)
				break;
			if (!json_object_object_get_ex(map, key, NULL))
				json_add(map, key, NULL);
		}
		json_add(o, parts[i], map);
	}
}

/* A copy has its own type and labels: only the data of the source counts. It carries the UID of the
 * cluster that it comes from. A Secret has one member, whatever the type of the original is. */
static struct op *named_create(struct ctl_kind *k, struct ctl_act *a, const struct follow_named *n,
	const char *followed_uid)
{
	struct json_object *meta;
	cleanup_json struct json_object *o = kobj_new(
		n->part == FOLLOW_CONFIGMAP ? &kobj_configmap : &kobj_secret, n->name, &meta);

	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_COPIED_ANNOTATION, followed_uid));
	json_add(meta, "labels",
		json_add_str(json_obj(), "app.kubernetes.io/managed-by", "tec-operator"));
	if (n->part == FOLLOW_CONFIGMAP) {
		add_maps(n, o, false);
		return ctl_kind_create(k, a, &kobj_input_configmap, o);
	}
	json_add_str(o, "type", "Opaque");
	return k8s_call_create_secret(k->env->api, &k->acts.ops, &kobj_input_secret, k->env->ns,
		model_secret_text(o, member_of(n), n->b64), ctl_kind_done, a);
}

/* The patch carries the version that was read, so that an edit in between is not overwritten
 * unseen. */
static struct op *named_patch(struct ctl_kind *k, struct ctl_act *a, const struct follow_named *n,
	const char *followed_uid, bool adopt)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_of(cached(k->caches, n), &meta);

	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_COPIED_ANNOTATION, followed_uid));
	if (!adopt && n->part != FOLLOW_CONFIGMAP)
		return k8s_call_patch_secret(k->env->api, &k->acts.ops, &kobj_input_secret,
			k->env->ns, n->name, model_secret_text(patch, member_of(n), n->b64),
			ctl_kind_done, a);
	if (!adopt)
		add_maps(n, patch, true);
	return ctl_kind_patch(k, a, named_gvk(n), n->name, patch);
}

/* ---- spec */

/* An absent text is an empty spec, so that comparing needs no special case. */
static struct json_object *parse(const char *text)
{
	struct err ignored = ERR_INIT;
	struct json_object *o =
		text ? json_parse(text, strlen(text), &json_limits_object, &ignored) : NULL;

	return o ? o : json_obj();
}

/* Compute the RFC 7386 merge patch from have to want. The caller puts it. */
static struct json_object *merge_of(struct json_object *want, struct json_object *have)
{
	struct json_object *patch;

	if (!json_object_is_type(want, json_type_object) ||
		!json_object_is_type(have, json_type_object))
		return json_copy(want);
	patch = json_obj();
	json_each (have, name, value)
		if (!json_object_object_get(want, name))
			json_add(patch, name, NULL);
	json_each (want, wanted, value_there)
		json_add(
			patch, wanted, merge_of(value_there, json_object_object_get(have, wanted)));
	return patch;
}

/* NULL removes the member, as a missing member of the source does. */
static void put_member(struct json_object *o, const char *name, struct json_object *v)
{
	if (v)
		json_add(o, name, json_copy(v));
	else
		json_drop(o, name);
}

/*
 * Copy the parts of spec that decide which nodes get their keys, which are those that the digest
 * covers (caches/digest.h), into `extended`, our mirror of spec. Return the merge patch for spec,
 * or NULL if nothing differs.
 */
static struct json_object *copy_spec(struct json_object *extended, struct json_object *there)
{
	static const char *const sections[] = {"attestation", "registration"};
	struct json_object *spec = json_obj(), *v, *trustee;

	for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
		v = json_get(there, sections[i]);
		if (json_object_equal(v, json_get(extended, sections[i])))
			continue;
		json_add(spec, sections[i], merge_of(v, json_get(extended, sections[i])));
		put_member(extended, sections[i], v);
	}
	v = json_get(there, "trustee/keyIsolation");
	if (!json_object_equal(v, json_get(extended, "trustee/keyIsolation"))) {
		json_add(spec, "trustee", json_add(json_obj(), "keyIsolation", json_copy(v)));
		trustee = json_get_obj(extended, "trustee");
		if (!trustee)
			json_add(extended, "trustee", trustee = json_obj());
		put_member(trustee, "keyIsolation", v);
	}
	if (json_object_object_length(spec) > 0)
		return spec;
	json_object_put(spec);
	return NULL;
}

/* NULL: spec matches. The mirror is written in canonical form, so that equal specs have equal
 * text. */
static struct json_object *spec_patch(
	const struct model_cluster *there, const struct model_cluster *here)
{
	cleanup_json struct json_object *extended = parse(here->extended_spec);
	cleanup_json struct json_object *wanted = parse(there->extended_spec);
	struct json_object *spec = copy_spec(extended, wanted), *meta, *patch;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (!spec)
		return NULL;
	json_canonical(&text, extended);
	patch = ctl_patch_of(&here->obj, &meta);
	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_EXTENDED_ANNOTATION, strbuf_str(&text)));
	return json_add(patch, "spec", spec);
}

/* ---- look */

/* Find the first named object that needs an act, and one that is waited for, for the message. */
static enum cluster_do look_named(struct ctl_kind *k, struct cluster_look *l)
{
	struct follow_cluster *fc = (struct follow_cluster *)k;
	struct ctl_follow *f = fc->base.f;

	named_want(&fc->named, l->there);
	for (unsigned i = 0; i < fc->named.n; i++) {
		struct follow_named *n = &fc->named.v[i];
		enum ctl_follow_named_do d =
			named_look(&f->source.caches, k->caches, l->here->followed_uid, n);

		if (d == CTL_FOLLOW_NAMED_CONFLICT && !l->conflict) {
			l->waits = n; /* reported first: an administrator must act */
			l->conflict = true;
		} else if (d == CTL_FOLLOW_NAMED_CONFLICT || d == CTL_FOLLOW_NAMED_WAIT) {
			l->waits = l->waits ? l->waits : n;
		} else if (d != CTL_FOLLOW_NAMED_NOTHING) {
			l->named = n;
			l->base.content = str_hash(n->name, strlen(n->name)) + (uint64_t)n->part;
			return (enum cluster_do)d;
		}
	}
	return CLUSTER_NOTHING;
}

/* Explain the first thing that is missing; follow.c puts it into the condition. */
static void say(struct ctl_kind *k, const struct cluster_look *l, enum cluster_do d)
{
	const struct follow_cluster *fc = (const struct follow_cluster *)k;
	const struct follow_named *n = l->named ? l->named : l->waits;
	const char *kind = n && n->part == FOLLOW_CONFIGMAP ? "ConfigMap" : "Secret";
	char *why = fc->base.f->spec_why;
	size_t size = sizeof(fc->base.f->spec_why);

	if (l->there->extended_lost)
		snprintf(why, size,
			"The source's spec lost %.200s; see its condition Installed. Until that is resolved, spec is not copied.",
			l->there->extended_lost);
	else if (d == CLUSTER_NOTHING && l->conflict)
		snprintf(why, size,
			"%s %s, which the source's spec names, exists here with different content and is never overwritten. "
			"Delete it here to have it copied.",
			kind, n->name);
	else if (n)
		snprintf(why, size,
			"%s %s, which the source's spec names, is not copied yet.%s%.300s", kind,
			n->name, *fc->refused ? " " : "", fc->refused);
	else
		snprintf(why, size,
			"spec.attestation, registration and trustee.keyIsolation do not match the source yet.%s%.400s",
			*fc->refused ? " " : "", fc->refused);
}

/* Nothing of spec is copied before the followed cluster is recorded, nor while the source looks
 * like an older backup. */
static int look(struct ctl_kind *k, const char *name, struct ctl_act *a, struct ctl_look *out)
{
	struct cluster_look *l = (struct cluster_look *)out;
	struct ctl_follow *f = follow_kind(k)->f;
	cleanup_json struct json_object *spec = NULL;
	struct ctl_follow_peer_view peer;
	enum cluster_do d;
	bool sees;

	l->here = caches_cluster_policy(k->caches);
	l->base.o = k8s_cache_find(k->caches->clusters, name);
	l->base.over = !l->base.o;
	l->there = caches_cluster(&f->source.caches);
	sees = l->here && l->base.o == &l->here->obj && l->there;
	if (!sees || l->here->authority != MODEL_AUTHORITY_FOLLOWING ||
		l->there->authority == MODEL_AUTHORITY_FOLLOWING) {
		follow_kind_lags(k, name, FOLLOW_IN_STEP);
		follow_peer_view(f, &peer);
		/* React to the peer only while it can be read: its absence proves nothing. */
		if (!sees || l->here->authority == MODEL_AUTHORITY_FOLLOWING || !peer.read)
			return CLUSTER_NOTHING;
		if (peer.self && ctl_follow_peer(&peer, f->caches->peer) == CACHES_PEER_DECIDES)
			return CLUSTER_FREEZE;
		return peer.retired ? CLUSTER_NOTE_RETIRED : CLUSTER_NOTHING;
	}
	if (!l->here->followed_uid)
		return CLUSTER_NOTE_UID;
	/* The spec of a source that went back is older than ours. */
	if (!f->may_copy || f->went_back)
		return CLUSTER_NOTHING;
	/* Objects before spec: a spec that names missing objects would lock nodes out. A source whose
	 * spec lost fields has unknown requirements. */
	d = l->there->extended_lost ? CLUSTER_NOTHING : look_named(k, l);
	if (!l->there->extended_lost && d == CLUSTER_NOTHING && !l->waits) {
		spec = spec_patch(l->there, l->here);
		l->in_step = !spec;
		d = spec ? CLUSTER_COPY_SPEC : CLUSTER_NOTHING;
	}
	if (l->in_step)
		f->spec_why[0] = '\0';
	else
		say(k, l, d);
	follow_kind_lags(k, name,
		l->in_step                            ? FOLLOW_IN_STEP
		: d == CLUSTER_NOTHING && l->conflict ? FOLLOW_CONFLICT
						      : FOLLOW_BEHIND);
	return d;
}

/* ---- acts */

/*
 * NOTE_UID records which cluster is followed: from then on another cluster at the same address is
 * refused. NOTE_RETIRED: a retired peer never decides again, so it need not be reachable at the
 * next start. FREEZE is the only change of spec.authority that an operator makes itself: two must
 * not decide.
 */
static struct op *patch(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct cluster_look *l = (const struct cluster_look *)look;
	struct json_object *meta, *marks;
	cleanup_json struct json_object *patch = d == CLUSTER_COPY_SPEC
							 ? spec_patch(l->there, l->here)
							 : ctl_patch_of(look->o, &meta);

	if (d == CLUSTER_FREEZE) {
		json_add(patch, "spec", json_add_str(json_obj(), "authority", "Frozen"));
	} else if (d != CLUSTER_COPY_SPEC) {
		marks = json_obj();
		ctl_add_mark(marks, look->o,
			d == CLUSTER_NOTE_UID ? MODEL_CLUSTER_FOLLOWED_MARK
					      : MODEL_CLUSTER_RETIRED_MARK,
			l->there->obj.uid);
		json_add(meta, "annotations", marks);
	}
	return ctl_kind_patch(k, a, &kobj_cluster, a->name, patch);
}

/* The read there may find the connection closed; then the act waits for the next one. ADOPT writes
 * the mark only; the content is equal already. */
static struct op *start_named(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct cluster_look *l = (const struct cluster_look *)look;
	const struct follow_named *n = l->named;
	struct follow_source *s = &follow_kind(k)->f->source;

	if (d == CLUSTER_READ_HERE)
		return ctl_kind_get(k, a, named_gvk(n), n->name);
	if (d == CLUSTER_READ_THERE)
		return s->api ? k8s_call_get(s->api, &k->acts.ops, named_gvk(n), s->ns, n->name,
					ctl_kind_done, a)
			      : NULL;
	if (d == CLUSTER_CREATE)
		return named_create(k, a, n, l->there->obj.uid);
	return named_patch(k, a, n, l->there->obj.uid, d == CLUSTER_ADOPT);
}

#define READS  (CTL_DO_FOLLOWING | CTL_DO_GONE_IS_FINE)
#define WRITES (CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF)

static const struct ctl_do acts[CLUSTER_N_DO] = {
	[CLUSTER_NOTE_UID] = {"record which cluster is followed", "cluster to follow recorded",
		WRITES, .start = patch},
	[CLUSTER_FREEZE] = {"set spec.authority to Frozen",
		"the peer decides, spec.authority set to Frozen",
		CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_WARNS, .start = patch},
	[CLUSTER_NOTE_RETIRED] = {"record that the peer is Retired", "the peer is Retired",
		CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN, .start = patch},
	[CLUSTER_READ_THERE] = {"read an object that the source's spec names", .flags = READS,
		.start = start_named},
	[CLUSTER_READ_HERE] = {"read an object that spec names", .flags = READS,
		.start = start_named},
	[CLUSTER_CREATE] = {"copy an object that spec names", .flags = CTL_DO_FOLLOWING,
		.start = start_named},
	[CLUSTER_ADOPT] = {"mark an identical object as a copy", .flags = CTL_DO_FOLLOWING,
		.start = start_named},
	[CLUSTER_UPDATE] = {"update an object that spec names", .flags = CTL_DO_FOLLOWING,
		.start = start_named},
	[CLUSTER_COPY_SPEC] = {"copy spec", "spec copied from the source", WRITES, .start = patch},
};

/* Remember what was read or written, on the side where it was. One object may be named in several
 * fields; each gets the answer. */
static void take_named(struct ctl_kind *k, const struct ctl_act *a, struct json_object *o)
{
	struct follow_cluster *fc = (struct follow_cluster *)k;
	const bool there = a->doing == CLUSTER_READ_THERE;
	const bool map = str_eq(json_get_str(o, "kind"), "ConfigMap");
	const struct caches *s = there ? &fc->base.f->source.caches : k->caches;
	struct log_ctx lc = {json_get_str(o, "kind"), k->env->ns, json_get_str(o, "metadata/name"),
		json_get_str(o, "metadata/uid")};

	if (a->doing == CLUSTER_CREATE || a->doing == CLUSTER_UPDATE)
		log_info(&lc, "copied, the source's spec names it", NULL);
	for (unsigned i = 0; i < fc->named.n; i++) {
		struct follow_named *n = &fc->named.v[i];

		if ((n->part == FOLLOW_CONFIGMAP) == map && str_eq(n->name, lc.name))
			take(n, o, there);
	}
	ctl_take_answer(map ? s->configmaps : s->secrets, o, a->doing == CLUSTER_CREATE);
}

/* A conflict or a vanished object is routine; any other failure is shown in the condition. */
static bool ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	struct follow_cluster *fc = (struct follow_cluster *)k;

	fc->refused[0] = '\0';
	if (err_is_set(err) && err->kind != ERR_CONFLICT && err->kind != ERR_NOT_FOUND)
		snprintf(fc->refused, sizeof(fc->refused), "%s", err->text);
	if (!err_is_set(err) && r->object && a->doing >= CLUSTER_READ_THERE &&
		a->doing <= CLUSTER_UPDATE)
		take_named(k, a, r->object);
	follow_kind_check(fc->base.f);
	return false;
}

/* Content in memory is wiped with the connection. */
static void forget(struct ctl_kind *k)
{
	struct follow_cluster *fc = (struct follow_cluster *)k;

	named_clear(&fc->named);
	fc->refused[0] = '\0';
	if (fc->base.f)
		fc->base.f->spec_why[0] = '\0';
	follow_kind_forget(k);
}

/* ---- which keys a change concerns */

/* Any change here may switch following on or off. */
static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;

	ctl_runner_wake(k->runner, was ? was->name : now->name);
	follow_kind_check(follow_kind(k)->f);
}

/* The keys of this controller are names of our clusters, so all are woken. */
static void map_source_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	ctl_kind_wake_all(self);
}

/* Wake for a ConfigMap or Secret of either side that spec names. */
static void map_named(void *self, const struct kobj *was, const struct kobj *now)
{
	const struct follow_named_set *s = &((struct follow_cluster *)self)->named;
	const char *name = was ? was->name : now->name;

	for (unsigned i = 0; i < s->n; i++)
		if (str_eq(s->v[i].name, name)) {
			ctl_kind_wake_all(self);
			return;
		}
}

struct ctl_kind *follow_cluster_new(struct ctl_follow *f)
{
	static const struct follow_watch watches[] = {
		{CACHES_CLUSTERS, map_cluster, map_source_cluster},
		{CACHES_CONFIGMAPS, map_named, map_named},
		{CACHES_SECRETS, map_named, map_named},
		{.here = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "follow",
		.of = CACHES_CLUSTERS,
		.size = sizeof(struct follow_cluster),
		.look_size = sizeof(struct cluster_look),
		.acts = acts,
		.status = -1,
		.knows_cached = true,
		.look = look,
		.ended = ended,
		.forget = forget,
	};

	return follow_kind_new(f, &conf, watches);
}
