/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests when a reshape is due, the requests of its rounds, and the results that are kept. A fake
 * reporter answers, and a driver moves VGPU from the root to a provider below it. */

#include "agent/reshape/control.h"

#include "base/log.h"
#include "base/text.h"
#include "drivers/update.h"
#include "tests/fakes/reporter.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/fixtures/tree.h"

#define BEFORE "host VCPU=8 VGPU=4"
#define AFTER  "host VCPU=8; gpu<host VGPU=4"

static struct {
        ReshapeControl *control;
        TreeMaker maker;
        char *folder;
        size_t n_ended, n_records;
        int result;
        Error error;
        ProviderTree *tree; /* tree of the last result; NULL: nothing was sent */
        bool cancels;       /* cancel after the consumers were gathered */
        bool stays;         /* VGPU cannot be moved */
        bool other_stays;   /* VCPU cannot be moved */
        bool has_problem;   /* the driver has another problem */
        bool closes;        /* the driver withholds the moved VGPU in its next tree */
        int cancelled;
} world;

int provider_update(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    ProviderTree *tree, const char *nodename, DriverReshape *reshape, Error *reterr)
{
        Provider *root = provider_tree_find_name(tree, nodename), *gpu;
        const Uuid uuid = make_uuid("gpu");

        gpu = provider_tree_find(tree, &uuid);
        if (gpu && world.closes)
                provider_find_inventory(gpu, "VGPU")->reserved = 4;
        if (world.other_stays && !reshape->consumers &&
            !string_set_contains(&reshape->kept, "VCPU"))
                return DRIVER_RESHAPE_NEEDED;
        if (world.other_stays && reshape->consumers)
                assert_true(string_set_add(&reshape->kept, "VCPU") >= 0);
        if (!provider_find_inventory(root, "VGPU"))
                return DRIVER_UPDATED;
        if (!reshape->consumers && !string_set_contains(&reshape->kept, "VGPU"))
                return DRIVER_RESHAPE_NEEDED;
        if (world.stays && reshape->consumers) {
                assert_true(string_set_add(&reshape->kept, "VGPU") >= 0);
                error_setf(&reshape->blocked, EBUSY, "VGPU stays: a guest");
        }
        if (world.stays) {
                error_setf(reterr, EBUSY, "%s%s", world.has_problem ? "no disk; " : "",
                           reshape->blocked.text);
                return DRIVER_UPDATED_IN_PART;
        }
        if (world.cancels)
                world.cancelled = reshape_control_cancel(world.control);
        assert_true(provider_remove_inventory(root, "VGPU"));
        assert_int_equal(provider_tree_add(tree, &uuid, "gpu", &root->uuid, &gpu, NULL), 0);
        assert_int_equal(provider_set_inventory(gpu, "VGPU", &INVENTORY_DEFAULT(4)), 0);
        for (size_t i = 0; i < reshape->consumers->n_consumers; i++) {
                Consumer *consumer = reshape->consumers->consumers[i];

                consumer_clear(consumer);
                assert_int_equal(consumer_add(consumer, &uuid, "VGPU", 1), 0);
        }
        return DRIVER_UPDATED;
}

void claim_service_record(ClaimService *service, const EventNote *note)
{
        assert_string_equal(note->kind, EVENT_RESHAPED);
        world.n_records++;
}

/* Gives the guest its VGPU from this provider in Placement. */
static void hold(const char *provider)
{
        const Uuid uuid = make_uuid(provider), guest = make_uuid("guest");
        Consumer *consumer;

        allocations_free(fake_reporter.consumers);
        assert_int_equal(allocations_new(&fake_reporter.consumers), 0);
        assert_int_equal(allocations_ensure(fake_reporter.consumers, &guest, &consumer), 0);
        consumer->project_id = strdup("p");
        consumer->user_id = strdup("u");
        consumer->generation = 1;
        assert_int_equal(consumer_add(consumer, &uuid, "VGPU", 1), 0);
}

/* Gives Placement this tree, and the guest its VGPU from this provider. */
static void become(const char *tree, const char *provider)
{
        provider_tree_free(fake_reporter.mirror);
        fake_reporter.mirror = make_tree(tree);
        hold(provider);
}

