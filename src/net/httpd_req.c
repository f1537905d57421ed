/* SPDX-License-Identifier: MIT */
/*
 * Requests, routes and replies: the accessors for handlers, the choice of the handler, and what it
 * answers. 404, 405, 411 and 415 follow from the table of routes.
 *
 * Replies are built as bytes. libevhtp's own replies lack status 429, have a body for HEAD and do not
 * check header values. Here the body directly follows the head, so that a small reply is one write and
 * one TLS record.
 */
#include "config.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include <evhtp/evhtp.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"

#include "net_internal.h"

#define CLOSED_RETRY_S 5
#define RETRY_TEXT_LEN 12
#define SCRATCH_MAX    16384
#define UNMATCHED      "unmatched" /* route label of requests without a route */

struct httpd_req {
	struct httpd_peer *peer;
	struct op_scope ops;
	const struct httpd_route *route; /* NULL: unmatched */
	enum httpd_method method;        /* 0: a method that no route can have */
	bool keep_alive;
	uint64_t start_us;
	struct strbuf headers; /* header lines of the reply */
	httpd_gone_fn gone_fn;
	void *gone_arg;
	bool chunked, blocked; /* of a stream; blocked: drained_fn must be called */
	httpd_drained_fn drained_fn;
	void *drained_arg;
	size_t data_len;
	const char *target;        /* into data */
	const char *path;          /* part of data, after the body */
	char *fields, *fields_end; /* into data: lines "Name: value\0...\n" */
	const char *body;
	size_t body_len;
	char data[]; /* head and body, NUL, the path with its NUL */
};

static struct metric requests_total =
	METRIC_COUNTER_INIT("tec_http_requests_total", "HTTP requests answered.", "route", "code");
static struct metric request_seconds = METRIC_SECONDS_INIT(
	"tec_http_request_seconds", "Time from a complete request to its reply.", "route", NULL);

static const struct {
	const char *name;
	enum httpd_method method;
} method_names[] = {
	{"GET", HTTPD_GET},
	{"HEAD", HTTPD_HEAD},
	{"POST", HTTPD_POST},
	{"PUT", HTTPD_PUT},
	{"DELETE", HTTPD_DELETE},
	{"PATCH", HTTPD_PATCH},
	{"OPTIONS", HTTPD_OPTIONS},
};

/* ---- requests */

const char *httpd_method_name(enum httpd_method m)
{
	for (size_t i = 0; i < ARRAY_LEN(method_names); i++)
		if (method_names[i].method == m)
			return method_names[i].name;
	return "?";
}

/* Copy head and body into the request: data = head, body, NUL, path, NUL. Offsets in p->head refer
 * to the same bytes. */
struct httpd_req *httpd_req_new(struct httpd_peer *p, const char *data, size_t len)
{
	size_t path_len = strcspn(data + p->head.target_off, "? "), method_len = strcspn(data, " ");
	struct httpd_req *r = xcalloc(1, sizeof(*r) + len + 1 + path_len + 1);

	memcpy(r->data, data, len);
	memcpy(r->data + len + 1, data + p->head.target_off, path_len);
	r->data_len = len;
	r->peer = p;
	for (size_t i = 0; i < ARRAY_LEN(method_names); i++)
		if (strlen(method_names[i].name) == method_len &&
			memcmp(method_names[i].name, data, method_len) == 0)
			r->method = method_names[i].method;
	r->keep_alive = p->head.keep_alive;
	r->start_us = clock_boot_us();
	r->target = r->data + p->head.target_off;
	r->path = r->data + len + 1;
	r->data[p->head.target_off + p->head.target_len] = '\0';
	r->fields = r->data + p->head.fields_off;
	r->fields_end = r->data + p->head.head_len - 2;
	/* Terminate every field value: blanks and CR before the LF become NUL. */
	for (char *c = r->fields; c < r->fields_end; c++)
		if (*c == '\n')
			for (char *e = c - 1; *e == '\r' || *e == ' ' || *e == '\t'; e--)
				*e = '\0';
	r->body = r->data + p->head.head_len;
	r->body_len = len - p->head.head_len;
	return r;
}

