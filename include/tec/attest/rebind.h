/* SPDX-License-Identifier: MIT */
/*
 * Gives a LUKS2 disk's tokens of the pin trustee other servers, with cryptsetup as a child for each look
 * and each change (attest/luks2.h decides). Before anything is changed one of the new servers has to give
 * a key that opens the old token, and what is in it has to open the key slot; the old token is removed
 * after the same was done with the new one as it is in the header. Passphrases pass through standard input.
 */
#ifndef TEC_ATTEST_REBIND_H
#define TEC_ATTEST_REBIND_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/attest/fetch.h"

struct attest_rebind_request {
	const struct attest_config
		*servers;   /* borrowed until done: the list, and how often to ask it */
	const char *device; /* borrowed until done */
	bool dry_run;       /* ends before the first change */
	uint32_t budget_ms; /* for each fetch of a key; 0: none */
	void (*say)(void *arg, const char *text);
};

/* ATTEST_OK: all tokens have the servers, or with dry_run they could get them. ATTEST_DISK with
 * ERR_NOT_FOUND: the disk has no token of the pin. */
typedef void (*attest_rebind_fn)(void *arg, enum attest_fault fault, const struct err *err);

struct op *attest_rebind_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_rebind_request *r, attest_rebind_fn done,
	void *arg);

#endif
