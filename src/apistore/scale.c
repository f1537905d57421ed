/* SPDX-License-Identifier: MIT */
/*
 * The subresource scale: another view of an object that has replicas. A change is made to the view, as
 * of any object, and what it says of the replicas is then written into the object itself.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tec/apistore/form.h"
#include "tec/base/mem.h"
#include "tec/schema/crd.h"

#include "write.h"

/* What is exchanged. */
static const struct schema_kind scale_kind = {
	.group = "autoscaling", .version = "v1", .kind = "Scale", .list_kind = "ScaleList"};

/* ---- paths, which a CRD names: ".spec.size.replicas" */

/* The first step of a path, which moves behind it; NULL: there is none. The caller frees. */
static char *next_step(const char **path)
{
	const char *from = *path + 1;
	size_t n = strcspn(from, ".");

	if (**path != '.')
		return NULL;
	*path = from + n;
	return xstrndup(from, n);
}

static struct json_object *value_at(struct json_object *o, const char *path)
{
	while (o && *path) {
		cleanup_free char *step = next_step(&path);
		struct json_object *v = NULL;

		if (!step || !json_object_is_type(o, json_type_object))
			return NULL;
		json_object_object_get_ex(o, step, &v);
		o = v;
	}
	return o;
}

/* False: what is on the way is no object. */
static bool set_at(struct json_object *o, const char *path, int64_t value)
{
	for (;;) {
		cleanup_free char *step = next_step(&path);
		struct json_object *v = NULL;

		if (!step || !json_object_is_type(o, json_type_object))
			return false;
		if (!*path) {
			json_add_int(o, step, value);
			return true;
		}
		if (!json_object_object_get_ex(o, step, &v) || !v)
			json_add(o, step, v = json_obj());
		o = v;
	}
}

static void check_count(struct json_object *o, const char *path, struct schema_causes *causes)
{
	struct json_object *v = value_at(o, path);
	int64_t n = json_object_get_int64(v);

	if (!json_object_is_type(v, json_type_int) || (n >= 0 && n <= INT32_MAX))
		return;
	schema_cause_add(causes, SCHEMA_INVALID, path, v, "%s",
		n < 0 ? "should be a non-negative integer"
		      : "should be less than or equal to 2147483647");
}

void apistore_scale_check(const struct schema_version *v, bool status_only, struct json_object *o,
	struct schema_causes *causes)
{
	if (v->scale_spec && !status_only)
		check_count(o, v->scale_spec, causes);
	if (v->scale_status)
		check_count(o, v->scale_status, causes);
}

/* ---- the selector as text, its requirements by their keys */

struct requirement {
	const char *key;
	char *text; /* owned */
};

static int by_key(const void *a, const void *b)
{
	const struct requirement *x = a, *y = b;

	return strcmp(x->key, y->key);
}

static int by_value(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *expression_text(struct json_object *e, const char *key)
{
	const char *op = json_get_str(e, "operator");
	struct json_object *values = json_get_arr(e, "values");
	size_t n = values ? json_object_array_length(values) : 0;
	cleanup_free const char **sorted = xcalloc(n + 1, sizeof(*sorted));
	struct strbuf b = STRBUF_INIT;

	if (str_eq(op, "Exists") || str_eq(op, "DoesNotExist")) {
		strbuf_addf(&b, "%s%s", str_eq(op, "Exists") ? "" : "!", key);
		return strbuf_steal(&b);
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_object_get_string(json_object_array_get_idx(values, i));
	qsort(sorted, n, sizeof(*sorted), by_value);
	strbuf_addf(&b, "%s %s (", key, str_eq(op, "NotIn") ? "notin" : "in");
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&b, "%s%s", i ? "," : "", sorted[i]);
	strbuf_addc(&b, ')');
	return strbuf_steal(&b);
}

static char *selector_text(struct json_object *selector)
{
	struct json_object *labels = json_get_obj(selector, "matchLabels"),
			   *all = json_get_arr(selector, "matchExpressions");
	size_t n = all ? json_object_array_length(all) : 0, used = 0;
	cleanup_free struct requirement *r = NULL;
	struct strbuf b = STRBUF_INIT;

	r = xcalloc(n + (size_t)(labels ? json_object_object_length(labels) : 0) + 1, sizeof(*r));
	if (labels) {
		json_object_object_foreach (labels, label, value)
			r[used++] = (struct requirement){
				label, xasprintf("%s=%s", label, json_object_get_string(value))};
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_object_array_get_idx(all, i);
		const char *key = json_get_str(e, "key");

		if (key)
			r[used++] = (struct requirement){key, expression_text(e, key)};
	}
	qsort(r, used, sizeof(*r), by_key);
	for (size_t i = 0; i < used; i++) {
		strbuf_addf(&b, "%s%s", i ? "," : "", r[i].text);
		free(r[i].text);
	}
	return strbuf_steal(&b);
}

/* ---- the view */

/* What the kind says of an object. */
struct counts {
	int64_t wanted, have;
	bool known;     /* wanted is there, or has a default */
	char *selector; /* owned */
};

static struct counts counts_of(const struct schema_kind *k, struct json_object *o)
{
	struct json_object *v;
	const char *selector;

	if (!k->crd)
		return (struct counts){json_get_int(o, "spec/replicas", 1),
			json_get_int(o, "status/replicas", 0), true,
			selector_text(json_get_obj(o, "spec/selector"))};
	v = k->crd->scale_selector ? value_at(o, k->crd->scale_selector) : NULL;
	selector = json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";
	v = value_at(o, k->crd->scale_spec);
	return (struct counts){json_object_get_int64(v),
		json_object_get_int64(value_at(o, k->crd->scale_status)),
		json_object_is_type(v, json_type_int), xstrdup(selector)};
}

static struct json_object *view_of(const struct counts *c, struct json_object *o)
{
	static const char *const kept[] = {
		"name", "namespace", "uid", "resourceVersion", "creationTimestamp"};
	struct json_object *scale = json_obj(), *m = json_obj(), *spec = json_obj(),
			   *status = json_obj();

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		apistore_write_copy(m, json_get_obj(o, "metadata"), kept[i]);
	if (c->wanted)
		json_add_int(spec, "replicas", c->wanted);
	json_add_int(status, "replicas", c->have);
	if (c->selector && *c->selector)
		json_add_str(status, "selector", c->selector);
	json_add_str(json_add_str(scale, "kind", "Scale"), "apiVersion", "autoscaling/v1");
	return json_add(json_add(json_add(scale, "metadata", m), "spec", spec), "status", status);
}

struct json_object *apistore_scale_of(const struct schema_kind *k, struct json_object *o)
{
	struct counts c = counts_of(k, o);
	struct json_object *scale = view_of(&c, o);

	free(c.selector);
	return scale;
}

static struct apistore_answer not_set(const struct schema_kind *k)
{
	return apistore_status_internal(
		"the spec replicas field \"%s\" does not exist", k->crd->scale_spec);
}

struct apistore_answer apistore_scale_shown(
	const struct schema_kind *k, const struct apistore_target *t, struct apistore_answer take)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = NULL, *scale = NULL;
	cleanup_free char *text = NULL;
	struct body shown = BODY_INIT;
	struct counts c;

	if (take.code / 100 != 2)
		return take;
	o = json_parse(take.body, take.len, &apistore_write_limits, &err);
	if (!o)
		return take; /* it was made from JSON a moment ago */
	c = counts_of(k, o);
	scale = view_of(&c, o);
	free(c.selector);
	free(take.body);
	if (!c.known)
		return not_set(k);
	text = json_text(scale);
	apistore_form_object(&t->form, &scale_kind, text, strlen(text), true, &shown);
	take.body = shown.data;
	take.len = shown.len;
	return take;
}

