/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the configuration with the hardware of the host. Each verify_…() function compares one
 * part and appends warnings to Findings. The function verify_update() checks the configuration and
 * makes the plans of an update. It appends errors with the reasons in the plans of CPUs, amounts
 * and cells why the update would reject the host or leave out a part. Other parts get warnings. An
 * error of driver_config_check() or of the plan of CPUs ends it, so later reasons appear only after
 * that error is corrected. It comes first, because its plan of CPUs is used by other functions.
 * After such an error that plan is empty, and the warnings about CPUs are missing.
 *
 * A finding names the option to change. For an error, this is the option of the table "options"
 * that comes first in its text, or "". Each verify_…() function returns -ENOMEM or 0; a finding is
 * never an error of the function. The result does not depend on Placement.
 *
 * Tests: tests/unit/drivers/test-verify.c */

#include "drivers/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "drivers/driver-config.h"
#include "drivers/host/clean.h"
#include "drivers/tree/cpu-plan.h"
#include "drivers/tree/host-amounts.h"
#include "drivers/tree/huge-pages.h"
#include "drivers/tree/mdev-plan.h"
#include "drivers/tree/numa-providers.h"
#include "drivers/tree/shape-providers.h"

/* Longest text of a warning, in bytes. */
#define TEXT_MAX 512

/* Options that an error text can contain. The option that comes first in the text is the one to
 * change. */
static const char *const options[] = {
        "[compute] cpu_dedicated_set",
        "[compute] cpu_shared_set",
        "vcpu_pin_set",
        "reserved_huge_pages",
        "[compute] numa_in_placement",
        "[libvirt] file_backed_memory",
        "reserved_host_memory_mb",
        "reserved_host_disk_mb",
        "reserved_host_cpus",
        "[libvirt] images_type",
};

/* Lists of {"level", "option", "text"}. */
typedef struct Findings {
        json_t *errors, *warnings;
} Findings;

static void findings_done(Findings *findings)
{
        json_decref(findings->errors);
        json_decref(findings->warnings);
}

static int add_finding(json_t *list, const char *level, const char *option, const char *text)
{
        return json_array_append_new(list, json_pack("{ss ss ss}", "level", level, "option", option,
                                                     "text", text)) < 0
                       ? -ENOMEM
                       : 0;
}

/* Appends a warning. -ENOMEM. */
static int findings_warn(Findings *findings, const char *option, const char *format, ...)
        _printf_(3, 4);
static int findings_warn(Findings *findings, const char *option, const char *format, ...)
{
        char text[TEXT_MAX];
        va_list ap;

        va_start(ap, format);
        vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        /* A limit can cut a character of a name. JSON takes only whole ones. */
        text_sanitize(text, '?');
        return add_finding(findings->warnings, "warning", option, text);
}

/* Appends an error because of which the update rejects the host or a part. r is the result of the
 * function that set the error: 0 and -ENOMEM append nothing and are returned. */
static int add_error(Findings *findings, int r, const Error *error)
{
        const char *first = NULL, *option = "";

        if (r >= 0 || r == -ENOMEM)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                const char *place = strstr(error->text, options[i]);

                if (place && (!first || place < first)) {
                        first = place;
                        option = options[i];
                }
        }
        return add_finding(findings->errors, "error", option, error->text);
}

/* Makes the plans of an update and appends their errors. Sets cpus, which the other functions need;
 * it stays empty after an error of the configuration or of that plan. */
static int verify_update(const HostConfig *config, const Snapshot *snapshot, CpuPlan *cpus,
                         Findings *findings)
{
        Error error = ERROR_NULL, problem = ERROR_NULL;
        HostAmounts amounts;
        ClassAmount *const classes[] = { &amounts.vcpu, &amounts.memory, &amounts.disk };
        int r;

        r = add_error(findings, driver_config_check(config, &error), &error);
        if (r < 0 || json_array_size(findings->errors) > 0)
                return r;
        r = cpu_plan_make(config, snapshot, cpus, &problem, &error);
        if (r < 0)
                return add_error(findings, r, &error);
        if (problem.code && add_error(findings, -problem.code, &problem) < 0)
                return -ENOMEM;
        problem = ERROR_NULL;
        host_amounts_make(config, snapshot, cpus, &amounts);
        for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
                r = add_error(findings, class_amount_limit(classes[i], &error), &error);
                if (r < 0)
                        return r;
        }
        r = add_error(findings, numa_check(config, snapshot, cpus, &problem, &error), &error);
        return r < 0 || !problem.code ? r : add_error(findings, -problem.code, &problem);
}

