/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Each dirty device is a task:
 *
 *   new ──▶ cleaning ──▶ proving ──▶ clean
 *    │          └───────────┴──────▶ failed
 *    └──▶ waiting: it is in use, it or its section is missing, or a unit of another row
 *         or template runs for it (for timeout_sec at most); the next stamp makes it new again
 *
 * A section without a unit for the proof skips proving. A new task can fail at once. One whose unit
 * fails because the system stops waits. The agent decides that a device is dirty, and its database
 * is foreign input. So this program checks the device before its first unit, and after the success
 * of each: the host lists it, a section of the configuration has it, it is no virtual function, and
 * no living claim of the last look at the database names it. With a claim the task fails. Otherwise
 * it waits, also if the last look failed: a device can be absent during a hot reset, and a section
 * while its file is written. The agent decides about a section that is gone.
 * Before each unit and before the result "clean" it checks that no process has its VFIO group or
 * device open, and that it has no mediated, vDPA or upper network devices. If this is not known, it
 * counts as open. A device that is open at first waits, and one that is open at a later check
 * fails.
 *
 * A task whose unit an earlier run started for the same row begins with the first unit again. If
 * the first unit still runs, it is not started twice: the task waits for it, and its success counts
 * (prepare/unit.h). If the proof still runs, the task waits for it before it starts the first unit.
 * The failure of this proof counts, but not its success. At the end of its time (timeout_sec, for
 * each unit) only systemctl is killed: the task fails, and the unit is not stopped. Its task stays
 * in the record until the unit has ended, also without its row. A run that is killed leaves no
 * result of the units that run, and the next one begins these tasks again. While the system stops,
 * a failed unit is no result either. The result names the row of the database and its time, so it
 * cannot count for a later use of the device, nor for a row of another database.
 *
 * A run can take days, so it reads the configuration again with each look at the database. A unit
 * that runs keeps its time, and the proof is that of the section when the first unit ends.
 *
 * Invariant: no unit is started for a row that has a result, unless the record was lost or cannot
 * be read. The agent can read the result at any time, and give the device to a guest. So a run
 * first takes over the results of the last one, and a lock prevents that two runs overlap
 * (prepare_take_lock()). Limit: a run makes no task beyond TASKS_MAX, whose results fit into the
 * record, and a later run cleans the other devices.
 *
 * Tests: tests/unit/prepare/test-clean.c tests/integration/claims/test_clean.py */

#include "prepare/clean.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/read-file.h"
#include "base/text.h"
#include "drivers/host/clean.h"
#include "formats/format-names.h"
#include "prepare/claims.h"
#include "prepare/record.h"
#include "prepare/unit.h"
#include "prepare/wanted.h"

#define FOLDER     "compute-agent-clean"
#define NAME       "cleaned.json"
#define RECORD_MAX ((size_t)4 << 20) /* as in agent/cycle/cleaner.c */
#define POLL_USEC  UINT64_C(50000)
#define RESULT_MAX ((size_t)8 << 10) /* bytes of a result, with each byte of its texts escaped */
#define TASKS_MAX  (RECORD_MAX / RESULT_MAX)

typedef enum TaskState {
        TASK_NEW,
        TASK_WAITING,
        TASK_CLEANING,
        TASK_PROVING,
        TASK_CLEAN,
        TASK_FAILED,
} TaskState;

typedef struct Task {
        PrepareDirty dirty;
        TaskState state;
        bool began;            /* its units were started, in this run or the last one */
        bool repeats;          /* the proof that runs is that of an earlier run */
        pid_t pid;             /* process of systemctl while a unit runs */
        char *unit;            /* the unit of the state; NULL: none */
        uint64_t until_usec;   /* CLOCK_MONOTONIC end of its time */
        uint64_t timeout_usec; /* length of its time */
        char reason[PREPARE_REASON_SIZE];
        json_t *lines; /* NULL: none */
} Task;

typedef struct Run {
        const char *config_file; /* NULL: see config_load() */
        Config *config;          /* as of the last look at the database */
        const PreparePaths *paths;
        PrepareClaims claims;
        Task *tasks;
        size_t n_tasks, n_allocated;
        char wanted[PREPARE_WANTED_SIZE];
        Error error;  /* why configuration or claims cannot be read; code 0: they can */
        bool changed; /* since the record was written */
} Run;

static void task_done(Task *task)
{
        free(task->unit);
        json_decref(task->lines);
        *task = (Task){ 0 };
}

static void run_done(Run *run)
{
        for (size_t i = 0; i < run->n_tasks; i++)
                task_done(&run->tasks[i]);
        free(run->tasks);
        prepare_claims_done(&run->claims);
        config_free(run->config);
}

