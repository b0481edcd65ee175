/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/poll.h"

#include <libvirt/virterror.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "drivers/host/sysfs.h"
#include "drivers/libvirt/capabilities.h"
#include "drivers/libvirt/devices.h"
#include "drivers/libvirt/domains.h"
#include "drivers/libvirt/error.h"

/* A snapshot in the making. */
typedef struct Poll {
        virConnectPtr connection;
        Snapshot *snapshot;
} Poll;

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
        if ((r = snapshot_set_text(&poll->snapshot->driver, "libvirt", reterr)) < 0 ||
            (r = snapshot_set_text(&poll->snapshot->nodename, hostname, reterr)) < 0 ||
            (r = snapshot_set_text(&poll->snapshot->hypervisor, type, reterr)) < 0)
                return r;
        poll->snapshot->hypervisor_version = version;
        return 0;
}

static int poll_capabilities(Poll *poll, Error *reterr)
{
        _cleanup_free_ char *xml = virConnectGetCapabilities(poll->connection);

        return xml ? capabilities_parse(xml, poll->snapshot, reterr)
                   : libvirt_error(reterr, "Cannot get the capabilities of the host");
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
        for (int cpu = 0; cpu < n && r == 0; cpu++) {
                r = cpu_set_add(&poll->snapshot->present_cpus, (unsigned)cpu);
                if (r == 0 && VIR_CPU_USED(map, cpu))
                        r = cpu_set_add(&poll->snapshot->online_cpus, (unsigned)cpu);
        }
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
        r = poll_online_cpus(poll, info.cpus, reterr);
        if (r < 0)
                return r;
        return sysfs_complete_cells("/sys", poll->snapshot) < 0 ? error_oom(reterr) : 0;
}

/* The rest */

static int poll_all(Poll *poll, PollCache *cache, DiskCheck *check, Error *reterr)
{
        Snapshot *snapshot = poll->snapshot;
        int r;

        if ((r = poll_host(poll, reterr)) < 0 ||
            (r = libvirt_poll_devices(poll->connection, cache, snapshot, reterr)) < 0 ||
            (r = libvirt_poll_domains(poll->connection, cache, snapshot, reterr)) < 0)
                return r;
        disk_check_run(check, DISK_CHECK_TIMEOUT_USEC, snapshot);
        snapshot->taken_realtime_usec = clock_usec(CLOCK_REALTIME);
        return snapshot_seal(snapshot, reterr);
}

int libvirt_poll(virConnectPtr connection, PollCache *cache, DriverPollKind kind, DiskCheck *disk,
                 Snapshot **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        Poll poll = { .connection = connection };
        int r;

        if (snapshot_new(&snapshot) < 0)
                return error_oom(reterr);
        poll.snapshot = snapshot;
        snapshot->begun_realtime_usec = clock_usec(CLOCK_REALTIME);
        snapshot->began_usec = clock_usec(CLOCK_MONOTONIC);
        poll_cache_begin(cache, snapshot->began_usec, kind);
        r = poll_all(&poll, cache, disk, reterr);
        poll_cache_end(cache, r >= 0);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(snapshot);
        return 0;
}
