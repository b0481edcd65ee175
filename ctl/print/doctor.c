/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "base/text.h"
#include "ctl/print/connect.h"
#include "ctl/print/findings.h"
#include "ctl/print/json.h"
#include "ctl/print/status.h"
#include "ctl/print/text.h"
#include "drivers/driver-words.h"
#include "formats/interface.h"

#define DEFAULT_STATE_PATH LOCALSTATEDIR "/lib/compute-agent"
#define HOOK_PATH          SYSCONFDIR "/libvirt/hooks/qemu.d/compute-agent"
#define INDENT             24                     /* of the words */
#define FAILED             "compute-agent failed" /* ctl/ask/unit.h */
#define DISK_NEEDED_BYTES  (UINT64_C(16) << 20)

void ctl_facts_measure(CtlFacts *facts)
{
        const char *path = facts->config ? facts->config->state_dir : DEFAULT_STATE_PATH;
        struct timex timex = { 0 };
        struct statvfs fs;

        facts->hook_installed = access(HOOK_PATH, X_OK) == 0;
        facts->clock_synchronised = adjtimex(&timex) >= 0 && !(timex.status & STA_UNSYNC);
        if (statvfs(path, &fs) < 0)
                error_setf(&facts->disk_error, errno, "%s cannot be looked at: %s", path,
                           strerror(errno));
        else
                facts->disk_free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
}

static bool is_running(const CtlFacts *facts)
{
        return strcmp(ctl_json_text(facts->status, "state"), "not-running") != 0;
}

static bool has_reason(const CtlFacts *facts, const char *check)
{
        return ctl_json_find(json_object_get(facts->status, "reasons"), "check", check);
}

static int judge_config(const CtlFacts *facts, json_t *findings)
{
        size_t n = facts->config ? facts->config->warnings.n_items : 0;

        if (facts->config_error.code == EACCES && geteuid() != 0)
                return ctl_findings_add(findings, "configuration", "warning", "Run this as root",
                                        "Not checked: %s", facts->config_error.text);
        if (facts->config_error.code)
                return ctl_findings_add(
                        findings, "configuration", "bad",
                        "Correct it, then \"systemctl restart compute-agent\"; \"computectl cat-config\" shows what is read",
                        "%s", facts->config_error.text);
        if (facts->config_unchecked.code)
                return ctl_findings_add(findings, "configuration", "warning",
                                        "Create the user of the unit, or correct User= of the unit",
                                        "%s", facts->config_unchecked.text);
        if (has_reason(facts, "configuration"))
                return 0; /* the service names its first warning */
        for (size_t i = 0; i < n; i++) {
                int r = ctl_findings_add(
                        findings, "configuration", "warning",
                        i + 1 < n ? NULL
                                  : "Correct each option, then \"systemctl reload compute-agent\"",
                        "%s", facts->config->warnings.items[i]);

                if (r < 0)
                        return r;
        }
        if (n > 0)
                return 0;
        return ctl_findings_add(findings, "configuration", "ok", NULL, "It can be used");
}

static int judge_files(const CtlFacts *facts, json_t *findings)
{
        int r = 0;

        for (size_t i = 0; facts->files && i < facts->files->n_items && r >= 0; i++)
                r = ctl_findings_add(
                        findings, "files", "warning",
                        "Create the file, or let the service's user read it (chgrp, chmod g+r), then \"systemctl restart compute-agent\"",
                        "%s", facts->files->items[i]);
        for (size_t i = 0; facts->credentials && i < facts->credentials->n_items && r >= 0; i++)
                r = ctl_findings_add(findings, "credentials", "warning",
                                     "\"systemctl restart compute-agent\" takes the new one", "%s",
                                     facts->credentials->items[i]);
        return r;
}

