/* SPDX-License-Identifier: MIT */
/*
 * PCR 11 of a unified kernel image: systemd-stub measures the name of each section it knows (with
 * its NUL), then the section's contents, in a fixed order. Which sections a stub knows depends on
 * its version; these are those of the Rust tool.
 */
#include "config.h"

#include <string.h>

#include "boot_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/boot/authenticode.h"

static const struct {
	const char *name, *content;
} sections[] = {
	{".linux", ".linux_CONTENT"},
	{".osrel", ".osrel_CONTENT"},
	{".cmdline", ".cmdline_CONTENT"},
	{".initrd", ".initrd_CONTENT"},
	{".uname", ".uname_CONTENT"},
	{".sbat", ".sbat_CONTENT"},
};

const char *boot_uki_event_name(enum pcr_event_id id)
{
	size_t i = ((size_t)id - PCR11_LINUX) / 2;

	if (id < PCR11_LINUX || id > PCR11_SBAT_CONTENT)
		return NULL;
	return (id - PCR11_LINUX) % 2 ? sections[i].content : sections[i].name;
}

static const struct pe_section *section_named(const struct pe *pe, const char *name)
{
	for (unsigned i = 0; i < pe->n_sections; i++)
		if (str_eq(pe->section[i].name, name))
			return &pe->section[i];
	return NULL;
}

static int hash_section(
	struct boot_file *f, const struct pe_section *s, uint8_t out[SHA256_LEN], struct err *err)
{
	cleanup_sha256 struct bytes_sha256_run run = {NULL};
	size_t at = s->raw_off, end = at + s->virtual_size;

	bytes_sha256_init(&run);
	while (at < end) {
		size_t n = end - at < AUTHENTICODE_STEP ? end - at : AUTHENTICODE_STEP;
		const uint8_t *p = boot_file_source(f, at, n, err);

		if (!p)
			return -1;
		bytes_sha256_add(&run, p, n);
		at += n;
	}
	bytes_sha256_end(&run, out);
	return 0;
}

static int add_section(struct boot_file *f, size_t i, struct pcr_events *out, struct err *err)
{
	const struct pe_section *s = section_named(&f->pe, sections[i].name);
	enum pcr_event_id id = (enum pcr_event_id)(PCR11_LINUX + 2 * i);
	uint8_t digest[SHA256_LEN];

	if (!s)
		return 0;
	/* The loader would add zeros, which no UKI builder relies on. */
	if (s->virtual_size > s->raw_size)
		return err_set(err, ERR_INVALID, "%s: section %s is longer than its data",
			log_esc(f->path), sections[i].name);
	bytes_sha256(sections[i].name, strlen(sections[i].name) + 1, digest);
	if (!pcr_events_push(out, id, PCR_EV_IPL, 11, digest))
		DIE("more than %d events of one image", PCR_EVENTS_MAX);
	if (hash_section(f, s, digest, err) < 0)
		return -1;
	if (!pcr_events_push(out, id + 1, PCR_EV_IPL, 11, digest))
		DIE("more than %d events of one image", PCR_EVENTS_MAX);
	return 0;
}

int boot_uki(int uki_fd, const char *path, struct pcr_events *out, struct err *err)
{
	struct boot_file f = {0};
	int rc = 0;

	if (boot_file_open_fd(uki_fd, path, &f, err) < 0)
		return -1;
	if (!section_named(&f.pe, ".linux"))
		rc = err_set(err, ERR_INVALID,
			"%s does not have a section .linux: it is a PE image, but not a unified kernel image",
			log_esc(path));
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(sections); i++)
		rc = add_section(&f, i, out, err);
	boot_file_fini(&f);
	return rc;
}
