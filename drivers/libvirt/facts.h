/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a hypervisor says of itself that stays true while the connection lives: CPU features,
 * emulators with what guests may have, versions. Asked for once per connection.
 *
 * Blocks as long as the hypervisor does: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/host/host-config.h"

/* Reads them into a snapshot of its own, which has nothing else. Of the configuration virt_type,
 * cpu_mode, cpu_models and cpu_model_extra_flags count. A fact that a hypervisor does not support
 * is left out. One that it refuses, or gives in words that cannot be read, is a problem
 * (snapshot_add_problem()) and makes the list incomplete. Negative errno with words when the
 * connection broke. */
int libvirt_facts_read(Snapshot **ret, virConnectPtr connection, const HostConfig *config,
                       Error *reterr);

/* Adds them to a snapshot that nobody else has seen yet. -ENOMEM. */
int libvirt_facts_apply(const Snapshot *facts, Snapshot *snapshot);
