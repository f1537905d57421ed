/* SPDX-License-Identifier: MIT */
/* Works on lines and understands just enough TOML to see where a line starts something: quotes,
 * comments, and brackets that span several lines. The result is parsed again as TOML to be sure. */
#include "config.h"

#include "tec/render/kbstls.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/toml.h"

#define COMMENT "# TLS configuration"
#define SECTION "http_server"

/* The lexical state at the start of a line. */
struct scan {
	const char *quote; /* delimiter of an open multi-line string; NULL: outside */
	int depth;         /* open brackets and braces */
};

/* Advance the lexical state over one line. Up to two quotes before the delimiter that ends a
 * multi-line string belong to the string (TOML 1.0, "Strings"). */
static void scan_line(struct scan *s, const char *p, const char *end)
{
	while (p < end) {
		const char *from = p;

		if (s->quote && end - p >= 3 && strncmp(p, s->quote, 3) == 0) {
			s->quote = NULL;
			for (p += 3; p < end && p < from + 5 && *p == *from; p++)
				;
		} else if (s->quote) {
			p += *p == '\\' && s->quote[0] == '"' ? 2 : 1;
		} else if (end - p >= 3 &&
			   (strncmp(p, "\"\"\"", 3) == 0 || strncmp(p, "'''", 3) == 0)) {
			s->quote = *p == '"' ? "\"\"\"" : "'''";
			p += 3;
		} else if (*p == '"' || *p == '\'') {
			/* A single-line string; an unterminated one ends with the line. */
			for (p++; p < end && *p != *from; p++)
				if (*from == '"' && *p == '\\' && p + 1 < end)
					p++;
			p += p < end;
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

/* Skip one part of a key, bare or quoted, and the blanks after it; NULL: it is not `name`. */
static const char *part_is(const char *p, const char *end, const char *name)
{
	size_t n = strlen(name);
	char quote = p < end && (*p == '"' || *p == '\'') ? *p : '\0';

	p += quote != '\0';
	if ((size_t)(end - p) <= n || strncmp(p, name, n) != 0)
		return NULL;
	p += n;
	if (quote && *p != quote)
		return NULL;
	p += quote != '\0';
	if (!quote && p < end && strchr(" \t.=]", *p) == NULL)
		return NULL;
	return skip_blanks(p, end);
}

static bool next_is(const char *p, const char *end, char c)
{
	return p && p < end && *p == c;
}

/* The settings that model/trusteeconfig generates; all others are the user's. */
static bool is_tls_key(const char *p, const char *end)
{
	static const char *const keys[] = {
		"tls_profile", "tls_min_version", "tls_max_version", "tls_ciphers", "tls_groups"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (next_is(part_is(p, end, keys[i]), end, '='))
			return true;
	return false;
}

/* The state of a pass that copies the text without its TLS lines. dotted: the file uses
 * http_server.KEY = ..., without a section. first, last: offsets; -1: none. */
struct strip {
	struct scan scan;
	struct strbuf *out;
	bool root, inside, dropping, found, dotted;
	long first, last;
};

/* Decide for a line that starts something which part of the file it belongs to. p is after its
 * blanks. */
static void begin_line(struct strip *s, const char *p, const char *end)
{
	const char *key = s->root ? part_is(p, end, SECTION) : NULL;

	key = next_is(key, end, '.') ? skip_blanks(key + 1, end) : NULL;
	/* Lines before the first header belong to the root table. */
	if (next_is(p, end, '[')) {
		s->root = s->dropping = false;
		s->inside = next_is(part_is(skip_blanks(p + 1, end), end, SECTION), end, ']');
	} else if (s->root) {
		s->inside = key != NULL;
		s->dotted |= key != NULL;
		s->dropping = key && is_tls_key(key, end);
	} else {
		/* We wrote it earlier: a TLS key, or the comment above them. */
		s->dropping = s->inside && (((size_t)(end - p) >= strlen(COMMENT) &&
						    strncmp(p, COMMENT, strlen(COMMENT)) == 0) ||
						   is_tls_key(p, end));
	}
}

/* Copy the text without TLS lines. The place is that of the first one removed, or the section's
 * end. */
static struct strip strip(const char *text, struct strbuf *out)
{
	struct strip s = {.out = out, .root = true, .first = -1, .last = -1};

	for (const char *p = text, *end; *p; p = end) {
		bool begins = !s.scan.quote && s.scan.depth == 0;
		const char *first;

		end = strchrnul(p, '\n');
		end += *end != '\0';
		first = skip_blanks(p, end);
		/* Inside a string or list that spans lines, nothing begins. */
		if (begins)
			begin_line(&s, first, end);
		scan_line(&s.scan, p, end);
		if (s.dropping && s.first < 0)
			s.first = (long)out->len;
		if (!s.dropping)
			strbuf_add(out, p, (size_t)(end - p));
		s.found |= s.inside;
		if (s.inside && !s.dropping &&
			!(begins && (first == end || strchr("\r\n", *first))))
			s.last = (long)out->len;
	}
	return s;
}

/* Line endings of the file are kept: CRLF if its first line has it. */
int render_kbstls_merge(const char *text, const char *lines, struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf rest = STRBUF_INIT;
	cleanup_json struct json_object *parsed = NULL;
	size_t first = strcspn(text, "\n");
	bool crlf = first > 0 && text[first - 1] == '\r';
	struct strip s;
	size_t at;

	if (!*lines) {
		strbuf_adds(out, text);
		return 0;
	}
	s = strip(text, &rest);
	at = (size_t)(s.first >= 0 ? s.first : s.last);
	if (!s.found || (s.first < 0 && s.last < 0))
		return err_set(err, ERR_INVALID,
			"no section [http_server]; inline tables are unsupported");
	strbuf_add(out, strbuf_str(&rest), at);
	/* The last line of a file may lack its newline. */
	if (out->len && out->data[out->len - 1] != '\n')
		strbuf_adds(out, crlf && out->data[out->len - 1] != '\r' ? "\r\n" : "\n");
	/* With dotted keys, each is prefixed with the section, and the comment is omitted. */
	for (const char *p = lines, *end; *p; p = end + 1) {
		end = strchr(p, '\n');
		if (!s.dotted || *p != '#')
			strbuf_addf(out, "%s%.*s%s", s.dotted ? SECTION "." : "", (int)(end - p), p,
				crlf ? "\r\n" : "\n");
	}
	strbuf_add(out, strbuf_str(&rest) + at, rest.len - at);
	/* Duplicate keys, for instance, are found only here. */
	parsed = toml_parse(strbuf_str(out), out->len, err);
	return parsed ? 0 : -1;
}
