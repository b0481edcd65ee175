/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs one poll: reads the host, its devices, its domains, and then the disk. The cache decides
 * which devices and domains are read again. A device or domain that exists and cannot be read is a
 * problem of the snapshot. An unknown size of the disk sets disk_error, and unknown folders of
 * servers set folders_error. A hypervisor can lack node devices, a version and a map of CPUs. A
 * broken connection and all other failures end the poll, and then the cache is emptied.
 *
 * The disk is last, because its read can take up to DISK_CHECK_TIMEOUT_USEC.
 *
 * Tests: tests/unit/drivers/libvirt/test-poll.c tests/unit/drivers/libvirt/test-driver.c */

#include "drivers/libvirt/poll.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/string-set.h"
#include "drivers/host/sysfs.h"
#include "drivers/host/vgpu-types.h"
#include "drivers/libvirt/capabilities.h"
#include "drivers/libvirt/domain.h"
#include "drivers/libvirt/error.h"

/* Devices
 *
 * PCI functions, parents of mediated devices, mediated devices and vDPA devices. If the cache has
 * all devices (poll_cache_begin()), the poll does not list them, because a list of 300 devices
 * takes libvirtd 40 ms. It then reads only those that change without an event
 * (snapshot_device_changes_silently()), with two calls for each. A poll of guests alone does not
 * read these either. Otherwise one call lists all devices, and one call reads each device that the
 * cache lacks or that changes without an event. A poll of guests alone reads the latter only if
 * there is a new mdev, which its parent's cached number of further mdevs still includes.
 *
 * A device that vanishes is skipped, as is one whose read fails without a reason from libvirt. Any
 * other device that cannot be read is a problem of the snapshot. A failed read marks the device in
 * the cache, so the next poll lists the devices again. A failed lookup by name does not, so a later
 * poll looks the device up again. A failed listing, a broken connection and a lack of memory end
 * the poll. Mdevs that sysfs no longer has are removed at the end, if their parent is a PCI
 * function. Facts that only sysfs has are added to each copy. If those about vGPUs cannot be read,
 * the device stays, and there is a problem. */

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
                /* the next poll lists the devices, and finds it if it still exists */
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
static int add_object(DevicePoll *poll, const NodeDevice *device, Error *reterr)
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
        return r <= 0 ? r : add_object(poll, device, reterr);
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
        bool stale;
        size_t i = 0;

        while ((device = poll_cache_next_device(poll->cache, &i, &stale))) {
                int r = 1;

                if (stale)
                        r = read_again(poll, &device, reterr);
                if (r > 0)
                        r = add_object(poll, device, reterr);
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
                const char *name = virNodeDeviceGetName(devices[i]);

                if (name)
                        poll_cache_note_listed(poll->cache, name);
        }
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = poll_device(poll, devices[i], reterr);
                virNodeDeviceFree(devices[i]);
        }
        free(devices);
        return r;
}

/* Adds the devices and mdevs to the snapshot, which has none yet. known: the cache has all devices.
 * Negative errno with an error text if the connection broke, memory is short, or the devices or
 * their names cannot be listed. */
static int poll_devices(virConnectPtr connection, PollCache *cache, bool known, Snapshot *snapshot,
                        Error *reterr)
{
        DevicePoll poll = { .connection = connection, .cache = cache, .snapshot = snapshot };
        int r;

        r = known ? poll_known(&poll, reterr) : poll_listed(&poll, reterr);
        for (size_t i = 0; i < snapshot->n_devices; i++)
                snapshot->devices[i].is_vdpa_parent =
                        string_set_contains(&poll.vdpa_parents, snapshot->devices[i].name);
        string_set_done(&poll.vdpa_parents);
        /* libvirt learns of the end of an mdev later than its parent's driver. */
        if (r == 0)
                sysfs_drop_ended_mdevs("/sys", false, snapshot);
        return r;
}

/* Domains
 *
 * One call lists the domains and whether each one runs. Further calls are necessary for a domain
 * that the cache lacks, or has in another state, or whose turn it is. A poll of guests is the turn
 * of all domains, and any other poll that of the next POLL_CACHE_REFRESH_MAX ones. A domain that
 * does not run needs one call. A running one needs three: its state, its live definition and its
 * persistent one. If it is only its turn, one call reads its persistent definition again. The
 * listing does not show that a domain is paused or resumed, but an event removes it from the cache.
 * A domain that vanishes after the listing is skipped. */

