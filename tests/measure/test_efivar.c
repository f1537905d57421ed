/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "measure/der_builder.h"
#include "measure/pe_builder.h"
#include "tec/base/mem.h"
#include "tec/measure/efivar.h"

static void assert_hex(const uint8_t digest[SHA256_LEN], const char *hex)
{
	char is[SHA256_HEX_LEN + 1];

	bytes_to_hex(digest, SHA256_LEN, is);
	cr_assert_str_eq(is, hex);
}

static void assert_sha256(const struct strbuf *b, const char *hex)
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(b->data, b->len, digest);
	assert_hex(digest, hex);
}

Test(measure_efivar, guids_are_in_memory_order)
{
	static const struct {
		const struct efi_guid *guid;
		const char *text;
	} t[] = {
		{&efi_global_variable, "8be4df61-93ca-11d2-aa0d-00e098032b8c"},
		{&efi_image_security_database, "d719b2cb-3d3a-4596-a3bc-dad00e67656f"},
		{&efi_shim_lock, "605dab50-e046-4300-abb6-3dd810dd8b23"},
		{&efi_cert_x509, "a5c059a1-94e4-4aa7-87b5-ab155c2bf072"},
		{&efi_cert_sha256, "c1c41626-504c-4092-aca9-41f936934328"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const uint8_t *b = t[i].guid->b;
		char text[40];

		snprintf(text, sizeof(text),
			"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11],
			b[12], b[13], b[14], b[15]);
		cr_assert_str_eq(text, t[i].text);
	}
}

Test(measure_efivar, variable_digests)
{
	uint8_t digest[SHA256_LEN];

	efi_variable_digest(&efi_global_variable, "SecureBoot", "\x01", 1, digest);
	assert_hex(digest, "ccfc4bb32888a345bc8aeadaba552b627d99348c767681ab3141f5b01e40a40e");
	efi_variable_digest(&efi_global_variable, "SecureBoot", "\0", 1, digest);
	assert_hex(digest, "115aa827dbccfb44d216ad9ecfda56bdea620b860a94bed5b7a27bba1c4d02d8");
}

Test(measure_efivar, variable_without_data)
{
	static const uint8_t laid_out[] = {0x61, 0xdf, 0xe4, 0x8b, 0xca, 0x93, 0xd2, 0x11, 0xaa,
		0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 'P', 0, 'K', 0};
	uint8_t digest[SHA256_LEN], want[SHA256_LEN];

	efi_variable_digest(&efi_global_variable, "PK", NULL, 0, digest);
	bytes_sha256(laid_out, sizeof(laid_out), want);
	cr_assert_arr_eq(digest, want, SHA256_LEN);
}

/* ---- signature lists */

static void add_list(struct strbuf *b, const struct efi_guid *type, size_t header,
	const char *const *entries, size_t n, size_t each)
{
	size_t at = b->len;

	pe_fill(b, 28 + header, 0xee);
	memcpy(b->data + at, type->b, 16);
	pe_poke32(b, at + 16, (uint32_t)(28 + header + n * (16 + each)));
	pe_poke32(b, at + 20, (uint32_t)header);
	pe_poke32(b, at + 24, (uint32_t)(16 + each));
	for (size_t i = 0; i < n; i++) {
		pe_fill(b, 16, 'a' + (int)i);
		strbuf_add(b, entries[i], each);
	}
}

static const char *const three[] = {"one", "two", "six"};
static const char *const hashes[] = {"0123456789abcdef0123456789ABCDEF"};

Test(measure_efivar, walks_lists_and_entries)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct efi_sig_pos pos = {0};
	struct err err = ERR_INIT;
	struct efi_sig sig;

	add_list(&b, &efi_cert_x509, 0, NULL, 0, 7); /* empty: stepped over */
	add_list(&b, &efi_cert_x509, 5, three, 3, 3);
	add_list(&b, &efi_cert_sha256, 0, hashes, 1, 32);
	for (size_t i = 0; i < 3; i++) {
		cr_assert(efi_sig_next(b.data, b.len, &pos, &sig, &err), "%s", err.text);
		cr_assert_arr_eq(sig.type.b, efi_cert_x509.b, 16);
		cr_assert_eq(sig.owner.b[15], 'a' + i);
		cr_assert_eq(sig.len, 3);
		cr_assert_arr_eq(sig.data, three[i], 3);
		cr_assert_eq(sig.with_owner_len, 19);
		cr_assert_eq(sig.with_owner, sig.data - 16);
	}
	cr_assert(efi_sig_next(b.data, b.len, &pos, &sig, &err));
	cr_assert_arr_eq(sig.type.b, efi_cert_sha256.b, 16);
	cr_assert_eq(sig.len, 32);
	cr_assert_not(efi_sig_next(b.data, b.len, &pos, &sig, &err));
	cr_assert_not(err_is_set(&err));
	cr_assert_not(efi_sig_next(b.data, b.len, &pos, &sig, &err), "the end stays the end");
}

