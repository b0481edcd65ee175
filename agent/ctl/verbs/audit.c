/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/verbs/audit.h"

#include "agent/ctl/ask/bus.h"
#include "agent/ctl/print/audit.h"
#include "agent/ctl/print/json.h"
#include "agent/ctl/verbs/common.h"
#include "agent/formats/format-names.h"

#define AUDIT_TIMEOUT_USEC (10 * 60 * USEC_PER_SEC)

static int fetch_audit(Ctl *ctl, const char *method, json_t **ret, Error *reterr)
{
        return ctl_need_result(ctl, method, AUDIT_TIMEOUT_USEC, AUDIT_FORMAT, ret, reterr);
}

static int print_audit(Ctl *ctl, const char *method, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = fetch_audit(ctl, method, &document, reterr);

        if (r < 0)
                return r;
        if (ctl_wants_json(ctl)) {
                r = ctl_print_json(ctl, document, reterr);
        } else if (!ctl->options.quiet) {
                ctl_page(ctl);
                r = ctl_oom_or(ctl_audit_print(document, &ctl->style, stdout), reterr);
        }
        return r < 0 ? r : ctl_audit_exit(document);
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
        int r = fetch_audit(ctl, "Audit", &document, reterr);

        if (r < 0)
                return r;
        ctl_page(ctl);
        return ctl_print_document(ctl, document, ctl_consumers_print, reterr);
}
