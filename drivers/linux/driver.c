/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Implements the driver "linux". A poll reads the host on the poll thread (drivers/poll-thread.h),
 * which also receives kernel events. The last snapshot is kept. While no event comes, parts that
 * cannot change without one are copied from it, for LIFE_USEC at most. The serial number of a PCI
 * function is also copied after an event and without kernel events, but never to another device at
 * its address. A number that was not readable is not tried again before DRIVER_POLL_ALL, unless the
 * snapshot has a problem. DRIVER_POLL_ALL, and the poll after a snapshot with problems, copy
 * nothing. A failed poll counts as an event. An event during a poll counts for the next one.
 *
 * Facts that only libvirt knows are missing. Guests are unknown. With a storage pool the size of
 * the disk is unknown, which is a disk_error. The features of the host's CPU are left out if the
 * configuration gives guests another CPU model or extra flags.
 *
 * Tests: tests/integration/driver/test_linux.py tests/unit/drivers/linux/test-reader.c */

#include "drivers/linux/driver.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "drivers/disk-check.h"
#include "drivers/linux/reader.h"

/* Age at which everything but serial numbers is read again. */
#define LIFE_USEC (10 * 60 * USEC_PER_SEC)

typedef struct LinuxState {
        DiskCheck *disk;
        bool has_pool;                /* libvirt has the disks in a storage pool */
        bool features;                /* guests have the features of the host's CPU */
        bool serials, serials_needed; /* see LinuxReader */
        int uevents;                  /* socket of kernel events; < 0: none */
        bool changed;                 /* an event came since the last poll began */
        uint64_t read_usec;           /* start of the last poll that was not LinuxReader.quiet,
                                         CLOCK_MONOTONIC */
        /* the last good snapshot; NULL: none */
        Snapshot *last;
} LinuxState;

static void state_free(void *data)
{
        LinuxState *state = data;

        closep(&state->uevents);
        snapshot_unref(state->last);
        disk_check_unref(state->disk);
        free(state);
}

/* Sets the name that libvirt would report: the fully qualified one, if the resolver knows it. It is
 * the short one while the resolver does not answer. Can block, so a poll that copies parts of the
 * last snapshot copies this name, too. */
static int read_nodename(const char *name, Snapshot *snapshot, Error *reterr)
{
        static const char local[] = "localhost";
        const struct addrinfo hints = { .ai_flags = AI_CANONNAME };
        struct addrinfo *found = NULL;
        int r;

        if (strncmp(name, local, strlen(local)) != 0 && !strchr(name, '.') &&
            getaddrinfo(name, NULL, &hints, &found) == 0 && found->ai_canonname &&
            strncmp(found->ai_canonname, local, strlen(local)) != 0)
                name = found->ai_canonname;
        r = snapshot_set_text(&snapshot->nodename, name, reterr);
        if (found)
                freeaddrinfo(found);
        return r;
}

/* Sets the names and the version. The version is that of the kernel, in libvirt's form. */
static int read_names(const LinuxReader *reader, Error *reterr)
{
        Snapshot *snapshot = reader->snapshot;
        struct utsname names;
        unsigned major = 0, minor = 0, micro = 0;
        const char *arch = names.machine;
        int r;

        if (uname(&names) < 0)
                return error_setf(reterr, errno, "uname: %s", strerror(errno));
        if (arch[0] == 'i' && strcmp(arch + 2, "86") == 0)
                arch = "i686";
        (void)sscanf(names.release, "%u.%u.%u", &major, &minor, &micro);
        snapshot->hypervisor_version = (uint64_t)major * 1000000 + minor * 1000 + micro;
        if ((r = snapshot_set_text(&snapshot->driver, "linux", reterr)) < 0 ||
            (r = snapshot_set_text(&snapshot->hypervisor, "Linux", reterr)) < 0 ||
            (r = snapshot_set_text(&snapshot->arch, arch, reterr)) < 0)
                return r;
        return reader->quiet
                       ? snapshot_set_text(&snapshot->nodename, reader->last->nodename, reterr)
                       : read_nodename(names.nodename, snapshot, reterr);
}

