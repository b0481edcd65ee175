/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Implements the rules for allocations whose inventory leaves a provider. reshape_rule_find()
 * selects the rule for a class of a provider: the first one that applies, in the order of its code,
 * and none for a class that stays. VCPU that stays is the exception if dedicated CPUs are new and a
 * guest is pinned to them, or cannot be read. No rule applies to a provider at whose place another
 * device is now: the allocations belong to the former one. reshape_rule_place() decides where the
 * amount of one consumer goes.
 *
 * CPUs and memory go to the cells to which the guest's domain pins them (GuestCells), or to the
 * root for classes that belong there. An amount without a pin, or above the capacity of its cell,
 * goes where it fits best, except CPUs that become dedicated on their own provider
 * (convert_cpus()). No provider gets more than its inventory allows, except VCPU that stays on its
 * provider, and reserved devices whose class changes under a guest. The functions read the trees
 * before and after the update and change neither; only "parts" is written, and undefined after an
 * error.
 *
 * Tests: tests/unit/drivers/reshape/test-moves.c */

#include "drivers/reshape/rules.h"

#include <inttypes.h>
#include <string.h>

#include "drivers/tree/mdev-providers.h"
#include "drivers/tree/memory-encryption.h"
#include "drivers/tree/numa-providers.h"

static const char vcpu[] = "VCPU";
static const char pcpu[] = "PCPU";
static const char memory[] = "MEMORY_MB";

const char *reshape_new_name(const HostConfig *config, const char *resource_class)
{
        size_t n = strlen(resource_class);

        for (char **pair = config->renamed_classes; pair && *pair; pair++)
                if (strncmp(*pair, resource_class, n) == 0 && (*pair)[n] == ':')
                        return *pair + n + 1;
        return NULL;
}

/* Returns whether the root or a provider below it has the class. */
static bool tree_has_class(const ProviderTree *tree, const Uuid *root, const char *resource_class)
{
        for (size_t i = 0; i < tree->n_providers; i++)
                if (provider_find_inventory(tree->providers[i], resource_class) &&
                    provider_tree_in_subtree(tree, tree->providers[i], root))
                        return true;
        return false;
}

static bool has_class_now(const TreeUpdate *update, const char *resource_class)
{
        return tree_has_class(update->tree, &update->root->uuid, resource_class);
}

static bool has_class_before(const TreeUpdate *update, const char *resource_class)
{
        return tree_has_class(update->before, &update->root->uuid, resource_class);
}

static bool is_cpu(const char *resource_class)
{
        return strcmp(resource_class, vcpu) == 0 || strcmp(resource_class, pcpu) == 0;
}

/* Returns whether dedicated CPUs are new. Guests that are pinned to them have VCPU until now
 * (facts C5.2). */
static bool dedicates(const TreeUpdate *update)
{
        return has_class_now(update, pcpu) && !has_class_before(update, pcpu);
}

/* Returns whether a CPU of the guest is pinned to dedicated CPUs, or might be: the pins of a guest
 * that could not be read are unknown. */
static bool is_dedicated(const TreeUpdate *update, const SnapshotDomain *guest)
{
        if (guest->unread)
                return true;
        for (size_t i = 0; i < guest->n_pins; i++)
                if (cpu_plan_dedicates(&update->cpus, &guest->pins[i].cpus))
                        return true;
        return false;
}

static bool has_dedicated_guest(const TreeUpdate *update)
{
        for (size_t i = 0; i < update->snapshot->n_domains; i++)
                if (is_dedicated(update, &update->snapshot->domains[i]))
                        return true;
        return false;
}

/* Returns whether CPUs or memory move between the root and cells, or VCPU becomes PCPU, or the
 * reverse, on the same provider. */
