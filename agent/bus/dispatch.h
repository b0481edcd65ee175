/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Our interfaces on the bus, and who serves a call to them. sd-bus would do it by itself, but at
 * the moment when it reads a call, and GetManagedObjects in one go: here a call is served when its
 * turn has come (agent/bus/gate.h). sd-bus still knows the interfaces, for signals and Introspect.
 *
 * Main thread only. */

#include "agent/bus/gate.h"

/* Writes the paths of the next lot of objects as an enumerator of sd-bus does, from *cursor on (0
 * at first), and moves it; an empty lot is the end. */
typedef int (*BusEnumerate)(void *userdata, int64_t *cursor, char ***ret);

/* An interface of one object, or (find) of all below a path. */
typedef struct BusPlace {
        const char *path, *interface;
        const sd_bus_vtable *vtable;
        sd_bus_object_find_t find;           /* NULL: the object is path itself */
        BusEnumerate enumerate;              /* for GetManagedObjects; NULL: not listed */
        sd_bus_node_enumerator_t introspect; /* for Introspect; NULL: not listed */
        void *userdata;
} BusPlace;

#define BUS_PLACES_MAX 8

/* What GetManagedObjects answers to somebody without rights: a message stands before all that
 * follow it on its way, and takes the bus longer than us. */
#define BUS_OBJECTS_MAX 2000

typedef struct BusDispatch {
        BusGate *gate;
        const char *manager; /* path of the object that has the ObjectManager */
        BusPlace places[BUS_PLACES_MAX];
        size_t n_places;
} BusDispatch;

/* Puts an interface on the bus (all borrowed). At most BUS_PLACES_MAX. What sd-bus says. */
int bus_dispatch_add(BusDispatch *dispatch, sd_bus *bus, const BusPlace *place);

/* A BusServe; userdata is a BusDispatch. */
int bus_dispatch_serve(sd_bus_message *call, void *userdata, sd_bus_error *error);
