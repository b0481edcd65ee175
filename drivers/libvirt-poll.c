/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt-poll.h"

#include <errno.h>
#include <libvirt/virterror.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/log.h"
#include "base/string-set.h"
#include "drivers/capabilities.h"
#include "drivers/domain.h"
#include "drivers/libvirt-error.h"
#include "drivers/node-device.h"

/* A snapshot in the making; counts what its arrays have room for. */
typedef struct Poll {
        virConnectPtr connection;
        Snapshot *snapshot;
        size_t n_devices_allocated;
        size_t n_mdevs_allocated;
        size_t n_domains_allocated;
} Poll;

static int replace_text(char **text, const char *value, Error *reterr)
{
        char *copy = strdup(value);

        if (!copy)
                return error_oom(reterr);
        free(*text);
        *text = copy;
        return 0;
}

/* The host */

static int poll_names(Poll *poll, Error *reterr)
{
        _cleanup_free_ char *hostname = virConnectGetHostname(poll->connection);
        unsigned long version = 0;
        const char *type;
        int r;

        if (!hostname)
                return libvirt_error(reterr, "Cannot get the name of the host");
        type = virConnectGetType(poll->connection);
        if (!type)
                return libvirt_error(reterr, "Cannot get the type of the hypervisor");
        /* fails where no emulator is installed */
        if (virConnectGetVersion(poll->connection, &version) < 0)
                log_debug("No version of the hypervisor: %s", virGetLastErrorMessage());
        if ((r = replace_text(&poll->snapshot->driver, "libvirt", reterr)) < 0 ||
            (r = replace_text(&poll->snapshot->nodename, hostname, reterr)) < 0 ||
            (r = replace_text(&poll->snapshot->hypervisor, type, reterr)) < 0)
                return r;
        poll->snapshot->hypervisor_version = version;
        return 0;
}

static int poll_capabilities(Poll *poll, Error *reterr)
{
        _cleanup_free_ char *xml = virConnectGetCapabilities(poll->connection);
        _cleanup_(capabilities_done) Capabilities capabilities = { 0 };
        Snapshot *snapshot = poll->snapshot;
        int r;

        if (!xml)
                return libvirt_error(reterr, "Cannot get the capabilities of the host");
        if ((r = capabilities_parse(xml, &capabilities, reterr)) < 0 ||
            (r = replace_text(&snapshot->arch, capabilities.arch, reterr)) < 0 ||
            (r = replace_text(&snapshot->cpu_model, capabilities.cpu_model, reterr)) < 0)
                return r;
        snapshot->cells = TAKE_PTR(capabilities.cells);
        snapshot->n_cells = capabilities.n_cells;
        capabilities.n_cells = 0;
        return 0;
}

/* What to believe of the online CPUs when the hypervisor has no map of them. */
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

static int poll_online_cpus(Poll *poll, unsigned n_cpus, Error *reterr)
{
        _cleanup_free_ unsigned char *map = NULL;
        int n = virNodeGetCPUMap(poll->connection, &map, NULL, 0);
        int r = 0;

        if (n < 0 && !libvirt_error_is_unsupported())
                return libvirt_error(reterr, "Cannot get the online CPUs");
        if (n < 0)
                r = guess_online_cpus(poll->snapshot, n_cpus, &poll->snapshot->online_cpus);
        for (int cpu = 0; cpu < n && r == 0; cpu++)
                if (VIR_CPU_USED(map, cpu))
                        r = cpu_set_add(&poll->snapshot->online_cpus, (unsigned)cpu);
        return r < 0 ? error_setf(reterr, r, "Online CPUs: %s", strerror(-r)) : 0;
}

static int poll_host(Poll *poll, Error *reterr)
{
        virNodeInfo info;
        int r;

        r = poll_names(poll, reterr);
        if (r < 0)
                return r;
        if (virNodeGetInfo(poll->connection, &info) < 0)
                return libvirt_error(reterr, "Cannot get the size of the host");
        poll->snapshot->memory_kib = info.memory;
        r = poll_capabilities(poll, reterr);
        if (r < 0)
                return r;
        return poll_online_cpus(poll, info.cpus, reterr);
}

/* Devices */

static int add_device(Poll *poll, NodeDevice *device)
{
        Snapshot *snapshot = poll->snapshot;

        if (array_grow(&snapshot->devices, sizeof(SnapshotDevice), snapshot->n_devices,
                       &poll->n_devices_allocated) < 0)
                return -ENOMEM;
        snapshot->devices[snapshot->n_devices++] = device->device;
        device->device = (SnapshotDevice){ 0 };
        return 0;
}

static int add_mdev(Poll *poll, NodeDevice *device)
{
        Snapshot *snapshot = poll->snapshot;

        if (array_grow(&snapshot->mdevs, sizeof(SnapshotMdev), snapshot->n_mdevs,
                       &poll->n_mdevs_allocated) < 0)
                return -ENOMEM;
        snapshot->mdevs[snapshot->n_mdevs++] = device->mdev;
        device->mdev = (SnapshotMdev){ 0 };
        return 0;
}

/* One device: the place for a cache of what was read before, by name and dropped on events. */
static int poll_device(Poll *poll, virNodeDevicePtr handle, StringSet *vdpa_parents, Error *reterr)
{
        _cleanup_free_ char *xml = virNodeDeviceGetXMLDesc(handle, 0);
        _cleanup_(node_device_done) NodeDevice device = { 0 };
        int r;

        if (!xml && libvirt_error_is_gone())
                return 0;
        if (!xml)
                return libvirt_error(reterr, "Cannot read a device");
        r = node_device_parse(xml, &device, reterr);
        if (r < 0)
                return r;
        if (device.kind == NODE_DEVICE_DEVICE)
                r = add_device(poll, &device);
        else if (device.kind == NODE_DEVICE_MDEV)
                r = add_mdev(poll, &device);
        else if (device.kind == NODE_DEVICE_VDPA)
                r = string_set_add(vdpa_parents, device.parent);
        return r < 0 ? error_oom(reterr) : 0;
}

