/* SPDX-License-Identifier: MIT */
/*
 * ConfigMap tec-trustees, the memory: servers that the cluster object does not own. A server is
 * added before it gets a transport, and removed after it left the list. Nothing else reads or
 * writes the ConfigMap. Its text is an array of
 * {"address","adminSecret","caSecret","primary","httpsOnly"}, sorted by address, so that equal
 * memories have equal text.
 */
#include "config.h"

#include "trustee_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define MEMORY_FILE "trustees.json"

/* ---- its text */

/* The text may come from another client: every member may be missing or of another type. */
bool trustee_memory_desc(const char *json, unsigned i, struct trustee_desc *out)
{
	cleanup_json struct json_object *a = NULL;
	struct err ignored = ERR_INIT;
	struct json_object *o;

	memset(out, 0, sizeof(*out));
	if (json)
		a = json_parse(json, strlen(json), &json_limits_object, &ignored);
	if (!a || !json_object_is_type(a, json_type_array) || i >= json_object_array_length(a) ||
		i >= TRUSTEE_SERVERS_MAX)
		return false;
	o = json_object_array_get_idx(a, i);
	out->address = xstrdup(json_get_str(o, "address"));
	out->ca_secret = xstrdup(json_get_str(o, "caSecret"));
	out->admin_secret = xstrdup(json_get_str(o, "adminSecret"));
	out->primary = json_get_bool(o, "primary", false);
	out->https_only = json_get_bool(o, "httpsOnly", false);
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct trustee_server *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Servers of the cluster object are left out: the object itself remembers them. */
static char *text_of(const struct trustee_server *servers)
{
	const struct trustee_server *v[TRUSTEE_SERVERS_MAX];
	cleanup_json struct json_object *a = json_arr();
	size_t n = 0;

	for (const struct trustee_server *s = servers; s && n < TRUSTEE_SERVERS_MAX; s = s->next)
		if (!s->desc.owned && s->desc.address)
			v[n++] = s;
	if (n)
		qsort(v, n, sizeof(*v), by_address);
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_obj();

		json_add_str(o, "address", v[i]->desc.address);
		json_add_str(o, "adminSecret", v[i]->desc.admin_secret);
		json_add_str(o, "caSecret", v[i]->desc.ca_secret);
		json_add_bool(o, "primary", v[i]->desc.primary);
		if (v[i]->desc.https_only)
			json_add_bool(o, "httpsOnly", true);
		json_push(a, o);
	}
	return json_text(a);
}

/* ---- state */

/* By resourceVersion: a change by another client means reading again. */
bool trustee_memory_is_read(const struct ctl_trustee *c)
{
	const struct kobj *o = k8s_cache_find(c->env->state->configmaps, STATE_TRUSTEE_MEMORY);

	/* An unreadable ConfigMap is overwritten, provided that its content was known. */
	if (!k8s_cache_filled(c->env->state->configmaps) || (o && o->unreadable))
		return c->memory_known;
	return o ? str_eq(o->rv, c->memory_rv) : !c->memory_rv;
}

/* Compares texts: what memory should say, and what it said when last read or written. */
void trustee_memory_look(const struct ctl_trustee *c, struct ctl_trustee_memory_view *v)
{
	const struct kobj *o = k8s_cache_find(c->env->state->configmaps, STATE_TRUSTEE_MEMORY);
	cleanup_free char *text = text_of(c->servers);

	v->read = trustee_memory_is_read(c);
	v->as_wanted = (!o || !o->unreadable) && str_eq(text, c->memory ? c->memory : "[]");
	v->empty = str_eq(text, "[]");
	v->there = o != NULL;
}

void trustee_memory_set(struct ctl_trustee *c, const char *rv, const char *text)
{
	free(c->memory_rv);
	free(c->memory);
	c->memory_rv = xstrdup(rv);
	c->memory = xstrdup(text);
}

/* ---- acts */

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

/* READ, APPLY or DELETE of the ConfigMap. The delete carries the UID that the cache shows. */
struct op *trustee_memory_start(
	struct ctl_trustee *c, enum ctl_trustee_do d, k8s_result_fn done, void *arg)
{
	const struct ctl_env *env = c->env;
	cleanup_json struct json_object *o = NULL;
	cleanup_free char *text = NULL;

	if (d == CTL_TRUSTEE_READ_MEMORY)
		return k8s_call_get(env->api, &c->acts.ops, &kobj_configmap, env->ns,
			STATE_TRUSTEE_MEMORY, done, arg);
	if (d == CTL_TRUSTEE_DELETE_MEMORY)
		return k8s_call_delete(env->api, &c->acts.ops, &kobj_configmap, env->ns,
			STATE_TRUSTEE_MEMORY,
			k8s_cache_find(env->state->configmaps, STATE_TRUSTEE_MEMORY)->uid, NULL,
			done, arg);
	text = text_of(c->servers);
	o = memory_json(c, text);
	return k8s_call_apply(env->api, &c->acts.ops, &kobj_configmap, env->ns, o, done, arg);
}

/* Take the answer of a read or write. After a read, the servers found are added to the list
 * (c->adopt), in case spec no longer names them. */
bool trustee_memory_done(struct ctl_trustee *c, enum ctl_trustee_do d, const struct err *err,
	const struct k8s_result *r)
{
	bool gone = err->kind == ERR_NOT_FOUND;

	if (err_is_set(err) && !gone) {
		log_err(LOG_WARN, NULL, "ConfigMap tec-trustees cannot be read or written", err);
		return false;
	}
	c->memory_known = true;
	if (gone || d == CTL_TRUSTEE_DELETE_MEMORY) {
		trustee_memory_set(c, NULL, NULL);
		k8s_cache_remove(c->env->state->configmaps, STATE_TRUSTEE_MEMORY, NULL);
		return true;
	}
	trustee_memory_set(c, json_get_str(r->object, "metadata/resourceVersion"),
		json_get_str(r->object, "data/" MEMORY_FILE));
	c->adopt = d == CTL_TRUSTEE_READ_MEMORY;
	ctl_take_answer(c->env->state->configmaps, r->object, true);
	return true;
}
