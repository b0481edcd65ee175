/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/status-text.h"

#include <inttypes.h>

static const char *sync_words(const TrackerStatus *status)
{
        static const char *const words[] = {
                [SYNC_STANDALONE] = "standalone",
                [SYNC_PENDING] = "not published yet",
                [SYNC_SYNCED] = "Placement is equal to the host",
                [SYNC_STALE] = "Placement is not equal to the host",
                [SYNC_OFFLINE] = "Placement cannot be used",
                [SYNC_LEFT] = "nova-compute tells Placement of this host",
        };

        if (status->sync_state == SYNC_SYNCED && status->hypervisor_error.code)
                return "Placement is equal to the host as it was read last";
        return words[status->sync_state];
}

static const char *trouble_words(const StatusFacts *facts)
{
        const TrackerStatus *status = facts->status;
        const Error *error = status->hypervisor_error.code ? &status->hypervisor_error
                             : facts->claim_error->code    ? facts->claim_error
                             : status->sync_error.code     ? &status->sync_error
                             : status->device_error.code   ? &status->device_error
                                                           : &status->part_error;

        return error->code ? error->text : facts->debt_trouble;
}

const char *status_text(const StatusFacts *facts, char *text, size_t size)
{
        const char *trouble = trouble_words(facts);
        const uint64_t n_owed = claim_debts_sum(&facts->debts);
        char owed[48] = "";

        if (n_owed > 0)
                snprintf(owed, sizeof(owed), ", %" PRIu64 " not told yet", n_owed);
        else if (trouble == facts->debt_trouble)
                trouble = "";
        snprintf(text, size, "%s; %zu provider(s), %zu claim(s)%s%s%s", sync_words(facts->status),
                 facts->n_providers, facts->n_claims, owed, trouble[0] ? ". " : "", trouble);
        return text;
}
