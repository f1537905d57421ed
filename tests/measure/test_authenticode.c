/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/x509.h>

#include "measure/der_builder.h"
#include "measure/pe_builder.h"
#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"

static int as_measured(const struct pe *pe, authenticode_source_fn source, void *arg,
	uint8_t out[SHA256_LEN], struct err *err)
{
	struct authenticode_digests both = {{0}, {0}};
	int rc = authenticode_digest(pe, source, arg, &both, err);

	memcpy(out, both.as_measured, SHA256_LEN);
	return rc;
}

#define BIG (3 * 1024 * 1024 + 100)

static struct pe_build two_sections(void)
{
	struct pe_build s = PE_BUILD_INIT;

	s.n_sections = 2;
	s.section[0].name = ".text";
	s.section[0].data = "program";
	s.section[0].len = 7;
	s.section[1].name = ".data";
	s.section[1].data = "data";
	s.section[1].len = 4;
	return s;
}

static struct pe parse(const struct strbuf *f)
{
	struct err err = ERR_INIT;
	struct pe pe;

	cr_assert_eq(pe_parse(f->data, f->len, &pe, &err), 0, "%s", err.text);
	return pe;
}

static struct authenticode_digests digests_of(const struct strbuf *f)
{
	struct err err = ERR_INIT;
	struct authenticode_digests d;
	struct pe pe = parse(f);

	cr_assert_eq(authenticode_digest(&pe, NULL, NULL, &d, &err), 0, "%s", err.text);
	return d;
}

static const uint8_t *sha256_of(const struct strbuf *f)
{
	static uint8_t digest[SHA256_LEN];
	struct err err = ERR_INIT;
	struct pe pe = parse(f);

	cr_assert_eq(as_measured(&pe, NULL, NULL, digest, &err), 0, "%s", err.text);
	return digest;
}

static void assert_hex(const uint8_t digest[SHA256_LEN], const char *hex, const char *what)
{
	char is[SHA256_HEX_LEN + 1];

	bytes_to_hex(digest, SHA256_LEN, is);
	cr_assert_str_eq(is, hex, "%s: %s", what, is);
}

/* What is hashed of these images, by hand: all but checksum and directory entry. */
static void expected(const struct pe_build *s, const struct strbuf *f, size_t len, uint8_t *out)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	size_t sum = PE_B_OPTIONAL + 64, dir = pe_build_dirs_at(s) + 32;

	strbuf_add(&b, f->data, sum);
	if (s->dirs > 4) {
		strbuf_add(&b, f->data + sum + 4, dir - sum - 4);
		strbuf_add(&b, f->data + dir + 8, len - dir - 8);
	} else {
		strbuf_add(&b, f->data + sum + 4, len - sum - 4);
	}
	bytes_sha256(b.data, b.len, out);
}

Test(measure_authenticode, digest_leaves_out_checksum_and_directory_entry)
{
	static const unsigned dirs[] = {0, 4, 5, 16};

	for (size_t i = 0; i < 2 * ARRAY_LEN(dirs); i++) {
		struct pe_build s = two_sections();
		cleanup_strbuf struct strbuf f = STRBUF_INIT;
		struct authenticode_digests d;
		uint8_t want[SHA256_LEN];

		s.plus = i % 2;
		s.dirs = dirs[i / 2];
		s.trailing = 24;
		pe_build(&s, &f);
		expected(&s, &f, f.len, want);
		d = digests_of(&f);
		cr_assert_arr_eq(d.as_signed, want, SHA256_LEN, "%u directories", s.dirs);
		cr_assert_arr_eq(d.as_measured, want, SHA256_LEN);
		pe_poke32(&f, PE_B_OPTIONAL + 64, 1);
		d = digests_of(&f);
		cr_assert_arr_eq(d.as_signed, want, SHA256_LEN, "the checksum is left out");
	}
}

