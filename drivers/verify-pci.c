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
