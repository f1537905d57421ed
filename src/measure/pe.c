/* SPDX-License-Identifier: MIT */
/*
 * Fields are read at their offsets, never through a struct laid over the file. The rules are those
 * of UEFI's loader (EDK2 BasePeCoffLib), so that an image that does not boot is not predicted. Also
 * refused: overlapping sections, because each byte must be hashed once, and a certificate table
 * that is not at the end of the file, because loaders use its size and ignore its offset.
 */
#include "config.h"

#include "tec/measure/pe.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define COFF_HEADER     24 /* "PE\0\0" and the COFF file header */
#define SECTION_HEADER  40
#define SYMBOL_SIZE     18
#define DIRECTORIES_MAX 16
#define DIR_SECURITY    4
#define WIN_CERTIFICATE 8
#define WIN_CERT_PKCS7  2

/* Offsets that are needed only while parsing. */
struct head {
	size_t coff, optional, sections;
	unsigned optional_size;
};

/* Read the MZ and COFF headers. All later offsets depend on sizes checked here. */
static int read_coff(struct pe *pe, struct head *h, struct err *err)
{
	uint16_t machine;

	if (pe->len > UINT32_MAX)
		return err_set(err, ERR_INVALID, "a PE image of %zu bytes is too large", pe->len);
	if (pe->len < 64 || memcmp(pe->data, "MZ", 2) != 0)
		return err_set(
			err, ERR_INVALID, "this is not a PE image: it does not begin with MZ");
	h->coff = measure_le32(pe->data + 0x3c);
	if (h->coff > pe->len || pe->len - h->coff < COFF_HEADER)
		return err_set(err, ERR_INVALID,
			"this is not a PE image: its header would be at %zu of %zu bytes", h->coff,
			pe->len);
	if (memcmp(pe->data + h->coff, "PE\0\0", 4) != 0)
		return err_set(
			err, ERR_INVALID, "this is not a PE image: there is no PE signature");
	machine = measure_le16(pe->data + h->coff + 4);
	pe->machine = machine == 0x8664   ? PE_MACHINE_X64
		      : machine == 0xaa64 ? PE_MACHINE_AARCH64
					  : PE_MACHINE_OTHER;
	pe->n_sections = measure_le16(pe->data + h->coff + 6);
	if (pe->n_sections > PE_SECTIONS_MAX)
		return err_set(err, ERR_INVALID, "PE NumberOfSections is %u, above %d",
			pe->n_sections, PE_SECTIONS_MAX);
	h->optional = h->coff + COFF_HEADER;
	h->optional_size = measure_le16(pe->data + h->coff + 20);
	if (h->optional_size > pe->len - h->optional)
		return err_set(err, ERR_INVALID,
			"PE SizeOfOptionalHeader reaches past the end of the file");
	h->sections = h->optional + h->optional_size;
	return 0;
}

/* Read the optional header of PE32 or PE32+, whose data directories start at different offsets. */
static int read_optional(struct pe *pe, const struct head *h, struct err *err)
{
	const uint8_t *p = pe->data + h->optional;
	unsigned magic = h->optional_size >= 2 ? measure_le16(p) : 0, dirs_at;
	uint32_t dirs;

	if (magic != 0x10b && magic != 0x20b)
		return err_set(
			err, ERR_INVALID, "PE optional header has the unknown magic 0x%x", magic);
	pe->plus = magic == 0x20b;
	dirs_at = pe->plus ? 112 : 96;
	if (h->optional_size < dirs_at)
		return err_set(err, ERR_INVALID, "PE SizeOfOptionalHeader is %u, below %u",
			h->optional_size, dirs_at);
	dirs = measure_le32(p + dirs_at - 4);
	if (dirs > DIRECTORIES_MAX || h->optional_size != dirs_at + 8 * dirs)
		return err_set(err, ERR_INVALID,
			"PE NumberOfRvaAndSizes is %u, which does not fit SizeOfOptionalHeader %u",
			dirs, h->optional_size);
	pe->checksum_off = (uint32_t)h->optional + 64;
	pe->headers_size = measure_le32(p + 60);
	if (pe->headers_size > pe->len ||
		pe->headers_size < h->sections + (size_t)SECTION_HEADER * pe->n_sections)
		return err_set(err, ERR_INVALID,
			"PE SizeOfHeaders is %u: too small for %u section headers, or past the end of the file",
			pe->headers_size, pe->n_sections);
	if (dirs > DIR_SECURITY) {
		pe->cert_entry_off = (uint32_t)h->optional + dirs_at + 8 * DIR_SECURITY;
		pe->cert_off = measure_le32(pe->data + pe->cert_entry_off);
		pe->cert_len = measure_le32(pe->data + pe->cert_entry_off + 4);
	}
	if (pe->cert_len == 0)
		return 0;
	if (pe->cert_off < pe->headers_size || pe->cert_off > pe->len ||
		pe->cert_len != pe->len - pe->cert_off)
		return err_set(err, ERR_INVALID,
			"PE certificate table (%u bytes at %u) is not at the end of the file",
			pe->cert_len, pe->cert_off);
	return 0;
}

/* Parse "/123", a reference to the string table. Return false if the name is not one. */
static bool long_name_offset(const uint8_t name[8], uint32_t *offset)
{
	size_t i = 1;

	*offset = 0;
	if (name[0] != '/')
		return false;
	for (; i < 8 && name[i] != '\0'; i++) {
		if (name[i] < '0' || name[i] > '9')
			return false;
		*offset = *offset * 10 + (uint32_t)(name[i] - '0');
	}
	return i > 1;
}

