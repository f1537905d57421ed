/* SPDX-License-Identifier: MIT */
/*
 * The cluster's own Secrets: announce, then create. Anybody who may create Secrets can use a name
 * before the operator does, with the right type, members and owner, but cannot write the hash of
 * the content on the cluster object. So a content is valid only when its hash is announced there,
 * and nothing is POSTed before it is. A text is kept until an announced Secret was seen: killed in
 * between, the next run announces another text beside it.
 *
 * Without an announcement a Secret is valid only if it and the cluster are older than the marker
 * (ctl/since.h): version 0.1.0 created it, or the Rust operator. Its hash is then announced, once.
 * An invalid one is not touched.
 */
#include "config.h"

#include "cluster_internal.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/content.h"
#include "tec/model/mark.h"

static void forget_read(struct cluster_own *own)
{
	free(steal_ptr(&own->read_rv));
	own->hash[0] = '\0';
}

void cluster_own_reset(struct cluster_own *own)
{
	cluster_own_set_text(own, NULL);
	forget_read(own);
	own->must_read = false;
}

void cluster_own_set_text(struct cluster_own *own, struct secret *take_text)
{
	secret_free(own->text);
	own->text = take_text;
	own->text_hash[0] = '\0';
	if (take_text && !model_content_of_text(take_text, own->text_hash))
		DIE("Secret %s: what was rendered has no content", own->name);
}

/* ---- state, decision */

enum cluster_own_state cluster_own_state(const struct ctl_cluster *c,
	const struct model_cluster *cluster, const struct cluster_own *own)
{
	const struct model_secret *o = state_secret(c->env->state, own->name);

	if (!o)
		return own->must_read ? CLUSTER_OWN_UNREAD : CLUSTER_OWN_ABSENT;
	if (o->n_owners != 1 || !str_eq(o->owner_uid, cluster->obj.uid))
		return CLUSTER_OWN_FOREIGN;
	if (!str_eq(own->read_rv, o->obj.rv))
		return CLUSTER_OWN_UNREAD;
	if (model_cluster_announces(cluster, own->name, own->hash))
		return CLUSTER_OWN_GOOD;
	return own->hash[0] && state_since_is_older(c->env->state, &o->obj) &&
			       state_since_is_older(c->env->state, &cluster->obj)
		       ? CLUSTER_OWN_OLDER
		       : CLUSTER_OWN_PLANTED;
}

static enum ctl_cluster_do decide(enum cluster_own_state state, bool wanted, bool text_announced)
{
	switch (state) {
	case CLUSTER_OWN_UNREAD:
		return CTL_CLUSTER_READ;
	case CLUSTER_OWN_OLDER:
		return CTL_CLUSTER_ANNOUNCE;
	case CLUSTER_OWN_ABSENT:
		return !wanted          ? CTL_CLUSTER_NOTHING
		       : text_announced ? CTL_CLUSTER_MAKE_SECRET
					: CTL_CLUSTER_ANNOUNCE;
	case CLUSTER_OWN_GOOD:
	case CLUSTER_OWN_PLANTED:
	case CLUSTER_OWN_FOREIGN:
		break;
	}
	return CTL_CLUSTER_NOTHING;
}

bool cluster_own_look(const struct ctl_cluster *c, struct cluster_look *l,
	const struct cluster_own *own, unsigned object, unsigned number, bool wanted)
{
	enum cluster_own_state state = cluster_own_state(c, l->c, own);
	const struct model_secret *o = state_secret(c->env->state, own->name);
	bool announced = own->text && model_cluster_announces(l->c, own->name, own->text_hash);

	if (o && o->obj.deleting && object != CLUSTER_SIGNER) {
		l->waits = own->name; /* a signer may be deleted while it is still mounted */
		return false;
	}
	cluster_want(l, decide(state, wanted, announced), object, number);
	if (!l->conflict &&
		(state == CLUSTER_OWN_PLANTED || (state == CLUSTER_OWN_FOREIGN && wanted))) {
		l->conflict = own->name;
		l->conflict_own = true;
	}
	return state == CLUSTER_OWN_GOOD;
}

/* ---- acts */

void cluster_own_put(struct json_object *annotations, const struct model_cluster *cluster,
	const char *name, const char *hashes)
{
	cleanup_free char *annotation = xasprintf("%s%s", MODEL_ANNOUNCED_PREFIX, name);
	cleanup_free char *text = hashes ? model_mark_text(cluster->obj.uid, hashes) : NULL;

	json_add(annotations, annotation, text ? json_object_new_string(text) : NULL);
}

int cluster_own_announce(const struct ctl_cluster *c, const struct model_cluster *cluster,
	struct cluster_own *own, struct json_object *annotations, struct err *err)
{
	enum cluster_own_state state = cluster_own_state(c, cluster, own);
	const char *hash = own->text_hash, *beside;
	struct log_ctx lc = {"Secret", c->env->ns, own->name, NULL};
	cleanup_free char *hashes = NULL;

	if (state == CLUSTER_OWN_OLDER) {
		log_info(&lc, "taken over, it is older than this operator", NULL);
		hash = own->hash;
	} else if (!own->text) {
		struct secret *text = own->make(c, cluster, own->name, err);

		if (!text)
			return -1;
		cluster_own_set_text(own, text);
	}
	/*
	 * An earlier announcement stays, because its create may still arrive; but not once such a
	 * Secret was seen and is gone: an administrator who deletes a Secret because its content
	 * leaked does not want the same content back.
	 */
	beside = state == CLUSTER_OWN_ABSENT &&
				 model_cluster_announces(cluster, own->name, own->hash)
			 ? NULL
			 : model_cluster_announced(cluster, own->name);
	hashes = model_mark_announce(beside, hash);
	cluster_own_put(annotations, cluster, own->name, hashes);
	return 0;
}

/* Type, members and owner as we render them. */
static bool fits(const struct cluster_own *own, const char *cluster_uid, struct json_object *o)
{
	struct json_object *d = json_get_obj(o, "data");
	int n = own->data[1] ? 2 : 1;

	if (!d || json_object_object_length(d) != n || !str_eq(json_get_str(o, "type"), "Opaque") ||
		!kobj_owner_is_exactly(o, cluster_uid))
		return false;
	for (int i = 0; i < n; i++) {
		struct json_object *v = NULL;

		if (!json_object_object_get_ex(d, own->data[i], &v) ||
			!json_object_is_type(v, json_type_string) ||
			json_object_get_string_len(v) == 0)
			return false;
	}
	return true;
}

void cluster_own_saw(
	struct cluster_own *own, const struct model_cluster *cluster, struct json_object *o)
{
	forget_read(own);
	own->read_rv = xstrdup(json_get_str(o, "metadata/resourceVersion"));
	if (fits(own, cluster->obj.uid, o))
		(void)model_content_sha256(o, own->hash);
	if (model_cluster_announces(cluster, own->name, own->hash))
		cluster_own_set_text(own, NULL);
}
