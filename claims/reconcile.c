/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Visits each claim once, with its guest or without one, and then each domain without a claim. For
 * a new database it first adds actions that create claims of consumers (RECONCILE_PLACE), or asks
 * for the read that they need. At the end it sorts the actions, and lists providers with too much
 * usage, if it gets a view of the host. A visit adds actions, problems and items of the next
 * memory, or asks for all consumers, and changes nothing else. The memory has items of confirmed
 * claims without a guest that stay, and of claims with a resize target beside them. It also has
 * items of claims whose guest was resized or has fewer devices. The next call gets the memory. Only
 * reconcile_make() replaces it, at its end, so a failure leaves it unchanged, and the result empty.
 * All times come from the start of the poll, not from the clock. */

#include "claims/reconcile.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "claims/fit/device-choice.h"
#include "claims/follow.h"
#include "claims/resize-pair.h"

/* Time for which two claims of a guest can exist before they are listed, if claims do not
 * expire. */
#define PAIR_AGE_USEC (300 * USEC_PER_SEC)

void reconcile_memory_done(ReconcileMemory *memory)
{
        free(memory->items);
        *memory = (ReconcileMemory){ 0 };
}

void reconcile_done(Reconcile *reconcile)
{
        free(reconcile->actions);
        reconcile_problems_done(&reconcile->problems);
        *reconcile = (Reconcile){ 0 };
}

/* The data of one call of reconcile_make(). */
typedef struct Work {
        const ReconcileInput *input;
        GuestIndex index;
        uint64_t now_usec;             /* start of the poll */
        const ReconcileMemory *memory; /* memory of the previous call */
        ReconcileMemory next;
        Reconcile *ret;
} Work;

static int add_action(Work *work, ReconcileType type, const Uuid *consumer, int64_t claim_id,
                      const HostDomain *domain)
{
        Reconcile *ret = work->ret;

        if (array_grow(&ret->actions, sizeof(ReconcileAction), ret->n_actions,
                       &ret->n_actions_allocated) < 0)
                return -ENOMEM;
        ret->actions[ret->n_actions++] = (ReconcileAction){
                .type = type, .claim_id = claim_id, .consumer = *consumer, .domain = domain
        };
        return 0;
}

static int add_of_claim(Work *work, ReconcileType type, const Claim *claim,
                        const HostDomain *domain)
{
        return add_action(work, type, &claim->consumer, claim->id, domain);
}

static int add_release(Work *work, const Claim *claim, const char *reason, const char *evidence)
{
        ReconcileAction *action;

        if (add_of_claim(work, RECONCILE_RELEASE, claim, NULL) < 0)
                return -ENOMEM;
        action = &work->ret->actions[work->ret->n_actions - 1];
        action->reason = reason;
        action->evidence = evidence;
        return 0;
}

/* Answers of Placement. */

static const ConsumerRead *find_answer(const Work *work, const Uuid *consumer)
{
        return consumer_read_find(work->input->answers, work->input->n_answers, consumer);
}

static bool is_gone(ConsumerPlace place)
{
        return place == CONSUMER_ELSEWHERE || place == CONSUMER_NOWHERE;
}

/* Returns false if the age alone can end the claim: there is no Placement, the agent wrote the
 * allocations, or with started_only the claim was made of its guest alone. */
static bool is_placed_by_other(const Work *work, const Claim *claim)
{
        return work->input->access != RECONCILE_NO_PLACEMENT &&
               claim->write_state != CLAIM_WRITE_WRITTEN &&
               !(work->input->started_only && claim_is_of_guest_alone(claim, true));
}

/* Returns true if Placement should have had allocations of the claim. If it has none now, another
 * writer removed them. False while the claim or its write is pending, and while a migration owns
 * the claim: the migration can return its allocations to the guest. */
static bool was_reported(const Claim *claim)
{
        return uuid_empty(&claim->guest) && (claim->write_state == CLAIM_WRITE_NONE ||
                                             claim->write_state == CLAIM_WRITE_WRITTEN);
}

/* Returns true if the claim was made, confirmed or returned to a caller since the poll began: the
 * poll might not show its guest. */
static bool is_recent(const Work *work, const Claim *claim)
{
        for (size_t i = 0; i < work->input->n_recent; i++)
                if (work->input->recent[i].claim_id == claim->id &&
                    work->input->recent[i].when_usec >= work->now_usec)
                        return true;
        return false;
}

/* Claims without a guest. */

