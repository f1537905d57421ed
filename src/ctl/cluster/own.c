/* SPDX-License-Identifier: MIT */
/*
 * The Secrets that the operator creates for a cluster (ctl/own.h): how each is rendered, and what a
 * look at one leads to.
 */
#include "config.h"

#include "cluster_internal.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/ctl/record.h"
#include "tec/pki/cert.h"
#include "tec/pki/key.h"
#include "tec/render/regkey.h"

static const char *announced(const struct kobj *owner, const char *secret)
{
	return model_cluster_announced(model_cluster(owner), secret);
}

/* The key pair of Trustee's admin API: Trustee mounts the public half. */
static struct secret *make_auth(
	void *self, const struct kobj *owner, const char *name, struct err *err)
{
	const struct ctl_cluster *c = self;
	cleanup_pki_key struct pki_key *key = pki_key_new_ed25519();
	cleanup_secret struct secret *pem = pki_key_private_pem(key);
	cleanup_strbuf struct strbuf public = STRBUF_INIT;

	pki_key_public_pem(key, &public);
	return render_auth_secret(model_cluster(owner), c->env->ns, pem, strbuf_str(&public));
}

/* The key and self-signed certificate of attestation tokens; render/token.h plans their
 * rotation. */
static struct secret *make_signer(
	void *self, const struct kobj *owner, const char *name, struct err *err)
{
	const struct ctl_cluster *c = self;
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_secret struct secret *pem = pki_key_private_pem(key);
	cleanup_strbuf struct strbuf cert = STRBUF_INIT;

	if (pki_cert_self_signed(
		    key, "trustee-token", clock_wall_s(), RENDER_TOKEN_LIFE_DAYS, &cert, err) < 0)
		return NULL;
	return render_token_secret(model_cluster(owner), c->env->ns, name, pem, strbuf_str(&cert));
}

/* The secret that signs the IDs of nodes which registered but have no Machine yet
 * (rats/ticket.h). */
static struct secret *make_regkey(
	void *self, const struct kobj *owner, const char *name, struct err *err)
{
	const struct ctl_cluster *c = self;
	cleanup_secret struct secret *key = secret_new_random(RENDER_REGKEY_LEN);

	return render_regkey_secret(model_cluster(owner), c->env->ns, name, key);
}

const struct ctl_own_conf cluster_own_auth = {announced, make_auth, {"private.key", "public.pub"}};
const struct ctl_own_conf cluster_own_signer = {announced, make_signer, {"key.pem", CLUSTER_CERT}};
const struct ctl_own_conf cluster_own_regkey = {announced, make_regkey, {RENDER_REGKEY_MEMBER}};

/* Only the first conflict is kept for the condition. A Secret of another owner is a conflict
 * only if this operator needs the name. */
bool cluster_own_look(const struct ctl_cluster *c, struct cluster_look *l,
	const struct ctl_own *own, unsigned object, unsigned number, bool wanted)
{
	enum ctl_own_state state = ctl_own_state(own, &l->c->obj);
	const struct model_secret *o = caches_secret(c->env->caches, own->name);
	enum ctl_own_do d;

	if (o && o->obj.deleting && object != CLUSTER_SIGNER) {
		l->waits = own->name; /* a signer may be deleted while it is still mounted */
		return false;
	}
	d = ctl_own_decide(state, wanted, ctl_own_text_announced(own, &l->c->obj));
	cluster_want(l, d == CTL_OWN_ANNOUNCE ? CTL_CLUSTER_ANNOUNCE : (enum ctl_cluster_do)d,
		object, number);
	if (!l->conflict && (state == CTL_OWN_PLANTED || (state == CTL_OWN_FOREIGN && wanted))) {
		l->conflict = own->name;
		l->conflict_own = true;
	}
	return state == CTL_OWN_GOOD;
}

/* ---- the registration key
 *
 * It exists while spec.registration.machine is AtKey and is rotated in the steps of render/regkey.h;
 * the operator may be killed after any of them. The key itself is in memory only between its creation
 * and its POST, and while it is copied. */

bool cluster_regkey_is_name(const char *secret)
{
	return str_eq(secret, RENDER_REGKEY_CURRENT) || str_eq(secret, RENDER_REGKEY_PREVIOUS);
}

static bool is_at_key(const struct model_cluster *cluster)
{
	return cluster->reg_machine == MODEL_REG_AT_KEY;
}

/* must_read: a create may have reached the API, so the announcement must stay. */
bool cluster_regkey_wanted(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name)
{
	const struct ctl_own *own = &c->regkey[str_eq(name, RENDER_REGKEY_PREVIOUS)];

	return own->must_read ||
	       (is_at_key(cluster) && (own->text || str_eq(name, RENDER_REGKEY_CURRENT)));
}

/* Without AtKey only an announced key matters; any other Secret of that name belongs to someone
 * else. */
static bool is_looked_at(const struct model_cluster *cluster, const struct ctl_own *own)
{
	return is_at_key(cluster) || model_cluster_announced(cluster, own->name);
}

static void want(
	const struct ctl_cluster *c, struct cluster_look *l, enum cluster_regkey which, bool wanted)
{
	cluster_own_look(c, l, &c->regkey[which], CLUSTER_REGKEY, which, wanted);
}

/* Return true if both keys are known well enough to plan the rotation. */
static bool look_at_both(const struct ctl_cluster *c, struct cluster_look *l)
{
	for (int i = 0; i < CLUSTER_N_REGKEYS; i++)
		if (is_looked_at(l->c, &c->regkey[i]))
			want(c, l, (enum cluster_regkey)i, false);
	return !l->v.todo;
}

