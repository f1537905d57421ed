/* SPDX-License-Identifier: MIT */
/*
 * Variables are hashed in the layout that firmware uses for the log. Signature lists are walked by
 * ListSize, and each size is checked against the enclosing one before it is used. Refused: a list
 * that does not divide into its entries, SHA-256 entries of another size, and offsets into a
 * section's own header.
 */
#include "config.h"

#include "tec/measure/efivar.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"

#define GUID_LEN        16
#define LIST_HEADER     28 /* type, ListSize, HeaderSize, SignatureSize */
#define VENDOR_HEADER   16
#define VARIABLE_HEADER (GUID_LEN + 8 + 8)
#define SBAT_OFFSETS    4 /* position of the two offsets, and what they are relative to */
#define SBAT_HEADER     12

/* 8be4df61-93ca-11d2-aa0d-00e098032b8c */
const struct efi_guid efi_global_variable = {{0x61, 0xdf, 0xe4, 0x8b, 0xca, 0x93, 0xd2, 0x11, 0xaa,
	0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c}};
/* d719b2cb-3d3a-4596-a3bc-dad00e67656f */
const struct efi_guid efi_image_security_database = {{0xcb, 0xb2, 0x19, 0xd7, 0x3a, 0x3d, 0x96,
	0x45, 0xa3, 0xbc, 0xda, 0xd0, 0x0e, 0x67, 0x65, 0x6f}};
/* 605dab50-e046-4300-abb6-3dd810dd8b23 */
const struct efi_guid efi_shim_lock = {{0x50, 0xab, 0x5d, 0x60, 0x46, 0xe0, 0x00, 0x43, 0xab, 0xb6,
	0x3d, 0xd8, 0x10, 0xdd, 0x8b, 0x23}};
/* a5c059a1-94e4-4aa7-87b5-ab155c2bf072 */
const struct efi_guid efi_cert_x509 = {{0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5,
	0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72}};
/* c1c41626-504c-4092-aca9-41f936934328 */
const struct efi_guid efi_cert_sha256 = {{0x26, 0x16, 0xc4, 0xc1, 0x4c, 0x50, 0x92, 0x40, 0xac,
	0xa9, 0x41, 0xf9, 0x36, 0x93, 0x43, 0x28}};

/* Hash a UINT64 of UEFI_VARIABLE_DATA. */
static void add_count(struct bytes_sha256_run *run, size_t n)
{
	uint8_t b[8];

	measure_put_le32(b, (uint32_t)n);
	measure_put_le32(b + 4, (uint32_t)((uint64_t)n >> 32));
	bytes_sha256_add(run, b, sizeof(b));
}

/*
 * The order is that of UEFI_VARIABLE_DATA: GUID, both lengths, name in UTF-16LE without NUL, data.
 */
void efi_variable_digest(const struct efi_guid *guid, const char *name, const void *data,
	size_t len, uint8_t out[SHA256_LEN])
{
	cleanup_sha256 struct bytes_sha256_run run = {NULL};
	size_t n = strlen(name);

	bytes_sha256_init(&run);
	bytes_sha256_add(&run, guid->b, GUID_LEN);
	add_count(&run, n);
	add_count(&run, len);
	for (size_t i = 0; i < n; i++) {
		const uint8_t utf16[2] = {(uint8_t)name[i], 0};

		bytes_sha256_add(&run, utf16, sizeof(utf16));
	}
	bytes_sha256_add(&run, data, len);
	bytes_sha256_end(&run, out);
}