static bool moves_between_cells(const TreeUpdate *update, const Provider *from,
                                const Provider *after, const char *resource_class)
{
        unsigned cell;

        if (!uuid_equal(&from->uuid, &update->root->uuid) &&
            !numa_is_cell(update->before, update->root, from, &cell))
                return false;
        if (after && provider_find_inventory(after, resource_class))
                return strcmp(resource_class, vcpu) == 0 && dedicates(update) &&
                       has_dedicated_guest(update);
        if (is_cpu(resource_class))
                return has_class_now(update, vcpu) || has_class_now(update, pcpu);
        return strcmp(resource_class, memory) == 0 && has_class_now(update, memory);
}

/* Returns the new class of a device's provider whose class changed, or NULL. A cell can have one
 * inventory, too, but its classes are different resources. */
static const char *find_regrouped(const TreeUpdate *update, const Provider *from,
                                  const Provider *after)
{
        unsigned cell;

        if (!after || uuid_empty(&from->parent) || from->n_inventories != 1 ||
            after->n_inventories != 1 || numa_is_cell(update->before, update->root, from, &cell))
                return NULL;
        return after->inventories[0].resource_class;
}

/* Returns the virtual function that has this provider for itself, or NULL. */
static const SnapshotDevice *find_function(const TreeUpdate *update, const Provider *from)
{
        size_t n = strlen(update->root->name);
        const SnapshotDevice *device;

        if (strncmp(from->name, update->root->name, n) != 0 || from->name[n] != '_')
                return NULL;
        device = snapshot_find_device(update->snapshot, from->name + n + 1);
        return device && device->is_vgpu_function ? device : NULL;
}

/* Returns the offer of the card of the function that has this provider for itself: for the type
 * that the function has, or else for its configured type. NULL if there is none. */
static const MdevOffer *find_card_offer(const TreeUpdate *update, const Provider *from)
{
        const SnapshotDevice *device = find_function(update, from);
        const HostMdevType *type;

        if (!device)
                return NULL;
        type = mdev_type_of_device(update->config, device);
        for (size_t i = 0; i < update->mdevs.n_offers; i++) {
                const MdevOffer *offer = &update->mdevs.offers[i];
                const VgpuFunction *function =
                        offer->card ? vgpu_card_find(offer->card, device->address) : NULL;
                int wanted = function && function->type != VGPU_TYPE_NONE ? function->type
                             : function && type ? vgpu_card_find_type(offer->card, type->type)
                                                : VGPU_TYPE_NONE;

                if (wanted != VGPU_TYPE_NONE &&
                    strcmp(offer->card->types[wanted].id, offer->type->type) == 0)
                        return offer;
        }
        return NULL;
}

ReshapeRule reshape_rule_find(const TreeUpdate *update, const Provider *from,
                              const char *resource_class)
{
        const Provider *after = provider_tree_find(update->tree, &from->uuid);
        bool stays = after && provider_find_inventory(after, resource_class);
        bool of_root = uuid_equal(&from->uuid, &update->root->uuid);

        if (update->known && string_set_contains(&update->known->exchanged, from->name))
                return RESHAPE_RULE_NONE;
        if (moves_between_cells(update, from, after, resource_class))
                return RESHAPE_RULE_CELLS;
        if (stays)
                return RESHAPE_RULE_NONE;
        if (after && reshape_new_name(update->config, resource_class))
                return RESHAPE_RULE_RENAME;
        if (of_root && update->mdevs.n_offers > 0 &&
            mdev_providers_have_class(update->config, resource_class))
                return RESHAPE_RULE_MDEVS;
        if (find_card_offer(update, from))
                return RESHAPE_RULE_CARD;
        if (of_root && strcmp(resource_class, memory_encryption_class) == 0 &&
            memory_encryption_find_sev(update->tree, update->root))
                return RESHAPE_RULE_CONTEXT;
        return find_regrouped(update, from, after) ? RESHAPE_RULE_REGROUP : RESHAPE_RULE_NONE;
}

