/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "measure/eventlog_builder.h"
#include "tec/base/mem.h"
#include "tec/measure/efivar.h"
#include "tec/measure/eventlog.h"

/* Reads all of a copy of exactly this size: -1, or how many events. */
static int read_all(const void *data, size_t len, struct err *err)
{
	cleanup_free void *copy = xmalloc(len ? len : 1);
	struct eventlog_event e;
	struct eventlog log;
	int n = 0, rc;

	memcpy(copy, data, len);
	*err = (struct err)ERR_INIT;
	if (eventlog_open(copy, len, &log, err) < 0)
		return -1;
	while ((rc = eventlog_next(&log, &e, err)) > 0)
		n++;
	return rc < 0 ? -1 : n;
}

static void assert_refused(const struct strbuf *b, const char *part, const char *what)
{
	struct err err;

	cr_assert_eq(read_all(b->data, b->len, &err), -1, "%s was accepted", what);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert(strstr(err.text, part), "%s: \"%s\" lacks \"%s\"", what, err.text, part);
}

Test(measure_eventlog, reads_events_of_several_banks)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct eventlog_event e;
	struct err err = ERR_INIT;
	struct eventlog log;

	log_begin(&b, log_two_banks, 2);
	log_event(&b, 4, 0x80000007, log_two_banks, 2, 0x44, "Calling EFI Application", 23);
	log_event(&b, 7, 4, log_two_banks, 2, 0x77, "\0\0\0\0", 4);
	log_event(&b, 0xffffffff, EVENTLOG_NO_ACTION, log_two_banks, 2, 0, "", 0);
	cr_assert_eq(eventlog_open(b.data, b.len, &log, &err), 0, "%s", err.text);
	cr_assert_eq(log.n_algs, 2);
	cr_assert_eq(eventlog_next(&log, &e, &err), 1, "%s", err.text);
	cr_assert_eq(e.pcr, 4);
	cr_assert_eq(e.type, 0x80000007);
	cr_assert_eq(e.len, 23);
	cr_assert_arr_eq(e.data, "Calling EFI Application", 23);
	cr_assert_eq(e.sha256[0], 0x44 + 1, "the second bank's digest");
	cr_assert_eq(e.sha256[31], 0x44 + 1);
	cr_assert_eq(eventlog_next(&log, &e, &err), 1, "%s", err.text);
	cr_assert_eq(e.pcr, 7);
	cr_assert_eq(eventlog_next(&log, &e, &err), 1, "%s", err.text);
	cr_assert_eq(e.pcr, 0xffffffff);
	cr_assert_eq(eventlog_next(&log, &e, &err), 0);
	cr_assert_eq(eventlog_next(&log, &e, &err), 0, "the end stays the end");
}

Test(measure_eventlog, one_bank_and_eight)
{
	static const struct log_alg one[] = {{0x0b, 32}};
	static const struct log_alg eight[] = {{4, 20}, {0x0b, 32}, {0x0c, 48}, {0x0d, 64},
		{0x12, 32}, {0x27, 32}, {0x28, 48}, {0x29, 64}};
	cleanup_strbuf struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;
	struct err err;

	log_begin(&a, one, 1);
	log_event(&a, 23, 4, one, 1, 1, "x", 1);
	cr_assert_eq(read_all(a.data, a.len, &err), 1, "%s", err.text);
	log_begin(&b, eight, 8);
	log_event(&b, 0, 4, eight, 8, 1, "x", 1);
	cr_assert_eq(read_all(b.data, b.len, &err), 1, "%s", err.text);
}

Test(measure_eventlog, logs_without_sha256_are_refused)
{
	static const struct log_alg sha1[] = {{4, 20}};
	cleanup_strbuf struct strbuf b = STRBUF_INIT, old = STRBUF_INIT;

	log_begin(&b, sha1, 1);
	assert_refused(&b, "has no SHA-256 bank", "SHA-1 alone");
	log_begin(&old, log_two_banks, 2);
	old.data[32 + 14] = '2';
	assert_refused(&old, "old SHA-1 format", "Spec ID Event02");
	old.data[32 + 14] = '3';
	pe_poke32(&old, 4, 8);
	assert_refused(&old, "old SHA-1 format", "no Spec ID event");
}

