/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The methods that compare Placement, claims and guests. They answer when the cycle that does it
 * has ended. */

#include <systemd/sd-bus.h>

#include "agent/tracker.h"

/* Negative: nothing will be answered by itself. */
int bus_audit(sd_bus_message *call, Tracker *tracker, bool heal);
