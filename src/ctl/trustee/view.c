/* SPDX-License-Identifier: MIT */
/* The look at one server, its decision (pure), and why it is not connected. Changes nothing. */
#include "config.h"

#include "trustee_internal.h"

#include "tec/base/mem.h"

/* Choose the next act. A server that cannot be used is disconnected once, with the reason. */
enum ctl_trustee_do ctl_trustee_decide(const struct ctl_trustee_view *v)
{
	bool whole = !v->refused && v->admin_there && (!v->needs_ca || v->ca_there) && v->address;

	if (!v->known)
		return CTL_TRUSTEE_NOTHING;
	if (!v->wanted)
		return CTL_TRUSTEE_DROP;
	if (v->volumes)
		return CTL_TRUSTEE_NOTHING; /* ctl/cluster mounts its files */
	if (!whole)
		return v->reported ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_DISCONNECT;
	if (!v->recorded)
		return CTL_TRUSTEE_NOTHING; /* memory is written first, and wakes this key */
	if (!v->admin_read)
		return CTL_TRUSTEE_READ_ADMIN;
	if (v->needs_ca && !v->ca_read)
		return CTL_TRUSTEE_READ_CA;
	if (!v->usable)
		return v->reported ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_DISCONNECT;
	return v->connected ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_CONNECT;
}

/* An empty memory is deleted instead of written. */
enum ctl_trustee_do ctl_trustee_decide_memory(const struct ctl_trustee_memory_view *v)
{
	if (!v->read)
		return CTL_TRUSTEE_READ_MEMORY;
	if (v->as_wanted)
		return CTL_TRUSTEE_NOTHING;
	if (!v->empty)
		return CTL_TRUSTEE_APPLY_MEMORY;
	return v->there ? CTL_TRUSTEE_DELETE_MEMORY : CTL_TRUSTEE_NOTHING;
}

/* ---- one server */

/* A Secret that is being deleted counts as missing: its content may be gone at the next read. */
static const struct kobj *secret_there(const struct ctl_env *env, const char *name)
{
	const struct kobj *o = name ? k8s_cache_find(env->state->secrets, name) : NULL;

	return o && !o->deleting ? o : NULL;
}

/* Tell whether spec.tls.caSHA256 forbids the CA of this server. */
static bool is_ca_refused(const struct ctl_env *env, const struct trustee_server *s)
{
	const struct model_cluster *served = state_cluster(env->state);
	const struct model_secret *ca =
		(const struct model_secret *)secret_there(env, s->desc.ca_secret);

	return served && ca && !trustee_desc_is_here(env, &s->desc) &&
	       model_cluster_unlisted_ca(served->ca_sha256, ca->ca_sha256);
}

/* Says which setting forbids the connection, and the two ways out: a certificate, or Allow. */
static void say_refused(
	const struct ctl_env *env, const struct trustee_server *s, struct strbuf *out)
{
	const struct model_cluster *served = state_cluster(env->state);

	if (is_ca_refused(env, s)) {
		strbuf_addf(out,
			"spec.tls.caSHA256 does not list a certificate in ca.crt of Secret %s: nothing is sent.",
			s->desc.ca_secret);
		return;
	}
	if (served && served->extended_lost)
		strbuf_adds(out, "spec lost fields, perhaps spec.trustee.plaintext");
	else
		strbuf_adds(out, "spec.trustee.plaintext is Refuse");
	if (s->desc.primary && env->kbs_url)
		strbuf_adds(out,
			" and --kbs-url is an http:// URL: nothing is sent. Start the operator with an https:// URL");
	else if (s->desc.primary)
		strbuf_adds(out,
			" and spec.trusteeSecret is not set: nothing is sent. Name a Secret with tls.crt, tls.key and ca.crt there");
	else
		strbuf_adds(out,
			" and its entry in spec.trusteeServers has no caSecret: nothing is sent. Name a Secret with ca.crt there");
	strbuf_adds(out, ", or set spec.trustee.plaintext to Allow.");
}

/* Explain why the server is not connected, in the order of decide; "" if there is no reason. */
static void say_why(
	const struct ctl_env *env, const struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_trustee_view *v = &l->v;
	struct strbuf *out = &l->why;

	if (trustee_desc_is_here(env, &s->desc))
		return;
	if (v->refused)
		say_refused(env, s, out);
	else if (!v->admin_there)
		strbuf_addf(out, "Secret %s does not exist yet.", s->desc.admin_secret);
	else if (v->needs_ca && !v->ca_there)
		strbuf_addf(out, "Secret %s does not exist yet.", s->desc.ca_secret);
	else if (!v->address && !l->place.service)
		strbuf_adds(out, "spec.publicTrusteeAddr is not set.");
	else if (!v->address)
		strbuf_addf(out, "Service %s has no cluster IP yet.", l->place.service);
	else if (!s->admin_ours)
		strbuf_addf(out,
			"Secret %s has content that this operator did not announce, so nothing is sent with it.",
			s->desc.admin_secret);
	else if (!s->admin.value)
		strbuf_addf(out, "Secret %s has no usable private.key.", s->desc.admin_secret);
	else if (v->needs_ca && !s->ca.value)
		strbuf_addf(out, "Secret %s has no usable ca.crt.", s->desc.ca_secret);
}

void trustee_view_fini(struct trustee_look *l)
{
	free(l->place.url);
	free(l->place.connect_to);
	free(l->as);
	strbuf_fini(&l->why);
}

/* Fill the view. `as` lists every input of a transport by version, so that a change of any of
 * them leads to a new connection. */
void trustee_view_look(
	const struct ctl_trustee *c, const struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_env *env = c->env;
	const struct model_cluster *served = state_cluster(env->state);
	const struct kobj *admin = secret_there(env, s->desc.admin_secret),
			  *ca = secret_there(env, s->desc.ca_secret);
	bool here = trustee_desc_is_here(env, &s->desc);
	struct ctl_trustee_view *v = &l->v;
	struct trustee_place *place = &l->place;
	struct ctl_trustee_memory_view memory;

	v->known = true;
	v->wanted = s->wanted || trustee_list_may_hold(c, s);
	trustee_memory_look(c, &memory);
	v->recorded = s->desc.owned || (memory.read && memory.as_wanted);
	v->volumes = s->desc.volumes;
	v->refused = (s->desc.https_only && trustee_desc_is_plain(env, &s->desc)) ||
		     is_ca_refused(env, s);
	v->admin_there = here || admin;
	v->admin_read = here || (admin && str_eq(s->admin.rv, admin->rv));
	v->needs_ca = !here && s->desc.ca_secret;
	v->ca_there = ca != NULL;
	v->ca_read = ca && str_eq(s->ca.rv, ca->rv);
	v->address = trustee_desc_place(env, served, s, place);
	v->usable = here || (s->admin_ours && s->admin.value && (!v->needs_ca || s->ca.value));
	l->as = xasprintf("%s %s %s %s", place->url ? place->url : "",
		place->connect_to ? place->connect_to : "", s->admin.rv ? s->admin.rv : "",
		s->ca.rv ? s->ca.rv : "");
	v->connected = str_eq(s->connected_as, l->as);
	say_why(env, s, l);
	v->reported = str_eq(s->reason, strbuf_str(&l->why)) && !s->connected_as;
}
