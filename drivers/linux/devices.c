/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads PCI functions, vDPA devices, mdevs and parents of mdevs from sysfs, in this order, and then
 * removes mdevs that ended during the poll. The PCI functions are in the order of their addresses,
 * which is also that of their names; find_device() searches them. Parents of mdevs that are not PCI
 * functions follow.
 *
 * A function that cannot have changed since the last poll is copied from it, unless another device
 * is at its address (SnapshotDevice.inode). A bad file leaves out its device, or only its type or
 * its facts about vGPUs, and adds a problem. An unreadable VPD leaves out only the serial number,
 * and is a problem only if serials_needed. For an NVMe controller without one in its VPD a file of
 * its driver is read; it is no problem if that cannot be read. A device that vanishes during the
 * poll is skipped. A file that gives EIO counts as missing, except those about vGPUs. The poll
 * fails if the PCI functions or the mdevs cannot be listed. Text from devices is shortened and
 * sanitized.
 *
 * Tests: tests/unit/drivers/linux/test-reader.c */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/read-file.h"
#include "base/text.h"
#include "drivers/host/sysfs.h"
#include "drivers/host/vgpu-types.h"
#include "drivers/linux/reader.h"

#define PCI_DEVICES "bus/pci/devices"
#define MDEV_BUS    "class/mdev_bus"
#define MDEVS       "bus/mdev/devices"
#define VDPA        "bus/vdpa/devices"
#define NAME_SIZE   256 /* Bytes of the name of a file in sysfs, with the NUL. */
/* Longest VPD that is read, in bytes. */
#define VPD_MAX 32768

/* The state of one poll of devices. */
typedef struct DeviceReader {
        LinuxReader *reader;
        Snapshot *snapshot;
        size_t n_devices_allocated, n_mdevs_allocated;
        size_t n_pci; /* PCI functions in snapshot->devices */
} DeviceReader;

/* PCI vital product data (VPD): a list of resources, each with a tag and a length. The read-only
 * resource is a list of keywords: two letters, one byte of length, and data (PCI Local Bus
 * Specification 3.0, appendix I). */

#define TAG_END       0x78 /* tag of a small resource; its low three bits are the length */
#define TAG_READ_ONLY 0x90
#define LARGE         0x80

/* Copies the text without characters at its ends that are not visible. */
static void copy_serial(const uint8_t *bytes, size_t n, char ret[static DEVICE_IDENTITY_SIZE])
{
        size_t first = 0;

        while (first < n && !isgraph(bytes[first]))
                first++;
        while (n > first && !isgraph(bytes[n - 1]))
                n--;
        snprintf(ret, DEVICE_IDENTITY_SIZE, "%.*s", (int)(n - first), (const char *)bytes + first);
        text_sanitize(ret, '?');
}

/* Reads the fields of the read-only resource. Returns true if it has a serial number and its
 * checksum is correct. */
static bool read_fields(const uint8_t *vpd, size_t start, size_t end,
                        char ret[static DEVICE_IDENTITY_SIZE])
{
        for (size_t i = start; i + 3 <= end;) {
                const uint8_t *field = vpd + i;
                size_t next = i + 3 + field[2];

                if (next > end)
                        return false;
                if (field[0] == 'S' && field[1] == 'N')
                        copy_serial(field + 3, field[2], ret);
                if (field[0] == 'R' && field[1] == 'V') {
                        uint8_t sum = 0;

                        /* the sum of all bytes, including the first one of this field, must be 0 */
                        for (size_t j = 0; j <= i + 3 && j < end; j++)
                                sum = (uint8_t)(sum + vpd[j]);
                        return ret[0] && field[2] > 0 && sum == 0;
                }
                i = next;
        }
        return false;
}

/* Finds the read-only resource and reads it. Every length is checked against n, because the VPD
 * is foreign data. */