/* What the agent says of itself. */
static int judge_reasons(const CtlFacts *facts, json_t *findings)
{
        const json_t *reason;
        size_t i;
        int r = 0;

        json_array_foreach(json_object_get(facts->status, "reasons"), i, reason) {
                bool bad = strcmp(ctl_json_text(reason, "state"), STATE_DEGRADED) == 0;

                if (r >= 0)
                        r = ctl_findings_add(findings, ctl_json_text(reason, "check"),
                                             bad ? "bad" : "warning",
                                             ctl_json_text(reason, "advice"), "%s",
                                             ctl_json_text(reason, "text"));
        }
        return r;
}

static int judge_service(const CtlFacts *facts, json_t *findings)
{
        if (strncmp(ctl_json_text(facts->status, "summary"), FAILED, strlen(FAILED)) == 0)
                return ctl_findings_add(
                        findings, "service", "bad",
                        "Correct it, then \"systemctl restart compute-agent\"; \"journalctl -x -u compute-agent\" has more",
                        "%s", ctl_json_text(facts->status, "summary"));
        if (!is_running(facts))
                return ctl_findings_add(
                        findings, "service", "bad",
                        "\"systemctl status dbus compute-agent\" shows what runs, \"journalctl -x -u compute-agent\" why it did not stay; \"systemctl enable compute-agent\" starts it at each boot",
                        "%s", ctl_json_text(facts->status, "summary"));
        if (has_reason(facts, "service"))
                return 0;
        return ctl_findings_add(
                findings, "service", "ok", NULL, "Version %s runs, with %" PRIu64 " claim%s",
                ctl_json_text(facts->status, "version"), ctl_json_u64(facts->status, "n_claims"),
                text_plural(ctl_json_u64(facts->status, "n_claims")));
}

static int judge_hypervisor(const CtlFacts *facts, json_t *findings)
{
        if (has_reason(facts, "hypervisor"))
                return 0;
        if (!facts->snapshot && !facts->config && !is_running(facts))
                return 0; /* nobody could say which one to ask */
        if (!facts->snapshot)
                return ctl_findings_add(
                        findings, "hypervisor", "bad",
                        driver_words(facts->config ? facts->config->compute_driver : NULL)->advice,
                        "%s", facts->snapshot_error.text);
        if (strcmp(facts->snapshot->driver, "linux") == 0)
                return ctl_findings_add(findings, "hypervisor", "ok", NULL,
                                        "%s on %s: %zu device%s", facts->snapshot->hypervisor,
                                        facts->snapshot->nodename, facts->snapshot->n_devices,
                                        text_plural(facts->snapshot->n_devices));
        return ctl_findings_add(findings, "hypervisor", "ok", NULL,
                                "%s on %s: %zu device%s, %zu domain%s", facts->snapshot->hypervisor,
                                facts->snapshot->nodename, facts->snapshot->n_devices,
                                text_plural(facts->snapshot->n_devices), facts->snapshot->n_domains,
                                text_plural(facts->snapshot->n_domains));
}