/* Printed by pesign 0.112 (-h, and -P -h for what is signed) of the same bytes. */
Test(measure_authenticode, digest_is_that_of_pesign)
{
	static const struct {
		bool plus;
		size_t trailing;
		const char *as_signed, *as_measured;
	} t[] = {
		{true, 0, "f0e1998885bf35d4061a32cb8f5ae0009659454df3d10ccfed59f1ee45c6f124",
			"f0e1998885bf35d4061a32cb8f5ae0009659454df3d10ccfed59f1ee45c6f124"},
		{true, 3, "568b8496a2939cc819eefa27d0961fa7c133a3d8c5df4a97f876cd1ffd547e48",
			"c4364a3d8f819ecc489e2f7977363e68d186db27d596ffe497146543f86af0d1"},
		{false, 8, "8fa8f798d7580443c2570cc43c86e1dd7b126feb6bca4b24df3e98a63b87e51f",
			"8fa8f798d7580443c2570cc43c86e1dd7b126feb6bca4b24df3e98a63b87e51f"},
		{false, 5, "7112a7513c83bde6ed95f5dca395b4f62f214b4eb7c24afabef6ce9ea6fb97f4",
			"c4f36181635dc820fca048251d009c60b494e42c4441da7bcff71b2a35abcbbe"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct pe_build s = two_sections();
		cleanup_strbuf struct strbuf f = STRBUF_INIT;
		struct authenticode_digests d;

		s.plus = t[i].plus;
		s.trailing = t[i].trailing;
		pe_build(&s, &f);
		d = digests_of(&f);
		assert_hex(d.as_signed, t[i].as_signed, "as signed");
		assert_hex(d.as_measured, t[i].as_measured, "as measured");
		assert_hex(sha256_of(&f), t[i].as_measured, "the one digest");
	}
}

Test(measure_authenticode, signing_keeps_the_digest)
{
	for (size_t trailing = 0; trailing < 9; trailing++) {
		struct pe_build s = two_sections();
		cleanup_strbuf struct strbuf f = STRBUF_INIT;
		struct authenticode_digests before, after;

		s.trailing = trailing;
		pe_build(&s, &f);
		before = digests_of(&f);
		cr_assert_eq(memcmp(before.as_signed, before.as_measured, SHA256_LEN) == 0,
			trailing % 8 == 0);
		pe_build_sign(&s, &f, 2, "first", 5);
		pe_build_sign(&s, &f, 2, "second", 6);
		after = digests_of(&f);
		cr_assert_arr_eq(after.as_signed, before.as_signed, SHA256_LEN);
		cr_assert_arr_eq(after.as_measured, before.as_signed, SHA256_LEN,
			"the zeros are in the file now");
	}
}

/* Signers fill the table up too; one that does not is not filled up by us. */
Test(measure_authenticode, odd_certificate_table_adds_no_zeros)
{
	struct pe_build s = two_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	struct authenticode_digests before, after;
	size_t dir = pe_build_dirs_at(&s) + 32;

	pe_build(&s, &f);
	before = digests_of(&f);
	pe_build_sign(&s, &f, 2, "first", 5);
	f.len -= 3;
	pe_poke32(&f, dir + 4, pe_peek32(&f, dir + 4) - 3);
	after = digests_of(&f);
	cr_assert_arr_eq(after.as_signed, before.as_signed, SHA256_LEN);
}

Test(measure_authenticode, every_byte_counts_but_two_fields)
{
	struct pe_build s = two_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	struct authenticode_digests good, bad;

	s.trailing = 8;
	pe_build(&s, &f);
	good = digests_of(&f);
	for (size_t i = pe_aligned(1); i < f.len; i++) {
		f.data[i] ^= 1;
		bad = digests_of(&f);
		cr_assert_neq(memcmp(bad.as_signed, good.as_signed, SHA256_LEN), 0, "byte %zu", i);
		f.data[i] ^= 1;
	}
}

/* Section headers in another order than the file; a gap makes loaders hash its length again. */
Test(measure_authenticode, sections_by_offset_and_gaps_as_loaders_do)
{
	struct pe_build s = two_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT, b = STRBUF_INIT;
	size_t sec0 = pe_build_section_at(&s, 0), sec1 = pe_build_section_at(&s, 1), end;
	struct authenticode_digests d, swapped;
	uint8_t want[SHA256_LEN];
	uint32_t off = PE_B_ALIGN;

	s.trailing = PE_B_ALIGN;
	pe_build(&s, &f);
	cr_assert_eq(pe_peek32(&f, sec0 + 20), off);
	pe_poke32(&f, sec0 + 20, 2 * off);
	pe_poke32(&f, sec1 + 20, off);
	expected(&s, &f, f.len, want);
	swapped = digests_of(&f);
	cr_assert_arr_eq(swapped.as_signed, want, SHA256_LEN);

	pe_poke32(&f, sec0 + 20, 3 * off); /* now the third step of the file is a gap */
	end = 3 * (size_t)off;
	d = digests_of(&f);
	strbuf_add(&b, f.data, PE_B_OPTIONAL + 64);
	strbuf_add(&b, f.data + PE_B_OPTIONAL + 68, pe_build_dirs_at(&s) - PE_B_OPTIONAL - 36);
	strbuf_add(&b, f.data + pe_build_dirs_at(&s) + 40, 2 * off - pe_build_dirs_at(&s) - 40);
	strbuf_add(&b, f.data + end, off);
	strbuf_add(&b, f.data + end, f.len - end);
	bytes_sha256(b.data, b.len, want);
	cr_assert_arr_eq(d.as_signed, want, SHA256_LEN);
}

/* Hands out a copy that is overwritten by the next call, as a file that is read does. */
struct source {
	const struct strbuf *file;
	size_t calls, bytes, end, fail_at; /* fail_at: number of the call; 0: none */
	uint8_t copy[AUTHENTICODE_STEP];
};

static const uint8_t *read_step(void *arg, size_t from, size_t len, struct err *err)
{
	struct source *s = arg;

	cr_assert_leq(len, AUTHENTICODE_STEP);
	cr_assert_geq(from, s->end, "never backwards");
	if (++s->calls == s->fail_at) {
		err_set(err, ERR_INVALID, "it became shorter");
		return NULL;
	}
	s->end = from + len;
	s->bytes += len;
	memset(s->copy, 0xaa, sizeof(s->copy));
	memcpy(s->copy, s->file->data + from, len);
	return s->copy;
}

Test(measure_authenticode, an_image_may_be_read_in_steps_each_byte_once)
{
	static struct source source;
	struct pe_build s = two_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	cleanup_free char *big = xcalloc(1, BIG);
	uint8_t mapped[SHA256_LEN], digest[SHA256_LEN];
	struct err err = ERR_INIT;
	struct pe pe;

	s.section[0].data = big;
	s.section[0].len = BIG;
	s.trailing = 2000;
	pe_build(&s, &f);
	pe_build_sign(&s, &f, 2, "x", 1);
	pe = parse(&f);
	source.file = &f;
	cr_assert_eq(as_measured(&pe, NULL, NULL, mapped, &err), 0);
	cr_assert_eq(as_measured(&pe, read_step, &source, digest, &err), 0);
	cr_assert_arr_eq(digest, mapped, SHA256_LEN);
	cr_assert_eq(source.end, pe.cert_off);
	cr_assert_eq(source.bytes, pe.cert_off - 4 - 8, "all but checksum and directory entry");
	cr_assert_geq(source.calls, BIG / AUTHENTICODE_STEP);
}

Test(measure_authenticode, a_read_that_fails_gives_no_digest)
{
	static struct source source;
	struct pe_build s = two_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	struct pe pe;
	size_t calls;

	s.trailing = 2000;
	pe_build(&s, &f);
	pe = parse(&f);
	source.file = &f;
	for (calls = 1;; calls++) {
		struct err err = ERR_INIT;

		source.calls = source.end = 0;
		source.fail_at = calls;
		if (as_measured(&pe, read_step, &source, digest, &err) == 0)
			break;
		cr_expect_str_eq(err.text, "it became shorter");
		cr_expect_eq(source.calls, calls, "asked again after a failure");
	}
	cr_expect_eq(calls, 7, "three of the headers, two sections, the rest: %zu", calls);
}

/* ---- signatures */

static const uint8_t some_digest[SHA256_LEN] = {1, 2, 3, 4};

static struct der_signature plain(void)
{
	struct der_signature s = {.digest = some_digest, .digest_len = SHA256_LEN};

	s.cert[0][0] = "signer";
	s.cert[0][1] = "CA";
	s.cert[1][0] = "CA";
	s.cert[1][1] = "root";
	return s;
}

static int read_copy(const struct strbuf *b, size_t len, struct authenticode_sig *sig)
{
	cleanup_free uint8_t *copy = xmalloc(len ? len : 1);
	uint8_t *exact = copy + (len ? 0 : 1);
	struct err err = ERR_INIT;
	int rc;

	memcpy(exact, b->data, len);
	rc = authenticode_read(exact, len, sig, &err);
	cr_assert_eq(rc < 0, err.kind == ERR_INVALID);
	return rc;
}

static void assert_name(const uint8_t *der, size_t len, const char *cn)
{
	cleanup_strbuf struct strbuf want = STRBUF_INIT;

	der_name(&want, cn);
	cr_assert_eq(len, want.len, "%s", cn);
	cr_assert_arr_eq(der, want.data, want.len, "%s", cn);
}

Test(measure_authenticode, reads_digest_and_certificates)
{
	struct der_signature s = plain();
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct authenticode_sig sig;
	struct err err = ERR_INIT;

	der_pkcs7(&b, &s);
	strbuf_add(&b, "\0\0\0\0\0", 5); /* signers fill up to a multiple of 8 */
	cr_assert_eq(authenticode_read((uint8_t *)b.data, b.len, &sig, &err), 0, "%s", err.text);
	cr_assert(sig.has_sha256);
	cr_assert_arr_eq(sig.digest, some_digest, SHA256_LEN);
	cr_assert_eq(sig.n_certs, 2);
	assert_name(sig.cert[0].subject, sig.cert[0].subject_len, "signer");
	assert_name(sig.cert[0].issuer, sig.cert[0].issuer_len, "CA");
	assert_name(sig.cert[1].subject, sig.cert[1].subject_len, "CA");
	assert_name(sig.cert[1].issuer, sig.cert[1].issuer_len, "root");
}

Test(measure_authenticode, certificates_are_those_of_openssl)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct authenticode_cert c;
	struct err err = ERR_INIT;
	const unsigned char *p;
	const uint8_t *name;
	size_t len;
	X509 *x;

	der_cert(&b, "subject", "issuer");
	p = (const unsigned char *)b.data;
	x = d2i_X509(NULL, &p, (long)b.len);
	cr_assert(x);
	cr_assert_eq(authenticode_cert_read((uint8_t *)b.data, b.len, &c, &err), 0, "%s", err.text);
	cr_assert_eq(c.der_len, b.len);
	cr_assert(X509_NAME_get0_der(X509_get_subject_name(x), &name, &len));
	cr_assert_eq(c.subject_len, len);
	cr_assert_arr_eq(c.subject, name, len);
	cr_assert(X509_NAME_get0_der(X509_get_issuer_name(x), &name, &len));
	cr_assert_eq(c.issuer_len, len);
	cr_assert_arr_eq(c.issuer, name, len);
	X509_free(x);
}

