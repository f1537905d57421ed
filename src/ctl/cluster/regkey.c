/* SPDX-License-Identifier: MIT */
/*
 * The registration key: made while spec.registration.machine is AtKey, replaced in the steps of
 * render/regkey.h, each of which may be the last one of a life. The key itself is in memory only
 * between its making and its POST, and while a copy of it is made.
 */
#include "config.h"

#include "cluster_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/render/regkey.h"

static const char *const names[CLUSTER_N_REGKEYS] = {
	[CLUSTER_REGKEY_CURRENT] = RENDER_REGKEY_CURRENT,
	[CLUSTER_REGKEY_PREVIOUS] = RENDER_REGKEY_PREVIOUS,
};
/* What is further away than this need not be armed: the queue looks again each hour by itself. */
#define SOON_S 7200

void cluster_regkey_init(struct ctl_cluster *c)
{
	for (int i = 0; i < CLUSTER_N_REGKEYS; i++)
		cluster_own_init(&c->regkey[i], names[i], RENDER_REGKEY_MEMBER, NULL);
}

void cluster_regkey_reset(struct ctl_cluster *c)
{
	for (int i = 0; i < CLUSTER_N_REGKEYS; i++)
		cluster_own_reset(&c->regkey[i]);
}

bool cluster_regkey_is_name(const char *secret)
{
	return str_eq(secret, RENDER_REGKEY_CURRENT) || str_eq(secret, RENDER_REGKEY_PREVIOUS);
}

static bool is_at_key(const struct model_cluster *cluster)
{
	return cluster->reg_machine == MODEL_REG_AT_KEY;
}

bool cluster_regkey_wanted(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name)
{
	const struct cluster_own *own = &c->regkey[str_eq(name, RENDER_REGKEY_PREVIOUS)];

	return own->must_read ||
	       (is_at_key(cluster) && (own->text || str_eq(name, RENDER_REGKEY_CURRENT)));
}

/* Without AtKey only what was announced once is looked at: another one under the name is nobody's
 * business. */
static struct render_regkey look_one(
	struct ctl_cluster *c, struct cluster_look *l, enum cluster_regkey which)
{
	struct cluster_own *own = &c->regkey[which];
	bool looked_at = is_at_key(l->c) || model_cluster_announced(l->c, own->name);
	const struct model_secret *o = state_secret(c->env->state, own->name);

	if (!looked_at || !cluster_look_own(c, l, own, CLUSTER_REGKEY, which, false) || !o)
		return (struct render_regkey){.there = false};
	return (struct render_regkey){
		.there = true, .created_s = o->obj.created_s, .content = own->hash};
}

static void want(struct ctl_cluster *c, struct cluster_look *l, enum cluster_regkey which)
{
	cluster_look_own(c, l, &c->regkey[which], CLUSTER_REGKEY, which, true);
}

void cluster_look_regkey(struct ctl_cluster *c, struct cluster_look *l)
{
	struct render_regkey current = look_one(c, l, CLUSTER_REGKEY_CURRENT);
	struct render_regkey previous = look_one(c, l, CLUSTER_REGKEY_PREVIOUS);
	int64_t now_s = clock_wall_s();
	struct cluster_own *copy = &c->regkey[CLUSTER_REGKEY_PREVIOUS];
	struct render_regkey_plan plan;

	if (l->v.todo)
		return; /* what is there is known first */
	render_regkey_plan(
		now_s, is_at_key(l->c), l->c->pending_ttl_ms, &current, &previous, &plan);
	if (plan.again_s - now_s <= SOON_S)
		cluster_recheck(l, (uint64_t)(plan.again_s - now_s) * 1000);
	if (plan.what != RENDER_REGKEY_COPY || !str_eq(copy->text_hash, current.content))
		cluster_own_set_text(copy, NULL); /* of a change that came to nothing */
	switch (plan.what) {
	case RENDER_REGKEY_NOTHING:
		break;
	case RENDER_REGKEY_MAKE:
		want(c, l, CLUSTER_REGKEY_CURRENT);
		break;
	case RENDER_REGKEY_COPY:
		if (copy->text || state_secret(c->env->state, copy->name))
			want(c, l, CLUSTER_REGKEY_PREVIOUS);
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

struct secret *cluster_regkey_make(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name)
{
	cleanup_secret struct secret *key = secret_new_random(RENDER_REGKEY_LEN);

	return render_regkey_secret(cluster, c->env->ns, name, key);
}

void cluster_regkey_copy(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *current)
{
	struct cluster_own *own = &c->regkey[CLUSTER_REGKEY_PREVIOUS];
	cleanup_secret struct secret *key = NULL;
	struct json_object *v = NULL;

	if (cluster_own_state(c, cluster, &c->regkey[CLUSTER_REGKEY_CURRENT]) != CLUSTER_OWN_GOOD ||
		!json_object_object_get_ex(json_get_obj(current, "data"), RENDER_REGKEY_MEMBER, &v))
		return;
	key = secret_from_b64(json_object_get_string(v), (size_t)json_object_get_string_len(v));
	if (key)
		cluster_own_set_text(
			own, render_regkey_secret(cluster, c->env->ns, own->name, key));
}
