/* SPDX-License-Identifier: MIT */
/*
 * Listeners: which connections are accepted, which one is closed when all are in use, and how a server
 * starts and stops. libevhtp accepts, creates the (TLS) bufferevent and owns the connection. It stands
 * on httpd_req.c (requests, routes, replies), which stands on httpd_peer.c (one connection).
 *
 * Path of one request: before_accept() -> httpd_peer_new() -> on_read() collects and checks head and
 * body -> dispatch() -> serve() -> the handler -> httpd_reply() -> httpd_peer_send() -> flushed(), then
 * the next request of the connection.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <event2/listener.h>
#include <evhtp/evhtp.h>
#include <openssl/ssl.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/loop/signal.h"

#include "net_internal.h"

#define ACCEPT_PAUSE_MS 200
#define TURN_ACCEPTS    64

const struct httpd_conf httpd_conf_default = {
	.limits = {.head = 16 * 1024, .body = 16 * 1024, .lines = 64, .line = 8000, .target = 2048},
	.request_ms = 15000,
	.idle_ms = 15000,
	.requests_per_conn = 100,
	.max_connections = 1500,
	.yield_ms = 1000,
};

static struct metric evicted_total = METRIC_COUNTER_INIT("tec_http_evicted_connections_total",
	"Connections closed to make room for a source with fewer, or for a newer connection.",
	"listener", NULL);

/* ---- accepting */

/* Enable all listeners, after a pause or in a new turn. */
static void accept_again(void *arg)
{
	struct httpd *h = arg;

	for (unsigned i = 0; i < h->n_listeners; i++)
		evconnlistener_enable(h->listeners[i]);
}

/* accept() failed, usually with EMFILE. The socket stays readable, so without a pause this would be
 * a busy loop. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct httpd *h = ((evhtp_t *)arg)->arg; /* arg was set by libevhtp */
	int sys = errno;
	unsigned left_out;

	httpd_peer_refused(h, "accept");
	for (unsigned i = 0; i < h->n_listeners; i++)
		evconnlistener_disable(h->listeners[i]);
	timer_set(&h->accept_pause, ACCEPT_PAUSE_MS);
	if (httpd_peer_may_log(h, HTTPD_NOISE_ACCEPT, &left_out))
		log_warn(NULL, "cannot accept connections at the moment",
			"server=%s errno=%d reason=%s count=%u", h->conf.name, sys,
			log_esc(strerror(sys)), left_out + 1);
}

/* Resume in the next turn, unless a longer pause is set. */
static void go_on_accepting(void *arg)
{
	struct httpd *h = arg;

	h->n_accepted = 0;
	if (!timer_is_set(&h->accept_pause))
		accept_again(h);
}

/*
 * Limit the connections accepted per turn. libevent accepts while connections are waiting, which a
 * flood can prolong indefinitely, and a new connection could be evicted before its first request is
 * read. So accepting pauses after at most a quarter of the places, and new connections are served.
 */
static void bound_accepts(struct httpd *h)
{
	unsigned quarter = h->conf.max_connections / 4;

	defer_call(&h->next_turn, h->loop, go_on_accepting, h);
	if (++h->n_accepted < TURN_ACCEPTS && h->n_accepted < (quarter ? quarter : 1))
		return;
	for (unsigned i = 0; i < h->n_listeners; i++)
		evconnlistener_disable(h->listeners[i]);
}

/* Close a connection to make room; a request in progress on it is lost. */
static void evict(struct httpd *h, struct httpd_peer *p)
{
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	metric_add(&evicted_total, h->conf.name, NULL, 1);
	if (httpd_peer_may_log(h, HTTPD_NOISE_EVICTED, &left_out)) {
		addr_format(httpd_peer_addr(p), peer);
		log_warn(NULL,
			"all connections are in use: closed the longest idle one of the source with the most",
			"server=%s peer=%s count=%u", h->conf.name, peer, left_out + 1);
	}
	httpd_peer_close(p);
}