Test(measure_efivar, no_lists_at_all)
{
	struct efi_sig_pos pos = {0};
	struct err err = ERR_INIT;
	struct efi_sig sig;

	cr_assert_not(efi_sig_next(NULL, 0, &pos, &sig, &err));
	cr_assert_not(err_is_set(&err));
}

/* Entries before the end or the damage. */
static size_t walk(const void *data, size_t len, struct err *err)
{
	cleanup_free void *copy = xmalloc(len ? len : 1);
	struct efi_sig_pos pos = {0};
	struct efi_sig sig;
	size_t n = 0;

	memcpy(copy, data, len);
	*err = (struct err)ERR_INIT;
	while (efi_sig_next(copy, len, &pos, &sig, err))
		n++;
	return n;
}

Test(measure_efivar, hostile_lists_are_damage)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
		const char *part;
	} t[] = {
		{"ListSize 0", 16, 0, "ListSize"},
		{"ListSize below its header", 16, 27, "ListSize"},
		{"ListSize behind the data", 16, 86, "ListSize"},
		{"ListSize wraps", 16, 0xffffffff, "ListSize"},
		{"HeaderSize behind the list", 20, 58, "HeaderSize"},
		{"HeaderSize wraps", 20, 0xffffffff, "HeaderSize"},
		{"HeaderSize takes of an entry", 20, 1, "SignatureSize"},
		{"SignatureSize 0", 24, 0, "SignatureSize"},
		{"SignatureSize without owner", 24, 15, "SignatureSize"},
		{"SignatureSize above the list", 24, 58, "SignatureSize"},
		{"SignatureSize wraps", 24, 0xffffffff, "SignatureSize"},
	};
	cleanup_strbuf struct strbuf good = STRBUF_INIT;
	struct err err;

	add_list(&good, &efi_cert_x509, 0, three, 3, 3);
	cr_assert_eq(good.len, 85);
	cr_assert_eq(walk(good.data, good.len, &err), 3);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf bad = STRBUF_INIT;

		strbuf_add(&bad, good.data, good.len);
		pe_poke32(&bad, t[i].at, t[i].value);
		cr_assert_eq(walk(bad.data, bad.len, &err), 0, "%s", t[i].what);
		cr_assert_eq(err.kind, ERR_INVALID, "%s", t[i].what);
		cr_assert(strstr(err.text, t[i].part), "%s: %s", t[i].what, err.text);
	}
	for (size_t n = 1; n < good.len; n++) {
		cr_assert_eq(walk(good.data, n, &err), 0, "cut to %zu", n);
		cr_assert_eq(err.kind, ERR_INVALID, "cut to %zu", n);
	}
}

Test(measure_efivar, sha256_entries_have_one_size)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct err err;

	add_list(&b, &efi_cert_sha256, 0, three, 2, 3);
	cr_assert_eq(walk(b.data, b.len, &err), 0);
	cr_assert(strstr(err.text, "SHA-256 entries"), "%s", err.text);
}

Test(measure_efivar, damage_behind_a_good_list_is_seen)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct err err;

	add_list(&b, &efi_cert_x509, 0, three, 2, 3);
	strbuf_add(&b, "junk", 4);
	cr_assert_eq(walk(b.data, b.len, &err), 2);
	cr_assert_eq(err.kind, ERR_INVALID);
}

/* ---- .vendor_cert */

static void add_vendor(struct strbuf *b, const struct strbuf *auth, const struct strbuf *deauth)
{
	pe_fill(b, 16, 0);
	pe_poke32(b, 0, (uint32_t)auth->len);
	pe_poke32(b, 4, (uint32_t)deauth->len);
	pe_poke32(b, 8, 16);
	pe_poke32(b, 12, (uint32_t)(16 + auth->len));
	strbuf_add(b, strbuf_str(auth), auth->len);
	strbuf_add(b, strbuf_str(deauth), deauth->len);
}

