/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Each set is a lane, which waits for at most one unit. A lane is free if it waits for none, also
 * after a unit whose time is over. That unit can still run beside the next one of the lane. Each
 * look reads the claims and the open handles, and gives each free lane the step of
 * prepare/partition-plan.h. A look is made at the begin, after the end of a unit or of its time,
 * after a step that left no unit running, and after a new stamp. If the claims cannot be read, a
 * look makes no step; an error of the record or a lack of memory ends the run, but not its units.
 *
 * Invariant: the record says "activating" or "deactivating" before a unit is started. Only the
 * success of the unit changes that, and the failure of an activation ("failed"). A program that is
 * killed leaves this state, and the next run starts the unit again. systemd does not start a unit
 * twice at a time, so that run waits for a unit that still runs. A partition without an entry
 * counts as not active: its unit "deactivate" succeeded, or none was started since the boot.
 *
 * A unit that failed, or did not end in its time, is started again when the agent changes
 * prepare-retry. A failed activation without its claim is deactivated instead, which does not wait
 * for that. A unit that fails because the system stops is not recorded as failed.
 *
 * LIMITATIONS: only VFIO handles and mediated, vDPA and upper network devices are seen, so a device
 * with another driver looks closed.
 *
 * Tests: tests/unit/prepare/test-partitions.c tests/integration/claims/test_partitions.py */

#include "prepare/partitions.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "formats/partitions.h"
#include "prepare/claims.h"
#include "prepare/partition-plan.h"
#include "prepare/record.h"
#include "prepare/unit.h"
#include "prepare/wanted.h"

#define NAME      "partitions.json"
#define POLL_USEC UINT64_C(50000)

/* A set with units. */
typedef struct Lane {
        const HostShapes *shapes;
        char partition[DEVICE_SET_ID_MAX + 1]; /* the partition of the unit */
        pid_t pid;                             /* process of systemctl; 0: the lane is free */
        char *unit;                            /* owned; NULL: none was started */
        uint64_t until_usec;                   /* CLOCK_MONOTONIC end of its time */
} Lane;

typedef struct Run {
        const Config *config;
        const PreparePaths *paths;
        PrepareClaims claims;
        PartitionRecord record;
        PrepareCard devices; /* functions: the devices of all sets with units */
        Lane *lanes;
        size_t n_lanes;
        char retry[PREPARE_WANTED_SIZE]; /* stamp of prepare-retry */
        bool changed;                    /* since the record was written */
        bool due;                        /* a look must be made */
        bool stops;                      /* the system stops, so no unit is started */
} Run;

static void run_done(Run *run)
{
        for (size_t i = 0; i < run->n_lanes; i++)
                free(run->lanes[i].unit);
        free(run->lanes);
        free(run->devices.functions);
        partition_record_done(&run->record);
        prepare_claims_done(&run->claims);
}

/* Reads */

static int make_lanes(Run *run, Error *reterr)
{
        const HostConfig *host = &run->config->driver.host;

        run->lanes = calloc(host->n_shapes + 1, sizeof(Lane));
        if (!run->lanes)
                return error_oom(reterr);
        for (size_t i = 0; i < host->n_shapes; i++)
                if (host->shapes[i].activate)
                        run->lanes[run->n_lanes++].shapes = &host->shapes[i];
        return 0;
}

static int read_record(Run *run, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/" PREPARE_FOLDER "/" NAME, run->paths->run);

        return path ? partition_record_read(path, &run->record, reterr) : error_oom(reterr);
}

static int add_device(Run *run, const char *address)
{
        PrepareFunction function = { 0 };

        if (array_grow(&run->devices.functions, sizeof(PrepareFunction), run->devices.n_functions,
                       &run->devices.n_allocated) < 0)
                return -ENOMEM;
        snprintf(function.address, sizeof(function.address), "%.*s", PCI_ADDRESS_SIZE - 1, address);
        run->devices.functions[run->devices.n_functions++] = function;
        return prepare_read_function(run->paths,
                                     &run->devices.functions[run->devices.n_functions - 1]);
}

