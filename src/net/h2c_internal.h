/* SPDX-License-Identifier: MIT */
/*
 * Shared by h2c.c (sites and their queues), h2c_call.c (one request), h2c_session.c (HTTP/2:
 * nghttp2's callbacks) and h2c_io.c (connecting, TLS, reading and writing). A call is in the queue of
 * its site, on one connection, or over. A call that is over or has data is also in a list of calls to
 * deliver. The op owns the call. A connection belongs to its site; a site without calls and
 * connections is freed.
 */
#ifndef TEC_NET_H2C_INTERNAL_H
#define TEC_NET_H2C_INTERNAL_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <sys/queue.h>

#include "tec/loop/timer.h"
#include "tec/net/h2c.h"

#include "httpc_internal.h"

#define H2C_DIAL_MS    10000u  /* from connecting to the server's SETTINGS */
#define H2C_SILENCE_MS 30000u  /* without a byte; then a PING is sent */
#define H2C_PONG_MS    15000u  /* to answer the PING */
#define H2C_IDLE_MS    60000u  /* a connection without requests is closed */
#define H2C_PROBE_MS   300000u /* a server without h2 is tried again */
#define H2C_TRIES      3u
#define H2C_FIRST_MS   50u /* after a request that others yield to, the next one is likely so soon */
#define H2C_CONNS_MAX                                                                              \
	32u /* per site; more than one only if the server allows fewer streams than watches */
#define H2C_RAW_LEN    65536u /* one recv() */
#define H2C_RECORD_LEN 16384u /* one SSL_read(), one SSL_write() */
#define H2C_WIRE_MAX   65536u /* buffered bytes that the socket did not accept */
#define H2C_HEADER_MAX 65536u /* of an answer: names, values and 32 per field (RFC 9113 6.5.2) */
#define H2C_STREAM_WIN (4 * 1024 * 1024)
#define H2C_CONN_WIN   (1024 * 1024 * 1024)

struct h2c_site;
struct h2c_conn;

struct h2c_call {
	struct op op; /* first */
	struct h2c *c;
	struct h2c_site *site;          /* NULL: the request is invalid */
	struct h2c_conn *conn;          /* NULL: queued, or over */
	TAILQ_ENTRY(h2c_call) link;     /* a queue of the site, or conn->calls */
	TAILQ_ENTRY(h2c_call) delivery; /* c->answers or c->streams */
	int32_t stream;
	bool queued, ready, over, no_h2;
	bool head;   /* the header of the final answer is complete */
	bool *freed; /* on the stack of h2c_call_deliver(): set if on_data frees the call */
	unsigned tries;
	struct timer deadline, silence;

	httpc_data_fn on_data;
	httpc_done_fn done;
	void *arg;

	/* The request. `text` holds header names and values, including the token, until an answer
	 * begins: after that the request is never resent. */
	char *text;
	size_t text_len;
	char method[16];
	nghttp2_nv *nv;
	size_t n_nv;
	const void *body; /* borrowed */
	size_t body_len, sent, max_body;
	uint32_t deadline_ms, silence_ms;
	bool long_lived, yields;

	/* The answer. */
	struct err err;
	int status;
	uint32_t retry_after_ms;
	size_t header_len, length; /* length: the announced Content-Length */
	char *content_type;
	struct body got; /* collected, or not yet delivered data */
};
TAILQ_HEAD(h2c_calls, h2c_call);

enum h2c_conn_state {
	H2C_CONNECTING,
	H2C_HANDSHAKE,
	H2C_OPEN,
	H2C_DRAINING, /* takes no new requests and closes after the last one */
};

struct h2c_conn {
	struct h2c_site *site;
	TAILQ_ENTRY(h2c_conn) link;
	enum h2c_conn_state state;
	struct op_scope dial; /* the connect operation, in CONNECTING */
	int fd;
	struct loop_fd *reads, *writes; /* writes: only while the socket is full */
	SSL *ssl;                       /* NULL: plain bytes */
	nghttp2_session *session;
	struct h2c_calls calls;
	size_t n_calls, n_long, n_yielding; /* all; those that are long-lived; those that yield */
	size_t n_streams; /* nghttp2's count: includes streams whose reset is not written yet */
	struct timer timer;
	uint64_t heard_ms, idle_ms; /* boot clock: last byte, last request ended */
	bool pinged;
	bool used;         /* a request was sent on it */
	bool unwritable;   /* send() failed; recv() will report the reason */
	const uint8_t *in; /* into c->raw: not yet decrypted */
	size_t in_len;
	const uint8_t *frame; /* not yet encrypted; owned by nghttp2 until the next call */
	size_t frame_len;
	struct strbuf wire; /* encrypted, but not accepted by the socket yet */
};
TAILQ_HEAD(h2c_conns, h2c_conn);

