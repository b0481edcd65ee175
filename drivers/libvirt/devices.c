/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the node devices of a host into a snapshot. Devices that the cache has are copied from it;
 * each other device costs one call after a listing. A poll without a listing reads only the devices
 * that change silently, with two calls each. A device that vanishes is skipped, as is one whose
 * read fails without a reason from libvirt. Any other device that cannot be read is a problem of
 * the snapshot. A failed read, but not a failed lookup, marks the device in the cache, so the next
 * poll lists the devices again. A failed listing, a broken connection and a lack of memory end the
 * poll. Mdevs that sysfs no longer has are removed at the end, if their parent is a PCI function.
 * Facts that only sysfs has are added to each copy.
 *
 * Tests: tests/unit/drivers/libvirt/test-poll.c tests/unit/drivers/libvirt/test-driver.c */

#include "drivers/libvirt/devices.h"

#include <string.h>

#include "base/array.h"
#include "base/string-set.h"
#include "drivers/host/sysfs.h"
#include "drivers/host/vgpu-types.h"
#include "drivers/libvirt/error.h"

/* The state of one poll of devices. */
typedef struct DevicePoll {
        virConnectPtr connection;
        PollCache *cache;
        Snapshot *snapshot;
        /* names of devices that have a vDPA device */
        StringSet vdpa_parents;
        size_t n_devices_allocated;
        size_t n_mdevs_allocated;
} DevicePoll;

/* Copies the device into the snapshot, and adds the facts of sysfs. */
static int add_device(DevicePoll *poll, const SnapshotDevice *device, Error *reterr)
{
        Snapshot *snapshot = poll->snapshot;
        Error error = ERROR_NULL;
        SnapshotDevice *added;
        int r;

        if (array_grow(&snapshot->devices, sizeof(SnapshotDevice), snapshot->n_devices,
                       &poll->n_devices_allocated) < 0 ||
            snapshot_device_copy(&snapshot->devices[snapshot->n_devices], device) < 0)
                return error_oom(reterr);
        /* libvirt has no such facts, and sends no event when they change */
        added = &snapshot->devices[snapshot->n_devices++];
        if (sysfs_read_nvme_serial(VGPU_TYPES_FOLDER, added) < 0)
                return error_oom(reterr);
        r = vgpu_types_read(VGPU_TYPES_FOLDER, added, &error);
        return r < 0 ? libvirt_leave_out(poll->connection, snapshot, r, &error, reterr) : 0;
}

static int add_mdev(DevicePoll *poll, const SnapshotMdev *mdev)
{
        Snapshot *snapshot = poll->snapshot;

        if (array_grow(&snapshot->mdevs, sizeof(SnapshotMdev), snapshot->n_mdevs,
                       &poll->n_mdevs_allocated) < 0 ||
            snapshot_mdev_copy(&snapshot->mdevs[snapshot->n_mdevs], mdev) < 0)
                return -ENOMEM;
        snapshot->n_mdevs++;
        return 0;
}

/* Reads the device into the cache. Returns 1 if it was read, 0 if it is gone or unreadable, and a
 * negative errno if the poll must end. */
static int read_device(DevicePoll *poll, virNodeDevicePtr handle, const char *name,
                       const NodeDevice **ret, Error *reterr)
{
        _cleanup_free_ char *xml = virNodeDeviceGetXMLDesc(handle, 0);
        _cleanup_(node_device_done) NodeDevice device = { 0 };
        Error error = ERROR_NULL;
        int r = 0;

        if (!xml && (libvirt_error_is_gone() || libvirt_error_is_unexplained())) {
                /* if it still exists, the next poll finds it again */
                poll_cache_mark_device(poll->cache, name);
                return 0;
        }
        if (!xml)
                r = libvirt_error(&error, "Node device");
        if (r == 0)
                r = node_device_parse(xml, &device, &error);
        if (r < 0) {
                poll_cache_mark_device(poll->cache, name);
                error_prefixf(&error, r, "Device %.60s cannot be read", name);
                return libvirt_leave_out(poll->connection, poll->snapshot, r, &error, reterr);
        }
        return poll_cache_put_device(poll->cache, name, &device, ret) < 0 ? error_oom(reterr) : 1;
}

