/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes claims: makes, places, completes, confirms, renews and ends them, sets their write states,
 * and moves their amounts. Also writes, trims and lists events. Each call that writes, but for
 * store_note_claim() and store_promote(), is one transaction, or in a group one part of its
 * transaction. A failure undoes this transaction or part. The insert, end or reshape of a claim
 * writes an event in the same transaction. If a pending claim ends, its event is deleted instead,
 * because no caller got the claim. A write that rests on the view compares the generation of every
 * provider that it fitted amounts to ("compare and update"). The end of a claim, and the move of
 * its amounts, increment the generations of its providers without a comparison. Allocations are
 * deleted and inserted, because triggers count them; only their consumer is updated
 * (store-placement.c).
 *
 * Tests: tests/unit/claims/test-claims.c tests/unit/claims/test-claims-events.c
 *   tests/unit/claims/test-claims-move.c */

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "claims/store/frame.h"

ROW(event, Event, "event", COLUMN("id", Event, id), COLUMN("usec", Event, usec),
    COLUMN("uid", Event, uid), COLUMN("claim_id", Event, claim), COLUMN("kind", Event, kind),
    COLUMN("author", Event, author), COLUMN("consumer", Event, consumer),
    COLUMN("guest", Event, guest), COLUMN("allocations", Event, allocations),
    COLUMN("devices", Event, devices), COLUMN("reason", Event, reason));

/* The amount of a class that a claim has for one request group. The text is owned. */
typedef struct ShareRow {
        char *group;
        uint64_t used;
} ShareRow;

static void share_row_done(ShareRow *share)
{
        free(share->group);
}

ROW(share, ShareRow, "an allocation", COLUMN("a.request_group", ShareRow, group),
    COLUMN("a.used", ShareRow, used));

/* The author of events without an author: this program. */
static const EventAuthor own = { .uid = -1 };

/* Deletes old events after each EVENTS_LOT-th new one, since a search each time costs more. The age
 * deletes no event with a higher id than a recent one, since the clock can be set back. */
static int trim(Claims *claims, uint64_t now_usec, Error *reterr)
{
        if (sqlite3_last_insert_rowid(claims->sqlite->db) % EVENTS_LOT != 0)
                return 0;
        return store_run(claims, STATEMENT_TRIM_EVENTS,
                         VALUES(EVENTS_MAX, now_usec - MIN(now_usec, EVENTS_AGE_USEC)), CLAIM_DONE,
                         reterr);
}

int store_note_claim(Claims *claims, int64_t id, const EventNote *note, uint64_t usec,
                     Error *reterr)
{
        const EventAuthor *by = note->by ? note->by : &own;
        char cut[CLAIM_TEXT_MAX + 1];
        int r = store_run(
                claims, STATEMENT_NOTE_CLAIM,
                VALUES(id, usec, note->kind, by->uid, by->text, claim_cut_text(note->reason, cut)),
                CLAIM_DONE, reterr);

        return r < 0 ? r : trim(claims, usec, reterr);
}

static int forget_events(Claims *claims, int64_t claim, Error *reterr)
{
        return store_run(claims, STATEMENT_FORGET_EVENTS, VALUES(claim), CLAIM_DONE, reterr);
}

/* Writes the time in ISO 8601 and UTC, the form of created_at in the specification. */
static void format_time(uint64_t usec, char text[48])
{
        time_t seconds = (time_t)(usec / USEC_PER_SEC);
        char date[32] = "";
        struct tm utc;

        if (gmtime_r(&seconds, &utc))
                strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
        snprintf(text, 48, "%s.%06" PRIu64 "Z", date, usec % USEC_PER_SEC);
}

/* Increments the generation of each provider that the fit uses. Returns CLAIM_E_RACE at the first
 * stored generation that is not the view's; the caller then rolls back. */
static int bump_providers(Claims *claims, const Fit *fit, Error *reterr)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const HostProvider *provider = &claims->view->providers[fit->pieces[i].provider];
                bool done = false;
                int r;

                for (size_t j = 0; j < i && !done; j++)
                        done = fit->pieces[j].provider == fit->pieces[i].provider;
                if (done)
                        continue;
                r = store_run(claims, STATEMENT_BUMP_PROVIDER,
                              VALUES(provider->id, provider->generation), CLAIM_E_RACE, reterr);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* Inserts the pieces of a fit as allocations. request NULL: all of them belong to the group without
 * a suffix. */