int reshape_rule_list_classes(const TreeUpdate *update, const Provider *from,
                              const char *resource_class, StringSet *ret)
{
        const Provider *after = provider_tree_find(update->tree, &from->uuid);
        int r = 0;

        switch (reshape_rule_find(update, from, resource_class)) {
        case RESHAPE_RULE_RENAME:
                return string_set_add(ret, reshape_new_name(update->config, resource_class));
        case RESHAPE_RULE_CELLS:
                if (strcmp(resource_class, memory) == 0 ||
                    has_class_before(update, pcpu) == has_class_now(update, pcpu))
                        return 0;
                r = string_set_add(ret, vcpu);
                return r < 0 ? r : string_set_add(ret, pcpu);
        case RESHAPE_RULE_MDEVS:
                for (size_t i = 0; r >= 0 && i < update->mdevs.n_offers; i++)
                        r = string_set_add(ret, update->mdevs.offers[i].type->mdev_class);
                return r;
        case RESHAPE_RULE_CARD:
                return string_set_add(ret, find_card_offer(update, from)->type->mdev_class);
        case RESHAPE_RULE_REGROUP:
                return string_set_add(ret, after->inventories[0].resource_class);
        default:
                return 0;
        }
}

bool reshape_rule_concerns(const TreeUpdate *update, const ReshapeItem *item)
{
        const Provider *after = provider_tree_find(update->tree, &item->from->uuid);

        return !after || !provider_find_inventory(after, item->resource_class) ||
               (item->guest && is_dedicated(update, item->guest));
}

/* Places of a guest's CPUs and memory on the host, by the pins in its domain: vcpupin, numatune
 * and memnode */

/* Weights of cells, in CPUs or in KiB of memory. An amount without a single cell counts only in
 * "all". */
typedef struct GuestWeights {
        uint64_t *of_cell; /* by index of snapshot->cells */
        uint64_t all;
} GuestWeights;

/* The weights of one guest. */
typedef struct GuestCells {
        GuestWeights shared;    /* CPUs without a pin to dedicated ones */
        GuestWeights dedicated; /* CPUs with a pin to dedicated ones */
        GuestWeights memory;
} GuestCells;

#define NO_CELL SIZE_MAX

/* Allocates one item more than cells, because calloc() of 0 items can return NULL. */
static int weights_init(GuestWeights *weights, const Snapshot *snapshot)
{
        weights->of_cell = calloc(snapshot->n_cells + 1, sizeof(uint64_t));
        return weights->of_cell ? 0 : -ENOMEM;
}

static void add_weight(GuestWeights *weights, size_t cell, uint64_t weight)
{
        if (u64_add_overflow(weights->all, weight, &weights->all))
                weights->all = UINT64_MAX;
        else if (cell != NO_CELL)
                weights->of_cell[cell] += weight;
}

static void guest_cells_done(GuestCells *cells)
{
        free(cells->shared.of_cell);
        free(cells->dedicated.of_cell);
        free(cells->memory.of_cell);
        *cells = (GuestCells){ 0 };
}

/* Returns whether the cell has all CPUs of the set, which must not be empty. */
static bool cell_has_all(const SnapshotCell *cell, const CpuSet *cpus)
{
        unsigned n_common = 0;

        for (size_t i = 0; i < cell->n_cpus; i++)
                n_common += cpu_set_contains(cpus, cell->cpus[i].id);
        return n_common > 0 && n_common == cpu_set_count(cpus);
}

static size_t find_cell_of_cpus(const Snapshot *snapshot, const CpuSet *cpus)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                if (cell_has_all(&snapshot->cells[i], cpus))
                        return i;
        return NO_CELL;
}

/* Returns the index of the only cell in the set, or NO_CELL. */
static size_t find_single_cell(const Snapshot *snapshot, const CpuSet *ids)
{
        for (size_t i = 0; cpu_set_count(ids) == 1 && i < snapshot->n_cells; i++)
                if (cpu_set_contains(ids, snapshot->cells[i].id))
                        return i;
        return NO_CELL;
}

