/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's sample driver "mtty" (samples/vfio-mdev) as the driver of a PCI device, with real
 * mediated devices.
 *
 * The sample registers a virtual device as the parent of its mdevs. The parent of a vGPU is a PCI
 * device, and libvirt lists only these. So this file includes the sample and gives it another
 * parent: QEMU's device "edu", when the driver is bound to it. One card is supported, because the
 * sample has one parent. The guest never uses the hardware of "edu". tests/vm/image.py takes mtty.c
 * from Debian's linux-source and builds both for the kernel of the machine.
 */
#include <linux/mdev.h>
#include <linux/module.h>
#include <linux/pci.h>

static struct mdev_parent *card_parent;
static struct mdev_driver *card_driver;
static struct mdev_type **card_types;
static unsigned int card_n_types;

/* The types of the sample are static. A kobject must be empty before its second registration, after
 * the driver was unbound. */
static int card_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
        for (unsigned int i = 0; i < card_n_types; i++)
                memset(&card_types[i]->kobj, 0, sizeof(card_types[i]->kobj));
        return mdev_register_parent(card_parent, &pci->dev, card_driver, card_types, card_n_types);
}

static void card_remove(struct pci_dev *pci)
{
        mdev_unregister_parent(card_parent);
}

static const struct pci_device_id card_ids[] = { { PCI_DEVICE(0x1234, 0x11e8) }, {} };
MODULE_DEVICE_TABLE(pci, card_ids);

static struct pci_driver card_pci_driver = {
        .name = "mtty",
        .id_table = card_ids,
        .probe = card_probe,
        .remove = card_remove,
};

static int card_register(struct mdev_parent *parent, struct device *dev, struct mdev_driver *driver,
                         struct mdev_type **types, unsigned int n_types)
{
        card_parent = parent;
        card_driver = driver;
        card_types = types;
        card_n_types = n_types;
        return pci_register_driver(&card_pci_driver);
}

static void card_unregister(struct mdev_parent *parent)
{
        pci_unregister_driver(&card_pci_driver);
}

#define mdev_register_parent   card_register
#define mdev_unregister_parent card_unregister
#include "mtty.c"
