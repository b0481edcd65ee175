/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares Placement's consumers, the claims and the guests, each once, and makes the findings. An
 * AuditRun has the inputs, the evidence about moves and the states of servers
 * (agent/audit/evidence.h), and the findings so far. First the evidence is completed in steps, then
 * the things of the input are inspected in steps.
 *
 * Each of the three kinds of things handles one direction: consumers that have neither a guest nor
 * a claim that explains their allocations, claims whose consumer differs, and guests without a
 * claim. The caller of add() passes the remedy and a reason against it, which can be empty. With a
 * reason, the finding has no remedy, and the reason is the end of its text.
 *
 * The last audit_run_step() replaces the memory of the audit before as a whole, so it has entries
 * only of consumers that have allocations here. If memory is short, a step fails, and memory and
 * result stay unchanged. */

#include "agent/audit/audit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "agent/audit/evidence.h"
#include "base/array.h"
#include "base/text.h"
#include "claims/follow.h"
#include "claims/reconcile-compare.h"

#define REASON_SIZE 400 /* length of a reason, in bytes */
#define NAME_SIZE   128 /* length of the name of a claim, in bytes */

struct AuditRun {
        const AuditInput *input;
        AuditEvidence evidence;
        size_t n_inspected; /* things of the input */
        AuditMemory *memory;
        AuditMemory next;   /* memory for the next audit */
        const char *server; /* evidence that the present consumer has no living server */
        Audit audit;
};

const char *const audit_type_names[_AUDIT_TYPE_MAX] = {
        [AUDIT_LEAKED] = "leaked",       [AUDIT_MIGRATION] = "migration",
        [AUDIT_MISSING] = "missing",     [AUDIT_UNALLOCATED] = "unallocated",
        [AUDIT_AMOUNT] = "amount",       [AUDIT_LARGER] = "larger",
        [AUDIT_PROVIDER] = "provider",   [AUDIT_UNCLAIMED] = "unclaimed",
        [AUDIT_EVACUATED] = "evacuated", [AUDIT_ELSEWHERE] = "elsewhere",
        [AUDIT_WITHDRAWN] = "withdrawn", [AUDIT_RESIZED] = "resized",
};

const char *const audit_remedy_names[_AUDIT_REMEDY_MAX] = {
        [AUDIT_REMEDY_NONE] = "none",
        [AUDIT_REMEDY_RELEASE_SHARE] = "release-share",
        [AUDIT_REMEDY_WRITE_CLAIM] = "write-claim",
        [AUDIT_REMEDY_ADOPT] = "adopt",
        [AUDIT_REMEDY_END_CLAIM] = "end-claim",
};

void audit_done(Audit *audit)
{
        for (size_t i = 0; i < audit->n_items; i++) {
                free(audit->items[i].text);
                free(audit->items[i].evidence);
        }
        free(audit->items);
        *audit = (Audit){ 0 };
}

/* Returns the reason why the remedy harms no living server; "" for AUDIT_REMEDY_NONE. */
static const char *evidence_of(const AuditRun *run, AuditRemedy remedy)
{
        static const char *const texts[_AUDIT_REMEDY_MAX] = {
                [AUDIT_REMEDY_WRITE_CLAIM] = "claim and guest agree",
                [AUDIT_REMEDY_ADOPT] = "the guest is defined here",
                [AUDIT_REMEDY_END_CLAIM] =
                        "the guest does not run here, Placement has all its allocations on other hosts, and no consumer here can be its migration",
        };

        if (remedy == AUDIT_REMEDY_RELEASE_SHARE)
                return run->server;
        return texts[remedy] ? texts[remedy] : "";
}

