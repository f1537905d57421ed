/* SPDX-License-Identifier: MIT */
/* TLS Secrets that nodes can use, and what a test makes of them. */
#ifndef TEC_TESTS_CTL_PAIRS_H
#define TEC_TESTS_CTL_PAIRS_H

#include <criterion/criterion.h>
#include <string.h>

#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"
#include "tec/pki/key.h"

struct pair {
	char *crt, *key;
};

static inline char *padded(const void *text, size_t len)
{
	cleanup_free char *s = xstrndup(text, len);

	return xasprintf("%s%.*s", s, (int)((3 - len % 3) % 3), "\n\n");
}

/* A certificate for kbs-service that is its own CA, and its key; the same for the same number. Both
 * have a length without padding in base64. */
static inline const struct pair *pair(int which)
{
	static struct pair made[2];
	struct pair *p = &made[which];
	cleanup_pki_key struct pki_key *key = p->crt ? NULL : pki_key_new_p256();
	cleanup_secret struct secret *pem = key ? pki_key_private_pem(key) : NULL;
	cleanup_strbuf struct strbuf cert = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (!key)
		return p;
	cr_assert_eq(
		pki_cert_self_signed(key, "kbs-service", clock_wall_s(), 3650, &cert, &err), 0);
	p->crt = padded(cert.data, cert.len);
	p->key = padded(secret_peek(pem), secret_len(pem));
	return p;
}

static inline void pair_put(
	struct world *w, const char *name, const char *crt, const char *key, const char *ca)
{
	const char *const texts[] = {crt, key, ca};
	struct strbuf b64[3] = {STRBUF_INIT, STRBUF_INIT, STRBUF_INIT};
	cleanup_free char *text = NULL;

	for (int i = 0; i < 3; i++)
		bytes_to_b64(&b64[i], texts[i], strlen(texts[i]));
	text = xasprintf("{\"metadata\":{\"name\":\"%s\"},\"type\":\"kubernetes.io/tls\",\"data\":{"
			 "\"tls.crt\":\"%s\",\"tls.key\":\"%s\",\"ca.crt\":\"%s\"}}",
		name, strbuf_str(&b64[0]), strbuf_str(&b64[1]), strbuf_str(&b64[2]));
	fake_api_put(w->api, &kobj_secret, NS, text);
	for (int i = 0; i < 3; i++)
		strbuf_fini(&b64[i]);
}

#endif
