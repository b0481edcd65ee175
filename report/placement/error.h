/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Placement's refusals: status and code of an answer become a ReportOutcome with words that say
 * what to do. Pure. It decides by status and code, never by the text (facts G2.12), and expects
 * anything for a body: HTML of a proxy, nothing, half of something. */

#include "base/error.h"
#include "report/http/http.h"
#include "report/placement/outcome.h"
#include "report/placement/request.h"

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

/* error gets words when the outcome is not REPORT_DONE. */
PlacementVerdict placement_judge(const PlacementRequest *request, const HttpResponse *response,
                                 Error *reterr);
