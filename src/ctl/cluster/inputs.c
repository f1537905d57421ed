/* SPDX-License-Identifier: MIT */
/*
 * The inputs of Trustee's Deployment and config besides spec: the content of trusteeSecret and the
 * token signers. Each Secret is read once per resourceVersion; only hashes and an expiry date of
 * its data are kept. All inputs are known before any object is compared. An input that becomes
 * unavailable keeps its last value, so that neither a restart of the operator nor a Secret that is
 * missing for a moment restarts Trustee.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"
#include "tec/pki/key.h"

#define MEMBER_MAX 65536 /* bytes of base64 in one member of a Secret */
#define HASH_LEN   ((CLUSTER_HASH_SIZE - 1) / 2)

struct render_trustee_inputs cluster_inputs(const struct ctl_cluster *c)
{
	return (struct render_trustee_inputs){.tls_hash = c->inputs.tls_hash,
		.signers = c->inputs.plan.use,
		.n_signers = c->inputs.plan.n_use};
}

/* ---- the list of signers */

static struct cluster_signer *signer_find(const struct ctl_cluster *c, unsigned number)
{
	for (struct cluster_signer *s = c->inputs.signers; s; s = s->next)
		if (s->number == number)
			return s;
	return NULL;
}

/* Find the entry of a signer, or add one: an entry exists for each Secret of such a name, and
 * for a signer that is about to be created. */
struct cluster_signer *cluster_inputs_signer(struct ctl_cluster *c, unsigned number)
{
	struct cluster_signer *s = signer_find(c, number);

	if (s)
		return s;
	s = xcalloc(1, sizeof(*s));
	s->number = number;
	render_token_name(number, s->name);
	ctl_own_init(&s->own, c->env, &cluster_own_signer, c, s->name);
	s->next = c->inputs.signers;
	return c->inputs.signers = s;
}

static bool is_planned(const struct ctl_cluster *c, const char *name)
{
	return c->inputs.plan.what == RENDER_TOKEN_MAKE && str_eq(c->inputs.plan.name, name);
}

/* must_read: a create may have reached the API although the cache shows nothing. */
bool cluster_inputs_want_signer(const struct ctl_cluster *c, const char *name)
{
	const struct cluster_signer *s = signer_find(c, render_token_number(name));

	return is_planned(c, name) || (s && s->own.must_read);
}

/* ---- the plan */

/* Plan the signers from those whose Secret this operator announced. Which ones the Deployment
 * mounts counts too: a signer that some Pod may still use is not dropped. */
static void replan(struct ctl_cluster *c, const struct model_cluster *cluster)
{
	cleanup_free struct render_token_signer *list = NULL;
	struct cluster_inputs *in = &c->inputs;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	int64_t now_s = clock_wall_s();
	unsigned n = 0, max = 0;

	for (const struct cluster_signer *s = in->signers; s; s = s->next)
		max++;
	list = xcalloc(max + 1, sizeof(*list));
	for (const struct cluster_signer *s = in->signers; s; s = s->next) {
		cleanup_free char *line = xasprintf("\n%s\n", s->name);

		if (ctl_own_state(&s->own, &cluster->obj) != CTL_OWN_GOOD)
			continue;
		list[n++] = (struct render_token_signer){.name = s->name,
			.created_s = caches_secret(c->env->caches, s->name)->obj.created_s,
			.not_after_s = s->not_before_s > now_s ? 0 : s->not_after_s,
			.hash = s->hash[0] ? s->hash : NULL,
			.mounted = in->mounted && strstr(in->mounted, line)};
	}
	render_token_plan(now_s, list, n, &in->plan);
	/* Compare the objects again that depend on the inputs, if the inputs differ from those that
	 * were rendered last. */
	strbuf_adds(&text, in->tls_hash ? in->tls_hash : "-");
	for (unsigned i = 0; i < in->plan.n_use; i++)
		strbuf_addf(&text, " %s:%s", in->plan.use[i].name,
			in->plan.use[i].hash ? in->plan.use[i].hash : "-");
	if (str_eq(in->rendered_as, strbuf_str(&text)))
		return;
	in->moved = in->moved || in->rendered_as;
	free(in->rendered_as);
	in->rendered_as = strbuf_steal(&text);
	ctl_install_forget(&c->install, CLUSTER_FROM_INPUTS);
}

