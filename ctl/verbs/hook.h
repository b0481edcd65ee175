/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* computectl as the hook that libvirt runs for each guest. It is called by the name CTL_HOOK_NAME,
 * with the arguments GUEST OPERATION SUB-OPERATION EXTRA and the domain's XML on standard input.
 *
 *   prepare    asks the agent for a claim; a rejection ends the start with its words. Waits until
 *              the partition of devices is active
 *   started    confirms the claim
 *   release    releases the claim of prepare
 *
 * Other operations only read their input. A guest that is restored, or that arrives by migration,
 * has its "prepare" too. A guest that libvirt finds running after its own restart has its claim, or
 * gets it with the next poll. Standard output stays empty, because libvirt would parse it as
 * another XML.
 *
 * Unless [hook] enabled is true, these three operations only read the configuration and their
 * input, and call the agent only if the configuration cannot be read. The hook never calls libvirt,
 * because libvirt waits for the hook. The hook ends within [hook] timeout after it has read the
 * configuration, also if the bus or the agent hangs. If the configuration cannot be read, hook.c
 * describes the limit. */

#include "ctl/verbs/verbs.h"

#define CTL_HOOK_NAME "compute-agent"

typedef enum CtlHookStep {
        CTL_HOOK_NOTHING,
        CTL_HOOK_PREPARE,
        CTL_HOOK_CHECK, /* after PREPARE, while the guest is not ready; no operation of libvirt */
        CTL_HOOK_STARTED,
        CTL_HOOK_RELEASE,
        _CTL_HOOK_STEP_MAX,
} CtlHookStep;

/* Returns the step of an operation of libvirt. Pure. */
CtlHookStep ctl_hook_step(const char *operation, const char *sub_operation);

/* Copies the first <uuid> of a domain's XML into 37 bytes. Returns false if there is none or it is
 * not valid. Pure. */
bool ctl_hook_find_uuid(const char *xml, char ret[static 37]);
