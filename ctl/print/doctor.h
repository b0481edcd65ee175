/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl doctor": problems that prevent this host from working well. Each finding that is not
 * "ok" ends with an advice.
 *
 * The caller gathers the facts. Their judgement is pure. */

#include "base/json.h"
#include "config/config.h"
#include "ctl/print/page.h"
#include "ctl/print/status.h"
#include "drivers/host/snapshot.h"

#define CTL_DOCTOR_FORMAT                                                           \
        "compute-agent-doctor/1" /* {"format", "findings": [{"check", "state": "ok" \
                                  * | "warning" | "bad", "text", "advice"}]} */

/* Facts of one host. Pointers are borrowed. */
typedef struct CtlFacts {
        const Config *config;         /* NULL: config_error has the words */
        Error config_error;           /* why a start would fail; code 0: nothing is known */
        Error config_unchecked;       /* why the service's rights were not checked */
        const StringSet *files;       /* files that the service cannot read, in words; NULL: none */
        const StringSet *credentials; /* credentials that a restart would change; NULL: none */
        const json_t *status;         /* of ctl/print/status.h */
        const Snapshot *snapshot;     /* NULL: snapshot_error has the words */
        Error snapshot_error;
        const json_t *connect; /* of agent/helper/main.c; NULL: no Keystone is used, or
                                  connect_error */
        Error connect_error;
        const json_t *identity; /* of agent/helper/main.c; NULL: there is no Placement to
                                 * compare with, or identity_error */
        Error identity_error;
        bool hook_installed; /* where libvirt looks for it */
        bool clock_synchronised;
        uint64_t disk_free_bytes; /* of the file system of state_dir */
        Error disk_error;         /* code 0 when that is known */
} CtlFacts;

/* Clock and disk, of this process. state_dir may be NULL: the default. */
void ctl_facts_measure(CtlFacts *facts);

/* Makes the document of all checks. NULL: memory ran out. The caller drops the reference. */
json_t *ctl_doctor_judge(const CtlFacts *facts);

/* Makes that of the configuration alone (--config-only). Of the facts, config, config_error,
 * config_unchecked, files and credentials are read. */
json_t *ctl_doctor_judge_config(const CtlFacts *facts);

/* Makes it of a document of FINDINGS_FORMAT, which compares options with hardware
 * (--hardware-only). */
json_t *ctl_doctor_judge_hardware(const json_t *verified);

/* */
void ctl_doctor_print(const json_t *document, CtlPage *page);

/* Returns the exit code of "status"; if that is 0, every finding that is not "ok" makes it
 * CTL_STATUS_NOT_WELL. */
CtlStatusExit ctl_doctor_exit(const json_t *document, const json_t *status);

/* Returns the exit code of --config-only and --hardware-only: 1 if a start or a publication would
 * fail, CTL_STATUS_NOT_WELL if there are only warnings, else 0. */
int ctl_doctor_exit_of_part(const json_t *document);
