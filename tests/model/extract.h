/* SPDX-License-Identifier: MIT */
/* Reads a text with an extractor that has to take it. */
#ifndef TEC_TESTS_MODEL_EXTRACT_H
#define TEC_TESTS_MODEL_EXTRACT_H

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/meta.h"

#define META(name) "\"metadata\":{\"name\":\"" name "\",\"uid\":\"u\",\"resourceVersion\":\"1\""

static inline const struct kobj *read_as(
	struct kobj *(*extract)(struct json_object *o, struct err *err), const char *text)
{
	cleanup_json struct json_object *o = json_tokener_parse(text);
	struct err err = ERR_INIT;
	const struct kobj *k;

	cr_assert(o, "%s", text);
	k = extract(o, &err);
	cr_assert(k, "%s", err.text);
	return k;
}

#endif