static int order_missing(const void *a, const void *b)
{
        const ReconcileMissing *x = a, *y = b;

        return x->claim_id < y->claim_id ? -1 : x->claim_id > y->claim_id;
}

/* Returns the memory's item of the claim, or a new one that starts now. */
static ReconcileMissing recall(const Work *work, int64_t claim_id)
{
        const ReconcileMemory *memory = work->memory;
        const ReconcileMissing key = { .claim_id = claim_id, .since_usec = work->now_usec },
                               *found = NULL;

        if (memory->n_items > 0)
                found = bsearch(&key, memory->items, memory->n_items, sizeof(ReconcileMissing),
                                order_missing);
        return found ? *found : key;
}

static int remember(Work *work, const ReconcileMissing *missing)
{
        ReconcileMemory *next = &work->next;

        if (array_grow(&next->items, sizeof(ReconcileMissing), next->n_items, &next->n_allocated) <
            0)
                return -ENOMEM;
        next->items[next->n_items++] = *missing;
        return 0;
}

/* A claim without a guest on this host. */
typedef struct Guestless {
        const Claim *claim;
        ReconcileMissing missing;
        ConsumerPlace place;  /* place of the claim's consumer */
        bool stopped;         /* it has a guest, which does not run */
        bool confirmed, aged; /* aged: its guest is missing, or it is unconfirmed, for too long */
} Guestless;

static bool has_expired(const Work *work, const Claim *claim)
{
        return claim->expires_usec > 0 && claim->expires_usec <= work->now_usec;
}

/* Collects the facts about a claim without a guest. If Placement has answered about its consumer,
 * the time of the last answer is now. */
static Guestless make_guestless(const Work *work, const Claim *claim, bool stopped)
{
        uint64_t now = work->now_usec;
        Guestless guestless = { .claim = claim,
                                .stopped = stopped,
                                .missing = recall(work, claim->id),
                                .place = guest_index_place(&work->index, &claim->consumer),
                                .confirmed = claim->state == CLAIM_STATE_CONFIRMED };

        if (guestless.confirmed)
                guestless.aged = work->input->expiry_usec > 0 &&
                                 !time_is_within(now, guestless.missing.since_usec,
                                                 work->input->expiry_usec);
        else
                guestless.aged = has_expired(work, claim);
        if (guestless.place != CONSUMER_UNREAD)
                guestless.missing.asked_usec = now;
        return guestless;
}

/* Returns true if Nova has a folder for the claim's server, or if that is unknown. False for a
 * guest that is defined but stopped. */
static bool can_be_in_build(const Work *work, const Guestless *guestless)
{
        return !guestless->stopped &&
               (work->input->facts->folders_unknown ||
                host_facts_has_folder(work->input->facts, &guestless->claim->consumer));
}

/* Returns true if the claim must end: Placement has no allocations of it here, and was_reported()
 * or its age allows the end, or its age alone decides. False for a recent claim. */
static bool is_over(const Work *work, const Guestless *guestless)
{
        if (is_recent(work, guestless->claim))
                return false;
        if (is_gone(guestless->place))
                return guestless->aged || was_reported(guestless->claim);
        return guestless->aged && !is_placed_by_other(work, guestless->claim) &&
               !can_be_in_build(work, guestless);
}

/* Returns the reason why the release is safe, for the event and the log. Requires is_over(). */
static const char *evidence_of(const Work *work, const Guestless *guestless)
{
        if (is_gone(guestless->place))
                return "Placement has no allocations for it on this host";
        if (work->input->access == RECONCILE_NO_PLACEMENT)
                return "no Placement is configured";
        if (guestless->claim->write_state == CLAIM_WRITE_WRITTEN)
                return "only this agent wrote its allocations";
        return "its claim was created from its guest only";
}

static const char *reason_of(const Guestless *guestless)
{
        if (guestless->stopped)
                return "its guest stopped";
        if (guestless->aged)
                return guestless->confirmed ? CLAIM_ORPHAN : CLAIM_EXPIRED;
        return "orphan: its guest is gone, and it has no allocations in Placement";
}

/* Returns true if Placement can be asked about the claim again. The pause grows with the time of
 * the difference, up to the expiry time if claims expire. */
static bool is_due(const Work *work, const ReconcileMissing *missing)
{
        uint64_t now = work->now_usec, asked = missing->asked_usec,
                 pause = asked > missing->since_usec ? asked - missing->since_usec : 0;

        if (work->input->expiry_usec > 0)
                pause = MIN(pause, work->input->expiry_usec);
        return asked == 0 || (now > asked && now - asked >= pause);
}

