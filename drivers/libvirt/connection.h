/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One connection to a hypervisor: opened without ever asking a person, kept alive, and listened to.
 *
 * What libvirt reports between calls becomes events in the mailbox: DRIVER_EVENT_CHANGED when a
 * domain or a device came, went or changed, which is also marked in the connection's poll cache;
 * DRIVER_EVENT_LOST when the connection broke. Its
 * callbacks run on libvirt's event thread and do nothing else. Everything here may block as long as
 * the hypervisor does: virt thread only. */

#include <libvirt/libvirt.h>

#include "base/error.h"
#include "drivers/libvirt/poll-cache.h"
#include "drivers/poll-thread.h"

typedef struct LibvirtConnection LibvirtConnection;

/* libvirt_event_loop_start() must have been called. With VIR_CONNECT_RO in flags it is read-only
 * where the hypervisor has that, else the other kind. Negative errno with words. */
int libvirt_connection_open(LibvirtConnection **ret, const LibvirtConfig *config, unsigned flags,
                            Mailbox *mailbox, Error *reterr);

/* A bare connection, for virConnectClose(); flags are virConnectOpenAuth()'s. The same errors. */
int libvirt_connect(virConnectPtr *ret, const LibvirtConfig *config, unsigned flags, Error *reterr);
LibvirtConnection *libvirt_connection_free(LibvirtConnection *connection);
DEFINE_CLEANUP(LibvirtConnection *, libvirt_connection_free);

/* Borrowed. The cache holds what was read over this connection. */
virConnectPtr libvirt_connection_get(const LibvirtConnection *connection);
PollCache *libvirt_connection_cache(const LibvirtConnection *connection);

/* False once it broke, whether or not a call has noticed. Does not block. */
bool libvirt_connection_is_alive(const LibvirtConnection *connection);

/* Posts DRIVER_EVENT_LOST again when it broke: for after a snapshot, which covered the first one
 * up. */
void libvirt_connection_report_loss(const LibvirtConnection *connection);

/* Starts it the first time; must come before the first connection. Any thread. Negative errno with
 * words, every time when it failed the first time. */
int libvirt_event_loop_start(Error *reterr);
