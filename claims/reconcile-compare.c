/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares a claim with its guest: amounts, devices, and then cells and CPUs. A difference adds a
 * problem, unless a rule below excludes it. Only the first one is added of the guest CPUs, of the
 * other pinned host CPUs, and of each cell. A claim with allocations of another writer can have
 * more CPUs and memory than its guest. Any claim can have CPUs for emulator and I/O threads. The
 * function reconcile_check_devices() compares the devices of both with those of the host. Its
 * problems are devices that are gone, other or missing vGPU types, and other devices at the
 * addresses. A guest has up to two definitions: the one that runs, and the persistent one, which
 * its next start uses. The claim must have each mdev of either one, and each PCI device that this
 * host offers. The text of a problem contains only values that stay equal while the problem lasts,
 * because texts identify problems. Amounts of 0 in a claim are not compared, because the host might
 * not count the class. Only cells and guest CPUs of the claim's layout are compared with the
 * guest's.
 *
 * Tests: tests/unit/claims/test-reconcile.c tests/unit/claims/test-follow.c */

#include "claims/reconcile-compare.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "claims/fit/device-choice.h"
#include "claims/follow.h"

_printf_(4, 0) static int add_text(ReconcileProblems *problems, const Uuid *consumer,
                                   int64_t claim_id, const char *format, va_list ap)
{
        char *text;

        if (array_grow(&problems->items, sizeof(*problems->items), problems->n_items,
                       &problems->n_allocated) < 0)
                return -ENOMEM;
        text = text_vformat(format, ap);
        if (!text)
                return -ENOMEM;
        /* A limit can cut a character of a name. D-Bus takes only whole ones. */
        text_sanitize(text, '?');
        problems->items[problems->n_items].consumer = *consumer;
        problems->items[problems->n_items].claim_id = claim_id;
        problems->items[problems->n_items++].text = text;
        return 0;
}

int reconcile_add_problem(ReconcileProblems *problems, const Uuid *consumer, int64_t claim_id,
                          const char *format, ...)
{
        va_list ap;
        int r;

        va_start(ap, format);
        r = add_text(problems, consumer, claim_id, format, ap);
        va_end(ap);
        return r;
}

void reconcile_problems_done(ReconcileProblems *problems)
{
        for (size_t i = 0; i < problems->n_items; i++)
                free(problems->items[i].text);
        free(problems->items);
        *problems = (ReconcileProblems){ 0 };
}

/* A claim and its guest, with the list that gets the problems. */
typedef struct Pair {
        const GuestIndex *index;
        const Claim *claim;
        const HostDomain *domain; /* NULL: no guest here */
        ReconcileProblems *problems;
} Pair;

_printf_(2, 3) static int add(const Pair *pair, const char *format, ...)
{
        va_list ap;
        int r;

        va_start(ap, format);
        r = add_text(pair->problems, &pair->claim->consumer, pair->claim->id, format, ap);
        va_end(ap);
        return r;
}

/* Amounts of CPUs and memory. */

/* Adds a problem if the claim has less than the domain (has), or exceeds it by more than spare. A
 * claimed amount of 0 adds none. */
static int compare_amount(const Pair *pair, const char *what, uint64_t claimed, uint64_t has,
                          uint64_t spare)
{
        /* 0: the host does not count the class, or another writer allocated nothing of it */
        if (claimed == 0 || (claimed >= has && claimed - has <= spare))
                return 0;
        return add(pair, "guest %.60s has %" PRIu64 " %s, but its claim has %" PRIu64,
                   pair->domain->name, has, what, claimed);
}

/* Returns the number of held host CPUs on which no CPU of the guest runs. */
static unsigned count_thread_cpus(const Layout *layout)
{
        unsigned n = 0;

        CPU_SET_FOREACH(cpu, &layout->held)
                n += !layout_has_guest_cpu(layout, cpu);
        return n;
}

/* Compares CPUs and memory. A claim with allocations of another writer can exceed the domain by any
 * amount. Otherwise it can have CPUs for emulator and I/O threads. */
