/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A comparison is due once for each poll, and again when an answer of Placement is wanted first.
 * Placement's answers count for one comparison alone, so they are freed at its end. Claims that
 * were touched since the poll began are remembered until the next one: the poll can have missed
 * their guests. */

#include "agent/guests/comparison.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/facts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/follow.h"

/* The clock */

ClockJump clock_watch_look(ClockWatch *watch, uint64_t real_usec, uint64_t boot_usec)
{
        uint64_t gap = boot_usec >= watch->boot_usec ? boot_usec - watch->boot_usec : 0;
        ClockJump jump = { .from_usec = watch->real_usec + gap,
                           .to_usec = real_usec,
                           .gap_usec = gap };
        bool first = watch->real_usec == 0;

        *watch = (ClockWatch){ .real_usec = real_usec, .boot_usec = boot_usec };
        if (first)
                return (ClockJump){ 0 };
        jump.by_usec = (int64_t)(jump.to_usec - jump.from_usec);
        if (jump.by_usec < (int64_t)CLOCK_JUMP_MIN_USEC &&
            jump.by_usec > -(int64_t)CLOCK_JUMP_MIN_USEC)
                return (ClockJump){ 0 };
        return jump;
}

bool clock_jump_is_before(const ClockJump *jump, uint64_t usec)
{
        uint64_t since = jump->to_usec > jump->gap_usec ? jump->to_usec - jump->gap_usec : 0;

        /* The clock has shown since..to_usec behind the jump, and no more than from_usec before. */
        return usec <= jump->from_usec && !(usec >= since && usec <= jump->to_usec);
}

uint64_t clock_jump_move(const ClockJump *jump, uint64_t usec)
{
        int64_t moved;

        if (__builtin_add_overflow((int64_t)MIN(usec, (uint64_t)INT64_MAX), jump->by_usec, &moved))
                return INT64_MAX;
        return moved > 0 ? (uint64_t)moved : 1;
}

/* Logs and reports the claims that ended at that moment. */
static void note_expired(ClaimService *service, uint64_t ended_usec)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(service->claims, CLAIMS_ENDED, NULL, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++) {
                const Claim *claim = list.claims[i];
                char id[24];

                if (claim->ended_usec != ended_usec)
                        continue;
                snprintf(id, sizeof(id), "%" PRId64, claim->id);
                log_event(LOG_NOTICE, NULL,
                          LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text),
                          "Released claim %s of %s: it was not confirmed in time.", id,
                          claim->consumer.text);
                claim_service_notify(service, CLAIM_EVENT_REMOVED, claim);
        }
}

/* Claims expire the same time after they were made, whatever the clock shows meanwhile. */
static void move_expiry(ClaimService *service, const ClockJump *jump)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = claims_list(service->claims, CLAIMS_LIVING, NULL, &list, NULL);

        for (size_t i = 0; r == 0 && i < list.n_claims; i++) {
                Claim *claim = list.claims[i];

                if (claim->state != CLAIM_STATE_CLAIMED || claim->expires_usec == 0 ||
                    (claim->id > service->comparison.known_id &&
                     !clock_jump_is_before(jump, claim->created_usec)))
                        continue;
                claim->expires_usec = clock_jump_move(jump, claim->expires_usec);
                if (claims_extend(service->claims, claim->id, claim->expires_usec, NULL) == 0)
                        claim_service_notify(service, CLAIM_EVENT_CHANGED, claim);
        }
}

static void move_memory(ClaimComparison *comparison, const ClockJump *jump)
{
        for (size_t i = 0; i < comparison->memory.n_items; i++) {
                ReconcileMissing *missing = &comparison->memory.items[i];

                missing->since_usec = clock_jump_move(jump, missing->since_usec);
                if (missing->asked_usec > 0)
                        missing->asked_usec = clock_jump_move(jump, missing->asked_usec);
        }
        for (size_t i = 0; i < comparison->n_touched; i++)
                comparison->touched[i].when_usec =
                        clock_jump_move(jump, comparison->touched[i].when_usec);
}

static void log_jump(const ClockJump *jump)
{
        bool forward = jump->by_usec > 0;

        log_event(LOG_NOTICE, MESSAGE_CLOCK_JUMPED, NULL,
                  "The clock of this host was set %s by %" PRIu64
                  " s. Claims expire when they would have expired without that.",
                  forward ? "forward" : "back",
                  (uint64_t)(forward ? jump->by_usec : -jump->by_usec) / USEC_PER_SEC);
}

