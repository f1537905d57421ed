/* SPDX-License-Identifier: MIT */
/*
 * Where a node's evidence comes from: one struct attest_source per platform, so that a new platform
 * only needs a new constructor. `start` collects evidence bound to the given bytes and delivers it
 * as the JSON object `primary_evidence`; its op ends as every op does (loop/op.h).
 *
 * attest_source_tpm() blocks: it does its work before start() returns, which is fine for a command.
 * attest_source_child() runs this program again (`quote`), so that no loop waits for a TPM. The
 * child blocks signals during a TPM command and ends on its own.
 */
#ifndef TEC_ATTEST_SOURCE_H
#define TEC_ATTEST_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/rats/rcar.h"

/* The cause of a failure; it determines the exit status of the commands. */
enum attest_fault {
	ATTEST_OK,
	ATTEST_REFUSED, /* by policy: measurements, key, or resource */
	ATTEST_USAGE,   /* options, configuration, input */
	ATTEST_TPM,
	ATTEST_NETWORK, /* no answer, or not from the intended server */
	ATTEST_SERVER,  /* an unusable answer */
	ATTEST_DISK,    /* a LUKS2 disk, or cryptsetup */
};

/* If err is not set, json is the evidence, borrowed for the call. */
typedef void (*attest_evidence_fn)(void *arg, const struct err *err, const char *json, size_t len);

struct attest_source {
	const char *tee; /* "tpm", "sample" */
	struct op *(*start)(const struct attest_source *s, struct op_scope *scope,
		const uint8_t binding[RATS_BINDING_LEN], attest_evidence_fn done, void *arg);
	struct loop *loop;   /* borrowed, as all below */
	const char *tcti;    /* tpm */
	uint32_t ak_handle;  /* tpm */
	const char *program; /* attest_source_child(): the path of this program */
};

struct attest_source attest_source_tpm(struct loop *l, const char *tcti, uint32_t ak_handle);
struct attest_source attest_source_child(
	struct loop *l, const char *program, const char *tcti, uint32_t ak_handle);
/* Evidence that proves nothing, for protocol tests. */
struct attest_source attest_source_sample(struct loop *l);

#endif