static int compare_amounts(const Pair *pair)
{
        const HostDomain *domain = pair->domain;
        GuestSize claimed = guest_size_of_claim(pair->claim);
        bool placed = claim_is_placed(pair->claim);
        uint64_t cpus_spare = placed ? UINT64_MAX : count_thread_cpus(&domain->layout);

        if (compare_amount(pair, "VCPUs", claimed.cpus, domain->vcpus, cpus_spare) < 0)
                return -ENOMEM;
        return compare_amount(pair, "MiB of memory", claimed.memory_mb, domain->memory_mb,
                              placed ? UINT64_MAX : 0);
}

/* Cells and CPUs. */

static const LayoutCpu *find_cpu(const Layout *layout, unsigned vcpu)
{
        for (size_t i = 0; i < layout->n_cpus; i++)
                if (layout->cpus[i].vcpu == vcpu)
                        return &layout->cpus[i];
        return NULL;
}

/* Adds the first CPU that runs elsewhere. If a guest was pinned again, the other CPUs differ as
 * well. */
static int compare_cpus(const Pair *pair)
{
        const Layout *layout = &pair->claim->layout;

        for (size_t i = 0; i < layout->n_cpus; i++) {
                const LayoutCpu *claimed = &layout->cpus[i],
                                *has = find_cpu(&pair->domain->layout, claimed->vcpu);
                _cleanup_free_ char *wanted = NULL, *found = NULL;

                if (has && cpu_set_equal(&has->cpus, &claimed->cpus))
                        continue;
                wanted = cpu_set_format(&claimed->cpus);
                found = has ? cpu_set_format(&has->cpus) : strdup("any");
                if (!wanted || !found)
                        return -ENOMEM;
                return add(pair,
                           "CPU %u of guest %.60s runs on host CPUs %.60s, but its claim has %.60s",
                           claimed->vcpu, pair->domain->name, found, wanted);
        }
        return 0;
}

static const LayoutCell *find_cell(const Layout *layout, unsigned cell)
{
        const LayoutCell *found = NULL;

        for (size_t i = 0; i < layout->n_cells; i++)
                if (layout->cells[i].cell == cell)
                        found = &layout->cells[i];
        return found;
}

/* Adds the first difference of a guest cell: place unknown, other host cell, or other page size. */
static int compare_cell(const Pair *pair, const LayoutCell *claimed)
{
        const LayoutCell *has = find_cell(&pair->domain->layout, claimed->cell);
        const char *name = pair->domain->name;

        if (!has)
                return add(
                        pair,
                        "guest %.60s names no host cell for its cell %u, but its claim has cell %u of the host",
                        name, claimed->cell, claimed->host_cell);
        if (has->host_cell != claimed->host_cell)
                return add(
                        pair,
                        "cell %u of guest %.60s is in cell %u of the host, but its claim has cell %u",
                        claimed->cell, name, has->host_cell, claimed->host_cell);
        if (claimed->memory_mb > 0 && has->page_kib != claimed->page_kib)
                return add(pair,
                           "cell %u of guest %.60s has pages of %" PRIu64
                           " KiB (0: small), but its claim has %" PRIu64,
                           claimed->cell, name, has->page_kib, claimed->page_kib);
        return 0;
}

/* Adds the first host CPU that the claim does not hold, of emulator and I/O threads or of the
 * persistent definition. Skips host CPUs on which a guest CPU can run. */
static int compare_threads(const Pair *pair)
{
        CPU_SET_FOREACH(cpu, &pair->domain->layout.held) {
                if (cpu_set_contains(&pair->claim->layout.held, cpu) ||
                    layout_has_guest_cpu(&pair->domain->layout, cpu))
                        continue;
                return add(pair,
                           "guest %.60s is pinned to host CPU %u, which its claim does not have",
                           pair->domain->name, cpu);
        }
        return 0;
}

static int compare_layouts(const Pair *pair)
{
        for (size_t i = 0; i < pair->claim->layout.n_cells; i++)
                if (compare_cell(pair, &pair->claim->layout.cells[i]) < 0)
                        return -ENOMEM;
        if (compare_cpus(pair) < 0)
                return -ENOMEM;
        return compare_threads(pair);
}

/* Devices. */

/* Devices of one definition of a guest. where: its name in messages. */
typedef struct Definition {
        const Uuid *mdevs;
        size_t n_mdevs;
        const char (*pci)[HOST_ADDRESS_SIZE];
        size_t n_pci;
        const char *where;
} Definition;

#define DEFINITIONS 2

