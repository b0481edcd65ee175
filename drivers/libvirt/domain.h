/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses libvirt's domain XML: the host's CPUs, memory and devices that a guest has. Pure: text
 * in, struct out. tests/lint/domain-schema.py lists the elements that are read, and all others
 * of libvirt's schema that name a part of the host. */

#include "drivers/host/snapshot.h"

#define DOMAIN_VCPUS_MAX             4096 /* guest CPUs; libvirt's own drivers allow fewer */
#define DOMAIN_CELLS_MAX             1024
#define DOMAIN_HUGE_PAGE_DEFAULT_KIB 2048

/* Fills ret, except its state, which the XML does not have, and its config members. Skips devices
 * whose PCI address does not fit, for example with a domain of more than 16 bits. The lists are in
 * the order of the XML; snapshot_seal() sorts pins and cells. The caller frees ret with
 * snapshot_domain_done(). -EBADMSG with an error text, or -ENOMEM, with ret untouched. */
int domain_parse(const char *text, SnapshotDomain *ret, Error *reterr);

/* Replaces the config members of a running domain by those of its persistent definition, config.
 * Devices that both definitions have are left out, but not CPUs that both have. Copies from config.
 * -ENOMEM, with some of the members filled. */
int domain_set_config(SnapshotDomain *domain, const SnapshotDomain *config);
