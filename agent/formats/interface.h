/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names and signatures of the D-Bus interface, shared by compute-agentd and computectl. What they
 * mean is written in systemd/org.computeagent.Agent1.xml. */

#define BUS_NAME      "org.computeagent.Agent1"
#define BUS_PATH      "/org/computeagent/Agent1"
#define BUS_INTERFACE "org.computeagent.Agent1"

/* Objects below BUS_PATH, told by its ObjectManager: provider/…, device/…, claim/…, operation/… */
#define BUS_INTERFACE_OPERATION BUS_INTERFACE ".Operation"
#define BUS_INTERFACE_PROVIDER  BUS_INTERFACE ".Provider"
#define BUS_INTERFACE_DEVICE    BUS_INTERFACE ".Device"
#define BUS_INTERFACE_CLAIM     BUS_INTERFACE ".Claim"

/* total, reserved, min_unit, max_unit, step_size, allocation_ratio, capacity */
#define BUS_INVENTORY "(tttttdt)"

/* Claim(s consumer, a(sa{st}asas) groups, a{sv} options)
 *   -> (x id, a(ssa{st}) allocations, a(ssssssbb) devices, a(uutts) cells, a(ubs) cpus,
 *       a{sas} mappings)
 * A group is suffix, resources, required and forbidden traits. Options: "project" s, "user" s,
 * "consumer-type" s, "resize-target" b, "isolate" b, "same-subtree" aas (lists of suffixes),
 * "in-tree" a{ss} (suffix, uuid of a provider), "mappings" a{sas} (suffix, uuids of the providers
 * that whoever placed it gave the group); and the layout: "numa-nodes" t, "numa-cpus" as and
 * "numa-mem" at (of each cell), "cpu-policy" s, "cpu-dedicated-mask" s, "cpu-thread-policy" s,
 * "mem-page-size" s, "pci-numa-affinity-policy" s, "numa-strategy" s. An allocation is provider
 * uuid, provider name, resources. A device is provider uuid, suffix of the group, name of the
 * device, its PCI address, mdev type, mdev uuid (both "": the whole device), whether it exists, and
 * whether libvirt is to take a whole device from its driver (managed of <hostdev>). A cell is its
 * number in the guest, the host's cell, MiB, page size in KiB (0: small), guest CPUs; a CPU is its
 * number in the guest, whether it is dedicated, host CPUs. A mapping is the suffix of a group and
 * the uuids of its providers. */
#define BUS_CLAIM_IN   "sa(sa{st}asas)a{sv}"
#define BUS_ALLOCATION "(ssa{st})"
#define BUS_DEVICE     "(ssssssbb)"
#define BUS_CELL       "(uutts)"
#define BUS_CPU        "(ubs)"
#define BUS_LAYOUT     "a" BUS_CELL "a" BUS_CPU
#define BUS_MAPPINGS   "a{sas}"
#define BUS_HOLDINGS   "a" BUS_ALLOCATION "a" BUS_DEVICE
#define BUS_CLAIM_OUT  "x" BUS_HOLDINGS BUS_LAYOUT BUS_MAPPINGS

/* Confirm(x id), Release(x id, s reason), ReleaseAllocations(x id, s reason), Abort(x id, s
 * reason), Extend(x id, t expires_usec). MoveClaim(s from, s to, s consumer_type) -> x id: "" for
 * the type leaves it to the agent. */

/* What libvirt's hook asks (agent/ctl/verbs/hook.h): PrepareGuest(s xml) -> x id,
 * GuestStarted(s consumer), GuestReleased(s consumer, s reason) */

/* ListClaims(b history) -> a(claim): id, consumer, state, resize_target, project, user, created,
 * expires and ended in microseconds of CLOCK_REALTIME (0: never, not yet), end reason, allocations,
 * devices, boot id, consumer type, cells, cpus, mappings.
 * GetClaim(x id) -> claim
 * FindClaims(s what) -> a(claim): of a consumer, or that have a device (name, PCI address, mdev),
 * or use a host CPU or cell ("cpu:5", "cell:1"). ListProblems() -> a(sxs): consumer, claim (0:
 * none), words: what disagrees. Explain(a(sa{st}asas) groups, a{sv} options) -> s: a JSON document.
 * Signals ClaimAdded, ClaimChanged (x id, s consumer, s state), ClaimRemoved (…, s reason). */
#define BUS_CLAIM_FIELDS "xssbssttts" BUS_HOLDINGS "ss" BUS_LAYOUT BUS_MAPPINGS
#define BUS_CLAIM        "(" BUS_CLAIM_FIELDS ")"
#define BUS_PROBLEM      "(sxs)"