static bool is_running(const Task *task)
{
        return task->state == TASK_CLEANING || task->state == TASK_PROVING;
}

static bool is_same(const PrepareDirty *a, const PrepareDirty *b)
{
        return a->row == b->row && a->since_usec == b->since_usec &&
               strcmp(a->address, b->address) == 0;
}

/* Returns true if the last unit of a task is not known to have ended. */
static bool can_run(const Task *task)
{
        return task->unit && task->state != TASK_CLEAN &&
               prepare_unit_runs(task->unit, task->dirty.address);
}

static bool is_dirty(const PrepareClaims *claims, const PrepareDirty *dirty)
{
        for (size_t i = 0; i < claims->n_dirty; i++)
                if (is_same(&claims->dirty[i], dirty))
                        return true;
        return false;
}

static void set_state(Run *run, Task *task, TaskState state, const char *reason)
{
        task->state = state;
        snprintf(task->reason, sizeof(task->reason), "%s", reason);
        run->changed = true;
}

/* The record */

static json_t *make_item(const Task *task)
{
        static const char *const states[] = {
                [TASK_NEW] = "waiting",       [TASK_WAITING] = "waiting",
                [TASK_CLEANING] = "cleaning", [TASK_PROVING] = "cleaning",
                [TASK_CLEAN] = "clean",       [TASK_FAILED] = "failed",
        };

        return json_pack("{sI sI ss ss ss ss sO}", "row", (json_int_t)task->dirty.row, "since",
                         (json_int_t)task->dirty.since_usec, "address", task->dirty.address,
                         "state", states[task->state], "unit", task->unit ? task->unit : "",
                         "reason", task->reason, "lines", task->lines);
}

static int write_record(Run *run, Error *reterr)
{
        _cleanup_json_ json_t *devices = json_array(), *document = NULL;

        for (size_t i = 0; i < run->n_tasks; i++)
                if (json_array_append_new(devices, make_item(&run->tasks[i])) < 0)
                        return error_oom(reterr);
        document = json_pack("{ss ss ss sO}", "format", CLEANED_FORMAT, "wanted", run->wanted,
                             "error", run->error.text, "devices", devices);
        if (!document)
                return error_oom(reterr);
        run->changed = false;
        return prepare_record_write(run->paths, FOLDER, NAME, document, reterr);
}

/* Takes over a result of the last run, or a task with a unit that can still run. Other items are
 * ignored. */
static int take_over(Run *run, const json_t *item, Error *reterr)
{
        const char *address, *state, *unit, *reason;
        json_t *lines;
        Task task = { 0 };

        if (json_read_i64(item, "row", &task.dirty.row, NULL) < 0 ||
            json_read_i64(item, "since", &task.dirty.since_usec, NULL) < 0 ||
            json_read_string(item, "address", &address, NULL) < 0 ||
            json_read_string(item, "state", &state, NULL) < 0 ||
            json_read_string(item, "unit", &unit, NULL) < 0 || (unit[0] && !strchr(unit, '@')) ||
            json_read_string(item, "reason", &reason, NULL) < 0 ||
            json_read_array(item, "lines", &lines, NULL) < 0 ||
            pci_address_parse(address, task.dirty.address) < 0)
                return 0;
        task.began = unit[0];
        if (strcmp(state, "clean") == 0)
                task.state = TASK_CLEAN;
        else if (strcmp(state, "failed") == 0)
                task.state = TASK_FAILED;
        else if (!task.began)
                return 0;
        snprintf(task.reason, sizeof(task.reason), "%s", reason);
        if (array_grow(&run->tasks, sizeof(Task), run->n_tasks, &run->n_allocated) < 0)
                return error_oom(reterr);
        if (unit[0] && !(task.unit = strdup(unit)))
                return error_oom(reterr);
        task.lines = json_incref(lines);
        run->tasks[run->n_tasks++] = task;
        return 0;
}

/* Reads the results of the last run of this boot. A document that is missing, invalid or cannot be
 * read has none. */
static int read_record(Run *run, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/" FOLDER "/" NAME, run->paths->run);
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        const json_t *item;
        size_t n, i;
        int r = 0;

        if (!path)
                return error_oom(reterr);
        if (read_file_text(path, RECORD_MAX, &text, &n, NULL) < 0 ||
            json_parse(text, n, &document, NULL) < 0)
                return 0;
        json_array_foreach(json_object_get(document, "devices"), i, item)
                if ((r = take_over(run, item, reterr)) < 0)
                        return r;
        return 0;
}

