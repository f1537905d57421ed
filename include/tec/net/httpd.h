/* SPDX-License-Identifier: MIT */
/*
 * struct httpd: one HTTP/1.1 listener, TLS or plain: libevhtp behind a framing guard, so a handler
 * sees only complete, validated requests, one at a time per connection. All limits are here.
 *
 * Routes are a table: paths, a method set per route; 404 and 405 (with Allow) follow from it. Of
 * several that match a path the most specific one alone counts: an exact one, else the longest
 * prefix. HEAD is a method of its own (not routed unless listed). Every refusal has a body made by
 * conf.error_body.
 *
 * A handler either replies at once (httpd_reply) or keeps `req`, starts calls in
 * httpd_req_ops(req), returns, and replies from their done. If the client goes away or the
 * request's deadline passes (408), those ops are cancelled and req is gone: a handler therefore
 * keeps req only as argument of such ops (or in memory freed by httpd_req_on_gone).
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

/* What the head of a request says of its body. */
enum httpd_standing {
	HTTPD_STRANGER, /* nobody knows yet who sends it */
	HTTPD_KNOWN,    /* its sender is authenticated */
	HTTPD_REFUSED,  /* the handler will refuse the request, whatever its body is */
};
typedef enum httpd_standing (*httpd_standing_fn)(struct httpd_req *req, void *arg);

struct httpd_route {
	const char *path; /* exact; ending in a slash and a star: whatever starts with all of it
			     but the star */
	unsigned methods; /* of enum httpd_method */
	bool needs_body;  /* no Content-Length: 411 */
	const char *body_type; /* required media type ("application/json"), else 415; NULL: any; an
				  absent type is accepted */
	httpd_handler_fn fn;
	unsigned at_once; /* so many of its requests are served or being written; above: 503 that
			     ends the connection. 0: any number */
};

#define HTTPD_BODY_SMALL    ((size_t)16 << 10) /* bounded by the number of connections alone */
#define HTTPD_STRANGERS_MAX ((size_t)8 << 20)
#define HTTPD_KNOWN_MAX     ((size_t)32 << 20)

struct httpd_conf {
	const char *name; /* "register": label in logs and metrics */
	struct httphead_limits limits;
	uint32_t request_ms; /* from a request's first byte to its reply; for the first one from
				accept: 15,000 */
	uint32_t idle_ms;    /* between requests: 15,000 */
	unsigned requests_per_conn; /* 100 */
	unsigned max_connections;   /* 1,500 */
	/*
	 * When all connections are in use, a new one gets the place of the connection idle for longest
	 * of the source that holds the most. If that is the new one's own source, only a connection
	 * gives way that has no request in progress and was idle for this long, otherwise the new one
	 * is refused: many hosts that share an address must not close one another's connections. 1,000; 0: any gives way.
	 */
	uint32_t yield_ms;
	/*
	 * Borrowed, shared between listeners; NULL: off. Accepting takes a token, which pays for
	 * the first request too: without one the connection is closed before TLS. Each further
	 * request takes one; without it: 429 with Retry-After, which ends the connection.
	 */
	struct ratelimit *rate;
	/*
	 * Asked when the head of a request with a body of more than HTTPD_BODY_SMALL bytes is there;
	 * it starts nothing and does not reply. NULL: all are strangers. A request that is REFUSED, or
	 * that no route takes, is served without its body, and its connection ends. Bodies of all
	 * listeners of the process share HTTPD_STRANGERS_MAX and HTTPD_KNOWN_MAX bytes. When
	 * strangers' take more, of the source with the most such bodies the one idle for longest is
	 * refused; a body of a known sender for which there is no room is refused itself: 503 with
	 * Retry-After.
	 */
	httpd_standing_fn standing;
	const struct httpd_route *routes; /* static */
	size_t n_routes;
	void *arg;
	/* Requests and replies may hold key material: their bytes are wiped where they were kept
	 * (not in the buffers of libevent and OpenSSL, which live for one turn). */
	bool wipe;
	/* Appends the body of a refusal and returns its content type (static). */
	const char *(*error_body)(struct strbuf *out, int status, const char *message);
};
extern const struct httpd_conf httpd_conf_default; /* limits filled in, the rest zero */

struct httpd *httpd_new(struct loop *l, const struct httpd_conf *conf);
void httpd_free(struct httpd *h); /* closes all connections at once */
/* May be called again for another address. */
int httpd_listen(struct httpd *h, const char *addr_text, struct err *err) MUST_CHECK;
/* A listening TCP or local socket that somebody else has opened, as systemd does; it is closed with the
 * listener. ERR_INVALID: it is not one; it stays open then. */
