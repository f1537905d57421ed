/* SPDX-License-Identifier: MIT */
/*
 * The glue between libcurl's multi_socket interface and the loop, and the life of a call. There are two
 * pools, requests and streams, each with one CURLM. At most HTTPC_PER_ORIGIN requests are in flight to
 * one origin, and the others are queued here, so that thousands of callers cost neither connections
 * nor easy handles.
 *
 * curl forbids adding and removing transfers inside its callbacks, and on_data runs in one; the others
 * do as little as possible. So a call started in there is queued, and one cancelled in there becomes a
 * zombie, until curl_multi_socket_action() has returned. Everything curl allocates is wiped when it is
 * freed: its buffers hold tokens, Secrets and keys.
 *
 *   WAITING (queue of its origin) -> RUNNING (in a multi) -> done
 *   an invalid request: FAILED, deferred -> done
 *   RUNNING, cancelled inside a callback: ZOMBIE -> freed when curl has returned
 *
 * The op owns the call; call_abort() frees it.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/signal.h"
#include "tec/net/httpc_proxy.h"

#include "httpc_internal.h"

#define IDLE_HANDLES 16u /* easy handles kept for reuse */

enum httpc_call_state {
	HTTPC_CALL_WAITING, /* in the queue of its origin */
	HTTPC_CALL_RUNNING, /* in the multi of its pool */
	HTTPC_CALL_ZOMBIE,  /* cancelled inside a curl callback: in the pool's zombies */
	HTTPC_CALL_FAILED,  /* never sent; `fail` is pending */
};

struct httpc_origin;
struct httpc_call {
	struct op op; /* first */
	enum httpc_call_state state;
	struct httpc *c;
	struct httpc_origin *origin;
	TAILQ_ENTRY(httpc_call) link; /* in its queue, or among the zombies */
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
	char *proxy; /* owned, wiped: it may contain a password; NULL: none */
	bool once, was_sent;
	bool refused; /* the last address was refused; `scope` is its scope */

