/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses [pci] device_spec: the PCI devices that guests can have as a whole, and their names in
 * Placement (facts C7, H5). Pure.
 *
 * A value is a JSON object or a list of objects, with Nova's keys and Nova's matching: vendor_id,
 * product_id, address, devname, and tags. The address is a string whose parts can be "*" or
 * missing, or an object of regular expressions for domain, bus, slot and function. Regular
 * expressions are those of Python that PCRE2 reads in the same way. The address of one physical
 * function also matches its virtual functions. If several specs match, the first one counts. A spec
 * with remote_managed matches only functions of a card with a serial number. */

#include "base/inventory.h"
#include "base/string-set.h"
#include "drivers/host/snapshot.h"

#define PCI_SPECS_MAX     1024
#define PCI_SPEC_TEXT_MAX 65536 /* bytes of a value */

/* One object of the option. -1 matches every number. */
typedef struct PciSpec {
        int32_t vendor_id, product_id;
        struct {
                int32_t number; /* -1 if the part is "*", missing or an expression */
                struct Regex *regex;
        } parts[4];     /* parts of the address: domain, bus, slot, function */
        bool is_single; /* the address of one device, for example a physical function */
        char *devname;
        char *physical_network; /* NULL: none. Neutron owns devices of a network */
        char *resource_class;   /* NULL: made from vendor and product */
        StringSet traits;
        bool remote_managed, live_migratable, one_time_use;
        bool managed; /* libvirt detaches it from its host driver (managed='yes') */
} PciSpec;

typedef struct PciSpecs {
        PciSpec **items;
        size_t n_items;
        size_t n_allocated;
} PciSpecs;

#define PCI_SPECS_INIT ((PciSpecs){ 0 })

void pci_specs_done(PciSpecs *specs);

/* Appends the specs in one value of the option. -EINVAL with the reason, in Nova's terms, or
 * -ENOMEM. specs can then have some of them. */
int pci_specs_add(PciSpecs *specs, const char *text, Error *reterr);

/* Rejects specs that contradict report_in_placement. With it, a spec must not have a devname.
 * Without it, one_time_use is impossible. -EINVAL with the reason. */
int pci_specs_check(const PciSpecs *specs, bool report_in_placement, Error *reterr);

/* Returns the first spec that matches the device, borrowed, or NULL. Devices that are not PCI
 * functions have none. A spec with a devname matches no device, because the snapshot has no such
 * names. */
const PciSpec *pci_specs_find(const PciSpecs *specs, const SnapshotDevice *device);

/* Writes the configured resource class in Placement's form, or CUSTOM_PCI_<vendor>_<product>. */
void pci_spec_resource_class(const PciSpec *spec, const SnapshotDevice *device,
                             char ret[RESOURCE_CLASS_MAX + 1]);

/* Adds every trait of a provider of such devices, except the owner trait. -ENOMEM. */
int pci_spec_add_traits(const PciSpec *spec, StringSet *traits);
