/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A refresh: reads from Placement the content that the mirror lacks.
 *
 * For providers it sends one GET of the tree. Then it reads the inventories, traits and aggregates
 * of the providers that are new or stale, or whose generation changed, in parallel. Those that a
 * failed refresh has read in the same generation are not read again. If the mirror is doubtful, it
 * reads all providers (refresh.c). A provider that changes between these reads is read again, a
 * bounded number of times. If it still changes, or was deleted after the list, the result is
 * REPORT_E_CONFLICT. At the end the callback gets the new mirror, which replaces the old one, or
 * none if the old one is current. After a failure the tree of the old mirror stays, and the next
 * refresh continues with the part that was read. A doubtful mirror has lost its generations then.
 *
 * For names it asks which traits and resource classes Placement has. */

#include "base/progress.h"
#include "report/publish/mirror.h"
#include "report/session/session.h"

typedef struct Refresh Refresh;

/* Starts a refresh of the tree of root. Everything is borrowed and must outlive the refresh. If the
 * list equals the mirror, which is not doubtful, the list's fingerprint and last-modified are
 * stored in the mirror. The argument partial is the result of an earlier refresh that failed, or
 * NULL. -ENOMEM, or -EINVAL of session_send(). The callback done receives the end of a refresh. The
 * result is 0, a ReportOutcome or a negative errno, with words unless it is 0. The result is
 * REPORT_E_REFUSED with the code EEXIST if Placement has the root under another name than
 * root_name, because the agent renames no provider here. The callback owns next. On success next
 * replaces the mirror; NULL means that the mirror is current. After a failure next is the part that
 * was read, for partial of the next refresh, or NULL. The callback is called once unless the
 * refresh is freed before, never from inside refresh_new(). The callback can free the refresh. */
int refresh_new(Refresh **ret, Session *session, Mirror *mirror, const Mirror *partial,
                const Uuid *root, const char *root_name,
                void (*done)(int result, Mirror *next, const Error *error, void *userdata),
                void *userdata, Error *reterr);

/* Starts a refresh of names: asks whether Placement has these traits and classes (copied; at
 * least one name) and stores the answers in the mirror. All classes are one request, because
 * Placement lists them only together. The callback gets no next mirror. After a failure the
 * answers that came before it stay in the mirror. mirror and session are borrowed. -ENOMEM, or
 * -EINVAL of session_send(). */
int refresh_names_new(Refresh **ret, Session *session, Mirror *mirror, const StringSet *traits,
                      const StringSet *classes,
                      void (*done)(int result, Mirror *next, const Error *error, void *userdata),
                      void *userdata, Error *reterr);

/* Returns the progress in requests; n_total 0: the list of providers or the names are being
 * read. */
void refresh_get_progress(const Refresh *refresh, Progress *ret);

/* Returns true while the refresh reads providers after its list, which then has the root under its
 * name. False before the list, and after the callback. */
bool refresh_knows_root(const Refresh *refresh);

/* Cancels the requests under way. */
Refresh *refresh_free(Refresh *refresh);
DEFINE_CLEANUP(Refresh *, refresh_free);
