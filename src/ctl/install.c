/* SPDX-License-Identifier: MIT */
/*
 * Knowledge of an object is a verdict on one resourceVersion. So nothing has to be cleared when
 * the object changes: a new version has no verdict, unless only its status differs. A changed
 * input puts the verdict in doubt, even while a write of the former rendering is in flight.
 */
#include "config.h"

#include "tec/ctl/install.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ctl_internal.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/managed.h"
#include "tec/kobj/subset.h"

void ctl_install_init(struct ctl_install *in, const struct ctl_env *env,
	const struct ctl_install_conf *conf, void *self, struct op_scope *ops)
{
	assert(conf->n <= CTL_INSTALL_MAX);
	*in = (struct ctl_install){.env = env, .conf = conf, .self = self, .ops = ops};
}

/* The rendering is dropped, too: it was made from the former input. */
static void doubt(struct ctl_install_known *k)
{
	json_object_put(steal_ptr(&k->want));
	k->doubt = true;
}

/* A new generation of the owner means a new spec, so everything is compared again. */
bool ctl_install_follow(struct ctl_install *in, const struct kobj *owner)
{
	bool another = !owner || !str_eq(in->owner_uid, owner->uid);

	if (!another && in->owner_generation == owner->generation)
		return false;
	for (unsigned i = 0; i < in->conf->n; i++) {
		if (another) { /* nothing learned about the objects is valid */
			free(in->known[i].rv);
			json_object_put(in->known[i].want);
			in->known[i] = (struct ctl_install_known){.rv = NULL};
		}
		doubt(&in->known[i]);
	}
	in->owner_generation = owner ? owner->generation : 0;
	if (another) {
		free(in->owner_uid);
		in->owner_uid = xstrdup(owner ? owner->uid : NULL);
	}
	return another;
}

/* Only marks the objects: the next look decides whether a GET is needed. */
void ctl_install_forget(struct ctl_install *in, unsigned inputs)
{
	for (unsigned i = 0; i < in->conf->n; i++)
		if (in->conf->objects[i].inputs & inputs)
			doubt(&in->known[i]);
}

/* Digest of a rendering: of the hash that it carries, or else of its whole text. 0: it cannot be
 * rendered now. */
static uint64_t digest_of(struct json_object *o)
{
	const char *hash = o ? kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION) : NULL;
	cleanup_free char *text = o && !hash ? json_text(o) : NULL;
	uint64_t d = 0;

	if (hash || text)
		d = str_hash(hash ? hash : text, strlen(hash ? hash : text));
	return o && d == 0 ? 1 : d;
}

/* Avoids a GET for each changed input: two renderings are compared instead of rendering and
 * object. */
void ctl_install_recheck(struct ctl_install *in, const struct kobj *owner)
{
	for (unsigned i = 0; i < in->conf->n; i++) {
		struct ctl_install_known *k = &in->known[i];
		cleanup_json struct json_object *want = NULL;

		if (!in->conf->by_digest || !k->doubt || !k->rv || !k->digest)
			continue;
		want = in->conf->render(in->self, owner, i);
		if (!want)
			continue;
		k->doubt = false;
		k->want_digest = digest_of(want);
		k->found = k->want_digest == k->digest ? CTL_INSTALL_CURRENT : CTL_INSTALL_STALE;
		if (k->found == CTL_INSTALL_STALE)
			k->want = steal_ptr(&want);
	}
}

/* ---- state, decision */

/* Only these three kinds are installed. */
static struct k8s_cache *cache_of(const struct ctl_install *in, unsigned i)
{
	const struct kobj_gvk *gvk = in->conf->objects[i].gvk;

	return gvk == &kobj_configmap ? in->env->caches->configmaps
	       : gvk == &kobj_service ? in->env->caches->services
				      : in->env->caches->deployments;
}

const struct kobj *ctl_install_find(const struct ctl_install *in, unsigned i)
{
	return k8s_cache_find(cache_of(in, i), in->conf->objects[i].name);
}

/* Deployments change their status often; their shape hash leaves the status out. */
static uint64_t shape_of(const struct ctl_install *in, unsigned i, const struct kobj *o)
{
	return in->conf->objects[i].gvk == &kobj_deployment ? ((const struct model_plain *)o)->shape
							    : 0;
}

/* State of an object that must not exist. Only objects that the owner controls are deleted; without
 * rendered_too, only those that another operator created. */
static enum ctl_install_state unwanted_state(
	const struct model_plain *o, const char *owner_uid, bool rendered_too)
{
	return o && !o->obj.unreadable && !o->obj.deleting && str_eq(o->owner_uid, owner_uid) &&
			       (rendered_too || !o->render_hash)
		       ? CTL_INSTALL_REPLACE
		       : CTL_INSTALL_CURRENT;
}

