/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Three threads take part:
 *
 *   main     orders polls and takes from the mailbox (drivers/poll-thread.h).
 *   virt     for each order connects if it is not connected, polls, and posts a snapshot or a
 *            failure. The only one that makes libvirt calls, so the only one that a hypervisor
 * which hangs can stop. events   libvirt's own loop (drivers/libvirt/event-loop.h): sends
 * keepalives, which end a hung call on the virt thread, and runs the callbacks of
 * drivers/libvirt/connection.c.
 *
 * LIMITATIONS: keepalive begins when a connection is open. Against a daemon that is stopped before
 * that, the poll hangs in the opening until the daemon goes on or its socket closes. */

#include "drivers/libvirt/driver.h"

#include <errno.h>
#include <string.h>

#include "drivers/libvirt/connection.h"
#include "drivers/libvirt/event-loop.h"
#include "drivers/libvirt/facts.h"
#include "drivers/libvirt/poll.h"
#include "drivers/poll-thread.h"

/* The connection, and what is read once over each, and when everything is to be read. */
typedef struct Link {
        LibvirtConnection *connection;
        LibvirtFacts *facts;
        Error facts_error; /* why they could not be read anew when that was asked for */
} Link;

typedef struct LibvirtState {
        char *uri;
        char *instances_path;
        char *images_storage_pool; /* NULL: none */
        char **cpu_models, **cpu_model_extra_flags;
        LibvirtFactsOptions facts_options;
        unsigned keepalive_interval;
        unsigned keepalive_count;
        Link link; /* the virt thread's */
} LibvirtState;

static void free_strings(char **strings)
{
        for (char **string = strings; string && *string; string++)
                free(*string);
        free(strings);
}

static void state_free(void *data)
{
        LibvirtState *state = data;

        free(state->uri);
        free(state->instances_path);
        free(state->images_storage_pool);
        free_strings(state->cpu_models);
        free_strings(state->cpu_model_extra_flags);
        free(state);
}

/* The virt thread */

static LibvirtAddress get_address(const LibvirtState *state)
{
        return (LibvirtAddress){ .uri = state->uri,
                                 .keepalive_interval = state->keepalive_interval,
                                 .keepalive_count = state->keepalive_count };
}

static void link_done(Link *link)
{
        link->facts = libvirt_facts_free(link->facts);
        link->connection = libvirt_connection_free(link->connection);
}

/* Domain capabilities are only told over a connection that may also write, because libvirt runs the
 * emulator for them. It is closed when they were read. Where it is refused (polkit may be away),
 * what was read before stays. */
static int read_facts(const LibvirtState *state, Link *link, Error *reterr)
{
        Error error = ERROR_NULL;
        const LibvirtAddress address = get_address(state);
        LibvirtFacts *facts = NULL;
        virConnectPtr handle;
        int r = libvirt_connect(&handle, &address, 0, &error);

        if (r == 0) {
                r = libvirt_facts_read(&facts, handle, &state->facts_options, &error);
                virConnectClose(handle);
        }
        link->facts_error = ERROR_NULL;
        if (r < 0 && link->facts) {
                link->facts_error = error;
                error_prefixf(
                        &link->facts_error, r,
                        "What guests may have cannot be read anew, and is reported as before");
                return 0;
        }
        if (r < 0) {
                if (reterr)
                        *reterr = error;
                return r;
        }
        libvirt_facts_free(link->facts);
        link->facts = facts;
        return 0;
}

static int ensure_link(const LibvirtState *state, Link *link, DriverPollKind kind, Mailbox *mailbox,
                       Error *reterr)
{
        const LibvirtAddress address = get_address(state);
        int r = 0;

        if (!link->connection || !libvirt_connection_is_alive(link->connection)) {
                link_done(link);
                r = libvirt_connection_open(&link->connection, &address, VIR_CONNECT_RO, mailbox,
                                            reterr);
        }
        if (r == 0 && (!link->facts || kind == DRIVER_POLL_ALL))
                r = read_facts(state, link, reterr);
        return r;
}

