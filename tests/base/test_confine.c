/* SPDX-License-Identifier: MIT */
/* Each test gives up rights in a child of its own, as they do not come back. */
#include "config.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tec/base/confine.h"
#include "tec/base/mem.h"

static const struct confine_limits limits = {
	.cpu_s = 7, .descriptors = 16, .memory = (size_t)1 << 40};

static int in_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int limits_hold(void)
{
	struct err err = ERR_INIT;
	struct rlimit l;

	if (confine_process(&limits, &err) < 0)
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	if (getrlimit(RLIMIT_CPU, &l) < 0 || l.rlim_cur != 7 || l.rlim_max != 7)
		return 3;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_max != 16)
		return 4;
	if (getrlimit(RLIMIT_CORE, &l) < 0 || l.rlim_max != 0)
		return 5;
	if (getrlimit(RLIMIT_FSIZE, &l) < 0 || l.rlim_max != 0)
		return 6;
	return confine_process(&limits, &err) < 0 ? 7 : 0; /* twice does no harm */
}

Test(base_confine, limits_are_set_for_good)
{
	cr_assert_eq(in_child(limits_hold), 0);
}

static int files_are_out_of_reach(void)
{
	const char *const paths[] = {"/etc/hostname", "/usr", "/no/such/path"};
	struct err err = ERR_INIT;
	int before = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	if (confine_process(&limits, &err) < 0)
		return 1;
	if (!confine_files(&(struct confine_files){
		    .read = paths, .n_read = ARRAY_LEN(paths), .write_fd = -1}))
		return 77;
	if (before < 0 || lseek(before, 0, SEEK_END) <= 0)
		return 2;
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 3;
	if (open("/etc/group", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 4;
	if (open("/usr/../etc/shadow", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 5;
	if (open("/etc/hostname", O_RDONLY | O_CLOEXEC) < 0 && errno != ENOENT)
		return 6;
	if (open("/usr/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0)
		return 7;
	if (open("/usr/tec-test-file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0)
		return 8;
	execl("/usr/bin/true", "true", (char *)NULL);
	return errno == EACCES ? 0 : 9;
}

static int one_folder_can_be_written(void)
{
	char dir[] = "/tmp/test_confine.XXXXXX", outside[] = "/tmp/test_confine.XXXXXX";
	struct confine_limits large = limits;
	struct err err = ERR_INIT;
	int other = mkstemp(outside), fd;

	large.file = 4;
	if (other < 0 || !mkdtemp(dir) || confine_process(&large, &err) < 0)
		return 1;
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!confine_files(&(struct confine_files){.write_fd = fd}))
		return 77;
	signal(SIGXFSZ, SIG_IGN);
	other = openat(fd, "file", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (other < 0 || write(other, "1234", 4) != 4 || write(other, "5", 1) != -1)
		return 2;
	if (mkdirat(fd, "folder", 0700) < 0 || renameat(fd, "file", fd, "folder/file") < 0 ||
		ftruncate(other, 0) < 0 || unlinkat(fd, "folder/file", 0) < 0 ||
		unlinkat(fd, "folder", AT_REMOVEDIR) < 0)
		return 3;
	if (open(outside, O_WRONLY | O_CLOEXEC) >= 0 || open(outside, O_RDONLY | O_CLOEXEC) >= 0 ||
		unlink(outside) == 0 || rename(outside, dir) == 0)
		return 4;
	return 0;
}

Test(base_confine, one_folder_can_be_written_and_no_other)
{
	int rc = in_child(one_folder_can_be_written);

	if (rc == 77)
		cr_skip_test("this kernel has no Landlock");
	cr_assert_eq(rc, 0, "%d", rc);
}

Test(base_confine, only_the_files_that_are_named_can_be_read)
{
	int rc = in_child(files_are_out_of_reach);

	if (rc == 77)
		cr_skip_test("this kernel has no Landlock");
	cr_assert_eq(rc, 0, "%d", rc);
}

Test(base_confine, descriptors_are_raised_within_the_hard_limit)
{
	struct rlimit lim = {.rlim_cur = 64, .rlim_max = 256};

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_expect_eq(confine_raise_descriptors(32), 64); /* never lowered */
	cr_expect_eq(confine_raise_descriptors(200), 200);
	cr_expect_eq(confine_raise_descriptors(1000), 256);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_expect(lim.rlim_cur == 256 && lim.rlim_max == 256);
}

/* "RssFile" and the like of /proc/self/status, in KiB. */
static unsigned long status_kib(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtoul(line + strlen(name) + 1, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

Test(base_confine, code_that_is_let_go_comes_back_when_it_is_called)
{
	unsigned long before = status_kib("RssFile"), after;

	confine_drop_code();
	after = status_kib("RssFile");
	cr_expect_lt(after, before, "%lu, %lu", after, before);
	cr_expect_neq(after, 0);
}

static char dropped[200];

static void note_dropped(void *from, size_t len)
{
	size_t n = strlen(dropped);

	snprintf(dropped + n, sizeof(dropped) - n, "%lx+%zx ", (unsigned long)from, len);
}

Test(base_confine, what_the_linker_wrote_stays_also_when_it_is_swapped_out)
{
	static const char smaps[] = "1000-3000 r-xp 00000000 fe:00 1 /lib/a.so\n"
				    "Rss: 8 kB\nAnonymous: 0 kB\nSwap: 0 kB\nSwapPss: 0 kB\n"
				    "3000-4000 r--p 00002000 fe:00 1 /lib/a.so\n"
				    "Rss: 4 kB\nAnonymous: 4 kB\nSwap: 0 kB\nSwapPss: 0 kB\n"
				    "4000-5000 r--p 00003000 fe:00 1 /lib/a.so\n"
				    "Rss: 0 kB\nAnonymous: 0 kB\nSwap: 4 kB\nSwapPss: 4 kB\n"
				    "5000-6000 rw-p 00004000 fe:00 1 /lib/a.so\n"
				    "Rss: 4 kB\nAnonymous: 0 kB\nSwap: 0 kB\nSwapPss: 0 kB\n"
				    "6000-7000 r--p 00000000 00:00 0 [vvar]\n"
				    "Rss: 0 kB\nAnonymous: 0 kB\nSwap: 0 kB\nSwapPss: 0 kB\n"
				    "7000-9000 r--p 00000000 fe:00 2 /lib/b.so\n"
				    "Rss: 8 kB\nAnonymous: 0 kB\nSwap: 0 kB\nSwapPss: 0 kB\n";
	FILE *f = fmemopen((void *)smaps, strlen(smaps), "r");

	cr_assert(f);
	confine_drop_code_of(f, note_dropped);
	fclose(f);
	cr_assert_str_eq(dropped, "1000+2000 7000+2000 ");
}
