/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What others want to know of a tracker. Changes nothing. */

#include "agent/cycle/tracker-internal.h"

NovaMode tracker_get_nova(const Tracker *tracker)
{
        return tracker->config.reporter ? tracker->config.reporter->nova : NOVA_NONE;
}

const AuditorState *tracker_get_audit(const Tracker *tracker)
{
        return auditor_get_state(tracker->auditor);
}

const Retirement *tracker_get_retirement(const Tracker *tracker)
{
        return &tracker->retirement;
}

const ReshapeState *tracker_get_reshape(const Tracker *tracker)
{
        return reshape_control_get_state(tracker->reshape);
}

const TrackerStatus *tracker_get_status(const Tracker *tracker)
{
        return &tracker->status;
}

const ProviderTree *tracker_get_sharing(const Tracker *tracker)
{
        return tracker->reporter ? sharing_get(reporter_get_sharing(tracker->reporter)) : NULL;
}

const ProviderTree *tracker_get_tree(const Tracker *tracker)
{
        return tracker->tree;
}

const DeviceLedger *tracker_get_devices(const Tracker *tracker)
{
        const DeviceWatch *watch = tracker->maker.device_watch;

        return watch ? device_watch_get_ledger(watch) : NULL;
}

void tracker_get_progress(const Tracker *tracker, Progress *ret)
{
        *ret = (Progress){ .phase = tracker->phase == PHASE_IDLE      ? "waiting"
                                    : tracker->phase == PHASE_POLLING ? "polling"
                                                                      : "working" };
        if (tracker->reporter &&
            (tracker->phase == PHASE_REFRESHING || tracker->phase == PHASE_PUBLISHING))
                reporter_get_progress(tracker->reporter, ret);
        else if (tracker->reporter && tracker->phase == PHASE_AUDITING)
                auditor_get_progress(tracker->auditor, ret);
}

bool tracker_is_starting(const Tracker *tracker)
{
        return reshape_control_is_starting(tracker->reshape);
}

int tracker_cancel_reshape(Tracker *tracker)
{
        return reshape_control_cancel(tracker->reshape);
}

const Snapshot *tracker_get_snapshot(const Tracker *tracker)
{
        return tracker->snapshot;
}

Session *tracker_get_session(const Tracker *tracker)
{
        return tracker->reporter ? reporter_get_session(tracker->reporter) : NULL;
}