/* Cancel the request's ops before gone_fn, which may free what they refer to. */
void httpd_req_free(struct httpd_req *r)
{
	bool wipe = r->peer->httpd->conf.wipe;

	r->peer->req = NULL;
	if (r->peer->state != HTTPD_PEER_BODY) /* made from the head only: the body is still read */
		httpd_body_end(&r->peer->body);
	op_scope_cancel(&r->ops);
	if (r->gone_fn)
		r->gone_fn(r->gone_arg);
	strbuf_fini(&r->headers);
	if (wipe)
		secret_wipe(r->data, r->data_len);
	free(r);
}

enum httpd_method httpd_req_method(const struct httpd_req *r)
{
	return r->method;
}

const char *httpd_req_path(const struct httpd_req *r)
{
	return r->path;
}

const char *httpd_req_target(const struct httpd_req *r)
{
	return r->target;
}

/* Return the first field of that name; the guard has refused duplicates where they matter. */
const char *httpd_req_header(const struct httpd_req *r, const char *name)
{
	size_t len = strlen(name);
	const char *line = r->fields;

	while (line < r->fields_end) {
		if (strncasecmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
		line = memchr(line, '\n', (size_t)(r->fields_end - line));
		if (!line)
			break;
		line++;
	}
	return NULL;
}

const char *httpd_req_body(const struct httpd_req *r, size_t *len)
{
	*len = r->body_len;
	return r->body;
}

/* Formatted on first use and kept with the connection, as most requests are never logged. */
const char *httpd_req_peer(const struct httpd_req *r)
{
	struct httpd_peer *p = r->peer;

	if (p->text[0] == '\0')
		addr_format(p->conn->saddr, p->text);
	return p->text;
}

/* SO_PEERCRED is set by the kernel at connect time and cannot be forged. */
bool httpd_req_local(const struct httpd_req *r, uint32_t *uid)
{
	const struct evhtp_connection *conn = r->peer->conn;
	struct ucred who = {.uid = 0};
	socklen_t len = sizeof(who);

	if (conn->saddr->sa_family != AF_UNIX ||
		getsockopt(conn->sock, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return false;
	*uid = who.uid;
	return true;
}

void httpd_req_source(const struct httpd_req *r, uint8_t out[ADDR_SOURCE_LEN])
{
	addr_source(r->peer->conn->saddr, out);
}

/* The peer's timer is the request's deadline while it is BUSY. */
uint32_t httpd_req_ms_left(const struct httpd_req *r)
{
	uint64_t now = clock_boot_ms();
	uint64_t at = r->peer->timer.at_ms;

	return at > now ? (uint32_t)(at - now) : 0;
}

bool httpd_req_is_tls(const struct httpd_req *r)
{
	return r->peer->conn->ssl;
}

enum tls_client_state httpd_req_client(const struct httpd_req *r, struct tls_client *out)
{
	struct ssl_st *ssl = r->peer->conn->ssl;

	return ssl ? tls_client_of(ssl, out) : TLS_CLIENT_NONE;
}

void *httpd_req_arg(const struct httpd_req *r)
{
	return r->peer->httpd->conf.arg;
}

struct op_scope *httpd_req_ops(struct httpd_req *r)
{
	return &r->ops;
}

/* One function suffices: a handler frees its own state in it. */
void httpd_req_on_gone(struct httpd_req *r, httpd_gone_fn fn, void *arg)
{
	assert(!r->gone_fn);
	r->gone_fn = fn;
	r->gone_arg = arg;
}

/* ---- replies */

/* Reason phrases, and the message if the guard refuses a request with this status. */
static const struct status {
	int status;
	const char *reason, *refusal;
} statuses[] = {
	{200, "OK", ""},
	{201, "Created", ""},
	{202, "Accepted", ""},
	{204, "No Content", ""},
	{301, "Moved Permanently", ""},
	{304, "Not Modified", ""},
	{400, "Bad Request", "malformed request"},
	{401, "Unauthorized", ""},
	{403, "Forbidden", ""},
	{404, "Not Found", "no such path"},
	{405, "Method Not Allowed", "method not allowed"},
	{406, "Not Acceptable", ""},
	{408, "Request Timeout", "the request did not arrive in time"},
	{409, "Conflict", ""},
	{410, "Gone", ""},
	{411, "Length Required", "a Content-Length is required; Transfer-Encoding is not accepted"},
	{412, "Precondition Failed", ""},
	{413, "Content Too Large", "the body is too large"},
	{414, "URI Too Long", "the request target is too long"},
	{415, "Unsupported Media Type", "this content type or encoding is not accepted"},
	{417, "Expectation Failed", "unknown expectation"},
	{422, "Unprocessable Content", ""},
	{429, "Too Many Requests", ""},
	{431, "Request Header Fields Too Large", "too many or too long header fields"},
	{500, "Internal Server Error", ""},
	{501, "Not Implemented", "unknown method"},
	{503, "Service Unavailable", ""},
	{505, "HTTP Version Not Supported", "only HTTP/1.0 and HTTP/1.1 are supported"},
};

/* Every reply is counted, so the code is formatted without printf; a status has three digits. */
static void count_request(const char *route, int status)
{
	const char code[] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10),
		(char)('0' + status % 10), '\0'};

	metric_add(&requests_total, route, code, 1);
}

/* Clients ignore the reason phrase (RFC 9112 section 4), so an unknown status gets a fixed one. */
static const struct status *status_of(int status)
{
	static const struct status unknown = {0, "Status", ""};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			return &statuses[i];
	return &unknown;
}

/* The Date header, formatted once per second. IMF-fixdate of RFC 9110 section 5.6.7. */
static const char *date_text(struct httpd *h)
{
	int64_t now = clock_wall_s();
	time_t t = (time_t)now;
	struct tm tm;

	if (now != h->date_s && gmtime_r(&t, &tm)) {
		strftime(h->date, sizeof(h->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		h->date_s = now;
	}
	return h->date;
}

struct reply {
	int status;
	const char *content_type;
	const void *body;
	size_t len;
	const char *connection; /* "close", "keep-alive" or NULL */
	const char *headers;    /* further lines, or "" */
	bool no_body;           /* HEAD: the length is still announced */
	bool open;              /* a stream: no length, and the body follows */
	bool chunked;
};

static void add_line(struct strbuf *out, const char *name, const char *value)
{
	strbuf_adds(out, name);
	strbuf_adds(out, value);
	strbuf_add(out, "\r\n", 2);
}

/* Append the reply to out. Without printf, which would dominate the cost of a small reply. */
static void make_reply(struct httpd *h, const struct reply *a, struct strbuf *out)
{
	bool bodiless = a->status == 204 || a->status == 304;
	char status[] = "HTTP/1.1 000 ", digits[24] = "";
	char *d = digits + sizeof(digits) - 1;
	size_t n = a->len;

	for (size_t i = 11, left = (size_t)a->status; i > 8; i--, left /= 10)
		status[i] = (char)('0' + left % 10);
	add_line(out, status, status_of(a->status)->reason);
	add_line(out, "Date: ", date_text(h));
	if (a->content_type && !bodiless)
		add_line(out, "Content-Type: ", a->content_type);
	do
		*--d = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	if (a->chunked)
		add_line(out, "Transfer-Encoding: ", "chunked");
	else if (!bodiless && !a->open)
		add_line(out, "Content-Length: ", d);
	if (a->connection)
		add_line(out, "Connection: ", a->connection);
	add_line(out, a->headers, "");
	if (!bodiless && !a->no_body)
		strbuf_add(out, a->body, a->len);
}

/* The format of error bodies is the listener's: JSON for registration, a Status object for
 * Kubernetes, plain text by default. */
static const char *error_body(struct httpd *h, struct strbuf *out, int status, const char *message)
{
	if (h->conf.error_body)
		return h->conf.error_body(out, status, message);
	strbuf_addf(out, "%s\n", message);
	return "text/plain";
}

/* Make the reply to a request that the guard refuses before it has a route. */
void httpd_req_refusal(struct httpd *h, int status, uint32_t retry_after_s, const char *message,
	struct strbuf *out)
{
	cleanup_strbuf struct strbuf body = STRBUF_INIT, headers = STRBUF_INIT;
	struct reply a = {.status = status, .connection = "close"};

	if (retry_after_s > 0)
		strbuf_addf(&headers, "Retry-After: %u\r\n", retry_after_s);
	a.headers = strbuf_str(&headers);
	a.content_type =
		error_body(h, &body, status, message ? message : status_of(status)->refusal);
	a.body = strbuf_str(&body);
	a.len = body.len;
	count_request(UNMATCHED, status);
	make_reply(h, &a, out);
}

/* A CR or LF in a value would let outside text add header lines (response splitting). */
static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

void httpd_reply_header(struct httpd_req *r, const char *name, const char *value)
{
	assert(!has_control(name) && !has_control(value));
	strbuf_adds(&r->headers, name);
	add_line(&r->headers, ": ", value);
}

/* The connection ends after this reply: as the client or the handler wants it, at shutdown, or at
 * the limit of requests. */
static bool is_last(const struct httpd_req *r)
{
	const struct httpd *h = r->peer->httpd;

	return !r->keep_alive || h->leaving || r->peer->n_requests >= h->conf.requests_per_conn;
}

/* Wipe the reply if needed, and keep only a small buffer for the next one. */
static void drop_scratch(struct httpd *h)
{
	if (h->conf.wipe)
		secret_wipe(h->scratch.data, h->scratch.len);
	if (h->scratch.cap > SCRATCH_MAX)
		strbuf_fini(&h->scratch);
}

/* Copies the body, so it may be on the caller's stack or belong to one of the request's ops. */
void httpd_reply(
	struct httpd_req *r, int status, const char *content_type, const void *body, size_t len)
{
	struct httpd_peer *p = r->peer;
	struct httpd *h = p->httpd;
	const char *route = r->route ? r->route->path : UNMATCHED;
	bool last = is_last(r);
	struct reply a = {.status = status,
		.content_type = content_type,
		.body = body,
		.len = len,
		.headers = strbuf_str(&r->headers),
		.no_body = r->method == HTTPD_HEAD};

	assert(p->req == r && p->state == HTTPD_PEER_BUSY);
	if (last || p->head.http10)
		a.connection = last ? "close" : "keep-alive";
	strbuf_reset(&h->scratch);
	make_reply(h, &a, &h->scratch);
	count_request(route, status);
	metric_observe(
		&request_seconds, route, NULL, (double)(clock_boot_us() - r->start_us) / 1e6);
	httpd_peer_send(p, &h->scratch, last);
	drop_scratch(h);
	/* Only now: its ops may own the body, and ending them may reply to another request, which uses
	 * the scratch buffer. */
	httpd_req_free(r);
}

/* ---- streams */

/* Return the number of bytes that wait for the socket. */
static size_t add(struct httpd_req *r, const void *data, size_t len)
{
	size_t waits = httpd_peer_add(r->peer, data, len);

	if (waits > 0)
		r->blocked = true;
	return waits;
}

void httpd_req_drained(struct httpd_req *r)
{
	if (!r->blocked)
		return;
	r->blocked = false;
	r->drained_fn(r->drained_arg);
}

/* HTTP/1.0 has no chunked encoding: the end of the connection ends the stream. */
void httpd_stream_start(
	struct httpd_req *r, int status, const char *content_type, httpd_drained_fn fn, void *arg)
{
	struct httpd *h = r->peer->httpd;
	struct reply a = {.status = status,
		.content_type = content_type,
		.headers = strbuf_str(&r->headers),
		.open = true,
		.chunked = !r->peer->head.http10};

	assert(r->peer->req == r && r->peer->state == HTTPD_PEER_BUSY && r->method != HTTPD_HEAD);
	r->chunked = a.chunked;
	r->keep_alive = r->keep_alive && r->chunked;
	r->drained_fn = fn;
	r->drained_arg = arg;
	if (is_last(r))
		a.connection = "close";
	strbuf_reset(&h->scratch);
	make_reply(h, &a, &h->scratch);
	count_request(r->route ? r->route->path : UNMATCHED, status);
	httpd_peer_stream(r->peer);
	add(r, h->scratch.data, h->scratch.len);
}

/* One chunk per call: size in hex, CRLF, data, CRLF. */
size_t httpd_stream_add(struct httpd_req *r, const void *data, size_t len)
{
	struct httpd *h = r->peer->httpd;
	size_t waits;

	if (!r->chunked || len == 0) /* an empty chunk would end the stream */
		return add(r, data, len);
	strbuf_reset(&h->scratch);
	strbuf_addf(&h->scratch, "%zx\r\n", len);
	strbuf_add(&h->scratch, data, len);
	strbuf_add(&h->scratch, "\r\n", 2);
	waits = add(r, h->scratch.data, h->scratch.len);
	drop_scratch(h);
	return waits;
}

/* The chunk of size 0 tells the client that the stream is complete. */
void httpd_stream_end(struct httpd_req *r)
{
	struct httpd *h = r->peer->httpd;

	assert(r->peer->req == r && r->peer->state == HTTPD_PEER_STREAM);
	strbuf_reset(&h->scratch);
	if (r->chunked)
		strbuf_adds(&h->scratch, "0\r\n\r\n");
	httpd_peer_send(r->peer, &h->scratch, is_last(r));
	httpd_req_free(r);
}

/* An HTTP/1.1 client misses the final chunk and so knows that the stream is incomplete. */
void httpd_stream_abort(struct httpd_req *r)
{
	assert(r->peer->state == HTTPD_PEER_STREAM);
	httpd_peer_close(r->peer); /* frees r */
}

/* The message may contain outside text, which conf.error_body must escape. */
void httpd_reply_error(
	struct httpd_req *r, int status, uint32_t retry_after_s, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf message = STRBUF_INIT;
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	const char *type;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&message, fmt, ap);
	va_end(ap);
	if (retry_after_s > 0) {
		char text[RETRY_TEXT_LEN];

		snprintf(text, sizeof(text), "%u", retry_after_s);
		httpd_reply_header(r, "Retry-After", text);
	}
	type = error_body(r->peer->httpd, &body, status, strbuf_str(&message));
	httpd_reply(r, status, type, strbuf_str(&body), body.len);
}

/* ---- routes */

/* Compare the media type without its parameters. A missing Content-Type is accepted. */
static bool body_type_fits(const struct httpd_req *r, const char *wanted)
{
	const char *type = httpd_req_header(r, "Content-Type");
	size_t len;

	if (!wanted || !type)
		return true;
	len = strcspn(type, "; \t");
	return len == strlen(wanted) && strncasecmp(type, wanted, len) == 0;
}

/* Count the request against its route's limit. False: the limit is reached and r has been
 * refused. */
static bool enter_route(struct httpd_req *r)
{
	struct httpd *h = r->peer->httpd;
	unsigned *in_route = &h->in_route[r->route - h->conf.routes];

	if (r->route->at_once == 0)
		return true;
	if (*in_route >= r->route->at_once) {
		r->keep_alive = false;
		httpd_reply_error(r, 503, 1, "too many concurrent requests of this kind");
		return false;
	}
	++*in_route;
	r->peer->in_route = in_route;
	return true;
}

/* Find the route for this path and method. NULL: none; *allowed receives the methods of the
 * path. */
static const struct httpd_route *find_route(struct httpd_req *r, unsigned *allowed)
{
	const struct httpd_conf *conf = &r->peer->httpd->conf;
	const struct httpd_route *route = NULL;
	size_t best = 0;

	*allowed = 0;
	for (size_t i = 0; i < conf->n_routes; i++) {
		const char *path = conf->routes[i].path;
		size_t len = strlen(path), fit = 0;

		/* How closely it fits: exactly, or with the length of its prefix. */
		if (strcmp(path, r->path) == 0)
			fit = SIZE_MAX;
		else if (len >= 2 && strcmp(path + len - 2, "/*") == 0 &&
			 strncmp(path, r->path, len - 1) == 0)
			fit = len - 1;
		if (fit == 0 || fit < best)
			continue;
		if (fit > best) {
			*allowed = 0;
			route = NULL;
		}
		best = fit;
		r->route = &conf->routes[i]; /* also labels a 405 */
		*allowed |= conf->routes[i].methods;
		if (conf->routes[i].methods & r->method)
			route = &conf->routes[i];
	}
	return route;
}

/* Check what the route requires, in the order 404, 405, 411, 415, 503, then call the handler. */
static void route_request(struct httpd_req *r)
{
	unsigned allowed;
	const struct httpd_route *route = find_route(r, &allowed);
	const struct httphead *head = &r->peer->head;

	if (!r->route) {
		httpd_reply_error(r, 404, 0, "no such path");
		return;
	}
	if (!route) {
		cleanup_strbuf struct strbuf allow = STRBUF_INIT;

		/* A 405 must list the permitted methods in Allow (RFC 9110 section 15.5.6). */
		for (size_t i = 0; i < ARRAY_LEN(method_names); i++)
			if (allowed & method_names[i].method)
				strbuf_addf(&allow, "%s%s", allow.len ? ", " : "",
					method_names[i].name);
		httpd_reply_header(r, "Allow", strbuf_str(&allow));
		httpd_reply_error(r, 405, 0, "allowed methods: %s", strbuf_str(&allow));
		return;
	}
	r->route = route;
	if (route->needs_body && !head->has_length && !head->chunked)
		httpd_reply_error(r, 411, 0, "a Content-Length is required");
	else if (!body_type_fits(r, route->body_type))
		httpd_reply_error(r, 415, 0, "the body must be %s", route->body_type);
	else if (enter_route(r))
		route->fn(r, r->peer->httpd->conf.arg);
}

/* Decide from the head alone. The request is a temporary one, and may not be replied to here. */
bool httpd_req_wants_body(struct httpd_req *r, bool *known)
{
	const struct httpd *h = r->peer->httpd;
	unsigned allowed;
	const struct httpd_route *route = find_route(r, &allowed);
	enum httpd_standing standing = HTTPD_STRANGER;

	if (h->closed || !route || !body_type_fits(r, route->body_type))
		standing = HTTPD_REFUSED;
	else if (h->conf.standing)
		standing = h->conf.standing(r, h->conf.arg);
	*known = standing == HTTPD_KNOWN;
	if (standing != HTTPD_REFUSED)
		return true;
	r->keep_alive = false; /* the unread body must not be taken for the next request */
	return false;
}

/* Called inside libevhtp's callback. The token taken at accept pays for the first request. */
void httpd_req_serve(struct httpd_req *r)
{
	struct httpd_peer *p = r->peer;
	struct httpd *h = p->httpd;
	uint32_t retry_s;

	if (h->closed) {
		httpd_reply_error(r, 503, CLOSED_RETRY_S, "%s", h->closed);
	} else if (!p->prepaid && !ratelimit_take(h->conf.rate, p->conn->saddr, &retry_s)) {
		r->keep_alive = false; /* free the connection for other clients */
		httpd_reply_error(r, h->conf.rate_status, retry_s, HTTPD_OVER_RATE);
	} else {
		p->prepaid = false;
		route_request(r);
	}
}

/* The request's deadline has passed. */
void httpd_req_late(struct httpd_req *r)
{
	r->keep_alive = false;
	httpd_reply_error(r, 408, 0, "the request was not answered in time");
}
