/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Compares claims and guests: the results of polls, Placement's allocations of the consumers, and
 * the time when a comparison is due. claims/reconcile.h decides, agent/guests/reconcile.h acts.
 * Main thread; blocks on the disk of the claim database, and reads /proc and cgroup v2
 * (agent/guests/process.h). */

#include "agent/guests/process.h"
#include "agent/guests/reconcile.h"
#include "report/reporter.h"

/* Sets the result of a poll, as the facts about devices and guests, and makes a comparison due. If
 * memory is short, logs it, and the facts of the last poll stay. Does nothing for the present
 * snapshot, unless the settings or the withheld members of sets changed. Keeps a reference. known
 * is copied without its holdings; NULL: that of the last call. */
void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot,
                                const DeviceFacts *known);

/* Sets the guests of a newer poll, before a cycle takes all of it. Devices and cells remain those
 * that the tree of providers was made of. No comparison becomes due. Keeps a reference. Does
 * nothing before the first claim_service_set_snapshot(). */
void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot);

/* Returns true if the last poll found a guest of the consumer on this host that has no claim and
 * will get one. A guest that is off does not count if another host has it, or with the setting
 * started_only. Returns false if the claims cannot be read, or if the driver does not know the
 * guests. */
bool claim_service_has_guest(ClaimService *service, const Uuid *consumer);

/* Returns true if the claim can have a guest that is no domain of the last poll: the process that
 * it names is alive, or it names none and the driver does not know the guests. */
static inline bool claim_service_can_have_other(const ClaimService *service, const Claim *claim)
{
        const Snapshot *snapshot = service->comparison.snapshot;

        return claim->process[0] ? process_is_alive(claim->process)
                                 : snapshot && snapshot->guests_unknown;
}

/* Records that the guest stopped, even if the last poll shows it running. The next poll replaces
 * this. */
void claim_service_note_stopped(ClaimService *service, const Uuid *guest);

/* Sets the guests that other hosts have now, by Placement's data: see claims/reconcile.h. A poll
 * that shows a guest running, or not at all, removes it from the list. Takes the array. */
void claim_service_set_away(ClaimService *service, Uuid *guests, size_t n_guests);

/* A comparison of claims and guests, which repairs differences (claims/reconcile.h). It runs once
 * per snapshot, when the host's tree is stored in the database. It runs again after a request, a
 * failure, or a change of the settings, and after the database was opened again. If the clock of
 * the host jumped, it first moves the expiry times of claims. Claims end by the rules of
 * claims/reconcile.h. On a host without Placement, each unconfirmed claim that expired before the
 * begin of the poll also ends. The guests of a recorded host are not here, so only claims end that
 * expired, or that identify their guest themselves. It takes as many turns of the main loop as
 * necessary, and D-Bus calls are served in between. One comparison of a service runs at a time. */
typedef struct ComparisonRun ComparisonRun;

/* Compares with answers of Placement. If a claim follows another writer, first reads the
 * allocations from the root and from the providers with VCPU, PCPU or MEMORY_MB. That is one
 * request for each provider, and only if the generations of these providers changed, or the last
 * read could not be used. Then it compares, and acts at once on the differences that need no
 * answer. If claims/reconcile.h needs answers, it reads these consumers in parallel, or all of this
 * host, and compares again. If a read fails, it compares again without answers. A cycle without a
 * change and without a question that is due sends no request.
 *
 * Returns 1 if a turn or a request follows; done is called at its end. Returns 0 if no comparison
 * is due, if it has ended already, or if memory is short. Then done is not called, and *ret is
 * unchanged. A failure of the database is an error of the service, and makes the comparison due
 * again. The root is that of the host. Everything is borrowed until the end of the run, and event
 * is referenced. The reporter must have a tree, and no attempt on its way. */
int comparison_run_begin(ComparisonRun **ret, ClaimService *service, sd_event *event,
                         Reporter *reporter, const Uuid *root, void (*done)(void *userdata),
                         void *userdata);

/* Compares without reading Placement. With RECONCILE_CAN_READ, differences that need answers are
 * left to a comparison that reads (ClaimComparison.wants_answers). The first turn begins after a
 * short pause, in which D-Bus calls that have arrived are served. Results are those of
 * comparison_run_begin(). */
int comparison_run_begin_alone(ComparisonRun **ret, ClaimService *service, sd_event *event,
                               ReconcileAccess access, void (*done)(void *userdata),
                               void *userdata);

/* Cancels the requests on their way; done is not called. A comparison that has not ended is due
 * again. While all consumers are read, the caller must also free the reporter before the event loop
 * continues. */
ComparisonRun *comparison_run_free(ComparisonRun *run);
DEFINE_CLEANUP(ComparisonRun *, comparison_run_free);

/* Records that the tree was published. If the last comparison with answers found no provider of
 * this host in Placement, Placement has no consumer of this host either. A new database then needs
 * no complete read. */
void claim_service_note_published(ClaimService *service);

/* Takes over a stamp (ClaimComparison.held_stamp) of the last process. The allocations of the
 * host's providers are then read only if their generations differ from it. */
void claim_service_restore_held(ClaimService *service, uint64_t stamp);

/* Requests that the comparison of the next poll that begins after this call reads all claims
 * without a guest from Placement, to free capacity. */
void claim_service_ask_all(ClaimService *service);

/* Makes a comparison due, also without a new poll. Does nothing before the first poll. The next
 * comparison_run_begin() or comparison_run_begin_alone() runs it. */
void claim_service_look_again(ClaimService *service);
