/* SPDX-License-Identifier: MIT */
/*
 * Find kernels and boot loaders in the layouts of bootupd (usr/lib/bootupd/updates, and usr/lib/efi
 * since Fedora CoreOS 44). An image without shim has a UKI where bootc looks for it: beside the
 * kernel's modules, or in boot/EFI/Linux. The choice does not depend on the order in which a
 * directory lists its names. Directories are entered, links to directories are not; depth and count
 * are bounded.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/measure/needs.h"

#define DEPTH_MAX   8
#define ENTRIES_MAX 20000
#define KERNELS_MAX 64
#define KERNEL      "vmlinuz"

/* walk_dir() enters DEPTH_MAX + 1 levels, and then the vendor's directory. */
const struct measure_need measure_needs[MEASURE_N_NEEDS] = {
	[MEASURE_NEED_KERNELS] = {"usr/lib/modules", 2, KERNEL, ".efi"},
	[MEASURE_NEED_EFI] = {"usr/lib/efi", DEPTH_MAX + 2, NULL, NULL},
	[MEASURE_NEED_BOOTUPD] = {"usr/lib/bootupd/updates", DEPTH_MAX + 2, NULL, NULL},
	[MEASURE_NEED_UPDATES] = {"usr/libexec/fwupd/efi", 1, NULL, NULL},
	[MEASURE_NEED_UKIS] = {"boot/EFI/Linux", 1, NULL, ".efi"},
	[MEASURE_NEED_SD_BOOT] = {"usr/lib/systemd/boot/efi", 1, NULL, NULL},
};

static const struct {
	enum pe_machine machine;
	const char *shim, *second, *update, *sd_boot;
} names[] = {
	{PE_MACHINE_X64, "shimx64.efi", "grubx64.efi", "fwupdx64.efi", "systemd-bootx64.efi"},
	{PE_MACHINE_AARCH64, "shimaa64.efi", "grubaa64.efi", "fwupdaa64.efi",
		"systemd-bootaa64.efi"},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int measure_vercmp(const char *a, const char *b)
{
	while (*a || *b) {
		size_t na, nb;
		int order;

		if ((*a == '~') != (*b == '~'))
			return *a == '~' ? -1 : 1;
		if (!is_digit(*a) || !is_digit(*b)) {
			/* The end sorts before all but '~', and letters sort before digits. */
			if (is_alpha(*a) && is_digit(*b))
				return -1;
			if (is_digit(*a) && is_alpha(*b))
				return 1;
			if (*a != *b)
				return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
			a++;
			b++;
			continue;
		}
		a += strspn(a, "0");
		b += strspn(b, "0");
		na = strspn(a, "0123456789");
		nb = strspn(b, "0123456789");
		if (na != nb)
			return na < nb ? -1 : 1;
		order = memcmp(a, b, na);
		if (order)
			return order < 0 ? -1 : 1;
		a += na;
		b += nb;
	}
	return 0;
}

/* ---- names of a directory, sorted */

static void list_fini(struct measure_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}
#define cleanup_list __attribute__((cleanup(list_fini)))

static void list_push(struct measure_list *l, char *take)
{
	ARRAY_GROW(l->v, l->n);
	l->v[l->n++] = take;
}

/* Sort by version, then by name, so that equal versions have a fixed order. */
static int newest_first(const void *a, const void *b)
{
	int order = measure_vercmp(*(char *const *)b, *(char *const *)a);

	return order ? order : str_order(a, b);
}

/* A directory EFI/VENDOR that contains a shim or a second stage. */
struct place {
	char *dir;    /* owned */
	unsigned has; /* bit 2k: names[k].shim; bit 2k + 1: names[k].second */
};

struct walk {
	int root_fd;
	size_t entries;      /* read so far, over all directories */
	struct place *found; /* owned */
	size_t n_found;
	struct err *err;
};

/* List a directory: subdirectories into dirs, sorted, all else into files. Hidden names are
 * skipped. Return 1 if it does not exist. */
static int read_dir(
	struct walk *w, const char *path, struct measure_list *dirs, struct measure_list *files)
{
	const struct dirent *e;
	struct stat st;
	bool is_dir;
	int fd;
	DIR *d;

	if (measure_open_dir(w->root_fd, path, &fd, w->err) < 0)
		return -1;
	if (fd < 0)
		return 1;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return err_set_errno(w->err, ERR_INVALID, errno, "cannot list %s", log_esc(path));
	}
	while ((e = readdir(d)) && ++w->entries <= ENTRIES_MAX) {
		if (e->d_name[0] == '.')
			continue;
		is_dir = e->d_type == DT_DIR;
		/* Some file systems do not report d_type. */
		if (e->d_type == DT_UNKNOWN)
			is_dir = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				 S_ISDIR(st.st_mode);
		list_push(is_dir ? dirs : files, xstrdup(e->d_name));
	}
	closedir(d);
	if (w->entries > ENTRIES_MAX)
		return err_set(w->err, ERR_INVALID, "more than %d files in and below %s",
			ENTRIES_MAX, log_esc(path));
	if (dirs->n)
		qsort(dirs->v, dirs->n, sizeof(*dirs->v), str_order);
	return 0;
}

