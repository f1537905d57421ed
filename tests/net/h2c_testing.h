/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/2 server in the thread of its test, over nghttp2's server session: on 127.0.0.1 with TLS,
 * or on a socket pair that the client is given as a connection of its own. What it does is the
 * request's path; what it announces and when it says it is the test's. Nothing waits: h2s_turn()
 * runs one turn of the loop and of the server.
 */
#ifndef TESTS_H2C_TESTING_H
#define TESTS_H2C_TESTING_H

#include <fcntl.h>

#include "../../src/net/h2c_internal.h"
#include "net/httpc_testing.h"

#define H2S_CONNS   40
#define H2S_STREAMS 1024

struct h2s_stream {
	int32_t id;
	char method[16], path[128], auth[64], extra[64];
	struct strbuf in, out;
	bool eof, answered, reset;
	uint32_t reset_code;
};

struct h2s_conn {
	int fd; /* -1: closed */
	SSL *ssl;
	nghttp2_session *session; /* NULL: the handshake is under way, or bytes are the test's */
	struct strbuf out;
	struct h2s_stream *streams[H2S_STREAMS];
	unsigned n_streams;
	unsigned n_open, max_open;
	bool mute; /* reads and says nothing */
	unsigned n_pings;
};

static struct h2s {
	int listener, port;
	SSL_CTX *ctx;
	const char *alpn;             /* what it chooses; NULL: nothing */
	uint32_t max_streams, window; /* announced; 0: not */
	bool rejects;                 /* GOAWAY is the second thing it says */
	struct h2s_conn *conns[H2S_CONNS];
	unsigned n_conns, n_reqs, n_resets;
	struct strbuf *record; /* what is said, when wanted */
} h2s;

static struct h2c *h2;

/* ---- nghttp2's side */

static inline ssize_t h2s_read_out(nghttp2_session *s, int32_t id, uint8_t *buf, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2s_stream *st = source->ptr;
	size_t n = st->out.len < max ? st->out.len : max;

	if (n)
		memcpy(buf, st->out.data, n);
	strbuf_drop(&st->out, n);
	if (!st->out.len && st->eof)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return n || st->eof ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
}

static inline void h2s_head(struct h2s_conn *c, struct h2s_stream *st, const char *status,
	const char *name, const char *value)
{
	nghttp2_nv nv[2] = {{(uint8_t *)":status", (uint8_t *)status, 7, strlen(status), 0},
		{(uint8_t *)name, (uint8_t *)value, name ? strlen(name) : 0,
			value ? strlen(value) : 0, 0}};
	nghttp2_data_provider body = {.source.ptr = st, .read_callback = h2s_read_out};

	st->answered = true;
	cr_assert_eq(nghttp2_submit_response(c->session, st->id, nv, name ? 2 : 1, &body), 0);
}

static inline void h2s_say(struct h2s_conn *c, struct h2s_stream *st, const char *text, bool end)
{
	strbuf_adds(&st->out, text);
	st->eof = end;
	(void)nghttp2_session_resume_data(c->session, st->id);
}

static inline void h2s_answer(struct h2s_conn *c, struct h2s_stream *st)
{
	const char *p = st->path;

	if (str_starts(p, "/hang"))
		return;
	if (str_starts(p, "/rst/")) {
		nghttp2_submit_rst_stream(c->session, 0, st->id, (uint32_t)atoi(p + 5));
		return;
	}
	if (str_starts(p, "/stream")) {
		h2s_head(c, st, "200", "content-type", "application/json");
		return;
	}
	if (str_starts(p, "/status/"))
		h2s_head(c, st, p + 8, "retry-after", "7");
	else if (str_starts(p, "/echo"))
		h2s_head(c, st, "201", "content-type", "application/json");
	else
		h2s_head(c, st, "200", "content-type", "text/plain");
	if (str_starts(p, "/echo"))
		strbuf_add(&st->out, strbuf_str(&st->in), st->in.len);
	else if (str_starts(p, "/big/"))
		for (long i = atol(p + 5); i > 0; i -= 1000)
			strbuf_addf(&st->out, "%1000ld", i);
	else
		strbuf_adds(&st->out, "ok");
	st->eof = true;
}

static inline int h2s_on_begin(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct h2s_conn *c = arg;
	struct h2s_stream *st = xcalloc(1, sizeof(*st));

	cr_assert(c->n_streams < H2S_STREAMS);
	st->id = f->hd.stream_id;
	c->streams[c->n_streams++] = st;
	nghttp2_session_set_stream_user_data(s, st->id, st);
	h2s.n_reqs++;
	if (++c->n_open > c->max_open)
		c->max_open = c->n_open;
	return 0;
}

