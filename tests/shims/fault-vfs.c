/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/shims/fault-vfs.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>

#include "tests/unit/test.h"

typedef struct FaultFile {
        sqlite3_file base;
        sqlite3_file *real; /* allocated behind this struct */
} FaultFile;

static sqlite3_vfs *real_vfs;

static struct {
        bool armed, sticky, reads, delivered;
        Fault fault;
        unsigned left;
} plan;

static SyncCount syncs;

static sqlite3_file *real_of(sqlite3_file *file)
{
        return ((FaultFile *)file)->real;
}

static bool fails_now(bool writes)
{
        if (!plan.armed)
                return false;
        if (plan.delivered)
                return plan.sticky;
        if (plan.left-- > 0)
                return false;
        plan.delivered = true;
        if (plan.fault == FAULT_KILL || (plan.fault == FAULT_KILL_HALF && !writes))
                raise(SIGKILL);
        return true;
}

/* Returns the result of a failed call. */
static int failure(int io_error)
{
        return plan.fault == FAULT_EIO ? io_error : SQLITE_FULL;
}

static int fault_close(sqlite3_file *file)
{
        sqlite3_file *real = real_of(file);

        return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int fault_read(sqlite3_file *file, void *bytes, int n, sqlite3_int64 offset)
{
        if (plan.reads && fails_now(false))
                return SQLITE_IOERR_READ;
        return real_of(file)->pMethods->xRead(real_of(file), bytes, n, offset);
}

static int fault_write(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 offset)
{
        sqlite3_file *real = real_of(file);

        syncs.unsynced = true;
        if (!fails_now(true))
                return real->pMethods->xWrite(real, bytes, n, offset);
        if (plan.fault == FAULT_SHORT || plan.fault == FAULT_KILL_HALF)
                real->pMethods->xWrite(real, bytes, n / 2, offset);
        if (plan.fault == FAULT_KILL_HALF)
                raise(SIGKILL);
        return failure(SQLITE_IOERR_WRITE);
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
        if (fails_now(false))
                return failure(SQLITE_IOERR_TRUNCATE);
        return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int fault_sync(sqlite3_file *file, int flags)
{
        syncs.n_syncs++;
        syncs.unsynced = false;
        return fails_now(false) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *size)
{
        return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int fault_lock(sqlite3_file *file, int lock)
{
        return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int fault_unlock(sqlite3_file *file, int lock)
{
        return real_of(file)->pMethods->xUnlock(real_of(file), lock);
}

static int fault_check_lock(sqlite3_file *file, int *result)
{
        return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}

static int fault_control(sqlite3_file *file, int op, void *argument)
{
        return real_of(file)->pMethods->xFileControl(real_of(file), op, argument);
}

static int fault_sector(sqlite3_file *file)
{
        return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int fault_device(sqlite3_file *file)
{
        return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int fault_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory)
{
        if (extend && fails_now(false))
                return SQLITE_IOERR_SHMSIZE;
        return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, memory);
}

static int fault_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
        return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void fault_shm_barrier(sqlite3_file *file)
{
        real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int fault_shm_unmap(sqlite3_file *file, int delete)
{
        return real_of(file)->pMethods->xShmUnmap(real_of(file), delete);
}

static const sqlite3_io_methods fault_methods = {
        .iVersion = 2,
        .xClose = fault_close,
        .xRead = fault_read,
        .xWrite = fault_write,
        .xTruncate = fault_truncate,
        .xSync = fault_sync,
        .xFileSize = fault_size,
        .xLock = fault_lock,
        .xUnlock = fault_unlock,
        .xCheckReservedLock = fault_check_lock,
        .xFileControl = fault_control,
        .xSectorSize = fault_sector,
        .xDeviceCharacteristics = fault_device,
        .xShmMap = fault_shm_map,
        .xShmLock = fault_shm_lock,
        .xShmBarrier = fault_shm_barrier,
        .xShmUnmap = fault_shm_unmap,
};

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                      int *ret_flags)
{
        FaultFile *opened = (FaultFile *)file;
        int rc;

        opened->base.pMethods = NULL;
        opened->real = (sqlite3_file *)(opened + 1);
        rc = real_vfs->xOpen(real_vfs, name, opened->real, flags, ret_flags);
        if (opened->real->pMethods)
                opened->base.pMethods = &fault_methods;
        return rc;
}

static int fault_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
        if (fails_now(false))
                return SQLITE_IOERR_DELETE;
        return real_vfs->xDelete(real_vfs, name, sync);
}

/* Calls that claims/store/claim-file.c makes directly. */
static int fail_call(void)
{
        errno = plan.fault == FAULT_EIO ? EIO : ENOSPC;
        return -1;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
        syncs.n_fsyncs++;
        return fails_now(false) ? fail_call() : 0;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
        return fails_now(false) ? fail_call() : __real_rename(from, to);
}

/* Returns the errno of the fault. The real VFS would return one of an earlier call. */
static int fault_last_error(sqlite3_vfs *vfs, int n, char *text)
{
        return plan.fault == FAULT_EIO ? EIO : ENOSPC;
}

void fault_vfs_install(void)
{
        static sqlite3_vfs vfs;

        real_vfs = sqlite3_vfs_find(NULL);
        vfs = *real_vfs;
        vfs.zName = "fault";
        vfs.pNext = NULL;
        vfs.szOsFile = (int)sizeof(FaultFile) + real_vfs->szOsFile;
        vfs.xOpen = fault_open;
        vfs.xDelete = fault_delete;
        vfs.xGetLastError = fault_last_error;
        assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

void fault_vfs_arm(Fault fault, unsigned n, bool sticky, bool reads)
{
        plan.fault = fault;
        plan.left = n;
        plan.sticky = sticky;
        plan.reads = reads;
        plan.delivered = false;
        plan.armed = true;
}

bool fault_vfs_disarm(void)
{
        plan.armed = false;
        return plan.delivered;
}

SyncCount fault_vfs_take_syncs(void)
{
        SyncCount taken = syncs;

        syncs = (SyncCount){ 0 };
        return taken;
}
