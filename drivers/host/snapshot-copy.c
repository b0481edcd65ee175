/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A copy begins as the struct itself, numbers and all; then each pointer of it is replaced. One
 * that is added to a struct and forgotten here is freed twice, which the tests notice. */

#include <errno.h>
#include <string.h>

#include "drivers/host/snapshot.h"

/* NULL stays NULL, as in a struct that is not filled. */
static int copy_text(char **ret, const char *text)
{
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

static int copy_array(void *ret, const void *items, size_t n, size_t size)
{
        void **array = ret;

        *array = NULL;
        if (n == 0)
                return 0;
        *array = reallocarray(NULL, n, size);
        if (!*array)
                return -ENOMEM;
        memcpy(*array, items, n * size);
        return 0;
}

static int copy_mdev_types(SnapshotDevice *ret, const SnapshotDevice *device)
{
        if (device->n_mdev_types == 0)
                return 0;
        ret->mdev_types = calloc(device->n_mdev_types, sizeof(MdevType));
        if (!ret->mdev_types)
                return -ENOMEM;
        for (size_t i = 0; i < device->n_mdev_types; i++) {
                const MdevType *type = &device->mdev_types[i];
                MdevType *copy = &ret->mdev_types[ret->n_mdev_types++];

                copy->available_instances = type->available_instances;
                copy->created_instances = type->created_instances;
                if (copy_text(&copy->id, type->id) < 0 || copy_text(&copy->name, type->name) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int snapshot_device_copy(SnapshotDevice *ret, const SnapshotDevice *device)
{
        _cleanup_(snapshot_device_done) SnapshotDevice copy = *device;

        copy.name = copy.parent = copy.driver = copy.vendor = copy.product =
                copy.physical_function = NULL;
        copy.mdev_types = NULL;
        copy.n_mdev_types = 0;
        if (copy_text(&copy.name, device->name) < 0 ||
            copy_text(&copy.parent, device->parent) < 0 ||
            copy_text(&copy.driver, device->driver) < 0 ||
            copy_text(&copy.vendor, device->vendor) < 0 ||
            copy_text(&copy.product, device->product) < 0 ||
            copy_text(&copy.physical_function, device->physical_function) < 0 ||
            copy_mdev_types(&copy, device) < 0)
                return -ENOMEM;
        *ret = copy;
        copy = (SnapshotDevice){ 0 };
        return 0;
}

int snapshot_mdev_copy(SnapshotMdev *ret, const SnapshotMdev *mdev)
{
        _cleanup_(snapshot_mdev_done) SnapshotMdev copy = { .uuid = mdev->uuid };

        if (copy_text(&copy.type, mdev->type) < 0 || copy_text(&copy.parent, mdev->parent) < 0)
                return -ENOMEM;
        *ret = copy;
        copy = (SnapshotMdev){ 0 };
        return 0;
}

static int copy_pins(SnapshotDomain *ret, const SnapshotDomain *domain)
{
        if (domain->n_pins == 0)
                return 0;
        ret->pins = calloc(domain->n_pins, sizeof(DomainPin));
        if (!ret->pins)
                return -ENOMEM;
        for (size_t i = 0; i < domain->n_pins; i++) {
                DomainPin *copy = &ret->pins[ret->n_pins++];

                copy->vcpu = domain->pins[i].vcpu;
                if (cpu_set_copy(&copy->cpus, &domain->pins[i].cpus) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int copy_domain_cells(SnapshotDomain *ret, const SnapshotDomain *domain)
{
        if (domain->n_cells == 0)
                return 0;
        ret->cells = calloc(domain->n_cells, sizeof(DomainCell));
        if (!ret->cells)
                return -ENOMEM;
        for (size_t i = 0; i < domain->n_cells; i++) {
                const DomainCell *cell = &domain->cells[i];
                DomainCell *copy = &ret->cells[ret->n_cells++];

                copy->id = cell->id;
                copy->memory_kib = cell->memory_kib;
                copy->page_kib = cell->page_kib;
                if (cpu_set_copy(&copy->vcpus, &cell->vcpus) < 0 ||
                    cpu_set_copy(&copy->host_cells, &cell->host_cells) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int snapshot_domain_copy(SnapshotDomain *ret, const SnapshotDomain *domain)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain copy = *domain;

        copy.name = NULL;
        copy.mdevs = NULL;
        copy.pci_addresses = NULL;
        copy.pins = NULL;
        copy.cells = NULL;
        copy.n_pins = copy.n_cells = 0;
        copy.cpus = copy.memory_cells = CPU_SET_INIT;
        if (copy_text(&copy.name, domain->name) < 0 ||
            cpu_set_copy(&copy.cpus, &domain->cpus) < 0 ||
            cpu_set_copy(&copy.memory_cells, &domain->memory_cells) < 0 ||
            copy_pins(&copy, domain) < 0 || copy_domain_cells(&copy, domain) < 0 ||
            copy_array(&copy.mdevs, domain->mdevs, domain->n_mdevs, sizeof(Uuid)) < 0 ||
            copy_array(&copy.pci_addresses, domain->pci_addresses, domain->n_pci_addresses,
                       PCI_ADDRESS_SIZE) < 0)
                return -ENOMEM;
        *ret = copy;
        copy = (SnapshotDomain){ 0 };
        return 0;
}