static void get_definitions(const HostDomain *domain, Definition ret[static DEFINITIONS])
{
        ret[0] = (Definition){ domain->mdevs, domain->n_mdevs, domain->pci, domain->n_pci, "" };
        ret[1] = (Definition){ domain->config_mdevs, domain->n_config_mdevs, domain->config_pci,
                               domain->n_config_pci, " in its persistent definition" };
}

static bool domain_has_mdev(const HostDomain *domain, const Uuid *mdev)
{
        Definition definitions[DEFINITIONS];

        get_definitions(domain, definitions);
        for (size_t i = 0; i < DEFINITIONS; i++)
                for (size_t j = 0; j < definitions[i].n_mdevs; j++)
                        if (uuid_equal(&definitions[i].mdevs[j], mdev))
                                return true;
        return false;
}

static bool domain_has_pci(const HostDomain *domain, const char *address)
{
        Definition definitions[DEFINITIONS];

        get_definitions(domain, definitions);
        for (size_t i = 0; i < DEFINITIONS; i++)
                for (size_t j = 0; j < definitions[i].n_pci; j++)
                        if (strcmp(definitions[i].pci[j], address) == 0)
                                return true;
        return false;
}

/* Searches the mdevs or the PCI devices of the index. */
static bool has_text(const char **texts, size_t n, const char *text)
{
        return n > 0 && bsearch(&text, texts, n, sizeof(char *), text_order);
}

/* Compares mdevs in both directions, and adds claimed ones that no longer exist. */
static int compare_mdevs(const Pair *pair)
{
        const char *name = pair->domain->name;
        Definition definitions[DEFINITIONS];

        for (size_t i = 0; i < pair->claim->n_devices; i++) {
                const ClaimDevice *device = &pair->claim->devices[i];
                int r = 0;

                if (uuid_empty(&device->mdev))
                        continue;
                if (!domain_has_mdev(pair->domain, &device->mdev))
                        r = add(pair,
                                "guest %.60s does not have mdev %s on %s, which its claim names",
                                name, device->mdev.text, device->name);
                else if (!has_text(pair->index->mdevs, pair->index->n_mdevs, device->mdev.text))
                        r = add(pair, "mdev %s of guest %.60s no longer exists on %s",
                                device->mdev.text, name, device->name);
                if (r < 0)
                        return r;
        }
        get_definitions(pair->domain, definitions);
        for (size_t i = 0; i < DEFINITIONS; i++)
                for (size_t j = 0; j < definitions[i].n_mdevs; j++)
                        if (!claim_has_mdev(pair->claim, &definitions[i].mdevs[j]) &&
                            add(pair, "guest %.60s has mdev %s%s, which its claim does not name",
                                name, definitions[i].mdevs[j].text, definitions[i].where) < 0)
                                return -ENOMEM;
        return 0;
}

/* Compares the PCI devices that this host offers. Other devices need no claim. */
static int compare_pci(const Pair *pair)
{
        const char *name = pair->domain->name;
        Definition definitions[DEFINITIONS];

        for (size_t i = 0; i < pair->claim->n_devices; i++) {
                const ClaimDevice *device = &pair->claim->devices[i];

                if (uuid_empty(&device->mdev) && !domain_has_pci(pair->domain, device->address) &&
                    add(pair, "guest %.60s does not have PCI device %s, which its claim names",
                        name, device->address) < 0)
                        return -ENOMEM;
        }
        get_definitions(pair->domain, definitions);
        for (size_t i = 0; i < DEFINITIONS; i++)
                for (size_t j = 0; j < definitions[i].n_pci; j++) {
                        const char *address = definitions[i].pci[j];

                        if (!claim_has_pci(pair->claim, address) &&
                            has_text(pair->index->pci, pair->index->n_pci, address) &&
                            add(pair,
                                "guest %.60s has PCI device %s%s, which its claim does not name",
                                name, address, definitions[i].where) < 0)
                                return -ENOMEM;
                }
        return 0;
}

/* Adds a PCI device that the claim names, but the host does not list. */
static int add_claimed_pci(const Pair *pair, const char *address)
{
        if (!pair->domain)
                return add(pair,
                           "claim %" PRId64 " names PCI device %s, which this host does not list",
                           pair->claim->id, address);
        if (!domain_has_pci(pair->domain, address))
                return 0; /* compare_pci() adds the problem if it compares this claim */
        return add(pair, "PCI device %s of guest %.60s is no longer on this host", address,
                   pair->domain->name);
}

