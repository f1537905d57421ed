/* SPDX-License-Identifier: MIT */
/*
 * ConfigMap tec-trustees: the servers that are not the cluster object's own, written before a
 * server gets a transport and taken out after it left the list. It is a key of the same queue as
 * the servers, with a decide of its own. Nothing else reads or writes it.
 */
#include "config.h"

#include "trustee_internal.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define MEMORY_FILE "trustees.json"

enum ctl_trustee_do ctl_trustee_decide_memory(const struct ctl_trustee_memory_view *v)
{
	if (!v->read)
		return CTL_TRUSTEE_READ_MEMORY;
	if (v->as_wanted)
		return CTL_TRUSTEE_NOTHING;
	return v->empty ? CTL_TRUSTEE_DELETE_MEMORY : CTL_TRUSTEE_APPLY_MEMORY;
}

bool trustee_memory_is_right(const struct ctl_trustee *c)
{
	const struct kobj *o = k8s_cache_find(c->env->state->configmaps, STATE_TRUSTEE_MEMORY);
	cleanup_free char *text = trustee_memory_text(c->servers);

	return (!o || !o->unreadable) && str_eq(text, c->memory ? c->memory : "[]");
}

bool trustee_memory_is_read(const struct ctl_trustee *c)
{
	const struct kobj *o = k8s_cache_find(c->env->state->configmaps, STATE_TRUSTEE_MEMORY);

	/* What cannot be read is ours to write again, if we know what it said. */
	if (!k8s_cache_filled(c->env->state->configmaps) || (o && o->unreadable))
		return c->memory_known;
	return o ? str_eq(o->rv, c->memory_rv) : !c->memory_rv;
}

void trustee_memory_set(struct ctl_trustee *c, const char *rv, const char *text)
{
	free(c->memory_rv);
	free(c->memory);
	c->memory_rv = xstrdup(rv);
	c->memory = xstrdup(text);
}

static void on_memory(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_trustee *c = a->table->self;
	struct err none = ERR_INIT;
	bool gone = err->kind == ERR_NOT_FOUND;

	c->memory_known |= gone || !err_is_set(err);
	if (gone || (!err_is_set(err) && a->doing == CTL_TRUSTEE_DELETE_MEMORY)) {
		trustee_memory_set(c, NULL, NULL);
		k8s_cache_remove(c->env->state->configmaps, STATE_TRUSTEE_MEMORY, NULL);
	} else if (!err_is_set(err)) {
		trustee_memory_set(c, json_get_str(r->object, "metadata/resourceVersion"),
			json_get_str(r->object, "data/" MEMORY_FILE));
		c->adopt = a->doing == CTL_TRUSTEE_READ_MEMORY;
		ctl_take_answer(c->env->state->configmaps, r->object, true);
	} else {
		log_err(LOG_WARN, NULL, "what is known of other Trustee servers cannot be kept",
			err);
	}
	ctl_act_end(a, gone ? &none : err);
	trustee_ask(c);
}

static struct json_object *memory_json(const struct ctl_trustee *c, const char *text)
{
	struct json_object *o = json_obj(), *meta = json_obj();

	json_add_str(meta, "name", STATE_TRUSTEE_MEMORY);
	json_add_str(meta, "namespace", c->env->ns);
	json_add(meta, "labels",
		json_add_str(json_obj(), "app.kubernetes.io/managed-by", "tec-operator"));
	json_add_str(o, "apiVersion", "v1");
	json_add_str(o, "kind", "ConfigMap");
	json_add(o, "metadata", meta);
	return json_add(o, "data", json_add_str(json_obj(), MEMORY_FILE, text));
}

struct queue_next trustee_step_memory(struct ctl_trustee *c)
{
	const struct ctl_env *env = c->env;
	const struct kobj *o = k8s_cache_find(env->state->configmaps, STATE_TRUSTEE_MEMORY);
	cleanup_free char *text = trustee_memory_text(c->servers);
	const struct ctl_trustee_memory_view v = {.read = trustee_memory_is_read(c),
		.as_wanted = trustee_memory_is_right(c),
		.empty = str_eq(text, "[]")};
	enum ctl_trustee_do d = ctl_trustee_decide_memory(&v);
	cleanup_json struct json_object *json = NULL;
	struct ctl_act *a;
	struct op *op;

	if (d == CTL_TRUSTEE_DELETE_MEMORY && !o)
		d = CTL_TRUSTEE_NOTHING;
	if (d == CTL_TRUSTEE_NOTHING || c->adopt) { /* the look that is due wakes us */
		ctl_act_drop(ctl_act_find(&c->acts, STATE_TRUSTEE_MEMORY));
		return ctl_settled();
	}
	a = ctl_act_get(&c->acts, STATE_TRUSTEE_MEMORY);
	if (!ctl_act_begin(a, (int)d))
		return ctl_retry(0, "an act had no visible effect yet");
	if (d == CTL_TRUSTEE_READ_MEMORY) {
		op = k8s_call_get(env->api, &c->acts.ops, &kobj_configmap, env->ns,
			STATE_TRUSTEE_MEMORY, on_memory, a);
	} else if (d == CTL_TRUSTEE_DELETE_MEMORY) {
		op = k8s_call_delete(env->api, &c->acts.ops, &kobj_configmap, env->ns,
			STATE_TRUSTEE_MEMORY, o->uid, on_memory, a);
	} else {
		json = memory_json(c, text);
		op = k8s_call_apply(
			env->api, &c->acts.ops, &kobj_configmap, env->ns, json, on_memory, a);
	}
	op_hold(&a->op, op);
	return ctl_in_flight();
}
