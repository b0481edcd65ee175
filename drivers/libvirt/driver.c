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
 * libvirt's event loop (libvirt_event_loop_start()) sends keepalives if they are configured, which
 * end a hanging call on the virt thread. It also runs the callbacks of
 * drivers/libvirt/connection.c.
 *
 * Limits: keepalive works only on an open connection. If the daemon is stopped while the connection
 * opens, the poll hangs until the daemon continues or its socket closes.
 *
 * Tests: tests/unit/drivers/libvirt/test-driver.c */

#include "drivers/libvirt/driver.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "drivers/libvirt/capabilities.h"
#include "drivers/libvirt/connection.h"
#include "drivers/libvirt/error.h"
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
        DriverConfig config;       /* libvirt: its connection_uri is the member uri. host: has the
                                      options of make_facts(), and owns their lists */
        DiskCheck *disk;           /* reads the size of the disk, and the folders of servers */
        char *images_storage_pool; /* NULL: none */
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
        strings_free(state->config.host.cpu_models);
        strings_free(state->config.host.cpu_model_extra_flags);
        free(state);
}

/* Facts
 *
 * The CPU features and emulators of a hypervisor, and the version of libvirt. Without the
 * capabilities of the host there are no facts. An unknown version of libvirt is 0. Any other call
 * that fails has one of three meanings, which note_failure() decides. The hypervisor does not
 * support it, and the fact is absent. The connection broke, and make_facts() fails. Or the list is
 * incomplete, and a problem has the reason. A malformed answer makes the list incomplete, too.
 *
 * The CPU features depend on [libvirt] cpu_mode, as in Nova. Emulators are read for each
 * architecture with its default machine type and with each short name of a machine type. Duplicates
 * are skipped. */

static int add_problem(Snapshot *facts, const Error *error, bool *incomplete, Error *reterr)
{
        *incomplete = true;
        return snapshot_add_problem(facts, error->text) < 0 ? error_oom(reterr) : 0;
}

/* Handles a call that failed. Returns 0 if the reading of facts can go on. An unsupported call is
 * an absent fact; other failures make the list incomplete. */
static int note_failure(Snapshot *facts, virConnectPtr connection, const char *what,
                        const char *name, bool *incomplete, Error *reterr)
{
        bool unsupported = libvirt_error_is_unsupported();
        Error error = ERROR_NULL;
        int r = libvirt_error(&error, what);

        if (virConnectIsAlive(connection) != 1) {
                if (reterr)
                        *reterr = error;
                return r;
        }
        /* Without permission all calls fail. The error then gets no name of a model or
         * architecture, so equal problems are listed once. */
        if (r != -EACCES)
                error_prefixf(&error, r, "%.60s", name);
        if (!unsupported)
                return add_problem(facts, &error, incomplete, reterr);
        log_debug("%s", error.text);
        return 0;
}

/* Adds the features of a model with these additional features. A model or feature with a name that
 * libvirt cannot have adds nothing. */
static int add_baseline(Snapshot *facts, virConnectPtr connection, const char *arch,
                        const char *model, const char *vendor, const StringSet *beside,
                        Error *reterr)
{
        _cleanup_free_ char *xml = NULL, *expanded = NULL;
        Error error = ERROR_NULL;
        int r = cpu_model_format(arch, model, vendor, beside, &xml);

        if (r < 0)
                return r == -ENOMEM ? error_oom(reterr) : 0;
        expanded = virConnectBaselineCPU(connection, (const char *[]){ xml }, 1,
                                         VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES);
        if (!expanded)
                return note_failure(facts, connection, "Cannot get the features of the CPU model",
                                    model, &facts->features_incomplete, reterr);
        r = cpu_model_read_features(expanded, &facts->cpu_features, &error);
        if (r == -ENOMEM)
                return error_oom(reterr);
        return r < 0 ? add_problem(facts, &error, &facts->features_incomplete, reterr) : 0;
}

/* Adds the features of the host's own CPU: its baseline, or the features of the capabilities if
 * libvirt has no baseline or the call gave no features. */
static int read_host_features(Snapshot *facts, virConnectPtr connection,
                              const GuestCapabilities *capabilities, Error *reterr)
{
        /* libvirt has no baseline for a CPU without a model and for aarch64. The features of the
         * capabilities are used instead. */
        if (capabilities->cpu_model[0] && strcmp(capabilities->cpu_arch, "aarch64") != 0) {
                int r = add_baseline(facts, connection, capabilities->cpu_arch,
                                     capabilities->cpu_model, capabilities->cpu_vendor,
                                     &capabilities->cpu_features, reterr);

                if (r < 0 || facts->cpu_features.n_items > 0)
                        return r;
        }
        return string_set_copy(&facts->cpu_features, &capabilities->cpu_features) < 0
                       ? error_oom(reterr)
                       : 0;
}

