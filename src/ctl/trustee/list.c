/* SPDX-License-Identifier: MIT */
/*
 * The list of servers, updated from spec and memory when one of them changes. A server with the
 * same name but another description is another server. A server stays in the list while its
 * Deployment exists or it may still hold keys.
 */
#include "config.h"

#include "trustee_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/render/trustee.h"
#include "tec/state/record.h"

/* How many values are sent at a time, unless spec.trustee.window is set. */
#define WINDOW_OURS   32 /* LocalFs, or the store of this process */
#define WINDOW_OTHERS 1

struct trustee_server *trustee_list_find(const struct ctl_trustee *c, const char *name)
{
	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (str_eq(s->name, name))
			return s;
	return NULL;
}

void trustee_bytes_fini(struct trustee_bytes *b)
{
	free(b->rv);
	secret_free(b->value);
	memset(b, 0, sizeof(*b));
}

/* Drop the connection and everything read for it; the server stays in the list. */
static void server_close(const struct ctl_trustee *c, struct trustee_server *s)
{
	kbs_push_free(steal_ptr(&s->push));
	if (s->is_target)
		kbs_sync_target_remove(c->env->state->sync, s->name);
	s->is_target = false;
	trustee_bytes_fini(&s->admin);
	trustee_bytes_fini(&s->ca);
	free(steal_ptr(&s->connected_as));
	free(steal_ptr(&s->reason));
}

/* Values declared for it are no longer sent; other servers are not affected. */
void trustee_list_drop(struct ctl_trustee *c, struct trustee_server *s)
{
	struct trustee_server **pp = &c->servers;

	while (*pp != s)
		pp = &(*pp)->next;
	*pp = s->next;
	log_info(NULL, "Trustee is no longer administered", "trustee=%s", log_esc(s->name));
	server_close(c, s);
	trustee_desc_fini(&s->desc);
	free(s->cluster_uid);
	free(s);
}

/* Name every recorded revocation to a push, which repeats them to a server that may be a
 * restored backup. */
static bool each_revoked(
	void *trustee, void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *fn_arg)
{
	const struct ctl_trustee *c = trustee;

	if (!k8s_cache_filled(c->env->state->configmaps))
		return false;
	state_record_each(c->env->state, model_record_oldest_s(clock_wall_s()), fn, fn_arg);
	return true;
}

/* Another owner's Trustee may use LocalJson storage, which silently loses or corrupts keys that are
 * written at the same time. */
static unsigned window_of(const struct ctl_trustee *c, const struct trustee_server *s)
{
	if (c->window)
		return c->window;
	return s->desc.owned || trustee_desc_is_here(c->env, &s->desc) ? WINDOW_OURS
								       : WINDOW_OTHERS;
}

/* With delivery by volumes there is no push; ctl/cluster confirms to kbs_sync instead. */
static void server_open(struct ctl_trustee *c, struct trustee_server *s, const char *cluster_uid)
{
	const struct kbs_push_conf conf = {.target = s->name,
		.cluster_uid = cluster_uid,
		.read_back = true,
		.window = window_of(c, s),
		.repeat_revoked_ms = c->env->repeat_revoked_ms,
		/* The store of this process is that of the API: both are restored together. */
		.each_revoked = trustee_desc_is_here(c->env, &s->desc) ? NULL : each_revoked,
		.revoked_arg = c};

	free(s->cluster_uid);
	s->cluster_uid = xstrdup(cluster_uid);
	s->is_target = s->desc.volumes;
	if (s->is_target)
		kbs_sync_target_add(c->env->state->sync, s->name);
	else
		s->push = kbs_push_new(c->env->loop, c->env->state->sync, &conf, NULL);
	log_info(NULL, "Trustee is administered", "trustee=%s", log_esc(s->name));
}

/* Warn that a removed server keeps its keys. An administrator decided it, so nothing blocks it;
 * this is the only warning. */
void trustee_list_tell_left(const struct ctl_trustee *c, const char *name)
{
	const struct model_cluster *served = state_cluster(c->env->state);

	if (!served)
		return;
	log_warn(NULL, "Trustee was removed from spec and may still hold keys", "trustee=%s",
		log_esc(name));
	k8s_events_post(c->env->events, &kobj_cluster, &served->obj, K8S_EVENT_WARNING,
		"TrusteeLeft", "Administer",
		"Trustee at %s was removed from spec and is no longer administered. It keeps all its keys, and keys that are "
		"revoked from now on stay valid there. Delete its data or stop it; or add it to spec again, with its "
		"adminSecret, before anything is deleted.",
		name);
}

