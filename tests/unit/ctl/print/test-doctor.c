/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/doctor.h"

#include <string.h>

#include "ctl/print/json.h"
#include "tests/fixtures/ctl-capture.h"
#include "tests/unit/test.h"

#define GIB (UINT64_C(1) << 30)

#define FACT_BYTES 100 /* a longer text of a reason is no fact */

#define SIX_CHARACTERS   "\xe8\xa7\x92\xe8\xa7\x92\xe8\xa7\x92\xe8\xa7\x92\xe8\xa7\x92\xe8\xa7\x92"
#define SEVEN_CHARACTERS SIX_CHARACTERS "\xe8\xa7\x92"

#define REASON(check, state) \
        "{'check': '" check "', 'state': '" state "', 'text': 'x', 'advice': 'do y'}"

/* Returns the finding of a check; NULL: it has none. */
static const json_t *finding_of(const json_t *document, const char *check)
{
        const json_t *finding;
        size_t i;

        json_array_foreach(json_object_get(document, "findings"), i, finding) {
                const char *advice = ctl_json_text(finding, "advice");
                const char *state = ctl_json_text(finding, "state");

                if (strcmp(ctl_json_text(finding, "check"), check) != 0)
                        continue;
                /* Only findings that are not "ok" have an advice. */
                assert_int_equal(strcmp(state, "ok") != 0, advice[0] != '\0');
                return finding;
        }
        return NULL;
}

/* Returns the state of a check; "": it has none. */
static const char *state_of(const json_t *document, const char *check)
{
        return ctl_json_text(finding_of(document, check), "state");
}

/* A long text of a reason becomes the cause of its summary. */
static void test_long_reasons(void **state)
{
        static const char format[] =
                "{'state': 'warning', 'reasons': [{'check': 'guests', 'state': 'warning', "
                "'summary': 'claims disagree', 'advice': 'z', 'text': '%s'}]}";
        char text[FACT_BYTES + 2], quoted[sizeof(format) + sizeof(text)];

        for (size_t n = FACT_BYTES; n <= FACT_BYTES + 1; n++) {
                _cleanup_json_ json_t *status = NULL, *document = NULL;
                const json_t *finding;
                bool is_long = n > FACT_BYTES;

                memset(text, 'x', n);
                text[n] = '\0';
                snprintf(quoted, sizeof(quoted), format, text);
                status = parse_quoted(quoted);
                document = ctl_doctor_judge(&(const CtlFacts){ .status = status });
                finding = finding_of(document, "guests");
                assert_string_equal(ctl_json_text(finding, "text"),
                                    is_long ? "Claims disagree" : text);
                assert_string_equal(ctl_json_text(finding, "cause"), is_long ? text : "");
        }
}

