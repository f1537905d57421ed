/* SPDX-License-Identifier: MIT */
/*
 * The header lists the digest algorithms of the events and their sizes; each event is parsed
 * against that table. Refused: algorithms that the header does not list, two digests of one
 * algorithm, an event without SHA-256, and a PCR above 23.
 */
#include "config.h"

#include "tec/measure/eventlog.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"

#define ALG_SHA256    0x000b
#define PCR_LAST      23
#define TEXT_MAX      120
#define IMAGE_HEADER  32 /* of UEFI_IMAGE_LOAD_EVENT, before the device path */
#define SHA1_LEN      20
#define EVENT1_HEADER (4 + 4 + SHA1_LEN + 4)
#define SPEC_ID_FIXED 28 /* signature, platform class, version, uintnSize, numberOfAlgorithms */

/* TPM_ALG_ID and digest size; for other algorithms the header's size is used. */
static const struct {
	uint16_t id, size;
} known_algs[] = {
	{0x0004, SHA1_LEN}, {ALG_SHA256, SHA256_LEN}, {0x000c, 48}, {0x000d, 64}, {0x0012, 32}};

/* Return the digest size of an algorithm and its index in the header; 0 if it is not listed. */
static uint16_t alg_size(const struct eventlog *log, uint16_t id, unsigned *index)
{
	for (*index = 0; *index < log->n_algs; ++*index)
		if (log->alg[*index].id == id)
			return log->alg[*index].size;
	return 0;
}

/* Add an algorithm of the header. A wrong size for a known one would misalign all events. */
static int add_alg(struct eventlog *log, uint16_t id, uint16_t size, struct err *err)
{
	unsigned ignored;

	for (size_t i = 0; i < ARRAY_LEN(known_algs); i++) {
		if (known_algs[i].id == id && known_algs[i].size != size)
			return err_set(err, ERR_INVALID,
				"event log: algorithm 0x%x cannot have digests of %u bytes", id,
				size);
	}
	if (size == 0 || alg_size(log, id, &ignored))
		return err_set(err, ERR_INVALID,
			"event log: algorithm 0x%x is listed twice or has size 0", id);
	log->alg[log->n_algs].id = id;
	log->alg[log->n_algs].size = size;
	log->n_algs++;
	return 0;
}

/* TCG_EfiSpecIDEvent (TCG PFP section 10.4.5.1). */
static int read_spec_id(struct eventlog *log, const uint8_t *p, size_t len, struct err *err)
{
	unsigned ignored;
	uint32_t n;

	if (len < 16 || memcmp(p, "Spec ID Event03", 16) != 0)
		return err_set(err, ERR_INVALID,
			"event log has the old SHA-1 format (TPM 1.2), without SHA-256 digests");
	if (len < SPEC_ID_FIXED)
		return err_set(err, ERR_INVALID, "event log: the Spec ID event is truncated");
	n = measure_le32(p + 24);
	if (n == 0 || n > ARRAY_LEN(log->alg))
		return err_set(
			err, ERR_INVALID, "event log: the header lists %u digest algorithms", n);
	if (len - SPEC_ID_FIXED < 4 * (size_t)n + 1)
		return err_set(err, ERR_INVALID, "event log: the Spec ID event is truncated");
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *a = p + SPEC_ID_FIXED + 4 * (size_t)i;

		if (add_alg(log, measure_le16(a), measure_le16(a + 2), err) < 0)
			return -1;
	}
	if (p[SPEC_ID_FIXED + 4 * n] > len - SPEC_ID_FIXED - 4 * (size_t)n - 1)
		return err_set(err, ERR_INVALID, "event log: the vendor information is truncated");
	if (!alg_size(log, ALG_SHA256, &ignored))
		return err_set(err, ERR_INVALID, "event log has no SHA-256 bank");
	return 0;
}

/* The first event has the SHA-1 format (TCG_PCR_EVENT) in every log, so that old readers can skip
 * it. */