/* Adds a finding. why is the reason against the remedy, which removes it; "": there is none. */
_printf_(7, 8) static int add(AuditRun *run, AuditType type, AuditRemedy remedy, const char *why,
                              const Uuid *consumer, int64_t claim_id, const char *format, ...)
{
        Audit *audit = &run->audit;
        _cleanup_free_ char *what = NULL, *text = NULL, *evidence = NULL;
        va_list ap;

        if (array_grow(&audit->items, sizeof(AuditFinding), audit->n_items, &audit->n_allocated) <
            0)
                return -ENOMEM;
        va_start(ap, format);
        what = text_vformat(format, ap);
        va_end(ap);
        if (what)
                text = text_format("%s%s%s", what, why[0] ? "; " : "", why);
        if (why[0])
                remedy = AUDIT_REMEDY_NONE;
        evidence = strdup(evidence_of(run, remedy));
        if (!text || !evidence)
                return -ENOMEM;
        /* A limit can cut a character of a name. D-Bus takes only whole ones. */
        text_sanitize(text, '?');
        audit->items[audit->n_items++] = (AuditFinding){
                .type = type,
                .remedy = remedy,
                .consumer = *consumer,
                .claim_id = claim_id,
                .text = TAKE_PTR(text),
                .evidence = TAKE_PTR(evidence),
        };
        return 0;
}

/* Skips something that can still change, and counts it. */
static int skip_recent(AuditRun *run)
{
        run->audit.n_in_flight++;
        return 0;
}

/* Writes the allocations that AUDIT_REMEDY_RELEASE_SHARE removes from the consumer as text to file,
 * a stream in memory. Sharing providers are not in the tree, and have their uuid as name. */
static int write_share(const AuditInput *input, const Consumer *consumer, FILE *file)
{
        bool whole = audit_names_no_other(input, consumer);
        const char *separator = "";

        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = audit_own_provider(input, &held->provider);
                _cleanup_free_ char *amounts = NULL;

                if (!provider && !whole)
                        continue;
                amounts = resources_format(&held->resources);
                if (!amounts)
                        return -ENOMEM;
                fprintf(file, "%s%s of %s", separator, amounts,
                        provider ? provider->name : held->provider.text);
                separator = "; ";
        }
        return 0;
}

/* Returns these allocations, as in "VCPU=1 of host1; VGPU=2 of gpu1". The caller frees it. NULL:
 * memory is short. */
static char *format_share(const AuditInput *input, const Consumer *consumer)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        int r = file ? write_share(input, consumer, file) : -ENOMEM;

        if (file && fclose(file) == 0 && r == 0)
                return text;
        free(text);
        return NULL;
}

/* Age of a state */

/* Returns true if the claim was made less than the grace time ago. */
static bool is_young(const AuditInput *input, const Claim *claim)
{
        return time_is_within(input->now_usec, claim->created_usec, input->grace_usec);
}

static int order_seen(const void *a, const void *b)
{
        return uuid_order(&((const struct AuditSeen *)a)->consumer,
                          &((const struct AuditSeen *)b)->consumer);
}

static const struct AuditSeen *find_seen(const AuditMemory *memory, const Uuid *consumer)
{
        const struct AuditSeen key = { .consumer = *consumer };

        return memory->n_items > 0
                       ? bsearch(&key, memory->items, memory->n_items, sizeof(key), order_seen)
                       : NULL;
}

/* Adds the consumer to the next memory, with the time since which it is in this state. A consumer
 * that was written is new again, because its writer is about to use it. A consumer that lost its
 * claim or its guest is new as well. */
static int remember(AuditRun *run, const Consumer *consumer, bool unowned)
{
        const struct AuditSeen *before = find_seen(run->memory, &consumer->uuid);
        AuditMemory *next = &run->next;
        bool same =
                before && before->generation == consumer->generation && before->unowned == unowned;

        if (array_grow(&next->items, sizeof(struct AuditSeen), next->n_items, &next->n_allocated) <
            0)
                return -ENOMEM;
        /* Consumers are sorted, so the items are sorted, too. */
        next->items[next->n_items++] =
                (struct AuditSeen){ .consumer = consumer->uuid,
                                    .generation = consumer->generation,
                                    .unowned = unowned,
                                    .since_usec =
                                            same ? before->since_usec : run->input->boot_usec };
        return 0;
}

/* Returns true if the consumer is in its state for less than the grace time, or has no allocation
 * from this tree. Such a consumer without claim and guest is skipped, unless the operator named it.
 * The claim of such a consumer is not written. */