/* Reads which devices of the sets are open. */
static int read_devices(Run *run, Error *reterr)
{
        PrepareHost host = { .cards = &run->devices, .n_cards = 1 };
        const char *address;

        run->devices.n_functions = 0;
        for (size_t i = 0; i < run->n_lanes; i++)
                for (size_t j = 0; (address = device_set_device(&run->lanes[i].shapes->set, j));
                     j++)
                        if (add_device(run, address) < 0)
                                return error_oom(reterr);
        return prepare_read_open(run->paths, &host, reterr);
}

/* The record */

static PartitionFacts facts_of(const Run *run)
{
        return (PartitionFacts){ .claims = &run->claims,
                                 .record = &run->record,
                                 .functions = run->devices.functions,
                                 .n_functions = run->devices.n_functions,
                                 .retry = run->retry };
}

static const Lane *find_lane(const Run *run, const char *set)
{
        for (size_t i = 0; i < run->n_lanes; i++)
                if (strcmp(run->lanes[i].shapes->set.name, set) == 0)
                        return &run->lanes[i];
        return NULL;
}

/* Notes for each entry why it waits. */
static void note_waiting(Run *run)
{
        const PartitionFacts facts = facts_of(run);

        for (size_t i = 0; i < run->record.n_items; i++) {
                PartitionEntry *entry = &run->record.items[i];
                const Lane *lane = find_lane(run, entry->set);
                const char *why = !lane ? "the configuration has no such set with units"
                                  : lane->pid && strcmp(lane->partition, entry->partition) == 0
                                          ? ""
                                          : partition_plan_waits(lane->shapes, &facts, entry);

                if (strcmp(entry->waiting, why) == 0)
                        continue;
                snprintf(entry->waiting, sizeof(entry->waiting), "%s", why);
                run->changed = true;
        }
}

static int write_record(Run *run, Error *reterr)
{
        _cleanup_json_ json_t *document = partition_record_to_json(&run->record);

        if (!document)
                return error_oom(reterr);
        run->changed = false;
        return prepare_record_write(run->paths, PREPARE_FOLDER, NAME, document, reterr);
}

/* Units */

static void log_entry(const PartitionEntry *entry, int level, const char *message_id,
                      const char *text)
{
        char claim[32];

        snprintf(claim, sizeof(claim), "%" PRIi64, entry->claim);
        log_event(level, message_id,
                  LOG_FIELDS(LOG_FIELD_DEVICE, entry->devices[0], LOG_FIELD_CLAIM, claim),
                  "Partition %s of %s, claim %s: %s", entry->partition, entry->set, claim, text);
}

static void set_state(Run *run, PartitionEntry *entry, PartitionState state)
{
        entry->state = state;
        entry->since_usec = clock_usec(CLOCK_REALTIME);
        entry->error[0] = entry->waiting[0] = '\0';
        json_decref(entry->lines);
        entry->lines = NULL;
        run->changed = true;
}

/* Notes that the unit of the lane failed. */
static void fail(Run *run, const Lane *lane, PartitionEntry *entry, PartitionState state,
                 const char *reason)
{
        set_state(run, entry, state);
        snprintf(entry->error, sizeof(entry->error), "%s", reason);
        snprintf(entry->retry, sizeof(entry->retry), "%s", run->retry);
        entry->lines = lane->unit ? prepare_unit_lines(lane->unit) : NULL;
        log_entry(entry, LOG_ERR, MESSAGE_PREPARE_FAILED, reason);
}

/* Starts the unit of an entry, whose state is in the record. A start that fails is noted in the
 * entry, and is no error. */
static int start_unit(Run *run, Lane *lane, PartitionEntry *entry, Error *reterr)
{
        bool activates = entry->state == PARTITION_ACTIVATING;
        char text[PARTITION_ERROR_SIZE];
        Error error = ERROR_NULL;
        int r;

        free(lane->unit);
        r = prepare_unit_start(activates ? lane->shapes->activate : lane->shapes->deactivate,
                               entry->partition, &lane->unit, &lane->pid, &error);
        if (!lane->unit)
                return error_oom(reterr);
        if (r < 0) {
                lane->pid = 0;
                fail(run, lane, entry, activates ? PARTITION_FAILED : PARTITION_DEACTIVATING,
                     error_text(&error, r));
                return 0;
        }
        snprintf(lane->partition, sizeof(lane->partition), "%s", entry->partition);
        lane->until_usec = clock_usec(CLOCK_MONOTONIC) + lane->shapes->timeout_usec;
        snprintf(text, sizeof(text), "%.200s was started", lane->unit);
        log_entry(entry, LOG_NOTICE, MESSAGE_PREPARE_CHANGED, text);
        return 0;
}

