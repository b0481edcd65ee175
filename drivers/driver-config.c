/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks the configuration that all drivers obey. Each check_…() function checks one option, or
 * options that depend on each other. It returns -EINVAL with an error text that names the option,
 * or -ENOMEM. The checks of CPU sets, of one entry of reserved_huge_pages, and of device_spec are
 * in other files. The function driver_config_check() runs all checks, also those, in a fixed order
 * and returns the first error. Checks that need the hardware are in drivers/verify.c.
 *
 * Tests: tests/unit/drivers/test-driver-config.c */
#include "drivers/driver-config.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "drivers/tree/cpu-plan.h"
#include "drivers/tree/huge-pages.h"

/* Devices without a PCI address, for example those of the kernel's module mtty, have paths below
 * this folder. */
#define VIRTUAL_DEVICES "/sys/devices/virtual/"

/* Rejects a ratio that is negative, no finite number, or above Placement's maximum. 0 is valid and
 * means that the option is not set. */
static int check_ratio(const char *option, double ratio, Error *reterr)
{
        if (!isfinite(ratio) || ratio < 0 || ratio > INVENTORY_MAX_RATIO)
                return error_setf(reterr, EINVAL, "%s: %g is not a ratio", option, ratio);
        return 0;
}

/* Rejects an amount above Placement's maximum for an inventory. The unit does not matter. */
static int check_amount(const char *option, uint64_t amount, Error *reterr)
{
        if (amount > INVENTORY_MAX_AMOUNT)
                return error_setf(reterr, EINVAL, "%s: more than Placement's maximum", option);
        return 0;
}

/* Checks an entry of device_addresses. The device does not have to exist. */
static int check_address(const HostMdevType *type, const char *address, Error *reterr)
{
        char parsed[PCI_ADDRESS_SIZE];

        if (pci_address_parse(address, parsed) == 0)
                return 0;
        if (strncmp(address, VIRTUAL_DEVICES, strlen(VIRTUAL_DEVICES)) == 0 &&
            address[strlen(VIRTUAL_DEVICES)])
                return 0;
        return error_setf(
                reterr, EINVAL,
                "[mdev_%.60s] device_addresses: \"%.60s\" is neither a PCI address (0000:41:00.0) nor a path below " VIRTUAL_DEVICES,
                type->type, address);
}

/* Returns whether the type lists the address. Hexadecimal digits can be in upper or lower case. */
static bool type_has_address(const HostMdevType *type, const char *address)
{
        for (char **other = type->device_addresses; other && *other; other++)
                if (strcasecmp(*other, address) == 0)
                        return true;
        return false;
}

/* Checks the mdev type at this index against itself and against the types before it. Each pair
 * of types is thus compared once. A path must not belong to two types, and a PCI address not to two
 * types of one class. A card of vGPU functions can offer several classes. */
static int check_mdev_type(const HostConfig *config, size_t index, Error *reterr)
{
        const HostMdevType *type = &config->mdev_types[index];

        if (!type->type || !type->type[0])
                return error_setf(reterr, EINVAL,
                                  "[devices] enabled_mdev_types: a type without a name");
        for (size_t i = 0; i < index; i++)
                if (strcmp(config->mdev_types[i].type, type->type) == 0)
                        return error_setf(reterr, EINVAL,
                                          "[devices] enabled_mdev_types: %.60s is listed twice",
                                          type->type);
        if (!type->mdev_class || !resource_class_valid(type->mdev_class) ||
            (strcmp(type->mdev_class, "VGPU") != 0 && !resource_class_is_custom(type->mdev_class)))
                return error_setf(reterr, EINVAL,
                                  "[mdev_%.60s] mdev_class: \"%.60s\" is neither VGPU nor CUSTOM_…",
                                  type->type, type->mdev_class ? type->mdev_class : "");
        for (char **address = type->device_addresses; address && *address; address++) {
                int r = check_address(type, *address, reterr);

                if (r < 0)
                        return r;
                for (size_t i = 0; i < index; i++)
                        if (type_has_address(&config->mdev_types[i], *address) &&
                            (**address == '/' ||
                             strcmp(config->mdev_types[i].mdev_class, type->mdev_class) == 0))
                                return error_setf(
                                        reterr, EINVAL,
                                        "[mdev_%.60s] device_addresses: %.60s is also in [mdev_%.60s]",
                                        type->type, *address, config->mdev_types[i].type);
        }
        return 0;
}

/* Checks file_backed_memory, in MiB. It needs a ratio of 1.0 because memory in files is limited
 * by the disk. An unset ratio (0) becomes 1.0 later (host_amounts_make()). */
