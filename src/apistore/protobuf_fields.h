/* SPDX-License-Identifier: MIT */
/* The table that apistore/protobuf.c and apistore/decode.c are driven by: made from the types of Kubernetes, see protobuf_fields.c. */
#ifndef TEC_SRC_APISTORE_PROTOBUF_FIELDS_H
#define TEC_SRC_APISTORE_PROTOBUF_FIELDS_H

#include <stdbool.h>

/* _PTR: what is there is kept, also a zero. All else but objects is left out when it is nothing. */
enum protobuf_type {
	PROTOBUF_STRING,
	PROTOBUF_STRING_PTR,
	PROTOBUF_STRINGS,
	PROTOBUF_INT, /* of 32 bits, as the next */
	PROTOBUF_INT_PTR,
	PROTOBUF_INT64,
	PROTOBUF_INT64_PTR,
	PROTOBUF_BOOL_PTR,
	PROTOBUF_TIME,
	PROTOBUF_MICROTIME,
	PROTOBUF_RAW, /* JSON as it is */
	PROTOBUF_OBJECT,
	PROTOBUF_OBJECTS,
	PROTOBUF_TEXT_MAP,
	PROTOBUF_BYTES_MAP, /* base64 in JSON */
};

struct protobuf_field {
	unsigned number;
	const char *name; /* NULL: the end of a list of them */
	enum protobuf_type type;
	const struct protobuf_field *of; /* what it is made of */
};

struct protobuf_message {
	const char *version, *kind; /* NULL: the end */
	const struct protobuf_field *fields;
	bool only_json; /* no body of it is read as protobuf */
};

extern const struct protobuf_message protobuf_messages[];

#endif
