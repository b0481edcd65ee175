/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl tree --svg": the host as a picture, as lstopo draws one. Cells with their memory,
 * cores and CPUs, the devices near them, how much of each inventory is used, and in the colour of
 * each guest what it holds: CPUs that it is pinned to, memory that is bound to a cell, mediated
 * devices, PCI functions. Pure: the same documents make the same bytes. */

#include <jansson.h>

#include "ctl/print/page.h"
#include "drivers/host/snapshot.h"

/* tree: formats/tree-json.h; claims: ctl/print/claims.h, or NULL. */
void ctl_draw(const Snapshot *snapshot, const json_t *tree, const json_t *claims, CtlPage *page);