int eventlog_open(const void *data, size_t len, struct eventlog *out, struct err *err)
{
	const uint8_t *p = data;
	uint32_t size;

	*out = (struct eventlog){.data = data, .len = len};
	if (len < EVENT1_HEADER)
		return err_set(err, ERR_INVALID, "event log: %zu bytes are too few", len);
	size = measure_le32(p + EVENT1_HEADER - 4);
	if (size > len - EVENT1_HEADER)
		return err_set(err, ERR_INVALID, "event log: the first event is truncated");
	if (measure_le32(p + 4) != EVENTLOG_NO_ACTION)
		return err_set(err, ERR_INVALID,
			"event log does not begin with a Spec ID event: it has the old SHA-1 "
			"format, or is not an event log");
	out->pos = EVENT1_HEADER + (size_t)size;
	return read_spec_id(out, p + EVENT1_HEADER, size, err);
}

/* Read TPML_DIGEST_VALUES at log->pos and advance. `start`: where the event begins, for errors. */
static int read_digests(
	struct eventlog *log, size_t start, uint32_t n, uint8_t sha256[SHA256_LEN], struct err *err)
{
	unsigned seen = 0, index;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = log->data + log->pos;
		size_t left = log->len - log->pos;
		uint16_t size;

		if (left < 2)
			return err_set(err, ERR_INVALID, "event log: truncated at byte %zu", start);
		size = alg_size(log, measure_le16(p), &index);
		if (size == 0 || (seen & 1u << index))
			return err_set(err, ERR_INVALID,
				"event log: the event at byte %zu has a digest that the header "
				"does not list, or two of one algorithm",
				start);
		if (left - 2 < size)
			return err_set(err, ERR_INVALID, "event log: truncated at byte %zu", start);
		seen |= 1u << index;
		if (log->alg[index].id == ALG_SHA256)
			memcpy(sha256, p + 2, SHA256_LEN);
		log->pos += 2 + (size_t)size;
	}
	(void)alg_size(log, ALG_SHA256, &index);
	if (!(seen & 1u << index))
		return err_set(err, ERR_INVALID,
			"event log: the event at byte %zu has no SHA-256 digest", start);
	return 0;
}

/* Event types and PCRs are taken as they are; only what would make later bytes ambiguous is
 * refused. */
int eventlog_next(struct eventlog *log, struct eventlog_event *out, struct err *err)
{
	size_t start = log->pos, left = log->len - log->pos;
	const uint8_t *p = log->data + start;

	*out = (struct eventlog_event){0};
	if (left == 0)
		return 0;
	if (left < 12)
		return err_set(err, ERR_INVALID, "event log: truncated at byte %zu", start);
	out->pcr = measure_le32(p);
	out->type = measure_le32(p + 4);
	if (out->pcr > PCR_LAST && out->type != EVENTLOG_NO_ACTION)
		return err_set(err, ERR_INVALID, "event log: the event at byte %zu extends PCR %u",
			start, out->pcr);
	log->pos += 12;
	if (read_digests(log, start, measure_le32(p + 8), out->sha256, err) < 0)
		return -1;
	left = log->len - log->pos;
	if (left < 4 || measure_le32(log->data + log->pos) > left - 4)
		return err_set(err, ERR_INVALID, "event log: truncated at byte %zu", start);
	out->len = measure_le32(log->data + log->pos);
	out->data = log->data + log->pos + 4;
	log->pos += 4 + (size_t)out->len;
	return 1;
}

