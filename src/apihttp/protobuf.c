/* SPDX-License-Identifier: MIT */
/*
 * Driven by tables of field numbers, which Kubernetes never reuses. Values that encoding/json omits
 * (omitempty) are omitted here, so that the result is what the client would have sent as JSON; an
 * unset time is omitted too. Unknown fields are skipped, as a server of another version would.
 */
#include "config.h"

#include "tec/apihttp/protobuf.h"

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

/* ---- objects */

static bool read_message(struct reader r, const struct schema_field *fields,
	struct json_object *into, unsigned *left);

/* Parse JSON that is embedded in a message, in its last field 1: the fieldsV1 of managed fields. */
static struct json_object *raw_of(struct reader r)
{
	struct reader text = {r.p, r.p};
	struct err err = ERR_INIT;
	struct item it;

	while (r.p < r.end) {
		if (!read_item(&r, &it))
			return NULL;
		if (it.number == 1 && it.is_bytes)
			text = it.bytes;
	}
	return json_parse((const char *)text.p, length(&text), &json_limits_object, &err);
}

static struct json_object *object_of(
	struct reader r, const struct schema_field *fields, unsigned *left)
{
	cleanup_json struct json_object *o = json_obj();

	return read_message(r, fields, o, left) ? steal_ptr(&o) : NULL;
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
static struct json_object *value_of(
	struct reader r, enum schema_field_type type, const struct schema_field *of, unsigned *left)
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
		return raw_of(r);
	case SCHEMA_FIELD_OBJECT:
	case SCHEMA_FIELD_OBJECTS:
		return object_of(r, of, left);
	default: /* numbers, which have no length */
		return NULL;
	}
}

/* Add one entry of a map: a message with the key in field 1 and the value in field 2. */
static bool read_pair(
	struct reader r, const struct schema_field *f, struct json_object *into, unsigned *left)
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
	v = key ? value_of(value, f->type, f->of, left) : NULL;
	if (v)
		json_add(into, json_object_get_string(key), v);
	return v != NULL;
}

/* Add one field to the object by its type in the table. False: malformed. */
static bool add_value(
	struct json_object *o, const struct schema_field *f, const struct item *it, unsigned *left)
{
	struct json_object *v;

	switch (f->type) {
	case SCHEMA_FIELD_INT:
	case SCHEMA_FIELD_INT_PTR:
	case SCHEMA_FIELD_INT64:
	case SCHEMA_FIELD_INT64_PTR:
	case SCHEMA_FIELD_BOOL_PTR:
		/* Zero is omitted unless the type has a pointer, whose presence counts. */
		if (!it->is_bytes && f->type == SCHEMA_FIELD_BOOL_PTR)
			json_add_bool(o, f->name, it->value != 0);
		else if (!it->is_bytes && (it->value || f->type == SCHEMA_FIELD_INT_PTR ||
						  f->type == SCHEMA_FIELD_INT64_PTR))
			json_add_int(o, f->name, (int64_t)it->value);
		return !it->is_bytes;
	case SCHEMA_FIELD_TEXT_MAP:
	case SCHEMA_FIELD_BYTES_MAP:
		return it->is_bytes && read_pair(it->bytes, f, member(o, f->name, false), left);
	default:
		break;
	}
	v = it->is_bytes ? value_of(it->bytes, f->type, f->of, left) : NULL;
	if (!v)
		return false;
	if (f->type == SCHEMA_FIELD_OBJECTS || f->type == SCHEMA_FIELD_STRINGS)
		json_push(member(o, f->name, true), v);
	else if ((f->type == SCHEMA_FIELD_STRING || f->type == SCHEMA_FIELD_TIME) &&
		 json_object_get_string_len(v) == 0)
		json_object_put(v); /* as omitempty */
	else
		json_add(o, f->name, v);
	return true;
}

/* Read the fields of a message into an object. False: malformed, or too many values. */
static bool read_message(struct reader r, const struct schema_field *fields,
	struct json_object *into, unsigned *left)
{
	struct item it;

	while (r.p < r.end) {
		const struct schema_field *f = fields;

		if (*left == 0 || !read_item(&r, &it))
			return false;
		(*left)--;
		while (f->name && f->number != it.number)
			f++;
		if (f->name && !add_value(into, f, &it, left))
			return false;
	}
	return true;
}

/* ---- the envelope: runtime.Unknown */

static const struct schema_field type_meta[] = {{1, "apiVersion", SCHEMA_FIELD_STRING, NULL},
	{2, "kind", SCHEMA_FIELD_STRING, NULL}, {0, NULL, SCHEMA_FIELD_STRING, NULL}};

/* Read the envelope: the magic "k8s\0", then a message runtime.Unknown with the type and the raw
 * object. */
struct json_object *apihttp_protobuf_read(const char *data, size_t len, struct err *err)
{
	struct reader r = {(const uint8_t *)data, (const uint8_t *)data + len}, raw = {NULL, NULL};
	cleanup_json struct json_object *type = NULL;
	bool ok = len >= 4 && memcmp(data, "k8s", 4) == 0;
	const struct schema_fields *m = schema_fields_table;
	unsigned left = VALUES_MAX; /* no type contains itself, so the tables bound the recursion */
	const char *version, *kind;
	struct json_object *o;
	struct item it;

	r.p += ok ? 4 : 0;
	while (ok && r.p < r.end) {
		ok = read_item(&r, &it) && it.is_bytes;
		if (ok && it.number == 1) {
			json_object_put(type);
			type = object_of(it.bytes, type_meta, &left);
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
	/* The type comes from the envelope: the inner message does not have it. DeleteOptions are
	 * found in any version: clients name that of the object being deleted. */
	version = json_get_str(type, "apiVersion");
	kind = json_get_str(type, "kind");
	while (m->kind && (m->only_json || !str_eq(m->kind, kind) ||
				  (!str_eq(m->version, version) && !str_eq(kind, "DeleteOptions"))))
		m++;
	if (!m->kind) {
		err_set(err, ERR_NOT_FOUND, "%.80s of %.80s is accepted only as JSON or YAML",
			kind ? kind : "an object", version ? version : "no version");
		return NULL;
	}
	left = VALUES_MAX;
	o = object_of(raw, m->fields, &left);
	if (!o)
		err_set(err, ERR_INVALID, "the protobuf body is malformed");
	else
		json_add_str(json_add_str(o, "apiVersion", version), "kind", kind);
	return o;
}
