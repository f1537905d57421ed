/* SPDX-License-Identifier: MIT */
/*
 * A PE file, all the way: headers, sections, signatures, digests. What is accepted lies inside the
 * file, the digest reads only forward and reaches the certificate table, and an image that has no
 * signature agrees with anything. The input is copied, so that a byte too far is a fault.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool inside(const uint8_t *part, size_t part_len, const uint8_t *p, size_t len)
{
	return part >= p && part_len <= len && (size_t)(part - p) <= len - part_len;
}

/* What is asked for lies before the certificate table. */
static const uint8_t *read_bytes(void *arg, size_t from, size_t len, struct err *err)
{
	const struct pe *pe = arg;

	assert(len > 0 && len <= AUTHENTICODE_STEP);
	assert(from <= pe->len - pe->cert_len && len <= pe->len - pe->cert_len - from);
	return pe->data + from;
}

static void check_cert(const struct authenticode_cert *c, const uint8_t *p, size_t len)
{
	struct authenticode_cert again;
	struct err err = ERR_INIT;

	assert(inside(c->der, c->der_len, p, len));
	assert(inside(c->subject, c->subject_len, c->der, c->der_len));
	assert(inside(c->issuer, c->issuer_len, c->der, c->der_len));
	if (authenticode_cert_read(c->der, c->der_len, &again, &err) < 0)
		assert(!"a certificate of a signature is none");
	assert(again.subject == c->subject && again.issuer_len == c->issuer_len);
}

static void check_signature(const uint8_t *der, size_t len)
{
	struct authenticode_sig sig;
	struct err err = ERR_INIT;

	if (authenticode_read(der, len, &sig, &err) < 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	assert(sig.n_certs <= AUTHENTICODE_CERTS_MAX);
	for (size_t i = 0; i < sig.n_certs; i++)
		check_cert(&sig.cert[i], der, len);
}

static void check_signatures(const struct pe *pe, const uint8_t digest[SHA256_LEN])
{
	struct err err = ERR_INIT, check_err = ERR_INIT;
	size_t pos = 0, n = 0, len, counted;
	const uint8_t *der;

	while (pe_next_signature(pe, &pos, &der, &len, &err)) {
		assert(inside(der, len, pe->data + pe->cert_off, pe->cert_len));
		check_signature(der, len);
		n++;
	}
	if (authenticode_check(pe, digest, &counted, &check_err) == 0)
		assert(!err_is_set(&err) && counted == n);
	else
		assert(check_err.kind == ERR_INVALID && pe->cert_len > 0);
}

static void check_image(const struct pe *pe)
{
	struct authenticode_digests d;
	struct err err = ERR_INIT;
	size_t len;

	assert(pe->n_sections <= PE_SECTIONS_MAX && pe->n_filed <= pe->n_sections);
	for (unsigned i = 0; i < pe->n_sections; i++) {
		const uint8_t *p = pe_section_find(pe, pe->section[i].name, &len);

		assert(strnlen(pe->section[i].name, sizeof(pe->section[i].name)) <
			sizeof(pe->section[i].name));
		assert(p && inside(p, len, pe->data, pe->len));
	}
	if (authenticode_digest(pe, read_bytes, (void *)pe, &d, &err) < 0)
		assert(!"an image that was accepted has no digest");
	if (pe->cert_len > 0 || pe->len % 8 == 0)
		assert(memcmp(d.as_signed, d.as_measured, SHA256_LEN) == 0);
	check_signatures(pe, d.as_signed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free uint8_t *copy = xmalloc(size ? size : 1);
	struct err err = ERR_INIT;
	struct pe pe;

	memcpy(copy, data, size);
	if (pe_parse(copy, size, &pe, &err) < 0)
		assert(err.kind == ERR_INVALID);
	else
		check_image(&pe);
	check_signature(copy, size);
	return 0;
}
