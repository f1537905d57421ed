/* SPDX-License-Identifier: MIT */
/*
 * What src/measure makes of a PE file, one fact per line, for comparison with other tools:
 * tec-test-pe FILE. Exit 1 with the reason on stderr when it is refused.
 */
#include "config.h"

#include <fcntl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"
#include "tec/measure/efivar.h"

static void print_digest(const char *what, const uint8_t digest[SHA256_LEN])
{
	char hex[SHA256_HEX_LEN + 1];

	bytes_to_hex(digest, SHA256_LEN, hex);
	printf("%s %s\n", what, hex);
}

static void print_name(const char *what, const uint8_t *der, size_t len)
{
	const unsigned char *p = der;
	X509_NAME *name = d2i_X509_NAME(NULL, &p, (long)len);
	char *text = name ? X509_NAME_oneline(name, NULL, 0) : NULL;

	printf("%s %s\n", what, text ? text : "damaged");
	OPENSSL_free(text);
	X509_NAME_free(name);
}

static int print_signatures(const struct pe *pe, struct err *err)
{
	const uint8_t *der;
	size_t pos = 0, len;

	while (pe_next_signature(pe, &pos, &der, &len, err)) {
		struct authenticode_sig sig;

		if (authenticode_read(der, len, &sig, err) < 0)
			return -1;
		printf("signature %s\n", sig.has_sha256 ? "sha256" : "other");
		if (sig.has_sha256)
			print_digest("signed", sig.digest);
		for (size_t i = 0; i < sig.n_certs; i++) {
			const struct authenticode_cert *c = &sig.cert[i];

			print_name("subject", c->subject, c->subject_len);
			print_name("issuer", c->issuer, c->issuer_len);
		}
	}
	return err_is_set(err) ? -1 : 0;
}

static int print_shim(const struct pe *pe, struct err *err)
{
	cleanup_strbuf struct strbuf mok = STRBUF_INIT, mokx = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	struct shim_vendor vendor;
	const uint8_t *section;
	const char *text;
	size_t len, text_len;

	section = pe_section_find(pe, ".vendor_cert", &len);
	if (section) {
		if (shim_vendor_read(section, len, &vendor, err) < 0)
			return -1;
		shim_mok_list(&vendor, &mok);
		shim_mok_list_x(&vendor, &mokx);
		printf("vendor %s auth=%zu deauth=%zu\n", vendor.auth_is_lists ? "lists" : "cert",
			vendor.auth_len, vendor.deauth_len);
		bytes_sha256(mok.data, mok.len, digest);
		print_digest("moklist", digest);
		bytes_sha256(mokx.data, mokx.len, digest);
		print_digest("moklistx", digest);
	}
	section = pe_section_find(pe, ".sbatlevel", &len);
	for (int latest = 0; section && latest < 2; latest++) {
		if (shim_sbat_level(section, len, latest, &text, &text_len, err) < 0)
			return -1;
		printf("sbatlevel %s ", latest ? "latest" : "previous");
		for (size_t i = 0; i < text_len; i++)
			putchar(text[i] == '\n' ? '|' : text[i]);
		putchar('\n');
	}
	return 0;
}

static int print_all(const void *data, size_t len, struct err *err)
{
	static const char *const machines[] = {"other", "x64", "aarch64"};
	struct authenticode_digests digests;
	size_t n, content;
	struct pe pe;

	if (pe_parse(data, len, &pe, err) < 0 ||
		authenticode_digest(&pe, NULL, NULL, &digests, err) < 0)
		return -1;
	printf("machine %s\n", machines[pe.machine]);
	print_digest("digest", digests.as_signed);
	print_digest("measured", digests.as_measured);
	for (unsigned i = 0; i < pe.n_sections; i++) {
		(void)pe_section_find(&pe, pe.section[i].name, &content);
		printf("section %s %u %u %u %zu\n", pe.section[i].name, pe.section[i].virtual_size,
			pe.section[i].raw_size, pe.section[i].raw_off, content);
	}
	if (print_signatures(&pe, err) < 0 || print_shim(&pe, err) < 0)
		return -1;
	if (authenticode_check(&pe, digests.as_signed, &n, err) < 0)
		return -1;
	printf("signatures %zu\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct stat st;
	void *data;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: tec-test-pe FILE\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0) {
		fprintf(stderr, "%s: cannot be read, or empty\n", argv[1]);
		return 2;
	}
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED) {
		fprintf(stderr, "%s: cannot be mapped\n", argv[1]);
		return 2;
	}
	if (print_all(data, (size_t)st.st_size, &err) < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], err.text);
		return 1;
	}
	return 0;
}