Test(measure_authenticode, other_algorithms_have_no_sha256)
{
	struct der_signature s = plain();
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct authenticode_sig sig;

	s.sha1 = true;
	s.digest_len = 20;
	der_pkcs7(&b, &s);
	cr_assert_eq(read_copy(&b, b.len, &sig), 0);
	cr_assert_not(sig.has_sha256);
	cr_assert_eq(sig.n_certs, 2);
}

Test(measure_authenticode, signature_without_certificates)
{
	struct der_signature s = {.digest = some_digest, .digest_len = SHA256_LEN};
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct authenticode_sig sig;

	der_pkcs7(&b, &s);
	cr_assert_eq(read_copy(&b, b.len, &sig), 0);
	cr_assert_eq(sig.n_certs, 0);
}

static void assert_sig_refused(const struct strbuf *b, const char *part)
{
	struct authenticode_sig sig;
	struct err err = ERR_INIT;

	cr_assert_eq(
		authenticode_read((const uint8_t *)b->data, b->len, &sig, &err), -1, "%s", part);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert(strstr(err.text, part), "\"%s\" lacks \"%s\"", err.text, part);
}

Test(measure_authenticode, refuses_what_is_no_authenticode_signature)
{
	struct der_signature s = plain();
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	s.not_indirect = true;
	der_pkcs7(&b, &s);
	assert_sig_refused(&b, "not for a program");
	strbuf_reset(&b);
	s = plain();
	s.digest_len = 31;
	der_pkcs7(&b, &s);
	assert_sig_refused(&b, "31 bytes");
	strbuf_reset(&b);
	s = plain();
	der_pkcs7(&b, &s);
	strbuf_add(&b, "\0x", 2);
	assert_sig_refused(&b, "not PKCS#7");
	strbuf_reset(&b);
	for (size_t i = 0; i <= AUTHENTICODE_CERTS_MAX; i++)
		s.cert[i][0] = s.cert[i][1] = "many";
	der_pkcs7(&b, &s);
	assert_sig_refused(&b, "more than 16");
}

