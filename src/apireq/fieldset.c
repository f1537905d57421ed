/* SPDX-License-Identifier: MIT */
/*
 * One sorted array per level; operations walk two of them in parallel. Steps that hold JSON are
 * stored in canonical form (json_canonical), so that equal steps are equal texts.
 */
#include "config.h"

#include "tec/apireq/fieldset.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/schema/cause.h"

void apireq_fieldset_fini(struct apireq_fieldset *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->at[i].step);
		apireq_fieldset_fini(&s->at[i].below);
	}
	free(s->at);
	*s = (struct apireq_fieldset){NULL, 0};
}

/* ---- building */

/* The step is copied; the set below it is moved in, and *take_below is empty afterwards. */
void apireq_fieldset_add(struct apireq_fieldset *s, const char *step, bool member,
	struct apireq_fieldset *take_below)
{
	struct apireq_fieldset below = {NULL, 0};

	if (take_below)
		below = *take_below;
	if (!member && below.n == 0)
		return;
	ARRAY_GROW(s->at, s->n);
	s->at[s->n++] = (struct apireq_step){xstrdup(step), member, below};
	if (take_below)
		*take_below = (struct apireq_fieldset){NULL, 0};
}

static int by_step(const void *a, const void *b)
{
	const struct apireq_step *x = a, *y = b;

	return strcmp(x->step, y->step);
}

/* Sort the steps and merge duplicates, which arise when the same step is added in several
 * places. */
void apireq_fieldset_done(struct apireq_fieldset *s)
{
	size_t n = 0;

	if (s->n < 2)
		return;
	qsort(s->at, s->n, sizeof(*s->at), by_step);
	for (size_t i = 1; i < s->n; i++) {
		struct apireq_step *to = &s->at[n], *from = &s->at[i];

		if (!str_eq(to->step, from->step)) {
			s->at[++n] = *from;
			continue;
		}
		to->member |= from->member;
		apireq_fieldset_change(&to->below, APIREQ_UNION, &from->below);
		free(from->step);
		apireq_fieldset_fini(&from->below);
	}
	s->n = n + 1;
}

/* ---- operations */

const struct apireq_step *apireq_fieldset_find(const struct apireq_fieldset *s, const char *step)
{
	const struct apireq_step key = {.step = (char *)step};

	return s->n ? bsearch(&key, s->at, s->n, sizeof(*s->at), by_step) : NULL;
}

/* Combine one step that is in a, in b, or in both (x or y is NULL if it is not there). */
static void combine_step(struct apireq_fieldset *out, const struct apireq_step *x,
	const struct apireq_step *y, enum apireq_combine how)
{
	static const struct apireq_step none;
	const struct apireq_step *in_a = x ? x : &none, *in_b = y ? y : &none;
	struct apireq_fieldset below = apireq_fieldset_combine(&in_a->below, how, &in_b->below);
	bool member = how == APIREQ_UNION  ? in_a->member || in_b->member
		      : how == APIREQ_BOTH ? in_a->member && in_b->member
					   : in_a->member && !in_b->member;

	apireq_fieldset_add(out, x ? x->step : y->step, member, &below);
}

/* Combine two sets level by level. */
struct apireq_fieldset apireq_fieldset_combine(
	const struct apireq_fieldset *a, enum apireq_combine how, const struct apireq_fieldset *b)
{
	struct apireq_fieldset out = {NULL, 0};
	size_t i = 0, k = 0;

	if (how != APIREQ_UNION &&
		a->n < b->n / 8) { /* look up the few instead of walking the many */
		for (; i < a->n; i++) {
			const struct apireq_step *y = apireq_fieldset_find(b, a->at[i].step);

			if (y || how == APIREQ_WITHOUT)
				combine_step(&out, &a->at[i], y, how);
		}
		return out;
	}
	while (i < a->n || k < b->n) {
		int c = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->at[i].step, b->at[k].step);

		if (c <= 0 && (c == 0 || how != APIREQ_BOTH))
			combine_step(&out, &a->at[i], c == 0 ? &b->at[k] : NULL, how);
		else if (c > 0 && how == APIREQ_UNION)
			combine_step(&out, NULL, &b->at[k], how);
		i += c <= 0;
		k += c >= 0;
	}
	return out;
}

void apireq_fieldset_change(
	struct apireq_fieldset *s, enum apireq_combine how, const struct apireq_fieldset *with)
{
	struct apireq_fieldset now = apireq_fieldset_combine(s, how, with);

	apireq_fieldset_fini(s);
	*s = now;
}

/* ---- printing */

/* Parse the JSON of a "k:" or "v:" step. NULL also for null, and for a step beyond the limits. */
static struct json_object *parse_step(const char *step)
{
	static const struct json_limits limits = {1u << 20, 16, 1000, true};
	struct err err = ERR_INIT;

