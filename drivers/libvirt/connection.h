/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Opens a connection to a hypervisor without interaction, with the configured keepalive, and
 * receives its events.
 *
 * When libvirt reports that a domain or a device appears, vanishes or changes, the event is posted
 * as DRIVER_EVENT_CHANGED, and the object is marked in the connection's poll cache. When libvirt
 * reports that the connection broke, DRIVER_EVENT_LOST is posted. The callbacks run on libvirt's
 * event thread and do nothing else. It can take as long as the hypervisor needs to open or to free
 * a connection. So only the virt thread calls the functions here, except
 * libvirt_event_loop_start(). */

#include <libvirt/libvirt.h>

#include "drivers/libvirt/poll-cache.h"
#include "drivers/poll-thread.h"

#define LIBVIRT_DOMAIN_EVENTS 4
#define LIBVIRT_DEVICE_EVENTS 2

typedef struct LibvirtConnection {
        virConnectPtr handle;
        PollCache *cache; /* objects that were read over this connection */

        /* private members of connection.c */
        unsigned n_references; /* atomic */
        bool lost;             /* atomic */
        bool closing;          /* atomic */
        Mailbox *mailbox;
        bool has_close_callback;
        int domain_ids[LIBVIRT_DOMAIN_EVENTS]; /* ids of callbacks; -1: not registered */
        int device_ids[LIBVIRT_DEVICE_EVENTS]; /* ids of callbacks; -1: not registered */
} LibvirtConnection;

/* Opens a connection to the address in config->libvirt, the only part that is used. Call
 * libvirt_event_loop_start() before. VIR_CONNECT_RO in flags requests a read-only connection; if
 * that fails, a writable one is opened. The connection takes its own reference to the mailbox. An
 * event or a keepalive that the hypervisor lacks is no error. Without one of the events of domains
 * or devices, the cache keeps none of that kind. Negative errno with an error text. */
int libvirt_connection_open(LibvirtConnection **ret, const DriverConfig *config, unsigned flags,
                            Mailbox *mailbox, Error *reterr);

/* Opens a connection without events, which the caller closes with virConnectClose(). flags are
 * those of virConnectOpenAuth(). Errors as above. */
int libvirt_connect(virConnectPtr *ret, const DriverConfig *config, unsigned flags, Error *reterr);
LibvirtConnection *libvirt_connection_free(LibvirtConnection *connection);
DEFINE_CLEANUP(LibvirtConnection *, libvirt_connection_free);

/* Returns false after libvirt has noticed that the connection broke, even before a call fails. Does
 * not block. */
bool libvirt_connection_is_alive(const LibvirtConnection *connection);

/* Posts DRIVER_EVENT_LOST again if libvirt reported that the connection broke. Call it after
 * posting a snapshot, which removes an earlier loss. */
void libvirt_connection_report_loss(const LibvirtConnection *connection);

/* Starts libvirt's event loop on a thread, the first time that it is called. It must run before the
 * first connection: without it, no keepalive is sent and no event arrives. The thread must not make
 * calls, because a call waits for the loop. A process has one event loop, which cannot be stopped.
 * Any thread can call the function. Negative errno with an error text. A failure of the first call
 * is final. */
int libvirt_event_loop_start(Error *reterr);
