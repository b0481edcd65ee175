/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Polls the host and keeps the last snapshot. A failed poll does not change the snapshot. A poll
 * without a result counts as failed after the patience (ETIMEDOUT). The patience is at most 1 s
 * while the hypervisor is known to hang. A result that arrives later is still used, and is one more
 * event. A snapshot with another nodename than the last one counts as a failed poll (EEXIST), and
 * is dropped. This file logs nothing. Main thread; nothing blocks. */

#include <systemd/sd-event.h>

#include "drivers/driver.h"

/* The events that the owner is notified of. */
typedef enum HostPollEvent {
        HOST_POLL_ENDED,   /* a poll succeeded, failed or had no result in time */
        HOST_POLL_LOST,    /* the hypervisor went away between polls; no poll ends by it */
        HOST_POLL_CHANGED, /* the host changed and should be polled soon */
} HostPollEvent;

/* The poll of one driver, with its last snapshot. */
typedef struct HostPoll HostPoll;

/* Creates the poll; does not begin one. driver is borrowed. known: an earlier snapshot of the same
 * host, or NULL. patience_usec 0: 30 s. Returns a negative errno with words. The callback notify
 * receives an event. snapshot is the last one, borrowed until the next poll succeeds: NULL before
 * the first success, unless a snapshot was known. All snapshots have the same nodename. error has
 * the reason of a failure or loss, else code 0. Borrowed. */
int host_poll_new(HostPoll **ret, sd_event *event, Driver *driver, const Snapshot *known,
                  uint64_t patience_usec,
                  void (*notify)(const Snapshot *snapshot, HostPollEvent event, const Error *error,
                                 void *userdata),
                  void *userdata, Error *reterr);
HostPoll *host_poll_free(HostPoll *poll);
DEFINE_CLEANUP(HostPoll *, host_poll_free);

/* Begins a poll. Unless this call fails, HOST_POLL_ENDED follows, never from inside the call. A
 * call during a poll is allowed: the driver polls again. The first HOST_POLL_ENDED then reports a
 * poll that began before the call (Snapshot.began_usec). The patience starts with the first call
 * without a result, and again with a snapshot that began before the last call. A poll that the
 * driver makes after a failed one, for an earlier call, has no patience. Returns a negative errno
 * with words. */
int host_poll_begin(HostPoll *poll, DriverPollKind kind, Error *reterr);
