/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The contract of a virt driver: it says what a hypervisor has.
 *
 * "What is there?" (poll) takes as long as the hypervisor takes, and is asked on a thread of the
 * driver's own. What is to be reported of it is no driver's affair, but the same for all of
 * them (drivers/update.h). A driver knows neither Placement nor claims, holds no event
 * loop, and logs at debug level only.
 *
 * Threads: every function here is called on the main thread and returns at once, but driver_free(),
 * which waits up to two seconds for the driver's thread. The one thing to watch is the descriptor
 * of driver_get_fd(): readable means that driver_take() has something.
 *
 * A new driver fills a DriverOps (drivers/poll-thread.h) and adds a line to the table in
 * drivers/registry.c. */

#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

/* Where libvirt is, and how its connection is kept. */
typedef struct LibvirtConfig {
        const char *connection_uri;
        uint64_t keepalive_interval_sec; /* 0: off */
        uint64_t keepalive_count;
} LibvirtConfig;

typedef struct StaticConfig {
        const char *path; /* of the JSON file */
} StaticConfig;

/* What a driver is given: the section of its own name, which "linux" has none of, and what all of
 * them obey. It must outlive the driver. */
typedef struct DriverConfig {
        HostConfig host;
        LibvirtConfig libvirt;
        StaticConfig static_file;
} DriverConfig;

/* How much a poll reads anew, each kind also what the ones before it do. */
typedef enum DriverPollKind {
        DRIVER_POLL_CHANGES, /* what the hypervisor reported, and some of what it does not */
        DRIVER_POLL_GUESTS,  /* and all guests: their persistent definitions change without an event
                              */
        DRIVER_POLL_ALL,
} DriverPollKind;

/* What driver_take() yields. */
typedef enum DriverEventType {
        DRIVER_EVENT_NONE,
        DRIVER_EVENT_SNAPSHOT,    /* a poll ended well: snapshot is set */
        DRIVER_EVENT_POLL_FAILED, /* a poll failed: error is set; the driver tries to connect again
                                     at the next poll */
        DRIVER_EVENT_LOST,        /* the connection broke between polls: error is set */
        DRIVER_EVENT_CHANGED,     /* the hypervisor says that something changed: poll soon */
        _DRIVER_EVENT_TYPE_MAX,
} DriverEventType;

typedef struct DriverEvent {
        DriverEventType type;
        Snapshot *snapshot; /* owned by the receiver: snapshot_unref() */
        Error error;
} DriverEvent;

typedef struct Driver {
        const char *name;
        struct Poller *poller; /* drivers/poll-thread.c */
        bool replaced;         /* another has its place: it waits for nothing when it is freed */
} Driver;

/* Stops the threads, unless another driver took its place. A thread that hangs inside the
 * hypervisor's library for more than two seconds is left behind. */
Driver *driver_free(Driver *driver);
DEFINE_CLEANUP(Driver *, driver_free);

/* Readable (POLLIN) when driver_take() has something. Owned by the driver. */
int driver_get_fd(Driver *driver);

/* Asks for a poll. A request that comes while one runs is kept and served once after it; more are
 * merged into the kind that reads most. 1 when one is running already, 0 when one was started,
 * < 0 when the thread cannot be woken. */
int driver_poll(Driver *driver, DriverPollKind kind);

/* Takes one event; DRIVER_EVENT_NONE when there is none left. Call until then. A newer snapshot
 * replaces an older one that was not taken. */
int driver_take(Driver *driver, DriverEvent *ret);
