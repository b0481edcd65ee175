/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Identifies a guest that no hypervisor lists: a process, or a unit of the service manager by its
 * control group. The claim has the identification as a text, which people read too:
 *
 * "process 1234, started at 567890 of boot 0123456789abcdef0123456789abcdef"
 *
 * "unit /machine.slice/machine-a.scope"
 *
 * A number that another process has now is distinguished by its start time, in clock ticks since
 * the boot. So a restart of the agent or of the host cannot confuse two processes, if the boot
 * could be identified. A pidfd would not survive a restart of the agent. A unit is identified by
 * its name: after a restart of the unit within the expiry time it is the same guest. Reads /proc
 * and cgroup v2; main thread. */

#include "claims/claim/claim.h"

/* Identifies a running process in ret, which has CLAIM_PROCESS_SIZE bytes. Returns -ESRCH with
 * words if it does not run, is hidden from this program, or cannot be read. */
int process_identify(uint64_t pid, char *ret, Error *reterr);

/* Identifies a running unit in ret. group is its ControlGroup. Returns -EINVAL for a bad group.
 * Returns -ESRCH with words if no process is in it, if it cannot be read, or if the host has no
 * cgroup v2. */
int process_identify_unit(const char *group, char *ret, Error *reterr);

/* Returns false if the guest has certainly ended: its process is gone or a zombie without other
 * threads, its number belongs to another process, the host booted again, or its control group is
 * empty or gone. A guest that cannot be read, a unit without cgroup v2, and a text that cannot be
 * parsed count as alive. */
bool process_is_alive(const char *process);