static void set_name(struct pe_section *s, const uint8_t *text, size_t len)
{
	size_t n = len < sizeof(s->name) - 1 ? len : sizeof(s->name) - 1;

	memcpy(s->name, text, n);
	s->name[n] = '\0';
}

/* Read a section name: short, or "/N" for offset N in the string table after the symbols. Linkers
 * that strip symbols leave such names without a table; loaders ignore that, so the name is kept as
 * it is. */
static int read_name(const struct pe *pe, const struct head *h, const uint8_t name[8],
	struct pe_section *s, struct err *err)
{
	uint64_t table = measure_le32(pe->data + h->coff + 12);
	uint32_t at, size;
	size_t room, n;

	if (table == 0 || !long_name_offset(name, &at)) {
		set_name(s, name, strnlen((const char *)name, 8));
		return 0;
	}
	table += (uint64_t)SYMBOL_SIZE * measure_le32(pe->data + h->coff + 16);
	if (table > pe->len || pe->len - table < 4)
		return err_set(err, ERR_INVALID, "PE string table starts past the end of the file");
	size = measure_le32(pe->data + table);
	if (size > pe->len - table)
		return err_set(
			err, ERR_INVALID, "PE string table reaches past the end of the file");
	/* Search no further than the name buffer: 96 references into a huge string would take
	 * seconds. */
	room = at < 4 || at >= size ? 0 : size - at;
	if (room > sizeof(s->name))
		room = sizeof(s->name);
	n = room == 0 ? 0 : strnlen((const char *)pe->data + table + at, room);
	if (n == room && room < sizeof(s->name))
		return err_set(
			err, ERR_INVALID, "PE section name /%u is outside the string table", at);
	set_name(s, pe->data + table + at, n);
	return 0;
}

/* Sections are sorted by offset, so each one only has to begin after the previous one ends. */
static int check_overlap(const struct pe *pe, struct err *err)
{
	size_t end = pe->headers_size;

	for (unsigned i = 0; i < pe->n_filed; i++) {
		const struct pe_section *s = &pe->section[pe->filed[i]];

		if (s->raw_off < end)
			return err_set(err, ERR_INVALID,
				"PE section %u overlaps the data before it in the file",
				pe->filed[i]);
		end = (size_t)s->raw_off + s->raw_size;
	}
	return 0;
}

static int read_sections(struct pe *pe, const struct head *h, struct err *err)
{
	size_t room = pe->len - pe->cert_len;

	for (unsigned i = 0; i < pe->n_sections; i++) {
		const uint8_t *p = pe->data + h->sections + (size_t)SECTION_HEADER * i;
		struct pe_section *s = &pe->section[i];
		unsigned at;

		if (read_name(pe, h, p, s, err) < 0)
			return -1;
		s->virtual_size = measure_le32(p + 8);
		s->raw_size = measure_le32(p + 16);
		s->raw_off = measure_le32(p + 20);
		if (s->raw_size == 0)
			continue;
		if (s->raw_off > room || s->raw_size > room - s->raw_off)
			return err_set(err, ERR_INVALID,
				"PE section %u (%u bytes at %u) reaches past the end of the file or into "
				"its certificate table",
				i, s->raw_size, s->raw_off);
		/* Insert the section into `filed`, sorted by offset in the file. */
		for (at = pe->n_filed++; at > 0; at--) {
			if (pe->section[pe->filed[at - 1]].raw_off <= s->raw_off)
				break;
			pe->filed[at] = pe->filed[at - 1];
		}
		pe->filed[at] = (uint8_t)i;
	}
	return check_overlap(pe, err);
}

int pe_parse(const void *data, size_t len, struct pe *out, struct err *err)
{
	struct head h = {0};

	*out = (struct pe){.data = data, .len = len};
	if (read_coff(out, &h, err) < 0 || read_optional(out, &h, err) < 0)
		return -1;
	return read_sections(out, &h, err);
}

const uint8_t *pe_section_find(const struct pe *pe, const char *name, size_t *len)
{
	*len = 0;
	for (unsigned i = 0; i < pe->n_sections; i++) {
		const struct pe_section *s = &pe->section[i];

		if (!str_eq(s->name, name))
			continue;
		if (s->raw_size == 0)
			return pe->data; /* the section exists but is empty */
		*len = s->virtual_size < s->raw_size ? s->virtual_size : s->raw_size;
		return pe->data + s->raw_off;
	}
	return NULL;
}

/* Entries are padded to 8 bytes. Other certificate types are skipped, as loaders do. */
bool pe_next_signature(
	const struct pe *pe, size_t *pos, const uint8_t **der, size_t *len, struct err *err)
{
	while (*pos < pe->cert_len) {
		const uint8_t *p = pe->data + pe->cert_off + *pos;
		size_t left = pe->cert_len - *pos, size = left < 4 ? 0 : measure_le32(p), step;

		if (size < WIN_CERTIFICATE || size > left) {
			err_set(err, ERR_INVALID,
				"PE certificate table is damaged at byte %zu of %u", *pos,
				pe->cert_len);
			return false;
		}
		step = (size + 7) & ~(size_t)7;
		*pos += step < left ? step : left;
		if (measure_le16(p + 6) != WIN_CERT_PKCS7)
			continue;
		*der = p + WIN_CERTIFICATE;
		*len = size - WIN_CERTIFICATE;
		return true;
	}
	return false;
}
