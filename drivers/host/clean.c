/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the section of a device. An address has precedence over a class, so a section for a class
 * can have exceptions.
 *
 * Tests: tests/unit/drivers/host/test-clean.c */

#include "drivers/host/clean.h"

#include <string.h>

static bool has_word(char *const *list, const char *word)
{
        for (; list && *list; list++)
                if (strcmp(*list, word) == 0)
                        return true;
        return false;
}

/* Returns the spec of a device that a provider counts alone, or NULL. */
static const PciSpec *find_spec(const HostConfig *config, const SnapshotDevice *device)
{
        const PciSpec *spec;

        if (!config->report_in_placement || !device->is_pci || !device->address[0] ||
            device->physical_function[0] || device->is_vgpu_function)
                return NULL;
        spec = pci_specs_find(&config->pci_specs, device);
        return spec && !spec->physical_network ? spec : NULL;
}

const HostClean *host_clean_find(const HostConfig *config, const SnapshotDevice *device)
{
        const PciSpec *spec = config->n_cleans > 0 ? find_spec(config, device) : NULL;
        char resource_class[RESOURCE_CLASS_MAX + 1];

        if (!spec)
                return NULL;
        for (size_t i = 0; i < config->n_cleans; i++)
                if (has_word(config->cleans[i].device_addresses, device->address))
                        return &config->cleans[i];
        pci_spec_resource_class(spec, device, resource_class);
        for (size_t i = 0; i < config->n_cleans; i++)
                if (has_word(config->cleans[i].resource_classes, resource_class))
                        return &config->cleans[i];
        return NULL;
}

bool host_clean_is_one_time(const HostConfig *config, const SnapshotDevice *device)
{
        const PciSpec *spec = find_spec(config, device);

        return spec && spec->one_time_use;
}
