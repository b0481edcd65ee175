/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What everybody here asks of an event loop. Inline; never blocks. */

#include <systemd/sd-event.h>

#include "base/macros.h"

/* When the loop woke up last, by that clock. */
static inline uint64_t event_now_usec(sd_event *event, clockid_t clock)
{
        uint64_t usec = 0;

        sd_event_now(event, clock, &usec);
        return usec;
}

/* A deferred source that is off until somebody wants it (SD_EVENT_ONESHOT). -errno. */
static inline int event_add_deferred(sd_event *event, sd_event_source **ret,
                                     sd_event_handler_t handler, void *userdata)
{
        int r = sd_event_add_defer(event, ret, handler, userdata);

        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}
