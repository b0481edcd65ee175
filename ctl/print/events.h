/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl history": the document "events" (formats/event-json.h) as a table. Pure. */

#include "ctl/print/json.h"
#include "ctl/print/page.h"

/* Keeps what is of that claim (by its number), guest (name or uuid), consumer, provider or device
 * (libvirt's name, address, uuid of the mdev). */
void ctl_events_find(json_t *document, const char *what);

/* */
void ctl_events_print(const json_t *document, CtlPage *page);
