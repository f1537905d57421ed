/* SPDX-License-Identifier: MIT */
/*
 * One server: what is so, what follows, and the one thing that is done about it. What a step writes
 * is the server's transport, never the list (trustee_list.c), out of which it only takes what is no
 * longer wanted. A server that is not the cluster object's own is written into memory before it
 * gets a transport, and leaves memory after it has left the list.
 */
#include "config.h"

#include "trustee_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/pod.h"
#include "tec/model/content.h"

#define MEMBER_MAX 65536
#define LEAVING_MS 2000

enum ctl_trustee_do ctl_trustee_decide(const struct ctl_trustee_view *v)
{
	bool whole = !v->refused && v->admin_there && (!v->needs_ca || v->ca_there) && v->address;

	if (!v->known)
		return CTL_TRUSTEE_NOTHING;
	if (!v->wanted)
		return CTL_TRUSTEE_DROP;
	if (v->volumes)
		return CTL_TRUSTEE_NOTHING; /* its files are ctl/cluster's */
	if (!whole)
		return v->told ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_DISCONNECT;
	if (!v->recorded)
		return CTL_TRUSTEE_NOTHING; /* memory first; it wakes us */
	if (!v->admin_read)
		return CTL_TRUSTEE_READ_ADMIN;
	if (v->needs_ca && !v->ca_read)
		return CTL_TRUSTEE_READ_CA;
	if (!v->usable)
		return v->told ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_DISCONNECT;
	return v->connected ? CTL_TRUSTEE_NOTHING : CTL_TRUSTEE_CONNECT;
}

/* ---- one server */

static const struct kobj *secret_there(const struct ctl_env *env, const char *name)
{
	const struct kobj *o = name ? k8s_cache_find(env->state->secrets, name) : NULL;

	return o && !o->deleting ? o : NULL;
}

static void say_refused(
	const struct ctl_env *env, const struct trustee_server *s, struct strbuf *out)
{
	const struct model_cluster *served = state_cluster(env->state);

	if (served && served->extended_lost)
		strbuf_adds(out, "spec lost fields, spec.trustee.plaintext perhaps");
	else
		strbuf_adds(out, "spec.trustee.plaintext is Refuse");
	if (s->desc.primary && env->kbs_url)
		strbuf_adds(out,
			" and --kbs-url is a http:// URL: nothing is sent. Start the operator with an https:// URL");
	else if (s->desc.primary)
		strbuf_adds(out,
			" and no trusteeSecret is named: nothing is sent. Name a Secret with tls.crt, tls.key and ca.crt");
	else
		strbuf_adds(out,
			" and its trusteeServers entry has no caSecret: nothing is sent. Name a Secret with ca.crt");
	strbuf_adds(out, ", or set spec.trustee.plaintext to Allow.");
}

/* Why it is not connected, in the order of decide; "" when nothing stands against it. */
static void say_why(const struct ctl_env *env, const struct trustee_server *s,
	const struct ctl_trustee_view *v, struct strbuf *out)
{
	if (v->refused)
		say_refused(env, s, out);
	else if (!v->admin_there)
		strbuf_addf(out, "Secret %s does not exist yet.", s->desc.admin_secret);
	else if (v->needs_ca && !v->ca_there)
		strbuf_addf(out, "Secret %s does not exist yet.", s->desc.ca_secret);
	else if (!v->address)
		strbuf_adds(out, "Service kbs-service has no cluster IP yet.");
	else if (!s->admin_ours)
		strbuf_addf(out,
			"Secret %s is not announced as this operator's own, so nothing is sent with it.",
			s->desc.admin_secret);
	else if (!s->admin.value)
		strbuf_addf(out, "Secret %s has no usable private.key.", s->desc.admin_secret);
	else if (v->needs_ca && !s->ca.value)
		strbuf_addf(out, "Secret %s has no usable ca.crt.", s->desc.ca_secret);
}

struct trustee_look {
	struct ctl_trustee_view v;
	char *url, *connect_to, *as; /* owned */
	struct strbuf why;
};

static void look_fini(struct trustee_look *l)
{
	free(l->url);
	free(l->connect_to);
	free(l->as);
	strbuf_fini(&l->why);
}

/* A Trustee of the cluster's own takes its orders from a Secret that the operator made. What was
 * found stays when the cluster object goes before its Trustee. */
static void judge_admin(const struct model_cluster *served, struct trustee_server *s)
{
	if (!s->desc.owned)
		s->admin_ours = true;
	else if (served && s->wanted)
		s->admin_ours =
			model_cluster_announces(served, s->desc.admin_secret, s->admin.content);
}

