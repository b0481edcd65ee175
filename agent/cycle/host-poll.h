/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Polls the host and keeps the last snapshot. A poll that fails leaves the snapshot as it is. A
 * poll that hangs counts as failed after the patience, sooner while the hypervisor is known to
 * hang; its answer is still taken when it arrives. It logs nothing. Main thread; nothing blocks. */

#include <systemd/sd-event.h>

#include "drivers/driver.h"

typedef enum HostPollNews {
        HOST_POLL_ENDED,   /* a poll succeeded or failed */
        HOST_POLL_EARLIER, /* a poll ended that began before the last host_poll_begin() */
        HOST_POLL_LOST,    /* the hypervisor went away */
        HOST_POLL_CHANGED, /* the host changed and should be polled soon */
} HostPollNews;

typedef struct HostPoll HostPoll;

/* error: why it failed or went away; code 0: it did not. Borrowed. */
typedef void (*HostPollNotify)(HostPoll *poll, HostPollNews news, const Error *error,
                               void *userdata);

/* driver is borrowed. known: an earlier snapshot of the same host, or NULL. patience_usec 0: 30 s.
 * Negative errno with words. */
int host_poll_new(HostPoll **ret, sd_event *event, Driver *driver, const Snapshot *known,
                  uint64_t patience_usec, HostPollNotify notify, void *userdata, Error *reterr);
HostPoll *host_poll_free(HostPoll *poll);
DEFINE_CLEANUP(HostPoll *, host_poll_free);

/* Begins a poll. HOST_POLL_ENDED follows unless this call fails, never from inside it: for a poll
 * that began after the call, or for one that failed. */
int host_poll_begin(HostPoll *poll, DriverPollKind kind, Error *reterr);

/* Returns the last snapshot, borrowed until the next poll succeeds. NULL before the first poll that
 * succeeded, unless one was known. All snapshots have the same nodename. */
Snapshot *host_poll_get_snapshot(const HostPoll *poll);
