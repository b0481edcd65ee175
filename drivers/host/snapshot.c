/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sorts, checks and searches a snapshot. snapshot_seal() sorts the lists, which the binary searches
 * need. It rejects duplicates in the sorted lists. Sets of texts are sorted and lose them, and
 * instance_folders keeps them. Virtual functions without a serial number get that of their physical
 * function there, because that needs the sorted list. The fields of a snapshot are in the tables of
 * drivers/host/snapshot-fields.c. The file also makes names of devices: libvirt's names and
 * identities. It parses PCI addresses.
 *
 * The searches for a device and for its mdevs are binary and need a sealed snapshot. An address
 * that the binary search does not find is searched in the whole list. The other searches are linear
 * and need no sealed snapshot.
 *
 * Tests: tests/unit/drivers/host/test-snapshot.c */

#include "drivers/host/snapshot.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"

/* Base classes of PCI. */
#define CLASS_NETWORK     0x02
#define CLASS_DISPLAY     0x03
#define CLASS_ACCELERATOR 0x12

/* Lists all sets of texts of an emulator, which snapshot_seal() sorts. */
#define EMULATOR_SETS(e)                                                                  \
        &(e)->disk_buses, &(e)->video_models, &(e)->filesystem_drivers, &(e)->tpm_models, \
                &(e)->tpm_backends, &(e)->tpm_versions

uint64_t snapshot_begun_realtime_usec(const Snapshot *snapshot)
{
        uint64_t now = clock_usec(CLOCK_REALTIME);

        return now - MIN(now, clock_usec(CLOCK_MONOTONIC) - snapshot->began_usec);
}

int snapshot_set_text(char **text, const char *value, Error *reterr)
{
        char *copy = strdup(value);

        if (!copy)
                return error_oom(reterr);
        free(*text);
        *text = copy;
        return 0;
}

int snapshot_add_problem(Snapshot *snapshot, const char *text)
{
        return snapshot->problems.n_items < SNAPSHOT_PROBLEMS_MAX
                       ? string_set_add(&snapshot->problems, text)
                       : 0;
}

/* Compares cells, pins and cells of guests, which begin with their number. */
static int order_numbers(const void *a, const void *b)
{
        unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

        return x < y ? -1 : x > y;
}
_Static_assert(offsetof(SnapshotCell, id) == 0, "see above");
_Static_assert(offsetof(DomainPin, vcpu) == 0, "see above");
_Static_assert(offsetof(DomainCell, id) == 0, "see above");

static int order_emulators(const void *a, const void *b)
{
        const SnapshotEmulator *x = a, *y = b;
        int order = strcmp(x->arch, y->arch);

        return order ? order : strcmp(x->machine, y->machine);
}

static int order_devices(const void *a, const void *b)
{
        return strcmp(((const SnapshotDevice *)a)->name, ((const SnapshotDevice *)b)->name);
}

static int order_mdev_types(const void *a, const void *b)
{
        return strcmp(((const MdevType *)a)->id, ((const MdevType *)b)->id);
}

/* Compares by parent first, so that the mdevs of one device are adjacent (snapshot_mdevs_of()). */
static int order_mdevs(const void *a, const void *b)
{
        const SnapshotMdev *x = a, *y = b;
        int order = strcmp(x->parent, y->parent);

        return order ? order : uuid_order(&x->uuid, &y->uuid);
}

static int order_uuids(const void *a, const void *b)
{
        return uuid_order(a, b);
}

static int order_domains(const void *a, const void *b)
{
        return uuid_order(&((const SnapshotDomain *)a)->uuid, &((const SnapshotDomain *)b)->uuid);
}

/* Sorts the items. Returns an item that is listed twice, or NULL. */
static const void *sort_unique(void *items, size_t n, size_t size,
                               int (*order)(const void *, const void *))
{
        /* qsort() must not get a null pointer, even with 0 items */
        if (n > 1)
                qsort(items, n, size, order);
        for (size_t i = 1; i < n; i++) {
                const char *item = (const char *)items + i * size;

                if (order(item - size, item) == 0)
                        return item;
        }
        return NULL;
}