static bool find_serial(const uint8_t *vpd, size_t n, char ret[static DEVICE_IDENTITY_SIZE])
{
        for (size_t i = 0; i < n;) {
                size_t start, length;

                if (!(vpd[i] & LARGE)) {
                        if ((vpd[i] & ~7U) == TAG_END)
                                return false;
                        i += 1 + (vpd[i] & 7U);
                        continue;
                }
                if (i + 3 > n)
                        return false;
                start = i + 3;
                length = vpd[i + 1] | (size_t)vpd[i + 2] << 8;
                if (start + length > n)
                        return false;
                if (vpd[i] == TAG_READ_ONLY)
                        return read_fields(vpd, start, start + length, ret);
                i = start + length;
        }
        return false;
}

/* Reads the serial number of a card from the VPD of a PCI function: the keyword SN in a
 * read-only resource with a correct checksum. Shortens and sanitizes it. Returns false and "" if
 * there is none, or if it has no visible character. */
static bool read_vpd_serial(const uint8_t *vpd, size_t n, char ret[static DEVICE_IDENTITY_SIZE])
{
        ret[0] = '\0';
        if (find_serial(vpd, n, ret))
                return true;
        ret[0] = '\0';
        return false;
}

/* Reads the last two parts of a link's target, ".../PARENT/NAME". parent is "" if there is only
 * one. -errno, or -EBADMSG for a target without a name. */
static int read_link(const char *path, char parent[static NAME_SIZE], char name[static NAME_SIZE])
{
        char target[LINUX_PATH_SIZE];
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        char *slash, *before;

        if (n < 0)
                return -errno;
        target[n] = '\0';
        slash = strrchr(target, '/');
        if (slash)
                *slash = '\0';
        before = strrchr(target, '/');
        snprintf(name, NAME_SIZE, "%.255s", slash ? slash + 1 : target);
        snprintf(parent, NAME_SIZE, "%.255s", slash ? (before ? before + 1 : target) : "");
        text_sanitize(name, '?');
        text_sanitize(parent, '?');
        return name[0] ? 0 : -EBADMSG;
}

/* Returns libvirt's name of the device that contains this one. */
static int name_parent(LinuxReader *reader, const char *folder, const char *device, char **ret)
{
        char parent[NAME_SIZE], name[NAME_SIZE], subsystem[NAME_SIZE], ignored[NAME_SIZE];
        int r = read_link(linux_path(reader, "%s/%.255s", folder, device), parent, name);

        if (r < 0)
                return r;
        r = read_link(linux_path(reader, "%s/%.255s/../subsystem", folder, device), ignored,
                      subsystem);
        if (r < 0)
                return r;
        *ret = snapshot_device_name(subsystem, parent);
        return *ret ? 0 : -ENOMEM;
}

/* PCI functions */

/* Parses a hexadecimal number. *ret_end is text if it is above max. */
static uint32_t read_hex(const char *text, uint64_t max, const char **ret_end)
{
        char *end;
        unsigned long long number = strtoull(text, &end, 16);

        *ret_end = number > max ? text : end;
        return (uint32_t)number;
}

/* Parses lines such as "PCI_ID=10DE:13BD". Class and id are required. */
static int parse_uevent(char *text, SnapshotDevice *device)
{
        bool has_class = false, has_id = false;
        char *state = NULL;

        for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
                char *value = strchr(line, '=');
                const char *end;

                if (!value)
                        continue;
                *value++ = '\0';
                if (strcmp(line, "DRIVER") == 0) {
                        free(device->driver);
                        device->driver = strndup(value, NAME_SIZE);
                        if (!device->driver)
                                return -ENOMEM;
                        text_sanitize(device->driver, '?');
                } else if (strcmp(line, "PCI_CLASS") == 0) {
                        device->class_code = read_hex(value, 0xffffff, &end);
                        has_class = end > value && !*end;
                } else if (strcmp(line, "PCI_ID") == 0) {
                        device->vendor_id = read_hex(value, 0xffff, &end);
                        if (end > value && *end == ':') {
                                value = (char *)end + 1;
                                device->product_id = read_hex(value, 0xffff, &end);
                                has_id = end > value && !*end;
                        }
                }
        }
        return has_class && has_id ? 0 : -EBADMSG;
}

