/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The D-Bus service org.computeagent.Agent1 (agent/bus-interface.h,
 * systemd/org.computeagent.Agent1.xml).
 *
 * Translates between the bus and the tracker and claims; decides nothing. Reading is free; a method
 * that changes something is for root and the daemon's own user. Without a system bus, or when it
 * goes away, the daemon runs on: the connection is tried again every BUS_RETRY_USEC. Main thread
 * only. */

#include <systemd/sd-event.h>

#include "agent/claim-service.h"
#include "agent/tracker.h"

#define BUS_RETRY_USEC (30 * USEC_PER_SEC)

typedef struct BusService BusService;

/* Borrowed, must outlive the service. */
typedef struct BusConfig {
        Tracker *tracker;
        ClaimService *claims;
        Uuid root;
        const char *driver; /* its name */
} BusConfig;

/* Never fails for want of a bus. -ENOMEM and what sd-event says. */
int bus_service_new(BusService **ret, sd_event *event, const BusConfig *config);
BusService *bus_service_free(BusService *service);
DEFINE_CLEANUP(BusService *, bus_service_free);

/* The tracker's status or the claims changed: tells those who watch the properties. */
void bus_service_changed(BusService *service);
