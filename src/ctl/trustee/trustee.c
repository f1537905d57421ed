/* SPDX-License-Identifier: MIT */
/*
 * The controller of Trustee servers: the steps of one server and of the memory. A step changes the
 * transport of its server and never the list (list.c), except to drop a server that is no longer
 * wanted. A server that the cluster object does not own is written to memory before it gets a
 * transport, and removed from memory after it left the list.
 */
#include "config.h"

#include "trustee_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/pod.h"
#include "tec/model/content.h"

#define MEMBER_MAX 65536 /* bytes of base64 in one member of a Secret */
#define LEAVING_MS 2000  /* polling interval until an unwanted server holds none of our keys */

/* Decide whether the admin key may be used: for the cluster's own Trustee only the one that this
 * operator announced. The last verdict stays when the cluster object is deleted before its
 * Trustee. */
static void judge_admin(const struct model_cluster *served, struct trustee_server *s)
{
	if (!s->desc.owned)
		s->admin_ours = true;
	else if (served && s->wanted)
		s->admin_ours =
			model_cluster_announces(served, s->desc.admin_secret, s->admin.content);
}

/* Close the connection; the reason appears in condition TrusteeSynced. */
static void tell(struct trustee_server *s, const char *why)
{
	free(steal_ptr(&s->connected_as));
	free(s->reason);
	s->reason = xstrdup(why);
	kbs_push_set_transport(s->push, NULL, why);
}

/* No request is made here: the push talks to the server and reports how that ends. */
static void connect_to(struct ctl_trustee *c, struct trustee_server *s, struct trustee_look *l)
{
	const struct ctl_kbs_place place = {.url = l->place.url,
		.connect_to = l->place.connect_to,
		.ca = s->ca.value,
		.admin = s->admin.value,
		.in_process = trustee_desc_is_here(c->env, &s->desc)};
	struct err err = ERR_INIT;
	struct kbs_transport *t = c->env->kbs_connect(c->env->kbs_connect_arg, &place, &err);

	if (t) {
		free(steal_ptr(&s->reason));
		kbs_push_set_transport(s->push, t, NULL);
	} else {
		log_err(LOG_WARN, NULL, "Trustee cannot be administered", &err);
		tell(s, err.text);
	}
	/* Also after a failure: it is not retried until an input changes. */
	free(s->connected_as);
	s->connected_as = steal_ptr(&l->as);
}

/* ---- acts */

/* Take one member from the answer and wipe all members there. */
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

/* Both Secrets of a server end here; only the member that is needed is kept. */
static void on_read(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_trustee *c = a->table->self;
	struct trustee_server *s = trustee_list_find(c, a->name);
	bool admin = a->doing == CTL_TRUSTEE_READ_ADMIN;

	if (s && !err_is_set(err))
		take_member(
			admin ? &s->admin : &s->ca, r->object, admin ? "private.key" : "ca.crt");
	/* NOT_FOUND: deleted in the meantime, which the cache will show. */
	ctl_act_end(a, err->kind == ERR_NOT_FOUND ? &(const struct err)ERR_INIT : err);
}

/* Most acts change memory only and complete at once; reading a Secret is the only request. */
static struct queue_next step_server(struct ctl_trustee *c, struct trustee_server *s)
{
	struct trustee_look l = {.why = STRBUF_INIT};
	struct queue_next next = ctl_settled();
	enum ctl_trustee_do d;
	struct ctl_act *a;

	judge_admin(state_cluster(c->env->state), s);
	trustee_view_look(c, s, &l);
	d = ctl_trustee_decide(&l.v);
	switch (d) {
	case CTL_TRUSTEE_READ_ADMIN:
	case CTL_TRUSTEE_READ_CA:
		a = ctl_act_get(&c->acts, s->name);
		next = ctl_act_begin(a, (int)d, 0) ? ctl_in_flight() : ctl_retry(0, "no-effect");
		if (next.verdict != QUEUE_IN_FLIGHT)
			break;
		op_hold(&a->op, k8s_call_get(c->env->api, &c->acts.ops, &kobj_secret, c->env->ns,
					d == CTL_TRUSTEE_READ_ADMIN ? s->desc.admin_secret
								    : s->desc.ca_secret,
					on_read, a));
		break;
	case CTL_TRUSTEE_CONNECT:
		connect_to(c, s, &l);
		break;
	case CTL_TRUSTEE_DISCONNECT:
		tell(s, strbuf_str(&l.why));
		break;
	case CTL_TRUSTEE_DROP:
		if (!s->desc.owned)
			trustee_list_tell_left(c, s->name);
		ctl_runner_forget(c->runner, s->name);
		trustee_list_drop(c, s);
		ctl_runner_wake(c->runner, STATE_TRUSTEE_MEMORY);
		break;
	default:
		break;
	}
	trustee_view_fini(&l);
	if (d != CTL_TRUSTEE_DROP && next.verdict == QUEUE_SETTLED && !s->wanted)
		/* poll until it holds none of our keys */
		next = ctl_retry(LEAVING_MS, "leaving");
	return next;
}

