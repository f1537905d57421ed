/* SPDX-License-Identifier: MIT */
/*
 * Line by line, refusing whatever two parsers could read differently: bare CR or LF, folded lines,
 * blanks before a colon, control bytes, two lengths, any Transfer-Encoding (where chunked bodies are
 * expected: any other, or one beside a length), a target whose host is not the one of the Host field. The first thing wrong, in the order of the bytes, names the
 * status; what is known only at the end (no Host, another Host) comes last.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "tec/base/mem.h"
#include "tec/net/httphead.h"

const struct httphead_limits httphead_limits_default = {
	.head = 16 * 1024,
	.body = 16 * 1024,
	.lines = 64,
	.line = 8000,
	.target = 2048,
};

struct span {
	const char *p;
	size_t len;
};

struct scan {
	const struct httphead_limits *limits;
	struct httphead *out;
	unsigned hosts;
	struct span host;      /* of the Host field */
	struct span authority; /* of an absolute-form target; empty: origin-form */
	bool close, keep;
};

static bool span_is(struct span s, const char *lower)
{
	return s.len == strlen(lower) && strncasecmp(s.p, lower, s.len) == 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* tchar of RFC 9110 5.6.2 */
static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] == '\0' || (!is_alnum(s.p[i]) && !strchr("!#$%&'*+-.^_`|~", s.p[i])))
			return false;
	return s.len > 0;
}

static struct span trim(struct span s)
{
	while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.len--;
	}
	while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static int check_method(struct span m)
{
	static const char *const known[] = {
		"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"};

	if (!is_token(m))
		return 400;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (m.len == strlen(known[i]) && memcmp(m.p, known[i], m.len) == 0)
			return 0;
	return 501;
}

/* Bytes that a Host field may hold; no '@', so no user information either. */
static bool is_host(struct span v)
{
	for (size_t i = 0; i < v.len; i++)
		if (v.p[i] == '\0' || (!is_alnum(v.p[i]) && !strchr("-._~:[]%!$&'()*+;=", v.p[i])))
			return false;
	return true;
}

/*
 * Takes "http://host:port" off an absolute-form target, which every server has to accept (RFC 9112
 * 3.2.2). Either scheme is taken: who ends TLS for us may write either. The path must be there.
 */
static int take_authority(struct scan *s, struct span *t)
{
	size_t scheme = 0;
	const char *slash;

	if (t->len >= 7 && strncasecmp(t->p, "http://", 7) == 0)
		scheme = 7;
	else if (t->len >= 8 && strncasecmp(t->p, "https://", 8) == 0)
		scheme = 8;
	slash = scheme ? memchr(t->p + scheme, '/', t->len - scheme) : NULL;
	if (!slash)
		return 400; /* authority-form and "*" are for proxies and whole servers */
	s->authority = (struct span){t->p + scheme, (size_t)(slash - t->p) - scheme};
	t->len -= (size_t)(slash - t->p);
	t->p = slash;
	return s->authority.len > 0 && is_host(s->authority) ? 0 : 400;
}

static int check_target(struct scan *s, const char *data, struct span t)
{
	if (t.len > s->limits->target)
		return 414;
	if (t.len == 0 || (t.p[0] != '/' && take_authority(s, &t) != 0))
		return 400;
	for (size_t i = 0; i < t.len; i++)
		if (t.p[i] <= 0x20 || t.p[i] >= 0x7f || t.p[i] == '#')
			return 400;
	s->out->target_off = (size_t)(t.p - data);
	s->out->target_len = t.len;
	return 0;
}

static int check_version(struct span v, bool *http10)
{
	if (v.len != 8 || memcmp(v.p, "HTTP/", 5) != 0 || !is_digit(v.p[5]) || v.p[6] != '.' ||
		!is_digit(v.p[7]))
		return 400;
	*http10 = v.p[7] == '0';
	return v.p[5] == '1' && (v.p[7] == '0' || v.p[7] == '1') ? 0 : 505;
}

static int check_request_line(struct scan *s, const char *data, struct span line)
{
	const char *sp1 = memchr(line.p, ' ', line.len);
	const char *sp2;
	size_t rest;
	int status;

	if (!sp1)
		return 400;
	rest = line.len - (size_t)(sp1 + 1 - line.p);
	sp2 = memchr(sp1 + 1, ' ', rest);
	if (!sp2) /* HTTP/0.9, or a target that never ends */
		return rest > s->limits->target ? 414 : 400;
	status = check_method((struct span){line.p, (size_t)(sp1 - line.p)});
	if (status == 0)
		status = check_target(s, data, (struct span){sp1 + 1, (size_t)(sp2 - sp1 - 1)});
	if (status == 0)
		status =
			check_version((struct span){sp2 + 1, line.len - (size_t)(sp2 + 1 - line.p)},
				&s->out->http10);
	return status;
}

static int take_host(struct scan *s, struct span v)
{
	s->hosts++;
	s->host = v;
	return s->hosts == 1 && is_host(v) ? 0 : 400;
}

