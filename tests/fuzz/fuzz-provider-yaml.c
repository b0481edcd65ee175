/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>

#include "agent/tree/provider-yaml.h"
#include "tests/fuzz/fuzz.h"

static void ignore(const char *text, void *userdata)
{
        assert(text[0] != '\0');
}

void fuzz_text(const char *text)
{
        ProviderYaml yaml = PROVIDER_YAML_INIT;

        assert(provider_yaml_add(&yaml, "f", text, strlen(text), ignore, NULL) != -ENOMEM);
        for (size_t i = 0; i < yaml.n_entries; i++) {
                const ProviderYamlEntry *entry = yaml.entries[i];

                assert(entry->n_inventories > 0 || entry->traits.n_items > 0);
                for (size_t j = 0; j < entry->n_inventories; j++)
                        assert(!inventory_invalid_field(&entry->inventories[j].inventory));
        }
        provider_yaml_done(&yaml);
}
