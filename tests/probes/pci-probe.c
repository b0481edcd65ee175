/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tells whether a device matches [pci] device_spec, for a test that asks Nova the same:
 *
 *   pci-probe < QUESTIONS
 *
 * Each line of the input is {"spec": TEXT, "address": "0000:41:00.0", "parent": "" or the address
 * of the physical function, "serial": BOOLEAN}. Each line of the output is {"match": BOOLEAN}, or
 * null with "words" if the spec is rejected. */

#include <jansson.h>
#include <stdio.h>

#include "base/json.h"
#include "drivers/host/pci-spec.h"

static json_t *answer(const json_t *question)
{
        _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
        SnapshotDevice device = {
                .is_pci = true,
                .vendor_id = 0x10de,
                .product_id = 0x1eb8,
                .has_card_serial = json_is_true(json_object_get(question, "serial")),
        };
        Error error = ERROR_NULL;

        snprintf(device.address, sizeof(device.address), "%s",
                 json_string_value(json_object_get(question, "address")));
        snprintf(device.physical_function, sizeof(device.physical_function), "%s",
                 json_string_value(json_object_get(question, "parent")) ?: "");
        if (pci_specs_add(&specs, json_string_value(json_object_get(question, "spec")), &error) < 0)
                return json_pack("{sn ss}", "match", "words", error.text);
        return json_pack("{sb ss}", "match", pci_specs_find(&specs, &device) != NULL, "words", "");
}

int main(void)
{
        char line[8192];

        while (fgets(line, sizeof(line), stdin)) {
                _cleanup_json_ json_t *question = json_loads(line, 0, NULL), *told = NULL;

                told = question ? answer(question) : NULL;
                if (!told || json_dumpf(told, stdout, 0) < 0 || putchar('\n') == EOF)
                        return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
