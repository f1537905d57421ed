/* SPDX-License-Identifier: MIT */
/*
 * HTTPS client: libcurl's multi_socket interface on our loop, HTTP/1.1. The CA is pinned, proxies of
 * the environment (see net/httpc_proxy.h) and redirects are ignored, deadlines are our own, and dead connections are closed.
 * Short requests and streams (watches) use separate pools, so that a slow stream never delays a
 * request. At most 16 requests (max_in_flight) to one scheme://host:port are in flight; others wait
 * while their deadlines run.
 *
 * Ownership: the request is copied, except for a taken body. `on_data` receives the body as it
 * arrives, but only if the status is 2xx; other bodies are collected (64 KiB at most) for `done`.
 * Without on_data every body is collected up to max_body; a larger one is ERR_INVALID.
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
struct httpc_tls; /* trust and client identity for one server; reference counted */

/*
 * ca_pem NULL: the system's public CAs. cert and key: a client certificate, both or neither.
 * server_name replaces the URL's host in SNI and certificate verification, while the address and the
 * Host header stay the URL's; NULL: the URL's host. Two objects never share a connection, even if made
 * from the same bytes.
 */
struct httpc_tls *httpc_tls_new(const void *ca_pem, size_t ca_len, const void *cert_pem,
	size_t cert_len, const void *key_pem, size_t key_len, const char *server_name,
	struct err *err) MUST_CHECK;
/* For kubeconfig's insecure-skip-tls-verify; logs a warning once. */
void httpc_tls_skip_verify(struct httpc_tls *t);
struct httpc_tls *httpc_tls_ref(struct httpc_tls *t);
void httpc_tls_unref(struct httpc_tls *t);

struct httpc_header {
	const char *name, *value;
};

struct httpc_request {
	const char *method;     /* "GET" ... */
	const char *url;        /* http or https */
	struct httpc_tls *tls;  /* NULL: plain http */
	const char *connect_to; /* connect to this "addr:port" instead; TLS name and Host stay the
				   URL's; NULL: none */
	const char *proxy;      /* an http or https proxy, see httpc_proxy_check(); NULL: none */
	const struct httpc_header *headers;
	size_t n_headers;
	const char *bearer; /* Authorization: Bearer ...; our copy is wiped; NULL: none */
	const void *body;   /* copied; the copy is wiped */
	size_t body_len;
	struct body *take_body; /* instead of body: moved, and wiped at the end; NULL: none */
	size_t max_body;        /* limit of a collected response; 0: 64 KiB */
	uint32_t deadline_ms;   /* whole transfer; 0: none (streams) */
	uint32_t connect_ms;    /* 0: 10,000 */
	uint32_t
		silence_ms; /* streams: ends with ERR_TRANSIENT after this time without a byte; 0: never */
	bool stream;        /* use the stream pool */
	/* Never resend automatically. libcurl does that if a reused connection turns out to be closed;
	 * this request then ends with ERR_TRANSIENT, because another process may respond next. */
	bool once;
	/* Requests that do not yield are sent first, and while any are pending, only a few that yield
	 * are in flight (HTTPC_YIELDING). */
	bool yields;
	unsigned max_in_flight; /* limit for this origin, this request included; 0: 16 */
	unsigned reach; /* ADDR_REACH() bits of the permitted scopes, at most ADDR_REACH_ALL. Other
			   addresses are not connected to, and a connection to one is not reused
			   (ERR_DENIED). 0: all, and answer->scope is not set. With a proxy, the
			   address is what httpc_proxy_scope() says */
};

struct httpc_answer {
	int status;            /* 0: no response */
	enum addr_scope scope; /* of the responding address; set if `reach` was given */
	uint32_t retry_after_ms;
	const char *body; /* collected bytes, NUL-terminated, borrowed for the call, then wiped */
	size_t body_len;
	struct body *sent;        /* the request's body; body_move() it to send it again */
	const char *content_type; /* may be NULL; without control characters, like those below */
	const char *location;   /* target of a 3xx as an absolute URL, neither followed nor checked;
				     NULL: none, or over 8 KiB */
	const char *set_cookie; /* the first Set-Cookie header; NULL: none, or over 8 KiB */
	const char *www_authenticate; /* of a 401: all headers joined by ", "; NULL: none, or over
					 8 KiB */
};

/* Return -1 with err set to end the transfer; done then receives that error. */
typedef int (*httpc_data_fn)(void *arg, const void *data, size_t len, struct err *err);
/* err NONE: a complete HTTP response of any status, which the caller must check. Otherwise
 * ERR_TRANSIENT (err->sys is ETIMEDOUT after a deadline), ERR_DENIED (TLS) or ERR_INVALID. */
typedef void (*httpc_done_fn)(void *arg, const struct err *err, const struct httpc_answer *answer);

struct httpc *httpc_new(struct loop *l);
void httpc_free(struct httpc *c); /* asserts that nothing is in flight */
struct op *httpc_start(struct httpc *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg);

#endif
