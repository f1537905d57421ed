/* SPDX-License-Identifier: MIT */
/*
 * Shared by httpd.c (listeners), httpd_peer.c (one connection: states, writing, deadlines),
 * httpd_guard.c (what comes in: framing), httpd_body.c (what bodies take of memory), httpd_req.c
 * (requests, routes) and httpd_reply.c.
 */
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
#define HTTPD_UNMATCHED     "unmatched" /* route label of what has none */

/* What outsiders can cause at will is logged at most once per 10 s and kind, with the count of
 * lines left out. */
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
	unsigned left_out;
};

struct httpd {
	struct loop *loop; /* borrowed */
	struct httpd_conf conf;
	struct evhtp *htp; /* owned; its ssl_ctx is one reference of ours */
	struct evconnlistener *listeners[HTTPD_LISTENERS_MAX]; /* owned */
	unsigned n_listeners;
	struct timer accept_pause;     /* out of descriptors: nothing is accepted until it fires */
	unsigned n_accepted;           /* in this turn of the loop */
	struct defer next_turn;        /* n_accepted starts again, and accepting goes on */
	LIST_HEAD(, httpd_peer) peers; /* owned through libevhtp's connections */
	size_t n_peers;
	struct share *share; /* owned; who they are of */
	unsigned *in_route;  /* owned; by route: requests that hold a place of its at_once */
	struct httpd_peer *dispatching; /* whose request is inside libevhtp's parser right now */
	const char *closed;             /* static; NULL: open */
	bool leaving;                   /* each reply ends its connection */
	bool draining;
	const char *waiting;   /* static, why nothing is accepted yet; NULL: it is */
	struct strbuf scratch; /* a reply on its way to the socket */
	int64_t date_s;
	char date[32];
	struct httpd_quiet quiet[HTTPD_NOISE_N];
};

struct httpd_body {
	struct share_place place; /* while it is being read; of strangers' bodies */
	size_t held;              /* bytes; 0: small, or none */
	bool known, in_share;
};

enum httpd_peer_state {
	HTTPD_PEER_HANDSHAKE, /* TLS only */
	HTTPD_PEER_HEAD,      /* between requests, or a head is incomplete */
	HTTPD_PEER_BODY,      /* the head is good, the body incomplete */
	HTTPD_PEER_BUSY,      /* a request is with its handler */
	HTTPD_PEER_STREAM,    /* its reply has begun, and how long it will be is not known */
	HTTPD_PEER_FLUSH,     /* its reply is being written */
	HTTPD_PEER_LINGER,    /* the last reply is out, input is dropped until the peer closes */
};

struct httpd_peer {
	LIST_ENTRY(httpd_peer) link;
	struct share_place place;
	struct httpd *httpd;
	struct evhtp_connection *conn; /* owns us through its fini hook */
	struct bufferevent *bev;       /* conn's */
	/* libevhtp's own callbacks, called when the guard says so */
	void (*evhtp_read)(struct bufferevent *bev, void *arg);
	void (*evhtp_write)(struct bufferevent *bev, void *arg);
	void (*evhtp_event)(struct bufferevent *bev, short what, void *arg);
	void *evhtp_arg;

	enum httpd_peer_state state;
	struct timer timer;   /* what its end means follows from the state */
	struct strbuf in;     /* bytes not yet handed on; the bufferevent's own input stays empty */
	size_t scanned;       /* of `in`: no end of head before here */
	struct httphead head; /* from BODY on; a chunked body's length is what has come of it */
	struct chunks chunks; /* of the body */
	struct httpd_body body; /* what this one takes of the memory of all bodies */
	unsigned n_requests;
	struct evhtp_request *ereq; /* libevhtp's, from BUSY to the end of FLUSH */
	struct httpd_req *req;      /* owned, in BUSY and STREAM */
	unsigned *in_route;         /* counts this peer's request until its reply is written */
	bool *gone;                 /* set when freed inside dispatch() */
	bool started;               /* a byte of the request to come was seen */
	bool blank_dropped;         /* the one empty line before a request that is forgiven */
	bool continued;             /* 100 Continue was sent for this request */
	bool stopped;               /* not reading: too much input is waiting */
	bool closing;               /* the reply under way is the last */
	bool eof;                   /* the peer closed its side during FLUSH or LINGER */
	bool half_closed;
	uint64_t given, taken;    /* bytes of a stream: written, and gone when the timer was set */
	bool prepaid;             /* the token taken at accept pays for the next request */
	struct defer sent;        /* the output was written at once: goes on in the next turn */
	char text[ADDR_TEXT_LEN]; /* the address, once it was needed */
};

