/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One reshape, from the need of it to its end: gather who holds what → let the driver move it
 * (pure) → remember what was → one POST /reshaper, with all that the new tree needs before and
 * after it. The new providers are made while the consumers are read; they are empty until the
 * request, and one that the decision has no use for is removed again.
 *
 * Somebody who claims something meanwhile makes the request fail as a whole (facts E6). Then
 * everything is read again and decided again, with growing, jittered pauses, until patience ends;
 * there is no half of a reshape. systemd is told not to lose patience before.
 *
 * Main thread; nothing blocks but the small file that the old shape goes to. */

#include <systemd/sd-event.h>

#include "agent/guests/database.h"
#include "agent/reshape/image.h"
#include "agent/tree/tree-maker.h"
#include "report/reporter.h"

typedef enum ReshapeKind {
        RESHAPE_FORWARD, /* to what the host is like */
        RESHAPE_UNDO,    /* back to what the last reshape found */
        RESHAPE_SHOW,    /* forward, but nothing is sent or written */
} ReshapeKind;

/* Everything is borrowed. */
typedef struct ReshaperConfig {
        ReshapeKind kind;
        const TreeMaker *maker;
        Reporter *reporter;       /* nothing else uses it meanwhile */
        const Snapshot *snapshot; /* a reference is taken */
        ClaimService *claims;     /* that say who stands for which guest */
        const char *state_dir;    /* folder of the pre-image; NULL: none is written */
        uint64_t patience_usec;   /* 0: RESHAPER_PATIENCE_USEC */
} ReshaperConfig;

#define RESHAPER_PATIENCE_USEC (5 * 60 * USEC_PER_SEC)

typedef struct Reshaper Reshaper;

/* What was decided last, and what became of it. */
typedef struct ReshapeOutcome {
        ReshapeImage image; /* trees NULL before */
        DriverReshape verdict;
        Error device_error; /* why some devices or classes are not as configured; code 0: all are */
        ProviderTree *tree; /* that Placement holds now; NULL: nothing was sent */
} ReshapeOutcome;

/* result: 0, a ReportOutcome or a negative errno, with words unless 0. outcome is the reshaper's,
 * but for what is taken out of it. Called once, never from inside reshaper_new(). The reshaper may
 * be freed in it. */
typedef void (*ReshaperDone)(ReshapeOutcome *outcome, int result, const Error *error,
                             void *userdata);

/* -ENOMEM; else as reporter_gather(). */
int reshaper_new(Reshaper **ret, sd_event *event, const ReshaperConfig *config, ReshaperDone done,
                 void *userdata, Error *reterr);
Reshaper *reshaper_free(Reshaper *reshaper);
DEFINE_CLEANUP(Reshaper *, reshaper_free);

/* Ends it with -ECANCELED as soon as the answer of the request that it waits for is there. -EBUSY
 * when that is the reshape itself. */
int reshaper_cancel(Reshaper *reshaper);

/* A reshape that was sent, but whose end nobody saw, has its pre-image kept as that of the last
 * reshape when tree, which Placement holds, is what it was to lead to. */
void reshaper_settle(const char *state_dir, const ProviderTree *tree);
