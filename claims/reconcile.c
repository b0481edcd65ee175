/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looks at each claim once, with its guest or without one, and then at each guest without a claim.
 * Every claim that is without a guest, or waits for an answer of Placement, has an item in the
 * memory, which the next call gets. Only reconcile_make() changes the memory, at its end. */

#include "claims/reconcile.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "claims/fit/device-choice.h"
#include "claims/follow.h"
#include "claims/resize-pair.h"

/* How long two claims of a guest can stand beside each other before they are listed, where claims
 * do not expire. */
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

static int add_action(Reconcile *reconcile, ReconcileType type, const Uuid *consumer,
                      int64_t claim_id, const HostDomain *domain)
{
        if (array_grow(&reconcile->actions, sizeof(ReconcileAction), reconcile->n_actions,
                       &reconcile->n_actions_allocated) < 0)
                return -ENOMEM;
        reconcile->actions[reconcile->n_actions++] = (ReconcileAction){
                .type = type, .claim_id = claim_id, .consumer = *consumer, .domain = domain
        };
        return 0;
}

static int add_release(Reconcile *reconcile, const Claim *claim, const char *reason,
                       const char *evidence)
{
        int r = add_action(reconcile, RECONCILE_RELEASE, &claim->consumer, claim->id, NULL);

        if (r == 0) {
                reconcile->actions[reconcile->n_actions - 1].reason = reason;
                reconcile->actions[reconcile->n_actions - 1].evidence = evidence;
        }
        return r;
}

/* Placement */

static const PictureConsumer *find_answer(const ReconcileInput *input, const Uuid *consumer)
{
        return picture_find(input->answers, input->n_answers, consumer);
}

static bool is_gone(PicturePlace place)
{
        return place == PICTURE_ELSEWHERE || place == PICTURE_NOWHERE;
}

/* Returns true if another writer decides what the claim's consumer holds in Placement. */
static bool is_placed_by_other(const ReconcileInput *input, const Claim *claim)
{
        return input->word != RECONCILE_ALONE && claim->write_state != CLAIM_WRITE_WRITTEN &&
               !(input->started_only && claim_is_of_guest_alone(claim));
}

/* Returns true if Placement had allocations of the claim, so that another writer removed them if it
 * has none. A migration can give its allocations back to its guest. */
static bool was_reported(const Claim *claim)
{
        return uuid_empty(&claim->guest) && (claim->write_state == CLAIM_WRITE_NONE ||
                                             claim->write_state == CLAIM_WRITE_WRITTEN);
}

static bool is_touched(const ReconcileInput *input, const Claim *claim)
{
        for (size_t i = 0; i < input->n_touched; i++)
                if (input->touched[i].claim_id == claim->id &&
                    input->touched[i].when_usec >= input->facts->taken_usec)
                        return true;
        return false;
}

/* Claims without a guest. */

static int order_missing(const void *a, const void *b)
{
        const ReconcileMissing *x = a, *y = b;

        return x->claim_id < y->claim_id ? -1 : x->claim_id > y->claim_id;
}

static ReconcileMissing recall(const ReconcileMemory *memory, int64_t claim_id, uint64_t now)
{
        const ReconcileMissing key = { .claim_id = claim_id, .since_usec = now }, *found = NULL;

        if (memory->n_items > 0)
                found = bsearch(&key, memory->items, memory->n_items, sizeof(ReconcileMissing),
                                order_missing);
        return found ? *found : key;
}

static int remember(ReconcileMemory *next, const ReconcileMissing *missing)
{
        if (array_grow(&next->items, sizeof(ReconcileMissing), next->n_items, &next->n_allocated) <
            0)
                return -ENOMEM;
        next->items[next->n_items++] = *missing;
        return 0;
}

/* A claim that has no guest here. */
typedef struct Lonely {
        const Claim *claim;
        ReconcileMissing missing;
        PicturePlace place;   /* of the claim's consumer */
        bool stopped;         /* it has a guest, which does not run */
        bool confirmed, aged; /* without its guest, or unconfirmed, for long enough */
} Lonely;

static Lonely make_lonely(const ReconcileInput *input, const Claim *claim, bool stopped,
                          const ReconcileMemory *memory)
{
        uint64_t now = input->facts->taken_usec;
        Lonely lonely = { .claim = claim,
                          .stopped = stopped,
                          .missing = recall(memory, claim->id, now),
                          .place = picture_place(input->picture, &claim->consumer),
                          .confirmed = claim->state == CLAIM_STATE_CONFIRMED };

        if (lonely.confirmed)
                lonely.aged = input->expiry_usec > 0 &&
                              !time_is_within(now, lonely.missing.since_usec, input->expiry_usec);
        else
                lonely.aged = claim->expires_usec > 0 && claim->expires_usec <= now;
        if (lonely.place != PICTURE_UNREAD)
                lonely.missing.asked_usec = now;
        return lonely;
}

