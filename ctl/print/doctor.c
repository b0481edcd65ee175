/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Judges the facts of a host (CtlFacts) for "computectl doctor", prints the findings, and derives
 * the exit code. Each judge examines one subject and adds its findings to one list; the table of
 * ctl_doctor_judge() is their order on the page. The caller gathers the facts, some of them with
 * ctl_facts_measure(). The judges ask neither the agent nor the system, except for the user id of
 * this process.
 *
 * A check that the agent makes itself is reported by the reasons of its status. So a judge adds no
 * "ok" if has_reason() finds its subject there. Invariants: a judge returns a negative number only
 * if memory ran out. A fact that could not be gathered becomes a finding with its error, or leaves
 * out the findings that need it. A record of compute-agent-prepare that cannot be read counts as
 * missing. */

#include "ctl/print/doctor.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "base/text.h"
#include "ctl/print/doctor-prepare.h"
#include "ctl/print/finding.h"
#include "ctl/print/json.h"
#include "ctl/print/status.h"
#include "ctl/print/text.h"
#include "drivers/driver-words.h"
#include "formats/interface.h"

#define DEFAULT_STATE_PATH  LOCALSTATEDIR "/lib/compute-agent"
#define HOOK_PATH           SYSCONFDIR "/libvirt/hooks/qemu.d/compute-agent"
#define INDENT              24                     /* column of the words */
#define FAILED              "compute-agent failed" /* prefix of a failed start; see ctl/ask/unit.h */
#define DISK_NEEDED_BYTES   (UINT64_C(16) << 20)
#define CLOCK_TOLERANCE_SEC 5
#define FACT_MAX            100 /* longest text of a status that is printed as a fact, in bytes */
#define WIDE_TREE_MIN       8   /* from Placement's release note about the option */
#define NEWEST_MICROVERSION 38  /* minor version of 1.x, the newest that the agent uses */

void ctl_facts_measure(CtlFacts *facts)
{
        const char *path = facts->config ? facts->config->state_dir : DEFAULT_STATE_PATH;
        struct timex timex = { 0 };
        struct statvfs fs;

        facts->hook_installed = access(HOOK_PATH, X_OK) == 0;
        facts->clock_synchronised = adjtimex(&timex) >= 0 && !(timex.status & STA_UNSYNC);
        if (statvfs(path, &fs) < 0)
                error_setf(&facts->disk_error, errno, "Cannot check %s: %s", path, strerror(errno));
        else
                facts->disk_free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
}

static bool is_running(const CtlFacts *facts)
{
        return strcmp(ctl_json_text(facts->status, "state"), "not-running") != 0;
}

/* Checks whether the agent's status has a reason of that check. */
static bool has_reason(const CtlFacts *facts, const char *check)
{
        return ctl_json_find(json_object_get(facts->status, "reasons"), "check", check);
}

/* Judges the configuration: its error, or rights that could not be checked, or its warnings. A user
 * without rights sees a warning, because the file might be correct. */
static int judge_config(const CtlFacts *facts, json_t *findings)
{
        size_t n = facts->config ? facts->config->warnings.n_items : 0;

        if (facts->unit_config &&
            ctl_finding_add(findings, "configuration", "warning",
                            "Run \"computectl doctor\" with the same --config",
                            "The unit starts the agent with --config=%s, which is not checked here",
                            facts->unit_config) < 0)
                return -1;
        if (facts->config_error.code == EACCES && geteuid() != 0)
                return ctl_finding_add(findings, "configuration", "warning", "Run this as root",
                                       "Not checked: %s", facts->config_error.text);
        if (facts->config_error.code)
                return ctl_finding_add(
                        findings, "configuration", "bad",
                        "Correct the configuration (see \"computectl cat-config\"), then run \"systemctl restart compute-agent\"",
                        "%s", facts->config_error.text);
        if (facts->config_unchecked.code)
                return ctl_finding_add(findings, "configuration", "warning",
                                       "Create the user of the unit, or correct User= of the unit",
                                       "%s", facts->config_unchecked.text);
        if (has_reason(facts, "configuration"))
                return 0; /* the service reports its first warning */
        for (size_t i = 0; i < n; i++) {
                int r = ctl_finding_add(
                        findings, "configuration", "warning",
                        i + 1 < n
                                ? NULL
                                : "Correct each option, then run \"systemctl reload compute-agent\"",
                        "%s", facts->config->warnings.items[i]);

                if (r < 0)
                        return r;
        }
        if (n > 0)
                return 0;
        return ctl_finding_add(findings, "configuration", "ok", NULL, "The configuration is valid");
}

