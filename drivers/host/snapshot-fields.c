/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Describes the fields of a snapshot in tables: one FieldList for each struct. The JSON form,
 * copies and the freeing walk these tables. A new member of a snapshot is thus a new line in a
 * table. Exceptions are members without allocated memory that the JSON form does not have.
 *
 * A field names its member by offset and type. A list of plain values (texts, uuids, addresses) is
 * a list of structs with one field without a key. The tables also limit the nesting, so a hostile
 * text cannot cause deep recursion. All texts, numbers and lists that are read have limits. Writing
 * checks none of them. A failed reading returns no snapshot, and a failed copy is zeroed.
 *
 * Tests: tests/unit/drivers/host/test-snapshot.c */

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "drivers/host/snapshot.h"

/* Type of a member. "Missing" means that the JSON form lacks the key. */
typedef enum FieldType {
        FIELD_TEXT,    /* char *; "" if missing */
        FIELD_U64,     /* uint64_t */
        FIELD_U32,     /* uint32_t, unsigned */
        FIELD_INT,     /* int, at least -1; -1 if missing */
        FIELD_BOOL,    /* bool */
        FIELD_UUID,    /* Uuid */
        FIELD_ADDRESS, /* char[PCI_ADDRESS_SIZE]; "" if missing */
        FIELD_CPU_SET, /* CpuSet */
        FIELD_STATE,   /* DomainState */
        FIELD_STRINGS, /* StringSet; read unsorted, snapshot_seal() sorts it */
        FIELD_ARRAY,   /* a pointer and a count */
} FieldType;

typedef struct FieldList FieldList;

typedef struct Field {
        const char *key; /* NULL: the value itself, in a list of plain values */
        FieldType type;
        /* the key must be there, and a text must not be empty */
        bool required;
        size_t offset;
        uint64_t max; /* largest number of FIELD_U64 and FIELD_U32 */

        /* Only for FIELD_STRINGS and FIELD_ARRAY: the member with the number of items, and their
         * fields. */
        size_t count_offset;
        const FieldList *of;
} Field;

/* The fields of a struct, or of the plain value of a list. size is that of one item. */
struct FieldList {
        const Field *fields;
        size_t n_fields, size;
};

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
/* The number of a CPU of the host or of a guest. */
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

/* A StringSet begins with its array. So the offset of a FIELD_STRINGS is that of an array, as for a
 * FIELD_ARRAY. */
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
        /* snapshot_from_json() sets is_pci if this is not "". */
        OPTIONAL("address", FIELD_ADDRESS, SnapshotDevice, address),
        OPTIONAL("vendor_id", FIELD_U32, SnapshotDevice, vendor_id),
        OPTIONAL("product_id", FIELD_U32, SnapshotDevice, product_id),
        OPTIONAL("class_code", FIELD_U32, SnapshotDevice, class_code),
        OPTIONAL("vendor", FIELD_TEXT, SnapshotDevice, vendor),
        OPTIONAL("product", FIELD_TEXT, SnapshotDevice, product),
        OPTIONAL("numa_node", FIELD_INT, SnapshotDevice, numa_node),
        OPTIONAL("physical_function", FIELD_ADDRESS, SnapshotDevice, physical_function),
        OPTIONAL("is_physical_function", FIELD_BOOL, SnapshotDevice, is_physical_function),
        OPTIONAL("max_virtual_functions", FIELD_U64, SnapshotDevice, max_virtual_functions),
        OPTIONAL("is_vdpa_parent", FIELD_BOOL, SnapshotDevice, is_vdpa_parent),
        OPTIONAL("has_card_serial", FIELD_BOOL, SnapshotDevice, has_card_serial),
        OPTIONAL("serial", FIELD_TEXT, SnapshotDevice, serial),
        OPTIONAL("is_vgpu_function", FIELD_BOOL, SnapshotDevice, is_vgpu_function),
        OPTIONAL("vgpu_unread", FIELD_BOOL, SnapshotDevice, vgpu_unread),
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
        OPTIONAL("iothread_cpus", FIELD_CPU_SET, SnapshotDomain, iothread_cpus),
        OPTIONAL("memory_cells", FIELD_CPU_SET, SnapshotDomain, memory_cells),
        ARRAY("cells", SnapshotDomain, cells, domain_cell_list),
        OPTIONAL("page_kib", FIELD_U64, SnapshotDomain, page_kib),
};
static const FieldList domain_list = LIST(domain_fields, sizeof(SnapshotDomain));

