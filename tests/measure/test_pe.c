/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "measure/pe_builder.h"
#include "tec/base/mem.h"
#include "tec/measure/pe.h"

static struct pe_build three_sections(void)
{
	struct pe_build s = PE_BUILD_INIT;

	s.n_sections = 3;
	s.section[0].name = ".text";
	s.section[0].data = "code";
	s.section[0].len = 4;
	s.section[1].name = ".vendor_cert";
	s.section[1].data = "certificates";
	s.section[1].len = 12;
	s.section[2].name = ".eightch";
	s.section[2].data = "e";
	s.section[2].len = 1;
	s.section[2].virtual_size = 9999; /* zeros in memory, not in the file */
	s.trailing = 3;
	return s;
}

static void assert_refused(const void *data, size_t len, const char *part, const char *what)
{
	/* Memory of exactly this size: a byte too far is seen by the sanitizer. */
	cleanup_free void *copy = len ? xmalloc(len) : NULL;
	struct err err = ERR_INIT;
	struct pe pe;

	if (len)
		memcpy(copy, data, len);
	cr_assert_eq(pe_parse(copy, len, &pe, &err), -1, "%s was accepted", what);
	cr_assert_eq(err.kind, ERR_INVALID, "%s", what);
	cr_assert(strstr(err.text, part), "%s: \"%s\" lacks \"%s\"", what, err.text, part);
}

Test(measure_pe, reads_both_formats)
{
	for (int plus = 0; plus < 2; plus++) {
		cleanup_strbuf struct strbuf file = STRBUF_INIT;
		struct pe_build s = three_sections();
		struct err err = ERR_INIT;
		const uint8_t *p;
		struct pe pe;
		size_t len;

		s.plus = plus;
		s.machine = plus ? 0xaa64 : 0x14c;
		pe_build(&s, &file);
		cr_assert_eq(pe_parse(file.data, file.len, &pe, &err), 0, "%s", err.text);
		cr_assert_eq(pe.plus, (bool)plus);
		cr_assert_eq(pe.machine, plus ? PE_MACHINE_AARCH64 : PE_MACHINE_OTHER);
		cr_assert_eq(pe.checksum_off, PE_B_OPTIONAL + 64);
		cr_assert_eq(pe.cert_entry_off, pe_build_dirs_at(&s) + 32);
		cr_assert_eq(pe.cert_len, 0);
		cr_assert_eq(pe.n_sections, 3);
		cr_assert_eq(pe.n_filed, 3);
		p = pe_section_find(&pe, ".vendor_cert", &len);
		cr_assert(p);
		cr_assert_eq(len, 12);
		cr_assert_arr_eq(p, "certificates", 12);
		p = pe_section_find(&pe, ".eightch", &len);
		cr_assert(p);
		cr_assert_eq(len, PE_B_ALIGN, "not more than the file has");
		cr_assert_null(pe_section_find(&pe, ".vendor", &len));
	}
}

Test(measure_pe, x64_is_known)
{
	cleanup_strbuf struct strbuf file = STRBUF_INIT;
	struct pe_build s = PE_BUILD_INIT;
	struct err err = ERR_INIT;
	struct pe pe;

	pe_build(&s, &file);
	cr_assert_eq(pe_parse(file.data, file.len, &pe, &err), 0, "%s", err.text);
	cr_assert_eq(pe.machine, PE_MACHINE_X64);
	cr_assert_eq(pe.n_sections, 0);
}

