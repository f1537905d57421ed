/* SPDX-License-Identifier: MIT */
/*
 * EFI variables as they are measured (UEFI 2.10 sections 8.2, 32.4; TCG PFP section 10.2.6), and
 * the two sections of shim that become variables. Bytes in, digests and views out; all results
 * borrow from the arguments. ERR_INVALID: the data is damaged.
 */
#ifndef TEC_PCR_EFIVAR_H
#define TEC_PCR_EFIVAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"
#include "tec/base/str.h"

/* In memory order. */
struct efi_guid {
	uint8_t b[16];
};
extern const struct efi_guid efi_global_variable, efi_image_security_database, efi_shim_lock,
	efi_cert_x509, efi_cert_sha256;

/* SHA-256 of UEFI_VARIABLE_DATA. name is ASCII. */
void efi_variable_digest(const struct efi_guid *guid, const char *name, const void *data,
	size_t len, uint8_t out[SHA256_LEN]);

/* UEFI_VARIABLE_DATA from a log event. Borrowed. */
struct efi_logged_variable {
	struct efi_guid guid;
	const uint8_t *name; /* UTF-16LE, without NUL */
	size_t name_chars;
	const uint8_t *data;
	size_t len;
};
/* Return false if the data is not a variable; out is empty then. */
bool efi_logged_variable(const void *event, size_t len, struct efi_logged_variable *out);

/* Iterate over the entries of EFI_SIGNATURE_LISTs: owner and data (X.509: DER). Start with *pos =
 * {0}. False: the end, or damage (err is set). */
struct efi_sig_pos {
	size_t list, entry; /* offsets */
};
struct efi_sig {
	struct efi_guid type, owner;
	const uint8_t *data; /* after the owner */
	size_t len;
	const uint8_t *with_owner; /* EFI_SIGNATURE_DATA: owner and data */
	size_t with_owner_len;
};
bool efi_sig_next(const void *lists, size_t len, struct efi_sig_pos *pos, struct efi_sig *out,
	struct err *err);

/* Shim's .vendor_cert: what shim itself trusts (a DER certificate or signature lists) and what it
 * denies. Borrowed; lengths may be 0. */
struct shim_vendor {
	const uint8_t *auth, *deauth;
	size_t auth_len, deauth_len;
	bool auth_is_lists; /* vendor_db; otherwise one DER certificate */
};
int shim_vendor_read(
	const void *section, size_t len, struct shim_vendor *out, struct err *err) MUST_CHECK;
/* Read shim's .sbatlevel: the text that becomes SbatLevel. latest false: the automatic ("previous")
 * level. */
int shim_sbat_level(const void *section, size_t len, bool latest, const char **text,
	size_t *text_len, struct err *err) MUST_CHECK;
#define SHIM_SBAT_ORIGINAL "sbat,1,2021030218\n"

/* Append MokListRT and MokListXRT as shim creates them from .vendor_cert while no MOK is
 * enrolled. */
void shim_mok_list(const struct shim_vendor *v, struct strbuf *out);
void shim_mok_list_x(const struct shim_vendor *v, struct strbuf *out);

#endif
