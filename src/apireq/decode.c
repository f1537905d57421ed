/* SPDX-License-Identifier: MIT */
/*
 * Walks the object along the table of its type and changes it in place. Only the first value of a
 * wrong type is reported, as by Go's decoder. The recursion is as deep as the body, whose parser
 * bounds it.
 */
#include "config.h"

#include "decode.h"

#include <string.h>

#include "tec/schema/fields.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

struct decoder {
	struct strbuf path; /* of the current value, for messages; owned */
	struct schema_texts *unknown;
	struct err *err;
};

/* Remove the last steps of the path, back to a length noted before. */
static void cut(struct strbuf *b, size_t before)
{
	b->len = before;
	if (b->data)
		b->data[before] = '\0';
}

/* ---- the table */

/* Find the table of a kind; NULL: it has none. */
static const struct schema_field *fields_of(const struct schema_kind *k)
{
	cleanup_free char *gv = xasprintf("%s%s%s", k->group, k->group[0] ? "/" : "", k->version);

	for (const struct schema_fields *m = schema_fields_table; m->kind; m++)
		if (str_eq(m->version, gv) && str_eq(m->kind, k->kind))
			return m->fields;
	return NULL;
}

static const struct schema_field *find(const struct schema_field *f, const char *name)
{
	for (; f->name; f++)
		if (str_eq(f->name, name))
			return f;
	return NULL;
}

/* ---- values */

/* Check the type of a value, and set the error unless one is set: only the first one is
 * reported. */
static bool is_type(struct decoder *d, struct json_object *v, enum json_type type)
{
	if (json_object_is_type(v, type))
		return true;
	if (!err_is_set(d->err))
		(void)err_set(d->err, ERR_INVALID, "%s: must be of type %s, not %s",
			strbuf_str(&d->path), json_type_to_name(type),
			json_type_to_name(json_object_get_type(v)));
	return false;
}

/* Parse a time and return it as Go prints it: in UTC, with microseconds only for MicroTime. NULL:
 * it cannot be parsed. */
static struct json_object *time_of(struct decoder *d, struct json_object *v, bool micro)
{
	char text[CLOCK_RFC3339_US_LEN];
	int64_t us;

	if (!is_type(d, v, json_type_string))
		return NULL;
	if (clock_parse(json_object_get_string(v), &us) < 0) {
		if (!err_is_set(d->err))
			(void)err_set(d->err, ERR_INVALID,
				"%s: must be a time such as 2026-01-02T03:04:05Z",
				strbuf_str(&d->path));
		return NULL;
	}
	if (micro)
		clock_format_us(us, text);
	else
		clock_format(us / 1000000 - (us % 1000000 < 0), text);
	return json_str(text);
}

static void members(
	struct decoder *d, const struct schema_field *fields, struct json_object *o, bool top);

/* Check a single value. Returns the value to store instead of v, or NULL to keep v. */
static struct json_object *one(
	struct decoder *d, const struct schema_field *f, struct json_object *v)
{
	const int64_t n = json_object_get_int64(v);
	bool large = f->type >= SCHEMA_FIELD_INT64;

	switch (f->type) {
	case SCHEMA_FIELD_INT:
	case SCHEMA_FIELD_INT_PTR:
	case SCHEMA_FIELD_INT64:
	case SCHEMA_FIELD_INT64_PTR:
		/* json-c clamps larger numbers to INT64_MAX, which is told apart from that number
		 * itself by its unsigned value. */
		if (is_type(d, v, json_type_int) && !err_is_set(d->err) &&
			((!large && (n < INT32_MIN || n > INT32_MAX)) ||
				(n == INT64_MAX && json_object_get_uint64(v) > INT64_MAX)))
			(void)err_set(d->err, ERR_INVALID, "%s: must be a %d-bit integer",
				strbuf_str(&d->path), large ? 64 : 32);
		return NULL;
	case SCHEMA_FIELD_BOOL_PTR:
		(void)is_type(d, v, json_type_boolean);
		return NULL;
	case SCHEMA_FIELD_TIME:
	case SCHEMA_FIELD_MICROTIME:
		return time_of(d, v, f->type == SCHEMA_FIELD_MICROTIME);
	case SCHEMA_FIELD_OBJECT:
	case SCHEMA_FIELD_OBJECTS:
		if (is_type(d, v, json_type_object))
			members(d, f->of, v, false);
		return NULL;
	case SCHEMA_FIELD_STRING:
	case SCHEMA_FIELD_STRING_PTR:
	case SCHEMA_FIELD_STRINGS:
	case SCHEMA_FIELD_TEXT_MAP:
	case SCHEMA_FIELD_BYTES_MAP:
		(void)is_type(d, v, json_type_string);
		return NULL;
	case SCHEMA_FIELD_RAW:
		return NULL;
	}
	return NULL;
}

