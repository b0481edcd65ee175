/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The verbs that examine this host: "doctor", its parts as verbs of earlier releases
 * ("check-config" is --config-only, "verify" is --hardware-only), and "identity", which compares
 * the host with Placement.
 *
 * These verbs gather facts: the configuration, the status, a snapshot, the path to Placement. The
 * judgement is in ctl/print/doctor.c. A fact that cannot be gathered leaves its error in CtlFacts,
 * and the other checks continue. The systemd unit and the records of compute-agent-prepare are left
 * out without an error. If a running agent gives no status, "doctor" fails. With --config, the
 * status and the snapshot are still those of a running agent. All verbs work while the service is
 * stopped. "identity adopt" without --dry-run requires that, because a running agent has loaded the
 * old uuid.
 *
 * Tests: tests/integration/ctl/test_exit_codes.py tests/integration/agent/test_identity.py */

#include "ctl/print/doctor.h"

#include <string.h>

#include "base/json.h"
#include "base/read-file.h"
#include "ctl/ask/bus.h"
#include "ctl/ask/children.h"
#include "ctl/print/identity.h"
#include "ctl/print/json.h"
#include "ctl/print/text.h"
#include "ctl/verbs/common.h"
#include "ctl/verbs/config.h"
#include "formats/format-names.h"

#define PREPARED_PATH   "/run/compute-agent-prepare/prepared.json"
#define PARTITIONS_PATH "/run/compute-agent-prepare/partitions.json"
#define PREPARED_MAX    ((size_t)4 << 20)

/* Reads the systemd unit of the service, whose settings the check of the configuration uses.
 * Returns unit, or NULL if systemd cannot be asked. */
static const CtlUnit *find_unit(Ctl *ctl, CtlUnit *unit)
{
        return ctl_read_unit(ctl, unit) < 0 ? NULL : unit;
}

/* Returns the cloud of clouds.yaml that --os-cloud or $OS_CLOUD names; "": none. Borrowed. */
static const char *find_cloud(Ctl *ctl)
{
        const char *cloud = ctl->options.os_cloud ? ctl->options.os_cloud : getenv("OS_CLOUD");

        return cloud ? cloud : "";
}

/* Fetches the snapshot of the service, or polls the host if the service does not run. If neither
 * works, *ret stays NULL and reterr has the words. */
static void fetch_snapshot(Ctl *ctl, Snapshot **ret, Error *reterr)
{
        static const char *const configured[] = { "", NULL };
        _cleanup_json_ json_t *document = NULL;
        int r = ctl_fetch(ctl, BUS_DOCUMENT_HOST, SNAPSHOT_FORMAT, &document, reterr);

        if (r == CTL_NOT_RUNNING)
                r = ctl_helper_ask("discover", configured, ctl->options.config, &document, reterr);
        if (r == 0)
                (void)snapshot_from_json(document, ret, reterr);
}

/* Compares this host with Placement. snapshot NULL: the hypervisor cannot be polled, so the name of
 * the host is unknown. */
static int compare_identity(Ctl *ctl, const char *order, const char *flags,
                            const Snapshot *snapshot, json_t **ret, Error *reterr)
{
        const char *const words[] = { order, flags, snapshot ? snapshot->nodename : "",
                                      find_cloud(ctl), NULL };

        return ctl_helper_ask("identity", words, ctl->options.config, ret, reterr);
}

/* Examines the path to Placement and the identity there. Does nothing if no cloud is named and the
 * configuration has no Placement. */
static void ask_placement(Ctl *ctl, CtlFacts *facts, json_t **ret_connect, json_t **ret_identity)
{
        const char *const words[] = { find_cloud(ctl), NULL };

        if (!words[0][0] && !(facts->config && facts->config->has_placement))
                return;
        (void)ctl_helper_ask("connect", words, ctl->options.config, ret_connect,
                             &facts->connect_error);
        (void)compare_identity(ctl, "show", "", facts->snapshot, ret_identity,
                               &facts->identity_error);
        facts->connect = *ret_connect;
        facts->identity = *ret_identity;
}

/* Returns a record of compute-agent-prepare; NULL: there is none that can be read. The caller owns
 * the reference. */
static json_t *read_record(const char *path, const char *expected)
{
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        const char *format;
        size_t n;

        if (read_file_text(path, PREPARED_MAX, &text, &n, NULL) < 0 ||
            json_parse(text, n, &document, NULL) < 0 ||
            json_read_string(document, "format", &format, NULL) < 0 ||
            strcmp(format, expected) != 0)
                return NULL;
        return TAKE_PTR(document);
}