static int insert_allocations(Claims *claims, int64_t id, const Uuid *consumer,
                              const ResourceRequest *request, const Fit *fit, Error *reterr)
{
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                int r = store_run(claims, STATEMENT_INSERT_ALLOCATION,
                                  VALUES(claims->view->providers[piece->provider].id,
                                         consumer->text, piece->resource_class, piece->amount, id,
                                         request ? request->groups[piece->group].suffix : ""),
                                  CLAIM_DONE, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

static uint64_t sum_pieces(const Fit *fit, const char *resource_class)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < fit->n_pieces; i++)
                if (strcmp(fit->pieces[i].resource_class, resource_class) == 0)
                        sum += fit->pieces[i].amount;
        return sum;
}

/* Sets the sums of a claim, and marks it as placed. Returns CLAIM_E_NOT_FOUND if the claim has
 * ended, or is placed already and must not be (again). */
static int fill(Claims *claims, int64_t id, uint64_t vcpus, uint64_t memory_mb, uint64_t disk_gb,
                bool again, Error *reterr)
{
        return store_run(claims, STATEMENT_FILL_CLAIM, VALUES(id, vcpus, memory_mb, disk_gb, again),
                         CLAIM_E_NOT_FOUND, reterr);
}

/* Calls fill() with the sums of the claim's fit. PCPU counts as vcpus, as the schema says. */
static int fill_from(Claims *claims, int64_t id, const Fit *fit, Error *reterr)
{
        return fill(claims, id, sum_pieces(fit, "VCPU") + sum_pieces(fit, "PCPU"),
                    sum_pieces(fit, "MEMORY_MB"), sum_pieces(fit, "DISK_GB"), true, reterr);
}

/* Inserts the row of a claim and yields its id. Returns CLAIM_E_CONFLICT if the consumer has a
 * claim of this role. */
static int insert_row(Claims *claims, const StoreClaim *claim, int64_t *ret_id, Error *reterr)
{
        const ClaimRequest *request = claim->request;
        const Claim row = {
                .host = claims->host,
                .node = claims->node,
                .resize_target = request->resize_target,
                .created_usec = claim->created_usec,
                .expires_usec = claim->expires_usec,
                .project_id = (char *)request->project_id,
                .user_id = (char *)request->user_id,
                .request = (char *)claim->request_text,
                .boot_id = claims->boot_id,
                .state = claim->confirmed ? CLAIM_STATE_CONFIRMED : CLAIM_STATE_CLAIMED,
                .consumer_type = (char *)request->consumer_type,
                .write_state = claim->write_state,
                .process = (char *)request->process,
        };
        char created_at[48];
        int r;

        format_time(claim->created_usec, created_at);
        r = store_insert_row(claims, STATEMENT_INSERT_CLAIM, &row,
                             VALUES(request->consumer.text, created_at, claim->reported.generation,
                                    claim->reported.elsewhere.text, claim->reported.until_sec),
                             reterr);
        if (r == -EEXIST)
                return CLAIM_E_CONFLICT;
        if (r < 0)
                return r;
        *ret_id = sqlite3_last_insert_rowid(claims->sqlite->db);
        return 0;
}

/* Marks a whole device of a claim as unclean, within a transaction (store-unclean.c). */
static int mark_unclean(Claims *claims, int64_t claim, const ClaimDevice *device, Error *reterr)
{
        return store_run(claims, STATEMENT_MARK_UNCLEAN,
                         VALUES(device->address, device->name,
                                device->identity ? device->identity : "", claim,
                                clock_usec(CLOCK_REALTIME), unclean_state_to_text(UNCLEAN_HELD), "",
                                ""),
                         CLAIM_DONE, reterr);
}

/* Inserts devices, and marks those that must be cleaned later. Returns CLAIM_E_CONFLICT if a living
 * claim has one of them already. */
