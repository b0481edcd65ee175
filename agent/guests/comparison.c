/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides when claims and guests are compared, and with which inputs. A comparison is due once for
 * each poll that a cycle takes, and after a request, a failure, new settings or the opening of the
 * database. It is due again if it needs answers of Placement, and if an action was left out because
 * its claim or guest had changed. It begins only while the database is open and has the host's
 * tree. A database that is closed during a comparison ends it, and it is due again. Placement's
 * answers count for one comparison alone, so they are freed at its end. Claims that were made or
 * changed, or that were the answer to a caller, since the begin of the poll are remembered
 * (claim_service_touch()) until a poll that began later. The present poll can have missed their
 * guests.
 *
 * A ComparisonRun is one or two comparisons, of which the second one has answers. If it reads, it
 * runs through these states: the allocations of providers are read (read_held()), the first
 * comparison finds the consumers to read (continue_run()), they are read, and the second comparison
 * uses the answers. Each state is skipped if it has nothing to read. A run that does not read has
 * only the first comparison. On a host without Placement, claims that expired end after it. A
 * comparison can take several turns of the main loop, with calls in between.
 *
 * Times of claims are wall-clock times. When that clock is set by at least CLOCK_JUMP_MIN_USEC,
 * expiry times of unconfirmed claims and times in the memory of comparisons are moved by the same
 * distance. So each claim expires after about its full time. The begin of a poll is known by
 * CLOCK_MONOTONIC, and gets its wall-clock time from the present clock. A jump while the agent does
 * not run is not noticed. An expiry time that the database refuses to move is not moved later. */

#include "agent/guests/comparison.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/facts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/follow.h"
#include "report/gather.h"

/* The clock */

/* A change of CLOCK_REALTIME against CLOCK_BOOTTIME, which cannot be set and includes the time of
 * sleep. A smaller change between two looks is a correction of the clock, and counts as no jump. */
#define CLOCK_JUMP_MIN_USEC (10 * USEC_PER_SEC)

/* A jump of the clock, in microseconds. */
typedef struct ClockJump {
        int64_t by_usec;    /* 0: none; > 0: forward */
        uint64_t from_usec; /* present time of the clock without the jump */
        uint64_t to_usec;   /* present time of the clock */
        uint64_t gap_usec;  /* time since the last look */
} ClockJump;

/* Compares the clocks with the last look, and stores them. Returns a jump of 0 at the first look,
 * and for a smaller change than CLOCK_JUMP_MIN_USEC. */
static ClockJump look_at_clocks(ClaimComparison *comparison)
{
        uint64_t real_usec = clock_usec(CLOCK_REALTIME), boot_usec = clock_usec(CLOCK_BOOTTIME);
        uint64_t last_usec = comparison->clock.real_usec;
        /* gap_usec is the elapsed time, because CLOCK_BOOTTIME cannot be set. */
        uint64_t gap = boot_usec - MIN(comparison->clock.boot_usec, boot_usec);
        ClockJump jump = { .from_usec = last_usec + gap, .to_usec = real_usec, .gap_usec = gap };

        comparison->clock.real_usec = real_usec;
        comparison->clock.boot_usec = boot_usec;
        if (last_usec == 0)
                return (ClockJump){ 0 };
        jump.by_usec = (int64_t)(jump.to_usec - jump.from_usec);
        if (jump.by_usec < (int64_t)CLOCK_JUMP_MIN_USEC &&
            jump.by_usec > -(int64_t)CLOCK_JUMP_MIN_USEC)
                return (ClockJump){ 0 };
        return jump;
}

/* Returns true if usec is a time from before the jump. If both are possible, returns true for a
 * jump forward. So a time that is moved, or not moved, by mistake is later than the right one: a
 * claim stays longer. */
static bool is_before(const ClockJump *jump, uint64_t usec)
{
        uint64_t since = jump->to_usec > jump->gap_usec ? jump->to_usec - jump->gap_usec : 0;

        /* At most gap_usec has passed since the jump, so the clock showed since..to_usec after it.
         * Before it, the clock showed at most from_usec. */
        return usec <= jump->from_usec &&
               (jump->by_usec > 0 || usec < since || usec > jump->to_usec);
}

/* Moves a time by the jump, so that its distance from the present time is unchanged. The result is
 * at least 1 and at most INT64_MAX. */
