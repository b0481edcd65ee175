/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How drivers are made: polls are made on a thread of their own (drivers/virt-thread.h), one after
 * another. Orders that come while one runs are merged into the next, what is found goes into a
 * mailbox. What a hypervisor is asked, and how, is the source's.
 *
 * The source is touched on that thread alone, but for its making. It has copies of the
 * configuration: a thread that hangs outlives the driver. */

#include "drivers/mailbox.h"

typedef struct PollSource {
        /* Asks the host and posts one snapshot, or DRIVER_EVENT_POLL_FAILED with words. */
        void (*poll)(void *data, DriverPollKind kind, Mailbox *mailbox);
        /* Something is to be read from the descriptor; posts what it says. May be NULL. */
        void (*listen)(void *data, Mailbox *mailbox);
        /* After the last poll, on the thread that made it. May be NULL. */
        void (*close)(void *data);
        /* Takes from the source of the driver that it replaces, which asks the same address, what a
         * hanging call must not start twice. Main thread, before the first poll. May be NULL. */
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

/* Makes a driver whose thread polls the source, which it takes over; where it fails that is freed.
 * before (may be NULL) is the one whose place it takes: behind that one's calls it waits, on the
 * same thread, where both have a name and an address in common. Negative errno with words. */
int poll_thread_start(Driver **ret, const char *name, const PollSource *source, Driver *before,
                      Error *reterr);