	/* The answer. */
	CURL *easy; /* RUNNING, ZOMBIE; otherwise NULL */
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
TAILQ_HEAD(httpc_calls, httpc_call);

struct fd_watch { /* owned by its pool */
	struct loop_fd *fd;
	LIST_ENTRY(fd_watch) link;
};

struct httpc_pool;
struct httpc_origin { /* lives while it has calls */
	struct httpc_pool *pool;
	LIST_ENTRY(httpc_origin) link;
	char *key;
	unsigned running, yielding; /* running calls, and how many of them yield */
	unsigned n_first;           /* waiting or running calls that do not yield */
	struct httpc_calls queue;   /* calls that yield come last */
};

struct httpc_pool {
	struct httpc *c;
	LIST_HEAD(, httpc_origin) origins;
	CURLM *m;
	struct timer timer; /* curl's */
	LIST_HEAD(, fd_watch) fds;
	struct httpc_calls zombies;
	bool in_curl; /* inside curl_multi_socket_action() */
	bool *gone;   /* on the stack of pool_act(): set when the pool is freed */
};

struct httpc {
	struct loop *loop;
	struct httpc_pool pools[2]; /* requests, streams */
	CURL *idle[IDLE_HANDLES];
	unsigned n_idle, n_calls;
};

static unsigned n_users; /* of libcurl's globals */

/* ---- curl's allocator: free wipes ---- */

/* malloc_usable_size() is at least the requested size, so the whole block is wiped. */
void httpc_wipe_free(void *p)
{
	if (p)
		secret_wipe(p, malloc_usable_size(p));
	free(p);
}

/* Shrink in place; grow by allocating, copying and wiping, because a real realloc() would leave an
 * unwiped copy when it moves the block. */
void *httpc_wipe_realloc(void *p, size_t size)
{
	size_t old = p ? malloc_usable_size(p) : 0;
	void *n;

	if (p && size && size <= old)
		return p;
	n = malloc(size ? size : 1);
	if (n && p) {
		memcpy(n, p, old < size ? old : size);
		httpc_wipe_free(p);
	}
	return n;
}

static void easy_give(struct httpc *c, CURL *e)
{
	if (c->n_idle == IDLE_HANDLES) {
		curl_easy_cleanup(e);
		return;
	}
	curl_easy_reset(e); /* drops the request; connections belong to the multi */
	c->idle[c->n_idle++] = e;
}

/* ---- the request ---- */

/* Test eight bytes at a time: each request has a token of about a thousand bytes. */
bool httpc_printable(const char *s)
{
	const uint64_t each = 0x0101010101010101u, high = each * 0x80;
	size_t len = strlen(s);

	for (; len >= 8; s += 8, len -= 8) {
		uint64_t v, is_del;

		memcpy(&v, s, 8);
		is_del = v ^ (each * 0x7f);
		/* The high bit of a byte is set if it was below 0x20 or 0x7f. */
		if ((((v - each * 0x20) & ~v) | ((is_del - each) & ~is_del)) & high)
			return false;
	}
	for (; len > 0; s++, len--)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* curl copies the line; its copy is wiped when the list is freed. */
static void add_header(struct httpc_call *k, const char *line)
{
	struct curl_slist *l = curl_slist_append(k->headers, line);

	if (!l)
		DIE("out of memory: http header");
	k->headers = l;
}

int httpc_check_fields(const struct httpc_request *req, struct err *err)
{
	for (size_t i = 0; i < req->n_headers; i++) {
		const struct httpc_header *h = &req->headers[i];

		if (!*h->name || strpbrk(h->name, " :") || !httpc_printable(h->name) ||
			!httpc_printable(h->value))
			return err_set(
				err, ERR_INVALID, "a request header contains control characters");
	}
	if (req->bearer &&
		(!*req->bearer || strpbrk(req->bearer, " \t\r\n") || !httpc_printable(req->bearer)))
		return err_set(
			err, ERR_INVALID, "the bearer token contains blanks or control characters");
	return 0;
}

/* Set the headers, including those that suppress curl's own. */
static int copy_headers(struct httpc_call *k, const struct httpc_request *req)
{
	struct strbuf line = STRBUF_INIT;
	bool has_type = false;

	if (httpc_check_fields(req, &k->err) < 0)
		return -1;
	for (size_t i = 0; i < req->n_headers; i++) {
		const struct httpc_header *h = &req->headers[i];

		has_type = has_type || strcasecmp(h->name, "content-type") == 0;
		strbuf_reset(&line);
		/* "Name;" is curl's way to send an empty value. */
		strbuf_adds(&line, h->name);
		strbuf_adds(&line, *h->value ? ": " : ";");
		strbuf_adds(&line, h->value);
		add_header(k, strbuf_str(&line));
	}
	if (req->bearer) {
		strbuf_reset(&line);
		strbuf_adds(&line, "Authorization: Bearer ");
		strbuf_adds(&line, req->bearer);
		add_header(k, strbuf_str(&line));
	}
	if (line.data)
		secret_wipe(line.data, line.cap);
	strbuf_fini(&line);
	if (k->body.data)
		add_header(k, "Expect:"); /* no wait for 100-continue */
	if (k->body.data && !has_type)
		add_header(k, "Content-Type:");
	return 0;
}

/* "::ADDR:PORT" means: for every host and port connect to this address (CURLOPT_CONNECT_TO). */
static void set_connect_to(struct httpc_call *k, const char *addr_port)
{
	cleanup_free char *s = xasprintf("::%s", addr_port);

	k->connect_to = curl_slist_append(NULL, s);
	if (!k->connect_to)
		DIE("out of memory: connect-to");
}

/*
 * Split the URL into scheme, authority and path. If the TLS name differs from the URL's host, curl is
 * given a URL with that name, because it takes SNI and the name to verify from the URL. It then
 * connects to the original authority, which stays in the Host header.
 */
static int place_url(struct httpc_call *k, const struct httpc_request *req)
{
	const char *auth = strstr(req->url, "://"), *name = req->tls ? req->tls->server_name : NULL;
	const char *port;
	int auth_len, host_len;

	if (!auth || !httpc_printable(req->url) || strchr(req->url, ' '))
		return err_set(&k->err, ERR_INVALID, "invalid URL");
	auth += 3;
	auth_len = (int)strcspn(auth, "/?#");
	if (!auth_len || memchr(auth, '@', (size_t)auth_len))
		return err_set(&k->err, ERR_INVALID,
			"invalid URL: it has no host, or it contains user information");
	port = auth[0] == '[' ? memchr(auth, ']', (size_t)auth_len) : auth;
	if (!port)
		return err_set(
			&k->err, ERR_INVALID, "invalid URL: the host has no closing bracket");
	k->origin_key = xstrndup(req->url, (size_t)(auth + auth_len - req->url));
	port = memchr(port, ':', (size_t)(auth + auth_len - port));
	host_len = port ? (int)(port - auth) : auth_len;
	if (req->connect_to) {
		set_connect_to(k, req->connect_to);
		k->where = xasprintf("%.*s%s as %.*s", (int)(auth - req->url), req->url,
			req->connect_to, host_len, auth);
	} else {
		k->where = xstrdup(k->origin_key);
	}
	if (!name || (strlen(name) == (size_t)host_len &&
			     strncasecmp(name, auth, (size_t)host_len) == 0)) {
		k->url = xstrdup(req->url);
		return 0;
	}
	k->url = xasprintf(strchr(name, ':') && name[0] != '[' ? "%.*s[%s]%s" : "%.*s%s%s",
		(int)(auth - req->url), req->url, name, auth + host_len);
	if (!req->connect_to) {
		cleanup_free char *to = xasprintf(port ? "%.*s" : "%.*s:", auth_len, auth);

		set_connect_to(k, to);
	}
	cleanup_free char *host = xasprintf("Host: %.*s", auth_len, auth);
	add_header(k, host);
	return 0;
}

/* Whatever held a token or a key is wiped by the allocator (curl's lists) or by body_fini(). */
static void call_free(struct httpc_call *k)
{
	curl_slist_free_all(k->headers); /* wipes the token: see the allocator in httpc.c */
	curl_slist_free_all(k->connect_to);
	body_fini(&k->body);
	free(k->method);
	free(k->url);
	free(k->origin_key);
	free(k->where);
	if (k->proxy)
		secret_wipe(k->proxy, strlen(k->proxy));
	free(k->proxy);
	free(k->content_type);
	free(k->location);
	free(k->set_cookie);
	free(k->www_authenticate);
	body_fini(&k->answer);
	httpc_tls_unref(k->tls);
	if (k->fd >= 0)
		close(k->fd);
	free(k);
}

/* ---- curl's callbacks ---- */

/* Set keepalive and timeouts on a new connection. */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	unsigned unacked_ms = 20000;
	int idle_s = 15, interval_s = 5, on = 1;

	/* A dead connection is closed after 20 s even if nothing is sent on it. A failure of these
	 * calls only costs that detection. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	return CURL_SOCKOPT_OK;
}

/* Record the scope of the address, for the error and the answer. */
static bool may_reach(struct httpc_call *k, enum addr_scope scope)
{
	k->scope = scope;
	k->refused = !(k->reach & ADDR_REACH(scope));
	return !k->refused;
}

/* A proxy resolves the name itself and is not limited by `reach`, so only an address in the URL can be
 * judged here. */
static int set_proxy(struct httpc_call *k, const char *proxy)
{
	cleanup_free char *where = k->where;
	const char *at = strrchr(proxy, '@'), *sep = strstr(proxy, "://");

	k->where = xasprintf("%s through proxy %s", where, at ? at + 1 : sep ? sep + 3 : proxy);
	if (httpc_proxy_check(proxy, &k->err) < 0)
		return -1;
	k->proxy = xstrdup(proxy);
	if (!k->reach || may_reach(k, httpc_proxy_scope(k->url)))
		return 0;
	return err_set(&k->err, ERR_DENIED, "%s %s: not sent, its address is %s", k->method,
		k->where, addr_scope_name(k->scope));
}

/* Called before connecting: if this address is refused, curl tries the next one of the name. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	if (!may_reach(arg, addr_scope(&to->addr)))
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* Called before the request is sent, on a new connection or on one that an earlier call left, whose
 * address may not be permitted to this call. */
static int on_request(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct httpc_call *k = arg;
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	enum addr_scope scope = ADDR_RESERVED;

	if (k->once && k->was_sent) {
		err_set(&k->err, ERR_TRANSIENT,
			"%s %s: the connection was closed without an answer", k->method, k->where);
		return CURL_PREREQFUNC_ABORT;
	}
	k->was_sent = true;
	if (inet_pton(AF_INET, ip, &v4.sin_addr) == 1)
		scope = addr_scope((const struct sockaddr *)&v4);
	else if (inet_pton(AF_INET6, ip, &v6.sin6_addr) == 1)
		scope = addr_scope((const struct sockaddr *)&v6);
	return !k->reach || k->proxy || may_reach(k, scope) ? CURL_PREREQFUNC_OK
							    : CURL_PREREQFUNC_ABORT;
}

/* Append to a body that is delivered as a whole. Returning 0 ends the transfer; k->err or k->cut
 * tells why. */
static size_t collect(struct httpc_call *k, const char *data, size_t len, size_t max)
{
	curl_off_t length = -1;
	size_t expect = 0;

	if (k->answer.len + len > max) {
		if (k->on_data) { /* an error page: its status and first bytes are enough */
			body_add(&k->answer, data, max - k->answer.len, 0);
			k->cut = true;
			return 0;
		}
		err_set(&k->err, ERR_INVALID, "the answer is larger than %zu bytes", max);
		return 0;
	}
	if (!k->answer.cap &&
		!curl_easy_getinfo(k->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length))
		expect = length > 0 && (uint64_t)length <= max ? (size_t)length : 0;
	body_add(&k->answer, data, len, expect);
	return len;
}

/* Receive a part of the body. A short count ends the transfer with CURLE_WRITE_ERROR; k->err or
 * k->cut holds the reason. */
static size_t on_write(char *data, size_t size, size_t n, void *arg)
{
	struct httpc_call *k = arg;
	size_t len = size * n;
	int rc;

	if (k->state != HTTPC_CALL_RUNNING || len == 0)
		return 0;
	if (!k->status)
		(void)curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &k->status);
	if (k->silence_ms)
		timer_set(&k->silence, k->silence_ms);
	if (!k->on_data)
		return collect(k, data, len, k->max_body);
	if (k->status < 200 || k->status > 299)
		return collect(k, data, len, HTTPC_RESULT_MAX);
	rc = k->on_data(k->arg, data, len, &k->err);
	if (k->state != HTTPC_CALL_RUNNING) /* cancelled by its own on_data */
		return 0;
	if (rc != 0 && !err_is_set(&k->err))
		err_set(&k->err, ERR_BUG, "on_data failed without an error");
	return rc == 0 ? len : 0;
}

/* curl derives behaviour from its own options (no body for HEAD), so the method is not just
 * text. */
static CURLcode set_method(struct httpc_call *k)
{
	CURL *e = k->easy;
	CURLcode rc;

	if (strcmp(k->method, "HEAD") == 0)
		return curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
	if (!k->body.data && (strcmp(k->method, "GET") == 0 || strcmp(k->method, "DELETE") == 0)) {
		rc = curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
	} else {
		rc = curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)k->body.len);
		if (!rc) /* not copied */
			rc = curl_easy_setopt(
				e, CURLOPT_POSTFIELDS, k->body.data ? k->body.data : "");
	}
	if (!rc)
		rc = curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, k->method);
	return rc;
}

