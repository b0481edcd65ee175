/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is asked of a tracker beside a cycle; and what agent/cycle/retire.h is to know, from where
 * the tracker has it. */

#include "agent/cycle/retire.h"
#include "agent/cycle/tracker-internal.h"

int tracker_judge_retirement(Tracker *tracker, bool *ret_refused, Error *reterr)
{
        _cleanup_(allocations_freep) Allocations *consumers = NULL, *others = NULL;
        _cleanup_(retirement_done) Retirement retirement = { 0 };
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        Claims *store = claim_service_get(tracker->config.claims);
        RetireFacts facts = { .remote = reporter_tree(tracker->reporter),
                              .root = &tracker->config.root,
                              .claims = &claims,
                              .snapshot = tracker->snapshot };
        MadeTree own = { 0 }; /* what the host would have if Placement had nothing */
        int r;

        reporter_take_gathered(tracker->reporter, &consumers, &others);
        facts.consumers = consumers;
        r = store ? claims_list(store, CLAIMS_LIVING, NULL, &claims, reterr) : -ENODATA;
        if (r != 0)
                return error_setf(reterr, ENODATA, "The claims of this host cannot be read");
        r = tree_maker_make_empty(&tracker->maker, tracker->snapshot, NULL, false, &own, reterr);
        if (r < 0)
                return r;
        facts.own = own.tree;
        r = retire_judge(&facts, &retirement);
        provider_tree_free(own.tree);
        if (r < 0)
                return error_oom(reterr);
        *ret_refused = retirement_is_refused(&retirement);
        tracker->retirement = retirement_to_json(&retirement, false);
        return tracker->retirement ? 0 : error_oom(reterr);
}

int tracker_retire(Tracker *tracker, TrackerRetire retire, const EventAuthor *by, TrackerDone done,
                   void *userdata)
{
        int r = tracker_sync(tracker, done, userdata);

        if (r < 0)
                return r;
        tracker->retire_asked = retire;
        tracker->retire_by = *by;
        tracker->retire_error = ERROR_NULL;
        json_decref(tracker->retirement);
        tracker->retirement = NULL;
        return 0;
}

int tracker_reshape(Tracker *tracker, ReshapeKind kind, const EventAuthor *by, TrackerDone done,
                    void *userdata)
{
        int r = tracker_sync(tracker, done, userdata);

        if (r >= 0)
                reshape_control_ask(tracker->reshape, kind, by);
        return r;
}

int tracker_audit(Tracker *tracker, bool heal, const EventAuthor *by, TrackerDone done,
                  void *userdata)
{
        int r = tracker_sync(tracker, done, userdata);

        if (r >= 0)
                auditor_ask(tracker->auditor, heal, by);
        return r;
}
