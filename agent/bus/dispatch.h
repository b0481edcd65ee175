/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the handler of a call among the interfaces of the agent, and runs it. sd-bus alone would
 * run a handler when it reads the call. Here, the handler runs at the turn of the call
 * (agent/bus/gate.h). The owner also registers the interfaces with sd-bus, for Introspect and for
 * the signal PropertiesChanged, whose values sd-bus reads from the getters. Main thread only. */

#include "agent/bus/gate.h"

/* An interface of an object. */
typedef struct BusPlace {
        const char *path, *interface;
        const sd_bus_vtable *vtable;
        void *userdata; /* argument of its handlers, getters and setters */
} BusPlace;

#define BUS_PLACES_MAX 2

/* The interfaces of the bus. Everything is borrowed. */
typedef struct BusDispatch {
        BusGate *gate;
        BusPlace places[BUS_PLACES_MAX];
        size_t n_places;
} BusDispatch;

/* Serves a call of the gate; userdata is a BusDispatch. Returns the result of an sd-bus handler. */
int bus_dispatch_serve(sd_bus_message *call, void *userdata, sd_bus_error *error);