const char *eventlog_type_name(uint32_t type)
{
	static const struct {
		uint32_t type;
		const char *name;
	} names[] = {
		{0x00, "EV_PREBOOT_CERT"},
		{0x01, "EV_POST_CODE"},
		{0x02, "EV_UNUSED"},
		{EVENTLOG_NO_ACTION, "EV_NO_ACTION"},
		{0x04, "EV_SEPARATOR"},
		{0x05, "EV_ACTION"},
		{0x06, "EV_EVENT_TAG"},
		{0x07, "EV_S_CRTM_CONTENTS"},
		{0x08, "EV_S_CRTM_VERSION"},
		{0x09, "EV_CPU_MICROCODE"},
		{0x0a, "EV_PLATFORM_CONFIG_FLAGS"},
		{0x0b, "EV_TABLE_OF_DEVICES"},
		{0x0c, "EV_COMPACT_HASH"},
		{0x0d, "EV_IPL"},
		{0x0e, "EV_IPL_PARTITION_DATA"},
		{0x0f, "EV_NONHOST_CODE"},
		{0x10, "EV_NONHOST_CONFIG"},
		{0x11, "EV_NONHOST_INFO"},
		{EVENTLOG_OMITTED, "EV_OMIT_BOOT_DEVICE_EVENTS"},
		{0x13, "EV_POST_CODE2"},
		{0x80000001, "EV_EFI_VARIABLE_DRIVER_CONFIG"},
		{0x80000002, "EV_EFI_VARIABLE_BOOT"},
		{0x80000003, "EV_EFI_BOOT_SERVICES_APPLICATION"},
		{0x80000004, "EV_EFI_BOOT_SERVICES_DRIVER"},
		{0x80000005, "EV_EFI_RUNTIME_SERVICES_DRIVER"},
		{0x80000006, "EV_EFI_GPT_EVENT"},
		{0x80000007, "EV_EFI_ACTION"},
		{0x80000008, "EV_EFI_PLATFORM_FIRMWARE_BLOB"},
		{0x80000009, "EV_EFI_HANDOFF_TABLES"},
		{0x8000000a, "EV_EFI_PLATFORM_FIRMWARE_BLOB2"},
		{0x8000000b, "EV_EFI_HANDOFF_TABLES2"},
		{0x8000000c, "EV_EFI_VARIABLE_BOOT2"},
		{0x8000000d, "EV_EFI_GPT_EVENT2"},
		{0x80000010, "EV_EFI_HCRTM_EVENT"},
		{0x800000e0, "EV_EFI_VARIABLE_AUTHORITY"},
		{0x800000e1, "EV_EFI_SPDM_FIRMWARE_BLOB"},
		{0x800000e2, "EV_EFI_SPDM_FIRMWARE_CONFIG"},
		{0x800000e3, "EV_EFI_SPDM_DEVICE_POLICY"},
		{0x800000e4, "EV_EFI_SPDM_DEVICE_AUTHORITY"},
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i].type == type)
			return names[i].name;
	}
	return "EV_?";
}

/* ---- descriptions */

/*
 * A variable by its name, an authority by the certificate's subject, a program by its file. Firmware
 * and boot loaders wrote this data, and it need not match the measured digest, so only printable
 * characters are shown.
 */

/* Append text with one or two bytes (step) per character. Unprintable characters are left out. */
static void add_text(const uint8_t *p, size_t len, size_t step, struct strbuf *out)
{
	char text[TEXT_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i + step <= len && n < TEXT_MAX; i += step) {
		if (p[i] == '\n' || p[i] == '\0')
			break;
		if (p[i] < 0x20 || p[i] >= 0x7f || (step == 2 && p[i + 1]))
			continue;
		text[n++] = p[i] == '\\' ? '/' : (char)p[i]; /* EFI paths */
	}
	strbuf_add(out, text, n);
}

/* ---- certificates */

/* Append the last CN of a DER Name, or its last attribute if it has no CN. Searching for the OID
 * bytes is good enough for a description. */
static void add_name(const uint8_t *p, size_t len, struct strbuf *out)
{
	static const uint8_t cn[] = {0x06, 0x03, 0x55, 0x04, 0x03},
			     any[] = {0x06, 0x03, 0x55, 0x04};
	const uint8_t *best = NULL;
	size_t best_len = 0;
	bool is_cn = false;

	for (size_t i = 0; i + sizeof(cn) + 2 <= len; i++) {
		bool here = memcmp(p + i, cn, sizeof(cn)) == 0;
		size_t n = p[i + sizeof(cn) + 1], at = i + sizeof(cn) + 2;

		if (memcmp(p + i, any, sizeof(any)) != 0 || n >= 0x80 || n > len - at ||
			(is_cn && !here))
			continue;
		best = p + at;
		best_len = n;
		is_cn = here;
	}
	strbuf_addc(out, '"');
	if (best)
		add_text(best, best_len, 1, out);
	strbuf_addc(out, '"');
}

void measure_describe_cert(const uint8_t *der, size_t len, struct strbuf *out)
{
	struct authenticode_cert cert;
	struct err ignored = ERR_INIT;

	if (authenticode_cert_read(der, len, &cert, &ignored) < 0) {
		strbuf_addf(out, "%zu bytes", len);
		return;
	}
	strbuf_adds(out, "certificate ");
	add_name(cert.subject, cert.subject_len, out);
}

