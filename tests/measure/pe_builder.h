/* SPDX-License-Identifier: MIT */
/*
 * Small PE images for tests: headers at fixed places, sections of 512-byte steps, a string table
 * when a name needs one, bytes behind it, then what pe_build_sign() appends. Deterministic.
 */
#ifndef TEC_TESTS_PE_BUILDER_H
#define TEC_TESTS_PE_BUILDER_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/str.h"

#define PE_B_COFF     0x80
#define PE_B_OPTIONAL (PE_B_COFF + 24)
#define PE_B_SYMBOLS  2
#define PE_B_ALIGN    512

struct pe_build {
	bool plus;
	uint16_t machine;
	unsigned dirs; /* data directories */
	unsigned n_sections;
	struct {
		const char *name;
		const void *data;
		size_t len;
		uint32_t virtual_size; /* 0: len */
	} section[16];
	size_t trailing; /* bytes behind sections and string table */
};
#define PE_BUILD_INIT                                                                              \
	{                                                                                          \
		.plus = true, .machine = 0x8664, .dirs = 16                                        \
	}

__attribute__((unused)) static void pe_poke16(struct strbuf *b, size_t at, unsigned v)
{
	b->data[at] = (char)v;
	b->data[at + 1] = (char)(v >> 8);
}

__attribute__((unused)) static void pe_poke32(struct strbuf *b, size_t at, uint32_t v)
{
	pe_poke16(b, at, v & 0xffff);
	pe_poke16(b, at + 2, v >> 16);
}

__attribute__((unused)) static uint32_t pe_peek32(const struct strbuf *b, size_t at)
{
	const uint8_t *p = (const uint8_t *)b->data + at;

	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

__attribute__((unused)) static void pe_fill(struct strbuf *b, size_t n, int c)
{
	for (; n > 0; n--)
		strbuf_addc(b, (char)c);
}

__attribute__((unused)) static size_t pe_build_dirs_at(const struct pe_build *s)
{
	return PE_B_OPTIONAL + (s->plus ? 112 : 96);
}

__attribute__((unused)) static size_t pe_build_section_at(const struct pe_build *s, unsigned i)
{
	return pe_build_dirs_at(s) + 8 * s->dirs + 40 * i;
}

static uint32_t pe_aligned(size_t n)
{
	return (uint32_t)((n + PE_B_ALIGN - 1) / PE_B_ALIGN * PE_B_ALIGN);
}

static void pe_build_headers(const struct pe_build *s, struct strbuf *out)
{
	size_t opt = PE_B_OPTIONAL, dirs = pe_build_dirs_at(s),
	       n = pe_build_section_at(s, s->n_sections);

	pe_fill(out, pe_aligned(n), 0);
	memcpy(out->data, "MZ", 2);
	pe_poke32(out, 0x3c, PE_B_COFF);
	memcpy(out->data + PE_B_COFF, "PE\0\0", 4);
	pe_poke16(out, PE_B_COFF + 4, s->machine);
	pe_poke16(out, PE_B_COFF + 6, s->n_sections);
	pe_poke32(out, PE_B_COFF + 8, 0x5eadbeef); /* TimeDateStamp: never an offset */
	pe_poke16(out, PE_B_COFF + 20, (unsigned)(dirs - opt + 8 * s->dirs));
	pe_poke16(out, PE_B_COFF + 22, 0x206);
	pe_poke16(out, opt, s->plus ? 0x20b : 0x10b);
	pe_poke32(out, opt + 32, PE_B_ALIGN); /* SectionAlignment, FileAlignment */
	pe_poke32(out, opt + 36, PE_B_ALIGN);
	pe_poke32(out, opt + 60, pe_aligned(n)); /* SizeOfHeaders */
	pe_poke32(out, opt + 64, 0xc5c5c5c5);    /* CheckSum */
	pe_poke32(out, dirs - 4, s->dirs);
}

/* The section's name, in place or in the string table. */
static void pe_build_name(
	const struct pe_build *s, struct strbuf *out, struct strbuf *strings, unsigned i)
{
	char name[16] = "";
	size_t len = strlen(s->section[i].name);

	if (len <= 8) {
		memcpy(name, s->section[i].name, len);
	} else {
		snprintf(name, sizeof(name), "/%zu", strings->len);
		strbuf_add(strings, s->section[i].name, len + 1);
	}
	memcpy(out->data + pe_build_section_at(s, i), name, 8);
}

__attribute__((unused)) static void pe_build(const struct pe_build *s, struct strbuf *out)
{
	struct strbuf strings = STRBUF_INIT;
	uint32_t rva = 0x1000;

	strbuf_reset(out);
	pe_build_headers(s, out);
	pe_fill(&strings, 4, 0);
	for (unsigned i = 0; i < s->n_sections; i++) {
		size_t at = pe_build_section_at(s, i), len = s->section[i].len;
		uint32_t size = s->section[i].virtual_size;

		pe_build_name(s, out, &strings, i);
		pe_poke32(out, at + 8, size ? size : (uint32_t)len);
		pe_poke32(out, at + 12, rva);
		pe_poke32(out, at + 16, pe_aligned(len));
		pe_poke32(out, at + 20, len ? (uint32_t)out->len : 0);
		rva += 0x1000 + pe_aligned(len);
		strbuf_add(out, s->section[i].data, len);
		pe_fill(out, pe_aligned(len) - len, 0xcc);
	}
	if (strings.len > 4) {
		pe_poke32(&strings, 0, (uint32_t)strings.len);
		pe_poke32(out, PE_B_COFF + 12, (uint32_t)out->len);
		pe_poke32(out, PE_B_COFF + 16, PE_B_SYMBOLS);
		pe_fill(out, 18 * PE_B_SYMBOLS, 0x11);
		strbuf_add(out, strings.data, strings.len);
	}
	pe_fill(out, s->trailing, 0x77);
	strbuf_fini(&strings);
}

/* Appends a WIN_CERTIFICATE, as sbsign and osslsigncode do. */
__attribute__((unused)) static void pe_build_sign(
	const struct pe_build *s, struct strbuf *out, unsigned type, const void *data, size_t len)
{
	size_t dir = pe_build_dirs_at(s) + 8 * 4, head;

	pe_fill(out, (8 - out->len % 8) % 8, 0);
	if (pe_peek32(out, dir) == 0)
		pe_poke32(out, dir, (uint32_t)out->len);
	head = out->len;
	pe_fill(out, 8, 0);
	pe_poke32(out, head, (uint32_t)len + 8);
	pe_poke16(out, head + 4, 0x200);
	pe_poke16(out, head + 6, type);
	strbuf_add(out, data, len);
	pe_fill(out, (8 - out->len % 8) % 8, 0);
	pe_poke32(out, dir + 4, (uint32_t)out->len - pe_peek32(out, dir));
}

#endif