/* Sorts the set and removes duplicates. A driver fills it in the order of the hypervisor. */
static void put_in_order(StringSet *set)
{
        size_t n = 0;

        if (set->n_items > 1)
                qsort(set->items, set->n_items, sizeof(char *), text_order);
        for (size_t i = 0; i < set->n_items; i++) {
                if (n > 0 && strcmp(set->items[n - 1], set->items[i]) == 0)
                        free(set->items[i]);
                else
                        set->items[n++] = set->items[i];
        }
        set->n_items = n;
        set->n_allocated = MAX(set->n_allocated, n);
}

/* Sorts the emulators and all sets of texts. Only an emulator that is listed twice is an error. */
static int seal_emulators(Snapshot *snapshot, Error *reterr)
{
        const SnapshotEmulator *twice;

        for (size_t i = 0; i < snapshot->n_emulators; i++) {
                StringSet *sets[] = { EMULATOR_SETS(&snapshot->emulators[i]) };

                for (size_t j = 0; j < ARRAY_SIZE(sets); j++)
                        put_in_order(sets[j]);
        }
        put_in_order(&snapshot->cpu_features);
        put_in_order(&snapshot->problems);
        twice = sort_unique(snapshot->emulators, snapshot->n_emulators, sizeof(SnapshotEmulator),
                            order_emulators);
        if (twice)
                return error_setf(reterr, EBADMSG, "Emulator %.40s %.60s is listed twice",
                                  twice->arch, twice->machine);
        return 0;
}

/* Sorts the domains and their lists. Mdevs and addresses keep the order of the XML. */
static int seal_domains(Snapshot *snapshot, Error *reterr)
{
        const SnapshotDomain *twice = sort_unique(snapshot->domains, snapshot->n_domains,
                                                  sizeof(SnapshotDomain), order_domains);

        if (twice)
                return error_setf(reterr, EBADMSG, "Domain %s is listed twice", twice->uuid.text);
        for (size_t i = 0; i < snapshot->n_domains; i++) {
                SnapshotDomain *domain = &snapshot->domains[i];
                const DomainPin *pin =
                        sort_unique(domain->pins, domain->n_pins, sizeof(DomainPin), order_numbers);
                const DomainCell *cell = sort_unique(domain->cells, domain->n_cells,
                                                     sizeof(DomainCell), order_numbers);

                if (pin)
                        return error_setf(reterr, EBADMSG, "Domain %s pins guest CPU %u twice",
                                          domain->uuid.text, pin->vcpu);
                if (cell)
                        return error_setf(reterr, EBADMSG, "Domain %s lists cell %u twice",
                                          domain->uuid.text, cell->id);
        }
        return 0;
}

const char *snapshot_vgpu_type(const SnapshotDevice *device)
{
        for (size_t i = 0; device->is_vgpu_function && i < device->n_mdev_types; i++)
                if (device->mdev_types[i].created_instances > 0)
                        return device->mdev_types[i].id;
        return NULL;
}

bool snapshot_has_read_vgpus(const Snapshot *snapshot, const SnapshotDevice *card)
{
        bool found = false;

        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];

                if (!device->is_vgpu_function ||
                    strcmp(device->physical_function, card->address) != 0)
                        continue;
                if (device->vgpu_unread)
                        return false;
                found = true;
        }
        return found;
}

/* A device with mdev types can change silently. A virtual function with a driver and without mdev
 * types cannot, because its driver has added all types that it has. For all other devices the class
 * decides. */
bool snapshot_device_changes_silently(const SnapshotDevice *device)
{
        uint32_t base_class = device->class_code >> 16;

        if (device->n_mdev_types > 0)
                return true;
        if (device->physical_function[0] && device->driver[0])
                return false;
        return base_class == CLASS_DISPLAY || base_class == CLASS_ACCELERATOR ||
               (device->is_physical_function && base_class != CLASS_NETWORK);
}

void snapshot_device_identity(const SnapshotDevice *device, char ret[static DEVICE_IDENTITY_SIZE])
{
        device_identity_make(device->is_pci ? device->vendor_id : 0, device->product_id,
                             device->serial, ret);
}

