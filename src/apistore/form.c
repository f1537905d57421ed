/* SPDX-License-Identifier: MIT */
/* Table rows are converted one by one, so a long table needs no more memory than a long list. */
#include "config.h"

#include "tec/apistore/form.h"

#include <string.h>
#include <strings.h>

#include "tec/apistore/events.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"

/* Limits for texts from the store; wider than those for bodies of clients. */
static const struct json_limits limits = {16u << 20, 256, 1u << 22, true};

/* ---- Accept */

/* Copy the value of a parameter without its quotes. A value that does not fit cannot be a known one,
 * and becomes "". */
static void copy(char *out, size_t size, const char *from, size_t len)
{
	bool quoted = len >= 2 && from[0] == '"' && from[len - 1] == '"';

	from += quoted;
	len -= quoted ? 2 : 0;
	if (len >= size)
		len = 0;
	memcpy(out, from, len);
	out[len] = '\0';
}

/* Advance *p past leading blanks and return the length without trailing ones. */
static size_t trimmed(const char **p, size_t n)
{
	while (n > 0 && (**p == ' ' || **p == '\t')) {
		(*p)++;
		n--;
	}
	while (n > 0 && ((*p)[n - 1] == ' ' || (*p)[n - 1] == '\t'))
		n--;
	return n;
}

/* Read one parameter, such as "as=Table". False: it is a q of zero. */
static bool take_param(const char *p, size_t n, struct apistore_media *out)
{
	const char *eq = memchr(p, '=', n), *value = eq ? eq + 1 : "";
	size_t name = eq ? (size_t)(eq - p) : n, len = eq ? n - name - 1 : 0;

	if (name == 2 && strncasecmp(p, "as", 2) == 0)
		copy(out->as, sizeof(out->as), value, len);
	else if (name == 1 && (*p == 'g' || *p == 'G'))
		copy(out->group, sizeof(out->group), value, len);
	else if (name == 1 && (*p == 'v' || *p == 'V'))
		copy(out->version, sizeof(out->version), value, len);
	else if (name == 1 && (*p == 'q' || *p == 'Q'))
		return len == 0 || strspn(value, "0.") < len;
	return true;
}

/* Read one media range with its parameters. False: the client does not accept it. */
static bool read_range(const char *p, size_t n, struct apistore_media *out)
{
	bool first = true, wanted = true;

	*out = (struct apistore_media){.type = ""};
	for (size_t at = 0; at <= n; first = false) {
		const char *semicolon = memchr(p + at, ';', n - at), *part = p + at;
		size_t len = semicolon ? (size_t)(semicolon - part) : n - at;

		at += len + 1;
		len = trimmed(&part, len);
		if (first)
			copy(out->type, sizeof(out->type), part, len);
		else
			wanted &= take_param(part, len, out);
	}
	return wanted && out->type[0];
}

/* Skips ranges that the client does not accept, so every result is one that it does. */
bool apistore_form_next_media(const char **p, struct apistore_media *out)
{
	while (**p) {
		const char *range = *p;
		size_t n = strcspn(range, ",");

		*p += n + (range[n] == ',');
		if (read_range(range, n, out))
			return true;
	}
	return false;
}

/* Is JSON in this media range? Wildcards include it. */
static bool is_json(const char *type)
{
	return strcasecmp(type, "application/json") == 0 ||
	       strcasecmp(type, "application/*") == 0 || str_eq(type, "*/*");
}

/* The client's order decides, not its q values, as in kube-apiserver. A range with an unknown form
 * ("as=...") is skipped, so that a plain application/json after it serves as the fallback. */
bool apistore_form_choose(const char *accept, struct apistore_form *out)
{
	struct apistore_media m;

	*out = (struct apistore_form){.shape = APISTORE_SHAPE_OBJECT};
	if (!accept || !*accept)
		return true;
	while (apistore_form_next_media(&accept, &m)) {
		bool meta = str_eq(m.group, "meta.k8s.io") &&
			    (str_eq(m.version, "v1") || str_eq(m.version, "v1beta1"));

		if (!is_json(m.type))
			continue;
		if (!m.as[0])
			return true;
		out->beta = str_eq(m.version, "v1beta1");
		if (meta && str_eq(m.as, "Table"))
			out->shape = APISTORE_SHAPE_TABLE;
		else if (meta && (str_eq(m.as, "PartialObjectMetadata") ||
					 str_eq(m.as, "PartialObjectMetadataList")))
			out->shape = APISTORE_SHAPE_METADATA;
		if (out->shape != APISTORE_SHAPE_OBJECT)
			return true;
	}
	return false;
}