/* Return what Go makes of null in a list or map: the zero value of the element type. NULL: keep
 * null. */
static struct json_object *nothing(const struct schema_field *f)
{
	switch (f->type) {
	case SCHEMA_FIELD_OBJECTS:
		return json_obj();
	case SCHEMA_FIELD_STRINGS:
	case SCHEMA_FIELD_TEXT_MAP:
		return json_str("");
	default:
		return NULL;
	}
}

/* Decode an element of a list or map, at the end of the path. Null becomes the zero value. Returns
 * what to store instead, or NULL; the path is cut back to its first `path` bytes. */
static struct json_object *element(
	struct decoder *d, const struct schema_field *f, struct json_object *v, size_t path)
{
	struct json_object *now = v ? one(d, f, v) : nothing(f);

	cut(&d->path, path);
	return now;
}

/* Decode a value, which may be a list or map of several. Returns what to store instead, or NULL. */
static struct json_object *value(
	struct decoder *d, const struct schema_field *f, struct json_object *v)
{
	bool list = f->type == SCHEMA_FIELD_STRINGS || f->type == SCHEMA_FIELD_OBJECTS,
	     map = f->type == SCHEMA_FIELD_TEXT_MAP || f->type == SCHEMA_FIELD_BYTES_MAP;
	const size_t path = d->path.len;
	struct json_object *now;

	if (!list && !map)
		return one(d, f, v);
	if (!is_type(d, v, list ? json_type_array : json_type_object))
		return NULL;
	for (size_t i = 0; list && i < json_len(v); i++) {
		strbuf_addf(&d->path, "[%zu]", i);
		now = element(d, f, json_at(v, i), path);
		if (now)
			json_put_at(v, i, now);
	}
	json_each (v, name, e) {
		strbuf_addf(&d->path, ".%s", name);
		now = element(d, f, e, path);
		if (now)
			json_add(v, name, now);
	}
	return NULL;
}

/* Is it a zero value that Go omits when it encodes the object (omitempty)? */
static bool is_left_out(const struct schema_field *f, struct json_object *v)
{
	switch (f->type) {
	case SCHEMA_FIELD_STRING:
		return json_object_is_type(v, json_type_string) &&
		       json_object_get_string_len(v) == 0;
	case SCHEMA_FIELD_INT:
	case SCHEMA_FIELD_INT64:
		return json_object_is_type(v, json_type_int) && json_object_get_int64(v) == 0;
	default:
		return false;
	}
}

/* Decode one member: drop it if it is unknown, null or empty, else check and normalize its
 * value. */
static void member(struct decoder *d, const struct schema_field *fields, struct json_object *o,
	const char *name, struct json_object *v)
{
	const struct schema_field *f = find(fields, name);
	size_t path = d->path.len;
	struct json_object *now = NULL;

	strbuf_addf(&d->path, "%s%s", path ? "." : "", name);
	if (!f) {
		schema_texts_add(d->unknown, "%s", strbuf_str(&d->path));
		json_drop(o, name);
	} else if (!v || is_left_out(f, v)) {
		json_drop(o, name);
	} else {
		now = value(d, f, v);
		if (now)
			json_add(o, name, now);
	}
	cut(&d->path, path);
}

/* Decode all members of an object. top: apiVersion and kind are not in the table, and are
 * skipped. */
static void members(
	struct decoder *d, const struct schema_field *fields, struct json_object *o, bool top)
{
	json_each (o, name, v) {
		if (!top || (!str_eq(name, "apiVersion") && !str_eq(name, "kind")))
			member(d, fields, o, name, v);
	}
}

/* ---- entry points */

/* The object is changed even if a value is wrong; the caller then drops it. */
int apireq_decode(const struct schema_kind *k, struct json_object *o, struct schema_texts *unknown,
	struct err *err)
{
	static const struct schema_kind any = {.group = "", .version = "v1", .kind = "ConfigMap"};
	struct decoder d = {STRBUF_INIT, unknown, err};
	struct json_object *m = NULL;
	const struct schema_field *fields = k && !k->crd ? fields_of(k) : NULL;

	if (fields) {
		members(&d, fields, o, true);
	} else if (json_object_object_get_ex(o, "metadata", &m)) {
		/* Its type is the same for every kind; take it from ConfigMap. */
		strbuf_adds(&d.path, "metadata");
		if (!m)
			json_drop(o, "metadata");
		else if (is_type(&d, m, json_type_object))
			members(&d, find(fields_of(&any), "metadata")->of, m, false);
	}
	strbuf_fini(&d.path);
	return err_is_set(err) ? -1 : 0;
}