/* The checks come in the order of certainty: what must never be written is found first. */
enum ctl_install_state ctl_install_state(
	const struct ctl_install *in, const struct kobj *owner, unsigned i)
{
	enum ctl_install_kind kind = in->conf->objects[i].kind;
	const struct ctl_install_known *k = &in->known[i];
	const struct kobj *o = ctl_install_find(in, i);
	const struct model_plain *plain = (const struct model_plain *)o;
	bool owned, judged;
	uint64_t shape;

	if (in->conf->wanted && !in->conf->wanted(in->self, owner, i))
		return unwanted_state(plain, owner->uid, true);
	if (!o)
		return k->must_read ? CTL_INSTALL_UNREAD : CTL_INSTALL_ABSENT;
	if (o->unreadable)
		return CTL_INSTALL_UNREADABLE;
	owned = str_eq(plain->owner_uid, owner->uid);
	shape = shape_of(in, i, o);
	/* The verdict holds for the version in the cache. */
	judged = !k->doubt && k->rv && (str_eq(k->rv, o->rv) || (shape && shape == k->shape));
	if (kind == CTL_INSTALL_UNWANTED)
		return unwanted_state(plain, owner->uid, false);
	if (o->deleting)
		return CTL_INSTALL_DELETING;
	if (kind == CTL_INSTALL_CREATED || (judged && k->found == CTL_INSTALL_CURRENT))
		return CTL_INSTALL_CURRENT;
	if (plain->owner_uid && !owned)
		return CTL_INSTALL_CONFLICT;
	return judged ? k->found : CTL_INSTALL_UNREAD;
}

/* CONFLICT, DELETING and UNREADABLE wait for somebody else. */
enum ctl_install_do ctl_install_decide(enum ctl_install_kind kind, enum ctl_install_state state)
{
	switch (state) {
	case CTL_INSTALL_ABSENT:
		return kind == CTL_INSTALL_APPLIED   ? CTL_INSTALL_APPLY
		       : kind == CTL_INSTALL_CREATED ? CTL_INSTALL_CREATE
						     : CTL_INSTALL_NOTHING;
	case CTL_INSTALL_UNREAD:
		return CTL_INSTALL_READ;
	case CTL_INSTALL_STALE:
		return CTL_INSTALL_APPLY;
	case CTL_INSTALL_REPLACE:
		return CTL_INSTALL_DELETE;
	case CTL_INSTALL_OF_OTHER:
		return CTL_INSTALL_TAKE;
	case CTL_INSTALL_CURRENT:
	case CTL_INSTALL_CONFLICT:
	case CTL_INSTALL_DELETING:
	case CTL_INSTALL_UNREADABLE:
		break;
	}
	return CTL_INSTALL_NOTHING;
}

/* ---- acts */

/* DELETE carries the UID, so that it never hits a later object of the same name. */
struct op *ctl_install_start(struct ctl_install *in, const struct kobj *owner, unsigned i,
	enum ctl_install_do what, k8s_result_fn done, void *arg, struct err *err)
{
	const struct ctl_install_object *t = &in->conf->objects[i];
	struct ctl_install_known *k = &in->known[i];
	struct k8s_transport *api = in->env->api;
	const char *ns = in->env->ns;
	cleanup_json struct json_object *o = NULL;
	struct op *op;

	switch (what) {
	case CTL_INSTALL_READ:
		return k8s_call_get(api, in->ops, t->gvk, ns, t->name, done, arg);
	case CTL_INSTALL_DELETE:
		return k8s_call_delete(api, in->ops, t->gvk, ns, t->name,
			ctl_install_find(in, i)->uid, NULL, done, arg);
	case CTL_INSTALL_TAKE:
		o = steal_ptr(&k->want);
		k->doubt = true; /* of no version is anything known until the answer */
		return k8s_call_json_patch(api, in->ops, t->gvk, ns, t->name, o, done, arg);
	case CTL_INSTALL_CREATE:
	case CTL_INSTALL_APPLY:
		break;
	case CTL_INSTALL_NOTHING:
		DIE("%s %s: no act to start", t->gvk->kind, t->name);
	}
	k->absent = !ctl_install_find(in, i);
	o = steal_ptr(&k->want);
	k->sent = k->want_digest;
	if (!o) {
		o = in->conf->render(in->self, owner, i);
		k->sent = digest_of(o);
	}
	if (!o) {
		err_set(err, ERR_INVALID, "%s would be too large", t->name);
		return NULL;
	}
	k->doubt = false;
	if (what == CTL_INSTALL_CREATE)
		return k8s_call_create(api, in->ops, t->gvk, ns, o, 0, done, arg);
	op = k8s_call_apply(api, in->ops, t->gvk, ns, o, done, arg);
	if (in->conf->by_digest) /* the watch event usually arrives before the answer */
		k8s_call_unless_cached(op, cache_of(in, i));
	return op;
}

