/* SPDX-License-Identifier: MIT */
/*
 * SQLite's VFS with faults: the n-th call that changes a file (or reads one) fails, or kills the
 * process. Counts go on over all files of the process.
 */
#ifndef TEC_TESTS_STORE_FAULT_VFS_H
#define TEC_TESTS_STORE_FAULT_VFS_H

#include <stdbool.h>

#define FAULT_VFS "fault"

enum fault_what {
	FAULT_NONE,
	FAULT_FULL,       /* a write: SQLITE_FULL */
	FAULT_WRITE,      /* a write, sync or truncate: SQLITE_IOERR */
	FAULT_HALF,       /* a write stores half of its bytes, then SQLITE_IOERR */
	FAULT_READONLY,   /* every write: SQLITE_READONLY */
	FAULT_READ,       /* a read: SQLITE_IOERR */
	FAULT_SHORT_READ, /* a read: zeros from the middle on */
	FAULT_KILL,       /* a write, sync or truncate: SIGKILL before it is done */
};

void fault_vfs_register(void);
/* The at-th call from now on (1: the next), and with `on` every one after it. */
void fault_vfs_set(enum fault_what what, unsigned at, bool on);
/* Whether the fault came since it was set. */
bool fault_vfs_hit(void);

#endif
