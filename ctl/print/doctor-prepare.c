/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Judges the work of compute-agent-prepare by its two records: that of the cards with their
 * functions, and that of the partitions of devices. Without a section that needs a record, nothing
 * is judged. A missing record, or an error of the whole run, is the only finding about it.
 * Otherwise each difference is a finding, and "ok" means that there is none. Without a snapshot,
 * the record is not compared with the host. Then only its errors and waits count, and cards that it
 * lacks. Limit: after PREPARE_FINDINGS_MAX findings, those of cards included, one finding has the
 * number of further differences of functions. Findings about partitions have no limit. Pure.
 *
 * Tests: tests/unit/ctl/print/test-doctor.c */

#include "ctl/print/doctor-prepare.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/print/finding.h"
#include "ctl/print/json.h"

#define PREPARE_FINDINGS_MAX 8 /* findings after which functions are not listed */

#define PREPARE_ENABLE \
        "Run \"systemctl enable --now compute-agent-prepare.service compute-agent-prepare.path\""
#define PARTITION_REPAIR \
        "Read \"journalctl -u UNIT\", repair the cause, and lift the cordons of its devices with \"computectl uncordon\""
#define PARTITION_WAIT "End the process, or run \"computectl who\" for the guest"
#define PREPARE_START \
        "Run \"systemctl start compute-agent-prepare\" and, for the cause, \"journalctl -x -u compute-agent-prepare\""

/* Functions that differ and are not listed. */
typedef struct Rest {
        size_t n;
        bool is_bad; /* one of them has an error */
} Rest;

/* Counts the virtual functions of a card in the snapshot. */
static uint64_t count_functions(const Snapshot *snapshot, const char *card)
{
        uint64_t n = 0;

        for (size_t i = 0; i < snapshot->n_devices; i++)
                n += strcmp(snapshot->devices[i].physical_function, card) == 0;
        return n;
}

/* Judges a listed card: its error in the record, or the number of its functions now. Increments
 * *n_findings if it adds a finding. */
static int judge_card(const Snapshot *snapshot, const json_t *prepared, const HostPrepare *section,
                      const char *card, size_t *n_findings, json_t *findings)
{
        const json_t *record = ctl_json_find(json_object_get(prepared, "cards"), "address", card);
        uint64_t n = snapshot ? count_functions(snapshot, card) : 0;

        if (record && !ctl_json_text(record, "error")[0] &&
            (!snapshot || section->virtual_functions == 0 || section->virtual_functions == n))
                return 0;
        ++*n_findings;
        if (!record)
                return ctl_finding_add(findings, "prepare", "warning", PREPARE_START,
                                       "Card %s of [device_prepare %.64s] was not prepared yet",
                                       card, section->name);
        if (ctl_json_text(record, "error")[0])
                return ctl_finding_add(findings, "prepare", "bad", PREPARE_START, "Card %s: %s",
                                       card, ctl_json_text(record, "error"));
        return ctl_finding_add(findings, "prepare", "bad", PREPARE_START,
                               "Card %s has %" PRIu64 " of %" PRIu64 " virtual functions", card, n,
                               section->virtual_functions);
}

/* Returns the mdev type that a function has in the snapshot, "" without one, or NULL if the
 * snapshot lacks the function. Returns recorded for a function that the snapshot does not know as a
 * vGPU. */
static const char *find_type(const Snapshot *snapshot, const char *address, const char *recorded)
{
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];

                if (strcmp(device->address, address) != 0)
                        continue;
                for (size_t j = 0; j < device->n_mdev_types; j++)
                        if (device->mdev_types[j].created_instances > 0)
                                return device->mdev_types[j].id;
                return device->is_vgpu_function ? "" : recorded;
        }
        return NULL;
}

/* Judges a function of the record: its error, the reason for waiting, or a type that differs from
 * the snapshot. Increments *n_findings for each difference. Adds a finding up to
 * PREPARE_FINDINGS_MAX, and counts the others in rest. */
