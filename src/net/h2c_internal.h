/* SPDX-License-Identifier: MIT */
/* The structs of h2c.c, which its tests look into. */
#ifndef TEC_NET_H2C_INTERNAL_H
#define TEC_NET_H2C_INTERNAL_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <sys/queue.h>

#include "tec/base/str.h"
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
#define H2C_HEADER_MAX 65536u /* of an answer: names, values and 32 per field (RFC 9113 6.5.2) */
#define H2C_STREAM_WIN (4 * 1024 * 1024)
#define H2C_CONN_WIN   (1024 * 1024 * 1024)
#define H2C_RAW_LEN    65536u /* one recv() */
#define H2C_RECORD_LEN 16384u /* one SSL_read(), one SSL_write() */
#define H2C_WIRE_MAX   65536u /* buffered bytes that the socket did not accept */

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
	bool *freed; /* on the stack of call_deliver(): set if on_data frees the call */
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

/* The bytes of a connection: a socket, TLS over our own BIO, and what the socket did not accept. */
struct h2c_wire {
	int fd;                         /* owned; -1: not connected */
	struct loop_fd *reads, *writes; /* writes: only while the socket is full */
	SSL *ssl;                       /* NULL: plain bytes */
	bool open;                      /* the handshake is complete */
	bool unwritable;                /* send() failed; recv() will report the reason */
	const uint8_t *in;              /* into c->raw: not yet decrypted */
	size_t in_len;
	struct strbuf out; /* encrypted, but not accepted by the socket yet */
};

struct h2c_conn {
	struct h2c_site *site;
	TAILQ_ENTRY(h2c_conn) link;
	enum h2c_conn_state state;
	struct op_scope dial; /* the connect operation, in CONNECTING */
	struct h2c_wire wire;
	nghttp2_session *session;
	struct h2c_calls calls;
	size_t n_calls, n_long, n_yielding; /* all; those that are long-lived; those that yield */
	size_t n_streams; /* nghttp2's count: includes streams whose reset is not written yet */
	struct timer timer;
	uint64_t heard_ms, idle_ms; /* boot clock: last byte, last request ended */
	bool pinged;
	bool used;            /* a request was sent on it */
	const uint8_t *frame; /* not yet encrypted; owned by nghttp2 until the next call */
	size_t frame_len;
};
TAILQ_HEAD(h2c_conns, h2c_conn);

/* A server together with our identity for it. */
struct h2c_site {
	struct h2c *c;
	TAILQ_ENTRY(h2c_site) link;
	char *origin, *host, *connect_to; /* "https://a:1"; "a", without brackets; may be NULL */
	char *proxy;                      /* wiped; NULL: none */
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
	bool *gone; /* on the stack of deliver(): set if the h2c is freed in it */
	BIO_METHOD *bio;
	uint8_t *raw,
		*plain; /* owned; used for one read or write at a time; plain is wiped after use */
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
};

/* For tests: use a connected socket for the requests to an origin without TLS. */
void h2c_adopt(struct h2c *c, const char *origin, int take_fd);

#endif
