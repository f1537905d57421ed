/* SPDX-License-Identifier: MIT */
/* A result that is known immediately is delivered in the next turn of the loop, as loop/op.h
 * requires. */
#include "config.h"

#include "tec/attest/source.h"

#include <stdio.h>

#include "tec/attest/esys.h"
#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/child.h"

#define CHILD_MS     60000 /* a slow TPM needs some seconds for a signature */
#define EVIDENCE_MAX 16384

/* ---- results known at the start */

/* Keeps a result until the loop delivers it. */
struct known {
	struct op op; /* first */
	struct defer defer;
	attest_evidence_fn done;
	void *arg;
	struct strbuf json;
	struct err err;
};

static void known_free(struct op *op)
{
	struct known *k = container_of(op, struct known, op);

	defer_cancel(&k->defer);
	strbuf_fini(&k->json);
	free(k);
}

static void on_turn(void *arg)
{
	struct known *k = arg;

	op_finish(&k->op);
	k->done(k->arg, &k->err, strbuf_str(&k->json), k->json.len);
	known_free(&k->op);
}

static struct known *known_new(
	const struct attest_source *s, struct op_scope *scope, attest_evidence_fn done, void *arg)
{
	struct known *k = xcalloc(1, sizeof(*k));

	k->done = done;
	k->arg = arg;
	op_begin(&k->op, scope, known_free);
	defer_call(&k->defer, s->loop, on_turn, k);
	return k;
}

/* Quote in this process. The TPM blocks the loop, which only commands for a person may do. */
static struct op *tpm_start(const struct attest_source *s, struct op_scope *scope,
	const uint8_t binding[RATS_BINDING_LEN], attest_evidence_fn done, void *arg)
{
	struct known *k = known_new(s, scope, done, arg);
	cleanup_esys struct attest_esys *e = attest_esys_open(s->tcti, &k->err);

	/* A quote carries at most 64 bytes of extra data; verifiers compare the first 32. */
	if (e && attest_esys_quote(e, s->ak_handle, binding, &k->json, &k->err) < 0)
		strbuf_reset(&k->json);
	return &k->op;
}

/* Produce the evidence of Trustee's sample TEE: the binding, and nothing that proves it. */
static struct op *sample_start(const struct attest_source *s, struct op_scope *scope,
	const uint8_t binding[RATS_BINDING_LEN], attest_evidence_fn done, void *arg)
{
	struct known *k = known_new(s, scope, done, arg);

	strbuf_adds(&k->json, "{\"svn\":\"1\",\"report_data\":\"");
	bytes_to_b64(&k->json, binding, RATS_BINDING_LEN);
	strbuf_adds(&k->json, "\"}");
	return &k->op;
}

/* ---- the TPM in a child */

/* Quote in a child process, so that a slow TPM does not block the loop of a service. */
static struct op *child_run(const struct attest_source *s, struct op_scope *scope,
	const uint8_t binding[RATS_BINDING_LEN], attest_evidence_fn done, void *arg)
{
	char extra[SHA256_HEX_LEN + 1], handle[16];
	const char *argv[] = {"tec-node", "quote", "--extra", extra, "--tcti", s->tcti,
		"--ak-handle", handle, NULL};
	const struct child_spec spec = {
		.file = s->program, .argv = argv, .max_out = EVIDENCE_MAX, .deadline_ms = CHILD_MS};

	bytes_to_hex(binding, SHA256_LEN, extra);
	snprintf(handle, sizeof(handle), "0x%08x", s->ak_handle);
	return child_start(s->loop, scope, &spec, done, arg);
}

/* ---- makers */

struct attest_source attest_source_tpm(struct loop *l, const char *tcti, uint32_t ak_handle)
{
	return (struct attest_source){.tee = rats_tee_name(RATS_TEE_TPM),
		.start = tpm_start,
		.loop = l,
		.tcti = tcti,
		.ak_handle = ak_handle};
}

struct attest_source attest_source_child(
	struct loop *l, const char *program, const char *tcti, uint32_t ak_handle)
{
	struct attest_source s = attest_source_tpm(l, tcti, ak_handle);

	s.start = child_run;
	s.program = program;
	return s;
}

struct attest_source attest_source_sample(struct loop *l)
{
	return (struct attest_source){
		.tee = rats_tee_name(RATS_TEE_SAMPLE), .start = sample_start, .loop = l};
}
