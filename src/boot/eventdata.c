/* SPDX-License-Identifier: MIT */
/*
 * Describe the data of an event: a variable by its name, an authority by the certificate's subject,
 * a program by its file. Firmware and boot loaders wrote this data, and it need not match the
 * measured digest, so only printable characters are shown.
 */
#include "config.h"

#include <string.h>

#include "boot_internal.h"
#include "tec/base/mem.h"
#include "tec/boot/authenticode.h"
#include "tec/boot/eventlog.h"

#define TEXT_MAX     120
#define IMAGE_HEADER 32 /* of UEFI_IMAGE_LOAD_EVENT, before the device path */

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

void boot_describe_cert(const uint8_t *der, size_t len, struct strbuf *out)
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

void boot_describe_hash(const uint8_t *hash, size_t len, struct strbuf *out)
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

/* Describe an entry of db or of a MOK list: its owner, then a certificate or a hash. */
static void add_entry(const struct efi_logged_variable *v, struct strbuf *out)
{
	size_t owner = sizeof(struct efi_guid);

	if (v->len == owner + SHA256_LEN)
		boot_describe_hash(v->data + owner, SHA256_LEN, out);
	else if (v->len > owner)
		boot_describe_cert(v->data + owner, v->len - owner, out);
	else
		strbuf_addf(out, "%zu bytes", v->len);
}

/* Describe a variable. reason.c compares the texts for SecureBoot, and looks for "MokSBState" and
 * "MokListRT". */
static void add_variable(const struct eventlog_event *e, bool authority, struct strbuf *out)
{
	struct efi_logged_variable v;

	if (!efi_logged_variable(e->data, e->len, &v)) {
		strbuf_addf(out, "an unreadable variable (%u bytes)", e->len);
		return;
	}
	if (is_name(&v, "SecureBoot") && v.len == 1) {
		strbuf_addf(out, "Secure Boot %s", v.data[0] == 1 ? "on" : "off");
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
	else if (authority)
		add_entry(&v, out);
	else
		strbuf_addf(out, "%zu bytes", v.len);
}

/* ---- programs */

/* Append the file name from a device path (UEFI 2.10 section 10.3.5.4); it may be split
 * over nodes. */
static void add_program(const struct eventlog_event *e, struct strbuf *out)
{
	const uint8_t *p = e->data + IMAGE_HEADER;
	size_t left = e->len > IMAGE_HEADER ? e->len - IMAGE_HEADER : 0, before = out->len;

	while (left >= 4) {
		size_t n = boot_le16(p + 2);

		if (n < 4 || n > left || p[0] == 0x7f)
			break;
		if (p[0] == 4 && p[1] == 4)
			add_text(p + 4, n - 4, 2, out);
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
