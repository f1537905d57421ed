/* SPDX-License-Identifier: MIT */
/*
 * PCR 7: the Secure Boot variables, then which certificates vouched for what was loaded (TCG PFP
 * section 3.3.4.8). Firmware looks for shim's signer in db; shim looks for each image it is asked
 * about in db, its vendor_db, and MokListRT (its vendor certificate first), takes the first hit,
 * and logs each authority once. Whose certificate it is decides by subject and issuer, as the
 * signatures themselves are not verified here.
 */
#include "config.h"

#include <string.h>

#include "boot_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/boot/authenticode.h"

/* One list of certificates that is searched, and how a match in it is measured. */
struct store {
	const uint8_t *lists; /* EFI_SIGNATURE_LISTs, borrowed */
	size_t len;
	const struct efi_guid *guid;
	const char *name;
	enum pcr_event_id id;
};

static bool same_name(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool issued_by(
	const struct authenticode_cert *cert, const struct authenticode_cert *authority)
{
	return same_name(cert->subject, cert->subject_len, authority->subject,
		       authority->subject_len) ||
	       same_name(
		       cert->issuer, cert->issuer_len, authority->subject, authority->subject_len);
}

/* 1: *out is the first entry that vouches for cert; 0: none does. */
static int find_entry(const struct store *s, const struct authenticode_cert *cert,
	struct efi_sig *out, struct err *err)
{
	struct efi_sig_pos pos = {0};

	while (efi_sig_next(s->lists, s->len, &pos, out, err)) {
		struct authenticode_cert entry;
		struct err ignored = ERR_INIT;

		if (memcmp(&out->type, &efi_cert_x509, sizeof(out->type)) != 0)
			continue;
		/* Firmware skips what is not a certificate, too. */
		if (authenticode_cert_read(out->data, out->len, &entry, &ignored) < 0)
			continue;
		if (issued_by(cert, &entry))
			return 1;
	}
	return err_is_set(err) ? err_wrap(err, "%s", s->name) : 0;
}

static int find_for_signature(const struct authenticode_sig *sig, const struct store *stores,
	size_t n, const struct store **store, struct efi_sig *out, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t c = 0; c < sig->n_certs; c++) {
			int rc = find_entry(&stores[i], &sig->cert[c], out, err);

			*store = &stores[i];
			if (rc)
				return rc;
		}
	}
	return 0;
}

/* 1: *out is the entry that vouches for a signature of f, the first one that has any; 0: none. */
static int find_signer(const struct boot_file *f, const struct store *stores, size_t n,
	const struct store **store, struct efi_sig *out, struct err *err)
{
	const uint8_t *der;
	size_t pos = 0, len;

	while (pe_next_signature(&f->pe, &pos, &der, &len, err)) {
		struct authenticode_sig sig;
		int rc;

		if (authenticode_read(der, len, &sig, err) < 0)
			return -1;
		rc = find_for_signature(&sig, stores, n, store, out, err);
		if (rc)
			return rc;
	}
	return err_is_set(err) ? -1 : 0;
}

/* The authority that lets f start: which store, which entry. -1 when there is none. */
static int find_authority(const struct boot_file *f, const struct store *stores, size_t n,
	const struct store **store, struct efi_sig *out, struct err *err)
{
	int rc = find_signer(f, stores, n, store, out, err);

	boot_file_rest(f);
	if (rc < 0)
		return err_wrap(err, "%s", log_esc(f->path));
	if (rc > 0)
		return 0;
	return err_set(err, ERR_INVALID,
		"%s: its signer is not in %s, so it would not start with Secure Boot on; next step: variables of the nodes' platform, or --secureboot-disabled",
		log_esc(f->path), n == 1 ? "db" : "db, shim's vendor certificates or the MOK list");
}

static void add_authority(struct boot_build *b, enum pcr_event_id id, const struct store *s,
	const struct efi_sig *e, const struct boot_file *f)
{
	uint8_t digest[SHA256_LEN];

	efi_variable_digest(s->guid, s->name, e->with_owner, e->with_owner_len, digest);
	boot_add(b, id, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest, "signer of %s, in %s",
		log_esc(f->path), s->name);
}

/* ---- what shim logs */

/* shim keeps a list of what it measured and logs nothing twice; the firmware's entry for shim
 * itself is not on it. */
static bool logged_by_shim(
	const struct boot_build *b, const struct store *s, const struct efi_sig *e)
{
	uint8_t digest[SHA256_LEN];

	efi_variable_digest(s->guid, s->name, e->with_owner, e->with_owner_len, digest);
	for (size_t i = 0; i < b->events->n; i++) {
		const struct pcr_event *seen = &b->events->v[i];

		if (seen->pcr == 7 && seen->id >= PCR7_GRUB_DB_CERT &&
			seen->id <= PCR7_GRUB_MOK_LIST_CERT &&
			memcmp(seen->digest, digest, sizeof(digest)) == 0)
			return true;
	}
	return false;
}