/* Adds the features of the configured models, or with cpu_mode = none those of the architecture's
 * default model. */
static int read_model_features(Snapshot *facts, virConnectPtr connection,
                               const GuestCapabilities *capabilities, const HostConfig *config,
                               Error *reterr)
{
        const char *arch = capabilities->cpu_arch;
        const char *fallback = cpu_model_of_arch(arch);

        if (config->cpu_mode == HOST_CPU_NONE)
                return fallback
                               ? add_baseline(facts, connection, arch, fallback, NULL, NULL, reterr)
                               : 0;
        for (char **model = config->cpu_models; model && *model; model++) {
                int r = add_baseline(facts, connection, arch, *model, NULL, NULL, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the features that guests can have. The extra flags do not apply to cpu_mode = none. */
static int read_features(Snapshot *facts, virConnectPtr connection,
                         const GuestCapabilities *capabilities, const HostConfig *config,
                         Error *reterr)
{
        bool of_models = config->cpu_mode == HOST_CPU_CUSTOM || config->cpu_mode == HOST_CPU_NONE;
        int r = of_models ? read_model_features(facts, connection, capabilities, config, reterr)
                          : read_host_features(facts, connection, capabilities, reterr);

        if (r < 0 || config->cpu_mode == HOST_CPU_NONE)
                return r;
        return cpu_model_apply_flags(config->cpu_model_extra_flags, &facts->cpu_features) < 0
                       ? error_oom(reterr)
                       : 0;
}

/* Returns the machine type of guests that request none, or NULL for libvirt's default. */
static const char *default_machine(const char *arch)
{
        static const struct {
                const char *arch, *machine;
        } machines[] = {
                { "x86_64", "pc" },
                { "i686", "pc" },
                { "aarch64", "virt" },
                { "armv7l", "virt" },
                { "ppc64le", "pseries" },
                { "s390", "s390-ccw-virtio" },
                { "s390x", "s390-ccw-virtio" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
                if (strcmp(machines[i].arch, arch) == 0)
                        return machines[i].machine;
        return NULL;
}

static bool has_emulator(const Snapshot *facts, const SnapshotEmulator *emulator)
{
        for (size_t i = 0; i < facts->n_emulators; i++)
                if (strcmp(facts->emulators[i].arch, emulator->arch) == 0 &&
                    strcmp(facts->emulators[i].machine, emulator->machine) == 0)
                        return true;
        return false;
}

/* Reads the domain capabilities of one architecture and machine type. */
static int read_emulator(Snapshot *facts, virConnectPtr connection, const GuestEmulator *guest,
                         const char *machine, const char *domain_type, Error *reterr)
{
        _cleanup_(snapshot_emulator_done) SnapshotEmulator emulator = { 0 };
        _cleanup_free_ char *xml =
                virConnectGetDomainCapabilities(connection, guest->path[0] ? guest->path : NULL,
                                                guest->arch, machine, domain_type, 0);
        SnapshotEmulator *emulators;
        Error error = ERROR_NULL;
        int r;

        if (!xml)
                return note_failure(facts, connection, "Cannot get the domain capabilities",
                                    guest->arch, &facts->emulators_incomplete, reterr);
        r = domain_capabilities_parse(xml, &emulator, &error);
        if (r == -ENOMEM)
                return error_oom(reterr);
        if (r < 0) {
                error_prefixf(&error, r, "Cannot read the domain capabilities of %.40s guests",
                              guest->arch);
                return add_problem(facts, &error, &facts->emulators_incomplete, reterr);
        }
        if (has_emulator(facts, &emulator))
                return 0;
        emulators =
                reallocarray(facts->emulators, facts->n_emulators + 1, sizeof(SnapshotEmulator));
        if (!emulators)
                return error_oom(reterr);
        facts->emulators = emulators;
        facts->emulators[facts->n_emulators++] = TAKE_STRUCT(emulator);
        return 0;
}

static int read_emulators(Snapshot *facts, virConnectPtr connection,
                          const GuestCapabilities *capabilities, const char *domain_type,
                          Error *reterr)
{
        for (size_t i = 0; i < capabilities->n_emulators; i++) {
                const GuestEmulator *guest = &capabilities->emulators[i];
                int r = read_emulator(facts, connection, guest, default_machine(guest->arch),
                                      domain_type, reterr);

                for (size_t j = 0; j < guest->machines.n_items && r == 0; j++)
                        r = read_emulator(facts, connection, guest, guest->machines.items[j],
                                          domain_type, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the facts into a new, sealed snapshot that has nothing else. It uses virt_type, cpu_mode,
 * cpu_models and cpu_model_extra_flags of the configuration. Negative errno with an error text if
 * the connection broke, memory is short, or the capabilities of the host cannot be read. */
static int make_facts(Snapshot **ret, virConnectPtr connection, const HostConfig *config,
                      Error *reterr)
{
        static const char *const domain_types[_HOST_VIRT_TYPE_MAX] = {
                [HOST_VIRT_KVM] = "kvm",
                [HOST_VIRT_QEMU] = "qemu",
                [HOST_VIRT_LXC] = "lxc",
                [HOST_VIRT_PARALLELS] = "parallels",
        };
        const char *domain_type = domain_types[config->virt_type];
        _cleanup_(guest_capabilities_done) GuestCapabilities capabilities = { 0 };
        _cleanup_(snapshot_unrefp) Snapshot *facts = NULL;
        _cleanup_free_ char *xml = NULL;
        unsigned long version = 0;
        int r;

        if (snapshot_new(&facts) < 0)
                return error_oom(reterr);
        if (virConnectGetLibVersion(connection, &version) == 0)
                facts->libvirt_version = version;
        xml = virConnectGetCapabilities(connection);
        if (!xml)
                return libvirt_error(reterr, "Cannot get the capabilities of the host");
        if ((r = guest_capabilities_parse(xml, domain_type, &capabilities, reterr)) < 0 ||
            (r = read_features(facts, connection, &capabilities, config, reterr)) < 0 ||
            (r = read_emulators(facts, connection, &capabilities, domain_type, reterr)) < 0 ||
            (r = snapshot_seal(facts, reterr)) < 0)
                return r;
        *ret = TAKE_PTR(facts);
        return 0;
}

/* Adds the facts to a snapshot that is not shared yet and has no emulators. -ENOMEM, with some of
 * the facts added. */
static int apply_facts(const Snapshot *facts, Snapshot *snapshot)
{
        snapshot->libvirt_version = facts->libvirt_version;
        snapshot->features_incomplete = facts->features_incomplete;
        snapshot->emulators_incomplete = facts->emulators_incomplete;
        for (size_t i = 0; i < facts->problems.n_items; i++)
                if (snapshot_add_problem(snapshot, facts->problems.items[i]) < 0)
                        return -ENOMEM;
        if (string_set_copy(&snapshot->cpu_features, &facts->cpu_features) < 0)
                return -ENOMEM;
        if (facts->n_emulators == 0)
                return 0;
        snapshot->emulators = calloc(facts->n_emulators, sizeof(SnapshotEmulator));
        if (!snapshot->emulators)
                return -ENOMEM;
        for (size_t i = 0; i < facts->n_emulators; i++) {
                if (snapshot_emulator_copy(&snapshot->emulators[i], &facts->emulators[i]) < 0)
                        return -ENOMEM;
                snapshot->n_emulators++;
        }
        return 0;
}

/* The virt thread */

static void link_done(Link *link)
{
        link->facts = snapshot_unref(link->facts);
        link->connection = libvirt_connection_free(link->connection);
}

/* Reads the facts. Domain capabilities need a writable connection, because libvirt runs the
 * emulator to get them. That connection is closed afterwards. If the facts cannot be read, for
 * example because polkit is down, earlier facts stay and facts_error has the reason. Without
 * earlier facts it is an error. */
static int read_facts(const LibvirtState *state, Link *link, Error *reterr)
{
        Error error = ERROR_NULL;
        Snapshot *facts = NULL;
        virConnectPtr handle;
        int r = libvirt_connect(&handle, &state->config, 0, &error);

        if (r == 0) {
                r = make_facts(&facts, handle, &state->config.host, &error);
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
                r = libvirt_connection_open(&link->connection, &state->config, VIR_CONNECT_RO,
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
        if (r == 0 && (apply_facts(link->facts, snapshot) < 0 ||
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
        HostConfig *facts = &state->config.host;
        const char *pool = host->images_storage_pool;

        facts->virt_type = host->virt_type;
        facts->cpu_mode = host->cpu_mode;
        if (!(state->uri = strdup(config->libvirt.connection_uri)) ||
            (pool && !(state->images_storage_pool = strdup(pool))) ||
            disk_check_new(&state->disk, host) < 0 ||
            strings_copy(host->cpu_models, &facts->cpu_models) < 0 ||
            strings_copy(host->cpu_model_extra_flags, &facts->cpu_model_extra_flags) < 0)
                return -ENOMEM;
        state->config.libvirt = config->libvirt;
        state->config.libvirt.connection_uri = state->uri;
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
