/* SPDX-License-Identifier: MIT */
/*
 * struct httpd: one HTTP/1.1 server, TLS or plain: libevhtp behind a framing guard, so that a handler
 * sees only complete, validated requests, one at a time per connection. All limits are set here.
 *
 * Routes are a table of paths with a set of methods each; 404 and 405 (with Allow) follow from it. If
 * several routes match a path, only the most specific counts: an exact one, else the longest prefix.
 * HEAD is a separate method (not routed unless listed). conf.error_body makes the body of every error
 * response.
 *
 * A handler either replies at once (httpd_reply) or keeps `req`, starts calls in
 * httpd_req_ops(req), returns, and replies from their done. If the client disconnects or the
 * request's deadline passes (408), those ops are cancelled and req is freed. Therefore a handler may
 * keep req only as the argument of such ops, or in memory that httpd_req_on_gone() releases.
 */
#ifndef TEC_NET_HTTPD_H
#define TEC_NET_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/net/addr.h"
#include "tec/net/httphead.h"
#include "tec/net/ratelimit.h"
#include "tec/net/tls.h"

struct httpd;
struct httpd_req;

enum httpd_method {
	HTTPD_GET = 1,
	HTTPD_HEAD = 2,
	HTTPD_POST = 4,
	HTTPD_PUT = 8,
	HTTPD_DELETE = 16,
	HTTPD_PATCH = 32,
	HTTPD_OPTIONS = 64,
};

typedef void (*httpd_handler_fn)(struct httpd_req *req, void *arg);

/* What the head of a request tells about its sender. */
enum httpd_standing {
	HTTPD_STRANGER, /* the sender is not authenticated yet */
	HTTPD_KNOWN,    /* the sender is authenticated */
	HTTPD_REFUSED,  /* the handler will refuse the request whatever its body is */
};
typedef enum httpd_standing (*httpd_standing_fn)(struct httpd_req *req, void *arg);

struct httpd_route {
	const char *path; /* an exact path; if it ends in a slash and a star: every path with the
			     prefix before the star */
	unsigned methods; /* bits of enum httpd_method */
	bool needs_body;  /* without a Content-Length: 411 */
	const char *body_type; /* required media type ("application/json"), else 415; NULL: any. A
				  missing type is accepted */
	httpd_handler_fn fn;
	unsigned at_once; /* maximum of its requests being served or written; above it 503, which
			     closes the connection. 0: unlimited */
};

#define HTTPD_BODY_SMALL    ((size_t)16 << 10) /* not accounted: connections are limited */
#define HTTPD_STRANGERS_MAX ((size_t)8 << 20)
#define HTTPD_KNOWN_MAX     ((size_t)32 << 20)

/* Connections of sources over their rate that are accepted for an answer, per listener: a burst, a
 * rate that keeps their TLS handshakes at a few percent of a core, and how many at once (at most a
 * quarter of max_connections, and only while another quarter is free). */
#define HTTPD_UNPAID_BURST 100
#define HTTPD_UNPAID_PER_S 25
#define HTTPD_UNPAID_MAX   64

struct httpd_conf {
	const char *name; /* "register": label in logs and metrics */
	struct httphead_limits limits;
	uint32_t request_ms; /* from a request's first byte, for the first request from accept, to
				its reply; default 15,000 */
	uint32_t idle_ms;    /* between requests; default 15,000 */
	unsigned requests_per_conn; /* default 100 */
	unsigned max_connections;   /* default 1,500 */
	/*
	 * If all connections are in use, a new one replaces the longest idle connection of the source
	 * that holds the most. If that is its own source, only a connection without a request in
	 * progress that was idle for this long is replaced, and otherwise the new one is refused: many
	 * hosts behind one address must not close each other's connections. Default 1,000; 0: any
	 * connection can be replaced.
	 */
	uint32_t yield_ms;
	/*
	 * Borrowed, shared between listeners; NULL: off. Accepting takes a token that also covers the
	 * first request, and each further request takes one. Without it the response is rate_status
	 * with Retry-After, without reading a body, and the connection is closed. Such answers to new
	 * connections have a small budget of the listener's own (HTTPD_UNPAID_*); when it is used up,
	 * a new connection is closed before TLS.
	 */
	struct ratelimit *rate;
	int rate_status; /* default 429 */
	/*
	 * Called when the head of a request with a body of more than HTTPD_BODY_SMALL bytes is
	 * complete; it must not start calls or reply. NULL: all are strangers. A request that is
	 * REFUSED, or that no route accepts, is served without its body, and its connection is closed.
	 * The bodies of all listeners of the process share HTTPD_STRANGERS_MAX and HTTPD_KNOWN_MAX
	 * bytes. If those of strangers exceed their share, the longest idle body of the source with
	 * the most such bodies is refused. A body of a known sender that does not fit is refused
	 * itself. Both get 503 with Retry-After.
	 */
	httpd_standing_fn standing;
	const struct httpd_route *routes; /* static */
	size_t n_routes;
	void *arg;
	/* Requests and replies may hold key material: wipe our copies of their bytes (but not the
	 * buffers of libevent and OpenSSL, which live for one turn). */
	bool wipe;
	/* Appends the body of an error response and returns its content type (static). */
	const char *(*error_body)(struct strbuf *out, int status, const char *message);
};
extern const struct httpd_conf httpd_conf_default; /* limits are set, the rest is zero */

