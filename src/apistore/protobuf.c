/* SPDX-License-Identifier: MIT */
/*
 * Driven by tables of field numbers, which Kubernetes never reuses. Values that encoding/json omits
 * (omitempty) are omitted here, so that the result is what the client would have sent as JSON; an
 * unset time is omitted too. Unknown fields are skipped, as a server of another version would.
 */
#include "config.h"

#include "tec/apistore/protobuf.h"

#include <math.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/utf8.h"

#include "tec/schema/fields.h"

/* ---- the wire */

#define VALUES_MAX                                                                                 \
	200000 /* as for JSON: an empty object takes two bytes here but a hundred in memory */

struct reader {
	const uint8_t *p, *end;
};

/* What one body may still consume. No type contains itself, so the tables bound the recursion. */
struct bounds {
	unsigned values;
};

/* One field on the wire: its number, and a value or bytes (borrowed from the body). */
struct item {
	unsigned number;
	bool is_bytes;
	uint64_t value;
	struct reader bytes;
};

/* Read a varint. False: cut off, or more than 64 bits. */
static bool read_varint(struct reader *r, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; shift < 64 && r->p < r->end; shift += 7) {
		uint8_t b = *r->p++;

		*out |= (uint64_t)(b & 0x7f) << shift;
		/* The tenth byte holds only the last bit of 64. */
		if (!(b & 0x80))
			return shift < 63 || b <= 1;
	}
	return false;
}

/* Read one field. False: malformed. Groups are deprecated and not accepted. */
static bool read_item(struct reader *r, struct item *out)
{
	uint64_t key, n = 0;

	if (!read_varint(r, &key) || key >> 3 == 0 || key >> 3 > 536870911)
		return false;
	*out = (struct item){.number = (unsigned)(key >> 3)};
	switch (key & 7) {
	case 0:
		out->bytes = (struct reader){r->p, r->p};
		return read_varint(r, &out->value);
	case 1:
		n = 8;
		break;
	case 5:
		n = 4;
		break;
	case 2:
		out->is_bytes = true;
		if (!read_varint(r, &n))
			return false;
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(r->end - r->p))
		return false;
	out->bytes = (struct reader){r->p, r->p + n};
	r->p += n;
	return true;
}

static size_t length(const struct reader *r)
{
	return (size_t)(r->end - r->p);
}

/* ---- values; NULL: malformed */

/* Strings must be valid UTF-8 without NUL bytes, as in JSON bodies. */
static struct json_object *text_of(const struct reader *r)
{
	if (!utf8_valid((const char *)r->p, length(r)) || memchr(r->p, '\0', length(r)))
		return NULL;
	return json_str_len((const char *)r->p, length(r));
}

/* Encode bytes as JSON has them. The buffer is wiped: it may hold the value of a Secret. */
static struct json_object *base64_of(const struct reader *r)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct json_object *o;

	bytes_to_b64(&b, r->p, length(r));
	o = json_str_len(strbuf_str(&b), b.len);
	if (b.data)
		secret_wipe(b.data, b.len);
	return o;
}

/* Convert a Timestamp message; "" if it is not set. Go's zero time is in year 1 and counts as not
 * set. */
static struct json_object *time_of(struct reader r)
{
	char text[CLOCK_RFC3339_LEN] = "";
	int64_t seconds = 0, nanos = 0;
	bool set = r.p < r.end;
	struct item it;

	while (r.p < r.end) {
		if (!read_item(&r, &it))
			return NULL;
		if (it.number == 1)
			seconds = (int64_t)it.value;
		else if (it.number == 2)
			nanos = (int64_t)it.value;
	}
	if (seconds < 0 || seconds > INT64_C(253402300799) || nanos < 0 || nanos > 999999999)
		return set && seconds < 0 ? json_str("") : NULL;
	if (set)
		clock_format(seconds, text);
	return json_str(text);
}

/* Find the last bytes field of this number; *out is empty if there is none. False: malformed. */
static bool find_bytes(struct reader r, unsigned number, struct reader *out)
{
	struct item it;

	*out = (struct reader){r.p, r.p};
	while (r.p < r.end) {
		if (!read_item(&r, &it))
			return false;
		if (it.number == number && it.is_bytes)
			*out = it.bytes;
	}
	return true;
}

