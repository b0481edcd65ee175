/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl doctor": problems that prevent this host from working well. A finding has a short
 * fact, and its cause if the fact does not say it. Most findings that are not "ok" have an advice.
 * Those of --hardware-only have none, and of several warnings of the configuration only the last
 * one has it.
 *
 * The caller gathers the facts. Their judgement asks neither the agent nor the system, except for
 * the user id of this process. */

#include "base/json.h"
#include "config/config.h"
#include "ctl/print/page.h"
#include "ctl/print/status.h"
#include "drivers/host/snapshot.h"

#define CTL_DOCTOR_FORMAT                                                           \
        "compute-agent-doctor/1" /* {"format", "findings": [{"check", "state": "ok" \
                                  * | "warning" | "bad", "text": the fact, "cause", "advice"}]} */

/* Facts of one host. Pointers are borrowed. */
typedef struct CtlFacts {
        const Config *config;   /* NULL: config_error has the words */
        Error config_error;     /* why a start would fail; code 0: nothing is known */
        Error config_unchecked; /* why the service's rights were not checked */
        bool config_only; /* --config-only: judge config, config_error, config_unchecked, files and
                             credentials alone */
        const char *unit_config; /* FILE of --config in the unit, if it is not config; NULL: none */
        const StringSet *files;  /* files that the service cannot use, in words; NULL: none */
        const StringSet *credentials; /* credentials that a restart would change; NULL: none */
        const json_t *status;         /* the document of ctl/print/status.h */
        const Snapshot *snapshot;     /* NULL: not polled; see snapshot_error */
        Error snapshot_error;
        const json_t *connect; /* the document of agent/helper/main.c; NULL: no Placement is
                                  configured, or see connect_error */
        Error connect_error;
        const json_t *identity; /* the document of agent/helper/main.c; NULL: no Placement to
                                   compare with, or see identity_error */
        Error identity_error;
        const json_t *prepared;   /* PREPARED_FORMAT; NULL: no record of this boot can be read */
        const json_t *partitions; /* PARTITIONS_FORMAT; NULL: no record of this boot can be read */
        bool hook_installed;      /* in the folder where libvirt looks for it */
        bool clock_synchronised;
        uint64_t disk_free_bytes; /* free space of the file system of state_dir */
        Error disk_error;         /* code 0 if disk_free_bytes is known */
} CtlFacts;

/* Measures the clock and the disk, and looks for the hook, from this process. Without a
 * configuration, the default state folder is measured. */
void ctl_facts_measure(CtlFacts *facts);

/* Makes the document of all checks. NULL: memory ran out. The caller owns the reference. */
json_t *ctl_doctor_judge(const CtlFacts *facts);

/* Makes the document from FINDINGS_FORMAT, which compares options with hardware (--hardware-only).
 * Returns as ctl_doctor_judge() does. */
json_t *ctl_doctor_judge_hardware(const json_t *verified);

/* Prints one line for each check: the fact of its worst finding. With style.all, prints all
 * findings with cause and advice. */
void ctl_doctor_print(const json_t *document, CtlPage *page);

/* Returns the exit code of "status". If that is 0 and a finding is not "ok", returns
 * CTL_STATUS_NOT_WELL. status NULL, for --config-only and --hardware-only: returns EXIT_FAILURE
 * for a "bad" finding, because a start or a publication would fail, and else judges as if that
 * code were 0. */
int ctl_doctor_exit(const json_t *document, const json_t *status);