static void follow_clock(ClaimService *service)
{
        const ClockJump jump = clock_watch_look(
                &service->comparison.clock, clock_usec(CLOCK_REALTIME), clock_usec(CLOCK_BOOTTIME));

        if (jump.by_usec != 0) {
                log_jump(&jump);
                move_memory(&service->comparison, &jump);
                move_expiry(service, &jump);
        }
        service->comparison.known_id = service->last_id;
}

static void expire(ClaimService *service, uint64_t usec)
{
        Error error = ERROR_NULL;
        uint64_t n = 0;
        int r = claims_expire(service->claims, usec, &n, &error);

        if (r != 0)
                log_debug("Claims could not be checked for expiry: %s", error_text(&error, r));
        if (n > 0)
                note_expired(service, usec);
        claim_service_note_step(service, r, &error);
}

/* Polls */

static void forget_touched(ClaimComparison *comparison)
{
        size_t n = 0;

        for (size_t i = 0; i < comparison->n_touched; i++)
                if (comparison->touched[i].when_usec >= comparison->facts.taken_usec)
                        comparison->touched[n++] = comparison->touched[i];
        comparison->n_touched = n;
}

/* Keeps a reference of both polls. Without memory all stays as it is, and false is returned. */
static bool set_polls(ClaimService *service, const Snapshot *snapshot, const Snapshot *guests)
{
        ClaimComparison *comparison = &service->comparison;
        HostFacts facts = { 0 };

        if (claim_facts_make(service->settings.driver, snapshot, guests, &facts) < 0) {
                log_warning(
                        "Out of memory: claims go on with the guests as they were before, ignoring.");
                return false;
        }
        snapshot_ref(snapshot);
        snapshot_ref(guests);
        claim_facts_done(&comparison->facts);
        snapshot_unref(comparison->snapshot);
        snapshot_unref(comparison->guests);
        comparison->snapshot = (Snapshot *)snapshot;
        comparison->guests = (Snapshot *)guests;
        comparison->facts = facts;
        forget_touched(comparison);
        service->facts = &comparison->facts;
        if (service->claims)
                claims_set_facts(service->claims, service->facts);
        return true;
}

void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot)
{
        bool known = snapshot == service->comparison.snapshot;

        if (known && !service->comparison.driver_is_new)
                return;
        if (!set_polls(service, snapshot, known ? service->comparison.guests : snapshot))
                return;
        service->comparison.driver_is_new = false;
        service->comparison.is_due = true;
}

void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot)
{
        if (service->comparison.snapshot && snapshot != service->comparison.guests)
                (void)set_polls(service, service->comparison.snapshot, snapshot);
}

static bool is_away(const ClaimComparison *comparison, const Uuid *guest)
{
        for (size_t i = 0; i < comparison->n_away; i++)
                if (uuid_equal(&comparison->away[i], guest))
                        return true;
        return false;
}

bool claim_service_has_guest(ClaimService *service, const Uuid *consumer)
{
        const HostDomain *domain =
                service->facts ? host_facts_find_domain(service->facts, consumer) : NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (!domain || !service->claims || service->comparison.snapshot->guests_unknown ||
            (service->settings.started_only && !domain->running))
                return false;
        return (domain->running || !is_away(&service->comparison, consumer)) &&
               claims_list(service->claims, CLAIMS_OF_GUEST, consumer->text, &list, NULL) == 0 &&
               list.n_claims == 0;
}

void claim_service_note_stopped(ClaimService *service, const Uuid *guest)
{
        HostFacts *facts = &service->comparison.facts;

        for (size_t i = 0; i < facts->n_domains; i++)
                if (uuid_equal(&facts->domains[i].uuid, guest))
                        facts->domains[i].running = false;
}

void claim_service_set_away(ClaimService *service, Uuid *guests, size_t n_guests)
{
        free(service->comparison.away);
        service->comparison.away = guests;
        service->comparison.n_away = n_guests;
}

/* Placement */

static void forget_answers(ClaimComparison *comparison)
{
        comparison->held = allocations_free(comparison->held);
        free(comparison->answers);
        comparison->answers = NULL;
        comparison->n_answers = 0;
        comparison->complete = comparison->absent = false;
        comparison->holding = allocations_free(comparison->holding);
}

static void add_answer(ClaimComparison *comparison, const Uuid *consumer, const Consumer *holding,
                       bool here)
{
        comparison->answers[comparison->n_answers++] =
                (PictureConsumer){ .consumer = *consumer, .holding = holding, .here = here };
}

static int order_answers(const void *a, const void *b)
{
        return uuid_order(&((const PictureConsumer *)a)->consumer,
                          &((const PictureConsumer *)b)->consumer);
}

