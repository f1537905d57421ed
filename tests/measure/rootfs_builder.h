/* SPDX-License-Identifier: MIT */
/*
 * Roots of images for tests, in a temporary directory: shim with a vendor certificate and SBAT
 * levels, second stages of each make, kernels, firmware variables, each signed as asked.
 */
#ifndef TEC_TESTS_ROOTFS_BUILDER_H
#define TEC_TESTS_ROOTFS_BUILDER_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure/der_builder.h"
#include "measure/pe_builder.h"
#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"
#include "tec/measure/efivar.h"
#include "tec/measure/predict.h"

#define OLD_EFI  "usr/lib/bootupd/updates/EFI/"
#define NEW_EFI  "usr/lib/efi/"
#define SHIM_X64 OLD_EFI "fedora/shimx64.efi"
#define GRUB_X64 OLD_EFI "fedora/grubx64.efi"
#define KERNEL_1 "usr/lib/modules/6.1.0-9/vmlinuz"
#define KERNEL_2 "usr/lib/modules/6.1.0-10/vmlinuz"

#define SBAT_DEBIAN_206                                                                            \
	"sbat,1,SBAT Version,sbat,1,https://x\ngrub,5,FSF,grub,2.06,https://x\n"                   \
	"grub.debian,5,Debian,grub2,2.06-13+deb12u2,https://x\n"
#define SBAT_DEBIAN_212 "grub,5,FSF,grub,2.12,u\ngrub.debian,5,Debian,grub2,2.12-9,u\n"
#define SBAT_FEDORA     "grub,5,FSF,grub,2.12,u\ngrub.rh,2,Red Hat,grub2,2.12-40.fc42,u\n"
#define SBAT_USUAL      "sbat,1,2023012900\nshim,2\ngrub,3\ngrub.debian,4\n"
#define SBAT_LATEST     "sbat,1,2024010900\nshim,4\n"

struct rootfs {
	char dir[32];
	int fd;
};

static void rootfs_init(struct rootfs *r)
{
	strcpy(r->dir, "/tmp/tec-rootfs-XXXXXX");
	cr_assert(mkdtemp(r->dir));
	r->fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(r->fd, 0);
}