/* Borrowed inputs and the output of the functions that read domains in one poll. */
typedef struct DomainPoll {
        virConnectPtr connection;
        PollCache *cache;
        Snapshot *snapshot;
        size_t n_allocated;
} DomainPoll;

/* Returns whether the domain ran at the time of the listing. A crashed guest that libvirt preserves
 * keeps its resources and counts as active. Its state is then DOMAIN_PAUSED. */
static bool is_active(virDomainPtr handle)
{
        return virDomainGetID(handle) != (unsigned)-1;
}

/* Active domains that are neither running nor shut off still use their resources: they count as
 * paused. */
static DomainState translate_state(virDomainPtr handle, int state)
{
        if (!is_active(handle) || state == VIR_DOMAIN_SHUTOFF)
                return DOMAIN_SHUTOFF;
        return state == VIR_DOMAIN_RUNNING || state == VIR_DOMAIN_BLOCKED ? DOMAIN_RUNNING
                                                                          : DOMAIN_PAUSED;
}

/* Adds a domain that cannot be read, with its name, and its state and size if libvirt has them. The
 * cache does not get it, so the next poll tries again. */
static int add_unread(DomainPoll *poll, virDomainPtr handle, const Uuid *uuid)
{
        Snapshot *snapshot = poll->snapshot;
        SnapshotDomain domain = { .uuid = *uuid, .unread = true };
        const char *name = virDomainGetName(handle);
        virDomainInfo info = { .state = VIR_DOMAIN_NOSTATE };

        if (virDomainGetInfo(handle, &info) == 0) {
                domain.vcpus = info.nrVirtCpu;
                domain.memory_kib = info.maxMem;
        }
        domain.state = translate_state(handle, info.state);
        domain.name = strdup(name ? name : "");
        if (!domain.name || array_grow(&snapshot->domains, sizeof(SnapshotDomain),
                                       snapshot->n_domains, &poll->n_allocated) < 0) {
                free(domain.name);
                return -ENOMEM;
        }
        snapshot->domains[snapshot->n_domains++] = domain;
        return 0;
}

/* Adds a problem and the unread domain. Returns 0 if the poll can go on. */
static int leave_out(DomainPoll *poll, virDomainPtr handle, const Uuid *uuid, int r, Error *error,
                     Error *reterr)
{
        const char *name = virDomainGetName(handle);

        error_prefixf(error, r, "Guest %.60s (%s) cannot be read", name ? name : "?", uuid->text);
        r = libvirt_leave_out(poll->connection, poll->snapshot, r, error, reterr);
        if (r == 0 && add_unread(poll, handle, uuid) < 0)
                r = error_oom(reterr);
        return r;
}

/* Reads one definition of a domain. flags is 0 for the live definition of a running domain, or
 * for the only one of another domain. VIR_DOMAIN_XML_INACTIVE selects the persistent one.
 * Returns 1 if it was read, 0 if the domain is gone. */
static int read_definition(virDomainPtr handle, unsigned flags, SnapshotDomain *ret, Error *reterr)
{
        _cleanup_free_ char *xml = virDomainGetXMLDesc(handle, flags);
        int r;

        if (!xml)
                return libvirt_error_is_gone() ? 0 : libvirt_error(reterr, "Domain");
        r = domain_parse(xml, ret, reterr);
        return r < 0 ? r : 1;
}

/* Sets the members config_… of a running domain from its persistent definition. They describe the
 * devices and CPUs that the domain will have after its next start. For a transient domain libvirt
 * returns the live definition, so these are the devices that it has already. Returns 1 if it was
 * read, 0 if the domain is gone. */
static int read_config(virDomainPtr handle, SnapshotDomain *domain, Error *reterr)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain config = { 0 };
        int r = read_definition(handle, VIR_DOMAIN_XML_INACTIVE, &config, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "Persistent definition");
        if (r > 0 && domain_set_config(domain, &config) < 0)
                return error_oom(reterr);
        return r;
}

/* Reads all definitions of a domain and stores the result in the cache, which owns *ret. Returns 1
 * if it was read, 0 if it is gone. */
static int read_domain(DomainPoll *poll, virDomainPtr handle, const Uuid *uuid,
                       const SnapshotDomain **ret, Error *reterr)
{
        int state = VIR_DOMAIN_SHUTOFF;
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
        int r;

        if (is_active(handle) && virDomainGetState(handle, &state, NULL, 0) < 0)
                return libvirt_error_is_gone() ? 0 : libvirt_error(reterr, "Domain");
        r = read_definition(handle, 0, &domain, reterr);
        if (r > 0 && is_active(handle))
                r = read_config(handle, &domain, reterr);
        if (r <= 0)
                return r;
        domain.state = translate_state(handle, state);
        return poll_cache_put_domain(poll->cache, uuid->text, &domain, ret) < 0 ? error_oom(reterr)
                                                                                : 1;
}

