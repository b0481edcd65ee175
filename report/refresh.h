/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A refresh: reads from Placement what the mirror does not know, and nothing else.
 *
 * Of providers: one GET of the tree; then, in parallel, the inventories, traits and aggregates of
 * the providers whose generation moved. A provider that is written to between its reads is read
 * again, a bounded number of times. The mirror is replaced at the end, or left as it was; what was
 * read by then need not be read again by the next refresh. */

#include "base/progress.h"
#include "report/publish/mirror.h"
#include "report/session/session.h"

typedef struct Refresh Refresh;

/* result: 0, a ReportOutcome or a negative errno, with words unless 0. next (owned by the callee)
 * is the mirror that takes the place of the old one, or NULL when that one is current; after a
 * failure as much of it as was read (partial of the next refresh), or NULL for nothing. Called
 * once, never from inside refresh_new(); it may free the refresh. */
typedef void (*RefreshDone)(int result, Mirror *next, const Error *error, void *userdata);

/* Everything is borrowed and must outlive the refresh. partial: what an earlier one read that
 * failed, NULL: nothing. root_name is checked against what Placement
 * has: a provider is never renamed. -ENOMEM. */
int refresh_new(Refresh **ret, Session *session, const Mirror *mirror, const Mirror *partial,
                const Uuid *root, const char *root_name, RefreshDone done, void *userdata,
                Error *reterr);

/* Asks which of these traits Placement has, and gives the answers to the mirror; next of done is
 * NULL. The names are copied, and there is at least one; mirror and session are borrowed. -ENOMEM.
 */
int refresh_traits_new(Refresh **ret, Session *session, Mirror *mirror, const StringSet *names,
                       RefreshDone done, void *userdata, Error *reterr);

/* n_total 0: the list of providers is being read. */
void refresh_get_progress(const Refresh *refresh, Progress *ret);

/* Cancels what is under way. */
Refresh *refresh_free(Refresh *refresh);
DEFINE_CLEANUP(Refresh *, refresh_free);
