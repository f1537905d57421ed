/* SPDX-License-Identifier: MIT */
/*
 * Label and field selectors, with all operators of kube-apiserver. What they match is stored beside
 * each object as a short text, so an object that does not match need not be read.
 *
 * A selector that cannot be parsed is refused, since selecting everything instead would be worse.
 */
#ifndef TEC_STORE_SELECTOR_H
#define TEC_STORE_SELECTOR_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

struct store_selector;

/* Parse a selector. Either text may be NULL or "", which selects all. resource ("secrets",
 * "machines.example.io") decides which fields can be selected. *out is NULL if everything is
 * selected. */
int store_selector_parse(const char *labels, const char *fields, const char *resource,
	struct store_selector **out, struct err *err) MUST_CHECK;
void store_selector_free(struct store_selector *s); /* NULL is fine */

/* Return the text that selectors of this resource match, to be stored beside the object; "" if the
 * object has neither labels nor such fields. The caller frees it. */
char *store_selector_meta(struct json_object *o, const char *resource);
/* Does an object match? s NULL: everything does. meta: the text from above. */
bool store_selector_matches(
	const struct store_selector *s, const char *ns, const char *name, const char *meta);

/* Is this a valid label value or name part of a label key? An empty value is valid. */
bool store_selector_is_name(const char *s, size_t len);

#endif