/* Tasks */

static void log_task(const Task *task, int level, const char *message_id, const char *text)
{
        log_event(level, message_id, LOG_FIELDS(LOG_FIELD_DEVICE, task->dirty.address),
                  "Device %s: %s%s%s%s", task->dirty.address, task->unit ? task->unit : "",
                  task->unit ? " " : "", text, task->reason);
}

static void fail(Run *run, Task *task, const char *reason)
{
        set_state(run, task, TASK_FAILED, reason);
        if (task->unit) {
                json_t *lines = prepare_unit_lines(task->unit);

                json_decref(task->lines);
                task->lines = lines ? lines : json_array();
        }
        log_task(task, LOG_ERR, MESSAGE_PREPARE_FAILED, "not clean: ");
}

/* Finds the section of a device, which run borrows until its next look at the database; NULL: the
 * device or its section is missing, so the task must wait. Writes why its units must not run, or
 * "". */
static int check_device(const Run *run, const Task *task, const HostClean **ret,
                        char why[static PREPARE_REASON_SIZE])
{
        SnapshotDevice device = { 0 };
        int r = prepare_read_device(run->paths, task->dirty.address, &device);

        why[0] = '\0';
        if (r == -ENOMEM)
                return r;
        *ret = r == 0 ? host_clean_find(&run->config->driver.host, &device) : NULL;
        if (r < 0)
                snprintf(why, PREPARE_REASON_SIZE, "the host does not list it");
        else if (!*ret)
                snprintf(why, PREPARE_REASON_SIZE, "no section [device_clean NAME] has it");
        else if (prepare_find_claim(&run->claims, task->dirty.address))
                snprintf(why, PREPARE_REASON_SIZE, "claim %" PRIi64 " has it",
                         prepare_find_claim(&run->claims, task->dirty.address)->id);
        return 0;
}

/* Yields whether a process has the device open, or that is not known. */
static int check_open(const Run *run, const Task *task, bool *ret)
{
        PrepareFunction function = { 0 };
        PrepareCard card = { .functions = &function, .n_functions = 1 };
        PrepareHost host = { .cards = &card, .n_cards = 1 };
        int r;

        snprintf(function.address, sizeof(function.address), "%s", task->dirty.address);
        r = prepare_read_function(run->paths, &function);
        if (r == 0)
                r = prepare_read_open(run->paths, &host, NULL);
        *ret = function.open != PREPARE_OPEN_NO;
        return r;
}

/* Starts a unit of a task whose device was checked. */
static int start_unit(Run *run, Task *task, TaskState state, const HostClean *section,
                      Error *reterr)
{
        const char *template = state == TASK_PROVING ? section->prove : section->clean;
        Error error = ERROR_NULL;
        int r;

        free(task->unit);
        r = prepare_unit_start(template, task->dirty.address, &task->unit, &task->pid, &error);
        if (!task->unit)
                return error_oom(reterr);
        if (r < 0) {
                fail(run, task, error_text(&error, r));
                return 0;
        }
        task->began = true;
        task->until_usec = clock_usec(CLOCK_MONOTONIC) + section->timeout_usec;
        task->timeout_usec = section->timeout_usec;
        set_state(run, task, state, "");
        log_task(task, LOG_NOTICE, MESSAGE_PREPARE_CHANGED, "was started");
        return 0;
}

/* Returns true if the unit is of the template; NULL: none. */
static bool is_of(const char *unit, const char *template)
{
        return template && strncmp(unit, template, strcspn(template, "@") + 1) == 0;
}

/* Returns a unit, or a template, that can still run for the device and must end first; NULL: there
 * is none. Borrowed. A unit of another row can be older than the last guest, and its success would
 * count for this row. One of another template would work on the device beside the new one. The end
 * of a unit of this run counts when its task has seen it. */
static const char *find_old_unit(const Run *run, const Task *task, const HostClean *section)
{
        const char *address = task->dirty.address;

        for (size_t i = 0; i < run->n_tasks; i++) {
                const Task *other = &run->tasks[i];

                if (strcmp(other->dirty.address, address) != 0 ||
                    (other == task && task->unit &&
                     (is_of(task->unit, section->clean) || is_of(task->unit, section->prove))))
                        continue;
                if (is_running(other) || can_run(other))
                        return other->unit;
        }
        if (task->began)
                return NULL;
        if (prepare_unit_runs(section->clean, address))
                return section->clean;
        return section->prove && prepare_unit_runs(section->prove, address) ? section->prove : NULL;
}