/* Set all options of a handle that was reset. */
static CURLcode call_setup(struct httpc_call *k)
{
	CURL *e = k->easy;
	CURLcode rc = set_method(k);
#define SET(opt, v)                                                                                \
	if (!rc)                                                                                   \
	rc = curl_easy_setopt(e, (opt), (v))
	SET(CURLOPT_URL, k->url);
	SET(CURLOPT_PRIVATE, k);
	SET(CURLOPT_ERRORBUFFER, k->curl_text);
	SET(CURLOPT_WRITEFUNCTION, on_write);
	SET(CURLOPT_WRITEDATA, k);
	SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
	if (k->reach && !k->proxy) {
		SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
		SET(CURLOPT_OPENSOCKETDATA, k);
	}
	if (k->reach || k->once) {
		SET(CURLOPT_PREREQFUNCTION, on_request);
		SET(CURLOPT_PREREQDATA, k);
	}
	SET(CURLOPT_HTTPHEADER, k->headers);
	SET(CURLOPT_CONNECT_TO, k->connect_to);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)k->connect_ms);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_QUICK_EXIT, 1L); /* a pending name lookup must not block the loop */
	/* The request's, or none; the environment is not read. */
	SET(CURLOPT_PROXY, k->proxy ? k->proxy : "");
	SET(CURLOPT_NOPROXY, "");
	if (k->proxy && k->dialled)
		SET(CURLOPT_HTTPPROXYTUNNEL, 1L);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_MAXAGE_CONN, 60L);
	/* The buffer is freed, and therefore wiped, after each transfer; wiping the default of 64 KiB
	 * costs more than the request. */
	SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
	if (k->dialled)
		SET(CURLOPT_CONNECT_ONLY, 1L);
