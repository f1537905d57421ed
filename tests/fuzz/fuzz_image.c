/* SPDX-License-Identifier: MIT */
/*
 * An image whose shim, second stage and kernel are these bytes, on a platform whose db, and MOK
 * lists when asked, are these: it is refused with a reason, or every value set survives its own
 * JSON, and what is said of it cannot write to a terminal. Input: flags, length of db (le16), db,
 * the PE image.
 */
#include "config.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/measure/predict.h"

#define VENDOR  "usr/lib/bootupd/updates/EFI/x"
#define KERNEL  "usr/lib/modules/1"
#define UPDATES "usr/libexec/fwupd/efi"
#define DB      "db-d719b2cb-3d3a-4596-a3bc-dad00e67656f"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char dir[] = "/dev/shm/tec-fuzz-image-XXXXXX"; /* a disk would be the slowest part */
static int root_fd, image_fd, db_fd;

static const char *const names[] = {"efivars/" DB, "efivars/MokListRT", "efivars/MokListXRT",
	"efivars/MokListTrustedRT", "efivars/MokSBStateRT", VENDOR "/shimx64.efi",
	VENDOR "/grubx64.efi", KERNEL "/vmlinuz", UPDATES "/fwupdx64.efi"};
#define N_OF_DB 5 /* the first names are one file, the others another */

/* Deepest first. */
static const char *const folders[] = {"efivars", VENDOR, "usr/lib/bootupd/updates/EFI",
	"usr/lib/bootupd/updates", "usr/lib/bootupd", KERNEL, "usr/lib/modules", "usr/lib", UPDATES,
	"usr/libexec/fwupd", "usr/libexec", "usr"};

static void clean_up(void)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)unlinkat(root_fd, names[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		(void)unlinkat(root_fd, folders[i], AT_REMOVEDIR);
	(void)rmdir(dir);
}

static int make(const char *name)
{
	int fd = openat(root_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert(fd >= 0);
	return fd;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (!mkdtemp(dir))
		abort();
	root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(root_fd >= 0);
	atexit(clean_up);
	for (size_t i = ARRAY_LEN(folders); i > 0; i--)
		if (mkdirat(root_fd, folders[i - 1], 0700) < 0)
			abort();
	db_fd = make(names[0]);
	image_fd = make(names[N_OF_DB]);
	for (size_t i = 1; i < ARRAY_LEN(names); i++)
		if (i != N_OF_DB &&
			linkat(root_fd, names[i < N_OF_DB ? 0 : N_OF_DB], root_fd, names[i], 0) < 0)
			abort();
	return 0;
}

static void put(int fd, const uint8_t *data, size_t len)
{
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, len, 0) != (ssize_t)len)
		abort();
}

static void check_text(const char *text)
{
	for (; *text; text++)
		assert(*text == '\n' || ((unsigned char)*text >= 0x20 && *text != 0x7f));
}

static void check_events(const struct pcr_events *e)
{
	cleanup_pcr_events struct pcr_events again = PCR_EVENTS_INIT;
	cleanup_json struct json_object *json = pcr_events_json(e);
	struct err err = ERR_INIT;

	assert(e->n > 0 && e->n <= PCR_EVENTS_MAX);
	if (pcr_events_from_json(json, &again, &err) < 0)
		assert(!"what was computed is refused when it is read");
	assert(again.n == e->n);
}

static void check_image(const struct measure_conf *conf)
{
	cleanup_boot_variants struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct err err = ERR_INIT;

	if (measure_predict(conf, &v, &err) < 0) {
		assert(err_is_set(&err) && v.n == 0 && !v.v);
		check_text(err.text);
		return;
	}
	assert(v.n > 0);
	check_text(strbuf_str(&v.explain));
	for (size_t i = 0; i < v.n; i++) {
		check_text(v.v[i].when);
		check_events(&v.v[i].events);
	}
}

static void check_uki(unsigned profile)
{
	unsigned profiles;
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct err err = ERR_INIT;

	if (measure_uki(image_fd, "uki\n", profile, &profiles, &e, &err) == 0)
		check_events(&e);
	else
		check_text(err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t db_len = size < 3 ? 0 : (size_t)(data[1] | data[2] << 8);
	unsigned flags = size ? data[0] : 0;
	int vars = openat(root_fd, "efivars", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct measure_conf conf = {.registers = MEASURE_ALL | MEASURE_PCR11,
		.rootfs_fd = root_fd,
		.efivars_fd = flags & 16 ? -1 : vars,
		.mokvars_fd = flags & 32 ? vars : -1,
		.secure_boot = (enum measure_secure_boot)((flags & 3) % 3),
		.uki = (flags & 4) != 0,
		.all_kernels = (flags & 8) != 0,
		.validation_off_ok = (flags & 64) != 0,
		.path = flags & 128 ? PCR_BOOT_LAST : PCR_BOOT_STRICT};

	assert(vars >= 0);
	if (size >= 3 && db_len <= size - 3) {
		put(db_fd, data + 3, db_len);
		put(image_fd, data + 3 + db_len, size - 3 - db_len);
		check_image(&conf);
		check_uki(flags >> 6);
	}
	close(vars);
	return 0;
}
