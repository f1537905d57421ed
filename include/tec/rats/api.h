/* SPDX-License-Identifier: MIT */
/*
 * Trustee's HTTP API as nodes use it: which request a request line is, and how an error looks. What
 * answers nodes (broker, guard) reads requests with this alone, so that all answer alike.
 *
 * A target is accepted in the spellings that every Trustee takes for the same request; what is
 * understood is returned in one spelling, which is also what the guard sends on. Pure: text in, text
 * out.
 */
#ifndef TEC_RATS_API_H
#define TEC_RATS_API_H

#include <stdbool.h>

#include "tec/base/str.h"

#define RATS_API_PREFIX   "/kbs/v0/"
#define RATS_API_RESOURCE RATS_API_PREFIX "resource/"
#define RATS_API_PATH_MAX 255 /* bytes of REPOSITORY/TYPE/TAG */

enum rats_api { RATS_API_NONE, RATS_API_AUTH, RATS_API_ATTEST, RATS_API_GET_RESOURCE };

/*
 * The request of a method and a target, which begins with '/'. path receives REPOSITORY/TYPE/TAG of a
 * resource, or "" if the target names none. A query and one slash at the end are ignored; in the path of
 * a resource, escapes of its own characters are decoded, and one slash too many before it is skipped.
 */
enum rats_api rats_api_read(
	const char *method, const char *target, char path[RATS_API_PATH_MAX + 1]);
/* Whether this is REPOSITORY/TYPE/TAG in Trustee's characters, of any length. */
bool rats_api_path_valid(const char *path);

/* Append the body of an error: type is the word that Trustee's clients compare. */
void rats_api_error(struct strbuf *out, const char *type, const char *detail);
/* Append the body of an error that a listener detects before any handler. Returns its content type
 * (static): text/plain for 413, as in Trustee. */
const char *rats_api_listener_error(struct strbuf *out, int status, const char *message);

#endif
