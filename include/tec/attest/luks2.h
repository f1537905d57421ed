/* SPDX-License-Identifier: MIT */
/*
 * The clevis tokens with the pin trustee in a LUKS2 header, and the changes needed to give them
 * other servers. Each change is decided from the header alone, so the next run completes one that
 * was killed. Key slots are never modified: the new token holds the same passphrase, encrypted
 * again with the same key, so the disk opens with one token or with both at every moment.
 */
#ifndef TEC_ATTEST_LUKS2_H
#define TEC_ATTEST_LUKS2_H

#include <stddef.h>

#include "tec/attest/pin.h"
#include "tec/base/err.h"
#include "tec/base/str.h"

#define ATTEST_LUKS2_MAX       32         /* tokens in a header; key slots as well */
#define ATTEST_LUKS2_DUMP_MAX  (8u << 20) /* a header's JSON is 4 MiB at most */
#define ATTEST_LUKS2_DISKS_MAX 64

struct attest_binding {
	unsigned token, keyslot;     /* their numbers in the header */
	char *jwe;                   /* owned; compact */
	struct attest_config config; /* from its protected header */
};

struct attest_bindings {
	struct attest_binding b[ATTEST_LUKS2_MAX]; /* sorted by token number */
	size_t n;
};

/*
 * Parse the output of `cryptsetup luksDump --dump-json-metadata`. Other tokens, and those without a
 * key slot, are skipped. ERR_INVALID names the token. out needs attest_bindings_fini() either way.
 */
int attest_bindings_read(
	const char *json, size_t len, struct attest_bindings *out, struct err *err) MUST_CHECK;
void attest_bindings_fini(struct attest_bindings *b);

enum attest_rebind_do {
	ATTEST_REBIND_NOTHING, /* all tokens have the servers */
	ATTEST_REBIND_ADD,     /* add a token next to `old` */
	ATTEST_REBIND_PROVE,   /* prove that `new` opens the disk */
	ATTEST_REBIND_REMOVE,  /* remove `old`; `new` was proved */
};

struct attest_rebind_step {
	enum attest_rebind_do act;
	const struct attest_binding *old, *new; /* borrowed from the bindings; NULL: none */
};

/* Decide on the next change. Only the list of `servers` counts. proved: the JWE that opened the
 * disk, or NULL. */
struct attest_rebind_step attest_rebind_decide(
	const struct attest_bindings *b, const struct attest_config *servers, const char *proved);

/* Return old's configuration with these servers. All of it is borrowed. */
struct attest_config attest_rebind_config(
	const struct attest_binding *old, const struct attest_config *servers);
/* Return a sealed JWE as input for `cryptsetup token import`, in the form that clevis uses. The caller
 * frees it. */
char *attest_binding_write(const char *jwe, unsigned keyslot);

/* List the disks below open LUKS2 mappings as "/dev/NAME", which the caller frees. blocks:
 * /sys/block. Returns their number; disks beyond the maximum are left out. */
size_t attest_luks2_opened(const char *blocks, char *out[ATTEST_LUKS2_DISKS_MAX]);

#endif
