/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests how the monitor runs its helper, which is a script here. */

#include "agent/health/monitor.h"

#include <inttypes.h>

#include "agent/health/record.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "tests/fixtures/host.h"
#include "tests/fixtures/scratch-folder.h"

static struct {
        char *folder;
        sd_event *event;
        Cordon *cordon;
        ProviderTree *tree;
        Snapshot *snapshot;
        HealthView view;
        char errors[512]; /* errors of the view, in their order */
} scene;

static HealthHost get_host(void *userdata)
{
        return (HealthHost){ .tree = scene.tree, .snapshot = scene.snapshot };
}

static void on_changed(bool cordons, void *userdata)
{
        size_t n = strlen(scene.errors);

        assert_false(cordons);
        snprintf(scene.errors + n, sizeof(scene.errors) - n, "%s%s", n > 0 ? "; " : "",
                 scene.view.error ? scene.view.error : "none");
}

/* Stores a position, which the helper gets. */
static int begin(void **state)
{
        HealthRecord record;

        scene.folder = scratch_folder_make();
        scene.errors[0] = '\0';
        scene.tree = make_tree("host VCPU=8; host_0000:C1:00.0<host CARD=1");
        scene.snapshot = host_new("");
        assert_true(sd_event_new(&scene.event) >= 0);
        assert_int_equal(cordon_new(&scene.cordon, scene.folder, false, NULL), 0);
        assert_int_equal(health_record_load(&record, scene.folder, NULL), 0);
        strcpy(record.cursor, "s=1");
        assert_int_equal(health_record_save(&record, NULL), 0);
        health_record_done(&record);
        return 0;
}

static int end(void **state)
{
        cordon_free(scene.cordon);
        sd_event_unref(scene.event);
        snapshot_unref(scene.snapshot);
        provider_tree_free(scene.tree);
        scratch_folder_remove(scene.folder);
        return 0;
}

/* Runs a monitor with this program as its helper until the view has had these errors. */
static void expect(const char *program, const char *errors)
{
        const HealthMonitorConfig config = { .event = scene.event,
                                             .state_dir = scene.folder,
                                             .root = make_uuid("host"),
                                             .cordon = scene.cordon,
                                             .get_host = get_host,
                                             .view = &scene.view,
                                             .changed = on_changed };
        _cleanup_(health_monitor_freep) HealthMonitor *monitor = NULL;

        setenv("COMPUTE_AGENT_HEALTH", program, 1);
        assert_int_equal(health_monitor_new(&monitor, &config), 0);
        while (strlen(scene.errors) < strlen(errors))
                assert_true(sd_event_run(scene.event, 10 * USEC_PER_SEC) > 0);
        assert_string_equal(scene.errors, errors);
}

static void expect_of_script(const char *script, const char *errors)
{
        _cleanup_free_ char *path = scratch_path(scene.folder, "helper");

        scratch_write(scene.folder, "helper", script);
        scratch_chmod(scene.folder, "helper", 0755);
        expect(path, errors);
}

#define CARD  "0000:c1:00.0"
#define STATE "{\"kind\": \"state\", \"n_rules\": 1, \"cursor\": \"\", \"text\": \""

/* The helper gets the position. A line can arrive in two parts. */
static void test_lines(void **state)
{
        expect_of_script("#!/bin/sh\n"
                         "printf '" STATE "%s\"}\\n" STATE "b' \"$1\"; sleep 0.1; echo 'c\"}'\n"
                         "exit 3\n",
                         "--cursor=s=1; bc; compute-agent-health ended with exit code 3");
}

static void test_a_helper_that_is_killed(void **state)
{
        expect_of_script("#!/bin/sh\nkill -9 $$\n", "compute-agent-health ended with signal 9");
}

static void test_a_line_that_is_too_long(void **state)
{
        expect_of_script("#!/bin/sh\nexec cat /dev/zero\n",
                         "A message of compute-agent-health: Bad message");
}

/* Returns the number of devices that a rule reports. The first case is 10 s old. A person has
 * lifted a cordon of the device at a time relative to now. */