/* One field of a good image at a time. */
Test(measure_pe, hostile_fields_are_refused)
{
	struct pe_build s = three_sections();
	size_t opt = PE_B_OPTIONAL, dirs = pe_build_dirs_at(&s);
	size_t sec0 = pe_build_section_at(&s, 0), sec1 = pe_build_section_at(&s, 1);
	cleanup_strbuf struct strbuf good = STRBUF_INIT;
	const struct {
		const char *what;
		size_t at;
		int width;
		uint32_t value;
		const char *part;
	} t[] = {
		{"no MZ", 0, 2, 0x5a4e, "MZ"},
		{"e_lfanew behind the file", 0x3c, 4, 0xffffffff, "header would be at"},
		{"e_lfanew without room", 0x3c, 4, 0, "no PE signature"},
		{"no PE signature", PE_B_COFF, 4, 0x4551, "no PE signature"},
		{"97 sections", PE_B_COFF + 6, 2, 97, "NumberOfSections is 97"},
		{"65535 sections", PE_B_COFF + 6, 2, 65535, "NumberOfSections"},
		{"section headers behind SizeOfHeaders", PE_B_COFF + 6, 2, 96, "SizeOfHeaders"},
		{"optional header behind the file", PE_B_COFF + 20, 2, 65535,
			"SizeOfOptionalHeader"},
		{"optional header of 0", PE_B_COFF + 20, 2, 0, "unknown magic"},
		{"optional header of 111", PE_B_COFF + 20, 2, 111, "below 112"},
		{"optional header too small", PE_B_COFF + 20, 2, 232, "NumberOfRvaAndSizes"},
		{"magic", opt, 2, 0x107, "magic 0x107"},
		{"PE32 that is PE32+", opt, 2, 0x10b, "NumberOfRvaAndSizes"},
		{"17 directories", dirs - 4, 4, 17, "NumberOfRvaAndSizes is 17"},
		{"4 billion directories", dirs - 4, 4, 0xffffffff, "NumberOfRvaAndSizes"},
		{"directories that wrap", dirs - 4, 4, 0x20000010, "NumberOfRvaAndSizes"},
		{"SizeOfHeaders in the section table", opt + 60, 4,
			(uint32_t)pe_build_section_at(&s, 3) - 1, "SizeOfHeaders"},
		{"SizeOfHeaders of 0", opt + 60, 4, 0, "SizeOfHeaders is 0"},
		{"SizeOfHeaders behind the file", opt + 60, 4, 0x7fffffff, "SizeOfHeaders"},
		{"SizeOfHeaders into a section", opt + 60, 4, PE_B_ALIGN + 1, "overlaps"},
		{"certificates without a place", dirs + 32 + 4, 4, 8, "certificate table"},
		{"certificates behind the file", dirs + 32 + 4, 4, 0xffffffff, "certificate table"},
		{"raw data behind the file", sec0 + 20, 4, 0xfffffff0, "section 0"},
		{"raw data that wraps", sec0 + 16, 4, 0xffffffff, "section 0"},
		{"two sections in one place", sec1 + 20, 4, PE_B_ALIGN, "overlaps"},
		{"a section in the headers", sec1 + 20, 4, 0x100, "overlaps"},
		{"name behind the string table", sec1, 4, 0x3939392f, "string table"},
		{"name in the table's size", sec1, 4, 0x332f, "string table"},
		{"symbols behind the file", PE_B_COFF + 16, 4, 0xffffffff, "string table"},
		{"symbol table behind the file", PE_B_COFF + 12, 4, 0xffffffff, "string table"},
	};

	pe_build(&s, &good);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf bad = STRBUF_INIT;

		strbuf_add(&bad, good.data, good.len);
		if (t[i].width == 4)
			pe_poke32(&bad, t[i].at, t[i].value);
		else
			pe_poke16(&bad, t[i].at, t[i].value);
		assert_refused(bad.data, bad.len, t[i].part, t[i].what);
	}
}

Test(measure_pe, string_table_is_bounded)
{
	struct pe_build s = three_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	size_t table;

	s.trailing = 0;
	pe_build(&s, &f);
	table = pe_peek32(&f, PE_B_COFF + 12) + 18 * PE_B_SYMBOLS;
	pe_poke32(&f, table, (uint32_t)(f.len - table + 1));
	assert_refused(f.data, f.len, "string table reaches", "size behind the file");
	pe_poke32(&f, table, 0);
	assert_refused(f.data, f.len, "name /4", "an empty table");
	pe_poke32(&f, table, (uint32_t)(f.len - table));
	f.data[f.len - 1] = 'x';
	assert_refused(f.data, f.len, "name /4", "a name without end");
	assert_refused(f.data, table + 3, "string table starts", "half a size");
}