/* Returns the CPUs that a guest CPU can use: its pin, or <vcpu cpuset>. */
static const CpuSet *find_pin(const SnapshotDomain *domain, unsigned guest_cpu)
{
        for (size_t i = 0; i < domain->n_pins; i++)
                if (domain->pins[i].vcpu == guest_cpu)
                        return &domain->pins[i].cpus;
        return &domain->cpus;
}

/* Counts the guest CPUs by kind and cell. Only a pin of its own makes a guest CPU dedicated, as in
 * is_dedicated(): <vcpu cpuset> lets it float over its CPUs (cpu_guest_floats()). */
static void weigh_cpus(const Snapshot *snapshot, const SnapshotDomain *domain, const CpuPlan *cpus,
                       GuestCells *ret)
{
        for (unsigned i = 0; i < MIN(domain->vcpus, CPU_SET_MAX); i++) {
                const CpuSet *pin = find_pin(domain, i);
                bool dedicated = pin != &domain->cpus && cpu_plan_dedicates(cpus, pin);

                add_weight(dedicated ? &ret->dedicated : &ret->shared,
                           find_cell_of_cpus(snapshot, pin), 1);
        }
}

/* Distributes memory over the cells in the proportion of all guest CPUs. */
static void follow_cpus(const Snapshot *snapshot, uint64_t memory_kib, GuestCells *ret)
{
        uint64_t n_cpus = ret->shared.all + ret->dedicated.all, before = 0;

        for (size_t i = 0; n_cpus > 0 && i < snapshot->n_cells; i++) {
                uint64_t own = ret->shared.of_cell[i] + ret->dedicated.of_cell[i];

                add_weight(&ret->memory, i, memory_kib / n_cpus * own);
                before += memory_kib / n_cpus * own;
        }
        add_weight(&ret->memory, NO_CELL, memory_kib - before);
}

/* Weighs the memory of the guest. Memory without cells of the guest follows <numatune>, or else the
 * CPUs. Memory of a guest's cell follows its <memnode>, or else <numatune>. Only an element that
 * names one cell is followed. */
static void weigh_memory(const Snapshot *snapshot, const SnapshotDomain *domain, GuestCells *ret)
{
        size_t bound = find_single_cell(snapshot, &domain->memory_cells);

        if (domain->n_cells == 0 && bound == NO_CELL) {
                follow_cpus(snapshot, domain->memory_kib, ret);
                return;
        }
        if (domain->n_cells == 0)
                add_weight(&ret->memory, bound, domain->memory_kib);
        for (size_t i = 0; i < domain->n_cells; i++) {
                size_t cell = find_single_cell(snapshot, &domain->cells[i].host_cells);

                add_weight(&ret->memory, cell != NO_CELL ? cell : bound,
                           domain->cells[i].memory_kib);
        }
}

/* Calculates the weights of a domain. Without a domain (NULL) all are 0. -ENOMEM. */
static int guest_cells_make(const Snapshot *snapshot, const SnapshotDomain *domain,
                            const CpuPlan *cpus, GuestCells *ret)
{
        _cleanup_(guest_cells_done) GuestCells cells = { 0 };

        if (weights_init(&cells.shared, snapshot) < 0 ||
            weights_init(&cells.dedicated, snapshot) < 0 ||
            weights_init(&cells.memory, snapshot) < 0)
                return -ENOMEM;
        if (domain) {
                weigh_cpus(snapshot, domain, cpus, &cells);
                weigh_memory(snapshot, domain, &cells);
        }
        *ret = TAKE_STRUCT(cells);
        return 0;
}

/* Capacity that is left */