/* Judges files that the service cannot read or write, and credentials that a restart would
 * change. */
static int judge_files(const CtlFacts *facts, json_t *findings)
{
        int r = 0;

        for (size_t i = 0; facts->files && i < facts->files->n_items && r >= 0; i++)
                r = ctl_finding_add(
                        findings, "files", "warning",
                        "Create the file, or make it readable for the service's user (chgrp, chmod g+r). Then run \"systemctl restart compute-agent\"",
                        "%s", facts->files->items[i]);
        for (size_t i = 0; facts->credentials && i < facts->credentials->n_items && r >= 0; i++)
                r = ctl_finding_add(
                        findings, "credentials", "warning",
                        "If the file is missing, create it. Then run \"systemctl restart compute-agent\"",
                        "%s", facts->credentials->items[i]);
        return r;
}

/* Adds a reason of the agent's status. A long text becomes the cause of its summary. */
static int add_reason(json_t *findings, const json_t *reason)
{
        const char *text = ctl_json_text(reason, "text"), *check = ctl_json_text(reason, "check"),
                   *advice = ctl_json_text(reason, "advice"),
                   *verdict = ctl_json_text(reason, "state"),
                   *state = strcmp(verdict, STATE_DEGRADED) == 0 ? "bad"
                            : strcmp(verdict, STATE_OK) == 0     ? "ok"
                                                                 : "warning";
        _cleanup_free_ char *summary = strdup(ctl_json_text(reason, "summary"));

        if (!summary)
                return -1;
        if (!summary[0] || strlen(text) <= FACT_MAX)
                return ctl_finding_add_caused(findings, check, state, advice, text, NULL);
        summary[0] = (char)toupper((unsigned char)summary[0]);
        return ctl_finding_add_caused(findings, check, state, advice, summary, text);
}

/* Adds the reasons of the agent's status. */
static int judge_reasons(const CtlFacts *facts, json_t *findings)
{
        const json_t *reason;
        size_t i;
        int r = 0;

        json_array_foreach(json_object_get(facts->status, "reasons"), i, reason) {
                if (r >= 0)
                        r = add_reason(findings, reason);
        }
        return r;
}

/* Judges the service: a start that failed, a service that does not run, or, if it runs well, its
 * version and number of claims. */
static int judge_service(const CtlFacts *facts, json_t *findings)
{
        if (strncmp(ctl_json_text(facts->status, "summary"), FAILED, strlen(FAILED)) == 0)
                return ctl_finding_add_caused(
                        findings, "service", "bad",
                        "Correct the error, then run \"systemctl restart compute-agent\". For details, run \"journalctl -x -u compute-agent\"",
                        "The service failed to start", ctl_json_text(facts->status, "summary"));
        if (!is_running(facts))
                return ctl_finding_add(
                        findings, "service", "bad",
                        "Run \"systemctl status dbus compute-agent\" and, for the cause, \"journalctl -x -u compute-agent\". To start the agent at each boot, run \"systemctl enable compute-agent\"",
                        "%s", ctl_json_text(facts->status, "summary"));
        if (has_reason(facts, "service"))
                return 0;
        return ctl_finding_add(
                findings, "service", "ok", NULL, "Version %s is running, with %" PRIu64 " claim%s",
                ctl_json_text(facts->status, "version"), ctl_json_u64(facts->status, "n_claims"),
                text_plural(ctl_json_u64(facts->status, "n_claims")));
}

