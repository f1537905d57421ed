/* SPDX-License-Identifier: MIT */
/* Names that Kubernetes accepts (RFC 1123), checked before they become part of a request or a file
 * name. */
#ifndef TEC_KOBJ_KEY_H
#define TEC_KOBJ_KEY_H

#include <stdbool.h>
#include <stddef.h>

#define KOBJ_NAME_MAX 253

/* Identifies an object in the one namespace that an operator manages. Borrowed strings. */
struct kobj_key {
	const char *ns;
	const char *name;
};

bool kobj_name_valid(const char *s, size_t len); /* DNS subdomain, at most 253 bytes */
bool kobj_label_valid(
	const char *s, size_t len); /* DNS label, at most 63 bytes: namespaces, Services */

#endif