/* Parse JSON that is embedded in a message: the fieldsV1 of managed fields. */
static struct json_object *raw_of(const struct reader *r)
{
	struct err err = ERR_INIT;
	struct reader text;

	return find_bytes(*r, 1, &text)
		       ? json_parse((const char *)text.p, length(&text), &json_limits_object, &err)
		       : NULL;
}

/* ---- objects */

static bool read_message(struct reader r, const struct schema_field *fields,
	struct json_object *into, struct bounds *b);

static struct json_object *object_of(
	struct reader r, const struct schema_field *fields, struct bounds *b)
{
	cleanup_json struct json_object *o = json_obj();

	return read_message(r, fields, o, b) ? steal_ptr(&o) : NULL;
}

/* Return the list or map of a repeated field, which is added on first use. */
static struct json_object *member(struct json_object *o, const char *name, bool array)
{
	struct json_object *m = NULL;

	if (!json_object_object_get_ex(o, name, &m))
		json_add(o, name, m = array ? json_arr() : json_obj());
	return m;
}

/* Convert a length-delimited value: a field, or an element of a list or map. NULL: malformed. */
static struct json_object *value_of(struct reader r, enum schema_field_type type,
	const struct schema_field *of, struct bounds *b)
{
	switch (type) {
	case SCHEMA_FIELD_STRING:
	case SCHEMA_FIELD_STRING_PTR:
	case SCHEMA_FIELD_STRINGS:
	case SCHEMA_FIELD_TEXT_MAP:
		return text_of(&r);
	case SCHEMA_FIELD_BYTES_MAP:
		return base64_of(&r);
	case SCHEMA_FIELD_TIME:
		return time_of(r);
	case SCHEMA_FIELD_RAW:
		return raw_of(&r);
	case SCHEMA_FIELD_OBJECT:
	case SCHEMA_FIELD_OBJECTS:
		return object_of(r, of, b);
	case SCHEMA_FIELD_INT:
	case SCHEMA_FIELD_INT_PTR:
	case SCHEMA_FIELD_INT64:
	case SCHEMA_FIELD_INT64_PTR:
	case SCHEMA_FIELD_BOOL_PTR:
	case SCHEMA_FIELD_MICROTIME:
		break;
	}
	return NULL;
}

/* Add one entry of a map: a message with the key in field 1 and the value in field 2. */
static bool read_pair(
	struct reader r, const struct schema_field *f, struct json_object *into, struct bounds *b)
{
	cleanup_json struct json_object *key = NULL;
	struct reader value = {r.p, r.p};
	struct json_object *v;
	struct item it;

	while (r.p < r.end) {
		if (!read_item(&r, &it) || !it.is_bytes)
			return false;
		if (it.number == 1) {
			json_object_put(key);
			key = text_of(&it.bytes);
		} else if (it.number == 2) {
			value = it.bytes;
		}
	}
	v = key ? value_of(value, f->type, f->of, b) : NULL;
	if (v)
		json_add(into, json_object_get_string(key), v);
	return v != NULL;
}

/* Add a number or boolean. Zero is omitted unless the type has a pointer, whose presence counts. */
static bool add_number(struct json_object *o, const struct schema_field *f, const struct item *it)
{
	if (it->is_bytes)
		return false;
	if (f->type == SCHEMA_FIELD_BOOL_PTR)
		json_add_bool(o, f->name, it->value != 0);
	else if (it->value || f->type == SCHEMA_FIELD_INT_PTR || f->type == SCHEMA_FIELD_INT64_PTR)
		json_add_int(o, f->name, (int64_t)it->value);
	return true;
}

/* Would Go omit this value (omitempty)? */
static bool is_nothing(const struct schema_field *f, struct json_object *v)
{
	return (f->type == SCHEMA_FIELD_STRING || f->type == SCHEMA_FIELD_TIME) &&
	       json_object_get_string_len(v) == 0;
}

/* Add one field to the object by its type in the table. False: malformed. */
static bool add_value(struct json_object *o, const struct schema_field *f, const struct item *it,
	struct bounds *b)
{
	struct json_object *v;

