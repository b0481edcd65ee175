/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The D-Bus service org.computeagent.Agent1 (formats/interface.h,
 * systemd/org.computeagent.Agent1.xml).
 *
 * Translates between the bus and the tracker and claims; decides nothing. Reading is free; a method
 * that changes something is for whom agent/bus/caller.h allows it. Without a system bus, or when it
 * goes away, the daemon runs on: the connection is tried again every BUS_RETRY_USEC. Main thread
 * only. */

#include <systemd/sd-event.h>

#include "agent/cycle/tracker.h"
#include "agent/placing/queue.h"

#define BUS_RETRY_USEC (30 * USEC_PER_SEC)
/* What changes within that is signalled together. */
#define BUS_SIGNAL_USEC (50 * USEC_PER_MSEC)
/* Each time it is asked whether the bus still answers, and what lies unread there of all that was
 * sent. When that is more than so many bytes, or no answer comes within half a minute, the
 * connection is made anew. */
#define BUS_LOOK_USEC   (10 * USEC_PER_SEC)
#define BUS_UNREAD_LAST (96 * 1024 * 1024)

typedef struct BusService BusService;

/* Borrowed, must outlive the service. */
typedef struct BusConfig {
        Tracker *tracker;
        ClaimService *claims;
        ClaimQueue *queue;
        Cordon *cordon;
        Uuid root;
        const char *hook; /* config_hook_to_text() */
        /* Reads the configuration again. 0: the new settings are in force, and their first cycle is
         * to come; else a negative errno with words. */
        int (*reload)(void *userdata, Error *reterr);
        void *userdata; /* of reload */
} BusConfig;

/* Never fails for want of a bus. -ENOMEM and what sd-event says. */
int bus_service_new(BusService **ret, sd_event *event, const BusConfig *config);
BusService *bus_service_free(BusService *service);
DEFINE_CLEANUP(BusService *, bus_service_free);

/* Other ones take the place of those of the config. */
void bus_service_set_tracker(BusService *service, Tracker *tracker, const char *hook);

/* The tracker's status or the claims changed: signals it to those who watch the properties. */
void bus_service_changed(BusService *service);