/* Record the verdict on one version. digest: of the rendering that the object equals; 0:
 * unknown. */
static void note(struct ctl_install_known *k, enum ctl_install_state found, const char *rv,
	uint64_t shape, uint64_t digest)
{
	free(k->rv);
	json_object_put(steal_ptr(&k->want));
	k->rv = xstrdup(rv);
	k->shape = shape;
	k->found = found;
	k->digest = digest;
}

static void note_read(struct ctl_install_known *k, enum ctl_install_state found,
	struct json_object *o, uint64_t digest)
{
	note(k, found, json_get_str(o, "metadata/resourceVersion"), model_plain_shape(o), digest);
}

/* Compare an object that was read with its rendering. */
static void judge(
	struct ctl_install *in, const struct kobj *owner, unsigned i, struct json_object *o)
{
	const struct ctl_install_conf *conf = in->conf;
	cleanup_json struct json_object *want = NULL, *take = NULL;
	bool current;

	in->known[i].doubt = false;
	/* Before rendering, which may use what `saw` learns. */
	if (conf->saw && !conf->saw(in->self, owner, i, o)) {
		bool ours = str_eq(kobj_owner_controller(o), owner->uid);

		note_read(&in->known[i], ours ? CTL_INSTALL_REPLACE : CTL_INSTALL_CONFLICT, o, 0);
		return;
	}
	take = conf->takes_from ? kobj_managed_take(o, conf->takes_from, K8S_FIELD_MANAGER) : NULL;
	if (take) {
		note_read(&in->known[i], CTL_INSTALL_OF_OTHER, o, 0);
		if (conf->taking)
			conf->taking(in->self, owner, i, o, take);
		in->known[i].want = steal_ptr(&take);
		return;
	}
	want = conf->render(in->self, owner, i);
	current = !want || kobj_subset(want, o);
	note_read(&in->known[i], current ? CTL_INSTALL_CURRENT : CTL_INSTALL_STALE, o,
		current ? digest_of(want) : 0);
	if (conf->compared)
		conf->compared(in->self, i, want, o, current);
}

/* An existing object must be read; a missing one needs no deletion. Both are answers, not
 * failures. */
bool ctl_install_failed(bool *must_read, enum ctl_install_do what, const struct err *err,
	const struct k8s_result *r)
{
	bool gone = err->kind == ERR_NOT_FOUND, exists = r && r->already_exists;

	*must_read = exists || (*must_read && !gone);
	return exists || (gone && (what == CTL_INSTALL_READ || what == CTL_INSTALL_DELETE));
}

/* An answer for a former owner must not be taken for knowledge about the new one's object. */
bool ctl_install_done(struct ctl_install *in, const struct kobj *owner, unsigned i,
	enum ctl_install_do what, const struct err *err, const struct k8s_result *r)
{
	const struct ctl_install_object *t = &in->conf->objects[i];
	struct ctl_install_known *k = &in->known[i];
	bool ours = owner && str_eq(owner->uid, in->owner_uid);

	if (err_is_set(err))
		return ctl_install_failed(&k->must_read, what, err, r);
	k->must_read = false;
	if (ours && what != CTL_INSTALL_READ && in->conf->wrote)
		in->conf->wrote(in->self, owner, i,
			what == CTL_INSTALL_APPLY && k->absent ? CTL_INSTALL_CREATE : what);
	if (what == CTL_INSTALL_DELETE)
		return true;
	if (r->cached) {
		if (ours)
			note(k, CTL_INSTALL_CURRENT, r->cached->rv, shape_of(in, i, r->cached),
				k->sent);
		return true;
	}
	if (ours && (what == CTL_INSTALL_TAKE ||
			    (what == CTL_INSTALL_READ && t->kind != CTL_INSTALL_CREATED)))
		judge(in, owner, i, r->object);
	else if (ours)
		note_read(k, CTL_INSTALL_CURRENT, r->object, k->sent);
	if (ours && what == CTL_INSTALL_APPLY && in->conf->saw)
		(void)in->conf->saw(in->self, owner, i, r->object);
	ctl_take_answer(cache_of(in, i), r->object, true);
	return true;
}

/* During the installation writes are expected; afterwards each one is a repair that someone
 * caused. */
void ctl_install_tell(const struct ctl_install *in, const struct kobj *owner, bool installed,
	const struct kobj_gvk *gvk, const char *name)
{
	struct log_ctx lc = {gvk->kind, in->env->ns, name, NULL};

	if (!installed) {
		log_info(&lc, "installed", NULL);
		return;
	}
	log_warn(&lc, "repaired, it had been changed or deleted", NULL);
	k8s_events_post(in->env->events, in->conf->owner, owner, K8S_EVENT_NORMAL, "Repaired",
		"Repair", "%s %s had been changed or deleted and was repaired.", gvk->kind, name);
}