/* CPUs. The threads of a core share its caches and units, so a shared thread slows a dedicated
 * one. */

/* Warns of the first sibling with a higher number that is in the other set. Lower numbers are
 * skipped, so no pair is found twice. */
static int verify_cpu(const SnapshotCpu *cpu, const CpuPlan *cpus, Findings *findings)
{
        for (unsigned other = cpu->id + 1; other < CPU_SET_MAX; other++) {
                bool here = cpu_set_contains(&cpus->dedicated, cpu->id);
                bool there = cpu_set_contains(&cpus->dedicated, other);

                if (other / 64 >= cpu->siblings.n_words)
                        break;
                if (!cpu_set_contains(&cpu->siblings, other) || here == there ||
                    !cpu_set_contains(here ? &cpus->shared : &cpus->dedicated, other) ||
                    !cpu_set_contains(here ? &cpus->dedicated : &cpus->shared, cpu->id))
                        continue;
                return findings_warn(
                        findings, "[compute] cpu_dedicated_set",
                        "CPUs %u and %u are threads of one core, but one is dedicated and one is shared. Put both in one set",
                        cpu->id, other);
        }
        return 0;
}

static int verify_cpus(const Snapshot *snapshot, const CpuPlan *cpus, Findings *findings)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_cpus; j++)
                        if (verify_cpu(&snapshot->cells[i].cpus[j], cpus, findings) < 0)
                                return -ENOMEM;
        return 0;
}

/* Memory and disk */

/* Returns the pages that the entry of reserved_huge_pages names, or NULL. */
static const PageSize *find_pages(const Snapshot *snapshot, const HugePagesReserve *reserve)
{
        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0;
                     snapshot->cells[i].id == reserve->cell && j < snapshot->cells[i].n_pages; j++)
                        if (snapshot->cells[i].pages[j].size_kib == reserve->size_kib)
                                return &snapshot->cells[i].pages[j];
        return NULL;
}

/* Warns of reserved pages of a size that the cell does not list, and of ordinary pages. Also warns
 * of all other reserved pages if [compute] numa_in_placement is false. Malformed entries are errors
 * of driver_config_check(). */