Test(measure_authenticode, every_cut_signature_is_refused)
{
	struct der_signature s = plain();
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct authenticode_sig sig;

	der_pkcs7(&b, &s);
	for (size_t n = 0; n < b.len; n++)
		cr_assert_eq(read_copy(&b, n, &sig), -1, "%zu of %zu", n, b.len);
}

/* Each length byte by one more, one less, indefinite: nothing outside is read, the rest is seen. */
Test(measure_authenticode, wrong_lengths_are_safe)
{
	static const uint8_t values[] = {0x00, 0x7f, 0x80, 0x81, 0x84, 0x85, 0xff};
	struct der_signature s = plain();
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct authenticode_sig sig;
	size_t refused = 0;

	der_pkcs7(&b, &s);
	for (size_t i = 0; i < b.len; i++) {
		char was = b.data[i];

		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			b.data[i] = (char)values[v];
			if (read_copy(&b, b.len, &sig) < 0)
				refused++;
			else
				cr_assert_leq(sig.n_certs, AUTHENTICODE_CERTS_MAX, "byte %zu", i);
		}
		b.data[i] = was;
	}
	cr_assert_gt(refused, 0);
	cr_assert_eq(read_copy(&b, b.len, &sig), 0, "every byte was put back");
}

Test(measure_authenticode, der_has_one_spelling)
{
	static const struct {
		const char *what;
		const uint8_t der[8];
		size_t len;
	} t[] = {
		{"long form of a short length", {0x30, 0x81, 0x00}, 3},
		{"a leading zero", {0x30, 0x82, 0x00, 0x80}, 4},
		{"indefinite", {0x30, 0x80, 0x00, 0x00}, 4},
		{"five bytes of length", {0x30, 0x85, 1, 0, 0, 0, 0}, 7},
		{"4 GiB", {0x30, 0x84, 0xff, 0xff, 0xff, 0xff}, 6},
		{"a tag of many bytes", {0x3f, 0x81, 0x00}, 3},
		{"nothing", {0}, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct authenticode_cert c;
		struct authenticode_sig sig;
		struct err err = ERR_INIT, err2 = ERR_INIT;

		cr_assert_eq(
			authenticode_cert_read(t[i].der, t[i].len, &c, &err), -1, "%s", t[i].what);
		cr_assert_eq(
			authenticode_read(t[i].der, t[i].len, &sig, &err2), -1, "%s", t[i].what);
	}
}

Test(measure_authenticode, lengths_have_their_shortest_form)
{
	for (int longer = 0; longer < 2; longer++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;
		struct authenticode_cert c;
		struct err err = ERR_INIT;

		strbuf_add(&b, longer ? "\x02\x81\x01\x07" : "\x02\x01\x07", longer ? 4 : 3);
		for (int i = 0; i < 5; i++)
			der_add(&b, 0x30, "", 0);
		der_wrap(&b, 0, 0x30);
		der_add(&b, 0x30, "", 0);
		der_add(&b, 0x03, "", 0);
		der_wrap(&b, 0, 0x30);
		cr_assert_eq(authenticode_cert_read((uint8_t *)b.data, b.len, &c, &err),
			longer ? -1 : 0);
	}
}

/* ---- both together */

static int check_signed(bool right_first, bool right_second, size_t *n, struct err *err)
{
	struct pe_build s = two_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT, good = STRBUF_INIT, bad = STRBUF_INIT;
	struct der_signature sig = plain();
	struct authenticode_digests d;
	struct pe pe;

	pe_build(&s, &f);
	d = digests_of(&f);
	der_pkcs7(&bad, &sig);
	sig.digest = d.as_signed;
	der_pkcs7(&good, &sig);
	pe_build_sign(
		&s, &f, 2, right_first ? good.data : bad.data, right_first ? good.len : bad.len);
	pe_build_sign(
		&s, &f, 2, right_second ? good.data : bad.data, right_second ? good.len : bad.len);
	pe = parse(&f);
	*err = (struct err)ERR_INIT;
	return authenticode_check(&pe, digests_of(&f).as_signed, n, err);
}

Test(measure_authenticode, check_compares_every_signature)
{
	struct err err;
	size_t n;

	cr_assert_eq(check_signed(true, true, &n, &err), 0, "%s", err.text);
	cr_assert_eq(n, 2);
	cr_assert_eq(check_signed(true, false, &n, &err), -1);
	cr_assert(strstr(err.text, "signature 2 does not match the contents"), "%s", err.text);
	cr_assert_eq(check_signed(false, true, &n, &err), -1);
	cr_assert(strstr(err.text, "signature 1 does not match the contents"), "%s", err.text);
}

Test(measure_authenticode, check_of_unsigned_sha1_and_damaged)
{
	struct pe_build s = two_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT, sha1 = STRBUF_INIT;
	struct der_signature sig = plain();
	struct err err = ERR_INIT;
	struct pe pe;
	size_t n = 9;

	pe_build(&s, &f);
	pe = parse(&f);
	cr_assert_eq(authenticode_check(&pe, some_digest, &n, &err), 0);
	cr_assert_eq(n, 0);
	sig.sha1 = true;
	sig.digest_len = 20;
	der_pkcs7(&sha1, &sig);
	pe_build_sign(&s, &f, 2, sha1.data, sha1.len);
	pe = parse(&f);
	cr_assert_eq(authenticode_check(&pe, some_digest, &n, &err), 0, "nothing to compare");
	cr_assert_eq(n, 1);
	pe_build_sign(&s, &f, 2, "no DER", 6);
	pe = parse(&f);
	cr_assert_eq(authenticode_check(&pe, some_digest, &n, &err), -1);
	cr_assert(strstr(err.text, "signature 2"), "%s", err.text);
}
