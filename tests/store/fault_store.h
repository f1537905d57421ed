/* SPDX-License-Identifier: MIT */
/* A store on a disk that fails as a test says, and lives that end by kill -9. */
#ifndef TEC_TESTS_STORE_FAULT_STORE_H
#define TEC_TESTS_STORE_FAULT_STORE_H

#include <signal.h>
#include <sys/wait.h>

#include "store/fault_vfs.h"
#include "store/store_dir.h"
#include "apireq/things.h"

static struct store_objects *s;

static inline void fault_store_up(void)
{
	fault_vfs_register();
	store_dir_up();
}

static inline void close_store(void)
{
	store_objects_free(s);
	s = NULL;
}

static inline void fault_store_down(void)
{
	close_store();
	store_dir_down();
}

/* Without a VFS: integrity_check, and every row. */
static inline void open_store(const char *vfs)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_open(vfs, &err);

	cr_assert_not_null(db, "%s", err.text);
	s = store_objects_new(db, &things, NULL);
}

/* A process that calls WRITE(first), WRITE(first + 1), ... on the store until it is killed before the AT-th write to the
 * disk. How many of them were acknowledged. */
static inline unsigned write_until_killed(bool (*write_one)(unsigned), unsigned first, unsigned at)
{
	unsigned acknowledged = 0;
	char bytes[4096];
	ssize_t got;
	int ends[2], status = 0;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		fault_vfs_set(FAULT_NONE, 0, false);
		open_store(FAULT_VFS);
		fault_vfs_set(FAULT_KILL, at, false);
		for (unsigned i = first;; i++)
			if (!write_one(i) || write(ends[1], "x", 1) != 1)
				_exit(1);
	}
	close(ends[1]);
	while ((got = read(ends[0], bytes, sizeof(bytes))) > 0)
		acknowledged += (unsigned)got;
	close(ends[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "write %u: %x", at, status);
	return acknowledged;
}

#endif
