/* SPDX-License-Identifier: MIT */
/*
 * HTTPS client: libcurl multi_socket on our loop, HTTP/1.1 (CA
 * pinned, no environment proxies, no redirects, own deadlines, black-holed connections are closed).
 * Two pools: short requests, and streams (watches), so a slow stream never stands in a request's
 * way. At most 16 requests (max_in_flight) to one scheme://host:port are in flight; others wait,
 * their deadline running.
 *
 * Who owns what: the request is copied, but for a body that is taken. `on_data` gets body bytes as
 * they come, and only when the status is 2xx; other bodies are collected (64 KiB at most) for
 * `done`. Without on_data every body is collected up to max_body (more: ERR_INVALID).
 */
#ifndef TEC_NET_HTTPC_H
#define TEC_NET_HTTPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/body.h"
#include "tec/base/err.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/net/addr.h"

struct httpc;
struct httpc_tls; /* trust and identity for one server; reference counted like every TLS context */

/*
 * ca_pem NULL: the system's public CAs. cert/key: client certificate, both or none. server_name
 * NULL: from the URL; otherwise it is sent (SNI) and verified, while the address and the Host
 * header stay the URL's. Two objects never share a connection, even when made from the same bytes.
 */
struct httpc_tls *httpc_tls_new(const void *ca_pem, size_t ca_len, const void *cert_pem,
	size_t cert_len, const void *key_pem, size_t key_len, const char *server_name,
	struct err *err) MUST_CHECK;
struct httpc_tls *httpc_tls_insecure(
	void); /* kubeconfig's insecure-skip-tls-verify; logs a warning once */
void httpc_tls_skip_verify(
	struct httpc_tls *t); /* the same for one that has a client certificate */
struct httpc_tls *httpc_tls_ref(struct httpc_tls *t);
void httpc_tls_unref(struct httpc_tls *t);

struct httpc_header {
	const char *name, *value;
};

struct httpc_request {
	const char *method;     /* "GET" ... */
	const char *url;        /* http or https */
	struct httpc_tls *tls;  /* NULL: plain http */
	const char *connect_to; /* "addr:port" to connect to instead, TLS name and Host as in the
				   URL; NULL: none */
	const struct httpc_header *headers;
	size_t n_headers;
	const char *bearer; /* Authorization: Bearer ...; wiped from our copy; NULL: none */
	const void *body;   /* copied, the copy is wiped */
	size_t body_len;
	struct body *take_body; /* instead of body: moved, and wiped in the end; NULL: none */
	size_t max_body;        /* of a collected answer; 0: 64 KiB */
	uint32_t deadline_ms;   /* whole transfer; 0: none (streams) */
	uint32_t connect_ms;    /* 0: 10,000 */
	uint32_t silence_ms; /* streams: no byte for so long ends it with ERR_TRANSIENT; 0: none */
	bool stream;         /* use the stream pool */
	/* libcurl sends a request again by itself when a kept connection turns out to be closed. Not
	 * this one: it ends with ERR_TRANSIENT, because another process may answer next. */
	bool once;
	/* Requests that do not yield are sent before it, and while there are any, few of those that
	 * do are in flight (HTTPC_YIELDING). */
	bool yields;
	unsigned max_in_flight; /* to this origin, this one included; 0: 16 */
	unsigned reach; /* ADDR_REACH() of the addresses it may go to, ADDR_REACH_ALL or fewer:
			   another address is not connected to, and a connection that leads to one
			   is not used again (ERR_DENIED); 0: all, and answer->scope is not set */
};

struct httpc_answer {
	int status;            /* 0: no answer */
	enum addr_scope scope; /* of the address that answered; set when `reach` was given */
	uint32_t retry_after_ms;
	const char *
		body; /* collected bytes, NUL-terminated, borrowed for the call, wiped afterwards */
	size_t body_len;
	struct body *sent;        /* the request's; body_move() it to send it again */
	const char *content_type; /* may be NULL; no control characters, as in the others below */
	const char *location;     /* where a 3xx points to, made absolute: not followed, not judged;
				     NULL: nowhere, or more than 8 KiB */
	const char *set_cookie;   /* the first Set-Cookie header; NULL: none, or more than 8 KiB */
	const char *www_authenticate; /* of a 401, all headers joined by ", "; NULL: none, or more
					 than 8 KiB */
};

/* Return -1 with err set to end the transfer: done then gets that error. */
typedef int (*httpc_data_fn)(void *arg, const void *data, size_t len, struct err *err);
/* err NONE: a complete HTTP answer of any status (look at it). Else ERR_TRANSIENT (with ETIMEDOUT
 * when its time was over) / ERR_DENIED (TLS) / ERR_INVALID. */
typedef void (*httpc_done_fn)(void *arg, const struct err *err, const struct httpc_answer *answer);

struct httpc *httpc_new(struct loop *l);
void httpc_free(struct httpc *c); /* asserts that nothing is in flight */
struct op *httpc_start(struct httpc *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg);

#endif
