/* SPDX-License-Identifier: MIT */
/*
 * Encode a swagger document as gnostic's protobuf (openapi.v2.Document). Only members that our
 * documents have are written. Extensions are encoded as YAML, of which JSON is a subset. Each
 * message is written to a buffer of its own first, because its length precedes it in the
 * surrounding message. Field numbers are those of gnostic's OpenAPIv2.proto.
 */
#include "config.h"

#include "tec/schema/openapi.h"

#include <endian.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

typedef void (*write_fn)(struct strbuf *out, struct json_object *o);

/* Seven bits per byte, the lowest first; the high bit says that more follow. */
static void add_varint(struct strbuf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		strbuf_addc(out, (char)(v | 0x80));
	strbuf_addc(out, (char)v);
}

/* Wire type 2: a length, then the bytes. */
static void add_bytes(struct strbuf *out, unsigned field, const void *data, size_t len)
{
	add_varint(out, field << 3 | 2);
	add_varint(out, len);
	strbuf_add(out, data, len);
}

static void add_text(struct strbuf *out, unsigned field, const char *s)
{
	if (s)
		add_bytes(out, field, s, strlen(s));
}

/* Wire type 0. Negative values take ten bytes, as protobuf's int64 does. */
static void add_int(struct strbuf *out, unsigned field, int64_t v)
{
	add_varint(out, field << 3);
	add_varint(out, (uint64_t)v);
}

/* Wire type 1: eight bytes, little-endian. */
static void add_double(struct strbuf *out, unsigned field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	bits = htole64(bits);
	add_varint(out, field << 3 | 1);
	strbuf_add(out, &bits, sizeof(bits));
}

/* An absent object is an absent field. */
static void add_message(struct strbuf *out, unsigned field, write_fn write, struct json_object *o)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	if (!o)
		return;
	write(&b, o);
	add_bytes(out, field, strbuf_str(&b), b.len);
}

/* Message Any: {yaml = 2}. */
static void add_any(struct strbuf *out, unsigned field, struct json_object *v)
{
	cleanup_free char *yaml = json_text(v);
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	add_text(&b, 2, yaml);
	add_bytes(out, field, strbuf_str(&b), b.len);
}

/* Messages Named*: {name = 1, value = 2}, one for each member of o. */
static void add_named(struct strbuf *out, unsigned field, write_fn write, struct json_object *o)
{
	json_each (o, name, v) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		add_text(&b, 1, name);
		add_message(&b, 2, write, v);
		add_bytes(out, field, strbuf_str(&b), b.len);
	}
}

/* All "x-" members, in NamedAny messages. */
static void add_extensions(struct strbuf *out, unsigned field, struct json_object *o)
{
	json_each (o, name, v) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		if (!str_starts(name, "x-"))
			continue;
		add_text(&b, 1, name);
		add_any(&b, 2, v);
		add_bytes(out, field, strbuf_str(&b), b.len);
	}
}

/* ---- schemas */

static void write_schema(struct strbuf *out, struct json_object *o);

static void write_properties(struct strbuf *out, struct json_object *o)
{
	add_named(out, 1, write_schema, o);
}

/* ItemsItem is a list of schemas, of which ours have one. */
static void write_items(struct strbuf *out, struct json_object *o)
{
	add_message(out, 1, write_schema, o);
}

/* AdditionalPropertiesItem is either a schema (1) or a boolean (2). */
static void write_additional(struct strbuf *out, struct json_object *o)
{
	if (json_object_is_type(o, json_type_boolean))
		add_int(out, 2, json_object_get_boolean(o));
	else
		add_message(out, 1, write_schema, o);
}

/* TypeItem is a list of types, of which our schemas have one. */
static void write_type(struct strbuf *out, struct json_object *o)
{
	add_text(out, 1, json_object_get_string(o));
}

/* Numeric keywords; the real ones are doubles in gnostic. */
static void add_limits(struct strbuf *out, struct json_object *o)
{
	static const struct {
		const char *name;
		unsigned field;
		bool real;
	} limits[] = {{"multipleOf", 6, true}, {"maximum", 7, true}, {"exclusiveMaximum", 8, false},
		{"minimum", 9, true}, {"exclusiveMinimum", 10, false}, {"maxLength", 11, false},
		{"minLength", 12, false}, {"maxItems", 14, false}, {"minItems", 15, false},
		{"maxProperties", 17, false}, {"minProperties", 18, false}};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct json_object *v = json_get(o, limits[i].name);

		if (v && limits[i].real)
			add_double(out, limits[i].field, json_object_get_double(v));
		else if (v)
			add_int(out, limits[i].field, json_object_get_int64(v));
	}
}

