/* SPDX-License-Identifier: MIT */
/*
 * The first byte chooses: a reference, a mirror, where a redirect leads, or docker's credentials
 * JSON. What is accepted holds nothing that could change a URL's meaning, and parses to itself when
 * it is put together again; no secret is left behind.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <strings.h>

#include "tec/base/str.h"
#include "tec/oci/auth.h"
#include "tec/oci/redirect.h"
#include "tec/oci/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_plain(const char *s)
{
	assert(*s);
	for (; *s; s++)
		assert((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			(*s >= '0' && *s <= '9') || strchr("._-:/[]", *s));
}

static void try_ref(const char *text)
{
	struct oci_ref r, again;
	struct err err = ERR_INIT;

	if (oci_ref_parse(text, &r, &err) != 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert_plain(r.registry);
	assert_plain(r.repository);
	assert(!strchr(r.registry, '/') && !strpbrk(r.repository, ":[]") &&
		!strstr(r.repository, ".."));
	assert(oci_digest_valid(r.digest, strlen(r.digest)));
	cleanup_free char *whole = xasprintf("%s/%s@%s", r.registry, r.repository, r.digest);
	/* A host without a dot, a colon or "localhost" is one by its capital letters only. */
	if (!strpbrk(r.registry, ".:") && !str_eq(r.registry, "localhost"))
		return;
	if (oci_ref_parse(whole, &again, &err) != 0)
		assert(!"the normal form is refused");
	assert(str_eq(r.registry, again.registry) && str_eq(r.repository, again.repository) &&
		str_eq(r.digest, again.digest));
}

static void try_mirror(const char *text)
{
	struct oci_mirror m;
	struct err err = ERR_INIT;

	if (oci_mirror_parse(text, &m, &err) != 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert_plain(m.registry);
	assert_plain(m.host);
	if (*m.prefix)
		assert_plain(m.prefix);
}

/* Plain http never leaves the two hosts that may be spoken to so, whatever the text is. */
static void try_redirect(const char *to)
{
	static const char *const insecure[] = {"plain.test:5000"};
	static const char base[] = "http://own.test/v2/a/b";
	const struct oci_place p = {.base = base, .insecure = insecure, .n_insecure = 1};
	const struct oci_place tls = {
		.base = "https://own.test/v2/a/b", .insecure = insecure, .n_insecure = 1};
	struct err err = ERR_INIT;
	size_t n;

	if (oci_redirect_check(&tls, tls.base, to, &err) == 0)
		assert(oci_is_https(to));
	err_clear(&err);
	if (oci_redirect_check(&p, base, to, &err) != 0) {
		assert(err.kind == ERR_DENIED);
		return;
	}
	assert(oci_same_origin(to, base) || oci_redirect_reach(&p, to) == ADDR_REACH(ADDR_PUBLIC));
	if (oci_is_https(to))
		return;
	assert(strncasecmp(to, "http://", 7) == 0);
	n = strcspn(to + 7, "/?#");
	assert((n == 8 && strncasecmp(to + 7, "own.test", n) == 0) ||
		(n == 15 && strncasecmp(to + 7, "plain.test:5000", n) == 0));
}

/* A credential is found again, unchanged, in the configuration that holds it alone. */
static void try_alone(const struct oci_cred *c)
{
	struct err err = ERR_INIT;
	cleanup_secret struct secret *one = oci_cred_config(c, "quay.io", "a/b", &err);
	const struct secret *const configs[] = {one};
	cleanup_oci_cred struct oci_cred *again = NULL;

	if (!one) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	if (oci_cred_find(configs, 1, "quay.io", "a/b", &again, &err) != 0)
		assert(!"what was made is refused");
	assert(again && !again->basic == !c->basic);
	assert(secret_equal(
		again->basic ? again->basic : again->identity, c->basic ? c->basic : c->identity));
}

static void try_config(const uint8_t *data, size_t size)
{
	struct secret *s = secret_new_copy(data, size);
	const struct secret *configs[] = {s};
	struct oci_cred *c = NULL;
	struct err err = ERR_INIT;

	if (oci_cred_find(configs, 1, "quay.io", "a/b", &c, &err) != 0)
		assert(!c && err.kind == ERR_INVALID);
	else if (c)
		assert(!c->basic != !c->identity);
	if (c)
		try_alone(c);
	oci_cred_free(c);
	secret_free(s);
	assert(secret_count() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > SECRET_MAX_LEN)
		return 0;
	cleanup_free char *text = xmemdup(data + 1, size - 1);

	if (data[0] == 'C')
		try_config(data + 1, size - 1);
	else if (data[0] == 'R')
		try_redirect(text);
	else if (data[0] == 'M')
		try_mirror(text);
	else
		try_ref(text);
	return 0;
}