/* Reads the NUMA node. A device without a node, or without the file, has NUMA_NODE_NONE. */
static int read_numa_node(const char *path, SnapshotDevice *device)
{
        uint64_t node;
        int r = linux_read_number(path, INT32_MAX, &node);
        _cleanup_free_ char *text = NULL;

        device->numa_node = NUMA_NODE_NONE;
        if (r == 0)
                device->numa_node = (int)node;
        else if (r == -EBADMSG && sysfs_read(path, &text) == 0 && text[0] == '-')
                r = 0; /* "-1": no node */
        return sysfs_is_gone(r) ? 0 : r;
}

/* Reads whether the function is virtual, or can have virtual functions. */
static int read_functions(LinuxReader *reader, SnapshotDevice *device)
{
        char physical[NAME_SIZE], ignored[NAME_SIZE], address[PCI_ADDRESS_SIZE] = "";
        int r = read_link(linux_path(reader, PCI_DEVICES "/%s/physfn", device->address), ignored,
                          physical);

        if (r == 0)
                r = pci_address_parse(physical, address);
        if (r < 0 && !sysfs_is_gone(r))
                return r == -EINVAL ? -EBADMSG : r;
        if (address[0]) {
                strcpy(device->physical_function, address);
                return 0;
        }
        r = linux_read_number(linux_path(reader, PCI_DEVICES "/%s/sriov_totalvfs", device->address),
                              UINT16_MAX, &device->max_virtual_functions);
        device->is_physical_function = r == 0 && device->max_virtual_functions > 0;
        return sysfs_is_gone(r) ? 0 : r;
}

/* Reads the serial number from the VPD, which is slow on real cards. It is read only on hosts that
 * offer devices. read_function() does not read it again for a function of the last snapshot. */
static int read_serial(LinuxReader *reader, SnapshotDevice *device, Error *reterr)
{
        uint8_t vpd[VPD_MAX];
        char serial[DEVICE_IDENTITY_SIZE];
        size_t n;
        int r;

        if (!reader->serials)
                return 0;
        r = read_file_start(linux_path(reader, PCI_DEVICES "/%s/vpd", device->address), vpd,
                            sizeof(vpd), &n, NULL);
        if (r < 0)
                return reader->serials_needed || r == -ENOMEM ? linux_note(reader, r, reterr) : 0;
        device->has_card_serial = read_vpd_serial(vpd, n, serial);
        return snapshot_device_set_serial(device, serial) < 0 ? error_oom(reterr) : 0;
}

/* Reads a function into device, which the caller frees. before is the same function in the last
 * snapshot, or NULL: its serial number is used again. */
static int read_function(LinuxReader *reader, const char *address, const SnapshotDevice *before,
                         SnapshotDevice *device, Error *reterr)
{
        _cleanup_free_ char *uevent = NULL;
        char parent[PCI_ADDRESS_SIZE], above[NAME_SIZE], ignored[NAME_SIZE];
        int r = sysfs_read(linux_path(reader, PCI_DEVICES "/%s/uevent", address), &uevent);

        device->is_pci = true;
        strcpy(device->address, address);
        if (r < 0 || (r = parse_uevent(uevent, device)) < 0 ||
            (r = read_numa_node(linux_path(reader, PCI_DEVICES "/%s/numa_node", address), device)) <
                    0 ||
            (r = read_functions(reader, device)) < 0)
                return r;
        if (before) {
                device->has_card_serial = before->has_card_serial;
                if (snapshot_device_set_serial(device, before->serial) < 0)
                        return -ENOMEM;
        } else if ((r = read_serial(reader, device, reterr)) < 0)
                return r;
        r = read_link(linux_path(reader, PCI_DEVICES "/%s", address), above, ignored);
        if (r < 0)
                return r;
        device->parent = pci_address_parse(above, parent) < 0 ? strdup("computer")
                                                              : snapshot_device_name("pci", parent);
        device->name = snapshot_device_name("pci", address);
        return device->parent && device->name ? snapshot_device_complete(device) : -ENOMEM;
}