/* A server together with our identity for it. */
struct h2c_site {
	struct h2c *c;
	TAILQ_ENTRY(h2c_site) link;
	char *origin, *host, *connect_to; /* "https://a:1"; "a", without brackets; may be NULL */
	struct httpc_tls *tls;            /* NULL: plain */
	struct h2c_calls queue, yielding; /* to send; the second has lower priority */
	size_t n_calls;
	size_t n_first;    /* requests that others yield to, queued or in flight */
	size_t n_yielding; /* requests that yield, in flight */
	uint64_t first_ms; /* boot clock: when the last of n_first ended */
	struct h2c_conns conns;
	unsigned n_conns;
	bool no_h2; /* until `probe` fires */
	struct timer probe;
	struct defer work; /* sends queued requests and writes bytes */
};
TAILQ_HEAD(h2c_sites, h2c_site);

struct h2c {
	struct loop *loop;
	struct httpc *http; /* borrowed */
	struct h2c_sites sites;
	struct h2c_calls answers, streams; /* to deliver */
	struct defer deliver;
	size_t n_calls;
	bool *gone; /* on the stack of h2c_deliver(): set if the h2c is freed in it */
	BIO_METHOD *bio;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	uint8_t *raw, *plain; /* buffers of the current read; plain is wiped after use */
};

/* h2c.c */
struct h2c_site *h2c_site_get(
	struct h2c *c, const char *origin, const char *connect_to, struct httpc_tls *tls);
void h2c_site_wake(struct h2c_site *s);                        /* something may have to be sent */
void h2c_site_fail(struct h2c_site *s, const struct err *err); /* ends all queued calls */
void h2c_deliver(struct h2c *c); /* must be the last action of a loop callback: c may be freed */
void h2c_deliver_soon(struct h2c *c);

/* h2c_call.c */
/* If the call's site is NULL, the request is invalid and the call is over. Otherwise queue it. */
struct h2c_call *h2c_call_new(struct h2c *c, struct op_scope *scope,
	const struct httpc_request *req, httpc_data_fn on_data, httpc_done_fn done, void *arg);
void h2c_call_forget(struct h2c_call *k); /* wipes what only sending needs */
void h2c_call_ready(struct h2c_call *k); /* queues its delivery, in the order that h2c.h promises */
void h2c_call_leave(struct h2c_call *k); /* leaves its queue or connection, and nghttp2 */
void h2c_call_over(struct h2c_call *k, enum err_kind kind, const char *text); /* NULL: success */
void h2c_call_queue(struct h2c_call *k);   /* its site will send it */
void h2c_call_retry(struct h2c_call *k);   /* after the server refused it unprocessed */
void h2c_call_deliver(struct h2c_call *k); /* data of a stream, and its end; may free the h2c */
void h2c_call_end(struct h2c_call *k);     /* calls done; may free the h2c */

/* h2c_session.c */
void h2c_session_setup(struct h2c *c);
void h2c_session_start(struct h2c_conn *n);
bool h2c_site_holds(const struct h2c_site *s, const struct h2c_call *k); /* k must yield now */
bool h2c_session_has_place(
	const struct h2c_conn *n, const struct h2c_call *k); /* n can send k now */
bool h2c_session_only_long(const struct h2c_conn *n);        /* long-lived streams fill n */
void h2c_session_send(struct h2c_conn *n, struct h2c_call *k);
int h2c_session_feed(struct h2c_conn *n, const uint8_t *data, size_t len, struct err *err);

/* h2c_io.c */
void h2c_io_setup(struct h2c *c);
void h2c_conn_dial(struct h2c_site *s);
struct h2c_conn *h2c_conn_new(struct h2c_site *s);
void h2c_conn_begin(struct h2c_conn *n, int take_fd); /* the socket is connected */
void h2c_conn_set_state(struct h2c_conn *n, enum h2c_conn_state state, const char *reason);
void h2c_conn_write(struct h2c_conn *n); /* once per turn; may free n */
void h2c_conn_free(struct h2c_conn *n);  /* asserts that it has no calls */
/* Free n and end its calls with err. If n never carried a request, queued calls end as well, because
 * another connection would fail in the same way. */
void h2c_conn_lose(struct h2c_conn *n, const struct err *err);

#endif
