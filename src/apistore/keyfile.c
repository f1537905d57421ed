/* SPDX-License-Identifier: MIT */
/* Key files are sealed with a subkey of the sealing key that is used for nothing else. */
#include "config.h"

#include "tec/apistore/keyfile.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/seal.h"

#define PURPOSE "key-file"

static const char head[] = "tec-operator: a private key, sealed under the sealing key (1)\n";
#define HEAD_LEN (sizeof(head) - 1)

/* Compute the associated data of a file: its format line and its name. */
static void bind(const struct secret *key, const char *name, uint8_t out[SEAL_TAG_LEN])
{
	const struct seal_part parts[] = {{head, HEAD_LEN}, {name, strlen(name)}};

	seal_tag(key, parts, ARRAY_LEN(parts), out);
}

bool apistore_keyfile_is_sealed(const char *text, size_t len)
{
	return len >= HEAD_LEN && memcmp(text, head, HEAD_LEN) == 0;
}

/* The format line is outside of the sealed part, so that a person who opens the file learns what it
 * is. */
char *apistore_keyfile_seal(
	const struct secret *sealing_key, const char *name, const struct secret *plain, size_t *len)
{
	cleanup_secret struct secret *key = seal_subkey(sealing_key, PURPOSE);
	cleanup_free uint8_t *sealed = NULL;
	uint8_t bound[SEAL_TAG_LEN];
	char *out;

	bind(key, name, bound);
	sealed = seal_bytes(key, bound, secret_peek(plain), secret_len(plain));
	*len = HEAD_LEN + secret_len(plain) + SEAL_OVERHEAD;
	out = xmalloc(*len);
	memcpy(out, head, HEAD_LEN);
	memcpy(out + HEAD_LEN, sealed, *len - HEAD_LEN);
	return out;
}

/* The length is checked first: an empty key file would give an empty key. */
struct secret *apistore_keyfile_open(
	const struct secret *sealing_key, const char *name, const char *text, size_t len)
{
	cleanup_secret struct secret *key = NULL, *plain = NULL;
	uint8_t bound[SEAL_TAG_LEN];

	if (!apistore_keyfile_is_sealed(text, len) || len <= HEAD_LEN + SEAL_OVERHEAD)
		return NULL;
	key = seal_subkey(sealing_key, PURPOSE);
	plain = secret_new(len - HEAD_LEN - SEAL_OVERHEAD);
	bind(key, name, bound);
	if (seal_open(key, bound, text + HEAD_LEN, len - HEAD_LEN, secret_bytes(plain)) < 0)
		return NULL;
	return steal_ptr(&plain);
}