/* Accept only data whose two lengths add up exactly to the size of the event. */
bool efi_logged_variable(const void *event, size_t len, struct efi_logged_variable *out)
{
	const uint8_t *p = event;
	size_t left;

	*out = (struct efi_logged_variable){.name_chars = 0};
	if (len < VARIABLE_HEADER)
		return false;
	left = len - VARIABLE_HEADER;
	/* The upper halves of both UINT64 counts must be 0: no variable is that long. */
	if (measure_le32(p + GUID_LEN + 4) || measure_le32(p + GUID_LEN + 12) ||
		measure_le32(p + GUID_LEN) > left / 2)
		return false;
	left -= 2 * (size_t)measure_le32(p + GUID_LEN);
	if (measure_le32(p + GUID_LEN + 8) != left)
		return false;
	memcpy(out->guid.b, p, GUID_LEN);
	out->name_chars = measure_le32(p + GUID_LEN);
	out->name = p + VARIABLE_HEADER;
	out->data = out->name + 2 * out->name_chars;
	out->len = left;
	return true;
}

/* ---- EFI_SIGNATURE_LIST (UEFI 2.10 section 32.4.1) */

struct sig_list {
	const uint8_t *p;
	size_t size, first, each; /* of the list; offset of its entries; of one entry */
};

/* Check the header of one list. `left`: bytes from p to the end of the variable. */
static int read_list(const uint8_t *p, size_t left, struct sig_list *l, struct err *err)
{
	size_t header;

	if (left < LIST_HEADER)
		return err_set(err, ERR_INVALID,
			"signature list: %zu bytes are too few for a header", left);
	l->p = p;
	l->size = measure_le32(p + GUID_LEN);
	header = measure_le32(p + GUID_LEN + 4);
	l->each = measure_le32(p + GUID_LEN + 8);
	if (l->size > left || l->size < LIST_HEADER)
		return err_set(err, ERR_INVALID,
			"signature list: ListSize is %zu, but %zu bytes are left", l->size, left);
	if (header > l->size - LIST_HEADER)
		return err_set(err, ERR_INVALID,
			"signature list: HeaderSize is %zu in a list of %zu bytes", header,
			l->size);
	l->first = LIST_HEADER + header;
	if (l->each < GUID_LEN || (l->size - l->first) % l->each != 0)
		return err_set(err, ERR_INVALID,
			"signature list: SignatureSize is %zu for %zu bytes of entries", l->each,
			l->size - l->first);
	if (memcmp(p, efi_cert_sha256.b, GUID_LEN) == 0 && l->each != GUID_LEN + SHA256_LEN)
		return err_set(err, ERR_INVALID,
			"signature list: SignatureSize of SHA-256 entries is %zu", l->each);
	return 0;
}

/* pos->entry 0 means that the list at pos->list was not entered yet. Lists without entries are
 * skipped. */
bool efi_sig_next(const void *lists, size_t len, struct efi_sig_pos *pos, struct efi_sig *out,
	struct err *err)
{
	while (pos->list < len) {
		const uint8_t *p = (const uint8_t *)lists + pos->list;
		struct sig_list l = {0};

		if (read_list(p, len - pos->list, &l, err) < 0)
			return false;
		if (pos->entry < l.first)
			pos->entry = l.first;
		if (pos->entry < l.size) {
			memcpy(out->type.b, p, GUID_LEN);
			memcpy(out->owner.b, p + pos->entry, GUID_LEN);
			out->with_owner = p + pos->entry;
			out->with_owner_len = l.each;
			out->data = out->with_owner + GUID_LEN;
			out->len = l.each - GUID_LEN;
			pos->entry += l.each;
			return true;
		}
		*pos = (struct efi_sig_pos){pos->list + l.size, 0};
	}
	return false;
}

/* ---- shim */

/* Locate one part of .vendor_cert, whose offset counts from the start of the section. */
static int take_part(const uint8_t *section, size_t len, size_t size, size_t off, const char *what,
	const uint8_t **part, struct err *err)
{
	*part = section;
	if (size == 0)
		return 0;
	if (off < VENDOR_HEADER || off > len || size > len - off)
		return err_set(err, ERR_INVALID,
			".vendor_cert: %s (%zu bytes at %zu) are outside the section of %zu bytes",
			what, size, off, len);
	*part = section + off;
	return 0;
}

/* Layout: sizes of both parts, then their offsets. Nothing states the type of the first part: it is
 * one certificate if it parses as one. */
