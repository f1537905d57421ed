/* SPDX-License-Identifier: MIT */
/*
 * Give the pin trustee's tokens of a LUKS2 disk other servers. cryptsetup runs as a child process
 * for each look and each change; attest/luks2.h decides. Before the first change, a new server must
 * provide a key that decrypts the old token, and the passphrase in it must open the key slot. The
 * old token is removed only after the same was proved for the new token as read back from the
 * header. Passphrases are passed on standard input.
 */
#ifndef TEC_ATTEST_REBIND_H
#define TEC_ATTEST_REBIND_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/attest/fetch.h"

struct attest_rebind_request {
	const struct attest_config *servers; /* borrowed until done; the list and its retries */
	const char *device;                  /* borrowed until done */
	bool dry_run;                        /* stop before the first change */
	uint32_t budget_ms;                  /* for each fetch of a key; 0: no limit */
	void (*say)(void *arg, const char *text);
};

/* ATTEST_OK: all tokens have the servers or, with dry_run, could get them. ATTEST_DISK with
 * ERR_NOT_FOUND: the disk has no token of the pin. */
typedef void (*attest_rebind_fn)(void *arg, enum attest_fault fault, const struct err *err);

struct op *attest_rebind_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_rebind_request *r, attest_rebind_fn done,
	void *arg);

#endif
