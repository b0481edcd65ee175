/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks whether this host can be removed from Placement, and keeps the request and the result. The
 * host can be removed if the check succeeds and three conditions hold. First, the host has no
 * living claim, and all of its guests are shut off. Second, no consumer in Placement has an
 * allocation from its providers. Third, each of these providers is the root, or its uuid follows
 * from its name, or this agent makes a provider of its name. phases.c sends the removal.
 *
 * The operator cordons the host first, so that no new claim arrives during the check. If a consumer
 * is placed there nevertheless, Placement refuses the removal, unless both happen at the same
 * moment (facts E3). A mark on the cordon (agent/tree/cordon.h) keeps the host retired: nothing is
 * published until the mark is taken off. Main thread; blocks on the disk of the claim database and
 * of the cordons. */

#include <jansson.h>

#include "agent/guests/database.h"
#include "agent/tree/tree-maker.h"
#include "report/reporter.h"

/* The kinds of a request. */
typedef enum RetireKind {
        RETIRE_NONE,
        RETIRE_SHOW, /* shows the result of the check */
        RETIRE_DO,   /* removes the host if the check permits it */
} RetireKind;

/* The request, and the last result. */
typedef struct Retirement {
        RetireKind asked, kind; /* asked: for the next cycle; kind: in the running cycle */
        EventAuthor asked_by, by;
        json_t *document; /* last check or removal, a document of RETIRE_FORMAT
                             (formats/format-names.h); NULL: none. Owned. */
        Error error; /* why the check or the removal failed; code 0: it did not, or it has not run
                      */
} Retirement;

/* Requests a retirement from the next cycle, and forgets the last result. by is copied. */
void retirement_ask(Retirement *retirement, RetireKind kind, const EventAuthor *by);

/* Begins a cycle: the last request, if there is one, becomes the retirement of this cycle, and the
 * last result is then forgotten. A cycle that ends before CYCLE_CHECK drops the request, without a
 * document and without an error here. phases.c sets the error if the guests are not known. */
void retirement_begin(Retirement *retirement);

/* Checks the host, and keeps the result. Takes the consumers that reporter_gather() has read from
 * the reporter. Returns true if the host must now be removed from Placement: RETIRE_DO was
 * requested, and the check found no obstacle. If the claims cannot be read, no tree can be made, or
 * memory is short, the result is an error. */
bool retirement_check(Retirement *retirement, const TreeMaker *maker, Reporter *reporter,
                      const Snapshot *snapshot);

/* Ends the removal with the answer of Placement, or with the reason why it was not sent. After a
 * success it marks the cordon, sets "done" in the document, and records the event in the history.
 * Returns true if the host is retired. If the removal failed, or the mark cannot be written,
 * returns false, and the error says so. Without the mark, the cycle publishes the host again. */
bool retirement_end(Retirement *retirement, const TreeMaker *maker, int result, const Error *error);
