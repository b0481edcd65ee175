/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the size of the disk and the folders of servers on a thread. The poll thread starts it,
 * waits for a limited time, and takes the answer under the lock. One run of the thread reads first
 * the size, by rbd_read() or statvfs(), and then the folders. If one of them hangs, there is no
 * answer to either; if one fails, the other is still valid.
 *
 * DiskCheck is shared: each driver that uses it and the running thread own a reference. At most one
 * thread runs for a DiskCheck. An answer that comes after the poll thread stopped waiting stays in
 * "facts". The next run returns it, unless its own answer comes in time. good_bytes changes only
 * after a check without disk_error.
 *
 * Tests: tests/unit/drivers/test-disk-check.c */

#include "drivers/disk-check.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "drivers/host/rbd.h"
#include "drivers/poll-thread.h"

/* Suffix of the folder of a server while its resize waits for confirmation. */
#define RESIZED "_resize"

DEFINE_CLEANUP(DIR *, closedir);

/* Result of one check: disk_total_bytes, disk_error, instance_folders and folders_error of a
 * Snapshot. */
typedef struct DiskFacts {
        uint64_t total_bytes;
        Error error;
        Uuid *folders;
        size_t n_folders;
        Error folders_error;
} DiskFacts;

struct DiskCheck {
        unsigned
                n_references; /* atomic: one for each driver that uses it, and one for the thread */
        char *path;           /* [DEFAULT] instances_path; "": none */
        /* Names of the Ceph pool, owned, and the latest answer of its cluster, which rbd_read()
         * keeps there: only the thread uses this answer. pool is NULL if the disks are not in a
         * Ceph pool that this check measures. */
        RbdPool rbd;
        uint64_t good_bytes;  /* last size without an error, which disk_check_run() returns with
                                 disk_error, and only it uses; 0: none yet */
        pthread_mutex_t lock; /* guards the members below */
        pthread_cond_t changed;
        bool running;
        bool answered; /* facts are an answer that no run has taken yet */
        DiskFacts facts;
};

/* The folders of servers
 *
 * Nova creates the folder UUID when it begins to build a server or to copy one to this host,
 * before libvirt knows the domain. It renames the folder to UUID_resize while a resize waits for
 * confirmation. Both prove that the server exists. A folder UUID_del proves nothing, because
 * Nova is deleting it or failed to delete it. */

/* Returns true if a folder with this name belongs to a server that exists. */
static bool is_of_server(const char *name, Uuid *ret)
{
        char text[UUID_TEXT_LENGTH + 1] = "";
        const char *rest = name + UUID_TEXT_LENGTH;

        if (strlen(name) < UUID_TEXT_LENGTH || (*rest && strcmp(rest, RESIZED) != 0))
                return false;
        memcpy(text, name, UUID_TEXT_LENGTH);
        return uuid_from_text(text, ret) == 0;
}

static int order_uuids(const void *a, const void *b)
{
        return uuid_order(a, b);
}

/* Sorts the uuids and removes duplicates. Returns the new number. */
static size_t sort_unique(Uuid *uuids, size_t n)
{
        size_t n_kept = 0;

        if (n > 1)
                qsort(uuids, n, sizeof(Uuid), order_uuids);
        for (size_t i = 0; i < n; i++)
                if (n_kept == 0 || !uuid_equal(&uuids[n_kept - 1], &uuids[i]))
                        uuids[n_kept++] = uuids[i];
        return n_kept;
}

/* Appends the uuids of the folders. -E2BIG above SNAPSHOT_LIST_MAX, because a shorter list would
 * hide servers. */
static int read_names(DIR *dir, Uuid **uuids, size_t *n)
{
        size_t n_allocated = 0;

        for (;;) {
                const struct dirent *entry;
                Uuid uuid;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
                if (!is_of_server(entry->d_name, &uuid))
                        continue;
                if (*n >= SNAPSHOT_LIST_MAX)
                        return -E2BIG;
                if (array_grow(uuids, sizeof(Uuid), *n, &n_allocated) < 0)
                        return -ENOMEM;
                (*uuids)[(*n)++] = uuid;
        }
}