/* ---- what must be read */

/* Return the name of an input that cannot be read, which blocks the plan, or NULL. */
static const char *unreadable_input(const struct ctl_cluster *c, const char *tls)
{
	const struct kobj *o = tls ? k8s_cache_find(c->env->caches->secrets, tls) : NULL;

	if (o && o->unreadable)
		return tls;
	for (const struct cluster_signer *s = c->inputs.signers; s; s = s->next)
		if ((o = k8s_cache_find(c->env->caches->secrets, s->name)) && o->unreadable)
			return s->name;
	o = k8s_cache_find(c->env->caches->deployments, CLUSTER_DEPLOYMENT);
	return o && o->unreadable ? CLUSTER_DEPLOYMENT : NULL;
}

/* Return the Deployment, or NULL if there is none or another owner has it. */
static const struct kobj *deployment_of(const struct ctl_cluster *c, const char *cluster_uid)
{
	const struct model_plain *d =
		(const struct model_plain *)ctl_install_find(&c->install, CLUSTER_TRUSTEE);

	return d && (!d->owner_uid || str_eq(d->owner_uid, cluster_uid)) ? &d->obj : NULL;
}

/* Choose the next read, one per step, until every input is known in its current version. Reads
 * of Secrets come first; that of the Deployment is compared with them. */
bool cluster_inputs_look(const struct ctl_cluster *c, struct cluster_look *l)
{
	const char *name = l->c->trustee_secret;
	const struct model_secret *tls = name ? caches_secret(c->env->caches, name) : NULL;
	cleanup_free char *now = tls ? xasprintf("%s %s", name, tls->obj.rv) : NULL;
	const struct kobj *d;

	l->unreadable = unreadable_input(c, name);
	if (l->unreadable)
		return false;
	if (now && !str_eq(now, c->inputs.tls_read))
		cluster_want(l, CTL_CLUSTER_READ, CLUSTER_TLS, 0);
	for (const struct cluster_signer *s = c->inputs.signers; s; s = s->next)
		cluster_own_look(c, l, &s->own, CLUSTER_SIGNER, s->number, false);
	/* Last, because its answer is compared with a rendering of all other inputs. */
	d = deployment_of(c, l->c->obj.uid);
	if (d && !str_eq(c->inputs.deployment_rv, d->rv))
		cluster_want(l, CTL_CLUSTER_READ, CLUSTER_TRUSTEE, 0);
	return !l->v.todo;
}

/* Create or delete the signer that the plan names, and run again when the next one is due. A
 * signer is deleted only if its deletion is not already in progress. */
void cluster_inputs_look_plan(const struct ctl_cluster *c, struct cluster_look *l)
{
	const struct render_token_plan *p = &c->inputs.plan;
	const struct model_secret *o = caches_secret(c->env->caches, p->name);
	unsigned number = render_token_number(p->name);
	cluster_recheck_at(l, p->again_s);
	if (p->what == RENDER_TOKEN_MAKE)
		cluster_own_look(c, l, &signer_find(c, number)->own, CLUSTER_SIGNER, number, true);
	else if (p->what == RENDER_TOKEN_DROP && o && !o->obj.deleting)
		cluster_want(l, CTL_CLUSTER_DELETE, CLUSTER_SIGNER, number);
}

/* Drop signers that no longer exist and plan again, unless an input has to be read first: a plan
 * from partial knowledge would restart Trustee twice. */
