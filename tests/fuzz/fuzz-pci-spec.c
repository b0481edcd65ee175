/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/pci-spec.h"
#include "tests/fuzz/fuzz.h"

void fuzz_text(const char *text)
{
        _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;
        _cleanup_(string_set_done) StringSet traits = STRING_SET_INIT;
        SnapshotDevice device = {
                .is_pci = true,
                .address = "0000:81:10.1",
                .vendor_id = 0x8086,
                .product_id = 0x154c,
                .physical_function = "0000:81:00.0",
        };
        char name[RESOURCE_CLASS_MAX + 1];
        const PciSpec *spec;

        if (pci_specs_add(&specs, text, NULL) < 0)
                return;
        spec = pci_specs_find(&specs, &device);
        if (!spec)
                return;
        pci_spec_resource_class(spec, &device, name);
        assert(resource_class_valid(name));
        assert(pci_spec_add_traits(spec, &traits) == 0);
        for (size_t i = 0; i < traits.n_items; i++)
                assert(resource_class_valid(traits.items[i]));
}
