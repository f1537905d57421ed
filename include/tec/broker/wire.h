/* SPDX-License-Identifier: MIT */
/*
 * The messages of a broker's admin API, as Trustee speaks it, as pure functions: bytes in, values
 * or ERR_INVALID out; fuzz targets. Error texts may be sent to the client and never quote its
 * input.
 */
#ifndef TEC_BROKER_WIRE_H
#define TEC_BROKER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

/* "repository/type/tag", each [A-Za-z0-9_-][A-Za-z0-9_.-]*: the path is then the resource's key. */
int broker_wire_resource_check(const char *path, struct err *err) MUST_CHECK;

/* {"policy_id":ID,"policy":<b64url without padding>}; the id only if with_id. */
struct broker_wire_policy {
	char *id; /* [A-Za-z0-9_-]+; NULL without with_id */
	char *text;
	size_t len;
};
int broker_wire_policy_parse(const char *body, size_t len, bool with_id,
	struct broker_wire_policy *out, struct err *err) MUST_CHECK;
void broker_wire_policy_fini(struct broker_wire_policy *p);

/* Parse a message of reference values: fn receives each one in the order of the message, with
 * the entry to store (JSON of version, name, expiration one year after now_s, value with sorted
 * members). An error of fn ends the message; values it accepted before stay stored. */
typedef int (*broker_wire_value_fn)(
	void *arg, const char *name, const char *entry, size_t len, struct err *err);
int broker_wire_values(const char *body, size_t len, int64_t now_s, broker_wire_value_fn fn,
	void *arg, struct err *err) MUST_CHECK;
/* Append the value of a stored entry as JSON text. */
int broker_wire_entry_value(
	const char *entry, size_t len, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