static inline void h2s_keep(char *out, size_t cap, const uint8_t *v, size_t len)
{
	snprintf(out, cap, "%.*s", (int)len, v);
}

static inline int h2s_on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
	size_t name_len, const uint8_t *v, size_t len, uint8_t flags, void *arg)
{
	struct h2s_stream *st = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);

	if (strcmp((const char *)name, ":path") == 0)
		h2s_keep(st->path, sizeof(st->path), v, len);
	else if (strcmp((const char *)name, ":method") == 0)
		h2s_keep(st->method, sizeof(st->method), v, len);
	else if (strcmp((const char *)name, "authorization") == 0)
		h2s_keep(st->auth, sizeof(st->auth), v, len);
	else if (strcmp((const char *)name, "x-extra") == 0)
		h2s_keep(st->extra, sizeof(st->extra), v, len);
	return 0;
}

static inline int h2s_on_data(
	nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *arg)
{
	struct h2s_stream *st = nghttp2_session_get_stream_user_data(s, id);

	strbuf_add(&st->in, data, len);
	return 0;
}

static inline int h2s_on_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	struct h2s_conn *c = arg;
	struct h2s_stream *st =
		f->hd.stream_id ? nghttp2_session_get_stream_user_data(s, f->hd.stream_id) : NULL;

	if (f->hd.type == NGHTTP2_PING && !(f->hd.flags & NGHTTP2_FLAG_ACK))
		c->n_pings++;
	if (f->hd.type == NGHTTP2_RST_STREAM && st) {
		st->reset = true;
		st->reset_code = f->rst_stream.error_code;
		h2s.n_resets++;
	}
	if (st && (f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA) &&
		f->hd.flags & NGHTTP2_FLAG_END_STREAM)
		h2s_answer(c, st);
	return 0;
}

static inline int h2s_on_close(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	struct h2s_conn *c = arg;

	c->n_open--;
	return 0;
}

static inline void h2s_session(struct h2s_conn *c)
{
	nghttp2_session_callbacks *cb;
	nghttp2_settings_entry iv[2];
	size_t n = 0;

	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, h2s_on_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, h2s_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, h2s_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, h2s_on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, h2s_on_close);
	cr_assert_eq(nghttp2_session_server_new(&c->session, cb, c), 0);
	nghttp2_session_callbacks_del(cb);
	if (h2s.max_streams)
		iv[n++] = (nghttp2_settings_entry){
			NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, h2s.max_streams};
	if (h2s.window)
		iv[n++] =
			(nghttp2_settings_entry){NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, h2s.window};
	cr_assert_eq(nghttp2_submit_settings(c->session, 0, iv, n), 0);
	if (h2s.rejects)
		nghttp2_submit_goaway(c->session, 0, 0, NGHTTP2_NO_ERROR, NULL, 0);
}

/* ---- sockets */

static inline struct h2s_conn *h2s_conn(int fd)
{
	struct h2s_conn *c = xcalloc(1, sizeof(*c));

	cr_assert(h2s.n_conns < H2S_CONNS);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	c->fd = fd;
	h2s.conns[h2s.n_conns++] = c;
	return c;
}

static inline void h2s_close(struct h2s_conn *c)
{
	if (c->fd < 0)
		return;
	SSL_free(c->ssl);
	close(c->fd);
	nghttp2_session_del(c->session);
	c->ssl = NULL;
	c->session = NULL;
	c->fd = -1;
}

static inline int h2s_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	if (!h2s.alpn)
		return SSL_TLSEXT_ERR_NOACK;
	*out = (const unsigned char *)h2s.alpn;
	*len = (unsigned char)strlen(h2s.alpn);
	return SSL_TLSEXT_ERR_OK;
}

static inline void h2s_accept(void)
{
	int fd = accept(h2s.listener, NULL, NULL);
	struct h2s_conn *c;

	if (fd < 0)
		return;
	c = h2s_conn(fd);
	c->ssl = SSL_new(h2s.ctx);
	SSL_set_fd(c->ssl, fd);
	SSL_set_accept_state(c->ssl);
}

static inline void h2s_flush(struct h2s_conn *c)
{
	while (c->out.len) {
		int n = c->ssl ? SSL_write(c->ssl, c->out.data, (int)c->out.len)
			       : (int)send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		if (h2s.record)
			strbuf_add(h2s.record, c->out.data, (size_t)n);
		strbuf_drop(&c->out, (size_t)n);
	}
}