static uint64_t move_time(const ClockJump *jump, uint64_t usec)
{
        int64_t moved;

        /* A moved time is at least 1, because 0 means that there is none. */
        if (__builtin_add_overflow((int64_t)MIN(usec, (uint64_t)INT64_MAX), jump->by_usec, &moved))
                return INT64_MAX;
        return moved > 0 ? (uint64_t)moved : 1;
}

/* Logs and announces the claims that ended at that moment. */
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

/* Moves the expiry of unconfirmed claims with the clock, so that each one expires the same time
 * after its creation. A claim that was made after the last look usually has times of the new clock.
 * It is moved only if its time of creation is from before the jump. */
static void move_expiry(ClaimService *service, const ClockJump *jump)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = claims_list(service->claims, CLAIMS_LIVING, NULL, &list, NULL);

        for (size_t i = 0; r == 0 && i < list.n_claims; i++) {
                Claim *claim = list.claims[i];

                if (claim->state != CLAIM_STATE_CLAIMED || claim->expires_usec == 0 ||
                    (claim->id > service->comparison.known_id &&
                     !is_before(jump, claim->created_usec)))
                        continue;
                claim->expires_usec = move_time(jump, claim->expires_usec);
                if (claims_extend(service->claims, claim->id, claim->expires_usec, NULL) == 0)
                        claim_service_notify(service, CLAIM_EVENT_CHANGED, claim);
        }
}

/* Moves a time that can be from after the jump, too. Such a time, or 0, stays. */
static void move_earlier(const ClockJump *jump, uint64_t *usec)
{
        if (*usec > 0 && is_before(jump, *usec))
                *usec = move_time(jump, *usec);
}

/* Moves the times of missing guests, recent claims, released devices, an urgent request and the
 * poll. */
static void move_memory(ClaimComparison *comparison, const ClockJump *jump)
{
        for (size_t i = 0; i < comparison->memory.n_items; i++) {
                ReconcileMissing *missing = &comparison->memory.items[i];

                missing->since_usec = move_time(jump, missing->since_usec);
                if (missing->asked_usec > 0)
                        missing->asked_usec = move_time(jump, missing->asked_usec);
        }
        for (size_t i = 0; i < comparison->n_recent; i++)
                move_earlier(jump, &comparison->recent[i].when_usec);
        for (size_t i = 0; i < comparison->n_released; i++)
                move_earlier(jump, &comparison->released[i].when_usec);
        move_earlier(jump, &comparison->urgent_usec);
        if (comparison->snapshot)
                comparison->facts.taken_usec = snapshot_begun_realtime_usec(comparison->snapshot);
}

static void log_jump(const ClockJump *jump)
{
        bool forward = jump->by_usec > 0;

        log_event(LOG_NOTICE, MESSAGE_CLOCK_JUMPED, NULL,
                  "The clock of this host was set %s by %" PRIu64
                  " s. The expiry times of claims move by the same amount.",
                  forward ? "forward" : "back",
                  (uint64_t)(forward ? jump->by_usec : -jump->by_usec) / USEC_PER_SEC);
}

/* Compares the clocks with the last look, and moves all times after a jump. */
static void follow_clock(ClaimService *service)
{
        const ClockJump jump = look_at_clocks(&service->comparison);

        if (jump.by_usec != 0) {
                log_jump(&jump);
                move_memory(&service->comparison, &jump);
                move_expiry(service, &jump);
        }
        service->comparison.known_id = service->last_id;
}

/* Ends the claims that expired before usec, and notes the result for the service. */
static void expire(ClaimService *service, uint64_t usec)
{
        Error error = ERROR_NULL;
        uint64_t n = 0;
        int r = claims_expire(service->claims, usec, &n, &error);

        if (r != 0)
                log_debug("Cannot check claims for expiry: %s", error_text(&error, r));
        if (n > 0)
                note_expired(service, usec);
        claim_service_note_step(service, r, &error);
}

/* Polls */

/* Drops claims that were remembered before the begin of the poll, since the poll shows their
 * guests. */
static void forget_recent(ClaimComparison *comparison)
{
        size_t n = 0;

        for (size_t i = 0; i < comparison->n_recent; i++)
                if (comparison->recent[i].when_usec >= comparison->facts.taken_usec)
                        comparison->recent[n++] = comparison->recent[i];
        comparison->n_recent = n;
}

