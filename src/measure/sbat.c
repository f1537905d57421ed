/* SPDX-License-Identifier: MIT */
/*
 * SBAT, with which shim refuses files with known vulnerabilities. Each component in a file's .sbat
 * section has a generation; the level (variable SbatLevel, which shim contains and raises) lists
 * the lowest generations that may start (shim's SBAT.md; verify_sbat_section). A node that once ran
 * a newer shim has a higher level, which is unknown here.
 */
#include "config.h"

#include <string.h>

#include "measure_internal.h"
#include "tec/base/log.h"

/* A shim without .sbatlevel sets the original level. */
int measure_sbat_level(
	const struct measure_set *set, bool latest, const char **text, size_t *len, struct err *err)
{
	size_t section_len;
	const uint8_t *section = pe_section_find(&set->shim.pe, ".sbatlevel", &section_len);

	*text = SHIM_SBAT_ORIGINAL;
	*len = sizeof(SHIM_SBAT_ORIGINAL) - 1;
	if (section && shim_sbat_level(section, section_len, latest, text, len, err) < 0)
		return err_wrap(err, "%s", log_esc(set->shim.path));
	return 0;
}

/* "component,generation,..." from one line. */
struct entry {
	const char *name;
	size_t name_len;
	unsigned generation;
};

/* Read the next entry. Lines without a generation are skipped. Return false at the end. */
static bool next_entry(const char **at, const char *end, struct entry *out)
{
	while (*at < end && **at) {
		const char *line = *at, *eol = memchr(line, '\n', (size_t)(end - line));
		const char *comma;

		eol = eol ? eol : end;
		*at = eol < end ? eol + 1 : end;
		comma = memchr(line, ',', (size_t)(eol - line));
		if (!comma)
			continue;
		*out = (struct entry){line, (size_t)(comma - line), 0};
		for (const char *p = comma + 1; p < eol && *p >= '0' && *p <= '9'; p++)
			if (out->generation < 100000000)
				out->generation = 10 * out->generation + (unsigned)(*p - '0');
		return true;
	}
	return false;
}

/* Return the lowest generation of a component that may start; 0: any. A level may list it several
 * times. */
static unsigned lowest(const char *level, size_t len, const struct entry *e)
{
	const char *at = level;
	unsigned least = 0;
	struct entry l;

	while (next_entry(&at, level + len, &l))
		if (l.name_len == e->name_len && memcmp(l.name, e->name, l.name_len) == 0 &&
			l.generation > least)
			least = l.generation;
	return least;
}

/* Compare the components of a file with a level. A file without .sbat passes here. */
static int check(const struct measure_file *f, const char *level, size_t level_len, struct err *err)
{
	size_t len;
	const char *sbat = (const char *)pe_section_find(&f->pe, ".sbat", &len), *at = sbat;
	struct entry e;

	while (sbat && next_entry(&at, sbat + len, &e)) {
		unsigned least = lowest(level, level_len, &e);

		if (e.generation < least)
			return err_set(err, ERR_INVALID,
				"%s: the image's shim rejects it as too old (SBAT: %s has generation %u, the minimum is %u), so it cannot start with Secure Boot on; next step: use a newer image, or --secureboot-disabled",
				log_esc(f->path), log_escn(e.name, e.name_len), e.generation,
				least);
	}
	return 0;
}

int measure_sbat_check(
	const struct measure_set *set, const struct measure_file *f, bool by_shim, struct err *err)
{
	const char *level;
	size_t len;

	if (set->secure_boot == MEASURE_SB_OFF || set->validation_off || set->no_shim)
		return 0;
	/* A shim without .sbat predates SBAT. */
	if (by_shim && pe_section_find(&set->shim.pe, ".sbat", &len) &&
		!pe_section_find(&f->pe, ".sbat", &len))
		return err_set(err, ERR_INVALID,
			"%s has no .sbat section, so shim will not start it with Secure Boot on; next step: use a newer image, or --secureboot-disabled",
			log_esc(f->path));
	return measure_sbat_level(set, false, &level, &len, err) < 0 ? -1
								     : check(f, level, len, err);
}

/* An image that would not start at the latest level is still valid at the usual one. */
bool measure_sbat_differs(const struct measure_set *set)
{
	const char *usual, *latest;
	size_t usual_len, latest_len;
	struct err ignored = ERR_INIT;

	if (set->no_shim || measure_sbat_level(set, false, &usual, &usual_len, &ignored) < 0 ||
		measure_sbat_level(set, true, &latest, &latest_len, &ignored) < 0 ||
		(usual_len == latest_len && memcmp(usual, latest, usual_len) == 0) ||
		check(&set->second, latest, latest_len, &ignored) < 0)
		return false;
	for (size_t i = 0; i < set->n_kernels; i++)
		if (check(&set->kernel[i], latest, latest_len, &ignored) < 0)
			return false;
	return true;
}