/* Returns true if Placement's answer about the claim could end it, and the time to ask has come. */
static bool must_be_read(const Work *work, const Guestless *guestless)
{
        if (work->input->access != RECONCILE_CAN_READ || guestless->place != CONSUMER_UNREAD ||
            is_recent(work, guestless->claim))
                return false;
        if (!guestless->aged && !was_reported(guestless->claim))
                return false;
        return work->input->urgent ||
               (guestless->confirmed ? is_due(work, &guestless->missing) : guestless->aged);
}

/* Handles a claim without a guest: ends it, asks Placement about it, extends it, or remembers since
 * when its guest is missing. A pending claim, and without Placement an unconfirmed one, is left
 * alone. stopped: it has a guest that is off, and that holds nothing while it is off. */
static int handle_guestless(Work *work, const Claim *claim, bool stopped)
{
        const Guestless guestless = make_guestless(work, claim, stopped);

        /* A pending claim is being made. Without Placement, the database ends expired claims. */
        if (claim->state == CLAIM_STATE_PENDING ||
            (!guestless.confirmed && work->input->access == RECONCILE_NO_PLACEMENT))
                return 0;
        if (is_over(work, &guestless))
                return add_release(work, claim, reason_of(&guestless),
                                   evidence_of(work, &guestless));
        if (must_be_read(work, &guestless) && add_of_claim(work, RECONCILE_READ, claim, NULL) < 0)
                return -ENOMEM;
        if (!guestless.confirmed)
                return guestless.aged && guestless.place == CONSUMER_HERE
                               ? add_of_claim(work, RECONCILE_EXTEND, claim, NULL)
                               : 0;
        if (!stopped && guestless.aged && guestless.missing.asked_usec > 0 &&
            reconcile_add_problem(
                    &work->ret->problems, &claim->consumer, claim->id,
                    "claim %" PRId64
                    " has had no guest here for longer than claim_expiry_time, but Placement still has its allocations",
                    claim->id) < 0)
                return -ENOMEM;
        return remember(work, &guestless.missing);
}

/* Claims with a guest. */

/* Adds a release and an adoption. The old claim stays in the history, where an audit finds the size
 * of migrations. */
static int replace_claim(Work *work, const Claim *claim, const HostDomain *domain,
                         const char *reason, const char *evidence)
{
        int r = add_release(work, claim, reason, evidence);

        return r < 0 ? r : add_action(work, RECONCILE_ADOPT, &domain->uuid, 0, domain);
}

static bool must_follow(const Work *work, const Claim *claim, const HostDomain *domain,
                        const Consumer *placed)
{
        return placed && claim_must_follow(claim, domain, work->input->facts, work->input->view,
                                           work->input->node, placed);
}

static bool has_address(const char (*addresses)[HOST_ADDRESS_SIZE], size_t n, const char *address)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(addresses[i], address) == 0)
                        return true;
        return false;
}

static bool has_mdev(const Uuid *mdevs, size_t n, const Uuid *mdev)
{
        for (size_t i = 0; i < n; i++)
                if (uuid_equal(&mdevs[i], mdev))
                        return true;
        return false;
}

/* Returns true if a definition of the domain has the device. */
static bool has_device(const HostDomain *domain, const ClaimDevice *device)
{
        if (!uuid_empty(&device->mdev))
                return has_mdev(domain->mdevs, domain->n_mdevs, &device->mdev) ||
                       has_mdev(domain->config_mdevs, domain->n_config_mdevs, &device->mdev);
        return has_address(domain->pci, domain->n_pci, device->address) ||
               has_address(domain->config_pci, domain->n_config_pci, device->address);
}

/* Returns true if the claim has a device that neither definition of the domain has. */
static bool lacks_devices(const Claim *claim, const HostDomain *domain)
{
        for (size_t i = 0; i < claim->n_devices; i++)
                if (!has_device(domain, &claim->devices[i]))
                        return true;
        return false;
}

/* Returns true if another writer took devices from the guest: the domain does not have them, and
 * Placement allocates fewer of their provider to the consumer than the claim names. */
