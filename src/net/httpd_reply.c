/* SPDX-License-Identifier: MIT */
/*
 * Build replies as bytes. libevhtp's own replies lack status 429, have a body for HEAD and do not check
 * header values. Here the body directly follows the head, so that a small reply is one write and one
 * TLS record.
 */
#include "config.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"

#include "net_internal.h"

#define RETRY_TEXT_LEN 12
#define SCRATCH_MAX    16384

static struct metric requests_total =
	METRIC_COUNTER_INIT("tec_http_requests_total", "HTTP requests answered.", "route", "code");
static struct metric request_seconds = METRIC_SECONDS_INIT(
	"tec_http_request_seconds", "Time from a complete request to its reply.", "route", NULL);

/* Reason phrases, and the message if the guard refuses a request with this status. */
static const struct {
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
	{429, "Too Many Requests", "too many requests from this address"},
	{431, "Request Header Fields Too Large", "too many or too long header fields"},
	{500, "Internal Server Error", ""},
	{501, "Not Implemented", "unknown method"},
	{503, "Service Unavailable", "request bodies use too much memory; try again later"},
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
static const char *reason_of(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].reason;
	return "Status";
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
	add_line(out, status, reason_of(a->status));
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
void httpd_refusal(struct httpd *h, int status, struct strbuf *out)
{
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	struct reply a = {.status = status,
		.connection = "close",
		.headers = status == 503 ? "Retry-After: 1\r\n" : ""};
	const char *message = "";

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			message = statuses[i].refusal;
	a.content_type = error_body(h, &body, status, message);
	a.body = strbuf_str(&body);
	a.len = body.len;
	count_request(HTTPD_UNMATCHED, status);
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
	const char *route = r->route ? r->route->path : HTTPD_UNMATCHED;
	bool last = is_last(r);
	struct reply a = {.status = status,
		.content_type = content_type,
		.body = body,
		.len = len,
		.headers = strbuf_str(&r->headers),
		.no_body = r->is_head};

	assert(p->req == r && p->state == HTTPD_PEER_BUSY);
	if (last || r->http10)
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

/* HTTP/1.0 has no chunked encoding: the end of the connection ends the stream. */
void httpd_stream_start(struct httpd_req *r, int status, const char *content_type,
	httpd_drained_fn drained, void *arg)
{
	struct httpd *h = r->peer->httpd;
	struct reply a = {.status = status,
		.content_type = content_type,
		.headers = strbuf_str(&r->headers),
		.open = true,
		.chunked = !r->http10};

	assert(r->peer->req == r && r->peer->state == HTTPD_PEER_BUSY && !r->is_head);
	r->chunked = a.chunked;
	r->keep_alive = r->keep_alive && r->chunked;
	r->drained_fn = drained;
	r->drained_arg = arg;
	if (is_last(r))
		a.connection = "close";
	strbuf_reset(&h->scratch);
	make_reply(h, &a, &h->scratch);
	count_request(r->route ? r->route->path : HTTPD_UNMATCHED, status);
	httpd_peer_stream(r->peer);
	httpd_peer_add(r->peer, h->scratch.data, h->scratch.len);
}

/* One chunk per call: size in hex, CRLF, data, CRLF. */
size_t httpd_stream_add(struct httpd_req *r, const void *data, size_t len)
{
	struct httpd *h = r->peer->httpd;
	size_t waits;

	if (!r->chunked || len == 0) /* an empty chunk would end the stream */
		return httpd_peer_add(r->peer, data, len);
	strbuf_reset(&h->scratch);
	strbuf_addf(&h->scratch, "%zx\r\n", len);
	strbuf_add(&h->scratch, data, len);
	strbuf_add(&h->scratch, "\r\n", 2);
	waits = httpd_peer_add(r->peer, h->scratch.data, h->scratch.len);
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