static int poll_link(const LibvirtState *state, const Link *link, DriverPollKind kind,
                     Snapshot **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        virConnectPtr connection = libvirt_connection_get(link->connection);
        bool pool = state->images_storage_pool;
        int r;

        r = libvirt_poll(connection, libvirt_connection_cache(link->connection), kind,
                         pool ? NULL : state->instances_path, &snapshot, reterr);
        if (r == 0 && (libvirt_facts_apply(link->facts, snapshot) < 0 ||
                       (link->facts_error.code &&
                        snapshot_add_problem(snapshot, link->facts_error.text) < 0)))
                r = error_oom(reterr);
        if (r < 0)
                return r;
        if (pool)
                (void)libvirt_read_pool(connection, state->images_storage_pool,
                                        &snapshot->disk_total_bytes, &snapshot->disk_error);
        *ret = TAKE_PTR(snapshot);
        return 0;
}

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

static int copy_strings(char *const strings[], char ***ret)
{
        size_t n = 0;
        char **copy;

        while (strings && strings[n])
                n++;
        copy = calloc(n + 1, sizeof(char *));
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        for (size_t i = 0; i < n; i++)
                if (!(copy[i] = strdup(strings[i])))
                        return -ENOMEM;
        return 0;
}

static int copy_options(LibvirtState *state, const DriverConfig *config)
{
        static const char *const domain_types[_DRIVER_VIRT_TYPE_MAX] = {
                [DRIVER_VIRT_KVM] = "kvm",
                [DRIVER_VIRT_QEMU] = "qemu",
                [DRIVER_VIRT_LXC] = "lxc",
                [DRIVER_VIRT_PARALLELS] = "parallels",
        };
        const char *pool = config->images_storage_pool;

        if ((pool && pool[0] && !(state->images_storage_pool = strdup(pool))) ||
            copy_strings(config->cpu_models, &state->cpu_models) < 0 ||
            copy_strings(config->cpu_model_extra_flags, &state->cpu_model_extra_flags) < 0)
                return -ENOMEM;
        state->facts_options = (LibvirtFactsOptions){
                .domain_type = domain_types[config->virt_type],
                .cpu_mode = config->cpu_mode,
                .cpu_models = state->cpu_models,
                .cpu_model_extra_flags = state->cpu_model_extra_flags,
        };
        return 0;
}

static LibvirtState *state_new(const DriverConfig *config)
{
        LibvirtState *state = calloc(1, sizeof(LibvirtState));

        if (!state)
                return NULL;
        state->keepalive_interval = (unsigned)MIN(config->keepalive_interval_sec, INT32_MAX);
        state->keepalive_count = (unsigned)MIN(config->keepalive_count, INT32_MAX);
        state->uri = strdup(config->connection_uri);
        state->instances_path = strdup(config->instances_path ? config->instances_path : "");
        if (state->uri && state->instances_path && copy_options(state, config) == 0)
                return state;
        state_free(state);
        return NULL;
}

/* What hangs at one address need not hang at another. */
static bool asks_the_same(const LibvirtState *state, const Driver *before)
{
        const LibvirtState *other = before ? poll_thread_source(before) : NULL;

        return other && strcmp(other->uri, state->uri) == 0;
}

static int libvirt_init(Driver *driver, const DriverConfig *config, Driver *before, Error *reterr)
{
        PollSource source = {
                .poll = poll_once, .close = close_link, .free = state_free, .fd = -1
        };
        int r;

        if (!config->connection_uri || !config->connection_uri[0])
                return error_setf(reterr, EINVAL, "[libvirt] connection_uri: not set");
        r = libvirt_event_loop_start(reterr);
        if (r < 0)
                return r;
        source.data = state_new(config);
        if (!source.data)
                return error_oom(reterr);
        return poll_thread_new(driver, &source, asks_the_same(source.data, before) ? before : NULL,
                               reterr);
}

const DriverOps libvirt_driver_ops = {
        .name = "libvirt",
        .init = libvirt_init,
        .done = poll_thread_done,
        .get_fd = poll_thread_get_fd,
        .poll = poll_thread_poll,
        .take = poll_thread_take,
};
