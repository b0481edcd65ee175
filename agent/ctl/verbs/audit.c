/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl audit", "heal" and "consumers": what Placement, claims and guests disagree about. */

#include "agent/ctl/verbs/verbs.h"

#include "agent/ctl/ask/bus.h"
#include "agent/ctl/print/audit.h"
#include "agent/ctl/print/json.h"
#include "agent/ctl/verbs/common.h"
#include "agent/formats/format-names.h"

#define AUDIT_TIMEOUT_USEC (10 * 60 * USEC_PER_SEC)

static int run_audit(Ctl *ctl, const char *method, json_t **ret, Error *reterr)
{
        return ctl_need_result(ctl, method, AUDIT_TIMEOUT_USEC, AUDIT_FORMAT, ret, reterr);
}

static int print_audit(Ctl *ctl, const char *method, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = run_audit(ctl, method, &document, reterr);

        if (r < 0)
                return r;
        if (!ctl_wants_json(ctl) && !ctl->options.quiet)
                ctl_open_pager(ctl);
        if (ctl_wants_json(ctl) || !ctl->options.quiet)
                ctl_print_document(ctl, document, ctl_audit_print);
        return ctl_audit_exit(document);
}

int ctl_verb_audit(Ctl *ctl, Error *reterr)
{
        return print_audit(ctl, "Audit", reterr);
}

int ctl_verb_heal(Ctl *ctl, Error *reterr)
{
        return print_audit(ctl, ctl->options.dry_run ? "Audit" : "Heal", reterr);
}

int ctl_verb_consumers(Ctl *ctl, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = run_audit(ctl, "Audit", &document, reterr);

        if (r < 0)
                return r;
        ctl_open_pager(ctl);
        ctl_print_document(ctl, document, ctl_consumers_print);
        return 0;
}
