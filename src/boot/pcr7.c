/* SPDX-License-Identifier: MIT */
/*
 * PCR 7: the Secure Boot variables, then the certificates that authorized what was loaded (TCG PFP
 * section 3.3.4.8). Firmware searches db for shim's signer. shim searches db, its vendor_db and
 * MokListRT (its vendor certificate first) for each image, takes the first match, and logs each
 * authority only once. With its validation off (MokSBState) shim checks nothing.
 */
#include "config.h"

#include <string.h>

#include "boot_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

/* Append "certificate NAME" or "hash 5f21ff...". */
static void describe(const struct efi_sig *e, struct strbuf *out)
{
	if (memcmp(&e->type, &efi_cert_x509, sizeof(e->type)) == 0)
		boot_describe_cert(e->data, e->len, out);
	else
		boot_describe_hash(e->data, e->len, out);
}

/*
 * Add EV_EFI_VARIABLE_AUTHORITY: it measures the matching entry with its owner, not the whole list.
 */
static void add_authority(struct boot_build *b, const struct boot_file *f)
{
	const struct boot_authority *a = &f->authority;
	cleanup_strbuf struct strbuf what = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];

	describe(&a->entry, &what);
	efi_variable_digest(a->guid, a->name, a->entry.with_owner, a->entry.with_owner_len, digest);
	boot_variant_add(b, a->id, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest, "%s in %s, for %s",
		strbuf_str(&what), a->name, log_esc(f->path));
}

/* ---- what shim logs */

/* Check whether shim has logged an authority before: it does so only once. The event that the
 * firmware logged for shim itself does not count. */
static bool logged_by_shim(const struct boot_build *b, const struct boot_authority *a)
{
	uint8_t digest[SHA256_LEN];

	efi_variable_digest(a->guid, a->name, a->entry.with_owner, a->entry.with_owner_len, digest);
	for (size_t i = 0; i < b->variant->events.n; i++) {
		const struct pcr_event *seen = &b->variant->events.v[i];

		if (seen->pcr == 7 && seen->id >= PCR7_GRUB_DB_CERT &&
			seen->id <= PCR7_GRUB_MOK_LIST_CERT &&
			memcmp(seen->digest, digest, sizeof(digest)) == 0)
			return true;
	}
	return false;
}

static void add_loaded(struct boot_build *b, const struct boot_file *f)
{
	if (!logged_by_shim(b, &f->authority))
		add_authority(b, f);
}

/* Add SbatLevel, which shim measures with Secure Boot on and off. */
static int add_sbat(struct boot_build *b, struct err *err)
{
	const char *text = SHIM_SBAT_ORIGINAL, *eol;
	size_t len = sizeof(SHIM_SBAT_ORIGINAL) - 1;
	uint8_t digest[SHA256_LEN];

	/* With Secure Boot off shim resets the level to the original one. */
	if (b->secure_boot && boot_sbat_level(b->set, b->sbat_latest, &text, &len, err) < 0)
		return -1;
	efi_variable_digest(&efi_shim_lock, "SbatLevel", text, len, digest);
	eol = memchr(text, '\n', len);
	boot_variant_add(b, PCR7_SBAT_LEVEL, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest,
		"SBAT level %s", log_escn(text, eol ? (size_t)(eol - text) : len));
	return 0;
}

/* ---- what the firmware logs */

/*
 * Add the variables in the order of measurement, then the separator that ends the firmware phase.
 */
static void add_variables(struct boot_build *b)
{
	const struct boot_set *set = b->set;
	const uint8_t state = b->secure_boot, zero[4] = {0};
	const struct {
		enum pcr_event_id id;
		const struct efi_guid *guid;
		const char *name;
		const void *data;
		size_t len;
	} vars[] = {
		{PCR7_PK, &efi_global_variable, "PK", set->pk.data, set->pk.len},
		{PCR7_KEK, &efi_global_variable, "KEK", set->kek.data, set->kek.len},
		{PCR7_DB, &efi_image_security_database, "db", set->db.data, set->db.len},
		{PCR7_DBX, &efi_image_security_database, "dbx", set->dbx.data, set->dbx.len},
	};
	uint8_t digest[SHA256_LEN];

	efi_variable_digest(&efi_global_variable, "SecureBoot", &state, 1, digest);
	boot_variant_add(b, PCR7_SECURE_BOOT, PCR_EV_EFI_VARIABLE_DRIVER_CONFIG, 7, digest,
		"Secure Boot %s", state ? "on" : "off");
	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		efi_variable_digest(vars[i].guid, vars[i].name, vars[i].data, vars[i].len, digest);
		boot_variant_add(b, vars[i].id, PCR_EV_EFI_VARIABLE_DRIVER_CONFIG, 7, digest,
			"firmware variable %s, %zu bytes", vars[i].name, vars[i].len);
	}
	bytes_sha256(zero, sizeof(zero), digest);
	boot_variant_add(
		b, PCR7_SEPARATOR, PCR_EV_SEPARATOR, 7, digest, "end of the firmware phase");
}

static void add_mok_state(struct boot_build *b)
{
	const struct strbuf *state = &b->set->mok_sb;
	uint8_t digest[SHA256_LEN];

	if (!b->set->has_mok_sb)
		return;
	efi_variable_digest(&efi_shim_lock, "MokSBState", state->data, state->len, digest);
	boot_variant_add(b, PCR7_MOK_SB_STATE, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest,
		"MokSBState: shim's validation is %s", b->set->validation_off ? "off" : "on");
}

/*
 * With Secure Boot off neither firmware nor shim checks signatures, so no authorities are logged.
 */
int boot_pcr7(struct boot_build *b, struct err *err)
{
	const struct boot_set *set = b->set;

	add_variables(b);
	if (b->secure_boot)
		add_authority(b, &set->shim);
	add_mok_state(b);
	if (add_sbat(b, err) < 0)
		return -1;
	if (!b->secure_boot || set->validation_off)
		return 0;
	add_loaded(b, &set->second);
	if (b->update)
		add_loaded(b, b->update);
	if (b->kernel)
		add_loaded(b, b->kernel);
	return 0;
}
