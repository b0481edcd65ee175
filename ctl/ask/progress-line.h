/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One line on a terminal with the progress of the agent, while computectl waits for its reply. */

#include <systemd/sd-bus.h>

#include "base/error.h"
#include "base/progress.h"
#include "ctl/print/page.h"

/* Formats "reshape: gathering 12/40 [=======> ]", cut at the width of the style (0: 80 columns)
 * and at size. The bar appears only if the requests are counted and the line has space for it.
 * Pure. */
void ctl_progress_format(const char *kind, const Progress *progress, const CtlStyle *style,
                         char *line, size_t size);

/* Sends a call and waits for its reply, with that line on standard error if it is a terminal. The
 * caller owns the reply. Returns the results of sd_bus_call(); a failure in this process can leave
 * error unset. timeout_usec 0: the default of the bus, without a line. */
int ctl_progress_call(sd_bus *bus, sd_bus_message *m, uint64_t timeout_usec, sd_bus_error *error,
                      sd_bus_message **ret_reply);