static int take_length(struct scan *s, struct span v)
{
	size_t n = 0;

	if (s->out->has_length || s->out->chunked || v.len == 0)
		return 400;
	for (size_t i = 0; i < v.len; i++)
		if (!is_digit(v.p[i]))
			return 400;
	for (size_t i = 0; i < v.len; i++) {
		n = n * 10 + (size_t)(v.p[i] - '0');
		if (n > s->limits->body)
			return 413;
	}
	s->out->has_length = true;
	s->out->body_len = n;
	return 0;
}

/* Takes the next member off a list of tokens; it may be empty. */
static struct span next_token(struct span *list)
{
	const char *comma = memchr(list->p, ',', list->len);
	size_t n = comma ? (size_t)(comma - list->p) : list->len;
	struct span token = trim((struct span){list->p, n});

	n += comma ? 1 : 0;
	list->p += n;
	list->len -= n;
	return token;
}

/* With a length as well it is what one parser would end here and another one there. */
static int take_transfer(struct scan *s, struct span v)
{
	if (!s->limits->chunked)
		return 411;
	if (s->out->chunked || s->out->has_length || s->out->http10)
		return 400;
	if (!span_is(v, "chunked"))
		return 501;
	s->out->chunked = true;
	return 0;
}

static int take_connection(struct scan *s, struct span v)
{
	while (v.len > 0) {
		struct span token = next_token(&v);

		if (span_is(token, "close"))
			s->close = true;
		else if (span_is(token, "keep-alive"))
			s->keep = true;
	}
	return 0;
}

/* Nothing is ever decoded here, so a coded body would be read as if it were plain. */
static int take_encoding(struct span v)
{
	while (v.len > 0) {
		struct span token = next_token(&v);

		if (token.len > 0 && !span_is(token, "identity"))
			return 415;
	}
	return 0;
}

static int take_type(struct span v)
{
	static const char form[] = "application/x-www-form-urlencoded";

	return v.len >= sizeof(form) - 1 && strncasecmp(v.p, form, sizeof(form) - 1) == 0 ? 415 : 0;
}

static int take_expect(struct scan *s, struct span v)
{
	if (!span_is(v, "100-continue"))
		return 417;
	s->out->expect_continue = !s->out->http10;
	return 0;
}

static int take_field(struct scan *s, struct span name, struct span v)
{
	if (span_is(name, "host"))
		return take_host(s, v);
	if (span_is(name, "content-length"))
		return take_length(s, v);
	if (span_is(name, "transfer-encoding"))
		return take_transfer(s, v);
	if (span_is(name, "connection"))
		return take_connection(s, v);
	if (span_is(name, "content-type"))
		return take_type(v);
	if (span_is(name, "content-encoding"))
		return take_encoding(v);
	if (span_is(name, "expect"))
		return take_expect(s, v);
	return span_is(name, "upgrade") ? 400 : 0;
}

static int check_field(struct scan *s, struct span line)
{
	const char *colon = memchr(line.p, ':', line.len);
	struct span name, value;

	if (line.len > s->limits->line)
		return 431;
	if (!colon)
		return 400;
	name = (struct span){line.p, (size_t)(colon - line.p)};
	value = (struct span){colon + 1, line.len - name.len - 1};
	if (!is_token(name)) /* also obs-fold and a blank before the colon */
		return 400;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return 400;
	}
	return take_field(s, name, trim(value));
}

/* The line at `off` without its CRLF, which must be the first CR or LF. */
static bool next_line(const char *data, size_t len, size_t *off, struct span *line)
{
	const char *lf = memchr(data + *off, '\n', len - *off);

	if (!lf || lf == data + *off || lf[-1] != '\r')
		return false;
	*line = (struct span){data + *off, (size_t)(lf - 1 - (data + *off))};
	*off += line->len + 2;
	return !memchr(line->p, '\r', line->len);
}

/* An absolute-form target of another host was meant for a proxy, and this is not one. */
static bool names_same_host(const struct scan *s)
{
	return s->authority.len == 0 ||
	       (s->authority.len == s->host.len &&
		       strncasecmp(s->authority.p, s->host.p, s->host.len) == 0);
}

int httphead_check(
	const char *data, size_t len, const struct httphead_limits *limits, struct httphead *out)
{
	struct scan s = {.limits = limits, .out = out};
	struct span line;
	size_t off = 0;
	int status;

	*out = (struct httphead){.head_len = 0};
	if (len > limits->head)
		return 431;
	if (!next_line(data, len, &off, &line))
		return 400;
	status = check_request_line(&s, data, line);
	out->fields_off = off;
	for (unsigned n = 0; status == 0; n++) {
		if (!next_line(data, len, &off, &line))
			return 400;
		if (line.len == 0)
			break;
		status = n == limits->lines ? 431 : check_field(&s, line);
	}
	if (status != 0)
		return status;
	if (s.hosts == 0 && !out->http10)
		return 400;
	if (s.hosts > 0 && !names_same_host(&s))
		return 400;
	out->head_len = off;
	out->keep_alive = !s.close && (s.keep || !out->http10);
	return 0;
}