char *snapshot_device_name(const char *subsystem, const char *name)
{
        char *text = text_format("%s_%s", subsystem, name);

        if (!text)
                return NULL;
        for (char *c = text; *c; c++)
                if (!isalnum((unsigned char)*c))
                        *c = '_';
        return text;
}

/* Keeps at most DEVICE_IDENTITY_SIZE bytes. Bytes that are no printable UTF-8 become "?". */
int snapshot_device_set_serial(SnapshotDevice *device, const char *serial)
{
        char *copy = strndup(serial, DEVICE_IDENTITY_SIZE);

        if (!copy)
                return -ENOMEM;
        text_trim_cut(copy);
        text_sanitize(copy, '?');
        free(device->serial);
        device->serial = copy;
        return 0;
}

/* Gives a virtual function without a serial number that of its physical function. Also sets its
 * has_card_serial if the physical function has it. */
static int inherit_serial(const Snapshot *snapshot, SnapshotDevice *device)
{
        _cleanup_free_ char *name = NULL;
        const SnapshotDevice *parent;

        if (!device->physical_function[0] || (device->has_card_serial && device->serial[0]))
                return 0;
        name = snapshot_device_name("pci", device->physical_function);
        if (!name)
                return -ENOMEM;
        parent = snapshot_find_device(snapshot, name);
        if (!parent)
                return 0;
        device->has_card_serial |= parent->has_card_serial;
        return device->serial[0] ? 0 : snapshot_device_set_serial(device, parent->serial);
}

int snapshot_seal(Snapshot *snapshot, Error *reterr)
{
        const SnapshotCell *cell;
        const SnapshotDevice *device;
        const SnapshotMdev *mdev;
        int r = seal_emulators(snapshot, reterr);

        if (r < 0)
                return r;
        cell = sort_unique(snapshot->cells, snapshot->n_cells, sizeof(SnapshotCell), order_numbers);
        if (cell)
                return error_setf(reterr, EBADMSG, "NUMA cell %u is listed twice", cell->id);
        device = sort_unique(snapshot->devices, snapshot->n_devices, sizeof(SnapshotDevice),
                             order_devices);
        if (device)
                return error_setf(reterr, EBADMSG, "Device \"%.60s\" is listed twice",
                                  device->name);
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                SnapshotDevice *parent = &snapshot->devices[i];
                const MdevType *type;

                if (inherit_serial(snapshot, parent) < 0)
                        return error_oom(reterr);
                type = sort_unique(parent->mdev_types, parent->n_mdev_types, sizeof(MdevType),
                                   order_mdev_types);
                if (type)
                        return error_setf(reterr, EBADMSG,
                                          "Device \"%.60s\" lists mdev type %.60s twice",
                                          parent->name, type->id);
        }
        mdev = sort_unique(snapshot->mdevs, snapshot->n_mdevs, sizeof(SnapshotMdev), order_mdevs);
        if (mdev)
                return error_setf(reterr, EBADMSG, "Mediated device %s of %.60s is listed twice",
                                  mdev->uuid.text, mdev->parent);
        if (snapshot->n_instance_folders > 1)
                qsort(snapshot->instance_folders, snapshot->n_instance_folders, sizeof(Uuid),
                      order_uuids);
        return seal_domains(snapshot, reterr);
}

/* Compares the name that is searched with that of a device. */
static int order_name(const void *key, const void *item)
{
        return strcmp(key, ((const SnapshotDevice *)item)->name);
}

const SnapshotDevice *snapshot_find_device(const Snapshot *snapshot, const char *name)
{
        bool found;
        size_t place = array_find(snapshot->devices, sizeof(SnapshotDevice), snapshot->n_devices,
                                  name, order_name, &found);

        return found ? &snapshot->devices[place] : NULL;
}

/* libvirt's name of a PCI device follows from its address, which makes the search fast. In
 * recordings that were written by hand it need not, so the loop follows. */