/* The list is updated afterwards, because memory may name further servers. */
static void on_memory(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_trustee *c = a->table->self;
	struct err none = ERR_INIT;
	bool fine = trustee_memory_done(c, (enum ctl_trustee_do)a->doing, err, r);

	ctl_act_end(a, fine ? &none : err);
	trustee_list_update_soon(c);
}

/* Reading comes first, so that servers of an earlier run are not overwritten. */
static struct queue_next step_memory(struct ctl_trustee *c)
{
	const struct kobj *o = k8s_cache_find(c->env->state->configmaps, STATE_TRUSTEE_MEMORY);
	struct ctl_trustee_memory_view v;
	enum ctl_trustee_do d;
	struct ctl_act *a;

	trustee_memory_look(c, &v);
	d = ctl_trustee_decide_memory(&v);
	if (d == CTL_TRUSTEE_NOTHING || c->adopt) { /* the update of the list wakes this key */
		ctl_act_drop(ctl_act_find(&c->acts, STATE_TRUSTEE_MEMORY));
		return ctl_settled();
	}
	a = ctl_act_get(&c->acts, STATE_TRUSTEE_MEMORY);
	if (!ctl_act_begin(a, (int)d, ctl_version(o)))
		return ctl_retry(0, "no-effect");
	op_hold(&a->op, trustee_memory_start(c, d, on_memory, a));
	return ctl_in_flight();
}

/* Keys are names of servers, and the name of the memory. */
static struct queue_next step(void *self, const struct kobj_key *key)
{
	struct ctl_trustee *c = self;
	struct trustee_server *s = trustee_list_find(c, key->name);
	struct queue_next next = ctl_settled();

	if (ctl_act_busy(ctl_act_find(&c->acts, key->name), &next))
		return next;
	if (str_eq(key->name, STATE_TRUSTEE_MEMORY))
		return step_memory(c);
	if (s)
		next = step_server(c, s);
	if (next.verdict == QUEUE_SETTLED)
		ctl_act_drop(ctl_act_find(&c->acts, key->name));
	return next;
}

/* ---- which servers a change concerns */

/* Many objects change at once after a start; the update is deferred to the next turn and runs
 * once. */
static void map_any(void *self, const struct kobj *was, const struct kobj *now)
{
	trustee_list_update_soon(self);
}

/* Wake the servers that are reached with this Secret. */
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
	if (trustee_desc_is_service(was ? was->name : now->name))
		trustee_list_update_soon(self);
}

/* The own Trustee may hold keys as long as its Deployment exists. */
static void map_deployment(void *self, const struct kobj *was, const struct kobj *now)
{
	if (!was || !now)
		trustee_list_update_soon(self);
}

/* Ask Trustee again what it holds: a new Pod or container serves now, and may have lost
 * everything. */
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
	c->runner = ctl_acts_init(&c->acts, env, "trustee", step, c);
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
	trustee_list_update(c); /* before any controller needs to know what Trustee may hold */
	ctl_runner_on(c->runner);
	trustee_list_update(c); /* again, now that the runner accepts keys */
}

/* Every push is freed, which drops its transport and the keys in it. */
void ctl_trustee_off(struct ctl_trustee *c)
{
	c->on = c->has_policies = false;
	ctl_runner_off(c->runner);
	defer_cancel(&c->look);
	ctl_acts_clear(&c->acts);
	while (c->servers)
		trustee_list_drop(c, c->servers);
	trustee_memory_set(c, NULL, NULL);
	c->memory_known = false;
	/* Keys leave memory with the leadership; what Trustee holds is unknown from now on. */
	kbs_sync_reset(c->env->state->sync);
}

/* Ends waiting for confirmations; see kbs/push.h. */
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