static bool must_drop_devices(const Claim *claim, const HostDomain *domain, const Consumer *placed)
{
        for (size_t i = 0; i < claim->n_devices; i++) {
                const Uuid *provider = &claim->devices[i].provider;
                const Resources *held = consumer_find(placed, provider);
                uint64_t n = 0, n_placed = 0;

                if (has_device(domain, &claim->devices[i]))
                        continue;
                for (size_t j = 0; j < claim->n_devices; j++)
                        n += uuid_equal(&claim->devices[j].provider, provider);
                for (size_t j = 0; held && j < held->n_items; j++)
                        n_placed += held->items[j].amount;
                if (n_placed < n)
                        return true;
        }
        return false;
}

/* Handles a claim that was made of a guest, and whose allocations another writer decides. The claim
 * is made again if the answer of Placement shows that the guest was resized, or that the writer
 * changed an amount or took devices away. For a resize, Placement must have at least the amounts of
 * the guest. Without an answer, Placement is asked if that can matter. */
static int handle_follower(Work *work, const Claim *claim, const HostDomain *domain)
{
        const ConsumerRead *answer = find_answer(work, &claim->consumer);
        const Consumer *held =
                work->input->held ? allocations_find(work->input->held, &claim->consumer) : NULL;
        ReconcileMissing since = recall(work, claim->id);
        bool resized = claim_was_resized(claim, domain), lacks = lacks_devices(claim, domain);

        if (answer && answer->here && answer->holding) {
                if (resized && guest_size_covers(guest_size_of_consumer(answer->holding), domain))
                        return replace_claim(work, claim, domain, CLAIM_RESIZED,
                                             "guest and Placement have the same other amounts");
                if (must_follow(work, claim, domain, answer->holding))
                        return replace_claim(work, claim, domain, CLAIM_FOLLOWED,
                                             "another writer changed the amounts in Placement");
                if (lacks && must_drop_devices(claim, domain, answer->holding))
                        return replace_claim(work, claim, domain, CLAIM_FOLLOWED,
                                             "guest and Placement have fewer devices");
        }
        if (answer)
                since.asked_usec = work->now_usec;
        else if (work->input->access == RECONCILE_CAN_READ &&
                 (must_follow(work, claim, domain, held) ||
                  ((resized || lacks) && is_due(work, &since))) &&
                 add_of_claim(work, RECONCILE_READ, claim, NULL) < 0)
                return -ENOMEM;
        if ((resized || lacks) && remember(work, &since) < 0)
                return -ENOMEM;
        return reconcile_compare(&work->index, claim, domain, &work->ret->problems);
}

/* Guests with two claims. */

/* Returns true for a claim that is not pending, has no pending write, and was not taken over by a
 * migration. */
static bool is_settled(const Claim *claim)
{
        return (claim->state == CLAIM_STATE_CLAIMED || claim->state == CLAIM_STATE_CONFIRMED) &&
               (claim->write_state == CLAIM_WRITE_NONE ||
                claim->write_state == CLAIM_WRITE_WRITTEN) &&
               uuid_empty(&claim->guest);
}

/* Returns true if these claims of one consumer are those of a resize, and neither is pending, has a
 * pending write or was taken over by a migration. */
static bool is_pair(const Claim *first, const Claim *target)
{
        return !first->resize_target && target->resize_target && is_settled(first) &&
               is_settled(target);
}

/* Returns the resize target beside the first claim of a consumer, or NULL. */
static const Claim *find_target(const Work *work, const Claim *first)
{
        const Claim *claim;

        for (size_t i = 0; (claim = guest_index_claim(&work->index, &first->consumer, i)); i++)
                if (is_pair(first, claim))
                        return claim;
        return NULL;
}

/* Returns true for an unconfirmed claim that has not expired. It is kept, because the caller that
 * got it can still write Placement. */
static bool is_promised(const Work *work, const Claim *claim)
{
        return claim->state == CLAIM_STATE_CLAIMED &&
               (claim->expires_usec == 0 || claim->expires_usec > work->now_usec);
}

/* Lists a pair that is older than the expiry time (PAIR_AGE_USEC without one), and that no
 * migration explains. With Placement, an answer about the pair is needed first. */
static int list_pair(Work *work, const Claim *first, const Claim *target, const HostDomain *domain,
                     const ReconcileMissing *pair)
{
        if (!uuid_empty(&pair->migration) ||
            (work->input->access != RECONCILE_NO_PLACEMENT && pair->asked_usec == 0) ||
            time_is_within(work->now_usec, pair->since_usec,
                           work->input->expiry_usec > 0 ? work->input->expiry_usec : PAIR_AGE_USEC))
                return 0;
        return reconcile_add_problem(
                &work->ret->problems, &first->consumer, first->id,
                "guest %.60s has claims %" PRId64 " and %" PRId64
                " of a resize, and neither can be proven unused. Release the claim that it does not need",
                domain->name, first->id, target->id);
}