static bool is_new(const AuditRun *run, const Consumer *consumer)
{
        const struct AuditSeen *seen = find_seen(&run->next, &consumer->uuid);

        return !seen ||
               time_is_within(run->input->boot_usec, seen->since_usec, run->input->grace_usec);
}

/* Consumers without claim and guest */

static bool is_named(const AuditInput *input, const Consumer *consumer)
{
        return input->named && uuid_equal(input->named, &consumer->uuid);
}

/* Decides whether the consumer's server is alive. An operator who names the consumer decides that
 * it is not, against all evidence of the host. A new consumer counts as alive, and text stays
 * unchanged. Otherwise text gets the evidence. */
static AuditServerState judge(const AuditRun *run, const Consumer *consumer,
                              char text[static AUDIT_EVIDENCE_SIZE])
{
        if (is_named(run->input, consumer)) {
                snprintf(text, AUDIT_EVIDENCE_SIZE, "%s asked to heal it", run->input->named_by);
                return AUDIT_SERVER_ENDED;
        }
        return is_new(run, consumer) ? AUDIT_SERVER_ALIVE
                                     : audit_judge_server(&run->evidence, consumer, text);
}

/* Lists a consumer without guest and without a claim that explains it, or skips it if its server is
 * alive. */
static int judge_unowned(AuditRun *run, const Consumer *consumer)
{
        const AuditInput *input = run->input;
        bool migration = consumer->type && strcmp(consumer->type, "MIGRATION") == 0;
        char text[AUDIT_EVIDENCE_SIZE] = "";
        AuditServerState server = judge(run, consumer, text);
        const Claim *placed = guest_index_claim(&run->evidence.index, &consumer->uuid, 0);
        _cleanup_free_ char *share = NULL;
        const char *why = "";
        int r;

        if (server == AUDIT_SERVER_ALIVE)
                return skip_recent(run);
        share = format_share(input, consumer);
        if (!share)
                return -ENOMEM;
        if (input->waits)
                why = input->waits;
        else if (server == AUDIT_SERVER_UNKNOWN)
                why = text;
        run->server = text;
        r = add(run, migration ? AUDIT_MIGRATION : AUDIT_LEAKED, AUDIT_REMEDY_RELEASE_SHARE, why,
                &consumer->uuid, placed ? placed->id : 0,
                "%s %s has allocations (%.500s), but neither %s nor guest",
                migration ? "migration" : "consumer", consumer->uuid.text, share,
                placed ? "another claim" : "claim");
        run->server = NULL;
        return r;
}

/* Checks a consumer, unless it has no allocations here. */
static int inspect_consumer(AuditRun *run, const Consumer *consumer)
{
        bool unowned;

        if (!audit_holds_here(run->input, consumer))
                return 0;
        run->audit.n_consumers++;
        unowned = !audit_explains(guest_index_claim(&run->evidence.index, &consumer->uuid, 0)) &&
                  !guest_index_domain(&run->evidence.index, &consumer->uuid);
        if (remember(run, consumer, unowned) < 0)
                return -ENOMEM;
        return unowned ? judge_unowned(run, consumer) : 0;
}

/* Claims whose consumer differs */

/* Writes a difference between claim and guest, or why the guest is not here, to ret; "" if they
 * agree. */
static int find_disagreement(const AuditRun *run, const Claim *claim, char ret[static REASON_SIZE])
{
        const HostDomain *domain = guest_index_guest(&run->evidence.index, claim);
        _cleanup_(reconcile_problems_done) ReconcileProblems problems = { 0 };

        ret[0] = '\0';
        if (!uuid_empty(&claim->guest)) {
                snprintf(ret, REASON_SIZE, "its guest is being moved");
        } else if (!domain) {
                snprintf(ret, REASON_SIZE, "its guest is not on this host");
        } else if (reconcile_compare(&run->evidence.index, claim, domain, &problems) < 0) {
                return -ENOMEM;
        } else if (problems.n_items > 0) {
                snprintf(ret, REASON_SIZE, "%s", problems.items[0].text);
        } else if (!guest_size_covers(guest_size_of_claim(claim), domain)) {
                snprintf(ret, REASON_SIZE, "its guest is larger than its claim");
        }
        return 0;
}