/* A value that is not an object is an empty message. */
static void write_schema(struct strbuf *out, struct json_object *o)
{
	struct json_object *required = json_get_arr(o, "required"), *list = json_get_arr(o, "enum");

	if (!json_object_is_type(o, json_type_object))
		return;
	add_text(out, 1, json_get_str(o, "$ref"));
	add_text(out, 2, json_get_str(o, "format"));
	add_text(out, 3, json_get_str(o, "title"));
	add_text(out, 4, json_get_str(o, "description"));
	add_limits(out, o);
	add_text(out, 13, json_get_str(o, "pattern"));
	for (size_t i = 0; i < json_len(required); i++)
		add_text(out, 19, json_object_get_string(json_at(required, i)));
	for (size_t i = 0; i < json_len(list); i++)
		add_any(out, 20, json_at(list, i));
	add_message(out, 21, write_additional, json_get(o, "additionalProperties"));
	add_message(out, 22, write_type, json_get(o, "type"));
	add_message(out, 23, write_items, json_get_obj(o, "items"));
	add_message(out, 25, write_properties, json_get_obj(o, "properties"));
	add_extensions(out, 31, o);
}

/* ---- paths */

/* Encode a parameter: ParametersItem -> Parameter -> NonBodyParameter -> the message for its
 * location. */
static void write_parameter(struct strbuf *out, struct json_object *o)
{
	bool query = str_eq(json_get_str(o, "in"), "query");
	cleanup_strbuf struct strbuf sub = STRBUF_INIT, non_body = STRBUF_INIT, p = STRBUF_INIT;

	if (json_get_bool(o, "required", false))
		add_int(&sub, 1, 1);
	add_text(&sub, 2, json_get_str(o, "in"));
	add_text(&sub, 3, json_get_str(o, "description"));
	add_text(&sub, 4, json_get_str(o, "name"));
	add_text(&sub, query ? 6 : 5, json_get_str(o, "type"));
	add_bytes(&non_body, query ? 3 : 4, strbuf_str(&sub), sub.len);
	add_bytes(&p, 2, strbuf_str(&non_body), non_body.len);
	add_bytes(out, 1, strbuf_str(&p), p.len);
}

static void add_parameters(struct strbuf *out, unsigned field, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "parameters");

	for (size_t i = 0; i < json_len(a); i++)
		add_message(out, field, write_parameter, json_at(a, i));
}

static void write_description(struct strbuf *out, struct json_object *o)
{
	add_text(out, 1, json_get_str(o, "description"));
}

/* ResponseValue contains either a Response (1) or a reference. */
static void write_response(struct strbuf *out, struct json_object *o)
{
	add_message(out, 1, write_description, o);
}

static void write_responses(struct strbuf *out, struct json_object *o)
{
	add_named(out, 1, write_response, o);
}

/* Extensions carry x-kubernetes-group-version-kind, by which kubectl finds an operation. */
static void write_operation(struct strbuf *out, struct json_object *o)
{
	add_text(out, 5, json_get_str(o, "operationId"));
	add_parameters(out, 8, o);
	add_message(out, 9, write_responses, json_get_obj(o, "responses"));
	add_extensions(out, 13, o);
}

/* Fields in the order of their numbers, as other protobuf writers emit them. */
static void write_path(struct strbuf *out, struct json_object *o)
{
	static const struct {
		const char *name;
		unsigned field;
	} operations[] = {{"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};

	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		add_message(out, operations[i].field, write_operation,
			json_get_obj(o, operations[i].name));
	add_parameters(out, 9, o);
}

/* Field 1 of Paths is for extensions, which ours have none of. */
static void write_paths(struct strbuf *out, struct json_object *o)
{
	add_named(out, 2, write_path, o);
}

static void write_info(struct strbuf *out, struct json_object *o)
{
	add_text(out, 1, json_get_str(o, "title"));
	add_text(out, 2, json_get_str(o, "version"));
}

static void write_definitions(struct strbuf *out, struct json_object *o)
{
	add_named(out, 1, write_schema, o);
}

void schema_openapi_v2_protobuf(struct json_object *swagger, struct strbuf *out)
{
	add_text(out, 1, json_get_str(swagger, "swagger"));
	add_message(out, 2, write_info, json_get_obj(swagger, "info"));
	add_message(out, 8, write_paths, json_get_obj(swagger, "paths"));
	add_message(out, 9, write_definitions, json_get_obj(swagger, "definitions"));
}
