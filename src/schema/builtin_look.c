/* SPDX-License-Identifier: MIT */
/* What the checks of built-in kinds have in common: the words are kube-apiserver's. */
#include "config.h"

#include "builtin_internal.h"

#include <ctype.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#define LABEL_TEXT                                                                                 \
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

size_t look_go(struct look *l, const char *name)
{
	return schema_path_add(&l->path, name);
}

void look_back(struct look *l, size_t before)
{
	schema_path_cut(&l->path, before);
}

/* A cause about a member of what is looked at. */
void look_at(struct look *l, const char *name, enum schema_problem p, struct json_object *v,
	const char *why)
{
	size_t before = look_go(l, name);

	schema_cause_add(l->causes, p, strbuf_str(&l->path), v, "%s", why);
	look_back(l, before);
}

void look_at_text(
	struct look *l, const char *name, enum schema_problem p, const char *value, const char *why)
{
	size_t before = look_go(l, name);

	schema_cause_add_text(l->causes, p, strbuf_str(&l->path), value, "%s", why);
	look_back(l, before);
}

void look_here(struct look *l, enum schema_problem p, const char *value, const char *why)
{
	schema_cause_add_text(l->causes, p, strbuf_str(&l->path), value ? value : "", "%s", why);
}

bool look_number(struct json_object *o, const char *name, int64_t *out)
{
	struct json_object *v = json_get(o, name);

	*out = v && json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : 0;
	return v && json_object_is_type(v, json_type_int);
}

void look_not_negative(struct look *l, struct json_object *o, const char *name)
{
	int64_t n;

	if (look_number(o, name, &n) && n < 0)
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), LOOK_NEGATIVE);
}

void look_port(struct look *l, struct json_object *o, const char *name)
{
	int64_t n;

	if (look_number(o, name, &n) && (n < 1 || n > 65535))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), LOOK_PORT);
}

/* False: all has got the sentence that says which there are. */
static bool is_one_of(struct strbuf *all, const char *have, const char *const *words)
{
	for (const char *const *w = words; *w; w++) {
		if (str_eq(have, *w))
			return true;
		strbuf_addf(all, "%s\"%s\"", all->len ? ", " : "supported values: ", *w);
	}
	return false;
}

bool look_one_of(struct look *l, struct json_object *o, const char *name, const char *const *words)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;
	const char *have = json_get_str(o, name);

	if (is_one_of(&all, have, words))
		return true;
	if (have)
		look_at(l, name, SCHEMA_UNSUPPORTED, json_get(o, name), strbuf_str(&all));
	return !have;
}

void look_word(struct look *l, struct json_object *o, const char *name, const char *const *words)
{
	cleanup_json struct json_object *none = json_add_str(json_obj(), name, "");

	(void)look_one_of(l, json_get(o, name) ? o : none, name, words);
}

bool look_empty(struct json_object *v)
{
	return !v ||
	       (json_object_is_type(v, json_type_array) && json_object_array_length(v) == 0) ||
	       (json_object_is_type(v, json_type_string) && json_object_get_string_len(v) == 0) ||
	       (json_object_is_type(v, json_type_object) && json_object_object_length(v) == 0);
}

bool look_needs(struct look *l, struct json_object *o, const char *name, const char *why)
{
	if (!look_empty(json_get(o, name)))
		return true;
	look_at(l, name, SCHEMA_REQUIRED, NULL, why);
	return false;
}

void look_label(struct look *l, struct json_object *o, const char *name)
{
	const char *s = json_get_str(o, name);

	if (!s)
		return;
	if (strlen(s) > 63)
		look_at(l, name, SCHEMA_INVALID, json_get(o, name),
			"must be no more than 63 characters");
	else if (!kobj_label_valid(s, strlen(s)))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), LABEL_TEXT);
}

void look_each(struct look *l, struct json_object *o, const char *name,
	void (*fn)(struct look *l, struct json_object *v))
{
	struct json_object *a = json_get_arr(o, name);
	size_t whole = look_go(l, name);

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		size_t before = schema_path_index(&l->path, i);

		if (json_object_is_type(json_object_array_get_idx(a, i), json_type_object))
			fn(l, json_object_array_get_idx(a, i));
		look_back(l, before);
	}
	look_back(l, whole);
}

/* A name that an earlier element of the list has. */
void look_unique(struct look *l, struct json_object *o, const char *list)
{
	struct json_object *a = json_get_arr(o, list);
	cleanup_json struct json_object *seen = json_obj();
	size_t whole = look_go(l, list);

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *e = json_object_array_get_idx(a, i);
		const char *name = json_get_str(e, "name");
		size_t before = schema_path_index(&l->path, i);

		if (name && *name && json_object_object_get_ex(seen, name, NULL))
			look_at(l, "name", SCHEMA_DUPLICATE, json_get(e, "name"), "");
		else if (name && *name)
			json_add_bool(seen, name, true);
		look_back(l, before);
	}
	look_back(l, whole);
}

