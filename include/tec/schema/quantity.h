/* SPDX-License-Identifier: MIT */
/*
 * Quantities of Kubernetes ("500m", "1.5Gi", "1e3"): text in, a number that can be compared and the
 * canonical text out. Values; nothing is owned.
 */
#ifndef TEC_SCHEMA_QUANTITY_H
#define TEC_SCHEMA_QUANTITY_H

#include <stddef.h>

#include "tec/base/err.h"

#define SCHEMA_QUANTITY_LEN 48 /* of a canonical text, with its NUL */

enum schema_quantity_form { SCHEMA_QUANTITY_SI, SCHEMA_QUANTITY_BINARY, SCHEMA_QUANTITY_EXPONENT };

struct schema_quantity {
	__extension__ __int128 nano; /* what is finer is rounded away from zero; bounded */
	enum schema_quantity_form form;
};

/* ERR_INVALID: the text is kube-apiserver's. */
int schema_quantity_parse(
	const char *s, size_t len, struct schema_quantity *out, struct err *err) MUST_CHECK;
/* As kube-apiserver writes it: no fraction, the largest suffix that needs none. */
void schema_quantity_text(const struct schema_quantity *q, char out[SCHEMA_QUANTITY_LEN]);

#endif
