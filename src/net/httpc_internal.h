/* SPDX-License-Identifier: MIT */
/* Shared by httpc.c, httpc_tls.c (trust and identity) and h2c.c. */
#ifndef TEC_NET_HTTPC_INTERNAL_H
#define TEC_NET_HTTPC_INTERNAL_H

#include <curl/curl.h>

#include "tec/base/secret.h"
#include "tec/loop/timer.h"
#include "tec/net/httpc.h"

#define HTTPC_RESULT_MAX                                                                           \
	(64u * 1024) /* limit of the body of a stream's answer other than 2xx, and for max_body 0 */
#define HTTPC_CONNECT_MS 10000u
#define HTTPC_YIELDING   4u /* in flight to one origin while requests that do not yield are pending */
#define HTTPC_PER_ORIGIN                                                                           \
	16u /* requests in flight to one scheme://host:port; others are queued                     \
	     */
#define HTTPC_RETRY_MAX_MS 3600000u
#define HTTPC_HEADER_MAX   8192u /* longest header field of an answer that is passed on */

struct httpc_tls {
	unsigned refs;
	bool insecure;
	char *ca, *cert; /* PEM; owned; NULL: none */
	size_t ca_len, cert_len;
	struct secret *key;
	char *server_name;
};

/* Set the options that determine which server is trusted and which client we are. t NULL: plain http. */
CURLcode httpc_tls_apply(const struct httpc_tls *t, CURL *easy);
/* Make an OpenSSL context with the same settings, for h2c; the caller frees it and sets the name to
 * verify. */
struct ssl_ctx_st *httpc_tls_ctx(const struct httpc_tls *t);

/* True if s has no control characters and may be used in a request's header. */
bool httpc_printable(const char *s);
/* Check the headers and the token of a request. */
int httpc_check_fields(const struct httpc_request *req, struct err *err) MUST_CHECK;
/* free() and realloc() that wipe released memory, for the allocators of libraries. */
void httpc_wipe_free(void *p);
void *httpc_wipe_realloc(void *p, size_t size);

/*
 * Connect to the host and port of origin ("https://a:1"), or to connect_to, through the proxy if there
 * is one (not an https one: its TLS is curl's), and pass on the non-blocking socket. Names are resolved and addresses tried as for every transfer. The text of err
 * is only the reason, without method and URL.
 */
typedef void (*httpc_dial_fn)(void *arg, const struct err *err, int take_fd);
struct op *httpc_dial(struct httpc *c, struct op_scope *scope, const char *origin,
	const char *connect_to, const char *proxy, uint32_t connect_ms, httpc_dial_fn done,
	void *arg);

#endif