int shim_vendor_read(const void *section, size_t len, struct shim_vendor *out, struct err *err)
{
	const uint8_t *p = section;
	struct err no_cert = ERR_INIT;
	struct authenticode_cert cert;
	struct efi_sig_pos pos = {0};
	struct efi_sig sig;

	*out = (struct shim_vendor){0};
	if (len < VENDOR_HEADER)
		return err_set(err, ERR_INVALID, ".vendor_cert: %zu bytes are too few", len);
	out->auth_len = measure_le32(p);
	out->deauth_len = measure_le32(p + 4);
	if (take_part(p, len, out->auth_len, measure_le32(p + 8), "authorized keys", &out->auth,
		    err) < 0 ||
		take_part(p, len, out->deauth_len, measure_le32(p + 12), "refused keys",
			&out->deauth, err) < 0)
		return -1;
	if (out->auth_len == 0 ||
		authenticode_cert_read(out->auth, out->auth_len, &cert, &no_cert) == 0)
		return 0;
	out->auth_is_lists = true;
	/* Walk all entries once, so that later users of the lists meet no damage. */
	while (efi_sig_next(out->auth, out->auth_len, &pos, &sig, err))
		;
	return err_is_set(err)
		       ? err_wrap(err, ".vendor_cert: neither a certificate nor signature lists")
		       : 0;
}

/* Layout: version, two offsets (previous and latest), then the texts. The offsets count from the
 * byte after the version. */
int shim_sbat_level(const void *section, size_t len, bool latest, const char **text,
	size_t *text_len, struct err *err)
{
	const uint8_t *p = section, *end;
	uint64_t at;

	*text = "";
	*text_len = 0;
	if (len < SBAT_HEADER)
		return err_set(err, ERR_INVALID, ".sbatlevel: %zu bytes are too few", len);
	if (measure_le32(p) != 0)
		return err_set(
			err, ERR_INVALID, ".sbatlevel: version %u is unknown", measure_le32(p));
	at = (uint64_t)SBAT_OFFSETS + measure_le32(p + (latest ? 8 : SBAT_OFFSETS));
	if (at < SBAT_HEADER || at >= len)
		return err_set(err, ERR_INVALID,
			".sbatlevel: the %s level is outside the section of %zu bytes",
			latest ? "latest" : "previous", len);
	end = memchr(p + at, '\0', len - at);
	if (!end || end == p + at)
		return err_set(err, ERR_INVALID, ".sbatlevel: the %s level %s",
			latest ? "latest" : "previous", end ? "is empty" : "is not terminated");
	*text = (const char *)p + at;
	*text_len = (size_t)(end - (p + at));
	return 0;
}

/* Append a signature list with one entry, owned by shim. */
static void add_list(
	struct strbuf *out, const struct efi_guid *type, const uint8_t *data, size_t len)
{
	uint8_t sizes[12];

	measure_put_le32(sizes, (uint32_t)(LIST_HEADER + GUID_LEN + len));
	measure_put_le32(sizes + 4, 0);
	measure_put_le32(sizes + 8, (uint32_t)(GUID_LEN + len));
	strbuf_add(out, type->b, GUID_LEN);
	strbuf_add(out, sizes, sizeof(sizes));
	strbuf_add(out, efi_shim_lock.b, GUID_LEN);
	strbuf_add(out, data, len);
}

void shim_mok_list(const struct shim_vendor *v, struct strbuf *out)
{
	if (v->auth_len == 0)
		return;
	if (v->auth_is_lists)
		strbuf_add(out, v->auth, v->auth_len);
	else
		add_list(out, &efi_cert_x509, v->auth, v->auth_len);
}

void shim_mok_list_x(const struct shim_vendor *v, struct strbuf *out)
{
	static const uint8_t nothing[SHA256_LEN];

	if (v->deauth_len > 0)
		strbuf_add(out, v->deauth, v->deauth_len);
	else /* shim adds an all-zero digest, so that the variable exists */
		add_list(out, &efi_cert_sha256, nothing, sizeof(nothing));
}
