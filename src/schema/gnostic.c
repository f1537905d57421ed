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

enum kind {
	TEXT,
	INT, /* or a boolean; negative values take ten bytes, as protobuf's int64 */
	REAL,
	FLAG, /* INT, but only of a boolean */
	ANY,
	MESSAGE,    /* of anything but a boolean */
	NAMED,      /* messages {name = 1, value = 2}, one for each member */
	EXTENSIONS, /* messages NamedAny, one for each "x-" member */
	QUERY,      /* a message, only of a parameter that is in the query */
	PATH,       /* the opposite */
};

/* A field of a message; a list is one field for each element. A table ends with number 0. */
struct field {
	unsigned number;
	enum kind kind;
	const char *name;       /* the member of the JSON object; NULL: the value itself */
	const struct field *of; /* the fields of a message */
};

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

static void write_fields(struct strbuf *out, const struct field *f, struct json_object *o);

/* An absent value is an absent field. */
static void add_message(
	struct strbuf *out, unsigned field, const struct field *of, struct json_object *v)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	if (!v)
		return;
	write_fields(&b, of, v);
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

/* of NULL: only extensions, whose values are of type Any. */
static void add_named(
	struct strbuf *out, unsigned field, const struct field *of, struct json_object *o)
{
	json_each (o, name, v) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		if (!of && !str_starts(name, "x-"))
			continue;
		add_text(&b, 1, name);
		if (of)
			add_message(&b, 2, of, v);
		else
			add_any(&b, 2, v);
		add_bytes(out, field, strbuf_str(&b), b.len);
	}
}

/* A value of another type than its field needs is left out. */
static void write_field(struct strbuf *out, const struct field *f, struct json_object *v)
{
	bool is_bool = json_object_is_type(v, json_type_boolean);
	uint64_t bits;
	double real;

	switch (f->kind) {
	case TEXT:
		if (json_object_is_type(v, json_type_string))
			add_text(out, f->number, json_object_get_string(v));
		break;
	case INT:
	case FLAG:
		if (!v || (f->kind == FLAG && !is_bool))
			break;
		add_varint(out, f->number << 3); /* wire type 0 */
		add_varint(out, (uint64_t)json_object_get_int64(v));
		break;
	case REAL:
		if (!v)
			break;
		real = json_object_get_double(v);
		memcpy(&bits, &real, sizeof(bits));
		bits = htole64(bits);
		add_varint(out, f->number << 3 | 1); /* wire type 1: eight bytes, little-endian */
		strbuf_add(out, &bits, sizeof(bits));
		break;
	case ANY:
		if (v)
			add_any(out, f->number, v);
		break;
	case NAMED:
	case EXTENSIONS:
		add_named(out, f->number, f->of, v);
		break;
	case QUERY:
	case PATH:
		if (str_eq(json_get_str(v, "in"), "query") == (f->kind == QUERY))
			add_message(out, f->number, f->of, v);
		break;
	case MESSAGE:
		if (!is_bool)
			add_message(out, f->number, f->of, v);
		break;
	}
}

static void write_fields(struct strbuf *out, const struct field *f, struct json_object *o)
{
	for (; f->number; f++) {
		struct json_object *v = f->name ? json_get(o, f->name) : o;

		if (!json_object_is_type(v, json_type_array))
			write_field(out, f, v);
		for (size_t i = 0; json_object_is_type(v, json_type_array) && i < json_len(v); i++)
			write_field(out, f, json_at(v, i));
	}
}

/* ---- schemas */

static const struct field schema[];
static const struct field properties[] = {{1, NAMED, NULL, schema}, {0}};
/* Messages ItemsItem and TypeItem are lists, of which ours have one element. */
static const struct field items[] = {{1, MESSAGE, NULL, schema}, {0}};
static const struct field type[] = {{1, TEXT, NULL, NULL}, {0}};
/* AdditionalPropertiesItem is either a schema or a boolean. */
static const struct field additional[] = {{1, MESSAGE, NULL, schema}, {2, FLAG, NULL, NULL}, {0}};
static const struct field schema[] = {{1, TEXT, "$ref", NULL}, {2, TEXT, "format", NULL},
	{3, TEXT, "title", NULL}, {4, TEXT, "description", NULL}, {6, REAL, "multipleOf", NULL},
	{7, REAL, "maximum", NULL}, {8, INT, "exclusiveMaximum", NULL}, {9, REAL, "minimum", NULL},
	{10, INT, "exclusiveMinimum", NULL}, {11, INT, "maxLength", NULL},
	{12, INT, "minLength", NULL}, {14, INT, "maxItems", NULL}, {15, INT, "minItems", NULL},
	{17, INT, "maxProperties", NULL}, {18, INT, "minProperties", NULL},
	{13, TEXT, "pattern", NULL}, {19, TEXT, "required", NULL}, {20, ANY, "enum", NULL},
	{21, MESSAGE, "additionalProperties", additional}, {22, MESSAGE, "type", type},
	{23, MESSAGE, "items", items}, {25, MESSAGE, "properties", properties},
	{31, EXTENSIONS, NULL, NULL}, {0}};

/* ---- paths */

/* ParametersItem -> Parameter -> NonBodyParameter -> the message for its location. */
static const struct field in_query[] = {{1, INT, "required", NULL}, {2, TEXT, "in", NULL},
	{3, TEXT, "description", NULL}, {4, TEXT, "name", NULL}, {6, TEXT, "type", NULL}, {0}};
static const struct field in_path[] = {{1, INT, "required", NULL}, {2, TEXT, "in", NULL},
	{3, TEXT, "description", NULL}, {4, TEXT, "name", NULL}, {5, TEXT, "type", NULL}, {0}};
static const struct field non_body[] = {{3, QUERY, NULL, in_query}, {4, PATH, NULL, in_path}, {0}};
static const struct field parameter[] = {{2, MESSAGE, NULL, non_body}, {0}};
static const struct field parameters_item[] = {{1, MESSAGE, NULL, parameter}, {0}};

/* ResponseValue contains either a Response or a reference. */
static const struct field response[] = {{1, TEXT, "description", NULL}, {0}};
static const struct field response_value[] = {{1, MESSAGE, NULL, response}, {0}};
static const struct field responses[] = {{1, NAMED, NULL, response_value}, {0}};

/* Extensions carry x-kubernetes-group-version-kind, by which kubectl finds an operation. */
static const struct field operation[] = {{5, TEXT, "operationId", NULL},
	{8, MESSAGE, "parameters", parameters_item}, {9, MESSAGE, "responses", responses},
	{13, EXTENSIONS, NULL, NULL}, {0}};
static const struct field path_item[] = {{2, MESSAGE, "get", operation},
	{3, MESSAGE, "put", operation}, {4, MESSAGE, "post", operation},
	{5, MESSAGE, "delete", operation}, {8, MESSAGE, "patch", operation},
	{9, MESSAGE, "parameters", parameters_item}, {0}};

/* Field 1 of Paths is for extensions, which ours have none of. */
static const struct field paths[] = {{2, NAMED, NULL, path_item}, {0}};
static const struct field info[] = {{1, TEXT, "title", NULL}, {2, TEXT, "version", NULL}, {0}};
static const struct field document[] = {{1, TEXT, "swagger", NULL}, {2, MESSAGE, "info", info},
	{8, MESSAGE, "paths", paths}, {9, MESSAGE, "definitions", properties}, {0}};

void schema_openapi_v2_protobuf(struct json_object *swagger, struct strbuf *out)
{
	write_fields(out, document, swagger);
}