/* Drops guests of other hosts that run here now, or are not defined here any more: one that comes
 * back is a new guest. */
static void forget_away(ClaimComparison *comparison)
{
        size_t n = 0;

        for (size_t i = 0; i < comparison->n_away; i++) {
                const HostDomain *domain =
                        host_facts_find_domain(&comparison->facts, &comparison->away[i]);

                if (comparison->guests->guests_unknown || (domain && !domain->running))
                        comparison->away[n++] = comparison->away[i];
        }
        comparison->n_away = n;
}

/* Takes references of both polls and makes their facts. Returns false if memory is short, with the
 * old polls still in place. */
static bool set_polls(ClaimService *service, const Snapshot *snapshot, const Snapshot *guests)
{
        ClaimComparison *comparison = &service->comparison;
        HostFacts facts = { 0 };

        /* The new facts have the time of the present clock. Remembered times follow it. */
        if (service->claims)
                follow_clock(service);
        if (claim_facts_make(service->settings.driver, snapshot, guests, &comparison->known,
                             &facts) < 0) {
                log_warning("Out of memory. Claims keep the previous state of the guests.");
                return false;
        }
        /* The time of the same poll moves only with the clock. */
        if (snapshot == comparison->snapshot)
                facts.taken_usec = comparison->facts.taken_usec;
        snapshot_ref(snapshot);
        snapshot_ref(guests);
        claim_facts_done(&comparison->facts);
        snapshot_unref(comparison->snapshot);
        snapshot_unref(comparison->guests);
        comparison->snapshot = (Snapshot *)snapshot;
        comparison->guests = (Snapshot *)guests;
        comparison->facts = facts;
        forget_recent(comparison);
        forget_away(comparison);
        claim_service_mark_released(comparison);
        service->facts = &comparison->facts;
        service->n_facts++;
        if (service->claims)
                claims_set_facts(service->claims, service->facts);
        return true;
}

/* A poll is compared again if the settings or the withheld members of sets changed since its facts
 * were made. */
void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot,
                                const DeviceFacts *known)
{
        DeviceFacts *before = &service->comparison.known;
        bool is_same = snapshot == service->comparison.snapshot;

        if (is_same && !service->comparison.driver_is_new &&
            (!known || string_set_equal(&known->withheld, &before->withheld)))
                return;
        if (known && (vgpu_sizes_copy(&before->sizes, &known->sizes) < 0 ||
                      string_set_copy(&before->withheld, &known->withheld) < 0))
                log_debug("Out of memory. Claims keep the earlier facts about devices.");
        if (!set_polls(service, snapshot, is_same ? service->comparison.guests : snapshot))
                return;
        service->comparison.driver_is_new = false;
        service->comparison.is_due = true;
}

void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot)
{
        if (service->comparison.snapshot && snapshot != service->comparison.guests)
                (void)set_polls(service, service->comparison.snapshot, snapshot);
}

/* Returns true if another host has the guest now. */
static bool is_away(const ClaimComparison *comparison, const Uuid *guest)
{
        for (size_t i = 0; i < comparison->n_away; i++)
                if (uuid_equal(&comparison->away[i], guest))
                        return true;
        return false;
}

/* A guest that is shut off counts only if no other host has it, and not with started_only. */
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

/* Answers of Placement */

/* Frees the answers of the last comparison. */
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
                (ConsumerRead){ .consumer = *consumer, .holding = holding, .here = here };
}

static int order_answers(const void *a, const void *b)
{
        return uuid_order(&((const ConsumerRead *)a)->consumer,
                          &((const ConsumerRead *)b)->consumer);
}

/* Stores the answers about the consumers in asked. Takes holding. A consumer that holding lacks has
 * no allocation. If memory is short, or if the database cannot be used, there are no answers. */
static void take_answers(ClaimService *service, const ClaimWanted *asked, Allocations *holding)
{
        ClaimComparison *comparison = &service->comparison;
        size_t n = asked->n_uuids + holding->n_consumers;
        const HostView *view;

        service->tree_is_absent = asked->absent;
        forget_answers(comparison);
        comparison->holding = holding;
        if (!service->claims || claims_host(service->claims, &view, NULL) != 0)
                return;
        comparison->answers = calloc(n + 1, sizeof(ConsumerRead));
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
                qsort(comparison->answers, comparison->n_answers, sizeof(ConsumerRead),
                      order_answers);
        comparison->complete = asked->all;
        comparison->absent = asked->absent;
}

