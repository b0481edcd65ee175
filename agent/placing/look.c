/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/placing/look.h"

#include <errno.h>

#include "base/clock.h"
#include "claims/fit/device-choice.h"

#define LOOK_PATIENCE_USEC (10 * USEC_PER_SEC) /* less than who asks over D-Bus waits */
#define TIMER_ACCURACY     (100 * USEC_PER_MSEC)

bool claim_look_is_due(const ClaimTask *task)
{
        const HostFacts *facts = task->shared->config.service->facts;

        return task->shared->config.look && task->request && !task->look.was_done && facts &&
               devices_are_asked(facts, &task->request->resources);
}

void claim_look_fail(ClaimTask *task, const char *why)
{
        Error error = ERROR_NULL;

        error_setf(&error, EBUSY, "Which devices guests have cannot be read: %s", why);
        claim_task_end(task, -EBUSY, &error);
}

static int on_look_late(sd_event_source *source, uint64_t usec, void *userdata)
{
        claim_look_fail(userdata, "the hypervisor does not answer");
        return 0;
}

void claim_look_begin(ClaimTask *task)
{
        Error error = ERROR_NULL;
        int r;

        task->look.waits = true;
        task->look.begun_usec = clock_usec(CLOCK_MONOTONIC);
        r = task->shared->config.look(task->shared->config.userdata, &error);
        if (r >= 0)
                r = sd_event_add_time_relative(task->shared->config.event, &task->timer,
                                               CLOCK_MONOTONIC, LOOK_PATIENCE_USEC, TIMER_ACCURACY,
                                               on_look_late, task);
        if (r < 0)
                claim_look_fail(task, error_text(&error, r));
}
