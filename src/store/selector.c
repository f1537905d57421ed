/* SPDX-License-Identifier: MIT */
/*
 * A selector is a list of requirements, each on one label or field; an object must meet all of
 * them. Label and field selectors are parsed to the same list, with a flag for fields.
 */
#include "config.h"

#include "tec/store/selector.h"

#include <ctype.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define REQUIREMENTS_MAX 256
#define VALUES_MAX       1024

enum op { EXISTS, ABSENT, IN, NOT_IN, GREATER, LESS };

struct requirement {
	enum op op;
	bool field;    /* key is a field, not a label */
	char *key;     /* owned */
	char **values; /* owned */
	size_t n_values;
	int64_t number; /* for GREATER and LESS */
};

struct store_selector {
	struct requirement *req; /* owned */
	size_t n;
};

/* The fields that a selector may name besides metadata.name and metadata.namespace. */
static const struct {
	const char *resource, *fields[14];
} selectable[] = {
	{"secrets", {"type"}},
	{"namespaces", {"status.phase"}},
	{"events", {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
			   "involvedObject.uid", "involvedObject.apiVersion",
			   "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
			   "reportingComponent", "source", "type"}},
	{"events.events.k8s.io",
		{"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
			"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
			"reason", "reportingController", "type"}},
};

/* Return the selectable fields of a resource, in the names of its own group. */
static const char *const *fields_of(const char *resource)
{
	static const char *const none[] = {NULL};

	for (size_t i = 0; i < ARRAY_LEN(selectable); i++)
		if (str_eq(selectable[i].resource, resource))
			return selectable[i].fields;
	return none;
}

static bool has_field(const char *resource, const char *name)
{
	const char *const *f = fields_of(resource);

	while (*f && !str_eq(*f, name))
		f++;
	return *f || str_eq(name, "metadata.name") || str_eq(name, "metadata.namespace");
}

static void add_value(struct requirement *r, char *take_value)
{
	ARRAY_GROW(r->values, r->n_values);
	r->values[r->n_values++] = take_value;
}

void store_selector_free(struct store_selector *s)
{
	for (size_t i = 0; s && i < s->n; i++) {
		for (size_t k = 0; k < s->req[i].n_values; k++)
			free(s->req[i].values[k]);
		free(s->req[i].values);
		free(s->req[i].key);
	}
	if (s)
		free(s->req);
	free(s);
}

/* Append a requirement. The array may move, so earlier pointers into it become invalid. */
static struct requirement *add(struct store_selector *s, char *take_key, bool field)
{
	ARRAY_GROW(s->req, s->n);
	s->req[s->n] = (struct requirement){.key = take_key, .field = field};
	return &s->req[s->n++];
}

/* ---- labels */

struct reader {
	const char *p;
	struct err *err;
};

