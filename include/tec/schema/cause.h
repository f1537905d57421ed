/* SPDX-License-Identifier: MIT */
/*
 * struct schema_causes: why an object is refused, as the causes of a Status with reason Invalid:
 * reasons and fields are kube-apiserver's, as programs match them, the words are our own and name
 * value and rule. The caller owns it (schema_causes_fini); all-zero is empty. At most
 * SCHEMA_CAUSES_MAX are kept and at most SCHEMA_CAUSES_BYTES of text: what comes after is dropped,
 * never the first one.
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
	const char *reason; /* static: what causes[].reason becomes */
	char *field;        /* "spec.id"; "<nil>" where kube-apiserver says that */
	char *message;      /* "Invalid value: \"x\": ...", without the field */
};

struct schema_causes {
	struct schema_cause *cause; /* owned */
	size_t n, bytes;
};
void schema_causes_fini(struct schema_causes *c);
#define cleanup_schema_causes __attribute__((cleanup(schema_causes_fini)))
/* Drops all but the first n. */
void schema_causes_cut(struct schema_causes *c, size_t n);

/*
 * field NULL or "": "<nil>". value: borrowed, printed as JSON, a long one cut; NULL: none. detail
 * may be empty.
 */
void schema_cause_add(struct schema_causes *c, enum schema_problem problem, const char *field,
	struct json_object *value, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The same with a text as value. */
void schema_cause_add_text(struct schema_causes *c, enum schema_problem problem, const char *field,
	const char *value, const char *detail);

/*
 * As a Status' message names them: "FIELD: MESSAGE", and "[A, B]" for several, each once. The
 * caller frees.
 */
char *schema_causes_text(const struct schema_causes *c);
/* details.causes: [{reason, message, field}]. The caller puts it. */
struct json_object *schema_causes_json(const struct schema_causes *c);

/* Texts without more: paths of unknown fields, warnings. Same bounds, same ownership. */
struct schema_texts {
	char **text; /* owned */
	size_t n, bytes;
};
void schema_texts_fini(struct schema_texts *t);
#define cleanup_schema_texts __attribute__((cleanup(schema_texts_fini)))
void schema_texts_add(struct schema_texts *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void schema_texts_sort(struct schema_texts *t); /* as strcmp() orders */

#endif