/* Returns true if Nova has a folder for the claim's server, or if that is unknown. */
static bool may_be_built(const ReconcileInput *input, const Lonely *lonely)
{
        return !lonely->stopped && (input->facts->folders_unknown ||
                                    host_facts_has_folder(input->facts, &lonely->claim->consumer));
}

/* Is it certain that nobody has it any more? */
static bool is_over(const ReconcileInput *input, const Lonely *lonely)
{
        if (is_touched(input, lonely->claim))
                return false;
        if (is_gone(lonely->place))
                return lonely->aged || was_reported(lonely->claim);
        return lonely->aged && !is_placed_by_other(input, lonely->claim) &&
               !may_be_built(input, lonely);
}

static const char *evidence_of(const ReconcileInput *input, const Lonely *lonely)
{
        if (is_gone(lonely->place))
                return "Placement has no allocations of it on this host";
        if (input->word == RECONCILE_ALONE)
                return "no Placement is configured";
        if (lonely->claim->write_state == CLAIM_WRITE_WRITTEN)
                return "this agent alone wrote its allocations";
        return "its claim was made of its guest alone";
}

static const char *reason_of(const Lonely *lonely)
{
        if (lonely->stopped)
                return "its guest stopped";
        if (lonely->aged)
                return lonely->confirmed ? CLAIM_ORPHAN : CLAIM_EXPIRED;
        return "orphan: its guest is gone, and Placement has nothing of it";
}

/* The longer it has been without a guest, the seldomer. */
static bool is_due(const ReconcileInput *input, const ReconcileMissing *missing)
{
        uint64_t now = input->facts->taken_usec, asked = missing->asked_usec,
                 pause = asked > missing->since_usec ? asked - missing->since_usec : 0;

        if (input->expiry_usec > 0)
                pause = MIN(pause, input->expiry_usec);
        return asked == 0 || (now > asked && now - asked >= pause);
}

static bool is_to_be_asked(const ReconcileInput *input, const Lonely *lonely)
{
        if (input->word != RECONCILE_CAN_ASK || lonely->place != PICTURE_UNREAD ||
            is_touched(input, lonely->claim))
                return false;
        if (!lonely->aged && !was_reported(lonely->claim))
                return false;
        return input->urgent ||
               (lonely->confirmed ? is_due(input, &lonely->missing) : lonely->aged);
}

/* stopped: it has a guest, which does not run and holds nothing then by itself. */
static int look_at_lonely(const ReconcileInput *input, const Claim *claim, bool stopped,
                          const ReconcileMemory *memory, ReconcileMemory *next, Reconcile *ret)
{
        const Lonely lonely = make_lonely(input, claim, stopped, memory);

        /* What is just being made is nobody's yet; without Placement, claims expire by themselves.
         */
        if (claim->state == CLAIM_STATE_PENDING ||
            (!lonely.confirmed && input->word == RECONCILE_ALONE))
                return 0;
        if (is_over(input, &lonely))
                return add_release(ret, claim, reason_of(&lonely), evidence_of(input, &lonely));
        if (is_to_be_asked(input, &lonely) &&
            add_action(ret, RECONCILE_ASK, &claim->consumer, claim->id, NULL) < 0)
                return -ENOMEM;
        if (!lonely.confirmed)
                return lonely.aged && lonely.place == PICTURE_HERE
                               ? add_action(ret, RECONCILE_EXTEND, &claim->consumer, claim->id,
                                            NULL)
                               : 0;
        if (!stopped && lonely.aged && lonely.missing.asked_usec > 0 &&
            reconcile_add_problem(
                    &ret->problems, &claim->consumer, claim->id,
                    "claim %" PRId64
                    " has had no guest here for longer than claim_expiry_time, and Placement still has its allocations",
                    claim->id) < 0)
                return -ENOMEM;
        return remember(next, &lonely.missing);
}

/* Claims with a guest. */

/* The old claim stays in the history, which an audit needs to know migrations by their size. */
static int replace_claim(const Claim *claim, const HostDomain *domain, const char *reason,
                         const char *evidence, Reconcile *ret)
{
        int r = add_release(ret, claim, reason, evidence);

        return r < 0 ? r : add_action(ret, RECONCILE_ADOPT, &domain->uuid, 0, domain);
}