#undef SET
	return rc ? rc : httpc_tls_apply(k->tls, e);
}

/* ---- interpreting results ---- */

/* Decide whether a retry can help. TLS failures that need a person are ERR_DENIED. */
static enum err_kind kind_of(CURLcode rc, const char *text)
{
	switch ((int)rc) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ISSUER_ERROR:
		return ERR_DENIED;
	case CURLE_SSL_CONNECT_ERROR:
		/* A server that disappears during the handshake returns; one that refuses it does not
		 * change its mind. OpenSSL's text tells them apart. */
		return strstr(text, "error:") && !strstr(text, "unexpected eof") ? ERR_DENIED
										 : ERR_TRANSIENT;
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		/* With TLS 1.3 a client certificate is refused only after the handshake. */
		return strstr(text, "alert") ? ERR_DENIED : ERR_TRANSIENT;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL: /* also an answer that is HTTP/0.9 */
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return ERR_INVALID;
	default:
		return ERR_TRANSIENT;
	}
}

/* Join all WWW-Authenticate headers: challenges may be in one header or several (RFC 9110 section
 * 11.6.1). */
static void take_challenges(struct httpc_call *k)
{
	struct strbuf all = STRBUF_INIT;
	struct curl_header *h;

	for (size_t i = 0;
		curl_easy_header(k->easy, "WWW-Authenticate", i, CURLH_HEADER, -1, &h) == CURLHE_OK;
		i++) {
		if (all.len + strlen(h->value) > HTTPC_HEADER_MAX) {
			strbuf_fini(&all);
			return;
		}
		if (i)
			strbuf_adds(&all, ", ");
		strbuf_adds(&all, h->value);
	}
	k->www_authenticate = all.len ? strbuf_steal(&all) : NULL;
	strbuf_fini(&all);
}

