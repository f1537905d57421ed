/* SPDX-License-Identifier: MIT */
/*
 * Where a node's evidence comes from: one struct attest_source per platform, so that another platform
 * is another maker of one. `start` collects the evidence that is bound to these bytes and gives out the
 * JSON object `primary_evidence`; its op ends as every op does (loop/op.h).
 *
 * A source of the TPM that is `blocking` does its work before start() returns, as a command for a person
 * may; the other one runs this program once more (`quote`), so that no loop waits for a TPM. That child
 * is never killed early: it holds signals back, and ends by itself.
 */
#ifndef TEC_ATTEST_SOURCE_H
#define TEC_ATTEST_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/rats/rcar.h"

/* What a failure says about: the exit status of the commands. */
enum attest_fault {
	ATTEST_OK,
	ATTEST_REFUSED, /* by policy: what booted, whose key it is, which resource */
	ATTEST_USAGE,   /* options, configuration, input */
	ATTEST_TPM,
	ATTEST_NETWORK, /* no answer, or not from the server that was meant */
	ATTEST_SERVER,  /* an answer that is of no use */
	ATTEST_DISK,    /* a LUKS2 disk, or cryptsetup */
};

/* err NONE: json is the evidence, borrowed for the call. */
typedef void (*attest_evidence_fn)(void *arg, const struct err *err, const char *json, size_t len);

struct attest_source {
	const char *tee; /* "tpm", "sample" */
	struct op *(*start)(const struct attest_source *s, struct op_scope *scope,
		const uint8_t binding[RATS_BINDING_LEN], attest_evidence_fn done, void *arg);
	struct loop *loop;   /* borrowed, as all below */
	const char *tcti;    /* tpm */
	uint32_t ak_handle;  /* tpm */
	const char *program; /* tpm that does not block: the path of this program */
};

struct attest_source attest_source_tpm(struct loop *l, const char *tcti, uint32_t ak_handle);
struct attest_source attest_source_child(
	struct loop *l, const char *program, const char *tcti, uint32_t ak_handle);
/* Proves nothing: for tests of the protocol. */
struct attest_source attest_source_sample(struct loop *l);

#endif
