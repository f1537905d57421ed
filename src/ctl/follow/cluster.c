/* SPDX-License-Identifier: MIT */
/*
 * The TrustedExecutionCluster while following. It records the UID of the followed cluster before
 * anything is copied; then it copies the parts of spec that concern nodes, after the ConfigMaps
 * and Secrets that these name. spec and the annotation that mirrors it are written at once, so
 * that a field removed by the source does not look like one that was lost here. For a peer, it
 * freezes this cluster when the peer decides, and records when the peer is Retired.
 */
#include "config.h"

#include "follow_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

enum cluster_do {
	CLUSTER_NOTHING,
	CLUSTER_NOTE_UID,
	CLUSTER_FREEZE,
	CLUSTER_NOTE_RETIRED,
	CLUSTER_READ_THERE,
	CLUSTER_READ_HERE,
	CLUSTER_CREATE,
	CLUSTER_ADOPT,
	CLUSTER_UPDATE,
	CLUSTER_COPY_SPEC,
	CLUSTER_N_DO
};

struct follow_cluster {
	struct follow_kind base;
	struct follow_named_set named;
	char refused[256]; /* why the last request failed; "": it did not */
};

struct cluster_look {
	struct ctl_look base;
	const struct model_cluster *there, *here;
	const struct follow_named *named; /* the object to act on */
	const struct follow_named *waits; /* the object that is waited for */
	bool conflict; /* an object that is not a copy: an administrator must act */
	bool in_step;
};

/* ---- the peer */

/* React to the peer only while it can be read: its absence proves nothing. */
static enum cluster_do look_at_peer(const struct ctl_follow *f)
{
	struct ctl_follow_peer_view v;

	follow_peer_view(f, &v);
	if (v.read && v.self && ctl_follow_peer(&v, f->state->peer) == STATE_PEER_DECIDES)
		return CLUSTER_FREEZE;
	return v.read && v.retired ? CLUSTER_NOTE_RETIRED : CLUSTER_NOTHING;
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

static struct json_object *member(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, name, &v);
	return v;
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
		if (!member(want, name))
			json_add(patch, name, NULL);
	json_each (want, wanted, value_there)
		json_add(patch, wanted, merge_of(value_there, member(have, wanted)));
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
 * covers (state/digest.h), into `extended`, our mirror of spec. Return the merge patch for spec,
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
	static const enum cluster_do acts_of[] = {
		[CTL_FOLLOW_NAMED_READ_THERE] = CLUSTER_READ_THERE,
		[CTL_FOLLOW_NAMED_READ_HERE] = CLUSTER_READ_HERE,
		[CTL_FOLLOW_NAMED_CREATE] = CLUSTER_CREATE,
		[CTL_FOLLOW_NAMED_ADOPT] = CLUSTER_ADOPT,
		[CTL_FOLLOW_NAMED_UPDATE] = CLUSTER_UPDATE,
	};
	struct follow_cluster *fc = (struct follow_cluster *)k;
	struct ctl_follow *f = fc->base.f;

