/* SPDX-License-Identifier: MIT */
/*
 * Label and field selectors: all operators that kube-apiserver takes. What they look at of an
 * object is written beside it as a short text, so that no object has to be read to be passed over.
 *
 * Bytes in, values out. A selector that cannot be read is refused: selecting too much would be
 * worse.
 */
#ifndef TEC_APISTORE_SELECTOR_H
#define TEC_APISTORE_SELECTOR_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/err.h"

struct apistore_selector;

/* Either text may be NULL or "": all. resource: "secrets", "machines.example.io"; it says which fields
 * there are. *out is NULL when everything is selected. ERR_INVALID says why. */
int apistore_selector_parse(const char *labels, const char *fields, const char *resource,
	struct apistore_selector **out, struct err *err) MUST_CHECK;
void apistore_selector_free(struct apistore_selector *s); /* NULL is fine */

/* What selectors look at of an object of this resource; "" when it has nothing of that. The caller
 * frees. */
char *apistore_selector_meta(struct json_object *o, const char *resource);
/* s NULL: everything. meta: as above. */
bool apistore_selector_matches(
	const struct apistore_selector *s, const char *ns, const char *name, const char *meta);

#endif
