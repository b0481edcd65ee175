/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares the configuration with the hardware: finds options that do not fit, and names the one
 * to change. Pure. */

#include "drivers/host/host-config.h"

/* Returns {"nodename", "errors": n, "findings": [{"level", "option", "text"}]}, errors first. Level
 * "error": the agent publishes nothing, or not everything, because driver_config_check(), or a plan
 * of CPUs, amounts or cells, rejects the configuration or a part of it. Level "warning": another
 * fault, such as an option without effect, or a set of devices that the update refuses.
 * Contradictions between the functions of one card in [pci] device_spec are not found. option is
 * "[compute] cpu_shared_set", or "reserved_huge_pages" for one of [DEFAULT]. It is "" for an error
 * whose text names none of the options that verify.c lists. The caller owns the result. NULL if
 * memory ran out or a text is not UTF-8. */
json_t *verify_host(const HostConfig *config, const Snapshot *snapshot);
