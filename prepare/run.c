/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs compute-agent-prepare once: takes the lock of a run, and makes passes. Each pass prepares
 * the cards and writes their record, if any are listed, and then makes the steps of the partitions.
 * A negative errno ends the run. If the pass of the cards returns one, it has written no record,
 * and the partitions get no step. The pass of the cards is a loop:
 *
 *   read the claims → read the cards → read the open handles → plan → execute the steps of the
 *   first kind
 *
 * until the plan has no step that acts, or ROUNDS_MAX rounds are over. So claims and handles are
 * never older than the steps of one kind. After a failed step, its card or function gets no further
 * step in the same pass. If the claims cannot be read, the pass ends before its next step.
 *
 * At boot the driver of a card can be loaded late. A run prepares the other cards first, then waits
 * for such cards up to patience_usec, and makes another pass when one has its driver.
 *
 * The agent writes prepare-wanted after it changed claims, and compute-agent-prepare.path starts
 * this program then. A service is not started twice at a time, so a run finds later changes itself.
 * It compares the stamp with that of the begin of the pass. If they differ, it makes another pass.
 * A run makes at most PASSES_MAX passes, also counting those for late drivers.
 *
 * Tests: tests/unit/prepare/test-run.c tests/unit/prepare/test-kills.c */

#include "prepare/run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "prepare/act.h"
#include "prepare/claims.h"
#include "prepare/partitions.h"
#include "prepare/record.h"
#include "prepare/wanted.h"

#define ROUNDS_MAX       32 /* enough for all kinds of steps, some twice, and for changes of claims */
#define PASSES_MAX       10
#define DRIVER_POLL_USEC UINT64_C(200000)

typedef struct Run {
        const Config *config;
        const PreparePaths *paths;
        PrepareHost host;
        PrepareClaims claims;
        PreparePlan plan;
} Run;

static void run_done(Run *run)
{
        prepare_host_done(&run->host);
        prepare_claims_done(&run->claims);
        free(run->plan.steps);
}

static void carry_function(const PrepareCard *before, PrepareFunction *after)
{
        for (size_t i = 0; i < before->n_functions; i++) {
                const PrepareFunction *function = &before->functions[i];

                if (strcmp(function->address, after->address) != 0)
                        continue;
                after->recorded = function->recorded;
                memcpy(after->failed, function->failed, sizeof(after->failed));
                return;
        }
}

/* Copies the failed steps and finished units of this pass, and the recorded claims, to a newer
 * reading of the same cards. */
static void carry_over(const PrepareHost *before, PrepareHost *after)
{
        for (size_t i = 0; i < MIN(before->n_cards, after->n_cards); i++) {
                const PrepareCard *old = &before->cards[i];
                PrepareCard *card = &after->cards[i];

                card->unit_done = old->unit_done;
                memcpy(card->failed, old->failed, sizeof(card->failed));
                for (size_t j = 0; j < card->n_functions; j++)
                        carry_function(old, &card->functions[j]);
        }
}

/* Reads claims, cards and handles again, and plans. Returns 1 if the claims could not be read:
 * there is no plan then, and reterr has the words. */
static int look(Run *run, Error *reterr)
{
        _cleanup_(prepare_host_done) PrepareHost before = TAKE_STRUCT(run->host);
        bool known;
        int r;

        prepare_claims_done(&run->claims);
        free(run->plan.steps);
        run->plan = (PreparePlan){ 0 };
        r = prepare_read_claims(run->config, &run->claims, reterr);
        known = r == 0;
        r = prepare_read_host(run->paths, &run->config->driver.host, &run->host, reterr);
        if (r < 0)
                return r;
        if (before.n_cards > 0)
                carry_over(&before, &run->host);
        else
                prepare_record_read(run->paths, &run->host);
        r = prepare_read_open(run->paths, &run->host, reterr);
        if (r == 0 && known && prepare_plan(&run->host, &run->claims, &run->plan) < 0)
                r = error_oom(reterr);
        return r < 0 ? r : !known;
}

static const char *address_of(const Run *run, const PrepareStep *step)
{
        const PrepareCard *card = &run->host.cards[step->card];

        return step->function == PREPARE_OF_CARD ? card->address
                                                 : card->functions[step->function].address;
}

/* Writes the card or function of a step, and its goal if it acts, for example "Function … of …:
 * type nvidia-1428". */