/* Lets a task wait for the end of an old unit, or of the unit of a template. If the unit is not its
 * own, fails the task once the row is older than timeout_sec: the unit is older than the row. */
static void wait_for_old_unit(Run *run, Task *task, const HostClean *section, const char *unit)
{
        uint64_t until = (uint64_t)task->dirty.since_usec + section->timeout_usec;
        bool late = unit != task->unit && clock_usec(CLOCK_REALTIME) > until;
        char reason[PREPARE_REASON_SIZE];

        snprintf(reason, sizeof(reason), "%.*s@%s.service %s", (int)MIN(strcspn(unit, "@"), 150U),
                 unit, task->dirty.address,
                 late ? "did not end within timeout_sec. Stop it" : "still runs");
        if (late)
                fail(run, task, reason);
        else
                set_state(run, task, TASK_WAITING, reason);
}

/* Begins a new task, if its device can be cleaned now. */
static int begin(Run *run, Task *task, Error *reterr)
{
        char why[PREPARE_REASON_SIZE];
        const HostClean *section;
        const char *old;
        bool open = false;
        int r = check_device(run, task, &section, why);

        if (r == 0 && !why[0])
                r = check_open(run, task, &open);
        if (r < 0)
                return error_oom(reterr);
        if (section && why[0]) {
                fail(run, task, why);
                return 0;
        }
        if (!section || open) {
                set_state(run, task, TASK_WAITING,
                          !section ? why : "it is in use, or that is not known");
                return 0;
        }
        old = find_old_unit(run, task, section);
        if (old) {
                wait_for_old_unit(run, task, section, old);
                return 0;
        }
        task->repeats = task->began && section->prove &&
                        prepare_unit_runs(section->prove, task->dirty.address);
        return start_unit(run, task, task->repeats ? TASK_PROVING : TASK_CLEANING, section, reterr);
}

/* Handles the success of a unit. The section can have changed since its start. Without claims it is
 * not known whether a guest has the device. A row that is gone needs no result, and another row of
 * the device can have a unit now. */
static int go_on(Run *run, Task *task, Error *reterr)
{
        char why[PREPARE_REASON_SIZE];
        const HostClean *section;
        bool open;

        if (run->error.code) {
                set_state(run, task, TASK_WAITING,
                          "the configuration or the claims cannot be read");
                return 0;
        }
        if (!is_dirty(&run->claims, &task->dirty)) {
                set_state(run, task, TASK_WAITING, "the agent has ended this cleaning");
                return 0;
        }
        if (check_device(run, task, &section, why) < 0 || check_open(run, task, &open) < 0)
                return error_oom(reterr);
        if (!section) {
                set_state(run, task, TASK_WAITING, why);
                return 0;
        }
        if (why[0]) {
                fail(run, task, why);
                return 0;
        }
        if (open) {
                fail(run, task, "it came into use during the cleaning, or that is not known");
                return 0;
        }
        if (task->repeats) {
                task->repeats = false;
                return start_unit(run, task, TASK_CLEANING, section, reterr);
        }
        if (task->state == TASK_CLEANING && section->prove)
                return start_unit(run, task, TASK_PROVING, section, reterr);
        set_state(run, task, TASK_CLEAN, "");
        log_task(task, LOG_NOTICE, MESSAGE_PREPARE_CHANGED, "succeeded, so it is clean");
        return 0;
}

/* Looks whether the unit of a task has ended, or its time has. */
static int look_at_unit(Run *run, Task *task, Error *reterr)
{
        char reason[PREPARE_REASON_SIZE];

        switch (prepare_unit_look(task->unit, &task->pid, task->until_usec)) {
        case PREPARE_UNIT_RUNNING:
                return 0;
        case PREPARE_UNIT_DONE:
                return go_on(run, task, reterr);
        case PREPARE_UNIT_STOPPED:
                set_state(run, task, TASK_WAITING, "the system stops");
                return 0;
        case PREPARE_UNIT_LATE:
                snprintf(reason, sizeof(reason),
                         "%.150s did not end within %" PRIu64 " s. Stop it, or raise timeout_sec",
                         task->unit, task->timeout_usec / USEC_PER_SEC);
                break;
        case PREPARE_UNIT_FAILED:
                snprintf(reason, sizeof(reason), "%.180s failed", task->unit);
                break;
        }
        fail(run, task, reason);
        return 0;
}

static Task *find_task(const Run *run, const PrepareDirty *dirty)
{
        for (size_t i = 0; i < run->n_tasks; i++)
                if (is_same(&run->tasks[i].dirty, dirty))
                        return &run->tasks[i];
        return NULL;
}