/*
 * Replace curl's texts that contain elapsed milliseconds. Error texts become conditions, and a text
 * that differs each time would cause a write each time.
 */
static const char *untimed(CURLcode rc, long sys, const char *text)
{
	if (rc == CURLE_OPERATION_TIMEDOUT)
		return "no answer in time";
	if (rc == CURLE_COULDNT_CONNECT)
		return sys ? strerror((int)sys) : "cannot connect";
	return text;
}

/* Take the connection of httpc_dial(). curl closes its own descriptor, so it is duplicated. */
static void take_socket(struct httpc_call *k, CURLcode rc)
{
	const char *text = k->curl_text[0] ? k->curl_text : curl_easy_strerror(rc);
	curl_socket_t fd = CURL_SOCKET_BAD;
	long sys = 0;

	if (rc == CURLE_OK) {
		(void)curl_easy_getinfo(k->easy, CURLINFO_ACTIVESOCKET, &fd);
		k->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (k->fd < 0)
			err_set_errno(
				&k->err, ERR_TRANSIENT, errno, "cannot take over the connection");
		return;
	}
	(void)curl_easy_getinfo(k->easy, CURLINFO_OS_ERRNO, &sys);
	err_set(&k->err, ERR_TRANSIENT, "%s", untimed(rc, sys, text));
	k->err.sys = (int)sys;
}

/* Set the error, if any, and the fields of the answer. Header values with control characters or
 * above the limit are treated as missing. */
static void call_result(struct httpc_call *k, CURLcode rc)
{
	const char *text = k->curl_text[0] ? k->curl_text : curl_easy_strerror(rc), *type = NULL;
	const char *to = NULL;
	struct curl_header *cookie;
	curl_off_t after_s = 0;

	if (k->dialled) {
		take_socket(k, rc);
		return;
	}
	(void)curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &k->status);
	if (rc == CURLE_WRITE_ERROR && k->cut)
		rc = CURLE_OK;
	if (rc != CURLE_OK && !err_is_set(&k->err) && k->refused) {
		err_set(&k->err, ERR_DENIED, "%s %s: not sent, its address is %s", k->method,
			k->where, addr_scope_name(k->scope));
	} else if (rc != CURLE_OK && !err_is_set(&k->err)) {
		long sys = 0;

		(void)curl_easy_getinfo(k->easy, CURLINFO_OS_ERRNO, &sys);
		text = untimed(rc, sys, text);
		err_set(&k->err, kind_of(rc, text), "%s %s: %s", k->method, k->where, text);
		k->err.sys = (int)sys;
	} else if (rc == CURLE_OK && !k->status) {
		err_set(&k->err, ERR_INVALID, "%s %s: no HTTP answer", k->method, k->where);
	}
	if (curl_easy_getinfo(k->easy, CURLINFO_RETRY_AFTER, &after_s) == CURLE_OK && after_s > 0)
		k->retry_after_ms = after_s > HTTPC_RETRY_MAX_MS / 1000 ? HTTPC_RETRY_MAX_MS
									: (uint32_t)after_s * 1000;
	if (curl_easy_getinfo(k->easy, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type &&
		httpc_printable(type))
		k->content_type = xstrdup(type);
	if (curl_easy_getinfo(k->easy, CURLINFO_REDIRECT_URL, &to) == CURLE_OK && to &&
		strlen(to) <= HTTPC_HEADER_MAX)
		k->location = xstrdup(to);
	if (curl_easy_header(k->easy, "Set-Cookie", 0, CURLH_HEADER, -1, &cookie) == CURLHE_OK &&
		strlen(cookie->value) <= HTTPC_HEADER_MAX && httpc_printable(cookie->value))
		k->set_cookie = xstrdup(cookie->value);
	if (k->status == 401)
		take_challenges(k);
}

/* ---- pools ---- */

static void pool_act(struct httpc_pool *pool, curl_socket_t fd, int events);

