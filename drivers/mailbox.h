/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a driver's threads leave what driver_take() yields: one place for each kind of event, and
 * an eventfd that is readable exactly while one of them is taken up.
 *
 * Any thread may post; the main thread takes. Shared by reference count, since a thread that hangs
 * inside the hypervisor's library may outlive its driver. A lock is held for a few instructions at
 * a time, never across a call into somebody else's code. */

#include "drivers/driver.h"

typedef struct Mailbox Mailbox;

int mailbox_new(Mailbox **ret); /* -ENOMEM, -EMFILE, … */
Mailbox *mailbox_ref(Mailbox *mailbox);
Mailbox *mailbox_unref(Mailbox *mailbox); /* NULL-safe */
DEFINE_CLEANUP(Mailbox *, mailbox_unref);

int mailbox_get_fd(const Mailbox *mailbox);

/* Takes over the reference. Replaces an older snapshot, and the failure and the loss before it,
 * which are over. */
void mailbox_post_snapshot(Mailbox *mailbox, Snapshot *snapshot);

/* DRIVER_EVENT_POLL_FAILED or DRIVER_EVENT_LOST; the error is copied and replaces an older one. A
 * failed poll makes an earlier loss old news. */
void mailbox_post_error(Mailbox *mailbox, DriverEventType type, const Error *error);

void mailbox_post_changed(Mailbox *mailbox);

/* One event, in the order of DriverEventType; DRIVER_EVENT_NONE when there is none. Returns 0. */
int mailbox_take(Mailbox *mailbox, DriverEvent *ret);