static uint64_t subtract(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

/* Fills the limits of a share from the record of the class. parts: what was placed before of the
 * same amount, or NULL. max_unit limits the sum of all that the consumer has on the provider.
 * stays: the amount is on the provider already, so it can use reserved capacity (decision
 * reshape/open). Without a record the share can take nothing. */
static void measure(const ReshapeItem *item, const Provider *provider, const char *resource_class,
                    const Consumer *parts, bool stays, ReshapeShare *ret)
{
        const Inventory *record = provider_find_inventory(provider, resource_class);
        uint64_t placed = parts ? consumer_get(parts, &provider->uuid, resource_class) : 0;
        uint64_t own = consumer_get(item->consumer, &provider->uuid, resource_class) + placed;
        uint64_t used = consumer_get(item->usage, &provider->uuid, resource_class) + placed;
        Inventory limits;

        ret->step = 1;
        if (!record)
                return;
        limits = *record;
        if (stays)
                limits.reserved = 0;
        ret->room =
                MIN(subtract(inventory_capacity(&limits), used), subtract(limits.max_unit, own));
        ret->step = limits.step_size;
        ret->least = subtract(limits.min_unit, own);
}

static int no_room(const ReshapeItem *item, const char *resource_class, Error *reterr)
{
        return error_setf(reterr, ENOSPC, "no provider has capacity for its %" PRIu64 " %s",
                          item->amount, resource_class);
}

/* Adds the whole amount on one provider, or returns -ENOSPC. */
static int add_whole(const ReshapeItem *item, const Provider *provider, const char *resource_class,
                     uint64_t amount, Consumer *parts, Error *reterr)
{
        ReshapeShare share = { .wanted = amount };

        measure(item, provider, resource_class, parts,
                uuid_equal(&provider->uuid, &item->from->uuid), &share);
        if (reshape_share_out(&share, 1, amount) < 0) {
                int r = no_room(item, resource_class, reterr);

                return error_prefixf(reterr, r, "%s", provider->name);
        }
        return consumer_add(parts, &provider->uuid, resource_class, amount) < 0 ? error_oom(reterr)
                                                                                : 0;
}

/* Places on the root and the cells */

/* Returns the rank of a provider, lower is better: 0 if the consumer has resources there, 1 if
 * its remaining CPUs and memory fit, otherwise 2. */
static unsigned rank_of(const ReshapeItem *item, const Provider *provider)
{
        static const char *const classes[] = { memory, pcpu, vcpu };
        bool fits = true;

        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                uint64_t need = consumer_get(item->consumer, &item->from->uuid, classes[i]);
                ReshapeShare share = { 0 };

                if (consumer_get(item->consumer, &provider->uuid, classes[i]) > 0)
                        return 0;
                measure(item, provider, classes[i], NULL, false, &share);
                fits &= share.room >= need;
        }
        return fits ? 1 : 2;
}

static const Provider *cell_provider(const TreeUpdate *update, size_t index)
{
        return numa_parent(update->config, update->tree, update->root,
                           (int)update->snapshot->cells[index].id);
}

/* Shares the amount of a class out over the cells, or puts it on the root if the class is there.
 * The weights decide which part belongs to which cell. */
static int share_over_cells(const TreeUpdate *update, const ReshapeItem *item,
                            const char *resource_class, const GuestWeights *weights,
                            uint64_t amount, Consumer *parts, Error *reterr)
{
        bool flat = numa_is_at_root(update->config, resource_class);
        size_t n = flat ? 1 : update->snapshot->n_cells;
        _cleanup_free_ ReshapeShare *shares = calloc(n + 1, sizeof(ReshapeShare));
        uint64_t before = 0;

        if (!shares)
                return error_oom(reterr);
        for (size_t i = 0; i < n; i++) {
                const Provider *provider = flat ? update->root : cell_provider(update, i);

                measure(item, provider, resource_class, NULL, false, &shares[i]);
                shares[i].rank = rank_of(item, provider);
                if (flat)
                        continue;
                shares[i].wanted =
                        reshape_portion(amount, before, weights->of_cell[i], weights->all);
                before += weights->of_cell[i];
        }
        if (reshape_share_out(shares, n, amount) < 0)
                return no_room(item, resource_class, reterr);
        for (size_t i = 0; i < n; i++)
                if (consumer_add(parts,
                                 flat ? &update->root->uuid : &cell_provider(update, i)->uuid,
                                 resource_class, shares[i].given) < 0)
                        return error_oom(reterr);
        return 0;
}

