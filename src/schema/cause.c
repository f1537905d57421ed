/* SPDX-License-Identifier: MIT */
/* Causes and their texts, in the form of apimachinery's field.Error: "TEXT: VALUE: DETAIL". Reasons
 * and texts are kube-apiserver's, because programs match them. */
#include "config.h"

#include "tec/schema/cause.h"

#include "tec/base/json.h"
#include "tec/base/str.h"
#include "tec/base/utf8.h"

static const struct {
	const char *reason, *text;
} problems[] = {
	[SCHEMA_INVALID] = {"FieldValueInvalid", "Invalid value"},
	[SCHEMA_TYPE_INVALID] = {"FieldValueTypeInvalid", "Invalid value"},
	[SCHEMA_REQUIRED] = {"FieldValueRequired", "Required value"},
	[SCHEMA_DUPLICATE] = {"FieldValueDuplicate", "Duplicate value"},
	[SCHEMA_NOT_FOUND] = {"FieldValueNotFound", "Not found"},
	[SCHEMA_UNSUPPORTED] = {"FieldValueNotSupported", "Unsupported value"},
	[SCHEMA_FORBIDDEN] = {"FieldValueForbidden", "Forbidden"},
	[SCHEMA_TOO_LONG] = {"FieldValueTooLong", "Too long"},
	[SCHEMA_TOO_MANY] = {"FieldValueTooMany", "Too many"},
};

#define VALUE_MAX 200 /* bytes of a value that are printed */

/* ---- causes */

/* Used to take causes back, when it turns out that an update did not cause them. */
void schema_causes_cut(struct schema_causes *c, size_t n)
{
	while (c->n > n) {
		struct schema_cause *last = &c->cause[--c->n];

		c->bytes -= strlen(last->field) + strlen(last->message);
		free(last->field);
		free(last->message);
	}
}

void schema_causes_fini(struct schema_causes *c)
{
	schema_causes_cut(c, 0);
	free(c->cause);
	*c = (struct schema_causes){NULL, 0, 0};
}

/* The detail may be empty, after which no colon follows. */
void schema_cause_add(struct schema_causes *c, enum schema_problem problem, const char *field,
	struct json_object *value, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf detail = STRBUF_INIT, text = STRBUF_INIT;
	struct strbuf message = STRBUF_INIT;
	bool cut;
	va_list ap;

	/* A hostile object could cause any number of them: limit both number and size. */
	if (c->n >= SCHEMA_CAUSES_MAX || c->bytes >= SCHEMA_CAUSES_BYTES)
		return;
	strbuf_adds(&message, problems[problem].text);
	if (value) { /* as JSON; a long one is cut between two characters */
		json_canonical(&text, value);
		cut = text.len > VALUE_MAX;
		utf8_fit(&text, VALUE_MAX);
		strbuf_addf(&message, ": %s%s", strbuf_str(&text), cut ? "..." : "");
	}
	va_start(ap, fmt);
	strbuf_vaddf(&detail, fmt, ap);
	va_end(ap);
	if (detail.len)
		strbuf_addf(&message, ": %s", detail.data);
	ARRAY_GROW(c->cause, c->n);
	c->cause[c->n++] = (struct schema_cause){.problem = problem,
		.reason = problems[problem].reason,
		.field = xstrdup(field && *field ? field : "<nil>"),
		.message = strbuf_steal(&message)};
	c->bytes += strlen(c->cause[c->n - 1].message) + strlen(c->cause[c->n - 1].field);
}

void schema_cause_add_text(struct schema_causes *c, enum schema_problem problem, const char *field,
	const char *value, const char *detail)
{
	cleanup_json struct json_object *v = value ? json_str(value) : NULL;

	schema_cause_add(c, problem, field, v, "%s", detail);
}

/* As apimachinery's aggregate does, a message repeats no cause, and has brackets only around several
 * causes. */
char *schema_causes_text(const struct schema_causes *c)
{
	struct strbuf b = STRBUF_INIT;
	cleanup_free char *all = NULL;
	size_t n = 0;

	for (size_t i = 0, k; i < c->n; i++) {
		k = 0;
		while (!str_eq(c->cause[i].field, c->cause[k].field) ||
			!str_eq(c->cause[i].message, c->cause[k].message))
			k++;
		if (k == i)
			strbuf_addf(&b, "%s%s: %s", n++ ? ", " : "", c->cause[i].field,
				c->cause[i].message);
	}
	all = strbuf_steal(&b);
	return n > 1 ? xasprintf("[%s]", all) : steal_ptr(&all);
}

/* Unlike the message, the list keeps repeated causes, as kube-apiserver's does. */
struct json_object *schema_causes_json(const struct schema_causes *c)
{
	struct json_object *a = json_arr();

	for (size_t i = 0; i < c->n; i++) {
		struct json_object *o = json_obj();

		json_add_str(o, "reason", c->cause[i].reason);
		json_add_str(o, "message", c->cause[i].message);
		json_add_str(o, "field", c->cause[i].field);
		json_push(a, o);
	}
	return a;
}

/* ---- texts */

void schema_texts_fini(struct schema_texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->text[i]);
	free(t->text);
	*t = (struct schema_texts){NULL, 0, 0};
}

/* The bounds of causes apply, so that a hostile object cannot fill memory with paths. */
void schema_texts_add(struct schema_texts *t, const char *fmt, ...)
{
	struct strbuf b = STRBUF_INIT;
	va_list ap;

	if (t->n >= SCHEMA_CAUSES_MAX || t->bytes >= SCHEMA_CAUSES_BYTES)
		return;
	va_start(ap, fmt);
	strbuf_vaddf(&b, fmt, ap);
	va_end(ap);
	ARRAY_GROW(t->text, t->n);
	t->bytes += b.len;
	t->text[t->n++] = strbuf_steal(&b);
}

void schema_texts_sort(struct schema_texts *t)
{
	if (t->n)
		qsort(t->text, t->n, sizeof(*t->text), str_order);
}
