/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/rule.h"

#include <glob.h>

#include "base/read-file.h"
#include "base/text.h"
#include "tests/unit/test.h"

#define PATTERN "pattern: '^(?<address>x)'"

static void append_problem(const char *text, void *userdata)
{
        char *all = userdata;

        assert_true(strlen(all) + strlen(text) + 2 < 4096);
        strcat(all, text);
        strcat(all, "\n");
}

/* Writes the rules as "name kind count/seconds guests lift action". */
static void describe(const HealthRules *rules, char *text, size_t size)
{
        static const char *const kinds[] = { "line", "fatal", "nonfatal", "width", "speed" };
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < rules->n_items; i++) {
                const HealthRule *rule = rules->items[i];

                assert_int_equal(rule->pattern != NULL, rule->evidence == HEALTH_LINE);
                n += (size_t)snprintf(text + n, size - n, "%s%s %s %u/%d %u %s %s", i ? "; " : "",
                                      rule->name, kinds[rule->evidence], rule->count,
                                      (int)(rule->within_usec / USEC_PER_SEC), rule->guests,
                                      health_lift_to_text(rule->lift),
                                      rule->reports ? "report" : "withhold");
        }
}

static const struct {
        const char *text, *rules, *problems;
} cases[] = {
        { "rules: []", "", "" },
        { "rules:\n- {name: a, " PATTERN "}", "a line 1/3600 0 boot withhold", "" },
        { "rules:\n- {name: a, " PATTERN ", count: 3, within: 10min, lift: never, description: d}",
          "a line 3/600 0 never withhold", "" },
        { "rules:\n- {name: a, " PATTERN ", guests: 2, within: 7d, action: report}",
          "a line 1/604800 2 boot report", "" },
        { "rules:\n- {name: a, " PATTERN ", lift: recovery, recovery_pattern: '(?<address>y)'}",
          "a line 1/3600 0 recovery withhold", "" },
        { "rules:\n- {name: a, aer: fatal}\n- {name: b, aer: nonfatal, within: 30s}",
          "a fatal 1/3600 0 boot withhold; b nonfatal 1/30 0 boot withhold", "" },
        /* A link is read again, so its recovery ends the finding. */
        { "rules:\n- {name: a, link: width}\n- {name: b, link: speed, lift: boot, action: report}",
          "a width 1/3600 0 recovery withhold; b speed 1/3600 0 boot report", "" },
        /* A bad rule does not cost the others. */
        { "rules:\n- {name: a}\n- {name: b, aer: fatal}", "b fatal 1/3600 0 boot withhold",
          "f:2: a: needs one of pattern, aer and link\n" },
        { "rules:\n- {name: a, aer: fatal}\n- {name: a, link: width}",
          "a fatal 1/3600 0 boot withhold", "f:3: another rule has the name \"a\"\n" },
        { "rules:\n- {aer: fatal}", "", "f:2: a rule needs a name\n" },
        { "rules:\n- {name: A b, aer: fatal}", "",
          "f:2: name must have 1 to 64 lower-case letters, digits and \"-\"\n" },
        { "rules:\n- {name: a, aer: fatal, link: width}", "",
          "f:2: a: needs only one of pattern, aer and link\n" },
        { "rules:\n- {name: a, aer: fatal, aer: fatal}", "", "f:2: a: the key aer is repeated\n" },
        { "rules:\n- {name: a, aer: corrected}", "", "f:2: a: aer must be fatal or nonfatal\n" },
        { "rules:\n- {name: a, aer: fatal, count: 0}", "",
          "f:2: a: count must be a whole number from 1 to 100\n" },
        { "rules:\n- {name: a, aer: fatal, count: -1}", "",
          "f:2: a: count must be a whole number from 1 to 100\n" },
        { "rules:\n- {name: a, aer: fatal, within: 1y}", "",
          "f:2: a: within must be a time such as 30s, 10min, 1h or 7d, at most 30d\n" },
        { "rules:\n- {name: a, aer: fatal, within: 31d}", "",
          "f:2: a: within must be a time such as 30s, 10min, 1h or 7d, at most 30d\n" },
        { "rules:\n- {name: a, aer: fatal, within: h}", "",
          "f:2: a: within must be a time such as 30s, 10min, 1h or 7d, at most 30d\n" },
        { "rules:\n- {name: a, aer: fatal, colour: red}", "",
          "f:2: a: \"colour\" is not a key of a rule\n" },
        { "rules:\n- {name: a, aer: fatal, lift: later}", "",
          "f:2: a: lift must be boot, recovery or never\n" },
        { "rules:\n- {name: a, aer: fatal, lift: recovery}", "",
          "f:2: a: lift must be boot or never, because a counter never falls\n" },
        { "rules:\n- {name: a, aer: fatal, guests: 2}", "",
          "f:2: a: recovery_pattern and guests need a pattern\n" },
        { "rules:\n- {name: a, " PATTERN ", lift: recovery}", "",
          "f:2: a: \"lift: recovery\" and recovery_pattern need each other\n" },
        { "rules:\n- {name: a, " PATTERN ", recovery_pattern: '(?<address>y)'}", "",
          "f:2: a: \"lift: recovery\" and recovery_pattern need each other\n" },
        { "rules:\n- {name: a, " PATTERN ", guests: 2, count: 2}", "",
          "f:2: a: needs only one of count and guests\n" },
        { "rules:\n- {name: a, aer: fatal, lift: never, action: report}", "",
          "f:2: a: lift must not be never for \"action: report\"\n" },
        { "rules:\n- {name: a, pattern: '('}", "",
          "f:2: a: pattern: not a regular expression, at byte 1: missing closing parenthesis\n" },
        { "rules:\n- {name: a, pattern: [x]}", "", "f:2: a: pattern must be a text\n" },
        { "rules:\n- x", "", "f:2: a rule must be a mapping\n" },
        { "rules: x", "", "f:1: the file needs a list \"rules\"\n" },
        { "", "", "f:1: the file needs a list \"rules\"\n" },
        { "rules: [", "", "f:1: not YAML: line 2: did not find expected node content\n" },
};