static void describe_step(const Run *run, const PrepareStep *step, char text[static 256])
{
        const PrepareCard *card = &run->host.cards[step->card];
        const char *address = address_of(run, step);

        switch (step->kind) {
        case PREPARE_UNIT:
                snprintf(text, 256, "Card %s: unit %.100s", address, card->options->unit);
                break;
        case PREPARE_FUNCTIONS:
                snprintf(text, 256, "Card %s: %" PRIu64 " virtual functions", address, step->value);
                break;
        case PREPARE_DRIVER:
                snprintf(text, 256, "Function %s of %s: driver %.100s", address, card->address,
                         card->options->driver_override);
                break;
        case PREPARE_CLEAR:
                snprintf(text, 256, "Function %s of %s: end of nvidia-%" PRIu64, address,
                         card->address, step->value);
                break;
        case PREPARE_SET:
                snprintf(text, 256, "Function %s of %s: type nvidia-%" PRIu64, address,
                         card->address, step->value);
                break;
        default:
                snprintf(text, 256,
                         step->function == PREPARE_OF_CARD ? "Card %s" : "Function %s of %s",
                         address, card->address);
        }
}

/* Logs a step with its result, or with the reason why it is not possible. */
static void log_step(const Run *run, const PrepareStep *step, int level, const char *message_id,
                     const char *result)
{
        char text[256], claim[32];

        describe_step(run, step, text);
        snprintf(claim, sizeof(claim), "%" PRIi64, step->claim);
        log_event(level, message_id,
                  LOG_FIELDS(LOG_FIELD_DEVICE, address_of(run, step), LOG_FIELD_CLAIM,
                             step->claim ? claim : NULL),
                  "%s: %s", text, result);
}

static void log_done(const Run *run, const PrepareStep *step)
{
        char result[PREPARE_REASON_SIZE + 16];

        snprintf(result, sizeof(result), "done, because %s", step->reason);
        log_step(run, step, LOG_NOTICE, MESSAGE_PREPARE_CHANGED, result);
}

/* Stores the error of a step for the rest of the pass. */
static void note_failure(Run *run, const PrepareStep *step, const char *words)
{
        PrepareCard *card = &run->host.cards[step->card];
        char *failed = step->function == PREPARE_OF_CARD ? card->failed
                                                         : card->functions[step->function].failed;

        snprintf(failed, PREPARE_REASON_SIZE, "%s", words);
}

/* Executes the steps of the first kind, if they act. Logs each change and each failure, and notes
 * failures. Returns the number of steps that were tried; 0: no step of the plan acts. */
static size_t execute(Run *run)
{
        size_t n = 0;

        for (; n < run->plan.n_steps && run->plan.steps[n].kind == run->plan.steps[0].kind &&
               prepare_kind_acts(run->plan.steps[n].kind);
             n++) {
                const PrepareStep *step = &run->plan.steps[n];
                Error error = ERROR_NULL;
                int r = prepare_act(run->paths, &run->host, step, &error);

                if (r > 0)
                        log_done(run, step);
                if (r > 0 && step->kind == PREPARE_UNIT)
                        run->host.cards[step->card].unit_done = true;
                if (r >= 0)
                        continue;
                log_step(run, step, LOG_ERR, MESSAGE_PREPARE_FAILED, error_text(&error, r));
                note_failure(run, step, error_text(&error, r));
        }
        return n;
}

static void log_rest(const Run *run)
{
        for (size_t i = 0; i < run->plan.n_steps; i++) {
                const PrepareStep *step = &run->plan.steps[i];

                if (step->kind == PREPARE_REFUSE)
                        log_step(run, step, LOG_ERR, MESSAGE_PREPARE_FAILED, step->reason);
                else
                        log_step(run, step, LOG_INFO, NULL, step->reason);
        }
}

static int write_record(const Run *run, const char *wanted, const char *error, Error *reterr)
{
        size_t n_errors;
        _cleanup_json_ json_t *document =
                prepare_record_make(&run->host, &run->claims, &run->plan, wanted, error, &n_errors);
        int r;

        if (!document)
                return error_oom(reterr);
        r = prepare_record_write(run->paths, PREPARE_FOLDER, PREPARE_RECORD, document, reterr);
        if (r < 0)
                return r;
        if (error[0])
                return PREPARE_UNTOUCHED;
        return n_errors > 0 ? PREPARE_FAILED : PREPARE_DONE;
}

/* Makes one pass of the cards and writes its record. Returns a PrepareOutcome or a negative errno
 * with words. */
static int make_pass(const Config *config, const PreparePaths *paths, const char *wanted,
                     Error *reterr)
{
        _cleanup_(run_done) Run run = { .config = config, .paths = paths };
        Error error = ERROR_NULL;
        size_t n = 1, n_rounds = 0;
        int r;

        do {
                r = look(&run, &error);
                if (r != 0)
                        break;
                n = execute(&run);
        } while (n > 0 && ++n_rounds < ROUNDS_MAX);
        if (r < 0)
                return error_setf(reterr, r, "%s", error_text(&error, r));
        if (r == 0 && n > 0)
                error_setf(&error, ELOOP, "The cards or the claims change too often");
        log_rest(&run);
        if (error.code)
                log_event(LOG_ERR, MESSAGE_PREPARE_FAILED, NULL,
                          n_rounds == 0 ? "No card was changed: %s"
                                        : "The cards were not finished: %s",
                          error.text);
        return write_record(&run, wanted, error.text, reterr);
}