static int verify_huge_pages(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        for (char **text = config->reserved_huge_pages; text && *text; text++) {
                HugePagesReserve reserve;
                int r = 0;

                if (huge_pages_parse_reserve(*text, &reserve, NULL) < 0)
                        continue;
                if (!find_pages(snapshot, &reserve))
                        r = findings_warn(
                                findings, "reserved_huge_pages",
                                "%.100s: cell %u has no pages of %llu KiB. Correct or remove the entry",
                                *text, reserve.cell, (unsigned long long)reserve.size_kib);
                else if (reserve.size_kib == huge_pages_ordinary_size(snapshot))
                        r = findings_warn(
                                findings, "reserved_huge_pages",
                                "%.100s: ordinary pages are memory, so the entry has no effect. Use reserved_host_memory_mb",
                                *text);
                else if (!config->numa_in_placement)
                        r = findings_warn(
                                findings, "reserved_huge_pages",
                                "%.100s: hugepages are in Placement only with [compute] numa_in_placement = true or root",
                                *text);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Warns of cells that have CPUs but no memory, if another cell has memory. A guest that needs
 * memory in the cell of its CPUs cannot run there. */
static int verify_cells(const HostConfig *config, const Snapshot *snapshot, const CpuPlan *cpus,
                        Findings *findings)
{
        for (size_t i = 0; i < snapshot->n_cells; i++) {
                const SnapshotCell *cell = &snapshot->cells[i];
                unsigned n_dedicated = 0;
                int r;

                if (!numa_lacks_memory(snapshot, cell))
                        continue;
                for (size_t j = 0; j < cell->n_cpus; j++)
                        n_dedicated += cpu_set_contains(&cpus->dedicated, cell->cpus[j].id);
                r = findings_warn(
                        findings,
                        n_dedicated > 0 ? "[compute] cpu_dedicated_set"
                                        : "[compute] cpu_shared_set",
                        "Cell %u has %zu CPUs but no memory. Guests with a NUMA topology or dedicated CPUs cannot use them. %s",
                        cell->id, cell->n_cpus,
                        config->numa_in_placement == HOST_NUMA_FLAT
                                ? "Remove its CPUs from the set, or add memory to the cell"
                        : config->numa_in_placement == HOST_NUMA_ROOT
                                ? "The PCPU of its provider is reserved"
                                : "All amounts of its provider are reserved");
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Warns of a size that could not be read, or of a size below 1 GiB unless report_local_disk is no.
 * For a missing folder only the last measured size counts, because it can be intended. */
static int verify_disk(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        bool rbd = config->images_type == HOST_IMAGES_RBD && !config->images_storage_pool;

        if (snapshot->disk_error.code && snapshot->disk_error.code != ENOENT &&
            snapshot->disk_error.code != ENOTDIR)
                return findings_warn(findings,
                                     config->images_storage_pool ? "[libvirt] images_storage_pool"
                                     : rbd                       ? "[libvirt] images_type"
                                                                 : "instances_path",
                                     "%s", snapshot->disk_error.text);
        if (snapshot->disk_total_bytes >> 30 > 0 || config->report_local_disk == HOST_LOCAL_DISK_NO)
                return 0;
        if (config->images_storage_pool)
                return findings_warn(
                        findings, "[libvirt] images_storage_pool",
                        "DISK_GB is not reported: the storage pool %.100s has less than 1 GiB",
                        config->images_storage_pool);
        if (rbd)
                return findings_warn(
                        findings, "[libvirt] images_type",
                        "DISK_GB is not reported: the Ceph cluster has less than 1 GiB");
        return findings_warn(
                findings, "instances_path",
                "DISK_GB is not reported: %.200s does not exist, or its file system has less than 1 GiB",
                config->instances_path ? config->instances_path : "");
}

/* Emulators */

/* Warns of unknown emulators, whose traits the agent does not change, or of swtpm_enabled without
 * an emulated TPM. */
static int verify_emulators(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        static const char *const virt_types[_HOST_VIRT_TYPE_MAX] = { "kvm", "qemu", "lxc",
                                                                     "parallels" };
        bool tpm = false;

        if (snapshot->n_emulators == 0)
                return findings_warn(
                        findings, "[libvirt] virt_type",
                        "The hypervisor (%.40s) reports no capabilities for %s guests. Those traits stay unchanged",
                        snapshot->hypervisor, virt_types[config->virt_type]);
        for (size_t i = 0; i < snapshot->n_emulators; i++)
                tpm = tpm || string_set_contains(&snapshot->emulators[i].tpm_backends, "emulator");
        if (config->swtpm_enabled && !tpm && !snapshot->emulators_incomplete)
                return findings_warn(
                        findings, "[libvirt] swtpm_enabled",
                        "The hypervisor offers no emulated TPM. Install swtpm, or set the option to false");
        return 0;
}

/* Mediated devices */

/* Returns the first device that the address gives to the type (mdev_type_of_device()), or NULL. */
static const SnapshotDevice *find_addressed(const HostMdevType *type, char *address,
                                            const Snapshot *snapshot)
{
        char *addresses[] = { address, NULL };
        HostMdevType alone = { .type = type->type, .device_addresses = addresses };
        const HostConfig config = { .mdev_types = &alone, .n_mdev_types = 1 };

        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (mdev_type_of_device(&config, &snapshot->devices[i]))
                        return &snapshot->devices[i];
        return NULL;
}

/* Returns whether another type has the address, too. */
static bool is_shared(const HostConfig *config, const HostMdevType *type, const char *address)
{
        for (size_t i = 0; i < config->n_mdev_types; i++) {
                const HostMdevType *other = &config->mdev_types[i];

                for (char **a = other->device_addresses; other != type && a && *a; a++)
                        if (strcasecmp(*a, address) == 0)
                                return true;
        }
        return false;
}

/* Returns whether the card has virtual functions that become vGPUs of the type. */
static bool has_functions(const Snapshot *snapshot, const char *card, const char *type)
{
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];

                if (device->is_vgpu_function && strcasecmp(device->physical_function, card) == 0 &&
                    snapshot_find_mdev_type(device, type))
                        return true;
        }
        return false;
}

static int verify_address(const HostConfig *config, const HostMdevType *type, char *address,
                          const Snapshot *snapshot, Findings *findings)
{
        const SnapshotDevice *device = find_addressed(type, address, snapshot);
        char option[TEXT_MAX];

        snprintf(option, sizeof(option), "[mdev_%.200s] device_addresses", type->type);
        if (!device && has_functions(snapshot, address, type->type))
                return 0;
        if (!device)
                return findings_warn(findings, option,
                                     "The device %.100s does not exist. Correct the address",
                                     address);
        if (has_functions(snapshot, address, type->type))
                return 0;
        if (!device->is_vgpu_function && is_shared(config, type, address))
                return findings_warn(
                        findings, option,
                        "The device %.100s creates mediated devices, so it has one type. Remove it from the other types",
                        address);
        if (!snapshot_find_mdev_type(device, type->type))
                return findings_warn(
                        findings, option,
                        "The device %.100s (%.60s) does not offer %.100s. Configure another type for it",
                        address, device->name, type->type);
        return 0;
}

static bool any_device_has_type(const Snapshot *snapshot, const char *type)
{
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot_find_mdev_type(&snapshot->devices[i], type))
                        return true;
        return false;
}

/* Counts the mdevs of the type, and the vGPUs that are no mdevs. */
static uint64_t count_mdevs(const Snapshot *snapshot, const char *type)
{
        uint64_t n = 0;

        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                n += strcmp(snapshot->mdevs[i].type, type) == 0;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                for (size_t j = 0; j < snapshot->devices[i].n_mdev_types; j++)
                        if (strcmp(snapshot->devices[i].mdev_types[j].id, type) == 0)
                                n += snapshot->devices[i].mdev_types[j].created_instances;
        return n;
}

/* Warns of a type that no device offers, and of nothing else then. Warns of addresses without a
 * device, and of a max_instances below the number of existing devices. Also warns of a device that
 * does not offer the type, and of a parent of mdevs that several types name. */
static int verify_mdev_type(const HostConfig *config, const HostMdevType *type,
                            const Snapshot *snapshot, Findings *findings)
{
        uint64_t n_existing = count_mdevs(snapshot, type->type);
        char option[TEXT_MAX];

        if (!any_device_has_type(snapshot, type->type))
                return findings_warn(
                        findings, "[devices] enabled_mdev_types",
                        "No device offers %.100s. \"computectl discover\" shows the types that devices offer",
                        type->type);
        for (char **address = type->device_addresses; address && *address; address++)
                if (verify_address(config, type, *address, snapshot, findings) < 0)
                        return -ENOMEM;
        if (type->max_instances == 0 || n_existing <= type->max_instances)
                return 0;
        snprintf(option, sizeof(option), "[mdev_%.200s] max_instances", type->type);
        return findings_warn(
                findings, option,
                "%llu devices of %.100s already exist, which is more than %llu. Existing devices stay",
                (unsigned long long)n_existing, type->type,
                (unsigned long long)type->max_instances);
}

/* Returns true if the device has no mdev of the type and cannot create one. */
static bool is_full(const Snapshot *snapshot, const SnapshotDevice *device, const MdevType *type)
{
        for (size_t i = 0; i < snapshot->n_mdevs; i++)
                if (strcmp(snapshot->mdevs[i].parent, device->name) == 0 &&
                    strcmp(snapshot->mdevs[i].type, type->id) == 0)
                        return false;
        return type->available_instances == 0 && type->created_instances == 0;
}

/* Returns whether the device is a virtual function that becomes a vGPU, and has a spec in
 * device_spec without a physical_network. */
static bool is_spec_function(const HostConfig *config, const SnapshotDevice *device)
{
        const PciSpec *spec =
                device->is_vgpu_function ? pci_specs_find(&config->pci_specs, device) : NULL;

        return spec && !spec->physical_network;
}

/* Warns of a device that has types of mdevs but not an enabled one, or that is full. Does nothing
 * if no type is enabled, and for a function that [pci] device_spec offers with
 * report_in_placement. */
static int verify_idle_device(const HostConfig *config, const Snapshot *snapshot,
                              const SnapshotDevice *device, Findings *findings)
{
        const HostMdevType *wanted = mdev_type_of_device(config, device);
        const MdevType *type = wanted ? snapshot_find_mdev_type(device, wanted->type) : NULL;

        if (config->n_mdev_types == 0 || device->n_mdev_types == 0 ||
            (config->report_in_placement && is_spec_function(config, device)) ||
            (type && !is_full(snapshot, device, type)))
                return 0;
        if (type)
                return findings_warn(
                        findings, "[devices] enabled_mdev_types",
                        "The device %.60s cannot offer %.60s and is not in Placement. It is full or has devices of another type",
                        device->name, type->id);
        return findings_warn(
                findings, "[devices] enabled_mdev_types",
                "The device %.60s offers mediated devices (%.60s, …), but none of the enabled types. It is not in Placement",
                device->name, device->mdev_types[0].id);
}

static int verify_mdevs(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        for (size_t i = 0; i < config->n_mdev_types; i++)
                if (verify_mdev_type(config, &config->mdev_types[i], snapshot, findings) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (verify_idle_device(config, snapshot, &snapshot->devices[i], findings) < 0)
                        return -ENOMEM;
        return 0;
}

/* Guests, also stopped ones, with CPUs other than those of [compute] cpu_shared_set and
 * cpu_dedicated_set (facts C3, last row).
 *
 * A guest CPU that is pinned to one CPU of the host is dedicated. Every other guest CPU must float
 * over the shared CPUs; without a list of CPUs it can run on all of them. nova-compute does not
 * start beside such a guest. The agent only warns, because the guest exists and a stopped agent
 * would not move it. Without usable dedicated CPUs there is no warning, because without
 * cpu_dedicated_set pinned guests use the shared CPUs. */

/* Number of guests that a warning names. One warning covers all guests with the same fault. */
#define NAMES_MAX 5

typedef enum Fault {
        FAULT_NONE,
        FAULT_PINNED,   /* pinned to a CPU that is not dedicated */
        FAULT_FLOATING, /* floats over dedicated CPUs, or there are no shared ones */
        _FAULT_MAX,
} Fault;

/* The guests with one fault. */
typedef struct Guests {
        size_t n;
        const SnapshotDomain *first[NAMES_MAX];
        const DomainPin *pin; /* pin of the first guest, if it is pinned */
} Guests;

/* Checks whether the host has shared CPUs, online or not. */
static bool has_shared(const CpuPlan *cpus)
{
        return cpu_set_count(&cpus->shared) + cpu_set_count(&cpus->shared_offline) > 0;
}

/* Returns the Fault of the guest, or -ENOMEM. *ret_pin is set for FAULT_PINNED only. A guest that
 * could not be read has no known pins, and so no fault; a problem of the snapshot names it. */
static int judge(const SnapshotDomain *domain, const CpuPlan *cpus, const DomainPin **ret_pin)
{
        size_t n_pinned = 0;
        int r;

        if (domain->unread)
                return FAULT_NONE;
        for (size_t i = 0; i < domain->n_pins; i++) {
                const DomainPin *pin = &domain->pins[i];

                if (cpu_set_count(&pin->cpus) != 1)
                        continue;
                if (!cpu_plan_dedicates(cpus, &pin->cpus)) {
                        *ret_pin = pin;
                        return FAULT_PINNED;
                }
                n_pinned++;
        }
        if (n_pinned >= domain->vcpus)
                return FAULT_NONE;
        r = cpu_guest_floats(domain, &cpus->dedicated, NULL);
        if (r < 0)
                return r;
        return r > 0 || !has_shared(cpus) ? FAULT_FLOATING : FAULT_NONE;
}

/* Writes "a, b, c, d, e, …". */
static void list_names(const Guests *guests, char *ret, size_t size)
{
        size_t n = 0;

        ret[0] = '\0';
        for (size_t i = 0; i < MIN(guests->n, (size_t)NAMES_MAX) && n < size; i++)
                n += (size_t)snprintf(ret + n, size - n, "%s%.60s", i > 0 ? ", " : "",
                                      guests->first[i]->name);
        if (guests->n > NAMES_MAX && n < size)
                snprintf(ret + n, size - n, ", …");
}

static int warn_pinned(const Guests *guests, Findings *findings)
{
        _cleanup_free_ char *text = cpu_set_format(&guests->pin->cpus);
        char names[512];

        if (!text)
                return -ENOMEM;
        if (guests->n == 1)
                return findings_warn(
                        findings, "[compute] cpu_dedicated_set",
                        "CPU %u of the guest %.100s is pinned to CPU %s, which is not in the set. Add this CPU, or move the guest",
                        guests->pin->vcpu, guests->first[0]->name, text);
        list_names(guests, names, sizeof(names));
        return findings_warn(
                findings, "[compute] cpu_dedicated_set",
                "%zu guests (%s) are pinned to CPUs that are not in the set, CPU %u of the first to CPU %.60s. Add these CPUs, or move the guests",
                guests->n, names, guests->pin->vcpu, text);
}

/* Warns of guests that float over dedicated CPUs, or have no shared CPUs. anywhere_shared: the host
 * has shared CPUs. */
static int warn_floating(const Guests *guests, bool anywhere_shared, Findings *findings)
{
        char names[512];

        if (guests->n == 1)
                return findings_warn(
                        findings, "[compute] cpu_shared_set",
                        anywhere_shared
                                ? "The guest %.100s is not pinned and can run on dedicated CPUs. Restart it on the shared CPUs, or move it"
                                : "The guest %.100s is not pinned, and there are no shared CPUs. Set the option, or move the guest",
                        guests->first[0]->name);
        list_names(guests, names, sizeof(names));
        return findings_warn(
                findings, "[compute] cpu_shared_set",
                anywhere_shared
                        ? "%zu guests (%s) are not pinned and can run on dedicated CPUs. Restart them on the shared CPUs, or move them"
                        : "%zu guests (%s) are not pinned, and there are no shared CPUs. Set the option, or move the guests",
                guests->n, names);
}

/* Collects the guests by fault, then adds one warning for each fault. */
static int verify_guests(const CpuPlan *cpus, const Snapshot *snapshot, Findings *findings)
{
        Guests faulty[_FAULT_MAX] = { 0 };
        int r = 0;

        if (cpu_set_count(&cpus->dedicated) == 0)
                return 0;
        for (size_t i = 0; i < snapshot->n_domains; i++) {
                const DomainPin *pin = NULL;
                int fault = judge(&snapshot->domains[i], cpus, &pin);
                Guests *guests;

                if (fault < 0)
                        return fault;
                guests = &faulty[fault];
                if (guests->n == 0)
                        guests->pin = pin;
                if (guests->n < NAMES_MAX)
                        guests->first[guests->n] = &snapshot->domains[i];
                guests->n++;
        }
        if (faulty[FAULT_PINNED].n > 0)
                r = warn_pinned(&faulty[FAULT_PINNED], findings);
        if (r == 0 && faulty[FAULT_FLOATING].n > 0)
                r = warn_floating(&faulty[FAULT_FLOATING], has_shared(cpus), findings);
        return r;
}

/* [pci] device_spec: entries that match no device, and too many providers of one class. */

/* Largest number of providers of one class without a warning. Above it, a request with several
 * groups for the class has more combinations than Placement tries by default (LP 2126751). */
#define PCI_SIBLINGS_MAX 7

/* Lists the providers of devices that match: "CLASS ADDRESS", sorted, without duplicates.
 * Virtual functions count as their physical function. Devices with a physical_network are not in
 * Placement. */
static int list_providers(const HostConfig *config, const Snapshot *snapshot, StringSet *ret)
{
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                const PciSpec *spec = pci_specs_find(&config->pci_specs, device);
                char name[RESOURCE_CLASS_MAX + 1], text[RESOURCE_CLASS_MAX + PCI_ADDRESS_SIZE + 2];

                if (!spec || spec->physical_network)
                        continue;
                pci_spec_resource_class(spec, device, name);
                snprintf(text, sizeof(text), "%s %s", name,
                         device->physical_function[0] ? device->physical_function
                                                      : device->address);
                if (string_set_add(ret, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Compares the classes of two texts of list_providers(), up to and including the space. */
static bool same_class(const char *a, const char *b)
{
        size_t n = strcspn(a, " ");

        return strncmp(a, b, n + 1) == 0;
}

static bool matches_any(PciSpec **spec, const Snapshot *snapshot)
{
        const PciSpecs alone = { .items = spec, .n_items = 1 };

        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (pci_specs_find(&alone, &snapshot->devices[i]))
                        return true;
        return false;
}

/* Entries are counted from 1, because one value of the option can contain several of them. */
static int verify_entries(const PciSpecs *specs, const Snapshot *snapshot, Findings *findings)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < specs->n_items; i++)
                if (!matches_any(&specs->items[i], snapshot))
                        r = findings_warn(findings, "[pci] device_spec",
                                          "Entry %zu of %zu matches no device of this host", i + 1,
                                          specs->n_items);
        return r;
}

/* Returns the vGPU type that most functions of the card have, or NULL. Only functions of
 * device_spec count. */
static const char *find_common_type(const HostConfig *config, const Snapshot *snapshot,
                                    const char *card)
{
        const char *found = NULL;
        size_t most = 0;

        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const char *type = snapshot_vgpu_type(&snapshot->devices[i]);
                size_t n = 0;

                for (size_t j = 0; type && j < snapshot->n_devices; j++) {
                        const char *other = snapshot_vgpu_type(&snapshot->devices[j]);

                        n += other && strcmp(other, type) == 0 &&
                             strcmp(snapshot->devices[j].physical_function, card) == 0 &&
                             is_spec_function(config, &snapshot->devices[j]);
                }
                if (n > most) {
                        most = n;
                        found = type;
                }
        }
        return found;
}

/* Returns whether a domain has the function, also only in its persistent definition. */
static bool is_used(const Snapshot *snapshot, const SnapshotDevice *device)
{
        for (size_t i = 0; i < snapshot->n_domains; i++)
                if (snapshot_domain_has(&snapshot->domains[i], device->address, true))
                        return true;
        return false;
}

/* Warns of functions of device_spec that have no vGPU type, or another one than most functions of
 * their card. A function without a type that a domain has is offered, so there is no warning. */
static int verify_types(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];
                const char *type = snapshot_vgpu_type(device), *common;

                if (!is_spec_function(config, device))
                        continue;
                if (!type && is_used(snapshot, device))
                        continue;
                if (!type) {
                        r = findings_warn(
                                findings, "[pci] device_spec",
                                "The function %s has no vGPU type and is not offered. Set its type, or remove it from device_spec",
                                device->address);
                        continue;
                }
                common = find_common_type(config, snapshot, device->physical_function);
                if (common && strcmp(type, common) != 0)
                        r = findings_warn(
                                findings, "[pci] device_spec",
                                "The function %s has the vGPU type %.60s, but other functions of its card have %.60s. Guests get either",
                                device->address, type, common);
        }
        return r;
}

