/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/facts.h"

#include "agent/cycle/tracker-internal.h"

static const ReporterStatistics no_statistics;

void cycle_facts_look(const Tracker *tracker, const ClaimsOwed *owed, const char *owed_trouble,
                      CycleFacts *ret)
{
        const TrackerConfig *config = &tracker->config;
        const Cordon *cordon = tracker->maker.cordon;
        Claims *claims = tracker->maker.claims->claims;

        *ret = (CycleFacts){
                .status = &tracker->status,
                .statistics = tracker->reporter ? reporter_get_statistics(tracker->reporter)
                                                : &no_statistics,
                .driver = config->driver->name,
                .nova = tracker_view(tracker).nova,
                .snapshot = tracker->snapshot,
                .tree = tracker->tree,
                .devices = tracker_view(tracker).devices,
                .retained = tracker->maker.retained,
                .contest = &tracker->contest,
                .audit = auditor_get_state(tracker->auditor),
                .config_warnings = config->warnings,
                .claim_error = &tracker->maker.claims->error,
                .n_claims = claim_service_count(tracker->maker.claims),
                .n_disagreements = tracker->maker.claims->comparison.problems.n_items,
                .owed = *owed,
                .owed_trouble = owed_trouble,
                .host_cordoned = cordon_host_words(cordon),
                .devices_cordoned = cordon_device_words(cordon),
                .n_devices_cordoned = cordon_count_devices(cordon),
        };
        /* the last call: the view is borrowed until the next */
        if (claims && claims_host(claims, &ret->view, NULL) != 0)
                ret->view = NULL;
}
