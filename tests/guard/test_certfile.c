/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "net/net_testing.h"

#include "tec/base/clock.h"
#include "tec/base/metric.h"
#include "tec/guard/certfile.h"

struct place {
	struct loop *loop;
	struct httpd *listeners[GUARD_CERTFILE_LISTENERS];
	char dir[32], cert[64], key[64];
};

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

static void put_pair(struct place *p, long serial)
{
	struct testing_pem pem = testing_make_pem(serial, 3600);

	put(p->cert, pem.cert);
	put(p->key, pem.key);
	testing_pem_fini(&pem);
}

static void place_init(struct place *p)
{
	struct httpd_conf conf = httpd_conf_default;
	struct err err = ERR_INIT;

	strcpy(p->dir, "/tmp/tec-cert-XXXXXX");
	cr_assert(mkdtemp(p->dir));
	snprintf(p->cert, sizeof(p->cert), "%s/tls.crt", p->dir);
	snprintf(p->key, sizeof(p->key), "%s/tls.key", p->dir);
	p->loop = loop_new();
	conf.name = "test";
	for (size_t i = 0; i < GUARD_CERTFILE_LISTENERS; i++) {
		p->listeners[i] = httpd_new(p->loop, &conf);
		cr_assert_eq(httpd_listen(p->listeners[i], "127.0.0.1:0", &err), 0);
	}
}

static void place_fini(struct place *p)
{
	unlink(p->cert);
	unlink(p->key);
	rmdir(p->dir);
	for (size_t i = 0; i < GUARD_CERTFILE_LISTENERS; i++)
		httpd_free(p->listeners[i]);
	loop_free(p->loop);
	metric_reset_all();
}

/* Serial number of what the i-th listener shows; 0: no TLS. */
static long serial_of(struct place *p, size_t i)
{
	struct cli c = cli_open(p->loop, httpd_port(p->listeners[i]));
	long serial = 0;

	if (cli_handshake(&c, TLS1_3_VERSION, TLS1_3_VERSION, NULL)) {
		X509 *x = SSL_get1_peer_certificate(c.ssl);

		serial = ASN1_INTEGER_get(X509_get0_serialNumber(x));
		X509_free(x);
	}
	cli_close(&c);
	loop_drain(p->loop);
	return serial;
}

static void expect_both(struct place *p, long serial)
{
	for (size_t i = 0; i < GUARD_CERTFILE_LISTENERS; i++)
		cr_expect_eq(serial_of(p, i), serial, "listener %zu", i);
}

Test(guard_certfile, a_new_pair_is_used_and_a_bad_one_is_not)
{
	struct place p;
	struct guard_certfile *c;
	struct err err = ERR_INIT;

	place_init(&p);
	put_pair(&p, 11);
	c = guard_certfile_new(p.loop, p.cert, p.key, p.listeners, &err);
	cr_assert(c, "%s", err.text);
	expect_both(&p, 11);
	put_pair(&p, 12);
	guard_certfile_reload(c);
	expect_both(&p, 12);
	put(p.key, "garbage");
	guard_certfile_reload(c);
	expect_both(&p, 12);
	unlink(p.cert);
	guard_certfile_reload(c);
	expect_both(&p, 12);
	put_pair(&p, 13);
	guard_certfile_reload(c);
	expect_both(&p, 13);
	guard_certfile_free(c);
	place_fini(&p);
}

Test(guard_certfile, looks_again_by_itself)
{
	struct place p;
	struct guard_certfile *c;
	struct err err = ERR_INIT;

	clock_fake_start(1000000, 1700000000);
	place_init(&p);
	put_pair(&p, 1);
	c = guard_certfile_new(p.loop, p.cert, p.key, p.listeners, &err);
	put_pair(&p, 2);
	loop_advance(p.loop, 10000);
	clock_fake_stop();
	expect_both(&p, 2);
	guard_certfile_free(c);
	place_fini(&p);
}

Test(guard_certfile, does_not_start_with_files_that_cannot_be_used)
{
	struct place p;
	struct err err = ERR_INIT, again = ERR_INIT;

	place_init(&p);
	cr_expect_null(guard_certfile_new(p.loop, p.cert, p.key, p.listeners, &err));
	put_pair(&p, 1);
	put(p.key, "");
	cr_expect_null(guard_certfile_new(p.loop, p.cert, p.key, p.listeners, &again));
	cr_expect(strstr(again.text, p.cert), "%s", again.text);
	place_fini(&p);
}
