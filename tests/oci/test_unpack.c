/* SPDX-License-Identifier: MIT */
/* Whole layers into a directory; what names, links and whiteouts mean is tested with oci/tree. */
#include "config.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oci/tar_builder.h"
#include "tec/base/mem.h"
#include "tec/oci/unpack.h"

static char folder[] = "/tmp/tec-test-unpack.XXXXXX";
static int into;
static const struct oci_need needs[] = {{"k", 2, NULL, NULL}};
static struct oci_unpack_conf conf;

static void setup(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	cr_assert(mkdtemp(folder));
	into = open(folder, O_RDONLY | O_DIRECTORY);
	conf = (struct oci_unpack_conf){.into_fd = into,
		.needs = needs,
		.n_needs = 1,
		.magic = "MZ",
		.max_kept = 4096,
		.max_total = 1 << 20};
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void teardown(void)
{
	close(into);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(oci_unpack, .init = setup, .fini = teardown);

static bool is_empty(void)
{
	DIR *d = opendir(folder);
	size_t n = 0;

	cr_assert(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n == 2;
}

/* One entry per letter: k needed, m an EFI program elsewhere, x anything; each of `size` bytes. l: a
 * hard link from k/l to the EFI program. */
static int layer(struct oci_unpack *u, const char *letters, size_t size, struct err *err)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_free char *data = xcalloc(1, size + 2);
	unsigned i = 0;

	for (const char *p = letters; *p; p++, i++) {
		cleanup_free char *name = xasprintf("%c/%u", *p, i);

		if (*p == 'l') {
			tar_entry(&b, '1', "k/l", "m/0", NULL);
			continue;
		}
		memcpy(data, *p == 'm' ? "MZ" : "xx", 2);
		tar_head(&b, &(struct tar_head){.name = name, .type = '0', .size = size});
		tar_data(&b, data, size);
	}
	tar_end(&b);
	if (oci_unpack_layer(u, err) < 0)
		return -1;
	for (size_t at = 0; at < b.len; at += 100)
		if (oci_unpack_add(u, b.data + at, b.len - at < 100 ? b.len - at : 100, err) < 0)
			return -1;
	return oci_unpack_layer_end(u, err);
}

static bool exists(const char *path, size_t size)
{
	struct stat st;

	return fstatat(into, path, &st, 0) == 0 && (size_t)st.st_size == size;
}

Test(oci_unpack, what_is_needed_is_there_in_the_end_and_not_before)
{
	struct err err = ERR_INIT;
	struct oci_unpack *u = oci_unpack_new(&conf, &err);

	cr_assert(u, "%s", err.text);
	cr_assert_eq(layer(u, "mkx", 300, &err), 0, "%s", err.text);
	cr_assert_eq(layer(u, "xl", 10, &err), 0, "%s", err.text);
	cr_assert(!exists("k/1", 300));
	cr_assert_eq(oci_unpack_finish(u, &err), 0, "%s", err.text);
	oci_unpack_free(u);
	cr_assert(exists("k/1", 300) && exists("k/l", 300));
	cr_assert_neq(faccessat(into, "x", F_OK, 0), 0);
	cr_assert_neq(faccessat(into, "m", F_OK, 0), 0);
	cr_assert_neq(faccessat(into, OCI_UNPACK_FOLDER, F_OK, 0), 0);
}

Test(oci_unpack, what_is_kept_is_bounded)
{
	struct err err = ERR_INIT;
	struct oci_unpack *u = oci_unpack_new(&conf, &err);

	/* EFI programs that nothing may ever need get half of the room, and no error. */
	cr_assert_eq(layer(u, "mmmmmmmm", 1000, &err), 0, "%s", err.text);
	cr_assert_eq(layer(u, "kk", 1000, &err), 0, "%s", err.text);
	cr_assert_eq(layer(u, "kk", 1000, &err), -1, "4 KiB are all there is");
	cr_assert(strstr(err.text, "the required files exceed"), "%s", err.text);
	oci_unpack_free(u);
	cr_assert(is_empty());
	err_clear(&err);
	/* What is replaced makes room. */
	u = oci_unpack_new(&conf, &err);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(layer(u, "k", 1500, &err), 0, "%d: %s", i, err.text);
	oci_unpack_free(u);
	cr_assert(is_empty());
}

Test(oci_unpack, what_is_read_is_bounded_over_all_layers)
{
	struct err err = ERR_INIT;
	struct oci_unpack *u = oci_unpack_new(&conf, &err);
	int rc = 0, n = 0;

	while (rc == 0 && n < 100) {
		rc = layer(u, "x", 50000, &err);
		n++;
	}
	cr_assert_eq(rc, -1);
	cr_assert(n > 15 && n < 25, "%d", n);
	cr_assert(strstr(err.text, "the decompressed "), "%s", err.text);
	oci_unpack_free(u);
	cr_assert(is_empty());
}

Test(oci_unpack, a_directory_with_something_in_it_is_refused)
{
	struct err err = ERR_INIT;

	cr_assert_eq(mkdirat(into, "old", 0700), 0);
	cr_assert_null(oci_unpack_new(&conf, &err));
	cr_assert(strstr(err.text, "not empty"), "%s", err.text);
}