/* Warns, with report_in_placement only, if device_spec has entries but no device without a
 * physical_network matches. If some match, it warns of entries without a device, of functions
 * without the common vGPU type, and of too many providers of one class. Providers of one class are
 * neighbours in the sorted set. */
static int verify_pci(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        _cleanup_(string_set_done) StringSet providers = STRING_SET_INIT;
        int r = 0;

        if (!config->report_in_placement)
                return 0;
        if (list_providers(config, snapshot, &providers) < 0)
                return -ENOMEM;
        if (config->pci_specs.n_items > 0 && providers.n_items == 0)
                return findings_warn(
                        findings, "[pci] device_spec",
                        "No device of this host matches. \"computectl discover --all\" shows all devices");
        r = verify_entries(&config->pci_specs, snapshot, findings);
        if (r == 0)
                r = verify_types(config, snapshot, findings);
        for (size_t i = 0, n; r == 0 && i < providers.n_items; i += n) {
                const char *first = providers.items[i];

                for (n = 1; i + n < providers.n_items && same_class(first, providers.items[i + n]);)
                        n++;
                if (n > PCI_SIBLINGS_MAX)
                        r = findings_warn(
                                findings, "[pci] device_spec",
                                "%zu providers have %.*s: Placement might find no candidate for a guest that asks for several. Give groups of them their own resource_class, or let Placement search breadth-first (allocation_candidates_generation_strategy)",
                                n, (int)strcspn(first, " "), first);
        }
        return r;
}