static bool must_follow(const ReconcileInput *input, const Claim *claim, const HostDomain *domain,
                        const Consumer *placed)
{
        return placed &&
               claim_must_follow(claim, domain, input->facts, input->view, input->node, placed);
}

/* Looks at a claim that was made of a guest and that Placement decides about: its guest was
 * resized, or another writer changed an amount. Where Placement has what the guest has, or more,
 * the claim is made again. */
static int look_at_follower(const ReconcileInput *input, const Claim *claim,
                            const HostDomain *domain, const ReconcileMemory *memory,
                            ReconcileMemory *next, Reconcile *ret)
{
        const PictureConsumer *answer = find_answer(input, &claim->consumer);
        const Consumer *held = input->held ? allocations_find(input->held, &claim->consumer) : NULL;
        ReconcileMissing since = recall(memory, claim->id, input->facts->taken_usec);
        bool resized = claim_was_resized(claim, domain);

        if (answer && answer->here && answer->holding) {
                if (resized && guest_size_covers(guest_size_of_consumer(answer->holding), domain))
                        return replace_claim(claim, domain, CLAIM_RESIZED,
                                             "guest and Placement have the same other amounts",
                                             ret);
                if (must_follow(input, claim, domain, answer->holding))
                        return replace_claim(claim, domain, CLAIM_FOLLOWED,
                                             "another writer changed the amounts in Placement",
                                             ret);
        }
        if (answer)
                since.asked_usec = input->facts->taken_usec;
        else if (input->word == RECONCILE_CAN_ASK &&
                 (must_follow(input, claim, domain, held) || (resized && is_due(input, &since))) &&
                 add_action(ret, RECONCILE_ASK, &claim->consumer, claim->id, NULL) < 0)
                return -ENOMEM;
        if (resized && remember(next, &since) < 0)
                return -ENOMEM;
        return reconcile_compare(input->picture, claim, domain, &ret->problems);
}

/* Two claims of a guest. */

/* Returns the resize target beside the first claim of a consumer, or NULL. */
static const Claim *find_target(const ReconcileInput *input, const Claim *first)
{
        size_t n;
        const PictureKey *keys = picture_claims(input->picture, &first->consumer, &n);

        for (size_t i = 0; i < n; i++)
                if (resize_pair_is(first, keys[i].of))
                        return keys[i].of;
        return NULL;
}

/* A claim that is promised and did not expire is kept: its caller can write Placement later. */
static bool is_promised(const ReconcileInput *input, const Claim *claim)
{
        return claim->state == CLAIM_STATE_CLAIMED &&
               (claim->expires_usec == 0 || claim->expires_usec > input->facts->taken_usec);
}

/* Lists a pair that is older than the expiry time, and that no migration explains. */
static int list_pair(const ReconcileInput *input, const Claim *first, const Claim *target,
                     const HostDomain *domain, const ReconcileMissing *pair,
                     ReconcileProblems *problems)
{
        if (!uuid_empty(&pair->migration) ||
            (input->word != RECONCILE_ALONE && pair->asked_usec == 0) ||
            time_is_within(input->facts->taken_usec, pair->since_usec,
                           input->expiry_usec > 0 ? input->expiry_usec : PAIR_AGE_USEC))
                return 0;
        return reconcile_add_problem(
                problems, &first->consumer, first->id,
                "guest %.60s has claims %" PRId64 " and %" PRId64
                ", and nothing shows which of its resize is over; release the claim that it does not need",
                domain->name, first->id, target->id);
}

/* Ends the claim that is over. The other one is confirmed; if its devices are not those of the
 * guest, it is replaced by a claim that is made of the guest. */
static int end_pair(const ReconcileInput *input, const ResizePair *pair, const HostDomain *domain,
                    Reconcile *ret)
{
        if (add_release(ret, pair->over, CLAIM_RESIZE_OVER,
                        "guest and Placement have the amounts of the other claim") < 0)
                return -ENOMEM;
        ret->actions[ret->n_actions - 1].other_id = pair->kept->id;
        ret->actions[ret->n_actions - 1].domain = domain;
        if (pair->has_other_devices)
                return add_release(ret, pair->kept, CLAIM_RESIZED,
                                   "its resize is over, and the guest has other devices") < 0
                               ? -ENOMEM
                               : add_action(ret, RECONCILE_ADOPT, &domain->uuid, 0, domain);
        return pair->kept->state == CLAIM_STATE_CLAIMED
                       ? add_action(ret, RECONCILE_CONFIRM, &pair->kept->consumer, pair->kept->id,
                                    domain)
                       : 0;
}