/* ---- names */

#define SUBDOMAIN_TEXT                                                                             \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define VALUE_TEXT                                                                                 \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

void look_subdomain(struct look *l, struct json_object *o, const char *name)
{
	const char *s = json_get_str(o, name);

	if (s && !kobj_name_valid(s, strlen(s)))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name), SUBDOMAIN_TEXT);
}

void look_subdomain_at(struct look *l, const char *field, const char *value)
{
	if (!value || !kobj_name_valid(value, strlen(value)))
		look_at_text(l, field, SCHEMA_INVALID, value ? value : "", SUBDOMAIN_TEXT);
}

void look_segment(struct look *l, const char *field, const char *value)
{
	static const char *const never[] = {"/", "%"}, *const is[] = {".", ".."};

	for (size_t i = 0; i < ARRAY_LEN(is); i++)
		if (str_eq(value, is[i])) {
			cleanup_free char *why = xasprintf("may not be '%s'", is[i]);

			look_at_text(l, field, SCHEMA_INVALID, value, why);
			return;
		}
	for (size_t i = 0; value && i < ARRAY_LEN(never); i++)
		if (strstr(value, never[i])) {
			cleanup_free char *why = xasprintf("may not contain '%s'", never[i]);

			look_at_text(l, field, SCHEMA_INVALID, value, why);
		}
}

/* ---- selectors */

/* Of any length. */
bool look_part(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
			return false;
	return true;
}

static bool is_part(const char *s)
{
	return strlen(s) <= 63 && look_part(s);
}

bool look_qualified(const char *s)
{
	const char *slash = strchr(s, '/');

	if (slash && !kobj_name_valid(s, (size_t)(slash - s)))
		return false;
	return is_part(slash ? slash + 1 : s);
}

void look_name(struct look *l, const char *field, const char *value)
{
	const char *s = value ? value : "";

	if (!*s)
		look_at_text(l, field, SCHEMA_INVALID, s, "name part must be non-empty");
	if (!look_qualified(s))
		look_at_text(l, field, SCHEMA_INVALID, s, LOOK_PART);
}

void look_value(struct look *l, const char *field, const char *value)
{
	if (value && *value && !is_part(value))
		look_at_text(l, field, SCHEMA_INVALID, value, VALUE_TEXT);
}

void look_labels(struct look *l, const char *field, struct json_object *labels)
{
	if (!json_object_is_type(labels, json_type_object))
		return;
	json_object_object_foreach (labels, key, v) {
		if (!look_qualified(key))
			look_at_text(l, field, SCHEMA_INVALID, key, LOOK_PART);
		look_value(l, field, json_object_get_string(v));
	}
}

static void match_expression(struct look *l, struct json_object *e)
{
	const char *op = json_get_str(e, "operator"), *key = json_get_str(e, "key");
	struct json_object *values = json_get_arr(e, "values");
	size_t n = values ? json_object_array_length(values) : 0;
	bool some = str_eq(op, "In") || str_eq(op, "NotIn");

	if (some && n == 0)
		look_at(l, "values", SCHEMA_REQUIRED, NULL,
			"must be specified when `operator` is 'In' or 'NotIn'");
	else if ((str_eq(op, "Exists") || str_eq(op, "DoesNotExist")) && n > 0)
		look_at(l, "values", SCHEMA_FORBIDDEN, NULL,
			"may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
	else if (!some && !str_eq(op, "Exists") && !str_eq(op, "DoesNotExist"))
		look_at_text(l, "operator", SCHEMA_INVALID, op ? op : "",
			"not a valid selector operator");
	if (!look_qualified(key ? key : ""))
		look_at_text(l, "key", SCHEMA_INVALID, key ? key : "", LOOK_PART);
	for (size_t i = 0; i < n; i++) {
		const char *value = json_object_get_string(json_object_array_get_idx(values, i));
		size_t before = look_go(l, "values"), inside = schema_path_index(&l->path, i);

		(void)inside;
		if (value && *value && !is_part(value))
			schema_cause_add_text(l->causes, SCHEMA_INVALID, strbuf_str(&l->path),
				value, "%s", VALUE_TEXT);
		look_back(l, before);
	}
}

bool look_selector(struct look *l, struct json_object *o, const char *name)
{
	struct json_object *s = json_get_obj(o, name);
	size_t before = look_go(l, name), causes = l->causes->n;

	look_labels(l, "matchLabels", json_get(s, "matchLabels"));
	look_each(l, s, "matchExpressions", match_expression);
	look_back(l, before);
	return l->causes->n == causes;
}
