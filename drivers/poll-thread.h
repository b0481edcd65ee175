/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A driver whose polls are made on a thread of their own (drivers/virt-thread.h), one after
 * another: orders that come while one runs are merged into the next, what is found goes into a
 * mailbox. What a hypervisor is asked, and how, is the source's; the driver is a table of the
 * poll_thread_…() below and an init() that calls poll_thread_new().
 *
 * The source is touched on that thread alone, but for its making, and what it says of itself. It
 * has copies of the configuration: a thread that hangs outlives the driver. */

#include "drivers/mailbox.h"

typedef struct PollSource {
        /* Asks the host and posts one snapshot, or DRIVER_EVENT_POLL_FAILED with words. */
        void (*poll)(void *data, DriverPollKind kind, Mailbox *mailbox);
        /* Something is to be read from the descriptor; posts what it says. May be NULL. */
        void (*listen)(void *data, Mailbox *mailbox);
        void (*close)(void *data); /* after the last poll, on the thread that made it */
        void (*free)(void *data);  /* once, on either thread: nothing uses data any more */
        int fd;                    /* for listen(); < 0: none */
        void *data;
} PollSource;

/* Starts the thread, and takes over source; where it fails that is freed. before (may be NULL) is
 * the driver behind whose calls this one's wait, on the same thread. driver is left with its state.
 * Negative errno with words. */
int poll_thread_new(Driver *driver, const PollSource *source, Driver *before, Error *reterr);

/* The data of a driver's source: what was set before its thread began may be read. */
const void *poll_thread_source(const Driver *driver);

/* As DriverOps says. */
void poll_thread_done(Driver *driver);
int poll_thread_get_fd(Driver *driver);
int poll_thread_poll(Driver *driver, DriverPollKind kind);
int poll_thread_take(Driver *driver, DriverEvent *ret);