int httpd_listen_fd(struct httpd *h, int fd, struct err *err) MUST_CHECK;
unsigned httpd_port(const struct httpd *h); /* of the first listening socket */
/*
 * Takes a reference; new connections use it, NULL = plain. Before the first call: plain. From plain
 * to TLS: connections that were accepted in plain text are closed at once, whatever they wait for.
 * Not from a handler.
 */
void httpd_set_tls(struct httpd *h, struct tls_ctx *tls);
/* It is not known yet what is to be spoken: connections are closed as soon as they come, and counted
 * under this reason. NULL: accept. */
void httpd_set_waiting(struct httpd *h, const char *reason_static);
/* Refuse every request with 503 + Retry-After until open again (certificate named but not there,
 * ...). */
void httpd_set_closed(struct httpd *h, const char *why_static);
/* Goes on as before, but each reply ends its connection: clients that keep theirs come to another
 * server before this one stops. */
void httpd_leave(struct httpd *h);
/* Stops accepting and closes idle connections; requests in flight go on, further ones are answered
 * with Connection: close. */
void httpd_drain(struct httpd *h);
size_t httpd_in_flight(const struct httpd *h);
size_t httpd_connections(const struct httpd *h);

const char *httpd_method_name(enum httpd_method m); /* "GET"; static */
enum httpd_method httpd_req_method(const struct httpd_req *r);
const char *httpd_req_path(const struct httpd_req *r);   /* without the query, as it came */
const char *httpd_req_target(const struct httpd_req *r); /* with it */
const char *httpd_req_header(
	const struct httpd_req *r, const char *name); /* NULL if absent; case-insensitive */
const char *httpd_req_body(const struct httpd_req *r, size_t *len); /* borrowed until the reply */
const char *httpd_req_peer(const struct httpd_req *r);              /* address text */
/* Whether the client came over a local socket; *uid is then the user it ran as when it connected. */
bool httpd_req_local(const struct httpd_req *r, uint32_t *uid);
/* What limits count as one source, see addr_source(). */
void httpd_req_source(const struct httpd_req *r, uint8_t out[ADDR_SOURCE_LEN]);
uint32_t httpd_req_ms_left(
	const struct httpd_req *r); /* until its deadline: backend calls stay below it */
bool httpd_req_is_tls(const struct httpd_req *r);
/* Who the client's certificate says it is; see tls_ctx_ask_clients(). */
enum tls_client_state httpd_req_client(const struct httpd_req *r, struct tls_client *out);
void *httpd_req_arg(const struct httpd_req *r); /* conf.arg */
struct op_scope *httpd_req_ops(struct httpd_req *r);
/* `fn` runs once when the request ends, replied or not, after its ops were cancelled; one per
 * request. */
typedef void (*httpd_gone_fn)(void *arg);
void httpd_req_on_gone(struct httpd_req *r, httpd_gone_fn fn, void *arg);

/* Adds a header to the reply to come; value must hold no control bytes (asserted). */
void httpd_reply_header(struct httpd_req *r, const char *name, const char *value);
/* Ends the request; `r` is gone afterwards. */
void httpd_reply(
	struct httpd_req *r, int status, const char *content_type, const void *body, size_t len);

/*
 * A reply whose length is not known when it starts, such as a watch: HTTP/1.1 gets it chunked,
 * HTTP/1.0 until the connection's end. The request's deadline counts no more; it goes on until
 * httpd_stream_end() or until the client is gone, as every request.
 *
 * What the socket does not take at once is kept: httpd_stream_add() returns how many bytes that are,
 * and drained runs in a later turn when all of them are gone. So the caller bounds what a slow reader
 * costs by adding nothing more until then. A client that takes no byte for conf.idle_ms while some wait
 * is gone.
 */
typedef void (*httpd_drained_fn)(void *arg);
void httpd_stream_start(struct httpd_req *r, int status, const char *content_type,
	httpd_drained_fn drained, void *arg);
size_t httpd_stream_add(struct httpd_req *r, const void *data, size_t len);
void httpd_stream_end(struct httpd_req *r); /* `r` is gone afterwards */
/* Closes the connection, so that the client sees that it is not whole; `r` is gone. */
void httpd_stream_abort(struct httpd_req *r);

/* The reply made by conf.error_body; retry_after_s 0: no header. */
void httpd_reply_error(struct httpd_req *r, int status, uint32_t retry_after_s, const char *fmt,
	...) PRINTF_LIKE(4, 5);

#endif
