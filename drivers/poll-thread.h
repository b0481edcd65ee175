/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How drivers are made. Polls run on a thread of their own, one after another. Orders that come
 * while one runs are merged into the next. What a poll finds goes into a mailbox. The source knows
 * what a hypervisor is asked.
 *
 * A call into a hypervisor's library can hang for ever. A driver that replaces one that hangs waits
 * on the same thread, so there is one thread for each hypervisor, however often that happens. The
 * source is touched on that thread alone, except while it is made. It has copies of the
 * configuration: a thread that hangs outlives the driver. */

#include <pthread.h>

#include "drivers/driver.h"

/* Where a driver's threads leave what driver_take() returns: one place for each kind of event, and
 * an eventfd that is readable exactly while one of them is taken up. Any thread can post. Shared by
 * reference count. */
typedef struct Mailbox Mailbox;

/* *ret_fd is readable when mailbox_take() has something; the mailbox owns it. -ENOMEM, -EMFILE, …
 */
int mailbox_new(Mailbox **ret, int *ret_fd);
Mailbox *mailbox_ref(Mailbox *mailbox);
Mailbox *mailbox_unref(Mailbox *mailbox); /* NULL-safe */

/* Posts a poll that ended well, and takes over the reference. Replaces an older snapshot, and the
 * failure and the loss before it, which are over. */
void mailbox_post_snapshot(Mailbox *mailbox, Snapshot *snapshot);

/* Posts DRIVER_EVENT_POLL_FAILED or DRIVER_EVENT_LOST. Copies the error, which replaces an older
 * one. A failed poll replaces an earlier loss. */
void mailbox_post_error(Mailbox *mailbox, DriverEventType type, const Error *error);

void mailbox_post_changed(Mailbox *mailbox);

/* Takes one event, in the order of DriverEventType; DRIVER_EVENT_NONE when there is none. */
void mailbox_take(Mailbox *mailbox, DriverEvent *ret);

typedef struct PollSource {
        /* Asks the host and posts one snapshot, or DRIVER_EVENT_POLL_FAILED with words. */
        void (*poll)(void *data, DriverPollKind kind, Mailbox *mailbox);
        /* Reads from the descriptor and posts what it says. May be NULL. */
        void (*listen)(void *data, Mailbox *mailbox);
        /* Runs after the last poll, on the same thread. May be NULL. */
        void (*close)(void *data);
        /* Takes over what a hanging call must not start twice from the source of the driver that it
         * replaces, which asks the same address. Main thread, before the first poll. May be NULL.
         */
        void (*inherit)(void *data, void *before);
        void (*free)(void *data); /* once, on either thread: nothing uses data any more */
        int fd;                   /* for listen(); < 0: none */
        const char *address;      /* whom it asks: what hangs at one need not hang at another */
        void *data;
} PollSource;

typedef struct DriverOps {
        const char *name;
        /* Makes the source; connects to nothing yet. As of driver_new() (drivers/registry.h). */
        int (*open)(const DriverConfig *config, PollSource *ret, Error *reterr);
} DriverOps;

/* Makes a driver whose thread polls the source. Takes over the source, and frees it on failure. The
 * driver replaces before (may be NULL). If both have the same name and address, it waits on that
 * one's thread for its calls to end. Negative errno with words. */
int poll_thread_start(Driver **ret, const char *name, const PollSource *source, Driver *before,
                      Error *reterr);

/* Starts a thread that runs run(data). No signal reaches it: signals are the main loop's. name has
 * at most 15 characters, and "ps -T" shows it. Negative errno. */
int thread_start(const char *name, void *(*run)(void *data), void *data, pthread_t *ret);
