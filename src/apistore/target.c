/* SPDX-License-Identifier: MIT */
/*
 * Splits at '/', then decodes: an encoded slash must not move a border, so a segment that decodes
 * to one is no path of ours.
 */
#include "config.h"

#include "tec/apistore/target.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define SEGMENTS_MAX 8

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *apistore_target_decode(const char *s, size_t len, bool query)
{
	cleanup_free char *out = xmalloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int hi, lo;

		if (s[i] != '%') {
			out[n++] = query && s[i] == '+' ? ' ' : s[i];
			continue;
		}
		if (len - i < 3 || (hi = hex_value(s[i + 1])) < 0 ||
			(lo = hex_value(s[i + 2])) < 0 || (hi == 0 && lo == 0))
			return NULL;
		out[n++] = (char)(hi << 4 | lo);
		i += 2;
	}
	out[n] = '\0';
	return steal_ptr(&out);
}

void apistore_target_fini(struct apistore_target *t)
{
	free(t->collection);
	free(t->group);
	free(t->ns);
	free(t->resource);
	free(t->name);
	free(t->sub);
	free(t->query);
	free(t->labels);
	free(t->field_name);
	*t = (struct apistore_target){0};
}

char *apistore_target_param(const struct apistore_target *t, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = t->query; *p; p += strcspn(p, "&"), p += *p == '&')
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			return apistore_target_decode(p + n + 1, strcspn(p + n + 1, "&"), true);
	return NULL;
}

/* The segments of a path, decoded, each owned by the caller; -1: one is empty, holds a slash or
 * cannot be decoded, or there are too many. */
static int split(const char *path, size_t len, char *out[SEGMENTS_MAX])
{
	int n = 0;

	for (size_t at = 0; at < len; n++) {
		size_t end = at + 1;

		while (end < len && path[end] != '/')
			end++;
		if (n == SEGMENTS_MAX || path[at] != '/' || end == at + 1)
			return -1;
		out[n] = apistore_target_decode(path + at + 1, end - at - 1, false);
		if (!out[n] || strchr(out[n], '/'))
			return -1;
		at = end;
	}
	return n;
}

/* seg[0..n): moves what each is into t. */
static int assign(struct apistore_target *t, char *seg[SEGMENTS_MAX], int n)
{
	bool core = n > 0 && str_eq(seg[0], "api");
	int i = core ? 2 : 3; /* behind the version */
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	if (n <= i || (!core && !str_eq(seg[0], "apis")))
		return -1;
	t->group = core ? xstrdup("") : steal_ptr(&seg[1]);
	strbuf_addf(&b, core ? "/api%s/%s" : "/apis/%s/%s", t->group, seg[i - 1]);
	if (str_eq(seg[i], "namespaces") && n > i + 2) {
		t->ns = steal_ptr(&seg[i + 1]);
		strbuf_addf(&b, "/namespaces/%s", t->ns);
		i += 2;
	}
	strbuf_addf(&b, "/%s", seg[i]);
	t->collection = strbuf_steal(&b);
	t->resource = steal_ptr(&seg[i]);
	if (n > i + 1)
		t->name = steal_ptr(&seg[i + 1]);
	if (n > i + 2)
		t->sub = steal_ptr(&seg[i + 2]);
	return n > i + 3 ? -1 : 0;
}

/* Reads "a=b,c=d" or "a==b": fn for each; false as soon as fn is, or for any other form. */
static bool each_label(
	const char *selector, bool (*fn)(void *arg, const char *name, const char *value), void *arg)
{
	cleanup_free char *copy = xstrdup(selector);
	char *rest = copy, *term;

	while ((term = strsep(&rest, ","))) {
		char *eq = strchr(term, '=');

		if (!eq || eq == term || eq[-1] == '!')
			return false;
		*eq++ = '\0';
		eq += *eq == '=';
		if (strpbrk(term, " ()!") || !fn(arg, term, eq))
			return false;
	}
	return true;
}

static bool any_label(void *arg, const char *name, const char *value)
{
	return true;
}

static bool has_label(void *arg, const char *name, const char *value)
{
	struct json_object *v = NULL;

	return json_object_object_get_ex(arg, name, &v) &&
	       json_object_is_type(v, json_type_string) && str_eq(json_object_get_string(v), value);
}

static int read_selectors(struct apistore_target *t, struct err *err)
{
	static const char by_name[] = "metadata.name=";
	cleanup_free char *field = apistore_target_param(t, "fieldSelector");

	t->labels = apistore_target_param(t, "labelSelector");
	if (t->labels && !each_label(t->labels, any_label, NULL))
		return err_set(err, ERR_INVALID, "unable to parse requirement: %s", t->labels);
	if (field && !str_starts(field, by_name))
		return err_set(err, ERR_INVALID, "field label not supported: %s", field);
	if (field)
		t->field_name = xstrdup(field + sizeof(by_name) - 1);
	return 0;
}

int apistore_target_parse(const char *path, struct apistore_target *out, struct err *err)
{
	size_t len = strcspn(path, "?");
	char *seg[SEGMENTS_MAX] = {NULL};
	int n = split(path, len, seg), rc;

	*out = (struct apistore_target){.query = xstrdup(path[len] ? path + len + 1 : "")};
	rc = n < 0 ? -1 : assign(out, seg, n);
	for (size_t i = 0; i < SEGMENTS_MAX; i++)
		free(seg[i]);
	out->ns = out->ns ? out->ns : xstrdup("");
	out->name = out->name ? out->name : xstrdup("");
	out->sub = out->sub ? out->sub : xstrdup("");
	if (rc < 0)
		return err_set_http(err, ERR_NOT_FOUND, 404, "404 page not found");
	return read_selectors(out, err);
}

bool apistore_target_selects(const struct apistore_target *t, struct json_object *o)
{
	if (t->field_name && !str_eq(t->field_name, json_get_str(o, "metadata/name")))
		return false;
	return !t->labels || each_label(t->labels, has_label, json_get_obj(o, "metadata/labels"));
}
