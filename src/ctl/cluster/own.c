/* SPDX-License-Identifier: MIT */
/*
 * Secrets of the cluster's own: announce, then make. Who may create Secrets can take a name before
 * the operator does, with the right type, members and owner; what he cannot do is write the hash of
 * its content on the cluster object. So a content counts when its hash stands there, and nothing is
 * POSTed before it does. A text is kept until an announced one was seen: killed in between, the
 * next life announces another text beside it.
 *
 * Without an announcement a Secret counts only if it and the cluster are older than the marker
 * (ctl/since.h): version 0.1.0 made it, or the Rust operator. Its hash is announced, once. What
 * does not count is not touched.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/content.h"
#include "tec/model/mark.h"
#include "tec/pki/key.h"

void cluster_own_init(struct cluster_own *own, const char *name, const char *a, const char *b)
{
	snprintf(own->name, sizeof(own->name), "%s", name);
	own->data[0] = a;
	own->data[1] = b;
}

static void forget_text(struct cluster_own *own)
{
	secret_free(steal_ptr(&own->text));
	own->text_hash[0] = '\0';
}

static void forget_read(struct cluster_own *own)
{
	free(steal_ptr(&own->read_rv));
	own->hash[0] = '\0';
}

void cluster_own_reset(struct cluster_own *own)
{
	forget_text(own);
	forget_read(own);
	own->must_read = false;
}

void cluster_own_set_text(struct cluster_own *own, struct secret *take_text)
{
	forget_text(own);
	own->text = take_text;
	if (take_text && !model_content_of_text(take_text, own->text_hash))
		DIE("Secret %s: what was made has no content", own->name);
}

struct cluster_own *cluster_own_of(struct ctl_cluster *c, unsigned object, unsigned number)
{
	if (object == CLUSTER_SIGNER)
		return cluster_signer_own(c, number);
	if (object == CLUSTER_REGKEY)
		return &c->regkey[number == CLUSTER_REGKEY_PREVIOUS];
	return object < CLUSTER_N_OBJECTS && cluster_objects[object].kind == CLUSTER_OBJECT_SECRET
		       ? &c->auth
		       : NULL;
}

/* ---- what is so, what follows */

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

enum ctl_cluster_do cluster_own_decide(
	enum cluster_own_state state, bool wanted, bool has_text, bool announced)
{
	switch (state) {
	case CLUSTER_OWN_UNREAD:
		return CTL_CLUSTER_READ;
	case CLUSTER_OWN_OLDER:
		return CTL_CLUSTER_ANNOUNCE;
	case CLUSTER_OWN_ABSENT:
		return !wanted                 ? CTL_CLUSTER_NOTHING
		       : has_text && announced ? CTL_CLUSTER_MAKE_SECRET
					       : CTL_CLUSTER_ANNOUNCE;
	case CLUSTER_OWN_GOOD:
	case CLUSTER_OWN_PLANTED:
	case CLUSTER_OWN_FOREIGN:
		break;
	}
	return CTL_CLUSTER_NOTHING;
}

bool cluster_look_own(struct ctl_cluster *c, struct cluster_look *l, struct cluster_own *own,
	unsigned object, unsigned number, bool wanted)
{
	enum cluster_own_state state = cluster_own_state(c, l->c, own);
	const struct model_secret *o = state_secret(c->env->state, own->name);

	if (o && o->obj.deleting && object != CLUSTER_SIGNER) {
		l->waits = own->name; /* a signer may go while it is still mounted */
		return false;
	}
	cluster_want(l,
		cluster_own_decide(state, wanted, own->text != NULL,
			model_cluster_announces(l->c, own->name, own->text_hash)),
		object, number);
	if (!l->conflict &&
		(state == CLUSTER_OWN_PLANTED || (state == CLUSTER_OWN_FOREIGN && wanted))) {
		l->conflict = own->name;
		l->conflict_own = true;
	}
	return state == CLUSTER_OWN_GOOD;
}

/* ---- annotations that have had their time */

