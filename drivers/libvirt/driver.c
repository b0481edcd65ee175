/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Three threads take part:
 *
 *   main     sets "requested" under the lock and writes the order eventfd; takes from the mailbox.
 *   virt     sleeps in a read of that eventfd. For each order it connects if it is not connected,
 *            polls, and posts a snapshot or a failure. The only one that makes libvirt calls, so
 *            the only one that a hypervisor which hangs can stop.
 *   events   libvirt's own loop (drivers/libvirt/event-loop.h): sends keepalives, which end a hung
 * call on the virt thread, and runs the callbacks of drivers/libvirt/connection.c.
 *
 * Everything that the virt thread touches is in LibvirtState, with copies of the configuration, and
 * both it and the driver hold a reference. driver_free() waits two seconds for the thread; one that
 * is still in a call is left behind with its reference and cleans up if it ever returns. A driver
 * that takes another's place is served by the same thread, after it (virt-thread.h).
 *
 * LIMITATIONS: keepalive begins when a connection is open. Against a daemon that is stopped before
 * that, the poll hangs in the opening until the daemon goes on or its socket closes. */

#include "drivers/libvirt/driver.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "drivers/libvirt/connection.h"
#include "drivers/libvirt/event-loop.h"
#include "drivers/libvirt/facts.h"
#include "drivers/libvirt/poll.h"
#include "drivers/mailbox.h"
#include "drivers/virt-thread.h"

typedef struct LibvirtState {
        unsigned n_references; /* atomic: the driver and the virt thread */
        Mailbox *mailbox;
        char *uri;
        char *instances_path;
        char *images_storage_pool; /* NULL: none */
        char **cpu_models, **cpu_model_extra_flags;
        LibvirtFactsOptions facts_options;
        unsigned keepalive_interval;
        unsigned keepalive_count;
        int order_fd;
        VirtThread *thread;

        pthread_mutex_t lock; /* guards what follows */
        bool requested;       /* a poll is wanted that has not begun */
        DriverPollKind kind;
        bool polling;
        bool stopping;
} LibvirtState;

static void free_strings(char **strings)
{
        for (char **string = strings; string && *string; string++)
                free(*string);
        free(strings);
}