struct httpd_req {
	struct httpd_peer *peer;
	struct op_scope ops;
	const struct httpd_route *route; /* NULL: unmatched */
	enum httpd_method method;        /* 0: a method no route can have */
	bool keep_alive, http10, has_length, is_head;
	uint64_t start_us;
	struct strbuf headers; /* of the reply */
	httpd_gone_fn gone_fn;
	void *gone_arg;
	bool chunked, blocked; /* of a stream; blocked: drained_fn is owed */
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

/* httpd_guard.c */
void httpd_guard_init(struct httpd *h);
void httpd_guard_read(struct bufferevent *bev, void *arg); /* arg: the peer */
void httpd_guard_pump(struct httpd_peer *p);           /* goes on with what has come; may free p */
void httpd_guard_drop(struct httpd_peer *p, size_t n); /* the first n bytes are dealt with */
void httpd_guard_go_on(struct httpd_peer *p);          /* reading, if it was stopped */
void httpd_guard_refuse(struct httpd_peer *p, int status);

/* httpd_body.c. grow: the body being read has so many bytes now; false: there is no room for it.
 * Others may be refused for it. read: it is whole. end: its memory is free again. */
bool httpd_body_grow(struct httpd_peer *p, size_t len);
void httpd_body_read(struct httpd_peer *p);
void httpd_body_end(struct httpd_peer *p);

/* httpd_peer.c */
#define HTTPD_LINGER_MS 2000
void httpd_peer_set_state(struct httpd_peer *p, enum httpd_peer_state to);
void httpd_peer_write(struct httpd_peer *p, const char *data, size_t len); /* whole, in its turn */
void httpd_peer_new(struct httpd *h, struct evhtp_connection *conn);
void httpd_peer_close(struct httpd_peer *p); /* at once; frees p */
bool httpd_peer_is_idle(const struct httpd_peer *p);
bool httpd_peer_yields(const struct httpd_peer *p); /* to another connection of its source */
/* The reply of the request being served. `last`: close when it is written. */
void httpd_peer_send(struct httpd_peer *p, const struct strbuf *out, bool last);
/* The reply of the request being served is sent in pieces, the last one with httpd_peer_send().
 * Returns how many bytes wait for the socket. */
void httpd_peer_stream(struct httpd_peer *p);
size_t httpd_peer_add(struct httpd_peer *p, const void *data, size_t len);
bool httpd_peer_is_tls(const struct httpd_peer *p);
struct ssl_st *httpd_peer_ssl(const struct httpd_peer *p); /* NULL: plain */
const struct sockaddr *httpd_peer_addr(const struct httpd_peer *p);
bool httpd_peer_user(const struct httpd_peer *p, uint32_t *uid); /* false: not a local socket */

/* httpd_reply.c */
void httpd_refusal(struct httpd *h, int status, struct strbuf *out); /* a whole reply that closes */

/* httpd_req.c */
struct httpd_req *httpd_req_new(struct httpd_peer *p, const char *data, size_t len);
void httpd_req_free(struct httpd_req *r); /* without a reply */
void httpd_serve(struct httpd_req *r);
/* False: it will be refused whatever its body is. */
bool httpd_req_wants_body(struct httpd_req *r, bool *known);
void httpd_leave_route(struct httpd_peer *p); /* its reply is written, or never will be */

/* httpd.c */
void httpd_count_connection(const struct httpd *h, int change);
void httpd_count_refused(const struct httpd *h, const char *reason);
bool httpd_may_log(struct httpd *h, enum httpd_noise kind, unsigned *left_out);

#endif
