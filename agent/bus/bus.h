/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The D-Bus service org.computeagent.Agent1 (formats/interface.h,
 * systemd/org.computeagent.Agent1.xml).
 *
 * Translates between the bus and the tracker and claims. Every user can call Describe() and
 * Explain() and read properties. The agent's other methods require the rights that
 * agent/bus/caller.h checks. Only root and the agent's own user can set a property. Without a
 * system bus, or without the bus name, the daemon keeps running and tries to connect every
 * BUS_RETRY_USEC. Main thread only. */

#include <systemd/sd-event.h>

#include "agent/cycle/tracker.h"
#include "agent/placing/queue.h"

/* Interval between attempts to connect to the bus. */
#define BUS_RETRY_USEC (30 * USEC_PER_SEC)
/* Delay of signals after the first change: all changes of a document, or of the properties, within
 * this time share one signal. */
#define BUS_SIGNAL_USEC (50 * USEC_PER_MSEC)
/* Interval of the check whether the bus answers, and how many bytes that the agent sent are unread
 * there. The agent reconnects if more than BUS_UNREAD_LAST bytes are unread, or if no answer comes
 * within 30 seconds. */
#define BUS_LOOK_USEC   (10 * USEC_PER_SEC)
#define BUS_UNREAD_LAST (96 * 1024 * 1024)

typedef struct BusService BusService;

/* Parts of the daemon that the service uses. All pointers are borrowed and must outlive the
 * service; bus_service_set_tracker() replaces tracker and hook. */
typedef struct BusConfig {
        Tracker *tracker;
        ClaimService *claims;
        ClaimQueue *queue;
        Cordon *cordon;
        Uuid root;
        const char *hook; /* [hook] as text: the member hook of Config */
        /* Reloads the configuration. Returns 0 if the new settings are in force; their first cycle
         * has not run yet. Otherwise returns a negative errno with words. */
        int (*reload)(void *userdata, Error *reterr);
        void *userdata; /* argument of reload */
} BusConfig;

/* Creates the service and begins to connect to the system bus. The service becomes the watcher of
 * the claim service. A missing bus is not an error. Returns -ENOMEM or an error of sd-event. */
int bus_service_new(BusService **ret, sd_event *event, const BusConfig *config);
/* Writes what is queued for the bus, which can block, and closes the connection. Calls that still
 * wait get no answer. service can be NULL. Returns NULL. */
BusService *bus_service_free(BusService *service);
DEFINE_CLEANUP(BusService *, bus_service_free);

/* Replaces the tracker and the hook setting after a reload. All documents count as changed, but
 * bus_service_changed() must be called to signal them. */
void bus_service_set_tracker(BusService *service, Tracker *tracker, const char *hook);

/* Notes that the tracker's status, the properties or the claims might have changed. cordons:
 * cordons changed, too. The due signals are sent after BUS_SIGNAL_USEC. Without a connection then,
 * they wait for the next call of this function. */
void bus_service_changed(BusService *service, bool cordons);