static int set_up(void **state)
{
        static const HostConfig config;

        log_set_level(LOG_EMERG);
        fake_reporter_begin();
        memset(&world, 0, sizeof(world));
        world.folder = scratch_folder_make();
        world.maker =
                (TreeMaker){ .config = &config, .root = make_uuid("host"), .nodename = "host" };
        become(BEFORE, "host");
        return 0;
}

static int tear_down(void **state)
{
        reshape_control_free(world.control);
        provider_tree_free(world.tree);
        scratch_folder_remove(world.folder);
        fake_reporter_end();
        return 0;
}

static ReshapeControl *make_control(bool at_start)
{
        static ClaimService claims;
        ReshapeControl *control;

        assert_int_equal(reshape_control_new(&control, fake_reporter.event, world.folder, 0,
                                             at_start, &claims),
                         0);
        return control;
}

static void begin_control(bool at_start)
{
        world.control = reshape_control_free(world.control);
        world.control = make_control(at_start);
}

/* Replaces the control as a reload does. A request that has no answer yet gets none. */
static void reload(void)
{
        ReshapeControl *control = make_control(false);

        reshape_control_inherit(control, world.control);
        reshape_control_free(world.control);
        fake_reporter.source = sd_event_source_unref(fake_reporter.source);
        fake_reporter.done = NULL;
        world.control = control;
}

static void on_ended(int result, ProviderTree *tree, const Error *device_error, const Error *error,
                     void *userdata)
{
        assert_ptr_equal(userdata, &world);
        world.n_ended++;
        world.result = result;
        world.error = *error;
        provider_tree_free(world.tree);
        world.tree = tree;
}

/* Begins the reshape that is due. Returns the result of reshape_control_begin(). */
static int begin_if_due(bool needed, bool may)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;

        assert_int_equal(snapshot_new(&host), 0);
        memset(fake_reporter.did, 0, sizeof(fake_reporter.did));
        world.n_ended = 0;
        return reshape_control_begin(world.control, needed, may, &world.maker,
                                     (Reporter *)&fake_reporter, host, on_ended, &world, NULL);
}

static void begin_reshape(void)
{
        assert_int_equal(begin_if_due(true, true), 1);
}

/* Runs until these requests were made. */
static void await_requests(const char *did)
{
        for (int i = 0; i < 400 && strcmp(fake_reporter.did, did) != 0; i++)
                assert_true(sd_event_run(fake_reporter.event, 20 * USEC_PER_MSEC) >= 0);
        assert_string_equal(fake_reporter.did, did);
}

static void await_end(void)
{
        for (int i = 0; i < 400 && world.n_ended == 0; i++)
                assert_true(sd_event_run(fake_reporter.event, 20 * USEC_PER_MSEC) >= 0);
        assert_int_equal(world.n_ended, 1);
}

/* Runs the reshape that is due to its end. */
static void run(void)
{
        begin_reshape();
        await_end();
}

/* Runs the reshape, which gets this answer, to its end. If it stays due, runs it again. */
static void await_end_of(int answer)
{
        await_end();
        if (!report_outcome_is_away(answer))
                return;
        assert_int_equal(world.result, answer);
        assert_true(reshape_control_get_state(world.control)->asked);
        run();
}

static void assert_mirror(const char *expected)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(expected);

        assert_true(provider_tree_equal(fake_reporter.mirror, tree));
}

static bool has_file(const char *name)
{
        _cleanup_free_ char *path = text_format("%s/%s", world.folder, name);

        return access(path, F_OK) == 0;
}