/* Judges the poll of the hypervisor. The advice depends on the configured driver. */
static int judge_hypervisor(const CtlFacts *facts, json_t *findings)
{
        if (has_reason(facts, "hypervisor"))
                return 0;
        if (!facts->snapshot && !facts->config && !is_running(facts))
                return 0; /* the configured driver is unknown */
        if (!facts->snapshot)
                return ctl_finding_add_caused(
                        findings, "hypervisor", "bad",
                        driver_words(facts->config ? facts->config->compute_driver : NULL)->advice,
                        "The host cannot be polled", facts->snapshot_error.text);
        if (strcmp(facts->snapshot->driver, "linux") == 0)
                return ctl_finding_add(findings, "hypervisor", "ok", NULL, "%s on %s: %zu device%s",
                                       facts->snapshot->hypervisor, facts->snapshot->nodename,
                                       facts->snapshot->n_devices,
                                       text_plural(facts->snapshot->n_devices));
        return ctl_finding_add(findings, "hypervisor", "ok", NULL,
                               "%s on %s: %zu device%s, %zu domain%s", facts->snapshot->hypervisor,
                               facts->snapshot->nodename, facts->snapshot->n_devices,
                               text_plural(facts->snapshot->n_devices), facts->snapshot->n_domains,
                               text_plural(facts->snapshot->n_domains));
}

/* Adds each part of the host that the poll could not read. */
static int judge_parts(const CtlFacts *facts, json_t *findings)
{
        int r = 0;

        for (size_t i = 0; facts->snapshot && i < facts->snapshot->problems.n_items && r >= 0; i++)
                r = ctl_finding_add(
                        findings, "host", "warning",
                        "The last known values of this part stay unchanged. Each poll reads it again. To read the capabilities of guests again, run \"computectl sync\"",
                        "%s", facts->snapshot->problems.items[i]);
        return r;
}

static bool offers_type(const Snapshot *snapshot, const char *type)
{
        for (size_t i = 0; i < snapshot->n_devices; i++)
                for (size_t j = 0; j < snapshot->devices[i].n_mdev_types; j++)
                        if (strcmp(snapshot->devices[i].mdev_types[j].id, type) == 0)
                                return true;
        return false;
}

/* Judges virtual GPUs: each configured mdev type must be offered by a device. */
static int judge_devices(const CtlFacts *facts, json_t *findings)
{
        size_t n = 0;

        if (!facts->config || !facts->snapshot)
                return 0;
        for (char **type = facts->config->enabled_mdev_types; type && *type; type++, n++)
                if (!offers_type(facts->snapshot, *type))
                        return ctl_finding_add(
                                findings, "devices", "bad",
                                "Use a type that \"computectl discover\" lists. If the device is missing there, check that its driver is loaded",
                                "[devices] enabled_mdev_types: no device offers \"%s\"", *type);
        if (has_reason(facts, "devices"))
                return 0;
        if (n == 0)
                return ctl_finding_add(findings, "devices", "ok", NULL,
                                       "No virtual GPUs are enabled");
        return ctl_finding_add(findings, "devices", "ok", NULL,
                               "All enabled mdev types are offered (%zu)", n);
}

/* Judges the disk for guests. The agent's own sentence about it (local_disk) wins. Without a known
 * size DISK_GB is not reported, and no guest with a local disk is scheduled here. */
static int judge_storage(const CtlFacts *facts, json_t *findings)
{
        const HostConfig *host = facts->config ? &facts->config->driver.host : NULL;
        const char *pool = host ? host->images_storage_pool : NULL;
        bool rbd = host && host->images_type == HOST_IMAGES_RBD && !pool;
        /* An agent that keeps the last known size lists the disk among the parts of this host. */
        bool may_be_kept = !is_running(facts) || has_reason(facts, "host");

        const char *local_disk = ctl_json_text(facts->status, "local_disk");

        if (local_disk[0])
                return ctl_finding_add(findings, "storage", "ok", NULL, "%s", local_disk);
        if (!facts->config || !facts->snapshot)
                return 0;
        if (host->report_local_disk == HOST_LOCAL_DISK_NO)
                return ctl_finding_add(findings, "storage", "ok", NULL,
                                       "[compute] report_local_disk is no");
        if (facts->snapshot->disk_total_bytes == 0)
                return ctl_finding_add(
                        findings, "storage", "warning",
                        rbd ? "Install ceph-common, and make the keyring of [libvirt] rbd_user readable for user compute-agent. For the reason, run \"computectl doctor --hardware-only\""
                            : "Create it (mount it, start the pool), or set [DEFAULT] instances_path to the folder of the guests' disks. Without DISK_GB, no guest with a local disk is scheduled here",
                        "The size of %s is unknown, so DISK_GB is not reported%s",
                        rbd    ? "the Ceph cluster"
                        : pool ? pool
                               : host->instances_path,
                        may_be_kept ? ", or keeps its last value" : "");
        return ctl_finding_add(findings, "storage", "ok", NULL,
                               "The size of the disk for guests is known");
}

