/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The part of libvirt's domain XML that says where on the host a guest runs: <vcpu cpuset>,
 * <cputune>, <numatune>, <memoryBacking> and the cells of <cpu>. Pure. */

#include "drivers/host/snapshot.h"
#include "drivers/libvirt/xml.h"

#define DOMAIN_VCPUS_MAX             4096 /* of one guest, what libvirt's own drivers stay below */
#define DOMAIN_CELLS_MAX             1024
#define DOMAIN_HUGE_PAGE_DEFAULT_KIB 2048

/* root is <domain>. Fills cpus, pins, memory_cells, cells and page_kib, not yet in order
 * (snapshot_seal()). What speaks of a guest's cell that is not there is left out. -EBADMSG with
 * words, -ENOMEM; what was filled by then stays the caller's to free. */
int domain_read_placement(const XmlNode *root, SnapshotDomain *domain, Error *reterr);