/* Describe the two keys to the planner. A key that this operator did not announce does not exist
 * for it. */
static void look_there(const struct ctl_cluster *c, const struct model_cluster *cluster,
	struct render_regkey there[CLUSTER_N_REGKEYS])
{
	for (int i = 0; i < CLUSTER_N_REGKEYS; i++) {
		const struct ctl_own *own = &c->regkey[i];
		const struct model_secret *o = caches_secret(c->env->caches, own->name);

		there[i] = (struct render_regkey){.there = false};
		if (o && !o->obj.deleting && is_looked_at(cluster, own) &&
			ctl_own_state(own, &cluster->obj) == CTL_OWN_GOOD)
			there[i] = (struct render_regkey){
				.there = true, .created_s = o->obj.created_s, .content = own->hash};
	}
}

/* Plan the next step of the rotation. When ConfigMap tec-deleted-ids is full, the IDs of further
 * deleted Machines cannot be recorded, so both keys are deleted, which invalidates every issued
 * ID. */
static struct render_regkey_plan plan_of(
	const struct ctl_cluster *c, const struct model_cluster *cluster)
{
	struct render_regkey there[CLUSTER_N_REGKEYS];
	struct render_regkey_plan plan;
	enum render_regkey_do end;

	look_there(c, cluster, there);
	render_regkey_plan(clock_wall_s(), is_at_key(cluster), cluster->pending_ttl_ms,
		&there[CLUSTER_REGKEY_CURRENT], &there[CLUSTER_REGKEY_PREVIOUS], &plan);
	if (!ctl_record_ids_full(c->env->record))
		return plan;
	end = render_regkey_end(&there[CLUSTER_REGKEY_CURRENT], &there[CLUSTER_REGKEY_PREVIOUS]);
	if (end != RENDER_REGKEY_NOTHING)
		plan.what = end;
	return plan;
}

/* Before the look: tell ctl/record which issued IDs have ended, and drop a copied key that is no
 * longer needed, so that no key stays in memory. */
void cluster_regkey_refresh(struct ctl_cluster *c, const struct model_cluster *cluster)
{
	struct cluster_look l = {.c = cluster};
	struct ctl_own *copy = &c->regkey[CLUSTER_REGKEY_PREVIOUS];
	struct render_regkey there[CLUSTER_N_REGKEYS];

	if (!look_at_both(c, &l))
		return;
	look_there(c, cluster, there);
	/* Without a previous key, every valid ID was signed with the current one. */
	if (there[CLUSTER_REGKEY_CURRENT].there && !there[CLUSTER_REGKEY_PREVIOUS].there)
		ctl_record_end_ids(c->env->record, there[CLUSTER_REGKEY_CURRENT].created_s);
	if (!copy->text)
		return;
	if (plan_of(c, cluster).what != RENDER_REGKEY_COPY ||
		!str_eq(copy->text_hash, c->regkey[CLUSTER_REGKEY_CURRENT].hash))
		ctl_own_set_text(copy, NULL); /* of a rotation that was abandoned */
}

/* Choose the next act of the rotation. COPY takes two steps: read the current key, then create
 * the previous one from it. */
void cluster_regkey_look(const struct ctl_cluster *c, struct cluster_look *l)
{
	const struct ctl_own *copy = &c->regkey[CLUSTER_REGKEY_PREVIOUS];
	struct render_regkey_plan plan;

	if (!look_at_both(c, l))
		return;
	plan = plan_of(c, l->c);
	cluster_recheck_at(l, plan.again_s);
	switch (plan.what) {
	case RENDER_REGKEY_NOTHING:
		break;
	case RENDER_REGKEY_MAKE:
		want(c, l, CLUSTER_REGKEY_CURRENT, true);
		break;
	case RENDER_REGKEY_COPY:
		if (copy->text || caches_secret(c->env->caches, copy->name))
			want(c, l, CLUSTER_REGKEY_PREVIOUS, true);
		else
			cluster_want(l, CTL_CLUSTER_READ, CLUSTER_REGKEY, CLUSTER_REGKEY_TO_COPY);
		break;
	case RENDER_REGKEY_DROP:
		cluster_want(l, CTL_CLUSTER_DELETE, CLUSTER_REGKEY, CLUSTER_REGKEY_CURRENT);
		break;
	case RENDER_REGKEY_DROP_PREVIOUS:
		cluster_want(l, CTL_CLUSTER_DELETE, CLUSTER_REGKEY, CLUSTER_REGKEY_PREVIOUS);
		break;
	}
}

/* Render the current key as the Secret of the previous one. It is created first; only then may
 * the current one be replaced. */
void cluster_regkey_copy(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *current)
{
	struct ctl_own *own = &c->regkey[CLUSTER_REGKEY_PREVIOUS];
	cleanup_secret struct secret *key = NULL;
	struct json_object *v = NULL;

	if (ctl_own_state(&c->regkey[CLUSTER_REGKEY_CURRENT], &cluster->obj) != CTL_OWN_GOOD ||
		!json_object_object_get_ex(json_get_obj(current, "data"), RENDER_REGKEY_MEMBER, &v))
		return;
	key = secret_from_b64(json_object_get_string(v), (size_t)json_object_get_string_len(v));
	if (key)
		ctl_own_set_text(own, render_regkey_secret(cluster, c->env->ns, own->name, key));
}
