/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is asked of a tracker beside a cycle. */

#include "agent/cycle/tracker-internal.h"

int tracker_sync(Tracker *tracker, TrackerDone done, void *userdata)
{
        return tracker_ask_cycle(tracker, done, userdata, false);
}

int tracker_publish(Tracker *tracker, bool full, TrackerDone done, void *userdata)
{
        int r = tracker_ask_cycle(tracker, done, userdata, true);

        tracker->full |= full && r >= 0;
        return r;
}

int tracker_retire(Tracker *tracker, RetireKind kind, const EventAuthor *by, TrackerDone done,
                   void *userdata)
{
        int r = tracker_sync(tracker, done, userdata);

        if (r >= 0)
                retirement_ask(&tracker->retirement, kind, by);
        return r;
}

int tracker_reshape(Tracker *tracker, ReshapeKind kind, const EventAuthor *by, TrackerDone done,
                    void *userdata)
{
        int r = tracker_sync(tracker, done, userdata);

        if (r >= 0)
                reshape_control_ask(tracker->reshape, kind, by);
        return r;
}

int tracker_audit(Tracker *tracker, AuditorWish wish, const Uuid *consumer, const EventAuthor *by,
                  TrackerDone done, void *userdata)
{
        int r = tracker_sync(tracker, done, userdata);

        if (r >= 0)
                auditor_ask(tracker->auditor, wish, consumer, by);
        return r;
}

int tracker_look(Tracker *tracker, Error *reterr)
{
        return host_poll_begin(tracker->poll, DRIVER_POLL_GUESTS, reterr);
}

void tracker_dismiss(Tracker *tracker, const char *why)
{
        error_setf(&tracker->cycle_error, ECANCELED, "%s", why);
        cycle_waiters_begin(&tracker->waiters);
        cycle_waiters_notify(&tracker->waiters, tracker, &tracker->cycle_error, false);
}

void tracker_sync_cancel(Tracker *tracker, void *userdata)
{
        cycle_waiters_cancel(&tracker->waiters, userdata);
}