/* Stores the results of the check of the configuration. facts borrows from report and unit, which
 * must outlive it. */
static void take_report(Ctl *ctl, CtlFacts *facts, const CtlConfigReport *report,
                        const CtlUnit *unit)
{
        if (!ctl->options.config && unit->config && unit->config[0])
                facts->unit_config = unit->config;
        facts->config = report->config;
        facts->config_error = report->error;
        facts->config_unchecked = report->unchecked;
        facts->files = &report->files;
        facts->credentials = &report->credentials;
}

/* Gathers all facts, each before the facts that need it, judges them, and prints the findings, also
 * with --quiet. The host is not polled if there is neither an agent nor a configuration. Returns
 * the exit code of "doctor". */
static int run_all_checks(Ctl *ctl, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *status = NULL, *connect = NULL, *identity = NULL, *document = NULL;
        _cleanup_json_ json_t *prepared = read_record(PREPARED_PATH, PREPARED_FORMAT);
        _cleanup_json_ json_t *partitions = read_record(PARTITIONS_PATH, PARTITIONS_FORMAT);
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        CtlFacts facts = { .prepared = prepared, .partitions = partitions };
        int r = ctl_config_examine(ctl->options.config, find_unit(ctl, &unit), &report, reterr);

        if (r < 0)
                return r;
        take_report(ctl, &facts, &report, &unit);
        r = ctl_fetch_status(ctl, &status, reterr);
        if (r < 0)
                return r;
        if (facts.config || ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING)
                fetch_snapshot(ctl, &snapshot, &facts.snapshot_error);
        facts.status = status;
        facts.snapshot = snapshot;
        ask_placement(ctl, &facts, &connect, &identity);
        ctl_facts_measure(&facts);
        document = ctl_doctor_judge(&facts);
        if (!document)
                return error_oom(reterr);
        ctl_print_document(ctl, document, ctl_doctor_print);
        return ctl_doctor_exit(document, status);
}

static int examine_config(Ctl *ctl, json_t **ret, Error *reterr)
{
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        CtlFacts facts = { 0 };
        int r = ctl_config_examine(ctl->options.config, find_unit(ctl, &unit), &report, reterr);

        if (r < 0)
                return r;
        take_report(ctl, &facts, &report, &unit);
        facts.config_only = true;
        *ret = ctl_doctor_judge(&facts);
        return *ret ? 0 : error_oom(reterr);
}

/* Polls the hypervisor and compares the options with it. *ret is a document of FINDINGS_FORMAT.
 * Fails with the error of the host's configuration if it has one. */
static int examine_hardware(Ctl *ctl, json_t **ret, Error *reterr)
{
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        int r = 0;

        /* The helper reads a file of --config, and reports its errors. */
        if (!ctl->options.config)
                r = ctl_config_examine(NULL, find_unit(ctl, &unit), &report, reterr);
        if (r >= 0 && report.error.code)
                r = error_setf(reterr, report.error.code, "%s", report.error.text);
        return r < 0 ? r : ctl_helper_ask("verify", NULL, ctl->options.config, ret, reterr);
}

/* Prints the findings of one part. --quiet suppresses them only if all is well. */
static int print_part(Ctl *ctl, const json_t *document)
{
        int code = ctl_doctor_exit(document, NULL);

        if (!ctl->options.quiet || code != EXIT_SUCCESS)
                ctl_print_document(ctl, document, ctl_doctor_print);
        return code;
}

static int check_config_only(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = examine_config(ctl, &document, reterr);

        return r < 0 ? r : print_part(ctl, document);
}

static int check_hardware_only(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *verified = NULL, *document = NULL;
        int r = examine_hardware(ctl, &verified, reterr);

        if (r < 0)
                return r;
        document = ctl_doctor_judge_hardware(verified);
        return document ? print_part(ctl, document) : error_oom(reterr);
}

static int check_doctor(const CtlOptions *options, Error *reterr)
{
        return options->config_only && options->hardware_only
                       ? error_setf(reterr, EINVAL,
                                    "doctor: --config-only or --hardware-only, not both")
                       : 0;
}

static int verb_doctor(Ctl *ctl, Error *reterr)
{
        return ctl->options.config_only     ? check_config_only(ctl, reterr)
               : ctl->options.hardware_only ? check_hardware_only(ctl, reterr)
                                            : run_all_checks(ctl, reterr);
}