/* Ends the claim that is over. The other one is confirmed if it was not. If its devices are not
 * those of the guest, it is replaced by a claim that is made of the guest. */
static int end_pair(Work *work, const ResizePair *pair, const HostDomain *domain)
{
        if (add_release(work, pair->over, CLAIM_RESIZE_OVER,
                        "guest and Placement have the amounts of the other claim") < 0)
                return -ENOMEM;
        work->ret->actions[work->ret->n_actions - 1].other_id = pair->kept->id;
        work->ret->actions[work->ret->n_actions - 1].domain = domain;
        if (pair->has_other_devices)
                return replace_claim(work, pair->kept, domain, CLAIM_RESIZED,
                                     "its resize is over, and the guest has other devices");
        return pair->kept->state == CLAIM_STATE_CLAIMED
                       ? add_of_claim(work, RECONCILE_CONFIRM, pair->kept, domain)
                       : 0;
}

/* Asks about the migration that can hold one of the two claims, or for a complete read. If the
 * migration is gone, the time of the pair starts again. */
static int ask_about_pair(Work *work, ReconcileMissing *pair)
{
        ConsumerPlace place = guest_index_place(&work->index, &pair->migration);

        if (place == CONSUMER_HERE) {
                pair->asked_usec = work->now_usec;
                return 0;
        }
        if (is_gone(place)) {
                *pair = (ReconcileMissing){ .claim_id = pair->claim_id,
                                            .since_usec = work->now_usec };
                return 0;
        }
        if (work->input->access != RECONCILE_CAN_READ || !is_due(work, pair))
                return 0;
        if (!uuid_empty(&pair->migration))
                return add_action(work, RECONCILE_READ, &pair->migration, pair->claim_id, NULL);
        work->ret->wants_all = true;
        return 0;
}

/* Judges the two claims of a resize. A verdict needs a complete read of Placement; without one, the
 * function asks. A pair that stays is listed once it is old. */
static int inspect_pair(Work *work, const Claim *first, const Claim *target,
                        const HostDomain *domain)
{
        ReconcileMissing pair = recall(work, first->id);
        ResizePair judged = { 0 };

        if (is_recent(work, first) || is_recent(work, target))
                return remember(work, &pair);
        if (work->input->complete) {
                if (resize_pair_judge(&work->index, work->input->view, first, target, domain,
                                      &judged) < 0)
                        return -ENOMEM;
                pair.asked_usec = work->now_usec;
                pair.migration = judged.migration ? judged.migration->uuid : UUID_NULL;
        } else if (ask_about_pair(work, &pair) < 0) {
                return -ENOMEM;
        }
        if (judged.over && !is_promised(work, judged.over))
                return end_pair(work, &judged, domain);
        if (list_pair(work, first, target, domain, &pair) < 0)
                return -ENOMEM;
        return remember(work, &pair);
}

/* Returns true if the guest confirms its claim by its existence: the claim expired, or the guest is
 * no domain. A claim that was made for the start of a server is confirmed when the server runs. */
static bool is_confirmed_by(const Work *work, const Claim *claim, const HostDomain *domain)
{
        if (claim->process[0])
                return true;
        if (domain->unread)
                return false;
        return has_expired(work, claim) || (domain->running && claim_waits_for_domain(claim));
}

/* Handles a claim whose guest is here. A pending or confirmed claim is compared with its guest, if
 * the guest can be read and has no other claim. Without Placement, the database ends claims that
 * expired, so one whose guest cannot be read is extended. */
static int handle_guest(Work *work, const Claim *claim, const HostDomain *domain)
{
        const Claim *target = domain->unread ? NULL : find_target(work, claim);

        if (target && inspect_pair(work, claim, target, domain) < 0)
                return -ENOMEM;
        if (claim->state == CLAIM_STATE_CLAIMED) {
                if (is_confirmed_by(work, claim, domain))
                        return add_of_claim(work, RECONCILE_CONFIRM, claim, domain);
                return work->input->access == RECONCILE_NO_PLACEMENT && has_expired(work, claim)
                               ? add_of_claim(work, RECONCILE_EXTEND, claim, domain)
                               : 0;
        }
        /* A guest with two claims is not compared with either: it has the amounts of only one of
         * them. */
        if (domain->unread || guest_index_has_claim(&work->index, &claim->consumer, claim))
                return 0;
        if (claim_follows(claim) && work->input->access != RECONCILE_NO_PLACEMENT)
                return handle_follower(work, claim, domain);
        return reconcile_compare(&work->index, claim, domain, &work->ret->problems);
}

