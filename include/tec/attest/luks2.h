/* SPDX-License-Identifier: MIT */
/*
 * The tokens of a LUKS2 header that clevis made with the pin trustee, and what is to be done so that they
 * have other servers: one change at a time, decided from the header alone, so that a run that was killed
 * is completed by the next one. A key slot is never touched: the new token holds the same passphrase,
 * encrypted again with the same key, so the disk opens with one token or with both at every moment.
 */
#ifndef TEC_ATTEST_LUKS2_H
#define TEC_ATTEST_LUKS2_H

#include <stddef.h>

#include "tec/attest/pin.h"
#include "tec/base/err.h"
#include "tec/base/str.h"

#define ATTEST_LUKS2_MAX       32         /* tokens of a header, and key slots */
#define ATTEST_LUKS2_DUMP_MAX  (8u << 20) /* a header's JSON is 4 MiB at most */
#define ATTEST_LUKS2_DISKS_MAX 64

struct attest_binding {
	unsigned token, keyslot;     /* numbers in the header */
	char *jwe;                   /* owned; compact */
	struct attest_config config; /* of its protected header */
};

struct attest_bindings {
	struct attest_binding b[ATTEST_LUKS2_MAX]; /* by number of the token */
	size_t n;
};

/* From what `cryptsetup luksDump --dump-json-metadata` prints. Other tokens, and those without a key slot,
 * are left out. ERR_INVALID names the token. out needs attest_bindings_fini() either way. */
int attest_bindings_read(
	const char *json, size_t len, struct attest_bindings *out, struct err *err) MUST_CHECK;
void attest_bindings_fini(struct attest_bindings *b);

enum attest_rebind_do {
	ATTEST_REBIND_NOTHING, /* every token has the servers */
	ATTEST_REBIND_ADD,     /* a token beside `old` */
	ATTEST_REBIND_PROVE,   /* that `new` opens the disk */
	ATTEST_REBIND_REMOVE,  /* `old`, as `new` was proved */
};

struct attest_rebind_step {
	enum attest_rebind_do act;
	const struct attest_binding *old, *new; /* borrowed from the bindings; NULL: none */
};

/* servers: of which only the list counts. proved: the JWE that opened the disk; NULL: none yet. */
struct attest_rebind_step attest_rebind_decide(
	const struct attest_bindings *b, const struct attest_config *servers, const char *proved);

/* The protected header's configuration for these servers in the place of old's; all of it is borrowed. */
struct attest_config attest_rebind_config(
	const struct attest_binding *old, const struct attest_config *servers);
/* What `cryptsetup token import` takes, as clevis writes it; jwe is one that was sealed. */
void attest_binding_write(const char *jwe, unsigned keyslot, struct strbuf *out);

/* The disks under the open LUKS2 mappings, as "/dev/NAME", which the caller frees; blocks: /sys/block.
 * How many; further ones are left out. */
size_t attest_luks2_opened(const char *blocks, char *out[ATTEST_LUKS2_DISKS_MAX]);

#endif
