/* SPDX-License-Identifier: MIT */
/*
 * A reference is split at the last '@', then at a ':' after the last '/', then at the first '/' if
 * the part before it can only be a host: it has a dot, a colon or a capital letter, or is
 * "localhost". Everything that later becomes part of a URL is checked here, character by character.
 * Digests with other algorithms are refused, because only one algorithm is verified.
 */
#include "config.h"

#include "tec/oci/ref.h"

#include <string.h>

#include "tec/base/str.h"

#define REF_MAX  1024
#define HEX_LEN  64
#define HEX      "0123456789abcdef"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define ALNUM    CAPITALS "abcdefghijklmnopqrstuvwxyz0123456789"
#define HUB      "docker.io"
#define HUB_OLD  "index.docker.io"
#define HUB_OURS "library/"

static bool is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool oci_digest_valid(const char *text, size_t len)
{
	return len == OCI_DIGEST_LEN && memcmp(text, "sha256:", 7) == 0 &&
	       strspn(text + 7, HEX) >= HEX_LEN;
}

/* Accept 1 to 65535, digits only, without leading zeros. */
static bool port_valid(const char *s, size_t len)
{
	unsigned n = 0;

	if (len < 1 || len > 5 || s[0] == '0')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		n = n * 10 + (unsigned)(s[i] - '0');
	}
	return n <= 65535;
}

/* Accept labels of letters, digits and inner hyphens, joined by single dots. */
static bool name_valid(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool edge = i == 0 || i + 1 == len || s[i - 1] == '.' || s[i + 1] == '.';

		if (is_lower(s[i]) || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] == '-' && !edge) ||
			(s[i] == '.' && i > 0 && i + 1 < len && s[i - 1] != '.'))
			continue;
		return false;
	}
	return len > 0;
}

/* IPv6 addresses are in brackets, so a colon outside of them starts the port. */
bool oci_host_valid(const char *text, size_t len)
{
	const char *end, *port;

	if (len == 0 || len > OCI_NAME_MAX)
		return false;
	if (text[0] == '[') {
		end = memchr(text, ']', len);
		/* Only the characters of an IPv6 address are checked: connecting to a wrong one
		 * fails anyway. */
		if (!end || end - text > 46 || !memchr(text, ':', (size_t)(end - text)) ||
			text + 1 + strspn(text + 1, HEX "ABCDEF:.") < end)
			return false;
		port = end + 1;
		if (port == text + len)
			return true;
		return *port == ':' && port_valid(port + 1, (size_t)(text + len - port - 1));
	}
	port = memchr(text, ':', len);
	if (!port)
		return name_valid(text, len);
	return name_valid(text, (size_t)(port - text)) &&
	       port_valid(port + 1, (size_t)(text + len - port - 1));
}

/* Return the length of the separator at s ('.', '_', "__", hyphens), or 0. */
static size_t separator_len(const char *s, size_t len)
{
	size_t n = 0;

	if (s[0] == '.')
		return 1;
	if (s[0] == '_')
		return len > 1 && s[1] == '_' ? 2 : 1;
	while (n < len && s[n] == '-')
		n++;
	return n;
}

/* Components of letters and digits, with single separators between them, joined by '/'. */
bool oci_repository_valid(const char *text, size_t len)
{
	bool inside = false; /* the last character was a letter or digit */

	if (len == 0 || len > OCI_NAME_MAX)
		return false;
	for (size_t i = 0; i < len;) {
		size_t n = 1;

		if (is_lower(text[i])) {
			inside = true;
			i++;
			continue;
		}
		if (text[i] != '/')
			n = separator_len(text + i, len - i);
		if (!inside || n == 0)
			return false;
		inside = false;
		i += n;
	}
	return inside;
}

/* Read registry and repository. Short names of Docker Hub get "library/". */
static int take_name(const char *s, size_t len, struct oci_ref *out, struct err *err)
{
	const char *slash = memchr(s, '/', len);
	size_t host = slash ? (size_t)(slash - s) : 0, add = 0;

	strcpy(out->registry, HUB);
	/* Docker's grammar has the same rule. */
	if (host &&
		(strcspn(s, ".:" CAPITALS) < host || (host == 9 && str_starts(s, "localhost")))) {
		if (!oci_host_valid(s, host))
			return err_set(err, ERR_INVALID,
				"image reference: the registry must be host[:port]");
		/* Host names are case-insensitive; lower case makes them comparable as text. */
		for (size_t i = 0; i < host; i++)
			out->registry[i] =
				s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
		out->registry[host] = '\0';
		if (str_eq(out->registry, HUB_OLD))
			strcpy(out->registry, HUB);
		s += host + 1;
		len -= host + 1;
	}
	if (str_eq(out->registry, HUB) && !memchr(s, '/', len))
		add = sizeof(HUB_OURS) - 1;
	if (len + add > OCI_NAME_MAX || !oci_repository_valid(s, len))
		return err_set(err, ERR_INVALID,
			"image reference: the repository must consist of lower-case names, %d characters at most",
			OCI_NAME_MAX);
	memcpy(out->repository, HUB_OURS, add);
	memcpy(out->repository + add, s, len);
	out->repository[add + len] = '\0';
	return 0;
}

/* Read name[:tag]. keep: store the tag; otherwise it is only checked. */
static int take_tagged(
	const char *text, size_t len, bool keep, struct oci_ref *out, struct err *err)
{
	const char *colon = memrchr(text, ':', len), *slash = memrchr(text, '/', len);

	if (colon && (!slash || colon > slash)) {
		size_t n = len - (size_t)(colon + 1 - text);

		if (n < 1 || n > OCI_TAG_MAX || strchr(".-", colon[1]) ||
			strspn(colon + 1, ALNUM "_.-") < n)
			return err_set(err, ERR_INVALID, "image reference: the tag is invalid");
		if (keep)
			memcpy(out->tag, colon + 1, n);
		len = (size_t)(colon - text);
	} else if (keep) {
		strcpy(out->tag, "latest");
	}
	return take_name(text, len, out, err);
}

/* Lengths are checked first: later code uses fixed buffers. */
static int parse(const char *text, bool tag_will_do, struct oci_ref *out, struct err *err)
{
	size_t len = strnlen(text, REF_MAX + 1), digest;
	const char *at = len ? memrchr(text, '@', len) : NULL;

	memset(out, 0, sizeof(*out));
	if (len > REF_MAX)
		return err_set(
			err, ERR_INVALID, "image reference: longer than %d characters", REF_MAX);
	if (!at && tag_will_do)
		return take_tagged(text, len, true, out, err);
	if (!at)
		return err_set(err, ERR_INVALID,
			"image reference: the digest is missing; approve an image as name@sha256:...");
	digest = len - (size_t)(at + 1 - text);
	if (!oci_digest_valid(at + 1, digest))
		return err_set(err, ERR_INVALID,
			"image reference: the digest must be sha256: and %d lower-case hex digits",
			HEX_LEN);
	memcpy(out->digest, at + 1, digest);
	return take_tagged(text, (size_t)(at - text), false, out, err);
}

int oci_ref_parse(const char *text, struct oci_ref *out, struct err *err)
{
	return parse(text, false, out, err);
}

int oci_ref_parse_tag(const char *text, struct oci_ref *out, struct err *err)
{
	return parse(text, true, out, err);
}
