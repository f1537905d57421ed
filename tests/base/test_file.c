/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
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