static int read_vendor(const struct strbuf *b, size_t len, struct err *err)
{
	cleanup_free void *copy = xmalloc(len ? len : 1);
	struct shim_vendor v;

	memcpy(copy, b->data, len);
	*err = (struct err)ERR_INIT;
	return shim_vendor_read(copy, len, &v, err);
}

Test(measure_efivar, vendor_certificate)
{
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, dbx = STRBUF_INIT, b = STRBUF_INIT;
	cleanup_strbuf struct strbuf mok = STRBUF_INIT, mokx = STRBUF_INIT;
	struct efi_sig_pos pos = {0};
	struct err err = ERR_INIT;
	struct shim_vendor v;
	struct efi_sig sig;

	der_cert(&cert, "Distro CA", "Distro CA");
	add_list(&dbx, &efi_cert_sha256, 0, hashes, 1, 32);
	add_vendor(&b, &cert, &dbx);
	pe_fill(&b, 11, 0); /* the section is larger */
	cr_assert_eq(shim_vendor_read(b.data, b.len, &v, &err), 0, "%s", err.text);
	cr_assert_not(v.auth_is_lists);
	cr_assert_eq(v.auth_len, cert.len);
	cr_assert_arr_eq(v.auth, cert.data, cert.len);
	cr_assert_eq(v.deauth_len, dbx.len);
	cr_assert_arr_eq(v.deauth, dbx.data, dbx.len);

	shim_mok_list(&v, &mok);
	cr_assert_eq(mok.len, 28 + 16 + cert.len);
	cr_assert(efi_sig_next(mok.data, mok.len, &pos, &sig, &err));
	cr_assert_arr_eq(sig.type.b, efi_cert_x509.b, 16);
	cr_assert_arr_eq(sig.owner.b, efi_shim_lock.b, 16);
	cr_assert_eq(sig.len, cert.len);
	cr_assert_arr_eq(sig.data, cert.data, cert.len);
	cr_assert_not(efi_sig_next(mok.data, mok.len, &pos, &sig, &err));
	shim_mok_list_x(&v, &mokx);
	cr_assert_eq(mokx.len, dbx.len);
	cr_assert_arr_eq(mokx.data, dbx.data, dbx.len);
}

Test(measure_efivar, vendor_db_and_no_dbx)
{
	cleanup_strbuf struct strbuf db = STRBUF_INIT, none = STRBUF_INIT, b = STRBUF_INIT;
	cleanup_strbuf struct strbuf mok = STRBUF_INIT, mokx = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct shim_vendor v;

	add_list(&db, &efi_cert_x509, 0, three, 1, 3);
	add_list(&db, &efi_cert_sha256, 0, hashes, 1, 32);
	add_vendor(&b, &db, &none);
	pe_poke32(&b, 12, 0xffffffff); /* no size: the offset is not looked at */
	cr_assert_eq(shim_vendor_read(b.data, b.len, &v, &err), 0, "%s", err.text);
	cr_assert(v.auth_is_lists);
	cr_assert_eq(v.deauth_len, 0);
	shim_mok_list(&v, &mok);
	cr_assert_eq(mok.len, db.len);
	cr_assert_arr_eq(mok.data, db.data, db.len);
	shim_mok_list_x(&v, &mokx);
	assert_sha256(&mokx, "8d8a3aae50d5d25838c95c034aadce7b548c9a952eb7925e366eda537c59c3b0");
}

Test(measure_efivar, vendor_without_keys)
{
	cleanup_strbuf struct strbuf none = STRBUF_INIT, b = STRBUF_INIT, mok = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct shim_vendor v;

	add_vendor(&b, &none, &none);
	cr_assert_eq(shim_vendor_read(b.data, b.len, &v, &err), 0, "%s", err.text);
	cr_assert_not(v.auth_is_lists);
	shim_mok_list(&v, &mok);
	cr_assert_eq(mok.len, 0);
}

