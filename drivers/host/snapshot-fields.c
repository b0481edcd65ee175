/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/snapshot-fields.h"

#include <errno.h>
#include <string.h>

#define OPTIONAL(key_, type_, struct_, member_)                                       \
        {                                                                             \
                .key = (key_), .type = (type_), .offset = offsetof(struct_, member_), \
                .max = INT64_MAX                                                      \
        }
#define REQUIRED(key_, type_, struct_, member_)                                       \
        {                                                                             \
                .key = (key_), .type = (type_), .offset = offsetof(struct_, member_), \
                .max = INT64_MAX, .required = true                                    \
        }
/* The number of a CPU, of the host or of a guest. */
#define CPU(key_, struct_, member_)                                                     \
        {                                                                               \
                .key = (key_), .type = FIELD_U32, .offset = offsetof(struct_, member_), \
                .max = CPU_SET_MAX - 1, .required = true                                \
        }
#define ARRAY(key_, struct_, member_, list_)                                              \
        {                                                                                 \
                .key = (key_), .type = FIELD_ARRAY, .offset = offsetof(struct_, member_), \
                .count_offset = offsetof(struct_, n_##member_), .of = &(list_)            \
        }
#define STRINGS(key_, struct_, member_)                                                     \
        {                                                                                   \
                .key = (key_), .type = FIELD_STRINGS, .offset = offsetof(struct_, member_), \
                .count_offset = offsetof(struct_, member_.n_items), .of = &text_list        \
        }
#define LIST(fields_, size_)                                                          \
        {                                                                             \
                .fields = (fields_), .n_fields = ARRAY_SIZE(fields_), .size = (size_) \
        }

/* of a StringSet, as of any list, the items are what stands at its offset */
_Static_assert(offsetof(StringSet, items) == 0, "the items come first");

static const Field text_fields[] = { { .type = FIELD_TEXT } };
static const FieldList text_list = LIST(text_fields, sizeof(char *));
static const Field uuid_fields[] = { { .type = FIELD_UUID } };
static const FieldList uuid_list = LIST(uuid_fields, sizeof(Uuid));
static const Field address_fields[] = { { .type = FIELD_ADDRESS } };
static const FieldList address_list = LIST(address_fields, PCI_ADDRESS_SIZE);

static const Field cpu_fields[] = {
        CPU("id", SnapshotCpu, id),
        OPTIONAL("socket_id", FIELD_INT, SnapshotCpu, socket_id),
        OPTIONAL("siblings", FIELD_CPU_SET, SnapshotCpu, siblings),
};
static const FieldList cpu_list = LIST(cpu_fields, sizeof(SnapshotCpu));

static const Field page_fields[] = {
        REQUIRED("size_kib", FIELD_U64, PageSize, size_kib),
        REQUIRED("count", FIELD_U64, PageSize, count),
};
static const FieldList page_list = LIST(page_fields, sizeof(PageSize));

static const Field cell_fields[] = {
        REQUIRED("id", FIELD_U32, SnapshotCell, id),
        OPTIONAL("memory_kib", FIELD_U64, SnapshotCell, memory_kib),
        ARRAY("cpus", SnapshotCell, cpus, cpu_list),
        ARRAY("pages", SnapshotCell, pages, page_list),
};
static const FieldList cell_list = LIST(cell_fields, sizeof(SnapshotCell));

static const Field emulator_fields[] = {
        REQUIRED("arch", FIELD_TEXT, SnapshotEmulator, arch),
        OPTIONAL("machine", FIELD_TEXT, SnapshotEmulator, machine),
        STRINGS("disk_buses", SnapshotEmulator, disk_buses),
        STRINGS("video_models", SnapshotEmulator, video_models),
        STRINGS("filesystem_drivers", SnapshotEmulator, filesystem_drivers),
        STRINGS("tpm_models", SnapshotEmulator, tpm_models),
        STRINGS("tpm_backends", SnapshotEmulator, tpm_backends),
        STRINGS("tpm_versions", SnapshotEmulator, tpm_versions),
        OPTIONAL("secure_boot", FIELD_BOOL, SnapshotEmulator, secure_boot),
        OPTIONAL("sev", FIELD_BOOL, SnapshotEmulator, sev),
        OPTIONAL("sev_es", FIELD_BOOL, SnapshotEmulator, sev_es),
        OPTIONAL("sev_snp", FIELD_BOOL, SnapshotEmulator, sev_snp),
        OPTIONAL("sev_max_guests", FIELD_U64, SnapshotEmulator, sev_max_guests),
        OPTIONAL("sev_es_max_guests", FIELD_U64, SnapshotEmulator, sev_es_max_guests),
};
static const FieldList emulator_list = LIST(emulator_fields, sizeof(SnapshotEmulator));

static const Field mdev_type_fields[] = {
        REQUIRED("id", FIELD_TEXT, MdevType, id),
        OPTIONAL("name", FIELD_TEXT, MdevType, name),
        REQUIRED("available_instances", FIELD_U64, MdevType, available_instances),
        OPTIONAL("created_instances", FIELD_U64, MdevType, created_instances),
};
static const FieldList mdev_type_list = LIST(mdev_type_fields, sizeof(MdevType));

static const Field device_fields[] = {
        REQUIRED("name", FIELD_TEXT, SnapshotDevice, name),
        OPTIONAL("parent", FIELD_TEXT, SnapshotDevice, parent),
        OPTIONAL("driver", FIELD_TEXT, SnapshotDevice, driver),
        OPTIONAL("address", FIELD_ADDRESS, SnapshotDevice, address), /* is_pci follows from it */
        OPTIONAL("vendor_id", FIELD_U32, SnapshotDevice, vendor_id),
        OPTIONAL("product_id", FIELD_U32, SnapshotDevice, product_id),
        OPTIONAL("class_code", FIELD_U32, SnapshotDevice, class_code),
        OPTIONAL("vendor", FIELD_TEXT, SnapshotDevice, vendor),
        OPTIONAL("product", FIELD_TEXT, SnapshotDevice, product),
        OPTIONAL("numa_node", FIELD_INT, SnapshotDevice, numa_node),
        OPTIONAL("physical_function", FIELD_TEXT, SnapshotDevice, physical_function),
        OPTIONAL("is_physical_function", FIELD_BOOL, SnapshotDevice, is_physical_function),
        OPTIONAL("max_virtual_functions", FIELD_U64, SnapshotDevice, max_virtual_functions),
        OPTIONAL("is_vdpa_parent", FIELD_BOOL, SnapshotDevice, is_vdpa_parent),
        OPTIONAL("has_card_serial", FIELD_BOOL, SnapshotDevice, has_card_serial),
        OPTIONAL("serial", FIELD_TEXT, SnapshotDevice, serial),
        OPTIONAL("is_vgpu_function", FIELD_BOOL, SnapshotDevice, is_vgpu_function),
        ARRAY("mdev_types", SnapshotDevice, mdev_types, mdev_type_list),
};
static const FieldList device_list = LIST(device_fields, sizeof(SnapshotDevice));

static const Field mdev_fields[] = {
        REQUIRED("uuid", FIELD_UUID, SnapshotMdev, uuid),
        REQUIRED("type", FIELD_TEXT, SnapshotMdev, type),
        REQUIRED("parent", FIELD_TEXT, SnapshotMdev, parent),
};
static const FieldList mdev_list = LIST(mdev_fields, sizeof(SnapshotMdev));

static const Field pin_fields[] = {
        CPU("vcpu", DomainPin, vcpu),
        REQUIRED("cpus", FIELD_CPU_SET, DomainPin, cpus),
};
static const FieldList pin_list = LIST(pin_fields, sizeof(DomainPin));

static const Field domain_cell_fields[] = {
        REQUIRED("id", FIELD_U32, DomainCell, id),
        OPTIONAL("memory_kib", FIELD_U64, DomainCell, memory_kib),
        OPTIONAL("vcpus", FIELD_CPU_SET, DomainCell, vcpus),
        OPTIONAL("host_cells", FIELD_CPU_SET, DomainCell, host_cells),
        OPTIONAL("page_kib", FIELD_U64, DomainCell, page_kib),
};
static const FieldList domain_cell_list = LIST(domain_cell_fields, sizeof(DomainCell));

static const Field domain_fields[] = {
        REQUIRED("uuid", FIELD_UUID, SnapshotDomain, uuid),
        OPTIONAL("name", FIELD_TEXT, SnapshotDomain, name),
        REQUIRED("state", FIELD_STATE, SnapshotDomain, state),
        OPTIONAL("unread", FIELD_BOOL, SnapshotDomain, unread),
        OPTIONAL("vcpus", FIELD_U64, SnapshotDomain, vcpus),
        OPTIONAL("memory_kib", FIELD_U64, SnapshotDomain, memory_kib),
        ARRAY("mdevs", SnapshotDomain, mdevs, uuid_list),
        ARRAY("pci_addresses", SnapshotDomain, pci_addresses, address_list),
        ARRAY("config_mdevs", SnapshotDomain, config_mdevs, uuid_list),
        ARRAY("config_pci_addresses", SnapshotDomain, config_pci_addresses, address_list),
        OPTIONAL("config_cpus", FIELD_CPU_SET, SnapshotDomain, config_cpus),
        OPTIONAL("cpus", FIELD_CPU_SET, SnapshotDomain, cpus),
        ARRAY("pins", SnapshotDomain, pins, pin_list),
        OPTIONAL("emulator_cpus", FIELD_CPU_SET, SnapshotDomain, emulator_cpus),
        OPTIONAL("memory_cells", FIELD_CPU_SET, SnapshotDomain, memory_cells),
        ARRAY("cells", SnapshotDomain, cells, domain_cell_list),
        OPTIONAL("page_kib", FIELD_U64, SnapshotDomain, page_kib),
};
static const FieldList domain_list = LIST(domain_fields, sizeof(SnapshotDomain));

static const Field snapshot_fields[] = {
        OPTIONAL("driver", FIELD_TEXT, Snapshot, driver),
        REQUIRED("nodename", FIELD_TEXT, Snapshot, nodename),
        OPTIONAL("arch", FIELD_TEXT, Snapshot, arch),
        OPTIONAL("cpu_model", FIELD_TEXT, Snapshot, cpu_model),
        OPTIONAL("hypervisor", FIELD_TEXT, Snapshot, hypervisor),
        OPTIONAL("hypervisor_version", FIELD_U64, Snapshot, hypervisor_version),
        OPTIONAL("libvirt_version", FIELD_U64, Snapshot, libvirt_version),
        OPTIONAL("memory_kib", FIELD_U64, Snapshot, memory_kib),
        OPTIONAL("online_cpus", FIELD_CPU_SET, Snapshot, online_cpus),
        OPTIONAL("present_cpus", FIELD_CPU_SET, Snapshot, present_cpus),
        STRINGS("cpu_features", Snapshot, cpu_features),
        OPTIONAL("features_incomplete", FIELD_BOOL, Snapshot, features_incomplete),
        OPTIONAL("emulators_incomplete", FIELD_BOOL, Snapshot, emulators_incomplete),
        STRINGS("problems", Snapshot, problems),
        OPTIONAL("disk_total_bytes", FIELD_U64, Snapshot, disk_total_bytes),
        ARRAY("instance_folders", Snapshot, instance_folders, uuid_list),
        OPTIONAL("taken_realtime_usec", FIELD_U64, Snapshot, taken_realtime_usec),
        ARRAY("cells", Snapshot, cells, cell_list),
        ARRAY("emulators", Snapshot, emulators, emulator_list),
        ARRAY("devices", Snapshot, devices, device_list),
        ARRAY("mdevs", Snapshot, mdevs, mdev_list),
        ARRAY("domains", Snapshot, domains, domain_list),
};
const FieldList snapshot_field_list = LIST(snapshot_fields, sizeof(Snapshot));

int snapshot_device_complete(SnapshotDevice *device)
{
        for (size_t i = 0; i < device_list.n_fields; i++) {
                const Field *field = &device_list.fields[i];

                if (field->type == FIELD_TEXT && !*(char **)((char *)device + field->offset) &&
                    field_set_default(field, device) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int field_set_default(const Field *field, void *base)
{
        void *member = (char *)base + field->offset;

        if (field->type == FIELD_INT)
                *(int *)member = -1;
        if (field->type != FIELD_TEXT)
                return 0;
        *(char **)member = strdup("");
        return *(char **)member ? 0 : -ENOMEM;
}

/* Freeing */

static void free_items(const FieldList *list, char *items, size_t n)
{
        for (size_t i = 0; i < n; i++)
                fields_done(list, items + i * list->size);
        free(items);
}

static void free_field(const Field *field, void *base)
{
        void *member = (char *)base + field->offset;

        switch (field->type) {
        case FIELD_TEXT:
                free(*(char **)member);
                break;
        case FIELD_CPU_SET:
                cpu_set_done(member);
                break;
        case FIELD_STRINGS:
                string_set_done(member);
                break;
        case FIELD_ARRAY:
                free_items(field->of, *(char **)member,
                           *(size_t *)((char *)base + field->count_offset));
                break;
        default: /* owns nothing */
                break;
        }
}

void fields_done(const FieldList *list, void *base)
{
        for (size_t i = 0; i < list->n_fields; i++)
                free_field(&list->fields[i], base);
        memset(base, 0, list->size);
}

/* Copying. A copy begins as the struct itself, numbers and all; then what it points to is replaced.
 * On failure nothing is left of it. */

static int fields_copy(const FieldList *list, void *ret, const void *base);

static int copy_items(const FieldList *list, char **ret, const char *items, size_t n)
{
        char *copy = NULL;

        if (n > 0) {
                copy = calloc(n, list->size);
                if (!copy)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
                if (fields_copy(list, copy + i * list->size, items + i * list->size) < 0) {
                        free_items(list, copy, i);
                        return -ENOMEM;
                }
        *ret = copy;
        return 0;
}

static int copy_field(const Field *field, void *ret, const void *base)
{
        void *copy = (char *)ret + field->offset;
        const void *member = (const char *)base + field->offset;
        const char *text;

        switch (field->type) {
        case FIELD_TEXT:
                /* NULL stays NULL, as in a struct that is not filled */
                text = *(const char *const *)member;
                *(char **)copy = text ? strdup(text) : NULL;
                return text && !*(char **)copy ? -ENOMEM : 0;
        case FIELD_CPU_SET:
                *(CpuSet *)copy = CPU_SET_INIT;
                return cpu_set_copy(copy, member);
        case FIELD_STRINGS:
                *(StringSet *)copy = STRING_SET_INIT;
                return string_set_copy(copy, member);
        case FIELD_ARRAY:
                return copy_items(field->of, copy, *(const char *const *)member,
                                  *(const size_t *)((const char *)base + field->count_offset));
        default:
                return 0;
        }
}

static int fields_copy(const FieldList *list, void *ret, const void *base)
{
        memcpy(ret, base, list->size);
        for (size_t i = 0; i < list->n_fields; i++)
                if (copy_field(&list->fields[i], ret, base) < 0) {
                        while (i-- > 0)
                                free_field(&list->fields[i], ret);
                        memset(ret, 0, list->size);
                        return -ENOMEM;
                }
        return 0;
}

void snapshot_emulator_done(SnapshotEmulator *emulator)
{
        fields_done(&emulator_list, emulator);
}

void snapshot_device_done(SnapshotDevice *device)
{
        fields_done(&device_list, device);
}

void snapshot_mdev_done(SnapshotMdev *mdev)
{
        fields_done(&mdev_list, mdev);
}

void snapshot_domain_done(SnapshotDomain *domain)
{
        fields_done(&domain_list, domain);
}

int snapshot_device_copy(SnapshotDevice *ret, const SnapshotDevice *device)
{
        return fields_copy(&device_list, ret, device);
}

int snapshot_mdev_copy(SnapshotMdev *ret, const SnapshotMdev *mdev)
{
        return fields_copy(&mdev_list, ret, mdev);
}

int snapshot_domain_copy(SnapshotDomain *ret, const SnapshotDomain *domain)
{
        return fields_copy(&domain_list, ret, domain);
}

int snapshot_emulator_copy(SnapshotEmulator *ret, const SnapshotEmulator *emulator)
{
        return fields_copy(&emulator_list, ret, emulator);
}