/* Reads only the persistent definition of a running domain again. known is the domain in the
 * cache; events report each change of its live definition. Returns as read_domain(). */
static int refresh_domain(DomainPoll *poll, virDomainPtr handle, const Uuid *uuid,
                          const SnapshotDomain *known, const SnapshotDomain **ret, Error *reterr)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
        int r = snapshot_domain_copy(&domain, known);

        if (r < 0)
                return error_oom(reterr);
        r = read_config(handle, &domain, reterr);
        if (r <= 0)
                return r;
        return poll_cache_put_domain(poll->cache, uuid->text, &domain, ret) < 0 ? error_oom(reterr)
                                                                                : 1;
}

/* Returns whether the cached domain ran or not, as in the listing. */
static bool is_as_listed(const SnapshotDomain *domain, virDomainPtr handle)
{
        return domain && (domain->state != DOMAIN_SHUTOFF) == is_active(handle);
}

/* Returns the domain from the cache, or reads the missing parts. Returns as read_domain(). */
static int find_domain(DomainPoll *poll, virDomainPtr handle, const Uuid *uuid,
                       const SnapshotDomain **ret, Error *reterr)
{
        bool stale;
        const SnapshotDomain *known = poll_cache_find_domain(poll->cache, uuid->text, &stale);

        if (is_as_listed(known, handle) && !stale) {
                *ret = known;
                return 1;
        }
        if (is_active(handle) && is_as_listed(known, handle))
                return refresh_domain(poll, handle, uuid, known, ret, reterr);
        return read_domain(poll, handle, uuid, ret, reterr);
}

/* Adds a copy of one domain to the snapshot. One that cannot be read is added by leave_out(). */
static int poll_domain(DomainPoll *poll, virDomainPtr handle, Error *reterr)
{
        Snapshot *snapshot = poll->snapshot;
        unsigned char bytes[VIR_UUID_BUFLEN];
        const SnapshotDomain *domain;
        Error error = ERROR_NULL;
        Uuid uuid;
        int r;

        /* The uuid is formatted here, because virDomainGetUUIDString() would take a third of the
         * time that one guest needs. */
        if (virDomainGetUUID(handle, bytes) < 0)
                return libvirt_error(reterr, "Cannot get the uuid of a domain");
        uuid = uuid_from_bytes(bytes);
        r = find_domain(poll, handle, &uuid, &domain, &error);
        if (r < 0)
                return leave_out(poll, handle, &uuid, r, &error, reterr);
        if (r == 0)
                return 0;
        if (array_grow(&snapshot->domains, sizeof(SnapshotDomain), snapshot->n_domains,
                       &poll->n_allocated) < 0 ||
            snapshot_domain_copy(&snapshot->domains[snapshot->n_domains], domain) < 0)
                return error_oom(reterr);
        snapshot->n_domains++;
        return 0;
}

/* Adds the domains to the snapshot, which has none yet. Negative errno with an error text. */
static int poll_domains(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                        Error *reterr)
{
        DomainPoll poll = { .connection = connection, .cache = cache, .snapshot = snapshot };
        virDomainPtr *domains = NULL;
        int n, r = 0;

        n = virConnectListAllDomains(connection, &domains, 0);
        if (n < 0)
                return libvirt_error(reterr, "Cannot list the domains");
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = poll_domain(&poll, domains[i], reterr);
                virDomainFree(domains[i]);
        }
        free(domains);
        return r;
}

static int poll_names(virConnectPtr connection, Snapshot *snapshot, Error *reterr)
{
        _cleanup_free_ char *hostname = virConnectGetHostname(connection);
        unsigned long version = 0;
        const char *type;
        int r;

        if (!hostname)
                return libvirt_error(reterr, "Cannot get the name of the host");
        type = virConnectGetType(connection);
        if (!type)
                return libvirt_error(reterr, "Cannot get the type of the hypervisor");
        /* The call fails if no emulator is installed. The version then stays 0, which means
         * unknown. */
        if (virConnectGetVersion(connection, &version) < 0)
                log_debug("No version of the hypervisor: %s", virGetLastErrorMessage());
        if ((r = snapshot_set_text(&snapshot->driver, "libvirt", reterr)) < 0 ||
            (r = snapshot_set_text(&snapshot->nodename, hostname, reterr)) < 0 ||
            (r = snapshot_set_text(&snapshot->hypervisor, type, reterr)) < 0)
                return r;
        snapshot->hypervisor_version = version;
        return 0;
}