/* Adds the PCI devices of the guest that neither its claim names nor the host lists. */
static int add_unlisted_pci(const Pair *pair)
{
        Definition definitions[DEFINITIONS];

        get_definitions(pair->domain, definitions);
        for (size_t i = 0; i < DEFINITIONS; i++)
                for (size_t j = 0; j < definitions[i].n_pci; j++) {
                        const char *address = definitions[i].pci[j];

                        if (!claim_has_pci(pair->claim, address) &&
                            !host_facts_lists_function(pair->index->facts, address) &&
                            add(pair,
                                "guest %.60s has PCI device %s%s, which this host does not list",
                                pair->domain->name, address, definitions[i].where) < 0)
                                return -ENOMEM;
                }
        return 0;
}

/* Adds each address of the claim where another device is now. The mdevs of one device are adjacent
 * in a claim. All but the first of them are skipped, so the address is listed once. */
static int compare_identities(const Pair *pair)
{
        for (size_t i = 0; i < pair->claim->n_devices; i++) {
                const ClaimDevice *device = &pair->claim->devices[i];
                const char *now = host_facts_identity(pair->index->facts, device->address);

                if (!device_identity_differs(device->identity, now) ||
                    (i > 0 && strcmp(device[-1].address, device->address) == 0))
                        continue;
                if (add(pair, "another device is at %s (%s), but claim %" PRId64 " has %s",
                        device->address, now, pair->claim->id, device->identity) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Returns the vGPU card whose function has this address, and the function in *ret. NULL if there is
 * none. */
static const VgpuCard *find_card(const HostFacts *facts, const char *address,
                                 const VgpuFunction **ret)
{
        for (size_t i = 0; i < facts->n_cards; i++) {
                *ret = vgpu_card_find(&facts->cards[i], address);
                if (*ret)
                        return &facts->cards[i];
        }
        return NULL;
}

/* Compares the vGPU types of claimed functions with those of the hardware. While no guest of the
 * claim runs, a function can lack its type. */
static int compare_types(const Pair *pair)
{
        for (size_t i = 0; i < pair->claim->n_devices; i++) {
                const ClaimDevice *device = &pair->claim->devices[i];
                const VgpuFunction *function = NULL;
                const VgpuCard *card =
                        claim_device_is_function(device)
                                ? find_card(pair->index->facts, device->address, &function)
                                : NULL;
                const char *type = card && function->type != VGPU_TYPE_NONE
                                           ? card->types[function->type].id
                                           : NULL;
                int r = 0;

                if (type && strcmp(type, device->mdev_type) != 0)
                        r = add(pair,
                                "function %s has the vGPU type %.60s, but claim %" PRId64
                                " has type %.60s",
                                device->address, type, pair->claim->id, device->mdev_type);
                else if (card && !type && pair->domain && pair->domain->running)
                        r = add(pair,
                                "function %s of guest %.60s has no vGPU type, but claim %" PRId64
                                " has type %.60s",
                                device->address, pair->domain->name, pair->claim->id,
                                device->mdev_type);
                if (r < 0)
                        return r;
        }
        return 0;
}

int reconcile_check_devices(const GuestIndex *index, const Claim *claim, const HostDomain *domain,
                            ReconcileProblems *problems)
{
        const Pair pair = { index, claim, domain, problems };

        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (uuid_empty(&device->mdev) &&
                    !host_facts_lists_function(index->facts, device->address) &&
                    add_claimed_pci(&pair, device->address) < 0)
                        return -ENOMEM;
        }
        if ((domain && add_unlisted_pci(&pair) < 0) || compare_types(&pair) < 0)
                return -ENOMEM;
        return compare_identities(&pair);
}

int reconcile_compare(const GuestIndex *index, const Claim *claim, const HostDomain *domain,
                      ReconcileProblems *problems)
{
        const Pair pair = { index, claim, domain, problems };

        if (compare_amounts(&pair) < 0 || compare_mdevs(&pair) < 0 || compare_pci(&pair) < 0)
                return -ENOMEM;
        return compare_layouts(&pair);
}
