/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The part of a poll that reads domains. One call lists which there are and which of them run;
 * one more, or two for each that runs, for what the cache does not know, or knows as the other.
 * That one is paused or goes on is an event. What vanished since it was listed is left out. Blocks:
 * virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/libvirt/poll-cache.h"

/* Adds to snapshot, which has no domains yet. Negative errno with words. */
int libvirt_poll_domains(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                         Error *reterr);
