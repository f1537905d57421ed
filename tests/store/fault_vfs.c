/* SPDX-License-Identifier: MIT */
/* Each file holds the real one behind itself. No shared memory: the store does not use it. */
#include "config.h"

#include "store/fault_vfs.h"

#include <signal.h>
#include <sqlite3.h>
#include <string.h>

struct fault_file {
	sqlite3_file base; /* first */
	sqlite3_file *real;
};

static struct {
	enum fault_what what;
	unsigned left;
	bool on, hit;
} fault;

static sqlite3_vfs *under;

void fault_vfs_set(enum fault_what what, unsigned at, bool on)
{
	fault.what = what;
	fault.left = at;
	fault.on = on;
	fault.hit = false;
}

bool fault_vfs_hit(void)
{
	return fault.hit;
}

/* Is it this call's turn? */
static bool due(bool fits)
{
	if (!fits || (fault.left == 0 && !fault.on))
		return false;
	if (fault.left > 0 && --fault.left > 0)
		return false;
	fault.hit = true;
	return true;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
	return ((struct fault_file *)f)->real;
}

static int f_close(sqlite3_file *f)
{
	return real_of(f)->pMethods->xClose(real_of(f));
}

static int f_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	int rc;

	if (due(fault.what == FAULT_READ))
		return SQLITE_IOERR_READ;
	rc = real_of(f)->pMethods->xRead(real_of(f), to, n, at);
	if (rc == SQLITE_OK && due(fault.what == FAULT_SHORT_READ)) {
		memset((char *)to + n / 2, 0, (size_t)(n - n / 2));
		return SQLITE_IOERR_SHORT_READ;
	}
	return rc;
}

static int change(void)
{
	if (due(fault.what == FAULT_KILL))
		(void)raise(SIGKILL);
	return due(fault.what == FAULT_WRITE) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int f_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	int rc = change();

	if (rc != SQLITE_OK)
		return SQLITE_IOERR_WRITE;
	if (due(fault.what == FAULT_FULL))
		return SQLITE_FULL;
	if (due(fault.what == FAULT_READONLY))
		return SQLITE_READONLY;
	if (due(fault.what == FAULT_HALF)) {
		(void)real_of(f)->pMethods->xWrite(real_of(f), from, n / 2, at);
		return SQLITE_IOERR_WRITE;
	}
	return real_of(f)->pMethods->xWrite(real_of(f), from, n, at);
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = change();

	return rc != SQLITE_OK ? SQLITE_IOERR_TRUNCATE
			       : real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int f_sync(sqlite3_file *f, int flags)
{
	int rc = change();

	return rc != SQLITE_OK ? rc : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int f_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int f_lock(sqlite3_file *f, int how)
{
	return real_of(f)->pMethods->xLock(real_of(f), how);
}

static int f_unlock(sqlite3_file *f, int how)
{
	return real_of(f)->pMethods->xUnlock(real_of(f), how);
}

static int f_check(sqlite3_file *f, int *locked)
{
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), locked);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
	return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int f_sector(sqlite3_file *f)
{
	return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int f_device(sqlite3_file *f)
{
	return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	static const sqlite3_io_methods methods = {1, f_close, f_read, f_write, f_truncate, f_sync,
		f_size, f_lock, f_unlock, f_check, f_control, f_sector, f_device, NULL, NULL, NULL,
		NULL, NULL, NULL};
	struct fault_file *file = (struct fault_file *)f;
	int rc;

	file->real = (sqlite3_file *)(void *)(file + 1);
	rc = under->xOpen(under, name, file->real, flags, out);
	file->base.pMethods = rc == SQLITE_OK ? &methods : NULL;
	return rc;
}

void fault_vfs_register(void)
{
	static sqlite3_vfs vfs;

	if (under)
		return;
	under = sqlite3_vfs_find(NULL);
	vfs = *under;
	vfs.pNext = NULL;
	vfs.zName = FAULT_VFS;
	vfs.szOsFile += (int)sizeof(struct fault_file);
	vfs.xOpen = v_open;
	sqlite3_vfs_register(&vfs, 0);
}
