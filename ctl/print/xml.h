/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "--xml" of computectl: the layout and devices of a claim as libvirt XML for the guest. Pure. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Prints elements for <domain>, for a claim with a layout: <memory>, <vcpu>, <cputune>, <numatune>,
 * <memoryBacking> and <cpu>, without those that the layout does not need. Then follows a <hostdev>
 * for each device, for <devices>; after a layout a comment separates them. An mdev that does not
 * exist has the XML for "virsh nodedev-define" in a comment before it. claim: a document of
 * CLAIM_FORMAT, or a claim of CLAIMS_FORMAT. host: a document of SNAPSHOT_FORMAT, for the pin of
 * the emulator threads of a claim that was made from a guest. NULL: they get the host CPUs of the
 * guest CPUs. */
void ctl_xml_print(const json_t *claim, const json_t *host, CtlPage *page);
