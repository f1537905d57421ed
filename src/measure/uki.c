/* SPDX-License-Identifier: MIT */
/*
 * PCR 11 of a unified kernel image: systemd-stub measures the name of each section that it knows
 * (with its NUL), then the contents, in the order of its own list. The list has grown over time;
 * .sdmagic states the version of the stub. Stubs 252, 254, 257 and 262 were observed in real boots.
 * Since 257 a .profile section begins a profile, whose sections replace those before the first
 * profile.
 */
#include "config.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/measure/authenticode.h"

#define PROFILES 257 /* the first stub that supports profiles */
#define DEFAULT  252 /* for a stub that does not state its version, as in the Rust tool */
#define N_ALL    ARRAY_LEN(sections)

/* In the order of measurement. since: the first stub that measures the section. */
static const struct {
	const char *name, *content;
	enum pcr_event_id id;
	unsigned since;
} sections[] = {
	{".linux", ".linux_CONTENT", PCR11_LINUX, 252},
	{".osrel", ".osrel_CONTENT", PCR11_OSREL, 252},
	{".cmdline", ".cmdline_CONTENT", PCR11_CMDLINE, 252},
	{".initrd", ".initrd_CONTENT", PCR11_INITRD, 252},
	{".ucode", ".ucode_CONTENT", PCR11_UCODE, 256},
	{".splash", ".splash_CONTENT", PCR11_SPLASH, 252},
	{".dtb", ".dtb_CONTENT", PCR11_DTB, 252},
	{".uname", ".uname_CONTENT", PCR11_UNAME, 253},
	{".sbat", ".sbat_CONTENT", PCR11_SBAT, 254},
	{".pcrpkey", ".pcrpkey_CONTENT", PCR11_PCRPKEY, 252},
	{".profile", ".profile_CONTENT", PCR11_PROFILE, PROFILES},
	{".hwids", ".hwids_CONTENT", PCR11_HWIDS, 257},
};

/* Sections that are measured only on matching hardware: their effect differs between nodes. */
static const struct {
	const char *name;
	unsigned since;
} depends[] = {{".dtbauto", 257}, {".efifw", 258}};

const char *measure_uki_event_name(enum pcr_event_id id)
{
	for (size_t i = 0; i < N_ALL; i++) {
		if (sections[i].id == id)
			return sections[i].name;
		if (sections[i].id + 1 == id)
			return sections[i].content;
	}
	return NULL;
}

/* ---- sections and profiles */

/* Sections from (included) to (excluded): those of one profile, or those before the first
 * profile. */
struct range {
	unsigned from, to;
};

/* Find the sections of a profile. *found: the image has that profile. */
static struct range profile_range(const struct pe *pe, unsigned wanted, bool *found)
{
	struct range r = {pe->n_sections, pe->n_sections};
	unsigned n = 0;

	for (unsigned i = 0; i < pe->n_sections; i++) {
		if (!str_eq(pe->section[i].name, ".profile"))
			continue;
		if (n == wanted)
			r.from = i;
		if (n++ == wanted + 1)
			r.to = i;
	}
	*found = r.from < pe->n_sections;
	return r;
}

unsigned measure_uki_profiles(const struct pe *pe)
{
	unsigned n = 0;

	for (unsigned i = 0; i < pe->n_sections; i++)
		n += str_eq(pe->section[i].name, ".profile");
	return n ? n : 1;
}

static const struct pe_section *section_in(const struct pe *pe, const char *name, struct range r)
{
	for (unsigned i = r.from; i < r.to; i++)
		if (str_eq(pe->section[i].name, name))
			return &pe->section[i];
	return NULL;
}

/* Find a section as the stub does: in the profile first, then in the base sections. */
static const struct pe_section *section_of(const struct pe *pe, const char *name, unsigned profile)
{
	const struct pe_section *s = NULL;
	bool found;
	struct range r = profile_range(pe, profile, &found), base = {0, 0};

	if (found)
		s = section_in(pe, name, r);
	/* The base sections end where the first profile begins. */
	for (; !s && base.to < pe->n_sections; base.to++)
		if (str_eq(pe->section[base.to].name, ".profile"))
			break;
	return s ? s : section_in(pe, name, base);
}

/* ---- measuring */

/* Add two events: the section's name with its NUL, then its contents. The id of the second follows
 * that of the first. */
static int add_section(struct measure_file *f, size_t i, const struct pe_section *s,
	struct pcr_events *out, struct err *err)
{
	cleanup_sha256 struct bytes_sha256_run run = {NULL};
	uint8_t digest[SHA256_LEN];