/* Ensure that a place is free for this source. False: all are in use and none may be reclaimed. */
static bool make_room(struct httpd *h, const struct sockaddr *sa)
{
	uint8_t source[ADDR_SOURCE_LEN];
	struct share_place *place;
	struct httpd_peer *p;
	bool own;

	if (h->n_peers < h->conf.max_connections)
		return true;
	addr_source(sa, source);
	place = share_victim(h->share, source, &own);
	p = container_of(place, struct httpd_peer, place);
	if (own && !httpd_peer_yields(p))
		return false;
	evict(h, p);
	return true;
}

/* The reasons are label values of tec_http_refused_connections_total; NULL accepts. */
static const char *reason_to_refuse(struct httpd *h, const struct sockaddr *sa)
{
	uint32_t retry_s;

	if (h->waiting)
		return h->waiting;
	if (!ratelimit_take(h->conf.rate, sa, &retry_s))
		return "rate";
	return make_room(h, sa) ? NULL : "limit";
}

/* Decide before TLS costs anything. Any result but OK makes libevhtp close the socket. */
static evhtp_res before_accept(evhtp_connection_t *conn, void *arg)
{
	struct httpd *h = arg;
	const char *reason = reason_to_refuse(h, conn->saddr);
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	bound_accepts(h);
	if (!reason) {
		fcntl(conn->sock, F_SETFD, FD_CLOEXEC);
		return EVHTP_RES_OK;
	}
	httpd_peer_refused(h, reason);
	if (httpd_peer_may_log(h, HTTPD_NOISE_REFUSED, &left_out)) {
		addr_format(conn->saddr, peer);
		log_warn(NULL, "connection refused", "server=%s peer=%s reason=%s count=%u",
			h->conf.name, peer, reason, left_out + 1);
	}
	return EVHTP_RES_ERROR;
}

static evhtp_res after_accept(evhtp_connection_t *conn, void *arg)
{
	httpd_peer_new(arg, conn);
	return EVHTP_RES_OK;
}

/* ---- listeners */

/* The listener accepts nothing until httpd_listen(). */
struct httpd *httpd_new(struct loop *l, const struct httpd_conf *conf)
{
	struct httpd *h = xcalloc(1, sizeof(*h));

	assert(conf->name && conf->request_ms && conf->idle_ms && conf->requests_per_conn &&
		conf->max_connections && conf->limits.head);
	h->loop = l;
	h->conf = *conf;
	h->date_s = -1;
	h->share = share_new();
	h->in_route = xcalloc(conf->n_routes + 1, sizeof(*h->in_route));
	h->htp = evhtp_new(loop_base(l), h);
	if (!h->htp)
		DIE("out of memory for listener %s", conf->name);
	loop_ignore_sigpipe(); /* SSL_shutdown writes without MSG_NOSIGNAL */
	evhtp_set_pre_accept_cb(h->htp, before_accept, h);
	evhtp_set_post_accept_cb(h->htp, after_accept, h);
	timer_init(&h->accept_pause, l, accept_again, h);
	httpd_peer_setup(h, &httpd_req_calls);
	return h;
}

static void close_listeners(struct httpd *h)
{
	while (h->n_listeners > 0)
		evconnlistener_free(h->listeners[--h->n_listeners]);
	timer_cancel(&h->accept_pause);
	defer_cancel(&h->next_turn);
}

void httpd_free(struct httpd *h)
{
	if (!h)
		return;
	assert(!h->dispatching); /* never from a handler: libevhtp's parser is on the stack */
	close_listeners(h);
	while (!LIST_EMPTY(&h->peers))
		httpd_peer_close(LIST_FIRST(&h->peers));
	assert(h->n_peers == 0);
	share_free(h->share);
	free(h->in_route);
	timer_fini(&h->accept_pause);
	strbuf_fini(&h->scratch);
	evhtp_free(h->htp); /* drops its reference of the SSL_CTX */
	free(h);
}

