/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One line on a terminal that says how far the agent has come, while computectl waits for it. */

#include <systemd/sd-bus.h>

#include "base/error.h"
#include "base/progress.h"
#include "ctl/print/page.h"

/* "reshape: gathering 12/40 [=======>             ]", cut at the width of the style; the bar only
 * where requests are counted and there is room for it. Pure. */
void ctl_progress_format(const char *kind, const Progress *progress, const CtlStyle *style,
                         char *line, size_t size);

/* Sends a call and waits for its answer, with that line on standard error when it is a terminal.
 * reply is owned by the caller; results are those of sd_bus_call(). */
int ctl_progress_call(sd_bus *bus, sd_bus_message *m, uint64_t timeout_usec, sd_bus_error *error,
                      sd_bus_message **ret_reply);
