/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A reporter (report/reporter.h) that answers as the test sets it: from the loop, never from inside
 * a call. Its mirror is the tree that was published last. Linked before the library. */

#include <systemd/sd-event.h>

#include "report/reporter.h"

typedef struct FakeAnswers {
        int results[12]; /* in order, then 0 */
        size_t n;
} FakeAnswers;

typedef struct FakeReporter {
        sd_event *event;
        /* The steps in their order: F forgot Placement, R read it, I read the holders of
         * inventories, H gathered the consumers, W wrote, S reshaped, p prepared. A test adds steps
         * of its other fakes: P polled, A audited, g cancelled an audit. */
        char did[64];
        FakeAnswers refreshes, publishes, gathers;
        ReshaperAccess access;
        ProviderTree *mirror;
        Allocations *consumers;    /* the result of gathering; NULL: none */
        ProviderTree *sharing;     /* the sharing providers; NULL: unknown */
        size_t n_reshapes;         /* number of reshapes that succeeded */
        bool refuses_a_later_step; /* a publication that fails has reshaped the tree before */
        ReporterStatistics statistics;
        ReporterDone done;
        void *userdata;
        int result;
        sd_event_source *source;
} FakeReporter;

extern FakeReporter fake_reporter;

void fake_reporter_begin(void); /* makes the loop */
void fake_reporter_end(void);
void fake_reporter_note(char what);