/* Takes held, the allocations from some providers (NULL: not read), with the stamp of these
 * providers. */
static void set_held(ClaimComparison *comparison, uint64_t stamp, Allocations *held)
{
        allocations_free(comparison->held);
        comparison->held = held;
        comparison->held_stamp = stamp;
}

/* Returns true if a living claim takes over the amounts that another writer sets in Placement
 * (claim_follows()). */
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

/* Returns true if a comparison is due, a claim follows another writer, and the stamp of the
 * providers is not that of the last read. Stores the stamp if no claim follows. */
static bool wants_held(ClaimService *service, uint64_t stamp)
{
        /* A new database gets a complete read, which includes these allocations. So they are not
         * read alone. */
        if (!service->claims || !service->comparison.is_due || !service->tree_is_stored ||
            stamp == service->comparison.held_stamp || claim_service_is_unread(service))
                return false;
        if (has_follower(service))
                return true;
        /* No claim needs the allocations of this stamp. A claim that follows later is made with the
         * amounts that Placement has then. */
        set_held(&service->comparison, stamp, NULL);
        return false;
}

void claim_service_restore_held(ClaimService *service, uint64_t stamp)
{
        service->comparison.held_stamp = stamp;
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

/* Comparison */

/* Returns true if claim_service_ask_all() requested free capacity, and the poll began after
 * that. */
static bool is_urgent(const ClaimComparison *comparison)
{
        return comparison->urgent_usec > 0 &&
               comparison->facts.taken_usec >= comparison->urgent_usec;
}

/* Pause between two turns of a comparison, in which the calls that have arrived are served. */
#define TURN_PAUSE_USEC USEC_PER_MSEC

struct ComparisonRun {
        ClaimService *service;
        sd_event_source *next;  /* begins the next turn */
        Reporter *reporter;     /* NULL: Placement is not asked */
        ReconcileAccess access; /* whether the comparison can read Placement */
        ClaimReconcile *run;    /* NULL: no comparison runs */
        uint64_t n_opened;      /* ClaimService.n_opened when it began */
        uint64_t stamp;         /* stamp of the providers whose allocations are read:
                                   list_providers() */
        ClaimWanted asked;
        Allocations *read; /* consumers that were read so far; NULL: none */
        Gather *gather;
        void (*done)(void *userdata);
        void *userdata;
};

/* Sets is_adopting: guests can still lack the claims that the running comparison makes. When it
 * becomes false, calls the function of claim_service_on_adopted(). */
static void set_adopting(ClaimService *service, bool is_adopting)
{
        bool ends = service->is_adopting && !is_adopting;

        service->is_adopting = is_adopting;
        if (ends && service->adopted)
                service->adopted(service->adopted_userdata);
}

/* Ends the running comparison, if one runs, and frees its answers. If it was not completed, it is
 * due again, and so is the read of the providers' allocations. */
static void end_run(ComparisonRun *run, bool completed)
{
        ClaimComparison *comparison = &run->service->comparison;

        if (!run->run)
                return;
        run->run = claim_reconcile_free(run->run);
        set_adopting(run->service, false);
        forget_answers(comparison);
        if (completed)
                return;
        comparison->is_due = run->service->facts != NULL;
        comparison->held_stamp = 0;
}

ComparisonRun *comparison_run_free(ComparisonRun *run)
{
        if (!run)
                return NULL;
        end_run(run, false);
        /* The comparison with the answers, which the allocations led to, is missing. */
        if (run->service->comparison.wants_answers)
                run->service->comparison.held_stamp = 0;
        sd_event_source_disable_unref(run->next);
        gather_free(run->gather);
        allocations_free(run->read);
        claim_wanted_done(&run->asked);
        free(run);
        return NULL;
}

/* Begins a comparison if one is due, after a look at the clock. One that can read is due as long as
 * the database needs a complete read. Without memory it stays due. */
static void begin_run(ComparisonRun *run, ReconcileAccess access)
{
        ClaimService *service = run->service;
        ClaimComparison *comparison = &service->comparison;

        if (!service->claims)
                return;
        follow_clock(service);
        if (access == RECONCILE_CAN_READ && claim_service_is_unread(service))
                claim_service_look_again(service);
        if (!comparison->is_due || !service->tree_is_stored || claim_reconcile_new(&run->run) < 0)
                return;
        comparison->is_due = false;
        run->access = access;
        run->n_opened = service->n_opened;
        claim_wanted_done(&run->asked);
}

/* Compares for one turn, with all inputs. Results are those of claim_reconcile(). */
static int run_turn(ComparisonRun *run, Error *reterr)
{
        ClaimService *service = run->service;
        ClaimComparison *comparison = &service->comparison;
        const ReconcileInput order = {
                .facts = &comparison->facts,
                .expiry_usec = service->settings.expiry_usec,
                .started_only = service->settings.started_only,
                .away = comparison->away,
                .n_away = comparison->n_away,
                .access = run->access,
                .answers = comparison->answers,
                .n_answers = comparison->n_answers,
                .unread = claim_service_is_unread(service) && !comparison->absent,
                .complete = comparison->complete,
                .held = comparison->held,
                .urgent = is_urgent(comparison),
                .recent = comparison->recent,
                .n_recent = comparison->n_recent,
                .recorded = comparison->snapshot->guests_unknown,
        };

        return claim_reconcile(run->run, service, &order,
                               run->access == RECONCILE_CAN_READ ? &run->asked : NULL, reterr);
}

/* Ends a comparison with its result. A failure makes it due again, and so do consumers that must be
 * read first. It can be due again already: it left out an action, or a newer poll or a request came
 * during its turns. Then the allocations of the providers are read again, too. Without Placement, a
 * comparison that succeeded and is not due again also ends claims that expired. */
static void finish_run(ComparisonRun *run, int result, const Error *error)
{
        ClaimService *service = run->service;
        ClaimComparison *comparison = &service->comparison;

        if (result != 0)
                log_debug("Cannot compare claims and guests: %s", error_text(error, result));
        end_run(run, result == 0);
        (void)claim_service_is_unread(service);
        claim_service_note_step(service, result, error);
        if (comparison->is_due)
                comparison->held_stamp = 0;
        comparison->wants_answers = !claim_wanted_is_empty(&run->asked);
        if (comparison->wants_answers)
                comparison->is_due = true;
        else if (is_urgent(comparison))
                comparison->urgent_usec = 0;
        /* A claim that expired after the begin of the poll can have a guest that the poll missed.
         * So the begin of the poll is the limit. An action that was left out can be the
         * confirmation of a claim. */
        if (!comparison->is_due && service->claims && run->access == RECONCILE_NO_PLACEMENT)
                expire(service, comparison->facts.taken_usec);
}

/* Begins the next turn after a pause. Returns false if that fails. */
static bool pause_run(ComparisonRun *run)
{
        return sd_event_source_set_time_relative(run->next, TURN_PAUSE_USEC) >= 0 &&
               sd_event_source_set_enabled(run->next, SD_EVENT_ONESHOT) >= 0;
}

/* Continues the comparison, if one runs. Returns 1 if another turn follows, 0 if it has ended. If
 * no pause can be set, the next turn follows at once. */
static int continue_run(ComparisonRun *run)
{
        while (run->run) {
                Error error = ERROR_NULL;
                int r;

                /* The claim database was closed since the last turn; it can be open again. */
                if (!run->service->claims || run->n_opened != run->service->n_opened) {
                        end_run(run, false);
                        break;
                }
                r = run_turn(run, &error);
                if (r != CLAIM_RECONCILE_MORE && r != CLAIM_RECONCILE_CHECKS) {
                        finish_run(run, r, &error);
                        break;
                }
                set_adopting(run->service, r == CLAIM_RECONCILE_MORE);
                if (pause_run(run))
                        return 1;
        }
        return 0;
}

/* Comparison with Placement */

/* Begins the comparison with the answers. After a failure claims are compared without answers, and
 * the read of the providers' allocations is due again. Answers that no comparison uses are dropped.
 * Returns 1 if another turn follows, 0 if all is done. */
static int compare_answered(ComparisonRun *run, int result, const Error *error)
{
        if (result == 0) {
                take_answers(run->service, &run->asked, TAKE_PTR(run->read));
        } else {
                log_debug("Cannot read consumers from Placement: %s", error->text);
                run->service->comparison.held_stamp = 0;
        }
        begin_run(run, RECONCILE_NO_READS);
        if (!run->run)
                forget_answers(&run->service->comparison);
        return continue_run(run);
}

static void finish(ComparisonRun *run, int result, const Error *error)
{
        if (compare_answered(run, result, error) == 0)
                run->done(run->userdata);
}

/* Adds consumers, which it takes, to those that were read. */
static int add_read(ComparisonRun *run, Allocations *consumers)
{
        int r = 0;

        if (!run->read) {
                run->read = consumers;
                return 0;
        }
        for (size_t i = 0; r == 0 && i < consumers->n_consumers; i++) {
                r = allocations_add(run->read, consumers->consumers[i]);
                if (r == 0)
                        consumers->consumers[i] = NULL;
        }
        for (size_t i = 0; i < consumers->n_consumers; i++)
                consumer_free(consumers->consumers[i]);
        consumers->n_consumers = 0;
        allocations_free(consumers);
        return r;
}

static void on_gathered(int result, Allocations *consumers, Allocations *others, const Error *error,
                        void *userdata)
{
        ComparisonRun *run = userdata;

        allocations_free(others);
        if (result == 0)
                result = add_read(run, consumers);
        finish(run, result, error);
}

/* Reads the consumers of run->asked that were not read yet. Returns 1 if a request is on its
 * way, 0 if there are none, or a negative errno. */
static int read_asked(ComparisonRun *run)
{
        _cleanup_free_ Uuid *uuids = calloc(run->asked.n_uuids + 1, sizeof(Uuid));
        size_t n = 0;
        int r;

        if (!uuids)
                return -ENOMEM;
        for (size_t i = 0; i < run->asked.n_uuids; i++)
                if (!run->read || !allocations_find(run->read, &run->asked.uuids[i]))
                        uuids[n++] = run->asked.uuids[i];
        if (n == 0)
                return 0;
        r = gather_consumers_new(&run->gather, reporter_get_session(run->reporter), uuids, n,
                                 on_gathered, run, NULL);
        return r < 0 ? r : 1;
}

/* Continues after all consumers with allocations here were read: reads the consumers of run->asked
 * that are not among them. */
static void on_all_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        ComparisonRun *run = userdata;
        Allocations *others = NULL;

        reporter_take_gathered(reporter, &run->read, &others);
        allocations_free(others);
        if (result == 0) {
                int r = read_asked(run);

                if (r > 0)
                        return;
                result = r;
        }
        finish(run, result, error);
}