static void test_conditions_of_a_reshape(void **state)
{
        enum { NONE = -1 };
        static const struct {
                bool at_start;
                int asked;
                bool needed, may, due;
                bool start_stays; /* one that was not due is due later, if needed and permitted */
        } rows[] = {
                { true, NONE, true, true, true, true },
                { true, NONE, false, true, false, false },
                { true, NONE, true, false, false, true },
                { false, NONE, true, true, false, false },
                { false, RESHAPE_FORWARD, true, true, true, false },
                { false, RESHAPE_FORWARD, false, true, false, false },
                { false, RESHAPE_FORWARD, true, false, false, false },
                { false, RESHAPE_SHOW, true, false, true, false },
                { false, RESHAPE_UNDO, false, true, true, false },
                { false, RESHAPE_UNDO, false, false, false, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const ReshapeState *kept;
                bool due;

                begin_control(rows[i].at_start);
                kept = reshape_control_get_state(world.control);
                if (rows[i].asked != NONE)
                        reshape_control_ask(world.control, (ReshapeKind)rows[i].asked, NULL);
                /* There is nothing to undo, so an undo that is due fails. */
                due = begin_if_due(rows[i].needed, rows[i].may) == 1 || kept->asked_error.code;
                if (due != rows[i].due || kept->asked || kept->at_start != rows[i].start_stays ||
                    (!due && begin_if_due(true, true) != rows[i].start_stays))
                        fail_msg("row %zu", i);
        }
}

/* The error of a failed reshape ends with the need of one, or with the permission for it. */
static void test_an_error_ends_with_the_need(void **state)
{
        static const struct {
                bool needed, may, shows;
        } ends[] = { { false, true, false }, { true, false, false }, { true, false, true } };

        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                const ReshapeState *kept;

                begin_control(true);
                fake_reporter.publishes = (FakeAnswers){ .results = { REPORT_E_FORBIDDEN } };
                run();
                reload();
                kept = reshape_control_get_state(world.control);
                assert_int_equal(begin_if_due(true, true), 0);
                assert_int_not_equal(kept->error.code, 0);
                if (ends[i].shows)
                        reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
                assert_int_equal(begin_if_due(ends[i].needed, ends[i].may), ends[i].shows);
                if (kept->error.code)
                        fail_msg("row %zu", i);
        }
}

/* Runs a reshape of the start against these answers. "R", "H" and "S" name the requests. */
static void test_rounds(void **state)
{
        static const struct {
                const char *about;
                int refresh, gather, publishes[3];
                const char *did;
                int result;
                bool at_start; /* after the reshape */
                bool refuses_a_later_step;
        } rows[] = {
                { "well", .did = "RHS" },
                { "overtaken", .publishes = { REPORT_E_CONFLICT, REPORT_E_CONFLICT },
                  .did = "RHSRHSRHS" },
                { "refused for good",
                  .publishes = { REPORT_E_REFUSED, REPORT_E_IN_USE, REPORT_E_REFUSED },
                  .did = "RHSRHSRHS", .result = REPORT_E_REFUSED },
                { "a later step refused", .publishes = { REPORT_E_REFUSED }, .did = "RHS",
                  .refuses_a_later_step = true },
                { "no right", .publishes = { REPORT_E_FORBIDDEN }, .did = "RHS",
                  .result = REPORT_E_FORBIDDEN },
                { "away at once", .refresh = REPORT_E_UNREACHABLE, .did = "R",
                  .result = REPORT_E_UNREACHABLE, .at_start = true },
                { "away later", .gather = REPORT_E_UNAVAILABLE, .did = "RH",
                  .result = REPORT_E_UNAVAILABLE, .at_start = true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const ReshapeState *kept;
                bool away, done = rows[i].result == 0;

                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(true);
                kept = reshape_control_get_state(world.control);
                fake_reporter.refreshes.results[0] = rows[i].refresh;
                fake_reporter.gathers.results[0] = rows[i].gather;
                fake_reporter.refuses_a_later_step = rows[i].refuses_a_later_step;
                memcpy(fake_reporter.publishes.results, rows[i].publishes,
                       sizeof(rows[i].publishes));
                run();
                if (strcmp(fake_reporter.did, rows[i].did) != 0 || world.result != rows[i].result)
                        fail_msg("%s: %s %d", rows[i].about, fake_reporter.did, world.result);
                away = report_outcome_is_away(world.result);
                assert_int_equal(kept->error.code != 0, !done && !away);
                assert_int_equal(kept->start_error.code, kept->error.code);
                assert_int_equal(kept->at_start, rows[i].at_start);
                assert_int_equal(world.n_records, done);
                assert_int_equal(world.tree != NULL, done);
                assert_int_equal(kept->image.after.tree != NULL, done);
                assert_mirror(done ? AFTER : BEFORE);
                assert_int_equal(has_file("reshape.json"), done);
        }
}

/* The first round conflicts, and nothing has to move in the second one. The result has the
 * consumers of the first round only if Placement has its shape, and so has the kept image. */
static void test_a_round_without_moves_drops_an_earlier_decision(void **state)
{
        static const struct {
                const char *now; /* tree of Placement after the conflict */
                bool kept, closes;
                unsigned n_conflicts;
        } rows[] = { { "host VCPU=8", false, false, 1 },
                     { "host VCPU=8", false, false, 2 },
                     { AFTER, true, false, 1 },
                     { AFTER, true, true, 1 } };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const ReshapeState *kept;

                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(true);
                kept = reshape_control_get_state(world.control);
                for (unsigned j = 0; j < rows[i].n_conflicts; j++)
                        fake_reporter.publishes.results[j] = REPORT_E_CONFLICT;
                world.closes = rows[i].closes;
                begin_reshape();
                await_requests("RHS");
                provider_tree_free(fake_reporter.mirror);
                fake_reporter.mirror = make_tree(rows[i].now);
                await_end();
                assert_string_equal(fake_reporter.did,
                                    rows[i].n_conflicts > 1 ? "RHSRWRW" : "RHSRW");
                assert_int_equal(world.result, 0);
                assert_non_null(kept->image.after.tree);
                assert_int_equal(kept->image.after.consumers != NULL, rows[i].kept);
                assert_int_equal(kept->document != NULL, rows[i].kept);
                assert_int_equal(has_file("reshape.json"), rows[i].kept);
        }
}

