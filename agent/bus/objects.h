/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Providers, devices and claims as objects on the bus, for org.freedesktop.DBus.ObjectManager
 * (systemd/org.computeagent.Agent1.xml says what they have).
 *
 * What is read is what there is at that moment; what is told are differences, collected until the
 * loop runs again and then sent as one signal for each object, however much became of it. Providers
 * and devices are kept as they were told last. Without a connection nothing is told, and nothing is
 * made up for. Main thread only. */

#include <systemd/sd-bus.h>

#include "agent/bus/dispatch.h"
#include "agent/guests/database.h"

typedef struct BusObjects BusObjects;

/* claims is borrowed. -ENOMEM, and what sd-event says. */
int bus_objects_new(BusObjects **ret, sd_event *event, ClaimService *claims);
BusObjects *bus_objects_free(BusObjects *objects);
DEFINE_CLEANUP(BusObjects *, bus_objects_free);

/* Puts the objects on a connection (borrowed), to which signals go from now on; they leave it when
 * it is closed, which bus_objects_detach() must be called before. */
int bus_objects_attach(BusObjects *objects, BusDispatch *dispatch, sd_bus *bus);
void bus_objects_detach(BusObjects *objects);

/* The end of a cycle: what of the host differs from the last time is told. tree and snapshot may be
 * NULL: not known yet. */
void bus_objects_update(BusObjects *objects, const ProviderTree *tree, const Snapshot *snapshot);

/* What became of a claim. */
void bus_objects_note_claim(BusObjects *objects, ClaimEvent event, const Claim *claim);