/* Reads all parts. The names come first, because linux_read_host() needs the architecture. */
static int read_host(const LinuxState *state, LinuxReader *reader, Error *reterr)
{
        Snapshot *snapshot = reader->snapshot;
        int r;

        if ((r = read_names(reader, reterr)) < 0 || (r = linux_read_host(reader, reterr)) < 0 ||
            (r = linux_read_devices(reader, reterr)) < 0)
                return r;
        if (!state->features)
                string_set_done(&snapshot->cpu_features);
        disk_check_run(state->disk, DISK_CHECK_TIMEOUT_USEC, snapshot);
        if (state->has_pool) {
                snapshot->disk_total_bytes = 0;
                error_setf(
                        &snapshot->disk_error, EOPNOTSUPP,
                        "[libvirt] images_storage_pool: the driver \"linux\" does not use libvirt");
        }
        snapshot->guests_unknown = true;
        snapshot->taken_realtime_usec = clock_usec(CLOCK_REALTIME);
        return snapshot_seal(snapshot, reterr);
}

/* Polls the host. After a failure the next poll reads everything that can change with an event.
 * Without the kernel's events, only serial numbers are copied. */
static void poll_once(void *data, DriverPollKind kind, Mailbox *mailbox)
{
        LinuxState *state = data;
        LinuxReader reader = { .sys = "/sys",
                               .proc = "/proc",
                               .serials = state->serials,
                               .serials_needed = state->serials_needed };
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;
        int r = snapshot_new(&snapshot);

        if (r < 0)
                error_oom(&error);
        if (r == 0) {
                reader.snapshot = snapshot;
                snapshot->began_usec = clock_usec(CLOCK_MONOTONIC);
                if (state->uevents >= 0 && uevents_read(state->uevents))
                        state->changed = true;
                /* after problems nothing is copied, so that each part is tried again */
                if (kind != DRIVER_POLL_ALL && state->last && state->last->problems.n_items == 0)
                        reader.last = state->last;
                reader.quiet = reader.last && state->uevents >= 0 && !state->changed &&
                               snapshot->began_usec - state->read_usec < LIFE_USEC;
                state->changed = false;
                r = read_host(state, &reader, &error);
        }
        if (r < 0) {
                state->changed = true;
                error_prefixf(&error, r, "This host");
                mailbox_post_error(mailbox, DRIVER_EVENT_POLL_FAILED, &error);
                return;
        }
        if (!reader.quiet)
                state->read_usec = snapshot->began_usec;
        snapshot_unref(state->last);
        state->last = snapshot_ref(snapshot);
        mailbox_post_snapshot(mailbox, TAKE_PTR(snapshot));
}

static void inherit(void *data, void *before)
{
        disk_check_inherit(&((LinuxState *)data)->disk, ((LinuxState *)before)->disk);
}

/* Reads the pending events. Runs between polls on the poll thread. */
static void listen_to_events(void *data, Mailbox *mailbox)
{
        LinuxState *state = data;

        if (!uevents_read(state->uevents))
                return;
        state->changed = true;
        mailbox_post_changed(mailbox);
}

/* Returns whether a serial number that cannot be read is a problem: a remote_managed function is
 * not offered without one. */
static bool needs_serials(const PciSpecs *specs)
{
        for (size_t i = 0; i < specs->n_items; i++)
                if (specs->items[i]->remote_managed)
                        return true;
        return false;
}

/* Creates the source. Without a socket for events, every poll reads everything but the serial
 * numbers that it knows. */
static int linux_open(const DriverConfig *config, PollSource *ret, Error *reterr)
{
        LinuxState *state = calloc(1, sizeof(LinuxState));
        const HostConfig *host = &config->host;

        if (!state)
                return error_oom(reterr);
        state->uevents = uevents_open();
        state->features = host->cpu_mode != HOST_CPU_CUSTOM && host->cpu_mode != HOST_CPU_NONE &&
                          !(host->cpu_model_extra_flags && host->cpu_model_extra_flags[0]);
        state->serials_needed = needs_serials(&host->pci_specs);
        state->serials = host->pci_specs.n_items > 0 || host->n_mdev_types > 0;
        state->has_pool = host->images_storage_pool;
        if (disk_check_new(&state->disk, host) < 0) {
                state_free(state);
                return error_oom(reterr);
        }
        *ret = (PollSource){ .poll = poll_once,
                             .listen = listen_to_events,
                             .inherit = inherit,
                             .free = state_free,
                             .fd = state->uevents,
                             .address = "",
                             .data = state };
        return 0;
}

const DriverOps linux_driver_ops = { .name = "linux", .open = linux_open };
