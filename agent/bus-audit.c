/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus-audit.h"

#include "agent/bus-interface.h"
#include "base/json.h"

/* Whether the host could be published besides is not the question. */
static void on_audited(Tracker *tracker, const Error *error, void *userdata)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = userdata;
        const json_t *document = tracker_get_audit(tracker);
        const Error *why = tracker_get_audit_error(tracker);
        _cleanup_free_ char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

        if (!why->code && !text)
                why = error;
        if (why->code)
                (void)sd_bus_reply_method_errorf(call, BUS_ERROR_NOT_READY, "%s", why->text);
        else
                (void)sd_bus_reply_method_return(call, "s", text ? text : "");
}

int bus_audit(sd_bus_message *call, Tracker *tracker, bool heal)
{
        int r = tracker_audit(tracker, heal, on_audited, sd_bus_message_ref(call));

        if (r >= 0)
                return 1;
        sd_bus_message_unref(call);
        return r;
}