/* Judges the sync state. Only states without a reason of the agent are left for this judge. */
static int judge_placement(const CtlFacts *facts, json_t *findings)
{
        const char *state = ctl_json_text(facts->status, "sync_state");

        /* Before the first poll the agent waits for the hypervisor, and the state of Placement is
         * unknown. */
        if (!is_running(facts) || has_reason(facts, "placement") ||
            strcmp(state, SYNC_STATE_PENDING) == 0)
                return 0;
        if (strcmp(state, SYNC_STATE_STANDALONE) == 0)
                return ctl_finding_add(
                        findings, "placement", "ok", NULL,
                        "No [placement] section: the agent publishes nothing to Placement");
        if (strcmp(state, SYNC_STATE_LEFT_TO_NOVA) == 0)
                return ctl_finding_add(
                        findings, "placement", "ok", NULL,
                        "[agent] nova is %s, so nova-compute publishes the resources of this host",
                        ctl_json_text(facts->status, "nova"));
        if (has_reason(facts, "second reporter"))
                return 0;
        return ctl_finding_add(findings, "placement", "ok", NULL,
                               "Placement is equal to this host%s",
                               ctl_json_text(facts->status, "hypervisor_error")[0]
                                       ? " as of the last successful poll"
                                       : "");
}

/* Judges the right to reshape. Only a rejection that was seen is reported. */
static int judge_reshape(const CtlFacts *facts, json_t *findings)
{
        if (strcmp(ctl_json_text(facts->status, "reshape_access"), RESHAPE_ACCESS_REFUSED) != 0)
                return 0;
        return ctl_finding_add(
                findings, "reshape", "warning",
                "Run \"openstack role add --user USER --project PROJECT service\", then \"systemctl reload compute-agent\"",
                "The user of [placement] lacks the role service, so no reshape is possible");
}

/* Names Placement's option for wide trees. The agent cannot see whether it is set, so it is no
 * warning. */
static int judge_width(const CtlFacts *facts, json_t *findings)
{
        uint64_t n = ctl_json_u64(facts->status, "n_like_providers");
        char text[CTL_TEXT_MAX];

        if (n < WIDE_TREE_MIN)
                return 0;
        snprintf(text, sizeof(text), "%" PRIu64 " providers have the same resource class", n);
        return ctl_finding_add_caused(
                findings, "width", "ok", NULL, text,
                "If guests use more than 4 of them, set [workarounds] optimize_for_wide_provider_trees in placement.conf");
}

static bool has_role(const json_t *connect, const char *name)
{
        const json_t *role;
        size_t i;

        json_array_foreach(json_object_get(connect, "roles"), i, role)
                if (json_is_string(role) && strcmp(json_string_value(role), name) == 0)
                        return true;
        return false;
}

static bool has_keystone(const json_t *connect)
{
        return json_is_true(json_object_get(connect, "keystone"));
}

/* Writes "admin, service". Names are cut at 40 bytes, and the list at the size. */
static void list_roles(const json_t *connect, char *text, size_t size)
{
        const json_t *role;
        size_t i, n = 0;

        snprintf(text, size, "none");
        json_array_foreach(json_object_get(connect, "roles"), i, role)
                if (json_is_string(role) && n + 2 < size) {
                        snprintf(text + n, size - n, "%s%.40s", n > 0 ? ", " : "",
                                 json_string_value(role));
                        text_trim_cut(text);
                        n = strlen(text);
                }
}

