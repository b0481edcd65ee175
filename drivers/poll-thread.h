/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs the polls of drivers on a thread. Polls run one after another. Requests during a poll become
 * one request for the next poll. A PollSource has the calls into the hypervisor, and posts its
 * results into a mailbox.
 *
 * A call into a hypervisor's library can hang for ever. A driver that replaces a hanging one of the
 * same name and address waits on the same thread. More such replacements start no more threads.
 * Only that thread makes the calls of the source, except open(), inherit() and free(). The source
 * has copies of the configuration, because a thread that hangs outlives the driver. */

#include <pthread.h>

#include "drivers/driver.h"

/* Events that a driver's thread posts and driver_take() returns. It has one slot for each kind
 * of event, and an eventfd that is readable exactly while a slot is filled. Any thread can post.
 * Reference-counted. */
typedef struct Mailbox Mailbox;

/* Sets *ret_fd, which is readable while mailbox_take() has an event. The mailbox owns it.
 * -ENOMEM, -EMFILE, … */
int mailbox_new(Mailbox **ret, int *ret_fd);
Mailbox *mailbox_ref(Mailbox *mailbox);
Mailbox *mailbox_unref(Mailbox *mailbox); /* NULL-safe */

/* Posts the result of a successful poll and takes over the reference. It replaces a snapshot that
 * was not taken, and removes a failure and a loss, which are over. */
void mailbox_post_snapshot(Mailbox *mailbox, Snapshot *snapshot);

/* Posts DRIVER_EVENT_POLL_FAILED or DRIVER_EVENT_LOST. Copies the error, which replaces one of the
 * same type. A failed poll replaces an earlier loss. */
void mailbox_post_error(Mailbox *mailbox, DriverEventType type, const Error *error);

void mailbox_post_changed(Mailbox *mailbox);

/* Takes one event, in the order of DriverEventType, or DRIVER_EVENT_NONE. */
void mailbox_take(Mailbox *mailbox, DriverEvent *ret);

/* The calls into one hypervisor. The virt thread makes them, except inherit() and, at times,
 * free(). */
typedef struct PollSource {
        /* Reads the host and posts one snapshot, or DRIVER_EVENT_POLL_FAILED with an error text. */
        void (*poll)(void *data, DriverPollKind kind, Mailbox *mailbox);
        /* Reads from fd and posts the events in it. Optional. */
        void (*listen)(void *data, Mailbox *mailbox);
        /* Runs after the last poll, also if there was none. Does not run for a driver that was
         * freed while it waited behind another one. Optional. */
        void (*close)(void *data);
        /* Takes over, from the source of the driver that it replaces, the parts that a hanging
         * call must not start twice. Both sources have the same address. Runs on the main thread
         * before the first poll. Optional. */
        void (*inherit)(void *data, void *before);
        void (*free)(void *data); /* called once, on either thread, after all other calls */
        int fd;                   /* descriptor for listen(); < 0: none */
        /* Address of the hypervisor. A call that hangs at one address does not affect another
         * address. */
        const char *address;
        void *data;
} PollSource;

/* A kind of driver. */
typedef struct DriverOps {
        const char *name;
        /* Creates the source without connecting. Errors as for driver_new()
         * (drivers/registry.h). */
        int (*open)(const DriverConfig *config, PollSource *ret, Error *reterr);
} DriverOps;

/* Creates a driver whose thread polls the source. Takes over the source, and frees it on failure.
 * The driver replaces before (NULL: none). If both have the same name and address, the driver
 * shares the thread of before, unless that has ended. On a shared thread it polls only after before
 * was freed and its calls have returned. Negative errno with an error text. */
int poll_thread_start(Driver **ret, const char *name, const PollSource *source, Driver *before,
                      Error *reterr);

/* Starts a thread that calls run(data). All signals are blocked in it, because the main loop
 * handles them. name has at most 15 characters; "ps -T" shows it. Negative errno. */
int thread_start(const char *name, void *(*run)(void *data), void *data, pthread_t *ret);