static int insert_devices(Claims *claims, int64_t id, const ClaimDevice *devices, size_t n,
                          Error *reterr)
{
        for (size_t i = 0; i < n; i++) {
                int r = store_insert_row(claims, STATEMENT_INSERT_DEVICE, &devices[i], VALUES(id),
                                         reterr);

                if (r < 0)
                        return r == -EEXIST ? CLAIM_E_CONFLICT : r;
                if (devices[i].must_be_cleaned)
                        r = mark_unclean(claims, id, &devices[i], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Inserts cells, guest CPUs and held host CPUs. Returns CLAIM_E_CONFLICT if a living claim, also
 * this one, holds one of these host CPUs. */
static int write_layout(Claims *claims, int64_t id, const Layout *layout, Error *reterr)
{
        int r;

        for (size_t i = 0; i < layout->n_cells; i++)
                if ((r = store_insert_row(claims, STATEMENT_INSERT_CELL, &layout->cells[i],
                                          VALUES(id), reterr)) < 0)
                        return r;
        for (size_t i = 0; i < layout->n_cpus; i++)
                if ((r = store_insert_row(claims, STATEMENT_INSERT_CPU, &layout->cpus[i],
                                          VALUES(id), reterr)) < 0)
                        return r;
        CPU_SET_FOREACH(cpu, &layout->held) {
                r = store_run(claims, STATEMENT_INSERT_PIN, VALUES(cpu, id), CLAIM_DONE, reterr);
                if (r < 0)
                        return r == -EEXIST ? CLAIM_E_CONFLICT : r;
        }
        return 0;
}

static int has_layout(Claims *claims, int64_t id, bool *ret, Error *reterr)
{
        int64_t has;
        int r = store_get_integer(claims, STATEMENT_HAS_CELLS, VALUES(id), &has, reterr);

        if (r == 0)
                *ret = has != 0;
        return r;
}

/* Writes all parts of a claim and its event, within a transaction. Yields the claim as stored. */
static int insert_claim(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                        Error *reterr)
{
        int64_t id;
        int r = insert_row(claims, claim, &id, reterr);

        if (r != 0)
                return r;
        r = bump_providers(claims, fit, reterr);
        if (r == 0)
                r = insert_allocations(claims, id, &claim->request->consumer,
                                       &claim->request->resources, fit, reterr);
        if (r == 0)
                r = insert_devices(claims, id, claim->devices, claim->n_devices, reterr);
        if (r == 0 && claim->layout)
                r = write_layout(claims, id, claim->layout, reterr);
        if (r == 0)
                r = fill_from(claims, id, fit, reterr);
        if (r == 0)
                r = store_note_claim(
                        claims, id,
                        &(EventNote){ .kind = claim->confirmed ? EVENT_ADOPTED : EVENT_CLAIMED,
                                      .by = claim->request->by,
                                      .reason = claim->reason },
                        claim->created_usec, reterr);
        return r == 0 ? claims_get(claims, id, ret, reterr) : r;
}

/* Adds the amounts of an inserted fit to the view. Like the insert, increments the generation of
 * each provider once, even if several classes of the fit are on it. Does nothing for a claim with
 * cells or held CPUs; the next store_load_view() then reads again. */
static void follow_insert(Claims *claims, const Fit *fit, const Layout *layout)
{
        HostView *view = claims->view;

        if (layout && (layout->n_cells > 0 || cpu_set_count(&layout->held) > 0))
                return;
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                bool done = false;

                for (size_t j = 0; j < i && !done; j++)
                        done = fit->pieces[j].provider == piece->provider;
                view->providers[piece->provider].generation += !done;
                if (resources_add(&view->providers[piece->provider].used, piece->resource_class,
                                  piece->amount) < 0) {
                        view->by_us = -1; /* the next store_load_view() reads the host again */
                        return;
                }
        }
        view->by_us = (int64_t)(uint32_t)sqlite3_total_changes(claims->sqlite->db);
}

/* Returns true within a group if no change followed the last read or follow_insert() of the view.
 * Then store_insert() calls follow_insert(), so that the next claim needs no read
 * (store-host.c). */
static bool is_view_current(const Claims *claims)
{
        return claims->in_group && claims->view &&
               claims->view->by_us == (int64_t)(uint32_t)sqlite3_total_changes(claims->sqlite->db);
}

int store_insert(Claims *claims, const StoreClaim *claim, const Fit *fit, Claim **ret,
                 Error *reterr)
{
        _cleanup_(claim_freep) Claim *stored = NULL;
        bool current = is_view_current(claims);
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = insert_claim(claims, claim, fit, &stored, reterr);
        r = store_end(claims, r, reterr);
        if (r == 0 && current)
                follow_insert(claims, fit, claim->layout);
        if (r == 0)
                *ret = TAKE_PTR(stored);
        return r;
}

int store_place(Claims *claims, const StoreUnplaced *claim, const Fit *fit, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = fill(claims, claim->id, claim->vcpus, claim->memory_mb, claim->disk_gb, false,
                         reterr);
        if (r == 0)
                r = bump_providers(claims, fit, reterr);
        if (r == 0)
                r = insert_allocations(claims, claim->id, &claim->consumer, NULL, fit, reterr);
        if (r == 0)
                r = insert_devices(claims, claim->id, claim->devices, claim->n_devices, reterr);
        return store_end(claims, r, reterr);
}

int store_complete(Claims *claims, int64_t id, const Uuid *consumer, const Fit *fit, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = fill_from(claims, id, fit, reterr);
        if (r == 0)
                r = bump_providers(claims, fit, reterr);
        /* The providers that the claim no longer uses change, too. */
        if (r == 0)
                r = store_run(claims, STATEMENT_BUMP_OF_CLAIM, VALUES(id), CLAIM_DONE, reterr);
        if (r == 0)
                r = store_run(claims, STATEMENT_DELETE_ALLOCATIONS, VALUES(id), CLAIM_DONE, reterr);
        if (r == 0)
                r = insert_allocations(claims, id, consumer, NULL, fit, reterr);
        return store_end(claims, r, reterr);
}

int store_promote(Claims *claims, const Uuid *consumer, Error *reterr)
{
        return store_run(claims, STATEMENT_PROMOTE, VALUES(consumer->text), CLAIM_DONE, reterr);
}

int store_not_found(int64_t id, Error *reterr)
{
        error_setf(reterr, ENOENT, "There is no active claim %" PRIi64, id);
        return CLAIM_E_NOT_FOUND;
}

/* Explains the failure of a call that needs an unconfirmed claim. Returns CLAIM_E_CONFLICT for a
 * confirmed claim, else CLAIM_E_NOT_FOUND, or the negative errno of the read, with words. */
static int explain_missing(Claims *claims, int64_t id, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = claims_get(claims, id, &claim, reterr);

        if (r < 0)
                return r;
        if (r == 0 && claim->state == CLAIM_STATE_CONFIRMED) {
                error_setf(reterr, EEXIST, "Claim %" PRIi64 " is confirmed", id);
                return CLAIM_E_CONFLICT;
        }
        return store_not_found(id, reterr);
}

int claims_confirm(Claims *claims, int64_t id, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_CONFIRM, VALUES(id), CLAIM_E_NOT_FOUND, reterr);
        if (r == 0)
                r = claims_get(claims, id, &claim, reterr);
        if (r == 0)
                r = store_promote(claims, &claim->consumer, reterr);
        r = store_end(claims, r, reterr);
        return r == CLAIM_E_NOT_FOUND ? store_not_found(id, reterr) : r;
}

int store_set_request(Claims *claims, int64_t id, const char *request, Error *reterr)
{
        return store_run_alone(claims, STATEMENT_SET_REQUEST, VALUES(id, request),
                               CLAIM_E_NOT_FOUND, reterr);
}

int store_set_process(Claims *claims, int64_t id, const char *process, Error *reterr)
{
        return store_run_alone(claims, STATEMENT_SET_PROCESS, VALUES(id, process),
                               CLAIM_E_NOT_FOUND, reterr);
}

int claims_extend(Claims *claims, int64_t id, uint64_t expires_usec, Error *reterr)
{
        int r = store_run_alone(claims, STATEMENT_EXTEND, VALUES(id, expires_usec),
                                CLAIM_E_NOT_FOUND, reterr);

        return r == CLAIM_E_NOT_FOUND ? explain_missing(claims, id, reterr) : r;
}

/* Adds the layout to a claim without cells; else only its held CPUs. */
static int add_layout(Claims *claims, int64_t id, const Layout *layout, Error *reterr)
{
        const Layout held = { .held = layout->held };
        bool has;
        int r = has_layout(claims, id, &has, reterr);

        return r < 0 ? r : write_layout(claims, id, has ? &held : layout, reterr);
}

static int drop_pins(Claims *claims, int64_t id, const CpuSet *cpus, Error *reterr)
{
        CPU_SET_FOREACH(cpu, cpus) {
                int r = store_run(claims, STATEMENT_DELETE_PIN, VALUES(cpu, id), CLAIM_DONE,
                                  reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

int store_set_identity(Claims *claims, int64_t id, const char *address, const char *identity,
                       Error *reterr)
{
        return store_run_alone(claims, STATEMENT_SET_IDENTITY, VALUES(id, address, identity), 0,
                               reterr);
}

int store_find_providers(Claims *claims, int64_t id, Error *reterr)
{
        return store_run_alone(claims, STATEMENT_FIND_PROVIDERS, VALUES(id), CLAIM_E_NOT_FOUND,
                               reterr);
}

int store_renew(Claims *claims, int64_t id, const ClaimDevice *devices, size_t n_devices,
                const Layout *layout, const CpuSet *dropped, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_run(claims, STATEMENT_SET_BOOT, VALUES(id, claims->boot_id),
                              CLAIM_E_NOT_FOUND, reterr);
        if (r == 0)
                r = insert_devices(claims, id, devices, n_devices, reterr);
        if (r == 0 && layout)
                r = add_layout(claims, id, layout, reterr);
        if (r == 0)
                r = drop_pins(claims, id, dropped, reterr);
        return store_end(claims, r, reterr);
}

/* Ends a claim within a transaction. A pending claim leaves no event, since no caller got it.
 * Returns CLAIM_E_NOT_FOUND if no living claim has the id, or with only_claimed if it is
 * confirmed. */
static int end_claim(Claims *claims, int64_t id, bool only_claimed, const EventNote *note,
                     uint64_t ended_usec, Error *reterr)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        char cut[CLAIM_TEXT_MAX + 1];
        int r = claims_get(claims, id, &claim, reterr);

        if (r == 0)
                r = store_run(
                        claims, STATEMENT_END_CLAIM,
                        VALUES(id, ended_usec, claim_cut_text(note->reason, cut), only_claimed),
                        CLAIM_E_NOT_FOUND, reterr);
        if (r != 0)
                return r;
        r = claim->state == CLAIM_STATE_PENDING
                    ? forget_events(claims, id, reterr)
                    : store_note_claim(claims, id, note, ended_usec, reterr);
        /* Increment before the delete, which removes the allocations as well. */
        if (r == 0)
                r = store_run(claims, STATEMENT_BUMP_OF_CLAIM, VALUES(id), CLAIM_DONE, reterr);
        if (r == 0)
                r = store_run(claims, STATEMENT_DELETE_CLAIM, VALUES(id), CLAIM_DONE, reterr);
        if (r == 0 && claim->n_devices > 0)
                r = store_run(claims, STATEMENT_NOTE_END_UNCLEAN, VALUES(id, ended_usec),
                              CLAIM_DONE, reterr);
        if (r == 0)
                r = store_promote(claims, &claim->consumer, reterr);
        if (r == 0)
                r = store_run(claims, STATEMENT_TRIM_HISTORY, VALUES(CLAIM_HISTORY_MAX), CLAIM_DONE,
                              reterr);
        return r;
}

/* Ends a claim in one transaction. only_claimed: a confirmed claim stays, and the result is
 * CLAIM_E_NOT_FOUND. Without only_claimed the claim ends in any state. */
static int release(Claims *claims, int64_t id, bool only_claimed, const char *reason, Error *reterr)
{
        const EventNote note = { .kind = EVENT_RELEASED, .by = claims->author, .reason = reason };
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = end_claim(claims, id, only_claimed, &note, clock_usec(CLOCK_REALTIME), reterr);
        return store_end(claims, r, reterr);
}

int claims_release(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        int r = release(claims, id, false, reason, reterr);

        return r == CLAIM_E_NOT_FOUND ? store_not_found(id, reterr) : r;
}

int claims_abort(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        int r = release(claims, id, true, reason, reterr);

        return r == CLAIM_E_NOT_FOUND ? explain_missing(claims, id, reterr) : r;
}

/* Returns r, with words if no claim of that id has that write state. */
static int note_state(int r, int64_t id, ClaimWriteState write_state, Error *reterr)
{
        if (r == CLAIM_E_NOT_FOUND)
                error_setf(reterr, ENOENT, "There is no claim %" PRIi64 " that is %s", id,
                           claim_write_state_to_text(write_state));
        return r;
}

/* Changes the write state. Without reported, or if its "elsewhere" is empty, the reported columns
 * stay. */
static int set_write_state(Claims *claims, int64_t id, ClaimWriteState from, ClaimWriteState to,
                           const ClaimReported *reported, Error *reterr)
{
        static const ClaimReported as_before = { 0 };

        reported = reported ? reported : &as_before;
        return store_run(claims, STATEMENT_SET_WRITE_STATE,
                         VALUES(id, claim_write_state_to_text(from), claim_write_state_to_text(to),
                                reported->generation, reported->elsewhere.text,
                                reported->until_sec),
                         CLAIM_E_NOT_FOUND, reterr);
}

int claims_set_write_state(Claims *claims, int64_t id, ClaimWriteState from, ClaimWriteState to,
                           const ClaimReported *reported, Error *reterr)
{
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = set_write_state(claims, id, from, to, reported, reterr);
        return note_state(store_end(claims, r, reterr), id, from, reterr);
}

/* Removes the marks that a withdrawn claim made: no guest had the devices (store-unclean.c). The
 * mark of a device that was unclean before stays. */
static int forget_unclean(Claims *claims, int64_t claim, Error *reterr)
{
        return store_run(claims, STATEMENT_FORGET_UNCLEAN, VALUES(claim), CLAIM_DONE, reterr);
}

/* The write state becomes NONE first, so that the trigger leaves no removal. */
int claims_withdraw(Claims *claims, int64_t id, const char *reason, Error *reterr)
{
        const EventNote note = { .kind = EVENT_RELEASED, .reason = reason };
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = set_write_state(claims, id, CLAIM_WRITE_UNANSWERED, CLAIM_WRITE_NONE, NULL,
                                    reterr);
        if (r == 0)
                r = end_claim(claims, id, false, &note, clock_usec(CLOCK_REALTIME), reterr);
        if (r == 0)
                r = forget_events(claims, id, reterr);
        if (r == 0)
                r = forget_unclean(claims, id, reterr);
        return note_state(store_end(claims, r, reterr), id, CLAIM_WRITE_UNANSWERED, reterr);
}

/* Yields the id of the expired claim that expired first, 0 if there is none. */
static int next_expired(Claims *claims, uint64_t now_usec, int64_t *ret_id, Error *reterr)
{
        return store_get_integer(claims, STATEMENT_NEXT_EXPIRED, VALUES(now_usec), ret_id, reterr);
}

/* Ends expired claims one by one, within a transaction. */
static int expire_all(Claims *claims, uint64_t now_usec, uint64_t *n, Error *reterr)
{
        const EventNote note = { .kind = EVENT_EXPIRED, .reason = CLAIM_EXPIRED };
        int64_t id;
        int r;

        while ((r = next_expired(claims, now_usec, &id, reterr)) == 0 && id != 0) {
                r = end_claim(claims, id, true, &note, now_usec, reterr);
                if (r < 0)
                        return r;
                if (r > 0)
                        return sqlite_damaged(claims->sqlite, "a listed claim does not exist",
                                              reterr);
                (*n)++;
        }
        return r;
}

int claims_expire(Claims *claims, uint64_t now_usec, uint64_t *ret_n, Error *reterr)
{
        int64_t id;
        uint64_t n = 0;
        /* Usually no claim is expired, and then no write lock and no fsync is needed. */
        int r = next_expired(claims, now_usec, &id, reterr);

        if (r == 0 && id != 0) {
                r = store_begin(claims, reterr);
                if (r == 0)
                        r = expire_all(claims, MIN(now_usec, INT64_MAX), &n, reterr);
                r = store_end(claims, r, reterr);
        }
        if (r == 0)
                *ret_n = n;
        return r;
}

int claims_probe(Claims *claims, Error *reterr)
{
        int r = store_begin(claims, reterr);

        /* Adds 1 to a number and subtracts it again. SQLite would not write the page of a row for
         * an update without a change. */
        if (r == 0)
                r = store_run(claims, STATEMENT_PROBE, VALUES(1), CLAIM_DONE, reterr);
        if (r == 0)
                r = store_run(claims, STATEMENT_PROBE, VALUES(-1), CLAIM_DONE, reterr);
        return store_end(claims, r, reterr);
}

/* Moves of amounts. Allocations are deleted and inserted, never updated, because the sums of usage
 * depend on that. An allocation keeps its request group. Devices of the claim move with their
 * amount to another provider, if the name of one of the two providers names them. */

static int read_used(Claims *claims, int64_t claim, const Uuid *provider,
                     const char *resource_class, const char *group, uint64_t *ret, Error *reterr)
{
        int64_t used;
        int r = store_get_integer(claims, STATEMENT_READ_PART,
                                  VALUES(claim, provider->text, resource_class, group), &used,
                                  reterr);

        if (r == 0)
                *ret = (uint64_t)used;
        return r;
}

/* Replaces the amount of a living claim for one provider, class and group. 0 removes the row.
 * Returns -EINVAL for another amount if the host has no such provider. */
static int write_used(Claims *claims, int64_t claim, const Uuid *provider,
                      const char *resource_class, const char *group, uint64_t used, Error *reterr)
{
        int r = store_run(claims, STATEMENT_DELETE_PART,
                          VALUES(claim, provider->text, resource_class, group), CLAIM_DONE, reterr);

        if (r < 0 || used == 0)
                return r;
        r = store_run(claims, STATEMENT_INSERT_PART,
                      VALUES(claim, provider->text, resource_class, group, used), CLAIM_E_NOT_FOUND,
                      reterr);
        return r == CLAIM_E_NOT_FOUND
                       ? error_setf(reterr, EINVAL, "The host has no provider %s", provider->text)
                       : r;
}

/* Moves up to amount from the claim's first allocation, by request group, of the old provider and
 * class. Yields the moved amount. Returns CLAIM_E_NOT_FOUND if there is no such allocation. */
static int move_share(Claims *claims, const StoreShift *shift, uint64_t amount, uint64_t *ret_moved,
                      Error *reterr)
{
        _cleanup_(share_row_done) ShareRow share = { 0 };
        uint64_t there, part;
        int r = store_get(claims, STATEMENT_READ_SHARE,
                          VALUES(shift->claim, shift->from.text, shift->from_class), &share,
                          reterr);

        if (r != 0)
                return r;
        part = MIN(share.used, amount);
        r = read_used(claims, shift->claim, &shift->to, shift->to_class, share.group, &there,
                      reterr);
        if (r == 0)
                r = write_used(claims, shift->claim, &shift->from, shift->from_class, share.group,
                               share.used - part, reterr);
        if (r == 0)
                r = write_used(claims, shift->claim, &shift->to, shift->to_class, share.group,
                               there + part, reterr);
        if (r == 0 && !uuid_equal(&shift->from, &shift->to))
                r = store_run(
                        claims, STATEMENT_SHIFT_DEVICES,
                        VALUES(shift->claim, shift->from.text, shift->to.text, share.group, part),
                        CLAIM_DONE, reterr);
        *ret_moved = part;
        return r;
}

/* Moves the amount of one shift, allocation by allocation, until it is moved or the claim has no
 * more of it. A claim that has ended has none. */
static int move_one(Claims *claims, const StoreShift *shift, Error *reterr)
{
        uint64_t left = shift->amount, moved;
        int r = store_run(claims, STATEMENT_BUMP_OF_CLAIM, VALUES(shift->claim), CLAIM_DONE,
                          reterr);

        while (r == 0 && left > 0) {
                r = move_share(claims, shift, left, &moved, reterr);
                if (r == CLAIM_E_NOT_FOUND)
                        break;
                left -= r == 0 ? moved : 0;
        }
        if (r < 0)
                return r;
        return store_run(claims, STATEMENT_BUMP_OF_CLAIM, VALUES(shift->claim), CLAIM_DONE, reterr);
}

int store_write_host(Claims *claims, const HostView *wanted, const StoreShift *shifts,
                     size_t n_shifts, Error *reterr)
{
        const EventNote note = { .kind = EVENT_RESHAPED,
                                 .reason = "the providers of the host were reshaped" };
        int r = store_begin(claims, reterr);

        if (r == 0)
                r = store_write_changes(claims, wanted, reterr);
        for (size_t i = 0; r == 0 && i < n_shifts; i++) {
                r = move_one(claims, &shifts[i], reterr);
                /* The caller gives all shifts of one claim as neighbours. */
                if (r == 0 && (i + 1 == n_shifts || shifts[i + 1].claim != shifts[i].claim))
                        r = store_note_claim(claims, shifts[i].claim, &note,
                                             clock_usec(CLOCK_REALTIME), reterr);
        }
        return store_end(claims, r, reterr);
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
                              CLAIM_DONE, reterr);
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

int claims_list_releases(Claims *claims, uint64_t after_usec, EventList *ret, Error *reterr)
{
        _cleanup_(event_list_done) EventList list = { 0 };
        int r = store_each(claims, STATEMENT_LIST_RELEASES, VALUES(after_usec), add_event, &list,
                           reterr);

        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(list);
        return 0;
}
