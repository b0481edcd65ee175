/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Keeps the state of the health monitor as JSON. The words about the reports are made again after
 * each change; without memory for them they stay as they were. A file with one bad member is
 * rejected as a whole, and leaves no report, no sighting and no cursor. Reports are in the order in
 * which they were added; a repeated one moves to the end. At HEALTH_REPORTS_MAX the first one goes.
 * A sighting says when a rule last matched a device of a certain guest, or found a device broken
 * (judge.h). At HEALTH_SIGHTINGS_MAX the sighting with the oldest time goes.
 *
 * Tests: tests/unit/agent/health/test-record.c */

#include "agent/health/record.h"

#include <errno.h>
#include <string.h>

#include "agent/state/state-file.h"
#include "base/array.h"
#include "base/json.h"
#include "base/text.h"

#define HEALTH_FORMAT "compute-agent-health/1"

static void report_done(struct HealthReport *report)
{
        free(report->device);
        free(report->rule);
        free(report->line);
        free(report->boot_id);
}

static void drop_report(HealthRecord *record, size_t i)
{
        report_done(&record->reports[i]);
        array_close(record->reports, sizeof(struct HealthReport), &record->n_reports, i);
}

void health_record_done(HealthRecord *record)
{
        while (record->n_reports > 0)
                drop_report(record, record->n_reports - 1);
        free(record->path);
        free(record->words);
        *record = (HealthRecord){ 0 };
}

/* Makes the words about the reports. */
static void update_words(HealthRecord *record)
{
        char *text = NULL, *words;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return;
        for (size_t i = 0; i < record->n_reports; i++) {
                const struct HealthReport *report = &record->reports[i];

                fprintf(file, "%s%s, rule %s: %s", i > 0 ? "; " : "", report->device, report->rule,
                        report->line);
        }
        words = text_close(file, &text);
        if (!words)
                return;
        free(record->words);
        record->words = words;
}

/* Writing */