	return json_parse(step + 2, strlen(step + 2), &limits, &err);
}

/* Print one step by its type, which is the letter in front. */
void apireq_fieldset_print_step(struct strbuf *out, const char *step)
{
	cleanup_json struct json_object *v = NULL;
	const char *comma = "[";

	switch (step[0]) {
	case 'f':
		strbuf_addf(out, ".%s", step + 2);
		break;
	case 'i':
		strbuf_addf(out, "[%s]", step + 2);
		break;
	case 'k':
		v = parse_step(step);
		if (!v) { /* too long for the limits of parse_step */
			strbuf_addf(out, "[%s]", step + 2);
			break;
		}
		json_each (v, name, key) {
			strbuf_addf(out, "%s%s=", comma, name);
			json_canonical(out, key);
			comma = ",";
		}
		strbuf_addc(out, ']');
		break;
	default:
		v = parse_step(step);
		strbuf_adds(out, "[=");
		json_canonical(out, v);
		strbuf_addc(out, ']');
	}
}

/* Visit one level: its members, or else what is below them. kube-apiserver prints all members of a
 * level before it descends, and so does this. */
static void each_below(const struct apireq_fieldset *s, struct strbuf *path, bool members,
	void (*fn)(void *arg, const char *path), void *arg)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t before = path->len;

		if (members ? !s->at[i].member : s->at[i].below.n == 0)
			continue;
		apireq_fieldset_print_step(path, s->at[i].step);
		if (members) {
			fn(arg, strbuf_str(path));
		} else {
			each_below(&s->at[i].below, path, true, fn, arg);
			each_below(&s->at[i].below, path, false, fn, arg);
		}
		path->len = before;
		path->data[before] = '\0';
	}
}

/* One buffer holds the path and is extended and cut back during the walk. */
void apireq_fieldset_each(
	const struct apireq_fieldset *s, void (*fn)(void *arg, const char *path), void *arg)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	each_below(s, &path, true, fn, arg);
	each_below(s, &path, false, fn, arg);
}

/* ---- FieldsV1 */

/* A step with nothing below it is an empty object. With something below it, "." says that the path
 * itself is in the set too. */
struct json_object *apireq_fieldset_json(const struct apireq_fieldset *s)
{
	struct json_object *o = json_obj();

	for (size_t i = 0; i < s->n; i++) {
		struct json_object *below = apireq_fieldset_json(&s->at[i].below);

		if (s->at[i].below.n > 0 && s->at[i].member)
			json_add(below, ".", json_obj());
		json_add(o, s->at[i].step, below);
	}
	return o;
}

/* Return a step in canonical form; the caller frees it. NULL: it is not a step. */
static char *canonical(const char *name)
{
	struct strbuf out = STRBUF_INIT;
	struct json_object *v;
	uint64_t index;

	if (!name[0] || name[1] != ':')
		return NULL;
	/* Negative indices are valid in FieldsV1. */
	if (name[0] == 'f' ||
		(name[0] == 'i' && str_to_u64(name + 2 + (name[2] == '-'), INT32_MAX, &index) == 0))
		return xstrdup(name);
	if (name[0] == 'v' && str_eq(name + 2, "null"))
		return xstrdup(name);
	if (name[0] != 'k' && name[0] != 'v')
		return NULL;
	v = parse_step(name);
	if (!v || json_find_infinite(v) ||
		(name[0] == 'k' && !json_object_is_type(v, json_type_object))) {
		json_object_put(v);
		return NULL;
	}
	strbuf_addf(&out, "%c:", name[0]);
	json_canonical(&out, v);
	json_object_put(v);
	return strbuf_steal(&out);
}

/* An empty object means the path itself, and "." the path besides those below it. A failure leaves an
 * empty set, so a caller never sees half of one. */
int apireq_fieldset_read(struct json_object *o, struct apireq_fieldset *out, struct err *err)
{
	*out = (struct apireq_fieldset){NULL, 0};
	if (!json_object_is_type(o, json_type_object))
		return err_set(err, ERR_INVALID, "the fields must be an object");
	json_each (o, name, v) {
		cleanup_free char *step = str_eq(name, ".") ? NULL : canonical(name);
		cleanup_apireq_fieldset struct apireq_fieldset below = {NULL, 0};

		if (str_eq(name, "."))
			continue;
		if (!step || !json_object_is_type(v, json_type_object))
			(void)err_set(err, ERR_INVALID, "\"%.60s\" is not a valid path element",
				log_esc(name));
		else
			(void)!apireq_fieldset_read(v, &below, err);
		if (err_is_set(err)) {
			apireq_fieldset_fini(out);
			return -1;
		}
		apireq_fieldset_add(out, step,
			json_len(v) == 0 || json_object_object_get_ex(v, ".", NULL), &below);
	}
	apireq_fieldset_done(out);
	return 0;
}