static void test_table(void **state)
{
        static const struct {
                const char *status;
                const char *service, *hypervisor, *placement, *reshape;
                int code;
        } cases[] = {
                { "{'state': 'ok', 'sync_state': 'synced'}", "ok", "ok", "ok", "", 0 },
                { "{'state': 'ok', 'sync_state': 'standalone'}", "ok", "ok", "ok", "", 0 },
                { "{'state': 'ok', 'sync_state': 'left-to-nova'}", "ok", "ok", "ok", "", 0 },
                { "{'state': 'pending', 'reasons': [" REASON("placement", "pending") "]}", "ok",
                  "ok", "warning", "", 4 },
                { "{'state': 'pending', 'sync_state': 'pending', 'reasons': [" REASON(
                          "hypervisor", "pending") "]}",
                  "ok", "warning", "", "", 4 },
                { "{'state': 'degraded', 'reasons': [" REASON("placement", "degraded") "]}", "ok",
                  "ok", "bad", "", 4 },
                { "{'state': 'degraded', 'reasons': [" REASON("hypervisor", "degraded") "]}", "ok",
                  "bad", "ok", "", 4 },
                { "{'state': 'degraded', 'sync_state': 'synced', 'reasons': [" REASON(
                          "second reporter", "degraded") "]}",
                  "ok", "ok", "", "", 4 },
                { "{'state': 'degraded', 'reasons': [" REASON("service", "degraded") ", " REASON(
                          "placement", "warning") "]}",
                  "bad", "ok", "warning", "", 4 },
                { "{'state': 'warning', 'reasons': [" REASON("service", "warning") "]}", "warning",
                  "ok", "ok", "", 4 },
                { "{'state': 'not-running', 'summary': 'x'}", "bad", "ok", "", "", 3 },
                { "{'state': 'ok', 'sync_state': 'synced', 'reshape_access': 'allowed'}", "ok",
                  "ok", "ok", "", 0 },
                { "{'state': 'ok', 'sync_state': 'synced', 'reshape_access': 'refused'}", "ok",
                  "ok", "ok", "warning", 4 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                _cleanup_json_ json_t *status = parse_quoted(cases[i].status), *document = NULL;
                const Config config = { 0 };

                assert_int_equal(snapshot_new(&snapshot), 0);
                snapshot->disk_total_bytes = GIB;
                document = ctl_doctor_judge(&(const CtlFacts){
                        .config = &config,
                        .status = status,
                        .snapshot = snapshot,
                        .clock_synchronised = true,
                        .disk_free_bytes = GIB,
                });
                assert_non_null(document);
                assert_string_equal(state_of(document, "service"), cases[i].service);
                assert_string_equal(state_of(document, "hypervisor"), cases[i].hypervisor);
                assert_string_equal(state_of(document, "placement"), cases[i].placement);
                assert_string_equal(state_of(document, "reshape"), cases[i].reshape);
                assert_int_equal(ctl_doctor_exit(document, status), cases[i].code);
        }
}

/* No fault, and reported only where cells are providers. */
static void test_cells_without_cpus(void **state)
{
        static const struct {
                int numa;
                size_t n_cpus;
                uint64_t memory_kib;
                const char *expected;
        } cases[] = {
                { HOST_NUMA_CELLS, 0, 8 << 20, "ok" }, { HOST_NUMA_ROOT, 0, 8 << 20, "ok" },
                { HOST_NUMA_FLAT, 0, 8 << 20, "" },    { HOST_NUMA_CELLS, 1, 8 << 20, "" },
                { HOST_NUMA_CELLS, 0, 0, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                _cleanup_json_ json_t *status = json_pack("{ss}", "state", "ok"), *document = NULL;
                const Config config = { .driver.host.numa_in_placement = cases[i].numa };

                assert_int_equal(snapshot_new(&snapshot), 0);
                snapshot->cells = calloc(1, sizeof(SnapshotCell));
                snapshot->n_cells = 1;
                snapshot->cells[0].memory_kib = cases[i].memory_kib;
                snapshot->cells[0].cpus = calloc(1, sizeof(SnapshotCpu));
                snapshot->cells[0].n_cpus = cases[i].n_cpus;
                document = ctl_doctor_judge(&(const CtlFacts){
                        .config = &config, .status = status, .snapshot = snapshot });
                assert_string_equal(state_of(document, "cells"), cases[i].expected);
        }
}

static void test_missing_facts(void **state)
{
        _cleanup_json_ json_t *status = json_pack("{ss}", "state", "not-running"), *document = NULL;
        CtlFacts facts = { .status = status, .disk_free_bytes = 4096 };

        error_setf(&facts.config_error, EINVAL, "x.conf:1: [agent] log_level");
        error_setf(&facts.snapshot_error, EIO, "no libvirt");
        document = ctl_doctor_judge(&facts);
        assert_string_equal(state_of(document, "configuration"), "bad");
        assert_string_equal(state_of(document, "hypervisor"), ""); /* the driver is unknown */
        assert_string_equal(state_of(document, "devices"), "");
        assert_string_equal(state_of(document, "clock"), "warning");
        assert_string_equal(state_of(document, "disk"), "bad");
        assert_int_equal(ctl_doctor_exit(document, status), CTL_STATUS_NOT_RUNNING);
}

/* Checks one finding of a host in which all other facts are good. */
static void test_single_findings(void **state)
{
        static char nvidia[] = "nvidia-35", *types[] = { nvidia, NULL };
        static const struct {
                const char *status;
                int disk_error;
                bool rbd; /* images_type */
                bool mdev_type, hook_enabled, hook_installed;
                int exit;
                const char *check, *state, *words; /* words NULL: not compared */
                const char *identity;              /* NULL: no identity */
        } cases[] = {
                /* The first start creates the folder; a running daemon without it has a problem. */
                { "{'state': 'not-running'}", .disk_error = ENOENT, .exit = 3, .check = "disk",
                  .state = "" },
                { "{'state': 'ok'}", .disk_error = ENOENT, .exit = 4, .check = "disk",
                  .state = "bad" },
                /* A configured mdev type that no device offers. */
                { "{'state': 'ok'}", .mdev_type = true, .exit = 4, .check = "devices",
                  .state = "bad" },
                /* A running agent keeps the last size and names it among its reasons. Without an
                 * agent it is unknown whether a size was kept. */
                { "{'state': 'ok'}", .exit = 4, .check = "storage", .state = "warning",
                  .words = "The size of /x is unknown, so DISK_GB is not reported" },
                { "{'state': 'degraded', 'reasons': [{'check': 'host'}]}", .exit = 4,
                  .check = "storage", .state = "warning",
                  .words =
                          "The size of /x is unknown, so DISK_GB is not reported, or keeps its last value" },
                { "{'state': 'not-running'}", .exit = 3, .check = "storage", .state = "warning",
                  .words =
                          "The size of /x is unknown, so DISK_GB is not reported, or keeps its last value" },
                { "{'state': 'ok'}", .rbd = true, .exit = 4, .check = "storage", .state = "warning",
                  .words = "The size of the Ceph cluster is unknown, so DISK_GB is not reported" },
                { "{'state': 'ok', 'n_like_providers': 7}", .check = "width", .state = "" },
                { "{'state': 'ok', 'n_like_providers': 8}", .check = "width", .state = "ok",
                  .words = "8 providers have the same resource class" },
                { "{'state': 'ok'}", .check = "hook", .state = "" },
                { "{'state': 'ok'}", .hook_installed = true, .check = "hook", .state = "" },
                { "{'state': 'ok'}", .hook_enabled = true, .exit = 4, .check = "hook",
                  .state = "bad" },
                { "{'state': 'ok'}", .hook_enabled = true, .hook_installed = true, .check = "hook",
                  .state = "ok" },
                { "{'state': 'ok'}", .check = "identity", .state = "ok", .words = "It is known",
                  .identity = "{'state': 'good', 'text': 'It is known', 'advice': ''}" },
                { "{'state': 'ok'}", .check = "identity", .state = "ok", .words = "New",
                  .identity = "{'state': 'new', 'text': 'New', 'advice': 'Start it'}" },
                { "{'state': 'ok'}", .exit = 4, .check = "identity", .state = "bad",
                  .words = "It is taken",
                  .identity = "{'state': 'taken', 'text': 'It is taken', 'advice': 'Adopt it'}" },
                { "{'state': 'ok', 'node': 'h', 'root': 'r'}", .check = "identity", .state = "ok",
                  .words = "This host is h (r)", .identity = "{'state': 'unknown'}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *status = parse_quoted(cases[i].status), *document = NULL,
                                      *identity = parse_quoted(cases[i].identity ? cases[i].identity
                                                                                 : "{}");
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                const Config config = { .driver.host.instances_path = "/x",
                                        .driver.host.images_type =
                                                cases[i].rbd ? HOST_IMAGES_RBD : HOST_IMAGES_FILES,
                                        .enabled_mdev_types = cases[i].mdev_type ? types : NULL,
                                        .hook_enabled = cases[i].hook_enabled };
                CtlFacts facts = { .config = &config,
                                   .status = status,
                                   .clock_synchronised = true,
                                   .identity = cases[i].identity ? identity : NULL,
                                   .hook_installed = cases[i].hook_installed,
                                   .disk_free_bytes = GIB };
                const char *found;

                assert_int_equal(snapshot_new(&snapshot), 0);
                snapshot->disk_total_bytes = strcmp(cases[i].check, "storage") == 0 ? 0 : GIB;
                facts.snapshot = snapshot;
                if (cases[i].disk_error)
                        error_setf(&facts.disk_error, cases[i].disk_error, "gone");
                document = ctl_doctor_judge(&facts);
                found = state_of(document, cases[i].check);
                if (strcmp(found, cases[i].state) != 0 ||
                    ctl_doctor_exit(document, status) != cases[i].exit)
                        fail_msg("case %zu: %s: %s, exit %d", i, cases[i].check, found,
                                 ctl_doctor_exit(document, status));
                if (cases[i].words)
                        assert_string_equal(
                                ctl_json_text(finding_of(document, cases[i].check), "text"),
                                cases[i].words);
        }
}

/* The checks before a start; each changes the exit code. */
static void test_configuration(void **state)
{
        static char warning[] = "x.conf:1: unknown option [agent] x, ignoring",
                    file[] = "/ca: the service's user s cannot read it: Permission denied",
                    credential[] = "/token (credential t) changed after the start of the service";
        static const struct {
                const char *status, *error, *unchecked;
                bool warning, file, credential;
                int exit;
                const char *check, *state, *words, *cause; /* cause NULL: it has none */
        } cases[] = {
                { "{'state': 'ok'}", .check = "configuration", .state = "ok",
                  .words = "The configuration is valid" },
                { "{'state': 'ok'}", .error = "x.conf: no", .exit = 4, .check = "configuration",
                  .state = "bad", .words = "x.conf: no" },
                { "{'state': 'ok'}", .unchecked = "There is no user s", .exit = 4,
                  .check = "configuration", .state = "warning", .words = "There is no user s" },
                { "{'state': 'ok'}", .warning = true, .exit = 4, .check = "configuration",
                  .state = "warning", .words = warning },
                { "{'state': 'warning', 'reasons': [" REASON("configuration", "warning") "]}",
                  .warning = true, .exit = 4, .check = "configuration", .state = "warning",
                  .words = "x" },
                { "{'state': 'ok'}", .file = true, .exit = 4, .check = "files", .state = "warning",
                  .words = file },
                { "{'state': 'ok'}", .credential = true, .exit = 4, .check = "credentials",
                  .state = "warning", .words = credential },
                { "{'state': 'not-running', 'summary': 'compute-agent failed: x.conf:3: no'}",
                  .exit = 3, .check = "service", .state = "bad",
                  .words = "The service failed to start",
                  .cause = "compute-agent failed: x.conf:3: no" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *status = parse_quoted(cases[i].status), *document = NULL;
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                char *items[] = { warning, file, credential };
                const Config config = { .warnings = { items, cases[i].warning, 0 } };
                const StringSet files = { items + 1, cases[i].file, 0 },
                                credentials = { items + 2, cases[i].credential, 0 };
                CtlFacts facts = { .config = &config,
                                   .files = &files,
                                   .credentials = &credentials,
                                   .status = status,
                                   .clock_synchronised = true,
                                   .disk_free_bytes = GIB };

                assert_int_equal(snapshot_new(&snapshot), 0);
                snapshot->disk_total_bytes = GIB;
                facts.snapshot = snapshot;
                if (cases[i].error)
                        error_setf(&facts.config_error, EINVAL, "%s", cases[i].error);
                if (cases[i].unchecked)
                        error_setf(&facts.config_unchecked, ENOENT, "%s", cases[i].unchecked);
                document = ctl_doctor_judge(&facts);
                assert_string_equal(state_of(document, cases[i].check), cases[i].state);
                assert_string_equal(ctl_json_text(finding_of(document, cases[i].check), "text"),
                                    cases[i].words);
                assert_string_equal(ctl_json_text(finding_of(document, cases[i].check), "cause"),
                                    cases[i].cause ? cases[i].cause : "");
                assert_int_equal(ctl_doctor_exit(document, status), cases[i].exit);
        }
}

/* The option precedes a text that does not name one. */
static void test_hardware_names_an_option_once(void **state)
{
        static const char *const cases[][3] = {
                { "a", "Set it", "a: Set it" },
                { "a", "The option a is bad", "The option a is bad" },
                { "[s NAME] a", "[s x]: no device", "[s x]: no device" },
                { "", "No words", "No words" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *verified =
                        json_pack("{s[{ss ss ss}]}", "findings", "level", "error", "option",
                                  cases[i][0], "text", cases[i][1]);
                _cleanup_json_ json_t *document = ctl_doctor_judge_hardware(verified);

                assert_string_equal(
                        ctl_json_text(json_array_get(json_object_get(document, "findings"), 0),
                                      "text"),
                        cases[i][2]);
        }
}

/* Judges the path to Placement of a host without other facts. Returns its findings as a new array.
 * Those of configuration and service come before them, those of clock and disk after. */
static json_t *judge_way(const char *connect)
{
        _cleanup_json_ json_t *status = json_pack("{ss}", "state", "not-running"), *document = NULL,
                              *way = parse_quoted(connect);
        json_t *findings;

        document = ctl_doctor_judge(&(const CtlFacts){ .status = status, .connect = way });
        findings = json_incref(json_object_get(document, "findings"));
        assert_true(json_array_size(findings) >= 4);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(json_array_remove(findings, 0), 0);
                assert_int_equal(json_array_remove(findings, json_array_size(findings) - 1), 0);
        }
        return findings;
}

/* Writes "keystone=ok role=bad": the findings in their order. Only findings that are not "ok" have
 * an advice. */
static void summarise(const json_t *findings, char *text, size_t size)
{
        const json_t *finding;
        size_t i, n = 0;

        text[0] = '\0';
        json_array_foreach((json_t *)findings, i, finding) {
                const char *state = ctl_json_text(finding, "state");

                assert_int_equal(strcmp(state, "ok") != 0,
                                 ctl_json_text(finding, "advice")[0] != '\0');
                n += (size_t)snprintf(text + n, size - n, "%s%s=%s", n > 0 ? " " : "",
                                      ctl_json_text(finding, "check"), state);
        }
}

static void test_findings_about_the_connection(void **state)
{
        static const struct {
                const char *connect; /* with ' for " */
                const char *findings, *words;
                const char *member; /* the member of the first finding that has the words */
        } cases[] = {
                { "{'keystone':true,'scope':'project service','roles':['service'],'endpoint':'http://p'}",
                  "keystone=ok endpoint=ok", "project service. Roles: service", "text" },
                { "{'keystone':true,'scope':'system','roles':['admin','reader'],'endpoint':''}",
                  "keystone=ok endpoint=ok", "admin, reader", "text" },
                /* The name of a role is cut within a character. */
                { "{'keystone':true,'scope':'x','roles':['" SEVEN_CHARACTERS SEVEN_CHARACTERS
                  "','service'],'endpoint':''}",
                  "keystone=ok endpoint=ok", SEVEN_CHARACTERS SIX_CHARACTERS ", service", "text" },
                { "{'keystone':true,'scope':'x','roles':['reader'],'endpoint':'http://p'}",
                  "keystone=ok role=warning", "", "text" },
                { "{'keystone':true,'scope':'x','roles':[],'placement_error':'no','placement_"
                  "outcome':'unreadable'}",
                  "keystone=ok role=bad", "none", "text" },
                { "{'keystone':true,'scope':'x','roles':[],'placement_error':'gone','placement_"
                  "outcome':"
                  "'unreachable'}",
                  "keystone=ok endpoint=bad", "", "text" },
                { "{'keystone':true,'error':'wrong','outcome':'unauthorized'}", "keystone=bad",
                  "wrong", "cause" },
                { "{'keystone':true,'error':'gone','outcome':'unreachable'}", "keystone=bad",
                  "gone", "cause" },
                { "{'keystone':true,'error':'nowhere','outcome':'unavailable'}", "keystone=bad",
                  "nowhere", "cause" },
                { "{'keystone':true,'scope':'x','roles':['service'],'clock_ahead_sec':-6}",
                  "keystone=ok endpoint=ok clock=warning", "", "text" },
                { "{'keystone':true,'scope':'x','roles':['service'],'clock_ahead_sec':5}",
                  "keystone=ok endpoint=ok", "", "text" },
                { "{'keystone':false,'endpoint':'http://p'}", "endpoint=ok", "at http://p",
                  "text" },
                { "{'keystone':false,'placement_error':'gone','placement_outcome':'unreachable'}",
                  "endpoint=bad", "gone", "cause" },
                { "{'microversion':'1.39'}", "endpoint=ok version=ok", "", "text" },
                { "{'microversion':'1.38'}", "endpoint=ok version=ok", "", "text" },
                { "{'microversion':'1.37'}", "endpoint=ok version=warning", "", "text" },
                { "{'microversion':'2.0'}", "endpoint=ok version=ok", "", "text" },
                { "{'microversion':'new'}", "endpoint=ok", "", "text" },
                { "{'keystone':true,'roles':5,'scope':[],'error':7}", "keystone=ok role=warning",
                  "no scope", "text" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *findings = judge_way(cases[i].connect);
                char summary[200];

                summarise(findings, summary, sizeof(summary));
                assert_string_equal(summary, cases[i].findings);
                assert_contains(ctl_json_text(json_array_get(findings, 0), cases[i].member),
                                cases[i].words);
        }
}

/* A role that the user has already is not advised. */
static void test_advice_names_the_missing_role(void **state)
{
        static const char *const cases[][2] = {
                { "{'keystone':true,'roles':['reader'],'placement_error':'no','placement_outcome':'unreadable'}",
                  "--project PROJECT service\"" },
                { "{'keystone':true,'roles':['service'],'placement_error':'no','placement_outcome':'unreadable'}",
                  "--project PROJECT admin\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *findings = judge_way(cases[i][0]);

                assert_contains(ctl_json_text(json_array_get(findings, 1), "advice"), cases[i][1]);
        }
}

#define A_FINDING(check, state, text, cause, advice)                                        \
        "{'check': '" check "', 'state': '" state "', 'text': '" text "', 'cause': '" cause \
        "', 'advice': '" advice "'}"

/* One line for each check, and with --all all findings and their details. */
static void test_printed(void **state)
{
        static const PrintRow rows[] = {
                { "{'findings': [" A_FINDING("disk", "bad", "0123456789 0123456789 0123456789", "",
                                             "Make room!") "]}",
                  .text = "bad      disk           0123456789 0123456789\n"
                          "                        0123456789.\n"
                          "\nCauses and advice: computectl doctor --all\n",
                  .width = 50 },
                { "{'findings': [" A_FINDING("a", "warning", "One", "", "x") ", " A_FINDING(
                          "b", "ok", "Fine", "why", "") ", " A_FINDING("a", "bad", "Two", "z",
                                                                       "y") "]}",
                  .text = "bad      a              Two (and 1 more)\n"
                          "ok       b              Fine.\n"
                          "\nCauses and advice: computectl doctor --all\n" },
                { "{'findings': [" A_FINDING("a\\u009b", "ok", "Fine", "", "") "]}",
                  .text = "ok       a\\xc2\\x9b            Fine.\n" },
                { "{'findings': [" A_FINDING("b", "ok", "Fine", "why", "") "]}",
                  .text = "ok       b              Fine.\n" },
                { "{'findings': [" A_FINDING("a", "warning", "One", "", "x") ", " A_FINDING(
                          "b", "ok", "Fine", "why", "") ", " A_FINDING("a", "bad", "Two", "z",
                                                                       "y") "]}",
                  .text = "warning  a              One.\n"
                          "                        x.\n"
                          "ok       b              Fine.\n"
                          "                        why.\n"
                          "bad      a              Two.\n"
                          "                        z.\n"
                          "                        y.\n",
                  .all = true },
        };

        check_rows(ctl_doctor_print, rows, ARRAY_SIZE(rows));
}

static void test_measured(void **state)
{
        char root[] = "/", nowhere[] = "/nonexistent";
        const Config there = { .state_dir = root }, gone = { .state_dir = nowhere };
        CtlFacts facts = { .config = &there };

        ctl_facts_measure(&facts);
        assert_int_equal(facts.disk_error.code, 0);
        facts.config = &gone;
        ctl_facts_measure(&facts);
        assert_int_equal(facts.disk_error.code, ENOENT);
}

#define PREPARED(error, rows) \
        "{'format': 'compute-agent-prepared/1', 'error': '" error "', " rows "}"
#define A_CARD(error) "'cards': [{'address': '0000:c1:00.0', 'error': '" error "'}]"
#define A_FUNCTION(type, waiting, error)                                                     \
        "'functions': [{'address': '0000:c1:00.4', 'type': '" type "', 'waiting': '" waiting \
        "', 'error': '" error "'}]"

/* The host has a card with one function, which is a vGPU of nvidia-5. */
static void test_prepared_cards(void **state)
{
        static const struct {
                const char *prepared;
                uint64_t virtual_functions;
                const char *state, *text;
        } cases[] = {
                { NULL, 1, "bad", "did not run since the boot" },
                { PREPARED("locked", "'cards': []"), 1, "bad",
                  "The cards were not finished: locked" },
                { PREPARED("", A_CARD("")), 1, "ok", "1 card is prepared as configured" },
                { PREPARED("", A_CARD("")), 0, "ok", "1 card is prepared" },
                { PREPARED("", A_CARD("")), 4, "bad",
                  "Card 0000:c1:00.0 has 1 of 4 virtual functions" },
                { PREPARED("", A_CARD("no such unit")), 1, "bad",
                  "Card 0000:c1:00.0: no such unit" },
                { PREPARED("", "'cards': []"), 1, "warning", "was not prepared yet" },
                { PREPARED("", A_CARD("") ", " A_FUNCTION("nvidia-5", "", "")), 1, "ok", "" },
                { PREPARED("", A_CARD("") ", " A_FUNCTION("nvidia-5", "it is open", "")), 1,
                  "warning", "Function 0000:c1:00.4 stays nvidia-5: it is open" },
                { PREPARED("", A_CARD("") ", " A_FUNCTION("", "", "EINVAL")), 1, "bad",
                  "Function 0000:c1:00.4: EINVAL" },
                { PREPARED("", A_CARD("") ", " A_FUNCTION("nvidia-6", "", "")), 1, "warning",
                  "was nvidia-6 after the last run, and is nvidia-5 now" },
        };
        char *cards[] = { (char *)"0000:c1:00.0", NULL };
        HostPrepare section = { .name = (char *)"gpus", .device_addresses = cards };
        const Config config = { .driver.host = { .prepares = &section, .n_prepares = 1 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *status = json_pack("{ss}", "state", "ok"), *document = NULL;
                _cleanup_json_ json_t *prepared =
                        cases[i].prepared ? parse_quoted(cases[i].prepared) : NULL;
                _cleanup_json_ json_t *json = parse_quoted(
                        "{'format': 'compute-agent-host/1', 'nodename': 'h', 'devices': ["
                        "{'name': 'pci_0000_c1_00_4', 'is_pci': true, 'address': '0000:c1:00.4',"
                        " 'physical_function': '0000:c1:00.0', 'is_vgpu_function': true,"
                        " 'mdev_types': [{'id': 'nvidia-5', 'available_instances': 0, 'created_instances': 1}]}]}");
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
                Error error = ERROR_NULL;

                if (snapshot_from_json(json, &snapshot, &error) < 0)
                        fail_msg("%s", error.text);
                section.virtual_functions = cases[i].virtual_functions;
                document = ctl_doctor_judge(&(const CtlFacts){ .config = &config,
                                                               .status = status,
                                                               .snapshot = snapshot,
                                                               .prepared = prepared });
                assert_string_equal(state_of(document, "prepare"), cases[i].state);
                assert_non_null(strstr(ctl_json_text(finding_of(document, "prepare"), "text"),
                                       cases[i].text));
        }
}

static void test_configuration_of_the_unit(void **state)
{
        const Config config = { 0 };
        const CtlFacts facts = { .config = &config, .config_only = true, .unit_config = "/a.conf" };
        _cleanup_json_ json_t *document = ctl_doctor_judge(&facts);

        assert_string_equal(state_of(document, "configuration"), "warning");
        assert_non_null(strstr(ctl_json_text(finding_of(document, "configuration"), "text"),
                               "--config=/a.conf"));
}

/* The first eight functions that differ are listed. The last one is the only one with an error. */
static void test_prepared_rest(void **state)
{
        char *cards[] = { NULL };
        HostPrepare section = { .name = (char *)"gpus", .device_addresses = cards };
        const Config config = { .driver.host = { .prepares = &section, .n_prepares = 1 } };
        _cleanup_json_ json_t *prepared = json_pack("{s[]}", "functions"), *document = NULL;
        _cleanup_json_ json_t *status = json_pack("{ss}", "state", "ok");
        const json_t *findings;

        for (size_t i = 0; i < 10; i++)
                json_array_append_new(json_object_get(prepared, "functions"),
                                      json_pack("{ss ss ss ss}", "address", "0000:c1:00.4", "type",
                                                "nvidia-5", "waiting", "it is open", "error",
                                                i < 9 ? "" : "EINVAL"));
        document = ctl_doctor_judge(
                &(const CtlFacts){ .config = &config, .status = status, .prepared = prepared });
        findings = json_object_get(document, "findings");
        assert_non_null(ctl_json_find(findings, "text", "2 more functions are not as configured"));
        assert_string_equal(ctl_json_text(ctl_json_find(findings, "text",
                                                        "2 more functions are not as configured"),
                                          "state"),
                            "bad");
}

#define PARTITIONS(error, rows) \
        "{'format': 'compute-agent-partitions/1', 'error': '" error "', 'partitions': [" rows "]}"
#define A_PARTITION(state, waiting, error)                                            \
        "{'set': 'hgx', 'partition': '1', 'state': '" state "', 'waiting': '" waiting \
        "', 'error': '" error "'}"

static void test_partitions(void **state)
{
        static const struct {
                const char *partitions, *state, *text;
        } cases[] = {
                { NULL, "bad", "did not run since the boot, but [device_shapes hgx] has units" },
                { PARTITIONS("locked", ""), "bad", "The partitions were not finished: locked" },
                { PARTITIONS("", A_PARTITION("active", "", "")), "ok", "as their claims need" },
                { PARTITIONS("", A_PARTITION("active", "it is open", "")), "warning",
                  "Partition 1 of hgx is active: it is open" },
                { PARTITIONS("", A_PARTITION("deactivating", "", "off@1 failed")), "bad",
                  "Partition 1 of hgx is deactivating: off@1 failed" },
        };
        HostShapes shapes = { .set.name = (char *)"hgx", .activate = (char *)"on@.service" };
        const Config config = { .driver.host = { .shapes = &shapes, .n_shapes = 1 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *status = json_pack("{ss}", "state", "ok"), *document = NULL;
                _cleanup_json_ json_t *partitions =
                        cases[i].partitions ? parse_quoted(cases[i].partitions) : NULL;

                document = ctl_doctor_judge(&(const CtlFacts){
                        .config = &config, .status = status, .partitions = partitions });
                assert_string_equal(state_of(document, "partitions"), cases[i].state);
                assert_non_null(strstr(ctl_json_text(finding_of(document, "partitions"), "text"),
                                       cases[i].text));
        }
}

static void test_unlisted_cards_have_no_check(void **state)
{
        _cleanup_json_ json_t *status = json_pack("{ss}", "state", "ok"), *document = NULL;
        const Config config = { 0 };

        document = ctl_doctor_judge(&(const CtlFacts){ .config = &config, .status = status });
        assert_string_equal(state_of(document, "prepare"), "");
}

TEST_MAIN(test_table, test_long_reasons, test_missing_facts, test_prepared_cards,
          test_prepared_rest, test_configuration_of_the_unit, test_partitions,
          test_unlisted_cards_have_no_check, test_cells_without_cpus, test_single_findings,
          test_configuration, test_hardware_names_an_option_once,
          test_findings_about_the_connection, test_advice_names_the_missing_role, test_printed,
          test_measured)