/* Returns the part of the CPUs that is PCPU in the new tree. */
static uint64_t count_dedicated(const TreeUpdate *update, const ReshapeItem *item,
                                const GuestCells *cells)
{
        if (strcmp(item->resource_class, pcpu) == 0)
                return has_class_now(update, pcpu) ? item->amount : 0;
        if (!dedicates(update))
                return 0;
        return reshape_portion(item->amount, 0, cells->dedicated.all,
                               cells->dedicated.all + cells->shared.all);
}

/* Returns the number of guest CPUs that are pinned to dedicated CPUs of this cell, but at most the
 * amount. At the root, returns the part of the amount that is PCPU. */
static uint64_t count_dedicated_here(const TreeUpdate *update, const ReshapeItem *item,
                                     const Provider *here, const GuestCells *cells)
{
        unsigned id;

        if (!numa_is_cell(update->tree, update->root, here, &id))
                return count_dedicated(update, item, cells);
        for (size_t i = 0; i < update->snapshot->n_cells; i++)
                if (update->snapshot->cells[i].id == id)
                        return MIN(item->amount, cells->dedicated.of_cell[i]);
        return 0;
}

/* Keeps VCPU on this provider, except the CPUs that are dedicated now. Those become PCPU of this
 * provider, and must fit there, or of the cells if this provider has no PCPU. */
static int convert_cpus(const TreeUpdate *update, const ReshapeItem *item, const Provider *here,
                        const GuestCells *cells, Consumer *parts, Error *reterr)
{
        uint64_t n_dedicated = count_dedicated_here(update, item, here, cells);
        int r = 0;

        if (n_dedicated > 0 && provider_find_inventory(here, pcpu))
                r = add_whole(item, here, pcpu, n_dedicated, parts, reterr);
        else if (n_dedicated > 0)
                r = share_over_cells(update, item, pcpu, &cells->dedicated, n_dedicated, parts,
                                     reterr);
        if (r < 0)
                return r;
        return consumer_add(parts, &here->uuid, vcpu, item->amount - n_dedicated) < 0
                       ? error_oom(reterr)
                       : 0;
}

/* Places CPUs. If the guest has no CPUs of one kind (shared, dedicated), the weights of the other
 * kind decide. Returns -EINVAL for VCPU of an unread guest while CPUs become dedicated: its pins
 * are unknown, and a later reshape would not turn the VCPU into PCPU. */
static int place_cpus(const TreeUpdate *update, const ReshapeItem *item, const GuestCells *cells,
                      Consumer *parts, Error *reterr)
{
        uint64_t n_dedicated = count_dedicated(update, item, cells);
        uint64_t n_shared = item->amount - n_dedicated;
        bool pins_dedicated = cells->dedicated.all > 0, pins_shared = cells->shared.all > 0;
        const Provider *here = provider_tree_find(update->tree, &item->from->uuid);
        int r = 0;

        if (dedicates(update) && item->guest && item->guest->unread)
                return error_setf(reterr, EINVAL, "its domain cannot be read");
        if (here && provider_find_inventory(here, item->resource_class))
                return convert_cpus(update, item, here, cells, parts, reterr);
        if (n_shared > 0 && !has_class_now(update, vcpu))
                return error_setf(
                        reterr, EINVAL,
                        "its guest is not pinned to dedicated CPUs, and there are no shared CPUs");
        if (n_dedicated > 0)
                r = share_over_cells(update, item, pcpu,
                                     pins_dedicated ? &cells->dedicated : &cells->shared,
                                     n_dedicated, parts, reterr);
        if (r == 0 && n_shared > 0)
                r = share_over_cells(update, item, vcpu,
                                     pins_shared ? &cells->shared : &cells->dedicated, n_shared,
                                     parts, reterr);
        return r;
}

