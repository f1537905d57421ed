/* SPDX-License-Identifier: MIT */
/*
 * Identify the second stage by marks of its build: .linux (a UKI), .sdmagic (systemd-boot), and the
 * vendor's line in .sbat (GRUB). The effect of each on PCR 4 was observed in real boots; an
 * unobserved build gets every behavior of its relatives.
 */
#include "config.h"

#include <string.h>

#include "measure_internal.h"

#define SBAT_MAX 65536

enum loader_type {
	UKI,
	UKI_LOADS,
	UKI_OTHER,
	SYSTEMD_BOOT,
	GRUB_TWICE,
	GRUB_ONCE,
	GRUB_DEBIAN_212,
	GRUB_DEBIAN,
	GRUB_OTHER
};

/*
 * Secure Boot on: shim's lock protocol measures what GRUB asks it to verify. Debian's 2.06 asks
 * twice per kernel (the file open verifier, then linuxefi); Debian's 2.12 and Red Hat's GRUB ask
 * once. Off: GRUB does not use the protocol. With Secure Boot off, systemd-stub 252, 254 and 257
 * have the firmware load the embedded kernel; 262 does not.
 */
static const struct measure_loader loaders[] = {
	[UKI] = {"a UKI, which holds its kernel", true, {0, -1}, {0, -1}},
	[UKI_LOADS] = {"a UKI of systemd 252 to 257", true, {0, -1}, {1, -1}},
	[UKI_OTHER] = {"a UKI of unknown version", true, {0, 1, -1}, {0, 1, -1}},
	[SYSTEMD_BOOT] = {"systemd-boot", false, {1, -1}, {1, -1}},
	[GRUB_TWICE] = {"GRUB 2.06 of Debian or Ubuntu", false, {2, -1}, {0, -1}},
	[GRUB_ONCE] = {"GRUB of Red Hat or Fedora", false, {1, -1}, {0, -1}},
	[GRUB_DEBIAN_212] = {"GRUB 2.12 of Debian", false, {1, -1}, {0, -1}},
	[GRUB_DEBIAN] = {"GRUB of Debian or Ubuntu, later than 2.06", false, {1, 2, -1},
		{0, 1, -1}},
	[GRUB_OTHER] = {"a loader of unknown make", false, {1, 2, -1}, {0, 1, -1}},
};

/* Return field n of a comma-separated line, or NULL. */
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

/* Find the vendor of GRUB. Each line is component,generation,vendor,package,version,URL (shim's
 * SBAT.md). */
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
			/* Debian's 2.12-9+deb13u2 was observed; Ubuntu's 2.12 was not. */
			found = begins(version, version_len, "2.06") ? GRUB_TWICE
				: begins(component, n, "grub.debian") &&
						begins(version, version_len, "2.12")
					? GRUB_DEBIAN_212
					: GRUB_DEBIAN;
	}
	return found;
}

unsigned measure_stub_version(const struct pe *uki)
{
	static const char mark[] = "#### LoaderInfo: systemd-stub ";
	size_t len, at = sizeof(mark) - 1;
	const char *magic = (const char *)pe_section_find(uki, ".sdmagic", &len);
	unsigned version = 0;

	if (!magic || !begins(magic, len, mark))
		return 0;
	for (; at < len && magic[at] >= '0' && magic[at] <= '9' && version < 10000; at++)
		version = 10 * version + (unsigned)(magic[at] - '0');
	return version;
}

/* systemd-boot and UKIs both contain .sdmagic, so .linux is checked first. */
const struct measure_loader *measure_loader_of(const struct pe *second, bool is_uki)
{
	const char *sbat;
	size_t len;

	/* Only the versions named here, and those between two that behave alike, are known. */
	if (is_uki || pe_section_find(second, ".linux", &len)) {
		unsigned v = measure_stub_version(second);

		return &loaders[v == 262 ? UKI : v >= 252 && v <= 257 ? UKI_LOADS : UKI_OTHER];
	}
	if (pe_section_find(second, ".sdmagic", &len))
		return &loaders[SYSTEMD_BOOT];
	sbat = (const char *)pe_section_find(second, ".sbat", &len);
	if (!sbat)
		return &loaders[GRUB_OTHER];
	return &loaders[grub_by_sbat(sbat, len < SBAT_MAX ? len : SBAT_MAX)];
}

const struct measure_loader *measure_loader_uki(void)
{
	return &loaders[UKI];
}

/* Check whether a UKI's stub may have the firmware load, and thus measure, the embedded kernel. */
bool measure_loader_may_load(const struct measure_loader *l)
{
	for (size_t i = 0; i < sizeof(l->on); i++)
		if (l->on[i] > 0 || l->off[i] > 0)
			return true;
	return false;
}
