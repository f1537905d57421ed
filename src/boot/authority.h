/* SPDX-License-Identifier: MIT */
/* Private to src/boot: what authorizes a file that is started with Secure Boot on. */
#ifndef TEC_BOOT_AUTHORITY_H
#define TEC_BOOT_AUTHORITY_H

#include "boot_internal.h"

/* A variable with signature lists, and the event that a match in it produces. */
struct boot_store {
	const uint8_t *lists; /* EFI_SIGNATURE_LISTs, borrowed */
	size_t len;
	const struct efi_guid *guid;
	const char *name;
	enum pcr_event_id id;
};

/* The lists that firmware or shim searches, in this order. */
struct boot_trust {
	bool by_shim;
	struct boot_store stores[3], revoked[2];
	size_t n_stores, n_revoked;
};

/* Find what authorizes f, which must be hashed. ERR_INVALID: nothing does, or f is revoked; the
 * text says what to do. */
int boot_authority_find(const struct boot_file *f, const struct boot_trust *t,
	struct boot_authority *out, struct err *err) MUST_CHECK;

#endif