static json_t *reports_to_json(const HealthRecord *record)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < record->n_reports; i++) {
                const struct HealthReport *report = &record->reports[i];

                if (json_array_append_new(
                            array, json_pack("{ss ss ss ss sb sI}", "device", report->device,
                                             "rule", report->rule, "line", report->line, "boot_id",
                                             report->boot_id, "lasts", (int)report->lasts, "usec",
                                             (json_int_t)report->usec)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *sightings_to_json(const HealthSightings *sightings)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < sightings->n_items; i++) {
                const struct HealthSighting *sighting = &sightings->items[i];

                if (json_array_append_new(array, json_pack("{ss ss ss sI}", "rule", sighting->rule,
                                                           "address", sighting->address, "consumer",
                                                           sighting->consumer.text, "usec",
                                                           (json_int_t)sighting->usec)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

int health_record_save(const HealthRecord *record, Error *reterr)
{
        _cleanup_json_ json_t *json = json_pack("{ss ss so so}", "format", HEALTH_FORMAT, "cursor",
                                                record->cursor, "reports", reports_to_json(record),
                                                "sightings", sightings_to_json(&record->sightings));

        return json ? state_file_write(record->path, json, reterr) : error_oom(reterr);
}

/* Reading */

/* Returns the index of the report, or n_reports if there is none. */
static size_t find(const HealthRecord *record, const char *device, const char *rule)
{
        size_t i = 0;

        while (i < record->n_reports && (strcmp(record->reports[i].device, device) != 0 ||
                                         strcmp(record->reports[i].rule, rule) != 0))
                i++;
        return i;
}

/* Adds a report with copies of the texts. It replaces that of this device and rule, or if there is
 * no room, the one that was added first. */
static int add_report(HealthRecord *record, const char *device, const char *rule, const char *line,
                      const char *boot_id, bool lasts, uint64_t usec)
{
        struct HealthReport report = { strdup(device),  strdup(rule), strdup(line),
                                       strdup(boot_id), lasts,        usec };
        size_t i = find(record, device, rule);

        if (!report.device || !report.rule || !report.line || !report.boot_id) {
                report_done(&report);
                return -ENOMEM;
        }
        if (i == HEALTH_REPORTS_MAX)
                i = 0;
        if (i < record->n_reports)
                drop_report(record, i);
        record->reports[record->n_reports++] = report;
        return 0;
}

static int read_report(HealthRecord *record, const json_t *json, Error *reterr)
{
        const char *device, *rule, *line, *boot_id;
        uint64_t usec = 0;
        bool lasts;
        int r;

        if ((r = json_read_string(json, "device", &device, reterr)) < 0 ||
            (r = json_read_string(json, "rule", &rule, reterr)) < 0 ||
            (r = json_read_string(json, "line", &line, reterr)) < 0 ||
            (r = json_read_string(json, "boot_id", &boot_id, reterr)) < 0 ||
            (r = json_read_bool(json, "lasts", &lasts, reterr)) < 0 ||
            (json_object_get(json, "usec") && /* version 0.2 wrote none */
             (r = json_read_u64(json, "usec", &usec, reterr)) < 0))
                return r;
        return add_report(record, device, rule, line, boot_id, lasts, usec) < 0 ? error_oom(reterr)
                                                                                : 0;
}

/* Adds the sighting of a JSON object. */
static int read_sighting(HealthRecord *record, const json_t *json, Error *reterr)
{
        HealthMessage finding = { 0 };
        const char *rule, *address, *text;
        Uuid consumer = UUID_NULL;
        int r;

        if ((r = json_read_string(json, "rule", &rule, reterr)) < 0 ||
            (r = json_read_string(json, "address", &address, reterr)) < 0 ||
            (r = json_read_string(json, "consumer", &text, reterr)) < 0 ||
            (text[0] && (r = json_read_uuid(json, "consumer", &consumer, reterr)) < 0) ||
            (r = json_read_u64(json, "usec", &finding.last_usec, reterr)) < 0)
                return r;
        if (strlen(rule) >= sizeof(finding.rule) || pci_address_parse(address, finding.address) < 0)
                return error_setf(reterr, EBADMSG, "bad rule or address");
        strcpy(finding.rule, rule);
        health_sightings_note(&record->sightings, &finding, &consumer);
        return 0;
}

/* Reads the members of the file. The cursor is taken last, so an error before it leaves none. */
static int read_record(const json_t *json, void *userdata, Error *reterr)
{
        HealthRecord *record = userdata;
        json_t *reports, *sightings, *item;
        const char *cursor;
        size_t i;
        int r;

        if ((r = json_read_string(json, "cursor", &cursor, reterr)) < 0 ||
            (r = json_read_array(json, "reports", &reports, reterr)) < 0 ||
            (r = json_read_array(json, "sightings", &sightings, reterr)) < 0)
                return r;
        if (strlen(cursor) >= sizeof(record->cursor))
                return error_setf(reterr, EBADMSG, "the cursor is too long");
        json_array_foreach(reports, i, item)
                if ((r = read_report(record, item, reterr)) < 0)
                        return r;
        json_array_foreach(sightings, i, item)
                if ((r = read_sighting(record, item, reterr)) < 0)
                        return r;
        strcpy(record->cursor, cursor);
        return 0;
}

int health_record_load(HealthRecord *record, const char *state_dir, Error *reterr)
{
        char *path = text_format("%s/health.json", state_dir);
        int r;

        *record = (HealthRecord){ .path = path, .words = strdup("") };
        if (!path || !record->words)
                return error_oom(reterr);
        r = state_file_load(path, HEALTH_FORMAT, false, read_record, record, reterr);
        if (r == -EBADMSG) {
                while (record->n_reports > 0)
                        drop_report(record, record->n_reports - 1);
                record->sightings.n_items = 0;
        }
        update_words(record);
        return r == -EBADMSG ? 1 : MIN(r, 0);
}

/* Reports */

bool health_record_has(const HealthRecord *record, const char *device, const char *rule,
                       uint64_t after_usec)
{
        size_t i = find(record, device, rule);

        return i < record->n_reports && record->reports[i].usec > after_usec;
}

int health_record_add(HealthRecord *record, const char *device, const HealthMessage *finding)
{
        int r = add_report(record, device, finding->rule, finding->line, finding->boot_id,
                           finding->lift == HEALTH_LIFT_RECOVERY, finding->last_usec);

        if (r == 0)
                update_words(record);
        return r;
}

bool health_record_remove(HealthRecord *record, const char *device, const char *rule)
{
        size_t i = find(record, device, rule);

        if (i == record->n_reports)
                return false;
        drop_report(record, i);
        update_words(record);
        return true;
}

/* Iterates backward because of the removals. */
bool health_record_end_boot(HealthRecord *record, const char *boot_id)
{
        size_t n = record->n_reports;

        for (size_t i = n; i > 0; i--)
                if (!record->reports[i - 1].lasts &&
                    strcmp(record->reports[i - 1].boot_id, boot_id) != 0)
                        drop_report(record, i - 1);
        if (record->n_reports == n)
                return false;
        update_words(record);
        return true;
}