void cluster_inputs_refresh(struct ctl_cluster *c, const struct model_cluster *cluster)
{
	struct cluster_signer **pp = &c->inputs.signers, *s;
	struct cluster_look l = {.c = cluster};

	/* Without a Deployment nothing is mounted, so every unused signer may be dropped. */
	if (!deployment_of(c, cluster->obj.uid)) {
		free(steal_ptr(&c->inputs.deployment_rv));
		free(steal_ptr(&c->inputs.mounted));
	}
	if (!cluster_inputs_look(c, &l))
		return;
	/* Signers whose Secret and announcement are gone. The plan borrows from them, so it is made
	 * again right after. */
	while ((s = *pp)) {
		if (s->own.must_read || caches_secret(c->env->caches, s->name) ||
			is_planned(c, s->name) || model_cluster_announced(cluster, s->name)) {
			pp = &s->next;
			continue;
		}
		*pp = s->next;
		ctl_own_reset(&s->own);
		free(s);
	}
	replan(c, cluster);
	if (c->inputs.plan.what == RENDER_TOKEN_MAKE)
		(void)cluster_inputs_signer(c, render_token_number(c->inputs.plan.name));
}

/* ---- acts and answers */

/* The version is noted at the start, because a refused read has no answer that carries it. */
struct op *cluster_inputs_start_tls(
	struct ctl_cluster *c, const struct cluster_look *l, k8s_result_fn done, void *arg)
{
	const struct ctl_env *env = c->env;
	const char *tls = l->c->trustee_secret;

	free(c->inputs.tls_asked);
	c->inputs.tls_asked = xasprintf("%s %s", tls, caches_secret(env->caches, tls)->obj.rv);
	return k8s_call_get(env->api, &c->acts.ops, &kobj_secret, env->ns, tls, done, arg);
}

/* Hash a member in its base64 form. */
static void add_member(struct bytes_sha256_run *run, struct json_object *data, const char *member)
{
	struct json_object *v = NULL;
	bool there = data && json_object_object_get_ex(data, member, &v) &&
		     json_object_is_type(v, json_type_string);

	bytes_sha256_add_framed(run, there ? json_object_get_string(v) : NULL,
		there ? (size_t)json_object_get_string_len(v) : 0);
}

/* Take the certificate of trusteeSecret. One that a server cannot use (cert-manager writes the key
 * first) is not given to Trustee, which would not start with it; the last usable one stays in use.
 * The data is wiped. */
static void take_tls(struct cluster_inputs *in, struct json_object *o)
{
	cleanup_sha256 struct bytes_sha256_run run;
	struct json_object *data = json_get_obj(o, "data");
	cleanup_kobj const struct kobj *secret = NULL;
	struct err ignored = ERR_INIT; /* an answer without metadata */
	char hash[CLUSTER_HASH_SIZE];
	uint8_t digest[SHA256_LEN];

	bytes_sha256_init(&run);
	add_member(&run, data, "tls.crt");
	add_member(&run, data, "tls.key");
	add_member(&run, data, "ca.crt");
	bytes_sha256_end(&run, digest);
	free(in->tls_read);
	in->tls_read = xasprintf("%s %s", json_get_str(o, "metadata/name"),
		json_get_str(o, "metadata/resourceVersion"));
	in->tls_denied = false;
	secret = model_secret_extract(o, &ignored);
	if (!secret || !model_secret(secret)->tls_crt ||
		model_secret(secret)->tls_fault != PKI_PAIR_OK)
		return;
	bytes_to_hex(digest, HASH_LEN, hash);
	free(in->tls_hash);
	in->tls_hash = xstrdup(hash);
}

/* A certificate that cannot be parsed gets no expiry date, and the plan replaces it; only the
 * hash of its text is needed for the template. */
