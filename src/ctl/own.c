/* SPDX-License-Identifier: MIT */
/*
 * Every client that may create Secrets can use a name before the operator does, with the right
 * type, members and owner; but it cannot write the hash of the content on the owner. So content is
 * valid only if its hash is announced there, and nothing is POSTed before that. The text is kept
 * until an announced Secret was seen; if the operator is killed in between, its next run announces
 * another text in addition.
 *
 * Without an announcement, a Secret is valid only if it and its owner are older than the marker
 * (ctl/adoption_cutoff.h): version 0.1.0 or the Rust operator created it. Its hash is then announced, once.
 * An invalid Secret is never touched.
 */
#include "config.h"

#include "tec/ctl/own.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/owner.h"
#include "tec/model/content.h"
#include "tec/model/mark.h"
#include "tec/caches/kinds.h"
#include "tec/caches/adoption_cutoff.h"

void ctl_own_init(struct ctl_own *own, const struct ctl_env *env, const struct ctl_own_conf *conf,
	void *self, const char *name)
{
	*own = (struct ctl_own){.env = env, .conf = conf, .self = self, .name = name};
}

static void forget_read(struct ctl_own *own)
{
	free(steal_ptr(&own->read_rv));
	own->hash[0] = '\0';
}

void ctl_own_reset(struct ctl_own *own)
{
	ctl_own_set_text(own, NULL);
	forget_read(own);
	own->must_read = false;
}

/* The hash is that of the content, independent of how the JSON is written. */
void ctl_own_set_text(struct ctl_own *own, struct secret *take_text)
{
	secret_free(own->text);
	own->text = take_text;
	own->text_hash[0] = '\0';
	if (take_text && !model_content_of_text(take_text, own->text_hash))
		DIE("Secret %s: the rendered Secret has no content", own->name);
}

/* ---- state, decision */

static bool announces(const struct ctl_own *own, const struct kobj *owner, const char *hash)
{
	return model_mark_announces(own->conf->announced(owner, own->name), hash);
}

bool ctl_own_text_announced(const struct ctl_own *own, const struct kobj *owner)
{
	return own->text && announces(own, owner, own->text_hash);
}

/* A Secret of another owner is not even read; its content could not make it ours. */
enum ctl_own_state ctl_own_state(const struct ctl_own *own, const struct kobj *owner)
{
	const struct caches *s = own->env->caches;
	const struct model_secret *o = caches_secret(s, own->name);

	if (!o)
		return own->must_read ? CTL_OWN_UNREAD : CTL_OWN_ABSENT;
	if (o->n_owners != 1 || !str_eq(o->owner_uid, owner->uid))
		return CTL_OWN_FOREIGN;
	if (!str_eq(own->read_rv, o->obj.rv))
		return CTL_OWN_UNREAD;
	if (announces(own, owner, own->hash))
		return CTL_OWN_GOOD;
	return own->hash[0] && caches_adoption_cutoff_is_after(s, &o->obj) &&
			       caches_adoption_cutoff_is_after(s, owner)
		       ? CTL_OWN_OLDER
		       : CTL_OWN_PLANTED;
}

/* GOOD needs nothing; PLANTED and FOREIGN are for an administrator. */
enum ctl_own_do ctl_own_decide(enum ctl_own_state state, bool wanted, bool text_announced)
{
	switch (state) {
	case CTL_OWN_UNREAD:
		return CTL_OWN_READ;
	case CTL_OWN_OLDER:
		return CTL_OWN_ANNOUNCE;
	case CTL_OWN_ABSENT:
		return !wanted          ? CTL_OWN_NOTHING
		       : text_announced ? CTL_OWN_CREATE
					: CTL_OWN_ANNOUNCE;
	case CTL_OWN_GOOD:
	case CTL_OWN_PLANTED:
	case CTL_OWN_FOREIGN:
	case CTL_OWN_N:
		break;
	}
	return CTL_OWN_NOTHING;
}

/* ---- acts */