Test(measure_eventlog, hostile_headers_are_refused)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
		const char *part;
	} t[] = {
		{"first event behind the file", 28, 0x7fffffff, "first event is truncated"},
		{"first event wraps", 28, 0xffffffff, "first event is truncated"},
		{"first event too short", 28, 15, "old SHA-1"},
		{"Spec ID cut before the count", 28, 27, "Spec ID event is truncated"},
		{"Spec ID cut in the table", 28, 36, "Spec ID event is truncated"},
		{"no algorithms", 32 + 24, 0, "0 digest algorithms"},
		{"nine algorithms", 32 + 24, 9, "9 digest algorithms"},
		{"4 billion algorithms", 32 + 24, 0xffffffff, "digest algorithms"},
		{"more algorithms than bytes", 32 + 24, 3, "truncated"},
		{"SHA-1 of 32 bytes", 32 + 28, 0x00200004, "cannot have digests of 32"},
		{"SHA-256 of 20 bytes", 32 + 32, 0x0014000b, "cannot have digests of 20"},
		{"a digest of 0 bytes", 32 + 28, 0x00000099, "has size 0"},
		{"one algorithm twice", 32 + 28, 0x0020000b, "listed twice"},
		{"vendor information behind", 32 + 36, 4, "vendor information"},
	};
	cleanup_strbuf struct strbuf good = STRBUF_INIT;
	struct err err;

	log_begin(&good, log_two_banks, 2); /* its vendor information has 3 bytes */
	cr_assert_eq(read_all(good.data, good.len, &err), 0, "%s", err.text);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf bad = STRBUF_INIT;

		strbuf_add(&bad, good.data, good.len);
		if (t[i].at == 32 + 36)
			bad.data[32 + 36] = (char)t[i].value;
		else
			pe_poke32(&bad, t[i].at, t[i].value);
		assert_refused(&bad, t[i].part, t[i].what);
	}
	for (size_t n = 0; n < good.len; n++)
		cr_assert_eq(read_all(good.data, n, &err), -1, "cut to %zu", n);
}

Test(measure_eventlog, hostile_events_are_refused)
{
	cleanup_strbuf struct strbuf good = STRBUF_INIT;
	struct err err;
	size_t at;

	log_begin(&good, log_two_banks, 2);
	at = good.len; /* pcr, type, count, 0x0004 + 20, 0x000b + 32, size, data */
	log_event(&good, 4, 4, log_two_banks, 2, 9, "data", 4);
	cr_assert_eq(read_all(good.data, good.len, &err), 1);
	{
		const struct {
			const char *what;
			size_t at;
			uint32_t value;
			const char *part;
		} t[] = {
			{"register 24", at, 24, "PCR 24"},
			{"register -1", at, 0xffffffff, "extends PCR"},
			{"no digests", at + 8, 0, "has no SHA-256 digest"},
			{"SHA-1 alone", at + 8, 1, "has no SHA-256 digest"},
			{"a third digest", at + 8, 3, "header does not list"},
			{"4 billion digests", at + 8, 0xffffffff, "header does not list"},
			{"an unknown algorithm", at + 12, 0x0d, "header does not list"},
			{"SHA-256 first", at + 12, 0x0b, "event log"},
			{"data behind the file", at + 68, 5, "truncated"},
			{"data wraps", at + 68, 0xffffffff, "truncated"},
		};

		for (size_t i = 0; i < ARRAY_LEN(t); i++) {
			cleanup_strbuf struct strbuf bad = STRBUF_INIT;

			strbuf_add(&bad, good.data, good.len);
			pe_poke32(&bad, t[i].at, t[i].value);
			assert_refused(&bad, t[i].part, t[i].what);
		}
	}
	for (size_t n = at + 1; n < good.len; n++)
		cr_assert_eq(read_all(good.data, n, &err), -1, "cut to %zu", n);
}

Test(measure_eventlog, two_digests_of_one_algorithm_are_refused)
{
	static const struct log_alg twice[] = {{0x0b, 32}, {0x0b, 32}};
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	log_begin(&b, log_two_banks, 2);
	log_event(&b, 4, 4, twice, 2, 9, "data", 4);
	assert_refused(&b, "two of one algorithm", "SHA-256 twice");
}

Test(measure_eventlog, types_have_names)
{
	cr_assert_str_eq(eventlog_type_name(4), "EV_SEPARATOR");
	cr_assert_str_eq(eventlog_type_name(0x0d), "EV_IPL");
	cr_assert_str_eq(eventlog_type_name(0x80000001), "EV_EFI_VARIABLE_DRIVER_CONFIG");
	cr_assert_str_eq(eventlog_type_name(0x80000003), "EV_EFI_BOOT_SERVICES_APPLICATION");
	cr_assert_str_eq(eventlog_type_name(0x80000007), "EV_EFI_ACTION");
	cr_assert_str_eq(eventlog_type_name(0x800000e0), "EV_EFI_VARIABLE_AUTHORITY");
	cr_assert_str_eq(eventlog_type_name(0x12345678), "EV_?");
}

