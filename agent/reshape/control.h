/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides when a reshape is due, runs it, logs it and keeps its result. A reshape is due on
 * request. If the tree needs one, it is also due at the start, until one was tried or an undo
 * succeeded. A try that Placement did not answer, and a shown or cancelled reshape, do not count. A
 * cycle with permission whose tree needs none ends this, too. Also undoes the last reshape, from
 * the image in state_dir, which a reshape with consumers writes. Runs in the main thread. It blocks
 * on the disk for the small image files, to read the claims, and to record the event. */

#include <systemd/sd-event.h>

#include "agent/guests/database.h"
#include "agent/reshape/image.h"
#include "agent/tree/tree-maker.h"
#include "report/reporter.h"

typedef enum ReshapeKind {
        RESHAPE_FORWARD, /* to the shape of the host */
        RESHAPE_UNDO,    /* to the shape before the last reshape */
        RESHAPE_SHOW, /* reads and decides as RESHAPE_FORWARD does; writes nothing to Placement */
} ReshapeKind;

typedef struct ReshapeControl ReshapeControl;

/* Creates the control. With at_start a reshape is due if the tree needs one. state_dir (copied) is
 * the folder of the images; NULL: none is written. No further round follows one that ends after
 * patience_usec; 0: 5 minutes. claims (borrowed) relate migrations to guests, and get the event.
 * event is referenced. No file is read here. Returns -ENOMEM on failure. */
int reshape_control_new(ReshapeControl **ret, sd_event *event, const char *state_dir,
                        uint64_t patience_usec, bool at_start, ClaimService *claims);
ReshapeControl *reshape_control_free(ReshapeControl *control);
DEFINE_CLEANUP(ReshapeControl *, reshape_control_free);

/* Moves the results of another control of the same host to a new one: the classes that stay, the
 * error and the image of the last reshape, and an undo without an answer, also one that still waits
 * for it. Requests are not moved. The other one must not be used any more, except to free it. */
void reshape_control_inherit(ReshapeControl *control, ReshapeControl *before);

/* Requests a reshape for the next cycle, in place of an earlier request. RESHAPE_UNDO and
 * RESHAPE_SHOW clear asked_error. by (copied) is the caller; NULL: not known. */
void reshape_control_ask(ReshapeControl *control, ReshapeKind kind, const EventAuthor *by);

/* Cancels the requested reshape: drops the request, or ends the reshape before it is sent. A
 * running one ends at its next step, with -ECANCELED. The reshape of the start is not cancelled,
 * and stays due. Returns -EBUSY while the requested one is on its way to Placement, and after its
 * end if Placement has its shape. Otherwise returns 0, also if none was requested. */
int reshape_control_cancel(ReshapeControl *control);

/* Begins a reshape if one is due in this cycle, and drops a request that has no effect or is
 * forbidden. If the tree needs no reshape at the start, or none that was requested, settles the
 * image of an earlier one without an answer. The error of a failed reshape ends when the tree needs
 * none and no class stays on its provider. needed: the tree must change its shape. may: [agent]
 * nova permits a reshape. Without it a reshape is only shown, the reshape of the start is
 * postponed, and the error of a failed one ends. reporter has just read the tree of Placement.
 * Everything except snapshot, which is referenced, is borrowed until done is called. That is never
 * from inside this call. If Placement cannot be used, the reshape stays due. Returns 1 if a reshape
 * has begun, 0 if none is due or the undo cannot begin (with the reason in the state), or a
 * negative errno. done is called only after 1.
 *
 * The callback done receives the result: 0, a ReportOutcome or a negative errno, with words in
 * error unless 0. It owns tree, the tree in the new shape, which Placement has now. There are two
 * exceptions with the result 0: Placement accepted the reshape but refused another part of the
 * tree, or no allocation had to move and it refused a part of the tree. The next publication sends
 * the tree again. The tree is NULL after a failure and after RESHAPE_SHOW. The argument error is
 * borrowed, and so is device_error. The latter has the reason why some devices or classes are not
 * as configured; code 0: all are. */
int reshape_control_begin(ReshapeControl *control, bool needed, bool may, const TreeMaker *maker,
                          Reporter *reporter, const Snapshot *snapshot,
                          void (*done)(int result, ProviderTree *tree, const Error *device_error,
                                       const Error *error, void *userdata),
                          void *userdata, Error *reterr);

/* Makes the tree that the host should have, without moving an allocation. A class that the last
 * reshape could not move stays on its provider until the next one, and ret_made has the reason.
 * Ownership and errors are those of tree_maker_make(). */
int reshape_control_make_tree(ReshapeControl *control, const TreeMaker *maker,
                              const Snapshot *snapshot, const ProviderTree *base, bool known,
                              MadeTree *ret_made, Error *reterr);

/* Makes the new shape without a Placement, where no consumer has allocations, if a reshape is due.
 * Leaves ret_tree (owned by the caller) unchanged if none is due. A requested undo is not possible
 * here, and sets asked_error. RESHAPE_SHOW has nothing to show here, because nothing moves. Returns
 * the errors of tree_maker_make(); the reshape stays due then. */
int reshape_control_alone(ReshapeControl *control, bool needed, const TreeMaker *maker,
                          const ProviderTree *base, const Snapshot *snapshot,
                          ProviderTree **ret_tree, Error *reterr);

/* The request for a reshape, and the results of the last ones. */
typedef struct ReshapeState {
        bool asked;    /* a reshape was requested for the next cycle */
        bool at_start; /* the reshape of the start is still due, or runs */
        Error error;   /* reason why the last reshape failed; code 0: it did not, or none is needed
                          or permitted any more. A shown or cancelled one, a failed undo, and one
                          that Placement did not answer leave it unchanged */
        Error start_error;  /* reason why the try that ended the reshape of the start failed; code
                               0: it did not, or is still due. It stays */
        Error asked_error;  /* reason why the last requested undo or shown reshape failed */
        ReshapeImage image; /* the last reshape that succeeded (done had a tree); empty before one,
                               and after reshape_control_drop_image() */
        json_t *document; /* the last decision about consumers in the form of agent/reshape/image.h;
                             NULL: none, or a later request made no such decision */
} ReshapeState;

const ReshapeState *reshape_control_get_state(const ReshapeControl *control);

/* Frees the image in the state, because the claims have followed that reshape. */
void reshape_control_drop_image(ReshapeControl *control);