/* What the client sent, and what is to be said. */
static inline void h2s_serve(struct h2s_conn *c)
{
	const uint8_t *data;
	char buf[16384];
	ssize_t n;

	if (c->fd < 0)
		return;
	if (c->ssl && !SSL_is_init_finished(c->ssl)) {
		const unsigned char *proto;
		unsigned len;

		ERR_clear_error();
		if (SSL_do_handshake(c->ssl) != 1)
			return;
		SSL_get0_alpn_selected(c->ssl, &proto, &len);
		if (len == 2)
			h2s_session(c);
	}
	for (;;) {
		struct io io = {.fd = c->fd, .ssl = c->ssl};

		ERR_clear_error();
		n = io_read(&io, buf, sizeof(buf));
		if (n <= 0)
			break;
		if (c->session && !c->mute &&
			nghttp2_session_mem_recv(c->session, (uint8_t *)buf, (size_t)n) < 0) {
			h2s_close(c);
			return;
		}
	}
	if (n == 0 && (!c->ssl || SSL_get_shutdown(c->ssl))) {
		h2s_close(c);
		return;
	}
	while (c->session && !c->mute && c->out.len < 65536 &&
		(n = nghttp2_session_mem_send(c->session, &data)) > 0)
		strbuf_add(&c->out, data, (size_t)n);
	h2s_flush(c);
}

static inline void h2s_turn(void)
{
	loop_turn(l, 0);
	if (h2s.listener >= 0)
		h2s_accept();
	for (unsigned i = 0; i < h2s.n_conns; i++)
		h2s_serve(h2s.conns[i]);
}

/* Turns until *flag, or until nothing can happen any more. */
static inline void h2s_until(const bool *flag)
{
	for (unsigned i = 0; i < 100000 && !*flag; i++)
		h2s_turn();
	cr_assert(*flag, "nothing happened in 100,000 turns");
}

static inline void h2s_turns(unsigned n)
{
	while (n--)
		h2s_turn();
}

/* A connection that needs neither TLS nor dialling; raw: the test writes the server's bytes. */
static inline struct h2s_conn *h2s_plain(bool raw)
{
	struct h2s_conn *c;
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	fcntl(fd[0], F_SETFL, O_NONBLOCK);
	c = h2s_conn(fd[1]);
	if (!raw)
		h2s_session(c);
	h2c_adopt(h2, "http://test", fd[0]);
	return c;
}

static inline void h2s_setup(void)
{
	memset(&h2s, 0, sizeof(h2s));
	h2s.listener = -1;
	h2s.alpn = "h2";
	clock_fake_start(1000000, 1700000000);
	setup_client();
	h2 = h2c_new(l, c);
}

static inline void h2s_listen(const struct pair *leaf, const struct pair *client_ca)
{
	h2s.listener = listen_any(&h2s.port, 64);
	fcntl(h2s.listener, F_SETFL, O_NONBLOCK);
	h2s.ctx = server_ctx(leaf, client_ca);
	SSL_CTX_set_alpn_select_cb(h2s.ctx, h2s_alpn, NULL);
	SSL_CTX_set_mode(
		h2s.ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static inline void h2s_teardown(void)
{
	op_scope_cancel(&ops);
	h2c_free(h2);
	for (unsigned i = 0; i < h2s.n_conns; i++) {
		struct h2s_conn *k = h2s.conns[i];

		h2s_close(k);
		for (unsigned j = 0; j < k->n_streams; j++) {
			strbuf_fini(&k->streams[j]->in);
			strbuf_fini(&k->streams[j]->out);
			free(k->streams[j]);
		}
		strbuf_fini(&k->out);
		free(k);
	}
	if (h2s.listener >= 0)
		close(h2s.listener);
	SSL_CTX_free(h2s.ctx);
	teardown_client();
	clock_fake_stop();
}

/* ---- requests */

static inline void h2_send(struct httpc_request *req, bool stream, struct res *r)
{
	struct op *op;

	if (!req->method)
		req->method = "GET";
	op = h2c_start(h2, &ops, req, stream ? on_data : NULL, on_done, r);
	cr_assert_not(r->done, "done before the call returned");
	(void)op_hold(&r->op, op);
}

/* To the plain server, or to the one with TLS. */
static inline void h2_get(const char *path, struct httpc_tls *tls, bool stream, struct res *r)
{
	char url[256];
	struct httpc_request req = {.url = url, .tls = tls, .stream = stream};

	if (tls)
		snprintf(url, sizeof(url), "https://127.0.0.1:%d%s", h2s.port, path);
	else
		snprintf(url, sizeof(url), "http://test%s", path);
	h2_send(&req, stream, r);
}

#endif
