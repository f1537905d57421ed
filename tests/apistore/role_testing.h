/* SPDX-License-Identifier: MIT */
/* One role, ns/r, and the bindings of the namespace ns, from their texts. */
#ifndef TEC_TESTS_APISTORE_ROLE_TESTING_H
#define TEC_TESTS_APISTORE_ROLE_TESTING_H

#include <criterion/criterion.h>

#include "tec/apistore/rights.h"
#include "tec/base/json.h"
#include "tec/base/str.h"

struct role_texts {
	const char *role, *bindings;
};

static inline struct json_object *parse(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_not_null(o, "%s: %s", text, err.text);
	return o;
}

static inline struct json_object *role_of_text(void *texts, const char *ns, const char *name)
{
	const struct role_texts *t = texts;

	return str_eq(ns, "ns") && str_eq(name, "r") ? parse(t->role) : NULL;
}

static inline struct json_object *bindings_of_text(void *texts, const char *ns)
{
	const struct role_texts *t = texts;

	return str_eq(ns, "ns") ? parse(t->bindings) : NULL;
}

#endif