/* Whether there is a Secret of this name, or one may still be made. */
static bool is_needed(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name)
{
	bool managed = cluster->deploy == MODEL_DEPLOY_MANAGED;

	if (state_secret(c->env->state, name))
		return true;
	if (str_eq(name, CLUSTER_AUTH))
		return managed;
	if (cluster_regkey_is_name(name))
		return cluster_regkey_wanted(c, cluster, name);
	return managed && cluster_signer_wanted(c, name);
}

/* It would count later for what is planted until then. */
static bool adopts_later(const struct model_cluster *cluster)
{
	return cluster->adopt_before_s != INT64_MIN && cluster->adopt_before_s > clock_wall_s();
}

void cluster_look_tidy(struct ctl_cluster *c, struct cluster_look *l)
{
	bool tidy = adopts_later(l->c);

	for (unsigned i = 0; i < l->c->n_announced; i++)
		tidy = tidy || !is_needed(c, l->c, l->c->announced[i].secret);
	if (tidy)
		cluster_want(l, CTL_CLUSTER_TIDY, 0, 0);
}

static void put_announced(struct json_object *annotations, const char *secret, const char *text)
{
	cleanup_free char *name = xasprintf("%s%s", MODEL_ANNOUNCED_PREFIX, secret);

	json_add(annotations, name, text ? json_object_new_string(text) : NULL);
}

static void tidy(struct ctl_cluster *c, const struct cluster_look *l, struct json_object *out)
{
	for (unsigned i = 0; i < l->c->n_announced; i++)
		if (!is_needed(c, l->c, l->c->announced[i].secret))
			put_announced(out, l->c->announced[i].secret, NULL);
	if (!adopts_later(l->c))
		return;
	json_add(out, MODEL_ADOPT_BEFORE_ANNOTATION, NULL);
	k8s_events_post(c->env->events, &kobj_cluster, &l->c->obj, K8S_EVENT_WARNING,
		"AdoptBeforeIgnored", "Adopt",
		"The time in " MODEL_ADOPT_BEFORE_ANNOTATION
		" has not passed yet, so the annotation was removed: it would take over what is made until then. Set the "
		"current time: kubectl annotate trustedexecutioncluster %s " MODEL_ADOPT_BEFORE_ANNOTATION
		"=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)",
		l->c->obj.name);
}

/* ---- acts */

static struct secret *make_auth(const struct ctl_cluster *c, const struct model_cluster *cluster)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_ed25519();
	cleanup_secret struct secret *pem = pki_key_private_pem(key);
	cleanup_strbuf struct strbuf public = STRBUF_INIT;

	pki_key_public_pem(key, &public);
	return render_auth_secret(cluster, c->env->ns, pem, strbuf_str(&public));
}

static struct secret *make(struct ctl_cluster *c, const struct cluster_look *l,
	const struct cluster_own *own, struct err *err)
{
	switch (l->object) {
	case CLUSTER_SIGNER:
		return cluster_signer_make(c, l->c, own->name, err);
	case CLUSTER_REGKEY:
		return cluster_regkey_make(c, l->c, own->name);
	default:
		return make_auth(c, l->c);
	}
}

/* The hash that is to be announced: of the text that will be made, or of what is taken over. */
static const char *hash_of(struct ctl_cluster *c, const struct cluster_look *l,
	struct cluster_own *own, struct err *err)
{
	struct log_ctx lc = {"Secret", c->env->ns, own->name, NULL};

	if (cluster_own_state(c, l->c, own) == CLUSTER_OWN_OLDER) {
		log_info(&lc, "older than this operator, taken over", NULL);
		return own->hash;
	}
	if (!own->text) {
		struct secret *text = make(c, l, own, err);

		if (!text)
			return NULL;
		cluster_own_set_text(own, text);
	}
	return own->text_hash;
}

/*
 * What is announced beside it: what may still be on its way. Nothing is once one of them was seen
 * to be there: whoever deletes a Secret because somebody knows it does not want to see it again.
 */
static const char *announced_before(const struct ctl_cluster *c,
	const struct model_cluster *cluster, const struct cluster_own *own)
{
	if (cluster_own_state(c, cluster, own) == CLUSTER_OWN_ABSENT &&
		model_cluster_announces(cluster, own->name, own->hash))
		return NULL;
	return model_cluster_announced(cluster, own->name);
}

