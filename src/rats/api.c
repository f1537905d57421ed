/* SPDX-License-Identifier: MIT */
/*
 * Spellings that versions of Trustee or proxies in between interpret differently are refused, not
 * cleaned up: an escaped slash, dot segments, empty segments, a second escape inside of an escape.
 */
#include "config.h"

#include "tec/rats/api.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"

#define ERROR_URL "https://github.com/confidential-containers/kbs/errors/"
#define TOO_LARGE "payload reached size limit"
#define SEGMENT   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

/* ---- requests */

/* The first character of a segment must not be a dot, which excludes "." and "..". */
bool rats_api_path_valid(const char *path)
{
	for (unsigned i = 0; i < 3; i++) {
		size_t n = *path == '.' ? 0 : strspn(path, SEGMENT);

		if (n == 0 || path[n] != (i < 2 ? '/' : '\0'))
			return false;
		path += n + 1;
	}
	return true;
}

/* The character of the escape at s ("%2d"); NUL: none, or not one that a segment may contain. */
static char unescape(const char *s)
{
	int high = bytes_hex_digit(s[1]), low = high < 0 ? -1 : bytes_hex_digit(s[2]);
	char c = low < 0 ? '\0' : (char)(high << 4 | low);

	return c && strchr(SEGMENT, c) ? c : '\0';
}

/* Read the part of a target after "resource/". "" if it is not valid. */
static void read_path(const char *s, char path[RATS_API_PATH_MAX + 1])
{
	const char *end = s + strcspn(s, "?");
	size_t n = 0;

	s += *s == '/'; /* one release of the attester sends an empty first segment */
	end -= end > s && end[-1] == '/';
	while (s < end && n < RATS_API_PATH_MAX) {
		bool escaped = *s == '%';

		path[n] = escaped ? unescape(s) : *s;
		if (!path[n++])
			break;
		s += escaped ? 3 : 1;
	}
	path[n] = '\0';
	if (s < end || !rats_api_path_valid(path))
		path[0] = '\0';
}

/* Whether target is this word of the API, possibly with a slash and a query after it. */
static bool is_word(const char *target, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(target, word, len) != 0)
		return false;
	target += len;
	target += *target == '/';
	return *target == '\0' || *target == '?';
}

enum rats_api rats_api_read(
	const char *method, const char *target, char path[RATS_API_PATH_MAX + 1])
{
	bool post = str_eq(method, "POST");

	path[0] = '\0';
	if (post && is_word(target, RATS_API_PREFIX "auth"))
		return RATS_API_AUTH;
	if (post && is_word(target, RATS_API_PREFIX "attest"))
		return RATS_API_ATTEST;
	if (!str_eq(method, "GET") || !str_starts(target, RATS_API_RESOURCE))
		return RATS_API_NONE;
	read_path(target + strlen(RATS_API_RESOURCE), path);
	return RATS_API_GET_RESOURCE;
}

/* ---- errors */

void rats_api_error(struct strbuf *out, const char *type, const char *detail)
{
	strbuf_addf(out, "{\"type\":\"" ERROR_URL "%s\",\"detail\":", type);
	json_quote(out, detail, strlen(detail));
	strbuf_addc(out, '}');
}

const char *rats_api_listener_error(struct strbuf *out, int status, const char *message)
{
	if (status == 413) {
		strbuf_adds(out, TOO_LARGE);
		return "text/plain";
	}
	rats_api_error(out, status == 404 ? "InvalidRequestPath" : "HttpError", message);
	return "application/json";
}