/* Makes a step of a set: writes it into the record, then starts its unit. An adoption has no unit:
 * a process has the partition open already, so it is recorded as active. */
static int make_step(Run *run, Lane *lane, const PartitionStep *step, Error *reterr)
{
        const char *set = lane->shapes->set.name;
        PartitionEntry *entry = partition_record_find(&run->record, set, step->partition->id);
        int r;

        if (!entry)
                entry = partition_record_add(&run->record, set, step->partition, step->claim);
        if (!entry)
                return error_oom(reterr);
        entry->claim = step->claim;
        if (step->kind == PARTITION_STEP_ADOPT) {
                set_state(run, entry, PARTITION_ACTIVE);
                log_entry(entry, LOG_NOTICE, MESSAGE_PREPARE_CHANGED,
                          "a process has it open, so it is active");
                return write_record(run, reterr);
        }
        set_state(run, entry,
                  step->kind == PARTITION_STEP_ACTIVATE ? PARTITION_ACTIVATING
                                                        : PARTITION_DEACTIVATING);
        r = write_record(run, reterr);
        return r == 0 ? start_unit(run, lane, entry, reterr) : r;
}

/* Handles the success of a unit. */
static void succeed(Run *run, const Lane *lane, PartitionEntry *entry)
{
        if (entry->state == PARTITION_ACTIVATING) {
                set_state(run, entry, PARTITION_ACTIVE);
                log_entry(entry, LOG_NOTICE, MESSAGE_PREPARE_CHANGED, "it is active");
                return;
        }
        log_entry(entry, LOG_NOTICE, MESSAGE_PREPARE_CHANGED, "it is not active any more");
        partition_record_remove(&run->record, entry);
        run->changed = true;
}

/* Looks whether the unit of a lane has ended, or its time has. After its time it can still run, so
 * the state stays. */
static void look_at_unit(Run *run, Lane *lane)
{
        PartitionEntry *entry =
                partition_record_find(&run->record, lane->shapes->set.name, lane->partition);
        char reason[PARTITION_ERROR_SIZE];

        switch (prepare_unit_look(lane->unit, &lane->pid, lane->until_usec)) {
        case PREPARE_UNIT_RUNNING:
                return;
        case PREPARE_UNIT_DONE:
                succeed(run, lane, entry);
                break;
        case PREPARE_UNIT_STOPPED:
                run->stops = true;
                break;
        case PREPARE_UNIT_LATE:
                snprintf(reason, sizeof(reason), "%.150s did not end within %" PRIu64 " s",
                         lane->unit, lane->shapes->timeout_usec / USEC_PER_SEC);
                fail(run, lane, entry, entry->state, reason);
                break;
        case PREPARE_UNIT_FAILED:
                snprintf(reason, sizeof(reason), "%.180s failed", lane->unit);
                fail(run, lane, entry,
                     entry->state == PARTITION_ACTIVATING ? PARTITION_FAILED
                                                          : PARTITION_DEACTIVATING,
                     reason);
                break;
        }
        run->due = true;
}

/* The loop */

/* Reads the claims. Without them no step is made, and the record has the reason. */
static void read_claims(Run *run)
{
        Error error = ERROR_NULL;
        int r;

        prepare_claims_done(&run->claims);
        r = prepare_read_claims(run->config, &run->claims, &error);
        if (r < 0)
                log_event(LOG_ERR, MESSAGE_PREPARE_FAILED, NULL,
                          "No partition is activated or deactivated: %s", error_text(&error, r));
        snprintf(run->record.error, sizeof(run->record.error), "%s",
                 r < 0 ? error_text(&error, r) : "");
        run->changed = true;
}