static int add_loaded(struct boot_build *b, const struct boot_file *f, struct err *err)
{
	const struct boot_set *set = b->set;
	struct store stores[3] = {
		{(const uint8_t *)strbuf_str(&set->db), set->db.len, &efi_image_security_database,
			"db", PCR7_GRUB_DB_CERT},
	};
	const struct store *store;
	struct efi_sig entry;
	size_t n = 1;

	if (set->vendor.auth_is_lists)
		stores[n++] = (struct store){set->vendor.auth, set->vendor.auth_len,
			&efi_image_security_database, "vendor_db", PCR7_GRUB_VENDOR_DB_CERT};
	stores[n++] = (struct store){(const uint8_t *)strbuf_str(&set->mok), set->mok.len,
		&efi_shim_lock, "MokListRT", PCR7_GRUB_MOK_LIST_CERT};
	if (find_authority(f, stores, n, &store, &entry, err) < 0)
		return -1;
	if (!logged_by_shim(b, store, &entry))
		add_authority(b, store->id, store, &entry, f);
	return 0;
}

static int sbat_level(
	const struct boot_set *set, bool latest, const char **text, size_t *len, struct err *err)
{
	size_t section_len;
	const uint8_t *section = pe_section_find(&set->shim.pe, ".sbatlevel", &section_len);

	*text = SHIM_SBAT_ORIGINAL;
	*len = sizeof(SHIM_SBAT_ORIGINAL) - 1;
	if (section && shim_sbat_level(section, section_len, latest, text, len, err) < 0)
		return err_wrap(err, "%s", log_esc(set->shim.path));
	return 0;
}

bool boot_sbat_differs(const struct boot_set *set)
{
	const char *usual, *latest;
	size_t usual_len, latest_len;
	struct err ignored = ERR_INIT;

	return sbat_level(set, false, &usual, &usual_len, &ignored) == 0 &&
	       sbat_level(set, true, &latest, &latest_len, &ignored) == 0 &&
	       (usual_len != latest_len || memcmp(usual, latest, usual_len) != 0);
}

static int add_sbat(struct boot_build *b, struct err *err)
{
	const char *text = SHIM_SBAT_ORIGINAL, *eol;
	size_t len = sizeof(SHIM_SBAT_ORIGINAL) - 1;
	uint8_t digest[SHA256_LEN];

	/* With Secure Boot off shim resets the level to its first one. */
	if (b->secure_boot && sbat_level(b->set, b->sbat_latest, &text, &len, err) < 0)
		return -1;
	efi_variable_digest(&efi_shim_lock, "SbatLevel", text, len, digest);
	eol = memchr(text, '\n', len);
	boot_add(b, PCR7_SBAT_LEVEL, PCR_EV_EFI_VARIABLE_AUTHORITY, 7, digest, "SBAT level %s",
		log_escn(text, eol ? (size_t)(eol - text) : len));
	return 0;
}

/* ---- what the firmware logs */

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
		{PCR7_SECURE_BOOT, &efi_global_variable, "SecureBoot", &state, 1},
		{PCR7_PK, &efi_global_variable, "PK", set->pk.data, set->pk.len},
		{PCR7_KEK, &efi_global_variable, "KEK", set->kek.data, set->kek.len},
		{PCR7_DB, &efi_image_security_database, "db", set->db.data, set->db.len},
		{PCR7_DBX, &efi_image_security_database, "dbx", set->dbx.data, set->dbx.len},
	};
	uint8_t digest[SHA256_LEN];

	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		efi_variable_digest(vars[i].guid, vars[i].name, vars[i].data, vars[i].len, digest);
		boot_add(b, vars[i].id, PCR_EV_EFI_VARIABLE_DRIVER_CONFIG, 7, digest,
			"firmware variable %s, %zu bytes", vars[i].name, vars[i].len);
	}
	bytes_sha256(zero, sizeof(zero), digest);
	boot_add(b, PCR7_SEPARATOR, PCR_EV_SEPARATOR, 7, digest, "end of the firmware's part");
}

int boot_pcr7(struct boot_build *b, struct err *err)
{
	const struct boot_set *set = b->set;
	const struct store db = {(const uint8_t *)strbuf_str(&set->db), set->db.len,
		&efi_image_security_database, "db", PCR7_SHIM_CERT};
	const struct store *store;
	struct efi_sig entry;

	add_variables(b);
	if (b->secure_boot) {
		if (find_authority(&set->shim, &db, 1, &store, &entry, err) < 0)
			return -1;
		add_authority(b, PCR7_SHIM_CERT, store, &entry, &set->shim);
	}
	if (add_sbat(b, err) < 0 || !b->secure_boot)
		return err_is_set(err) ? -1 : 0;
	if (add_loaded(b, &set->second, err) < 0)
		return -1;
	return b->kernel ? add_loaded(b, b->kernel, err) : 0;
}
