/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What happened, in rows beside the claims: each is written in the transaction of its cause. */

#include "base/clock.h"
#include "claims/store/store-internal.h"

static int64_t uid_of(const EventNote *note)
{
        return note->by ? note->by->uid : -1;
}

static const char *author_of(const EventNote *note)
{
        return note->by ? note->by->text : "";
}

/* Now and then: what is one too many costs less than to look for it each time. The clock may be set
 * back: then what is newer by its number stays, too. */
static int trim(Claims *claims, uint64_t now_usec, Error *reterr)
{
        if (sqlite3_last_insert_rowid(claims->sqlite->db) % EVENTS_LOT != 0)
                return 0;
        return store_run(claims, STATEMENT_TRIM_EVENTS, reterr, "ii", (int64_t)EVENTS_MAX,
                         (int64_t)(now_usec - MIN(now_usec, EVENTS_AGE_USEC)));
}

int store_note_claim(Claims *claims, int64_t id, const EventNote *note, uint64_t usec,
                     Error *reterr)
{
        int r = store_run(claims, STATEMENT_NOTE_CLAIM, reterr, "iisiss", id, (int64_t)usec,
                          note->kind, uid_of(note), author_of(note), note->reason);

        return r < 0 ? r : trim(claims, usec, reterr);
}

int store_forget_events(Claims *claims, int64_t claim, Error *reterr)
{
        return store_run(claims, STATEMENT_FORGET_EVENTS, reterr, "i", claim);
}

int claims_note(Claims *claims, const EventNote *note, Error *reterr)
{
        uint64_t now = clock_usec(CLOCK_REALTIME);
        char cut[CLAIM_TEXT_MAX + 1];
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_NOTE, reterr, "isisisss", (int64_t)now, note->kind,
                              uid_of(note), author_of(note), note->claim,
                              note->consumer ? note->consumer->text : "", note->device,
                              claim_cut_text(note->reason, cut));
        if (r == 0)
                r = trim(claims, now, reterr);
        return store_end(claims, r, reterr);
}

int claims_last_event(Claims *claims, int64_t *ret, Error *reterr)
{
        return store_get_integer(claims, STATEMENT_LAST_EVENT, ret, reterr);
}

static int add_event(Claims *claims, sqlite3_stmt *statement, void *list, Error *reterr)
{
        Event *event;

        if (event_list_add(list, &event) < 0)
                return error_oom(reterr);
        return store_read(claims, statement, 0, "", reterr, "iniiSSSSSSS", &event->id, &event->usec,
                          &event->uid, &event->claim, &event->kind, &event->author,
                          &event->consumer, &event->guest, &event->allocations, &event->devices,
                          &event->reason);
}

int claims_list_events(Claims *claims, int64_t before, EventList *ret, Error *reterr)
{
        _cleanup_(event_list_done) EventList list = { 0 };
        int r = store_each(claims, STATEMENT_LIST_EVENTS, add_event, &list, reterr, "ii", before,
                           (int64_t)EVENTS_LOT);

        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(list);
        return 0;
}