/* Returns the exit code of the old verbs, which is 0 if there are only warnings. */
static int get_old_exit(int code)
{
        return code == CTL_STATUS_NOT_WELL ? EXIT_SUCCESS : code;
}

/* Runs the old verb "check-config". With --json it prints {"valid": bool}, as earlier releases
 * did. */
static int verb_check_config(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL, *answer = NULL;
        int r;

        ctl_note_old_spelling(ctl, "check-config", "doctor --config-only");
        r = examine_config(ctl, &document, reterr);
        if (r < 0)
                return r;
        if (!ctl->options.json)
                return get_old_exit(print_part(ctl, document));
        r = ctl_doctor_exit(document, NULL);
        answer = json_pack("{sb}", "valid", r != EXIT_FAILURE);
        ctl_json_print(answer, ctl->options.json, &ctl->page);
        return get_old_exit(r);
}

static int verb_verify(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *verified = NULL;
        int r;

        ctl_note_old_spelling(ctl, "verify", "doctor --hardware-only");
        if (!ctl->options.json) {
                r = check_hardware_only(ctl, reterr);
                return r < 0 ? r : get_old_exit(r);
        }
        r = examine_hardware(ctl, &verified, reterr);
        if (r < 0)
                return r;
        ctl_json_print(verified, ctl->options.json, &ctl->page);
        return ctl_json_u64(verified, "errors") > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int check_identity(const CtlOptions *options, Error *reterr)
{
        static const char *const words[] = { "show", "check", "adopt", "rename", NULL };
        const char *word = options->arguments[1], *nearest;
        size_t i = 0;

        while (words[i] && strcmp(words[i], word) != 0)
                i++;
        if (!words[i]) {
                nearest = ctl_text_nearest(word, words);
                return error_setf(reterr, EINVAL,
                                  "identity: show, check, adopt or rename, not \"%.40s\"%s%s%s",
                                  word, nearest ? ". Did you mean \"" : "", nearest ? nearest : "",
                                  nearest ? "\"?" : "");
        }
        if ((options->force || options->dry_run) && i < 2)
                return error_setf(reterr, EINVAL,
                                  "%s is only an option of identity adopt and rename",
                                  options->force ? "--force" : "--dry-run");
        return 0;
}

/* Rejects a change of the identity while the agent runs. The agent has loaded the old uuid and
 * would publish with it. */
static int refuse_running(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);

        if (r < 0)
                return r;
        if (ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING)
                return error_setf(
                        reterr, EBUSY,
                        "The agent of this host is running. Stop it first: systemctl stop compute-agent");
        return 0;
}

static int ask_identity(Ctl *ctl, const char *order, json_t **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        char flags[32];

        snprintf(flags, sizeof(flags), "%s%s%s", ctl->options.force ? "force" : "",
                 ctl->options.force && ctl->options.dry_run ? "," : "",
                 ctl->options.dry_run ? "dry-run" : "");
        fetch_snapshot(ctl, &snapshot, NULL);
        return compare_identity(ctl, order, flags, snapshot, ret, reterr);
}

static int verb_identity(Ctl *ctl, Error *reterr)
{
        const char *word = ctl->options.arguments[1];
        bool checks = strcmp(word, "check") == 0, adopts = strcmp(word, "adopt") == 0;
        _cleanup_json_ json_t *document = NULL;
        int r = adopts && !ctl->options.dry_run ? refuse_running(ctl, reterr) : 0;

        if (r == 0)
                r = ask_identity(ctl, checks ? "show" : word, &document, reterr);
        if (r < 0)
                return r;
        if (ctl->options.json)
                ctl_json_print(document, ctl->options.json, &ctl->page);
        else if (!ctl->options.quiet || strcmp(word, "show") == 0)
                ctl_identity_print(document, word, &ctl->page);
        return ctl_identity_exit(document, word);
}

const CtlVerb ctl_doctor_verbs[] = {
        { "verify", "", "Deprecated: use doctor --hardware-only", 0, CTL_VERB_HIDDEN, NULL,
          verb_verify, NULL },
        { "identity", "ACTION", "Show, check or repair the host's identity", 1, CTL_VERB_CHANGES,
          check_identity, verb_identity, "show check adopt rename" },
        { "doctor", "", "Run all checks; details with --all (0, 3, 4)", 0, CTL_LOCAL, check_doctor,
          verb_doctor, NULL },
        { "check-config", "", "Deprecated: use doctor --config-only", 0, CTL_VERB_HIDDEN, NULL,
          verb_check_config, NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};