static const char *advice_for_token(const json_t *connect)
{
        const char *outcome = ctl_json_text(connect, "outcome");

        if (strcmp(outcome, "unauthorized") == 0)
                return "Test the credential with \"openstack token issue\". Correct it in [placement] and run \"systemctl reload compute-agent\", or correct its file of LoadCredential= and run \"systemctl restart compute-agent\"";
        if (strcmp(outcome, "unreachable") == 0)
                return "Check that auth_url is correct, that Keystone runs, and that this host can reach it and trusts its certificate (cafile)";
        return "Compare auth_url, region_name and valid_interfaces in [placement] with \"openstack endpoint list\"";
}

/* Judges the token. Without a token Placement cannot be read, so the caller skips judge_read(). */
static int judge_token(const json_t *connect, json_t *findings)
{
        const char *error = ctl_json_text(connect, "error"),
                   *scope = ctl_json_text(connect, "scope");
        char roles[200];

        if (error[0])
                return ctl_finding_add_caused(findings, "keystone", "bad",
                                              advice_for_token(connect), "Keystone issued no token",
                                              error);
        list_roles(connect, roles, sizeof(roles));
        return ctl_finding_add(findings, "keystone", "ok", NULL,
                               "Keystone issues a token for %s. Roles: %s",
                               scope[0] ? scope : "no scope", roles);
}

/* Judges the access to Placement with the token: its role, the endpoint, and roles that a stricter
 * policy would reject. */
static int judge_read(const json_t *connect, json_t *findings)
{
        const char *error = ctl_json_text(connect, "placement_error");
        const char *outcome = ctl_json_text(connect, "placement_outcome");

        if (strcmp(outcome, "unreadable") == 0)
                return ctl_finding_add_caused(
                        findings, "role", "bad",
                        !has_keystone(connect)
                                ? "Set token to the admin token of Placement's configuration"
                        : has_role(connect, "service")
                                ? "The user has the role service, but this Placement is older than the role or has its own policy. Run \"openstack role add --user USER --project PROJECT admin\""
                                : "Run \"openstack role add --user USER --project PROJECT service\" (admin, if Placement is older than the role service)",
                        "Placement refuses this user", error);
        if (error[0])
                return ctl_finding_add_caused(
                        findings, "endpoint", "bad",
                        has_keystone(connect)
                                ? "Check that Placement runs there. Check the catalogue with \"openstack endpoint list --service placement\""
                                : "Check that Placement runs there. Check endpoint_override and token",
                        "Placement cannot be used", error);
        if (has_keystone(connect) && !has_role(connect, "service") && !has_role(connect, "admin"))
                return ctl_finding_add(
                        findings, "role", "warning",
                        "Grant one of the two roles. A stricter policy of Placement would reject this token",
                        "The token has neither the role service nor admin");
        return ctl_finding_add(findings, "endpoint", "ok", NULL, "Placement answers at %s",
                               ctl_json_text(connect, "endpoint"));
}

/* Judges the newest microversion of Placement. Nothing is added if Placement did not report one. */
static int judge_version(const json_t *connect, json_t *findings)
{
        const char *newest = ctl_json_text(connect, "microversion");
        unsigned major, minor;

        if (sscanf(newest, "%u.%u", &major, &minor) != 2)
                return 0;
        if (major == 1 && minor < NEWEST_MICROVERSION)
                return ctl_finding_add(
                        findings, "version", "warning",
                        "Upgrade Placement. Without 1.38 consumers have no types, and without 1.37 no provider can be moved below another one",
                        "Placement supports microversions up to %.10s", newest);
        return ctl_finding_add(findings, "version", "ok", NULL,
                               "Placement supports microversions up to %.10s", newest);
}

