/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Judges answers: placement_judge() turns status and code into a ReportOutcome with a message. The
 * outcome depends on status and code, on the form of the body, and on method and path of the
 * request. The outcome never depends on the text, unlike in Nova (facts G2.12). Only the message
 * and the flag database_locked of a 500 use the text. Any body is accepted: HTML of a proxy,
 * nothing, half of a document. Each 2xx is REPORT_DONE; the session checks its body. The other
 * functions answer questions about an outcome: whether other requests would fail too, whether
 * Placement cannot be read, whether a write was done, which of two outcomes is worse. One table has
 * most properties of the outcomes.
 *
 * Tests: tests/unit/report/placement/test-outcome.c tests/unit/report/placement/test-error.c */

#include "report/placement/outcome.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "report/http/http.h"
#include "report/placement/request.h"

#define HTTP_BAD_REQUEST     400
#define HTTP_REQUEST_TIMEOUT 408
#define HTTP_CONFLICT        409
#define HTTP_SERVER_ERROR    500

/* The properties of the outcomes. A higher severity wins if several requests of an attempt fail. */
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
        [REPORT_E_UNREADABLE] = { "unreadable", 6, true },
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
               outcome == REPORT_E_UNAUTHORIZED || outcome == REPORT_E_UNREADABLE;
}

/* Treats a 4xx other than 408 as a decision of the server: nothing was written. The exception is
 * REPORT_E_CONFLICT, after which the write can have been done (REPORT_WRITTEN_RACED). Any other 409
 * counts as a lack of capacity, its normal cause. After any other status, for example a 5xx, or no
 * answer the write can have been done. */
