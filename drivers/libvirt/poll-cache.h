/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Keeps the devices and domains that earlier polls read, so that a poll reads only changed ones.
 *
 * Event callbacks mark changed objects, on any thread. The virt thread reads and fills the cache. A
 * mark during a poll counts for the next one, so no entry survives a change that has an event. Some
 * changes have no event. Therefore the cache is emptied every POLL_CACHE_LIFE_USEC, at the begin of
 * a poll that is not of guests alone.
 *
 * libvirt also sends no event when "virsh attach-device --config" changes a persistent definition.
 * Therefore each poll reads the persistent definitions of up to POLL_CACHE_REFRESH_MAX domains
 * again, in turn, and DRIVER_POLL_GUESTS those of all. A claim waits for a poll of
 * DRIVER_POLL_GUESTS alone. To be fast, such a poll reads only devices that are marked, and the
 * parents of mdevs if there is a new mdev. It reads all of them if it follows no poll that
 * succeeded, or if devices have no events. This module does not call libvirt. */

#include "drivers/driver.h"
#include "drivers/libvirt/node-device.h"

/* Age at which everything is read again. */
#define POLL_CACHE_LIFE_USEC (10 * 60 * USEC_PER_SEC)
/* Domains whose persistent definition a poll reads again. */
#define POLL_CACHE_REFRESH_MAX 4
#define POLL_CACHE_MARKS_MAX   4096 /* with more marks everything is read again */

typedef struct PollCache PollCache;

int poll_cache_new(PollCache **ret);
PollCache *poll_cache_free(PollCache *cache);
DEFINE_CLEANUP(PollCache *, poll_cache_free);

/* Mark a changed object: a device by libvirt's name, a domain by its uuid. Any thread. They never
 * fail: without memory, or above POLL_CACHE_MARKS_MAX, they mark all devices, or all domains. */
void poll_cache_mark_device(PollCache *cache, const char *name);
void poll_cache_mark_domain(PollCache *cache, const char *uuid);

/* Only the virt thread calls the functions below. */

/* Sets whether devices and domains have events. Objects without events are never kept. Both are
 * false at first. */
void poll_cache_keep(PollCache *cache, bool devices, bool domains);

/* Begins a poll at this monotonic time. Removes the objects that were marked since the last poll
 * began. Removes all objects for DRIVER_POLL_ALL, after a failed poll, and when
 * POLL_CACHE_LIFE_USEC is over and the poll is not of guests alone. Marks the domains whose
 * persistent definition this poll must read again.
 *
 * Returns true if devices have events, and no device was marked from the begin of the last poll to
 * that of this one. The last poll must also have succeeded, and this one must not have emptied the
 * cache. The cache then has all devices, and a listing is not necessary. */
bool poll_cache_begin(PollCache *cache, uint64_t now_usec, DriverPollKind kind);

/* Takes a name of a listing, before the first poll_cache_find_device(). An mdev that the cache
 * lacks makes a poll of guests alone read the devices that change silently: its parent can make one
 * less. */
void poll_cache_note_listed(PollCache *cache, const char *name);

/* Returns the devices of the cache in the order of their names: start with *i = 0; NULL after the
 * last one. *ret_stale: the device changes silently, and this poll must read it. */
const NodeDevice *poll_cache_next_device(PollCache *cache, size_t *i, bool *ret_stale);

/* Return a known object, or NULL if it must be read. It is borrowed until it is put again or the
 * poll ends. A device that changes silently must be read, except in a poll of guests alone
 * without a new mdev. *ret_stale: only the persistent definition of the domain must be read again.
 */
const NodeDevice *poll_cache_find_device(PollCache *cache, const char *name);
const SnapshotDomain *poll_cache_find_domain(PollCache *cache, const char *uuid, bool *ret_stale);

/* Move an object into the cache (*value becomes empty) and return it, borrowed. -ENOMEM, with
 * *value unchanged. */
int poll_cache_put_device(PollCache *cache, const char *name, NodeDevice *value,
                          const NodeDevice **ret);
int poll_cache_put_domain(PollCache *cache, const char *uuid, SnapshotDomain *value,
                          const SnapshotDomain **ret);

/* Ends a poll. Removes the objects that it neither found nor put, because they are gone; after a
 * failure, everything. */
void poll_cache_end(PollCache *cache, bool succeeded);
