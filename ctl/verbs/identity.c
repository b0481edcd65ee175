/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl identity": who this host is for Placement. Works with the service stopped; adopt
 * needs it so. */

#include "ctl/verbs/verbs.h"

#include <string.h>

#include "ctl/ask/helper.h"
#include "ctl/print/identity.h"
#include "ctl/print/status.h"
#include "ctl/print/text.h"
#include "ctl/verbs/common.h"

int ctl_check_identity(const CtlOptions *options, Error *reterr)
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
                                  word, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                                  nearest ? "\"?" : "");
        }
        if (options->force && strcmp(word, "adopt") != 0)
                return error_setf(reterr, EINVAL, "--force is an option of identity adopt alone");
        if (options->dry_run && i < 2)
                return error_setf(reterr, EINVAL,
                                  "--dry-run is an option of identity adopt and rename alone");
        return 0;
}

/* A running agent goes by the old uuid, and would publish under it. */
static int refuse_running(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *status = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);

        if (r < 0)
                return r;
        if (ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING)
                return error_setf(
                        reterr, EBUSY,
                        "The agent of this host runs: stop it first (systemctl stop compute-agent)");
        return 0;
}

static int ask(Ctl *ctl, const char *order, json_t **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        CtlIdentityQuestion question = {
                .order = order,
                .cloud = ctl_get_cloud(ctl),
                .config = ctl->options.config,
        };
        char flags[32];

        snprintf(flags, sizeof(flags), "%s%s%s", ctl->options.force ? "force" : "",
                 ctl->options.force && ctl->options.dry_run ? "," : "",
                 ctl->options.dry_run ? "dry-run" : "");
        question.flags = flags;
        /* without the hypervisor the rest is shown all the same */
        ctl_fetch_snapshot(ctl, &snapshot, NULL);
        question.name = snapshot ? snapshot->nodename : "";
        return ctl_poll_identity(&question, ret, reterr);
}

int ctl_verb_identity(Ctl *ctl, Error *reterr)
{
        const char *word = ctl->options.arguments[1];
        bool checks = strcmp(word, "check") == 0, adopts = strcmp(word, "adopt") == 0;
        _cleanup_json_ json_t *document = NULL;
        int r = adopts && !ctl->options.dry_run ? refuse_running(ctl, reterr) : 0;

        if (r == 0)
                r = ask(ctl, checks ? "show" : word, &document, reterr);
        if (r < 0)
                return r;
        if (ctl_wants_json(ctl))
                ctl_print_json(ctl, document);
        else if (checks && !ctl->options.quiet)
                ctl_identity_print_check(document, &ctl->page);
        else if (!checks && (!ctl->options.quiet || strcmp(word, "show") == 0))
                ctl_identity_print(document, word, &ctl->page);
        return (int)ctl_identity_exit(document, word);
}
