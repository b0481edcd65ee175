/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The part of a poll that reads domains. One call lists them and says which of them run. A domain
 * that the cache does not have, or has in another state, costs one more call if it does not run and
 * three if it runs: its state, its live and its persistent definition. One whose persistent
 * definition is to be read again costs one. An event announces that a domain is paused or resumed.
 * Domains that vanish after the list was made are skipped. Blocks: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/libvirt/poll-cache.h"

/* Adds to snapshot, which has no domains yet. Negative errno with words. */
int libvirt_poll_domains(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                         Error *reterr);
