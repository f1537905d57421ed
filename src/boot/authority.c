/* SPDX-License-Identifier: MIT */
/*
 * Whether firmware or shim would start a file, and which entry of which list vouches for it. The
 * order is that of DxeImageVerificationLib (db's certificates, then its hashes) and of shim's
 * verify_buffer (in each list the file's hash before any certificate, so an unsigned file may
 * start). A certificate vouches only when the signature verifies with it; names choose which ones
 * are worth trying.
 */
#include "config.h"

#include <string.h>

#include "authority.h"
#include "tec/base/log.h"
#include "tec/boot/authenticode.h"
#include "tec/pki/pkcs7.h"

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

/* One signature of a file while lists are searched for it. */
struct signature {
	const uint8_t *der;
	size_t len;
	struct authenticode_sig sig;
	bool named; /* a list has its signer's or its issuer's name */
};

static bool vouches(struct signature *s, const struct efi_sig *e)
{
	struct authenticode_cert entry;
	struct err ignored = ERR_INIT;
	bool named = false;

	if (memcmp(&e->type, &efi_cert_x509, sizeof(e->type)) != 0)
		return false;
	/* Firmware skips what is not a certificate, too. */
	if (authenticode_cert_read(e->data, e->len, &entry, &ignored) < 0)
		return false;
	for (size_t c = 0; c < s->sig.n_certs && !named; c++)
		named = issued_by(&s->sig.cert[c], &entry);
	s->named |= named;
	return named && pki_pkcs7_leads_to(s->der, s->len, s->sig.content, s->sig.content_len,
				entry.der, entry.der_len);
}

/* 1: *out is the first entry of the list that vouches for the file's hash (s NULL) or signature. */
static int find_entry(const struct boot_file *f, struct signature *s,
	const struct boot_store *store, struct efi_sig *out, struct err *err)
{
	struct efi_sig_pos pos = {0};

	while (efi_sig_next(store->lists, store->len, &pos, out, err)) {
		bool is_hash = memcmp(&out->type, &efi_cert_sha256, sizeof(out->type)) == 0;

		if (s ? vouches(s, out) : is_hash && memcmp(out->data, f->digest, SHA256_LEN) == 0)
			return 1;
	}
	return err_is_set(err) ? err_wrap(err, "%s", store->name) : 0;
}

/* s NULL: the hash. */
static int find_in(const struct boot_file *f, struct signature *s, const struct boot_store *stores,
	size_t n, struct boot_authority *out, struct err *err)
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

static int next_signature(
	const struct boot_file *f, size_t *pos, struct signature *s, struct err *err)
{
	*s = (struct signature){.named = false};
	if (!pe_next_signature(&f->pe, pos, &s->der, &s->len, err))
		return err_is_set(err) ? -1 : 0;
	return authenticode_read(s->der, s->len, &s->sig, err) < 0 ? -1 : 1;
}

/* The first signature that any list vouches for. *named: one had the right names. */
static int find_signer(const struct boot_file *f, const struct boot_store *stores, size_t n,
	struct boot_authority *out, bool *named, struct err *err)
{
	struct signature s;
	size_t pos = 0;
	int rc;

	while ((rc = next_signature(f, &pos, &s, err)) > 0) {
		rc = find_in(f, &s, stores, n, out, err);
		*named |= s.named;
		if (rc)
			return rc;
	}
	return rc;
}

/* 1: its hash, or a certificate of its, is on a list of what is revoked. */
static int is_revoked(const struct boot_file *f, const struct boot_store *revoked, struct err *err)
{
	struct boot_authority found;
	bool ignored = false;
	int rc = find_in(f, NULL, revoked, 1, &found, err);

	return rc ? rc : find_signer(f, revoked, 1, &found, &ignored, err);
}

static int refuse_revoked(const struct boot_file *f, const char *list, struct err *err)
{
	return err_set(err, ERR_INVALID,
		"%s: %s revokes it, so it would not start with Secure Boot on; next step: a newer image",
		log_esc(f->path), list);
}

static int refuse(
	const struct boot_file *f, const struct boot_trust *t, bool named, struct err *err)
{
	const char *path = log_esc(f->path);

	if (named)
		return err_set(err, ERR_INVALID,
			"%s: its signature names a trusted certificate and does not verify with it, so it would not start with Secure Boot on; next step: get the file again",
			path);
	if (!t->by_shim)
		return err_set(err, ERR_INVALID,
			f->n_signatures
				? "%s: its signer is not in db, so it would not start with Secure Boot on; next step: variables of the nodes' platform, or --secureboot-disabled"
				: "%s is not signed, and its hash is not in db: with Secure Boot on the firmware will not start it; next step: sign it, or --secureboot-disabled",
			path);
	return err_set(err, ERR_INVALID,
		f->n_signatures
			? "%s: its signer is not in db, shim or the MOK list; next step: --mok-variables of a node if a machine owner key signed it, else --efivars of their platform, or --secureboot-disabled"
			: "%s is not signed, and its hash is not in db or the MOK list; next step: --mok-variables of a node where it is enrolled, or sign it, or --secureboot-disabled",
		path);
}

static int find(const struct boot_file *f, const struct boot_trust *t, struct boot_authority *out,
	bool *named, struct err *err)
{
	int rc = t->by_shim ? find_in(f, NULL, t->stores, t->n_stores, out, err) : 0;

	if (rc == 0)
		rc = find_signer(f, t->stores, t->n_stores, out, named, err);
	if (rc == 0 && !t->by_shim)
		rc = find_in(f, NULL, t->stores, t->n_stores, out, err);
	return rc;
}

int boot_authority_find(const struct boot_file *f, const struct boot_trust *t,
	struct boot_authority *out, struct err *err)
{
	bool named = false;
	int rc = 0;

	for (size_t i = 0; i < t->n_revoked; i++) {
		rc = is_revoked(f, &t->revoked[i], err);
		if (rc > 0)
			return refuse_revoked(f, t->revoked[i].name, err);
		if (rc < 0)
			break;
	}
	if (rc == 0)
		rc = find(f, t, out, &named, err);
	boot_file_rest(f);
	if (rc < 0)
		return err_wrap(err, "%s", log_esc(f->path));
	return rc > 0 ? 0 : refuse(f, t, named, err);
}
