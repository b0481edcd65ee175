/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The interfaces of the agent, and the search of the handler of a call. sd-bus would run the
 * handler when it reads the call; here that happens at the turn of the call (agent/bus/gate.h). sd-
 * bus knows the interfaces for Introspect. Main thread only. */

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

/* Adds an interface to the bus (all borrowed); at most BUS_PLACES_MAX. Returns the errors of sd-
 * bus. */
int bus_dispatch_add(BusDispatch *dispatch, sd_bus *bus, const BusPlace *place);

/* Serves a call of the gate; userdata is a BusDispatch. */
int bus_dispatch_serve(sd_bus_message *call, void *userdata, sd_bus_error *error);
