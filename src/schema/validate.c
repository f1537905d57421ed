/* SPDX-License-Identifier: MIT */
/*
 * The order in which an API server looks at an object of a CRD: values, embedded objects, lists,
 * and rules last, which are not run while types are wrong.
 */
#include "config.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/schema/structural.h"

struct rules {
	struct schema_causes *causes;
	struct schema_texts *warnings;
	struct strbuf path;
};

static const char *rule_text(const struct schema_rule *r)
{
	return r->message ? r->message : r->rule;
}

/* A rule about now alone is not held against what did not change. */
static void rule_failed(struct rules *w, const struct schema_node *s, const struct schema_rule *r,
	struct schema_then *t)
{
	cleanup_strbuf struct strbuf field = STRBUF_INIT;
	struct schema_causes one = {NULL, 0, 0, false}, *to = w->causes;

	strbuf_adds(&field, strbuf_str(&w->path));
	if (r->field_path)
		schema_path_add(&field, r->field_path);
	if (!schema_cel_uses_old(r->cel) && schema_then_equal(t))
		to = &one;
	schema_cause_add_text(to, r->reason, strbuf_str(&field), schema_type_name(s->type), "%s%s",
		r->reason == SCHEMA_DUPLICATE ? ""
		: r->message                  ? ""
					      : "failed rule: ",
		r->reason == SCHEMA_DUPLICATE ? "" : rule_text(r));
	for (size_t i = 0; w->warnings && i < one.n; i++)
		schema_texts_add(w->warnings, "%s: %s", one.cause[i].field, one.cause[i].message);
	schema_causes_fini(&one);
}

static void run_rules(struct rules *w, const struct schema_node *s, struct json_object *v,
	struct json_object *old, struct schema_then *t)
{
	for (size_t i = 0; i < s->n_rules; i++) {
		const struct schema_rule *r = &s->rule[i];
		struct err err = ERR_INIT;

		if (schema_cel_uses_old(r->cel) && !old)
			continue;
		switch (schema_cel_eval(r->cel, v, old, &err)) {
		case SCHEMA_CEL_TRUE:
			break;
		case SCHEMA_CEL_FALSE:
			rule_failed(w, s, r, t);
			break;
		case SCHEMA_CEL_ERROR:
			schema_cause_add_text(w->causes, SCHEMA_INVALID, strbuf_str(&w->path),
				schema_type_name(s->type),
				str_starts(err.text, "no such overload")
					? "'%s': call arguments did not match a supported operator, "
					  "function or macro signature for rule: %s"
					: "%s evaluating rule: %s",
				err.text, rule_text(r));
			break;
		}
	}
}

static void walk_rules(struct rules *w, const struct schema_node *s, struct json_object *v,
	struct json_object *old, struct schema_then *t)
{
	if (!v || !s->has_rules)
		return;
	run_rules(w, s, v, old, t);
	if (json_object_is_type(v, json_type_object)) {
		bool had = json_object_is_type(old, json_type_object);

		json_object_object_foreach (v, name, child) {
			const struct schema_node *p = schema_node_prop(s, name);
			struct schema_then then;
			size_t before;

			if (!p && !s->additional)
				continue;
			before = p ? schema_path_add(&w->path, name)
				   : schema_path_key(&w->path, name);
			p = p ? p : s->additional;
			then = schema_then_member(t, name, child, p);
			walk_rules(
				w, p, child, had ? json_object_object_get(old, name) : NULL, &then);
			schema_path_cut(&w->path, before);
		}
	} else if (json_object_is_type(v, json_type_array)) {
		for (size_t i = 0; s->items && i < json_object_array_length(v); i++) {
			struct json_object *e = json_object_array_get_idx(v, i);
			struct schema_then then = schema_then_element(t, e, s->items);
			size_t before = schema_path_index(&w->path, i);

			walk_rules(w, s->items, e, schema_map_find(s, old, e), &then);
			schema_path_cut(&w->path, before);
		}
	}
}

void schema_check_rules(const struct schema_node *s, struct json_object *o, struct json_object *old,
	struct schema_then *t, struct schema_causes *causes, struct schema_texts *warnings)
{
	struct rules w = {.causes = causes, .warnings = warnings, .path = STRBUF_INIT};

	walk_rules(&w, s, o, old, t);
	strbuf_fini(&w.path);
}

/* ---- the whole */

static bool blocks_rules(const struct schema_causes *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->cause[i].problem != SCHEMA_INVALID &&
			c->cause[i].problem != SCHEMA_DUPLICATE &&
			c->cause[i].problem != SCHEMA_FORBIDDEN)
			return true;
	return false;
}

static bool has_twice(const struct schema_node *s, struct json_object *o)
{
	struct schema_causes causes = {NULL, 0, 0, false};
	bool has;

	schema_check_lists(s, o, &causes);
	has = causes.n > 0;
	schema_causes_fini(&causes);
	return has;
}

/* What follows the values. */
static void check_rest(const struct schema_node *s, struct json_object *o, struct json_object *old,
	struct schema_then *t, struct schema_causes *causes, struct schema_texts *warnings)
{
	schema_check_embedded(s, o, causes);
	if (!old || !has_twice(s, old))
		schema_check_lists(s, o, causes);
	if (!s->has_rules)
		return;
	if (blocks_rules(causes))
		schema_cause_add(causes, SCHEMA_INVALID, NULL, NULL,
			"some validation rules were not checked because the object was invalid; "
			"correct the existing errors to complete validation");
	else
		schema_check_rules(s, o, old, t, causes, warnings);
}

void schema_validate(const struct schema_node *s, struct json_object *o, struct json_object *old,
	struct schema_causes *causes, struct schema_texts *warnings)
{
	struct schema_then t = {.s = s, .now = o, .old = old, .known = old != NULL, .equal = -1};

	schema_check_values(s, o, &t, causes, "");
	check_rest(s, o, old, &t, causes, warnings);
}

void schema_validate_status(const struct schema_node *s, struct json_object *o,
	struct json_object *old, struct schema_causes *causes, struct schema_texts *warnings)
{
	struct schema_then t = {.s = s, .now = o, .old = old, .known = old != NULL, .equal = -1};
	const struct schema_node *status = schema_node_prop(s, "status");
	struct json_object *v = NULL;

	if (status && json_object_object_get_ex(o, "status", &v)) {
		struct schema_then then = schema_then_member(&t, "status", v, status);

		schema_check_values(status, v, &then, causes, "status");
	}
	check_rest(s, o, old, &t, causes, warnings);
}
