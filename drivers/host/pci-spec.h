/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* [pci] device_spec: which PCI devices guests may be given whole, and as what (facts C7, H5). Pure.
 *
 * A value is a JSON object, or a list of them, with Nova's keys and Nova's matching: vendor_id,
 * product_id, address (a string whose parts may be "*" or missing, or an object of regular
 * expressions for domain, bus, slot and function), devname, and tags. The address of one physical
 * function matches its virtual functions, too. Of several specs the first that matches counts.
 * Regular expressions are Python's. A spec with remote_managed matches
 * functions of a card alone that has its serial number. */

#include "base/inventory.h"
#include "base/string-set.h"
#include "drivers/host/snapshot.h"

#define PCI_SPECS_MAX     1024
#define PCI_SPEC_TEXT_MAX 65536 /* bytes of a value */

/* One object of the option. -1 is any number. */
typedef struct PciSpec {
        int32_t vendor_id, product_id;
        struct {
                int32_t number; /* -1, unless it is one number */
                struct Regex *regex;
        } parts[4];     /* of the address: domain, bus, slot, function */
        bool is_single; /* the address of one device, which may be a physical function */
        char *devname;
        char *physical_network; /* NULL: none. Nova leaves devices of a network to Neutron */
        char *resource_class;   /* NULL: by vendor and product */
        StringSet traits;
        bool remote_managed, live_migratable, one_time_use;
        bool managed; /* libvirt takes it from its driver for a guest (managed='yes' of a <hostdev>)
                       */
} PciSpec;

typedef struct PciSpecs {
        PciSpec **items;
        size_t n_items;
        size_t n_allocated;
} PciSpecs;

#define PCI_SPECS_INIT ((PciSpecs){ 0 })

void pci_specs_done(PciSpecs *specs);

/* Adds what one value of the option says. -EINVAL with the reason, in Nova's terms; specs may then
 * have some of them. -ENOMEM. */
int pci_specs_add(PciSpecs *specs, const char *text, Error *reterr);

/* What only Placement makes wrong: "devname", which names no address. -EINVAL with the reason. */
int pci_specs_check(const PciSpecs *specs, bool report_in_placement, Error *reterr);

/* The spec of a device, or NULL. Devices that are not PCI functions have none. */
const PciSpec *pci_specs_find(const PciSpecs *specs, const SnapshotDevice *device);

/* Writes the resource class: the configured one in Placement's form, else
 * CUSTOM_PCI_<vendor>_<product>. */
void pci_spec_resource_class(const PciSpec *spec, const SnapshotDevice *device,
                             char ret[RESOURCE_CLASS_MAX + 1]);

/* Adds every trait that a provider of such devices has, but the owner's. -ENOMEM. */
int pci_spec_add_traits(const PciSpec *spec, StringSet *traits);
