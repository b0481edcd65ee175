/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The report client: makes Placement equal to a desired tree, and writes only parts that differ.
 *
 * It owns the mirror (the content of Placement for this tree, with generations), the plan (the pure
 * difference between desired tree and mirror) and the executor (runs the plan over HTTP). It knows
 * no driver and no claim, and does not retry over time. The tracker calls refresh, edits a copy of
 * the tree, and calls publish. Each refresh, gathering, preparation and publish is an attempt,
 * which ends in one callback. The tracker decides when the next one starts.
 *
 * Everything runs on the caller's sd-event loop, and nothing blocks. At most one attempt is under
 * way. A callback never runs from inside the function that received it. */

#include <jansson.h>
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
        uint64_t n_requests; /* since reporter_new() */
        uint64_t n_writes;   /* requests other than GET */
        uint64_t n_conflicts;
        uint64_t n_retries;          /* steps that were scheduled again after a 500 */
        const RequestCounts *counts; /* by route and status; NULL: none */
        uint64_t n_plan_writes;      /* the writes of plans among n_writes, with repetitions */
        const char *changes; /* description of the last plan that was run, failed steps included;
                                NULL: none */
        /* Since the last reporter_refresh(), with the publish that followed. */
        uint64_t last_attempt_requests, last_attempt_writes;
        uint64_t retry_after_usec; /* longest wait that a 429 or 503 of the last attempt asked for;
                                    * 0: none */
        ReshaperAccess reshaper;   /* whether the agent can POST /reshaper: by the last clear answer
                                    * to a reshape, which can be a batch of inventories, or by the
                                    * saved knowledge of an earlier process */
        bool is_restored;          /* the first refresh that succeeded confirmed the knowledge of
                                    * reporter_restore() */
} ReporterStatistics;

typedef struct Reporter Reporter;
typedef struct Plan Plan;
typedef struct Session Session;

/* Receives the end of an attempt. result is 0, a ReportOutcome, or a negative errno; error
 * (borrowed for the call) has words unless result is 0. */
typedef void (*ReporterDone)(Reporter *reporter, int result, const Error *error, void *userdata);

/* Makes a reporter, without a connection. The root is given by the uuid and the name of the host's
 * root provider; both are copied. The configuration is borrowed, and the event loop is referenced.
 * The callback deleted (NULL: none) receives each provider that Placement deleted because a plan
 * asked for it, or that was gone already then. It must not call the reporter. Returns -EINVAL with
 * words (the name of the option) for an unusable configuration, -ENOMEM, or an errno of
 * sd-event. */
int reporter_new(Reporter **ret, sd_event *event, const ReporterConfig *config, const Uuid *root,
                 const char *root_name, void (*deleted)(const Uuid *provider, const char *name),
                 Error *reterr);

/* Cancels the attempt under way without its callback. Allowed inside a callback. */
Reporter *reporter_free(Reporter *reporter);
DEFINE_CLEANUP(Reporter *, reporter_free);

/* Updates the mirror: one GET /resource_providers?in_tree=, then reads of the providers that are
 * new, changed or forgotten (refresh.h). The refresh also reads the sharing providers of the tree's
 * aggregates, and the usage of DISK_GB, when they are due (sharing.h). A failure of the reads about
 * sharing providers and usage does not fail the refresh. An unknown root leaves an empty tree, and
 * publish will create it. REPORT_E_REFUSED if Placement has the root under another name. -EBUSY
 * while an attempt is under way, -ENOMEM, or -EINVAL of session_send(). */
int reporter_refresh(Reporter *reporter, ReporterDone done, void *userdata);

/* Returns the knowledge about Placement for reporter_restore() of a later process, as a new
 * reference. NULL when out of memory, or if the mirror must not be kept: it was never read, has
 * stale providers or no root, differs from the last list, is being written, or the list had no
 * last-modified. */
json_t *reporter_save(const Reporter *reporter);

/* Begins with the knowledge of an earlier process. reporter_tree() returns it only after the next
 * refresh. That refresh uses the mirror if the list of Placement has the same providers,
 * generations and last-modified; otherwise it reads everything. Call it before the first attempt.
 * The caller ensures that json is of this root. Returns -EBADMSG with words for another form, or
 * -ENOMEM; nothing is changed then. */
int reporter_restore(Reporter *reporter, const json_t *json, Error *reterr);

/* Makes the next refresh read everything again, and forgets the other knowledge about the service.
 * A provider that was deleted and created again can have the old uuid and generation, and a refresh
 * notices that only by last-modified, in whole seconds. No attempt must be under way. */
void reporter_forget(Reporter *reporter);

/* Returns the tree of the mirror, borrowed until the next call that starts an attempt; NULL before
 * the first refresh that succeeded. A later refresh that fails leaves it unchanged. */
