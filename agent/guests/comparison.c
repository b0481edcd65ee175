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
#include "report/gather.h"

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

/* Moves expiry times with the clock: claims expire the same time after they were made. */
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

static void set_held(ClaimComparison *comparison, uint64_t stamp, Allocations *held)
{
        allocations_free(comparison->held);
        comparison->held = held;
        comparison->held_stamp = stamp;
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

/* Returns true if a claim follows another writer, and the stamp of the providers is another one
 * than when their allocations were read last. */
static bool wants_held(ClaimService *service, uint64_t stamp)
{
        /* A complete read, which is wanted for a new database, includes these. */
        if (!service->claims || !service->comparison.is_due || !service->tree_is_stored ||
            stamp == service->comparison.held_stamp || claim_service_is_unread(service))
                return false;
        if (has_follower(service))
                return true;
        /* A claim that is made from here on is made of what Placement has by then. */
        set_held(&service->comparison, stamp, NULL);
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

/* wanted as of claim_reconcile(); the answers are taken and the same with RECONCILE_AWAY follows.
 */
static void reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
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

void claim_service_reconcile(ClaimService *service, ReconcileWord word)
{
        reconcile(service, word, NULL);
}

/* Asking Placement */

struct ClaimWitness {
        ClaimService *service;
        Reporter *reporter;
        uint64_t stamp; /* of the providers whose allocations are read */
        ClaimWanted asked;
        Allocations *read; /* so far; NULL: nothing */
        Gather *gather;
        ClaimWitnessDone done;
        void *userdata;
};

ClaimWitness *claim_witness_free(ClaimWitness *witness)
{
        if (!witness)
                return NULL;
        gather_free(witness->gather);
        allocations_free(witness->read);
        claim_wanted_done(&witness->asked);
        free(witness);
        return NULL;
}

/* Without an answer, claims are compared as if Placement was away. */
static void compare_answered(ClaimWitness *witness, int result, const Error *error)
{
        if (result == 0)
                take_answers(witness->service, &witness->asked, TAKE_PTR(witness->read));
        else
                log_debug("Placement could not be asked about consumers: %s", error->text);
        reconcile(witness->service, RECONCILE_AWAY, NULL);
}

static void finish(ClaimWitness *witness, int result, const Error *error)
{
        compare_answered(witness, result, error);
        witness->done(witness->userdata);
}

/* Adds what was read last; takes it. */
static int add_read(ClaimWitness *witness, Allocations *consumers)
{
        int r = 0;

        if (!witness->read) {
                witness->read = consumers;
                return 0;
        }
        for (size_t i = 0; r == 0 && i < consumers->n_consumers; i++) {
                r = allocations_add(witness->read, consumers->consumers[i]);
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
        ClaimWitness *witness = userdata;

        allocations_free(others);
        if (result == 0)
                result = add_read(witness, consumers);
        finish(witness, result, error);
}

/* 1: they are being read; 0: nothing is left to be read. */
static int read_asked(ClaimWitness *witness)
{
        _cleanup_free_ Uuid *uuids = calloc(witness->asked.n_uuids + 1, sizeof(Uuid));
        size_t n = 0;
        int r;

        if (!uuids)
                return -ENOMEM;
        for (size_t i = 0; i < witness->asked.n_uuids; i++)
                if (!witness->read || !allocations_find(witness->read, &witness->asked.uuids[i]))
                        uuids[n++] = witness->asked.uuids[i];
        if (n == 0)
                return 0;
        r = gather_consumers_new(&witness->gather, reporter_get_session(witness->reporter), uuids,
                                 n, on_gathered, witness, NULL);
        return r < 0 ? r : 1;
}

static void on_all_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        ClaimWitness *witness = userdata;
        Allocations *others = NULL;

        reporter_take_gathered(reporter, &witness->read, &others);
        allocations_free(others);
        if (result == 0) {
                int r = read_asked(witness);

                if (r > 0)
                        return;
                result = r;
        }
        finish(witness, result, error);
}

/* As read_asked(). A tree that Placement does not have has no consumers; it can have the host under
 * another uuid. */
static int read_all(ClaimWitness *witness)
{
        int r;

        witness->asked.absent = reporter_tree(witness->reporter)->n_providers == 0;
        r = witness->asked.absent
                    ? allocations_new(&witness->read)
                    : reporter_gather(witness->reporter, NULL, NULL, on_all_gathered, witness);
        if (r < 0)
                return r;
        return witness->asked.absent ? read_asked(witness) : 1;
}

/* Compares what needs no answer. Returns 1 if consumers are being read, 0 if nothing is left to do.
 */
static int compare_or_ask(ClaimWitness *witness)
{
        int r;

        witness->gather = gather_free(witness->gather);
        reconcile(witness->service, RECONCILE_CAN_ASK, &witness->asked);
        if (claim_wanted_is_empty(&witness->asked))
                return 0;
        r = witness->asked.all ? read_all(witness) : read_asked(witness);
        if (r == 1)
                return 1;
        compare_answered(witness, r, &ERROR_NULL);
        return 0;
}

static void on_held(int result, Allocations *consumers, Allocations *others, const Error *error,
                    void *userdata)
{
        ClaimWitness *witness = userdata;

        allocations_free(consumers);
        if (result == 0)
                set_held(&witness->service->comparison, witness->stamp, others);
        else
                log_debug("Allocations of the host's providers could not be read: %s", error->text);
        if (compare_or_ask(witness) == 0)
                witness->done(witness->userdata);
}

/* Returns true if the provider has amounts that a domain shows. */
static bool has_amounts(const Provider *provider)
{
        return provider_find_inventory(provider, "VCPU") ||
               provider_find_inventory(provider, "PCPU") ||
               provider_find_inventory(provider, "MEMORY_MB");
}

/* Yields the root and the providers of its CPUs and memory, and a stamp that changes with each
 * write of these. */
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

/* Returns 1 if allocations of providers are being read, 0 if no claim needs them. */
static int read_held(ClaimWitness *witness, const Uuid *root)
{
        const ProviderTree *tree = reporter_tree(witness->reporter);
        const StringSet no_class = { 0 };
        Uuid *providers = tree ? calloc(tree->n_providers + 1, sizeof(Uuid)) : NULL;
        size_t n =
                providers ? list_providers(witness->reporter, root, providers, &witness->stamp) : 0;
        int r = 0;

        if (n > 0 && wants_held(witness->service, witness->stamp))
                r = gather_new(&witness->gather, reporter_get_session(witness->reporter), providers,
                               n, &no_class, on_held, witness, NULL) >= 0;
        free(providers);
        return r;
}

int claim_witness_begin(ClaimWitness **ret, ClaimService *service, Reporter *reporter,
                        const Uuid *root, ClaimWitnessDone done, void *userdata)
{
        _cleanup_(claim_witness_freep) ClaimWitness *witness = calloc(1, sizeof(ClaimWitness));

        if (!witness) {
                reconcile(service, RECONCILE_AWAY, NULL);
                return 0;
        }
        *witness = (ClaimWitness){
                .service = service, .reporter = reporter, .done = done, .userdata = userdata
        };
        if (read_held(witness, root) == 0 && compare_or_ask(witness) == 0)
                return 0;
        *ret = TAKE_PTR(witness);
        return 1;
}
