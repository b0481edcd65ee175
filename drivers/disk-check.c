/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/disk-check.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/clock.h"
#include "drivers/host/instance-folders.h"
#include "drivers/thread.h"

struct DiskCheck {
        unsigned n_references; /* atomic: each driver that uses it, and the thread */
        char *path;
        DiskGather gather;
        uint64_t good_bytes;  /* the last good figure; disk_check_run() alone uses it */
        pthread_mutex_t lock; /* guards the members below */
        pthread_cond_t changed;
        bool running;
        bool answered; /* facts are newer than the last run */
        DiskFacts facts;
};

void disk_facts_done(DiskFacts *facts)
{
        free(facts->folders);
        *facts = (DiskFacts){ 0 };
}

void disk_facts_move(DiskFacts *facts, Snapshot *snapshot)
{
        free(snapshot->instance_folders);
        snapshot->disk_total_bytes = facts->total_bytes;
        snapshot->disk_error = facts->error;
        snapshot->instance_folders = facts->folders;
        snapshot->n_instance_folders = facts->n_folders;
        snapshot->folders_error = facts->folders_error;
        *facts = (DiskFacts){ 0 };
}

void disk_gather(const char *path, DiskFacts *ret)
{
        struct statvfs fs;

        if (statvfs(path, &fs) < 0)
                error_setf(&ret->error, errno, "[DEFAULT] instances_path: %.100s: %s", path,
                           strerror(errno));
        else if (u64_mul_overflow(fs.f_blocks, fs.f_frsize, &ret->total_bytes))
                ret->total_bytes = INT64_MAX;
        (void)instance_folders_read(path, &ret->folders, &ret->n_folders, &ret->folders_error);
}

static int init_lock(DiskCheck *check)
{
        pthread_condattr_t attributes;
        int r = pthread_mutex_init(&check->lock, NULL);

        if (r > 0)
                return -r;
        r = pthread_condattr_init(&attributes);
        if (r == 0) {
                pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
                r = pthread_cond_init(&check->changed, &attributes);
                pthread_condattr_destroy(&attributes);
        }
        if (r > 0)
                pthread_mutex_destroy(&check->lock);
        return -r;
}

int disk_check_new(DiskCheck **ret, const char *path, DiskGather gather)
{
        DiskCheck *check = calloc(1, sizeof(DiskCheck));

        if (!check)
                return -ENOMEM;
        check->n_references = 1;
        check->gather = gather;
        check->path = strdup(path ? path : "");
        if (!check->path || init_lock(check) < 0) {
                free(check->path);
                free(check);
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
        disk_facts_done(&check->facts);
        free(check->path);
        free(check);
        return NULL;
}

static DiskCheck *disk_check_ref(DiskCheck *check)
{
        __atomic_add_fetch(&check->n_references, 1, __ATOMIC_RELAXED);
        return check;
}

void disk_check_inherit(DiskCheck **check, DiskCheck *before)
{
        if (!*check || !before || strcmp((*check)->path, before->path) != 0)
                return;
        disk_check_unref(*check);
        *check = disk_check_ref(before);
}

static void *run(void *data)
{
        DiskCheck *check = data;
        DiskFacts facts = { 0 };

        check->gather(check->path, &facts);
        pthread_mutex_lock(&check->lock);
        disk_facts_done(&check->facts);
        check->facts = facts;
        check->answered = true;
        check->running = false;
        pthread_cond_signal(&check->changed);
        pthread_mutex_unlock(&check->lock);
        disk_check_unref(check);
        return NULL;
}

/* With the lock held. */
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

/* With the lock held. */
static void wait_for_answer(DiskCheck *check, uint64_t timeout_usec)
{
        uint64_t until_usec = clock_usec(CLOCK_MONOTONIC) + timeout_usec;
        struct timespec until = { .tv_sec = (time_t)(until_usec / USEC_PER_SEC),
                                  .tv_nsec = (long)(until_usec % USEC_PER_SEC * 1000) };

        while (check->running)
                if (pthread_cond_timedwait(&check->changed, &check->lock, &until) != 0)
                        return;
}

/* With the lock held. Takes the answer that came since the last run, if there is one. */
static bool take_answer(DiskCheck *check, DiskFacts *ret)
{
        if (!check->answered)
                return false;
        check->answered = false;
        disk_facts_done(ret);
        *ret = TAKE_STRUCT(check->facts);
        return true;
}

void disk_check_run(DiskCheck *check, uint64_t timeout_usec, DiskFacts *ret)
{
        bool answered;
        int r = 0;

        *ret = (DiskFacts){ 0 };
        if (!check || !check->path[0])
                return;
        pthread_mutex_lock(&check->lock);
        answered = take_answer(check, ret);
        if (!check->running) {
                r = start(check);
                if (r == 0)
                        wait_for_answer(check, timeout_usec);
                answered = take_answer(check, ret) || answered;
        }
        pthread_mutex_unlock(&check->lock);
        if (r < 0 && !answered)
                error_setf(&ret->error, r, "[DEFAULT] instances_path: %.100s: no thread: %s",
                           check->path, strerror(-r));
        else if (!answered)
                error_setf(&ret->error, ETIMEDOUT,
                           "[DEFAULT] instances_path: the file system of %.100s does not answer",
                           check->path);
        if (!answered)
                ret->folders_error = ret->error;
        if (ret->error.code)
                ret->total_bytes = check->good_bytes;
        else
                check->good_bytes = ret->total_bytes;
}
