/* SPDX-License-Identifier: MIT */
/*
 * Decide whether firmware or shim would start a file, and which entry of which list authorizes it.
 * The search order is that of DxeImageVerificationLib (certificates in db, then hashes) and of
 * shim's verify_buffer (in each list the file's hash before any certificate, so an unsigned file
 * may start). A certificate authorizes a file only if the signature verifies with it; names only
 * select the certificates to try.
 */
#include "config.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/log.h"
#include "tec/measure/authenticode.h"
#include "tec/pki/pkcs7.h"

/* A variable with signature lists, and the event that a match in it produces. */
struct measure_store {
	const uint8_t *lists; /* EFI_SIGNATURE_LISTs, borrowed */
	size_t len;
	const struct efi_guid *guid;
	const char *name;
	enum pcr_event_id id;
};

/* The lists that firmware or shim searches, in this order. */
struct measure_trust {
	bool by_shim;
	struct measure_store stores[3], revoked[2];
	size_t n_stores, n_revoked;
};

static bool same_name(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* A signature of a file, while lists are searched for its signer. */
struct signature {
	const uint8_t *der;
	size_t len;
	struct authenticode_sig sig;
	bool named; /* a list entry has the name of its signer or issuer */
};

/* Check whether an entry is a certificate that the signature verifies with. */
static bool vouches(struct signature *s, const struct efi_sig *e)
{
	struct authenticode_cert entry;
	struct err ignored = ERR_INIT;
	bool named = false;

	if (memcmp(&e->type, &efi_cert_x509, sizeof(e->type)) != 0)
		return false;
	/* Firmware also skips entries that are not certificates. */
	if (authenticode_cert_read(e->data, e->len, &entry, &ignored) < 0)
		return false;
	/* A chain may end at the signer itself or at its issuer. */
	for (size_t c = 0; c < s->sig.n_certs && !named; c++) {
		const struct authenticode_cert *cert = &s->sig.cert[c];

		named = same_name(cert->subject, cert->subject_len, entry.subject,
				entry.subject_len) ||
			same_name(cert->issuer, cert->issuer_len, entry.subject, entry.subject_len);
	}
	s->named |= named;
	return named && pki_pkcs7_leads_to(s->der, s->len, s->sig.content, s->sig.content_len,
				entry.der, entry.der_len);
}

/* Find the first entry of a list that matches the file's hash (s NULL) or signature. Return 1 if
 * found. */
static int find_entry(const struct measure_file *f, struct signature *s,
	const struct measure_store *store, struct efi_sig *out, struct err *err)
{
	struct efi_sig_pos pos = {0};

	while (efi_sig_next(store->lists, store->len, &pos, out, err)) {
		bool is_hash = memcmp(&out->type, &efi_cert_sha256, sizeof(out->type)) == 0;

		if (s ? vouches(s, out) : is_hash && memcmp(out->data, f->digest, SHA256_LEN) == 0)
			return 1;
	}
	return err_is_set(err) ? err_wrap(err, "%s", store->name) : 0;
}

/* Search several lists in order. s NULL: search for the hash. */
static int find_in(const struct measure_file *f, struct signature *s,
	const struct measure_store *stores, size_t n, struct measure_authority *out,
	struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		out->guid = stores[i].guid;
		out->name = stores[i].name;
		out->id = stores[i].id;
		rc = find_entry(f, s, &stores[i], &out->entry, err);
	}
	return rc;
}

/* Find the first signature that any list authorizes. *named: a list had the name of a signer. */
static int find_signer(const struct measure_file *f, const struct measure_store *stores, size_t n,
	struct measure_authority *out, bool *named, struct err *err)
{
	struct signature s = {.named = false};
	size_t pos = 0;

	while (pe_next_signature(&f->pe, &pos, &s.der, &s.len, err)) {
		int rc = authenticode_read(s.der, s.len, &s.sig, err);

		if (rc == 0)
			rc = find_in(f, &s, stores, n, out, err);
		*named |= s.named;
		if (rc)
			return rc;
	}
	return err_is_set(err) ? -1 : 0;
}

/* Explain why nothing authorizes the file. `named`: a certificate matched by name only. */
static int refuse(
	const struct measure_file *f, const struct measure_trust *t, bool named, struct err *err)
{
	const char *path = log_esc(f->path);

	if (named)
		return err_set(err, ERR_INVALID,
			"%s: its signature names a trusted certificate but does not verify with it, so it cannot start with Secure Boot on; next step: obtain the file again",
			path);
	if (!t->by_shim)
		return err_set(err, ERR_INVALID,
			f->n_signatures
				? "%s: its signer is not in db, so it cannot start with Secure Boot on; next step: use --efivars of the nodes, or --secureboot-disabled"
				: "%s is not signed and its hash is not in db, so the firmware will not start it with Secure Boot on; next step: sign it, or use --secureboot-disabled",
			path);
	return err_set(err, ERR_INVALID,
		f->n_signatures
			? "%s: its signer is not in db, shim or the MOK list; next step: use --mok-variables of a node if a machine owner key signed it, else --efivars of the nodes, or --secureboot-disabled"
			: "%s is not signed and its hash is not in db or the MOK list; next step: sign it, or use --mok-variables of a node where it is enrolled, or --secureboot-disabled",
		path);
}

