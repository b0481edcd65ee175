/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/reconcile.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "claims/device-choice.h"

int reconcile_add_problem(ReconcileProblems *problems, const Uuid *consumer, int64_t claim_id,
                          const char *format, ...)
{
        char *text = NULL;
        va_list ap;
        int r;

        if (array_grow(&problems->items, sizeof(ReconcileProblem), problems->n_items,
                       &problems->n_allocated) < 0)
                return -ENOMEM;
        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
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

/* Claims without a guest. */

static int order_missing(const void *a, const void *b)
{
        const ReconcileMissing *x = a, *y = b;

        return x->claim_id < y->claim_id ? -1 : x->claim_id > y->claim_id;
}

static uint64_t missing_since(const ReconcileMemory *memory, int64_t claim_id, uint64_t now)
{
        const ReconcileMissing key = { .claim_id = claim_id }, *found = NULL;

        if (memory->n_items > 0)
                found = bsearch(&key, memory->items, memory->n_items, sizeof(ReconcileMissing),
                                order_missing);
        return found ? found->since_usec : now;
}

static int look_at_lonely(const ReconcileInput *input, const Claim *claim,
                          const ReconcileMemory *memory, ReconcileMemory *next, Reconcile *ret)
{
        uint64_t now = input->facts->taken_usec, since = missing_since(memory, claim->id, now);

        if (claim->state != CLAIM_STATE_CONFIRMED || input->expiry_usec == 0)
                return 0;
        if (now > since && now - since >= input->expiry_usec)
                return add_action(ret, RECONCILE_RELEASE, &claim->consumer, claim->id, NULL);
        if (array_grow(&next->items, sizeof(ReconcileMissing), next->n_items, &next->n_allocated) <
            0)
                return -ENOMEM;
        next->items[next->n_items++] =
                (ReconcileMissing){ .claim_id = claim->id, .since_usec = since };
        return 0;
}

/* Claims with a guest. */

static bool has_other_claim(const ReconcileInput *input, const Claim *claim)
{
        for (size_t i = 0; i < input->claims->n_claims; i++) {
                const Claim *other = input->claims->claims[i];

                if (other != claim && (uuid_equal(&other->consumer, &claim->consumer) ||
                                       uuid_equal(&other->guest, &claim->consumer)))
                        return true;
        }
        return false;
}

static bool domain_has_mdev(const HostDomain *domain, const Uuid *mdev)
{
        for (size_t i = 0; i < domain->n_mdevs; i++)
                if (uuid_equal(&domain->mdevs[i], mdev))
                        return true;
        return false;
}

static int compare_mdevs(const Claim *claim, const HostDomain *domain, const HostFacts *facts,
                         ReconcileProblems *problems)
{
        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];
                int r = 0;

                if (uuid_empty(&device->mdev))
                        continue;
                if (!domain_has_mdev(domain, &device->mdev))
                        r = reconcile_add_problem(
                                problems, &claim->consumer, claim->id,
                                "guest %.60s does not have mdev %s on %s, which its claim names",
                                domain->name, device->mdev.text, device->name);
                else if (!host_facts_find_mdev(facts, &device->mdev))
                        r = reconcile_add_problem(problems, &claim->consumer, claim->id,
                                                  "mdev %s of guest %.60s is gone from %s",
                                                  device->mdev.text, domain->name, device->name);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < domain->n_mdevs; i++) {
                if (claim_has_mdev(claim, &domain->mdevs[i]))
                        continue;
                if (reconcile_add_problem(problems, &claim->consumer, claim->id,
                                          "guest %.60s has mdev %s, which its claim does not name",
                                          domain->name, domain->mdevs[i].text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static bool domain_has_pci(const HostDomain *domain, const char *address)
{
        for (size_t i = 0; i < domain->n_pci; i++)
                if (strcmp(domain->pci[i], address) == 0)
                        return true;
        return false;
}

static int compare_pci(const Claim *claim, const HostDomain *domain, const HostFacts *facts,
                       ReconcileProblems *problems)
{
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
        for (size_t i = 0; i < domain->n_pci; i++) {
                if (claim_has_pci(claim, domain->pci[i]) ||
                    !host_facts_find_pci(facts, domain->pci[i]))
                        continue;
                if (reconcile_add_problem(
                            problems, &claim->consumer, claim->id,
                            "guest %.60s has PCI device %s, which its claim does not name",
                            domain->name, domain->pci[i]) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static const LayoutCpu *find_cpu(const Layout *layout, unsigned vcpu)
{
        for (size_t i = 0; i < layout->n_cpus; i++)
                if (layout->cpus[i].vcpu == vcpu)
                        return &layout->cpus[i];
        return NULL;
}

/* The first CPU that runs elsewhere: the others of a guest that was pinned anew do, too. */
static int compare_cpus(const Claim *claim, const HostDomain *domain, ReconcileProblems *problems)
{
        for (size_t i = 0; i < claim->layout.n_cpus; i++) {
                const LayoutCpu *claimed = &claim->layout.cpus[i],
                                *has = find_cpu(&domain->layout, claimed->vcpu);
                _cleanup_free_ char *wanted = NULL, *found = NULL;

                if (has && cpu_set_equal(&has->cpus, &claimed->cpus))
                        continue;
                wanted = cpu_set_format(&claimed->cpus);
                found = has ? cpu_set_format(&has->cpus) : strdup("any");
                if (!wanted || !found)
                        return -ENOMEM;
                return reconcile_add_problem(
                        problems, &claim->consumer, claim->id,
                        "CPU %u of guest %.60s runs on host CPUs %.60s, its claim has %.60s",
                        claimed->vcpu, domain->name, found, wanted);
        }
        return 0;
}

static int compare_cells(const Claim *claim, const HostDomain *domain, ReconcileProblems *problems)
{
        for (size_t i = 0; i < claim->layout.n_cells; i++) {
                const LayoutCell *claimed = &claim->layout.cells[i], *has = NULL;
                int r = 0;

                for (size_t j = 0; j < domain->layout.n_cells; j++)
                        if (domain->layout.cells[j].cell == claimed->cell)
                                has = &domain->layout.cells[j];
                if (!has)
                        r = reconcile_add_problem(
                                problems, &claim->consumer, claim->id,
                                "guest %.60s does not say where its cell %u is, its claim has it "
                                "in cell %u of the host",
                                domain->name, claimed->cell, claimed->host_cell);
                else if (has->host_cell != claimed->host_cell)
                        r = reconcile_add_problem(problems, &claim->consumer, claim->id,
                                                  "cell %u of guest %.60s is in cell %u of the "
                                                  "host, its claim has %u",
                                                  claimed->cell, domain->name, has->host_cell,
                                                  claimed->host_cell);
                else if (claimed->memory_mb > 0 && has->page_kib != claimed->page_kib)
                        r = reconcile_add_problem(problems, &claim->consumer, claim->id,
                                                  "cell %u of guest %.60s has pages of %" PRIu64
                                                  " KiB (0: small), its claim %" PRIu64,
                                                  claimed->cell, domain->name, has->page_kib,
                                                  claimed->page_kib);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compare_amount(const Claim *claim, const HostDomain *domain, const char *what,
                          uint64_t claimed, uint64_t has, ReconcileProblems *problems)
{
        /* A class that the host does not count is in no claim. */
        if (claimed == 0 || claimed == has)
                return 0;
        return reconcile_add_problem(problems, &claim->consumer, claim->id,
                                     "guest %.60s has %" PRIu64 " %s, its claim has %" PRIu64,
                                     domain->name, has, what, claimed);
}

static int compare(const Claim *claim, const HostDomain *domain, const HostFacts *facts,
                   ReconcileProblems *problems)
{
        int r;

        r = compare_amount(claim, domain, "VCPUs",
                           claim_sum(claim, "VCPU") + claim_sum(claim, "PCPU"), domain->vcpus,
                           problems);
        if (r == 0)
                r = compare_amount(claim, domain, "MiB of memory", claim_sum(claim, "MEMORY_MB"),
                                   domain->memory_mb, problems);
        if (r < 0 || (r = compare_mdevs(claim, domain, facts, problems)) < 0 ||
            (r = compare_pci(claim, domain, facts, problems)) < 0 ||
            (r = compare_cells(claim, domain, problems)) < 0)
                return r;
        return compare_cpus(claim, domain, problems);
}

static int look_at_guest(const ReconcileInput *input, const Claim *claim, const HostDomain *domain,
                         Reconcile *ret)
{
        if (claim->state == CLAIM_STATE_CLAIMED)
                return claim->expires_usec > 0 && claim->expires_usec <= input->facts->taken_usec
                               ? add_action(ret, RECONCILE_CONFIRM, &claim->consumer, claim->id,
                                            domain)
                               : 0;
        /* While it is resized, either of the two may be what it has. */
        if (has_other_claim(input, claim))
                return 0;
        return compare(claim, domain, input->facts, &ret->problems);
}

static bool must_check(const ReconcileInput *input, const Claim *claim, const HostDomain *domain)
{
        return strcmp(claim->boot_id, input->boot_id) != 0 ||
               device_count_missing(input->facts, input->node, claim) > 0 ||
               (domain && claim->layout.n_cells == 0 && domain->layout.n_cells > 0);
}

static int look_at_claim(const ReconcileInput *input, const Claim *claim,
                         const ReconcileMemory *memory, ReconcileMemory *next, Reconcile *ret)
{
        bool moving = !uuid_empty(&claim->guest);
        const HostDomain *domain =
                host_facts_find_domain(input->facts, moving ? &claim->guest : &claim->consumer);

        if (domain && input->started_only && !domain->running &&
            strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0)
                domain = NULL;
        if (must_check(input, claim, domain) &&
            add_action(ret, RECONCILE_CHECK, &claim->consumer, claim->id, domain) < 0)
                return -ENOMEM;
        /* Where the guest of a migration is, and what it has, is for who moves it to say. */
        if (moving && (!domain || claim->state == CLAIM_STATE_CONFIRMED))
                return 0;
        return domain ? look_at_guest(input, claim, domain, ret)
                      : look_at_lonely(input, claim, memory, next, ret);
}

static bool has_claim(const ClaimList *claims, const Uuid *consumer)
{
        for (size_t i = 0; i < claims->n_claims; i++)
                if (uuid_equal(&claims->claims[i]->consumer, consumer) ||
                    uuid_equal(&claims->claims[i]->guest, consumer))
                        return true;
        return false;
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
        static const int rank[_RECONCILE_TYPE_MAX] = { [RECONCILE_RELEASE] = 0,
                                                       [RECONCILE_CONFIRM] = 1,
                                                       [RECONCILE_CHECK] = 2,
                                                       [RECONCILE_ADOPT] = 3 };
        const ReconcileAction *x = a, *y = b;

        if (x->type != y->type)
                return rank[x->type] - rank[y->type];
        if (x->claim_id != y->claim_id)
                return x->claim_id < y->claim_id ? -1 : 1;
        return uuid_order(&x->consumer, &y->consumer);
}

static int look_at_all(const ReconcileInput *input, const ReconcileMemory *memory,
                       ReconcileMemory *next, Reconcile *ret)
{
        for (size_t i = 0; i < input->claims->n_claims; i++)
                if (look_at_claim(input, input->claims->claims[i], memory, next, ret) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < input->facts->n_domains; i++) {
                const HostDomain *domain = &input->facts->domains[i];

                if (!has_claim(input->claims, &domain->uuid) && !is_away(input, domain) &&
                    (domain->running || !input->started_only) &&
                    add_action(ret, RECONCILE_ADOPT, &domain->uuid, 0, domain) < 0)
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
        ReconcileMemory next = { 0 };

        if (look_at_all(input, memory, &next, ret) < 0 ||
            (input->view && look_at_view(input->view, &ret->problems) < 0)) {
                reconcile_memory_done(&next);
                reconcile_done(ret);
                return -ENOMEM;
        }
        reconcile_memory_done(memory);
        *memory = next;
        return 0;
}