static int rootfs_remove(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

static void rootfs_fini(struct rootfs *r)
{
	close(r->fd);
	nftw(r->dir, rootfs_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of a name in the root, whose folders are made. */
__attribute__((unused)) static char *rootfs_path(const struct rootfs *r, const char *path)
{
	char *full = xasprintf("%s/%s", r->dir, path);

	for (char *p = full + strlen(r->dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	return full;
}

__attribute__((unused)) static void rootfs_put(
	const struct rootfs *r, const char *path, const struct strbuf *data)
{
	cleanup_free char *full = rootfs_path(r, path);
	FILE *f = fopen(full, "w");

	cr_assert(f, "%s", full);
	cr_assert_eq(fwrite(strbuf_str(data), 1, data->len, f), data->len);
	fclose(f);
}

/* ---- PE images */

struct binary {
	unsigned machine;            /* 0: x64 */
	const char *section, *text;  /* one more section: ".sbat" and its text */
	const char *fill;            /* makes the digest its own */
	const char *signer, *issuer; /* NULL: unsigned */
	const char *signer2;         /* a second signature, issued by itself */
	bool wrong_digest, forged;
	const struct strbuf *vendor; /* shim: contents of .vendor_cert */
	const struct strbuf *sbat;   /* shim: contents of .sbatlevel */
};

static void sign_binary(const struct pe_build *s, struct strbuf *out, const uint8_t *digest,
	const char *signer, const char *issuer, bool forged)
{
	struct strbuf der = STRBUF_INIT;
	struct der_signature sig = {.digest = digest, .digest_len = SHA256_LEN};

	sig.cert[0][0] = signer;
	sig.cert[0][1] = issuer;
	sig.forged = forged;
	der_pkcs7(&der, &sig);
	pe_build_sign(s, out, 2, der.data, der.len);
	strbuf_fini(&der);
}

/* digest, when wanted: as the image is measured once it is signed. */
__attribute__((unused)) static void build_binary(
	const struct binary *b, struct strbuf *out, uint8_t digest[SHA256_LEN])
{
	struct pe_build s = PE_BUILD_INIT;
	struct err err = ERR_INIT;
	uint8_t own[SHA256_LEN];
	struct authenticode_digests both;
	struct pe pe;

	if (b->machine)
		s.machine = (uint16_t)b->machine;
	s.section[s.n_sections].name = ".text";
	s.section[s.n_sections].data = b->fill;
	s.section[s.n_sections++].len = strlen(b->fill);
	if (b->section) {
		s.section[s.n_sections].name = b->section;
		s.section[s.n_sections].data = b->text;
		s.section[s.n_sections++].len = strlen(b->text);
	}
	if (b->vendor) {
		s.section[s.n_sections].name = ".vendor_cert";
		s.section[s.n_sections].data = b->vendor->data;
		s.section[s.n_sections++].len = b->vendor->len;
	}
	if (b->sbat) {
		s.section[s.n_sections].name = ".sbatlevel";
		s.section[s.n_sections].data = b->sbat->data;
		s.section[s.n_sections++].len = b->sbat->len;
	}
	pe_build(&s, out);
	cr_assert_eq(pe_parse(out->data, out->len, &pe, &err), 0, "%s", err.text);
	cr_assert_eq(authenticode_digest(&pe, NULL, NULL, &both, &err), 0, "%s", err.text);
	memcpy(own, both.as_measured, sizeof(own));
	if (digest)
		memcpy(digest, own, sizeof(own));
	own[0] ^= b->wrong_digest;
	if (b->signer)
		sign_binary(&s, out, own, b->signer, b->issuer, b->forged);
	if (b->signer2)
		sign_binary(&s, out, own, b->signer2, b->signer2, false);
}

__attribute__((unused)) static void rootfs_put_binary(const struct rootfs *r, const char *path,
	const struct binary *b, uint8_t digest[SHA256_LEN])
{
	struct strbuf out = STRBUF_INIT;

	build_binary(b, &out, digest);
	rootfs_put(r, path, &out);
	strbuf_fini(&out);
}

struct uki {
	const char *stub; /* version; NULL: no .sdmagic */
	const char *signer, *issuer, *signer2;
};

/* A UKI with an unsigned kernel inside. */
__attribute__((unused)) static void rootfs_put_uki(
	const struct rootfs *r, const char *path, const struct uki *u)
{
	struct pe_build s = PE_BUILD_INIT;
	struct strbuf inner = STRBUF_INIT, out = STRBUF_INIT;
	cleanup_free char *magic =
		xasprintf("#### LoaderInfo: systemd-stub %s ####", u->stub ? u->stub : "none");
	struct authenticode_digests d;
	struct err err = ERR_INIT;
	struct pe pe;

	build_binary(&(struct binary){.fill = "inner"}, &inner, NULL);
	if (u->stub) {
		s.section[s.n_sections].name = ".sdmagic";
		s.section[s.n_sections].data = magic;
		s.section[s.n_sections++].len = strlen(magic) + 1;
	}
	s.section[s.n_sections].name = ".osrel";
	s.section[s.n_sections].data = path;
	s.section[s.n_sections++].len = strlen(path);
	s.section[s.n_sections].name = ".linux";
	s.section[s.n_sections].data = inner.data;
	s.section[s.n_sections++].len = inner.len;
	pe_build(&s, &out);
	cr_assert_eq(pe_parse(out.data, out.len, &pe, &err), 0, "%s", err.text);
	cr_assert_eq(authenticode_digest(&pe, NULL, NULL, &d, &err), 0, "%s", err.text);
	if (u->signer)
		sign_binary(&s, &out, d.as_signed, u->signer, u->issuer, false);
	if (u->signer2)
		sign_binary(&s, &out, d.as_signed, u->signer2, u->signer2, false);
	rootfs_put(r, path, &out);
	strbuf_fini(&inner);
	strbuf_fini(&out);
}

/* ---- lists of certificates */

static void put_le32(struct strbuf *b, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		strbuf_addc(b, (char)(v >> 8 * i));
}

/* One EFI_SIGNATURE_LIST with one self-issued certificate. */
__attribute__((unused)) static void put_list(
	struct strbuf *out, const struct efi_guid *owner, const char *subject)
{
	struct strbuf der = STRBUF_INIT;

	der_cert(&der, subject, subject);
	strbuf_add(out, &efi_cert_x509, 16);
	put_le32(out, (uint32_t)(28 + 16 + der.len));
	put_le32(out, 0);
	put_le32(out, (uint32_t)(16 + der.len));
	strbuf_add(out, owner, 16);
	strbuf_add(out, der.data, der.len);
	strbuf_fini(&der);
}

/* Shim's own sections: one certificate, or as lists (vendor_db); usual and latest SBAT level. */
__attribute__((unused)) static void put_shim(const struct rootfs *r, const char *path,
	const char *vendor, bool lists, const char *signer)
{
	static const struct efi_guid owner = {"vendor-db-owner"};
	struct strbuf auth = STRBUF_INIT, section = STRBUF_INIT, sbat = STRBUF_INIT;
	struct binary b = {.fill = "shim",
		.signer = signer,
		.issuer = "Firmware CA",
		.vendor = &section,
		.sbat = &sbat};

	if (lists)
		put_list(&auth, &owner, vendor);
	else if (vendor)
		der_cert(&auth, vendor, vendor);
	put_le32(&section, (uint32_t)auth.len);
	put_le32(&section, 0);
	put_le32(&section, 16);
	put_le32(&section, 16 + (uint32_t)auth.len);
	strbuf_add(&section, strbuf_str(&auth), auth.len);
	put_le32(&sbat, 0);
	put_le32(&sbat, 8);
	put_le32(&sbat, 8 + (uint32_t)sizeof(SBAT_USUAL));
	strbuf_add(&sbat, SBAT_USUAL, sizeof(SBAT_USUAL));
	strbuf_add(&sbat, SBAT_LATEST, sizeof(SBAT_LATEST));
	if (strstr(path, "aa64"))
		b.machine = 0xaa64;
	rootfs_put_binary(r, path, &b, NULL);
	strbuf_fini(&auth);
	strbuf_fini(&section);
	strbuf_fini(&sbat);
}

/* ---- firmware variables */

#define VAR_GLOBAL   "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define VAR_SECURITY "-d719b2cb-3d3a-4596-a3bc-dad00e67656f"

__attribute__((unused)) static void put_var(
	const struct rootfs *r, const char *file, const void *data, size_t len)
{
	struct strbuf b = STRBUF_INIT;

	strbuf_add(&b, "\x27\0\0\0", 4);
	strbuf_add(&b, data, len);
	rootfs_put(r, file, &b);
	strbuf_fini(&b);
}

/* A platform whose db holds these authorities. */
__attribute__((unused)) static void put_platform(
	const struct rootfs *r, const char *const *db, size_t n)
{
	static const struct efi_guid owner = {"firmware-owner."};
	static const uint8_t dbx[76] = {0x26, 0x16, 0xc4, 0xc1, 0x4c, 0x50, 0x92, 0x40, 0xac, 0xa9,
		0x41, 0xf9, 0x36, 0x93, 0x43, 0x28, 76, 0, 0, 0, 0, 0, 0, 0,
		48}; /* nothing's hash */
	struct strbuf lists = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		put_list(&lists, &owner, db[i]);
	put_var(r, "SecureBoot" VAR_GLOBAL, "\1", 1);
	put_var(r, "PK" VAR_GLOBAL, "pk", 2);
	put_var(r, "KEK" VAR_GLOBAL, "kek", 3);
	put_var(r, "db" VAR_SECURITY, lists.data, lists.len);
	put_var(r, "dbx" VAR_SECURITY, dbx, sizeof(dbx));
	strbuf_fini(&lists);
}

#endif