static size_t count_reported(int64_t lifted_usec)
{
        const Uuid root = make_uuid("host");
        uint64_t now = clock_usec(CLOCK_REALTIME);
        _cleanup_free_ char *script = text_format(
                "#!/bin/sh\n"
                "echo '{\"kind\":\"finding\",\"rule\":\"r\",\"address\":\"" CARD "\","
                "\"line\":\"l\",\"boot_id\":\"\",\"last_usec\":%" PRIu64 ",\"first_usec\":%" PRIu64
                ",\"within_usec\":1,\"guests\":0,\"lift\":\"never\",\"reports\":true}'\n"
                "echo '" STATE "b\"}'\nexec sleep 60\n",
                now, now - 10 * USEC_PER_SEC);

        assert_int_equal(cordon_set(scene.cordon, scene.tree, &root, CARD, "", "p", NULL, 1, NULL),
                         0);
        assert_int_equal(cordon_lift(scene.cordon, scene.tree, &root, CARD, NULL,
                                     now + (uint64_t)lifted_usec, NULL),
                         1);
        expect_of_script(script, lifted_usec < 0 ? "b" : "none; b");
        return scene.view.n_reported;
}

/* A lift hides earlier cases. A lift in the future, from a time when the clock was ahead, hides
 * none. */
static void test_a_lift_before_the_clock_was_set_back(void **state)
{
        assert_int_equal(count_reported(-1), 0);
        scene.errors[0] = '\0';
        assert_int_equal(count_reported(3600 * (int64_t)USEC_PER_SEC), 1);
}

#define SUBJECT(kind, function)                                                                \
        "echo '{\"kind\":\"" kind "\",\"rule\":\"r\",\"address\":\"0000:c1:00." function "\"," \
        "\"line\":\"l\",\"boot_id\":\"\",\"last_usec\":2"
#define BROKEN(function)                                                          \
        SUBJECT("finding", function)                                              \
        ",\"first_usec\":1,\"within_usec\":1,\"guests\":0,\"lift\":\"recovery\"," \
        "\"reports\":true}'\n"
#define RECOVERED(function) SUBJECT("recovered", function) "}'\n"
#define END                 "echo '" STATE "b\"}'\nexec sleep 60\n"

/* Gives the card two functions without providers. */
static void add_functions(void)
{
        snapshot_unref(scene.snapshot);
        scene.snapshot =
                host_new("'devices': [{'name': 'f1', 'is_pci': true, 'address': '0000:c1:00.1',"
                         " 'physical_function': '" CARD "'}, {'name': 'f2', 'is_pci': true,"
                         " 'address': '0000:c1:00.2', 'physical_function': '" CARD "'}]");
}

/* The card is reported until all of its functions have recovered, also after a restart. */
static void test_a_card_with_two_broken_functions(void **state)
{
        add_functions();
        expect_of_script("#!/bin/sh\n" BROKEN("1") BROKEN("2") RECOVERED("1") END, "none; b");
        assert_int_equal(scene.view.n_reported, 1);
        scene.errors[0] = '\0';
        expect_of_script("#!/bin/sh\n" RECOVERED("2") END, "none; none; b");
        assert_int_equal(scene.view.n_reported, 0);
}

/* A recovery of the card is one of all its functions. */
static void test_the_recovery_of_a_card(void **state)
{
        add_functions();
        expect_of_script("#!/bin/sh\n" BROKEN("1") BROKEN("2") RECOVERED("0") END, "none; none; b");
        assert_int_equal(scene.view.n_reported, 0);
}

static void test_a_program_that_is_missing(void **state)
{
        expect("/nonexistent/helper", "/nonexistent/helper: No such file or directory");
}

TEST_MAIN_AFTER(log_set_level(LOG_EMERG), begin, end, test_lines, test_a_helper_that_is_killed,
                test_a_line_that_is_too_long, test_a_lift_before_the_clock_was_set_back,
                test_a_card_with_two_broken_functions, test_the_recovery_of_a_card,
                test_a_program_that_is_missing)