Test(measure_efivar, hostile_vendor_sections_are_refused)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
		const char *part;
	} t[] = {
		{"auth behind the section", 0, 0x10000, "authorized keys"},
		{"auth wraps", 0, 0xffffffff, "authorized keys"},
		{"auth offset behind", 8, 0xffffffff, "authorized keys"},
		{"auth in the header", 8, 15, "authorized keys"},
		{"auth elsewhere", 8, 17, "neither a certificate nor signature lists"},
		{"auth shorter", 0, 40, "neither a certificate nor signature lists"},
		{"deauth behind the section", 4, 0x10000, "refused keys"},
		{"deauth wraps", 4, 0xfffffff8, "refused keys"},
		{"deauth offset behind", 12, 0x7fffffff, "refused keys"},
		{"deauth in the header", 12, 0, "refused keys"},
	};
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, dbx = STRBUF_INIT, good = STRBUF_INIT;
	struct err err;

	der_cert(&cert, "Distro CA", "Distro CA");
	add_list(&dbx, &efi_cert_sha256, 0, hashes, 1, 32);
	add_vendor(&good, &cert, &dbx);
	cr_assert_eq(read_vendor(&good, good.len, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf bad = STRBUF_INIT;

		strbuf_add(&bad, good.data, good.len);
		pe_poke32(&bad, t[i].at, t[i].value);
		cr_assert_eq(read_vendor(&bad, bad.len, &err), -1, "%s", t[i].what);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(strstr(err.text, t[i].part), "%s: %s", t[i].what, err.text);
	}
	for (size_t n = 0; n < good.len; n++)
		cr_assert_eq(read_vendor(&good, n, &err), -1, "cut to %zu", n);
}

/* ---- .sbatlevel */

static void add_sbat(struct strbuf *b, const char *previous, const char *latest)
{
	pe_fill(b, 12, 0);
	pe_poke32(b, 4, 8);
	pe_poke32(b, 8, (uint32_t)(8 + strlen(previous) + 1));
	strbuf_add(b, previous, strlen(previous) + 1);
	strbuf_add(b, latest, strlen(latest) + 1);
}

Test(measure_efivar, sbat_levels)
{
	static const char previous[] = "sbat,1,2025021800\nshim,4\ngrub,5\n";
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct err err = ERR_INIT;
	const char *text;
	size_t len;

	add_sbat(&b, previous, "sbat,1,2025051000\n");
	cr_assert_eq(shim_sbat_level(b.data, b.len, false, &text, &len, &err), 0, "%s", err.text);
	cr_assert_eq(len, strlen(previous));
	cr_assert_arr_eq(text, previous, len);
	cr_assert_eq(shim_sbat_level(b.data, b.len, true, &text, &len, &err), 0, "%s", err.text);
	cr_assert_eq(len, 18);
	cr_assert_arr_eq(text, "sbat,1,2025051000\n", len);
}

Test(measure_efivar, hostile_sbat_levels_are_refused)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
		bool latest;
		const char *part;
	} t[] = {
		{"version 1", 0, 1, false, "version 1"},
		{"previous behind", 4, 0x1000, false, "previous level is outside"},
		{"previous wraps", 4, 0xffffffff, false, "previous level is outside"},
		{"previous just behind", 4, 20, false, "previous level is outside"},
		{"previous in the header", 4, 7, false, "previous level is outside"},
		{"latest wraps", 8, 0xfffffffc, true, "latest level is outside"},
		{"latest in the header", 8, 0, true, "latest level is outside"},
		{"empty", 8, 11, true, "is empty"},
	};
	cleanup_strbuf struct strbuf good = STRBUF_INIT;
	struct err err = ERR_INIT;
	const char *text;
	size_t len;

	add_sbat(&good, "abc", "efg"); /* 20 bytes */
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf bad = STRBUF_INIT;

		err = (struct err)ERR_INIT;
		strbuf_add(&bad, good.data, good.len);
		pe_poke32(&bad, t[i].at, t[i].value);
		cr_assert_eq(shim_sbat_level(bad.data, bad.len, t[i].latest, &text, &len, &err), -1,
			"%s", t[i].what);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(strstr(err.text, t[i].part), "%s: %s", t[i].what, err.text);
	}
	for (size_t n = 0; n < good.len; n++) {
		cleanup_free void *copy = xmalloc(n ? n : 1);

		memcpy(copy, good.data, n);
		err = (struct err)ERR_INIT;
		cr_assert_eq(shim_sbat_level(copy, n, true, &text, &len, &err), -1, "%zu", n);
	}
	cr_assert(strstr(err.text, "is not terminated"), "%s", err.text);
}
