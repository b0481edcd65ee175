/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Interface of a virt driver, which reads what a hypervisor has.
 *
 * A poll takes as long as the hypervisor needs, so it runs on a thread of the driver. The driver
 * returns a snapshot of the host. The part of the snapshot that is published does not depend on
 * the driver (drivers/update.h). A driver knows neither Placement nor claims, has no event loop,
 * and logs at debug level only.
 *
 * Threads: call every function here on the main thread. They return at once, except
 * driver_free(), which waits up to two seconds for the driver's thread. The caller watches one
 * descriptor, that of driver_get_fd(): it is readable while driver_take() has an event.
 *
 * A new driver fills a DriverOps (drivers/poll-thread.h) and has a line in the table of
 * drivers/registry.c. */

#include "drivers/host/host-config.h"
#include "drivers/host/snapshot.h"

/* Configuration of a driver: the options that all drivers obey, and the section with the name of
 * the driver. The driver "linux" has no section. It must outlive the driver. */
typedef struct DriverConfig {
        HostConfig host;
        /* Address of libvirt, and the keepalive of its connection. */
        struct {
                const char *connection_uri;
                uint64_t keepalive_interval_sec; /* 0: no keepalive */
                uint64_t keepalive_count;
        } libvirt;
        const char *static_path; /* [static] path: the JSON file */
} DriverConfig;

/* Amount that a poll reads, as flags. Each kind reads the changes that the hypervisor reported, and
 * what earlier polls have not read. A snapshot always has the whole host. */
typedef enum DriverPollKind {
        DRIVER_POLL_CHANGES = 1 << 0, /* also devices that change without an event, and some of the
                                         guests, in turn */
        DRIVER_POLL_GUESTS = 1 << 1, /* also all guests, because their persistent definitions change
                                        without an event. Devices can be those of an earlier
                                        poll */
        DRIVER_POLL_ALL = 1 << 2 | DRIVER_POLL_CHANGES | DRIVER_POLL_GUESTS, /* everything again */
} DriverPollKind;

/* Kinds of events that driver_take() returns. */
typedef enum DriverEventType {
        DRIVER_EVENT_NONE,
        DRIVER_EVENT_SNAPSHOT,    /* a poll succeeded; snapshot is set */
        DRIVER_EVENT_POLL_FAILED, /* a poll failed; error is set. The next poll connects again if
                                   * the connection broke */
        DRIVER_EVENT_LOST,        /* the connection broke between polls; error is set */
        DRIVER_EVENT_CHANGED,     /* the hypervisor reports a change; poll soon */
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
        bool replaced; /* the owner uses another driver now, so driver_free() does not wait */
} Driver;

/* Stops the thread and frees the driver. Waits up to two seconds, and not at all if another driver
 * replaced this one or uses the same thread. A thread that is still inside the hypervisor's library
 * after that keeps running. It frees its memory when it returns. Returns NULL; NULL-safe. */
Driver *driver_free(Driver *driver);
DEFINE_CLEANUP(Driver *, driver_free);

/* Returns a descriptor that is readable (POLLIN) while driver_take() has an event. The driver
 * owns it. */
int driver_get_fd(Driver *driver);

/* Requests a poll. A request during a poll is kept and served once after it. Several such requests
 * become one, with all of their kinds. Returns 1 if another poll of this driver runs or waits, else
 * 0, and < 0 if the thread cannot be woken. */
int driver_poll(Driver *driver, DriverPollKind kind);

/* Takes one event, or DRIVER_EVENT_NONE when none is left. Call it until then. A newer snapshot
 * replaces an older one that was not taken. Returns 0. */
int driver_take(Driver *driver, DriverEvent *ret);