static LibvirtState *state_unref(LibvirtState *state)
{
        if (!state || __atomic_sub_fetch(&state->n_references, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;
        pthread_mutex_destroy(&state->lock);
        closep(&state->order_fd);
        mailbox_unref(state->mailbox);
        free(state->uri);
        free(state->instances_path);
        free(state->images_storage_pool);
        free_strings(state->cpu_models);
        free_strings(state->cpu_model_extra_flags);
        free(state);
        return NULL;
}
DEFINE_CLEANUP(LibvirtState *, state_unref);

/* The virt thread */

static LibvirtAddress get_address(const LibvirtState *state)
{
        return (LibvirtAddress){ .uri = state->uri,
                                 .keepalive_interval = state->keepalive_interval,
                                 .keepalive_count = state->keepalive_count };
}

/* The connection, and what is read once over each, and when everything is to be read. */
typedef struct Link {
        LibvirtConnection *connection;
        LibvirtFacts *facts;
        Error facts_error; /* why they could not be read anew when that was asked for */
} Link;

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
                error_prefixf(&link->facts_error, r,
                              "What guests may have cannot be read anew, and is told as before");
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

static int ensure_link(const LibvirtState *state, Link *link, DriverPollKind kind, Error *reterr)
{
        const LibvirtAddress address = get_address(state);
        int r = 0;

        if (!link->connection || !libvirt_connection_is_alive(link->connection)) {
                link_done(link);
                r = libvirt_connection_open(&link->connection, &address, VIR_CONNECT_RO,
                                            state->mailbox, reterr);
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

static void poll_once(const LibvirtState *state, Link *link, DriverPollKind kind)
{
        Snapshot *snapshot;
        Error error = ERROR_NULL;
        int r;

        r = ensure_link(state, link, kind, &error);
        if (r == 0)
                r = poll_link(state, link, kind, &snapshot, &error);
        if (r < 0) {
                error_prefixf(&error, r, "%.60s", state->uri);
                mailbox_post_error(state->mailbox, DRIVER_EVENT_POLL_FAILED, &error);
                return;
        }
        mailbox_post_snapshot(state->mailbox, snapshot);
        libvirt_connection_report_loss(link->connection);
}

/* Waits for an order. True when it is a poll, which is then under way; false to end. */
static bool wait_for_order(LibvirtState *state, DriverPollKind *ret_kind)
{
        bool poll;

        for (;;) {
                eventfd_t count;
                bool stop;

                if (eventfd_read(state->order_fd, &count) < 0 && errno != EINTR)
                        return false;
                pthread_mutex_lock(&state->lock);
                stop = state->stopping;
                poll = state->requested && !stop;
                state->polling = poll;
                state->requested = false;
                *ret_kind = state->kind;
                state->kind = DRIVER_POLL_CHANGES;
                pthread_mutex_unlock(&state->lock);
                if (stop || poll)
                        return poll;
        }
}

static void serve(void *data)
{
        LibvirtState *state = data;
        Link link = { 0 };
        DriverPollKind kind;

        while (wait_for_order(state, &kind)) {
                poll_once(state, &link, kind);
                pthread_mutex_lock(&state->lock);
                state->polling = false;
                pthread_mutex_unlock(&state->lock);
        }
        link_done(&link);
}

static void drop(void *data)
{
        state_unref(data);
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

static int state_new(LibvirtState **ret, const DriverConfig *config)
{
        _cleanup_(state_unrefp) LibvirtState *state = NULL;
        LibvirtState *bare = calloc(1, sizeof(LibvirtState));
        int r;

        if (!bare)
                return -ENOMEM;
        r = -pthread_mutex_init(&bare->lock, NULL);
        if (r < 0) {
                free(bare);
                return r;
        }
        state = bare;
        state->n_references = 1;
        state->order_fd = eventfd(0, EFD_CLOEXEC);
        if (state->order_fd < 0)
                return -errno;
        r = mailbox_new(&state->mailbox);
        if (r < 0)
                return r;
        state->keepalive_interval = (unsigned)MIN(config->keepalive_interval_sec, INT32_MAX);
        state->keepalive_count = (unsigned)MIN(config->keepalive_count, INT32_MAX);
        state->uri = strdup(config->connection_uri);
        state->instances_path = strdup(config->instances_path ? config->instances_path : "");
        if (!state->uri || !state->instances_path || copy_options(state, config) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(state);
        return 0;
}

/* What hangs at one address need not hang at another. */
static VirtThread *find_thread(const LibvirtState *state, const Driver *before)
{
        const LibvirtState *other = before ? before->state : NULL;

        return other && strcmp(other->uri, state->uri) == 0 ? other->thread : NULL;
}

static int libvirt_init(Driver *driver, const DriverConfig *config, Driver *before, Error *reterr)
{
        _cleanup_(state_unrefp) LibvirtState *state = NULL;
        VirtJob job = { .serve = serve, .drop = drop };
        int r;

        if (!config->connection_uri || !config->connection_uri[0])
                return error_setf(reterr, EINVAL, "[libvirt] connection_uri: not set");
        r = libvirt_event_loop_start(reterr);
        if (r < 0)
                return r;
        r = state_new(&state, config);
        if (r < 0)
                return error_setf(reterr, r, "Cannot make the libvirt driver: %s", strerror(-r));
        __atomic_add_fetch(&state->n_references, 1, __ATOMIC_RELAXED);
        job.data = state;
        r = virt_thread_enter(&state->thread, find_thread(state, before), &job);
        if (r < 0) {
                state_unref(state);
                return error_setf(reterr, r, "Cannot start the virt thread: %s", strerror(-r));
        }
        driver->state = TAKE_PTR(state);
        return 0;
}

static void libvirt_done(Driver *driver)
{
        LibvirtState *state = TAKE_PTR(driver->state);

        pthread_mutex_lock(&state->lock);
        state->stopping = true;
        pthread_mutex_unlock(&state->lock);
        (void)eventfd_write(state->order_fd, 1);
        virt_thread_leave(state->thread, state, !driver->replaced);
        state_unref(state);
}

static int libvirt_get_fd(Driver *driver)
{
        LibvirtState *state = driver->state;

        return mailbox_get_fd(state->mailbox);
}

static int libvirt_request_poll(Driver *driver, DriverPollKind kind)
{
        LibvirtState *state = driver->state;
        bool busy;

        pthread_mutex_lock(&state->lock);
        busy = state->polling || state->requested;
        state->requested = true;
        state->kind = MAX(state->kind, kind);
        pthread_mutex_unlock(&state->lock);
        if (eventfd_write(state->order_fd, 1) < 0)
                return -errno;
        return busy;
}

static int libvirt_take(Driver *driver, DriverEvent *ret)
{
        LibvirtState *state = driver->state;

        return mailbox_take(state->mailbox, ret);
}

const DriverOps libvirt_driver_ops = {
        .name = "libvirt",
        .init = libvirt_init,
        .done = libvirt_done,
        .get_fd = libvirt_get_fd,
        .poll = libvirt_request_poll,
        .take = libvirt_take,
};
