/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The main thread sets "requested" under the lock and writes the order eventfd; the other sleeps
 * until that, or the source's descriptor, can be read. Both hold a reference. driver_free() waits
 * two seconds for the thread; one that is still in a call is left behind with its reference
 * and cleans up if it ever returns. A driver that takes another's place is served by the same
 * thread, after it. */

#include "drivers/poll-thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "drivers/virt-thread.h"

typedef struct PollThread {
        unsigned n_references; /* atomic: the driver and the thread */
        PollSource source;
        Mailbox *mailbox;
        int order_fd;
        VirtThread *thread;

        pthread_mutex_t lock; /* guards what follows */
        bool requested;       /* a poll is wanted that has not begun */
        DriverPollKind kind;
        bool polling;
        bool stopping;
} PollThread;

static PollThread *poll_thread_unref(PollThread *thread)
{
        if (!thread || __atomic_sub_fetch(&thread->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        pthread_mutex_destroy(&thread->lock);
        closep(&thread->order_fd);
        mailbox_unref(thread->mailbox);
        thread->source.free(thread->source.data);
        free(thread);
        return NULL;
}

/* The thread that polls */

/* Until there is an order; what the source says by itself is heard meanwhile. */
static int wait_for_word(const PollThread *thread)
{
        struct pollfd fds[] = { { .fd = thread->order_fd, .events = POLLIN },
                                { .fd = thread->source.fd, .events = POLLIN } };
        eventfd_t count;

        for (;;) {
                if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
                        if (errno != EINTR)
                                return -errno;
                        continue;
                }
                if (fds[1].revents)
                        thread->source.listen(thread->source.data, thread->mailbox);
                if (fds[0].revents)
                        return eventfd_read(thread->order_fd, &count) < 0 ? -errno : 0;
        }
}

/* True when a poll was ordered, which is then under way; false to end. */
static bool wait_for_order(PollThread *thread, DriverPollKind *ret_kind)
{
        for (;;) {
                bool stop, poll;

                if (wait_for_word(thread) < 0)
                        return false;
                pthread_mutex_lock(&thread->lock);
                stop = thread->stopping;
                poll = thread->requested && !stop;
                thread->polling = poll;
                thread->requested = false;
                *ret_kind = thread->kind;
                thread->kind = DRIVER_POLL_CHANGES;
                pthread_mutex_unlock(&thread->lock);
                if (stop || poll)
                        return poll;
        }
}

static void serve(void *data)
{
        PollThread *thread = data;
        DriverPollKind kind;

        while (wait_for_order(thread, &kind)) {
                thread->source.poll(thread->source.data, kind, thread->mailbox);
                pthread_mutex_lock(&thread->lock);
                thread->polling = false;
                pthread_mutex_unlock(&thread->lock);
        }
        if (thread->source.close)
                thread->source.close(thread->source.data);
}

static void drop(void *data)
{
        poll_thread_unref(data);
}

/* The main thread */

static int start(PollThread **ret, const PollSource *source)
{
        PollThread *thread = calloc(1, sizeof(PollThread));
        int r = thread ? -pthread_mutex_init(&thread->lock, NULL) : -ENOMEM;

        if (r < 0) {
                free(thread);
                source->free(source->data);
                return r;
        }
        thread->n_references = 1;
        thread->source = *source;
        thread->order_fd = eventfd(0, EFD_CLOEXEC);
        r = thread->order_fd < 0 ? -errno : mailbox_new(&thread->mailbox);
        if (r < 0)
                poll_thread_unref(thread);
        else
                *ret = thread;
        return r;
}

/* The thread on which the one before asks what the source asks. */
static VirtThread *find_common(const Driver *before, const char *name, const PollSource *source)
{
        return before && strcmp(before->name, name) == 0 &&
                               strcmp(before->thread->source.address, source->address) == 0
                       ? before->thread->thread
                       : NULL;
}

int poll_thread_start(Driver **ret, const char *name, const PollSource *source, Driver *before,
                      Error *reterr)
{
        _cleanup_free_ Driver *driver = calloc(1, sizeof(Driver));
        VirtJob job = { .serve = serve, .drop = drop };
        VirtThread *common = find_common(before, name, source);
        PollThread *thread;
        int r;

        if (!driver) {
                source->free(source->data);
                return error_oom(reterr);
        }
        r = start(&thread, source);
        if (r < 0)
                return error_setf(reterr, r, "Cannot make the driver: %s", strerror(-r));
        if (common && source->inherit)
                source->inherit(source->data, before->thread->source.data);
        __atomic_add_fetch(&thread->n_references, 1, __ATOMIC_RELAXED);
        job.data = thread;
        r = virt_thread_enter(&thread->thread, common, &job);
        if (r < 0) {
                poll_thread_unref(thread);
                poll_thread_unref(thread);
                return error_setf(reterr, r, "Cannot start the virt thread: %s", strerror(-r));
        }
        driver->name = name;
        driver->thread = thread;
        if (before)
                before->replaced = true;
        *ret = TAKE_PTR(driver);
        return 0;
}

Driver *driver_free(Driver *driver)
{
        PollThread *thread;

        if (!driver)
                return NULL;
        thread = driver->thread;
        pthread_mutex_lock(&thread->lock);
        thread->stopping = true;
        pthread_mutex_unlock(&thread->lock);
        (void)eventfd_write(thread->order_fd, 1);
        virt_thread_leave(thread->thread, thread, !driver->replaced);
        poll_thread_unref(thread);
        free(driver);
        return NULL;
}

int driver_get_fd(Driver *driver)
{
        return mailbox_get_fd(driver->thread->mailbox);
}

int driver_poll(Driver *driver, DriverPollKind kind)
{
        PollThread *thread = driver->thread;
        bool busy;

        pthread_mutex_lock(&thread->lock);
        busy = thread->polling || thread->requested;
        thread->requested = true;
        thread->kind = MAX(thread->kind, kind);
        pthread_mutex_unlock(&thread->lock);
        if (eventfd_write(thread->order_fd, 1) < 0)
                return -errno;
        return busy;
}

int driver_take(Driver *driver, DriverEvent *ret)
{
        return mailbox_take(driver->thread->mailbox, ret);
}
