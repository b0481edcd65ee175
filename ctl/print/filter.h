/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The filters of "computectl claims" and "computectl history". Pure, but for the time zone. */

#include "base/error.h"
#include "ctl/print/json.h"

/* A member that is NULL or 0 lets everything pass. Texts are borrowed. */
typedef struct CtlFilter {
        const char *guest;   /* uuid of the consumer, or name of its domain */
        const char *device;  /* name, PCI address or mdev of a device; name or uuid of a provider */
        const char *state;   /* the state of a claim, or the kind of an event */
        uint64_t since_usec; /* CLOCK_REALTIME */
} CtlFilter;

/* Parses "today", "yesterday", "-2h" (s, min, h, d, w; also "2h ago") or "2026-11-20[ 10:00[:00]]"
 * in the local time zone. -EINVAL with words. */
int ctl_filter_parse_time(const char *text, uint64_t now_usec, uint64_t *ret_usec, Error *reterr);

/* Checks the state against those of claims, or the kinds of events. -EINVAL with words. */
int ctl_filter_check_state(const CtlFilter *filter, bool events, Error *reterr);

/* Removes the claims of a document of CLAIMS_FORMAT that do not pass. A claim passes since_usec if
 * it was made or ended since then. */
void ctl_filter_claims(const CtlFilter *filter, json_t *document);

/* Removes the events of a document of EVENTS_FORMAT that do not pass. */
void ctl_filter_events(const CtlFilter *filter, json_t *document);