/* Follows the migration that can hold one of the two, or asks for a complete read. */
static int ask_about_pair(const ReconcileInput *input, ReconcileMissing *pair, Reconcile *ret)
{
        PicturePlace place = picture_place(input->picture, &pair->migration);

        if (place == PICTURE_HERE) {
                pair->asked_usec = input->facts->taken_usec;
                return 0;
        }
        if (is_gone(place)) {
                *pair = (ReconcileMissing){ .claim_id = pair->claim_id,
                                            .since_usec = input->facts->taken_usec };
                return 0;
        }
        if (input->word != RECONCILE_CAN_ASK || !is_due(input, pair))
                return 0;
        if (!uuid_empty(&pair->migration))
                return add_action(ret, RECONCILE_ASK, &pair->migration, pair->claim_id, NULL);
        ret->wants_all = true;
        return 0;
}

static int look_at_pair(const ReconcileInput *input, const Claim *first, const Claim *target,
                        const HostDomain *domain, const ReconcileMemory *memory,
                        ReconcileMemory *next, Reconcile *ret)
{
        ReconcileMissing pair = recall(memory, first->id, input->facts->taken_usec);
        ResizePair judged = { 0 };
        int verdict = RESIZE_PAIR_OPEN;

        if (is_touched(input, first) || is_touched(input, target))
                return remember(next, &pair);
        if (input->complete) {
                verdict = resize_pair_judge(input->picture, input->view, first, target, domain,
                                            &judged);
                pair.asked_usec = input->facts->taken_usec;
                pair.migration = judged.migration ? judged.migration->uuid : UUID_NULL;
        } else if (ask_about_pair(input, &pair, ret) < 0) {
                return -ENOMEM;
        }
        if (verdict < 0)
                return verdict;
        if (verdict == RESIZE_PAIR_OVER && !is_promised(input, judged.over))
                return end_pair(input, &judged, domain, ret);
        if (list_pair(input, first, target, domain, &pair, &ret->problems) < 0)
                return -ENOMEM;
        return remember(next, &pair);
}

static int look_at_guest(const ReconcileInput *input, const Claim *claim, const HostDomain *domain,
                         const ReconcileMemory *memory, ReconcileMemory *next, Reconcile *ret)
{
        const Claim *target = domain->unread ? NULL : find_target(input, claim);

        if (target && look_at_pair(input, claim, target, domain, memory, next, ret) < 0)
                return -ENOMEM;
        if (claim->state == CLAIM_STATE_CLAIMED)
                return claim->life[0] || (!domain->unread && claim->expires_usec > 0 &&
                                          claim->expires_usec <= input->facts->taken_usec)
                               ? add_action(ret, RECONCILE_CONFIRM, &claim->consumer, claim->id,
                                            domain)
                               : 0;
        /* Of two claims, the guest has one or the other. */
        if (domain->unread || picture_has_claim(input->picture, &claim->consumer, claim))
                return 0;
        if (claim_follows(claim) && input->word != RECONCILE_ALONE)
                return look_at_follower(input, claim, domain, memory, next, ret);
        return reconcile_compare(input->picture, claim, domain, &ret->problems);
}