/* Deny lists are searched first, as firmware and shim do: a revoked file does not start even if it
 * is signed. Then shim checks hashes first, firmware last. */
static int find_authority(const struct measure_file *f, const struct measure_trust *t,
	struct measure_authority *out, struct err *err)
{
	bool named = false, ignored = false;
	int rc = 0;

	for (size_t i = 0; i < t->n_revoked && rc == 0; i++) {
		rc = find_in(f, NULL, &t->revoked[i], 1, out, err);
		if (rc == 0)
			rc = find_signer(f, &t->revoked[i], 1, out, &ignored, err);
		if (rc > 0)
			return err_set(err, ERR_INVALID,
				"%s is revoked by %s, so it cannot start with Secure Boot on; next step: use a newer image",
				log_esc(f->path), t->revoked[i].name);
	}
	if (rc == 0 && t->by_shim)
		rc = find_in(f, NULL, t->stores, t->n_stores, out, err);
	if (rc == 0)
		rc = find_signer(f, t->stores, t->n_stores, out, &named, err);
	if (rc == 0 && !t->by_shim)
		rc = find_in(f, NULL, t->stores, t->n_stores, out, err);
	measure_file_rest(f);
	if (rc < 0)
		return err_wrap(err, "%s", log_esc(f->path));
	return rc > 0 ? 0 : refuse(f, t, named, err);
}

/* ---- all files of a set */

static struct measure_store store_of(const struct strbuf *lists, const struct efi_guid *guid,
	const char *name, enum pcr_event_id id)
{
	return (struct measure_store){
		(const uint8_t *)strbuf_str(lists), lists->len, guid, name, id};
}

static struct measure_trust firmware_trust(const struct measure_set *set)
{
	return (struct measure_trust){.by_shim = false,
		.stores = {store_of(&set->db, &efi_image_security_database, "db", PCR7_SHIM_CERT)},
		.n_stores = 1,
		.revoked = {store_of(&set->dbx, &efi_image_security_database, "dbx", 0)},
		.n_revoked = 1};
}

/* Return the lists that shim searches. A single vendor certificate is the first entry of
 * MokListRT. */
static struct measure_trust shim_trust(const struct measure_set *set)
{
	struct measure_trust t = firmware_trust(set);

	t.by_shim = true;
	t.stores[0].id = PCR7_GRUB_DB_CERT;
	if (set->vendor.auth_is_lists)
		t.stores[t.n_stores++] = (struct measure_store){set->vendor.auth,
			set->vendor.auth_len, &efi_image_security_database, "vendor_db",
			PCR7_GRUB_VENDOR_DB_CERT};
	t.stores[t.n_stores++] =
		store_of(&set->mok, &efi_shim_lock, "MokListRT", PCR7_GRUB_MOK_LIST_CERT);
	t.revoked[t.n_revoked++] = store_of(&set->mok_x, &efi_shim_lock, "MokListXRT", 0);
	return t;
}

/* Find the authority of each of fwupd's programs. One that would not start on this platform gives
 * no variant and does not fail the prediction. */
static void find_for_updates(struct measure_set *set, const struct measure_trust *t)
{
	size_t n = 0;

	for (size_t i = 0; i < set->n_updates; i++) {
		struct measure_file *f = &set->update[i];
		struct err why = ERR_INIT;

		if (find_authority(f, t, &f->authority, &why) == 0) {
			set->update[n++] = *f;
			continue;
		}
		strbuf_addf(&set->paths.notes, "not used: %s\n", why.text);
		measure_file_fini(f);
	}
	set->n_updates = n;
}

/* The firmware checks only shim; shim checks everything after it. Without shim the firmware checks
 * everything, also for systemd-boot. */
int measure_authority_find_all(struct measure_set *set, struct err *err)
{
	const struct measure_trust firmware = firmware_trust(set), shim = shim_trust(set);

	if (set->no_shim)
		return set->sd_boot.path && find_authority(&set->sd_boot, &firmware,
						    &set->sd_boot.authority, err) < 0
			       ? -1
			       : find_authority(
					 &set->second, &firmware, &set->second.authority, err);
	if (find_authority(&set->shim, &firmware, &set->shim.authority, err) < 0)
		return -1;
	if (set->validation_off)
		return 0;
	if (find_authority(&set->second, &shim, &set->second.authority, err) < 0)
		return -1;
	for (size_t i = 0; i < set->n_kernels; i++)
		if (find_authority(&set->kernel[i], &shim, &set->kernel[i].authority, err) < 0)
			return -1;
	find_for_updates(set, &shim);
	return 0;
}
