/* SPDX-License-Identifier: MIT */
/* The tables of fields that drive protobuf.c and decode.c, generated from the types of Kubernetes
 * (see protobuf_fields.c). */
#ifndef TEC_SRC_APISTORE_PROTOBUF_FIELDS_H
#define TEC_SRC_APISTORE_PROTOBUF_FIELDS_H

#include <stdbool.h>

/* _PTR: a zero value is kept, since Go stores a pointer. Other zero values, except objects, are
 * omitted. */
enum protobuf_type {
	PROTOBUF_STRING,
	PROTOBUF_STRING_PTR,
	PROTOBUF_STRINGS,
	PROTOBUF_INT, /* 32 bits, as the next */
	PROTOBUF_INT_PTR,
	PROTOBUF_INT64,
	PROTOBUF_INT64_PTR,
	PROTOBUF_BOOL_PTR,
	PROTOBUF_TIME,
	PROTOBUF_MICROTIME,
	PROTOBUF_RAW, /* embedded JSON */
	PROTOBUF_OBJECT,
	PROTOBUF_OBJECTS,
	PROTOBUF_TEXT_MAP,
	PROTOBUF_BYTES_MAP, /* base64 in JSON */
};

struct protobuf_field {
	unsigned number;
	const char *name; /* NULL: the end of the table */
	enum protobuf_type type;
	const struct protobuf_field *of; /* the fields of an object or of elements */
};

struct protobuf_message {
	const char *version, *kind; /* NULL: the end of the table */
	const struct protobuf_field *fields;
	bool only_json; /* not accepted as protobuf; the table serves decode.c */
};

extern const struct protobuf_message protobuf_messages[];

#endif
