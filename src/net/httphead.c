/* SPDX-License-Identifier: MIT */
/*
 * The head is checked line by line, and everything that two parsers could interpret differently is
 * refused: bare CR or LF, folded lines, blanks before a colon, control characters, two lengths, any
 * Transfer-Encoding (or, if chunked bodies are accepted, any other one, or one with a length), and a
 * target whose host differs from the Host field. The first violation in byte order determines the
 * status; those known only at the end (missing or different Host) come last.
 *
 * Grammar (RFC 9112 sections 2 to 5):
 *   head         = request-line CRLF *( field-name ":" OWS field-value OWS CRLF ) CRLF
 *   request-line = method SP request-target SP HTTP-version
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "tec/base/mem.h"
#include "tec/net/httphead.h"

struct span {
	const char *p;
	size_t len;
};

struct scan {
	const struct httphead_limits *limits;
	struct httphead *out;
	unsigned hosts;        /* number of Host fields */
	struct span host;      /* value of the Host field */
	struct span authority; /* of an absolute-form target; empty: origin-form */
	bool close, keep;      /* tokens of the Connection field */
};

/* Compare without case; field names and most values are case-insensitive. */
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

/* True for a non-empty sequence of tchar (RFC 9110 section 5.6.2). strchr() would find the NUL, so it
 * is excluded first. */
static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] == '\0' || (!is_alnum(s.p[i]) && !strchr("!#$%&'*+-.^_`|~", s.p[i])))
			return false;
	return s.len > 0;
}

/* Remove optional whitespace (OWS) from both ends. */
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

/* Known methods are accepted even without a route, so that the response is 405 and not 501. */
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

/* True if all bytes may appear in a Host field. '@' is excluded, so user information is refused. */
static bool is_host(struct span v)
{
	for (size_t i = 0; i < v.len; i++)
		if (v.p[i] == '\0' || (!is_alnum(v.p[i]) && !strchr("-._~:[]%!$&'()*+;=", v.p[i])))
			return false;
	return true;
}

/*
 * Remove "http://host:port" from an absolute-form target, which every server must accept (RFC 9112
 * section 3.2.2). Both schemes are accepted, because a proxy that terminates TLS may write either. The
 * path must not be missing.
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
		return 400; /* authority-form is for proxies, and "*" for whole servers */
	s->authority = (struct span){t->p + scheme, (size_t)(slash - t->p) - scheme};
	t->len -= (size_t)(slash - t->p);
	t->p = slash;
	return s->authority.len > 0 && is_host(s->authority) ? 0 : 400;
}

/* The target may contain printable ASCII except '#': a client must not send a fragment. */
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

/* Split at the first two blanks; a third one ends up in the version and is refused there. */
static int check_request_line(struct scan *s, const char *data, struct span line)
{
	const char *sp1 = memchr(line.p, ' ', line.len);
	const char *sp2, *version;
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
	if (status != 0)
		return status;
	/* HTTP-version is "HTTP/" DIGIT "." DIGIT, case-sensitive. Only major version 1 is
	 * supported. */
	version = sp2 + 1;
	if (line.p + line.len - version != 8 || memcmp(version, "HTTP/", 5) != 0 ||
		!is_digit(version[5]) || version[6] != '.' || !is_digit(version[7]))
		return 400;
	s->out->http10 = version[7] == '0';
	return version[5] == '1' && (version[7] == '0' || version[7] == '1') ? 0 : 505;
}

/* Only digits: no list, sign or blank, which proxies interpret differently. A second field is
 * refused even if it is equal. */
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
		/* Checked at each digit, so n cannot overflow. */
		if (n > s->limits->body)
			return 413;
	}
	s->out->has_length = true;
	s->out->body_len = n;
	return 0;
}

/* Remove the next element from a comma-separated list; it may be empty (RFC 9110 section 5.6.1). */
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

/* Only close and keep-alive matter; other tokens are hop-by-hop field names, which have no effect
 * here. */
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

/* Interpret the fields that affect framing and the connection; handlers read others by name. */
static int take_field(struct scan *s, struct span name, struct span v)
{
	static const char form[] = "application/x-www-form-urlencoded";

	/* Exactly one Host field is permitted (RFC 9112 section 3.2). */
	if (span_is(name, "host")) {
		s->hosts++;
		s->host = v;
		return s->hosts == 1 && is_host(v) ? 0 : 400;
	}
	if (span_is(name, "content-length"))
		return take_length(s, v);
	/* Accept "chunked" alone. With a Content-Length one parser would end the body here and another
	 * one there: request smuggling. */
	if (span_is(name, "transfer-encoding")) {
		if (!s->limits->chunked)
			return 411;
		if (s->out->chunked || s->out->has_length || s->out->http10)
			return 400;
		s->out->chunked = span_is(v, "chunked");
		return s->out->chunked ? 0 : 501;
	}
	if (span_is(name, "connection"))
		return take_connection(s, v);
	/* Refuse forms: no supported client sends them, and browsers can send them across origins. */
	if (span_is(name, "content-type"))
		return v.len >= sizeof(form) - 1 && strncasecmp(v.p, form, sizeof(form) - 1) == 0
			       ? 415
			       : 0;
	/* Refuse encoded bodies: nothing is decoded here, so they would be read as if they were
	 * plain. */
	if (span_is(name, "content-encoding")) {
		while (v.len > 0) {
			struct span token = next_token(&v);

			if (token.len > 0 && !span_is(token, "identity"))
				return 415;
		}
		return 0;
	}
	/* A client of HTTP/1.0 does not understand the interim response 100. */
	if (span_is(name, "expect")) {
		s->out->expect_continue = !s->out->http10;
		return span_is(v, "100-continue") ? 0 : 417;
	}
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
	if (!is_token(name)) /* also refuses obs-fold and a blank before the colon */
		return 400;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return 400;
	}
	return take_field(s, name, trim(value));
}

/* Return the line at `off` without its CRLF, which must be the first CR or LF in it. */
static bool next_line(const char *data, size_t len, size_t *off, struct span *line)
{
	const char *lf = memchr(data + *off, '\n', len - *off);

	if (!lf || lf == data + *off || lf[-1] != '\r')
		return false;
	*line = (struct span){data + *off, (size_t)(lf - 1 - (data + *off))};
	*off += line->len + 2;
	return !memchr(line->p, '\r', line->len);
}

/* The caller has found the empty line, so every line ends inside of data. */
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
	/* An absolute-form target for another host was meant for a proxy, which this server is not. */
	if (s.hosts > 0 && s.authority.len > 0 &&
		(s.authority.len != s.host.len ||
			strncasecmp(s.authority.p, s.host.p, s.host.len) != 0))
		return 400;
	out->head_len = off;
	out->keep_alive = !s.close && (s.keep || !out->http10);
	return 0;
}
