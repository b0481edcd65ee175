/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "--xml" of computectl: what a claim names, as libvirt XML for the guest. Pure. */

#include <jansson.h>

#include "ctl/print/page.h"

/* Elements to be put into <domain>: <memory>, <vcpu>, <cputune>, <numatune>, <memoryBacking> and
 * <cpu> of a claim that says where the guest is; then, behind a comment, a <hostdev> per device, to
 * be put into <devices>. An mdev that is to be made has the XML for "virsh nodedev-define" in a
 * comment before. claim is a document of CLAIM_FORMAT. */
void ctl_xml_print(const json_t *claim, CtlPage *page);
