/* SPDX-License-Identifier: MIT */
/*
 * struct schema_causes: why an object is refused, as the causes of a Status with reason Invalid.
 * Reasons and fields are kube-apiserver's, because programs match them; the details are our own
 * words and state value and rule. The caller owns it (schema_causes_fini); all-zero is empty. At
 * most SCHEMA_CAUSES_MAX causes and SCHEMA_CAUSES_BYTES of text are kept: later ones are dropped,
 * never the first.
 */
#ifndef TEC_SCHEMA_CAUSE_H
#define TEC_SCHEMA_CAUSE_H

#include <json-c/json.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

#define SCHEMA_CAUSES_MAX   1000
#define SCHEMA_CAUSES_BYTES 1048576

enum schema_problem {
	SCHEMA_INVALID,      /* FieldValueInvalid, "Invalid value" */
	SCHEMA_TYPE_INVALID, /* FieldValueTypeInvalid, "Invalid value" */
	SCHEMA_REQUIRED,
	SCHEMA_DUPLICATE,
	SCHEMA_NOT_FOUND,
	SCHEMA_UNSUPPORTED,
	SCHEMA_FORBIDDEN,
	SCHEMA_TOO_LONG,
	SCHEMA_TOO_MANY,
};

struct schema_cause {
	enum schema_problem problem;
	const char *reason; /* static: value of causes[].reason */
	char *field;        /* "spec.id"; "<nil>" where kube-apiserver has that */
	char *message;      /* "Invalid value: \"x\": ...", without the field */
};

struct schema_causes {
	struct schema_cause *cause; /* owned */
	size_t n, bytes;
};
void schema_causes_fini(struct schema_causes *c);
#define cleanup_schema_causes __attribute__((cleanup(schema_causes_fini)))
/* Drop all but the first n. */
void schema_causes_cut(struct schema_causes *c, size_t n);

/*
 * Add a cause. field NULL or "": "<nil>". value: borrowed, printed as JSON, truncated when long;
 * NULL: none. The detail may be empty.
 */
void schema_cause_add(struct schema_causes *c, enum schema_problem problem, const char *field,
	struct json_object *value, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Add a cause with a string as value. */
void schema_cause_add_text(struct schema_causes *c, enum schema_problem problem, const char *field,
	const char *value, const char *detail);

/*
 * Format the causes for the message of a Status: "FIELD: MESSAGE", and "[A, B]" for several, each
 * once. The caller frees it.
 */
char *schema_causes_text(const struct schema_causes *c);
/* Make details.causes: [{reason, message, field}]. The caller releases it. */
struct json_object *schema_causes_json(const struct schema_causes *c);

/* A plain list of texts: paths of unknown fields, warnings. Same bounds, same ownership. */
struct schema_texts {
	char **text; /* owned */
	size_t n, bytes;
};
void schema_texts_fini(struct schema_texts *t);
#define cleanup_schema_texts __attribute__((cleanup(schema_texts_fini)))
void schema_texts_add(struct schema_texts *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void schema_texts_sort(struct schema_texts *t); /* in the order of strcmp() */

#endif