/* Writes the reason why the claim must not be written to Placement to ret; "" if it can. Only
 * amounts on which claim and guest agree are written, so that no guest loses an allocation. */
static int find_reason(const AuditRun *run, const Claim *claim, const Consumer *consumer,
                       char ret[static REASON_SIZE])
{
        if (find_disagreement(run, claim, ret) < 0)
                return -ENOMEM;
        if (!ret[0] && run->input->waits)
                snprintf(ret, REASON_SIZE, "%s", run->input->waits);
        else if (!ret[0] && consumer && !audit_holds_here(run->input, consumer))
                snprintf(ret, REASON_SIZE, "all its allocations are from sharing providers");
        else if (!ret[0] && consumer && is_new(run, consumer))
                snprintf(ret, REASON_SIZE,
                         "left unchanged, because it was written or first seen a moment ago");
        return 0;
}

/* Returns "guest g1 (claim 3)" or "claim 3 of UUID", in text. */
static const char *name_claim(const AuditRun *run, const Claim *claim, size_t size, char *text)
{
        const HostDomain *domain = guest_index_guest(&run->evidence.index, claim);

        if (domain)
                snprintf(text, size, "guest %.60s (claim %" PRId64 ")", domain->name, claim->id);
        else
                snprintf(text, size, "claim %" PRId64 " of %s", claim->id, claim->consumer.text);
        return text;
}

/* Adds a finding for the first PCI device of the claim that the host does not list any more.
 * Returns 1 if there is one, or -ENOMEM. */
static int inspect_lost_device(AuditRun *run, const Claim *claim)
{
        char name[NAME_SIZE];

        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];
                int r;

                if (!uuid_empty(&device->mdev) ||
                    host_facts_lists_function(run->input->facts, device->address))
                        continue;
                r = add(run, AUDIT_WITHDRAWN, AUDIT_REMEDY_NONE, "", &claim->consumer, claim->id,
                        "%s has PCI device %s, which this host no longer lists",
                        name_claim(run, claim, sizeof(name), name), device->address);
                return r < 0 ? r : 1;
        }
        return 0;
}

/* Returns true if the claim follows Placement (claims/follow.h), and Placement has enough CPUs and
 * memory for the guest. */
static bool is_enough(const AuditRun *run, const Claim *claim, const Consumer *consumer)
{
        const HostDomain *domain = guest_index_guest(&run->evidence.index, claim);

        return claim_follows(claim) && domain &&
               guest_size_covers(audit_size_here(run->input, consumer), domain);
}

/* Returns true if the claim has a device of the provider that is cleaned after its guest. Such a
 * provider has no capacity from the claim until it is clean, so this is no finding. */
static bool is_cleaned_later(const AuditRun *run, const Claim *claim, const Uuid *provider)
{
        for (size_t i = 0; i < claim->n_devices; i++) {
                const HostPci *pci =
                        uuid_equal(&claim->devices[i].provider, provider)
                                ? host_facts_find_pci(run->input->facts, claim->devices[i].address)
                                : NULL;

                if (pci && pci->must_be_cleaned)
                        return true;
        }
        return false;
}

/* Adds a finding for a lost device of the claim, or else for the consumer's first allocation whose
 * inventory is absent or has no capacity. DISK_GB does not need capacity if a sharing provider has
 * this class, nor does a provider of a device that is cleaned later. */
static int inspect_withdrawn(AuditRun *run, const Claim *claim, const Consumer *consumer)
{
        char name[NAME_SIZE];
        int r = inspect_lost_device(run, claim);

        for (size_t i = 0; r == 0 && i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = audit_own_provider(run->input, &held->provider);

                for (size_t j = 0; provider && j < held->resources.n_items; j++) {
                        const char *class = held->resources.items[j].resource_class;
                        const Inventory *inventory = provider_find_inventory(provider, class);

                        if (inventory &&
                            (inventory_capacity(inventory) > 0 ||
                             is_cleaned_later(run, claim, &held->provider) ||
                             (run->input->disk_is_shared && strcmp(class, "DISK_GB") == 0)))
                                continue;
                        return add(run, AUDIT_WITHDRAWN, AUDIT_REMEDY_NONE, "", &consumer->uuid,
                                   claim->id, "%s has %s of %.60s, which no longer offers it",
                                   name_claim(run, claim, sizeof(name), name), class,
                                   provider->name);
                }
        }
        return MIN(r, 0);
}