/* Returns true if a set of devices has the options "activate" and "deactivate". */
static bool has_partitions(const Config *config)
{
        const HostConfig *host = &config->driver.host;

        for (size_t i = 0; i < host->n_shapes; i++)
                if (host->shapes[i].activate)
                        return true;
        return false;
}

/* Prepares the cards, then the partitions, which can need the drivers of the cards. Returns the
 * worse PrepareOutcome of both, or a negative errno with words. */
static int make_both(const Config *config, const PreparePaths *paths, const char *wanted,
                     Error *reterr)
{
        int cards = PREPARE_DONE, partitions = PREPARE_DONE;

        if (config->driver.host.n_prepares > 0)
                cards = make_pass(config, paths, wanted, reterr);
        if (cards >= 0 && has_partitions(config))
                partitions = prepare_partitions(config, paths, false, reterr);
        return cards < 0 ? cards : partitions < 0 ? partitions : MAX(cards, partitions);
}

/* Counts the listed cards without a driver. A card that does not exist has none. */
static size_t count_unbound(const PreparePaths *paths, const HostConfig *config)
{
        size_t n = 0;

        for (size_t i = 0; i < config->n_prepares; i++)
                for (char **address = config->prepares[i].device_addresses; *address; address++) {
                        PrepareFunction card = { 0 };

                        snprintf(card.address, sizeof(card.address), "%s", *address);
                        if (prepare_read_function(paths, &card) < 0 || !card.driver[0])
                                n++;
                }
        return n;
}

/* Returns true if another pass is needed: the agent wrote another stamp during this one, or a
 * driver was bound to a card. At boot drivers are loaded late, so it waits for cards without a
 * driver until that time (CLOCK_MONOTONIC). */
static bool wait_for_change(const Config *config, const PreparePaths *paths, const char *wanted,
                            size_t n_unbound, uint64_t until)
{
        char now[PREPARE_WANTED_SIZE];

        for (;;) {
                size_t n = count_unbound(paths, &config->driver.host);

                prepare_read_wanted(paths, "prepare-wanted", now);
                if (strcmp(wanted, now) != 0 || n < n_unbound)
                        return true;
                if (n == 0 || clock_usec(CLOCK_MONOTONIC) >= until)
                        return false;
                usleep(DRIVER_POLL_USEC);
        }
}

/* Prints the steps of one plan of the cards and the next step of each set, and changes nothing. */
static int print_plan(const Config *config, const PreparePaths *paths, Error *reterr)
{
        static const char *const words[] = {
                [PREPARE_UNIT] = "start",
                [PREPARE_FUNCTIONS] = "make",
                [PREPARE_DRIVER] = "bind",
                [PREPARE_CLEAR] = "clear",
                [PREPARE_SET] = "set",
                [PREPARE_WAIT] = "wait",
                [PREPARE_REFUSE] = "not possible",
        };
        _cleanup_(run_done) Run run = { .config = config, .paths = paths };
        int r = look(&run, reterr);

        if (r < 0)
                return r;
        if (r > 0) {
                printf("Nothing would be changed: %s\n", reterr ? reterr->text : "");
                return PREPARE_UNTOUCHED;
        }
        for (size_t i = 0; i < run.plan.n_steps; i++) {
                const PrepareStep *step = &run.plan.steps[i];
                char text[256];

                describe_step(&run, step, text);
                printf("%-12s %s (%s)\n", words[step->kind], text, step->reason);
        }
        if (run.plan.n_steps == 0)
                puts("All listed cards are as configured.");
        return prepare_partitions(config, paths, true, reterr);
}

int prepare_run(const Config *config, const PreparePaths *paths, bool dry_run, Error *reterr)
{
        _cleanup_close_ int lock = -EBADF;
        char wanted[PREPARE_WANTED_SIZE];
        uint64_t until;
        int r;

        if (dry_run)
                return print_plan(config, paths, reterr);
        if (config->driver.host.n_prepares == 0 && !has_partitions(config)) {
                log_info("No section [device_prepare NAME] lists a card, and no section "
                         "[device_shapes NAME] has units.");
                return PREPARE_DONE;
        }
        lock = prepare_take_lock(paths, PREPARE_FOLDER, reterr);
        if (lock == -EBUSY) {
                log_error("No card was changed: %s", reterr ? reterr->text : "");
                return PREPARE_UNTOUCHED;
        }
        if (lock < 0)
                return lock;
        until = clock_usec(CLOCK_MONOTONIC) + paths->patience_usec;
        for (int i = 0; i < PASSES_MAX; i++) {
                size_t n_unbound = count_unbound(paths, &config->driver.host);

                prepare_read_wanted(paths, "prepare-wanted", wanted);
                r = make_both(config, paths, wanted, reterr);
                if (r < 0 || !wait_for_change(config, paths, wanted, n_unbound, until))
                        break;
        }
        return r;
}
