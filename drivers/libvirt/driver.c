/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Implements the driver "libvirt": a connection, a poll for each request, and facts that are read
 * once for each connection and again for DRIVER_POLL_ALL. A poll connects again only if the
 * connection is missing or broken. Facts that cannot be read fail each poll until they were read
 * once over the connection, and are a problem of the snapshot later. Three threads take part,
 * beside the one of drivers/disk-check.c.
 *
 * The main thread requests polls and takes their results from the mailbox (drivers/poll-thread.h).
 * The virt thread connects if necessary, polls, and posts a snapshot or a failure. It makes all
 * calls to the hypervisor, so a hypervisor that hangs stops only this thread. The thread of
 * libvirt's event loop (libvirt_event_loop_start()) sends keepalives, which end a hanging call on
 * the virt thread. It also runs the callbacks of drivers/libvirt/connection.c.
 *
 * Limits: keepalive works only on an open connection. If the daemon is stopped while the connection
 * opens, the poll hangs until the daemon continues or its socket closes.
 *
 * Tests: tests/unit/drivers/libvirt/test-driver.c */

#include "drivers/libvirt/driver.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "drivers/libvirt/connection.h"
#include "drivers/libvirt/error.h"
#include "drivers/libvirt/facts.h"
#include "drivers/libvirt/poll.h"

/* The connection, and the facts about the hypervisor. Both are replaced when the connection is
 * lost; facts are also read again by DRIVER_POLL_ALL. */
typedef struct Link {
        LibvirtConnection *connection;
        Snapshot *facts;
        Error facts_error; /* why the last attempt to read the facts again failed */
} Link;

/* Copies of options, because a thread that hangs outlives the configuration. */
typedef struct LibvirtState {
        char *uri;
        LibvirtConfig address;     /* borrows uri */
        DiskCheck *disk;           /* reads the size of the disk, and the folders of servers */
        char *images_storage_pool; /* NULL: none */
        HostConfig facts_config;   /* the options of libvirt_facts_read(); owns its lists */
        Link link;                 /* only the virt thread uses it */
} LibvirtState;

static void state_free(void *data)
{
        LibvirtState *state = data;

        if (!state)
                return;
        free(state->uri);
        disk_check_unref(state->disk);
        free(state->images_storage_pool);
        strings_free(state->facts_config.cpu_models);
        strings_free(state->facts_config.cpu_model_extra_flags);
        free(state);
}

/* The virt thread */

static void link_done(Link *link)
{
        link->facts = snapshot_unref(link->facts);
        link->connection = libvirt_connection_free(link->connection);
}

/* Reads the facts. Domain capabilities need a writable connection, because libvirt runs the
 * emulator to get them. The connection is closed at once. If the facts cannot be read, for example
 * because polkit is down, earlier facts stay and facts_error has the reason. */
static int read_facts(const LibvirtState *state, Link *link, Error *reterr)
{
        Error error = ERROR_NULL;
        Snapshot *facts = NULL;
        virConnectPtr handle;
        int r = libvirt_connect(&handle, &state->address, 0, &error);

        if (r == 0) {
                r = libvirt_facts_read(&facts, handle, &state->facts_config, &error);
                virConnectClose(handle);
        }
        link->facts_error = ERROR_NULL;
        if (r < 0 && link->facts) {
                link->facts_error = error;
                error_prefixf(
                        &link->facts_error, r,
                        "Cannot read the domain capabilities again; the traits of guests stay unchanged");
                return 0;
        }
        if (r < 0) {
                if (reterr)
                        *reterr = error;
                return r;
        }
        snapshot_unref(link->facts);
        link->facts = facts;
        return 0;
}

/* Connects again if the connection is missing or broken. Reads the facts if there are none, and for
 * DRIVER_POLL_ALL. */
static int ensure_link(const LibvirtState *state, Link *link, DriverPollKind kind, Mailbox *mailbox,
                       Error *reterr)
{
        int r = 0;

        if (!link->connection || !libvirt_connection_is_alive(link->connection)) {
                link_done(link);
                r = libvirt_connection_open(&link->connection, &state->address, VIR_CONNECT_RO,
                                            mailbox, reterr);
        }
        if (r == 0 && (!link->facts || kind == DRIVER_POLL_ALL))
                r = read_facts(state, link, reterr);
        return r;
}

