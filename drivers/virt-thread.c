/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The first job of the list is served, or about to be; the others wait. Each has a reference to the
 * thread, and the thread has one, so that it may come back from its call long after everybody left.
 * The list is changed under the lock; the first job leaves it on the thread alone. */

#include "drivers/virt-thread.h"

#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>
#include <time.h>

#include "base/macros.h"
#include "drivers/thread.h"

#define STOP_TIMEOUT_SEC 2

typedef struct Entry {
        VirtJob job;
        TAILQ_ENTRY(Entry) link;
} Entry;

struct VirtThread {
        unsigned n_references; /* atomic */
        unsigned n_owners;     /* who entered and did not leave; main thread */
        pthread_t id;
        pthread_mutex_t lock; /* guards what follows */
        pthread_cond_t changed;
        TAILQ_HEAD(, Entry) jobs;
        bool ended;
};

static void thread_unref(VirtThread *thread)
{
        if (__atomic_sub_fetch(&thread->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        pthread_cond_destroy(&thread->changed);
        pthread_mutex_destroy(&thread->lock);
        free(thread);
}

static void drop_entry(Entry *entry)
{
        entry->job.drop(entry->job.data);
        free(entry);
}

static void *run(void *data)
{
        VirtThread *thread = data;
        Entry *entry;

        pthread_mutex_lock(&thread->lock);
        while ((entry = TAILQ_FIRST(&thread->jobs))) {
                pthread_mutex_unlock(&thread->lock);
                entry->job.serve(entry->job.data);
                pthread_mutex_lock(&thread->lock);
                TAILQ_REMOVE(&thread->jobs, entry, link);
                pthread_mutex_unlock(&thread->lock);
                drop_entry(entry);
                pthread_mutex_lock(&thread->lock);
        }
        thread->ended = true;
        pthread_cond_signal(&thread->changed);
        pthread_mutex_unlock(&thread->lock);
        thread_unref(thread);
        return NULL;
}

static int init_lock(VirtThread *thread)
{
        pthread_condattr_t attributes;
        int r;

        r = pthread_mutex_init(&thread->lock, NULL);
        if (r > 0)
                return -r;
        r = pthread_condattr_init(&attributes);
        if (r == 0) {
                pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
                r = pthread_cond_init(&thread->changed, &attributes);
                pthread_condattr_destroy(&attributes);
        }
        if (r > 0)
                pthread_mutex_destroy(&thread->lock);
        return -r;
}

static int start(VirtThread **ret, Entry *entry)
{
        VirtThread *thread = calloc(1, sizeof(VirtThread));
        int r = thread ? init_lock(thread) : -ENOMEM;

        if (r < 0) {
                free(thread);
                return r;
        }
        thread->n_references = 2; /* the caller's and its own */
        thread->n_owners = 1;
        TAILQ_INIT(&thread->jobs);
        TAILQ_INSERT_TAIL(&thread->jobs, entry, link);
        r = thread_start("virt", run, thread, &thread->id);
        if (r < 0) {
                thread->n_references = 1;
                thread_unref(thread);
                return r;
        }
        *ret = thread;
        return 0;
}

static bool wait_behind(VirtThread *thread, Entry *entry)
{
        bool there;

        pthread_mutex_lock(&thread->lock);
        there = !thread->ended;
        if (there)
                TAILQ_INSERT_TAIL(&thread->jobs, entry, link);
        pthread_mutex_unlock(&thread->lock);
        return there;
}

int virt_thread_enter(VirtThread **ret, VirtThread *before, const VirtJob *job)
{
        Entry *entry = calloc(1, sizeof(Entry));
        int r;

        if (!entry)
                return -ENOMEM;
        entry->job = *job;
        if (before && wait_behind(before, entry)) {
                __atomic_add_fetch(&before->n_references, 1, __ATOMIC_RELAXED);
                before->n_owners++;
                *ret = before;
                return 0;
        }
        r = start(ret, entry);
        if (r < 0)
                free(entry);
        return r;
}

static void drop_waiting(VirtThread *thread, const void *data)
{
        Entry *entry, *first, *dropped = NULL;

        pthread_mutex_lock(&thread->lock);
        first = TAILQ_FIRST(&thread->jobs);
        TAILQ_FOREACH(entry, &thread->jobs, link)
                if (entry != first && entry->job.data == data)
                        dropped = entry;
        if (dropped)
                TAILQ_REMOVE(&thread->jobs, dropped, link);
        pthread_mutex_unlock(&thread->lock);
        if (dropped)
                drop_entry(dropped);
}

static bool wait_for_end(VirtThread *thread)
{
        struct timespec deadline;
        bool ended;
        int r = 0;

        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += STOP_TIMEOUT_SEC;
        pthread_mutex_lock(&thread->lock);
        while (!thread->ended && r == 0)
                r = pthread_cond_timedwait(&thread->changed, &thread->lock, &deadline);
        ended = thread->ended;
        pthread_mutex_unlock(&thread->lock);
        return ended;
}

void virt_thread_leave(VirtThread *thread, const void *data, bool patience)
{
        drop_waiting(thread, data);
        if (--thread->n_owners == 0) {
                if (patience && wait_for_end(thread))
                        pthread_join(thread->id, NULL);
                else
                        pthread_detach(thread->id);
        }
        thread_unref(thread);
}