/* Places CPUs or memory by the weights of the guest. */
static int place_in_cells(const TreeUpdate *update, const ReshapeItem *item, Consumer *parts,
                          Error *reterr)
{
        _cleanup_(guest_cells_done) GuestCells cells = { 0 };

        if (guest_cells_make(update->snapshot, item->guest, &update->cpus, &cells) < 0)
                return error_oom(reterr);
        if (is_cpu(item->resource_class))
                return place_cpus(update, item, &cells, parts, reterr);
        return share_over_cells(update, item, item->resource_class, &cells.memory, item->amount,
                                parts, reterr);
}

/* Places of mediated devices */

/* Places one mdev on the provider of its parent device. */
static int place_mdev(const TreeUpdate *update, const ReshapeItem *item, const Uuid *uuid,
                      Consumer *parts, Error *reterr)
{
        const SnapshotMdev *mdev = snapshot_find_mdev(update->snapshot, uuid);
        const MdevOffer *offer;
        const Provider *provider;

        if (!mdev)
                return error_setf(reterr, EINVAL, "its mediated device %s is not on this host",
                                  uuid->text);
        offer = mdev_plan_find(&update->mdevs, mdev->parent);
        provider = offer ? mdev_providers_find(update->tree, update->root, offer->name) : NULL;
        if (!provider)
                return error_setf(
                        reterr, EINVAL,
                        "its mediated device %s is on %.60s, which offers no mediated devices in the configuration",
                        uuid->text, mdev->parent);
        return add_whole(item, provider, offer->type->mdev_class, 1, parts, reterr);
}

/* Places the mdevs that the guest has. Their number decides, even if it is not the allocated
 * amount (facts C5.1). */
static int place_mdevs(const TreeUpdate *update, const ReshapeItem *item, Consumer *parts,
                       Error *reterr)
{
        const SnapshotDomain *guest = item->guest;

        if (!guest || guest->n_mdevs == 0)
                return error_setf(reterr, EINVAL,
                                  !guest          ? "it has no domain on this host"
                                  : guest->unread ? "its domain cannot be read"
                                                  : "its domain has no mediated device");
        for (size_t i = 0; i < guest->n_mdevs; i++) {
                int r = place_mdev(update, item, &guest->mdevs[i], parts, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Moves a vGPU from the provider of its virtual function to that of the card. */
static int place_on_card(const TreeUpdate *update, const ReshapeItem *item, Consumer *parts,
                         Error *reterr)
{
        const MdevOffer *offer = find_card_offer(update, item->from);
        const Provider *provider = mdev_providers_find(update->tree, update->root, offer->name);

        if (!provider)
                return error_setf(reterr, EINVAL, "the card %.60s has no provider", offer->name);
        return add_whole(item, provider, offer->type->mdev_class, item->amount, parts, reterr);
}

int reshape_rule_place(const TreeUpdate *update, ReshapeRule rule, const ReshapeItem *item,
                       Consumer *parts, Error *reterr)
{
        const Provider *same = provider_tree_find(update->tree, &item->from->uuid);

        switch (rule) {
        case RESHAPE_RULE_CELLS:
                return place_in_cells(update, item, parts, reterr);
        case RESHAPE_RULE_MDEVS:
                return place_mdevs(update, item, parts, reterr);
        case RESHAPE_RULE_CARD:
                return place_on_card(update, item, parts, reterr);
        case RESHAPE_RULE_CONTEXT:
                return add_whole(item, memory_encryption_find_sev(update->tree, update->root),
                                 item->resource_class, item->amount, parts, reterr);
        case RESHAPE_RULE_RENAME:
                return add_whole(item, same, reshape_new_name(update->config, item->resource_class),
                                 item->amount, parts, reterr);
        default:
                return add_whole(item, same, find_regrouped(update, item->from, same), item->amount,
                                 parts, reterr);
        }
}
