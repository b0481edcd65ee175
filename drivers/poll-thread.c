/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the thread that polls, and has the mailbox through which its results reach the main thread.
 *
 * The main thread sets "requested" of a Poller under its lock and writes to the order eventfd. The
 * virt thread sleeps until that eventfd, or the descriptor of the source, is readable. It serves
 * the first Poller of its list until that one is stopped, or until poll() or its eventfd fails; the
 * others wait. The list changes under the lock of the VirtThread, and only the thread removes the
 * first Poller.
 *
 * Each driver owns a reference to its Poller and to the VirtThread. The thread owns one to itself,
 * and one to each Poller of the list. To free the last driver of a thread, driver_free() waits at
 * most two seconds for the thread. It does not wait for a driver that was replaced. A thread that
 * is still in a call keeps running and frees everything when it returns.
 *
 * Tests: tests/unit/drivers/test-poll-thread.c */

#include "drivers/poll-thread.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>

/* Seconds that driver_free() waits for the thread. */
#define STOP_TIMEOUT_SEC 2

struct Mailbox {
        unsigned n_references; /* atomic */
        int fd;
        pthread_mutex_t lock; /* guards the members below, and the counter of fd, which is above 0
                                 while an event is pending */
        bool pending[_DRIVER_EVENT_TYPE_MAX];
        Snapshot *snapshot;
        Error errors[_DRIVER_EVENT_TYPE_MAX];
};

typedef struct VirtThread {
        unsigned n_references; /* atomic */
        unsigned n_drivers;    /* drivers that are not freed; main thread only */
        pthread_t id;
        pthread_mutex_t lock; /* guards the members below */
        pthread_cond_t changed;
        TAILQ_HEAD(, Poller) pollers;
        bool ended; /* the list is empty, and the thread takes no more pollers */
} VirtThread;

typedef struct Poller {
        unsigned n_references; /* atomic: one for the driver, and one for the list of the thread */
        PollSource source;
        Mailbox *mailbox;
        int order_fd;
        int event_fd; /* owned by the mailbox */
        VirtThread *thread;
        TAILQ_ENTRY(Poller) link;

        pthread_mutex_t lock; /* guards the members below */
        bool requested;       /* a poll is requested and has not begun */
        /* union of the kinds that were requested since the last poll began */
        DriverPollKind kind;
        bool polling;
        bool stopping;
} Poller;

int thread_start(const char *name, void *(*run)(void *data), void *data, pthread_t *ret)
{
        sigset_t all, before;
        pthread_t thread;
        int r;

        /* Block all signals while the thread is created, because it inherits the mask. Only the
         * main thread then receives signals. */
        sigfillset(&all);
        r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r > 0)
                return -r;
        r = pthread_create(&thread, NULL, run, data);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r > 0)
                return -r;
        pthread_setname_np(thread, name);
        *ret = thread;
        return 0;
}

/* The mailbox. Its lock is held for a short time only, never during a call into a hypervisor's
 * library. */

int mailbox_new(Mailbox **ret, int *ret_fd)
{
        Mailbox *mailbox = calloc(1, sizeof(Mailbox));
        int r;

        if (!mailbox)
                return -ENOMEM;
        mailbox->n_references = 1;
        mailbox->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (mailbox->fd < 0) {
                r = -errno;
                free(mailbox);
                return r;
        }
        *ret = mailbox;
        *ret_fd = mailbox->fd;
        return 0;
}

Mailbox *mailbox_ref(Mailbox *mailbox)
{
        __atomic_add_fetch(&mailbox->n_references, 1, __ATOMIC_RELAXED);
        return mailbox;
}