struct httpd *httpd_new(struct loop *l, const struct httpd_conf *conf);
void httpd_free(struct httpd *h); /* closes all connections at once */
/* May be called again for another address. */
int httpd_listen(struct httpd *h, const char *addr_text, struct err *err) MUST_CHECK;
/* Use a listening TCP or Unix socket that was opened elsewhere (systemd socket activation); it is
 * closed with the listener. ERR_INVALID if it is not such a socket; fd then stays open. */
int httpd_listen_fd(struct httpd *h, int fd, struct err *err) MUST_CHECK;
unsigned httpd_port(const struct httpd *h); /* of the first listening socket */
/*
 * Set the TLS context of new connections; takes a reference. NULL, the initial value, is plain HTTP.
 * A change from plain to TLS closes all plain connections at once, whatever their state. Must not be
 * called from a handler.
 */
void httpd_set_tls(struct httpd *h, struct tls_ctx *tls);
/* While the protocol (plain or TLS) is not known yet, close every connection on accept and count it
 * under this reason. NULL: accept. */
void httpd_set_waiting(struct httpd *h, const char *reason_static);
/* Refuse every request with 503 and Retry-After, for example because a configured certificate is
 * missing. NULL: serve again. */
void httpd_set_closed(struct httpd *h, const char *why_static);
/* Continue to serve, but close each connection after its reply, so that clients with persistent
 * connections move to another server before this one stops. */
void httpd_leave(struct httpd *h);
/* Stop accepting and close idle connections. Requests in flight are completed; further ones on their
 * connections are answered with Connection: close. */
void httpd_drain(struct httpd *h);
size_t httpd_in_flight(const struct httpd *h);
size_t httpd_connections(const struct httpd *h);

const char *httpd_method_name(enum httpd_method m); /* "GET"; static */
enum httpd_method httpd_req_method(const struct httpd_req *r);
const char *httpd_req_path(const struct httpd_req *r);   /* without the query, not decoded */
const char *httpd_req_target(const struct httpd_req *r); /* with the query */
const char *httpd_req_header(
	const struct httpd_req *r, const char *name); /* NULL if absent; case-insensitive */
const char *httpd_req_body(const struct httpd_req *r, size_t *len); /* borrowed until the reply */
const char *httpd_req_peer(const struct httpd_req *r);              /* address text */
/* True if the client uses a Unix socket; *uid is then its user at the time of connecting. */
bool httpd_req_local(const struct httpd_req *r, uint32_t *uid);
/* The source that limits count by, see addr_source(). */
void httpd_req_source(const struct httpd_req *r, uint8_t out[ADDR_SOURCE_LEN]);
uint32_t httpd_req_ms_left(
	const struct httpd_req *r); /* time to its deadline; backend calls must stay below it */
bool httpd_req_is_tls(const struct httpd_req *r);
/* The identity in the client's certificate; see tls_ctx_ask_clients(). */
enum tls_client_state httpd_req_client(const struct httpd_req *r, struct tls_client *out);
void *httpd_req_arg(const struct httpd_req *r); /* conf.arg */
struct op_scope *httpd_req_ops(struct httpd_req *r);
/* `fn` runs once when the request ends, replied or not, after its ops have been cancelled; at most one
 * per request. */
typedef void (*httpd_gone_fn)(void *arg);
void httpd_req_on_gone(struct httpd_req *r, httpd_gone_fn fn, void *arg);

/* Add a header to the reply; the value must not contain control characters (asserted). */
void httpd_reply_header(struct httpd_req *r, const char *name, const char *value);
/* Send the reply and end the request; `r` is freed. */
void httpd_reply(
	struct httpd_req *r, int status, const char *content_type, const void *body, size_t len);

/*
 * A reply of unknown length, such as a watch: chunked in HTTP/1.1, up to the connection's end in
 * HTTP/1.0. The request's deadline no longer applies; the stream lasts until httpd_stream_end() or
 * until the client disconnects.
 *
 * Bytes that the socket does not accept at once are buffered: httpd_stream_add() returns their number,
 * and drained runs in a later turn when all have been sent. So the caller limits the cost of a slow
 * reader by adding nothing until then. A client that accepts no byte for conf.idle_ms while some are
 * buffered is disconnected.
 */
typedef void (*httpd_drained_fn)(void *arg);
void httpd_stream_start(struct httpd_req *r, int status, const char *content_type,
	httpd_drained_fn drained, void *arg);
size_t httpd_stream_add(struct httpd_req *r, const void *data, size_t len);
void httpd_stream_end(struct httpd_req *r); /* `r` is freed */
/* Close the connection without a final chunk, so that the client detects the truncation; `r` is
 * freed. */
void httpd_stream_abort(struct httpd_req *r);

/* Send an error response made by conf.error_body; retry_after_s 0: no Retry-After header. */
void httpd_reply_error(struct httpd_req *r, int status, uint32_t retry_after_s, const char *fmt,
	...) PRINTF_LIKE(4, 5);

#endif