Test(measure_pe, every_cut_is_refused_or_safe)
{
	struct pe_build s = three_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;

	pe_build(&s, &f);
	for (size_t n = 0; n < pe_peek32(&f, PE_B_COFF + 12); n += n < 0x280 ? 1 : 64)
		assert_refused(f.data, n, "", "a cut file");
}

Test(measure_pe, odd_names_stay_as_they_are)
{
	static const char *const names[] = {"/", "/x", "/4x", "//AAAAA", "/9999999"};
	struct pe_build s = PE_BUILD_INIT;

	s.n_sections = 1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		cleanup_strbuf struct strbuf f = STRBUF_INIT;
		struct err err = ERR_INIT;
		struct pe pe;

		s.section[0].name = names[i];
		pe_build(&s, &f); /* has no symbol table */
		cr_assert_eq(pe_parse(f.data, f.len, &pe, &err), 0, "%s", err.text);
		cr_assert_str_eq(pe.section[0].name, names[i]);
	}
}

Test(measure_pe, long_names_are_cut)
{
	static const char name[] = ".a-name-of-more-than-sixty-three-bytes-is-cut-at-sixty-three-"
				   "so-this-end-is-lost";
	struct pe_build s = PE_BUILD_INIT;
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct pe pe;

	s.n_sections = 1;
	s.section[0].name = name;
	pe_build(&s, &f);
	cr_assert_eq(pe_parse(f.data, f.len, &pe, &err), 0, "%s", err.text);
	cr_assert_eq(strlen(pe.section[0].name), 63);
	cr_assert_arr_eq(pe.section[0].name, name, 63);
}

Test(measure_pe, section_without_bytes_is_there)
{
	struct pe_build s = PE_BUILD_INIT;
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct pe pe;
	size_t len = 7;

	s.n_sections = 1;
	s.section[0].name = ".bss";
	s.section[0].virtual_size = 100;
	pe_build(&s, &f);
	pe_poke32(&f, pe_build_section_at(&s, 0) + 20, 0xffffffff); /* nobody reads it */
	cr_assert_eq(pe_parse(f.data, f.len, &pe, &err), 0, "%s", err.text);
	cr_assert(pe_section_find(&pe, ".bss", &len));
	cr_assert_eq(len, 0);
	cr_assert_eq(pe.n_filed, 0);
}

/* ---- certificate table */

static size_t count_signatures(const struct strbuf *f, struct err *err)
{
	cleanup_free void *copy = xmalloc(f->len);
	const uint8_t *der;
	size_t pos = 0, n = 0, len;
	struct pe pe;

	*err = (struct err)ERR_INIT;
	memcpy(copy, f->data, f->len);
	cr_assert_eq(pe_parse(copy, f->len, &pe, err), 0, "%s", err->text);
	while (pe_next_signature(&pe, &pos, &der, &len, err)) {
		cr_assert(der >= pe.data + pe.cert_off && der + len <= pe.data + pe.len);
		n++;
	}
	return n;
}

Test(measure_pe, several_signatures_in_order)
{
	struct pe_build s = three_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	struct err err = ERR_INIT;
	const uint8_t *der;
	size_t pos = 0, len;
	struct pe pe;

	pe_build(&s, &f);
	cr_assert_eq(count_signatures(&f, &err), 0);
	pe_build_sign(&s, &f, 2, "first", 5);
	pe_build_sign(&s, &f, 0x0ef1, "not PKCS#7", 10);
	pe_build_sign(&s, &f, 2, "second!!", 8);
	cr_assert_eq(pe_parse(f.data, f.len, &pe, &err), 0, "%s", err.text);
	cr_assert(pe_next_signature(&pe, &pos, &der, &len, &err));
	cr_assert_eq(len, 5);
	cr_assert_arr_eq(der, "first", 5);
	cr_assert(pe_next_signature(&pe, &pos, &der, &len, &err));
	cr_assert_eq(len, 8);
	cr_assert_arr_eq(der, "second!!", 8);
	cr_assert_not(pe_next_signature(&pe, &pos, &der, &len, &err));
	cr_assert_not(err_is_set(&err));
}

