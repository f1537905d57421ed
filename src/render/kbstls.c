/* SPDX-License-Identifier: MIT */
/*
 * Works on lines, and knows of TOML only what it needs to see where a line begins something: quotes,
 * comments and brackets that go on over several lines. The result has to be TOML again.
 */
#include "config.h"

#include "tec/render/kbstls.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/toml.h"

#define COMMENT "# TLS configuration"

struct scan {
	const char *quote; /* the three quotes of a text of several lines; NULL: not in one */
	int depth;         /* of brackets */
};

/* Up to the end of a text on this line, or to the end of the line. */
static const char *skip_text(const char *p, const char *end)
{
	char q = *p++;

	for (; p < end && *p != q; p++)
		if (q == '"' && *p == '\\' && p + 1 < end)
			p++;
	return p < end ? p + 1 : end;
}

/* Behind the three quotes that end a text at p; up to two more of them are the text's last. */
static const char *skip_quotes(const char *p, const char *end)
{
	const char *after = p + 3;

	while (after < end && after < p + 5 && *after == *p)
		after++;
	return after;
}

/* Reads one line, so that s is of the beginning of the next one. */
static void scan_line(struct scan *s, const char *p, const char *end)
{
	while (p < end) {
		if (s->quote) {
			if (end - p >= 3 && strncmp(p, s->quote, 3) == 0) {
				s->quote = NULL;
				p = skip_quotes(p, end);
			} else {
				p += *p == '\\' && s->quote[0] == '"' ? 2 : 1;
			}
		} else if (end - p >= 3 &&
			   (strncmp(p, "\"\"\"", 3) == 0 || strncmp(p, "'''", 3) == 0)) {
			s->quote = *p == '"' ? "\"\"\"" : "'''";
			p += 3;
		} else if (*p == '"' || *p == '\'') {
			p = skip_text(p, end);
		} else if (*p == '#') {
			return;
		} else {
			s->depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
			p++;
		}
	}
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static bool is_header(const char *p, const char *end)
{
	p = skip_blanks(p, end);
	return p < end && *p == '[';
}

/* [http_server], with blanks and a comment wherever TOML allows them. */
static bool is_http_server(const char *p, const char *end)
{
	static const char name[] = "http_server";

	p = skip_blanks(skip_blanks(p, end) + 1, end);
	if (end - p < (ptrdiff_t)strlen(name) || strncmp(p, name, strlen(name)) != 0)
		return false;
	p = skip_blanks(p + strlen(name), end);
	return p < end && *p == ']';
}

static bool is_tls_line(const char *p, const char *end)
{
	static const char *const keys[] = {
		"tls_profile", "tls_min_version", "tls_max_version", "tls_ciphers", "tls_groups"};

	p = skip_blanks(p, end);
	if ((size_t)(end - p) >= strlen(COMMENT) && strncmp(p, COMMENT, strlen(COMMENT)) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		size_t n = strlen(keys[i]);
		const char *after;

		if ((size_t)(end - p) <= n || strncmp(p, keys[i], n) != 0)
			continue;
		after = skip_blanks(p + n, end);
		if (after < end && *after == '=')
			return true;
	}
	return false;
}

static bool is_blank(const char *p, const char *end)
{
	p = skip_blanks(p, end);
	return p == end || *p == '\n' || *p == '\r';
}

/* The text without its TLS lines, and where in it they belong; -1: there is no [http_server]. */
static long strip(const char *text, struct strbuf *out)
{
	struct scan s = {.quote = NULL};
	bool inside = false, dropping = false, found = false;
	long first = -1, last = -1;

	for (const char *p = text, *end; *p; p = end) {
		bool begins = !s.quote && s.depth == 0;

		end = strchrnul(p, '\n');
		end += *end != '\0';
		if (begins && is_header(p, end)) {
			inside = is_http_server(p, end);
			dropping = false;
		} else if (begins) {
			dropping = inside && is_tls_line(p, end);
		}
		scan_line(&s, p, end);
		if (dropping && first < 0)
			first = (long)out->len;
		if (!dropping)
			strbuf_add(out, p, (size_t)(end - p));
		found |= inside;
		if (inside && !dropping && !(begins && is_blank(p, end)))
			last = (long)out->len;
	}
	return !found ? -1 : first >= 0 ? first : last;
}

static void add_lines(struct strbuf *out, const char *lines, bool crlf)
{
	for (const char *p = lines; *p; p++) {
		if (*p == '\n' && crlf)
			strbuf_addc(out, '\r');
		strbuf_addc(out, *p);
	}
}

int render_kbstls_merge(const char *text, const char *lines, struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf rest = STRBUF_INIT;
	cleanup_json struct json_object *parsed = NULL;
	const char *eol = strchr(text, '\n');
	bool crlf = eol && eol > text && eol[-1] == '\r';
	long at;

	if (!*lines) {
		strbuf_adds(out, text);
		return 0;
	}
	at = strip(text, &rest);
	if (at < 0)
		return err_set(err, ERR_INVALID, "it has no section [http_server]");
	strbuf_add(out, rest.data, (size_t)at);
	if (out->len && out->data[out->len - 1] != '\n')
		strbuf_adds(out, crlf ? "\r\n" : "\n");
	add_lines(out, lines, crlf);
	strbuf_add(out, rest.data + at, rest.len - (size_t)at);
	parsed = toml_parse(strbuf_str(out), out->len, err);
	return parsed ? 0 : -1;
}