void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding)
{
        ClaimComparison *comparison = &service->comparison;
        size_t n = asked->n_uuids + holding->n_consumers;
        const HostView *view;

        service->tree_is_absent = asked->absent;
        forget_answers(comparison);
        comparison->holding = holding;
        if (!service->claims || claims_host(service->claims, &view, NULL) != 0)
                return;
        comparison->answers = calloc(n + 1, sizeof(PictureConsumer));
        if (!comparison->answers)
                return;
        for (size_t i = 0; i < holding->n_consumers; i++)
                add_answer(
                        comparison, &holding->consumers[i]->uuid, holding->consumers[i],
                        claim_share_has(view, claims_node(service->claims), holding->consumers[i]));
        for (size_t i = 0; i < asked->n_uuids; i++)
                if (!allocations_find(holding, &asked->uuids[i]))
                        add_answer(comparison, &asked->uuids[i], NULL, false);
        if (comparison->n_answers > 1)
                qsort(comparison->answers, comparison->n_answers, sizeof(PictureConsumer),
                      order_answers);
        comparison->complete = asked->all;
        comparison->absent = asked->absent;
}

void claim_service_set_held(ClaimService *service, uint64_t stamp, Allocations *held)
{
        allocations_free(service->comparison.held);
        service->comparison.held = held;
        service->comparison.held_stamp = stamp;
}

static bool has_follower(ClaimService *service)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(service->claims, CLAIMS_LIVING, NULL, &list, NULL) != 0)
                return false;
        for (size_t i = 0; i < list.n_claims; i++)
                if (claim_follows(list.claims[i]))
                        return true;
        return false;
}

bool claim_service_wants_held(ClaimService *service, uint64_t stamp)
{
        /* A complete read, which is wanted for a new database, includes these. */
        if (!service->claims || !service->comparison.is_due || !service->tree_is_stored ||
            stamp == service->comparison.held_stamp || claim_service_is_unread(service))
                return false;
        if (has_follower(service))
                return true;
        /* A claim that is made from here on is made of what Placement has by then. */
        claim_service_set_held(service, stamp, NULL);
        return false;
}

void claim_service_note_published(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = 0;

        if (service->tree_is_absent && claim_service_is_unread(service))
                r = claims_note_read(service->claims, &error);
        service->tree_is_absent = false;
        (void)claim_service_is_unread(service);
        claim_service_note_step(service, r, &error);
}

void claim_service_ask_all(ClaimService *service)
{
        service->comparison.urgent_usec = clock_usec(CLOCK_REALTIME);
}

void claim_service_look_again(ClaimService *service)
{
        service->comparison.is_due = service->facts;
}

/* Comparing */

static bool is_urgent(const ClaimComparison *comparison)
{
        return comparison->urgent_usec > 0 &&
               comparison->facts.taken_usec >= comparison->urgent_usec;
}

static void compare(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        ClaimComparison *comparison = &service->comparison;
        Error error = ERROR_NULL;
        const ReconcileInput order = {
                .facts = &comparison->facts,
                .expiry_usec = service->settings.expiry_usec,
                .started_only = service->settings.started_only,
                .away = comparison->away,
                .n_away = comparison->n_away,
                .word = word,
                .answers = comparison->answers,
                .n_answers = comparison->n_answers,
                .unread = claim_service_is_unread(service) && !comparison->absent,
                .complete = comparison->complete,
                .held = comparison->held,
                .urgent = is_urgent(comparison),
                .touched = comparison->touched,
                .n_touched = comparison->n_touched,
                .recorded = comparison->snapshot->guests_unknown,
        };
        int r = claim_reconcile(service, &order, wanted, &error);

        if (r != 0) {
                log_debug("Claims and guests could not be compared: %s", error_text(&error, r));
                comparison->is_due = true;
        }
        (void)claim_service_is_unread(service);
        claim_service_note_step(service, r, &error);
}

void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        ClaimComparison *comparison = &service->comparison;

        if (!service->claims)
                return;
        follow_clock(service);
        if (word == RECONCILE_CAN_ASK && claim_service_is_unread(service))
                claim_service_look_again(service);
        if (!comparison->is_due || !service->tree_is_stored)
                return;
        comparison->is_due = false;
        compare(service, word, wanted);
        forget_answers(comparison);
        if (wanted && !claim_wanted_is_empty(wanted))
                comparison->is_due = true; /* Placement is asked first */
        else if (is_urgent(comparison))
                comparison->urgent_usec = 0;
        /* A claim that expired after the poll began can have a guest that the poll missed. */
        if (service->claims && word == RECONCILE_ALONE)
                expire(service, comparison->facts.taken_usec);
}