const ProviderTree *reporter_tree(Reporter *reporter);

/* Returns true if a refresh has succeeded, and the mirror has not forgotten a provider or the list
 * since. A publish forgets the providers that it wrote without an answer or in conflict with
 * another writer; the mirror then has the state before it. */
bool reporter_is_current(const Reporter *reporter);

/* Returns the generation of a provider at the last refresh or publication, -1 if it is unknown.
 * Allocations that another writer makes on the provider raise the generation in Placement. */
int64_t reporter_get_generation(const Reporter *reporter, const Uuid *provider);

/* Reads the consumers with allocations of the host's own providers, as reporter_refresh() found
 * them. Without ahead, a provider that was created since then is not read. With classes, consumers
 * with an allocation of one of these classes are read completely but without their type. With NULL,
 * all consumers are read, with their type if the service has it. The callback takes the result with
 * reporter_take_gathered().
 *
 * ahead (NULL: none) is the tree that the caller will probably publish next; it is sealed and
 * referenced. The steps that need no consumers (plan_make_groundwork()) run at the same time,
 * and the publication repeats those that fail. Only a failure that would meet every request ends
 * the gathering because of them. -EBUSY and -ENODATA as for reporter_publish(), -ENODATA also
 * for an empty tree, -ENOMEM. */
int reporter_gather(Reporter *reporter, const StringSet *classes, const ProviderTree *ahead,
                    ReporterDone done, void *userdata);

/* Reads the consumers with allocations of these providers (copied; at least one).
 * reporter_take_gathered() returns all of them as others. REPORT_E_CONFLICT if a provider was
 * deleted. Other results are those of reporter_gather(). */
int reporter_read_holders(Reporter *reporter, const Uuid *providers, size_t n_providers,
                          ReporterDone done, void *userdata);

/* Returns the result of a gathering, which the caller frees: consumers with all their allocations,
 * and others with their allocations of the providers. Both are NULL if there is no result. */
void reporter_take_gathered(Reporter *reporter, Allocations **ret_consumers,
                            Allocations **ret_others);

/* Makes Placement equal to desired, which is sealed and referenced. desired must contain every part
 * of reporter_tree() that has to stay. Without allocations (NULL or an empty set) no allocation is
 * moved. Otherwise they are the final allocations of each consumer in the set, and one POST
 * /reshaper sends them together with the inventories. A plan without steps sends nothing, besides
 * look-ups of names.
 *
 * -EBUSY while an attempt is under way. -ENODATA before the first refresh that succeeded, and after
 * an attempt that made the mirror forget a provider: refresh first. -ENOMEM. The callback gets
 * -EINVAL for a change that no plan can make (plan_make()), such as another name of a provider. */
int reporter_publish(Reporter *reporter, const ProviderTree *desired,
                     const Allocations *allocations, ReporterDone done, void *userdata);

/* Reads the facts that reporter_plan() needs besides the tree: whether Placement has the traits and
 * classes of desired, and, with [agent] nova = none, whether the name of a new root is free.
 * Results are those of reporter_publish(). */
int reporter_prepare(Reporter *reporter, const ProviderTree *desired, ReporterDone done,
                     void *userdata);

/* Returns the plan that reporter_publish() would run; the caller frees it with plan_free(). Pure. A
 * custom trait or class is shown as created if it is not known whether Placement has it. -ENODATA
 * with words as for reporter_publish(), or the errors of plan_make(). */
int reporter_plan(Reporter *reporter, const ProviderTree *desired, const Allocations *allocations,
                  Plan **ret, Error *reterr);

/* Returns the sharing providers of the last refresh (sharing.h), borrowed until the next call that
 * starts an attempt. Only the owner of the reporter can read it. */
const Sharing *reporter_get_sharing(const Reporter *reporter);

/* Returns the progress of the attempt under way, in requests or steps; phase "": there is none. */
void reporter_get_progress(const Reporter *reporter, Progress *ret);

const ReporterStatistics *reporter_get_statistics(Reporter *reporter);

/* Notes that a caller waits for the next attempt. Pauses that only spare the services are skipped
 * (report/keystone/auth.h), and sharing providers are listed again. */
void reporter_ask_at_once(Reporter *reporter);

/* Returns true if the last accepted or refused list from Placement had the root under its name, or
 * was empty. False before the first list. While this is false, the root can be another host's,
 * whose state folder was copied, so no allocation of the root's tree must be written. */
bool reporter_knows_root(const Reporter *reporter);

/* Returns the session of the reporter for report/consumers.h. Borrowed, valid as long as the
 * reporter. */
Session *reporter_get_session(Reporter *reporter);
