/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/observer.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define A    "0000:41:00.0"
#define REAL "devices/pci0000:40/0000:40:01.0"
#define SEC  USEC_PER_SEC
#define BOOT "this"

#define RULES                                                                           \
        "rules:\n"                                                                      \
        "- {name: lost, pattern: '^gpu (?<address>\\S+): lost'}\n"                      \
        "- {name: fan, pattern: '^gpu (?<address>\\S+): fan stopped', lift: recovery, " \
        "recovery_pattern: '^gpu (?<address>\\S+): fan runs'}\n"                        \
        "- {name: dead, pattern: '^nvme (?<nvme>\\S+): dead', lift: never}\n"           \
        "- {name: fatal, aer: fatal}\n"                                                 \
        "- {name: width, link: width, count: 2, within: 1h, action: report}\n"

static struct {
        char *folder;
        HealthRules rules;
        HealthObserver *observer;
        const char *boot_id; /* boot of the next line */
        uint64_t now_usec;
} scene;

static void fail_on_problem(const char *text, void *userdata)
{
        fail_msg("%s", text);
}

static int begin(void **state)
{
        scene.folder = scratch_folder_make();
        scene.rules = HEALTH_RULES_INIT;
        scene.boot_id = BOOT;
        scene.now_usec = 1000 * SEC;
        scratch_write(scene.folder, REAL "/max_link_width", "16\n");
        scratch_write(scene.folder, REAL "/" A "/max_link_width", "16\n");
        scratch_write(scene.folder, REAL "/" A "/current_link_width", "16\n");
        scratch_write(scene.folder, REAL "/" A "/aer_dev_fatal", "TOTAL_ERR_FATAL 7\n");
        scratch_link(scene.folder, "bus/pci/devices/" A, "../../../" REAL "/" A);
        scratch_write(scene.folder, "class/nvme/nvme0/address", A "\n");
        assert_int_equal(
                health_rules_add(&scene.rules, "f", RULES, strlen(RULES), fail_on_problem, NULL),
                0);
        assert_int_equal(health_observer_new(&scene.observer, &scene.rules, scene.folder, BOOT), 0);
        return 0;
}

static int end(void **state)
{
        health_observer_free(scene.observer);
        health_rules_done(&scene.rules);
        scratch_folder_remove(scene.folder);
        return 0;
}

static int locate(void *userdata, uint64_t *ret_usec, char ret_boot_id[HEALTH_BOOT_SIZE])
{
        *ret_usec = scene.now_usec;
        strcpy(ret_boot_id, scene.boot_id);
        return 0;
}

static void line(const char *text)
{
        scene.now_usec += SEC / 10;
        assert_int_equal(health_observer_line(scene.observer, text, false, locate, NULL), 0);
}

static void read_after(uint64_t usec)
{
        scene.now_usec += usec;
        assert_int_equal(health_observer_read(scene.observer, scene.now_usec, scene.now_usec), 0);
}

/* Compares the next messages, as "rule finding" or "rule recovered". */
static void expect(const char *expected)
{
        char text[512] = "";
        HealthMessage message;

        while (health_observer_take(scene.observer, scene.now_usec, &message) > 0) {
                assert_string_equal(message.address, A);
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %s",
                         text[0] ? "; " : "", message.rule,
                         message.kind == HEALTH_FINDING ? "finding" : "recovered");
        }
        assert_string_equal(text, expected);
}

/* Returns the result for the time now when no message is due. */
static int take_nothing(void)
{
        HealthMessage message;

        return health_observer_take(scene.observer, scene.now_usec, &message);
}

static void test_lines(void **state)
{
        line("gpu 0000:41:00.0: nothing");
        expect("");
        line("gpu 0000:41:00.0: lost");
        expect("lost finding");
        assert_int_equal(take_nothing(), 0);
        line("gpu 0000:41:00.0: lost");
        expect("");
        assert_int_equal(take_nothing(), -EAGAIN);
        scene.now_usec += HEALTH_REPEAT_USEC;
        expect("lost finding");
        assert_int_equal(take_nothing(), 0);
        line("nvme nvme0: dead");
        expect("dead finding");
        /* A line of another boot is evidence only for a rule that outlasts it, and if it has an
         * address: another controller can have the name now. */
        scene.boot_id = "other";
        scene.now_usec += HEALTH_REPEAT_USEC;
        line("gpu 0000:41:00.0: lost");
        line("nvme nvme0: dead");
        line("gpu 0000:41:00.0: fan stopped");
        expect("fan finding");
}