static void on_fd(int fd, bool readable, bool writable, void *arg)
{
	pool_act(arg, fd, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *arg)
{
	pool_act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void fd_watch_free(struct fd_watch *w)
{
	loop_fd_free(w->fd);
	LIST_REMOVE(w, link);
	free(w);
}

/* curl tells which events it wants on a descriptor. A change replaces the watch, as loop_fd has no
 * modify. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch)
{
	struct httpc_pool *pool = arg;
	struct fd_watch *w = watch;

	if (what == CURL_POLL_REMOVE) {
		if (w)
			fd_watch_free(w);
		(void)curl_multi_assign(pool->m, fd, NULL);
		return 0;
	}
	if (w) {
		loop_fd_free(w->fd);
	} else {
		w = xcalloc(1, sizeof(*w));
		LIST_INSERT_HEAD(&pool->fds, w, link);
		(void)curl_multi_assign(pool->m, fd, w);
	}
	w->fd = loop_fd_new(
		pool->c->loop, fd, what & CURL_POLL_IN, what & CURL_POLL_OUT, on_fd, pool);
	return 0;
}

/* Only set or cancel the timer: curl must not be called from its own callbacks. */
static int on_curl_timer(CURLM *cm, long ms, void *arg)
{
	struct httpc_pool *pool = arg;

	if (ms < 0)
		timer_cancel(&pool->timer);
	else
		timer_set(&pool->timer, (uint64_t)ms);
	return 0;
}

/* ---- origins ---- */

/* Origins are few, as they only live while they have calls. */
static struct httpc_origin *origin_get(struct httpc_pool *pool, const char *key)
{
	struct httpc_origin *o;

	LIST_FOREACH (o, &pool->origins, link)
		if (strcmp(o->key, key) == 0)
			return o;
	o = xcalloc(1, sizeof(*o));
	o->pool = pool;
	o->key = xstrdup(key);
	TAILQ_INIT(&o->queue);
	LIST_INSERT_HEAD(&pool->origins, o, link);
	return o;
}

/* ---- calls ---- */

static void call_leave(struct httpc_call *k);

/* Report the result. done may free the httpc, so the call is detached and finished first and freed
 * last. */
static void call_end(void *call)
{
	struct httpc_call *k = call;
	struct httpc_answer a = {.status = (int)k->status,
		.scope = k->scope,
		.retry_after_ms = k->retry_after_ms,
		.body = k->answer.data ? k->answer.data : "",
		.body_len = k->answer.len,
		.sent = &k->body,
		.content_type = k->content_type,
		.location = k->location,
		.set_cookie = k->set_cookie,
		.www_authenticate = k->www_authenticate};
	int fd = k->fd;

	call_leave(k);
	k->fd = -1;
	op_finish(&k->op);
	if (k->dialled) /* may free c */
		k->dialled(k->arg, &k->err, fd);
	else
		k->done(k->arg, &k->err, &a);
	call_free(k);
}

/* Report a failure in the next turn, because done must not run before the starting function
 * returned. */
static void call_fail(struct httpc_call *k)
{
	timer_cancel(&k->deadline);
	k->state = HTTPC_CALL_FAILED;
	defer_call(&k->fail, k->c->loop, call_end, k);
}

/* Sets ETIMEDOUT, by which callers tell an expired deadline from other transient errors. */
static void on_deadline(void *arg)
{
	struct httpc_call *k = arg;

	err_set(&k->err, ERR_TRANSIENT, "%s %s: no answer within %u ms%s", k->method, k->where,
		k->deadline_ms,
		k->state == HTTPC_CALL_WAITING ? ", waiting for earlier requests" : "");
	k->err.sys = ETIMEDOUT;
	call_end(k);
}

static void on_silence(void *arg)
{
	struct httpc_call *k = arg;

	err_set(&k->err, ERR_TRANSIENT, "%s %s: silent for %u ms", k->method, k->where,
		k->silence_ms);
	k->err.sys = ETIMEDOUT;
	call_end(k);
}

/* Move the call from its queue into the multi. A request that curl refuses fails like an invalid
 * one. */
static void call_launch(struct httpc_call *k)
{
	struct httpc *c = k->c;
	CURLMcode refused = CURLM_OK;
	CURLcode rc;

	TAILQ_REMOVE(&k->origin->queue, k, link);
	/* Reuse a handle: creating one costs more than a small request. */
	k->easy = c->n_idle ? c->idle[--c->n_idle] : curl_easy_init();
	if (!k->easy)
		DIE("out of memory: curl_easy_init");
	rc = call_setup(k);
	if (!rc)
		refused = curl_multi_add_handle(k->origin->pool->m, k->easy);
	if (rc || refused) {
		err_set(&k->err, ERR_INVALID, "%s %s: %s", k->method, k->where,
			rc ? curl_easy_strerror(rc) : curl_multi_strerror(refused));
		easy_give(c, steal_ptr(&k->easy));
		k->origin->n_first -= !k->yields;
		k->origin = NULL; /* origin_pump(), the caller, frees it if it is empty */
		call_fail(k);
		return;
	}
	k->state = HTTPC_CALL_RUNNING;
	k->origin->running++;
	k->origin->yielding += k->yields;
	if (k->silence_ms)
		timer_set(&k->silence, k->silence_ms);
}

/* Start calls while the limits permit; free the origin when it has none. Streams have no limit: each
 * watch needs its connection for hours. */
static void origin_pump(struct httpc_origin *o)
{
	struct httpc_call *k;

	while ((k = TAILQ_FIRST(&o->queue)) != NULL && !o->pool->in_curl) {
		/* The first call decides for all: the queue is in order of priority. */
		if (!k->stream &&
			(o->running >= k->max_in_flight ||
				(k->yields && o->n_first && o->yielding >= HTTPC_YIELDING)))
			break;
		call_launch(k);
	}
	if (o->running || k)
		return;
	LIST_REMOVE(o, link);
	free(o->key);
	free(o);
}

/* Return k's easy handle and remove k from its place; its origin may start the next call, or end. */
static void call_leave(struct httpc_call *k)
{
	struct httpc_origin *o = k->origin;

	k->c->n_calls--;
	timer_fini(&k->deadline);
	timer_fini(&k->silence);
	defer_cancel(&k->fail);
	if (!o)
		return;
	if (k->state == HTTPC_CALL_WAITING)
		TAILQ_REMOVE(&o->queue, k, link);
	if (k->easy) {
		(void)curl_multi_remove_handle(o->pool->m, k->easy);
		easy_give(k->c, steal_ptr(&k->easy));
		o->running--;
		o->yielding -= k->yields;
	}
	o->n_first -= !k->yields;
	k->origin = NULL;
	origin_pump(o);
}

/* Cancelled: inside a curl callback the transfer cannot be removed yet, so the call stays as a
 * zombie. */
static void call_abort(struct op *op)
{
	struct httpc_call *k = (struct httpc_call *)op;

	if (k->state == HTTPC_CALL_RUNNING && k->origin->pool->in_curl) {
		timer_fini(&k->deadline);
		timer_fini(&k->silence);
		k->state = HTTPC_CALL_ZOMBIE;
		TAILQ_INSERT_TAIL(&k->origin->pool->zombies, k, link);
		return;
	}
	call_leave(k);
	call_free(k);
}

/* Let curl work; this is the only place that does. Zombies are freed and ended calls are reported
 * only after curl has returned. */
static void pool_act(struct httpc_pool *pool, curl_socket_t fd, int events)
{
	struct httpc_origin *o, *next;
	struct httpc_call *k;
	bool gone = false;
	CURLMsg *msg;
	int n;

	pool->gone = &gone;
	pool->in_curl = true;
	(void)curl_multi_socket_action(pool->m, fd, events, &n);
	pool->in_curl = false;
	while ((k = TAILQ_FIRST(&pool->zombies)) != NULL) {
		TAILQ_REMOVE(&pool->zombies, k, link);
		call_leave(k);
		call_free(k);
	}
	while ((msg = curl_multi_info_read(pool->m, &n)) != NULL) {
		CURLcode rc = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		k = NULL;
		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &k);
		call_result(k, rc);
		call_end(k);
		if (gone)
			return;
	}
	pool->gone = NULL;
	for (o = LIST_FIRST(&pool->origins); o; o = next) {
		next = LIST_NEXT(o, link);
		origin_pump(o);
	}
}

/* ---- the interface ---- */

/* libcurl's allocator is global, so it must be set before anything else in the process uses
 * libcurl. */
struct httpc *httpc_new(struct loop *l)
{
	struct httpc *c = xcalloc(1, sizeof(*c));

	if (n_users++ == 0 && curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, httpc_wipe_free,
				      httpc_wipe_realloc, strdup, calloc))
		DIE("cannot initialise libcurl");
	loop_ignore_sigpipe(); /* OpenSSL writes to sockets that the server has closed */
	c->loop = l;
	for (size_t i = 0; i < ARRAY_LEN(c->pools); i++) {
		struct httpc_pool *pool = &c->pools[i];

		pool->c = c;
		TAILQ_INIT(&pool->zombies);
		timer_init(&pool->timer, l, on_timer, pool);
		pool->m = curl_multi_init();
		/* Without pipelining HTTP/2 multiplexing is off as well: h2c does that. */
		if (!pool->m ||
			curl_multi_setopt(pool->m, CURLMOPT_SOCKETFUNCTION, on_curl_socket) ||
			curl_multi_setopt(pool->m, CURLMOPT_SOCKETDATA, pool) ||
			curl_multi_setopt(pool->m, CURLMOPT_TIMERFUNCTION, on_curl_timer) ||
			curl_multi_setopt(pool->m, CURLMOPT_TIMERDATA, pool) ||
			curl_multi_setopt(pool->m, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) ||
			curl_multi_setopt(pool->m, CURLMOPT_MAXCONNECTS, 4L * HTTPC_PER_ORIGIN))
			DIE("out of memory: curl_multi_init");
	}
	return c;
}

