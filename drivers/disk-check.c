/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/disk-check.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/clock.h"
#include "drivers/host/instance-folders.h"
#include "drivers/poll-thread.h"

struct DiskCheck {
        unsigned n_references;           /* atomic: each driver that uses it, and the thread */
        char *path, *pool, *conf, *user; /* owned; place borrows them */
        DiskPlace place;
        DiskGather gather;
        RbdFigure figure;     /* only the thread uses it */
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

DiskPlace disk_place_of(const HostConfig *config)
{
        DiskPlace place = { .path = config->instances_path };

        if (config->images_type == HOST_IMAGES_RBD && !config->images_storage_pool)
                place.rbd = (RbdPool){ .pool = config->images_rbd_pool,
                                       .conf = config->images_rbd_ceph_conf,
                                       .user = config->rbd_user };
        return place;
}

static void gather_files(const char *path, DiskFacts *ret)
{
        struct statvfs fs;

        if (statvfs(path, &fs) < 0)
                error_setf(&ret->error, errno, "[DEFAULT] instances_path: %.100s: %s", path,
                           strerror(errno));
        else if (u64_mul_overflow(fs.f_blocks, fs.f_frsize, &ret->total_bytes))
                ret->total_bytes = INT64_MAX;
}

void disk_gather(const DiskPlace *place, RbdFigure *figure, DiskFacts *ret)
{
        if (place->rbd.pool)
                (void)rbd_figure_read(figure, &place->rbd, clock_usec(CLOCK_MONOTONIC),
                                      &ret->total_bytes, &ret->error);
        else
                gather_files(place->path, ret);
        if (place->path[0])
                (void)instance_folders_read(place->path, &ret->folders, &ret->n_folders,
                                            &ret->folders_error);
}

static void free_all(DiskCheck *check)
{
        disk_facts_done(&check->facts);
        free(check->path);
        free(check->pool);
        free(check->conf);
        free(check->user);
        free(check);
}

static int copy_place(DiskCheck *check, const DiskPlace *place)
{
        const RbdPool *rbd = &place->rbd;

        if (!(check->path = strdup(place->path ? place->path : "")) ||
            (rbd->pool && !(check->pool = strdup(rbd->pool))) ||
            !(check->conf = strdup(rbd->conf ? rbd->conf : "")) ||
            !(check->user = strdup(rbd->user ? rbd->user : "")))
                return -ENOMEM;
        check->place = (DiskPlace){ check->path, { check->pool, check->conf, check->user } };
        return 0;
}

int disk_check_new(DiskCheck **ret, const DiskPlace *place, DiskGather gather)
{
        DiskCheck *check = calloc(1, sizeof(DiskCheck));

        if (!check)
                return -ENOMEM;
        check->n_references = 1;
        check->gather = gather;
        check->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        check->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        if (copy_place(check, place) < 0) {
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

static bool is_same_place(const DiskCheck *a, const DiskCheck *b)
{
        return strcmp(a->path, b->path) == 0 && !a->pool == !b->pool &&
               (!a->pool || strcmp(a->pool, b->pool) == 0) && strcmp(a->conf, b->conf) == 0 &&
               strcmp(a->user, b->user) == 0;
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

        check->gather(&check->place, &check->figure, &facts);
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
                if (pthread_cond_clockwait(&check->changed, &check->lock, CLOCK_MONOTONIC,
                                           &until) != 0)
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

/* Says why there is no answer. r: the error of the thread, 0 if it runs. */
static void explain(const DiskCheck *check, int r, Error *ret)
{
        if (r < 0)
                error_setf(ret, r, "[DEFAULT] instances_path: %.100s: no thread: %s", check->path,
                           strerror(-r));
        else if (check->pool)
                error_setf(ret, ETIMEDOUT, RBD_WHAT ": Ceph did not answer yet");
        else
                error_setf(ret, ETIMEDOUT,
                           "[DEFAULT] instances_path: the file system of %.100s does not answer",
                           check->path);
}

void disk_check_run(DiskCheck *check, uint64_t timeout_usec, DiskFacts *ret)
{
        bool answered;
        int r = 0;

        *ret = (DiskFacts){ 0 };
        if (!check || (!check->path[0] && !check->pool))
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
        if (!answered)
                explain(check, r, &ret->error);
        if (!answered)
                ret->folders_error = ret->error;
        if (ret->error.code)
                ret->total_bytes = check->good_bytes;
        else
                check->good_bytes = ret->total_bytes;
}
