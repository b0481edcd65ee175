/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/pattern.h"
#include "tests/unit/test.h"

#define XID "^NVRM: Xid \\((?:PCI:)?(?<address>[0-9a-fA-F:.]{7,12})\\): 79,"

static void test_matches(void **state)
{
        static const struct {
                const char *pattern, *line, *address, *nvme;
        } cases[] = {
                /* A line without function means function 0, one without domain domain 0. */
                { XID, "NVRM: Xid (PCI:0000:41:00): 79, pid=1, lost", "0000:41:00.0", "" },
                { XID, "NVRM: Xid (PCI:0000:C1:00.1): 79, lost", "0000:c1:00.1", "" },
                { XID, "NVRM: Xid (41:00.0): 79, lost", "0000:41:00.0", "" },
                { XID, "NVRM: Xid (PCI:0000:41:00): 791, lost", NULL, NULL },
                { XID, "usb 1-1: NVRM: Xid (PCI:0000:41:00): 79, lost", NULL, NULL },
                /* The group matches, but it is no address. */
                { XID, "NVRM: Xid (PCI:0000:41:ff): 79, lost", NULL, NULL },
                { XID, "NVRM: Xid (PCI:::::::::): 79, lost", NULL, NULL },
                { "^a (?<address>.*)", "a ../../0000:41:00.0", NULL, NULL },
                { "^a (?<address>.*)", "a ", NULL, NULL },
                { "^nvme (?<nvme>\\S+): down", "nvme nvme12: down", "", "nvme12" },
                { "^nvme (?<nvme>\\S+): down", "nvme ../x: down", NULL, NULL },
                { "^nvme (?<nvme>.*): down", "nvme abcdefghijklmnopqrstuvwxyz0123456789: down",
                  NULL, NULL },
                { "^a(?<address>x)?", "a", NULL, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(health_pattern_freep) HealthPattern *pattern = NULL;
                HealthSubject subject = { "", "" };

                assert_int_equal(health_pattern_new(&pattern, cases[i].pattern, NULL), 0);
                if (health_pattern_match(pattern, cases[i].line, &subject) !=
                    (cases[i].address != NULL))
                        fail_msg("%s: %s", cases[i].pattern, cases[i].line);
                if (!cases[i].address)
                        continue;
                assert_string_equal(subject.address, cases[i].address);
                assert_string_equal(subject.nvme, cases[i].nvme);
        }
}

static void test_bad_patterns(void **state)
{
        static const struct {
                const char *pattern, *words;
        } cases[] = {
                { "(", "not a regular expression, at byte 1" },
                { "a", "needs one group" },
                { "(?<address>a)(?<nvme>b)", "needs one group" },
                { "(?<address>\\C)", "not a regular expression" },
        };
        char longest[HEALTH_PATTERN_MAX + 2];
        HealthPattern *pattern = NULL;
        Error error;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(health_pattern_new(&pattern, cases[i].pattern, &error), -EINVAL);
                if (!strstr(error.text, cases[i].words))
                        fail_msg("%s: %s", cases[i].pattern, error.text);
        }
        memset(longest, 'a', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        assert_int_equal(health_pattern_new(&pattern, longest, &error), -EINVAL);
        assert_null(pattern);
}

/* A pattern with exponential backtracking ends at its limit, and only the begin of a line counts.
 */
static void test_hostile_lines(void **state)
{
        _cleanup_(health_pattern_freep) HealthPattern *slow = NULL, *last = NULL;
        char line[64 * 1024];
        HealthSubject subject;

        memset(line, 'a', sizeof(line));
        strcpy(line + sizeof(line) - 20, " 0000:41:00.0");
        assert_int_equal(health_pattern_new(&slow, "^(a+)+$(?<address>x)", NULL), 0);
        assert_int_equal(health_pattern_new(&last, "^a* (?<address>\\S+)$", NULL), 0);
        assert_false(health_pattern_match(slow, line, &subject));
        assert_false(health_pattern_match(last, line, &subject));
        assert_true(health_pattern_match(last, line + sizeof(line) - 100, &subject));
        assert_string_equal(subject.address, "0000:41:00.0");
}

TEST_MAIN(test_matches, test_bad_patterns, test_hostile_lines)