/* Add or update a server. cluster_uid NULL: no cluster wants it, it is only kept. */
static void server_want(struct ctl_trustee *c, const char *name, struct trustee_desc *take_desc,
	const char *cluster_uid)
{
	struct trustee_server *s = trustee_list_find(c, name);
	unsigned n = 0;

	for (const struct trustee_server *x = c->servers; x; x = x->next)
		n++;
	if (!s && n >= TRUSTEE_SERVERS_MAX) {
		log_warn(NULL, "too many Trustee servers are administered", "trustee=%s",
			log_esc(name));
		trustee_desc_fini(take_desc);
		return;
	}
	if (!s) {
		s = xcalloc(1, sizeof(*s) + strlen(name) + 1);
		memcpy(s->name, name, strlen(name));
		s->next = c->servers;
		c->servers = s;
	} else if (!trustee_desc_same(&s->desc, take_desc) ||
		   (cluster_uid && !str_eq(s->cluster_uid, cluster_uid))) {
		/* Another server, or one of another cluster, with the same name: earlier
		 * confirmations no longer count. */
		if (!s->desc.owned && take_desc->owned)
			trustee_list_tell_left(c, name);
		server_close(c, s);
	}
	trustee_desc_fini(&s->desc);
	s->desc = *take_desc;
	s->wanted = cluster_uid != NULL;
	if (!s->push && !s->is_target)
		server_open(c, s, cluster_uid ? cluster_uid : "");
}

/* Tell whether a server that no cluster names any more may still hold our keys. */
bool trustee_list_may_hold(const struct ctl_trustee *c, const struct trustee_server *s)
{
	const struct ctl_env *env = c->env;
	size_t declared, confirmed, revoking;

	for (const struct trustee_server *x = c->servers; x && s->desc.owned; x = x->next)
		if (x->wanted && x->desc.owned)
			return false; /* the same server under a new address */
	if (s->desc.owned)
		return state_trustee_is_left(env->state);
	if (state_cluster_unknown(env->state))
		return true;
	if (state_cluster(env->state)) /* an administrator removed it from spec */
		return false;
	kbs_sync_counts(env->state->sync, &declared, &confirmed, &revoking);
	return declared || revoking;
}

/* Update the settings of all servers: the policies and the window. Without a cluster, the last
 * policies stay; after a start, the stricter ones are assumed. */
static void want_settings(struct ctl_trustee *c, const struct model_cluster *served)
{
	static const struct model_cluster none = {.isolation = MODEL_ISOLATION_PER_MACHINE};
	const struct model_cluster *of = served ? served : &none;

	if (served || !c->has_policies)
		kbs_sync_policies(c->env->state->sync, render_trustee_attestation_policy(of),
			render_trustee_resource_policy(of),
			of->isolation == MODEL_ISOLATION_SHARED);
	c->has_policies = true;
	if (!served || served->extended_lost || c->window == (unsigned)served->window)
		return;
	c->window = (unsigned)served->window;
	for (struct trustee_server *s = c->servers; s; s = s->next)
		if (s->push)
			kbs_push_set_window(s->push, window_of(c, s));
}

/* Servers that spec does not name keep wanted == false, and are dropped once they hold nothing. */
static void want_by_spec(struct ctl_trustee *c, const struct model_cluster *served)
{
	struct trustee_desc d;
	const char *name;

	for (unsigned i = 0; trustee_desc_of_cluster(served, i, &d, &name); i++)
		server_want(c, name, &d, served->obj.uid);
}

/* Add servers from memory, only after a start: later the list is more recent than memory. */
static void want_by_memory(struct ctl_trustee *c, const struct model_cluster *served)
{
	struct trustee_desc d;

	for (unsigned i = 0; trustee_memory_desc(c->memory, i, &d); i++) {
		if (!d.address || !d.admin_secret || trustee_list_find(c, d.address))
			trustee_desc_fini(&d);
		else
			server_want(c, d.address, &d, served ? served->obj.uid : NULL);
	}
}

/* Update the list from spec and memory. A spec that lost fields may have lost servers, or which
 * one is primary: then the list stays until an administrator restores or confirms it. */
void trustee_list_update(void *trustee)
{
	struct ctl_trustee *c = trustee;
	const struct model_cluster *served = state_cluster(c->env->state);
	bool lost = served && served->extended_lost, has_primary = false;
	struct trustee_desc d;

	if (!c->on || state_cluster_unknown(c->env->state)) /* the list stays */
		return;
	want_settings(c, served);
	for (struct trustee_server *s = c->servers; s; s = s->next)
		s->wanted = s->wanted && lost;
	if (served && !lost)
		want_by_spec(c, served);
	if (c->adopt && (!served || lost))
		want_by_memory(c, served);
	c->adopt = false;
	for (struct trustee_server *s = c->servers; s; s = s->next)
		has_primary |= s->desc.primary;
	if (lost && !has_primary && trustee_memory_is_read(c))
		want_by_spec(c, served);
	if (!served && !c->servers && state_trustee_is_left(c->env->state)) {
		/* Its cluster may have been deleted before this process started. */
		d = (struct trustee_desc){.primary = true, .owned = true};
		server_want(c, "kbs-service", &d, NULL);
	}
	for (struct trustee_server *s = c->servers; s; s = s->next)
		ctl_runner_wake(c->runner, s->name);
	ctl_runner_wake(c->runner, STATE_TRUSTEE_MEMORY);
}

/* Deferred to the next turn, because many objects change together. */
void trustee_list_update_soon(struct ctl_trustee *c)
{
	if (c->on)
		defer_call(&c->look, c->env->loop, trustee_list_update, c);
}