Test(measure_pe, certificate_table_that_is_not_the_end_is_refused)
{
	struct pe_build s = three_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	size_t dir = pe_build_dirs_at(&s) + 32;
	uint32_t len;

	pe_build(&s, &f);
	pe_build_sign(&s, &f, 2, "x", 1);
	len = pe_peek32(&f, dir + 4);
	pe_fill(&f, 8, 0);
	assert_refused(f.data, f.len, "not at the end", "eight bytes behind");
	pe_poke32(&f, dir + 4, len + 9);
	assert_refused(f.data, f.len, "not at the end", "longer than the file");
	pe_poke32(&f, dir, PE_B_ALIGN + 8);
	pe_poke32(&f, dir + 4, (uint32_t)f.len - PE_B_ALIGN - 8);
	assert_refused(f.data, f.len, "certificate table", "it covers a section");
	pe_poke32(&f, dir, 8);
	pe_poke32(&f, dir + 4, (uint32_t)f.len - 8);
	assert_refused(f.data, f.len, "certificate table", "it covers the headers");
}

Test(measure_pe, certificate_table_in_the_headers_is_refused)
{
	struct pe_build s = PE_BUILD_INIT;
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	size_t dir = pe_build_dirs_at(&s) + 32;

	pe_build(&s, &f);
	pe_poke32(&f, dir, (uint32_t)f.len - 8);
	pe_poke32(&f, dir + 4, 8);
	assert_refused(f.data, f.len, "certificate table", "no sections, and the headers' end");
}

Test(measure_pe, damaged_certificate_table)
{
	struct pe_build s = three_sections();
	size_t dir = pe_build_dirs_at(&s) + 32;
	static const struct {
		uint32_t size;
		const char *what;
	} t[] = {{0, "no length"}, {7, "below its header"}, {25, "behind the table"},
		{0xffffffff, "wraps"}, {0xfffffff9, "wraps when aligned"}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf f = STRBUF_INIT;
		struct err err;

		pe_build(&s, &f);
		pe_build_sign(&s, &f, 2, "ok", 2);
		pe_build_sign(&s, &f, 2, "sixteen bytes...", 16);
		pe_poke32(&f, pe_peek32(&f, dir) + 16, t[i].size);
		cr_assert_eq(count_signatures(&f, &err), 1, "%s", t[i].what);
		cr_assert_eq(err.kind, ERR_INVALID, "%s", t[i].what);
		cr_assert(strstr(err.text, "at byte 16"), "%s", err.text);
	}
}

Test(measure_pe, certificate_table_with_a_rest_is_damaged)
{
	struct pe_build s = three_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	size_t dir = pe_build_dirs_at(&s) + 32;
	struct err err;

	pe_build(&s, &f);
	pe_build_sign(&s, &f, 2, "sixteen bytes...", 16);
	strbuf_add(&f, "\0\0\0", 3);
	pe_poke32(&f, dir + 4, pe_peek32(&f, dir + 4) + 3);
	cr_assert_eq(count_signatures(&f, &err), 1);
	cr_assert_eq(err.kind, ERR_INVALID);
}

Test(measure_pe, without_a_certificate_directory_nothing_is_signed)
{
	struct pe_build s = three_sections();
	cleanup_strbuf struct strbuf f = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct pe pe;

	s.dirs = 4;
	pe_build(&s, &f);
	cr_assert_eq(pe_parse(f.data, f.len, &pe, &err), 0, "%s", err.text);
	cr_assert_eq(pe.cert_entry_off, 0);
	cr_assert_eq(pe.cert_len, 0);
	cr_assert_eq(pe.cert_off, 0);
}