/* Only tables have this option; the form of other answers is not changed by it. */
bool apistore_form_set_include(struct apistore_form *f, const char *include)
{
	static const char *const names[] = {[SCHEMA_INCLUDE_METADATA] = "Metadata",
		[SCHEMA_INCLUDE_NONE] = "None",
		[SCHEMA_INCLUDE_OBJECT] = "Object"};

	f->include = SCHEMA_INCLUDE_METADATA;
	if (!include || !*include)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(include, names[i])) {
			f->include = (enum schema_include)i;
			return true;
		}
	return false;
}

/* ---- texts */

static void add_text(struct body *out, const char *text)
{
	body_add(out, text, strlen(text), 0);
}

static void add_json(struct body *out, struct json_object *o)
{
	cleanup_free char *text = json_text(o);

	add_text(out, text);
	secret_wipe(text, strlen(text)); /* a row may hold a whole Secret */
}

/* Is the text of an object sent as it is stored? */
static bool is_plain(const struct apistore_form *f, const struct schema_kind *k)
{
	return !k || f->shape == APISTORE_SHAPE_OBJECT;
}

static const char *version_of(const struct apistore_form *f)
{
	return f->beta ? "v1beta1" : "v1";
}

/* Convert an object to a table with a single row; o NULL gives only the columns. */
static struct json_object *table_of(const struct apistore_form *f, const struct schema_kind *k,
	struct json_object *o, bool headers)
{
	const struct schema_table t = {k, version_of(f), f->include, !headers, clock_wall_s()};

	return schema_table_new(&t, o);
}

/* A text that is sent as stored, or cannot be parsed, is copied unchanged. */
void apistore_form_object(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, bool headers, struct body *out)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		is_plain(f, k) ? NULL : json_parse(text, len, &limits, &err);
	cleanup_json struct json_object *shown = NULL;

	if (!o) {
		body_add(out, text, len, 0);
		return;
	}
	if (f->shape == APISTORE_SHAPE_TABLE) {
		shown = table_of(f, k, o, headers);
		json_add_str(json_get(shown, "metadata"), "resourceVersion",
			json_get_str(o, "metadata/resourceVersion"));
	} else {
		shown = schema_partial_metadata(o, version_of(f));
	}
	add_json(out, shown);
	json_wipe(o);
}

/* Items of a list have no kind and apiVersion, as those of every built-in kind. */
void apistore_form_event(const char *text, size_t len, bool item, struct body *out)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(text, len, &limits, &err);

	apistore_events_from_core(o);
	if (o && item) {
		json_drop(o, "kind");
		json_drop(o, "apiVersion");
	}
	if (o)
		add_json(out, o);
	else
		add_text(out, "null");
}

/* An item that cannot be parsed becomes null, which keeps the list valid JSON. */
void apistore_form_item(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, struct body *out)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(text, len, &limits, &err), *shown = NULL;

	if (!o) {
		add_text(out, "null");
		return;
	}
	if (f->shape == APISTORE_SHAPE_TABLE) {
		shown = table_of(f, k, o, false);
		add_json(out, json_at(json_get_arr(shown, "rows"), 0));
	} else {
		shown = schema_partial_metadata(o, version_of(f));
		add_json(out, shown);
	}
	json_wipe(o);
}

/* The head of a table includes its columns, which come from the kind and need no row. */
void apistore_form_head(const struct apistore_form *f, const struct schema_kind *k,
	const char *metadata, struct body *out)
{
	bool table = f->shape == APISTORE_SHAPE_TABLE;
	cleanup_free char *head =
		xasprintf("{\"kind\":\"%s\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{%s}",
			table ? "Table" : "PartialObjectMetadataList", version_of(f), metadata);

	add_text(out, head);
	if (table) {
		cleanup_json struct json_object *t = table_of(f, k, NULL, true);

		add_text(out, ",\"columnDefinitions\":");
		add_json(out, json_get(t, "columnDefinitions"));
	}
	add_text(out, table ? ",\"rows\":[" : ",\"items\":[");
}
