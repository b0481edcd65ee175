/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The methods that take the host or a device out of use, and give it back. They answer when the
 * cycle that reports it has ended. */

#include <systemd/sd-bus.h>

#include "agent/bus/gate.h"
#include "agent/cycle/tracker.h"
#include "agent/tree/cordon.h"

/* Cordon(s device, s reason), or Uncordon(s device). */
int bus_cordon(sd_bus_message *call, const BusGate *gate, Cordon *cordon, Tracker *tracker,
               ClaimService *claims, const Uuid *root, sd_bus_error *error);
int bus_uncordon(sd_bus_message *call, const BusGate *gate, Cordon *cordon, Tracker *tracker,
                 ClaimService *claims, const Uuid *root, sd_bus_error *error);

/* UndoRetire() */
int bus_undo_retire(sd_bus_message *call, const BusGate *gate, Cordon *cordon, Tracker *tracker,
                    ClaimService *claims, sd_bus_error *error);
