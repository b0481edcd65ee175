/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads libvirt's domain XML: the host's CPUs, memory and devices that a guest has. Pure: text in,
 * struct out. The elements that count are listed in tests/lint/domain-schema.py, beside all others
 * of libvirt's schema that name a part of the host. */

#include "drivers/host/snapshot.h"

#define DOMAIN_VCPUS_MAX             4096 /* of one guest, what libvirt's own drivers stay below */
#define DOMAIN_CELLS_MAX             1024
#define DOMAIN_HUGE_PAGE_DEFAULT_KIB 2048

/* Fills ret, except for its state, which the XML does not have, and for its config fields.
 * Skips devices whose PCI domain has more than 16 bits. The caller frees ret with
 * snapshot_domain_done(). Returns -EBADMSG with words, or -ENOMEM. */
int domain_parse(const char *text, SnapshotDomain *ret, Error *reterr);

/* Replaces the config fields of a running domain: config is its persistent definition, parsed.
 * Copies from config. Returns -ENOMEM with some of the fields filled. */
int domain_set_config(SnapshotDomain *domain, const SnapshotDomain *config);
