/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names and signatures of the D-Bus interface, shared by compute-agentd and computectl. What they
 * mean is written in systemd/org.computeagent.Agent1.xml. */

#define BUS_NAME      "org.computeagent.Agent1"
#define BUS_PATH      "/org/computeagent/Agent1"
#define BUS_INTERFACE "org.computeagent.Agent1"

/* Of what is below: counts what was changed or taken away (the property InterfaceVersion). */
#define BUS_INTERFACE_VERSION 3

/* Describe(s document) -> s: the JSON document of that name, as it is now. Signal
 * DocumentChanged(s document): it is another one than somebody read; not sent again until somebody
 * reads it. */
#define BUS_DOCUMENT_STATUS   "status"   /* STATUS_FORMAT */
#define BUS_DOCUMENT_TREE     "tree"     /* TREE_FORMAT */
#define BUS_DOCUMENT_HOST     "host"     /* SNAPSHOT_FORMAT */
#define BUS_DOCUMENT_CLAIMS   "claims"   /* CLAIMS_FORMAT: those that live */
#define BUS_DOCUMENT_HISTORY  "history"  /* CLAIMS_FORMAT: those that ended, the last first */
#define BUS_DOCUMENT_EVENTS   "events"   /* EVENTS_FORMAT: what happened, the last first */
#define BUS_DOCUMENT_PROBLEMS "problems" /* PROBLEMS_FORMAT */
#define BUS_DOCUMENT_PLAN     "plan"     /* an array: what the next sync would send */
#define BUS_DOCUMENT_AUDIT    "audit"    /* AUDIT_FORMAT: the last one */
#define BUS_DOCUMENT_RESHAPE  "reshape"  /* RESHAPE_FORMAT: the last one that was shown or done */

/* Claim(s consumer, a(sa{st}asas) groups, a{sv} options)
 *   -> (x id, s json): a document of CLAIM_FORMAT, the claim as in the document "claims"
 * A group is suffix, resources, required and forbidden traits. Options: "project" s, "user" s,
 * "consumer-type" s, "resize-target" b, "isolate" b, "same-subtree" aas (lists of suffixes),
 * "in-tree" a{ss} (suffix, uuid of a provider), "mappings" a{sas} (suffix, uuids of the providers
 * that whoever placed it gave the group), "process" u or "control-group" s, by which its guest is
 * known (agent/guests/life.h); and the layout: "numa-nodes" t, "numa-cpus" as and
 * "numa-mem" at (of each cell), "cpu-policy" s, "cpu-dedicated-mask" s, "cpu-thread-policy" s,
 * "mem-page-size" s, "pci-numa-affinity-policy" s, "numa-strategy" s. */
#define BUS_CLAIM_IN  "sa(sa{st}asas)a{sv}"
#define BUS_CLAIM_OUT "xs"

/* Confirm(x id), Release(x id, s reason), ReleaseAllocations(x id, s reason), Abort(x id, s
 * reason), Extend(x id, t expires_usec). MoveClaim(s from, s to, s consumer_type) -> x id: "" for
 * the type leaves it to the agent. */

/* What libvirt's hook asks (ctl/verbs/hook.h): PrepareGuest(s xml) -> x id,
 * GuestStarted(s consumer), GuestReleased(s consumer, s reason) */

/* Explain(a(sa{st}asas) groups, a{sv} options) -> s: a document of EXPLAIN_FORMAT. */

/* Sync() -> s, SyncFull() -> s: runs a cycle, the latter with everything read anew from Placement,
 * and answers when it ended; "" when all was published, else why not. Reload(): reads the
 * configuration again and answers when it is in force, or with an error. Cancel(s operation): ends
 * those of a method that takes its time, by its name, before their time. */

/* GetReshape() -> s, Reshape() -> s, UndoReshape() -> s: what would move, moved, or moved back, as
 * a document (agent/reshape/image.h); "" when nothing does. They answer when it is done, or with an
 * error when it cannot be. */

/* GetRetire() -> s, Retire() -> s: what would go from Placement, went, or who is in the way, as a
 * document; UndoRetire() -> s: answers as Sync does. */

/* Audit() -> s, Heal() -> s, HealConsumer(s consumer) -> s: what Placement, claims and guests
 * disagree about, and what became of it, as a document (agent/audit/auditor.h); an error when it
 * could not be looked at. */

/* Cordon(s device, s reason) -> s, Uncordon(s device) -> s: "" for the host, else a device as its
 * provider, libvirt or its PCI address name it. They answer as Sync does. */

/* Properties: agent/bus/status.h lists them, and the XML describes them. */

#define RESHAPE_ACCESS_UNKNOWN "unknown" /* Placement was not asked yet */
#define RESHAPE_ACCESS_ALLOWED "allowed"
#define RESHAPE_ACCESS_REFUSED "refused" /* the user of [placement] lacks the role service */

/* State: what the exit code of "computectl status" goes by. */
#define STATE_OK       "ok"
#define STATE_PENDING  "pending"
#define STATE_WARNING  "warning"
#define STATE_DEGRADED "degraded"

#define SYNC_STATE_STANDALONE "standalone" /* no [placement] section */
#define SYNC_STATE_SYNCED     "synced"     /* Placement is equal to the host */
#define SYNC_STATE_PENDING    "pending" /* a change is on its way, or nothing was published yet */
#define SYNC_STATE_STALE      "stale"   /* part of the tree was refused; see sync_error */
#define SYNC_STATE_OFFLINE    "offline" /* Placement cannot be used */
#define SYNC_STATE_RETIRED    "retired" /* it was taken out of Placement */
#define SYNC_STATE_LEFT       "left-to-nova" /* nova-compute reports this host; see n_differences */

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
