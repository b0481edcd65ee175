/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/observer.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define A    "0000:41:00.0"
#define B    "0000:81:00.0"
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

/* Rules without readings, for lines "RULE ADDRESS". */
#define COUNTING                                                                         \
        "rules:\n"                                                                       \
        "- {name: once, pattern: '^once (?<address>\\S+)', within: 60s}\n"               \
        "- {name: thrice, pattern: '^thrice (?<address>\\S+)', count: 3, within: 60s}\n" \
        "- {name: fan, pattern: '^fan (?<address>\\S+)', within: 60s, lift: recovery, "  \
        "recovery_pattern: '^good (?<address>\\S+)'}\n"

static HealthObserver *start_counting(HealthRules *rules)
{
        HealthObserver *observer;

        assert_int_equal(
                health_rules_add(rules, "f", COUNTING, strlen(COUNTING), fail_on_problem, NULL), 0);
        assert_int_equal(health_observer_new(&observer, rules, scene.folder, BOOT), 0);
        return observer;
}

/* userdata: the time. */
static int locate_at(void *userdata, uint64_t *ret_usec, char ret_boot_id[HEALTH_BOOT_SIZE])
{
        *ret_usec = *(const uint64_t *)userdata;
        strcpy(ret_boot_id, BOOT);
        return 0;
}

static void add(HealthObserver *observer, const char *rule, const char *address, uint64_t seconds,
                bool quiet)
{
        uint64_t usec = seconds * SEC;
        char text[64];

        snprintf(text, sizeof(text), "%s %s", rule, address);
        assert_int_equal(health_observer_line(observer, text, quiet, locate_at, &usec), 0);
}

/* Three cases count if they are within a minute. Quiet cases count, but cause no finding. */
static void test_counts(void **state)
{
        static const struct {
                int times[6]; /* in seconds; negative: quiet; 0: the end */
                int first;    /* first case of the finding; 0: none */
        } cases[] = {
                { { 100, 110 }, 0 },
                { { 100, 110, 120 }, 100 },
                { { 100, 110, 161 }, 0 },
                { { 100, 110, 160 }, 100 },
                { { 100, 150, 170, 190 }, 150 },
                { { -100, -110, 120 }, 100 },
                { { -100, -110, -120 }, 0 },
                { { -100, -110, -120, 130 }, 110 },
                /* The clock was set back. */
                { { 1000, 1010, 20 }, 1000 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HealthRules rules = HEALTH_RULES_INIT;
                HealthObserver *observer = start_counting(&rules);
                HealthMessage found = { 0 };
                bool any;

                for (size_t j = 0; cases[i].times[j] != 0; j++)
                        add(observer, "thrice", A, (uint64_t)abs(cases[i].times[j]),
                            cases[i].times[j] < 0);
                any = health_observer_take(observer, 1, &found) > 0;
                if (any != (cases[i].first > 0) ||
                    (any && found.first_usec != (uint64_t)cases[i].first * SEC))
                        fail_msg("case %zu", i);
                health_observer_free(observer);
                health_rules_done(&rules);
        }
}

/* A finding is repeated only for new cases, and not before HEALTH_REPEAT_USEC. */
static void test_repeats(void **state)
{
        HealthRules rules = HEALTH_RULES_INIT;
        HealthObserver *observer = start_counting(&rules);
        HealthMessage found;

        assert_true(health_observer_due_in_usec(observer, 100 * SEC) == UINT64_MAX);
        add(observer, "once", A, 1, false);
        add(observer, "once", B, 1, false);
        assert_true(health_observer_due_in_usec(observer, 100 * SEC) == 0);
        assert_int_equal(health_observer_take(observer, 100 * SEC, &found), 1);
        assert_string_equal(found.address, A);
        assert_int_equal(health_observer_take(observer, 100 * SEC, &found), 1);
        assert_string_equal(found.address, B);
        assert_int_equal(health_observer_take(observer, 200 * SEC, &found), 0);
        add(observer, "once", A, 2, false);
        add(observer, "once", A, 3, false);
        assert_int_equal(health_observer_take(observer, 100 * SEC + SEC, &found), -EAGAIN);
        assert_true(health_observer_due_in_usec(observer, 101 * SEC) == SEC);
        assert_int_equal(health_observer_take(observer, 102 * SEC, &found), 1);
        assert_true(found.last_usec == 3 * SEC);
        health_observer_free(observer);
        health_rules_done(&rules);
}

/* A recovery removes a finding that was not taken. It can also be the first line about a device. */
static void test_a_recovery_removes_a_finding(void **state)
{
        HealthRules rules = HEALTH_RULES_INIT;
        HealthObserver *observer = start_counting(&rules);
        HealthMessage found;

        add(observer, "good", B, 1, true);
        add(observer, "fan", A, 4, false);
        add(observer, "good", A, 4, true);
        assert_int_equal(health_observer_take(observer, 200 * SEC, &found), 0);
        add(observer, "fan", A, 5, false);
        assert_int_equal(health_observer_take(observer, 200 * SEC, &found), 1);
        assert_int_equal(found.kind, HEALTH_FINDING);
        health_observer_free(observer);
        health_rules_done(&rules);
}

/* A flood of addresses pushes out the oldest pairs, and the memory stays. */
static void test_flood(void **state)
{
        HealthRules rules = HEALTH_RULES_INIT;
        HealthObserver *observer = start_counting(&rules);
        char address[PCI_ADDRESS_SIZE];
        HealthMessage found;
        size_t n = 0;

        add(observer, "once", A, 1, true);
        for (unsigned i = 0; i < 3 * HEALTH_TRACKS_MAX; i++) {
                snprintf(address, sizeof(address), "%04x:00:00.0", i);
                add(observer, "once", address, 1, false);
        }
        while (health_observer_take(observer, 1, &found) > 0)
                n++;
        assert_int_equal(n, HEALTH_TRACKS_MAX);
        assert_string_equal(found.line, "once 05ff:00:00.0");
        health_observer_free(observer);
        health_rules_done(&rules);
}

TEST_MAIN_WITH(begin, end, test_lines, test_recoveries, test_lines_that_are_forgotten,
               test_a_removed_controller, test_counters, test_links, test_counts, test_repeats,
               test_a_recovery_removes_a_finding, test_flood)