static void skip_blanks(struct reader *r)
{
	while (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')
		r->p++;
}

/* Read a key, a value or an operator in letters; "" if the next character is none. */
static char *word(struct reader *r)
{
	size_t n;

	skip_blanks(r);
	n = strcspn(r->p, " \t\r\n,!=<>()");
	r->p += n;
	return xstrndup(r->p - n, n);
}

/* Consume the token if it comes next. */
static bool accept(struct reader *r, const char *token)
{
	skip_blanks(r);
	if (!str_starts(r->p, token))
		return false;
	r->p += strlen(token);
	return true;
}

bool store_selector_is_name(const char *s, size_t len)
{
	if (len == 0)
		return true;
	if (len > 63 || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
			return false;
	return true;
}

/* Check a label value. The text is kube-apiserver's, cut before its regular expression. */
static int check_value(const char *key, const char *value, struct err *err)
{
	if (store_selector_is_name(value, strlen(value)))
		return 0;
	return err_set(err, ERR_INVALID,
		"values[0][%s]: Invalid value: %s: a valid label must be an empty string or consist "
		"of alphanumeric characters, '-', '_' or '.', and must start and end with an "
		"alphanumeric character",
		log_esc(key), log_esc(value));
}

/* Set the error for an unexpected token, and quote it, as kube-apiserver does. */
static int expected(struct reader *r, const char *what)
{
	size_t n;

	skip_blanks(r);
	n = strspn(r->p, "=!<>");
	n = n ? (n > 2 ? 2 : n) : strcspn(r->p, " \t\r\n,!=<>()");
	n = n || !*r->p ? n : 1;
	return err_set(r->err, ERR_INVALID, "found '%.*s', expected: %s", (int)(n < 64 ? n : 64),
		r->p, what);
}

/* The same within a requirement, where kube-apiserver adds a prefix. */
static int expected_in(struct reader *r, const char *what)
{
	(void)expected(r, what);
	return err_wrap(r->err, "unable to parse requirement");
}

/* Read "(a,b,c)" after in or notin. An empty value is valid and matches an empty label. */
static int read_values(struct reader *r, struct requirement *req)
{
	if (!accept(r, "("))
		return expected_in(r, "'('");
	do {
		char *value = word(r);

		add_value(req, value);
		if (req->n_values > VALUES_MAX)
			return err_set(r->err, ERR_INVALID, "too many values");
		if (check_value(req->key, value, r->err) < 0)
			return -1;
	} while (accept(r, ","));
	return accept(r, ")") ? 0 : expected_in(r, "',', or ')'");
}

/* Read the number after > or <. It may be negative. */
static int read_number(struct reader *r, struct requirement *req)
{
	cleanup_free char *value = word(r);
	uint64_t n = 0;

	if (str_to_u64(value + (*value == '-'), INT64_MAX, &n) < 0)
		return err_set(r->err, ERR_INVALID,
			"values[0][%s]: Invalid value: %s: for 'Gt', 'Lt' operators, the value must be an integer",
			log_esc(req->key), log_esc(value));
	req->number = *value == '-' ? -(int64_t)n : (int64_t)n;
	return 0;
}

/* Read the operator and its values. Without an operator the requirement stays EXISTS. */
static int read_operator(struct reader *r, struct requirement *req)
{
	bool equal = accept(r, "==") || accept(r, "="), unequal = !equal && accept(r, "!=");
	cleanup_free char *letters = NULL;

	if (equal || unequal) {
		req->op = equal ? IN : NOT_IN;
		add_value(req, word(r));
		return check_value(req->key, req->values[0], r->err);
	}
	if (accept(r, ">") || accept(r, "<")) {
		req->op = r->p[-1] == '>' ? GREATER : LESS;
		return read_number(r, req);
	}
	letters = word(r);
	if (str_eq(letters, "in") || str_eq(letters, "notin")) {
		req->op = str_eq(letters, "in") ? IN : NOT_IN;
		return read_values(r, req);
	}
	/* Step back, so that the error quotes the word that was found. */
	r->p -= strlen(letters);
	return *letters ? expected_in(r, "in, notin, =, ==, !=, gt, lt") : 0;
}

/* Parse a label selector: KEY, !KEY, KEY=VALUE, KEY in (VALUES) and so on, separated by commas. */
static int read_labels(struct store_selector *s, const char *text, struct err *err)
{
	struct reader r = {text, err};

	skip_blanks(&r);
	if (!*r.p)
		return 0;
	do {
		const char *slash, *name;
		bool absent = accept(&r, "!");
		char *key = word(&r);
		struct requirement *req = add(s, key, false);

		if (!*key)
			return expected_in(&r, "!, identifier");
		/* An optional prefix up to a slash, and a name. */
		slash = strchr(key, '/');
		name = slash ? slash + 1 : key;
		if (!*name || slash == key || (slash && slash - key > 253) ||
			!store_selector_is_name(name, strlen(name)))
			return err_set(err, ERR_INVALID,
				"key: Invalid value: %s: is not a valid label name", log_esc(key));
		if (absent)
			req->op = ABSENT;
		else if (read_operator(&r, req) < 0)
			return -1;
		if (s->n > REQUIREMENTS_MAX)
			return err_set(err, ERR_INVALID, "too many requirements");
	} while (accept(&r, ","));
	skip_blanks(&r);
	return *r.p ? expected(&r, "',' or 'end of string'") : 0;
}

/* ---- fields */

/* Read up to the first of `ends` that is not escaped, and remove the backslashes. NULL: a backslash
 * before any other character. */
static char *unescaped(const char **p, const char *ends)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	while (**p && !strchr(ends, **p)) {
		if (**p == '\\' && !strchr("\\,=", *++*p))
			return NULL;
		if (!**p)
			return NULL;
		strbuf_addc(&b, *(*p)++);
	}
	return strbuf_steal(&b);
}

/* Parse a field selector: KEY=VALUE, KEY==VALUE or KEY!=VALUE, separated by commas. */
static int read_fields(
	struct store_selector *s, const char *text, const char *resource, struct err *err)
{
	const char *p = text;

	while (*p) {
		char *key = unescaped(&p, "=!,"), *value;
		bool unequal = *p == '!';
		struct requirement *req = add(s, key ? key : xstrdup(""), true);

		req->op = unequal ? NOT_IN : IN;
		p += unequal;
		if (!key || *p != '=')
			return err_set(err, ERR_INVALID,
				"invalid selector: %s; can't understand it", log_esc(text));
		p += 1 + (!unequal && p[1] == '=');
		value = unescaped(&p, ",");
		if (value)
			add_value(req, value);
		if (!value || s->n > REQUIREMENTS_MAX)
			return err_set(err, ERR_INVALID,
				"invalid field selector: %s; invalid value", log_esc(text));
		if (!has_field(resource, key))
			return err_set(err, ERR_INVALID, "field label not supported: %s", key);
		/* Events are stored in the form of the core group. */
		if (str_eq(resource, "events.events.k8s.io") && str_starts(key, "regarding."))
			req->key = xasprintf("involvedObject.%s", key + strlen("regarding."));
		else if (str_eq(resource, "events.events.k8s.io") &&
			 str_eq(key, "reportingController"))
			req->key = xstrdup("reportingComponent");
		if (req->key != key)
			free(key);
		p += *p == ',';
	}
	return 0;
}

/* Labels and fields go to one list. No requirement at all is no selector, which callers test
 * for. */
int store_selector_parse(const char *labels, const char *fields, const char *resource,
	struct store_selector **out, struct err *err)
{
	struct store_selector *s = xcalloc(1, sizeof(*s));

	*out = NULL;
	if (read_labels(s, labels ? labels : "", err) < 0 ||
		read_fields(s, fields ? fields : "", resource, err) < 0) {
		store_selector_free(s);
		return -1;
	}
	if (s->n > 0)
		*out = s;
	else
		store_selector_free(s);
	return 0;
}

/* ---- matching */

/* Only labels and the selectable fields are kept. Selecting by source means its component, as in
 * kube-apiserver. Numbers and booleans are stored as text. */
char *store_selector_meta(struct json_object *o, const char *resource)
{
	struct json_object *labels = json_get_obj(o, "metadata/labels");
	cleanup_json struct json_object *meta = json_obj();
	struct json_object *fields = json_obj();

	for (const char *const *f = fields_of(resource); *f; f++) {
		cleanup_free char *path = xstrdup(*f);
		struct json_object *v;

		for (char *p = path; *p; p++)
			*p = *p == '.' ? '/' : *p;
		v = json_get(o, path);
		if (str_eq(*f, "source"))
			v = json_get(o, "source/component");
		if (v && !json_object_is_type(v, json_type_object) &&
			!json_object_is_type(v, json_type_array))
			json_add_str(fields, *f, json_object_get_string(v));
	}
	if (json_len(labels) > 0)
		json_add(meta, "labels", json_object_get(labels));
	if (json_len(fields) > 0)
		json_add(meta, "fields", fields);
	else
		json_object_put(fields);
	return json_len(meta) > 0 ? json_text(meta) : xstrdup("");
}

/* Does a value (NULL: the label is absent) meet the requirement? An absent label meets "!=" and
 * "notin". */
static bool meets(const struct requirement *r, const char *value)
{
	bool negative = value && *value == '-';
	uint64_t n = 0;

	switch (r->op) {
	case EXISTS:
		return value != NULL;
	case ABSENT:
		return value == NULL;
	case IN:
	case NOT_IN:
		for (size_t i = 0; value && i < r->n_values; i++)
			if (str_eq(r->values[i], value))
				return r->op == IN;
		return r->op == NOT_IN;
	case GREATER:
	case LESS:
		if (!value || str_to_u64(value + negative, INT64_MAX, &n) < 0)
			return false;
		return r->op == GREATER ? (negative ? -(int64_t)n : (int64_t)n) > r->number
					: (negative ? -(int64_t)n : (int64_t)n) < r->number;
	}
	DIE("selector with operator %d", (int)r->op);
}

/* Get a label or field from the stored text. Names contain '/' or '.', so json_get() cannot be
 * used. */
static const char *member(struct json_object *meta, const char *part, const char *name)
{
	struct json_object *o = meta ? json_get_obj(meta, part) : NULL, *v = NULL;

	return o && json_object_object_get_ex(o, name, &v) &&
			       json_object_is_type(v, json_type_string)
		       ? json_object_get_string(v)
		       : NULL;
}

/* Name and namespace come from the key of the object and need no stored text. */
bool store_selector_matches(
	const struct store_selector *s, const char *ns, const char *name, const char *meta)
{
	cleanup_json struct json_object *m = NULL;
	struct err ignored = ERR_INIT;

	if (s && *meta)
		m = json_parse(meta, strlen(meta), &json_limits_object, &ignored);
	for (size_t i = 0; s && i < s->n; i++) {
		const struct requirement *r = &s->req[i];
		const char *value;

		if (!r->field)
			value = member(m, "labels", r->key);
		else if (str_eq(r->key, "metadata.name"))
			value = name;
		else if (str_eq(r->key, "metadata.namespace"))
			value = ns;
		else if (!(value = member(m, "fields", r->key)))
			value = ""; /* an unset field counts as empty, unlike a label */
		if (!meets(r, value))
			return false;
	}
	return true;
}
