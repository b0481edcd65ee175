/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Facts about a hypervisor that rarely change: CPU features, emulators with the abilities of their
 * guests, and the version of libvirt. The driver reads them once for each connection, and for
 * DRIVER_POLL_ALL.
 *
 * Blocks as long as the hypervisor does: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/host/host-config.h"

/* Reads the facts into a new, sealed snapshot that has nothing else. It uses virt_type, cpu_mode,
 * cpu_models and cpu_model_extra_flags of the configuration. A fact that the hypervisor does not
 * support is absent. If the hypervisor refuses a fact, or its answer is malformed, the snapshot
 * gets a problem (snapshot_add_problem()), and the list is incomplete. Negative errno with an error
 * text if the connection broke, memory is short, or the capabilities of the host cannot be read. */
int libvirt_facts_read(Snapshot **ret, virConnectPtr connection, const HostConfig *config,
                       Error *reterr);

/* Adds the facts to a snapshot that is not shared yet and has no emulators. -ENOMEM, with some of
 * the facts added. */
int libvirt_facts_apply(const Snapshot *facts, Snapshot *snapshot);