	follow_named_want(&fc->named, l->there);
	for (unsigned i = 0; i < fc->named.n; i++) {
		struct follow_named *n = &fc->named.v[i];
		enum ctl_follow_named_do d =
			follow_named_look(&f->source.state, k->state, l->here->followed_uid, n);

		if (d == CTL_FOLLOW_NAMED_CONFLICT && !l->conflict) {
			l->waits = n; /* reported first: an administrator must act */
			l->conflict = true;
		} else if (d == CTL_FOLLOW_NAMED_CONFLICT || d == CTL_FOLLOW_NAMED_WAIT) {
			l->waits = l->waits ? l->waits : n;
		} else if (d != CTL_FOLLOW_NAMED_NOTHING) {
			l->named = n;
			l->base.content = str_hash(n->name, strlen(n->name)) + (uint64_t)n->part;
			return acts_of[d];
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
		snprintf(why, size, "%s %s, which the source's spec names, is not copied yet.%s%s",
			kind, n->name, *fc->refused ? " " : "", fc->refused);
	else
		snprintf(why, size,
			"spec.attestation, registration and trustee.keyIsolation do not match the source yet.%s%s",
			*fc->refused ? " " : "", fc->refused);
}

/* Objects before spec: a spec that names missing objects would lock nodes out. */
static enum cluster_do decide(struct ctl_kind *k, struct cluster_look *l)
{
	cleanup_json struct json_object *patch = NULL;
	enum cluster_do d;

	if (l->there->extended_lost) /* the source's requirements are unknown */
		return CLUSTER_NOTHING;
	d = look_named(k, l);
	if (d != CLUSTER_NOTHING || l->waits)
		return d;
	patch = spec_patch(l->there, l->here);
	l->in_step = !patch;
	return patch ? CLUSTER_COPY_SPEC : CLUSTER_NOTHING;
}

/* Nothing of spec is copied before the followed cluster is recorded, nor while the source looks
 * like an older backup. */
static int look(struct ctl_kind *k, const char *name, struct ctl_act *a, struct ctl_look *out)
{
	struct cluster_look *l = (struct cluster_look *)out;
	struct ctl_follow *f = follow_kind(k)->f;
	enum cluster_do d;
	bool sees;

	l->here = state_cluster_policy(k->state);
	l->base.o = k8s_cache_find(k->state->clusters, name);
	l->base.over = !l->base.o;
	l->there = state_cluster(&f->source.state);
	sees = l->here && l->base.o == &l->here->obj && l->there;
	if (!sees || l->here->authority != MODEL_AUTHORITY_FOLLOWING ||
		l->there->authority == MODEL_AUTHORITY_FOLLOWING) {
		follow_kind_lags(k, name, FOLLOW_IN_STEP);
		return sees && l->here->authority != MODEL_AUTHORITY_FOLLOWING ? look_at_peer(f)
									       : CLUSTER_NOTHING;
	}
	if (!l->here->followed_uid)
		return CLUSTER_NOTE_UID;
	/* The spec of a source that went back is older than ours. */
	if (!f->may_copy || f->went_back)
		return CLUSTER_NOTHING;
	d = decide(k, l);
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

/* Records which cluster is followed, or that the peer is Retired. From then on another cluster at
 * the same address is refused; a retired peer never decides again, so it need not be reachable at
 * the next start. */
static struct op *note_uid(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const char *mark =
		d == CLUSTER_NOTE_UID ? MODEL_CLUSTER_FOLLOWED_MARK : MODEL_CLUSTER_RETIRED_MARK;
	const struct cluster_look *l = (const struct cluster_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);

	ctl_add_mark(marks, look->o, mark, l->there->obj.uid);
	json_add(meta, "annotations", marks);
	return ctl_kind_patch(k, a, &kobj_cluster, a->name, patch);
}

/* The only change of spec.authority that an operator makes itself: two must not decide. */
static struct op *freeze(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);

	json_add(patch, "spec", json_add_str(json_obj(), "authority", "Frozen"));
	return ctl_kind_patch(k, a, &kobj_cluster, a->name, patch);
}

/* The read there may find the connection closed; then the act waits for the next one. */
static struct op *read_named(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct follow_named *n = ((const struct cluster_look *)look)->named;
	struct follow_source *s = &follow_kind(k)->f->source;

	if (d == CLUSTER_READ_HERE)
		return ctl_kind_get(k, a, follow_named_gvk(n), n->name);
	return s->api ? k8s_call_get(s->api, &k->acts.ops, follow_named_gvk(n), s->ns, n->name,
				ctl_kind_done, a)
		      : NULL;
}

/* ADOPT writes the mark only; the content is equal already. */
static struct op *write_named(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct cluster_look *l = (const struct cluster_look *)look;

	return d == CLUSTER_CREATE
		       ? follow_named_create(k, a, l->named, l->there->obj.uid)
		       : follow_named_patch(k, a, l->named, l->there->obj.uid, d == CLUSTER_ADOPT);
}

static struct op *write_spec(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct cluster_look *l = (const struct cluster_look *)look;
	cleanup_json struct json_object *patch = spec_patch(l->there, l->here);

	return ctl_kind_patch(k, a, &kobj_cluster, a->name, patch);
}

#define READS  (CTL_DO_FOLLOWING | CTL_DO_GONE_IS_FINE)
#define WRITES (CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF)

static const struct ctl_do acts[CLUSTER_N_DO] = {
	[CLUSTER_NOTE_UID] = {"record which cluster is followed", "cluster to follow recorded",
		WRITES, .start = note_uid},
	[CLUSTER_FREEZE] = {"set spec.authority to Frozen",
		"the peer decides, spec.authority set to Frozen",
		CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_WARNS, .start = freeze},
	[CLUSTER_NOTE_RETIRED] = {"record that the peer is Retired", "the peer is Retired",
		CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN, .start = note_uid},
	[CLUSTER_READ_THERE] = {"read an object that the source's spec names", .flags = READS,
		.start = read_named},
	[CLUSTER_READ_HERE] = {"read an object that spec names", .flags = READS,
		.start = read_named},
	[CLUSTER_CREATE] = {"copy an object that spec names", .flags = CTL_DO_FOLLOWING,
		.start = write_named},
	[CLUSTER_ADOPT] = {"mark an identical object as a copy", .flags = CTL_DO_FOLLOWING,
		.start = write_named},
	[CLUSTER_UPDATE] = {"update an object that spec names", .flags = CTL_DO_FOLLOWING,
		.start = write_named},
	[CLUSTER_COPY_SPEC] = {"copy spec", "spec copied from the source", WRITES,
		.start = write_spec},
};

/* Remember what was read or written, on the side where it was. */
static void take_named(struct ctl_kind *k, const struct ctl_act *a, struct json_object *o)
{
	struct follow_cluster *fc = (struct follow_cluster *)k;
	const bool there = a->doing == CLUSTER_READ_THERE;
	const struct state *s = there ? &fc->base.f->source.state : k->state;
	struct log_ctx lc = {json_get_str(o, "kind"), k->env->ns, json_get_str(o, "metadata/name"),
		json_get_str(o, "metadata/uid")};

	if (a->doing == CLUSTER_CREATE || a->doing == CLUSTER_UPDATE)
		log_info(&lc, "copied, the source's spec names it", NULL);

	follow_named_take(&fc->named, o, there);
	ctl_take_answer(str_eq(json_get_str(o, "kind"), "ConfigMap") ? s->configmaps : s->secrets,
		o, a->doing == CLUSTER_CREATE);
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

	follow_named_clear(&fc->named);
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
	if (follow_named_has(&((struct follow_cluster *)self)->named, was ? was->name : now->name))
		ctl_kind_wake_all(self);
}

struct ctl_kind *follow_cluster_new(struct ctl_follow *f)
{
	static const struct follow_watch watches[] = {
		{STATE_CLUSTERS, map_cluster, map_source_cluster},
		{STATE_CONFIGMAPS, map_named, map_named},
		{STATE_SECRETS, map_named, map_named},
		{.here = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "follow",
		.of = STATE_CLUSTERS,
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