static void look(const struct ctl_trustee *c, struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_env *env = c->env;
	const struct model_cluster *served = state_cluster(env->state);
	const struct kobj *admin = secret_there(env, s->desc.admin_secret),
			  *ca = secret_there(env, s->desc.ca_secret);
	struct ctl_trustee_view *v = &l->v;

	judge_admin(served, s);
	v->known = true;
	v->wanted = s->wanted || trustee_may_still_hold(c, s);
	v->recorded = s->desc.owned || (trustee_memory_is_read(c) && trustee_memory_is_right(c));
	v->volumes = s->desc.volumes;
	v->refused = s->desc.https_only && trustee_is_plain(env, &s->desc);
	v->admin_there = admin != NULL;
	v->admin_read = admin && str_eq(s->admin.rv, admin->rv);
	v->needs_ca = s->desc.ca_secret != NULL;
	v->ca_there = ca != NULL;
	v->ca_read = ca && str_eq(s->ca.rv, ca->rv);
	v->address = trustee_place(env, served, s, &l->url, &l->connect_to);
	v->usable = s->admin_ours && s->admin.value && (!v->needs_ca || s->ca.value);
	l->as = xasprintf("%s %s %s %s", l->url ? l->url : "", l->connect_to ? l->connect_to : "",
		s->admin.rv ? s->admin.rv : "", s->ca.rv ? s->ca.rv : "");
	v->connected = str_eq(s->connected_as, l->as);
	say_why(env, s, v, &l->why);
	v->told = str_eq(s->told, strbuf_str(&l->why)) && !s->connected_as;
}

static void tell(struct trustee_server *s, const char *why)
{
	free(steal_ptr(&s->connected_as));
	free(s->told);
	s->told = xstrdup(why);
	kbs_push_set_transport(s->push, NULL, why);
}

static void connect_to(struct ctl_trustee *c, struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_kbs_place place = {.url = l->url,
		.connect_to = l->connect_to,
		.ca = s->ca.value,
		.admin = s->admin.value};
	struct err err = ERR_INIT;
	struct kbs_transport *t = c->env->kbs_connect(c->env->kbs_connect_arg, &place, &err);

	if (t) {
		free(steal_ptr(&s->told));
		kbs_push_set_transport(s->push, t, NULL);
	} else {
		log_err(LOG_WARN, NULL, "Trustee cannot be administered", &err);
		tell(s, err.text);
	}
	/* Not tried again before something changes. */
	free(s->connected_as);
	s->connected_as = steal_ptr(&l->as);
}

/* ---- acts */

/* Takes a member out of a Secret's answer and wipes the answer. */
static void take_member(struct trustee_bytes *b, struct json_object *o, const char *member)
{
	struct json_object *data = json_get_obj(o, "data"), *v = NULL;

	trustee_bytes_fini(b);
	b->rv = xstrdup(json_get_str(o, "metadata/resourceVersion"));
	(void)model_content_sha256(o, b->content);
	if (data && json_object_object_get_ex(data, member, &v) &&
		json_object_is_type(v, json_type_string) &&
		json_object_get_string_len(v) <= MEMBER_MAX)
		b->value = secret_from_b64(
			json_object_get_string(v), (size_t)json_object_get_string_len(v));
	json_wipe(data);
}

static void on_read(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_trustee *c = a->table->self;
	struct trustee_server *s = trustee_find(c, a->name);
	bool admin = a->doing == CTL_TRUSTEE_READ_ADMIN;

	if (s && !err_is_set(err))
		take_member(
			admin ? &s->admin : &s->ca, r->object, admin ? "private.key" : "ca.crt");
	/* Gone meanwhile: the cache will say so. */
	ctl_act_end(a, err->kind == ERR_NOT_FOUND ? &(const struct err)ERR_INIT : err);
}

static struct queue_next start_read(
	struct ctl_trustee *c, const struct trustee_server *s, enum ctl_trustee_do d)
{
	struct ctl_act *a = ctl_act_get(&c->acts, s->name);
	const char *secret = d == CTL_TRUSTEE_READ_ADMIN ? s->desc.admin_secret : s->desc.ca_secret;

	if (!ctl_act_begin(a, (int)d))
		return ctl_retry(0, "an act had no visible effect yet");
	op_hold(&a->op, k8s_call_get(c->env->api, &c->acts.ops, &kobj_secret, c->env->ns, secret,
				on_read, a));
	return ctl_in_flight();
}

static struct queue_next step_server(struct ctl_trustee *c, struct trustee_server *s)
{
	struct trustee_look l = {.why = STRBUF_INIT};
	struct queue_next next = ctl_settled();
	enum ctl_trustee_do d;

	look(c, s, &l);
	d = ctl_trustee_decide(&l.v);
	switch (d) {
	case CTL_TRUSTEE_READ_ADMIN:
	case CTL_TRUSTEE_READ_CA:
		next = start_read(c, s, d);
		break;
	case CTL_TRUSTEE_CONNECT:
		connect_to(c, s, &l);
		break;
	case CTL_TRUSTEE_DISCONNECT:
		tell(s, strbuf_str(&l.why));
		break;
	case CTL_TRUSTEE_DROP:
		if (!s->desc.owned)
			trustee_tell_left(c, s->name);
		ctl_runner_forget(c->runner, s->name);
		trustee_drop(c, s);
		ctl_runner_wake(c->runner, STATE_TRUSTEE_MEMORY);
		break;
	default:
		break;
	}
	look_fini(&l);
	if (d != CTL_TRUSTEE_DROP && next.verdict == QUEUE_SETTLED && !s->wanted)
		/* until it holds nothing of ours any more */
		next = ctl_retry(LEAVING_MS, "it may still hold something");
	return next;
}

