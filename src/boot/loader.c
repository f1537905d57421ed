/* SPDX-License-Identifier: MIT */
/*
 * Which loader a second stage is, by marks of its builders: .linux (a UKI), .sdmagic
 * (systemd-boot), the vendor's line in .sbat (GRUB). What each does to PCR 4 was measured in real
 * boots; a build that was not measured gets every behaviour that its relatives have.
 */
#include "config.h"

#include <string.h>

#include "boot_internal.h"

#define SBAT_MAX 65536

enum loader_type { UKI, SYSTEMD_BOOT, GRUB_TWICE, GRUB_ONCE, GRUB_DEBIAN, GRUB_OTHER };

/*
 * Secure Boot on: shim's lock protocol measures what GRUB has it verify. Debian's 2.06 asks twice
 * per kernel (the file open verifier, then linuxefi), Red Hat's once. Off: GRUB does not use it.
 * Later builds let the firmware load the kernel, which measures it in both states.
 */
static const struct boot_loader loaders[] = {
	[UKI] = {"a UKI, which holds its kernel", true, {0, -1}, {0, -1}},
	[SYSTEMD_BOOT] = {"systemd-boot", false, {1, -1}, {1, -1}},
	[GRUB_TWICE] = {"GRUB 2.06 of Debian or Ubuntu", false, {2, -1}, {0, -1}},
	[GRUB_ONCE] = {"GRUB of Red Hat or Fedora", false, {1, -1}, {0, -1}},
	[GRUB_DEBIAN] = {"GRUB of Debian or Ubuntu, later than 2.06", false, {2, 1, -1},
		{0, 1, -1}},
	[GRUB_OTHER] = {"a loader of unknown make", false, {1, 2, -1}, {0, 1, -1}},
};

/* Field n of a comma separated line. */
static const char *field(const char *line, const char *end, unsigned n, size_t *len)
{
	const char *comma;

	for (; n; n--) {
		line = memchr(line, ',', (size_t)(end - line));
		if (!line)
			return NULL;
		line++;
	}
	comma = memchr(line, ',', (size_t)(end - line));
	*len = (size_t)((comma ? comma : end) - line);
	return line;
}

static bool begins(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return s && len >= n && memcmp(s, prefix, n) == 0;
}

/* component,generation,vendor,package,version,URL per line (shim's SBAT.md). */
static enum loader_type grub_by_sbat(const char *sbat, size_t len)
{
	const char *end = sbat + len, *line, *next;
	enum loader_type found = GRUB_OTHER;

	for (line = sbat; line < end && *line; line = next) {
		const char *eol = memchr(line, '\n', (size_t)(end - line)), *component, *version;
		size_t n, version_len = 0;

		next = eol ? eol + 1 : end;
		eol = eol ? eol : end;
		component = field(line, eol, 0, &n);
		version = field(line, eol, 4, &version_len);
		if (begins(component, n, "grub.rh") || begins(component, n, "grub.fedora"))
			found = GRUB_ONCE;
		else if (begins(component, n, "grub.debian") || begins(component, n, "grub.ubuntu"))
			found = begins(version, version_len, "2.06") ? GRUB_TWICE : GRUB_DEBIAN;
	}
	return found;
}

const struct boot_loader *boot_loader_of(const struct pe *second, bool is_uki)
{
	const char *sbat;
	size_t len;

	if (is_uki || pe_section_find(second, ".linux", &len))
		return &loaders[UKI];
	if (pe_section_find(second, ".sdmagic", &len))
		return &loaders[SYSTEMD_BOOT];
	sbat = (const char *)pe_section_find(second, ".sbat", &len);
	if (!sbat)
		return &loaders[GRUB_OTHER];
	return &loaders[grub_by_sbat(sbat, len < SBAT_MAX ? len : SBAT_MAX)];
}
