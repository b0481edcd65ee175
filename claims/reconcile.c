/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/reconcile.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "claims/compare-devices.h"
#include "claims/fit/device-choice.h"
#include "claims/follow.h"
#include "claims/moved-guests.h"
#include "claims/reconcile-index.h"
#include "claims/reconcile-layout.h"
#include "claims/resize-pair.h"

int reconcile_add_problem(ReconcileProblems *problems, const Uuid *consumer, int64_t claim_id,
                          const char *format, ...)
{
        char *text;
        va_list ap;

        if (array_grow(&problems->items, sizeof(ReconcileProblem), problems->n_items,
                       &problems->n_allocated) < 0)
                return -ENOMEM;
        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        if (!text)
                return -ENOMEM;
        problems->items[problems->n_items++] =
                (ReconcileProblem){ .consumer = *consumer, .claim_id = claim_id, .text = text };
        return 0;
}

void reconcile_problems_done(ReconcileProblems *problems)
{
        for (size_t i = 0; i < problems->n_items; i++)
                free(problems->items[i].text);
        free(problems->items);
        *problems = (ReconcileProblems){ 0 };
}

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

/* What Placement says. */

static int order_answer(const void *a, const void *b)
{
        return uuid_order(&((const ReconcileAnswer *)a)->consumer,
                          &((const ReconcileAnswer *)b)->consumer);
}

typedef enum Answer {
        ANSWER_NONE,
        ANSWER_HOLDS, /* something here */
        ANSWER_GONE,
} Answer;

const ReconcileAnswer *reconcile_find_answer(const ReconcileInput *input, const Uuid *consumer)
{
        const ReconcileAnswer key = { .consumer = *consumer };

        return input->n_answers > 0 ? bsearch(&key, input->answers, input->n_answers,
                                              sizeof(ReconcileAnswer), order_answer)
                                    : NULL;
}

static Answer answer_about(const ReconcileInput *input, const Uuid *consumer)
{
        const ReconcileAnswer *found = reconcile_find_answer(input, consumer);

        return !found ? ANSWER_NONE : found->here ? ANSWER_HOLDS : ANSWER_GONE;
}

/* Is what its consumer holds the word of somebody else? */
static bool is_vouched_for(const ReconcileInput *input, const Claim *claim)
{
        return input->word != RECONCILE_ALONE && claim->write_state != CLAIM_WRITE_WRITTEN &&
               !(input->started_only && claim_is_of_guest_alone(claim));
}

/* Then Placement has nothing of it because somebody took that away. What a migration has may have
 * gone back to its guest. */
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

/* Who is who. */

static const HostDomain *find_domain(const ReconcileInput *input, const Uuid *uuid)
{
        size_t n;
        const ReconcileKnown *found =
                reconcile_index_find(input->index->domains, input->index->n_domains, uuid, &n);

        return n > 0 ? found->is : NULL;
}

static bool is_mdev(const ReconcileInput *input, const Uuid *uuid)
{
        size_t n;

        if (!input->index)
                return host_facts_find_mdev(input->facts, uuid);
        (void)reconcile_index_find(input->index->mdevs, input->index->n_mdevs, uuid, &n);
        return n > 0;
}

static bool is_pci(const ReconcileInput *input, const char *address)
{
        if (!input->index)
                return host_facts_find_pci(input->facts, address);
        return bsearch(&address, input->index->pci, input->index->n_pci, sizeof(char *),
                       text_order);
}

/* Has it a claim other than this one (NULL: any)? */
static bool has_claim(const ReconcileInput *input, const Uuid *consumer, const Claim *but)
{
        size_t n;
        const ReconcileKnown *found =
                reconcile_index_find(input->index->claims, input->index->n_claims, consumer, &n);

        for (size_t i = 0; i < n; i++)
                if (found[i].is != but)
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
        Answer answer;
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
                          .answer = answer_about(input, &claim->consumer),
                          .confirmed = claim->state == CLAIM_STATE_CONFIRMED };

        if (lonely.confirmed)
                lonely.aged = input->expiry_usec > 0 && now > lonely.missing.since_usec &&
                              now - lonely.missing.since_usec >= input->expiry_usec;
        else
                lonely.aged = claim->expires_usec > 0 && claim->expires_usec <= now;
        if (lonely.answer != ANSWER_NONE)
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
        if (lonely->answer == ANSWER_GONE)
                return lonely->aged || was_reported(lonely->claim);
        return lonely->aged && !is_vouched_for(input, lonely->claim) &&
               !may_be_built(input, lonely);
}

