/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/status-text.h"

static const char *sync_words(SyncState state)
{
        static const char *const words[] = {
                [SYNC_STANDALONE] = "standalone",
                [SYNC_PENDING] = "not published yet",
                [SYNC_SYNCED] = "Placement is equal to the host",
                [SYNC_STALE] = "Placement is not equal to the host",
                [SYNC_OFFLINE] = "Placement cannot be used",
        };

        return words[state];
}

const char *status_text(const TrackerStatus *status, const Error *claim_error, size_t n_providers,
                        size_t n_claims, char *text, size_t size)
{
        const Error *trouble = status->hypervisor_error.code ? &status->hypervisor_error
                               : claim_error->code           ? claim_error
                               : status->sync_error.code     ? &status->sync_error
                                                             : &status->device_error;

        snprintf(text, size, "%s; %zu provider(s), %zu claim(s)%s%s",
                 sync_words(status->sync_state), n_providers, n_claims, trouble->code ? ". " : "",
                 trouble->text);
        return text;
}