/* Reads all consumers of the host. Results are those of read_asked(). If Placement does not have
 * the tree, the host has no consumers, and only the consumers of run->asked are read. Placement can
 * have the host under another uuid then. */
static int read_all(ComparisonRun *run)
{
        int r;

        run->asked.absent = reporter_tree(run->reporter)->n_providers == 0;
        r = run->asked.absent ? allocations_new(&run->read)
                              : reporter_gather(run->reporter, NULL, NULL, on_all_gathered, run);
        if (r < 0)
                return r;
        return run->asked.absent ? read_asked(run) : 1;
}

/* Continues the first comparison. After it, reads the consumers that it needs, and begins the
 * second one. Returns 1 if another turn or an answer follows, 0 if all is done. */
static int continue_first(ComparisonRun *run)
{
        int r = continue_run(run);

        if (r == 1 || !run->reporter || run->access != RECONCILE_CAN_READ ||
            claim_wanted_is_empty(&run->asked))
                return r;
        r = run->asked.all ? read_all(run) : read_asked(run);
        return r == 1 ? 1 : compare_answered(run, r, &ERROR_NULL);
}

/* Compares the parts that need no answer. Results are those of continue_first(). */
static int compare_first(ComparisonRun *run)
{
        run->gather = gather_free(run->gather);
        begin_run(run, RECONCILE_CAN_READ);
        return continue_first(run);
}

