/* SPDX-License-Identifier: MIT */
/*
 * The subresource scale: another view of an object that has replicas. A change is made to the view, as
 * of any object, and what it says of the replicas is then written into the object itself.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tec/base/mem.h"
#include "tec/schema/kind.h"

#include "write.h"

bool apistore_scale_has(const struct apistore_kind *kind)
{
	const struct schema_kind *k = kind ? kind->schema : NULL;

	for (size_t i = 0; k && i < k->n_subs; i++)
		if (str_eq(k->subs[i].name, "scale"))
			return true;
	return false;
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

struct json_object *apistore_scale_of(struct json_object *o)
{
	static const char *const kept[] = {
		"name", "namespace", "uid", "resourceVersion", "creationTimestamp"};
	struct json_object *scale = json_obj(), *m = json_obj(), *spec = json_obj(),
			   *status = json_obj();
	cleanup_free char *selector = selector_text(json_get_obj(o, "spec/selector"));
	int64_t replicas = json_get_int(o, "spec/replicas", 1);

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		apistore_write_copy(m, json_get_obj(o, "metadata"), kept[i]);
	if (replicas)
		json_add_int(spec, "replicas", replicas);
	json_add_int(status, "replicas", json_get_int(o, "status/replicas", 0));
	if (selector && *selector)
		json_add_str(status, "selector", selector);
	json_add_str(json_add_str(scale, "kind", "Scale"), "apiVersion", "autoscaling/v1");
	json_add(json_add(json_add(scale, "metadata", m), "spec", spec), "status", status);
	return scale;
}

struct apistore_answer apistore_scale_shown(struct apistore_answer take)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = NULL, *scale = NULL;

	if (take.code / 100 != 2)
		return take;
	o = json_parse(take.body, take.len, &apistore_write_limits, &err);
	if (!o)
		return take; /* it was made from JSON a moment ago */
	scale = apistore_scale_of(o);
	free(take.body);
	take.body = json_text(scale);
	take.len = strlen(take.body);
	return take;
}

/* ---- writes */

static bool read_replicas(struct json_object *scale, int64_t *out, struct apistore_answer *refused)
{
	static const struct apistore_target group = {.group = (char *)"autoscaling"};
	struct apistore_target named = group;
	struct json_object *v = json_get(scale, "spec/replicas");
	cleanup_free char *why = NULL;

	if (v && !json_object_is_type(v, json_type_int)) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"Scale in version \"v1\" cannot be handled as a Scale: spec.replicas is not an integer");
		return false;
	}
	*out = v ? json_object_get_int64(v) : 0;
	if (*out >= 0 && *out <= INT32_MAX)
		return true;
	named.name = (char *)json_get_str(scale, "metadata/name");
	why = xasprintf("%" PRId64 ": must be %s", *out,
		*out < 0 ? "greater than or equal to 0" : "less than or equal to 2147483647");
	*refused = apistore_status_invalid(&named, "Scale", "spec.replicas", "Invalid value", why);
	return false;
}

struct apistore_answer apistore_scale_store(
	const struct apistore_write *w, struct json_object *take_scale)
{
	cleanup_json struct json_object *scale = take_scale, *was = NULL;
	struct apistore_target whole = *w->t;
	struct apistore_write here = *w;
	struct apistore_answer refused;
	struct json_object *o;
	int64_t replicas;

	if (!str_eq(json_get_str(scale, "kind"), "Scale"))
		return apistore_status_refusal(
			400, "BadRequest", "the object of a scale must be a Scale");
	if (!read_replicas(scale, &replicas, &refused))
		return refused;
	was = apistore_objects_get(w->s, &w->key);
	if (!was)
		return apistore_status_absent(w->t);
	o = json_copy(was);
	if (!json_get_obj(o, "spec"))
		json_add(o, "spec", json_obj());
	json_add_int(json_get_obj(o, "spec"), "replicas", replicas);
	whole.form = (struct apistore_form){.shape = APISTORE_SHAPE_OBJECT};
	here.t = &whole;
	here.was = was;
	return apistore_scale_shown(apistore_write_store(&here, o));
}
