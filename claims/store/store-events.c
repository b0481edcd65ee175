/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Events in rows beside the claims. Each is written in the transaction of its cause. */

#include "base/clock.h"
#include "claims/store/store-internal.h"

/* The author of an event that this program itself caused. */
static const EventAuthor own = { .uid = -1 };

/* Deletes old events after each EVENTS_LOT-th new one, since to look for them each time costs more.
 * An event with a higher number than a young one stays, since the clock can be set back. */
static int trim(Claims *claims, uint64_t now_usec, Error *reterr)
{
        if (sqlite3_last_insert_rowid(claims->sqlite->db) % EVENTS_LOT != 0)
                return 0;
        return store_run(claims, STATEMENT_TRIM_EVENTS,
                         VALUES(EVENTS_MAX, now_usec - MIN(now_usec, EVENTS_AGE_USEC)), reterr);
}

int store_note_claim(Claims *claims, int64_t id, const EventNote *note, uint64_t usec,
                     Error *reterr)
{
        const EventAuthor *by = note->by ? note->by : &own;
        int r = store_run(claims, STATEMENT_NOTE_CLAIM,
                          VALUES(id, usec, note->kind, by->uid, by->text, note->reason), reterr);

        return r < 0 ? r : trim(claims, usec, reterr);
}

int store_forget_events(Claims *claims, int64_t claim, Error *reterr)
{
        return store_run(claims, STATEMENT_FORGET_EVENTS, VALUES(claim), reterr);
}

int claims_note(Claims *claims, const EventNote *note, Error *reterr)
{
        const EventAuthor *by = note->by ? note->by : &own;
        uint64_t now = clock_usec(CLOCK_REALTIME);
        char cut[CLAIM_TEXT_MAX + 1];
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_NOTE,
                              VALUES(now, note->kind, by->uid, by->text, note->claim,
                                     note->consumer ? note->consumer->text : "", note->device,
                                     claim_cut_text(note->reason, cut)),
                              reterr);
        if (r == 0)
                r = trim(claims, now, reterr);
        return store_end(claims, r, reterr);
}

int claims_last_event(Claims *claims, int64_t *ret, Error *reterr)
{
        return store_get_integer(claims, STATEMENT_LAST_EVENT, NO_VALUES, ret, reterr);
}

static int add_event(void *list, int64_t key, void *row)
{
        Event *event;

        if (event_list_add(list, &event) < 0)
                return -ENOMEM;
        *event = *(Event *)row;
        return 0;
}

int claims_list_events(Claims *claims, int64_t before, EventList *ret, Error *reterr)
{
        _cleanup_(event_list_done) EventList list = { 0 };
        int r = store_each(claims, STATEMENT_LIST_EVENTS, VALUES(before, EVENTS_LOT), add_event,
                           &list, reterr);

        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(list);
        return 0;
}