/* The number of references, the start of the poll, the errors and guests_unknown are not in the
 * JSON form. They own no memory. */
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
static const FieldList snapshot_field_list = LIST(snapshot_fields, sizeof(Snapshot));

/* Sets a member to its default. The struct is zeroed before. -ENOMEM. */
static int field_set_default(const Field *field, void *base)
{
        void *member = (char *)base + field->offset;

        if (field->type == FIELD_INT)
                *(int *)member = -1;
        if (field->type != FIELD_TEXT)
                return 0;
        *(char **)member = strdup("");
        return *(char **)member ? 0 : -ENOMEM;
}

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

/* Freeing of structs and their lists */

static void fields_done(const FieldList *list, void *base);

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

/* Frees everything that the struct at base owns, and zeroes it. */
static void fields_done(const FieldList *list, void *base)
{
        for (size_t i = 0; i < list->n_fields; i++)
                free_field(&list->fields[i], base);
        memset(base, 0, list->size);
}

/* Copying. A copy starts as the bytes of the struct; then each pointer in it is replaced by a
 * copy. After a failure nothing of it is allocated, and it is zeroed. */

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

/* Copies the member, if it is a pointer or has one. ret has the bytes of base already. */
static int copy_field(const Field *field, void *ret, const void *base)
{
        void *copy = (char *)ret + field->offset;
        const void *member = (const char *)base + field->offset;
        const char *text;

        switch (field->type) {
        case FIELD_TEXT:
                /* NULL stays NULL, as in a struct that is not filled yet */
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

int snapshot_new(Snapshot **ret)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = calloc(1, sizeof(Snapshot));

        if (!snapshot)
                return -ENOMEM;
        snapshot->n_references = 1;
        for (size_t i = 0; i < snapshot_field_list.n_fields; i++)
                if (field_set_default(&snapshot_field_list.fields[i], snapshot) < 0)
                        return -ENOMEM;
        *ret = TAKE_PTR(snapshot);
        return 0;
}

/* References. The count is the only member that changes after a driver has passed the snapshot on,
 * which is the reason for the casts. */

Snapshot *snapshot_ref(const Snapshot *snapshot)
{
        Snapshot *shared = (Snapshot *)snapshot;

        __atomic_add_fetch(&shared->n_references, 1, __ATOMIC_RELAXED);
        return shared;
}

Snapshot *snapshot_unref(const Snapshot *snapshot)
{
        Snapshot *shared = (Snapshot *)snapshot;

        if (shared && __atomic_sub_fetch(&shared->n_references, 1, __ATOMIC_ACQ_REL) == 0) {
                fields_done(&snapshot_field_list, shared);
                free(shared);
        }
        return NULL;
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

static const char *const domain_state_table[_DOMAIN_STATE_MAX] = {
        [DOMAIN_SHUTOFF] = "shutoff",
        [DOMAIN_RUNNING] = "running",
        [DOMAIN_PAUSED] = "paused",
};

const char *domain_state_to_text(DomainState state)
{
        return state >= 0 && state < _DOMAIN_STATE_MAX ? domain_state_table[state] : NULL;
}

static DomainState domain_state_from_text(const char *text)
{
        for (DomainState state = 0; state < _DOMAIN_STATE_MAX; state++)
                if (strcmp(text, domain_state_table[state]) == 0)
                        return state;
        return _DOMAIN_STATE_INVALID;
}

/* Writing of the JSON form */

static int write_fields(const FieldList *list, const void *base, json_t *object);

/* Returns true for a list of plain values, whose field has no key. */
static bool is_plain(const FieldList *list)
{
        return !list->fields[0].key;
}

static json_t *write_cpu_set(const CpuSet *set)
{
        _cleanup_free_ char *text = cpu_set_format(set);

        return text ? json_string(text) : NULL;
}

static json_t *write_value(const Field *field, const void *base);

static json_t *write_array(const Field *field, const void *base)
{
        const char *items = *(const char *const *)((const char *)base + field->offset);
        size_t n_items = *(const size_t *)((const char *)base + field->count_offset);
        _cleanup_json_ json_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < n_items; i++) {
                const void *item = items + i * field->of->size;
                _cleanup_json_ json_t *value =
                        is_plain(field->of) ? write_value(field->of->fields, item) : json_object();

                if (!value || json_array_append(array, value) < 0)
                        return NULL;
                if (!is_plain(field->of) && write_fields(field->of, item, value) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* Returns the JSON value of a member, or NULL if out of memory or if a text is not UTF-8. */
static json_t *write_value(const Field *field, const void *base)
{
        const void *member = (const char *)base + field->offset;

        switch (field->type) {
        case FIELD_TEXT:
                return json_string(*(const char *const *)member);
        case FIELD_U64:
                return json_from_u64(*(const uint64_t *)member);
        case FIELD_U32:
                return json_integer(*(const uint32_t *)member);
        case FIELD_INT:
                return json_integer(*(const int *)member);
        case FIELD_BOOL:
                return json_boolean(*(const bool *)member);
        case FIELD_UUID:
                return json_string(((const Uuid *)member)->text);
        case FIELD_ADDRESS:
                return json_string(member);
        case FIELD_CPU_SET:
                return write_cpu_set(member);
        case FIELD_STATE:
                return json_string(domain_state_to_text(*(const DomainState *)member));
        case FIELD_STRINGS:
        case FIELD_ARRAY:
                return write_array(field, base);
        }
        return NULL;
}

static int write_fields(const FieldList *list, const void *base, json_t *object)
{
        for (size_t i = 0; i < list->n_fields; i++) {
                const Field *field = &list->fields[i];

                if (json_object_set_new(object, field->key, write_value(field, base)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

json_t *snapshot_to_json(const Snapshot *snapshot)
{
        _cleanup_json_ json_t *object = json_pack("{ss}", "format", SNAPSHOT_FORMAT);

        if (!object || write_fields(&snapshot_field_list, snapshot, object) < 0)
                return NULL;
        return TAKE_PTR(object);
}

/* Parsing of the JSON form. The error text of a wrong value does not contain its name; the caller
 * adds it as a prefix. snapshot_from_json() frees what was read before an error. */

static int read_fields(const FieldList *list, const json_t *object, void *base, Error *reterr);

static int read_string(const json_t *value, const char **ret, Error *reterr)
{
        if (!json_is_string(value))
                return error_setf(reterr, EBADMSG, "not a string");
        if (json_string_length(value) > SNAPSHOT_TEXT_MAX)
                return error_setf(reterr, EBADMSG, "longer than %d bytes", SNAPSHOT_TEXT_MAX);
        if (strlen(json_string_value(value)) != json_string_length(value))
                return error_setf(reterr, EBADMSG, "contains a NUL character");
        *ret = json_string_value(value);
        return 0;
}

/* Reads an integer from min to max. A negative number is compared with min alone, because max is
 * unsigned. */
static int read_integer(const json_t *value, int64_t min, uint64_t max, int64_t *ret, Error *reterr)
{
        int64_t number = json_integer_value(value);

        if (!json_is_integer(value))
                return error_setf(reterr, EBADMSG, "not an integer");
        if (number < min || (number > 0 && (uint64_t)number > max))
                return error_setf(reterr, EBADMSG, "out of range");
        *ret = number;
        return 0;
}

/* Reads a number of one of three types into the member, within its limits. */
static int read_number(const Field *field, const json_t *value, void *member, Error *reterr)
{
        int64_t number;
        int r;

        if (field->type == FIELD_U64) {
                r = read_integer(value, 0, field->max, &number, reterr);
                if (r == 0)
                        *(uint64_t *)member = (uint64_t)number;
        } else if (field->type == FIELD_U32) {
                r = read_integer(value, 0, MIN(field->max, UINT32_MAX), &number, reterr);
                if (r == 0)
                        *(uint32_t *)member = (uint32_t)number;
        } else {
                r = read_integer(value, -1, INT32_MAX, &number, reterr);
                if (r == 0)
                        *(int *)member = (int)number;
        }
        return r;
}

static int read_text(const Field *field, const json_t *value, void *member, Error *reterr)
{
        const char *text;
        int r = read_string(value, &text, reterr);

        if (r < 0)
                return r;
        if (field->required && !text[0])
                return error_setf(reterr, EBADMSG, "empty");
        *(char **)member = strdup(text);
        return *(char **)member ? 0 : error_oom(reterr);
}

/* Parses a uuid, a PCI address or "", a set of CPUs, or the state of a domain. */
static int read_special(const Field *field, const json_t *value, void *member, Error *reterr)
{
        const char *text;
        int r = read_string(value, &text, reterr);

        if (r < 0)
                return r;
        switch (field->type) {
        case FIELD_UUID:
                if (uuid_from_text(text, member) < 0)
                        return error_setf(reterr, EBADMSG, "not a uuid: \"%.40s\"", text);
                return 0;
        case FIELD_ADDRESS:
                if (text[0] && pci_address_parse(text, member) < 0)
                        return error_setf(reterr, EBADMSG, "not a PCI address: \"%.40s\"", text);
                return 0;
        case FIELD_CPU_SET:
                r = cpu_set_parse(text, member, reterr);
                if (r == -EINVAL && reterr)
                        reterr->code = EBADMSG;
                return r == -EINVAL ? -EBADMSG : r;
        default:
                *(DomainState *)member = domain_state_from_text(text);
                if (*(DomainState *)member < 0)
                        return error_setf(reterr, EBADMSG, "not a domain state: \"%.40s\"", text);
                return 0;
        }
}

static int read_value(const Field *field, const json_t *value, void *base, Error *reterr);

/* Allocates all items before it parses the first one. They are zeroed, so an error can free them
 * all. */
static int read_array(const Field *field, const json_t *array, void *base, Error *reterr)
{
        void **items = (void **)((char *)base + field->offset);
        size_t *n_items = (size_t *)((char *)base + field->count_offset);
        size_t size = json_array_size(array);

        if (!json_is_array(array))
                return error_setf(reterr, EBADMSG, "not an array");
        if (size > SNAPSHOT_LIST_MAX)
                return error_setf(reterr, EBADMSG, "more than %d items", SNAPSHOT_LIST_MAX);
        if (size == 0)
                return 0;
        *items = calloc(size, field->of->size);
        if (!*items)
                return error_oom(reterr);
        *n_items = size;
        for (size_t i = 0; i < size; i++) {
                const json_t *value = json_array_get(array, i);
                void *item = (char *)*items + i * field->of->size;
                int r = is_plain(field->of) ? read_value(field->of->fields, value, item, reterr)
                                            : read_fields(field->of, value, item, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "item %zu", i);
        }
        return 0;
}

static int read_value(const Field *field, const json_t *value, void *base, Error *reterr)
{
        void *member = (char *)base + field->offset;

        switch (field->type) {
        case FIELD_TEXT:
                return read_text(field, value, member, reterr);
        case FIELD_U64:
        case FIELD_U32:
        case FIELD_INT:
                return read_number(field, value, member, reterr);
        case FIELD_BOOL:
                if (!json_is_boolean(value))
                        return error_setf(reterr, EBADMSG, "not true or false");
                *(bool *)member = json_is_true(value);
                return 0;
        case FIELD_UUID:
        case FIELD_ADDRESS:
        case FIELD_CPU_SET:
        case FIELD_STATE:
                return read_special(field, value, member, reterr);
        case FIELD_STRINGS:
        case FIELD_ARRAY:
                return read_array(field, value, base, reterr);
        }
        return -EINVAL;
}

/* Reads a struct. Keys that are missing get their defaults, unless they are required. Other keys
 * are ignored. */
static int read_fields(const FieldList *list, const json_t *object, void *base, Error *reterr)
{
        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "not an object");
        for (size_t i = 0; i < list->n_fields; i++) {
                const Field *field = &list->fields[i];
                const json_t *value = json_object_get(object, field->key);
                int r;

                if (!value && field->required)
                        return error_setf(reterr, EBADMSG, "\"%s\" is missing", field->key);
                if (!value && field_set_default(field, base) < 0)
                        return error_oom(reterr);
                if (!value)
                        continue;
                r = read_value(field, value, base, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", field->key);
        }
        return 0;
}

int snapshot_from_json(const json_t *object, Snapshot **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        const char *format;
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "A host is a JSON object");
        r = json_read_string(object, "format", &format, reterr);
        if (r < 0)
                return r;
        if (strcmp(format, SNAPSHOT_FORMAT) != 0)
                return error_setf(reterr, EBADMSG, "format: \"%.40s\", expected \"%s\"", format,
                                  SNAPSHOT_FORMAT);
        snapshot = calloc(1, sizeof(Snapshot));
        if (!snapshot)
                return error_oom(reterr);
        snapshot->n_references = 1;
        r = read_fields(&snapshot_field_list, object, snapshot, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                snapshot->devices[i].is_pci = snapshot->devices[i].address[0] != '\0';
        r = snapshot_seal(snapshot, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(snapshot);
        return 0;
}
