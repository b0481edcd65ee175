/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The last good picture of the host, and the asking for the next one. A poll that fails changes
 * nothing of what is known; one that hangs is given up on after a while, sooner while the
 * hypervisor is known to hang, and its answer is taken whenever it comes. It logs nothing and
 * decides nothing. Main thread; nothing blocks. */

#include <systemd/sd-event.h>

#include "drivers/driver.h"

typedef enum HostPollNews {
        HOST_POLL_ENDED,   /* a poll did, well or not */
        HOST_POLL_EARLIER, /* one did that began before the one that is waited for was asked for */
        HOST_POLL_LOST,    /* the hypervisor went away */
        HOST_POLL_CHANGED, /* something of the host did: it should be polled soon */
} HostPollNews;

typedef struct HostPoll HostPoll;

/* error: why it failed or went away; code 0: it did not. Borrowed. */
typedef void (*HostPollNotify)(HostPoll *poll, HostPollNews news, const Error *error,
                               void *userdata);

/* driver is borrowed. known: an earlier picture of the same host, or NULL. patience_usec 0: 30 s.
 * -ENOMEM and whatever the loop says, with words. */
int host_poll_new(HostPoll **ret, sd_event *event, Driver *driver, const Snapshot *known,
                  uint64_t patience_usec, HostPollNotify notify, void *userdata, Error *reterr);
HostPoll *host_poll_free(HostPoll *poll);
DEFINE_CLEANUP(HostPoll *, host_poll_free);

/* HOST_POLL_ENDED follows, never from inside this call, unless it fails: of a poll that began after
 * this call, or of one that failed. */
int host_poll_begin(HostPoll *poll, DriverPollKind kind, Error *reterr);

/* Returns the last snapshot, borrowed until the next poll succeeds. NULL before the first poll that
 * succeeded, unless one was known. All snapshots have the same nodename. */
Snapshot *host_poll_get_snapshot(const HostPoll *poll);