/* Placement accepts the first round, and a later request conflicts. The second round moves nothing,
 * because the other class stays. The next reshape moves nothing, either. An undo still restores the
 * shape before the first round. */
static void test_a_round_that_moves_nothing_keeps_the_image(void **state)
{
        for (int is_repeated = 0; is_repeated < 2; is_repeated++) {
                const ReshapeState *kept;

                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(true);
                kept = reshape_control_get_state(world.control);
                fake_reporter.publishes.results[0] = REPORT_E_CONFLICT;
                world.other_stays = true;
                begin_reshape();
                await_requests("RHS");
                become(AFTER, "gpu");
                await_end();
                assert_string_equal(fake_reporter.did, "RHSRHW");
                assert_int_equal(world.result, 0);
                assert_int_equal(kept->image.after.consumers->n_consumers, 1);
                if (is_repeated) {
                        reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
                        run();
                        assert_string_equal(fake_reporter.did, "RHW");
                }
                reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
                run();
                assert_string_equal(fake_reporter.did, "RHS");
                assert_int_equal(world.result, 0);
                assert_mirror(BEFORE);
        }
}

static void test_a_requested_reshape_after_the_start(void **state)
{
        const ReshapeState *kept;

        begin_control(false);
        kept = reshape_control_get_state(world.control);
        fake_reporter.publishes.results[0] = REPORT_E_FORBIDDEN;
        reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
        run();
        assert_int_equal(world.result, REPORT_E_FORBIDDEN);
        assert_int_not_equal(kept->error.code, 0);
        assert_int_equal(kept->start_error.code, 0);
}

static void test_a_reshape_that_is_shown_sends_nothing(void **state)
{
        begin_control(false);
        reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
        run();
        assert_string_equal(fake_reporter.did, "RH");
        assert_null(world.tree);
        assert_non_null(reshape_control_get_state(world.control)->document);
        assert_int_equal(world.n_records, 0);
        assert_false(has_file("reshape-pending.json"));
}

/* The claims have not followed the reshape yet (reshape_control_drop_image()). */
static void test_the_image_stays_until_the_claims_follow(void **state)
{
        begin_control(true);
        run();
        reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
        run();
        assert_non_null(reshape_control_get_state(world.control)->image.after.tree);
        reload();
        assert_non_null(reshape_control_get_state(world.control)->image.after.tree);
        reshape_control_drop_image(world.control);
        assert_null(reshape_control_get_state(world.control)->image.after.tree);
}

/* A shown reshape that fails keeps its reason, and drops the moves of an earlier one. A shown
 * reshape without moves drops them, too. */
