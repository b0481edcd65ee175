/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl tree --svg": the host as a picture, similar to that of lstopo. The picture has cells
 * with their memory, cores and CPUs, the devices of each cell, and the usage of each inventory. The
 * colour of a guest marks its pinned CPUs, its memory that is bound to a cell, its mediated devices
 * and its PCI functions (draw.c has the limits). Pure: the same documents make the same bytes. */

#include <jansson.h>

#include "ctl/print/page.h"
#include "drivers/host/snapshot.h"

/* Draws the picture on the page. tree: a document of formats/tree-json.h. claims: a document of
 * ctl/print/claims.h with living claims alone, or NULL. Sets page->failed if memory ran out; the
 * picture is then incomplete or missing. */
void ctl_draw(const Snapshot *snapshot, const json_t *tree, const json_t *claims, CtlPage *page);
