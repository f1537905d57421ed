/* SPDX-License-Identifier: MIT */
/*
 * WWW-Authenticate is a list of challenges, and each challenge has a list of parameters; both use
 * the same comma. A word followed by '=' is a parameter, any other word starts the next challenge.
 * Malformed input is refused: after a misread realm, a password would go to the wrong server.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "tec/base/str.h"
#include "tec/oci/auth.h"

struct reader {
	const char *p, *end;
};

/* RFC 9110, section 5.6.2. */
static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* RFC 9110, section 11.2. */
static bool is_token68(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~+/=", c));
}

static void skip_blanks(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
		r->p++;
}

static size_t word(struct reader *r, bool (*in)(char c))
{
	const char *start = r->p;

	while (r->p < r->end && in(*r->p))
		r->p++;
	return (size_t)(r->p - start);
}

static bool at(const struct reader *r, char c)
{
	return r->p < r->end && *r->p == c;
}

/* Read a token or a quoted string. Values that are too long or unprintable are refused. out NULL:
 * skip. */
static int value(struct reader *r, char *out, size_t cap, struct err *err)
{
	bool quoted = at(r, '"');
	size_t n = 0;

	r->p += quoted;
	for (; r->p < r->end; r->p++) {
		char c = *r->p;

		if (quoted ? c == '"' : !is_token(c))
			break;
		if (quoted && c == '\\') {
			if (++r->p == r->end)
				break;
			c = *r->p;
		}
		if ((unsigned char)c < 0x20 || c == 0x7f)
			return err_set(err, ERR_INVALID,
				"the authentication challenge contains control characters");
		if (out && n + 1 >= cap)
			return err_set(
				err, ERR_INVALID, "the authentication challenge is too long");
		if (out)
			out[n] = c;
		n++;
	}
	if (quoted && !at(r, '"'))
		return err_set(
			err, ERR_INVALID, "the authentication challenge lacks a closing quote");
	r->p += quoted;
	if (!quoted && n == 0)
		return err_set(err, ERR_INVALID,
			"the authentication challenge has a parameter without a value");
	if (out)
		out[n] = '\0';
	return 0;
}

/* Return the buffer for a parameter of a Bearer challenge, or NULL to ignore the parameter. */
static char *place(struct oci_challenge *c, const char *name, size_t len, size_t *cap)
{
	static const char *const names[] = {"realm", "service", "scope"};
	char *const to[] = {c->realm, c->service, c->scope};
	const size_t caps[] = {sizeof(c->realm), sizeof(c->service), sizeof(c->scope)};

	for (size_t i = 0; i < 3; i++)
		if (len == strlen(names[i]) && strncasecmp(name, names[i], len) == 0) {
			*cap = caps[i];
			return to[i];
		}
	return NULL;
}

/* Read the value of a parameter; r is at the '='. c NULL: the challenge is ignored. */
static int parameter(
	struct reader *r, struct oci_challenge *c, const char *name, size_t len, struct err *err)
{
	size_t cap = 0;
	char *to = c ? place(c, name, len, &cap) : NULL;

	r->p++;
	skip_blanks(r);
	if (to && *to)
		return err_set(
			err, ERR_INVALID, "the authentication challenge repeats a parameter");
	return value(r, to, cap, err);
}

/* Skip "abc==" in "Negotiate abc==". '=' may occur only at its end, which tells it from a
 * parameter. */
static void skip_token68(struct reader *r)
{
	struct reader ahead = *r;
	const char *start, *stop;

	skip_blanks(&ahead);
	start = ahead.p;
	stop = start + word(&ahead, is_token68);
	while (stop > start && stop[-1] == '=')
		stop--;
	skip_blanks(&ahead);
	if ((ahead.p == ahead.end || *ahead.p == ',') &&
		!memchr(start, '=', (size_t)(stop - start)))
		*r = ahead;
}

/* Check whether the word just read is the name of a parameter: '=' follows. */
static bool is_parameter(const struct reader *r)
{
	struct reader ahead = *r;

	skip_blanks(&ahead);
	return at(&ahead, '=');
}

/* Basic is only noted; of several Bearer challenges the first counts. */
int oci_challenge_parse(const char *text, size_t len, struct oci_challenge *out, struct err *err)
{
	struct reader r = {text, text + len};
	struct oci_challenge *kept = NULL; /* out while the first Bearer is read */
	bool scheme = false;

	memset(out, 0, sizeof(*out));
	for (;;) {
		const char *name;
		size_t n;

		while (at(&r, ',') || at(&r, ' ') || at(&r, '\t'))
			r.p++;
		if (r.p == r.end)
			break;
		name = r.p;
		n = word(&r, is_token);
		if (n && scheme && is_parameter(&r)) {
			skip_blanks(&r);
			if (parameter(&r, kept, name, n, err) != 0)
				return -1;
			skip_blanks(&r);
		} else if (n) {
			scheme = true;
			out->basic = out->basic || (n == 5 && strncasecmp(name, "Basic", 5) == 0);
			kept = n == 6 && strncasecmp(name, "Bearer", 6) == 0 && !out->bearer ? out
											     : NULL;
			out->bearer = out->bearer || kept;
			skip_token68(&r);
			if (at(&r, ' ') || at(&r, '\t'))
				continue; /* its first parameter */
		}
		if (!n || (r.p < r.end && *r.p != ','))
			return err_set(
				err, ERR_INVALID, "the authentication challenge is malformed");
	}
	if (out->bearer && !*out->realm)
		return err_set(err, ERR_INVALID, "the Bearer challenge has no realm");
	return 0;
}
