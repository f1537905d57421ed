/* SPDX-License-Identifier: MIT */
/*
 * Signature lists, .vendor_cert and .sbatlevel: the first byte chooses. What is read lies inside
 * the input; entries come in order, and a list that shim would write is one to our reader.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/measure/efivar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool inside(const uint8_t *part, size_t part_len, const uint8_t *p, size_t len)
{
	return part >= p && part_len <= len && (size_t)(part - p) <= len - part_len;
}

/* Whether it is a sequence of lists. */
static bool check_lists(const uint8_t *p, size_t len)
{
	struct efi_sig_pos pos = {0};
	struct err err = ERR_INIT;
	const uint8_t *end = p;
	struct efi_sig sig;

	while (efi_sig_next(p, len, &pos, &sig, &err)) {
		assert(inside(sig.with_owner, sig.with_owner_len, p, len));
		assert(sig.with_owner >= end && sig.data == sig.with_owner + 16);
		assert(sig.len == sig.with_owner_len - 16);
		end = sig.with_owner + sig.with_owner_len;
	}
	assert(!err_is_set(&err) || err.kind == ERR_INVALID);
	return !err_is_set(&err);
}

static void check_vendor(const uint8_t *p, size_t len)
{
	cleanup_strbuf struct strbuf mok = STRBUF_INIT, mokx = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct shim_vendor v;

	if (shim_vendor_read(p, len, &v, &err) < 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert(inside(v.auth, v.auth_len, p, len) && inside(v.deauth, v.deauth_len, p, len));
	shim_mok_list(&v, &mok);
	shim_mok_list_x(&v, &mokx);
	assert((mok.len == 0) == (v.auth_len == 0));
	assert(check_lists((const uint8_t *)strbuf_str(&mok), mok.len));
	assert(mokx.len > 0);
}

static void check_sbat(const uint8_t *p, size_t len)
{
	for (int latest = 0; latest < 2; latest++) {
		struct err err = ERR_INIT;
		const char *text;
		size_t n;

		if (shim_sbat_level(p, len, latest, &text, &n, &err) < 0) {
			assert(err.kind == ERR_INVALID && n == 0);
			continue;
		}
		assert(n > 0 && inside((const uint8_t *)text, n + 1, p, len));
		assert(strlen(text) == n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free uint8_t *copy = NULL;

	if (size == 0)
		return 0;
	copy = xmalloc(size);
	memcpy(copy, data + 1, size - 1);
	if (data[0] == 'L')
		(void)check_lists(copy, size - 1);
	else if (data[0] == 'V')
		check_vendor(copy, size - 1);
	else
		check_sbat(copy, size - 1);
	return 0;
}
