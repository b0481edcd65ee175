/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The document "status" and the properties of org.computeagent.Agent1. The properties are those
 * values that a client can follow without reading a document. Main thread; the document blocks on
 * the disk. */

#include <jansson.h>
#include <systemd/sd-bus.h>

#include "agent/bus/bus.h"
#include "agent/bus/operations.h"
#include "agent/placing/queue.h"

/* The properties: P(D-Bus type, name, flags) */
#define CONSTANT SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES  SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define BUS_PROPERTIES(P)                \
        P(u, InterfaceVersion, CONSTANT) \
        P(s, Version, CONSTANT)          \
        P(s, Nova, CHANGES)              \
        P(b, TreePublished, CHANGES)     \
        P(s, Operation, CHANGES)         \
        P(s, OperationPhase, CHANGES)    \
        P(t, OperationDone, CHANGES)     \
        P(t, OperationTotal, CHANGES)

enum {
#define P(type, property, flags) BUS_PROPERTY_##property,
        BUS_PROPERTIES(P)
#undef P
                _BUS_PROPERTY_MAX,
};

/* The sources of the document and of the properties; the userdata of bus_status_get_property(). */
typedef struct BusFacts {
        BusConfig config;
        BusOperations *operations;
        PendingWrites pending_writes;
        const char *pending_writes_error;
        bool is_old; /* pending writes might have changed: the next document counts again */
        struct {
                const char *text; /* a static string; NULL: the value is number */
                uint64_t number;
                bool changed; /* changed since the last signal */
        } values[_BUS_PROPERTY_MAX];
} BusFacts;

/* Gets a property, as an sd-bus getter. */
int bus_status_get_property(sd_bus *bus, const char *path, const char *interface,
                            const char *property, sd_bus_message *reply, void *userdata,
                            sd_bus_error *error);

/* Sends PropertiesChanged with each property that is not constant and differs from its value at the
 * last signal, or differed from it at a read since. Returns -ENOMEM or an error of sd-bus. */
int bus_status_signal(BusFacts *facts, sd_bus *bus);

/* Makes the document "status" (STATUS_FORMAT), which the caller owns.
 * systemd/org.computeagent.Agent1.xml describes its members. Returns -ENOMEM on failure; error is
 * never set. */
int bus_status_describe(BusFacts *facts, json_t **ret, sd_bus_error *error);
