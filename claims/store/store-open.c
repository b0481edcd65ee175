/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Opens and closes the store. */

#include "claims/store/claim-file.h"
#include "claims/store/store-internal.h"

void store_close(Claims *claims)
{
        store_drop_turn(claims);
        store_finalize_statements(claims);
        claims->sqlite = sqlite_close(claims->sqlite);
}

static int read_events(Claims *claims, Error *reterr)
{
        int64_t before = INT64_MAX;
        size_t n;

        do {
                _cleanup_(event_list_done) EventList list = { 0 };
                int r = claims_list_events(claims, before, &list, reterr);

                if (r < 0)
                        return r;
                n = list.n_events;
                before = n > 0 ? list.events[n - 1].id : before;
        } while (n > 0);
        return 0;
}

static int read_owed(Claims *claims, Error *reterr)
{
        StoreUnplaced claim;
        ClaimRemoval removal;
        ClaimMove move;
        int r;

        for (int64_t after = 0;; after = removal.id)
                if ((r = claims_next_removal(claims, after, NULL, &removal, reterr)) != 0)
                        break;
        for (int64_t after = 0; r >= 0; after = move.id, claim_move_done(&move))
                if ((r = claims_next_move(claims, after, &move, reterr)) != 0)
                        break;
        for (int64_t after = 0; r >= 0; after = claim.id, store_unplaced_done(&claim))
                if ((r = store_next_unplaced(claims, after, &claim, reterr)) != 0)
                        break;
        return MIN(r, 0);
}

/* Reads each row that a later call can read, so that damage shows when the file is opened. */
static int read_everything(Claims *claims, Error *reterr)
{
        _cleanup_(claimed_devices_done) ClaimedDevices devices = { 0 };
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = store_load_view(claims, reterr);

        claims->view = host_view_free(claims->view);
        if (r >= 0)
                r = claims_list(claims, CLAIMS_ALL, NULL, &list, reterr);
        if (r >= 0)
                r = claims_list_identities(claims, &devices, reterr);
        if (r >= 0)
                r = read_owed(claims, reterr);
        return r < 0 ? r : read_events(claims, reterr);
}

static int verify(Sqlite *sqlite, void *context, Error *reterr)
{
        Claims *claims = context;
        int r;

        claims->sqlite = sqlite;
        r = store_check_statements(claims, reterr);
        if (r == 0)
                r = read_everything(claims, reterr);
        store_finalize_statements(claims);
        claims->sqlite = NULL;
        return r;
}

/* SQLite's user_version, which no schema uses: 1 while the database is unread. A file without a
 * host and claims is new: its maker can have died before it wrote this. */
static int load_unread(Claims *claims, Error *reterr)
{
        static const char is_empty[] = "SELECT NOT EXISTS (SELECT 1 FROM resource_providers)"
                                       " AND NOT EXISTS (SELECT 1 FROM claims)";
        int64_t empty = 0, unread = 0;
        int r = sqlite_query_integer(claims->sqlite, is_empty, &empty, reterr);

        if (r == 0)
                r = sqlite_query_integer(claims->sqlite, "PRAGMA user_version", &unread, reterr);
        if (r == 0 && empty && !unread)
                r = sqlite_exec(claims->sqlite, "PRAGMA user_version = 1", reterr);
        claims->is_unread = unread || empty;
        return r;
}

bool claims_is_unread(const Claims *claims)
{
        return claims->is_unread;
}

int claims_note_read(Claims *claims, Error *reterr)
{
        int r = claims->is_unread ? sqlite_exec(claims->sqlite, "PRAGMA user_version = 0", reterr)
                                  : 0;

        if (r == 0)
                claims->is_unread = false;
        return r;
}

int store_open(Claims *claims, const char *path, uint64_t busy_usec, Error *reterr)
{
        int opened = claim_file_open(&claims->sqlite, path, busy_usec, verify, claims, reterr);
        int r = opened < 0 ? opened : load_unread(claims, reterr);

        return r < 0 ? r : opened;
}
