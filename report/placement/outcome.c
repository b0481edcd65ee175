/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/outcome.h"

#include "report/http/http.h"

#define HTTP_BAD_REQUEST     400
#define HTTP_REQUEST_TIMEOUT 408
#define HTTP_CONFLICT        409
#define HTTP_SERVER_ERROR    500

static const struct {
        const char *text;
        int severity;
        bool fatal;
} outcomes[_REPORT_OUTCOME_MAX] = {
        [REPORT_DONE] = { "done", 0, false },
        [REPORT_E_IN_USE] = { "in-use", 1, false },
        [REPORT_E_REFUSED] = { "refused", 2, false },
        [REPORT_E_DUPLICATE_NAME] = { "duplicate-name", 3, false },
        [REPORT_E_CONFLICT] = { "conflict", 4, false },
        [REPORT_E_TOO_OLD] = { "too-old", 5, true },
        [REPORT_E_FORBIDDEN] = { "forbidden", 6, true },
        [REPORT_E_UNAUTHORIZED] = { "unauthorized", 7, true },
        [REPORT_E_UNAVAILABLE] = { "unavailable", 8, true },
        [REPORT_E_UNREACHABLE] = { "unreachable", 9, true },
};

int report_outcome_of_http(int result)
{
        if (result < 0)
                return result;
        return result == HTTP_E_BAD_ANSWER ? REPORT_E_UNAVAILABLE : REPORT_E_UNREACHABLE;
}

const char *report_outcome_to_text(int outcome)
{
        if (outcome < 0)
                return "failed";
        return outcome < _REPORT_OUTCOME_MAX ? outcomes[outcome].text : "unknown";
}

bool report_outcome_is_fatal(int outcome)
{
        return outcome < 0 || outcome >= _REPORT_OUTCOME_MAX || outcomes[outcome].fatal;
}

bool report_outcome_is_away(int outcome)
{
        return outcome == REPORT_E_UNREACHABLE || outcome == REPORT_E_UNAVAILABLE ||
               outcome == REPORT_E_UNAUTHORIZED;
}

ReportWritten report_outcome_of_write(int outcome, int status)
{
        if (outcome == REPORT_DONE)
                return REPORT_WRITTEN;
        if (outcome == REPORT_E_CONFLICT)
                return REPORT_WRITTEN_RACED;
        if (status == HTTP_CONFLICT)
                return REPORT_WRITTEN_NO_ROOM;
        return status >= HTTP_BAD_REQUEST && status < HTTP_SERVER_ERROR &&
                               status != HTTP_REQUEST_TIMEOUT
                       ? REPORT_WRITTEN_REFUSED
                       : REPORT_WRITTEN_UNKNOWN;
}

ReshaperAccess reshaper_access_of(int status, bool from_placement)
{
        if (status == 204)
                return RESHAPER_ALLOWED;
        if (!from_placement)
                return status == 403 ? RESHAPER_FORBIDDEN : RESHAPER_UNKNOWN;
        switch (status) {
        case 400:
        case 409:
                return RESHAPER_ALLOWED;
        case 403:
        case 404: /* it has no reshaper, or not for the microversion asked for */
        case 406:
                return RESHAPER_FORBIDDEN;
        default:
                return RESHAPER_UNKNOWN;
        }
}

static int severity(int outcome)
{
        if (outcome < 0 || outcome >= _REPORT_OUTCOME_MAX)
                return 100;
        return outcomes[outcome].severity;
}

int report_outcome_worse(int a, int b)
{
        return severity(b) > severity(a) ? b : a;
}