static int add_device(DeviceReader *devices, SnapshotDevice *device)
{
        Snapshot *snapshot = devices->snapshot;

        if (array_grow(&snapshot->devices, sizeof(SnapshotDevice), snapshot->n_devices,
                       &devices->n_devices_allocated) < 0)
                return -ENOMEM;
        snapshot->devices[snapshot->n_devices++] = *device;
        *device = (SnapshotDevice){ 0 };
        return 0;
}

/* Adds the facts in files of some drivers, below folder. */
static int add_details(DeviceReader *devices, const char *folder, SnapshotDevice *device,
                       Error *reterr)
{
        Error error = ERROR_NULL;
        int r;

        if (sysfs_read_nvme_serial(folder, device) < 0)
                return error_oom(reterr);
        r = vgpu_types_read(folder, device, &error);
        if (r == -ENOMEM || (r < 0 && snapshot_add_problem(devices->snapshot, error.text) < 0))
                return error_oom(reterr);
        return 0;
}

/* Returns the inode of the function's folder, or 0. The kernel makes a new folder for a device that
 * is plugged in, so another inode is another device, also of the same model. */
static uint64_t get_inode(LinuxReader *reader, const char *address)
{
        struct stat st;

        return stat(linux_path(reader, PCI_DEVICES "/%s", address), &st) == 0 ? st.st_ino : 0;
}

/* Reads or copies one function and adds it. */
static int poll_function(DeviceReader *devices, const char *address, Error *reterr)
{
        char folder[LINUX_PATH_SIZE];
        _cleanup_(snapshot_device_done) SnapshotDevice device = { 0 };
        _cleanup_free_ char *name = snapshot_device_name("pci", address);
        const LinuxReader *reader = devices->reader;
        const SnapshotDevice *before =
                name && reader->last ? snapshot_find_device(reader->last, name) : NULL;
        uint64_t inode = get_inode(devices->reader, address); /* before the files are read */
        int r;

        if (!name)
                return error_oom(reterr);
        if (before && before->inode != inode)
                before = NULL;
        snprintf(folder, sizeof(folder), "%s", linux_path(devices->reader, PCI_DEVICES));
        if (before && reader->quiet && !snapshot_device_changes_silently(before))
                r = snapshot_device_copy(&device, before);
        else
                r = read_function(devices->reader, address, before, &device, reterr);
        if (r < 0)
                return linux_note(devices->reader, r, reterr);
        /* a copy has these set; add_details() decides again */
        device.is_vgpu_function = device.vgpu_unread = false;
        device.inode = inode;
        r = add_details(devices, folder, &device, reterr);
        return r == 0 && add_device(devices, &device) < 0 ? error_oom(reterr) : r;
}

static int poll_functions(DeviceReader *devices, Error *reterr)
{
        _cleanup_(string_set_done) StringSet names = STRING_SET_INIT;
        char address[PCI_ADDRESS_SIZE];
        int r = linux_list(linux_path(devices->reader, PCI_DEVICES), &names);

        if (r < 0)
                return linux_fail(devices->reader, r, reterr);
        for (size_t i = 0; i < names.n_items && r >= 0; i++)
                if (pci_address_parse(names.items[i], address) == 0)
                        r = poll_function(devices, address, reterr);
        devices->n_pci = devices->snapshot->n_devices;
        return r < 0 ? r : 0;
}

static int order_names(const void *key, const void *item)
{
        return strcmp(key, ((const SnapshotDevice *)item)->name);
}

static SnapshotDevice *find_device(const DeviceReader *devices, const char *name)
{
        SnapshotDevice *all = devices->snapshot->devices;
        bool found;
        size_t i =
                array_find(all, sizeof(SnapshotDevice), devices->n_pci, name, order_names, &found);

        return found ? &all[i] : NULL;
}

/* Parents of mediated devices, and their types */

/* Reads a text, shortened and sanitized. A missing file is "". */
static int read_text(const char *path, char **ret)
{
        int r = sysfs_read(path, ret);

        if (r == 0) {
                (*ret)[strnlen(*ret, NAME_SIZE)] = '\0';
                text_sanitize(*ret, '?');
        } else if (sysfs_is_gone(r)) {
                *ret = strdup("");
                r = *ret ? 0 : -ENOMEM;
        }
        return r;
}

