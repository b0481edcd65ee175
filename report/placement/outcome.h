/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The outcomes of an attempt to report, for report/ and its caller, and the translation of
 * Placement's answers into them. Pure. */

#include "base/error.h"

typedef struct HttpResponse HttpResponse;
typedef struct PlacementRequest PlacementRequest;

/* Outcomes other than 0 (done). A negative result is a local failure, for example -ENOMEM. */
typedef enum ReportOutcome {
        REPORT_DONE = 0,
        REPORT_E_UNREACHABLE = 1, /* no connection, a time-out, an incomplete answer, a failure of
                                     TLS: retry later */
        REPORT_E_UNAVAILABLE,     /* 5xx, 408, 429, a redirect, an answer that is not Placement's:
                                   * retry later */
        REPORT_E_UNAUTHORIZED,    /* 401, or Keystone rejects the credential */
        REPORT_E_FORBIDDEN,       /* 403 to a write: a role is missing */
        REPORT_E_TOO_OLD,         /* the service lacks a necessary microversion */
        REPORT_E_CONFLICT, /* 409 placement.concurrent_update; a provider that changed or vanished
                            * since or during a read; a batch that was rejected. Start again with a
                            * refresh */
        REPORT_E_IN_USE,   /* an allocated inventory or provider, or a provider with children, could
                            * not be removed; all other steps were done (after a rejected reshape:
                            * none) */
        REPORT_E_DUPLICATE_NAME, /* a provider of another tree has the name */
        REPORT_E_REFUSED, /* 400 and every other rejection: a retry at once would not help; also a
                             request that [agent] nova forbids */
        REPORT_E_UNREADABLE, /* 403 to a GET: a role is missing */
        _REPORT_OUTCOME_MAX,
} ReportOutcome;

/* Returns the outcome of a request without an answer, from an HttpResult except HTTP_DONE. A
 * failure of TLS is REPORT_E_UNREACHABLE, and HTTP_E_BAD_ANSWER is REPORT_E_UNAVAILABLE. A negative
 * errno is returned as it is. */
int report_outcome_of_http(int result);

/* Returns a word for logs and metrics, for example "unreachable"; "failed" for a negative errno. */
const char *report_outcome_to_text(int outcome);

/* Checks whether the other requests of a plan would fail too, because the service is away or too
 * old, or rejects this client. True also for a negative errno. */
bool report_outcome_is_fatal(int outcome);

/* Checks whether Placement cannot be read: it is unreachable or unavailable, does not accept this
 * client (401), or forbids it to read (403). False for a negative errno. */
bool report_outcome_is_away(int outcome);

/* The result of a write of allocations by PUT or POST /allocations. */
typedef enum ReportWritten {
        REPORT_WRITTEN,
        REPORT_WRITTEN_RACED, /* another writer was first, or the write itself was done: after a
                               * broken connection curl sends it twice */
        REPORT_WRITTEN_NO_CAPACITY, /* a 409 of another kind, normally because an amount does not
                                       fit (any more); nothing was written */
        REPORT_WRITTEN_REFUSED,     /* nothing was written */
        REPORT_WRITTEN_UNKNOWN,     /* the write was done, not sent, or can still arrive */
} ReportWritten;

/* Returns the result of a write. status: the HTTP status of the answer; 0: no answer. */
ReportWritten report_outcome_of_write(int outcome, int status);

/* Whether this client can POST /reshaper, which needs the role service; for all other requests the
 * role admin is enough, too (facts E1). Placement checks the role before the body. So a 400 or 409
 * of Placement shows that this client has the role. */
typedef enum ReshaperAccess {
        RESHAPER_UNKNOWN, /* no clear answer yet */
        RESHAPER_ALLOWED,
        RESHAPER_FORBIDDEN,
} ReshaperAccess;

/* Returns the worse of two results, a if both are equally bad. The order is: local failures, fatal
 * outcomes, outcomes that need another attempt, the rest. */
int report_outcome_worse(int a, int b);

typedef enum PlacementCode {
        PLACEMENT_CODE_NONE, /* no error body of Placement, or one without a code */
        PLACEMENT_CODE_UNDEFINED,
        PLACEMENT_CODE_CONCURRENT_UPDATE,
        PLACEMENT_CODE_INVENTORY_IN_USE,
        PLACEMENT_CODE_PROVIDER_IN_USE,
        PLACEMENT_CODE_CANNOT_DELETE_PARENT,
        PLACEMENT_CODE_DUPLICATE_NAME,
        PLACEMENT_CODE_PROVIDER_NOT_FOUND,
        _PLACEMENT_CODE_MAX,
} PlacementCode;

/* A judged answer. */
typedef struct PlacementVerdict {
        int outcome; /* REPORT_DONE for 2xx, else a ReportOutcome */
        PlacementCode code;
        bool from_placement;  /* the body of the error has Placement's form; true for each 2xx */
        bool database_locked; /* a 500 of a service on SQLite: too many writers at a time */
} PlacementVerdict;

/* Judges the answer to request. reterr has words unless the outcome is REPORT_DONE. */
PlacementVerdict placement_judge(const PlacementRequest *request, const HttpResponse *response,
                                 Error *reterr);

#define REQUEST_COUNTS_MAX 96

/* Numbers of requests by route, method and status of the answer. A route has placeholders for uuids
 * and names, so the number of items is bounded. */
typedef struct RequestCounts {
        struct {
                const char *method, *route; /* "PUT", "/resource_providers/{uuid}/traits"; static */
                int status;                 /* 0: no answer */
                uint64_t n;
        } items[REQUEST_COUNTS_MAX];
        size_t n_items;
} RequestCounts;
