/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* By what a guest is known that no hypervisor lists: a process, or a unit of the service manager,
 * which is its control group. It stands with the claim as a text, which people read as well:
 *
 *   "process 1234, started at 567890 of boot 0123456789abcdef0123456789abcdef"
 *   "unit /machine.slice/machine-a.scope"
 *
 * A number that another process has by now is distinguished by when that started (clock ticks since
 * the boot), so that neither an agent nor a host that starts anew takes one for the other; a pidfd
 * would not outlive the agent. A unit is known by its name: one that is started anew in time is the
 * same guest. Reads /proc and cgroup v2; main thread. */

#include "claims/claim/claim.h"

/* Of one that runs. ret has room for CLAIM_LIFE_SIZE bytes. -ESRCH with words when it does not, or
 * this program may not see it. */
int life_of_process(uint64_t pid, char *ret, Error *reterr);

/* group: the unit's ControlGroup. -EINVAL, and -ESRCH with words when no process is in it, or when
 * the host has no cgroup v2 to ask. */
int life_of_unit(const char *group, char *ret, Error *reterr);

/* True until it has certainly ended: a zombie has, what cannot be read has not. */
bool life_lasts(const char *life);
