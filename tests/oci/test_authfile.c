/* SPDX-License-Identifier: MIT */
/* The file with credentials: read again each time, and never lost for one that is damaged. */
#include "config.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/oci/authfile.h"

static char path[64];
static struct strbuf logged;

static void on_log(enum log_level level, const char *line, void *arg)
{
	strbuf_addf(&logged, "%s\n", line);
}

static void setup(void)
{
	snprintf(path, sizeof(path), "/tmp/tec-authfile.%ld", (long)getpid());
	log_capture(on_log, NULL);
}

static void teardown(void)
{
	log_capture(NULL, NULL);
	strbuf_fini(&logged);
	unlink(path);
	cr_assert_eq(secret_count(), 0);
}

TestSuite(oci_authfile, .init = setup, .fini = teardown);

static void put(size_t len)
{
	cleanup_free char *text = xmalloc(len + 1);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	memset(text, 'x', len);
	cr_assert(fd >= 0 && write(fd, text, len) == (ssize_t)len && close(fd) == 0);
}

static size_t len_of(struct oci_authfile *f)
{
	const struct secret *s = oci_authfile_get(f);

	return s ? secret_len(s) : 0;
}

Test(oci_authfile, without_a_path_there_are_none)
{
	struct err err = ERR_INIT;
	struct oci_authfile *f = oci_authfile_new(NULL, &err);

	cr_assert(f);
	cr_expect_null(oci_authfile_get(f));
	cr_expect_eq(logged.len, 0);
	oci_authfile_free(f);
}

Test(oci_authfile, follows_the_file_and_logs_changes)
{
	struct err err = ERR_INIT;
	struct oci_authfile *f = oci_authfile_new(path, &err);

	cr_assert(f, "%s", err.text);
	cr_expect(
		strstr(strbuf_str(&logged), "no registry credentials"), "%s", strbuf_str(&logged));
	cr_expect_eq(len_of(f), 0);
	put(3);
	cr_expect_eq(len_of(f), 3);
	cr_expect(strstr(strbuf_str(&logged), "registry credentials read"));
	put(SECRET_MAX_LEN - 1);
	logged.len = 0;
	cr_expect_eq(len_of(f), SECRET_MAX_LEN - 1);
	cr_expect_eq(logged.len, 0);
	unlink(path);
	cr_expect_eq(len_of(f), 0);
	oci_authfile_free(f);
}

Test(oci_authfile, a_damaged_file_costs_nothing_but_at_the_start)
{
	static const size_t bad[] = {0, SECRET_MAX_LEN, SECRET_MAX_LEN + 1};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		struct oci_authfile *f;

		put(bad[i]);
		cr_expect_null(oci_authfile_new(path, &err));
		cr_expect(strstr(err.text, path), "%s", err.text);
		err_clear(&err);
		put(5);
		f = oci_authfile_new(path, &err);
		cr_assert(f);
		put(bad[i]);
		logged.len = 0;
		cr_expect_eq(len_of(f), 5, "%zu", bad[i]);
		cr_expect(strstr(strbuf_str(&logged), "keeping the previous ones"));
		oci_authfile_free(f);
	}
}
