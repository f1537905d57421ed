/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/mem.h"

/* A file of len bytes that is gone when its descriptor is closed. */
static int make(char path[32], size_t len)
{
	int fd;

	strcpy(path, "/tmp/test_file.XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	for (size_t i = 0; i < len; i++)
		cr_assert_eq(write(fd, &"0123456789"[i % 10], 1), 1);
	return fd;
}

Test(base_file, sizes_up_to_the_bound_are_read_whole)
{
	static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 8191, 8192, 10000};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct err err = ERR_INIT;
		struct stat st;
		char path[32], *text;
		int fd = make(path, sizes[i]);
		size_t len = 77;

		text = file_read(path, sizes[i], &len, &st, &err);
		cr_assert_not_null(text, "%s", err.text);
		cr_expect_eq(len, sizes[i]);
		cr_expect_eq((size_t)st.st_size, sizes[i]);
		cr_expect_eq(strlen(text), sizes[i]);
		cr_expect(sizes[i] == 0 || text[sizes[i] - 1] == '0' + (char)((sizes[i] - 1) % 10));
		file_wipe(text, len);
		if (sizes[i] > 0) {
			cr_expect_null(file_read(path, sizes[i] - 1, &len, NULL, &err));
			cr_expect_eq(err.kind, ERR_INVALID);
			cr_expect_not_null(strstr(err.text, "larger than"), "%s", err.text);
		}
		close(fd);
		unlink(path);
	}
}

Test(base_file, a_missing_file_is_not_found_and_a_folder_invalid)
{
	struct err err = ERR_INIT;
	size_t len;

	cr_expect_null(file_read("/nonexistent/file", 10, &len, NULL, &err));
	cr_expect_eq(err.kind, ERR_NOT_FOUND);
	cr_expect_not_null(strstr(err.text, "/nonexistent/file"), "%s", err.text);
	err_clear(&err);
	cr_expect_null(file_read("/", 10, &len, NULL, &err));
	cr_expect_eq(err.kind, ERR_INVALID);
	file_wipe(NULL, 0);
}

Test(base_file, a_pipe_is_read_to_its_end)
{
	struct err err = ERR_INIT;
	char *text;
	size_t len;
	int p[2];

	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(write(p[1], "a\0b", 3), 3);
	close(p[1]);
	text = file_read_fd(p[0], "pipe", 10, &len, &err);
	cr_assert_not_null(text);
	cr_expect_eq(len, 3);
	cr_expect_eq(memcmp(text, "a\0b", 4), 0);
	free(text);
	close(p[0]);
}

/* ---- replace */

Test(base_file, a_file_is_replaced_as_a_whole)
{
	char dir[] = "/tmp/test_file.XXXXXX";
	cleanup_free char *path = NULL, *other = NULL, *left = NULL;
	struct err err = ERR_INIT;
	struct stat st;
	size_t len;
	char *text;

	cr_assert_not_null(mkdtemp(dir));
	path = xasprintf("%s/f", dir);
	other = xasprintf("%s/other", dir);
	left = xasprintf("%s.new", path);
	cr_assert_eq(file_replace(path, "one", 3, 0600, &err), 0, "%s", err.text);
	cr_assert_eq(file_replace(other, "kept", 4, 0644, &err), 0, "%s", err.text);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(symlink("other", path), 0);
	cr_assert_eq(symlink("other", left), 0, "what a killed life left");
	cr_assert_eq(file_replace(path, "two\n", 4, 0600, &err), 0, "%s", err.text);
	cr_assert_eq(lstat(path, &st), 0);
	cr_expect(S_ISREG(st.st_mode));
	cr_expect_eq(st.st_mode & 0777, 0600);
	text = file_read(path, 100, &len, NULL, &err);
	cr_expect_str_eq(text, "two\n");
	free(text);
	text = file_read(other, 100, &len, NULL, &err);
	cr_expect_str_eq(text, "kept", "a link is not followed");
	free(text);
	cr_expect_eq(lstat(left, &st), -1);
	cr_assert_eq(symlink("other", left), 0);
	file_remove(path);
	cr_expect(lstat(path, &st) < 0 && lstat(left, &st) < 0);
	cr_expect_eq(lstat(other, &st), 0);
	file_remove(path);
	unlink(other);
	rmdir(dir);
	cr_expect_eq(file_replace(path, "x", 1, 0600, &err), -1);
	cr_expect_eq(err.kind, ERR_INVALID);
	cr_expect_not_null(strstr(err.text, path));
}