/* Reads the folder names below path into a list that is sorted and has no duplicates. A path that
 * is empty, does not exist or is no directory has no folders. The type of an entry is not checked.
 * On an error it is unknown which servers have a folder. The error is -E2BIG, -ENOMEM or that of
 * opendir() or readdir(), with an error text that names the option, and *ret is untouched. */
static int read_folders(const char *path, Uuid **ret, size_t *ret_n, Error *reterr)
{
        _cleanup_(closedirp) DIR *dir = path[0] ? opendir(path) : NULL;
        _cleanup_free_ Uuid *uuids = NULL;
        size_t n = 0;
        int r = 0;

        if (dir)
                r = read_names(dir, &uuids, &n);
        else if (path[0] && errno != ENOENT && errno != ENOTDIR)
                r = -errno;
        if (r < 0)
                return error_setf(reterr, r, "[DEFAULT] instances_path: %.100s: %s", path,
                                  strerror(-r));
        *ret_n = sort_unique(uuids, n);
        *ret = TAKE_PTR(uuids);
        return 0;
}

/* The thread: measure_files() and gather() can hang for ever */

/* Reads the size of the file system, in bytes. A size above 64 bits becomes INT64_MAX, which
 * Placement cannot hold either. */
static void measure_files(const char *path, DiskFacts *ret)
{
        struct statvfs fs;

        if (statvfs(path, &fs) < 0)
                error_setf(&ret->error, errno, "[DEFAULT] instances_path: %.100s: %s", path,
                           strerror(errno));
        else if (u64_mul_overflow(fs.f_blocks, fs.f_frsize, &ret->total_bytes))
                ret->total_bytes = INT64_MAX;
}

static void gather(DiskCheck *check, DiskFacts *ret)
{
        if (check->rbd.pool)
                (void)rbd_read(&check->rbd, clock_usec(CLOCK_MONOTONIC), &ret->total_bytes,
                               &ret->error);
        else
                measure_files(check->path, ret);
        (void)read_folders(check->path, &ret->folders, &ret->n_folders, &ret->folders_error);
}

static void free_all(DiskCheck *check)
{
        free(check->facts.folders);
        free(check->path);
        free((char *)check->rbd.pool);
        free((char *)check->rbd.conf);
        free((char *)check->rbd.user);
        free(check);
}

static int copy_text(const char *text, const char **ret)
{
        *ret = strdup(text ? text : "");
        return *ret ? 0 : -ENOMEM;
}

int disk_check_new(DiskCheck **ret, const HostConfig *config)
{
        bool is_rbd = config->images_type == HOST_IMAGES_RBD && !config->images_storage_pool;
        DiskCheck *check = calloc(1, sizeof(DiskCheck));

        if (!check)
                return -ENOMEM;
        check->n_references = 1;
        check->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        check->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        check->path = strdup(config->instances_path ? config->instances_path : "");
        if (!check->path || (is_rbd && config->images_rbd_pool &&
                             (copy_text(config->images_rbd_pool, &check->rbd.pool) < 0 ||
                              copy_text(config->images_rbd_ceph_conf, &check->rbd.conf) < 0 ||
                              copy_text(config->rbd_user, &check->rbd.user) < 0))) {
                free_all(check);
                return -ENOMEM;
        }
        *ret = check;
        return 0;
}

