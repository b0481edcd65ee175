/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the CPU features and emulators of a hypervisor. The capabilities of the host come first,
 * and without them there are no facts. An unknown version of libvirt is 0. Any other call that
 * fails has one of three meanings, which note_failure() decides. The hypervisor does not support
 * it, and the fact is absent. The connection broke, and the poll ends. Or the list is incomplete,
 * and a problem has the reason. A malformed answer makes the list incomplete, too.
 *
 * The CPU features depend on [libvirt] cpu_mode, as in Nova. Emulators are read for each
 * architecture with its default machine type and with each short name of a machine type. Duplicates
 * are skipped.
 *
 * Tests: tests/unit/drivers/libvirt/test-driver.c tests/unit/drivers/libvirt/test-poll.c */

#include "drivers/libvirt/facts.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "drivers/libvirt/capabilities.h"
#include "drivers/libvirt/error.h"

static int add_problem(Snapshot *facts, const Error *error, bool *incomplete, Error *reterr)
{
        *incomplete = true;
        return snapshot_add_problem(facts, error->text) < 0 ? error_oom(reterr) : 0;
}

/* Handles a call that failed. Returns 0 if the poll can go on. An unsupported call is an absent
 * fact; other failures make the list incomplete. */
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

/* CPU features */

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

/* Emulators */

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

int libvirt_facts_read(Snapshot **ret, virConnectPtr connection, const HostConfig *config,
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

/* Copy into a snapshot */

int libvirt_facts_apply(const Snapshot *facts, Snapshot *snapshot)
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