struct queue_next ctl_trustee_step(struct ctl_trustee *c, const struct kobj_key *key)
{
	struct trustee_server *s = trustee_find(c, key->name);
	struct ctl_act *a = ctl_act_find(&c->acts, key->name);
	struct queue_next next;

	if (ctl_act_busy(a, &next))
		return next;
	if (str_eq(key->name, STATE_TRUSTEE_MEMORY))
		return trustee_step_memory(c);
	if (s)
		next = step_server(c, s);
	else
		next = ctl_settled();
	if (next.verdict == QUEUE_SETTLED)
		ctl_act_drop(ctl_act_find(&c->acts, key->name));
	return next;
}

static struct queue_next step(void *self, const struct kobj_key *key)
{
	return ctl_trustee_step(self, key);
}

/* ---- what a change concerns */

static void map_any(void *self, const struct kobj *was, const struct kobj *now)
{
	trustee_ask(self);
}

/* Of Secrets only those that a server is reached with. */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trustee *c = self;
	const char *name = was ? was->name : now->name;

	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (str_eq(s->desc.admin_secret, name) || str_eq(s->desc.ca_secret, name))
			ctl_runner_wake(c->runner, s->name);
}

static void map_configmap(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trustee *c = self;

	if (str_eq(was ? was->name : now->name, STATE_TRUSTEE_MEMORY))
		ctl_runner_wake(c->runner, STATE_TRUSTEE_MEMORY);
}

static void map_service(void *self, const struct kobj *was, const struct kobj *now)
{
	if (str_eq(was ? was->name : now->name, "kbs-service"))
		trustee_ask(self);
}

static void map_deployment(void *self, const struct kobj *was, const struct kobj *now)
{
	if (!was || !now)
		trustee_ask(self);
}

/* Another process serves from here on: it may have lost everything. */
static void map_pod(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trustee *c = self;
	const struct model_pod *a = (const struct model_pod *)was,
			       *b = (const struct model_pod *)now;

	if (!b || !str_eq(b->app, "kbs") || !b->ready)
		return;
	if (a && str_eq(was->uid, now->uid) && a->ready && a->restarts == b->restarts)
		return;
	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (s->desc.primary && s->desc.owned && s->push)
			kbs_push_probe(s->push);
}

/* ---- life */

struct ctl_trustee *ctl_trustee_new(const struct ctl_env *env)
{
	struct ctl_trustee *c = xcalloc(1, sizeof(*c));

	c->env = env;
	c->runner = ctl_runner_new(env->loop, "trustee", env->ns, step, c);
	ctl_acts_init(&c->acts, c, c->runner);
	ctl_runner_watch(c->runner, env->state->clusters, map_any);
	ctl_runner_watch(c->runner, env->state->configmaps, map_configmap);
	ctl_runner_watch(c->runner, env->state->services, map_service);
	ctl_runner_watch(c->runner, env->state->deployments, map_deployment);
	ctl_runner_watch(c->runner, env->state->pods, map_pod);
	ctl_runner_watch(c->runner, env->state->secrets, map_secret);
	return c;
}

void ctl_trustee_on(struct ctl_trustee *c)
{
	if (c->on)
		return;
	c->on = true;
	trustee_look_at_all(c); /* before any controller asks what Trustee may hold */
	ctl_runner_on(c->runner);
	trustee_look_at_all(c); /* again, with keys taken */
}

void ctl_trustee_off(struct ctl_trustee *c)
{
	c->on = c->has_policies = false;
	ctl_runner_off(c->runner);
	defer_cancel(&c->look);
	ctl_acts_clear(&c->acts);
	while (c->servers)
		trustee_drop(c, c->servers);
	trustee_memory_set(c, NULL, NULL);
	c->memory_known = false;
	/* Keys leave memory with the leadership, and what Trustee holds is unknown from here on. */
	kbs_sync_reset(c->env->state->sync);
}

void ctl_trustee_finish(struct ctl_trustee *c)
{
	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (s->push)
			kbs_push_finish(s->push);
}

bool ctl_trustee_is_finished(const struct ctl_trustee *c)
{
	for (const struct trustee_server *s = c->servers; s; s = s->next)
		if (s->push && !kbs_push_is_finished(s->push))
			return false;
	return true;
}

void ctl_trustee_free(struct ctl_trustee *c)
{
	if (!c)
		return;
	ctl_trustee_off(c);
	ctl_runner_free(c->runner);
	free(c);
}