static void test_files(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HealthRules rules = HEALTH_RULES_INIT;
                char problems[4096] = "", text[4096];

                assert_int_equal(health_rules_add(&rules, "f", cases[i].text, strlen(cases[i].text),
                                                  append_problem, problems),
                                 0);
                describe(&rules, text, sizeof(text));
                if (strcmp(text, cases[i].rules) != 0 || strcmp(problems, cases[i].problems) != 0)
                        fail_msg("%s\n%s\n%s", cases[i].text, text, problems);
                health_rules_done(&rules);
        }
}

static void test_limits(void **state)
{
        HealthRules rules = HEALTH_RULES_INIT;
        char problems[4096] = "", text[64];

        for (int i = 0; i < HEALTH_RULES_MAX + 1; i++) {
                snprintf(text, sizeof(text), "rules: [{name: r%d, aer: fatal, within: %dh}]", i,
                         i + 1);
                assert_int_equal(
                        health_rules_add(&rules, "f", text, strlen(text), append_problem, problems),
                        0);
        }
        assert_int_equal(rules.n_items, HEALTH_RULES_MAX);
        assert_string_equal(problems, "f:1: r256: there are more than 256 rules\n");
        assert_true(rules.longest_usec == UINT64_C(256) * 3600 * USEC_PER_SEC);
        health_rules_done(&rules);
        assert_true(rules.longest_usec == 0);
}

/* Adds a rule with this pattern. words: a part of the problem; "": there is none. */
static void add_pattern(HealthRules *rules, const char *pattern, const char *words)
{
        _cleanup_free_ char *text = text_format("rules: [{name: a, pattern: '%s'}]", pattern);
        char problems[4096] = "";

        assert_int_equal(health_rules_add(rules, "f", text, strlen(text), append_problem, problems),
                         0);
        if ((problems[0] != '\0') != (words[0] != '\0') || !strstr(problems, words))
                fail_msg("%s: %s", pattern, problems);
}

#define XID "^NVRM: Xid \\((?:PCI:)?(?<address>[0-9a-fA-F:.]{7,12})\\): 79,"

static void test_matches(void **state)
{
        static const struct {
                const char *pattern, *line, *address, *nvme;
        } rows[] = {
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

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                HealthRules rules = HEALTH_RULES_INIT;
                HealthSubject subject = { "", "" };

                add_pattern(&rules, rows[i].pattern, "");
                if (health_pattern_match(rules.items[0]->pattern, rows[i].line, &subject) !=
                    (rows[i].address != NULL))
                        fail_msg("%s: %s", rows[i].pattern, rows[i].line);
                if (rows[i].address) {
                        assert_string_equal(subject.address, rows[i].address);
                        assert_string_equal(subject.nvme, rows[i].nvme);
                }
                health_rules_done(&rules);
        }
}

