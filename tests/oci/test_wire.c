/* SPDX-License-Identifier: MIT */
/* What goes to the process that asks, and what may come back from one that was taken over. */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/oci/wire.h"

static char *question(size_t n_configs, size_t *len)
{
	static const char *const mirrors[] = {"a=b/c", "d=e"}, *const plain[] = {"h:1"};
	cleanup_secret struct secret *s = secret_new_copy("{\"\0\n}", 5);
	const struct secret *const configs[] = {s, s};
	const struct oci_conf conf = {.mirrors = mirrors,
		.n_mirrors = 2,
		.insecure = plain,
		.n_insecure = 1,
		.platform_os = "linux",
		.platform_arch = "amd64"};
	struct err err = ERR_INIT;
	char *q = oci_question_encode(&conf, "r/a@b", "", configs, n_configs, len, &err);

	cr_assert(q, "%s", err.text);
	return q;
}

Test(oci_wire, a_question_comes_back_as_it_was)
{
	for (size_t n = 0; n <= 2; n++) {
		struct oci_question q;
		struct err err = ERR_INIT;
		size_t len;
		cleanup_free char *text = question(n, &len);

		cr_assert_eq(oci_question_decode(text, len, &q, &err), 0, "%s", err.text);
		cr_assert_str_eq(q.reference, "r/a@b");
		cr_assert_str_eq(q.label, "");
		cr_assert_str_eq(q.os, "linux");
		cr_assert_str_eq(q.arch, "amd64");
		cr_assert_eq(q.n_mirrors, 2);
		cr_assert_str_eq(q.mirrors[1], "d=e");
		cr_assert_eq(q.n_insecure, 1);
		cr_assert_str_eq(q.insecure[0], "h:1");
		cr_assert_eq(q.n_configs, n);
		if (n)
			cr_assert_eq(memcmp(secret_peek(q.configs[n - 1]), "{\"\0\n}", 5), 0);
		oci_question_fini(&q);
	}
	cr_assert_eq(secret_count(), 0);
}

Test(oci_wire, a_question_that_is_cut_anywhere_is_refused)
{
	size_t len;
	cleanup_free char *text = question(2, &len);

	for (size_t n = 0; n < len; n++) {
		cleanup_free char *cut = xmemdup(text, n);
		struct oci_question q;
		struct err err = ERR_INIT;

		cr_assert_eq(oci_question_decode(cut, n, &q, &err), -1, "%zu of %zu", n, len);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
	cr_assert_eq(secret_count(), 0);
}

Test(oci_wire, a_question_that_is_too_large_is_not_put)
{
	struct secret *s[20];
	const struct oci_conf conf = {.platform_os = "linux", .platform_arch = "amd64"};
	struct err err = ERR_INIT;
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		s[i] = secret_new(SECRET_MAX_LEN);
	cr_assert_null(oci_question_encode(
		&conf, "r", "l", (const struct secret *const *)s, ARRAY_LEN(s), &len, &err));
	cr_assert_eq(err.kind, ERR_INVALID);
	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		secret_free(s[i]);
}

/* ---- answers ---- */

static struct oci_answer through(const struct err *told, const char *value, size_t len)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct oci_answer a;
	struct err err = ERR_INIT;

	oci_answer_end(&b, told, value, len);
	cr_assert(b.len <= OCI_ANSWER_MAX);
	cr_assert_eq(oci_answer_decode(b.data, b.len, &a, &err), 0, "%s: %s", b.data, err.text);
	return a;
}

Test(oci_wire, answers_come_back_as_they_were)
{
	static const enum err_kind kinds[] = {
		ERR_TRANSIENT, ERR_NOT_FOUND, ERR_DENIED, ERR_INVALID};
	cleanup_free char *large = xcalloc(1, OCI_LABEL_MAX + 1);
	struct err none = ERR_INIT;
	struct oci_answer a = through(&none, "a\0b", 3);

	cr_assert_eq(a.len, 3);
	cr_assert_eq(memcmp(a.value, "a\0b", 4), 0);
	oci_answer_fini(&a);
	a = through(&none, "", 0);
	cr_assert_str_eq(a.value, "");
	oci_answer_fini(&a);
	a = through(&none, NULL, 0);
	cr_assert_null(a.value);
	cr_assert_eq(a.err.kind, ERR_NONE);
	a = through(&none, large, OCI_LABEL_MAX);
	cr_assert_eq(a.len, OCI_LABEL_MAX);
	oci_answer_fini(&a);
	a = through(&none, large, OCI_LABEL_MAX + 1);
	cr_assert_eq(a.err.kind, ERR_INVALID);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct err err = ERR_INIT;

		err_set_http(&err, kinds[i], 429, "what is so \xc3\xa4");
		err.retry_after_ms = 7000;
		a = through(&err, NULL, 0);
		cr_assert_eq(a.err.kind, kinds[i]);
		cr_assert_eq(a.err.http, 429);
		cr_assert_eq(a.err.retry_after_ms, 7000);
		cr_assert_str_eq(a.err.text, err.text);
	}
}