/* The last evidence counts. */
static void test_recoveries(void **state)
{
        line("gpu 0000:41:00.0: fan stopped");
        expect("fan finding");
        line("gpu 0000:41:00.0: fan runs");
        expect("fan recovered");
        line("gpu 0000:41:00.0: fan stopped");
        line("gpu 0000:41:00.0: fan runs");
        scene.now_usec += HEALTH_REPEAT_USEC;
        expect("fan recovered");
        line("gpu 0000:41:00.0: fan runs");
        line("gpu 0000:41:00.0: fan stopped");
        scene.now_usec += HEALTH_REPEAT_USEC;
        expect("fan finding");
}

/* A controller that the kernel has removed is known by its name before. */
static void test_a_removed_controller(void **state)
{
        scratch_link(scene.folder, "class/nvme/nvme1", "nowhere");
        line("nvme nvme1: dead");
        expect("");
        scratch_write(scene.folder, "class/nvme/nvme0/address", "\n");
        line("nvme nvme0: dead");
        expect("dead finding");
}

static void test_counters(void **state)
{
        /* Errors before the first reading are of any age. */
        read_after(0);
        expect("width recovered");
        scratch_write(scene.folder, REAL "/" A "/aer_dev_fatal", "TOTAL_ERR_FATAL 8\n");
        read_after(SEC);
        expect("");
        read_after(HEALTH_AER_USEC);
        expect("fatal finding");
        read_after(HEALTH_AER_USEC);
        expect("");
        /* Another device is at the address. */
        scratch_write(scene.folder, REAL "/" A "/aer_dev_fatal", "TOTAL_ERR_FATAL 1\n");
        read_after(HEALTH_AER_USEC);
        expect("");
        scratch_write(scene.folder, REAL "/" A "/aer_dev_fatal", "TOTAL_ERR_FATAL 2\n");
        read_after(HEALTH_AER_USEC);
        expect("fatal finding");
}

static void test_links(void **state)
{
        assert_true(health_observer_due_in_usec(scene.observer, 0) == 0);
        read_after(0);
        expect("width recovered");
        assert_true(health_observer_due_in_usec(scene.observer, scene.now_usec) == HEALTH_AER_USEC);
        scratch_write(scene.folder, REAL "/" A "/current_link_width", "8\n");
        read_after(HEALTH_LINK_USEC);
        expect("");
        read_after(HEALTH_LINK_USEC);
        expect("width finding");
        scratch_write(scene.folder, REAL "/" A "/current_link_width", "63\n");
        read_after(HEALTH_LINK_USEC);
        expect("");
        scratch_write(scene.folder, REAL "/" A "/current_link_width", "16\n");
        read_after(HEALTH_LINK_USEC);
        expect("width recovered");
        read_after(HEALTH_LINK_USEC);
        expect("");
        /* Bad and good readings in turn are no finding. */
        for (int i = 0; i < 3; i++) {
                scratch_write(scene.folder, REAL "/" A "/current_link_width", "8\n");
                read_after(HEALTH_LINK_USEC);
                scratch_write(scene.folder, REAL "/" A "/current_link_width", "16\n");
                read_after(HEALTH_LINK_USEC);
                expect("width recovered");
        }
}

/* The lines are read again, but not the counters, links and controllers of before. */
static void test_lines_that_are_forgotten(void **state)
{
        read_after(0);
        expect("width recovered");
        scratch_write(scene.folder, REAL "/" A "/current_link_width", "8\n");
        read_after(HEALTH_LINK_USEC);
        scratch_write(scene.folder, "class/nvme/nvme0/address", "\n");
        scratch_write(scene.folder, REAL "/" A "/aer_dev_fatal", "TOTAL_ERR_FATAL 8\n");
        line("gpu 0000:41:00.0: lost");
        health_observer_forget_lines(scene.observer);
        assert_int_equal(take_nothing(), 0);
        read_after(HEALTH_LINK_USEC);
        line("nvme nvme0: dead");
        expect("width finding; fatal finding; dead finding");
}

TEST_MAIN_WITH(begin, end, test_lines, test_recoveries, test_lines_that_are_forgotten,
               test_a_removed_controller, test_counters, test_links)
