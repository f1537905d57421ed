/* SPDX-License-Identifier: MIT */
/*
 * What a registry sends; the first byte chooses: M an index or manifest, L a configuration and its
 * label, W a WWW-Authenticate header, T a token server's answer. What is accepted is inside its
 * bounds, what is refused is ERR_INVALID, and a token never holds what could end a header.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/oci/auth.h"
#include "tec/oci/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_manifest(const char *text, size_t len)
{
	struct oci_manifest m;
	struct err err = ERR_INIT;

	if (oci_manifest_parse(text, len, "linux", "amd64", &m, &err) != 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert(oci_digest_valid(m.next.digest, strlen(m.next.digest)));
	assert(m.next.size >= 1 && m.next.size <= (m.index ? OCI_MANIFEST_MAX : OCI_CONFIG_MAX));
}

static void try_layers(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_free struct oci_descriptor *layers = NULL;
	size_t n;

	if (oci_manifest_layers(text, len, &layers, &n, &err) != 0) {
		assert(err.kind == ERR_INVALID && !layers && !n);
		return;
	}
	assert(n >= 1 && n <= OCI_LAYERS_MAX);
	for (size_t i = 0; i < n; i++) {
		assert(oci_digest_valid(layers[i].digest, strlen(layers[i].digest)));
		assert(layers[i].size >= 1 && layers[i].size <= OCI_LAYER_MAX);
	}
}

static void try_label(const char *text, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_free char *value = NULL;
	size_t n;

	if (oci_config_label(text, len, "l", &value, &n, &err) == 0)
		assert(value ? strlen(value) == n && n < len : n == 0);
	else
		assert(err.kind == ERR_INVALID);
}

static void assert_printable(const char *s)
{
	for (; *s; s++)
		assert((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void try_challenge(const char *text, size_t len)
{
	struct oci_challenge c;
	struct err err = ERR_INIT;

	if (oci_challenge_parse(text, len, &c, &err) != 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert(c.bearer == (*c.realm != '\0'));
	assert(c.bearer || (!*c.service && !*c.scope));
	assert_printable(c.realm);
	assert_printable(c.service);
	assert_printable(c.scope);
}

static void try_token(const char *text, size_t len)
{
	struct oci_token t;
	struct err err = ERR_INIT;

	if (oci_token_parse(text, len, &t, &err) != 0) {
		assert(!t.token && err.kind == ERR_INVALID);
	} else {
		assert(t.valid_s >= 60 && t.valid_s <= 3600);
		assert_printable((const char *)secret_peek(t.token));
		assert(!strchr((const char *)secret_peek(t.token), ' '));
	}
	secret_free(t.token);
	assert(secret_count() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	/* Its own allocation of exactly that length: one byte too many is seen. */
	char *text = xmalloc(size - 1);

	memcpy(text, data + 1, size - 1);
	if (data[0] == 'W')
		try_challenge(text, size - 1);
	else if (data[0] == 'T')
		try_token(text, size - 1);
	else if (data[0] == 'L')
		try_label(text, size - 1);
	else {
		try_manifest(text, size - 1);
		try_layers(text, size - 1);
	}
	free(text);
	return 0;
}