/* Returns the number of devices of the host that the section has, at this address (NULL: any). */
static size_t count_cleaned(const HostConfig *config, const Snapshot *snapshot,
                            const HostClean *section, const char *address)
{
        size_t n = 0;

        for (size_t i = 0; i < snapshot->n_devices; i++)
                n += host_clean_find(config, &snapshot->devices[i]) == section &&
                     (!address || strcmp(snapshot->devices[i].address, address) == 0);
        return n;
}

/* Warns of addresses in sections [device_clean NAME] that are not cleaned, and of sections with
 * resource_classes that have no device. */
static int verify_cleans(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < config->n_cleans; i++) {
                const HostClean *section = &config->cleans[i];

                for (char **a = section->device_addresses; r == 0 && a && *a; a++)
                        if (count_cleaned(config, snapshot, section, *a) == 0)
                                r = findings_warn(
                                        findings, "[device_clean NAME] device_addresses",
                                        "%s is not cleaned: it must be a device of this host and of [pci] device_spec, and not a virtual function",
                                        *a);
                if (r == 0 && section->resource_classes && section->resource_classes[0] &&
                    count_cleaned(config, snapshot, section, NULL) == 0)
                        r = findings_warn(
                                findings, "[device_clean NAME] resource_classes",
                                "No device of this host belongs to the section %s. Virtual functions are not cleaned",
                                section->name);
        }
        return r;
}

