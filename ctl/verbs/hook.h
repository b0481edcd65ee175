/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* computectl as the hook that libvirt runs for each guest: called by the name CTL_HOOK_NAME, with
 * the arguments GUEST OPERATION SUB-OPERATION EXTRA and the domain's XML on standard input.
 *
 *   prepare    asks the agent for what the domain has: a refusal ends the start, and its words are
 *              what "virsh start" shows
 *   started    confirms the claim
 *   release    gives back what prepare claimed
 *
 * All others do nothing: a guest that is restored or that arrives by migration comes to prepare as
 * well, and one that libvirt finds running after its own restart has its claim, or gets it with the
 * next poll. Nothing is ever written to standard output, where libvirt would read another XML.
 *
 * Unless [hook] enabled is true, it only reads its input. It never asks libvirt, which waits for
 * it, and ends within [hook] timeout, whatever the bus and the agent do. */

#include "ctl/verbs/verbs.h"

#define CTL_HOOK_NAME "compute-agent"

typedef enum CtlHookStep {
        CTL_HOOK_NOTHING,
        CTL_HOOK_PREPARE,
        CTL_HOOK_STARTED,
        CTL_HOOK_RELEASE,
        _CTL_HOOK_STEP_MAX,
} CtlHookStep;

CtlHookStep ctl_hook_step(const char *operation, const char *sub_operation);

/* The first <uuid> of a domain's XML, into 37 bytes; false when there is none. Pure. */
bool ctl_hook_find_uuid(const char *xml, char ret[static 37]);