const SnapshotDevice *snapshot_find_address(const Snapshot *snapshot, const char *address)
{
        char name[sizeof("pci_") + PCI_ADDRESS_SIZE];
        const SnapshotDevice *device;

        snprintf(name, sizeof(name), "pci_%s", address);
        for (char *c = name; *c; c++)
                if (*c == ':' || *c == '.')
                        *c = '_';
        device = snapshot_find_device(snapshot, name);
        if (device && strcmp(device->address, address) == 0)
                return device;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (strcmp(snapshot->devices[i].address, address) == 0)
                        return &snapshot->devices[i];
        return NULL;
}

/* Compares so that the search ends at the first mdev of the device. It never returns 0. */
static int order_parent(const void *key, const void *item)
{
        return strcmp(key, ((const SnapshotMdev *)item)->parent) > 0 ? 1 : -1;
}

const SnapshotMdev *snapshot_mdevs_of(const Snapshot *snapshot, const char *device, size_t *ret_n)
{
        bool found;
        size_t first = array_find(snapshot->mdevs, sizeof(SnapshotMdev), snapshot->n_mdevs, device,
                                  order_parent, &found);
        size_t n = 0;

        while (first + n < snapshot->n_mdevs &&
               strcmp(snapshot->mdevs[first + n].parent, device) == 0)
                n++;
        *ret_n = n;
        return n > 0 ? &snapshot->mdevs[first] : NULL;
}

const SnapshotMdev *snapshot_find_mdev(const Snapshot *snapshot, const Uuid *uuid)
{
        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                if (uuid_equal(&snapshot->mdevs[i].uuid, uuid))
                        return &snapshot->mdevs[i];
        return NULL;
}

/* Searches the list, which is in the order of the domain's XML. */
static bool has_mdev(const Uuid *mdevs, size_t n, const char *thing)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(mdevs[i].text, thing) == 0)
                        return true;
        return false;
}

static bool has_address(char (*addresses)[PCI_ADDRESS_SIZE], size_t n, const char *thing)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(addresses[i], thing) == 0)
                        return true;
        return false;
}

bool snapshot_domain_has(const SnapshotDomain *domain, const char *thing, bool in_config)
{
        return has_mdev(domain->mdevs, domain->n_mdevs, thing) ||
               has_address(domain->pci_addresses, domain->n_pci_addresses, thing) ||
               (in_config &&
                (has_mdev(domain->config_mdevs, domain->n_config_mdevs, thing) ||
                 has_address(domain->config_pci_addresses, domain->n_config_pci_addresses, thing)));
}

const SnapshotDomain *snapshot_find_domain(const Snapshot *snapshot, const Uuid *uuid)
{
        for (size_t i = 0; i < snapshot->n_domains; i++)
                if (uuid_equal(&snapshot->domains[i].uuid, uuid))
                        return &snapshot->domains[i];
        return NULL;
}

MdevType *snapshot_find_mdev_type(const SnapshotDevice *device, const char *id)
{
        for (size_t i = 0; i < device->n_mdev_types; i++)
                if (strcmp(device->mdev_types[i].id, id) == 0)
                        return &device->mdev_types[i];
        return NULL;
}

/* Accepts only the full form: a domain of four digits, a bus, a slot up to 1f and a function up to
 * 7. */
int pci_address_parse(const char *text, char ret[PCI_ADDRESS_SIZE])
{
        static const char shape[] = "xxxx:xx:xx.x";
        char address[PCI_ADDRESS_SIZE];

        if (strnlen(text, PCI_ADDRESS_SIZE) != PCI_ADDRESS_SIZE - 1)
                return -EINVAL;
        for (size_t i = 0; i < PCI_ADDRESS_SIZE; i++) {
                unsigned char c = (unsigned char)text[i];

                if (shape[i] == 'x' ? !isxdigit(c) : c != (unsigned char)shape[i])
                        return -EINVAL;
                address[i] = (char)tolower(c);
        }
        /* a slot has five bits, a function three */
        if (address[8] > '1' || address[11] > '7')
                return -EINVAL;
        memcpy(ret, address, PCI_ADDRESS_SIZE);
        return 0;
}