/* GetTree() -> s, GetPlan() -> s, Discover() -> s: JSON documents (computectl(1), "JSON").
 * Sync() -> s, SyncFull() -> s: runs a cycle, the latter with everything read anew from Placement,
 * and answers when it ended; "" when all was published, else why not. Reload(): reads the
 * configuration again and answers when it is in force, or with an error. */

/* GetReshape() -> s, Reshape() -> s, UndoReshape() -> s: what would move, moved, or moved back, as
 * a document (agent/reshape/image.h); "" when nothing does. They answer when it is done, or with an
 * error when it cannot be. */

/* Audit() -> s, Heal() -> s: what Placement, claims and guests disagree about, and what became of
 * it, as a document (agent/audit/audit-json.h); an error when it could not be looked at. */

/* Cordon(s device, s reason) -> s, Uncordon(s device) -> s: "" for the host, else a device as its
 * provider, libvirt or its PCI address name it. They answer as Sync does. */

/* Properties, all with change signals: Version s, NodeName s, RootProvider s, Driver s, Hook s
 * ("", "allow" or "deny": whether guests claim when libvirt starts them, and what becomes of them
 * while nobody answers), SyncState s, SyncStateSinceUSec t, SyncError s, LastSyncUSec t,
 * LastPollUSec t, HypervisorError s, NProviders u, NClaims u, NRequests t, NWrites t, NConflicts t,
 * Nova s (NOVA_… of [agent] nova), TreePublished b (since the start, or a reload, the tree was once
 * as this agent, whose it is, wants it), NDifferences u (requests that would make it so where it is
 * not the agent's), SecondReporter s (what somebody else undoes in the tree, ""), HostCordoned s,
 * DevicesCordoned s (who, when and why; "": in use), DevicesWithheld s (which, and why), HostUnread
 * s (what of the host could not be read, "": all was), ClaimError s (why claims cannot be taken, ""
 * when they can), ReshapeAccess s, NOwedWrites u, NOwedRemovals u, NOwedMoves u (what Placement is
 * still to be told of claims), OwedError s (why it was not), StatusText s */

#define RESHAPE_ACCESS_UNKNOWN "unknown" /* Placement was not asked yet */
#define RESHAPE_ACCESS_ALLOWED "allowed"
#define RESHAPE_ACCESS_REFUSED "refused" /* the user of [placement] lacks the role service */

/* State of an operation */
#define OPERATION_STATE_RUNNING   "running"
#define OPERATION_STATE_DONE      "done"
#define OPERATION_STATE_FAILED    "failed"
#define OPERATION_STATE_CANCELLED "cancelled"

#define SYNC_STATE_STANDALONE "standalone" /* no [placement] section */
#define SYNC_STATE_SYNCED     "synced"     /* Placement is equal to the host */
#define SYNC_STATE_PENDING    "pending" /* a change is on its way, or nothing was published yet */
#define SYNC_STATE_STALE      "stale"   /* part of the tree was refused; see SyncError */
#define SYNC_STATE_OFFLINE    "offline" /* Placement cannot be used */
#define SYNC_STATE_LEFT       "left-to-nova" /* nova-compute tells of this host; see NDifferences */

/* Error names; the message has the words. */
#define BUS_ERROR_INVALID       BUS_NAME ".Error.Invalid"
#define BUS_ERROR_NO_CAPACITY   BUS_NAME ".Error.NoCapacity"
#define BUS_ERROR_UNKNOWN_CLASS BUS_NAME ".Error.UnknownClass"
#define BUS_ERROR_TOO_HARD      BUS_NAME ".Error.TooHard" /* not decided within the bound */
#define BUS_ERROR_CONFLICT      BUS_NAME ".Error.Conflict"
#define BUS_ERROR_NOT_FOUND     BUS_NAME ".Error.NotFound"
#define BUS_ERROR_BUSY          BUS_NAME ".Error.Busy"
#define BUS_ERROR_OTHER         BUS_NAME ".Error.Mismatch" /* what was placed is not what is asked for */
#define BUS_ERROR_NOT_PLACED \
        BUS_NAME ".Error.NotPlaced"                 /* nobody placed it, and claim_mode is verify */
#define BUS_ERROR_REFUSED BUS_NAME ".Error.Refused" /* it is nova-compute's to do */
#define BUS_ERROR_PLACEMENT \
        BUS_NAME ".Error.Placement" /* Placement is away, or refuses the agent */
#define BUS_ERROR_STORE     BUS_NAME ".Error.StoreUnavailable" /* the claim database cannot be used */
#define BUS_ERROR_RESHAPE   BUS_NAME ".Error.Reshape"          /* the tree keeps its shape */
#define BUS_ERROR_CANCELLED BUS_NAME ".Error.Cancelled"
#define BUS_ERROR_NOT_READY BUS_NAME ".Error.NotReady" /* the host was not polled yet */
