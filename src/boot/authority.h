/* SPDX-License-Identifier: MIT */
/* Private to src/boot: who vouches for a file that is started with Secure Boot on. */
#ifndef TEC_BOOT_AUTHORITY_H
#define TEC_BOOT_AUTHORITY_H

#include "boot_internal.h"

/* One variable with lists of certificates and hashes, and how a match in it is measured. */
struct boot_store {
	const uint8_t *lists; /* EFI_SIGNATURE_LISTs, borrowed */
	size_t len;
	const struct efi_guid *guid;
	const char *name;
	enum pcr_event_id id;
};

/* What firmware or shim asks, in this order. */
struct boot_trust {
	bool by_shim;
	struct boot_store stores[3], revoked[2];
	size_t n_stores, n_revoked;
};

/* ERR_INVALID: nobody vouches for f, or it is revoked; it says what to do. f is hashed. */
int boot_authority_find(const struct boot_file *f, const struct boot_trust *t,
	struct boot_authority *out, struct err *err) MUST_CHECK;

#endif
