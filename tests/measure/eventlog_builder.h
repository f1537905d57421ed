/* SPDX-License-Identifier: MIT */
/*
 * TCG2 event logs for tests: a Spec ID event, then events with one digest per bank.
 */
#ifndef TEC_TESTS_EVENTLOG_BUILDER_H
#define TEC_TESTS_EVENTLOG_BUILDER_H

#include "measure/pe_builder.h"

struct log_alg {
	uint16_t id, size;
};
static const struct log_alg log_two_banks[] __attribute__((unused)) = {{0x04, 20}, {0x0b, 32}};

static void log_le32(struct strbuf *b, uint32_t v)
{
	size_t at = b->len;

	pe_fill(b, 4, 0);
	pe_poke32(b, at, v);
}

__attribute__((unused)) static void log_begin(
	struct strbuf *b, const struct log_alg *algs, size_t n)
{
	log_le32(b, 0);
	log_le32(b, 3); /* EV_NO_ACTION */
	pe_fill(b, 20, 0);
	log_le32(b, (uint32_t)(28 + 4 * n + 1 + 3));
	strbuf_add(b, "Spec ID Event03", 16);
	log_le32(b, 0);
	strbuf_add(b, "\0\2\0\2", 4);
	log_le32(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		log_le32(b, algs[i].id | (uint32_t)algs[i].size << 16);
	strbuf_add(b, "\3abc", 4);
}

/* Bank i's digest consists of bytes fill + i. */
__attribute__((unused)) static void log_event(struct strbuf *b, uint32_t pcr, uint32_t type,
	const struct log_alg *algs, size_t n, int fill, const void *data, size_t len)
{
	log_le32(b, pcr);
	log_le32(b, type);
	log_le32(b, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		strbuf_addc(b, (char)algs[i].id);
		strbuf_addc(b, (char)(algs[i].id >> 8));
		pe_fill(b, algs[i].size, fill + (int)i);
	}
	log_le32(b, (uint32_t)len);
	strbuf_add(b, data, len);
}

#endif
