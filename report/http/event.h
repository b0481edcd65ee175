/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Helpers for an event loop. Inline; never block. */

#include <systemd/sd-event.h>

#include "base/macros.h"

/* Returns the time of the last wake-up of the loop by that clock. */
static inline uint64_t event_now_usec(sd_event *event, clockid_t clock)
{
        uint64_t usec = 0;

        sd_event_now(event, clock, &usec);
        return usec;
}

/* Adds a deferred source, which is off until a caller enables it (SD_EVENT_ONESHOT). -errno. */
static inline int event_add_deferred(sd_event *event, sd_event_source **ret,
                                     sd_event_handler_t handler, void *userdata)
{
        int r = sd_event_add_defer(event, ret, handler, userdata);

        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}