static int judge_function(const Snapshot *snapshot, const json_t *record, size_t *n_findings,
                          Rest *rest, json_t *findings)
{
        const char *address = ctl_json_text(record, "address"),
                   *error = ctl_json_text(record, "error"),
                   *waiting = ctl_json_text(record, "waiting"),
                   *type = ctl_json_text(record, "type"),
                   *now = snapshot ? find_type(snapshot, address, type) : type;

        if (!error[0] && !waiting[0] && now && strcmp(now, type) == 0)
                return 0;
        if (++*n_findings > PREPARE_FINDINGS_MAX) {
                rest->n++;
                rest->is_bad = rest->is_bad || error[0];
                return 0;
        }
        if (error[0])
                return ctl_finding_add(findings, "prepare", "bad", PREPARE_START, "Function %s: %s",
                                       address, error);
        if (waiting[0])
                return ctl_finding_add(
                        findings, "prepare", "warning",
                        "End the process, or run \"computectl who\" for the guest. The agent then starts compute-agent-prepare",
                        "Function %s stays %s: %s", address, type, waiting);
        return ctl_finding_add(findings, "prepare", "warning", PREPARE_START,
                               "Function %s was %s after the last run, and is %s now", address,
                               type[0] ? type : "no vGPU",
                               !now     ? "missing"
                               : now[0] ? now
                                        : "no vGPU");
}

static int judge_cards(const HostConfig *host, const Snapshot *snapshot, const json_t *prepared,
                       json_t *findings)
{
        size_t n = 0, n_cards = 0, i;
        const json_t *record;
        Rest rest = { 0 };
        int r = 0;

        if (host->n_prepares == 0)
                return 0;
        if (!prepared)
                return ctl_finding_add(
                        findings, "prepare", "bad", PREPARE_ENABLE,
                        "compute-agent-prepare did not run since the boot, but [device_prepare %.64s] lists cards",
                        host->prepares[0].name);
        if (ctl_json_text(prepared, "error")[0])
                return ctl_finding_add(findings, "prepare", "bad", PREPARE_START,
                                       "The cards were not finished: %s",
                                       ctl_json_text(prepared, "error"));
        for (i = 0; i < host->n_prepares; i++)
                for (char **card = host->prepares[i].device_addresses; *card && r >= 0; card++)
                        if (++n_cards)
                                r = judge_card(snapshot, prepared, &host->prepares[i], *card, &n,
                                               findings);
        json_array_foreach(json_object_get(prepared, "functions"), i, record)
                if (r >= 0)
                        r = judge_function(snapshot, record, &n, &rest, findings);
        if (r >= 0 && rest.n > 0)
                r = ctl_finding_add(findings, "prepare", rest.is_bad ? "bad" : "warning",
                                    PREPARE_START, "%zu more function%s not as configured", rest.n,
                                    rest.n == 1 ? " is" : "s are");
        if (r >= 0 && n == 0)
                r = ctl_finding_add(findings, "prepare", "ok", NULL,
                                    "%zu card%s prepared as configured", n_cards,
                                    n_cards == 1 ? " is" : "s are");
        return r;
}

static int judge_partitions(const HostConfig *host, const json_t *partitions, json_t *findings)
{
        const HostShapes *shapes = NULL;
        const json_t *record;
        size_t n = 0, i;
        int r = 0;

        for (i = 0; i < host->n_shapes && !shapes; i++)
                shapes = host->shapes[i].activate ? &host->shapes[i] : NULL;
        if (!shapes)
                return 0;
        if (!partitions)
                return ctl_finding_add(
                        findings, "partitions", "bad", PREPARE_ENABLE,
                        "compute-agent-prepare did not run since the boot, but [device_shapes %.32s] has units",
                        shapes->set.name);
        if (ctl_json_text(partitions, "error")[0])
                return ctl_finding_add(findings, "partitions", "bad", PREPARE_START,
                                       "The partitions were not finished: %s",
                                       ctl_json_text(partitions, "error"));
        json_array_foreach(json_object_get(partitions, "partitions"), i, record) {
                const char *error = ctl_json_text(record, "error");
                const char *waiting = ctl_json_text(record, "waiting");

                if (r < 0 || (!error[0] && !waiting[0]))
                        continue;
                n++;
                r = ctl_finding_add(findings, "partitions", error[0] ? "bad" : "warning",
                                    error[0] ? PARTITION_REPAIR : PARTITION_WAIT,
                                    "Partition %s of %s is %s: %s",
                                    ctl_json_text(record, "partition"),
                                    ctl_json_text(record, "set"), ctl_json_text(record, "state"),
                                    error[0] ? error : waiting);
        }
        if (r >= 0 && n == 0)
                r = ctl_finding_add(findings, "partitions", "ok", NULL,
                                    "Partitions of devices are as their claims need them");
        return r;
}

int ctl_doctor_judge_prepare(const HostConfig *host, const Snapshot *snapshot,
                             const json_t *prepared, const json_t *partitions, json_t *findings)
{
        int r = judge_cards(host, snapshot, prepared, findings);

        return r < 0 ? r : judge_partitions(host, partitions, findings);
}
