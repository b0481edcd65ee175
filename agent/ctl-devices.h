/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a claim has for itself: "computectl show", the devices of "claim", and the fragments of
 * libvirt XML of --xml; and the table of "explain". Pure. A device is {"provider": uuid, "group":
 * suffix, "device": libvirt's name, "address": PCI address or "", "mdev_type", "mdev": uuid,
 * "exists": whether the mdev exists}. */

#include <jansson.h>

#include "agent/ctl-style.h"
#include "base/error.h"

/* The table of devices; nothing when there is none. -ENOMEM. */
int ctl_devices_print(const json_t *claim, const CtlStyle *style, FILE *output);

/* One claim of agent/ctl-claims.h with all that is known of it. -ENOMEM. */
int ctl_show_print(const json_t *claim, const CtlStyle *style, FILE *output);

/* A <hostdev> per device, to be put into <devices> of a domain. An mdev that is to be made has the
 * XML for "virsh nodedev-define" in a comment before. */
void ctl_xml_print(const json_t *claim, FILE *output);

/* {"problems": [{"consumer", "claim", "text"}]}. -ENOMEM. */
int ctl_problems_print(const json_t *document, const CtlStyle *style, FILE *output);

/* {"fits", "summary", "providers": [{"group", "provider", "name", "class", "term", "asked", "free",
 * "missing", "text"}]}. -ENOMEM. */
int ctl_explain_print(const json_t *document, const CtlStyle *style, FILE *output);