/* Returns 1 if the claim must get the cells of its guest, or hold other host CPUs for the guest's
 * threads, or -ENOMEM. Returns 0 if the guest has two claims, whose layout it can be, if a
 * migration took the claim over, or if the guest cannot be read. */
static int must_be_laid_out(const Work *work, const Claim *claim, const HostDomain *domain)
{
        _cleanup_(cpu_set_done) CpuSet missing = CPU_SET_INIT, left = CPU_SET_INIT;

        if (domain->unread || !uuid_empty(&claim->guest) ||
            guest_index_has_claim(&work->index, &claim->consumer, claim))
                return 0;
        if (claim->layout.n_cells == 0 && domain->layout.n_cells > 0)
                return 1;
        if (!work->input->view)
                return 0;
        if (layout_compare_held(&claim->layout, &domain->layout, &work->input->view->held, &missing,
                                &left) < 0)
                return -ENOMEM;
        return cpu_set_count(&missing) > 0 ||
               (cpu_set_count(&left) > 0 && strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0);
}

/* Returns true if the identity of a device of the claim can be recorded now. */
static bool lacks_identity(const HostFacts *facts, const Claim *claim)
{
        for (size_t i = 0; i < claim->n_devices; i++)
                if (device_lacks_identity(facts, &claim->devices[i]))
                        return true;
        return false;
}

/* Returns 1 if the claim must be checked again, or -ENOMEM. Missing devices of a claim for the
 * start of a server are named when its domain is here. */
static int must_check(const Work *work, const Claim *claim, const HostDomain *domain)
{
        bool names = domain || strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) != 0;

        if (strcmp(claim->boot_id, work->input->boot_id) != 0 ||
            (names && device_count_missing(work->input->facts, work->input->node, claim) > 0) ||
            lacks_identity(work->input->facts, claim))
                return 1;
        return domain ? must_be_laid_out(work, claim, domain) : 0;
}

/* Handles a confirmed claim that was made of a guest, that the agent does not write, and whose
 * allocations were not read yet: completes it from an answer, or asks for one. */
static int inspect_unread(Work *work, const Claim *claim)
{
        if (work->input->access == RECONCILE_NO_PLACEMENT || claim->was_read ||
            !uuid_empty(&claim->guest) || claim->write_state != CLAIM_WRITE_NONE ||
            claim->state != CLAIM_STATE_CONFIRMED ||
            strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) != 0)
                return 0;
        if (guest_index_place(&work->index, &claim->consumer) != CONSUMER_UNREAD)
                return add_of_claim(work, RECONCILE_COMPLETE, claim, NULL);
        return work->input->access == RECONCILE_CAN_READ
                       ? add_of_claim(work, RECONCILE_READ, claim, NULL)
                       : 0;
}

/* Handles one claim. If the facts are recorded (ReconcileInput.recorded), they have no guests. Then
 * only devices, expiring claims and claims that identify their guest (Claim.process) are compared.
 */
static int inspect_claim(Work *work, const Claim *claim)
{
        bool moving = !uuid_empty(&claim->guest);
        const HostDomain *domain = guest_index_guest(&work->index, claim);
        bool stopped = domain && work->input->started_only && !domain->running &&
                       strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0;
        int check;

        if (stopped)
                domain = NULL;
        /* Devices are known even if the guests are not. */
        if (reconcile_check_devices(&work->index, claim, domain, &work->ret->problems) < 0 ||
            (work->input->recorded && lacks_identity(work->input->facts, claim) &&
             add_of_claim(work, RECONCILE_CHECK, claim, NULL) < 0))
                return -ENOMEM;
        if (work->input->recorded && !claim->process[0])
                return claim->state == CLAIM_STATE_CLAIMED ? handle_guestless(work, claim, stopped)
                                                           : 0;
        check = work->input->recorded ? 0 : must_check(work, claim, domain);
        if (check < 0 || (check > 0 && add_of_claim(work, RECONCILE_CHECK, claim, domain) < 0) ||
            inspect_unread(work, claim) < 0)
                return -ENOMEM;
        /* The program that moves the guest decides about a confirmed claim of a migration. */
        if (moving && claim->state == CLAIM_STATE_CONFIRMED)
                return 0;
        return domain ? handle_guest(work, claim, domain) : handle_guestless(work, claim, stopped);
}