/* Add a listening socket. fd then belongs to the listener, unless this fails. */
static int take_socket(struct httpd *h, int fd, const struct sockaddr *sa, struct err *err)
{
	char text[ADDR_TEXT_LEN];

	if (h->n_listeners == HTTPD_LISTENERS_MAX)
		return err_set(err, ERR_INVALID, "more than %d addresses for one listener",
			HTTPD_LISTENERS_MAX);
	if (evhtp_accept_socket(h->htp, fd, 0) < 0)
		return err_set(err, ERR_BUG, "libevhtp refused the listening socket");
	/* libevhtp has room for one listener only: take it, so that more can be added */
	h->listeners[h->n_listeners++] = h->htp->server;
	evconnlistener_set_error_cb(h->htp->server, on_accept_error);
	h->htp->server = NULL;
	addr_format(sa, text);
	log_info(NULL, "listening", "server=%s addr=%s port=%u tls=%s", h->conf.name, text,
		addr_port(fd), h->htp->ssl_ctx ? "true" : "false");
	return 0;
}

int httpd_listen(struct httpd *h, const char *addr_text, struct err *err)
{
	struct addr a;
	int fd;

	if (addr_parse(addr_text, &a, err) < 0)
		return -1;
	fd = addr_listen(&a, err);
	if (fd < 0)
		return -1;
	if (take_socket(h, fd, (const struct sockaddr *)&a.ss, err) < 0) {
		close(fd);
		return -1;
	}
	return 0;
}

/* Verify the descriptor: systemd may pass any kind of socket. It may also lack O_NONBLOCK. */
int httpd_listen_fd(struct httpd *h, int fd, struct err *err)
{
	struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(ss), n = sizeof(int);
	int listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || !listens ||
		getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
		(ss.ss_family != AF_INET && ss.ss_family != AF_INET6 && ss.ss_family != AF_UNIX))
		return err_set(err, ERR_INVALID,
			"descriptor %d is not a listening TCP or local socket", fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set_errno(err, ERR_INVALID, errno, "descriptor %d", fd);
	return take_socket(h, fd, (const struct sockaddr *)&ss, err);
}

unsigned httpd_port(const struct httpd *h)
{
	return h->n_listeners ? addr_port(evconnlistener_get_fd(h->listeners[0])) : 0;
}

/* Close plain connections when TLS is enabled: their clients would send secrets in clear text. */
static void close_plain(struct httpd *h)
{
	struct httpd_peer *p = LIST_FIRST(&h->peers);

	assert(!h->dispatching); /* it could be the one that is closed */
	while (p) {
		struct httpd_peer *next = LIST_NEXT(p, link);

		if (!httpd_peer_ssl(p))
			httpd_peer_close(p);
		p = next;
	}
}

/* libevhtp reads ssl_ctx on each accept; open connections hold references of their own. */
void httpd_set_tls(struct httpd *h, struct tls_ctx *tls)
{
	SSL_CTX *old = h->htp->ssl_ctx;
	SSL_CTX *ctx = tls ? tls_ctx_ssl(tls) : NULL;

	if (ctx)
		SSL_CTX_up_ref(ctx);
	h->htp->ssl_ctx = ctx;
	SSL_CTX_free(old);
	if (ctx && !old)
		close_plain(h);
}

void httpd_set_waiting(struct httpd *h, const char *reason_static)
{
	h->waiting = reason_static;
}

void httpd_set_closed(struct httpd *h, const char *why_static)
{
	h->closed = why_static;
}

void httpd_leave(struct httpd *h)
{
	h->leaving = true;
}

/* Requests in flight are completed; the caller waits until httpd_in_flight() is 0. */
void httpd_drain(struct httpd *h)
{
	struct httpd_peer *p = LIST_FIRST(&h->peers);

	close_listeners(h);
	h->leaving = h->draining = true;
	while (p) {
		struct httpd_peer *next = LIST_NEXT(p, link);

		if (httpd_peer_is_idle(p))
			httpd_peer_close(p);
		p = next;
	}
}

/* A connection counts from the first byte of a request until its reply is written. */
size_t httpd_in_flight(const struct httpd *h)
{
	const struct httpd_peer *p;
	size_t n = 0;

	LIST_FOREACH (p, &h->peers, link)
		n += (p->state == HTTPD_PEER_HEAD && p->started) || p->state == HTTPD_PEER_BODY ||
		     p->state == HTTPD_PEER_BUSY || p->state == HTTPD_PEER_STREAM ||
		     p->state == HTTPD_PEER_FLUSH;
	return n;
}

size_t httpd_connections(const struct httpd *h)
{
	return h->n_peers;
}
