/* SPDX-License-Identifier: MIT */
/*
 * PE/COFF images as UEFI loaders see them (Microsoft PE format; UEFI 2.10 section 32): headers,
 * sections (COFF long names too), the certificate table. Bytes in, views out: everything borrows
 * from `data`. Every offset, size and count is checked against the file's size and against each
 * other; what UEFI's own loader refuses is refused.
 */
#ifndef TEC_PCR_PE_H
#define TEC_PCR_PE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"

#define PE_SECTIONS_MAX 96 /* the format's own limit */

enum pe_machine { PE_MACHINE_OTHER, PE_MACHINE_X64, PE_MACHINE_AARCH64 };

struct pe_section {
	char name[64]; /* resolved and truncated; untrusted: escape before printing */
	uint32_t virtual_size, raw_size, raw_off;
};

struct pe {
	const uint8_t *data; /* borrowed */
	size_t len;
	enum pe_machine machine;
	bool plus;                             /* PE32+ */
	uint32_t checksum_off, cert_entry_off; /* 0: no certificate directory entry */
	uint32_t headers_size;
	uint32_t cert_off, cert_len; /* certificate table, at the file's end; len 0: unsigned */
	unsigned n_sections;
	struct pe_section section[PE_SECTIONS_MAX];
	/* Indexes of the sections that have bytes in the file, by offset. They overlap neither each
	 * other nor headers or certificate table. */
	unsigned n_filed;
	uint8_t filed[PE_SECTIONS_MAX];
};

/* ERR_INVALID names the faulty field. */
int pe_parse(const void *data, size_t len, struct pe *out, struct err *err) MUST_CHECK;
/* Return min(VirtualSize, SizeOfRawData) bytes of the first section with this name, or NULL. */
const uint8_t *pe_section_find(const struct pe *pe, const char *name, size_t *len);

/* Iterate over the WIN_CERTIFICATEs of type PKCS#7 in table order; start with *pos = 0. False: the
 * end, or a damaged table (ERR_INVALID). */
bool pe_next_signature(
	const struct pe *pe, size_t *pos, const uint8_t **der, size_t *len, struct err *err);

#endif