/* Adds the finding for amounts that differ. lower and larger are the first classes of which
 * Placement has less, or more, than the claim; NULL: none. */
static int add_amount(AuditRun *run, const Claim *claim, const Consumer *consumer,
                      const char *lower, const char *larger)
{
        const char *name = lower ? lower : larger;
        uint64_t claimed = claim_sum(claim, name),
                 placed = audit_sum_here(run->input, consumer, name);
        char why[REASON_SIZE];

        if (find_disagreement(run, claim, why) < 0)
                return -ENOMEM;
        if (!why[0] && !lower)
                return add(run, AUDIT_LARGER, AUDIT_REMEDY_NONE, "", &claim->consumer, claim->id,
                           "Placement has %" PRIu64 " %s for %s, claim %" PRId64 " has %" PRIu64
                           ". Another writer set the larger amount, and the agent keeps it",
                           placed, name, claim->consumer.text, claim->id, claimed);
        if (!why[0] && larger)
                snprintf(why, sizeof(why),
                         "another writer set the larger %.60s, and the agent keeps it", larger);
        else if (!why[0] && is_enough(run, claim, consumer))
                snprintf(why, sizeof(why), "the claim follows Placement in the next cycle");
        else if (!why[0] && find_reason(run, claim, consumer, why) < 0)
                return -ENOMEM;
        return add(run, AUDIT_AMOUNT, AUDIT_REMEDY_WRITE_CLAIM, why, &claim->consumer, claim->id,
                   "claim %" PRId64 " of %s has %" PRIu64 " %s, Placement %" PRIu64, claim->id,
                   claim->consumer.text, claimed, name, placed);
}

/* Compares a claim with its consumer, and skips a difference if the guest can be moving. Amounts
 * come before providers. */
static int compare(AuditRun *run, const Claim *claim, const Consumer *consumer)
{
        AuditDifference difference;
        char why[REASON_SIZE];

        if (!audit_differs(run->input, claim, consumer, &difference))
                return inspect_withdrawn(run, claim, consumer);
        if (audit_may_be_moving(&run->evidence, consumer, claim))
                return skip_recent(run);
        if (!difference.elsewhere)
                return add_amount(run, claim, consumer, difference.lower, difference.larger);
        if (find_reason(run, claim, consumer, why) < 0)
                return -ENOMEM;
        if (!why[0] && !claim_binds(claim, difference.elsewhere))
                snprintf(why, sizeof(why), "its guest is bound to neither provider");
        return add(run, AUDIT_PROVIDER, AUDIT_REMEDY_WRITE_CLAIM, why, &claim->consumer, claim->id,
                   "claim %" PRId64
                   " of %s does not have its %s on %.60s, where Placement allocates it",
                   claim->id, claim->consumer.text, difference.elsewhere,
                   difference.provider->name);
}

/* Claims whose consumer is not here */

/* Checks a claim whose consumer has allocations, and is not here (CONSUMER_HERE). The claim does
 * not end if its guest can be moving, runs, is a process that is alive, or is unknown to the
 * driver. */
