/* SPDX-License-Identifier: MIT */
/*
 * An answer of the process that asks registries, which a registry may have taken over, or (first
 * byte 'Q') a question to it. What is accepted is inside its bounds and fit for a condition; an
 * accepted answer, put together again, is the same bytes but for its warnings and numbers.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/bytes.h"

#include "tec/base/utf8.h"
#include "tec/oci/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_clean(const char *s, size_t max)
{
	assert(strlen(s) <= max && utf8_valid(s, strlen(s)));
	for (; *s; s++)
		assert((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void assert_same(const struct oci_answer *a, const struct oci_answer *b)
{
	assert(a->err.kind == b->err.kind && a->err.http == b->err.http);
	assert(a->err.retry_after_ms == b->err.retry_after_ms);
	assert(strcmp(a->err.text, b->err.text) == 0);
	assert(a->len == b->len && !a->value == !b->value);
	assert(!a->value || memcmp(a->value, b->value, a->len) == 0);
}

static void try_answer(const char *bytes, size_t len)
{
	struct oci_answer a, again;
	struct err err = ERR_INIT;
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	if (oci_answer_decode(bytes, len, &a, &err) != 0) {
		assert(err.kind == ERR_INVALID && !a.value && !err_is_set(&a.err));
		return;
	}
	assert(a.n_warnings <= OCI_WARNINGS_MAX);
	for (size_t i = 0; i < a.n_warnings; i++)
		assert_clean(a.warnings[i], OCI_WARNING_LEN);
	assert(!a.value || (!err_is_set(&a.err) && a.len <= OCI_LABEL_MAX && a.len < len));
	assert_clean(a.err.text, sizeof(a.err.text) - 1);
	oci_answer_end(&b, &a.err, a.value, a.len);
	if (oci_answer_decode(b.data, b.len, &again, &err) != 0)
		assert(!"what was accepted is refused");
	assert_same(&a, &again);
	oci_answer_fini(&again);
	oci_answer_fini(&a);
}

static void try_question(const char *bytes, size_t len)
{
	struct oci_question q;
	struct err err = ERR_INIT;

	if (oci_question_decode(bytes, len, &q, &err) != 0) {
		assert(err.kind == ERR_INVALID && !q.reference && !q.n_configs);
	} else {
		struct oci_conf conf = {.mirrors = (const char *const *)q.mirrors,
			.n_mirrors = q.n_mirrors,
			.insecure = (const char *const *)q.insecure,
			.n_insecure = q.n_insecure,
			.platform_os = q.os,
			.platform_arch = q.arch};
		size_t n;
		char *text = oci_question_encode(&conf, q.reference, q.label,
			(const struct secret *const *)q.configs, q.n_configs, &n, &err);

		assert(!text || n <= len); /* leading zeros are refused, so it is the same */
		assert(!text || memcmp(text, bytes, n) == 0);
		free(text);
	}
	oci_question_fini(&q);
	assert(secret_count() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Its own allocation of exactly that length: one byte too many is seen. */
	char *text = xmalloc(size ? size : 1);

	memcpy(text, data, size);
	if (size && data[0] == 'Q')
		try_question(text + 1, size - 1);
	else
		try_answer(text, size);
	free(text);
	return 0;
}