/* ---- kernels */

static bool lists(const struct measure_list *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->v[i], name))
			return true;
	return false;
}

/* A missing usr/lib/modules is not reported here: a UKI needs no kernel outside itself. */
int measure_find_kernels(int root_fd, struct measure_paths *p, struct err *err)
{
	struct walk w = {.root_fd = root_fd, .err = err};
	cleanup_list struct measure_list versions = {NULL, 0}, ignored = {NULL, 0};
	const char *modules = measure_needs[MEASURE_NEED_KERNELS].dir;

	if (read_dir(&w, modules, &versions, &ignored) < 0)
		return -1;
	if (versions.n)
		qsort(versions.v, versions.n, sizeof(*versions.v), newest_first);
	for (size_t i = 0; i < versions.n; i++) {
		cleanup_free char *dir = xasprintf("%s/%s", modules, versions.v[i]);
		cleanup_list struct measure_list dirs = {NULL, 0}, files = {NULL, 0};

		if (read_dir(&w, dir, &dirs, &files) < 0)
			return -1;
		if (!lists(&files, KERNEL) && !lists(&dirs, KERNEL))
			continue; /* modules left behind by a removed kernel */
		if (p->kernels.n == KERNELS_MAX)
			return err_set(err, ERR_INVALID, "more than %d kernels in %s", KERNELS_MAX,
				modules);
		list_push(&p->kernels, xasprintf("%s/" KERNEL, dir));
	}
	return 0;
}

/* ---- boot loaders */

static int walk_dir(struct walk *w, const char *path, const char *name, unsigned depth);

/* Examine the vendor directories below EFI/. */
static int walk_vendors(struct walk *w, const char *path, const struct measure_list *vendors)
{
	for (size_t i = 0; i < vendors->n; i++) {
		cleanup_free char *dir = xasprintf("%s/%s", path, vendors->v[i]);
		cleanup_list struct measure_list dirs = {NULL, 0}, files = {NULL, 0};
		unsigned has = 0;

		if (read_dir(w, dir, &dirs, &files) < 0)
			return -1;
		/* Directories with these names count too: opening them reports the error. */
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			if (lists(&files, names[k].shim) || lists(&dirs, names[k].shim))
				has |= 1u << 2 * k;
			if (lists(&files, names[k].second) || lists(&dirs, names[k].second))
				has |= 2u << 2 * k;
		}
		if (!has)
			continue;
		ARRAY_GROW(w->found, w->n_found);
		w->found[w->n_found++] = (struct place){steal_ptr(&dir), has};
	}
	return 0;
}

/* Search for directories named EFI. `name` is the last part of path. */
static int walk_dir(struct walk *w, const char *path, const char *name, unsigned depth)
{
	cleanup_list struct measure_list dirs = {NULL, 0}, files = {NULL, 0};

	if (depth > DEPTH_MAX)
		return err_set(w->err, ERR_INVALID, "%s is nested too deeply", log_esc(path));
	if (read_dir(w, path, &dirs, &files) < 0)
		return -1;
	if (str_eq(name, "EFI"))
		return walk_vendors(w, path, &dirs);
	for (size_t i = 0; i < dirs.n; i++) {
		cleanup_free char *dir = xasprintf("%s/%s", path, dirs.v[i]);

		if (walk_dir(w, dir, dirs.v[i], depth + 1) < 0)
			return -1;
	}
	return 0;
}

