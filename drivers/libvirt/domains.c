/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/domains.h"

#include <errno.h>
#include <libvirt/virterror.h>
#include <string.h>

#include "base/array.h"
#include "drivers/libvirt/domain.h"
#include "drivers/libvirt/error.h"

#define STATE_UNKNOWN (-1)

typedef struct DomainPoll {
        virConnectPtr connection;
        PollCache *cache;
        Snapshot *snapshot;
        size_t n_allocated;
} DomainPoll;

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

/* What is listed as off is that; the rest is asked for. */
static int read_state(virDomainPtr handle, int *state)
{
        return *state == VIR_DOMAIN_SHUTOFF ? 0 : virDomainGetState(handle, state, NULL, 0);
}

/* As much as can be known of one that cannot be read. It is not kept: the next poll tries again. */
static int add_unread(DomainPoll *poll, virDomainPtr handle, int state, const char *uuid)
{
        Snapshot *snapshot = poll->snapshot;
        SnapshotDomain domain = { .unread = true };
        const char *name = virDomainGetName(handle);
        virDomainInfo info;

        if (uuid_from_text(uuid, &domain.uuid) < 0)
                return 0;
        if (virDomainGetInfo(handle, &info) == 0) {
                state = info.state;
                domain.vcpus = info.nrVirtCpu;
                domain.memory_kib = info.maxMem;
        }
        domain.state = state == STATE_UNKNOWN ? DOMAIN_PAUSED : translate_state(handle, state);
        domain.name = strdup(name ? name : "");
        if (!domain.name || array_grow(&snapshot->domains, sizeof(SnapshotDomain),
                                       snapshot->n_domains, &poll->n_allocated) < 0) {
                free(domain.name);
                return -ENOMEM;
        }
        snapshot->domains[snapshot->n_domains++] = domain;
        return 0;
}

static int leave_out(DomainPoll *poll, virDomainPtr handle, int state, const char *uuid, int r,
                     Error *error, Error *reterr)
{
        const char *name = virDomainGetName(handle);

        error_prefixf(error, r, "Guest %.60s (%s) cannot be read", name ? name : "?", uuid);
        r = libvirt_leave_out(poll->connection, poll->snapshot, r, error, reterr);
        if (r == 0 && add_unread(poll, handle, state, uuid) < 0)
                r = error_oom(reterr);
        return r;
}

/* 1 when it was read, 0 when it is gone. */
static int read_domain(DomainPoll *poll, virDomainPtr handle, int state, const char *uuid,
                       const SnapshotDomain **ret, Error *reterr)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
        _cleanup_free_ char *xml = NULL;
        int r;

        if (read_state(handle, &state) < 0 || !(xml = virDomainGetXMLDesc(handle, 0)))
                return libvirt_error_is_gone() ? 0 : libvirt_error(reterr, "Domain");
        r = domain_parse(xml, &domain, reterr);
        if (r < 0)
                return r;
        domain.state = translate_state(handle, state);
        return poll_cache_put_domain(poll->cache, uuid, &domain, ret) < 0 ? error_oom(reterr) : 1;
}

/* state is libvirt's, or STATE_UNKNOWN. */
static int poll_domain(DomainPoll *poll, virDomainPtr handle, int state, Error *reterr)
{
        Snapshot *snapshot = poll->snapshot;
        char uuid[VIR_UUID_STRING_BUFLEN];
        const SnapshotDomain *domain;
        Error error = ERROR_NULL;
        int r = 1;

        if (virDomainGetUUIDString(handle, uuid) < 0)
                return libvirt_error(reterr, "Cannot get the uuid of a domain");
        domain = poll_cache_find_domain(poll->cache, uuid);
        if (!domain || (state != STATE_UNKNOWN && domain->state != translate_state(handle, state)))
                r = read_domain(poll, handle, state, uuid, &domain, &error);
        if (r < 0)
                return leave_out(poll, handle, state, uuid, r, &error, reterr);
        if (r == 0)
                return 0;
        if (array_grow(&snapshot->domains, sizeof(SnapshotDomain), snapshot->n_domains,
                       &poll->n_allocated) < 0 ||
            snapshot_domain_copy(&snapshot->domains[snapshot->n_domains], domain) < 0)
                return error_oom(reterr);
        snapshot->n_domains++;
        return 0;
}

static int state_of_record(const virDomainStatsRecord *record)
{
        int state;

        if (virTypedParamsGetInt(record->params, record->nparams, "state.state", &state) != 1)
                return STATE_UNKNOWN;
        return state;
}

static int poll_listed(virConnectPtr connection, DomainPoll *poll, Error *reterr)
{
        virDomainPtr *domains = NULL;
        int n, r = 0;

        n = virConnectListAllDomains(connection, &domains, 0);
        if (n < 0)
                return libvirt_error(reterr, "Cannot list the domains");
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = poll_domain(poll, domains[i], STATE_UNKNOWN, reterr);
                virDomainFree(domains[i]);
        }
        free(domains);
        return r;
}

int libvirt_poll_domains(virConnectPtr connection, PollCache *cache, Snapshot *snapshot,
                         Error *reterr)
{
        DomainPoll poll = { .connection = connection, .cache = cache, .snapshot = snapshot };
        virDomainStatsRecordPtr *records = NULL;
        int n, r = 0;

        n = virConnectGetAllDomainStats(connection, VIR_DOMAIN_STATS_STATE, &records, 0);
        if (n < 0 && libvirt_error_is_unsupported())
                return poll_listed(connection, &poll, reterr);
        if (n < 0)
                return libvirt_error(reterr, "Cannot list the domains");
        for (int i = 0; i < n && r == 0; i++)
                r = poll_domain(&poll, records[i]->dom, state_of_record(records[i]), reterr);
        virDomainStatsRecordListFree(records);
        return r;
}