/* Judges the clock by the time of Keystone's answer. Small differences are normal for a request. */
static int judge_clock_of_keystone(const json_t *connect, json_t *findings)
{
        json_int_t ahead = json_integer_value(json_object_get(connect, "clock_ahead_sec"));

        if (llabs(ahead) <= CLOCK_TOLERANCE_SEC)
                return 0;
        return ctl_finding_add(
                findings, "clock", "warning",
                "Run chrony or systemd-timesyncd on both hosts. Keystone's clock decides when a token expires",
                "The clock is %lld s %s that of Keystone", llabs(ahead),
                ahead > 0 ? "ahead of" : "behind");
}

/* Judges the path over Keystone to Placement, in the order in which requests need its parts.
 * connect: a document of CONNECT_FORMAT. */
static int judge_way(const json_t *connect, json_t *findings)
{
        int r = has_keystone(connect) ? judge_token(connect, findings) : 0;

        if (r == 0 && !ctl_json_text(connect, "error")[0])
                r = judge_read(connect, findings);
        if (r == 0)
                r = judge_version(connect, findings);
        return r == 0 ? judge_clock_of_keystone(connect, findings) : r;
}

static int judge_connection(const CtlFacts *facts, json_t *findings)
{
        if (facts->connect_error.code)
                return ctl_finding_add_caused(findings, "keystone", "bad",
                                              "Correct the option in [placement] or in clouds.yaml",
                                              "The connection was not checked",
                                              facts->connect_error.text);
        return facts->connect ? judge_way(facts->connect, findings) : 0;
}

/* Adds the result of the comparison with Placement. Without a comparison or its result, adds the
 * identity of a running agent. */
static int judge_identity(const CtlFacts *facts, json_t *findings)
{
        const char *state = ctl_json_text(facts->identity, "state"),
                   *node = ctl_json_text(facts->status, "node");
        bool well = strcmp(state, "good") == 0 || strcmp(state, "new") == 0;

        if (facts->identity_error.code)
                return ctl_finding_add_caused(findings, "identity", "bad",
                                              "For details, run \"computectl identity show\"",
                                              "The identity was not compared",
                                              facts->identity_error.text);
        if (facts->identity && strcmp(state, "unknown") != 0)
                return ctl_finding_add(findings, "identity", well ? "ok" : "bad",
                                       well ? NULL : ctl_json_text(facts->identity, "advice"), "%s",
                                       ctl_json_text(facts->identity, "text"));
        if (!is_running(facts))
                return 0;
        return ctl_finding_add(findings, "identity", "ok", NULL, "%s%s (%s)",
                               node[0] ? "This host is " : "Its root provider is known", node,
                               ctl_json_text(facts->status, "root"));
}

/* Warns about NUMA cells as providers on a host of nova-compute. Nova's scheduler selects no host
 * whose root provider has no inventory. */
static int judge_numa(const CtlFacts *facts, json_t *findings)
{
        if (!facts->config || facts->config->driver.host.numa_in_placement != HOST_NUMA_CELLS ||
            facts->config->reporter.nova == NOVA_NONE)
                return 0;
        return ctl_finding_add(
                findings, "numa", "warning",
                "Set [compute] numa_in_placement = root, which keeps VCPU and MEMORY_MB on the root provider. To move the allocations, run \"computectl reshape\"",
                "With numa_in_placement = true, flavours without a disk find no host");
}

/* Reports memory of cells without CPUs, for example of a GPU or behind CXL. This is no fault, but
 * an operator might miss that memory. */
static int judge_cells(const CtlFacts *facts, json_t *findings)
{
        uint64_t memory_kib = 0;
        char memory[CTL_TEXT_MAX], text[2 * CTL_TEXT_MAX];
        size_t n = 0;

        if (!facts->config || !facts->snapshot ||
            facts->config->driver.host.numa_in_placement == HOST_NUMA_FLAT)
                return 0;
        for (size_t i = 0; i < facts->snapshot->n_cells; i++) {
                const SnapshotCell *cell = &facts->snapshot->cells[i];

                if (cell->n_cpus > 0 || cell->memory_kib == 0)
                        continue;
                n++;
                memory_kib += cell->memory_kib;
        }
        if (n == 0)
                return 0;
        ctl_text_kib(memory, memory_kib);
        snprintf(text, sizeof(text), "Guests cannot use %s of %zu NUMA cell%s without CPUs", memory,
                 n, text_plural(n));
        return ctl_finding_add_caused(
                findings, "cells", "ok", NULL, text,
                "It belongs to a GPU or a CXL device, or the CPUs are offline");
}

