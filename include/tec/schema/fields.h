/* SPDX-License-Identifier: MIT */
/* The fields of the kinds that clients send, for decoders, generated from the types of Kubernetes
 * (see src/schema/fields.c). */
#ifndef TEC_SCHEMA_FIELDS_H
#define TEC_SCHEMA_FIELDS_H

#include <stdbool.h>

/* _PTR: a zero value is kept, since Go stores a pointer. Other zero values, except objects, are
 * omitted. */
enum schema_field_type {
	SCHEMA_FIELD_STRING,
	SCHEMA_FIELD_STRING_PTR,
	SCHEMA_FIELD_STRINGS,
	SCHEMA_FIELD_INT, /* 32 bits, as the next */
	SCHEMA_FIELD_INT_PTR,
	SCHEMA_FIELD_INT64,
	SCHEMA_FIELD_INT64_PTR,
	SCHEMA_FIELD_BOOL_PTR,
	SCHEMA_FIELD_TIME,
	SCHEMA_FIELD_MICROTIME,
	SCHEMA_FIELD_RAW, /* embedded JSON */
	SCHEMA_FIELD_OBJECT,
	SCHEMA_FIELD_OBJECTS,
	SCHEMA_FIELD_TEXT_MAP,
	SCHEMA_FIELD_BYTES_MAP, /* base64 in JSON */
};

struct schema_field {
	unsigned number;
	const char *name; /* NULL: the end of the table */
	enum schema_field_type type;
	const struct schema_field *of; /* the fields of an object or of elements */
};

struct schema_fields {
	const char *version, *kind; /* NULL: the end of the table */
	const struct schema_field *fields;
	bool only_json; /* not accepted as protobuf; the table serves decode.c */
};

extern const struct schema_fields schema_fields_table[];

#endif