static int poll_capabilities(virConnectPtr connection, Snapshot *snapshot, Error *reterr)
{
        _cleanup_free_ char *xml = virConnectGetCapabilities(connection);

        return xml ? capabilities_parse(xml, snapshot, reterr)
                   : libvirt_error(reterr, "Cannot get the capabilities of the host");
}

/* Guesses the online CPUs of a hypervisor without a map of them: the CPUs of the cells, or else
 * the first n_cpus. */
static int guess_online_cpus(const Snapshot *snapshot, unsigned n_cpus, CpuSet *ret)
{
        int r = 0;

        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_cpus && r == 0; j++)
                        r = cpu_set_add(ret, snapshot->cells[i].cpus[j].id);
        if (cpu_set_count(ret) > 0)
                return r;
        for (unsigned cpu = 0; cpu < MIN(n_cpus, CPU_SET_MAX) && r == 0; cpu++)
                r = cpu_set_add(ret, cpu);
        return r;
}

/* Reads the map of CPUs. Every CPU in the map is present, whether online or not. */
static int poll_online_cpus(virConnectPtr connection, unsigned n_cpus, Snapshot *snapshot,
                            Error *reterr)
{
        _cleanup_free_ unsigned char *map = NULL;
        int n = virNodeGetCPUMap(connection, &map, NULL, 0);
        int r = 0;

        if (n < 0 && !libvirt_error_is_unsupported())
                return libvirt_error(reterr, "Cannot get the online CPUs");
        if (n < 0)
                r = guess_online_cpus(snapshot, n_cpus, &snapshot->online_cpus);
        for (int cpu = 0; cpu < n && r == 0; cpu++) {
                r = cpu_set_add(&snapshot->present_cpus, (unsigned)cpu);
                if (r == 0 && VIR_CPU_USED(map, cpu))
                        r = cpu_set_add(&snapshot->online_cpus, (unsigned)cpu);
        }
        return r < 0 ? error_setf(reterr, r, "Online CPUs: %s", strerror(-r)) : 0;
}

/* Reads the name, the capabilities and the CPUs of the host. sysfs_complete_cells() is last,
 * because it needs the cells of the capabilities and the map of CPUs. */
static int poll_host(virConnectPtr connection, Snapshot *snapshot, Error *reterr)
{
        virNodeInfo info;
        int r;

        r = poll_names(connection, snapshot, reterr);
        if (r < 0)
                return r;
        if (virNodeGetInfo(connection, &info) < 0)
                return libvirt_error(reterr, "Cannot get the size of the host");
        snapshot->memory_kib = info.memory;
        r = poll_capabilities(connection, snapshot, reterr);
        if (r < 0)
                return r;
        r = poll_online_cpus(connection, info.cpus, snapshot, reterr);
        if (r < 0)
                return r;
        return sysfs_complete_cells("/sys", snapshot) < 0 ? error_oom(reterr) : 0;
}

static int poll_all(virConnectPtr connection, PollCache *cache, bool known, DiskCheck *check,
                    Snapshot *snapshot, Error *reterr)
{
        int r;

        if ((r = poll_host(connection, snapshot, reterr)) < 0 ||
            (r = poll_devices(connection, cache, known, snapshot, reterr)) < 0 ||
            (r = poll_domains(connection, cache, snapshot, reterr)) < 0)
                return r;
        disk_check_run(check, DISK_CHECK_TIMEOUT_USEC, snapshot);
        snapshot->taken_realtime_usec = clock_usec(CLOCK_REALTIME);
        return snapshot_seal(snapshot, reterr);
}

int libvirt_poll(virConnectPtr connection, PollCache *cache, DriverPollKind kind, DiskCheck *disk,
                 Snapshot **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        bool known;
        int r;

        if (snapshot_new(&snapshot) < 0)
                return error_oom(reterr);
        snapshot->began_usec = clock_usec(CLOCK_MONOTONIC);
        known = poll_cache_begin(cache, snapshot->began_usec, kind);
        r = poll_all(connection, cache, known, disk, snapshot, reterr);
        poll_cache_end(cache, r >= 0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(snapshot);
        return 0;
}