static const char *vendor_of(const struct place *p)
{
	return strrchr(p->dir, '/') + 1;
}

static int by_vendor_newest_first(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = strcmp(vendor_of(x), vendor_of(y));

	return order ? order : newest_first(&x->dir, &y->dir);
}

/* Return the newest place of the vendor at index i that has all these names. Places are sorted by
 * vendor, then newest first. */
static const struct place *newest_with(const struct walk *w, size_t i, unsigned names_bits)
{
	for (size_t j = i;
		j < w->n_found && str_eq(vendor_of(&w->found[j]), vendor_of(&w->found[i])); j++)
		if ((w->found[j].has & names_bits) == names_bits)
			return &w->found[j];
	return NULL;
}

/*
 * Choose shim and second stage. shim starts its neighbor on the ESP, so both must come from one
 * vendor. In bootupd's layout they share a directory; usr/lib/efi has one per package and version.
 */
static bool take_pair(const struct walk *w, size_t k, bool same_dir, struct measure_paths *p)
{
	unsigned shim_bit = 1u << 2 * k, second_bit = 2u << 2 * k;

	for (size_t i = 0; i < w->n_found; i++) {
		const struct place *shim, *second;

		if (i && str_eq(vendor_of(&w->found[i - 1]), vendor_of(&w->found[i])))
			continue;
		shim = newest_with(w, i, same_dir ? shim_bit | second_bit : shim_bit);
		second = same_dir ? shim : newest_with(w, i, second_bit);
		if (!shim || !second)
			continue;
		p->shim = xasprintf("%s/%s", shim->dir, names[k].shim);
		p->second = xasprintf("%s/%s", second->dir, names[k].second);
		for (size_t j = 0; j < w->n_found; j++)
			if (&w->found[j] != shim && &w->found[j] != second)
				strbuf_addf(&p->notes, "also found, not used: %s\n",
					log_esc(w->found[j].dir));
		return true;
	}
	return false;
}

/* Prefer a pair in one directory, as bootupd installs it. Without a kernel (OTHER) x64 is tried
 * first. */
static int find_in(
	const char *top, struct walk *w, enum pe_machine machine, struct measure_paths *p)
{
	if (walk_dir(w, top, "", 0) < 0)
		return -1;
	p->has_loaders = w->n_found > 0;
	if (!w->n_found)
		return err_set(w->err, ERR_NOT_FOUND,
			"no EFI/*/shimx64.efi or shimaa64.efi below %s; next step: specify the root of a bootable image",
			top);
	qsort(w->found, w->n_found, sizeof(*w->found), by_vendor_newest_first);
	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		if (machine != PE_MACHINE_OTHER && names[k].machine != machine)
			continue;
		if (take_pair(w, k, true, p) || take_pair(w, k, false, p))
			return 0;
	}
	return err_set(w->err, ERR_NOT_FOUND,
		"no EFI/VENDOR below %s has both shim and second stage (shimx64.efi and grubx64.efi, or shimaa64.efi and grubaa64.efi)%s",
		top, machine == PE_MACHINE_OTHER ? "" : " for the kernel's architecture");
}

/* If usr/lib/efi exists, the older directory of bootupd is ignored. */
int measure_find_loaders(
	int root_fd, enum pe_machine machine, struct measure_paths *p, struct err *err)
{
	struct walk w = {.root_fd = root_fd, .err = err};
	const char *efi = measure_needs[MEASURE_NEED_EFI].dir;
	int fd, rc;

	if (measure_open_dir(root_fd, efi, &fd, err) < 0)
		return -1;
	if (fd >= 0)
		close(fd);
	rc = find_in(fd >= 0 ? efi : measure_needs[MEASURE_NEED_BOOTUPD].dir, &w, machine, p);
	for (size_t i = 0; i < w.n_found; i++)
		free(w.found[i].dir);
	free(w.found);
	return rc;
}

