/* SPDX-License-Identifier: MIT */
/*
 * Shared by h2c.c (requests and where they wait), h2c_session.c (HTTP/2: nghttp2's callbacks) and
 * h2c_io.c (connecting, TLS, reading and writing). A call is in its site's line or on one
 * connection, and beside that in a list of what is to be told, or it is over and only there. The op
 * owns it. A connection belongs to its site, which goes when it has neither calls nor connections.
 */
#ifndef TEC_NET_H2C_INTERNAL_H
#define TEC_NET_H2C_INTERNAL_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <sys/queue.h>

#include "tec/loop/timer.h"
#include "tec/net/h2c.h"

#include "httpc_internal.h"

#define H2C_DIAL_MS    10000u /* until the first byte of HTTP/2 may be sent */
#define H2C_SILENCE_MS 30000u /* then a PING */
#define H2C_PONG_MS    15000u
#define H2C_IDLE_MS    60000u /* a connection without requests is closed */
#define H2C_PROBE_MS   300000u
#define H2C_TRIES      3u
#define H2C_CONNS_MAX                                                                              \
	32u /* of a site: one, but for servers that allow fewer streams than watches */
#define H2C_RAW_LEN    65536u /* one recv() */
#define H2C_RECORD_LEN 16384u /* one SSL_read(), one SSL_write() */
#define H2C_WIRE_MAX   65536u /* bytes the socket did not take */
#define H2C_HEADER_MAX 65536u /* of an answer: names, values, 32 each */
#define H2C_STREAM_WIN (4 * 1024 * 1024)
#define H2C_CONN_WIN   (1024 * 1024 * 1024)

struct h2c_site;
struct h2c_conn;

struct h2c_call {
	struct op op; /* first */
	struct h2c *c;
	struct h2c_site *site;      /* NULL: the request is unusable */
	struct h2c_conn *conn;      /* NULL: in line, or over */
	TAILQ_ENTRY(h2c_call) link; /* site->line, or conn->calls */
	TAILQ_ENTRY(h2c_call) told; /* c->answers or c->streams */
	int32_t stream;
	bool in_line, to_tell, over, no_h2;
	bool head;   /* of the final answer: complete */
	bool cut;    /* enough of an error page */
	bool *freed; /* on_data is on the stack and wants to know when we are */
	unsigned tries;
	struct timer deadline, silence;

	httpc_data_fn on_data;
	httpc_done_fn done;
	void *arg;

	/* The request; names, values and method are in `text`, which holds the token. */
	char *text;
	size_t text_len;
	const char *method;
	nghttp2_nv *nv;
	size_t n_nv;
	const void *body; /* borrowed */
	size_t body_len, sent, max_body;
	uint32_t deadline_ms, silence_ms;
	bool long_lived;

	/* The answer. */
	struct err err;
	int status;
	uint32_t retry_after_ms;
	size_t header_len, length; /* length: announced */
	char *content_type;
	struct body got; /* collected, or not yet told */
};
TAILQ_HEAD(h2c_calls, h2c_call);

enum h2c_conn_state {
	H2C_CONNECTING,
	H2C_HANDSHAKE,
	H2C_OPEN,
	H2C_DRAINING, /* takes no new requests, closes with its last */
};

struct h2c_conn {
	struct h2c_site *site;
	TAILQ_ENTRY(h2c_conn) link;
	enum h2c_conn_state state;
	struct op_scope dial; /* CONNECTING */
	int fd;
	struct loop_fd *reads, *writes; /* writes: only while the socket does not take more */
	SSL *ssl;                       /* NULL: plain bytes */
	nghttp2_session *session;
	struct h2c_calls calls;
	size_t n_calls, n_long;
	size_t n_streams; /* as nghttp2 counts: one that was reset is here until that is written */
	struct timer timer;
	uint64_t heard_ms, idle_ms; /* boot clock: last byte, last request ended */
	bool pinged;
	bool unwritable;   /* the socket failed; reading says why */
	const uint8_t *in; /* of c->raw: not yet decrypted */
	size_t in_len;
	const uint8_t *frame; /* nghttp2's, until the next is asked for: not yet encrypted */
	size_t frame_len;
	struct strbuf wire; /* encrypted, not taken by the socket */
};
TAILQ_HEAD(h2c_conns, h2c_conn);

/* A server, and as whom we talk to it. */
struct h2c_site {
	struct h2c *c;
	TAILQ_ENTRY(h2c_site) link;
	char *origin, *host, *connect_to; /* "https://a:1"; "a", without brackets; may be NULL */
	struct httpc_tls *tls;            /* NULL: plain */
	struct h2c_calls line;
	size_t n_calls;
	struct h2c_conns conns;
	unsigned n_conns;
	bool no_h2; /* until the timer */
	struct timer probe;
	struct defer work; /* requests to send, bytes to write */
};
TAILQ_HEAD(h2c_sites, h2c_site);

struct h2c {
	struct loop *loop;
	struct httpc *http; /* borrowed */
	struct h2c_sites sites;
	struct h2c_calls answers, streams; /* to be told */
	struct defer tell;
	size_t n_calls;
	bool *gone; /* h2c_tell() is on the stack and wants to know when we are freed */
	BIO_METHOD *bio;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	uint8_t *raw, *plain; /* of the read under way; plain is wiped behind it */
};

/* h2c.c */
struct h2c_site *h2c_site_get(
	struct h2c *c, const char *origin, const char *connect_to, struct httpc_tls *tls);
void h2c_site_kick(struct h2c_site *s);                        /* something to send */
void h2c_site_fail(struct h2c_site *s, const struct err *err); /* all that is in line */
void h2c_call_tell(struct h2c_call *k);  /* in the order that h2c.h promises */
void h2c_call_leave(struct h2c_call *k); /* its line or connection; nghttp2 forgets it */
void h2c_call_over(struct h2c_call *k, enum err_kind kind, const char *text); /* NULL: well */
void h2c_call_again(struct h2c_call *k); /* its server did not look at it */
void h2c_tell(struct h2c *c);            /* last thing in a callback of the loop: c may be gone */

/* h2c_session.c */
void h2c_session_setup(struct h2c *c);
void h2c_session_start(struct h2c_conn *n);
/* Another request fits on n. */
bool h2c_session_has_place(const struct h2c_conn *n);
bool h2c_session_only_long(const struct h2c_conn *n); /* and it will stay full */
void h2c_session_send(struct h2c_conn *n, struct h2c_call *k);
int h2c_session_feed(struct h2c_conn *n, const uint8_t *data, size_t len, struct err *err);

/* h2c_io.c */
void h2c_io_setup(struct h2c *c);
void h2c_conn_dial(struct h2c_site *s);
struct h2c_conn *h2c_conn_new(struct h2c_site *s);
void h2c_conn_begin(struct h2c_conn *n, int take_fd); /* it is connected */
void h2c_conn_set_state(struct h2c_conn *n, enum h2c_conn_state state, const char *reason);
void h2c_conn_write(struct h2c_conn *n); /* once per turn; may free n */
void h2c_conn_free(struct h2c_conn *n);  /* asserts that it has no calls */
/* Frees n; its calls end with err, and those in line too if it never was open. */
void h2c_conn_lose(struct h2c_conn *n, const struct err *err);

#endif