static const char *evidence_of(const ReconcileInput *input, const Lonely *lonely)
{
        if (lonely->answer == ANSWER_GONE)
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
        if (input->word != RECONCILE_CAN_ASK || lonely->answer != ANSWER_NONE ||
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
                return lonely.aged && lonely.answer == ANSWER_HOLDS
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

static bool has_mdev(const Uuid *mdevs, size_t n, const Uuid *mdev)
{
        for (size_t i = 0; i < n; i++)
                if (uuid_equal(&mdevs[i], mdev))
                        return true;
        return false;
}

static bool domain_has_mdev(const HostDomain *domain, const Uuid *mdev)
{
        return has_mdev(domain->mdevs, domain->n_mdevs, mdev) ||
               has_mdev(domain->config_mdevs, domain->n_config_mdevs, mdev);
}

/* Lists mdevs of the guest that its claim does not name. where says in which definition they are.
 */
static int list_unclaimed_mdevs(const Claim *claim, const HostDomain *domain, const Uuid *mdevs,
                                size_t n, const char *where, ReconcileProblems *problems)
{
        for (size_t i = 0; i < n; i++) {
                if (claim_has_mdev(claim, &mdevs[i]))
                        continue;
                if (reconcile_add_problem(
                            problems, &claim->consumer, claim->id,
                            "guest %.60s has mdev %s%s, which its claim does not name",
                            domain->name, mdevs[i].text, where) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static const char in_config[] = " in its persistent definition";

static int compare_mdevs(const ReconcileInput *input, const Claim *claim, const HostDomain *domain,
                         ReconcileProblems *problems)
{
        int r;

        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                r = 0;
                if (uuid_empty(&device->mdev))
                        continue;
                if (!domain_has_mdev(domain, &device->mdev))
                        r = reconcile_add_problem(
                                problems, &claim->consumer, claim->id,
                                "guest %.60s does not have mdev %s on %s, which its claim names",
                                domain->name, device->mdev.text, device->name);
                else if (!is_mdev(input, &device->mdev))
                        r = reconcile_add_problem(problems, &claim->consumer, claim->id,
                                                  "mdev %s of guest %.60s is gone from %s",
                                                  device->mdev.text, domain->name, device->name);
                if (r < 0)
                        return r;
        }
        r = list_unclaimed_mdevs(claim, domain, domain->mdevs, domain->n_mdevs, "", problems);
        return r < 0 ? r
                     : list_unclaimed_mdevs(claim, domain, domain->config_mdevs,
                                            domain->n_config_mdevs, in_config, problems);
}

static bool has_pci(const char (*pci)[HOST_ADDRESS_SIZE], size_t n, const char *address)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(pci[i], address) == 0)
                        return true;
        return false;
}

static bool domain_has_pci(const HostDomain *domain, const char *address)
{
        return has_pci(domain->pci, domain->n_pci, address) ||
               has_pci(domain->config_pci, domain->n_config_pci, address);
}

/* Lists PCI devices of the guest that this host offers and its claim does not name. */
static int list_unclaimed_pci(const ReconcileInput *input, const Claim *claim,
                              const HostDomain *domain, const char (*pci)[HOST_ADDRESS_SIZE],
                              size_t n, const char *where, ReconcileProblems *problems)
{
        for (size_t i = 0; i < n; i++) {
                if (claim_has_pci(claim, pci[i]))
                        continue;
                if (!is_pci(input, pci[i])) /* not in device_spec: it needs no claim */
                        continue;
                if (reconcile_add_problem(
                            problems, &claim->consumer, claim->id,
                            "guest %.60s has PCI device %s%s, which its claim does not name",
                            domain->name, pci[i], where) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int compare_pci(const ReconcileInput *input, const Claim *claim, const HostDomain *domain,
                       ReconcileProblems *problems)
{
        int r;

        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (!uuid_empty(&device->mdev) || domain_has_pci(domain, device->address))
                        continue;
                if (reconcile_add_problem(
                            problems, &claim->consumer, claim->id,
                            "guest %.60s does not have PCI device %s, which its claim names",
                            domain->name, device->address) < 0)
                        return -ENOMEM;
        }
        r = list_unclaimed_pci(input, claim, domain, domain->pci, domain->n_pci, "", problems);
        return r < 0 ? r
                     : list_unclaimed_pci(input, claim, domain, domain->config_pci,
                                          domain->n_config_pci, in_config, problems);
}

/* Lists PCI devices of the guest that neither its claim names nor the host lists. where says in
 * which definition they are. */
static int list_unlisted_pci(const ReconcileInput *input, const Claim *claim,
                             const HostDomain *domain, const char (*pci)[HOST_ADDRESS_SIZE],
                             size_t n, const char *where, ReconcileProblems *problems)
{
        for (size_t i = 0; i < n; i++)
                if (!claim_has_pci(claim, pci[i]) &&
                    !host_facts_lists_function(input->facts, pci[i]) &&
                    reconcile_add_problem(
                            problems, &claim->consumer, claim->id,
                            "guest %.60s has PCI device %s%s, which this host does not list",
                            domain->name, pci[i], where) < 0)
                        return -ENOMEM;
        return 0;
}

/* A PCI device that a claim names and the host does not list. */
static int report_claimed_pci(const Claim *claim, const HostDomain *domain, const char *address,
                              ReconcileProblems *problems)
{
        if (!domain)
                return reconcile_add_problem(problems, &claim->consumer, claim->id,
                                             "claim %" PRId64
                                             " names PCI device %s, which this host does not list",
                                             claim->id, address);
        if (!domain_has_pci(domain, address))
                return 0; /* what claim and guest differ in is compared when it is confirmed */
        return reconcile_add_problem(problems, &claim->consumer, claim->id,
                                     "PCI device %s of guest %.60s is gone from this host", address,
                                     domain->name);
}

/* Reports the PCI devices of a claim and its guest that the host does not list, whatever state the
 * claim has. domain NULL: no guest here. */
static int look_for_devices(const ReconcileInput *input, const Claim *claim,
                            const HostDomain *domain, ReconcileProblems *problems)
{
        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (uuid_empty(&device->mdev) &&
                    !host_facts_lists_function(input->facts, device->address) &&
                    report_claimed_pci(claim, domain, device->address, problems) < 0)
                        return -ENOMEM;
        }
        if (!domain)
                return 0;
        if (list_unlisted_pci(input, claim, domain, domain->pci, domain->n_pci, "", problems) < 0)
                return -ENOMEM;
        return list_unlisted_pci(input, claim, domain, domain->config_pci, domain->n_config_pci,
                                 in_config, problems);
}

static int compare(const ReconcileInput *input, const Claim *claim, const HostDomain *domain,
                   ReconcileProblems *problems)
{
        int r = reconcile_compare_amounts(claim, domain, problems);

        if (r < 0 || (r = compare_mdevs(input, claim, domain, problems)) < 0 ||
            (r = compare_pci(input, claim, domain, problems)) < 0)
                return r;
        return reconcile_compare_layout(claim, domain, problems);
}

int reconcile_compare(const Claim *claim, const HostDomain *domain, const HostFacts *facts,
                      ReconcileProblems *problems)
{
        const ReconcileInput input = { .facts = facts };

        return compare(&input, claim, domain, problems);
}

/* Has Placement at least the amounts that the guest has? */
static bool is_placed_like(const ReconcileAnswer *answer, const HostDomain *domain)
{
        return consumer_sum(answer->holding, "VCPU") + consumer_sum(answer->holding, "PCPU") >=
                       domain->vcpus &&
               consumer_sum(answer->holding, "MEMORY_MB") >= domain->memory_mb;
}

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
        const ReconcileAnswer *answer = reconcile_find_answer(input, &claim->consumer);
        const Consumer *held = input->held ? allocations_find(input->held, &claim->consumer) : NULL;
        ReconcileMissing since = recall(memory, claim->id, input->facts->taken_usec);
        bool resized = claim_was_resized(claim, domain);

        if (answer && answer->here && answer->holding) {
                if (resized && is_placed_like(answer, domain))
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
        return compare(input, claim, domain, &ret->problems);
}

/* Two claims of a guest. */

/* The resize target beside the first claim of a consumer, or NULL. */
static const Claim *find_target(const ReconcileInput *input, const Claim *first)
{
        size_t n;
        const ReconcileKnown *found = reconcile_index_find(
                input->index->claims, input->index->n_claims, &first->consumer, &n);

        for (size_t i = 0; i < n; i++)
                if (resize_pair_is(first, found[i].is))
                        return found[i].is;
        return NULL;
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
        switch (answer_about(input, &pair->migration)) {
        case ANSWER_HOLDS:
                pair->asked_usec = input->facts->taken_usec;
                return 0;
        case ANSWER_GONE:
                *pair = (ReconcileMissing){ .claim_id = pair->claim_id,
                                            .since_usec = input->facts->taken_usec };
                return 0;
        case ANSWER_NONE:
        default:
                break;
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
                verdict = resize_pair_judge(input, first, target, domain, &judged);
                pair.asked_usec = input->facts->taken_usec;
                pair.migration = judged.migration ? judged.migration->uuid : UUID_NULL;
        } else if (ask_about_pair(input, &pair, ret) < 0) {
                return -ENOMEM;
        }
        if (verdict < 0)
                return verdict;
        if (verdict == RESIZE_PAIR_OVER && !resize_pair_is_promised(input, judged.over))
                return end_pair(input, &judged, domain, ret);
        if (resize_pair_list(input, first, target, domain, &pair, &ret->problems) < 0)
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
        if (domain->unread || has_claim(input, &claim->consumer, claim))
                return 0;
        if (claim_follows(claim) && input->word != RECONCILE_ALONE)
                return look_at_follower(input, claim, domain, memory, next, ret);
        return compare(input, claim, domain, &ret->problems);
}

/* Returns 1 if the claim must hold other host CPUs for the threads of its guest, -ENOMEM. */
static int holds_other_cpus(const ReconcileInput *input, const Claim *claim,
                            const HostDomain *domain)
{
        _cleanup_(cpu_set_done) CpuSet missing = CPU_SET_INIT, left = CPU_SET_INIT;

        if (!input->view || domain->unread || !uuid_empty(&claim->guest) ||
            has_claim(input, &claim->consumer, claim))
                return 0;
        if (layout_compare_held(&claim->layout, &domain->layout, &input->view->held, &missing,
                                &left) < 0)
                return -ENOMEM;
        return cpu_set_count(&missing) > 0 ||
               (cpu_set_count(&left) > 0 && strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0);
}

/* Returns 1 if the claim must be checked again, -ENOMEM. */
static int must_check(const ReconcileInput *input, const Claim *claim, const HostDomain *domain)
{
        if (strcmp(claim->boot_id, input->boot_id) != 0 ||
            device_count_missing(input->facts, input->node, claim) > 0 ||
            claim_lacks_identity(input->facts, claim) ||
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
        if (answer_about(input, &claim->consumer) != ANSWER_NONE)
                return add_action(ret, RECONCILE_COMPLETE, &claim->consumer, claim->id, NULL);
        return input->word == RECONCILE_CAN_ASK
                       ? add_action(ret, RECONCILE_ASK, &claim->consumer, claim->id, NULL)
                       : 0;
}

static int look_at_claim(const ReconcileInput *input, const Claim *claim,
                         const ReconcileMemory *memory, ReconcileMemory *next, Reconcile *ret)
{
        bool moving = !uuid_empty(&claim->guest);
        const HostDomain *domain = find_domain(input, moving ? &claim->guest : &claim->consumer);
        bool stopped = domain && input->started_only && !domain->running &&
                       strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0;
        int check;

        if (stopped)
                domain = NULL;
        /* Devices are known also on a host whose guests are not. */
        if (look_for_devices(input, claim, domain, &ret->problems) < 0 ||
            compare_identities(input->facts, claim, &ret->problems) < 0 ||
            (input->recorded && claim_lacks_identity(input->facts, claim) &&
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

static int place_consumers(const ReconcileInput *input, Reconcile *ret)
{
        _cleanup_free_ bool *counted = calloc(input->n_answers + 1, sizeof(bool));

        if (!counted)
                return -ENOMEM;
        moved_guests_mark(input, counted);
        for (size_t i = 0; i < input->n_answers; i++) {
                const ReconcileAnswer *answer = &input->answers[i];

                if (!answer->here || counted[i] || has_claim(input, &answer->consumer, NULL) ||
                    (!input->recorded && find_domain(input, &answer->consumer)))
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
                bool ask = input->word == RECONCILE_CAN_ASK &&
                           answer_about(input, &domain->uuid) == ANSWER_NONE;

                if (domain->unread) {
                        if (!has_claim(input, &domain->uuid, NULL) &&
                            reconcile_add_problem(
                                    &ret->problems, &domain->uuid, 0,
                                    "guest %.60s has no claim, and cannot be read to make one",
                                    domain->name) < 0)
                                return -ENOMEM;
                        continue;
                }
                if (!has_claim(input, &domain->uuid, NULL) && !is_away(input, domain) &&
                    (domain->running || !input->started_only) &&
                    add_action(ret, ask ? RECONCILE_ASK : RECONCILE_ADOPT, &domain->uuid, 0,
                               domain) < 0)
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
        _cleanup_(reconcile_index_done) ReconcileIndex index = { 0 };
        ReconcileInput indexed = *input;
        ReconcileMemory next = { 0 };

        indexed.index = &index;
        if (reconcile_index_make(&index, input) < 0 ||
            look_at_all(&indexed, memory, &next, ret) < 0 ||
            (input->view && look_at_view(input->view, &ret->problems) < 0)) {
                reconcile_memory_done(&next);
                reconcile_done(ret);
                return -ENOMEM;
        }
        reconcile_memory_done(memory);
        *memory = next;
        return 0;
}
