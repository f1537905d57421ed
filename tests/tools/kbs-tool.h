/* SPDX-License-Identifier: MIT */
/* Shared by the parts of tec-test-kbs: what it keeps, the debug listener, files as a store. */
#ifndef TESTS_TOOLS_KBS_TOOL_H
#define TESTS_TOOLS_KBS_TOOL_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/broker/kbsd.h"

#include "../fake/broker.h"

#define TOOL_LOG_MAX   16384
#define TOOL_COUNT_MAX 128
#define TOOL_FILE_MAX  ((size_t)16 << 20)

/* One request as it was answered. */
struct tool_entry {
	uint64_t n, ms;                   /* running number from 1; milliseconds since the start */
	const char *verb, *method, *type; /* static */
	char *target;                     /* owned */
	int status;
};

struct tool {
	struct loop *loop;
	struct broker_store *store;   /* owned */
	struct jws_public *admin_key; /* owned */
	struct broker_auth auth;
	struct broker_admin admin;
	struct broker_kbsd *kbsd;
	struct broker_attest *attest;     /* owned; NULL: nodes cannot attest */
	struct pki_key *signer;           /* owned */
	struct broker_policy policies[8]; /* their texts are owned */
	size_t n_policies;
	struct httpd *debug;  /* NULL: none */
	const char *from_dir; /* NULL: none */
	bool quirks;
	uint64_t start_ms, n_requests;
	struct tool_entry log[TOOL_LOG_MAX]; /* by n modulo its size */
	struct {
		const char *verb;
		int status;
		uint64_t n;
	} counts[TOOL_COUNT_MAX];
	unsigned n_counts;
};

/* kbs-debug.c */
/* kbsd's on_answer: adds the quirks, then notes it. */
void tool_answer(void *arg, const struct broker_request *r, struct broker_answer *a);
/* addr must be a loopback address. */
int tool_debug_listen(struct tool *t, const char *addr, struct err *err) MUST_CHECK;
void tool_log_free(struct tool *t);
int tool_new_store(struct tool *t, struct err *err) MUST_CHECK; /* the old one is gone */

/* kbs-files.c */
/* Puts what the files below dir say into the store. */
int tool_load_files(struct broker_store *store, const char *dir, struct err *err) MUST_CHECK;
/* Appends {"NAME":"TEXT",...} of the registered attestation keys below dir. */
void tool_dump_aks(struct strbuf *out, const char *dir);

#endif