static bool is_away(const ReconcileInput *input, const HostDomain *domain)
{
        for (size_t i = 0; i < input->n_away; i++)
                if (uuid_equal(&input->away[i], &domain->uuid))
                        return true;
        return false;
}

/* Returns true if the agent wrote these allocations of a guest, for an earlier start. Without a
 * type of the consumer, only the project shows that: Placement before microversion 1.38 has no
 * types. */
static bool is_own(const Consumer *holding)
{
        const char *type = holding->type ? holding->type : "unknown";

        return strcmp(type, CLAIM_TYPE_GUEST) == 0 ||
               (strcmp(type, "unknown") == 0 && holding->project_id &&
                strcmp(holding->project_id, CONSUMER_UNKNOWN_ID) == 0);
}

bool reconcile_adopts(const ReconcileInput *input, const HostDomain *domain)
{
        const ConsumerRead *answer =
                input->unread && input->complete
                        ? consumer_read_find(input->answers, input->n_answers, &domain->uuid)
                        : NULL;

        return domain->running || (!input->started_only && !is_away(input, domain)) ||
               (answer && answer->here && !(answer->holding && is_own(answer->holding)));
}

/* Orders actions by their rank, so that releases free resources before adoptions and placings need
 * them. Questions come last. */
static int order_actions(const void *a, const void *b)
{
        static const int rank[_RECONCILE_TYPE_MAX] = {
                [RECONCILE_RELEASE] = 0,  [RECONCILE_CONFIRM] = 1, [RECONCILE_EXTEND] = 2,
                [RECONCILE_COMPLETE] = 3, [RECONCILE_CHECK] = 4,   [RECONCILE_ADOPT] = 5,
                [RECONCILE_PLACE] = 6,    [RECONCILE_READ] = 7
        };
        const ReconcileAction *x = a, *y = b;

        if (x->type != y->type)
                return rank[x->type] - rank[y->type];
        if (x->claim_id != y->claim_id)
                return x->claim_id < y->claim_id ? -1 : 1;
        return uuid_order(&x->consumer, &y->consumer);
}

/* New claim databases, which can have replaced a lost one. */

/* Returns true if the consumer can be the migration of this guest, whose own allocations are on
 * other hosts. The claim of the guest then counts the amounts of that migration. */
static bool is_move_of(const Work *work, const Consumer *consumer, const HostDomain *domain)
{
        const ConsumerRead *guest = find_answer(work, &domain->uuid);
        GuestSize size = guest_size_of_consumer(consumer);

        return guest && guest->holding && !guest->here && !domain->unread &&
               guest_index_can_be_migration(&work->index, consumer) &&
               consumer_is_same_project(guest->holding, consumer) && size.cpus == domain->vcpus &&
               size.memory_mb == domain->memory_mb;
}

/* A guest can be moving to another host. For each such guest, marks at most one consumer that can
 * be its migration. Then place_consumers() makes no claim of this consumer, because the claim of
 * the guest counts its amounts. This is also done for a guest that is off and gets no claim: a
 * claim of the migration would have its devices, and prevent its start after a reverted resize. */
static void mark_migrations(const Work *work, bool *counted)
{
        for (size_t i = 0; !work->input->recorded && i < work->input->facts->n_domains; i++)
                for (size_t j = 0; j < work->input->n_answers; j++) {
                        if (counted[j] || !work->input->answers[j].here ||
                            !is_move_of(work, work->input->answers[j].holding,
                                        &work->input->facts->domains[i]))
                                continue;
                        counted[j] = true;
                        break;
                }
}

/* Adds an action for each consumer with allocations here that has neither a claim nor a guest, and
 * that mark_migrations() did not mark. inspect_unclaimed() decides about the guests. */