	/* The loader would append zeros; no UKI builder relies on that. */
	if (s->virtual_size > s->raw_size)
		return err_set(err, ERR_INVALID, "%s: section %s is longer than its data",
			log_esc(f->path), sections[i].name);
	bytes_sha256(sections[i].name, strlen(sections[i].name) + 1, digest);
	if (!pcr_events_push(out, sections[i].id, PCR_EV_IPL, 11, digest))
		DIE("more than %d events of one image", PCR_EVENTS_MAX);
	/* VirtualSize bytes: the raw data may have padding after them. */
	bytes_sha256_init(&run);
	if (authenticode_add(&run, NULL, measure_file_source, f, s->raw_off,
		    (size_t)s->raw_off + s->virtual_size, err) < 0)
		return -1;
	bytes_sha256_end(&run, digest);
	if (!pcr_events_push(out, (enum pcr_event_id)(sections[i].id + 1), PCR_EV_IPL, 11, digest))
		DIE("more than %d events of one image", PCR_EVENTS_MAX);
	return 0;
}

/* Refuse sections whose measurement is unknown: those that depend on hardware and, without
 * .sdmagic, those that only some stubs measure. */
static int check_known(const struct measure_file *f, unsigned version, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(depends); i++)
		if (section_in(&f->pe, depends[i].name, (struct range){0, f->pe.n_sections}) &&
			(!version || version >= depends[i].since))
			return err_set(err, ERR_INVALID,
				"%s: section %s is measured only on matching hardware, so PCR 11 varies between nodes; next step: build it without, or use a node's value",
				log_esc(f->path), depends[i].name);
	for (size_t i = 0; version < DEFAULT && i < N_ALL; i++) {
		bool plain = sections[i].since <= 254 && sections[i].id <= PCR11_SBAT;

		if (!plain && section_of(&f->pe, sections[i].name, 0))
			return err_set(err, ERR_INVALID,
				"%s: it is unknown whether its stub measures section %s, because it does not state its version (.sdmagic) or is older than %d; next step: use a later systemd-stub",
				log_esc(f->path), sections[i].name, DEFAULT);
	}
	return 0;
}

/* Events follow the stub's list, not the order of sections in the file. */
int measure_uki_events(
	struct measure_file *f, unsigned profile, struct pcr_events *out, struct err *err)
{
	unsigned version = measure_stub_version(&f->pe);

	if (!section_of(&f->pe, ".linux", 0))
		return err_set(err, ERR_INVALID,
			"%s has no section .linux: it is a PE image, but not a unified kernel image",
			log_esc(f->path));
	if (check_known(f, version, err) < 0)
		return -1;
	for (size_t i = 0; i < N_ALL; i++) {
		const struct pe_section *s =
			section_of(&f->pe, sections[i].name, version >= PROFILES ? profile : 0);

		/* A stub without a version: check_known() left only the sections of the
		 * Rust tool. */
		if (!s || (version && version < sections[i].since))
			continue;
		if (add_section(f, i, s, out, err) < 0)
			return -1;
	}
	return 0;
}

int measure_uki(int uki_fd, const char *path, unsigned profile, unsigned *n_profiles,
	struct pcr_events *out, struct err *err)
{
	struct measure_file f = {0};
	int rc;

	if (measure_file_open_fd(uki_fd, path, &f, err) < 0)
		return -1;
	*n_profiles = measure_stub_version(&f.pe) >= PROFILES ? measure_uki_profiles(&f.pe) : 1;
	rc = measure_uki_events(&f, profile, out, err);
	measure_file_fini(&f);
	return rc;
}

/* ---- the embedded kernel, for stubs that have the firmware load it */

struct inner {
	struct measure_file *f;
	size_t at;
};

/* Read from the embedded image, whose offsets start at its section. */
static const uint8_t *inner_source(void *arg, size_t from, size_t len, struct err *err)
{
	const struct inner *in = arg;

	return measure_file_source(in->f, in->at + from, len, err);
}

/* Hash the embedded kernel as firmware does: only its own bytes, as a PE image of its own. */
int measure_uki_inner(struct measure_file *f, uint8_t out[SHA256_LEN], struct err *err)
{
	const struct pe_section *s = section_of(&f->pe, ".linux", 0);
	struct inner in = {f, s ? s->raw_off : 0};
	struct authenticode_digests digests;
	struct pe pe;

	if (!s)
		return err_set(err, ERR_INVALID, "%s has no section .linux", log_esc(f->path));
	if (s->virtual_size > s->raw_size ||
		pe_parse(f->data + s->raw_off, s->virtual_size, &pe, err) < 0 ||
		authenticode_digest(&pe, inner_source, &in, &digests, err) < 0) {
		if (!err_is_set(err))
			err_set(err, ERR_INVALID, "section .linux is longer than its data");
		return err_wrap(err, "%s: the embedded kernel", log_esc(f->path));
	}
	memcpy(out, digests.as_measured, SHA256_LEN);
	measure_file_rest(f);
	return 0;
}
