/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>

struct Mailbox {
        unsigned n_references; /* atomic */
        int fd;
        pthread_mutex_t lock; /* guards what follows, and that fd is readable when any is set */
        bool pending[_DRIVER_EVENT_TYPE_MAX];
        Snapshot *snapshot;
        Error errors[_DRIVER_EVENT_TYPE_MAX];
};

int mailbox_new(Mailbox **ret)
{
        Mailbox *mailbox = calloc(1, sizeof(Mailbox));
        int r;

        if (!mailbox)
                return -ENOMEM;
        mailbox->n_references = 1;
        mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (mailbox->fd < 0) {
                r = -errno;
                free(mailbox);
                return r;
        }
        r = pthread_mutex_init(&mailbox->lock, NULL);
        if (r > 0) {
                close(mailbox->fd);
                free(mailbox);
                return -r;
        }
        *ret = mailbox;
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

int mailbox_get_fd(const Mailbox *mailbox)
{
        return mailbox->fd;
}

/* An eventfd's counter cannot overflow here: it is written only when nothing was pending. */
static void set_pending(Mailbox *mailbox, DriverEventType type)
{
        bool readable = false;

        for (size_t i = 0; i < _DRIVER_EVENT_TYPE_MAX; i++)
                readable = readable || mailbox->pending[i];
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

static DriverEventType next_pending(const Mailbox *mailbox)
{
        for (DriverEventType type = 0; type < _DRIVER_EVENT_TYPE_MAX; type++)
                if (mailbox->pending[type])
                        return type;
        return DRIVER_EVENT_NONE;
}

int mailbox_take(Mailbox *mailbox, DriverEvent *ret)
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
        return 0;
}