static void test_bad_patterns(void **state)
{
        static const struct {
                const char *pattern, *words;
        } rows[] = {
                { "(", "not a regular expression, at byte 1" },
                { "a", "needs one group" },
                { "(?<address>a)(?<nvme>b)", "needs one group" },
                { "(?<address>\\C)", "not a regular expression" },
        };
        char longest[HEALTH_PATTERN_MAX + 2];
        HealthRules rules = HEALTH_RULES_INIT;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                add_pattern(&rules, rows[i].pattern, rows[i].words);
        memset(longest, 'a', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        add_pattern(&rules, longest, "longer than 512 bytes");
        assert_int_equal(rules.n_items, 0);
        health_rules_done(&rules);
}

/* A pattern with exponential backtracking ends at its limit, and only the begin of a line counts.
 */
static void test_hostile_lines(void **state)
{
        HealthRules slow = HEALTH_RULES_INIT, last = HEALTH_RULES_INIT;
        char line[64 * 1024];
        HealthSubject subject;

        memset(line, 'a', sizeof(line));
        strcpy(line + sizeof(line) - 20, " 0000:41:00.0");
        add_pattern(&slow, "^(a+)+$(?<address>x)", "");
        add_pattern(&last, "^a* (?<address>\\S+)$", "");
        assert_false(health_pattern_match(slow.items[0]->pattern, line, &subject));
        assert_false(health_pattern_match(last.items[0]->pattern, line, &subject));
        assert_true(
                health_pattern_match(last.items[0]->pattern, line + sizeof(line) - 100, &subject));
        assert_string_equal(subject.address, "0000:41:00.0");
        health_rules_done(&slow);
        health_rules_done(&last);
}

/* Loads the rules of the package. They are valid together. */
static void load_shipped(HealthRules *rules)
{
        char problems[4096] = "";
        glob_t paths = { 0 };

        assert_int_equal(glob(HEALTH_SHIPPED "/*.yaml", 0, NULL, &paths), 0);
        for (size_t i = 0; i < paths.gl_pathc; i++) {
                _cleanup_free_ char *text = NULL;
                size_t n;

                assert_int_equal(
                        read_file_text(paths.gl_pathv[i], YAML_TEXT_MAX_BYTES, &text, &n, NULL), 0);
                assert_int_equal(health_rules_add(rules, paths.gl_pathv[i], text, n, append_problem,
                                                  problems),
                                 0);
        }
        assert_string_equal(problems, "");
        globfree(&paths);
}

#define GPU  "NVRM: Xid (PCI:0000:41:00): "
#define MIG  "NVRM: Xid (PCI:0000:41:00 GPU-I:"
#define VFIO "vfio-pci 0000:41:00.0: "

/* Lines in the form of the kernel and of NVIDIA's driver, and the rule that applies. */
static const struct {
        const char *line, *rule; /* NULL: none */
} shipped[] = {
        { GPU "48, pid='<unknown>', name=<unknown>, DBE (double bit error) of the framebuffer",
          "nvidia-xid-ecc" },
        { GPU "64, pid=1, row remapper: failed", "nvidia-xid-ecc" },
        { GPU "92, pid=1, high rate of single-bit errors", "nvidia-xid-ecc" },
        { GPU "94, pid=1, Contained: CE User Channel", "nvidia-xid-ecc" },
        { GPU "95, pid=1, Uncontained: FBHUB", "nvidia-xid-ecc" },
        { GPU "63, pid=1, row remapper: new row marked", "nvidia-xid-page-retired" },
        { GPU "74, pid=1, NVLink: fatal error on link 3", "nvidia-xid-nvlink" },
        { GPU "79, pid=1, GPU has fallen off the bus.", "nvidia-xid-bus" },
        { "NVRM: Xid (0000:41:00): 79, GPU has fallen off the bus.", "nvidia-xid-bus" },
        { "NVRM: Xid (PCI:0000:41:00.0): 79, GPU has fallen off the bus.", "nvidia-xid-bus" },
        { MIG "05): 94, pid=1, Contained: CE User Channel", "nvidia-xid-ecc" },
        { MIG "05 GPU-CI:00): 64, pid=1, row remapper: failed", "nvidia-xid-ecc" },
        { MIG "05 GPU-CI:00): 63, pid=1, row remapper: new row marked", "nvidia-xid-page-retired" },
        { MIG "05 GPU-CI:00): 74, pid=1, NVLink: fatal error on link 3", "nvidia-xid-nvlink" },
        { MIG "05): 79, pid=1, GPU has fallen off the bus.", "nvidia-xid-bus" },
        { MIG "05): 120, GSP task exception", "nvidia-xid-gsp" },
        { MIG "05 GPU-CI:00): 13, pid=1, Graphics Exception", NULL },
        { GPU "119, pid=1, name=vgpu, Timeout waiting for RPC from GSP", "nvidia-xid-gsp" },
        { GPU "120, GSP task exception", "nvidia-xid-gsp" },
        /* A guest or an application can cause these on a healthy card. */
        { GPU "13, pid=1, Graphics Exception", NULL },
        { GPU "31, pid=1, MMU Fault", NULL },
        { GPU "43, pid=1, channel 00000010", NULL },
        { GPU "45, pid=1, preemptive removal", NULL },
        { GPU "8, pid=1, channel 00000010", NULL },
        { GPU "480, pid=1, another number", NULL },
        { "NVRM: GPU at PCI:0000:41:00: GPU-5d0b6c3e", NULL },
        { "usb 1-1: Product: " GPU "79, x", NULL },
        { VFIO "not ready 65535ms after FLR; giving up", "vfio-reset-failed" },
        { VFIO "not ready 65535ms after bus reset; giving up", "vfio-reset-failed" },
        { "pci 0000:41:00.0: not ready 60000ms after resume; giving up", "vfio-reset-failed" },
        { VFIO "not ready 1023ms after FLR; waiting", NULL },
        { VFIO "Unable to change power state from D3cold to D0, device inaccessible",
          "vfio-power-failed" },
        { VFIO "Unable to change power state from unknown to D0, device inaccessible",
          "vfio-power-failed" },
        { VFIO "Refused to change power state from D0 to D3hot", NULL },
        { VFIO "timed out waiting for pending transaction; performing function level reset anyway",
          "vfio-reset-two-guests" },
        { VFIO
          "timed out waiting for pending transaction; performing AF function level reset anyway",
          "vfio-reset-two-guests" },
        { VFIO "vfio_bar_restore: reset recovery - restoring BARs", "vfio-reset-two-guests" },
        { VFIO "enabling device (0000 -> 0002)", NULL },
        { VFIO "resetting", NULL },
        { "nvme nvme0: Removing after probe failure status: -19", "nvme-removed" },
        { "nvme nvme12: Disabling device after reset failure: -19", "nvme-removed" },
        { "nvme nvme0: Device not ready; aborting reset, CSTS=0x1", "nvme-removed" },
        { "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
          "nvme-down" },
        { "nvme nvme0: I/O 12 QID 3 timeout, aborting", NULL },
        { "nvme nvme0: 8/0/0 default/read/poll queues", NULL },
        { "vfio-pci 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
          "pcie-aer-fatal" },
        { "vfio-pci 0000:41:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Physical Layer, (Receiver ID)",
          "pcie-aer-fatal" },
        { "vfio-pci 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
          NULL },
        { "vfio-pci 0000:41:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer", NULL },
        { "pcieport 0000:40:01.0: AER: Corrected error received: 0000:41:00.0", NULL },
        { "", NULL },
};

/* At most one rule applies to each line. */
static void test_shipped_rules(void **state)
{
        HealthRules rules = HEALTH_RULES_INIT;
        HealthSubject subject;

        load_shipped(&rules);
        for (size_t i = 0; i < ARRAY_SIZE(shipped); i++) {
                const char *found = NULL;

                for (size_t j = 0; j < rules.n_items; j++) {
                        if (!rules.items[j]->pattern ||
                            !health_pattern_match(rules.items[j]->pattern, shipped[i].line,
                                                  &subject))
                                continue;
                        if (found)
                                fail_msg("%s: %s and %s", shipped[i].line, found,
                                         rules.items[j]->name);
                        found = rules.items[j]->name;
                        assert_true(subject.nvme[0] ||
                                    strcmp(subject.address, "0000:41:00.0") == 0);
                }
                if (strcmp(found ? found : "", shipped[i].rule ? shipped[i].rule : "") != 0)
                        fail_msg("%s: %s", shipped[i].line, found ? found : "none");
        }
        health_rules_done(&rules);
}

TEST_MAIN(test_files, test_limits, test_matches, test_bad_patterns, test_hostile_lines,
          test_shipped_rules)
