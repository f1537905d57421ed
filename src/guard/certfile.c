/* SPDX-License-Identifier: MIT */
/*
 * Reads and hashes both files on each look; a pair with the hash of the last one read, usable or
 * not, is ignored. Reading two small local files does not block the loop noticeably, and a
 * directory watch would miss a volume mounted over it.
 */
#include "config.h"

#include "tec/guard/certfile.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"

#define EVERY_MS 10000
#define FILE_MAX 65536

/* Watches one pair of files for both listeners. */
struct guard_certfile {
	char *cert_path, *key_path;
	struct httpd *listeners[GUARD_CERTFILE_LISTENERS];
	uint8_t seen[SHA256_LEN]; /* of the last pair read, usable or not */
	struct timer next;
};

/* 0: nothing changed, or the new pair is in use. A read error is hashed as well, so that each
 * failure is reported once. */
static int load(struct guard_certfile *c, struct err *err)
{
	size_t cert_len = 0, key_len = 0;
	cleanup_free char *cert = file_read(c->cert_path, FILE_MAX, &cert_len, NULL, err);
	char *key = cert ? file_read(c->key_path, FILE_MAX, &key_len, NULL, err) : NULL;
	cleanup_tls_ctx struct tls_ctx *tls = NULL;
	cleanup_sha256 struct bytes_sha256_run run;
	uint8_t digest[SHA256_LEN];

	bytes_sha256_init(&run);
	if (key) {
		bytes_sha256_add(&run, cert, cert_len);
		bytes_sha256_add(&run, key, key_len);
	} else {
		bytes_sha256_add(&run, err->text, strlen(err->text));
	}
	bytes_sha256_end(&run, digest);
	/* Unchanged: the pair is in use already, or its failure was reported already. */
	if (memcmp(digest, c->seen, SHA256_LEN) == 0) {
		file_wipe(key, key_len);
		err_clear(err);
		return 0;
	}
	memcpy(c->seen, digest, SHA256_LEN);
	if (key)
		tls = tls_ctx_new(cert, cert_len, key, key_len, err);
	file_wipe(key, key_len);
	if (!tls)
		return err_wrap(err, "%s, %s", c->cert_path, c->key_path);
	for (size_t i = 0; i < GUARD_CERTFILE_LISTENERS; i++)
		httpd_set_tls(c->listeners[i], tls);
	log_info(NULL, "certificate in use", "file=%s not_after=%lld", log_esc(c->cert_path),
		(long long)tls_ctx_not_after(tls));
	return 0;
}

static void on_time(void *arg)
{
	guard_certfile_reload(arg);
}

/* At the start there is no earlier pair to keep, so the first failure is the caller's. */
struct guard_certfile *guard_certfile_new(struct loop *l, const char *cert_path,
	const char *key_path, struct httpd *const listeners[GUARD_CERTFILE_LISTENERS],
	struct err *err)
{
	struct guard_certfile *c = xcalloc(1, sizeof(*c));

	c->cert_path = xstrdup(cert_path);
	c->key_path = xstrdup(key_path);
	memcpy(c->listeners, listeners, sizeof(c->listeners));
	timer_init(&c->next, l, on_time, c);
	if (load(c, err) < 0) {
		guard_certfile_free(c);
		return NULL;
	}
	timer_set(&c->next, EVERY_MS);
	return c;
}

void guard_certfile_free(struct guard_certfile *c)
{
	if (!c)
		return;
	timer_fini(&c->next);
	free(c->cert_path);
	free(c->key_path);
	free(c);
}

/* Also called on SIGHUP; restarts the interval. */
void guard_certfile_reload(struct guard_certfile *c)
{
	struct err err = ERR_INIT;

	if (load(c, &err) < 0)
		log_err(LOG_ERROR, NULL, "cannot reload the certificate, keeping the current one",
			&err);
	timer_set(&c->next, EVERY_MS);
}