/* Judges libvirt's hook. An enabled hook that is not installed is an error: guests start without
 * claims. */
static int judge_hook(const CtlFacts *facts, json_t *findings)
{
        if (!facts->config || !facts->config->hook_enabled)
                return 0;
        if (!facts->hook_installed)
                return ctl_finding_add_caused(
                        findings, "hook", "bad",
                        "Create it as a link to computectl, then restart libvirtd or virtqemud",
                        "[hook] enabled is true, but the hook is not installed",
                        HOOK_PATH " does not exist or is not executable");
        return ctl_finding_add_caused(findings, "hook", "ok", NULL, "Guests claim when they start",
                                      "libvirt must be started after the package was installed");
}

static int judge_clock(const CtlFacts *facts, json_t *findings)
{
        if (!facts->clock_synchronised)
                return ctl_finding_add(
                        findings, "clock", "warning",
                        "Run chrony or systemd-timesyncd. The clock decides when tokens and claims expire",
                        "The clock is not synchronised");
        return ctl_finding_add(findings, "clock", "ok", NULL, "The clock is synchronised");
}

static int judge_disk(const CtlFacts *facts, json_t *findings)
{
        char free_text[CTL_TEXT_MAX];

        if (facts->disk_error.code == ENOENT && !is_running(facts))
                return 0; /* the first start creates it */
        if (facts->disk_error.code)
                return ctl_finding_add_caused(
                        findings, "disk", "bad",
                        "Create the folder, or start the service, which creates it",
                        "The state folder cannot be checked", facts->disk_error.text);
        ctl_text_kib(free_text, facts->disk_free_bytes / 1024);
        if (facts->disk_free_bytes < DISK_NEEDED_BYTES)
                return ctl_finding_add(
                        findings, "disk", "bad",
                        "Free some space. The agent rejects claims that it cannot write",
                        "Only %s are free for the claim database", free_text);
        return ctl_finding_add(findings, "disk", "ok", NULL, "%s are free for the claim database",
                               free_text);
}

/* Adds the findings of one subject. Returns a negative number if memory ran out. */
typedef int (*Judge)(const CtlFacts *facts, json_t *findings);

json_t *ctl_doctor_judge_hardware(const json_t *verified)
{
        _cleanup_json_ json_t *findings = json_array();
        const json_t *finding;
        size_t i;

        json_array_foreach(json_object_get(verified, "findings"), i, finding) {
                bool bad = strcmp(ctl_json_text(finding, "level"), "error") == 0;
                const char *option = ctl_json_text(finding, "option");
                const char *text = ctl_json_text(finding, "text");
                bool is_named = text[0] == '[' || strstr(text, option);

                if (ctl_finding_add(findings, "hardware", bad ? "bad" : "warning", NULL, "%s%s%s",
                                    is_named ? "" : option, is_named ? "" : ": ", text) < 0)
                        return NULL;
        }
        if (json_array_size(findings) == 0 &&
            ctl_finding_add(findings, "hardware", "ok", NULL, "The configuration fits this host") <
                    0)
                return NULL;
        return json_pack("{ss sO}", "format", CTL_DOCTOR_FORMAT, "findings", findings);
}

static int judge_prepare(const CtlFacts *facts, json_t *findings)
{
        return facts->config
                       ? ctl_doctor_judge_prepare(&facts->config->driver.host, facts->snapshot,
                                                  facts->prepared, facts->partitions, findings)
                       : 0;
}

json_t *ctl_doctor_judge(const CtlFacts *facts)
{
        /* The first two judge the configuration: --config-only runs no others. */
        static const Judge judges[] = {
                judge_config, judge_files,   judge_reasons, judge_service,    judge_hypervisor,
                judge_parts,  judge_devices, judge_storage, judge_placement,  judge_numa,
                judge_cells,  judge_reshape, judge_width,   judge_connection, judge_identity,
                judge_hook,   judge_prepare, judge_clock,   judge_disk,
        };
        _cleanup_json_ json_t *findings = json_array();

        if (!findings)
                return NULL;
        for (size_t i = 0; i < (facts->config_only ? 2 : ARRAY_SIZE(judges)); i++)
                if (judges[i](facts, findings) < 0)
                        return NULL;
        return json_pack("{ss sO}", "format", CTL_DOCTOR_FORMAT, "findings", findings);
}