/* ---- create */

Test(base_file, a_new_file_replaces_nothing)
{
	char dir[] = "/tmp/test_file.XXXXXX";
	cleanup_free char *path = NULL, *link = NULL;
	struct err err = ERR_INIT;
	struct stat st;

	cr_assert_not_null(mkdtemp(dir));
	path = xasprintf("%s/f", dir);
	link = xasprintf("%s/l", dir);
	cr_assert_eq(file_create(path, "one", 3, &err), 0, "%s", err.text);
	cr_assert_eq(lstat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	cr_expect_eq(st.st_nlink, 1);
	cr_expect_eq(st.st_size, 3);
	cr_expect_eq(file_create(path, "four", 4, &err), -1);
	cr_expect_eq(err.kind, ERR_CONFLICT);
	cr_expect_not_null(strstr(err.text, path));
	cr_expect_eq(lstat(path, &st), 0);
	cr_expect_eq(st.st_size, 3);
	err_clear(&err);
	cr_assert_eq(symlink("nowhere", link), 0);
	cr_expect_eq(file_create(link, "x", 1, &err), -1, "a link is not followed");
	cr_expect_eq(err.kind, ERR_CONFLICT);
	unlink(link);
	unlink(path);
	cr_expect_eq(rmdir(dir), 0, "nothing is left");
	err_clear(&err);
	cr_expect_eq(file_create(path, "x", 1, &err), -1);
	cr_expect_eq(err.kind, ERR_INVALID);
}

static int odd_fd = -1; /* where write() takes 1, then no bytes */
static unsigned n_writes;

/* In place of the C library's, for all of this program. */
ssize_t write(int fd, const void *data, size_t len)
{
	if (fd != odd_fd)
		return (ssize_t)syscall(SYS_write, fd, data, len);
	return n_writes++ == 0 ? 1 : 0;
}

Test(base_file, a_write_that_takes_nothing_is_an_error, .timeout = 10)
{
	char path[32];
	int fd = make(path, 0);

	cr_expect_eq(file_write(fd, "one", 3), 0);
	odd_fd = fd;
	cr_expect_eq(file_write(fd, "two", 3), -1);
	cr_expect_eq(errno, EIO);
	cr_expect_eq(n_writes, 2);
	odd_fd = -1;
	close(fd);
	unlink(path);
}

/* What a link in the directory points to stays. */
Test(base_file, a_temporary_directory_is_private_and_removed_with_all_below_it)
{
	cleanup_free char *outer = file_temp_dir(NULL, "test_file"), *dir = NULL, *below = NULL,
			  *kept = NULL, *link = NULL;
	struct stat st;

	cr_assert_not_null(outer);
	cr_expect_eq(strncmp(outer, "/tmp/test_file.", 15), 0, "%s", outer);
	dir = file_temp_dir(outer, "inner");
	cr_assert_not_null(dir);
	cr_expect_eq(strncmp(dir, outer, strlen(outer)), 0, "%s", dir);
	cr_assert_eq(stat(dir, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0700);
	below = xasprintf("%s/below", dir);
	kept = xasprintf("%s/kept", outer);
	link = xasprintf("%s/link", below);
	cr_assert_eq(mkdir(below, 0700), 0);
	cr_assert_eq(mkdir(kept, 0700), 0);
	cr_assert_eq(symlink(kept, link), 0);
	file_remove_tree(dir);
	cr_expect_neq(lstat(dir, &st), 0);
	cr_expect_eq(lstat(kept, &st), 0);
	file_remove_tree(outer);
	cr_expect_neq(lstat(outer, &st), 0);
	file_remove_tree(NULL);
	cr_expect_null(file_temp_dir("/nonexistent", "x"));
	cr_expect_eq(errno, ENOENT);
}