/* Returns 1 if the claim must hold other host CPUs for the threads of its guest, -ENOMEM. */
static int holds_other_cpus(const ReconcileInput *input, const Claim *claim,
                            const HostDomain *domain)
{
        _cleanup_(cpu_set_done) CpuSet missing = CPU_SET_INIT, left = CPU_SET_INIT;

        if (!input->view || domain->unread || !uuid_empty(&claim->guest) ||
            picture_has_claim(input->picture, &claim->consumer, claim))
                return 0;
        if (layout_compare_held(&claim->layout, &domain->layout, &input->view->held, &missing,
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

/* Returns 1 if the claim must be checked again, -ENOMEM. */
static int must_check(const ReconcileInput *input, const Claim *claim, const HostDomain *domain)
{
        if (strcmp(claim->boot_id, input->boot_id) != 0 ||
            device_count_missing(input->facts, input->node, claim) > 0 ||
            lacks_identity(input->facts, claim) ||
            (domain && claim->layout.n_cells == 0 && domain->layout.n_cells > 0))
                return 1;
        return domain ? holds_other_cpus(input, claim, domain) : 0;
}

/* A claim that was made of a guest alone. */
static int look_at_unread(const ReconcileInput *input, const Claim *claim, Reconcile *ret)
{
        if (input->word == RECONCILE_ALONE || claim->was_read || !uuid_empty(&claim->guest) ||
            claim->write_state != CLAIM_WRITE_NONE || claim->state != CLAIM_STATE_CONFIRMED ||
            strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) != 0)
                return 0;
        if (picture_place(input->picture, &claim->consumer) != PICTURE_UNREAD)
                return add_action(ret, RECONCILE_COMPLETE, &claim->consumer, claim->id, NULL);
        return input->word == RECONCILE_CAN_ASK
                       ? add_action(ret, RECONCILE_ASK, &claim->consumer, claim->id, NULL)
                       : 0;
}

static int look_at_claim(const ReconcileInput *input, const Claim *claim,
                         const ReconcileMemory *memory, ReconcileMemory *next, Reconcile *ret)
{
        bool moving = !uuid_empty(&claim->guest);
        const HostDomain *domain = picture_guest(input->picture, claim);
        bool stopped = domain && input->started_only && !domain->running &&
                       strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0;
        int check;

        if (stopped)
                domain = NULL;
        /* Devices are known also on a host whose guests are not. */
        if (reconcile_check_devices(input->picture, claim, domain, &ret->problems) < 0 ||
            (input->recorded && lacks_identity(input->facts, claim) &&
             add_action(ret, RECONCILE_CHECK, &claim->consumer, claim->id, NULL) < 0))
                return -ENOMEM;
        if (input->recorded && !claim->life[0])
                return claim->state == CLAIM_STATE_CLAIMED
                               ? look_at_lonely(input, claim, stopped, memory, next, ret)
                               : 0;
        check = input->recorded ? 0 : must_check(input, claim, domain);
        if (check < 0 ||
            (check > 0 &&
             add_action(ret, RECONCILE_CHECK, &claim->consumer, claim->id, domain) < 0) ||
            look_at_unread(input, claim, ret) < 0)
                return -ENOMEM;
        /* Where the guest of a migration is, and what it has, is for who moves it to say. */
        if (moving && claim->state == CLAIM_STATE_CONFIRMED)
                return 0;
        return domain ? look_at_guest(input, claim, domain, memory, next, ret)
                      : look_at_lonely(input, claim, stopped, memory, next, ret);
}

static bool is_away(const ReconcileInput *input, const HostDomain *domain)
{
        for (size_t i = 0; !domain->running && i < input->n_away; i++)
                if (uuid_equal(&input->away[i], &domain->uuid))
                        return true;
        return false;
}

static int order_actions(const void *a, const void *b)
{
        static const int rank[_RECONCILE_TYPE_MAX] = {
                [RECONCILE_RELEASE] = 0,  [RECONCILE_CONFIRM] = 1, [RECONCILE_EXTEND] = 2,
                [RECONCILE_COMPLETE] = 3, [RECONCILE_CHECK] = 4,   [RECONCILE_ADOPT] = 5,
                [RECONCILE_PLACE] = 6,    [RECONCILE_ASK] = 7
        };
        const ReconcileAction *x = a, *y = b;

        if (x->type != y->type)
                return rank[x->type] - rank[y->type];
        if (x->claim_id != y->claim_id)
                return x->claim_id < y->claim_id ? -1 : 1;
        return uuid_order(&x->consumer, &y->consumer);
}

/* A claim database that is new: it can have replaced one that was lost. */

/* Returns true if the consumer can be the migration of this guest, whose allocations are on other
 * hosts. The guest shows what it had here, and its claim counts that. */
static bool is_move_of(const ReconcileInput *input, const Consumer *consumer,
                       const HostDomain *domain)
{
        const PictureConsumer *guest = find_answer(input, &domain->uuid);
        GuestSize size = guest_size_of_consumer(consumer);

        return guest && guest->holding && !guest->here && !domain->unread &&
               consumer_is_same_project(guest->holding, consumer) && size.cpus == domain->vcpus &&
               size.memory_mb == domain->memory_mb;
}

/* Marks one answer for each guest that can be moving to another host: its migration gets no claim
 * beside the guest's. */
static void mark_migrations(const ReconcileInput *input, bool *counted)
{
        for (size_t i = 0; !input->recorded && i < input->facts->n_domains; i++)
                for (size_t j = 0; j < input->n_answers; j++) {
                        if (counted[j] || !input->answers[j].here ||
                            !is_move_of(input, input->answers[j].holding,
                                        &input->facts->domains[i]))
                                continue;
                        counted[j] = true;
                        break;
                }
}

static int place_consumers(const ReconcileInput *input, Reconcile *ret)
{
        _cleanup_free_ bool *counted = calloc(input->n_answers + 1, sizeof(bool));

        if (!counted)
                return -ENOMEM;
        mark_migrations(input, counted);
        for (size_t i = 0; i < input->n_answers; i++) {
                const PictureConsumer *answer = &input->answers[i];

                if (!answer->here || counted[i] ||
                    picture_has_claim(input->picture, &answer->consumer, NULL) ||
                    (!input->recorded && picture_domain(input->picture, &answer->consumer)))
                        continue;
                if (add_action(ret, RECONCILE_PLACE, &answer->consumer, 0, NULL) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int look_at_unread_database(const ReconcileInput *input, Reconcile *ret)
{
        if (!input->unread || input->word == RECONCILE_ALONE)
                return 0;
        if (input->complete)
                return place_consumers(input, ret);
        ret->wants_all = ret->wants_all || input->word == RECONCILE_CAN_ASK;
        return ret->wants_all ? 0
                              : reconcile_add_problem(&ret->problems, &UUID_NULL, 0, "%s",
                                                      RECONCILE_UNREAD);
}

/* A guest without a claim. */
static int look_at_unclaimed(const ReconcileInput *input, const HostDomain *domain, Reconcile *ret)
{
        bool ask = input->word == RECONCILE_CAN_ASK &&
                   picture_place(input->picture, &domain->uuid) == PICTURE_UNREAD;

        if (domain->unread)
                return reconcile_add_problem(
                        &ret->problems, &domain->uuid, 0,
                        "guest %.60s has no claim, and cannot be read to make one", domain->name);
        if (is_away(input, domain) || (input->started_only && !domain->running))
                return 0;
        return add_action(ret, ask ? RECONCILE_ASK : RECONCILE_ADOPT, &domain->uuid, 0, domain);
}

static int look_at_all(const ReconcileInput *input, const ReconcileMemory *memory,
                       ReconcileMemory *next, Reconcile *ret)
{
        if (look_at_unread_database(input, ret) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < input->claims->n_claims; i++)
                if (look_at_claim(input, input->claims->claims[i], memory, next, ret) < 0)
                        return -ENOMEM;
        for (size_t i = 0; !input->recorded && i < input->facts->n_domains; i++) {
                const HostDomain *domain = &input->facts->domains[i];

                if (!picture_has_claim(input->picture, &domain->uuid, NULL) &&
                    look_at_unclaimed(input, domain, ret) < 0)
                        return -ENOMEM;
        }
        if (ret->n_actions > 1)
                qsort(ret->actions, ret->n_actions, sizeof(ReconcileAction), order_actions);
        return 0;
}

/* What runs is counted also when it does not fit: then more is used than there is. */
static int look_at_view(const HostView *view, ReconcileProblems *problems)
{
        for (size_t i = 0; i < view->n_providers; i++) {
                const Provider *provider = view->tree->providers[i];
                const Resources *used = &view->providers[i].used;

                for (size_t j = 0; j < used->n_items; j++) {
                        const Inventory *inventory =
                                provider_find_inventory(provider, used->items[j].resource_class);
                        uint64_t capacity = inventory ? inventory_capacity(inventory) : 0;

                        /* All reserved: it is cordoned or withheld, and what is there may stay. */
                        if (used->items[j].amount <= capacity ||
                            (inventory && inventory->reserved == inventory->total))
                                continue;
                        if (reconcile_add_problem(problems, &UUID_NULL, 0,
                                                  "%s: claims and guests hold %" PRIu64
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
        _cleanup_(picture_done) Picture picture = { .claims = input->claims,
                                                    .facts = input->facts,
                                                    .lives = input->lives,
                                                    .n_lives = input->n_lives,
                                                    .consumers = input->answers,
                                                    .n_consumers = input->n_answers };
        ReconcileInput with_picture = *input;
        ReconcileMemory next = { 0 };

        with_picture.picture = &picture;
        if (picture_make(&picture) < 0 || look_at_all(&with_picture, memory, &next, ret) < 0 ||
            (input->view && look_at_view(input->view, &ret->problems) < 0)) {
                reconcile_memory_done(&next);
                reconcile_done(ret);
                return -ENOMEM;
        }
        reconcile_memory_done(memory);
        *memory = next;
        return 0;
}