/* Adds the device to the snapshot, by its kind. */
static int add(DevicePoll *poll, const NodeDevice *device, Error *reterr)
{
        int r = 0;

        if (device->kind == NODE_DEVICE_DEVICE)
                return add_device(poll, &device->device, reterr);
        if (device->kind == NODE_DEVICE_MDEV)
                r = add_mdev(poll, &device->mdev);
        else if (device->kind == NODE_DEVICE_VDPA)
                r = string_set_add(&poll->vdpa_parents, device->parent);
        return r < 0 ? error_oom(reterr) : 0;
}

static int poll_device(DevicePoll *poll, virNodeDevicePtr handle, Error *reterr)
{
        const char *name = virNodeDeviceGetName(handle);
        const NodeDevice *device;
        int r = 1;

        if (!name)
                return libvirt_error(reterr, "Cannot get the name of a device");
        device = poll_cache_find_device(poll->cache, name);
        if (!device)
                r = read_device(poll, handle, name, &device, reterr);
        return r <= 0 ? r : add(poll, device, reterr);
}

/* Looks up a device that the cache has, and reads it. Returns as read_device(). */
static int read_again(DevicePoll *poll, const NodeDevice **device, Error *reterr)
{
        _cleanup_free_ char *name = strdup((*device)->device.name);
        Error error = ERROR_NULL;
        virNodeDevicePtr handle;
        int r;

        if (!name)
                return error_oom(reterr);
        handle = virNodeDeviceLookupByName(poll->connection, name);
        if (!handle && libvirt_error_is_gone())
                return 0;
        if (!handle) {
                r = libvirt_error(&error, "Node device");
                error_prefixf(&error, r, "Device %.60s cannot be read", name);
                return libvirt_leave_out(poll->connection, poll->snapshot, r, &error, reterr);
        }
        r = read_device(poll, handle, name, device, reterr);
        virNodeDeviceFree(handle);
        return r;
}

/* Adds all devices of the cache without a listing. */
static int poll_known(DevicePoll *poll, Error *reterr)
{
        const NodeDevice *device;
        size_t i = 0;

        while ((device = poll_cache_next_device(poll->cache, &i))) {
                int r = 1;

                if (poll_cache_is_silent(poll->cache, device))
                        r = read_again(poll, &device, reterr);
                if (r > 0)
                        r = add(poll, device, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Lists the devices. Returns their number, or -1 with libvirt's error. */
static int list_devices(virConnectPtr connection, virNodeDevicePtr **ret)
{
        const unsigned kinds = VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV |
                               VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES |
                               VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV |
                               VIR_CONNECT_LIST_NODE_DEVICES_CAP_VDPA;
        int n;

        /* an mdev that is defined but not started uses nothing of its parent */
        n = virConnectListAllNodeDevices(connection, ret,
                                         kinds | VIR_CONNECT_LIST_NODE_DEVICES_ACTIVE);
        if (n < 0 && libvirt_error_is_unsupported())
                n = virConnectListAllNodeDevices(connection, ret, kinds);
        return n;
}

/* Lists the devices and adds them. A hypervisor without node devices has none. */
static int poll_listed(DevicePoll *poll, Error *reterr)
{
        virNodeDevicePtr *devices = NULL;
        int n, r = 0;

        n = list_devices(poll->connection, &devices);
        if (n < 0 && libvirt_error_is_unsupported())
                return 0;
        if (n < 0)
                return libvirt_error(reterr, "Cannot list the devices");
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = poll_device(poll, devices[i], reterr);
                virNodeDeviceFree(devices[i]);
        }
        free(devices);
        return r;
}

int libvirt_poll_devices(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                         Error *reterr)
{
        DevicePoll poll = { .connection = connection, .cache = cache, .snapshot = snapshot };
        int r;

        r = poll_cache_knows_devices(cache) ? poll_known(&poll, reterr)
                                            : poll_listed(&poll, reterr);
        for (size_t i = 0; i < snapshot->n_devices; i++)
                snapshot->devices[i].is_vdpa_parent =
                        string_set_contains(&poll.vdpa_parents, snapshot->devices[i].name);
        string_set_done(&poll.vdpa_parents);
        /* libvirt learns of the end of an mdev later than its parent's driver. */
        if (r == 0)
                sysfs_drop_ended_mdevs("/sys", false, snapshot);
        return r;
}
