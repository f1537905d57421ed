/* SPDX-License-Identifier: MIT */
/*
 * Checks a configuration to be applied: known members, matching types, and lists whose elements
 * have unique keys.
 */
#include "config.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "typed_internal.h"

#define ERRORS_MAX 20

struct check {
	struct strbuf path, out; /* owned: of the current value; the messages */
	size_t n;                /* errors found; those beyond ERRORS_MAX are not written */
};

static void fault(struct check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Add an error at the current path. Like kube-apiserver, several errors are listed on lines of
 * their own. */
static void fault(struct check *c, const char *fmt, ...)
{
	va_list ap;

	if (c->n++ >= ERRORS_MAX)
		return;
	strbuf_addf(&c->out, "%s%s: ", c->n > 1 ? "\n  " : "", strbuf_str(&c->path));
	va_start(ap, fmt);
	strbuf_vaddf(&c->out, fmt, ap);
	va_end(ap);
}

static void check(const struct apistore_place *p, struct json_object *v, struct check *c);

/* Check a value one step down; at NULL: the step is not in the schema. */
static void check_below(
	const struct apistore_place *at, const char *step, struct json_object *v, struct check *c)
{
	size_t before = c->path.len;

	apistore_fieldset_print_step(&c->path, step);
	if (at)
		check(at, v, c);
	else
		fault(c, "field not declared in schema");
	c->path.len = before;
	c->path.data[before] = '\0';
}

/* Check the members of a map. Only kinds with a CRD have a closed set of members here: those of
 * built-in kinds are checked by the decoder. */
static void check_map(const struct apistore_place *p, struct json_object *o, struct check *c)
{
	json_each (o, name, v) {
		struct apistore_place at = apistore_place_member(p, name);
		cleanup_free char *step = typed_field_step(name);
		bool unknown = p->custom && schema_at_declares(p->at, name) == SCHEMA_UNKNOWN;

		check_below(unknown ? NULL : &at, step, v, c);
		if (unknown) /* kube-apiserver stops at the first unknown member too */
			return;
	}
}

/* Report an element that has no key, and why. */
static void no_element(
	const struct schema_merge *m, struct json_object *e, size_t i, struct check *c)
{
	cleanup_strbuf struct strbuf keys = STRBUF_INIT;

	if (m->type == SCHEMA_MERGE_SET) {
		fault(c, "element %zu: %s", i,
			typed_is_map(e)
				? "associative list without keys has an element that's a map type"
			: typed_is_list(e)
				? "not supported: associative list with lists as elements"
				: "associative list without keys has an element that's an explicit null");
		return;
	}
	if (!typed_is_map(e)) {
		fault(c, "element %zu: associative list with keys may not have %s", i,
			e ? "non-map elements" : "a null element");
		return;
	}
	for (size_t k = 0; k < ARRAY_LEN(m->keys) && m->keys[k]; k++)
		strbuf_addf(&keys, "%s\"%s\"", k ? " " : "", m->keys[k]);
	fault(c,
		"element %zu: associative list with keys has an element that omits all key fields [%s] (and doesn't have default values for any key fields)",
		i, strbuf_str(&keys));
}

/* Check the elements of a list. One without a key ends the check of the list. */
static void check_list(const struct apistore_place *p, struct json_object *list, struct check *c)
{
	const struct apistore_place at = apistore_place_element(p);
	bool keyed = p->merge.type == SCHEMA_MERGE_SET || p->merge.type == SCHEMA_MERGE_MAP;
	cleanup_typed_items struct typed_items it = typed_items_of(p, keyed ? list : NULL);

	for (size_t i = 0; i < json_len(list); i++) {
		cleanup_free char *index = xasprintf("i:%zu", i);
		const char *step = keyed ? it.at[i].step : index;
		struct json_object *e = json_at(list, i);
		size_t n;

		if (!step) {
			no_element(&p->merge, e, i, c);
			return;
		}
		if (keyed && typed_items_find(&it, step, &n)->i != i) {
			cleanup_strbuf struct strbuf key = STRBUF_INIT;

			apistore_fieldset_print_step(&key, step);
			fault(c, "duplicate entries for key %s", strbuf_str(&key));
		}
		check_below(&at, step, e, c);
	}
}

/* Check one value: its type against the schema first, then what is inside. */
static void check(const struct apistore_place *p, struct json_object *v, struct check *c)
{
	cleanup_free char *mismatch = p->custom ? schema_at_mismatch(p->at, v) : NULL;

	if (mismatch)
		fault(c, "%s", mismatch);
	else if (typed_is_map(v))
		check_map(p, v, c);
	else if (typed_is_list(v))
		check_list(p, v, c);
}

/* One error is returned as it is; several are listed under "errors:", as in kube-apiserver. */
char *apistore_typed_check(const struct apistore_place *p, struct json_object *conf)
{
	struct check c = {STRBUF_INIT, STRBUF_INIT, 0};
	char *text = NULL;

	check(p, conf, &c);
	if (c.n == 1)
		text = strbuf_steal(&c.out);
	else if (c.n > 1)
		text = xasprintf("errors:\n  %s", strbuf_str(&c.out));
	strbuf_fini(&c.path);
	strbuf_fini(&c.out);
	return text;
}