/* Choose by the name of shim: fwupd's program must match its architecture. */
int measure_find_updates(int root_fd, struct measure_paths *p, struct err *err)
{
	struct walk w = {.root_fd = root_fd, .err = err};
	cleanup_list struct measure_list dirs = {NULL, 0}, files = {NULL, 0};
	const char *dir = measure_needs[MEASURE_NEED_UPDATES].dir;

	if (read_dir(&w, dir, &dirs, &files) < 0)
		return -1;
	for (size_t k = 0; k < ARRAY_LEN(names); k++) {
		cleanup_free char *is_signed = xasprintf("%s.signed", names[k].update);
		bool found = lists(&files, is_signed);

		if (!str_ends(p->shim, names[k].shim) || !(found || lists(&files, names[k].update)))
			continue;
		/* fwupd installs the signed file if it exists. */
		list_push(
			&p->updates, xasprintf("%s/%s", dir, found ? is_signed : names[k].update));
	}
	return 0;
}

/* ---- without shim */

/* Append the UKIs of a directory; by name they are sorted newest first. */
static int add_ukis(struct walk *w, const char *dir, struct measure_list *out)
{
	cleanup_list struct measure_list dirs = {NULL, 0}, files = {NULL, 0};

	if (read_dir(w, dir, &dirs, &files) < 0)
		return -1;
	if (files.n)
		qsort(files.v, files.n, sizeof(*files.v), newest_first);
	for (size_t i = 0; i < files.n; i++)
		if (str_ends(files.v[i], ".efi"))
			list_push(out, xasprintf("%s/%s", dir, files.v[i]));
	return 0;
}

int measure_find_uki(int root_fd, struct measure_paths *p, struct err *err)
{
	struct walk w = {.root_fd = root_fd, .err = err};
	cleanup_list struct measure_list versions = {NULL, 0}, ignored = {NULL, 0},
					 found = {NULL, 0};

	if (read_dir(&w, measure_needs[MEASURE_NEED_KERNELS].dir, &versions, &ignored) < 0)
		return -1;
	if (versions.n)
		qsort(versions.v, versions.n, sizeof(*versions.v), newest_first);
	for (size_t i = 0; i < versions.n; i++) {
		cleanup_free char *dir =
			xasprintf("%s/%s", measure_needs[MEASURE_NEED_KERNELS].dir, versions.v[i]);

		if (add_ukis(&w, dir, &found) < 0)
			return -1;
	}
	if (add_ukis(&w, measure_needs[MEASURE_NEED_UKIS].dir, &found) < 0)
		return -1;
	for (size_t i = 1; i < found.n; i++)
		strbuf_addf(&p->notes, "also found, not used: %s\n", log_esc(found.v[i]));
	if (found.n)
		p->second = xstrdup(found.v[0]);
	return 0;
}

int measure_find_sd_boot(
	int root_fd, enum pe_machine machine, struct measure_paths *p, struct err *err)
{
	struct walk w = {.root_fd = root_fd, .err = err};
	cleanup_list struct measure_list dirs = {NULL, 0}, files = {NULL, 0};
	const char *dir = measure_needs[MEASURE_NEED_SD_BOOT].dir;

	if (read_dir(&w, dir, &dirs, &files) < 0)
		return -1;
	for (size_t k = 0; k < ARRAY_LEN(names) && !p->sd_boot; k++) {
		cleanup_free char *is_signed = xasprintf("%s.signed", names[k].sd_boot);
		bool found = lists(&files, is_signed);

		/* bootctl installs the signed file if it exists. */
		if (names[k].machine == machine && (found || lists(&files, names[k].sd_boot)))
			p->sd_boot = xasprintf("%s/%s", dir, found ? is_signed : names[k].sd_boot);
	}
	return 0;
}

void measure_paths_fini(struct measure_paths *p)
{
	free(p->sd_boot);
	list_fini(&p->updates);
	list_fini(&p->kernels);
	free(p->shim);
	free(p->second);
	strbuf_fini(&p->notes);
}
