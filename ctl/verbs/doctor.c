/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl doctor", and the verbs of earlier releases that are parts of it: "check-config"
 * (--config-only) and "verify" (--hardware-only). */

#include "ctl/print/doctor.h"
#include "ctl/ask/helper.h"
#include "ctl/print/findings.h"
#include "ctl/verbs/common.h"
#include "ctl/verbs/config.h"
#include "formats/format-names.h"

/* Reads the unit for a check of the configuration. Returns NULL if systemd cannot be asked. */
static const CtlUnit *find_unit(Ctl *ctl, CtlUnit *unit)
{
        return ctl_read_unit(ctl, unit) < 0 ? NULL : unit;
}

/* Examines the way to Placement, if a cloud is named or the configuration has a Placement. */
static void fetch_connect(Ctl *ctl, const Config *config, json_t **ret, Error *reterr)
{
        const char *cloud = ctl_get_cloud(ctl);

        if (cloud || (config && config->has_placement))
                (void)ctl_poll_connect(ctl->options.config, cloud, ret, reterr);
}

/* Compares this host with Placement, if there is one to compare with. */
static void fetch_identity(Ctl *ctl, const Config *config, const Snapshot *snapshot, json_t **ret,
                           Error *reterr)
{
        const CtlIdentityQuestion question = {
                .order = "show",
                .flags = "",
                .name = snapshot ? snapshot->nodename : "",
                .cloud = ctl_get_cloud(ctl),
                .config = ctl->options.config,
        };

        if (question.cloud || (config && config->has_placement))
                (void)ctl_poll_identity(&question, ret, reterr);
}

static int run_all_checks(Ctl *ctl, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *status = NULL, *connect = NULL, *identity = NULL, *document = NULL;
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        const Config *config;
        CtlFacts facts = { 0 };
        int r = ctl_config_examine(ctl->options.config, find_unit(ctl, &unit), &report, reterr);

        if (r < 0)
                return r;
        config = report.config;
        facts.config_error = report.error;
        facts.config_unchecked = report.unchecked;
        facts.files = &report.files;
        facts.credentials = &report.credentials;
        r = ctl_fetch_status(ctl, &status, reterr);
        if (r < 0)
                return r;
        if (config || ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING)
                ctl_fetch_snapshot(ctl, &snapshot, &facts.snapshot_error);
        fetch_connect(ctl, config, &connect, &facts.connect_error);
        fetch_identity(ctl, config, snapshot, &identity, &facts.identity_error);
        facts.config = config;
        facts.connect = connect;
        facts.identity = identity;
        facts.status = status;
        facts.snapshot = snapshot;
        ctl_facts_measure(&facts);
        document = ctl_doctor_judge(&facts);
        if (!document)
                return error_oom(reterr);
        ctl_print_document(ctl, document, ctl_doctor_print);
        return (int)ctl_doctor_exit(document, status);
}

static int examine_config(Ctl *ctl, json_t **ret, Error *reterr)
{
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        CtlFacts facts = { 0 };
        int r = ctl_config_examine(ctl->options.config, find_unit(ctl, &unit), &report, reterr);

        if (r < 0)
                return r;
        facts.config = report.config;
        facts.config_error = report.error;
        facts.config_unchecked = report.unchecked;
        facts.files = &report.files;
        facts.credentials = &report.credentials;
        *ret = ctl_doctor_judge_config(&facts);
        return *ret ? 0 : error_oom(reterr);
}

/* Polls the hypervisor and compares the options with it. *ret is a document of FINDINGS_FORMAT. */
static int examine_hardware(Ctl *ctl, json_t **ret, Error *reterr)
{
        _cleanup_(ctl_config_report_done) CtlConfigReport report = { 0 };
        _cleanup_(ctl_unit_done) CtlUnit unit = { 0 };
        int r = 0;

        if (!ctl->options.config) /* else it is not the service's file, and the helper reads it */
                r = ctl_config_examine(NULL, find_unit(ctl, &unit), &report, reterr);
        if (r >= 0 && report.error.code)
                r = error_setf(reterr, report.error.code, "%s", report.error.text);
        return r < 0 ? r : ctl_poll_verify(ctl->options.config, ret, reterr);
}

static int print_part(Ctl *ctl, const json_t *document)
{
        int code = ctl_doctor_exit_of_part(document);

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

int ctl_check_doctor(const CtlOptions *options, Error *reterr)
{
        return options->config_only && options->hardware_only
                       ? error_setf(reterr, EINVAL,
                                    "doctor: --config-only or --hardware-only, not both")
                       : 0;
}

int ctl_verb_doctor(Ctl *ctl, Error *reterr)
{
        return ctl->options.config_only     ? check_config_only(ctl, reterr)
               : ctl->options.hardware_only ? check_hardware_only(ctl, reterr)
                                            : run_all_checks(ctl, reterr);
}

/* Warnings never failed these two verbs. */
static int get_old_exit(int code)
{
        return code == (int)CTL_STATUS_NOT_WELL ? EXIT_SUCCESS : code;
}

int ctl_verb_check_config(Ctl *ctl, Error *reterr)
{
        int r;

        ctl_note_old_spelling(ctl, "check-config", "doctor --config-only");
        if (!ctl_wants_json(ctl)) {
                r = check_config_only(ctl, reterr);
        } else {
                _cleanup_json_ json_t *document = NULL, *answer = NULL;

                r = examine_config(ctl, &document, reterr);
                if (r < 0)
                        return r;
                r = ctl_doctor_exit_of_part(document);
                answer = json_pack("{sb}", "valid", r != EXIT_FAILURE);
                ctl_print_json(ctl, answer);
        }
        return r < 0 ? r : get_old_exit(r);
}

int ctl_verb_verify(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *verified = NULL;
        int r;

        ctl_note_old_spelling(ctl, "verify", "doctor --hardware-only");
        if (!ctl_wants_json(ctl)) {
                r = check_hardware_only(ctl, reterr);
                return r < 0 ? r : get_old_exit(r);
        }
        r = examine_hardware(ctl, &verified, reterr);
        if (r < 0)
                return r;
        ctl_print_json(ctl, verified);
        return ctl_findings_have_errors(verified) ? EXIT_FAILURE : EXIT_SUCCESS;
}