void httpc_free(struct httpc *c)
{
	if (!c)
		return;
	assert(c->n_calls == 0);
	for (size_t i = 0; i < ARRAY_LEN(c->pools); i++) {
		struct httpc_pool *pool = &c->pools[i];

		assert(LIST_EMPTY(&pool->origins) && !pool->in_curl);
		if (pool->gone)
			*pool->gone = true;
		/* Cleaning up closes the connections, and curl may remove their watches
		 * meanwhile. */
		(void)curl_multi_cleanup(pool->m);
		while (!LIST_EMPTY(&pool->fds))
			fd_watch_free(LIST_FIRST(&pool->fds));
		timer_fini(&pool->timer);
	}
	while (c->n_idle)
		curl_easy_cleanup(c->idle[--c->n_idle]);
	free(c);
	if (--n_users == 0)
		curl_global_cleanup();
}

/* Copy the request; an invalid one fails in the next turn. The body is moved if possible; otherwise it
 * is copied once, and the copy is wiped. */
static struct op *call_start(struct httpc *c, struct op_scope *scope,
	const struct httpc_request *req, httpc_data_fn on_data, httpc_done_fn done,
	httpc_dial_fn dialled, void *arg)
{
	struct httpc_call *k = xcalloc(1, sizeof(*k)), *at = NULL;
	struct httpc_origin *o;

	k->c = c;
	k->on_data = on_data;
	k->done = done;
	k->dialled = dialled;
	k->arg = arg;
	k->fd = -1;
	k->method = xstrdup(req->method);
	k->tls = req->tls ? httpc_tls_ref(req->tls) : NULL;
	if (req->take_body)
		k->body = body_move(req->take_body);
	else if (req->body)
		body_add(&k->body, req->body, req->body_len, req->body_len);
	k->max_body = req->max_body ? req->max_body : HTTPC_RESULT_MAX;
	k->deadline_ms = req->deadline_ms;
	k->connect_ms = req->connect_ms ? req->connect_ms : HTTPC_CONNECT_MS;
	k->silence_ms = req->silence_ms;
	k->stream = req->stream;
	k->yields = req->yields;
	k->max_in_flight = req->max_in_flight ? req->max_in_flight : HTTPC_PER_ORIGIN;
	k->reach = req->reach;
	k->once = req->once;
	c->n_calls++;
	timer_init(&k->deadline, c->loop, on_deadline, k);
	timer_init(&k->silence, c->loop, on_silence, k);
	op_begin(&k->op, scope, call_abort);
	if (place_url(k, req) < 0 || copy_headers(k, req) < 0 ||
		(req->proxy && set_proxy(k, req->proxy) < 0)) {
		call_fail(k);
		return &k->op;
	}
	if (k->deadline_ms)
		timer_set(&k->deadline, k->deadline_ms);
	o = origin_get(&c->pools[k->stream], k->origin_key);
	k->origin = o;
	k->state = HTTPC_CALL_WAITING;
	o->n_first += !k->yields;
	/* A call that does not yield goes before all that do. */
	if (!k->yields)
		TAILQ_FOREACH (at, &o->queue, link)
			if (at->yields)
				break;
	if (at)
		TAILQ_INSERT_BEFORE(at, k, link);
	else
		TAILQ_INSERT_TAIL(&o->queue, k, link);
	origin_pump(o);
	return &k->op;
}

struct op *httpc_start(struct httpc *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg)
{
	return call_start(c, scope, req, on_data, done, NULL, arg);
}

/* Let curl resolve and connect without sending anything (CURLOPT_CONNECT_ONLY), and take the
 * socket. The URL is http even for https, as TLS is made by the caller. */
struct op *httpc_dial(struct httpc *c, struct op_scope *scope, const char *origin,
	const char *connect_to, const char *proxy, uint32_t connect_ms, httpc_dial_fn done,
	void *arg)
{
	const char *host = strstr(origin, "://") + 3, *port = strrchr(host, ':');
	bool has_port = port && !strchr(port, ']');
	cleanup_free char *url = xasprintf(
		"http://%s%s", host, has_port || str_starts(origin, "http://") ? "" : ":443");
	struct httpc_request req = {.method = "GET",
		.url = url,
		.connect_to = connect_to,
		.proxy = proxy,
		.connect_ms = connect_ms,
		.stream = true}; /* does not occupy a request's place */

	return call_start(c, scope, &req, NULL, NULL, done, arg);
}