static void test_a_reshape_that_is_shown_replaces_the_last_answer(void **state)
{
        static const struct {
                int refresh, gather;
                const char *tree;
                const char *did;
        } rows[] = {
                { .gather = REPORT_E_CONFLICT, .tree = BEFORE, .did = "RH" },
                { .gather = REPORT_E_FORBIDDEN, .tree = BEFORE, .did = "RH" },
                { .refresh = REPORT_E_REFUSED, .tree = BEFORE, .did = "R" },
                { .tree = "host VCPU=8", .did = "R" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                bool fails = rows[i].refresh || rows[i].gather;
                const ReshapeState *kept;

                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(false);
                kept = reshape_control_get_state(world.control);
                reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
                run();
                assert_non_null(kept->document);
                assert_int_equal(kept->asked_error.code, 0);
                become(rows[i].tree, "host");
                fake_reporter.refreshes.results[1] = rows[i].refresh;
                fake_reporter.gathers.results[1] = rows[i].gather;
                reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
                run();
                assert_string_equal(fake_reporter.did, rows[i].did);
                assert_null(kept->document);
                assert_int_equal(kept->asked_error.code != 0, fails);
                assert_int_equal(kept->error.code, 0);
                reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
                assert_int_equal(kept->asked_error.code, 0);
        }
}

static void test_undo(void **state)
{
        const ReshapeState *kept;

        begin_control(true);
        kept = reshape_control_get_state(world.control);
        reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
        assert_int_equal(begin_if_due(true, true), 0);
        assert_int_equal(world.n_ended, 0);
        assert_string_equal(kept->asked_error.text, "There is no reshape to undo");
        run();
        assert_mirror(AFTER);
        /* The consumer has the allocations that the reshape gave it. */
        allocations_free(fake_reporter.consumers);
        assert_int_equal(allocations_copy(&fake_reporter.consumers, kept->image.after.consumers),
                         0);
        reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
        run();
        assert_string_equal(fake_reporter.did, "RHS");
        assert_int_equal(world.result, 0);
        assert_int_equal(kept->asked_error.code, 0);
        assert_mirror(BEFORE);
}

/* The answer of a reshape is lost, and the next start finds the shape in Placement. */
static void test_a_lost_answer_is_settled_at_the_start(void **state)
{
        static const char *const now[] = { AFTER, "host VCPU=8 VGPU=3" };

        for (size_t i = 0; i < ARRAY_SIZE(now); i++) {
                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(true);
                fake_reporter.publishes.results[0] = REPORT_E_UNREACHABLE;
                run();
                assert_true(has_file("reshape-pending.json"));
                provider_tree_free(fake_reporter.mirror);
                fake_reporter.mirror = make_tree(now[i]);
                assert_int_equal(begin_if_due(false, true), 0);
                assert_int_equal(has_file("reshape.json"), i == 0);
        }
}

/* The answer of a requested reshape is lost. The next cycle finds its shape, and an undo restores
 * the one before it. */
static void test_a_lost_answer_is_settled_in_the_next_cycle(void **state)
{
        for (int undoes_at_once = 0; undoes_at_once < 2; undoes_at_once++) {
                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(false);
                reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
                fake_reporter.publishes.results[0] = REPORT_E_UNREACHABLE;
                run();
                become(AFTER, "gpu");
                assert_true(reshape_control_get_state(world.control)->asked);
                if (!undoes_at_once) {
                        assert_int_equal(begin_if_due(false, true), 0);
                        assert_true(has_file("reshape.json"));
                }
                reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
                run();
                assert_string_equal(fake_reporter.did, "RHS");
                assert_int_equal(world.result, 0);
                assert_mirror(BEFORE);
        }
}

/* An undo whose answer is lost is not made twice. It is repeated if Placement did not make it. */
static void test_a_lost_answer_of_an_undo(void **state)
{
        static const struct {
                const char *about;
                int answer;
                bool made;
                const char *did; /* all requests after a conflict, else those of the repetition */
        } rows[] = {
                { "away, made", REPORT_E_UNREACHABLE, true, "R" },
                { "away, not made", REPORT_E_UNREACHABLE, false, "RHS" },
                { "sent again, made", REPORT_E_CONFLICT, true, "RHSR" },
                { "a conflict", REPORT_E_CONFLICT, false, "RHSRHS" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const ReshapeState *kept;

                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(true);
                kept = reshape_control_get_state(world.control);
                run();
                hold("gpu");
                reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
                fake_reporter.publishes = (FakeAnswers){ .results = { rows[i].answer } };
                begin_reshape();
                await_requests("RHS");
                if (rows[i].made)
                        become(BEFORE, "host");
                await_end_of(rows[i].answer);
                if (strcmp(fake_reporter.did, rows[i].did) != 0 || world.result != 0)
                        fail_msg("%s: %s %d", rows[i].about, fake_reporter.did, world.result);
                assert_mirror(BEFORE);
                assert_non_null(world.tree);
                assert_int_equal(world.n_records, 2);
                assert_int_equal(kept->asked_error.code, 0);
                assert_non_null(kept->image.after.consumers);
                assert_int_equal(kept->image.after.consumers->n_consumers, 1);
                assert_false(has_file("reshape-pending.json"));
        }
}

/* Reshapes, and undoes it without an answer of Placement, which made the undo. */
static void lose_undo(void)
{
        begin_control(true);
        run();
        hold("gpu");
        reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
        fake_reporter.publishes = (FakeAnswers){ .results = { REPORT_E_UNREACHABLE } };
        begin_reshape();
        await_requests("RHS");
        become(BEFORE, "host");
        await_end();
}

/* Repeats that undo, which then ends without another request than the read. */
static void repeat_undo(void)
{
        reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
        run();
        assert_string_equal(fake_reporter.did, "R");
        assert_int_equal(world.result, 0);
        assert_mirror(BEFORE);
}

/* The same after a reload, which drops the request. */
static void test_a_lost_answer_of_an_undo_before_a_reload(void **state)
{
        lose_undo();
        reload();
        assert_false(reshape_control_get_state(world.control)->asked);
        repeat_undo();
}

/* A reshape that is only shown does not settle the image of the undo. */
static void test_a_lost_answer_of_an_undo_before_a_show(void **state)
{
        lose_undo();
        reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
        run();
        assert_true(has_file("reshape-pending.json"));
        repeat_undo();
}

/* The reload comes before the answer: of an undo, and of the reshape after a lost undo. */
static void test_a_reload_before_an_answer(void **state)
{
        for (int again = 0; again < 2; again++) {
                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(true);
                run();
                hold("gpu");
                reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
                fake_reporter.publishes =
                        (FakeAnswers){ .results = { again ? REPORT_E_UNREACHABLE : 0 } };
                begin_reshape();
                await_requests("RHS");
                become(BEFORE, "host");
                if (again) {
                        await_end();
                        reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
                        begin_reshape();
                        await_requests("RHS");
                        become(AFTER, "gpu");
                }
                reload();
                reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
                run();
                assert_string_equal(fake_reporter.did, again ? "RHS" : "R");
                assert_int_equal(world.result, 0);
                assert_mirror(BEFORE);
        }
}

static void test_cancel(void **state)
{
        begin_control(false);
        assert_int_equal(reshape_control_cancel(world.control), 0);
        reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
        assert_int_equal(reshape_control_cancel(world.control), 0);
        assert_int_equal(begin_if_due(true, true), 0);
        /* Cancel while the reshape runs: before its request, and too late. */
        world.cancels = true;
        reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
        run();
        assert_int_equal(world.cancelled, 0);
        assert_int_equal(world.result, -ECANCELED);
        /* The next reshape can be a shown one, which must not report it. */
        assert_int_equal(reshape_control_get_state(world.control)->error.code, 0);
        world.cancels = false;
        reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
        begin_reshape();
        await_requests("RHS");
        assert_int_equal(reshape_control_cancel(world.control), -EBUSY);
        await_end();
        assert_int_equal(world.result, 0);
        /* The caller waits for the rest of the cycle. */
        assert_int_equal(reshape_control_cancel(world.control), -EBUSY);
        reshape_control_ask(world.control, RESHAPE_FORWARD, NULL);
        assert_int_equal(reshape_control_cancel(world.control), 0);
}

/* A requested reshape that is cancelled or only shown, or an undo that fails, is not the try of the
 * start. */
static void test_the_start_keeps_its_reshape(void **state)
{
        static const struct {
                ReshapeKind kind;
                bool cancels;
                int publishes;
                bool stays;
        } rows[] = {
                { RESHAPE_FORWARD, .stays = false },
                { RESHAPE_FORWARD, .publishes = REPORT_E_FORBIDDEN, .stays = false },
                { RESHAPE_FORWARD, .cancels = true, .stays = true },
                { RESHAPE_SHOW, .stays = true },
                { RESHAPE_UNDO, .publishes = REPORT_E_FORBIDDEN, .stays = true },
                { RESHAPE_UNDO, .stays = false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const ReshapeState *kept;

                (void)tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                begin_control(true);
                if (rows[i].kind == RESHAPE_UNDO) {
                        run();
                        kept = reshape_control_get_state(world.control);
                        allocations_free(fake_reporter.consumers);
                        assert_int_equal(allocations_copy(&fake_reporter.consumers,
                                                          kept->image.after.consumers),
                                         0);
                        begin_control(true);
                }
                kept = reshape_control_get_state(world.control);
                world.cancels = rows[i].cancels;
                fake_reporter.publishes = (FakeAnswers){ 0 };
                fake_reporter.publishes.results[0] = rows[i].publishes;
                reshape_control_ask(world.control, rows[i].kind, NULL);
                run();
                if (kept->at_start != rows[i].stays)
                        fail_msg("row %zu", i);
        }
}

/* Checks the reason why the host is not as configured, in the tree of the next cycle. */
static void assert_reason(const char *expected)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        MadeTree made = { 0 };

        assert_int_equal(snapshot_new(&host), 0);
        assert_int_equal(reshape_control_make_tree(world.control, &world.maker, host,
                                                   fake_reporter.mirror, true, &made, NULL),
                         0);
        assert_false(made.reshape_needed);
        assert_string_equal(made.device_error.text, expected);
        provider_tree_free(made.tree);
}

/* The reason why a class stays is shown beside the other problems of each cycle. */
static void test_a_class_that_stays(void **state)
{
        begin_control(true);
        world.stays = world.has_problem = true;
        run();
        assert_int_equal(world.result, 0);
        assert_reason("no disk; VGPU stays: a guest");
        world.has_problem = false;
        assert_reason("VGPU stays: a guest");
        world.has_problem = true;
        reload();
        assert_reason("no disk; VGPU stays: a guest");
}

static void test_alone(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = NULL;
        _cleanup_(provider_tree_freep) ProviderTree *expected = make_tree(AFTER), *tree = NULL;

        assert_int_equal(snapshot_new(&host), 0);
        begin_control(false);
        reshape_control_ask(world.control, RESHAPE_SHOW, NULL);
        assert_int_equal(reshape_control_alone(world.control, true, &world.maker,
                                               fake_reporter.mirror, host, &tree, NULL),
                         0);
        assert_null(tree);
        assert_false(reshape_control_get_state(world.control)->asked);
        begin_control(true);
        assert_int_equal(reshape_control_alone(world.control, true, &world.maker,
                                               fake_reporter.mirror, host, &tree, NULL),
                         0);
        assert_true(provider_tree_equal(tree, expected));
        tree = provider_tree_free(tree);
        assert_int_equal(reshape_control_alone(world.control, true, &world.maker,
                                               fake_reporter.mirror, host, &tree, NULL),
                         0);
        assert_null(tree);
        /* There is nothing to undo, so an undo must not reshape. */
        reshape_control_ask(world.control, RESHAPE_UNDO, NULL);
        assert_int_equal(reshape_control_alone(world.control, true, &world.maker,
                                               fake_reporter.mirror, host, &tree, NULL),
                         0);
        assert_null(tree);
        assert_int_equal(reshape_control_get_state(world.control)->asked_error.code, ENOENT);
}

TEST_MAIN_WITH(set_up, tear_down, test_conditions_of_a_reshape, test_an_error_ends_with_the_need,
               test_rounds, test_a_round_without_moves_drops_an_earlier_decision,
               test_a_round_that_moves_nothing_keeps_the_image,
               test_a_requested_reshape_after_the_start, test_a_reshape_that_is_shown_sends_nothing,
               test_a_reshape_that_is_shown_replaces_the_last_answer,
               test_the_image_stays_until_the_claims_follow, test_undo,
               test_a_lost_answer_is_settled_at_the_start,
               test_a_lost_answer_is_settled_in_the_next_cycle, test_a_lost_answer_of_an_undo,
               test_a_lost_answer_of_an_undo_before_a_reload,
               test_a_lost_answer_of_an_undo_before_a_show, test_a_reload_before_an_answer,
               test_cancel, test_the_start_keeps_its_reshape, test_a_class_that_stays, test_alone)