static int on_next(sd_event_source *source, uint64_t usec, void *userdata)
{
        ComparisonRun *run = userdata;

        if (continue_first(run) == 0)
                run->done(run->userdata);
        return 0;
}

/* Continues after the allocations of the providers were read, also after a failure. */
static void on_held(int result, Allocations *consumers, Allocations *others, const Error *error,
                    void *userdata)
{
        ComparisonRun *run = userdata;

        allocations_free(consumers);
        if (result == 0)
                set_held(&run->service->comparison, run->stamp, others);
        else
                log_debug("Cannot read the allocations of the host's providers: %s", error->text);
        if (compare_first(run) == 0)
                run->done(run->userdata);
}

/* Returns true if the provider has an inventory of a class that a domain shows. */
static bool has_amounts(const Provider *provider)
{
        return provider_find_inventory(provider, "VCPU") ||
               provider_find_inventory(provider, "PCPU") ||
               provider_find_inventory(provider, "MEMORY_MB");
}

/* Lists the root and the providers of its CPUs and memory. The stamp is the sum of their
 * generations, which changes with each write, but not with the removal of an allocation. */
static size_t list_providers(Reporter *reporter, const Uuid *root, Uuid *ret, uint64_t *ret_stamp)
{
        const ProviderTree *tree = reporter_tree(reporter);
        size_t n = 0;

        for (size_t i = 0; i < tree->n_providers; i++) {
                const Provider *provider = tree->providers[i];
                int64_t generation = reporter_get_generation(reporter, &provider->uuid);

                if (!provider_tree_in_subtree(tree, provider, root) ||
                    (!uuid_equal(&provider->uuid, root) && !has_amounts(provider)))
                        continue;
                ret[n++] = provider->uuid;
                *ret_stamp += (uint64_t)MAX(generation, 0) + 1;
        }
        return n;
}

