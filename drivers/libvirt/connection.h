/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One connection to a hypervisor: opened without ever asking a person, kept alive, and listened to.
 *
 * Events that libvirt reports between calls become DRIVER_EVENT_CHANGED in the mailbox when a
 * domain or a device came, went or changed, which is also marked in the connection's poll cache,
 * and DRIVER_EVENT_LOST when the connection broke. The callbacks run on libvirt's event thread and
 * do nothing else. Everything here can block as long as the hypervisor does: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/libvirt/poll-cache.h"
#include "drivers/poll-thread.h"

#define LIBVIRT_DOMAIN_EVENTS 4
#define LIBVIRT_DEVICE_EVENTS 2

typedef struct LibvirtConnection {
        virConnectPtr handle;
        PollCache *cache; /* of what was read over this connection */

        /* the rest belongs to connection.c */
        unsigned n_references; /* atomic */
        bool lost;             /* atomic */
        bool closing;          /* atomic */
        Mailbox *mailbox;
        bool has_close_callback;
        int domain_ids[LIBVIRT_DOMAIN_EVENTS]; /* of callbacks; -1: not registered */
        int device_ids[LIBVIRT_DEVICE_EVENTS]; /* the same */
} LibvirtConnection;

/* libvirt_event_loop_start() must have been called. With VIR_CONNECT_RO in flags it is read-only
 * where the hypervisor has that, else the other kind. Negative errno with words. */
int libvirt_connection_open(LibvirtConnection **ret, const LibvirtConfig *config, unsigned flags,
                            Mailbox *mailbox, Error *reterr);

/* A bare connection, for virConnectClose(); flags are virConnectOpenAuth()'s. The same errors. */
int libvirt_connect(virConnectPtr *ret, const LibvirtConfig *config, unsigned flags, Error *reterr);
LibvirtConnection *libvirt_connection_free(LibvirtConnection *connection);
DEFINE_CLEANUP(LibvirtConnection *, libvirt_connection_free);

/* False once it broke, whether or not a call has noticed. Does not block. */
bool libvirt_connection_is_alive(const LibvirtConnection *connection);

/* Posts DRIVER_EVENT_LOST again when it broke: for after a snapshot, which covered the first one
 * up. */
void libvirt_connection_report_loss(const LibvirtConnection *connection);

/* Starts libvirt's event loop, on a thread of its own, the first time; must come before the first
 * connection. Without it no keepalive is sent and no event arrives. It must not be the thread that
 * makes calls, because a call waits where the loop would have to run. libvirt allows one event loop
 * per process and cannot stop it: it runs until the process ends. Any thread. Negative errno with
 * words, every time when it failed the first time. */
int libvirt_event_loop_start(Error *reterr);
