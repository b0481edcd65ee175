/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What earlier polls read of devices and domains, so that a poll asks the hypervisor only for what
 * changed.
 *
 * Event callbacks mark what changed, on any thread; the virt thread reads and fills the cache. A
 * mark that comes during a poll counts for the next one, so nothing that was read before a change
 * outlives it. A poll that reads everything finds the changes that libvirt sends no event for;
 * poll_cache_begin() orders it every POLL_CACHE_LIFE_USEC. libvirt sends no event when "virsh
 * attach-device --config" changes a persistent definition. Therefore each poll reads
 * POLL_CACHE_REFRESH_MAX domains again, in turn, and DRIVER_POLL_GUESTS reads all of them. This
 * module does not call libvirt. */

#include "drivers/driver.h"
#include "drivers/libvirt/node-device.h"

#define POLL_CACHE_LIFE_USEC   (10 * 60 * USEC_PER_SEC)
#define POLL_CACHE_REFRESH_MAX 4
#define POLL_CACHE_MARKS_MAX   4096 /* more changes than this at once: everything is read anew */

typedef struct PollCache PollCache;

int poll_cache_new(PollCache **ret);
PollCache *poll_cache_free(PollCache *cache);
DEFINE_CLEANUP(PollCache *, poll_cache_free);

/* Something changed: a device by libvirt's name of it, a domain by its uuid. Any thread; never
 * fails (it marks everything when it is out of memory). */
void poll_cache_mark_device(PollCache *cache, const char *name);
void poll_cache_mark_domain(PollCache *cache, const char *uuid);

/* The rest is for the virt thread alone. */

/* Without events of a kind there is nothing to go by: such things are never kept. Both are false at
 * first. */
void poll_cache_keep(PollCache *cache, bool devices, bool domains);

/* Begins a poll at this monotonic time: forgets what was marked since the last one began, and what
 * the kind says. */
void poll_cache_begin(PollCache *cache, uint64_t now_usec, DriverPollKind kind);

/* True when no device came, went or changed since the last poll: the cache then knows them all, and
 * the hypervisor need not be asked to list them. poll_cache_next_device() yields one after the
 * other in the order of their names, from *i = 0 on; NULL after the last. */
bool poll_cache_knows_devices(const PollCache *cache);
const NodeDevice *poll_cache_next_device(PollCache *cache, size_t *i);

/* Returns the device or domain as it is known, borrowed until it is put or the poll ends; NULL when
 * it must be read, as a device that changes silently always must (node_device_changes_silently()).
 * *ret_stale is set if only the persistent definition of the domain is to be read again. */
const NodeDevice *poll_cache_find_device(PollCache *cache, const char *name);
const SnapshotDomain *poll_cache_find_domain(PollCache *cache, const char *uuid, bool *ret_stale);

/* Hands over what was read (*value is left empty) and lends it back. -ENOMEM leaves it alone. */
int poll_cache_put_device(PollCache *cache, const char *name, NodeDevice *value,
                          const NodeDevice **ret);
int poll_cache_put_domain(PollCache *cache, const char *uuid, SnapshotDomain *value,
                          const SnapshotDomain **ret);

/* Forgets what was neither found nor put since the poll began, for it is gone; everything when the
 * poll failed. */
void poll_cache_end(PollCache *cache, bool succeeded);
