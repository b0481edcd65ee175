/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Our interfaces on the bus, and who serves a call to them. sd-bus would do it by itself, but at
 * the moment when it reads a call: here a call is served when its turn has come (agent/bus/gate.h).
 * sd-bus still knows the interfaces, for Introspect.
 *
 * Main thread only. */

#include "agent/bus/gate.h"

/* The interface of an object. */
typedef struct BusPlace {
        const char *path, *interface;
        const sd_bus_vtable *vtable;
        void *userdata; /* of its handlers and getters */
} BusPlace;

#define BUS_PLACES_MAX 2

typedef struct BusDispatch {
        BusGate *gate;
        BusPlace places[BUS_PLACES_MAX];
        size_t n_places;
} BusDispatch;

/* Puts an interface on the bus (all borrowed). At most BUS_PLACES_MAX. What sd-bus says. */
int bus_dispatch_add(BusDispatch *dispatch, sd_bus *bus, const BusPlace *place);

/* Serves a call of the gate; userdata is a BusDispatch. */
int bus_dispatch_serve(sd_bus_message *call, void *userdata, sd_bus_error *error);