	switch (f->type) {
	case SCHEMA_FIELD_INT:
	case SCHEMA_FIELD_INT_PTR:
	case SCHEMA_FIELD_INT64:
	case SCHEMA_FIELD_INT64_PTR:
	case SCHEMA_FIELD_BOOL_PTR:
		return add_number(o, f, it);
	case SCHEMA_FIELD_TEXT_MAP:
	case SCHEMA_FIELD_BYTES_MAP:
		return it->is_bytes && read_pair(it->bytes, f, member(o, f->name, false), b);
	default:
		break;
	}
	v = it->is_bytes ? value_of(it->bytes, f->type, f->of, b) : NULL;
	if (!v)
		return false;
	if (f->type == SCHEMA_FIELD_OBJECTS || f->type == SCHEMA_FIELD_STRINGS)
		json_push(member(o, f->name, true), v);
	else if (is_nothing(f, v))
		json_object_put(v); /* as omitempty */
	else
		json_add(o, f->name, v);
	return true;
}

/* Read the fields of a message into an object. False: malformed, or too many values. */
static bool read_message(struct reader r, const struct schema_field *fields,
	struct json_object *into, struct bounds *b)
{
	struct item it;

	while (r.p < r.end) {
		const struct schema_field *f = fields;

		if (b->values == 0 || !read_item(&r, &it))
			return false;
		b->values--;
		while (f->name && f->number != it.number)
			f++;
		if (f->name && !add_value(into, f, &it, b))
			return false;
	}
	return true;
}

/* ---- the envelope: runtime.Unknown */

static const struct schema_field type_meta[] = {{1, "apiVersion", SCHEMA_FIELD_STRING, NULL},
	{2, "kind", SCHEMA_FIELD_STRING, NULL}, {0, NULL, SCHEMA_FIELD_STRING, NULL}};

/* Find the table of a kind. DeleteOptions are found in any version: clients name that of the object
 * being deleted. */
static const struct schema_fields *find_message(const char *version, const char *kind)
{
	const struct schema_fields *m = schema_fields_table;

	while (m->kind && (m->only_json || !str_eq(m->kind, kind) ||
				  (!str_eq(m->version, version) && !str_eq(kind, "DeleteOptions"))))
		m++;
	return m->kind ? m : NULL;
}

/* Read the raw object by the table of its kind. apiVersion and kind come from the envelope: the
 * inner message does not have them. */
static struct json_object *read_object(
	struct json_object *type, const struct reader *raw, struct err *err)
{
	const char *version = json_get_str(type, "apiVersion"), *kind = json_get_str(type, "kind");
	const struct schema_fields *m = find_message(version, kind);
	struct bounds bounds = {VALUES_MAX};
	struct json_object *o;

	if (!m) {
		err_set(err, ERR_NOT_FOUND, "%.80s of %.80s is accepted only as JSON or YAML",
			kind ? kind : "an object", version ? version : "no version");
		return NULL;
	}
	o = object_of(*raw, m->fields, &bounds);
	if (!o)
		err_set(err, ERR_INVALID, "the protobuf body is malformed");
	else
		json_add_str(json_add_str(o, "apiVersion", version), "kind", kind);
	return o;
}

/* Read the envelope: the magic "k8s\0", then a message runtime.Unknown with the type and the raw
 * object. */
struct json_object *apistore_protobuf_read(const char *data, size_t len, struct err *err)
{
	struct reader r = {(const uint8_t *)data, (const uint8_t *)data + len}, raw = {NULL, NULL};
	cleanup_json struct json_object *type = NULL;
	bool ok = len >= 4 && memcmp(data, "k8s", 4) == 0;
	struct bounds bounds = {VALUES_MAX};
	struct item it;

	r.p += ok ? 4 : 0;
	while (ok && r.p < r.end) {
		ok = read_item(&r, &it) && it.is_bytes;
		if (ok && it.number == 1) {
			json_object_put(type);
			type = object_of(it.bytes, type_meta, &bounds);
			ok = type;
		} else if (ok && it.number == 2) {
			raw = it.bytes;
		} else if (ok && it.number == 3) {
			ok = length(&it.bytes) == 0; /* contentEncoding: none is supported */
		}
	}
	if (!ok || !type || !json_get_str(type, "apiVersion")) {
		err_set(err, ERR_INVALID, "the protobuf body is malformed");
		return NULL;
	}
	return read_object(type, &raw, err);
}
