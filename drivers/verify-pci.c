/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/verify-pci.h"

#include <errno.h>
#include <string.h>

/* The providers of the devices that match, by class: "CLASS ADDRESS" in one set, in order. */
static int list_providers(const DriverConfig *config, const Snapshot *snapshot, StringSet *ret)
{
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                const PciSpec *spec = pci_specs_find(&config->pci_specs, device);
                char name[RESOURCE_CLASS_MAX + 1], text[RESOURCE_CLASS_MAX + PCI_ADDRESS_SIZE + 2];

                if (!spec || pci_spec_has_physical_network(spec))
                        continue;
                pci_spec_resource_class(spec, device, name);
                snprintf(text, sizeof(text), "%s %s", name,
                         device->physical_function[0] ? device->physical_function
                                                      : device->address);
                if (string_set_add(ret, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static bool same_class(const char *a, const char *b)
{
        size_t n = strcspn(a, " ");

        return strncmp(a, b, n + 1) == 0;
}

static bool matches_any(PciSpec **spec, const Snapshot *snapshot)
{
        const PciSpecs alone = { .items = spec, .n_items = 1 };

        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (pci_specs_find(&alone, &snapshot->devices[i]))
                        return true;
        return false;
}

/* Entries are counted from 1: one value of the option may hold several. */
static int verify_entries(const PciSpecs *specs, const Snapshot *snapshot, Findings *findings)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < specs->n_items; i++)
                if (!matches_any(&specs->items[i], snapshot))
                        r = findings_warn(findings, "[pci] device_spec",
                                          "Entry %zu of %zu matches no device of this host", i + 1,
                                          specs->n_items);
        return r;
}

int verify_pci(const DriverConfig *config, const Snapshot *snapshot, Findings *findings)
{
        _cleanup_(string_set_done) StringSet providers = STRING_SET_INIT;
        int r = 0;

        if (!config->report_in_placement)
                return 0;
        if (list_providers(config, snapshot, &providers) < 0)
                return -ENOMEM;
        if (config->pci_specs.n_items > 0 && providers.n_items == 0)
                return findings_warn(
                        findings, "[pci] device_spec",
                        "No device of this host matches; \"computectl discover --all\" "
                        "shows what there is");
        r = verify_entries(&config->pci_specs, snapshot, findings);
        for (size_t i = 0, n; r == 0 && i < providers.n_items; i += n) {
                const char *first = providers.items[i];

                for (n = 1; i + n < providers.n_items && same_class(first, providers.items[i + n]);)
                        n++;
                if (n > VERIFY_PCI_SIBLINGS_MAX)
                        r = findings_warn(
                                findings, "[pci] device_spec",
                                "%zu providers have %.*s: Placement may find no candidate for a "
                                "guest that asks for several. Give groups of them a resource_class "
                                "of their own, or let Placement search breadth-first "
                                "(allocation_candidates_generation_strategy)",
                                n, (int)strcspn(first, " "), first);
        }
        return r;
}
