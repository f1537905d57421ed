/* SPDX-License-Identifier: MIT */
/*
 * A line is built in memory and written with one write(2). The text of the fields is always split
 * into its pairs and reassembled, so that a forgotten log_esc() cannot forge a line: text that is not
 * a list of pairs is printed quoted, as the single field "fields". Quoted values use JSON's escapes in
 * both formats.
 *
 *   text: 2026-01-02T03:04:05.678Z info msg="key pushed" kind=Machine name=b took_ms=12
 *   json: {"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"key pushed","kind":"Machine",...}
 *
 * A caller passes numbers and words of its own bare (took_ms=%u) and outside text through log_esc().
 */
#include "config.h"

#include "tec/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/base/utf8.h"

#define ESC_SLOTS 8
#define ESC_LEN   512

/* All permitted keys: one spelling per thing, so that logs can be searched. */
static const char *const known_keys[] = {"kind", "ns", "name", "uid", "addr", "age_ms", "ak",
	"attempt", "backlog", "bytes", "cache", "cert", "cluster", "code", "count", "depth", "err",
	"err_kind", "errkind", "errno", "event", "expires", "field", "file", "fields", "from",
	"group", "holder", "host", "http", "id", "image", "items", "key", "leader", "lib", "limit",
	"line", "machine", "max", "method", "node", "not_after", "objects", "op", "option", "path",
	"peer", "pid", "policy", "port", "proto", "queue", "reason", "resource", "retry_ms", "role",
	"route", "rule", "rv", "secret", "server", "signal", "size", "spki", "state", "status",
	"stream", "subject", "text", "timeout_ms", "tls", "to", "took_ms", "trustee", "type", "url",
	"user", "verb", "version", "wait_ms", "watch"};

static struct {
	enum log_level level;
	enum log_format format;
	void (*capture)(enum log_level level, const char *line, void *arg);
	void *capture_arg;
} conf = {.level = LOG_INFO};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level level, enum log_format format)
{
	conf.level = level;
	conf.format = format;
}

bool log_is_on(enum log_level level)
{
	return level >= conf.level;
}

void log_capture(void (*fn)(enum log_level level, const char *line, void *arg), void *arg)
{
	conf.capture = fn;
	conf.capture_arg = arg;
}

/* Write the character at p as it appears between quotes and return its length; its input bytes are
 * counted in *n. `out` has UTF8_ESCAPE_LEN bytes. Characters that a terminal acts on are escaped,
 * so that a log can be printed safely. */
static size_t quote_char(const uint8_t *p, size_t left, size_t *n, char *out)
{
	static const char short_escapes[] = "\"\"\\\\\nn\rr\tt";
	uint32_t c = utf8_next((const char *)p, left, n);

	if (!utf8_is_control(c) && c != '"' && c != '\\' && c != 0xfffd) {
		memcpy(out, p, *n);
		return *n;
	}
	for (const char *e = short_escapes; *e; e += 2) {
		if ((uint32_t)*e == c) {
			out[0] = '\\';
			out[1] = e[1];
			return 2;
		}
	}
	return utf8_put_escape(out, c);
}

/* Append s between quotes; what would make that longer than cap bytes, with a NUL, becomes "...". */
static void add_quoted(struct strbuf *line, const char *s, size_t len, size_t cap)
{
	const uint8_t *p = (const uint8_t *)s;
	size_t start = line->len;

	strbuf_addc(line, '"');
	for (size_t i = 0, n = 0; i < len; i += n) {
		char one[UTF8_ESCAPE_LEN];
		size_t k = quote_char(p + i, len - i, &n, one);

		/* Always keep room for the mark and the closing quote. */
		if (line->len - start + k + sizeof("...\"") > cap) {
			strbuf_adds(line, "...");
			break;
		}
		strbuf_add(line, one, k);
	}
	strbuf_addc(line, '"');
}

/* Each call takes the next buffer, so that one log call can use up to ESC_SLOTS results. */
const char *log_escn(const char *s, size_t len)
{
	static struct strbuf ring[ESC_SLOTS];
	static unsigned next;
	struct strbuf *out = &ring[next++ % ESC_SLOTS];

	strbuf_reset(out);
	add_quoted(out, s ? s : "", s ? len : 0, ESC_LEN);
	return out->data;
}

const char *log_esc(const char *s)
{
	return log_escn(s, s ? strlen(s) : 0);
}

/* Return the length of the quoted value at s, in the form that quote_char() writes, 0 if it is
 * malformed. */
static size_t quoted_len(const char *s)
{
	size_t i = 1;

	if (s[0] != '"')
		return 0;
	for (; s[i] != '"'; i++) {
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return 0;
		if (s[i] != '\\')
			continue;
		i++;
		if (s[i] == 'u' && strspn(s + i + 1, "0123456789abcdefABCDEF") >= 4)
			i += 4;
		else if (s[i] == '\0' || !strchr("\"\\nrt", s[i]))
			return 0;
	}
	return utf8_valid(s, i + 1) ? i + 1 : 0;
}

