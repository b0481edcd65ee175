/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names and signatures of the D-Bus interface, shared by compute-agentd and computectl. What they
 * mean is written in systemd/org.computeagent.Agent1.xml. */

#define BUS_NAME      "org.computeagent.Agent1"
#define BUS_PATH      "/org/computeagent/Agent1"
#define BUS_INTERFACE "org.computeagent.Agent1"

/* Claim(s consumer, a(sa{st}asas) groups, a{sv} options)
 *   -> (x id, a(ssa{st}) allocations, a(ssssssb) devices)
 * A group is suffix, resources, required and forbidden traits. Options: "project" s, "user" s,
 * "resize-target" b, "isolate" b. An allocation is provider uuid, provider name, resources. A
 * device is provider uuid, suffix of the group, name of the device, its PCI address, mdev type,
 * mdev uuid, whether the mdev exists. */
#define BUS_CLAIM_IN   "sa(sa{st}asas)a{sv}"
#define BUS_ALLOCATION "(ssa{st})"
#define BUS_DEVICE     "(ssssssb)"
#define BUS_CLAIM_OUT  "xa" BUS_ALLOCATION "a" BUS_DEVICE

/* Confirm(x id), Release(x id, s reason), Abort(x id, s reason), Extend(x id, t expires_usec) */

/* ListClaims(b history) -> a(claim): id, consumer, state, resize_target, project, user, created,
 * expires and ended in microseconds of CLOCK_REALTIME (0: never, not yet), end reason, allocations,
 * devices, boot id.
 * GetClaim(x id) -> claim
 * FindClaims(s what) -> a(claim): of a consumer, or that have a device (name, PCI address, mdev).
 * ListProblems() -> a(sxs): consumer, claim (0: none), words: what disagrees.
 * Explain(a(sa{st}asas) groups, a{sv} options) -> s: a JSON document.
 * Signals ClaimAdded, ClaimChanged (x id, s consumer, s state), ClaimRemoved (…, s reason). */
#define BUS_CLAIM_FIELDS "xssbsstttsa" BUS_ALLOCATION "a" BUS_DEVICE "s"
#define BUS_CLAIM        "(" BUS_CLAIM_FIELDS ")"
#define BUS_PROBLEM      "(sxs)"
#define EXPLAIN_FORMAT   "compute-agent-explain/1"

/* GetTree() -> s, GetPlan() -> s, Discover() -> s: JSON documents (computectl(1), "JSON").
 * Sync() -> s: runs a cycle and answers when it ended; "" when all was published, else why not.
 * Reload(): reads the configuration again and answers when it is in force, or with an error. */

/* Properties, all with change signals: Version s, NodeName s, RootProvider s, Driver s, SyncState
 * s, SyncStateSinceUSec t, SyncError s, LastSyncUSec t, LastPollUSec t, HypervisorError s,
 * NProviders u, NClaims u, NRequests t, NWrites t, NConflicts t, ClaimError s (why claims cannot be
 * taken, "" when they can), StatusText s */

#define SYNC_STATE_STANDALONE "standalone" /* no [placement] section */
#define SYNC_STATE_SYNCED     "synced"     /* Placement is equal to the host */
#define SYNC_STATE_PENDING    "pending" /* a change is on its way, or nothing was published yet */
#define SYNC_STATE_STALE      "stale"   /* part of the tree was refused; see SyncError */
#define SYNC_STATE_OFFLINE    "offline" /* Placement cannot be used */

/* Error names; the message has the words. */
#define BUS_ERROR_INVALID       BUS_NAME ".Error.Invalid"
#define BUS_ERROR_NO_CAPACITY   BUS_NAME ".Error.NoCapacity"
#define BUS_ERROR_UNKNOWN_CLASS BUS_NAME ".Error.UnknownClass"
#define BUS_ERROR_CONFLICT      BUS_NAME ".Error.Conflict"
#define BUS_ERROR_NOT_FOUND     BUS_NAME ".Error.NotFound"
#define BUS_ERROR_BUSY          BUS_NAME ".Error.Busy"
#define BUS_ERROR_STORE         BUS_NAME ".Error.StoreUnavailable" /* the claim database cannot be used */
#define BUS_ERROR_NOT_READY     BUS_NAME ".Error.NotReady"         /* the host was not polled yet */