/* Drops the tasks of rows that are not dirty in the database any more, except those whose unit can
 * still run. */
static void drop_old(Run *run)
{
        size_t n = 0;

        for (size_t i = 0; i < run->n_tasks; i++) {
                Task *task = &run->tasks[i];

                if (!is_running(task) && !is_dirty(&run->claims, &task->dirty)) {
                        if (!can_run(task)) {
                                task_done(task);
                                continue;
                        }
                        set_state(run, task, TASK_WAITING, "its unit still runs");
                }
                if (n != i)
                        run->tasks[n] = TAKE_STRUCT(*task);
                n++;
        }
        run->n_tasks = n;
}

/* Reads the configuration again. After an error the last one stays. */
static int read_config(Run *run, Error *reterr)
{
        Config *config;
        int r = config_load_offline(&config, run->config_file, reterr);

        if (r < 0)
                return r;
        config_free(run->config);
        run->config = config;
        return 0;
}

/* Reads the configuration and the database, and makes tasks of its dirty devices. A missing
 * database is an error, because an agent with dirty devices wrote the stamp. */
static int update_tasks(Run *run, Error *reterr)
{
        int r;

        run->changed = true;
        run->error = ERROR_NULL;
        prepare_claims_done(&run->claims);
        r = read_config(run, &run->error);
        if (r == 0)
                r = prepare_read_claims(run->config, &run->claims, &run->error);
        if (r == 0 && run->claims.missing)
                r = error_setf(&run->error, ENOENT, "The claim database does not exist");
        if (r < 0) {
                log_event(LOG_ERR, MESSAGE_PREPARE_FAILED, NULL, "No device is cleaned: %s",
                          error_text(&run->error, r));
                return 0;
        }
        drop_old(run);
        for (size_t i = 0; i < run->claims.n_dirty && run->n_tasks < TASKS_MAX; i++) {
                Task *task = find_task(run, &run->claims.dirty[i]);

                if (task && task->state == TASK_WAITING)
                        task->state = TASK_NEW;
                if (task)
                        continue;
                if (array_grow(&run->tasks, sizeof(Task), run->n_tasks, &run->n_allocated) < 0)
                        return error_oom(reterr);
                run->tasks[run->n_tasks] =
                        (Task){ .dirty = run->claims.dirty[i], .lines = json_array() };
                if (!run->tasks[run->n_tasks++].lines)
                        return error_oom(reterr);
        }
        return 0;
}

/* Makes the next step of each task. Yields the number of tasks whose unit runs. While the
 * configuration or the claims cannot be read, no new task begins. */
static int make_steps(Run *run, size_t *ret_running, Error *reterr)
{
        int r = 0;

        *ret_running = 0;
        for (size_t i = 0; i < run->n_tasks && r == 0; i++) {
                Task *task = &run->tasks[i];

                if (task->state == TASK_NEW && !run->error.code)
                        r = begin(run, task, reterr);
                else if (is_running(task))
                        r = look_at_unit(run, task, reterr);
                *ret_running += is_running(task);
        }
        return r;
}

static int serve(Run *run, Error *reterr)
{
        bool first = true;
        size_t running = 0;
        int r;

        do {
                char now[PREPARE_WANTED_SIZE];

                prepare_read_wanted(run->paths, "clean-wanted", now);
                r = 0;
                if (first || strcmp(now, run->wanted) != 0) {
                        first = false;
                        strcpy(run->wanted, now);
                        r = update_tasks(run, reterr);
                }
                if (r == 0)
                        r = make_steps(run, &running, reterr);
                if (r == 0 && run->changed)
                        r = write_record(run, reterr);
                if (r == 0 && running > 0)
                        usleep(POLL_USEC);
        } while (r == 0 && running > 0);
        return r;
}

static int outcome_of(const Run *run)
{
        if (run->error.code)
                return PREPARE_UNTOUCHED;
        for (size_t i = 0; i < run->n_tasks; i++)
                if (run->tasks[i].state == TASK_FAILED)
                        return PREPARE_FAILED;
        return PREPARE_DONE;
}

int prepare_clean_run(const char *config_file, const PreparePaths *paths, Error *reterr)
{
        _cleanup_(run_done) Run run = { .config_file = config_file, .paths = paths };
        _cleanup_close_ int lock = prepare_take_lock(paths, FOLDER, reterr);
        int r;

        if (lock == -EBUSY)
                return PREPARE_UNTOUCHED;
        if (lock < 0)
                return lock;
        r = read_record(&run, reterr);
        if (r == 0)
                r = serve(&run, reterr);
        return r < 0 ? r : outcome_of(&run);
}
