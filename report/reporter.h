/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The report client: keeps Placement equal to a desired tree, with the fewest requests.
 *
 * It owns the mirror (what Placement holds for this tree, with generations), the plan (the pure
 * difference between desired and mirror) and the executor (runs the plan over HTTP). It knows no
 * driver, no claim and no retry policy over time: one attempt goes refresh → [caller edits a copy
 * of the tree] → publish, and ends in one callback. The tracker decides when to attempt again.
 *
 * Everything runs on the caller's sd-event loop; nothing blocks. At most one refresh or publish is
 * under way; a callback is never called from inside the function that took it. */

#include <systemd/sd-event.h>

#include "base/allocation.h"
#include "base/placement-options.h"
#include "base/progress.h"
#include "base/provider-tree.h"
#include "report/keystone/auth.h"
#include "report/placement/answer.h"
#include "report/placement/outcome.h"
#include "report/session/nova-mode.h"
#include "report/sharing.h"

typedef struct ReporterStatistics {
        uint64_t n_requests; /* all since start */
        uint64_t n_writes;   /* those that were not GET */
        uint64_t n_conflicts;
        uint64_t n_retries;          /* requests sent again after a 500 */
        const RequestCounts *counts; /* by route and status; NULL: none yet */
        const char
                *changes; /* what the last publication wrote, or tried to, in words; NULL: none */
        /* Since the last reporter_refresh(), the publish that followed included. */
        uint64_t last_attempt_requests, last_attempt_writes;
        uint64_t retry_after_usec; /* what a 429 or 503 of the last attempt asked for; 0: nothing */
} ReporterStatistics;

typedef struct Reporter Reporter;
typedef struct Plan Plan;
typedef struct Session Session;

/* result: 0, a ReportOutcome, or a negative errno; error has the words unless result is 0 (borrowed
 * for the call). */
typedef void (*ReporterDone)(Reporter *reporter, int result, const Error *error, void *userdata);

/* Receives each provider that Placement deleted by order of a plan. It must not call the reporter.
 */
typedef void (*ReporterDeleted)(const Uuid *provider, const char *name, void *userdata);

/* root is the uuid of the host's root provider, root_name its name; both are copied. Does not
 * connect. -EINVAL with words for a configuration that cannot work (names the option), -ENOMEM. The
 * event loop is referenced. */
int reporter_new(Reporter **ret, sd_event *event, const ReporterConfig *config, const Uuid *root,
                 const char *root_name, Error *reterr);

/* Cancels what is under way; its callback is not called. Allowed inside a callback. */
Reporter *reporter_free(Reporter *reporter);
DEFINE_CLEANUP(Reporter *, reporter_free);

/* Sets the receiver of deleted providers; NULL: none. */
void reporter_set_deleted(Reporter *reporter, ReporterDeleted deleted, void *userdata);

/* Makes the mirror true again: one GET /resource_providers?in_tree=, then reads of the providers
 * whose generation moved, and of no others; where the tree has aggregates, now and then the
 * providers that share with it (sharing.h). An unknown root leaves an empty tree: publish will
 * create it. A root that Placement has under another name is REPORT_E_REFUSED. -EBUSY when an
 * attempt is under way, -ENOMEM. */
int reporter_refresh(Reporter *reporter, ReporterDone done, void *userdata);

/* The next refresh reads everything anew, and what else was learned of the service is asked for
 * again: a provider that somebody deleted and made anew may have uuid and generation of the old
 * one, which is all that a refresh compares. For when no attempt is under way. */
void reporter_forget(Reporter *reporter);

/* The tree as the mirror has it, borrowed until the next call that starts an attempt; NULL before
 * the first refresh that succeeded. It stays as it was when a later refresh fails. */
const ProviderTree *reporter_tree(Reporter *reporter);

/* Returns the generation of a provider as the last refresh or publication knew it, -1 if it is not
 * known. Another writer's allocations of the provider raise it. */
int64_t reporter_get_generation(const Reporter *reporter, const Uuid *provider);

/* Reads who holds something of the host's own providers, as reporter_refresh() found them. classes:
 * the consumers that hold one of these are read whole, but for their type; NULL: all, and with it.
 * What was found is taken with
 * reporter_take_gathered() in the callback. ahead (NULL: none) is what is likely to be published
 * then: what can be done of it without knowing them (plan_make_groundwork()) is done meanwhile, and
 * what fails of that is left to the publication. -EBUSY, -ENODATA as below, -ENOMEM. */
int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata);

/* Reads who holds something of these providers (copied; at least one): all of them are others, see
 * below. A provider that was deleted meanwhile is REPORT_E_CONFLICT. Results as for
 * reporter_gather(). */
int reporter_read_holders(Reporter *reporter, const Uuid *providers, size_t n_providers,
                          ReporterDone done, void *userdata);

/* consumers whole, others with what they hold of the providers. The caller frees; both NULL when
 * there is nothing. */
void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others);

/* Makes Placement equal to desired, which the reporter copies. desired must contain everything of
 * reporter_tree() that is to stay. allocations NULL: no reshape; else the final picture of each
 * consumer in it, and the inventories and they go in one POST /reshaper. A plan without steps sends
 * nothing. -EBUSY as above; -ENODATA before the first refresh that succeeded, and after an attempt
 * that made the mirror forget something: refresh first. -ENOMEM. A desired tree that cannot be
 * reached (a name or parent would change) ends in the callback with -EINVAL. */
int reporter_publish(Reporter *reporter, const ProviderTree *desired,
                     const Allocations *allocations, ReporterDone done, void *userdata);

/* Learns what reporter_plan() has to know beside the tree: which traits of desired Placement has.
 * And whether the name of a root that is to be made is free. Reads only. Results as for
 * reporter_publish(). */
int reporter_prepare(Reporter *reporter, const ProviderTree *desired, ReporterDone done,
                     void *userdata);

/* The plan that reporter_publish() would run. Pure. Custom traits of which it is not known yet
 * whether Placement has them are shown as made. The caller frees with plan_free(). -ENODATA as
 * above. */
int reporter_plan(Reporter *reporter, const ProviderTree *desired, const Allocations *allocations,
                  Plan **ret, Error *reterr);

/* Returns the sharing providers of the last refresh (sharing.h). The owner of the reporter may read
 * it. Borrowed until the next call that starts an attempt. */
const Sharing *reporter_get_sharing(const Reporter *reporter);

/* Whether we may POST /reshaper; asked with the first publish, and again until it is known. Each
 * reshape shows it, too. */
ReshaperAccess reporter_get_reshaper_access(const Reporter *reporter);

/* Of the attempt under way; phase "" when there is none. */
void reporter_get_progress(const Reporter *reporter, Progress *ret);

const ReporterStatistics *reporter_get_statistics(Reporter *reporter);

/* A caller waits for the next attempt. Pauses that only spare the services are skipped
 * (report/keystone/auth.h), and sharing providers are listed again.
 */
void reporter_ask_at_once(Reporter *reporter);

/* The session that it speaks over, for report/consumers.h. Borrowed, as long as the reporter. */
Session *reporter_get_session(Reporter *reporter);
