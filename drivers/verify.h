/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares the configuration with the hardware: what does not fit, and which option to change.
 * Pure. */

#include "drivers/host/host-config.h"

/* Returns {"nodename", "errors": n, "findings": [{"level", "option", "text"}]}, errors first. Level
 * "error": the agent publishes nothing of this host with it, as driver_config_check() or the update
 * refuses the configuration. "warning": it has no effect, or not the one that was meant. option is
 * "[compute] cpu_shared_set", "reserved_huge_pages" for one of [DEFAULT]. A new reference, NULL
 * when out of memory. */
json_t *verify_host(const HostConfig *config, const Snapshot *snapshot);