void cluster_inputs_saw_signer(struct cluster_signer *s, struct json_object *o)
{
	struct json_object *data = json_get_obj(o, "data"), *v = NULL;
	cleanup_free uint8_t *pem = NULL;
	struct err ignored = ERR_INIT; /* the plan replaces an unreadable one */
	uint8_t digest[SHA256_LEN];
	size_t len = 0;

	s->hash[0] = '\0';
	s->not_after_s = 0;
	if (!s->own.hash[0])
		return; /* it may lack the member */
	json_object_object_get_ex(data, CLUSTER_CERT, &v);
	if (json_object_get_string_len(v) > MEMBER_MAX ||
		bytes_from_b64(json_object_get_string(v), (size_t)json_object_get_string_len(v),
			&pem, &len) < 0)
		return;
	bytes_sha256(pem, len, digest);
	bytes_to_hex(digest, HASH_LEN, s->hash);
	if (pki_cert_not_after((const char *)pem, len, &s->not_after_s, &ignored) < 0 ||
		pki_cert_not_before((const char *)pem, len, &s->not_before_s, &ignored) < 0)
		s->not_after_s = 0;
}

/* Learn which signers are mounted. After a start of the operator the TLS hash comes from here,
 * too: trusteeSecret may be gone, and must not cause a restart. */
void cluster_inputs_saw_deployment(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *o)
{
	struct json_object *volumes = json_get_arr(o, "spec/template/spec/volumes");
	struct cluster_inputs *in = &c->inputs;
	cleanup_strbuf struct strbuf names = STRBUF_INIT;

	strbuf_addc(&names, '\n');
	for (size_t i = 0; i < json_len(volumes); i++) {
		const char *name = json_get_str(json_at(volumes, i), "secret/secretName");

		if (render_token_number(name))
			strbuf_addf(&names, "%s\n", name);
	}
	free(in->mounted);
	in->mounted = strbuf_steal(&names);
	free(in->deployment_rv);
	in->deployment_rv = xstrdup(json_get_str(o, "metadata/resourceVersion"));
	if (!in->tls_hash) /* written by an earlier run of the operator */
		in->tls_hash = xstrdup(render_trustee_tls_hash(o));
	replan(c, cluster);
}

/* A refused read is final for this version of the Secret; other failures are retried. */
bool cluster_inputs_tls_done(struct ctl_cluster *c, const struct kobj *cluster,
	const struct err *err, const struct k8s_result *r)
{
	if (err_is_set(err)) {
		/* A Secret that we may not read counts as missing. */
		if (err->kind != ERR_DENIED && err->kind != ERR_INVALID)
			return err->kind == ERR_NOT_FOUND;
		log_err(LOG_WARN, NULL, "Trustee's certificate cannot be read", err);
		free(c->inputs.tls_read);
		c->inputs.tls_read = steal_ptr(&c->inputs.tls_asked);
		c->inputs.tls_denied = true;
		return true;
	}
	if (cluster && str_eq(cluster->uid, c->install.owner_uid))
		take_tls(&c->inputs, r->object);
	json_wipe(json_get_obj(r->object, "data"));
	ctl_take_answer(c->env->caches->secrets, r->object, true);
	return true;
}

/* ---- life */

/* For another cluster object. Signers stay in the list, but nothing is known about them. */
void cluster_inputs_reset(struct ctl_cluster *c)
{
	struct cluster_inputs *in = &c->inputs;

	for (struct cluster_signer *s = in->signers; s; s = s->next) {
		ctl_own_reset(&s->own);
		s->hash[0] = '\0';
	}
	free(steal_ptr(&in->deployment_rv));
	free(steal_ptr(&in->mounted));
	free(steal_ptr(&in->tls_hash));
	free(steal_ptr(&in->tls_read));
	free(steal_ptr(&in->tls_asked));
	free(steal_ptr(&in->rendered_as));
	in->tls_denied = in->moved = false;
	in->plan = (struct render_token_plan){.n_use = 0};
}

/* Unlike a reset, which keeps the list of Secrets because no event would bring it back. */
void cluster_inputs_fini(struct ctl_cluster *c)
{
	cluster_inputs_reset(c);
	while (c->inputs.signers) {
		struct cluster_signer *s = c->inputs.signers;

		c->inputs.signers = s->next;
		free(s);
	}
}
