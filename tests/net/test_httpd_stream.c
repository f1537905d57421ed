/* SPDX-License-Identifier: MIT */
/* Replies of unknown length, and who the client is. */
#include "config.h"

#include "httpd_fixture.h"

#include "tec/pki/cert.h"

static struct httpd_req *streaming;
static unsigned drained, ended;

static void on_drained(void *arg)
{
	drained++;
}

static void stream_gone(void *arg)
{
	streaming = NULL;
	ended++;
}

static void on_stream(struct httpd_req *req, void *arg)
{
	httpd_stream_start(req, 200, "text/plain", on_drained, arg);
	httpd_req_on_gone(req, stream_gone, arg);
	streaming = req;
}

static void on_who(struct httpd_req *req, void *arg)
{
	static const char *const states[] = {"none", "ok", "bad"};
	struct tls_client who = {.n_orgs = 0};
	enum tls_client_state state = httpd_req_client(req, &who);
	cleanup_free char *text = xasprintf(
		"%s %s %zu %s", states[state], who.name, who.n_orgs, who.n_orgs ? who.orgs[0] : "");

	httpd_reply(req, 200, "text/plain", text, strlen(text));
}

static const struct httpd_route stream_routes[] = {
	{"/stream", HTTPD_GET, .fn = on_stream},
	{"/who", HTTPD_GET, .fn = on_who},
	{"/ping", HTTPD_GET, .fn = on_ping},
};

static void start(struct srv *s)
{
	srv_prepare(s);
	s->conf.routes = stream_routes;
	s->conf.n_routes = ARRAY_LEN(stream_routes);
	drained = ended = 0;
	streaming = NULL;
}

/* Turns until `want` is what has come. */
static bool comes(struct cli *c, const char *want)
{
	uint64_t begin = clock_boot_ms();

	while (c->in.len < strlen(want) && !c->eof && !cli_late(begin))
		cli_turn(c);
	if (c->in.len < strlen(want) || memcmp(c->in.data, want, strlen(want)) != 0) {
		cr_log_error("%s instead of %s", strbuf_str(&c->in), want);
		return false;
	}
	strbuf_drop(&c->in, strlen(want));
	return true;
}

static struct cli open_stream(struct srv *s, const char *request)
{
	struct cli c = srv_cli(s);
	uint64_t begin = clock_boot_ms();

	cli_send(&c, request);
	while (!streaming && !cli_late(begin))
		cli_turn(&c);
	cr_assert(streaming);
	return c;
}