Mailbox *mailbox_unref(Mailbox *mailbox)
{
        if (!mailbox || __atomic_sub_fetch(&mailbox->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        snapshot_unref(mailbox->snapshot);
        pthread_mutex_destroy(&mailbox->lock);
        close(mailbox->fd);
        free(mailbox);
        return NULL;
}

static DriverEventType next_pending(const Mailbox *mailbox)
{
        for (DriverEventType type = 0; type < _DRIVER_EVENT_TYPE_MAX; type++)
                if (mailbox->pending[type])
                        return type;
        return DRIVER_EVENT_NONE;
}

/* Marks the event as pending. The counter of the eventfd cannot overflow, because it is written
 * only when no event was pending. */
static void set_pending(Mailbox *mailbox, DriverEventType type)
{
        bool readable = next_pending(mailbox) != DRIVER_EVENT_NONE;

        mailbox->pending[type] = true;
        if (!readable)
                (void)eventfd_write(mailbox->fd, 1);
}

void mailbox_post_snapshot(Mailbox *mailbox, Snapshot *snapshot)
{
        Snapshot *old;

        pthread_mutex_lock(&mailbox->lock);
        old = mailbox->snapshot;
        mailbox->snapshot = snapshot;
        set_pending(mailbox, DRIVER_EVENT_SNAPSHOT);
        mailbox->pending[DRIVER_EVENT_POLL_FAILED] = false;
        mailbox->pending[DRIVER_EVENT_LOST] = false;
        pthread_mutex_unlock(&mailbox->lock);
        snapshot_unref(old);
}

void mailbox_post_error(Mailbox *mailbox, DriverEventType type, const Error *error)
{
        assert(type == DRIVER_EVENT_POLL_FAILED || type == DRIVER_EVENT_LOST);
        pthread_mutex_lock(&mailbox->lock);
        mailbox->errors[type] = *error;
        set_pending(mailbox, type);
        if (type == DRIVER_EVENT_POLL_FAILED)
                mailbox->pending[DRIVER_EVENT_LOST] = false;
        pthread_mutex_unlock(&mailbox->lock);
}

void mailbox_post_changed(Mailbox *mailbox)
{
        pthread_mutex_lock(&mailbox->lock);
        set_pending(mailbox, DRIVER_EVENT_CHANGED);
        pthread_mutex_unlock(&mailbox->lock);
}

void mailbox_take(Mailbox *mailbox, DriverEvent *ret)
{
        DriverEvent event = { .type = DRIVER_EVENT_NONE };
        eventfd_t count;

        pthread_mutex_lock(&mailbox->lock);
        event.type = next_pending(mailbox);
        if (event.type != DRIVER_EVENT_NONE) {
                mailbox->pending[event.type] = false;
                if (event.type == DRIVER_EVENT_SNAPSHOT)
                        event.snapshot = TAKE_PTR(mailbox->snapshot);
                event.error = mailbox->errors[event.type];
                if (next_pending(mailbox) == DRIVER_EVENT_NONE)
                        (void)eventfd_read(mailbox->fd, &count);
        }
        pthread_mutex_unlock(&mailbox->lock);
        *ret = event;
}

/* Frees the poller and its source with the last reference, on the thread that releases it. */
static Poller *poller_unref(Poller *poller)
{
        if (!poller || __atomic_sub_fetch(&poller->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        pthread_mutex_destroy(&poller->lock);
        closep(&poller->order_fd);
        mailbox_unref(poller->mailbox);
        poller->source.free(poller->source.data);
        free(poller);
        return NULL;
}

/* Waits until order_fd is written, and resets it. Until then forwards the events that the source
 * reports between polls. Does not check whether a poll or a stop is requested: wait_for_order()
 * does. Returns 0, or a negative errno of poll() or of the eventfd. */
static int wait_for_word(const Poller *poller)
{
        struct pollfd fds[] = { { .fd = poller->order_fd, .events = POLLIN },
                                { .fd = poller->source.fd, .events = POLLIN } };
        eventfd_t count;

        for (;;) {
                if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
                        if (errno != EINTR)
                                return -errno;
                        continue;
                }
                if (fds[1].revents)
                        poller->source.listen(poller->source.data, poller->mailbox);
                if (fds[0].revents)
                        return eventfd_read(poller->order_fd, &count) < 0 ? -errno : 0;
        }
}

/* Waits for a request or a stop. Returns true for a request, and marks the poll as running; false
 * ends the service of this poller, after a stop or an error of poll() or of the eventfd. */
static bool wait_for_order(Poller *poller, DriverPollKind *ret_kind)
{
        for (;;) {
                bool stop, poll;

                if (wait_for_word(poller) < 0)
                        return false;
                pthread_mutex_lock(&poller->lock);
                stop = poller->stopping;
                poll = poller->requested && !stop;
                poller->polling = poll;
                poller->requested = false;
                *ret_kind = poller->kind;
                poller->kind = 0;
                pthread_mutex_unlock(&poller->lock);
                if (stop || poll)
                        return poll;
        }
}

/* Serves the requests of one poller until wait_for_order() ends the service. */
static void serve(Poller *poller)
{
        DriverPollKind kind;

        while (wait_for_order(poller, &kind)) {
                poller->source.poll(poller->source.data, kind, poller->mailbox);
                pthread_mutex_lock(&poller->lock);
                poller->polling = false;
                pthread_mutex_unlock(&poller->lock);
        }
        if (poller->source.close)
                poller->source.close(poller->source.data);
}

static void thread_unref(VirtThread *thread)
{
        if (__atomic_sub_fetch(&thread->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        pthread_cond_destroy(&thread->changed);
        pthread_mutex_destroy(&thread->lock);
        free(thread);
}

/* Serves the pollers one after another. Each lock is released during calls, so other drivers can
 * join the list. */
static void *run(void *data)
{
        VirtThread *thread = data;
        Poller *poller;

        pthread_mutex_lock(&thread->lock);
        while ((poller = TAILQ_FIRST(&thread->pollers))) {
                pthread_mutex_unlock(&thread->lock);
                serve(poller);
                pthread_mutex_lock(&thread->lock);
                TAILQ_REMOVE(&thread->pollers, poller, link);
                pthread_mutex_unlock(&thread->lock);
                poller_unref(poller);
                pthread_mutex_lock(&thread->lock);
        }
        thread->ended = true;
        pthread_cond_signal(&thread->changed);
        pthread_mutex_unlock(&thread->lock);
        thread_unref(thread);
        return NULL;
}

/* Appends the poller to the list of a running thread. Returns false if the thread has ended. */
static bool join_thread(VirtThread *thread, Poller *poller)
{
        bool serves;

        pthread_mutex_lock(&thread->lock);
        serves = !thread->ended;
        if (serves)
                TAILQ_INSERT_TAIL(&thread->pollers, poller, link);
        pthread_mutex_unlock(&thread->lock);
        if (!serves)
                return false;
        __atomic_add_fetch(&thread->n_references, 1, __ATOMIC_RELAXED);
        thread->n_drivers++;
        poller->thread = thread;
        return true;
}

/* Starts a thread with the poller as the only one of its list. */
static int start_thread(Poller *poller)
{
        VirtThread *thread = calloc(1, sizeof(VirtThread));
        int r;

        if (!thread)
                return -ENOMEM;
        thread->n_references = 2; /* for the driver and for the thread */
        thread->n_drivers = 1;
        thread->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        thread->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        TAILQ_INIT(&thread->pollers);
        TAILQ_INSERT_TAIL(&thread->pollers, poller, link);
        poller->thread = thread;
        r = thread_start("virt", run, thread, &thread->id);
        if (r < 0) {
                thread->n_references = 1;
                thread_unref(thread);
        }
        return r;
}

/* Takes over the source, and frees it on failure. */
static int poller_new(Poller **ret, const PollSource *source)
{
        Poller *poller = calloc(1, sizeof(Poller));
        int r;

        if (!poller) {
                source->free(source->data);
                return -ENOMEM;
        }
        poller->n_references = 1;
        poller->source = *source;
        poller->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        poller->order_fd = eventfd(0, EFD_CLOEXEC);
        r = poller->order_fd < 0 ? -errno : mailbox_new(&poller->mailbox, &poller->event_fd);
        if (r < 0)
                poller_unref(poller);
        else
                *ret = poller;
        return r;
}

/* Returns the thread of the previous driver if that driver has the same name, and its source the
 * same address. The two drivers can then share the thread. Otherwise returns NULL. */
static VirtThread *find_common(const Driver *before, const char *name, const PollSource *source)
{
        return before && strcmp(before->name, name) == 0 &&
                               strcmp(before->poller->source.address, source->address) == 0
                       ? before->poller->thread
                       : NULL;
}

int poll_thread_start(Driver **ret, const char *name, const PollSource *source, Driver *before,
                      Error *reterr)
{
        _cleanup_free_ Driver *driver = calloc(1, sizeof(Driver));
        VirtThread *common = find_common(before, name, source);
        Poller *poller;
        int r;

        if (!driver) {
                source->free(source->data);
                return error_oom(reterr);
        }
        r = poller_new(&poller, source);
        if (r < 0)
                return error_setf(reterr, r, "Cannot create the driver: %s", strerror(-r));
        if (common && source->inherit)
                source->inherit(source->data, before->poller->source.data);
        poller->n_references = 2; /* for the driver and for the thread */
        r = common && join_thread(common, poller) ? 0 : start_thread(poller);
        if (r < 0) {
                poller->n_references = 1;
                poller_unref(poller);
                return error_setf(reterr, r, "Cannot start the virt thread: %s", strerror(-r));
        }
        driver->name = name;
        driver->poller = poller;
        *ret = TAKE_PTR(driver);
        return 0;
}

/* Removes the poller from the list if it is not the first one. The thread serves the first one,
 * so it removes it. */
static void drop_waiting(VirtThread *thread, Poller *poller)
{
        Poller *other, *first;
        bool waits = false;

        pthread_mutex_lock(&thread->lock);
        first = TAILQ_FIRST(&thread->pollers);
        TAILQ_FOREACH(other, &thread->pollers, link)
                waits = waits || (other == poller && other != first);
        if (waits)
                TAILQ_REMOVE(&thread->pollers, poller, link);
        pthread_mutex_unlock(&thread->lock);
        if (waits)
                poller_unref(poller);
}

/* Returns false if the thread has not ended after STOP_TIMEOUT_SEC. */
static bool wait_for_end(VirtThread *thread)
{
        struct timespec deadline;
        bool ended;
        int r = 0;

        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += STOP_TIMEOUT_SEC;
        pthread_mutex_lock(&thread->lock);
        while (!thread->ended && r == 0)
                r = pthread_cond_clockwait(&thread->changed, &thread->lock, CLOCK_MONOTONIC,
                                           &deadline);
        ended = thread->ended;
        pthread_mutex_unlock(&thread->lock);
        return ended;
}

/* Releases the thread. The last driver of a thread detaches it, or joins it if "waits" is set and
 * it ends in time. */
static void leave_thread(VirtThread *thread, Poller *poller, bool waits)
{
        drop_waiting(thread, poller);
        if (--thread->n_drivers == 0) {
                if (waits && wait_for_end(thread))
                        pthread_join(thread->id, NULL);
                else
                        pthread_detach(thread->id);
        }
        thread_unref(thread);
}

Driver *driver_free(Driver *driver)
{
        Poller *poller;

        if (!driver)
                return NULL;
        poller = driver->poller;
        pthread_mutex_lock(&poller->lock);
        poller->stopping = true;
        pthread_mutex_unlock(&poller->lock);
        (void)eventfd_write(poller->order_fd, 1);
        leave_thread(poller->thread, poller, !driver->replaced);
        poller_unref(poller);
        free(driver);
        return NULL;
}

int driver_poll(Driver *driver, DriverPollKind kind)
{
        Poller *poller = driver->poller;
        bool busy;

        pthread_mutex_lock(&poller->lock);
        busy = poller->polling || poller->requested;
        poller->requested = true;
        poller->kind |= kind;
        pthread_mutex_unlock(&poller->lock);
        if (eventfd_write(poller->order_fd, 1) < 0)
                return -errno;
        return busy;
}

int driver_get_fd(Driver *driver)
{
        return driver->poller->event_fd;
}

int driver_take(Driver *driver, DriverEvent *ret)
{
        mailbox_take(driver->poller->mailbox, ret);
        return 0;
}
