/* SPDX-License-Identifier: MIT */
/* Content negotiation: what a client accepts by its Accept header, and the representation of
 * objects (apistore/form.h) that it asks for there. */
#ifndef TEC_APISTORE_NEGOTIATION_H
#define TEC_APISTORE_NEGOTIATION_H

#include <stdbool.h>

#include "tec/apistore/form.h"

/* One media range of an Accept header. */
struct apistore_media {
	char type[128];
	char as[64], group[64], version[32]; /* "" without the parameter */
};
/* Read the next media range and advance *p past it. False: no more. Ranges with q=0, which the
 * client does not accept, and ranges that are too long are skipped. */
bool apistore_negotiation_next(const char **p, struct apistore_media *out);

/* Choose the first range that can be served. accept NULL: anything. False: there is none. */
bool apistore_negotiation_choose(const char *accept, struct apistore_form *out);
/* Set the query parameter includeObject; false: it is not a valid value. */
bool apistore_negotiation_include(struct apistore_form *f, const char *include);

#endif