static int place_consumers(Work *work)
{
        _cleanup_free_ bool *counted = calloc(work->input->n_answers + 1, sizeof(bool));

        if (!counted)
                return -ENOMEM;
        mark_migrations(work, counted);
        for (size_t i = 0; i < work->input->n_answers; i++) {
                const ConsumerRead *answer = &work->input->answers[i];

                if (!answer->here || counted[i] ||
                    guest_index_has_claim(&work->index, &answer->consumer, NULL) ||
                    (!work->input->recorded && guest_index_domain(&work->index, &answer->consumer)))
                        continue;
                if (add_action(work, RECONCILE_PLACE, &answer->consumer, 0, NULL) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Asks for a complete read of Placement, or uses it. While Placement cannot be asked, the unread
 * database is a problem. */
static int inspect_unread_database(Work *work)
{
        if (!work->input->unread || work->input->access == RECONCILE_NO_PLACEMENT)
                return 0;
        if (work->input->complete)
                return place_consumers(work);
        work->ret->wants_all = work->ret->wants_all || work->input->access == RECONCILE_CAN_READ;
        return work->ret->wants_all ? 0
                                    : reconcile_add_problem(&work->ret->problems, &UUID_NULL, 0,
                                                            "%s", RECONCILE_UNREAD);
}

/* Handles a guest without a claim: adopts it, or asks about its consumer first, unless it gets no
 * claim. A guest that cannot be read is a problem. */
static int inspect_unclaimed(Work *work, const HostDomain *domain)
{
        bool ask = work->input->access == RECONCILE_CAN_READ &&
                   guest_index_place(&work->index, &domain->uuid) == CONSUMER_UNREAD;

        if (domain->unread)
                return reconcile_add_problem(
                        &work->ret->problems, &domain->uuid, 0,
                        "guest %.60s has no claim, and its domain cannot be read", domain->name);
        if (!reconcile_adopts(work->input, domain))
                return 0;
        return add_action(work, ask ? RECONCILE_READ : RECONCILE_ADOPT, &domain->uuid, 0, domain);
}

static int inspect_all(Work *work)
{
        if (inspect_unread_database(work) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < work->input->claims->n_claims; i++)
                if (inspect_claim(work, work->input->claims->claims[i]) < 0)
                        return -ENOMEM;
        for (size_t i = 0; !work->input->recorded && i < work->input->facts->n_domains; i++) {
                const HostDomain *domain = &work->input->facts->domains[i];

                if (!guest_index_has_claim(&work->index, &domain->uuid, NULL) &&
                    inspect_unclaimed(work, domain) < 0)
                        return -ENOMEM;
        }
        if (work->ret->n_actions > 1)
                qsort(work->ret->actions, work->ret->n_actions, sizeof(ReconcileAction),
                      order_actions);
        return 0;
}

/* Lists providers with more usage than capacity, because a running guest is counted even if it does
 * not fit. Skips an inventory that is reserved as a whole. */
static int inspect_view(const HostView *view, ReconcileProblems *problems)
{
        for (size_t i = 0; i < view->n_providers; i++) {
                const Provider *provider = view->tree->providers[i];
                const Resources *used = &view->providers[i].used;

                for (size_t j = 0; j < used->n_items; j++) {
                        const Inventory *inventory =
                                provider_find_inventory(provider, used->items[j].resource_class);
                        uint64_t capacity = inventory ? inventory_capacity(inventory) : 0;

                        /* All is reserved: the provider is cordoned or withheld, and its guests can
                         * stay. */
                        if (used->items[j].amount <= capacity ||
                            (inventory && inventory->reserved == inventory->total))
                                continue;
                        if (reconcile_add_problem(problems, &UUID_NULL, 0,
                                                  "%s: claims and guests have %" PRIu64
                                                  " %s of %" PRIu64,
                                                  provider->name, used->items[j].amount,
                                                  used->items[j].resource_class, capacity) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

int reconcile_make(const ReconcileInput *input, ReconcileMemory *memory, Reconcile *ret)
{
        Work work = { .input = input,
                      .index = { .claims = input->claims,
                                 .facts = input->facts,
                                 .processes = input->processes,
                                 .n_processes = input->n_processes,
                                 .consumers = input->answers,
                                 .n_consumers = input->n_answers },
                      .now_usec = input->facts->taken_usec,
                      .memory = memory,
                      .ret = ret };
        int r = guest_index_make(&work.index);

        if (r == 0)
                r = inspect_all(&work);
        if (r == 0 && input->view)
                r = inspect_view(input->view, &ret->problems);
        guest_index_done(&work.index);
        if (r < 0) {
                reconcile_memory_done(&work.next);
                reconcile_done(ret);
                return -ENOMEM;
        }
        reconcile_memory_done(memory);
        *memory = work.next;
        return 0;
}
