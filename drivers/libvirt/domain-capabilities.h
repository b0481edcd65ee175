/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's domain capabilities XML: what guests of one architecture and machine type may have.
 * Pure: text in, struct out. */

#include "drivers/host/snapshot.h"

/* ret is released with snapshot_emulator_done(). -EBADMSG with words, -ENOMEM. */
int domain_capabilities_parse(const char *text, SnapshotEmulator *ret, Error *reterr);