/* Reads the size of a storage pool in bytes. The words of an error name the option. */
static int read_pool(virConnectPtr connection, const char *name, uint64_t *ret_bytes, Error *reterr)
{
        virStoragePoolPtr pool = virStoragePoolLookupByName(connection, name);
        virStoragePoolInfo info;
        int r = 0;

        if (!pool)
                return error_prefixf(reterr, libvirt_error(reterr, "Cannot find the storage pool"),
                                     "[libvirt] images_storage_pool = %.60s", name);
        if (virStoragePoolGetInfo(pool, &info) < 0)
                r = error_prefixf(reterr, libvirt_error(reterr, "Cannot get its size"),
                                  "[libvirt] images_storage_pool = %.60s", name);
        else if (info.state == VIR_STORAGE_POOL_INACTIVE)
                r = error_setf(
                        reterr, EIO,
                        "[libvirt] images_storage_pool = %.60s: the pool is not active. Start it with \"virsh pool-start\"",
                        name);
        else
                *ret_bytes = info.capacity;
        virStoragePoolFree(pool);
        return r;
}

/* Polls and adds the facts. The storage pool, if one is configured, replaces the size of the file
 * system. If it cannot be read, disk_error has the reason and the size is 0. */
static int poll_link(const LibvirtState *state, const Link *link, DriverPollKind kind,
                     Snapshot **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        virConnectPtr connection = link->connection->handle;
        int r;

        r = libvirt_poll(connection, link->connection->cache, kind, state->disk, &snapshot, reterr);
        if (r == 0 && (libvirt_facts_apply(link->facts, snapshot) < 0 ||
                       (link->facts_error.code &&
                        snapshot_add_problem(snapshot, link->facts_error.text) < 0)))
                r = error_oom(reterr);
        if (r < 0)
                return r;
        if (state->images_storage_pool) {
                snapshot->disk_total_bytes = 0;
                snapshot->disk_error = ERROR_NULL;
                (void)read_pool(connection, state->images_storage_pool, &snapshot->disk_total_bytes,
                                &snapshot->disk_error);
        }
        *ret = TAKE_PTR(snapshot);
        return 0;
}

/* Connects if necessary, polls, and posts the result. A loss during the poll is posted after the
 * snapshot, which would replace it. */
static void poll_once(void *data, DriverPollKind kind, Mailbox *mailbox)
{
        LibvirtState *state = data;
        Link *link = &state->link;
        Snapshot *snapshot;
        Error error = ERROR_NULL;
        int r;

        r = ensure_link(state, link, kind, mailbox, &error);
        if (r == 0)
                r = poll_link(state, link, kind, &snapshot, &error);
        if (r < 0) {
                error_prefixf(&error, r, "%.60s", state->uri);
                mailbox_post_error(mailbox, DRIVER_EVENT_POLL_FAILED, &error);
                return;
        }
        mailbox_post_snapshot(mailbox, snapshot);
        libvirt_connection_report_loss(link->connection);
}

static void close_link(void *data)
{
        link_done(&((LibvirtState *)data)->link);
}

/* The main thread */

static void inherit(void *data, void *before)
{
        disk_check_inherit(&((LibvirtState *)data)->disk, ((LibvirtState *)before)->disk);
}

static int copy_options(LibvirtState *state, const DriverConfig *config)
{
        const HostConfig *host = &config->host;
        HostConfig *facts = &state->facts_config;
        const char *pool = host->images_storage_pool;

        facts->virt_type = host->virt_type;
        facts->cpu_mode = host->cpu_mode;
        if (!(state->uri = strdup(config->libvirt.connection_uri)) ||
            (pool && !(state->images_storage_pool = strdup(pool))) ||
            disk_check_new(&state->disk, host) < 0 ||
            strings_copy(host->cpu_models, &facts->cpu_models) < 0 ||
            strings_copy(host->cpu_model_extra_flags, &facts->cpu_model_extra_flags) < 0)
                return -ENOMEM;
        state->address = config->libvirt;
        state->address.connection_uri = state->uri;
        return 0;
}

static LibvirtState *state_new(const DriverConfig *config)
{
        LibvirtState *state = calloc(1, sizeof(LibvirtState));

        if (state && copy_options(state, config) == 0)
                return state;
        state_free(state);
        return NULL;
}

/* Creates the source and starts the event loop, but does not connect. */
static int libvirt_open(const DriverConfig *config, PollSource *ret, Error *reterr)
{
        LibvirtState *state;
        int r;

        if (!config->libvirt.connection_uri || !config->libvirt.connection_uri[0])
                return error_setf(reterr, EINVAL, "[libvirt] connection_uri: not set");
        r = libvirt_event_loop_start(reterr);
        if (r < 0)
                return r;
        state = state_new(config);
        if (!state)
                return error_oom(reterr);
        *ret = (PollSource){ .poll = poll_once,
                             .close = close_link,
                             .inherit = inherit,
                             .free = state_free,
                             .fd = -1,
                             .address = state->uri,
                             .data = state };
        return 0;
}

const DriverOps libvirt_driver_ops = { .name = "libvirt", .open = libvirt_open };