/* Reads one type. Its id is the name of a folder, so an id that had to be sanitized is rejected. */
static int read_type(LinuxReader *reader, const char *folder, const char *id, MdevType *type)
{
        int r;

        linux_path(reader, "%s/%.255s", folder, id);
        type->id = strdup(id);
        if (!type->id)
                return -ENOMEM;
        text_sanitize(type->id, '?');
        if (strcmp(type->id, id) != 0)
                return -EBADMSG;
        r = linux_read_number(linux_path(reader, "%s/%.255s/available_instances", folder, id),
                              INT64_MAX, &type->available_instances);
        return r < 0 ? r : read_text(linux_path(reader, "%s/%.255s/name", folder, id), &type->name);
}

static void free_type(MdevType *type)
{
        free(type->id);
        free(type->name);
}

/* Reads the types of a parent, unless it has the types of a vGPU function already. A bad type is
 * left out alone, with a problem. */
static int read_types(LinuxReader *reader, const char *parent, SnapshotDevice *device,
                      Error *reterr)
{
        _cleanup_(string_set_done) StringSet ids = STRING_SET_INIT;
        char folder[LINUX_PATH_SIZE];
        int r;

        if (device->n_mdev_types > 0)
                return 0;
        snprintf(folder, sizeof(folder), MDEV_BUS "/%.255s/mdev_supported_types", parent);
        r = linux_list(linux_path(reader, "%s", folder), &ids);
        if (r < 0)
                return linux_note(reader, r, reterr);
        device->mdev_types = calloc(ids.n_items + 1, sizeof(MdevType));
        if (!device->mdev_types)
                return error_oom(reterr);
        for (size_t i = 0; i < ids.n_items; i++) {
                MdevType *type = &device->mdev_types[device->n_mdev_types];

                r = read_type(reader, folder, ids.items[i], type);
                if (r == 0) {
                        device->n_mdev_types++;
                        continue;
                }
                free_type(type);
                *type = (MdevType){ 0 };
                r = linux_note(reader, r, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Adds a parent that is not a PCI function, for example mtty or a channel. Such devices are always
 * read. One with the name of an earlier one is left out, with a problem. */
static int add_other(DeviceReader *devices, const char *parent, Error *reterr)
{
        _cleanup_(snapshot_device_done) SnapshotDevice device = { .numa_node = NUMA_NODE_NONE };
        char subsystem[NAME_SIZE], driver[NAME_SIZE], ignored[NAME_SIZE];
        LinuxReader *reader = devices->reader;
        int r = read_link(linux_path(reader, MDEV_BUS "/%.255s/driver", parent), ignored, driver);

        if (r < 0)
                driver[0] = '\0';
        r = read_link(linux_path(reader, MDEV_BUS "/%.255s/subsystem", parent), ignored, subsystem);
        if (r < 0)
                return linux_note(reader, r, reterr);
        device.name = snapshot_device_name(subsystem, parent);
        device.parent = strdup("computer");
        device.driver = strdup(driver);
        if (!device.name || !device.parent || !device.driver ||
            snapshot_device_complete(&device) < 0)
                return error_oom(reterr);
        for (size_t i = devices->n_pci; i < devices->snapshot->n_devices; i++)
                if (strcmp(devices->snapshot->devices[i].name, device.name) == 0)
                        return linux_note(reader, -EEXIST, reterr);
        r = read_types(reader, parent, &device, reterr);
        return r == 0 && add_device(devices, &device) < 0 ? error_oom(reterr) : r;
}

/* Reads the mdev types of all parents. A PCI function without its device in the list is skipped. */
static int poll_mdev_parents(DeviceReader *devices, Error *reterr)
{
        _cleanup_(string_set_done) StringSet names = STRING_SET_INIT;
        int r = linux_list(linux_path(devices->reader, MDEV_BUS), &names);

        if (r < 0)
                return linux_note(devices->reader, r, reterr);
        for (size_t i = 0; i < names.n_items && r >= 0; i++) {
                const char *parent = names.items[i];
                _cleanup_free_ char *name = snapshot_device_name("pci", parent);
                char address[PCI_ADDRESS_SIZE];
                SnapshotDevice *device;

                if (!name)
                        return error_oom(reterr);
                if (pci_address_parse(parent, address) < 0) {
                        r = add_other(devices, parent, reterr);
                } else if ((device = find_device(devices, name))) {
                        r = read_types(devices->reader, parent, device, reterr);
                }
        }
        return r < 0 ? r : 0;
}

/* Mediated devices and vDPA devices, and the devices that contain them */

/* Adds an mdev. Its array slot is filled before the mdev counts, so a failure leaves nothing. */
static int add_mdev(DeviceReader *devices, const char *uuid, Error *reterr)
{
        Snapshot *snapshot = devices->snapshot;
        LinuxReader *reader = devices->reader;
        char type[NAME_SIZE], ignored[NAME_SIZE];
        SnapshotMdev *mdev;
        int r;

        if (array_grow(&snapshot->mdevs, sizeof(SnapshotMdev), snapshot->n_mdevs,
                       &devices->n_mdevs_allocated) < 0)
                return error_oom(reterr);
        mdev = &snapshot->mdevs[snapshot->n_mdevs];
        *mdev = (SnapshotMdev){ 0 };
        if (uuid_from_text(uuid, &mdev->uuid) < 0)
                return 0;
        r = read_link(linux_path(reader, MDEVS "/%s/mdev_type", uuid), ignored, type);
        if (r == 0)
                r = name_parent(reader, MDEVS, uuid, &mdev->parent);
        if (r < 0)
                return linux_note(reader, r, reterr);
        mdev->type = strdup(type);
        if (!mdev->type) {
                snapshot_mdev_done(mdev);
                return error_oom(reterr);
        }
        snapshot->n_mdevs++;
        return 0;
}

static int poll_mdevs(DeviceReader *devices, Error *reterr)
{
        _cleanup_(string_set_done) StringSet uuids = STRING_SET_INIT;
        int r = linux_list(linux_path(devices->reader, MDEVS), &uuids);

        if (r < 0)
                return linux_fail(devices->reader, r, reterr);
        for (size_t i = 0; i < uuids.n_items && r >= 0; i++)
                r = add_mdev(devices, uuids.items[i], reterr);
        return r < 0 ? r : 0;
}

/* Sets is_vdpa_parent of all PCI functions, also of copied ones. If the vDPA devices cannot be
 * listed, copied functions keep their values, the others have none, and there is a problem. */
static int poll_vdpa(DeviceReader *devices, Error *reterr)
{
        _cleanup_(string_set_done) StringSet names = STRING_SET_INIT;
        int r = linux_list(linux_path(devices->reader, VDPA), &names);

        if (r < 0)
                return linux_note(devices->reader, r, reterr);
        for (size_t i = 0; i < devices->n_pci; i++)
                devices->snapshot->devices[i].is_vdpa_parent = false;
        for (size_t i = 0; i < names.n_items; i++) {
                _cleanup_free_ char *parent = NULL;
                SnapshotDevice *device;

                r = name_parent(devices->reader, VDPA, names.items[i], &parent);
                if (r < 0 && (r = linux_note(devices->reader, r, reterr)) < 0)
                        return r;
                device = parent ? find_device(devices, parent) : NULL;
                if (device)
                        device->is_vdpa_parent = true;
        }
        return 0;
}

int linux_read_devices(LinuxReader *reader, Error *reterr)
{
        DeviceReader devices = { .reader = reader, .snapshot = reader->snapshot };
        int r;

        /* The mdevs are listed before available_instances of their parents is read, as
         * sysfs_drop_ended_mdevs() needs it. An mdev that begins in between is missing, and a later
         * poll shows it. */
        if ((r = poll_functions(&devices, reterr)) < 0 || (r = poll_vdpa(&devices, reterr)) < 0 ||
            (r = poll_mdevs(&devices, reterr)) < 0 || (r = poll_mdev_parents(&devices, reterr)) < 0)
                return r;
        sysfs_drop_ended_mdevs(reader->sys, true, reader->snapshot);
        return 0;
}
