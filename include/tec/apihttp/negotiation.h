/* SPDX-License-Identifier: MIT */
/* Content negotiation: what a client accepts by its Accept header, and the representation of
 * objects (apireq/representation.h) that it asks for there. */
#ifndef TEC_APIHTTP_NEGOTIATION_H
#define TEC_APIHTTP_NEGOTIATION_H

#include <stdbool.h>

#include "tec/apireq/representation.h"

/* One media range of an Accept header. */
struct apihttp_media {
	char type[128];
	char as[64], group[64], version[32]; /* "" without the parameter */
};
/* Read the next media range and advance *p past it. False: no more. Ranges with q=0, which the
 * client does not accept, and ranges that are too long are skipped. */
bool apihttp_negotiation_next(const char **p, struct apihttp_media *out);

/* Choose the first range that can be served. accept NULL: anything. False: there is none. */
bool apihttp_negotiation_choose(const char *accept, struct apireq_representation *out);
/* Set the query parameter includeObject; false: it is not a valid value. */
bool apihttp_negotiation_include(struct apireq_representation *f, const char *include);

#endif