/* Reads the allocations of the providers if a claim needs them. Returns 1 if a request is on its
 * way, else 0. */
static int read_held(ComparisonRun *run, const Uuid *root)
{
        const ProviderTree *tree = reporter_tree(run->reporter);
        /* An empty set of classes makes no consumer relevant: all are returned as others. */
        const StringSet no_class = { 0 };
        Uuid *providers = tree ? calloc(tree->n_providers + 1, sizeof(Uuid)) : NULL;
        size_t n = providers ? list_providers(run->reporter, root, providers, &run->stamp) : 0;
        int r = 0;

        if (n > 0 && wants_held(run->service, run->stamp))
                r = gather_new(&run->gather, reporter_get_session(run->reporter), providers, n,
                               &no_class, on_held, run, NULL) >= 0;
        free(providers);
        return r;
}

/* Creates a run with its source of turns. NULL: out of memory. */
static ComparisonRun *comparison_run_new(ClaimService *service, sd_event *event,
                                         void (*done)(void *userdata), void *userdata)
{
        _cleanup_(comparison_run_freep) ComparisonRun *run = calloc(1, sizeof(ComparisonRun));

        if (!run)
                return NULL;
        *run = (ComparisonRun){ .service = service, .done = done, .userdata = userdata };
        /* The same priority as calls, which are served in turn (agent/bus/gate.c). */
        if (sd_event_add_time(event, &run->next, CLOCK_MONOTONIC, 0, 1, on_next, run) < 0 ||
            sd_event_source_set_enabled(run->next, SD_EVENT_OFF) < 0 ||
            sd_event_source_set_priority(run->next, SD_EVENT_PRIORITY_NORMAL + 10) < 0)
                return NULL;
        return TAKE_PTR(run);
}

int comparison_run_begin(ComparisonRun **ret, ClaimService *service, sd_event *event,
                         Reporter *reporter, const Uuid *root, void (*done)(void *userdata),
                         void *userdata)
{
        _cleanup_(comparison_run_freep) ComparisonRun *run =
                comparison_run_new(service, event, done, userdata);

        if (!run)
                return 0;
        run->reporter = reporter;
        if (read_held(run, root) == 0 && compare_first(run) == 0)
                return 0;
        *ret = TAKE_PTR(run);
        return 1;
}

int comparison_run_begin_alone(ComparisonRun **ret, ClaimService *service, sd_event *event,
                               ReconcileAccess access, void (*done)(void *userdata), void *userdata)
{
        _cleanup_(comparison_run_freep) ComparisonRun *run =
                comparison_run_new(service, event, done, userdata);

        if (!run)
                return 0;
        begin_run(run, access);
        if (!run->run)
                return 0;
        set_adopting(service, true);
        if (!pause_run(run) && continue_run(run) == 0)
                return 0;
        *ret = TAKE_PTR(run);
        return 1;
}