/* The number of devices, or -1 with libvirt's error. */
static int list_devices(virConnectPtr connection, virNodeDevicePtr **ret)
{
        const unsigned kinds = VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV |
                               VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES |
                               VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV |
                               VIR_CONNECT_LIST_NODE_DEVICES_CAP_VDPA;
        int n;

        /* a mediated device that is defined and not started takes nothing from its parent */
        n = virConnectListAllNodeDevices(connection, ret,
                                         kinds | VIR_CONNECT_LIST_NODE_DEVICES_ACTIVE);
        if (n < 0 && libvirt_error_is_unsupported())
                n = virConnectListAllNodeDevices(connection, ret, kinds);
        return n;
}

static int poll_devices(Poll *poll, Error *reterr)
{
        _cleanup_(string_set_done) StringSet vdpa_parents = STRING_SET_INIT;
        virNodeDevicePtr *devices = NULL;
        int n, r = 0;

        n = list_devices(poll->connection, &devices);
        if (n < 0 && libvirt_error_is_unsupported())
                return 0;
        if (n < 0)
                return libvirt_error(reterr, "Cannot list the devices");
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = poll_device(poll, devices[i], &vdpa_parents, reterr);
                virNodeDeviceFree(devices[i]);
        }
        free(devices);
        for (size_t i = 0; i < poll->snapshot->n_devices; i++)
                poll->snapshot->devices[i].is_vdpa_parent =
                        string_set_contains(&vdpa_parents, poll->snapshot->devices[i].name);
        return r;
}

/* Domains */

static DomainState translate_state(virDomainPtr handle, int state)
{
        switch (state) {
        case VIR_DOMAIN_RUNNING:
        case VIR_DOMAIN_BLOCKED:
                return DOMAIN_RUNNING;
        case VIR_DOMAIN_SHUTOFF:
                return DOMAIN_SHUTOFF;
        default:
                /* a crashed guest may have been preserved, with all it has: active ones have an id
                 */
                return virDomainGetID(handle) == (unsigned)-1 ? DOMAIN_SHUTOFF : DOMAIN_PAUSED;
        }
}

/* 1 when it was read, 0 when it is gone. */
static int read_domain(virDomainPtr handle, SnapshotDomain *domain, Error *reterr)
{
        _cleanup_free_ char *xml = NULL;
        int state, persistent, r;

        if (virDomainGetState(handle, &state, NULL, 0) < 0 ||
            (persistent = virDomainIsPersistent(handle)) < 0 ||
            !(xml = virDomainGetXMLDesc(handle, 0)))
                return libvirt_error_is_gone() ? 0 : libvirt_error(reterr, "Cannot read a domain");
        r = domain_parse(xml, domain, reterr);
        if (r < 0)
                return r;
        domain->state = translate_state(handle, state);
        domain->persistent = persistent == 1;
        return 1;
}

static int poll_domain(Poll *poll, virDomainPtr handle, Error *reterr)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
        Snapshot *snapshot = poll->snapshot;
        int r;

        r = read_domain(handle, &domain, reterr);
        if (r <= 0)
                return r;
        if (array_grow(&snapshot->domains, sizeof(SnapshotDomain), snapshot->n_domains,
                       &poll->n_domains_allocated) < 0)
                return error_oom(reterr);
        snapshot->domains[snapshot->n_domains++] = domain;
        domain = (SnapshotDomain){ 0 };
        return 0;
}

static int poll_domains(Poll *poll, Error *reterr)
{
        virDomainPtr *domains = NULL;
        int n, r = 0;

        n = virConnectListAllDomains(poll->connection, &domains, 0);
        if (n < 0)
                return libvirt_error(reterr, "Cannot list the domains");
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = poll_domain(poll, domains[i], reterr);
                virDomainFree(domains[i]);
        }
        free(domains);
        return r;
}

/* The rest */

static int poll_disk(const char *path, uint64_t *ret_bytes, Error *reterr)
{
        struct statvfs fs;

        if (!path || !path[0])
                return 0;
        if (statvfs(path, &fs) < 0) {
                if (errno == ENOENT || errno == ENOTDIR)
                        return 0;
                return error_setf(reterr, errno, "[DEFAULT] instances_path: %.100s: %s", path,
                                  strerror(errno));
        }
        if (u64_mul_overflow(fs.f_blocks, fs.f_frsize, ret_bytes))
                *ret_bytes = INT64_MAX;
        return 0;
}

static uint64_t now_realtime_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

int libvirt_poll(virConnectPtr connection, const char *instances_path, Snapshot **ret,
                 Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        Poll poll = { .connection = connection };
        int r;

        if (snapshot_new(&snapshot) < 0)
                return error_oom(reterr);
        poll.snapshot = snapshot;
        if ((r = poll_host(&poll, reterr)) < 0 || (r = poll_devices(&poll, reterr)) < 0 ||
            (r = poll_domains(&poll, reterr)) < 0 ||
            (r = poll_disk(instances_path, &snapshot->disk_total_bytes, reterr)) < 0)
                return r;
        snapshot->taken_realtime_usec = now_realtime_usec();
        r = snapshot_seal(snapshot, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(snapshot);
        return 0;
}
