/* SPDX-License-Identifier: MIT */
/*
 * Shared by httpc.c (pools, glue to the loop), httpc_call.c (one transfer) and httpc_tls.c (trust
 * and identity). A call is in exactly one place: the queue of an origin, a multi, the multi's zombies,
 * or a deferred failure. The op owns it; op_abort frees it.
 */
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
#define HTTPC_IDLE_HANDLES 16u /* easy handles kept for reuse */
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
/* free() and realloc() that wipe released memory, for the allocators of libraries. */
void httpc_wipe_free(void *p);
void *httpc_wipe_realloc(void *p, size_t size);

/*
 * Connect to the host and port of origin ("https://a:1"), or to connect_to, and pass on the
 * non-blocking socket. Names are resolved and addresses tried as for every transfer. The text of err
 * is only the reason, without method and URL.
 */
typedef void (*httpc_dial_fn)(void *arg, const struct err *err, int take_fd);
struct op *httpc_dial(struct httpc *c, struct op_scope *scope, const char *origin,
	const char *connect_to, uint32_t connect_ms, httpc_dial_fn done, void *arg);

enum httpc_call_state {
	HTTPC_CALL_WAITING, /* in the queue origin->first .. last */
	HTTPC_CALL_RUNNING, /* in multi */
	HTTPC_CALL_ZOMBIE,  /* cancelled inside a curl callback of its multi: in multi->zombies */
	HTTPC_CALL_FAILED,  /* never sent; `fail` is pending */
};

struct httpc_origin;
struct httpc_multi;
struct httpc_call {
	struct op op; /* first */
	enum httpc_call_state state;
	struct httpc *c;
	struct httpc_origin *origin;
	struct httpc_multi *multi;        /* RUNNING, ZOMBIE */
	struct httpc_call *next, **prevp; /* in its queue */
	struct defer fail;
	struct timer deadline, silence;

	httpc_data_fn on_data;
	httpc_done_fn done;
	httpc_dial_fn dialled; /* instead of done */
	void *arg;

	/* The request, copied. */
	char *method, *url, *origin_key;
	char *where; /* for error texts: the address it connects to, and the host it expects */
	struct curl_slist *headers, *connect_to;
	struct httpc_tls *tls;
	struct body body;
	size_t max_body;
	uint32_t deadline_ms, connect_ms, silence_ms;
	bool stream, yields;
	unsigned max_in_flight;
	unsigned reach;
	bool once, was_sent;
	bool refused; /* the last address was refused; `scope` is its scope */

	/* The answer. */
	CURL *easy; /* RUNNING, ZOMBIE */
	struct err err;
	long status;
	enum addr_scope scope;
	int fd;   /* of httpc_dial(), -1: none */
	bool cut; /* the body of an error answer was truncated: not a failure */
	uint32_t retry_after_ms;
	char *content_type, *location, *set_cookie, *www_authenticate;
	struct body answer;
	char curl_text[CURL_ERROR_SIZE];
};

/* Copy the request; if *ok is false, it is invalid and k->err has the reason. */
struct httpc_call *httpc_call_new(const struct httpc_request *req, bool *ok);
void httpc_call_free(struct httpc_call *k);
CURLcode httpc_call_setup(struct httpc_call *k); /* sets the options of k->easy */
void httpc_call_result(struct httpc_call *k,
	CURLcode rc); /* sets err (if any), status and the header fields of the answer */

#endif
