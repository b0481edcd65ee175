/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The state of the health monitor, in "health.json" of state_dir. It has the position in the
 * kernel's lines, and the devices that rules have reported without withholding them. It also has
 * the guests that had a device at a case, and the functions that have not recovered yet. Cordons
 * are in agent/tree/cordon.h. Changes are in memory until health_record_save(). Loading and saving
 * block on the disk. */

#include "agent/health/judge.h"

#define HEALTH_REPORTS_MAX 64

typedef struct HealthRecord {
        char *path;
        char cursor[HEALTH_CURSOR_SIZE]; /* "": no position is known */
        /* The devices that rules have reported. The texts are owned. */
        struct HealthReport {
                char *device; /* name of the device, as a cordon would have it */
                char *rule, *line, *boot_id;
                bool lasts;    /* stays after this boot */
                uint64_t usec; /* CLOCK_REALTIME of the last case; 0: not known */
        } reports[HEALTH_REPORTS_MAX];
        size_t n_reports;
        HealthSightings sightings;
        char *words; /* the reports; "": none; each call that changes the reports can free and
                        replace it */
} HealthRecord;

/* Loads the state. A damaged file is set aside (state_file_read()) and leaves an empty state:
 * *reterr has words, and the result is 1. Otherwise returns 0, or a negative errno with words if
 * the file cannot be read, or memory is short. The caller calls health_record_done() in any case.
 */
int health_record_load(HealthRecord *record, const char *state_dir, Error *reterr);
void health_record_done(HealthRecord *record);

/* Writes the state. Returns a negative errno with words. */
int health_record_save(const HealthRecord *record, Error *reterr);

/* Returns true if the rule has reported the device for a case after this time. */
bool health_record_has(const HealthRecord *record, const char *device, const char *rule,
                       uint64_t after_usec);

/* Adds a report, or replaces that of this device and rule. It stays after this boot only if the
 * rule ends with a recovery. At HEALTH_REPORTS_MAX the report that was added first is dropped.
 * Returns 0 or -ENOMEM; then nothing changes. */
int health_record_add(HealthRecord *record, const char *device, const HealthMessage *finding);

/* Removes a report. Returns true if it existed. */
bool health_record_remove(HealthRecord *record, const char *device, const char *rule);

/* Removes the reports that do not stay after their boot (health_record_add()) and are of another
 * boot. Returns true if there were any. */
bool health_record_end_boot(HealthRecord *record, const char *boot_id);