Test(oci_wire, what_does_not_fit_an_answer_is_made_to_fit)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_free char *text = xcalloc(1, 2000);
	struct oci_answer a;
	struct err err = ERR_INIT;
	size_t n = 0;

	memset(text, 'x', 1999);
	for (int i = 0; i < 20; i++)
		oci_answer_warn(&b, &n, i ? text : "a\nb\x1b[2J\xff");
	err_set(&err, ERR_BUG, "a\nb");
	err.retry_after_ms = UINT32_MAX;
	oci_answer_end(&b, &err, NULL, 0);
	err_clear(&err);
	cr_assert_eq(oci_answer_decode(b.data, b.len, &a, &err), 0, "%s", b.data);
	cr_assert_eq(a.err.kind, ERR_INVALID);
	cr_assert_str_eq(a.err.text, "a?b");
	cr_assert_eq(a.err.retry_after_ms, 3600000);
	cr_assert_eq(a.n_warnings, OCI_WARNINGS_MAX);
	cr_assert_str_eq(a.warnings[0], "a?b?[2J?");
	cr_assert_eq(strlen(a.warnings[1]), OCI_WARNING_LEN);
}

static const struct {
	const char *text;
	size_t len;
} hostile[] = {
#define BAD(s)                                                                                     \
	{                                                                                          \
		s, sizeof(s) - 1                                                                   \
	}
	BAD(""),
	BAD("\n"),
	BAD("v"),
	BAD("v:"),
	BAD("v0"),
	BAD("v0:"),
	BAD("v1:\n"),
	BAD("v2:a\n"),
	BAD("v0:a\n"),
	BAD("v01:a\n"),
	BAD("v+1:a\n"),
	BAD("v-1:a\n"),
	BAD("v 1:a\n"),
	BAD("v1 :a\n"),
	BAD("v0x1:a\n"),
	BAD("v99999999:a\n"),
	BAD("v999999999:a\n"),
	BAD("v18446744073709551617:a\n"),
	BAD("v1:a\nv1:a\n"),
	BAD("v1:a\n\n"),
	BAD("v1:a\n "),
	BAD(" v1:a\n"),
	BAD("V1:a\n"),
	BAD("x1:a\n"),
	BAD("v1:a\0"),
	BAD("n1:a\n"),
	BAD("n0:\nn0:\n"),
	BAD("n0:\nv1:a\n"),
	BAD("w1:a\n"),
	BAD("v1:a\nw1:a\n"),
	BAD("w1:\a\nn0:\n"),
	BAD("w1:\xff\nn0:\n"),
	BAD("w1:\0\nn0:\n"),
	BAD("k7:invalid\n"),
	BAD("k7:invalid\nh1:0\ns1:0\n"),
	BAD("k7:invalid\nh1:0\nt1:a\n"),
	BAD("k7:invalid\nh1:0\ns1:0\nt0:\n"),
	BAD("k7:invalid\nh1:0\ns1:0\nt1:\n\n"),
	BAD("k7:invalid\nh1:0\ns1:0\nt4:\x1b[2J\n"),
	BAD("k7:invalid\nh1:0\ns1:0\nt2:\xc3\x28\n"),
	BAD("k7:invalid\nh1:0\ns1:0\nt3:a\0b\n"),
	BAD("k7:invalid\nh4:1000\ns1:0\nt1:a\n"),
	BAD("k7:invalid\nh2:-1\ns1:0\nt1:a\n"),
	BAD("k7:invalid\nh0:\ns1:0\nt1:a\n"),
	BAD("k7:invalid\nh1:0\ns7:3600001\nt1:a\n"),
	BAD("k7:invalid\nh1:0\ns2:0\0\nt1:a\n"),
	BAD("k7:invalid\ns1:0\nh1:0\nt1:a\n"),
	BAD("k3:bug\nh1:0\ns1:0\nt1:a\n"),
	BAD("k4:none\nh1:0\ns1:0\nt1:a\n"),
	BAD("k8:conflict\nh1:0\ns1:0\nt1:a\n"),
	BAD("k8:invalid\0\nh1:0\ns1:0\nt1:a\n"),
	BAD("k0:\nh1:0\ns1:0\nt1:a\n"),
	BAD("k7:invalid\nh1:0\ns1:0\nt1:a\nv1:a\n"),
#undef BAD
};

Test(oci_wire, hostile_answers_are_refused)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	struct oci_answer a;
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		char *copy = xmalloc(
			hostile[i].len ? hostile[i].len : 1); /* exactly: reads behind are seen */

		memcpy(copy, hostile[i].text, hostile[i].len);
		err_clear(&err);
		cr_assert_eq(oci_answer_decode(copy, hostile[i].len, &a, &err), -1, "%s",
			hostile[i].text);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert_null(a.value);
		free(copy);
	}
	for (unsigned i = 0; i <= OCI_WARNINGS_MAX; i++)
		strbuf_adds(&many, "w1:a\n");
	strbuf_adds(&many, "n0:\n");
	err_clear(&err);
	cr_assert_eq(oci_answer_decode(many.data, many.len, &a, &err), -1);
}