struct op *cluster_start_marks(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d, k8s_result_fn done, struct err *err)
{
	struct json_object *meta, *annotations = json_obj();
	cleanup_json struct json_object *o = ctl_patch_of(&l->c->obj, &meta);
	cleanup_free char *hashes = NULL, *text = NULL;
	struct cluster_own *own;
	const char *hash;

	json_add(meta, "annotations", annotations);
	if (d == CTL_CLUSTER_TIDY) {
		tidy(c, l, annotations);
	} else {
		own = cluster_own_of(c, l->object, l->number);
		hash = hash_of(c, l, own, err);
		if (!hash)
			return NULL;
		hashes = model_mark_announce(announced_before(c, l->c, own), hash);
		text = model_mark_text(l->c->obj.uid, hashes);
		put_announced(annotations, own->name, text);
	}
	return k8s_call_merge_patch(
		c->env->api, &c->acts.ops, &kobj_cluster, c->env->ns, a->name, o, done, a);
}

struct op *cluster_start_own(struct ctl_cluster *c, struct ctl_act *a, const struct cluster_look *l,
	enum ctl_cluster_do d, k8s_result_fn done)
{
	const struct cluster_own *own = cluster_own_of(c, l->object, l->number);
	const struct ctl_env *env = c->env;

	switch (d) {
	case CTL_CLUSTER_READ:
		return k8s_call_get(
			env->api, &c->acts.ops, &kobj_secret, env->ns, own->name, done, a);
	case CTL_CLUSTER_MAKE_SECRET:
		return k8s_call_create_secret(env->api, &c->acts.ops, env->ns,
			secret_new_copy(secret_peek(own->text), secret_len(own->text)), done, a);
	case CTL_CLUSTER_DELETE:
		return k8s_call_delete(env->api, &c->acts.ops, &kobj_secret, env->ns, own->name,
			state_secret(env->state, own->name)->obj.uid, done, a);
	default:
		DIE("cluster %s: act %d is not a Secret's", a->name, (int)d);
	}
}

/* ---- answers */

/* Type, members and owner as we make them. */
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

static void saw(struct cluster_own *own, const struct model_cluster *cluster, struct json_object *o)
{
	forget_read(own);
	cluster_set_rv(&own->read_rv, o);
	if (fits(own, cluster->obj.uid, o))
		(void)model_content_sha256(o, own->hash);
	if (model_cluster_announces(cluster, own->name, own->hash))
		forget_text(own);
}

static void told(struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d,
	unsigned object, const char *name)
{
	struct log_ctx lc = {"Secret", c->env->ns, name, NULL};

	if (object == CLUSTER_SIGNER)
		cluster_signer_told(c, cluster, d, name);
	else if (object == CLUSTER_REGKEY) /* it comes and goes without anybody's doing */
		log_info(&lc,
			d == CTL_CLUSTER_DELETE ? "registration key deleted"
						: "registration key made",
			NULL);
	else
		cluster_told_repaired(c, cluster, &kobj_secret, name);
}

/* The cluster the act was for may have been replaced meanwhile: then what is known was reset, and
 * only the cache learns. */
bool cluster_own_done(struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d,
	unsigned object, unsigned number, const struct err *err, const struct k8s_result *r)
{
	struct cluster_own *own = cluster_own_of(c, object, number);
	bool ours = cluster && str_eq(cluster->uid, c->known_uid);

	if (err_is_set(err))
		return cluster_object_failed(
			c, &own->must_read, &kobj_secret, own->name, d, err, r);
	c->problem[0] = '\0';
	own->must_read = false;
	if (ours && d != CTL_CLUSTER_READ)
		told(c, cluster, d, object, own->name);
	if (d == CTL_CLUSTER_DELETE) {
		json_wipe(json_get_obj(r->object, "data"));
		return true;
	}
	if (ours)
		saw(own, model_cluster(cluster), r->object);
	if (ours && object == CLUSTER_SIGNER)
		cluster_signer_saw(c, number, r->object);
	if (ours && object == CLUSTER_REGKEY && number == CLUSTER_REGKEY_TO_COPY)
		cluster_regkey_copy(c, model_cluster(cluster), r->object);
	ctl_take_answer(c->env->state->secrets, r->object, true);
	return true;
}
