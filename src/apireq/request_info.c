/* SPDX-License-Identifier: MIT */
/*
 * Splits at '/' and then decodes each segment. A segment that decodes to text with a slash is
 * refused: authorization and the store must agree on the segments.
 */
#include "config.h"

#include "tec/apireq/request_info.h"

#include <string.h>
#include <strings.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/utf8.h"

#define SEGMENTS_MAX 8

/* %00 is refused: the rest of the text would be lost to functions that work with C strings. */
static char *decode(const char *s, size_t len, bool query)
{
	cleanup_free char *out = xmalloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int hi, lo;

		if (s[i] != '%') {
			out[n++] = query && s[i] == '+' ? ' ' : s[i];
			continue;
		}
		if (len - i < 3 || (hi = bytes_hex_digit(s[i + 1])) < 0 ||
			(lo = bytes_hex_digit(s[i + 2])) < 0 || (hi == 0 && lo == 0))
			return NULL;
		out[n++] = (char)(hi << 4 | lo);
		i += 2;
	}
	out[n] = '\0';
	/* Answers, which are JSON, may quote it. */
	return utf8_valid(out, n) ? steal_ptr(&out) : NULL;
}

void apireq_request_info_fini(struct apireq_request_info *t)
{
	free(t->group);
	free(t->version);
	free(t->ns);
	free(t->resource);
	free(t->qualified);
	free(t->name);
	free(t->sub);
	free(t->query);
	store_selector_free(t->select);
	*t = (struct apireq_request_info){0};
}

/* Find a parameter in the query and return its value as sent; NULL: absent. */
static const char *raw_param(const struct apireq_request_info *t, const char *name, size_t *len)
{
	size_t n = strlen(name);

	for (const char *p = t->query; *p; p += strcspn(p, "&"), p += *p == '&')
		if (strncmp(p, name, n) == 0 && p[n] == '=') {
			*len = strcspn(p + n + 1, "&");
			return p + n + 1;
		}
	return NULL;
}

/* Remove every occurrence in place. One '&' may stay at the end, which is harmless. */
void apireq_request_info_drop(struct apireq_request_info *t, const char *name)
{
	size_t len;
	const char *raw;

	while ((raw = raw_param(t, name, &len))) {
		char *from = t->query + (raw - t->query) - strlen(name) - 1;

		raw += len + (raw[len] == '&');
		memmove(from, raw, strlen(raw) + 1);
	}
}

/* Only the first of several parameters of the same name counts. */
char *apireq_request_info_param(const struct apireq_request_info *t, const char *name)
{
	size_t len;
	const char *raw = raw_param(t, name, &len);

	return raw ? decode(raw, len, true) : NULL;
}

/* Values that cannot be decoded are skipped, as by Go's url.Query. */
struct json_object *apireq_request_info_params(
	const struct apireq_request_info *t, const char *name)
{
	struct apireq_request_info rest = {.query = t->query};
	struct json_object *all = json_arr();
	size_t len;

	for (const char *raw; (raw = raw_param(&rest, name, &len));
		rest.query += *rest.query == '&') {
		cleanup_free char *value = decode(raw, len, true);

		if (value)
			json_push_str(all, value);
		rest.query = t->query + (raw - t->query) + len;
	}
	return all;
}

/* Split a path into decoded segments, each owned by the caller. Returns their number; -1: there are
 * too many, or one is empty, contains a slash or cannot be decoded. */
static int split(const char *path, size_t len, char *out[SEGMENTS_MAX])
{
	int n = 0;

	for (size_t at = 0; at < len; n++) {
		size_t end = at + 1;

		while (end < len && path[end] != '/')
			end++;
		if (n == SEGMENTS_MAX || path[at] != '/' || end == at + 1)
			return -1;
		out[n] = decode(path + at + 1, end - at - 1, false);
		if (!out[n] || strchr(out[n], '/'))
			return -1;
		at = end;
	}
	return n;
}

bool apireq_request_info_flag(const struct apireq_request_info *t, const char *name)
{
	cleanup_free char *v = apireq_request_info_param(t, name);

	return v && strcmp(v, "0") != 0 && strcasecmp(v, "false") != 0;
}

char *apireq_request_info_qualify(const char *resource, const char *group)
{
	return xasprintf("%s%s%s", resource, group[0] ? "." : "", group);
}

/* Move the segments seg[0..n) to the members of t. -1: not an API path. */
static int assign(struct apireq_request_info *t, char *seg[SEGMENTS_MAX], int n)
{
	bool core = n > 0 && str_eq(seg[0], "api");
	int i = core ? 2 : 3; /* after the version */

	if (n <= i || (!core && !str_eq(seg[0], "apis")))
		return -1;
	t->group = core ? xstrdup("") : steal_ptr(&seg[1]);
	t->version = steal_ptr(&seg[i - 1]);
	/* namespaces/NS/status refers to the Namespace itself, namespaces/NS/secrets does not. */
	if (str_eq(seg[i], "namespaces") && n > i + 2 &&
		(n > i + 3 || (!str_eq(seg[i + 2], "status") && !str_eq(seg[i + 2], "finalize")))) {
		t->ns = steal_ptr(&seg[i + 1]);
		i += 2;
	}
	t->qualified = apireq_request_info_qualify(
		seg[i], apireq_representation_renames(t->group) ? "" : t->group);
	t->resource = steal_ptr(&seg[i]);
	if (n > i + 1)
		t->name = steal_ptr(&seg[i + 1]);
	if (n > i + 2)
		t->sub = steal_ptr(&seg[i + 2]);
	return n > i + 3 ? -1 : 0;
}

/* Get a selector. One that cannot be decoded is an error: ignoring it would select everything. */
static char *selector_param(const struct apireq_request_info *t, const char *name, struct err *err)
{
	char *value = apireq_request_info_param(t, name);
	size_t len;

	if (!value && raw_param(t, name, &len) && !err_is_set(err))
		(void)err_set(err, ERR_INVALID, "unable to decode %s", name);
	return value;
}

/* The query is kept undecoded: parameters are decoded one by one when they are asked for. */
int apireq_request_info_parse(const char *path, struct apireq_request_info *out, struct err *err)
{
	size_t len = strcspn(path, "?");
	char *seg[SEGMENTS_MAX] = {NULL};
	cleanup_free char *labels = NULL, *fields = NULL, *resource = NULL;
	int n = split(path, len, seg), rc;

	*out = (struct apireq_request_info){.query = xstrdup(path[len] ? path + len + 1 : "")};
	rc = n < 0 ? -1 : assign(out, seg, n);
	for (size_t i = 0; i < SEGMENTS_MAX; i++)
		free(seg[i]);
	out->ns = out->ns ? out->ns : xstrdup("");
	out->name = out->name ? out->name : xstrdup("");
	out->sub = out->sub ? out->sub : xstrdup("");
	if (rc < 0)
		return err_set_http(err, ERR_NOT_FOUND, 404, "404 page not found");
	/* Selectors are parsed by the fields of the requested group, which differ for Events. */
	labels = selector_param(out, "labelSelector", err);
	fields = selector_param(out, "fieldSelector", err);
	if (err_is_set(err))
		return -1;
	resource = apireq_request_info_qualify(out->resource, out->group);
	return store_selector_parse(labels, fields, resource, &out->select, err);
}