/* Warns of sections [device_shapes NAME] whose devices are missing, or used in another way too. */
static int verify_shapes(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < config->n_shapes; i++) {
                const DeviceSet *set = &config->shapes[i].set;
                Error words;

                if (shape_check(config, snapshot, set, &words) < 0)
                        r = findings_warn(findings, "[device_shapes NAME] members", "%s",
                                          words.text);
        }
        return r;
}

static int verify_all(const HostConfig *config, const Snapshot *snapshot, Findings *findings)
{
        _cleanup_(cpu_plan_done) CpuPlan cpus = { 0 };
        int r;

        if ((r = verify_update(config, snapshot, &cpus, findings)) < 0 ||
            (r = verify_cpus(snapshot, &cpus, findings)) < 0 ||
            (r = verify_guests(&cpus, snapshot, findings)) < 0 ||
            (r = verify_huge_pages(config, snapshot, findings)) < 0 ||
            (r = verify_cells(config, snapshot, &cpus, findings)) < 0 ||
            (r = verify_disk(config, snapshot, findings)) < 0 ||
            (r = verify_emulators(config, snapshot, findings)) < 0)
                return r;
        r = verify_pci(config, snapshot, findings);
        if (r == 0)
                r = verify_cleans(config, snapshot, findings);
        if (r == 0)
                r = verify_shapes(config, snapshot, findings);
        return r < 0 ? r : verify_mdevs(config, snapshot, findings);
}

json_t *verify_host(const HostConfig *config, const Snapshot *snapshot)
{
        _cleanup_(findings_done) Findings findings = { json_array(), json_array() };
        json_int_t n_errors;

        if (!findings.errors || !findings.warnings || verify_all(config, snapshot, &findings) < 0)
                return NULL;
        n_errors = (json_int_t)json_array_size(findings.errors);
        if (json_array_extend(findings.errors, findings.warnings) < 0)
                return NULL;
        return json_pack("{ss sI sO}", "nodename", snapshot->nodename, "errors", n_errors,
                         "findings", findings.errors);
}