static int check_memory(const HostConfig *config, Error *reterr)
{
        int r = check_amount("[libvirt] file_backed_memory", config->file_backed_memory, reterr);

        if (r < 0 || config->file_backed_memory == 0)
                return r;
        if (config->ram_allocation_ratio > 0 && config->ram_allocation_ratio != 1.0)
                return error_setf(
                        reterr, EINVAL,
                        "[libvirt] file_backed_memory = %llu needs ram_allocation_ratio = 1.0, not %g. Memory in files cannot be overcommitted",
                        (unsigned long long)config->file_backed_memory,
                        config->ram_allocation_ratio);
        if (config->reserved_host_memory_mb >= config->file_backed_memory)
                return error_setf(
                        reterr, EINVAL,
                        "reserved_host_memory_mb = %llu is not less than [libvirt] file_backed_memory = %llu. Set reserved_host_memory_mb to 0",
                        (unsigned long long)config->reserved_host_memory_mb,
                        (unsigned long long)config->file_backed_memory);
        if (config->virt_type != HOST_VIRT_KVM && config->virt_type != HOST_VIRT_QEMU)
                return error_setf(reterr, EINVAL,
                                  "[libvirt] file_backed_memory needs virt_type = kvm or qemu");
        return 0;
}

/* Rejects images_type = lvm without a storage pool, because only libvirt measures a volume group.
 */
static int check_images(const HostConfig *config, Error *reterr)
{
        if (config->images_type != HOST_IMAGES_LVM || config->images_storage_pool)
                return 0;
        return error_setf(
                reterr, EINVAL,
                "[libvirt] images_type = lvm needs images_storage_pool, the libvirt storage pool of the disks");
}

/* Checks each entry of reserved_huge_pages, also that no two have the same cell and size. */
static int check_huge_pages(const HostConfig *config, Error *reterr)
{
        for (char **text = config->reserved_huge_pages; text && *text; text++) {
                HugePagesReserve reserve, other;
                int r = huge_pages_parse_reserve(*text, &reserve, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "reserved_huge_pages");
                for (char **before = config->reserved_huge_pages; before < text; before++)
                        if (huge_pages_parse_reserve(*before, &other, NULL) == 0 &&
                            other.cell == reserve.cell && other.size_kib == reserve.size_kib)
                                return error_setf(
                                        reterr, EINVAL,
                                        "reserved_huge_pages: \"%.60s\" and \"%.60s\" are for the same pages. Remove one of them",
                                        *before, *text);
        }
        return 0;
}

int driver_config_check(const HostConfig *config, Error *reterr)
{
        int r;

        if ((r = check_ratio("cpu_allocation_ratio", config->cpu_allocation_ratio, reterr)) < 0 ||
            (r = check_ratio("ram_allocation_ratio", config->ram_allocation_ratio, reterr)) < 0 ||
            (r = check_ratio("disk_allocation_ratio", config->disk_allocation_ratio, reterr)) < 0 ||
            (r = check_ratio("initial_cpu_allocation_ratio", config->initial_cpu_allocation_ratio,
                             reterr)) < 0 ||
            (r = check_ratio("initial_ram_allocation_ratio", config->initial_ram_allocation_ratio,
                             reterr)) < 0 ||
            (r = check_ratio("initial_disk_allocation_ratio", config->initial_disk_allocation_ratio,
                             reterr)) < 0 ||
            (r = check_amount("reserved_host_cpus", config->reserved_host_cpus, reterr)) < 0 ||
            (r = check_amount("reserved_host_memory_mb", config->reserved_host_memory_mb, reterr)) <
                    0 ||
            (r = check_amount("reserved_host_disk_mb", config->reserved_host_disk_mb, reterr)) < 0)
                return r;
        if ((r = cpu_plan_check(config, reterr)) < 0 ||
            (r = check_huge_pages(config, reterr)) < 0 || (r = check_memory(config, reterr)) < 0 ||
            (r = check_images(config, reterr)) < 0)
                return r;
        if (config->owner_trait && config->owner_trait[0] &&
            !resource_class_valid(config->owner_trait))
                return error_setf(reterr, EINVAL, "owner_trait: \"%.60s\" is not a trait",
                                  config->owner_trait);
        for (size_t i = 0; i < config->n_mdev_types; i++) {
                r = check_mdev_type(config, i, reterr);
                if (r < 0)
                        return r;
        }
        r = pci_specs_check(&config->pci_specs, config->report_in_placement, reterr);
        return r < 0 ? error_prefixf(reterr, r, "[pci] device_spec") : 0;
}
