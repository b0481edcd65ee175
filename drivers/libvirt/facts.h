/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a hypervisor says of itself that stays true while the connection lives: CPU features,
 * emulators with what guests may have, versions. Asked for once per connection.
 *
 * Blocks as long as the hypervisor does: virt thread only. */

#include <libvirt/libvirt.h>

#include "drivers/host/host-config.h"

/* Copies of the options that count here. */
typedef struct LibvirtFactsOptions {
        const char *domain_type; /* "kvm" */
        int cpu_mode;            /* HostCpuMode */
        char **cpu_models;
        char **cpu_model_extra_flags;
} LibvirtFactsOptions;

/* Into a snapshot of its own, which has nothing else. What a hypervisor does not support is left
 * out; what it refuses to say, or says in words that cannot be read, is a problem
 * (snapshot_add_problem()) and makes the list incomplete. Negative errno with words when the
 * connection broke. */
int libvirt_facts_read(Snapshot **ret, virConnectPtr connection, const LibvirtFactsOptions *options,
                       Error *reterr);

/* Adds them to a snapshot that nobody else has seen yet. -ENOMEM. */
int libvirt_facts_apply(const Snapshot *facts, Snapshot *snapshot);
