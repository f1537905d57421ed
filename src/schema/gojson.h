/* SPDX-License-Identifier: MIT */
/* Whether a text is the JSON of an object, as Go's encoding/json says it when it is not. */
#ifndef TEC_SRC_SCHEMA_GOJSON_H
#define TEC_SRC_SCHEMA_GOJSON_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/str.h"

/* json.Unmarshal() into a map[string]interface{}. False: why has got the text of the error, which
 * shows one character or one number of what was given. */
bool gojson_is_map(const char *s, size_t len, struct strbuf *why);

#endif