ReportWritten report_outcome_of_write(int outcome, int status)
{
        if (outcome == REPORT_DONE)
                return REPORT_WRITTEN;
        if (outcome == REPORT_E_CONFLICT)
                return REPORT_WRITTEN_RACED;
        if (status == HTTP_CONFLICT)
                return REPORT_WRITTEN_NO_CAPACITY;
        return status >= HTTP_BAD_REQUEST && status < HTTP_SERVER_ERROR &&
                               status != HTTP_REQUEST_TIMEOUT
                       ? REPORT_WRITTEN_REFUSED
                       : REPORT_WRITTEN_UNKNOWN;
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

/* Verdicts. */

static const char *const codes[_PLACEMENT_CODE_MAX] = {
        [PLACEMENT_CODE_UNDEFINED] = "placement.undefined_code",
        [PLACEMENT_CODE_CONCURRENT_UPDATE] = "placement.concurrent_update",
        [PLACEMENT_CODE_INVENTORY_IN_USE] = "placement.inventory.inuse",
        [PLACEMENT_CODE_PROVIDER_IN_USE] = "placement.resource_provider.inuse",
        [PLACEMENT_CODE_CANNOT_DELETE_PARENT] = "placement.resource_provider.cannot_delete_parent",
        [PLACEMENT_CODE_DUPLICATE_NAME] = "placement.duplicate_name",
        [PLACEMENT_CODE_PROVIDER_NOT_FOUND] = "placement.resource_provider.not_found",
};

/* The content of an error body; "" for a missing text. */
typedef struct Fault {
        bool found;
        PlacementCode code;
        char detail[200];
        char min_version[16], max_version[16];
        bool database_locked;
} Fault;

static void copy_member(const json_t *object, const char *key, char *text, size_t size)
{
        const char *value = json_string_value(json_object_get(object, key));

        snprintf(text, size, "%s", value ? value : "");
}

/* Copies the detail without its fixed first sentence, which ends with an empty line, if text
 * follows. A run of white space becomes one blank. Full stops at the end are removed, and the text
 * is cut at size. */
static void copy_detail(const char *from, char *to, size_t size)
{
        const char *news = strstr(from, "\n\n");
        size_t n = 0;

        if (news && news[strspn(news, " \n\r\t")] != '\0')
                from = news;
        for (; *from && n + 1 < size; from++) {
                bool blank = isspace((unsigned char)*from);

                if (blank && (n == 0 || to[n - 1] == ' '))
                        continue;
                to[n++] = blank ? ' ' : *from;
        }
        while (n > 0 && (to[n - 1] == ' ' || to[n - 1] == '.'))
                n--;
        to[n] = '\0';
}

/* Returns the code of the text. A code that this client does not know is
 * PLACEMENT_CODE_UNDEFINED. */
static PlacementCode code_from_text(const char *text)
{
        for (size_t i = 0; text && i < ARRAY_SIZE(codes); i++)
                if (codes[i] && strcmp(codes[i], text) == 0)
                        return (PlacementCode)i;
        return text ? PLACEMENT_CODE_UNDEFINED : PLACEMENT_CODE_NONE;
}

/* Reads the first item of "errors". A body of another form leaves found false. */
static void read_fault(const HttpResponse *response, Fault *ret)
{
        _cleanup_json_ json_t *body = NULL;
        const json_t *item;
        const char *detail;

        *ret = (Fault){ 0 };
        if (json_parse(response->body, response->body_size, &body, NULL) < 0)
                return;
        item = json_array_get(json_object_get(body, "errors"), 0);
        if (!json_is_object(item))
                return;
        ret->found = true;
        ret->code = code_from_text(json_string_value(json_object_get(item, "code")));
        copy_member(item, "min_version", ret->min_version, sizeof(ret->min_version));
        copy_member(item, "max_version", ret->max_version, sizeof(ret->max_version));
        detail = json_string_value(json_object_get(item, "detail"));
        if (!detail)
                return;
        ret->database_locked = strstr(detail, "database is locked") != NULL;
        copy_detail(detail, ret->detail, sizeof(ret->detail));
}

/* Format of a request in a message: "PUT /traits/CUSTOM_X", without the query. */
#define REQUEST_FORMAT       "%s %.*s"
#define REQUEST_ARGUMENTS(r) (r)->method, (int)strcspn((r)->path, "?"), (r)->path

/* Checks for the path that every Placement serves, so a 404 for it shows that the endpoint is
 * wrong. */
static bool is_everywhere(const PlacementRequest *request)
{
        return strcspn(request->path, "?") == strlen("/resource_providers") &&
               strncmp(request->path, "/resource_providers", strlen("/resource_providers")) == 0;
}

/* Judges an answer that has not the form of Placement's answers, or a 404 for the path that every
 * Placement serves. */
static int judge_unknown(const PlacementRequest *request, const HttpResponse *response,
                         Error *reterr)
{
        if (response->status == 404 && is_everywhere(request))
                error_setf(
                        reterr, ENOENT,
                        "There is no Placement at the endpoint (404 to " REQUEST_FORMAT
                        "). Check the path of endpoint_override in [placement] (if unset: of \"openstack endpoint list --service placement\")",
                        REQUEST_ARGUMENTS(request));
        else
                error_setf(
                        reterr, EBADMSG,
                        "Placement answers " REQUEST_FORMAT
                        " with %d and %s instead of JSON. Check the endpoint of [placement], and any proxy before it",
                        REQUEST_ARGUMENTS(request), response->status,
                        response->body_size == 0            ? "no body"
                        : response->content_type[0] != '\0' ? response->content_type
                                                            : "a body");
        return REPORT_E_UNAVAILABLE;
}

static int judge_unauthorized(Error *reterr)
{
        error_setf(
                reterr, EACCES,
                "Placement rejects the credentials (401). Check auth_type and its options in [placement]");
        return REPORT_E_UNAUTHORIZED;
}

static int judge_forbidden(const PlacementRequest *request, Error *reterr)
{
        const char *role = strcmp(request->path, "/reshaper") == 0
                                   ? "the role service"
                                   : "the role service (in an older Placement: admin)";

        error_setf(reterr, EPERM,
                   "Placement forbids " REQUEST_FORMAT " (403). The user of [placement] needs %s",
                   REQUEST_ARGUMENTS(request), role);
        return strcmp(request->method, "GET") == 0 ? REPORT_E_UNREADABLE : REPORT_E_FORBIDDEN;
}

/* Judges a 406. That of Placement names the microversions that it has; another one comes from a
 * proxy. */
static int judge_not_acceptable(const PlacementRequest *request, const HttpResponse *response,
                                const Fault *fault, Error *reterr)
{
        if (!fault->found)
                return judge_unknown(request, response, reterr);
        error_setf(reterr, EPROTONOSUPPORT,
                   "Placement is too old: it has microversions %s to %s, but " REQUEST_FORMAT
                   " needs %s",
                   fault->min_version[0] ? fault->min_version : "?",
                   fault->max_version[0] ? fault->max_version : "?", REQUEST_ARGUMENTS(request),
                   request->microversion);
        return REPORT_E_TOO_OLD;
}

/* Maps a 409 to an outcome. A creation has a microversion without codes, and its only conflict is
 * that of the name or uuid. A 409 with another code or none, for example without capacity, is a
 * refusal. */
static int outcome_of_conflict(const PlacementRequest *request, PlacementCode code)
{
        if (strcmp(request->method, "POST") == 0 && is_everywhere(request))
                return REPORT_E_DUPLICATE_NAME;
        switch (code) {
        case PLACEMENT_CODE_CONCURRENT_UPDATE:
                return REPORT_E_CONFLICT;
        case PLACEMENT_CODE_INVENTORY_IN_USE:
        case PLACEMENT_CODE_PROVIDER_IN_USE:
        case PLACEMENT_CODE_CANNOT_DELETE_PARENT:
                return REPORT_E_IN_USE;
        case PLACEMENT_CODE_DUPLICATE_NAME:
                return REPORT_E_DUPLICATE_NAME;
        default:
                return REPORT_E_REFUSED;
        }
}

static int judge_refusal(const PlacementRequest *request, const HttpResponse *response,
                         const Fault *fault, Error *reterr)
{
        if (!fault->found || (response->status == 404 && is_everywhere(request)))
                return judge_unknown(request, response, reterr);
        error_setf(reterr, EREMOTEIO, "Placement refuses " REQUEST_FORMAT " (%d): %s",
                   REQUEST_ARGUMENTS(request), response->status,
                   fault->detail[0] ? fault->detail : "no reason given");
        return response->status == 409 ? outcome_of_conflict(request, fault->code)
                                       : REPORT_E_REFUSED;
}

/* Judges a 413, which a proxy sends as HTML. A retry would not help. */
static int judge_too_large(const PlacementRequest *request, Error *reterr)
{
        error_setf(reterr, EMSGSIZE,
                   "Placement or a proxy before it rejects the size of " REQUEST_FORMAT
                   " (413), which is %zu bytes. Raise the limit there",
                   REQUEST_ARGUMENTS(request), request->body ? strlen(request->body) : (size_t)0);
        return REPORT_E_REFUSED;
}

static int judge_unavailable(const PlacementRequest *request, const HttpResponse *response,
                             const Fault *fault, Error *reterr)
{
        char wait[64] = "";

        if (response->retry_after_sec > 0)
                snprintf(wait, sizeof(wait), ", and asks to wait %" PRIu64 " s",
                         response->retry_after_sec);
        error_setf(reterr, EAGAIN, "Placement fails at " REQUEST_FORMAT " (%d)%s%s%s",
                   REQUEST_ARGUMENTS(request), response->status, wait, fault->detail[0] ? ": " : "",
                   fault->detail);
        return REPORT_E_UNAVAILABLE;
}

static int judge_redirect(const HttpResponse *response, Error *reterr)
{
        error_setf(
                reterr, EREMCHG,
                "Placement answers with a redirect (%d) to %.120s, which is not followed. Set the endpoint of [placement] to the address of the service",
                response->status, response->location[0] ? response->location : "nowhere");
        return REPORT_E_UNAVAILABLE;
}

/* Judges by status. A 413 or a 5xx often has no body of Placement, so these come before the check
 * of the body. */
static int judge_status(const PlacementRequest *request, const HttpResponse *response,
                        const Fault *fault, Error *reterr)
{
        int status = response->status;

        if (status >= 300 && status < 400)
                return judge_redirect(response, reterr);
        if (status == 401)
                return judge_unauthorized(reterr);
        if (status == 403)
                return judge_forbidden(request, reterr);
        if (status == 406)
                return judge_not_acceptable(request, response, fault, reterr);
        if (status == 413)
                return judge_too_large(request, reterr);
        if (status == 408 || status == 429 || status >= 500)
                return judge_unavailable(request, response, fault, reterr);
        if (status >= 400)
                return judge_refusal(request, response, fault, reterr);
        return judge_unknown(request, response, reterr);
}

PlacementVerdict placement_judge(const PlacementRequest *request, const HttpResponse *response,
                                 Error *reterr)
{
        Fault fault;

        if (response->status >= 200 && response->status < 300)
                return (PlacementVerdict){ .outcome = REPORT_DONE, .from_placement = true };
        read_fault(response, &fault);
        return (PlacementVerdict){
                .outcome = judge_status(request, response, &fault, reterr),
                .code = fault.code,
                .from_placement = fault.found,
                .database_locked = response->status == 500 && fault.database_locked,
        };
}
