/* SPDX-License-Identifier: MIT */
/*
 * The first byte chooses: a reference, a mirror, or docker's credentials JSON. What is accepted
 * holds nothing that could change a URL's meaning, and parses to itself when it is put together
 * again; no secret is left behind.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/oci/auth.h"
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
	else if (data[0] == 'M')
		try_mirror(text);
	else
		try_ref(text);
	return 0;
}