static int inspect_gone(AuditRun *run, const Claim *claim, const Consumer *consumer)
{
        const HostDomain *domain = guest_index_guest(&run->evidence.index, claim);

        if (audit_may_be_moving(&run->evidence, consumer, NULL))
                return skip_recent(run);
        if (domain && domain->running)
                return add(run, AUDIT_ELSEWHERE, AUDIT_REMEDY_NONE, "", &claim->consumer, claim->id,
                           "guest %.60s runs here (claim %" PRId64
                           "), and all its allocations are on other hosts",
                           domain->name, claim->id);
        if (claim->process[0] && run->input->is_alive(claim->process))
                return add(run, AUDIT_ELSEWHERE, AUDIT_REMEDY_NONE, "", &claim->consumer, claim->id,
                           "guest %s of claim %" PRId64
                           " runs here (%.200s), and all its allocations are on other hosts",
                           claim->consumer.text, claim->id, claim->process);
        if (!claim->process[0] && run->input->guests_unknown)
                return add(
                        run, AUDIT_EVACUATED, AUDIT_REMEDY_NONE, "", &claim->consumer, claim->id,
                        "claim %" PRId64
                        " of %s has all its allocations on other hosts, and the driver does not know its guest. If the guest is not here, release the claim (\"computectl release\")",
                        claim->id, claim->consumer.text);
        return add(run, AUDIT_EVACUATED, AUDIT_REMEDY_END_CLAIM,
                   run->input->waits ? run->input->waits : "", &claim->consumer, claim->id,
                   "claim %" PRId64
                   " of %s, which does not run here and has all its allocations on other hosts",
                   claim->id, claim->consumer.text);
}

/* Checks a claim without allocations in Placement, unless it is young. Allocations that another
 * writer made and removed are not written again. */
static int inspect_missing(AuditRun *run, const Claim *claim)
{
        const HostDomain *domain = guest_index_guest(&run->evidence.index, claim);
        char why[REASON_SIZE];

        if (is_young(run->input, claim))
                return skip_recent(run);
        if (claim->write_state == CLAIM_WRITE_WRITTEN) {
                if (find_reason(run, claim, NULL, why) < 0)
                        return -ENOMEM;
                return add(run, AUDIT_MISSING, AUDIT_REMEDY_WRITE_CLAIM, why, &claim->consumer,
                           claim->id,
                           "claim %" PRId64 " of %s has no allocations in Placement any more",
                           claim->id, claim->consumer.text);
        }
        if (!domain)
                return add(run, AUDIT_UNALLOCATED, AUDIT_REMEDY_NONE, "", &claim->consumer,
                           claim->id,
                           "claim %" PRId64
                           " of %s has neither a guest here nor allocations in Placement",
                           claim->id, claim->consumer.text);
        return add(
                run, AUDIT_UNALLOCATED, AUDIT_REMEDY_NONE, "", &claim->consumer, claim->id,
                "guest %.60s %s here (claim %" PRId64
                "), but has no allocations in Placement. If it was deleted, undefine it. Otherwise let its scheduler restore them",
                domain->name, domain->running ? "runs" : "is defined", claim->id);
}

/* Checks a guest with two claims, once for the pair. The comparison of claims and guests ends a
 * claim that guest and Placement contradict (claims/reconcile.h). A pair is listed if both claims
 * are confirmed, the second one is not young, and the consumer is neither new nor possibly moving.
 * A consumer without any allocation (NULL) counts as neither. One whose allocations are all from
 * other trees counts as new (is_new()). */
static int inspect_resized(AuditRun *run, const Claim *claim, const Consumer *consumer)
{
        const Claim *first = guest_index_claim(&run->evidence.index, &claim->consumer, 0),
                    *second = guest_index_claim(&run->evidence.index, &claim->consumer, 1);

        if (claim != first || first->state != CLAIM_STATE_CONFIRMED ||
            second->state != CLAIM_STATE_CONFIRMED || is_young(run->input, second) ||
            (consumer &&
             (is_new(run, consumer) || audit_may_be_moving(&run->evidence, consumer, first) ||
              audit_may_be_moving(&run->evidence, consumer, second))))
                return skip_recent(run);
        return add(
                run, AUDIT_RESIZED, AUDIT_REMEDY_NONE, "", &claim->consumer, first->id,
                "claims %" PRId64 " and %" PRId64
                " belong to one guest, %s, which has no migration. Release the claim that it does not need (\"computectl release\")",
                first->id, second->id, claim->consumer.text);
}

/* Checks a claim that can still change. Its amounts are not compared. If its consumer has
 * allocations, a lost device or inventory is listed. */
