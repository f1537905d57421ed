/* SPDX-License-Identifier: MIT */
/*
 * The Secrets that the operator creates for a cluster (ctl/own.h): how each is rendered, and what a
 * look at one leads to.
 */
#include "config.h"

#include "cluster_internal.h"

#include "tec/base/clock.h"
#include "tec/base/mem.h"
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
	const struct model_secret *o = state_secret(c->env->state, own->name);
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
