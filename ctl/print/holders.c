/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/holders.h"

#include <string.h>

#include "ctl/print/json.h"

void holders_done(Holders *holders)
{
        free(holders->items);
        *holders = (Holders){ 0 };
}

/* Hues by the golden angle: neighbours differ, however many there are. */
static void choose_colour(char colour[static 8], size_t index)
{
        static const unsigned lows[] = { 105, 150, 75 };
        unsigned hue = (unsigned)(index * 137 % 360), low = lows[index / 3 % ARRAY_SIZE(lows)],
                 high = 225, sector = hue / 60, rising = low + (high - low) * (hue % 60) / 60,
                 falling = high - (rising - low);
        const unsigned rgb[6][3] = {
                { high, rising, low },  { falling, high, low }, { low, high, rising },
                { low, falling, high }, { rising, low, high },  { high, low, falling },
        };

        snprintf(colour, 8, "#%02x%02x%02x", rgb[sector][0], rgb[sector][1], rgb[sector][2]);
}

static const Holder *find(const Holders *holders, const char *consumer)
{
        for (size_t i = 0; i < holders->n_items; i++)
                if (strcmp(holders->items[i].consumer, consumer) == 0)
                        return &holders->items[i];
        return NULL;
}

static void add(Holders *holders, const char *consumer, const char *name,
                const SnapshotDomain *domain)
{
        Holder *holder = &holders->items[holders->n_items];

        *holder = (Holder){ .consumer = consumer, .name = name, .domain = domain };
        choose_colour(holder->colour, holders->n_items++);
}

int holders_init(Holders *ret, const Snapshot *snapshot, const json_t *claims)
{
        const json_t *claim;
        size_t i;

        *ret = (Holders){ .claims = json_object_get(claims, "claims") };
        ret->items = calloc(snapshot->n_domains + json_array_size(ret->claims) + 1, sizeof(Holder));
        if (!ret->items)
                return -ENOMEM;
        for (i = 0; i < snapshot->n_domains; i++) {
                const SnapshotDomain *domain = &snapshot->domains[i];

                add(ret, domain->uuid.text, domain->name[0] ? domain->name : domain->uuid.text,
                    domain);
        }
        json_array_foreach(ret->claims, i, claim) {
                const char *consumer = ctl_json_text(claim, "consumer");

                if (!find(ret, consumer))
                        add(ret, consumer, consumer, NULL);
        }
        return 0;
}

const Holder *holders_find_cpu(const Holders *holders, unsigned cpu)
{
        for (size_t i = 0; i < holders->n_items; i++) {
                const SnapshotDomain *domain = holders->items[i].domain;

                for (size_t j = 0; domain && j < domain->n_pins; j++)
                        if (cpu_set_contains(&domain->pins[j].cpus, cpu))
                                return &holders->items[i];
        }
        return NULL;
}

/* The guest whose claim has a device with that member, which no domain has yet. */
static const Holder *find_claimed(const Holders *holders, const char *key, const char *value)
{
        const json_t *claim, *device;
        size_t i, j;

        json_array_foreach(holders->claims, i, claim)
                json_array_foreach(json_object_get(claim, "devices"), j, device)
                        if (strcmp(ctl_json_text(device, key), value) == 0 &&
                            (strcmp(key, "mdev") == 0 || !ctl_json_text(device, "mdev")[0]))
                                return find(holders, ctl_json_text(claim, "consumer"));
        return NULL;
}

const Holder *holders_find_mdev(const Holders *holders, const Uuid *mdev)
{
        for (size_t i = 0; i < holders->n_items; i++) {
                const SnapshotDomain *domain = holders->items[i].domain;

                for (size_t j = 0; domain && j < domain->n_mdevs; j++)
                        if (uuid_equal(&domain->mdevs[j], mdev))
                                return &holders->items[i];
                for (size_t j = 0; domain && j < domain->n_config_mdevs; j++)
                        if (uuid_equal(&domain->config_mdevs[j], mdev))
                                return &holders->items[i];
        }
        return find_claimed(holders, "mdev", mdev->text);
}

const Holder *holders_find_promised(const Holders *holders, const char *device, size_t number)
{
        const json_t *claim, *part;
        size_t i, j;

        json_array_foreach(holders->claims, i, claim)
                json_array_foreach(json_object_get(claim, "devices"), j, part)
                        if (strcmp(ctl_json_text(part, "device"), device) == 0 &&
                            ctl_json_text(part, "mdev")[0] &&
                            !json_is_true(json_object_get(part, "exists")) && number-- == 0)
                                return find(holders, ctl_json_text(claim, "consumer"));
        return NULL;
}

const Holder *holders_find_pci(const Holders *holders, const char *address)
{
        if (!address[0])
                return NULL;
        for (size_t i = 0; i < holders->n_items; i++) {
                const SnapshotDomain *domain = holders->items[i].domain;

                for (size_t j = 0; domain && j < domain->n_pci_addresses; j++)
                        if (strcmp(domain->pci_addresses[j], address) == 0)
                                return &holders->items[i];
                for (size_t j = 0; domain && j < domain->n_config_pci_addresses; j++)
                        if (strcmp(domain->config_pci_addresses[j], address) == 0)
                                return &holders->items[i];
        }
        return find_claimed(holders, "address", address);
}

uint64_t holder_memory_kib(const Holder *holder, unsigned cell)
{
        const SnapshotDomain *domain = holder->domain;
        uint64_t sum = 0;

        if (!domain)
                return 0;
        for (size_t i = 0; i < domain->n_cells; i++) {
                const DomainCell *guest_cell = &domain->cells[i];

                if (cpu_set_contains(&guest_cell->host_cells, cell) &&
                    u64_add_overflow(
                            sum, guest_cell->memory_kib / cpu_set_count(&guest_cell->host_cells),
                            &sum))
                        return UINT64_MAX;
        }
        if (sum == 0 && cpu_set_contains(&domain->memory_cells, cell))
                sum = domain->memory_kib / cpu_set_count(&domain->memory_cells);
        return sum;
}

json_t *holders_sum_claims(const Holders *holders, const Holder *holder)
{
        _cleanup_json_ json_t *sums = json_object();
        const json_t *claim, *allocation;
        size_t i, j;

        if (!sums)
                return NULL;
        json_array_foreach(holders->claims, i, claim) {
                if (strcmp(ctl_json_text(claim, "consumer"), holder->consumer) != 0)
                        continue;
                json_array_foreach(json_object_get(claim, "allocations"), j, allocation)
                        if (ctl_json_add_amounts(sums, json_object_get(allocation, "resources")) <
                            0)
                                return NULL;
        }
        return TAKE_PTR(sums);
}
