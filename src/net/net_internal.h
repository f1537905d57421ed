/* SPDX-License-Identifier: MIT */
/* Shared by httpd.c (listeners, connections) and httpd_req.c (requests, routes, replies). */
#ifndef TEC_NET_INTERNAL_H
#define TEC_NET_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tec/base/str.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/loop/timer.h"
#include "tec/net/addr.h"
#include "tec/net/chunks.h"
#include "tec/net/httpd.h"
#include "tec/net/share.h"

struct bufferevent;
struct evconnlistener;
struct evhtp;
struct evhtp_connection;
struct evhtp_request;
struct ssl_st;

#define HTTPD_LISTENERS_MAX 4
#define HTTPD_OVER_RATE     "too many requests from this address"

/* Events that outsiders can cause at will are logged at most once per 10 s and kind, with the number
 * of suppressed lines. */
enum httpd_noise {
	HTTPD_NOISE_HANDSHAKE,
	HTTPD_NOISE_ACCEPT,
	HTTPD_NOISE_REFUSED,
	HTTPD_NOISE_EVICTED,
	HTTPD_NOISE_STOPPED,
	HTTPD_NOISE_BODY,
	HTTPD_NOISE_N
};
struct httpd_quiet {
	uint64_t until_ms;
	unsigned left_out; /* suppressed lines */
};

struct httpd {
	struct loop *loop; /* borrowed */
	struct httpd_conf conf;
	struct evhtp *htp; /* owned; holds a reference to our SSL_CTX */
	struct evconnlistener *listeners[HTTPD_LISTENERS_MAX]; /* owned */
	unsigned n_listeners;
	struct timer accept_pause; /* out of descriptors: accepting resumes when it fires */
	unsigned n_accepted;       /* in this turn of the loop */
	struct defer next_turn;    /* resets n_accepted and resumes accepting */
	struct defer tell;         /* of new listeners, in the log */
	size_t n_told;
	LIST_HEAD(, httpd_peer) peers; /* owned through libevhtp's connections */
	size_t n_peers;
	struct ratelimit *answers; /* owned; the budget of unpaid connections; NULL: no rate */
	unsigned n_unpaid;         /* peers that are unpaid */
	bool accepting_unpaid;     /* from before_accept() to after_accept() */
	struct share *share;       /* owned; the sources of all peers */
	unsigned *in_route;        /* owned; by route: requests that count against its at_once */
	struct httpd_peer *dispatching; /* the peer whose request libevhtp's parser handles now */
	const char *closed;             /* static; NULL: open */
	bool leaving;                   /* each reply closes its connection */
	bool draining;
	const char *waiting;   /* static; why nothing is accepted yet; NULL: accepting */
	struct strbuf scratch; /* buffer for building a reply */
	int64_t date_s;
	char date[32];
	struct httpd_quiet quiet[HTTPD_NOISE_N];
};

struct httpd_body {
	struct share_place place; /* while a stranger's body is being read */
	size_t held;              /* accounted bytes; 0: small, or no body */
	bool known;
};

enum httpd_peer_state {
	HTTPD_PEER_HANDSHAKE, /* TLS only */
	HTTPD_PEER_HEAD,      /* between requests, or a head is incomplete */
	HTTPD_PEER_BODY,      /* the head is valid, the body incomplete */
	HTTPD_PEER_BUSY,      /* the handler has the request */
	HTTPD_PEER_STREAM,    /* a reply of unknown length has begun */
	HTTPD_PEER_FLUSH,     /* the reply is being written */
	HTTPD_PEER_LINGER,    /* the last reply is sent; input is discarded until the peer closes */
};

struct httpd_peer {
	LIST_ENTRY(httpd_peer) link;
	struct share_place place;
	struct httpd *httpd;
	struct evhtp_connection *conn; /* owns this struct through its fini hook */
	struct bufferevent *bev;       /* owned by conn */
	/* libevhtp's own callbacks, called only when the guard permits it */
	void (*evhtp_read)(struct bufferevent *bev, void *arg);
	void (*evhtp_write)(struct bufferevent *bev, void *arg);
	void (*evhtp_event)(struct bufferevent *bev, short what, void *arg);
	void *evhtp_arg;

	enum httpd_peer_state state;
	struct timer timer;   /* the deadline of the state */
	struct strbuf in;     /* bytes not yet processed; the bufferevent's own input stays empty */
	size_t scanned;       /* bytes of `in` that contain no end of a head */
	struct httphead head; /* from BODY on; body_len of a chunked body is what has arrived */
	struct chunks chunks; /* decoder of the body */
	struct httpd_body body; /* this body's part of the memory of all bodies */
	unsigned n_requests;
	struct evhtp_request *ereq; /* libevhtp's request, from BUSY to the end of FLUSH */
	struct httpd_req *req;      /* owned, in BUSY and STREAM */
	unsigned *in_route;         /* counts this peer's request until its reply is written */
	bool *gone;                 /* on the stack of dispatch(): set when this is freed */
	bool started;               /* a byte of the next request has arrived */
	bool blank_dropped;       /* one empty line before a request is tolerated (RFC 9112 2.2) */
	bool continued;           /* 100 Continue was sent for this request */
	bool stopped;             /* not reading, because too much input is buffered */
	bool closing;             /* the current reply is the last one */
	bool eof;                 /* the peer closed its side during FLUSH or LINGER */
	bool half_closed;         /* we closed our side */
	uint64_t given, taken;    /* bytes of a stream: written, and sent when the timer was set */
	bool prepaid;             /* the token taken at accept covers the next request */
	bool unpaid;              /* accepted without a token, to be told so */
	size_t discarded;         /* bytes of an unpaid peer, in LINGER */
	struct defer sent;        /* all output was written at once; continue in the next turn */
	char text[ADDR_TEXT_LEN]; /* the address as text, formatted on first use */
};

/* httpd_req.c. The request is in p->req from httpd_req_new() until it is freed. */
/* data: the head, or head and body; p->head describes it. */
struct httpd_req *httpd_req_new(struct httpd_peer *p, const char *data, size_t len);
void httpd_req_free(struct httpd_req *r); /* without a reply */
/* False if the request will be refused whatever its body is; it has only its head. */
bool httpd_req_wants_body(struct httpd_req *r, bool *known);
void httpd_req_serve(struct httpd_req *r);
void httpd_req_late(struct httpd_req *r);    /* the deadline of a request being served */
void httpd_req_drained(struct httpd_req *r); /* of a stream: all that was added is sent */
/* Make a closing reply without a request. message NULL: the usual one of this status. */
void httpd_req_refusal(struct httpd *h, int status, uint32_t retry_after_s, const char *message,
	struct strbuf *out);

/* httpd.c */
void httpd_body_end(struct httpd_body *b);   /* its memory is free */
void httpd_peer_close(struct httpd_peer *p); /* at once; frees p */
/* Send the reply of the current request. `last`: close the connection when it is written. */
void httpd_peer_send(struct httpd_peer *p, const struct strbuf *out, bool last);
/* Send the reply of the current request in pieces, the last one with httpd_peer_send().
 * httpd_peer_add() returns the number of bytes that wait for the socket. */
void httpd_peer_stream(struct httpd_peer *p);
size_t httpd_peer_add(struct httpd_peer *p, const void *data, size_t len);

#endif