/* Prints a sentence in the column of the words, on the begun line and below. Adds the full stop if
 * there is none. */
static void print_sentence(const char *text, CtlPage *page)
{
        bool ended = text[0] && strchr(".?!", text[strlen(text) - 1]);

        ctl_page_rest(page, INDENT, CTL_PLAIN, "%s%s", text, ended ? "" : ".");
}

/* Prints state, check and text, with the number of further findings of the check. */
static void print_fact(const json_t *finding, size_t n_more, CtlPage *page)
{
        const char *state = ctl_json_text(finding, "state"), *text = ctl_json_text(finding, "text");
        CtlColour colour = strcmp(state, "ok") == 0    ? CTL_GREEN
                           : strcmp(state, "bad") == 0 ? CTL_RED
                                                       : CTL_YELLOW;

        ctl_page_write(page, colour, "%-8s", state);
        ctl_page_write(page, CTL_PLAIN, " %-14s ", ctl_json_text(finding, "check"));
        if (n_more > 0)
                ctl_page_rest(page, INDENT, CTL_PLAIN, "%s (and %zu more)", text, n_more);
        else
                print_sentence(text, page);
}

/* Prints cause and advice of a finding, each on its own line. */
static void print_details(const json_t *finding, CtlPage *page)
{
        static const char *const members[] = { "cause", "advice" };

        for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
                const char *text = ctl_json_text(finding, members[i]);

                if (!text[0])
                        continue;
                fprintf(page->output, "%*s", INDENT, "");
                print_sentence(text, page);
        }
}

static unsigned get_severity(const json_t *finding)
{
        const char *state = ctl_json_text(finding, "state");

        return strcmp(state, "bad") == 0 ? 2 : strcmp(state, "ok") != 0;
}

/* Prints one line for the check of the finding with that index, if it is the first of the check:
 * the text of the worst finding. With --all it is not called, since each finding is printed. */
static void print_check(const json_t *findings, size_t at, CtlPage *page)
{
        const json_t *worst = json_array_get(findings, at), *finding;
        const char *check = ctl_json_text(worst, "check");
        size_t n = 0, i;

        json_array_foreach((json_t *)findings, i, finding) {
                if (strcmp(ctl_json_text(finding, "check"), check) != 0)
                        continue;
                if (i < at)
                        return;
                n++;
                if (get_severity(finding) > get_severity(worst))
                        worst = finding;
        }
        print_fact(worst, n - 1, page);
}

void ctl_doctor_print(const json_t *document, CtlPage *page)
{
        const json_t *findings = json_object_get(document, "findings"), *finding;
        bool has_details = false;
        size_t i;

        json_array_foreach((json_t *)findings, i, finding) {
                has_details = has_details || get_severity(finding) > 0;
                if (!page->style.all) {
                        print_check(findings, i, page);
                        continue;
                }
                print_fact(finding, 0, page);
                print_details(finding, page);
        }
        if (!has_details || page->style.all || !page->style.legend)
                return;
        fputc('\n', page->output);
        ctl_page_write(page, CTL_DIM, "Causes and advice: computectl doctor --all");
        fputc('\n', page->output);
}

int ctl_doctor_exit(const json_t *document, const json_t *status)
{
        const json_t *findings = json_object_get(document, "findings");
        bool is_bad = ctl_json_find(findings, "state", "bad");
        bool is_well = !is_bad && !ctl_json_find(findings, "state", "warning");
        int code = status ? ctl_status_exit(status) : EXIT_SUCCESS;

        if (!status && is_bad)
                return EXIT_FAILURE;
        return code == EXIT_SUCCESS && !is_well ? CTL_STATUS_NOT_WELL : code;
}