static void pieces(bool tls)
{
	struct cli_reply r;
	struct srv s;
	struct cli c;

	start(&s);
	srv_listen(&s, tls);
	c = open_stream(&s, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	cr_assert(cli_reply(&c, &r, true));
	cr_expect_eq(r.status, 200);
	cr_expect_str_eq(cli_header(&r, "Transfer-Encoding"), "chunked");
	cr_expect_null(cli_header(&r, "Content-Length"));
	cli_reply_fini(&r);
	cr_expect_eq(httpd_stream_add(streaming, "one\n", 4), 0);
	cr_expect(comes(&c, "4\r\none\n\r\n"));
	cr_expect_eq(httpd_stream_add(streaming, "", 0), 0, "an empty piece is no end");
	cr_expect_eq(httpd_stream_add(streaming, "seventeen bytes!!", 17), 0);
	cr_expect(comes(&c, "11\r\nseventeen bytes!!\r\n"));
	httpd_stream_end(streaming);
	cr_expect_eq(ended, 1);
	cr_expect(comes(&c, "0\r\n\r\n"));
	cli_send(&c, GET_PING);
	cr_expect_eq(cli_status(&c), 200, "the connection goes on");
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_stream, pieces_come_as_they_are_added)
{
	pieces(false);
	pieces(true);
}

Test(net_httpd_stream, http10_gets_it_until_the_connections_end)
{
	struct cli_reply r;
	struct srv s;
	struct cli c;

	start(&s);
	srv_listen(&s, false);
	c = open_stream(&s, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	cr_assert(cli_reply(&c, &r, true));
	cr_expect_null(cli_header(&r, "Transfer-Encoding"));
	cr_expect_str_eq(cli_header(&r, "Connection"), "close");
	cli_reply_fini(&r);
	httpd_stream_add(streaming, "bytes", 5);
	httpd_stream_end(streaming);
	cr_expect(comes(&c, "bytes"));
	cr_expect(cli_wait_eof(&c));
	cr_expect_not(c.reset);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_stream, lasts_longer_than_a_request_may)
{
	struct srv s;
	struct cli c;

	start(&s);
	s.conf.request_ms = s.conf.idle_ms = 250;
	srv_listen(&s, false);
	c = open_stream(&s, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	for (uint64_t begin = clock_boot_ms(); clock_boot_ms() - begin < 600;)
		cli_turn(&c);
	cr_expect(streaming && !c.eof);
	cli_close(&c);
	for (uint64_t begin = clock_boot_ms(); streaming && !cli_late(begin);)
		loop_turn(s.loop, 1);
	cr_expect_eq(ended, 1, "a client that goes is noticed");
	srv_stop(&s);
}

/* Adds until the socket takes no more; the bytes that wait then. */
static size_t fill(struct srv *s, size_t *added)
{
	static char piece[65536];
	size_t waits = 0;
	unsigned same = 0;

	for (*added = 0; streaming && same < 20 && *added < ((size_t)64 << 20);) {
		size_t now = httpd_stream_add(streaming, "", 0);

		same = now == waits ? same + 1 : 0;
		waits = now;
		if (waits < sizeof(piece)) {
			waits = httpd_stream_add(streaming, piece, sizeof(piece));
			*added += sizeof(piece);
			same = 0;
		}
		loop_turn(s->loop, 1);
	}
	return waits;
}

static void stops_reading(bool tls)
{
	struct srv s;
	struct cli c;
	size_t added;

	start(&s);
	s.conf.idle_ms = 300;
	srv_listen(&s, tls);
	c = open_stream(&s, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	cr_expect_gt(fill(&s, &added), 0, "%zu bytes were taken", added);
	for (uint64_t begin = clock_boot_ms(); streaming && !cli_late(begin);)
		loop_turn(s.loop, 1);
	cr_expect_eq(ended, 1);
	cr_expect_eq(httpd_connections(s.h), 0);
	cli_close(&c);
	srv_stop(&s);
}

Test(net_httpd_stream, who_stops_reading_is_closed)
{
	stops_reading(false);
	stops_reading(true);
}

static void reads_slowly(bool tls)
{
	struct srv s;
	struct cli c;
	size_t added, got = 0;
	uint64_t begin;

	start(&s);
	s.conf.idle_ms = 3000;
	srv_listen(&s, tls);
	c = open_stream(&s, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	fill(&s, &added);
	drained = 0;
	begin = clock_boot_ms();
	while (!drained && streaming && !cli_late(begin)) {
		cli_turn(&c);
		got += c.in.len;
		strbuf_reset(&c.in);
	}
	cr_expect_eq(drained, 1);
	cr_expect_eq(ended, 0);
	cr_expect_gt(got, 0);
	cli_close(&c);
	loop_drain(s.loop);
	srv_stop(&s);
}

Test(net_httpd_stream, who_reads_on_is_told_about)
{
	reads_slowly(false);
	reads_slowly(true);
}

Test(net_httpd_stream, free_ends_streams)
{
	struct srv s;
	struct cli c;

	start(&s);
	srv_listen(&s, false);
	c = open_stream(&s, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	cr_expect_eq(httpd_in_flight(s.h), 1);
	httpd_drain(s.h);
	cr_expect_eq(ended, 0, "its owner ends it");
	srv_stop(&s);
	cr_expect_eq(ended, 1);
	cli_close(&c);
}

/* ---- client certificates */

struct issued {
	struct strbuf pem;
	struct pki_key *key;
};

static struct issued issue(const struct pki_issue *what, const struct issued *ca)
{
	struct issued i = {STRBUF_INIT, pki_key_new_p256()};
	struct err err = ERR_INIT;

	cr_assert_eq(pki_issue(what, i.key, ca ? ca->key : i.key, ca ? ca->pem.data : NULL, &i.pem,
			     &err),
		0, "%s", err.text);
	return i;
}

static void issued_fini(struct issued *i)
{
	strbuf_fini(&i->pem);
	pki_key_free(i->key);
}

/* The same, which does not say what it is for: as a CA's tool makes it that was told nothing. */
static struct issued without_use(const struct pki_issue *what, const struct issued *ca)
{
	struct issued i = issue(what, ca);
	BIO *bio = BIO_new_mem_buf(i.pem.data, (int)i.pem.len), *out = BIO_new(BIO_s_mem());
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	char *text;
	long len;

	X509_EXTENSION_free(
		X509_delete_ext(cert, X509_get_ext_by_NID(cert, NID_ext_key_usage, -1)));
	cr_assert(X509_sign(cert, pki_key_evp(ca->key), EVP_sha256()) > 0);
	PEM_write_bio_X509(out, cert);
	len = BIO_get_mem_data(out, &text);
	strbuf_reset(&i.pem);
	strbuf_add(&i.pem, text, (size_t)len);
	X509_free(cert);
	BIO_free(bio);
	BIO_free(out);
	return i;
}

/* As cli_handshake(), with this certificate. */
static bool shake(struct cli *c, const struct issued *as)
{
	BIO *bio = BIO_new_mem_buf(as->pem.data, (int)as->pem.len);
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	uint64_t begin = clock_boot_ms();
	int rc = 0;

	BIO_free(bio);
	c->ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_use_certificate(c->ctx, cert);
	SSL_CTX_use_PrivateKey(c->ctx, pki_key_evp(as->key));
	X509_free(cert);
	c->ssl = SSL_new(c->ctx);
	SSL_set_fd(c->ssl, c->fd);
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	while ((rc = SSL_connect(c->ssl)) != 1 && !cli_late(begin)) {
		ERR_clear_error();
		loop_turn(c->loop, 1);
	}
	return rc == 1;
}

static void says(struct srv *s, const struct issued *as, const char *want)
{
	struct cli c = as ? cli_open(s->loop, httpd_port(s->h)) : srv_cli(s);
	struct cli_reply r;

	if (as)
		cr_assert(shake(&c, as), "%s", want);
	cli_send(&c, "GET /who HTTP/1.1\r\n" HOST "\r\n");
	cr_assert(cli_reply(&c, &r, false), "%s", want);
	cr_expect_str_eq(r.body, want);
	cli_reply_fini(&r);
	cli_close(&c);
}

Test(net_httpd_stream, the_handler_learns_who_the_client_is)
{
	int64_t now = clock_wall_s();
	struct pki_issue as_ca = {PKI_ISSUE_CA, "CA", NULL, NULL, now, 10};
	struct pki_issue client = {PKI_ISSUE_CLIENT, "admin", "system:masters", NULL, now, 10};
	struct pki_issue server = {PKI_ISSUE_SERVER, "admin", "system:masters", NULL, now, 10};
	struct pki_issue old = {PKI_ISSUE_CLIENT, "admin", "o", NULL, now - 20 * 86400, 10};
	struct issued ca = issue(&as_ca, NULL), other = issue(&as_ca, NULL);
	struct issued good = issue(&client, &ca), foreign = issue(&client, &other),
		      wrong = issue(&server, &ca), expired = issue(&old, &ca),
		      useless = without_use(&client, &ca);
	struct err err = ERR_INIT;
	struct srv s;

	start(&s);
	srv_listen(&s, true);
	says(&s, &good, "none  0 "); /* not asked for */
	cr_assert_eq(tls_ctx_ask_clients(s.tls, ca.pem.data, ca.pem.len, &err), 0, "%s", err.text);
	says(&s, NULL, "none  0 ");
	says(&s, &good, "ok admin 1 system:masters");
	says(&s, &foreign, "bad  0 ");
	says(&s, &wrong, "bad  0 ");
	says(&s, &expired, "bad  0 ");
	says(&s, &useless, "bad  0 ");
	srv_stop(&s);
	issued_fini(&ca);
	issued_fini(&other);
	issued_fini(&good);
	issued_fini(&foreign);
	issued_fini(&wrong);
	issued_fini(&expired);
	issued_fini(&useless);
}