static int inspect_unfinished(AuditRun *run, const Claim *claim, const Consumer *consumer)
{
        if (consumer && inspect_withdrawn(run, claim, consumer) < 0)
                return -ENOMEM;
        return skip_recent(run);
}

/* Checks one claim by its state and by the place of its consumer. */
static int inspect_claim(AuditRun *run, const Claim *claim)
{
        const Consumer *consumer = allocations_find(run->input->consumers, &claim->consumer);

        if (guest_index_claim(&run->evidence.index, &claim->consumer, 1))
                return inspect_resized(run, claim, consumer);
        if (claim->state != CLAIM_STATE_CONFIRMED || claim->write_state == CLAIM_WRITE_UNANSWERED ||
            claim->write_state == CLAIM_WRITE_UNSENT || claim->write_state == CLAIM_WRITE_SENT)
                return inspect_unfinished(run, claim, consumer);
        if (!consumer)
                return inspect_missing(run, claim);
        return guest_index_place(&run->evidence.index, &claim->consumer) == CONSUMER_HERE
                       ? compare(run, claim, consumer)
                       : inspect_gone(run, claim, consumer);
}

/* Guests without a claim */

/* Checks one guest without a claim. Guests with a claim were checked with their claim. */
static int inspect_domain(AuditRun *run, const HostDomain *domain)
{
        const AuditInput *input = run->input;
        const GuestIndex *index = &run->evidence.index;
        const Consumer *consumer = allocations_find(input->consumers, &domain->uuid);
        ConsumerPlace place = guest_index_place(index, &domain->uuid);

        if (guest_index_has_claim(index, &domain->uuid, NULL) ||
            (input->started_only && !domain->running))
                return 0;
        if (!domain->running && place == CONSUMER_ELSEWHERE)
                return audit_may_be_moving(&run->evidence, consumer, NULL)
                               ? skip_recent(run)
                               : add(run, AUDIT_EVACUATED, AUDIT_REMEDY_NONE, "", &domain->uuid, 0,
                                     "guest %.60s is defined here and does not run, and all its allocations are on other hosts",
                                     domain->name);
        return add(run, AUDIT_UNCLAIMED, AUDIT_REMEDY_ADOPT, "", &domain->uuid, 0,
                   "guest %.60s has no claim%s", domain->name,
                   place == CONSUMER_HERE ? "" : " and no allocations in Placement");
}

/* Inspects the i-th thing of all. Consumers come first, because is_new() needs their entries. */
static int inspect_thing(AuditRun *run, size_t i)
{
        const AuditInput *input = run->input;
        size_t n_consumers = input->consumers->n_consumers, n_claims = input->claims->n_claims;

        if (i < n_consumers)
                return inspect_consumer(run, input->consumers->consumers[i]);
        if ((i -= n_consumers) < n_claims)
                return inspect_claim(run, input->claims->claims[i]);
        return inspect_domain(run, &input->facts->domains[i - n_claims]);
}

int audit_run_new(AuditRun **ret, const AuditInput *input, AuditMemory *memory)
{
        AuditRun *run = calloc(1, sizeof(AuditRun));

        if (!run)
                return -ENOMEM;
        run->input = run->evidence.input = input;
        run->memory = memory;
        *ret = run;
        return 0;
}

AuditRun *audit_run_free(AuditRun *run)
{
        if (!run)
                return NULL;
        audit_evidence_done(&run->evidence);
        free(run->next.items);
        audit_done(&run->audit);
        free(run);
        return NULL;
}

int audit_run_step(AuditRun *run, size_t n, Audit *ret)
{
        const AuditInput *input = run->input;
        size_t n_things =
                input->consumers->n_consumers + input->claims->n_claims + input->facts->n_domains;
        int r = audit_evidence_step(&run->evidence, n);

        if (r != 0)
                return r;
        for (; n > 0 && run->n_inspected < n_things; n--)
                if (inspect_thing(run, run->n_inspected++) < 0)
                        return -ENOMEM;
        if (run->n_inspected < n_things)
                return 1;
        free(run->memory->items);
        *run->memory = TAKE_STRUCT(run->next);
        *ret = TAKE_STRUCT(run->audit);
        return 0;
}