/* What the poll could not read, each by itself. */
static int judge_parts(const CtlFacts *facts, json_t *findings)
{
        int r = 0;

        for (size_t i = 0; facts->snapshot && i < facts->snapshot->problems.n_items && r >= 0; i++)
                r = ctl_findings_add(
                        findings, "host", "warning",
                        "Everything else is reported, and this is left as it was; it is read again with each poll, and what guests may have with \"computectl sync\"",
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

static int judge_devices(const CtlFacts *facts, json_t *findings)
{
        size_t n = 0;

        if (!facts->config || !facts->snapshot)
                return 0;
        for (char **type = facts->config->enabled_mdev_types; type && *type; type++, n++)
                if (!offers_type(facts->snapshot, *type))
                        return ctl_findings_add(
                                findings, "devices", "bad",
                                "\"computectl discover\" lists the types there are; if the device is missing, check that its driver is loaded",
                                "[devices] enabled_mdev_types: no device offers \"%s\"", *type);
        if (has_reason(facts, "devices"))
                return 0;
        if (n == 0)
                return ctl_findings_add(findings, "devices", "ok", NULL,
                                        "No virtual GPUs are enabled");
        return ctl_findings_add(findings, "devices", "ok", NULL,
                                "All enabled mdev types are offered (%zu)", n);
}

static int judge_storage(const CtlFacts *facts, json_t *findings)
{
        const HostConfig *host = facts->config ? &facts->config->driver.host : NULL;
        const char *pool = host ? host->images_storage_pool : NULL;
        bool rbd = host && host->images_type == HOST_IMAGES_RBD && !pool;
        /* An agent that keeps an earlier figure names it among the parts of this host. */
        bool may_be_kept = !is_running(facts) || has_reason(facts, "host");

        const char *local_disk = ctl_json_text(facts->status, "local_disk");

        if (local_disk[0])
                return ctl_findings_add(findings, "storage", "ok", NULL, "%s", local_disk);
        if (!facts->config || !facts->snapshot)
                return 0;
        if (host->report_local_disk == HOST_LOCAL_DISK_NO)
                return ctl_findings_add(findings, "storage", "ok", NULL,
                                        "[compute] report_local_disk is no");
        if (facts->snapshot->disk_total_bytes == 0)
                return ctl_findings_add(
                        findings, "storage", "warning",
                        rbd ? "Install ceph-common, and let the user compute-agent read the keyring of [libvirt] rbd_user; \"computectl doctor --hardware-only\" prints the reason"
                            : "Create it (mount it, start the pool), or set [DEFAULT] instances_path to the folder of the guests' disks; without, no guest with a disk of this host is scheduled here",
                        "The size of %s is not known: DISK_GB is not reported%s",
                        rbd    ? "the Ceph cluster"
                        : pool ? pool
                               : host->instances_path,
                        may_be_kept ? ", or keeps what was reported last" : "");
        return ctl_findings_add(findings, "storage", "ok", NULL,
                                "The size of the disk for guests is known");
}

static int judge_placement(const CtlFacts *facts, json_t *findings)
{
        const char *state = ctl_json_text(facts->status, "sync_state");

        /* Before the first poll it is the hypervisor that is waited for, and nothing is known of
         * this. */
        if (!is_running(facts) || has_reason(facts, "placement") ||
            strcmp(state, SYNC_STATE_PENDING) == 0)
                return 0;
        if (strcmp(state, SYNC_STATE_STANDALONE) == 0)
                return ctl_findings_add(
                        findings, "placement", "ok", NULL,
                        "No [placement] section: the agent publishes nothing to Placement");
        if (strcmp(state, SYNC_STATE_LEFT) == 0)
                return ctl_findings_add(
                        findings, "placement", "ok", NULL,
                        "[agent] nova is %s, and nova-compute reports what this agent would",
                        ctl_json_text(facts->status, "nova"));
        return ctl_findings_add(
                findings, "placement", "ok", NULL, "It is equal to this host%s",
                ctl_json_text(facts->status, "hypervisor_error")[0] ? " as it was read last" : "");
}

static int judge_reshape(const CtlFacts *facts, json_t *findings)
{
        if (strcmp(ctl_json_text(facts->status, "reshape_access"), RESHAPE_ACCESS_REFUSED) != 0)
                return 0;
        return ctl_findings_add(
                findings, "reshape", "warning",
                "\"openstack role add --user USER --project PROJECT service\", then \"systemctl reload compute-agent\"",
                "The user of [placement] lacks the role service: the tree cannot change shape under running guests");
}

static int judge_connection(const CtlFacts *facts, json_t *findings)
{
        if (facts->connect_error.code)
                return ctl_findings_add(findings, "keystone", "bad",
                                        "Correct what it names, in [placement] or in clouds.yaml",
                                        "%s", facts->connect_error.text);
        return facts->connect ? ctl_connect_judge(facts->connect, findings) : 0;
}

/* What the comparison with Placement came to; without one, what the agent goes by. */
static int judge_identity(const CtlFacts *facts, json_t *findings)
{
        const char *state = ctl_json_text(facts->identity, "state"),
                   *node = ctl_json_text(facts->status, "node");
        bool well = strcmp(state, "good") == 0 || strcmp(state, "new") == 0;

        if (facts->identity_error.code)
                return ctl_findings_add(findings, "identity", "bad",
                                        "\"computectl identity show\" has the details", "%s",
                                        facts->identity_error.text);
        if (facts->identity && strcmp(state, "unknown") != 0)
                return ctl_findings_add(findings, "identity", well ? "ok" : "bad",
                                        well ? NULL : ctl_json_text(facts->identity, "advice"),
                                        "%s", ctl_json_text(facts->identity, "text"));
        if (!is_running(facts))
                return 0;
        return ctl_findings_add(findings, "identity", "ok", NULL, "%s%s (%s)",
                                node[0] ? "This host is " : "Its root provider is known", node,
                                ctl_json_text(facts->status, "root"));
}

/* Nova's scheduler takes no host whose root gives nothing. */
static int judge_numa(const CtlFacts *facts, json_t *findings)
{
        if (!facts->config || facts->config->driver.host.numa_in_placement != HOST_NUMA_CELLS ||
            facts->config->reporter.nova == NOVA_NONE)
                return 0;
        return ctl_findings_add(
                findings, "numa", "warning",
                "Set [compute] numa_in_placement = root, which leaves VCPU and MEMORY_MB with the host; \"computectl reshape\" moves what guests hold",
                "[compute] numa_in_placement is true beside Nova, whose scheduler takes no host of which only the cells give something: flavours without a disk find none");
}

/* Memory of a GPU, or behind CXL: nothing is wrong, but it is missing somewhere. */
static int judge_cells(const CtlFacts *facts, json_t *findings)
{
        uint64_t memory_kib = 0;
        char memory[CTL_TEXT_MAX];
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
        return ctl_findings_add(
                findings, "cells", "ok", NULL,
                "No guest gets %s of %zu NUMA cell%s without CPUs: it belongs to a GPU or a CXL device, or the CPUs are offline",
                memory, n, text_plural(n));
}

static int judge_hook(const CtlFacts *facts, json_t *findings)
{
        if (!facts->config || !facts->config->hook_enabled)
                return 0;
        if (!facts->hook_installed)
                return ctl_findings_add(findings, "hook", "bad",
                                        "Link it to computectl, and restart libvirtd or virtqemud",
                                        "[hook] enabled is true, but " HOOK_PATH
                                        " is not there or cannot be run");
        return ctl_findings_add(
                findings, "hook", "ok", NULL,
                "Guests claim when they start, if libvirt was started after the package was installed");
}

static int judge_clock(const CtlFacts *facts, json_t *findings)
{
        if (!facts->clock_synchronised)
                return ctl_findings_add(
                        findings, "clock", "warning",
                        "Tokens and claims expire by it: run chrony or systemd-timesyncd",
                        "It is not synchronised");
        return ctl_findings_add(findings, "clock", "ok", NULL, "It is synchronised");
}

static int judge_disk(const CtlFacts *facts, json_t *findings)
{
        char free_text[CTL_TEXT_MAX];

        if (facts->disk_error.code == ENOENT && !is_running(facts))
                return 0; /* the first start makes it */
        if (facts->disk_error.code)
                return ctl_findings_add(findings, "disk", "bad",
                                        "Create the folder, or start the service, which does", "%s",
                                        facts->disk_error.text);
        ctl_text_kib(free_text, facts->disk_free_bytes / 1024);
        if (facts->disk_free_bytes < DISK_NEEDED_BYTES)
                return ctl_findings_add(findings, "disk", "bad",
                                        "Make room: a claim that cannot be written is refused",
                                        "Only %s are free for the claim database", free_text);
        return ctl_findings_add(findings, "disk", "ok", NULL, "%s are free for the claim database",
                                free_text);
}

typedef int (*Judge)(const CtlFacts *facts, json_t *findings);

static json_t *judge_all(const CtlFacts *facts, const Judge *judges, size_t n_judges)
{
        _cleanup_json_ json_t *findings = json_array();

        if (!findings)
                return NULL;
        for (size_t i = 0; i < n_judges; i++)
                if (judges[i](facts, findings) < 0)
                        return NULL;
        return json_pack("{ss sO}", "format", CTL_DOCTOR_FORMAT, "findings", findings);
}

json_t *ctl_doctor_judge_config(const CtlFacts *facts)
{
        static const Judge judges[] = { judge_config, judge_files };

        return judge_all(facts, judges, ARRAY_SIZE(judges));
}

json_t *ctl_doctor_judge_hardware(const json_t *verified)
{
        _cleanup_json_ json_t *findings = json_array();
        const json_t *finding;
        size_t i;

        json_array_foreach(json_object_get(verified, "findings"), i, finding) {
                bool bad = strcmp(ctl_json_text(finding, "level"), "error") == 0;

                if (ctl_findings_add(findings, "hardware", bad ? "bad" : "warning", NULL, "%s: %s",
                                     ctl_json_text(finding, "option"),
                                     ctl_json_text(finding, "text")) < 0)
                        return NULL;
        }
        if (json_array_size(findings) == 0 &&
            ctl_findings_add(findings, "hardware", "ok", NULL, "The configuration fits this host") <
                    0)
                return NULL;
        return json_pack("{ss sO}", "format", CTL_DOCTOR_FORMAT, "findings", findings);
}

json_t *ctl_doctor_judge(const CtlFacts *facts)
{
        static const Judge judges[] = {
                judge_config, judge_files,   judge_reasons,    judge_service,   judge_hypervisor,
                judge_parts,  judge_devices, judge_storage,    judge_placement, judge_numa,
                judge_cells,  judge_reshape, judge_connection, judge_identity,  judge_hook,
                judge_clock,  judge_disk,
        };
        return judge_all(facts, judges, ARRAY_SIZE(judges));
}

/* On the line that was begun, or below, in the column of the words. */
static void print_sentence(const char *text, CtlPage *page)
{
        bool ended = text[0] && strchr(".?!", text[strlen(text) - 1]);

        ctl_page_rest(page, INDENT, CTL_PLAIN, "%s%s", text, ended ? "" : ".");
}

static void print_finding(const json_t *finding, CtlPage *page)
{
        const char *state = ctl_json_text(finding, "state"),
                   *advice = ctl_json_text(finding, "advice");
        CtlColour colour = strcmp(state, "ok") == 0    ? CTL_GREEN
                           : strcmp(state, "bad") == 0 ? CTL_RED
                                                       : CTL_YELLOW;

        ctl_page_write(page, colour, "%-8s", state);
        fprintf(page->output, " %-14s ", ctl_json_text(finding, "check"));
        print_sentence(ctl_json_text(finding, "text"), page);
        if (!advice[0])
                return;
        fprintf(page->output, "%*s", INDENT, "");
        print_sentence(advice, page);
}

void ctl_doctor_print(const json_t *document, CtlPage *page)
{
        const json_t *finding;
        size_t i;

        json_array_foreach(json_object_get(document, "findings"), i, finding)
                print_finding(finding, page);
}

CtlStatusExit ctl_doctor_exit(const json_t *document, const json_t *status)
{
        CtlStatusExit code = ctl_status_exit(status);
        const json_t *findings = json_object_get(document, "findings");
        bool bad = ctl_json_find(findings, "state", "bad") ||
                   ctl_json_find(findings, "state", "warning");

        return code == CTL_STATUS_OK && bad ? CTL_STATUS_NOT_WELL : code;
}

int ctl_doctor_exit_of_part(const json_t *document)
{
        const json_t *findings = json_object_get(document, "findings");

        return ctl_json_find(findings, "state", "bad")       ? EXIT_FAILURE
               : ctl_json_find(findings, "state", "warning") ? (int)CTL_STATUS_NOT_WELL
                                                             : EXIT_SUCCESS;
}