/* Reads claims and handles, and makes the next step of each free lane. */
static int look(Run *run, Error *reterr)
{
        int r;

        run->due = false;
        read_claims(run);
        r = read_devices(run, reterr);
        for (size_t i = 0; r == 0 && i < run->n_lanes && !run->record.error[0] && !run->stops;
             i++) {
                const PartitionFacts facts = facts_of(run);
                Lane *lane = &run->lanes[i];
                PartitionStep step = { .kind = PARTITION_STEP_NONE };

                if (lane->pid == 0)
                        step = partition_plan_next(lane->shapes, &facts);
                if (step.kind == PARTITION_STEP_NONE)
                        continue;
                r = make_step(run, lane, &step, reterr);
                /* A step without a unit, or one that failed at once, has a successor. */
                run->due = run->due || lane->pid == 0;
        }
        if (r == 0 && !run->record.error[0])
                note_waiting(run);
        return r;
}

/* Notes new stamps. */
static void read_stamps(Run *run)
{
        char wanted[PREPARE_WANTED_SIZE], retry[PREPARE_WANTED_SIZE];

        prepare_read_wanted(run->paths, "prepare-wanted", wanted);
        prepare_read_wanted(run->paths, "prepare-retry", retry);
        if (strcmp(wanted, run->record.wanted) == 0 && strcmp(retry, run->retry) == 0)
                return;
        snprintf(run->record.wanted, sizeof(run->record.wanted), "%s", wanted);
        snprintf(run->retry, sizeof(run->retry), "%s", retry);
        run->due = run->changed = true;
}

static size_t look_at_units(Run *run)
{
        size_t n = 0;

        for (size_t i = 0; i < run->n_lanes; i++) {
                if (run->lanes[i].pid)
                        look_at_unit(run, &run->lanes[i]);
                n += run->lanes[i].pid != 0;
        }
        return n;
}

static int serve(Run *run, Error *reterr)
{
        size_t n_running = 0;
        int r = 0;

        run->due = true;
        while (r == 0 && (run->due || n_running > 0)) {
                read_stamps(run);
                if (run->due)
                        r = look(run, reterr);
                if (r == 0 && run->changed)
                        r = write_record(run, reterr);
                n_running = look_at_units(run);
                if (r == 0 && !run->due && n_running > 0)
                        usleep(POLL_USEC);
        }
        return r;
}

static int outcome_of(const Run *run)
{
        if (run->record.error[0])
                return PREPARE_UNTOUCHED;
        for (size_t i = 0; i < run->record.n_items; i++)
                if (run->record.items[i].error[0])
                        return PREPARE_FAILED;
        return PREPARE_DONE;
}

/* Prints the next step of each set. */
static int print_steps(Run *run, Error *reterr)
{
        static const char *const words[] = {
                [PARTITION_STEP_ADOPT] = "record",
                [PARTITION_STEP_DEACTIVATE] = "deactivate",
                [PARTITION_STEP_ACTIVATE] = "activate",
        };
        int r;

        read_stamps(run);
        r = prepare_read_claims(run->config, &run->claims, reterr);
        if (r == 0)
                r = read_devices(run, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < run->n_lanes; i++) {
                const PartitionFacts facts = facts_of(run);
                PartitionStep step = partition_plan_next(run->lanes[i].shapes, &facts);

                if (step.kind != PARTITION_STEP_NONE)
                        printf("%-12s Partition %s of %s (claim %" PRIi64 ")\n", words[step.kind],
                               step.partition->id, run->lanes[i].shapes->set.name, step.claim);
        }
        return PREPARE_DONE;
}

int prepare_partitions(const Config *config, const PreparePaths *paths, bool dry_run, Error *reterr)
{
        _cleanup_(run_done) Run run = { .config = config, .paths = paths };
        int r = make_lanes(&run, reterr);

        if (r == 0)
                r = read_record(&run, reterr);
        if (r == 0 && dry_run)
                return print_steps(&run, reterr);
        if (r == 0)
                r = serve(&run, reterr);
        return r < 0 ? r : outcome_of(&run);
}