/* In a merge patch, null removes the annotation. */
void ctl_own_put(struct json_object *annotations, const struct kobj *owner, const char *name,
	const char *hashes)
{
	cleanup_free char *annotation = xasprintf("%s%s", MODEL_ANNOUNCED_PREFIX, name);
	cleanup_free char *text = hashes ? model_mark_text(owner->uid, hashes) : NULL;

	json_add(annotations, annotation, text ? json_object_new_string(text) : NULL);
}

/* Generate the content before it is announced, and keep it in memory until it is created. */
int ctl_own_announce(struct ctl_own *own, const struct kobj *owner, struct json_object *annotations,
	struct err *err)
{
	enum ctl_own_state state = ctl_own_state(own, owner);
	const char *hash = own->text_hash, *beside;
	struct log_ctx lc = {"Secret", own->env->ns, own->name, NULL};
	cleanup_free char *hashes = NULL;

	if (state == CTL_OWN_OLDER) {
		log_info(&lc, "taken over, it is older than this operator", NULL);
		hash = own->hash;
	} else if (!own->text) {
		struct secret *text = own->conf->make(own->self, owner, own->name, err);

		if (!text)
			return -1;
		ctl_own_set_text(own, text);
	}
	/*
	 * An earlier announcement stays, because its create may still arrive. Once such a Secret was
	 * seen and is gone, it is removed: an administrator who deletes a Secret because it leaked
	 * does not want the same content back.
	 */
	beside = state == CTL_OWN_ABSENT && announces(own, owner, own->hash)
			 ? NULL
			 : own->conf->announced(owner, own->name);
	hashes = model_mark_announce(beside, hash);
	ctl_own_put(annotations, owner, own->name, hashes);
	return 0;
}

/* A copy of the text is sent, because the text is needed again if the create fails. */
struct op *ctl_own_start(struct ctl_own *own, struct op_scope *ops, enum ctl_own_do what,
	k8s_result_fn done, void *arg)
{
	const struct ctl_env *env = own->env;

	switch (what) {
	case CTL_OWN_READ:
		return k8s_call_get(env->api, ops, &kobj_secret, env->ns, own->name, done, arg);
	case CTL_OWN_CREATE:
		return k8s_call_create_secret(env->api, ops, &kobj_secret, env->ns,
			secret_new_copy(secret_peek(own->text), secret_len(own->text)), done, arg);
	case CTL_OWN_DELETE:
		return k8s_call_delete(env->api, ops, &kobj_secret, env->ns, own->name,
			caches_secret(env->caches, own->name)->obj.uid, NULL, done, arg);
	case CTL_OWN_NOTHING:
	case CTL_OWN_ANNOUNCE:
		break;
	}
	DIE("Secret %s: act %d is not a Secret's", own->name, (int)what);
}

/* Tell whether type, members and owner are as rendered here. */
static bool fits(const struct ctl_own *own, const struct kobj *owner, struct json_object *o)
{
	struct json_object *d = json_get_obj(o, "data");
	int n = own->conf->data[1] ? 2 : 1;

	if (!d || json_object_object_length(d) != n || !str_eq(json_get_str(o, "type"), "Opaque") ||
		!kobj_owner_is_exactly(o, owner->uid))
		return false;
	for (int i = 0; i < n; i++) {
		struct json_object *v = NULL;

		if (!json_object_object_get_ex(d, own->conf->data[i], &v) ||
			!json_object_is_type(v, json_type_string) ||
			json_object_get_string_len(v) == 0)
			return false;
	}
	return true;
}

/* Once an announced Secret exists, the text in memory is no longer needed and is wiped. */
void ctl_own_saw(struct ctl_own *own, const struct kobj *owner, struct json_object *o)
{
	forget_read(own);
	own->read_rv = xstrdup(json_get_str(o, "metadata/resourceVersion"));
	if (fits(own, owner, o))
		(void)model_content_sha256(o, own->hash);
	if (announces(own, owner, own->hash))
		ctl_own_set_text(own, NULL);
}