/* ---- writes */

/* A custom resource is held to its own rules, by its own names, when it is stored. */
static bool in_range(int64_t n, struct json_object *scale, struct apistore_answer *refused)
{
	struct apistore_target named = {.group = (char *)"autoscaling"};
	cleanup_free char *why = NULL;

	if (n >= 0)
		return true;
	named.name = (char *)json_get_str(scale, "metadata/name");
	why = xasprintf("%" PRId64 ": must be greater than or equal to 0", n);
	*refused = apistore_status_invalid(&named, "Scale", "spec.replicas", "Invalid value", why);
	return false;
}

/* As any body is read: what is not said is filled in, what is not known is told. */
static bool is_scale(
	const struct apistore_write *w, struct json_object *scale, struct apistore_answer *refused)
{
	const struct apistore_kind kind = {.schema = &scale_kind};
	const char *ns = json_get_str(scale, "metadata/namespace");
	struct apistore_write here = *w;

	if (ns && *ns && !str_eq(ns, w->key.ns)) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"the namespace of the provided object does not match the namespace sent on the request");
		return false;
	}
	here.kind = &kind;
	if (!json_get(scale, "kind"))
		json_add_str(scale, "kind", "Scale");
	if (!json_get(scale, "apiVersion"))
		json_add_str(scale, "apiVersion", "autoscaling/v1");
	if (str_eq(json_get_str(scale, "kind"), "Scale") &&
		str_eq(json_get_str(scale, "apiVersion"), "autoscaling/v1"))
		return apistore_admit_decode(&here, scale, refused) == 0;
	*refused = apistore_status_refusal(
		400, "BadRequest", "the object of a scale must be a Scale of autoscaling/v1");
	return false;
}

struct apistore_answer apistore_scale_store(
	const struct apistore_write *w, struct json_object *take_scale)
{
	const struct schema_kind *k = apistore_admit_kind(w);
	cleanup_json struct json_object *scale = take_scale, *was = NULL, *o = NULL;
	struct apistore_target whole = *w->t;
	struct apistore_write here = *w;
	struct apistore_answer refused;
	int64_t replicas;

	if (!is_scale(w, scale, &refused))
		return refused;
	replicas = json_get_int(scale, "spec/replicas", 0);
	if (!k->crd && !in_range(replicas, scale, &refused))
		return refused;
	was = apistore_objects_get(w->s, &w->key);
	if (!was)
		return apistore_status_absent(w->t);
	apistore_form_read(k, was);
	o = json_copy(was);
	if (!set_at(o, k->crd ? k->crd->scale_spec : ".spec.replicas", replicas))
		return apistore_status_internal("the spec replicas field cannot be set");
	whole.form = (struct apistore_form){.shape = APISTORE_SHAPE_OBJECT};
	here.t = &whole;
	here.was = was;
	return apistore_scale_shown(k, w->t, apistore_write_store(&here, steal_ptr(&o)));
}
