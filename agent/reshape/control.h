/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reshapes: a reshape is due at the start, until one was tried with a Placement that answered, and
 * on request. Runs it, logs it and keeps its result. Main thread; only the small file with the old
 * shape blocks. */

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

typedef struct ReshapeControl ReshapeControl;

/* result: 0, a ReportOutcome or a negative errno, with words unless 0. tree (owned by the callee)
 * is the one that Placement holds now; NULL unless something was sent. device_error (borrowed): why
 * some devices or classes are not as configured; code 0: all are. */
typedef void (*ReshapeControlDone)(int result, ProviderTree *tree, const Error *device_error,
                                   const Error *error, void *userdata);

/* at_start: a reshape is due if it is needed. state_dir (copied): the folder of the image of the
 * old shape; NULL: none is written. patience_usec: how long a reshape is tried again; 0: 5 minutes.
 * claims (borrowed) say which consumer stands for which guest. -ENOMEM. */
int reshape_control_new(ReshapeControl **ret, sd_event *event, const char *state_dir,
                        uint64_t patience_usec, bool at_start, ClaimService *claims);
ReshapeControl *reshape_control_free(ReshapeControl *control);
DEFINE_CLEANUP(ReshapeControl *, reshape_control_free);

/* Requests a reshape from the next cycle. by (copied): the caller; NULL: not known. */
void reshape_control_ask(ReshapeControl *control, ReshapeKind kind, const EventAuthor *by);

/* Cancels the reshape that was requested: forgets it, or ends it before it is sent. -EBUSY: it was
 * sent already. */
int reshape_control_cancel(ReshapeControl *control);

/* Returns true if a reshape is to begin in this cycle. needed: the tree must change its shape. may:
 * [agent] nova permits to reshape; without it a reshape is only shown, and that of the start is put
 * off. remote: the tree of Placement, just read. */
bool reshape_control_is_due(ReshapeControl *control, bool needed, bool may,
                            const ProviderTree *remote);

enum { RESHAPE_CONTROL_E_NO_UNDO = 1 }; /* there is nothing to undo, or it cannot be read */

/* Begins the reshape that is due. Everything is borrowed until done is called, which is never from
 * inside this call. -ENOMEM. */
int reshape_control_begin(ReshapeControl *control, const TreeMaker *maker, Reporter *reporter,
                          const Snapshot *snapshot, ReshapeControlDone done, void *userdata,
                          Error *reterr);

/* Makes the tree that the host should have, without moving an allocation. A class that the last
 * reshape could not move stays where it is until the next one, and ret_made has the reason. As
 * tree_maker_make(). */
int reshape_control_make_tree(ReshapeControl *control, const TreeMaker *maker,
                              const Snapshot *snapshot, const ProviderTree *base, bool known,
                              MadeTree *ret_made, Error *reterr);

/* Reshapes the tree without a Placement, where no consumer has allocations, if a reshape is due.
 * ret_tree (owned by the caller) stays untouched if none is due. */
int reshape_control_alone(ReshapeControl *control, bool needed, const TreeMaker *maker,
                          const ProviderTree *base, const Snapshot *snapshot,
                          ProviderTree **ret_tree, Error *reterr);

/* The results of the last reshapes. */
typedef struct ReshapeState {
        bool at_start;      /* the reshape of the start is still to come, or runs */
        Error error;        /* why the last reshape failed, an undo aside; code 0: it did not */
        Error undo_error;   /* why the last undo that was requested was not done; the tree still has
                               the shape of the host */
        ReshapeImage image; /* what the last reshape did; nothing when there was none */
        json_t *document;   /* the last decision in the form of agent/reshape/image.h; NULL: none */
} ReshapeState;

const ReshapeState *reshape_control_get_state(const ReshapeControl *control);
