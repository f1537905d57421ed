/* SPDX-License-Identifier: MIT */
/*
 * Limits contain a process that was compromised or is out of control: the kernel kills it, and its
 * parent sees that. Landlock rules are attached to files, not names, so a rule for a symbolic link
 * applies to its target.
 */
#include "config.h"

#include "tec/base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

#define READ_ACCESS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* All rights of ABI version 1: read, write, execute, make, remove. */
#define ALL_ACCESS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
/* Rights of ABI versions 2 and 3, which older kernel headers do not define. */
#define REFER    (1ull << 13) /* rename and link from one directory to another */
#define TRUNCATE (1ull << 14)

/* PR_SET_NO_NEW_PRIVS is also what permits Landlock without CAP_SYS_ADMIN. */
int confine_process(const struct confine_limits *l, struct err *err)
{
	const struct {
		int what;
		rlim_t max;
	} limits[] = {
		{RLIMIT_CORE, 0},
		{RLIMIT_FSIZE, l->file},
		{RLIMIT_CPU, l->cpu_s},
		{RLIMIT_NOFILE, l->descriptors},
#ifndef HAVE_ASAN
		{RLIMIT_AS, l->memory},
#endif
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set_errno(err, ERR_BUG, errno, "cannot set no_new_privs");
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct rlimit lim;

		/* A hard limit that is already lower is kept: it cannot be raised. */
		if (getrlimit((__rlimit_resource_t)limits[i].what, &lim) < 0)
			return err_set_errno(err, ERR_BUG, errno, "cannot read a resource limit");
		if (lim.rlim_max > limits[i].max)
			lim.rlim_max = limits[i].max;
		lim.rlim_cur = lim.rlim_max;
		if (setrlimit((__rlimit_resource_t)limits[i].what, &lim) < 0)
			return err_set_errno(err, ERR_BUG, errno, "cannot set a resource limit");
	}
	return 0;
}

/* Add a rule. A failure is ignored: the file then cannot be opened, and the caller reports that. */
static void add_rule(int ruleset, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};

	(void)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/* Allow reading a path, and executing if run is set. Directory rights on a plain file make the
 * kernel refuse the rule. */
static void allow(int ruleset, const char *path, bool run)
{
	uint64_t execute = run ? LANDLOCK_ACCESS_FS_EXECUTE : 0;
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0)
		add_rule(ruleset, fd,
			execute |
				(S_ISDIR(st.st_mode) ? READ_ACCESS : LANDLOCK_ACCESS_FS_READ_FILE));
	close(fd);
}

bool confine_files(const struct confine_files *f)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	/* A kernel refuses rights that its ABI version does not define. */
	struct landlock_ruleset_attr attr = {.handled_access_fs = ALL_ACCESS |
								  (version >= 2 ? REFER : 0) |
								  (version >= 3 ? TRUNCATE : 0)};
	int ruleset;
	bool done;

	/* ABI version 1 forbids every rename from one directory to another. */
	if (f->write_fd >= 0 && version < 2)
		return false;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return false;
	for (size_t i = 0; i < f->n_read; i++)
		allow(ruleset, f->read[i], f->run);
	if (f->write_fd >= 0)
		add_rule(ruleset, f->write_fd,
			attr.handled_access_fs & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE);
#ifdef HAVE_ASAN
	allow(ruleset, "/proc", false); /* the leak checker looks for its threads at exit */
#endif
	done = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
	close(ruleset);
	return done;
}

/* A server needs a descriptor per connection, and the soft limit is often only 1,024. */
uint64_t confine_raise_descriptors(uint64_t want)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return 0;
	if (lim.rlim_cur >= want)
		return lim.rlim_cur;
	lim.rlim_cur = lim.rlim_max > want ? want : lim.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &lim) == 0 ? lim.rlim_cur : 0;
}

/* A mapping of /proc/self/smaps. */
struct mapping {
	unsigned long from, to;
	bool clean; /* file-backed, not writable, and no page was ever modified */
};

/* Parse the first line of a mapping, "from-to mode offset dev inode path"; the lines after it
 * describe its contents. */
static bool begins(const char *line, struct mapping *m)
{
	unsigned long from, to;
	char mode[5], path[2] = "";

	if (sscanf(line, "%lx-%lx %4s %*x %*s %*u %1s", &from, &to, mode, path) < 3)
		return false;
	*m = (struct mapping){from, to,
		path[0] == '/' && (strcmp(mode, "r-xp") == 0 || strcmp(mode, "r--p") == 0)};
	return true;
}

void confine_drop_code_of(FILE *smaps, void (*drop)(void *from, size_t len))
{
	struct mapping m = {0, 0, false};
	unsigned long kib;
	char line[512];

	while (fgets(line, sizeof(line), smaps)) {
		if (begins(line, &m) || !m.clean)
			continue;
		/* Pages were modified, in memory or swapped out; smaps prints "Anonymous" before
		 * "Swap". What the dynamic linker relocated and then protected (RELRO) would be read
		 * again without its relocations. */
		if ((sscanf(line, "Anonymous: %lu", &kib) == 1 ||
			    sscanf(line, "Swap: %lu", &kib) == 1) &&
			kib > 0)
			m.clean = false;
		else if (str_starts(line, "Swap:"))
			drop((void *)m.from, m.to - m.from);
	}
}

/* Locked pages cannot be dropped; munlock() is harmless for others. */
static void drop_pages(void *from, size_t len)
{
	if (munlock(from, len) == 0)
		(void)madvise(from, len, MADV_DONTNEED);
}

/* Failures are ignored: the only loss is memory. */
void confine_drop_code(void)
{
	FILE *maps = fopen("/proc/self/smaps", "re");

	if (!maps)
		return;
	confine_drop_code_of(maps, drop_pages);
	fclose(maps);
}