/* ---- real boots: tests/data/boot/README */

static const char *const boots[] = {"debian12-shim-grub", "debian12-shim-sdboot-off"};

static void read_data(const char *boot, const char *name, struct strbuf *out)
{
	const char *dir = getenv("TEST_DATA");
	cleanup_free char *path = xasprintf("%s/boot/%s/%s", dir ? dir : "tests/data", boot, name);
	FILE *f = fopen(path, "r");
	int c;

	cr_assert(f, "%s cannot be read", path);
	while ((c = fgetc(f)) != EOF)
		strbuf_addc(out, (char)c);
	fclose(f);
}

static void replay(const char *boot)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT, registers = STRBUF_INIT;
	uint8_t pcr[24][2 * SHA256_LEN] = {{0}};
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog log;
	int rc;

	read_data(boot, "eventlog", &b);
	read_data(boot, "registers", &registers);
	cr_assert_eq(eventlog_open(b.data, b.len, &log, &err), 0, "%s", err.text);
	while ((rc = eventlog_next(&log, &e, &err)) > 0) {
		if (e.type == EVENTLOG_NO_ACTION)
			continue;
		memcpy(pcr[e.pcr] + SHA256_LEN, e.sha256, SHA256_LEN);
		bytes_sha256(pcr[e.pcr], sizeof(pcr[e.pcr]), pcr[e.pcr]);
	}
	cr_assert_eq(rc, 0, "%s", err.text);
	for (unsigned i = 0; i < 16; i++) {
		char hex[SHA256_HEX_LEN + 1];
		cleanup_free char *line = NULL;

		if (i == 10)
			continue; /* Linux IMA extends it, with a log of its own */
		bytes_to_hex(pcr[i], SHA256_LEN, hex);
		line = xasprintf("%u %s\n", i, hex);
		cr_assert(strstr(registers.data, line), "%s: register %u is not %s", boot, i, hex);
	}
}

Test(measure_eventlog, real_logs_lead_to_the_registers)
{
	for (size_t i = 0; i < ARRAY_LEN(boots); i++)
		replay(boots[i]);
}

/* Firmware logs UEFI_VARIABLE_DATA whole: hashing it again from its parts gives the digest. The
 * X.509 certificates that are in it, or 0. */
static unsigned check_variable(const struct eventlog_event *e)
{
	uint8_t digest[SHA256_LEN];
	struct efi_sig_pos pos = {0};
	struct err err = ERR_INIT;
	unsigned certificates = 0;
	struct efi_guid guid;
	struct efi_sig sig;
	const uint8_t *data;
	char name[32] = "";
	size_t len;

	memcpy(guid.b, e->data, sizeof(guid.b));
	cr_assert_lt(e->data[16], sizeof(name));
	for (size_t i = 0; i < e->data[16]; i++)
		name[i] = (char)e->data[32 + 2 * i];
	data = e->data + 32 + 2 * strlen(name);
	len = e->len - (size_t)(data - e->data);
	efi_variable_digest(&guid, name, data, len, digest);
	cr_assert_arr_eq(digest, e->sha256, SHA256_LEN, "%s", name);
	if (strcmp(name, "SecureBoot") == 0)
		return 0;
	while (efi_sig_next(data, len, &pos, &sig, &err))
		certificates += memcmp(sig.type.b, efi_cert_x509.b, 16) == 0;
	cr_assert_not(err_is_set(&err), "%s: %s", name, err.text);
	return certificates;
}

Test(measure_eventlog, variables_of_real_logs)
{
	for (size_t i = 0; i < ARRAY_LEN(boots); i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;
		unsigned n = 0, certificates = 0;
		struct err err = ERR_INIT;
		struct eventlog_event e;
		struct eventlog log;

		read_data(boots[i], "eventlog", &b);
		cr_assert_eq(eventlog_open(b.data, b.len, &log, &err), 0, "%s", err.text);
		while (eventlog_next(&log, &e, &err) > 0) {
			if (e.pcr != 7 || e.type != 0x80000001)
				continue;
			certificates += check_variable(&e);
			n++;
		}
		cr_assert_eq(n, 5, "SecureBoot, PK, KEK, db, dbx");
		cr_assert_eq(certificates, i == 0 ? 1 + 2 + 2 : 0);
	}
}
