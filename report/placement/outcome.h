/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How an attempt to report ended: the vocabulary of report/ and of its caller, and how an answer of
 * Placement becomes a word of it. Pure. */

#include "base/error.h"

typedef struct HttpResponse HttpResponse;
typedef struct PlacementRequest PlacementRequest;

/* Beside 0 (done). Negative results are local failures (-ENOMEM, …). */
typedef enum ReportOutcome {
        REPORT_DONE = 0,
        REPORT_E_UNREACHABLE = 1, /* no connection, a time-out, a cut answer: try again later */
        REPORT_E_UNAVAILABLE,     /* 5xx, 429, an answer that is not Placement's: try again later */
        REPORT_E_UNAUTHORIZED,    /* 401 */
        REPORT_E_FORBIDDEN,       /* 403: a role is missing */
        REPORT_E_TOO_OLD,         /* the service lacks a microversion that is needed */
        REPORT_E_CONFLICT, /* 409 placement.concurrent_update: the mirror forgot that part; start
                              again at refresh */
        REPORT_E_IN_USE,   /* an inventory or provider that is allocated could not go; everything
                              else was done (after a refused reshape: nothing else) */
        REPORT_E_DUPLICATE_NAME, /* another provider, not of this tree, has the name */
        REPORT_E_REFUSED,        /* 400 and every other refusal: trying again changes nothing */
        _REPORT_OUTCOME_MAX,
} ReportOutcome;

/* Returns the outcome of a request without an answer: of an HttpResult except HTTP_DONE, or of a
 * negative errno. */
int report_outcome_of_http(int result);

/* "unreachable", "conflict", … for logs and metrics; "failed" for a negative errno. */
const char *report_outcome_to_text(int outcome);

/* Checks whether the other requests of a plan must fail, too: the service is away, or refuses this
 * client. */
bool report_outcome_is_fatal(int outcome);

/* Checks whether Placement cannot be read: no service, or none that knows this client. */
bool report_outcome_is_away(int outcome);

/* The result of a write of allocations by PUT or POST /allocations. */
typedef enum ReportWritten {
        REPORT_WRITTEN,
        REPORT_WRITTEN_RACED,   /* another writer was first; it can be done anyway: after a broken
                                 * connection curl sends it twice */
        REPORT_WRITTEN_NO_ROOM, /* an amount does not fit (any more); nothing was written */
        REPORT_WRITTEN_REFUSED, /* nothing was written */
        REPORT_WRITTEN_UNKNOWN, /* unknown, and it can still arrive */
} ReportWritten;

/* Returns the result of a write. status: of the answer; 0: there was none. */
ReportWritten report_outcome_of_write(int outcome, int status);

/* Whether this client may POST /reshaper, which needs another role than everything else (facts E1).
 * Placement checks the role before the body: it rejects an empty body with 403 without the role,
 * and with 400 otherwise. */
typedef enum ReshaperAccess {
        RESHAPER_UNKNOWN, /* not asked yet, or there was no clear answer */
        RESHAPER_ALLOWED,
        RESHAPER_FORBIDDEN,
} ReshaperAccess;

/* Returns the access that an answer to POST /reshaper shows. */
ReshaperAccess reshaper_access_of(int status, bool from_placement);

/* Returns the worse of two results: local failures first, then fatal outcomes, then those that need
 * another attempt, then the rest. */
int report_outcome_worse(int a, int b);

typedef enum PlacementCode {
        PLACEMENT_CODE_NONE, /* no error body of Placement's, or one without a code */
        PLACEMENT_CODE_UNDEFINED,
        PLACEMENT_CODE_CONCURRENT_UPDATE,
        PLACEMENT_CODE_INVENTORY_IN_USE,
        PLACEMENT_CODE_PROVIDER_IN_USE,
        PLACEMENT_CODE_CANNOT_DELETE_PARENT,
        PLACEMENT_CODE_DUPLICATE_NAME,
        PLACEMENT_CODE_PROVIDER_NOT_FOUND,
        _PLACEMENT_CODE_MAX,
} PlacementCode;

/* An answer that was judged. */
typedef struct PlacementVerdict {
        int outcome; /* REPORT_DONE for 2xx, else a ReportOutcome */
        PlacementCode code;
        bool from_placement;  /* the body has Placement's form */
        bool database_locked; /* a 500 of an SQLite-backed service: too many writers at a time */
} PlacementVerdict;

/* Judges an answer to request. reterr has words when the outcome is not REPORT_DONE. */
PlacementVerdict placement_judge(const PlacementRequest *request, const HttpResponse *response,
                                 Error *reterr);

#define REQUEST_COUNTS_MAX 96

typedef struct RequestCount {
        const char *method, *route; /* "PUT", "/resource_providers/{uuid}/traits"; static */
        int status;                 /* 0: there was no answer */
        uint64_t n;
} RequestCount;

/* How often each route of Placement was requested, by method and status of the answer. A route has
 * placeholders for uuids and names, which bounds the number of items. */
typedef struct RequestCounts {
        RequestCount items[REQUEST_COUNTS_MAX];
        size_t n_items;
} RequestCounts;