void measure_describe_hash(const uint8_t *hash, size_t len, struct strbuf *out)
{
	char hex[SHA256_HEX_LEN + 1];

	if (len != SHA256_LEN) {
		strbuf_addf(out, "%zu bytes", len);
		return;
	}
	bytes_to_hex(hash, len, hex);
	strbuf_addf(out, "hash %s", hex);
}

/* ---- variables */

static bool is_name(const struct efi_logged_variable *v, const char *name)
{
	size_t n = strlen(name);

	if (v->name_chars != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (v->name[2 * i] != (uint8_t)name[i] || v->name[2 * i + 1])
			return false;
	return true;
}

/* Describe a variable; an authority is an entry of db or of a MOK list: its owner, then a certificate
 * or a hash. compare.c compares the texts for SecureBoot, and looks for "MokSBState" and
 * "MokListRT". */
static void add_variable(const struct eventlog_event *e, bool authority, struct strbuf *out)
{
	size_t owner = sizeof(struct efi_guid);
	struct efi_logged_variable v;

	if (!efi_logged_variable(e->data, e->len, &v)) {
		strbuf_addf(out, "an unreadable variable (%u bytes)", e->len);
		return;
	}
	if (is_name(&v, "SecureBoot") && v.len <= 1) {
		strbuf_addf(out, "Secure Boot %s",
			v.len && v.data[0] == 1 ? "on"
			: v.len                 ? "off"
						: "off (empty)");
		return;
	}
	strbuf_adds(out, "variable ");
	add_text(v.name, 2 * v.name_chars, 2, out);
	strbuf_adds(out, ": ");
	if (is_name(&v, "SbatLevel"))
		add_text(v.data, v.len, 1, out);
	else if (is_name(&v, "MokSBState"))
		strbuf_adds(out, v.len == 1 && v.data[0] == 1 ? "shim's validation is off"
							      : "shim's validation is on");
	else if (authority && v.len == owner + SHA256_LEN)
		measure_describe_hash(v.data + owner, SHA256_LEN, out);
	else if (authority && v.len > owner)
		measure_describe_cert(v.data + owner, v.len - owner, out);
	else
		strbuf_addf(out, "%zu bytes", v.len);
}

/* ---- programs */

/* Append a program in a firmware volume (PI 1.8, volume 3, section 8.3): it has a GUID, no name. */
static void add_built_in(const uint8_t *guid, struct strbuf *out)
{
	strbuf_addf(out, EVENTLOG_BUILT_IN ", %08x-%04x-%04x-", measure_le32(guid),
		measure_le16(guid + 4), measure_le16(guid + 6));
	for (size_t i = 8; i < sizeof(struct efi_guid); i++)
		strbuf_addf(out, "%s%02x", i == 10 ? "-" : "", guid[i]);
}

/* Append the file name from a device path (UEFI 2.10 section 10.3.5.4); it may be split
 * over nodes. */
static void add_program(const struct eventlog_event *e, struct strbuf *out)
{
	const uint8_t *p = e->data + IMAGE_HEADER;
	size_t left = e->len > IMAGE_HEADER ? e->len - IMAGE_HEADER : 0, before = out->len;

	while (left >= 4) {
		size_t n = measure_le16(p + 2);

		if (n < 4 || n > left || p[0] == 0x7f)
			break;
		if (p[0] == 4 && p[1] == 4)
			add_text(p + 4, n - 4, 2, out);
		if (p[0] == 4 && p[1] == 6 && n == 4 + sizeof(struct efi_guid))
			add_built_in(p + 4, out);
		p += n;
		left -= n;
	}
	if (out->len == before)
		strbuf_adds(out, "a program loaded from memory");
}

void eventlog_describe(const struct eventlog_event *e, struct strbuf *out)
{
	const uint8_t *p = e->data;

	switch (e->type) {
	case EVENTLOG_VARIABLE:
		add_variable(e, false, out);
		return;
	case EVENTLOG_AUTHORITY:
		add_variable(e, true, out);
		return;
	case EVENTLOG_APPLICATION:
	case EVENTLOG_DRIVER:
		add_program(e, out);
		return;
	case EVENTLOG_SEPARATOR:
		strbuf_adds(out, "end of the firmware phase");
		return;
	default:
		strbuf_addc(out, '"');
		add_text(p, e->len, e->len > 1 && p[1] == 0 ? 2 : 1, out);
		strbuf_addc(out, '"');
	}
}