DiskCheck *disk_check_unref(DiskCheck *check)
{
        if (!check || __atomic_sub_fetch(&check->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        pthread_cond_destroy(&check->changed);
        pthread_mutex_destroy(&check->lock);
        free_all(check);
        return NULL;
}

static DiskCheck *disk_check_ref(DiskCheck *check)
{
        __atomic_add_fetch(&check->n_references, 1, __ATOMIC_RELAXED);
        return check;
}

/* Returns true if both checks read the same folder and the same pool. */
static bool is_same_place(const DiskCheck *a, const DiskCheck *b)
{
        const RbdPool *x = &a->rbd, *y = &b->rbd;

        return strcmp(a->path, b->path) == 0 && !x->pool == !y->pool &&
               (!x->pool || (strcmp(x->pool, y->pool) == 0 && strcmp(x->conf, y->conf) == 0 &&
                             strcmp(x->user, y->user) == 0));
}

void disk_check_inherit(DiskCheck **check, DiskCheck *before)
{
        if (!*check || !before || !is_same_place(*check, before))
                return;
        disk_check_unref(*check);
        *check = disk_check_ref(before);
}

static void *run(void *data)
{
        DiskCheck *check = data;
        DiskFacts facts = { 0 };

        gather(check, &facts);
        pthread_mutex_lock(&check->lock);
        free(check->facts.folders);
        check->facts = facts;
        check->answered = true;
        check->running = false;
        pthread_cond_signal(&check->changed);
        pthread_mutex_unlock(&check->lock);
        disk_check_unref(check);
        return NULL;
}

/* Starts the thread, which gets a reference. The lock must be held. */
static int start(DiskCheck *check)
{
        pthread_t thread;
        int r;

        check->running = true;
        r = thread_start("disk", run, disk_check_ref(check), &thread);
        if (r < 0) {
                check->running = false;
                disk_check_unref(check);
                return r;
        }
        pthread_detach(thread);
        return 0;
}

/* Waits until the thread has answered or the time is over. The lock must be held. */
static void wait_for_answer(DiskCheck *check, uint64_t timeout_usec)
{
        uint64_t until_usec = clock_usec(CLOCK_MONOTONIC) + timeout_usec;
        struct timespec until = { .tv_sec = (time_t)(until_usec / USEC_PER_SEC),
                                  .tv_nsec = (long)(until_usec % USEC_PER_SEC * 1000) };

        while (check->running)
                if (pthread_cond_clockwait(&check->changed, &check->lock, CLOCK_MONOTONIC,
                                           &until) != 0)
                        return;
}

/* Moves the answer since the last run, if there is one, into the snapshot. The lock must be
 * held. */
static bool take_answer(DiskCheck *check, Snapshot *snapshot)
{
        DiskFacts *facts = &check->facts;

        if (!check->answered)
                return false;
        check->answered = false;
        free(snapshot->instance_folders);
        snapshot->disk_total_bytes = facts->total_bytes;
        snapshot->disk_error = facts->error;
        snapshot->instance_folders = facts->folders;
        snapshot->n_instance_folders = facts->n_folders;
        snapshot->folders_error = facts->folders_error;
        *facts = (DiskFacts){ 0 };
        return true;
}

/* Explains why there is no answer. r is the error of the start of the thread, or 0 if it runs. */
static void explain(const DiskCheck *check, int r, Error *ret)
{
        if (r < 0)
                error_setf(ret, r, "[DEFAULT] instances_path: %.100s: no thread: %s", check->path,
                           strerror(-r));
        else if (check->rbd.pool)
                error_setf(ret, ETIMEDOUT, RBD_WHAT ": Ceph did not answer yet");
        else
                error_setf(ret, ETIMEDOUT,
                           "[DEFAULT] instances_path: the file system of %.100s does not answer",
                           check->path);
}

void disk_check_run(DiskCheck *check, uint64_t timeout_usec, Snapshot *snapshot)
{
        bool answered;
        int r = 0;

        if (!check || (!check->path[0] && !check->rbd.pool))
                return;
        pthread_mutex_lock(&check->lock);
        answered = take_answer(check, snapshot);
        if (!check->running) {
                r = start(check);
                if (r == 0)
                        wait_for_answer(check, timeout_usec);
                answered = take_answer(check, snapshot) || answered;
        }
        pthread_mutex_unlock(&check->lock);
        if (!answered) {
                explain(check, r, &snapshot->disk_error);
                snapshot->folders_error = snapshot->disk_error;
        }
        if (snapshot->disk_error.code)
                snapshot->disk_total_bytes = check->good_bytes;
        else
                check->good_bytes = snapshot->disk_total_bytes;
}