/* Printable ASCII without blanks, quotes and backslashes may be unquoted in a line. */
static size_t bare_len(const char *s)
{
	size_t n = 0;

	while (s[n] > 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

static size_t key_len(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

/* Return the length of the value at s (0 if empty) if a blank or the end follows it, otherwise
 * -1. */
static long value_len(const char *s)
{
	size_t n = s[0] == '"' ? quoted_len(s) : bare_len(s);

	if (s[0] == '"' && n == 0)
		return -1;
	return s[n] == ' ' || s[n] == '\0' ? (long)n : -1;
}

/* Check the whole text first, so that a malformed one is never printed in part. */
static bool fields_are_pairs(const char *s)
{
	while (*(s += strspn(s, " "))) {
		size_t k = key_len(s);
		long v;

		if (k == 0 || s[k] != '=')
			return false;
		v = value_len(s + k + 1);
		if (v < 0)
			return false;
		s += k + 1 + v;
	}
	return true;
}

/* True for a number that JSON permits unquoted. Longer numbers stay strings, because readers with
 * doubles would round them. A blank or the end follows the value. */
static bool is_json_number(const char *s, size_t len)
{
	static const char digits[] = "0123456789";
	size_t i = s[0] == '-', n = strspn(s + i, digits);

	if (len > 15 || n == 0 || (s[i] == '0' && n > 1))
		return false;
	i += n;
	if (s[i] == '.') {
		n = strspn(s + i + 1, digits);
		i += n + 1;
	}
	return n > 0 && i == len;
}

/* In JSON every key follows another member ("ts"), so the comma is always right. */
static void add_key(struct strbuf *line, const char *key, size_t len)
{
	if (conf.format == LOG_JSON)
		strbuf_addf(line, ",\"%.*s\":", (int)len, key);
	else
		strbuf_addf(line, " %.*s=", (int)len, key);
}

/* Append a string member unless it is NULL; in text format it is bare if nothing needs quoting. */
static void add_string(struct strbuf *line, const char *key, const char *s)
{
	size_t len = s ? strlen(s) : 0;

	if (!s)
		return;
	add_key(line, key, strlen(key));
	if (conf.format == LOG_TEXT && len > 0 && bare_len(s) == len)
		strbuf_add(line, s, len);
	else
		add_quoted(line, s, len, SIZE_MAX);
}

/* Split the text into pairs and append them. In JSON bare words become strings. */
static void add_fields(struct strbuf *line, const char *s)
{
	if (!fields_are_pairs(s)) {
		if (conf.capture)
			DIE("log fields are not key=value pairs: %s", s);
		add_string(line, "fields", s);
		return;
	}
	while (*(s += strspn(s, " "))) {
		size_t k = key_len(s), known = 0, len;
		const char *v = s + k + 1;

		/* Only with a capture (tests), because an unknown key in production must not end
		 * the process. */
		while (conf.capture &&
			(strlen(known_keys[known]) != k || memcmp(known_keys[known], s, k) != 0))
			if (++known == ARRAY_LEN(known_keys))
				DIE("log key \"%.*s\" is not in the list of base/log.c", (int)k, s);
		add_key(line, s, k);
		len = (size_t)value_len(v);
		if (conf.format == LOG_TEXT || v[0] == '"' || is_json_number(v, len) ||
			(len == 4 && memcmp(v, "true", 4) == 0) ||
			(len == 5 && memcmp(v, "false", 5) == 0))
			strbuf_add(line, v, len);
		else
			add_quoted(line, v, len, SIZE_MAX);
		s = v + len;
	}
}

/* Time, level and message, then the object. The time has microseconds, cut to milliseconds. */
static void begin_line(
	struct strbuf *line, enum log_level level, const struct log_ctx *lc, const char *msg)
{
	char ts[CLOCK_RFC3339_US_LEN];

	clock_format_us(clock_wall_us(), ts);
	memcpy(ts + 23, "Z", 2); /* milliseconds suffice */
	if (conf.format == LOG_JSON)
		strbuf_addf(
			line, "{\"ts\":\"%s\",\"level\":\"%s\",\"msg\":", ts, level_names[level]);
	else
		strbuf_addf(line, "%s %s msg=", ts, level_names[level]);
	add_quoted(line, msg, strlen(msg), SIZE_MAX);
	if (!lc)
		return;
	add_string(line, "kind", lc->kind);
	add_string(line, "ns", lc->ns);
	add_string(line, "name", lc->name);
	add_string(line, "uid", lc->uid);
}

/* Write the complete line. Usually this is one write(2), so lines of several processes do not
 * mix. */
static void end_line(struct strbuf *line, enum log_level level)
{
	if (conf.format == LOG_JSON)
		strbuf_addc(line, '}');
	if (conf.capture) {
		conf.capture(level, strbuf_str(line), conf.capture_arg);
		return;
	}
	strbuf_addc(line, '\n');
	for (const char *p = line->data; p < line->data + line->len;) {
		ssize_t n = write(STDERR_FILENO, p, (size_t)(line->data + line->len - p));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* a failing log must not stop the service */
		p += n;
	}
}

/* Preserves errno, so that a log call may stand between a failure and the use of its errno. */
void log_at(
	enum log_level level, const struct log_ctx *lc, const char *msg, const char *fields, ...)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT, text = STRBUF_INIT;
	int saved = errno;
	va_list ap;

	if (level < conf.level)
		return;
	begin_line(&line, level, lc, msg);
	if (fields) {
		va_start(ap, fields);
		strbuf_vaddf(&text, fields, ap);
		va_end(ap);
		add_fields(&line, strbuf_str(&text));
	}
	end_line(&line, level);
	errno = saved;
}

/* The text of an error is quoted always: it may contain anything from outside. */
void log_err(enum log_level level, const struct log_ctx *lc, const char *msg, const struct err *err)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	int saved = errno;

	if (level < conf.level)
		return;
	begin_line(&line, level, lc, msg);
	add_string(&line, "err_kind", err_kind_name(err->kind));
	if (err->sys) {
		add_key(&line, "errno", 5);
		strbuf_addf(&line, "%d", err->sys);
	}
	if (err->http) {
		add_key(&line, "http", 4);
		strbuf_addf(&line, "%d", err->http);
	}
	add_key(&line, "err", 3);
	add_quoted(&line, err->text, strlen(err->text), SIZE_MAX);
	end_line(&line, level);
	errno = saved;
}
