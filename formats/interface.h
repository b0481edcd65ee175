/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names and signatures of the D-Bus interface, shared by compute-agentd and computectl. Their
 * meaning is described in systemd/org.computeagent.Agent1.xml. */

#define BUS_NAME      "org.computeagent.Agent1"
#define BUS_PATH      "/org/computeagent/Agent1"
#define BUS_INTERFACE "org.computeagent.Agent1"

/* Counts incompatible changes of the names and signatures below (the property InterfaceVersion). */
#define BUS_INTERFACE_VERSION 3

/* Describe(s document) -> s: the JSON document of that name. Each part of a long one is as of the
 * moment when it is built. The signal DocumentChanged(s document) reports that a document differs
 * from the one that was read last. It is sent again only after the document was read again. */
#define BUS_DOCUMENT_STATUS   "status"   /* STATUS_FORMAT */
#define BUS_DOCUMENT_TREE     "tree"     /* TREE_FORMAT */
#define BUS_DOCUMENT_HOST     "host"     /* SNAPSHOT_FORMAT */
#define BUS_DOCUMENT_CLAIMS   "claims"   /* CLAIMS_FORMAT: living claims */
#define BUS_DOCUMENT_HISTORY  "history"  /* CLAIMS_FORMAT: ended claims, the last first */
#define BUS_DOCUMENT_EVENTS   "events"   /* EVENTS_FORMAT: the journal, the last first */
#define BUS_DOCUMENT_PROBLEMS "problems" /* PROBLEMS_FORMAT */
#define BUS_DOCUMENT_PLAN     "plan"     /* an array: requests of the next sync */
#define BUS_DOCUMENT_AUDIT    "audit"    /* AUDIT_FORMAT: the last one */
#define BUS_DOCUMENT_RESHAPE  "reshape"  /* RESHAPE_FORMAT: the last one, shown or done */

/* Claim(s consumer, a(sa{st}asas) groups, a{sv} options)
 *   -> (x id, s json): a document of CLAIM_FORMAT, the claim as in the document "claims"
 * A group is suffix, resources, required and forbidden traits. These options describe the consumer
 * and the placing: "project" s, "user" s, "consumer-type" s, "resize-target" b, "isolate" b,
 * "same-subtree" aas (lists of suffixes), "in-tree" a{ss} (suffix, uuid of a provider), "mappings"
 * a{sas} (suffix, uuids of the providers that the scheduler chose for the group), "process" u or
 * "control-group" s. The last two identify a guest without a domain (agent/guests/process.h). These
 * options describe the layout: "numa-nodes" t, "numa-cpus" as and "numa-mem" at (of each cell),
 * "cpu-policy" s, "cpu-dedicated-mask" s, "cpu-thread-policy" s, "mem-page-size" s,
 * "pci-numa-affinity-policy" s, "numa-strategy" s. */
#define BUS_CLAIM_IN  "sa(sa{st}asas)a{sv}"
#define BUS_CLAIM_OUT "xs"

/* Confirm(x id), Release(x id, s reason), ReleaseAllocations(x id, s reason), Abort(x id, s
 * reason), Extend(x id, t expires_usec). MoveClaim(s from, s to, s consumer_type) -> x id: with the
 * type "" the agent decides. */

/* ClaimPlaced(s consumer, as classes) -> s json: a document of CLAIM_FORMAT. It is the claim of a
 * server that starts, with the devices of these resource classes that the server must attach. */

/* Calls of libvirt's hook (ctl/verbs/hook.h): PrepareGuest(s xml) -> x id, b ready; CheckGuest(s
 * consumer), GuestStarted(s consumer), GuestReleased(s consumer, s reason). If ready is false,
 * CheckGuest() fails until the partition of the guest is active. */

/* Explain(a(sa{st}asas) groups, a{sv} options) -> s: a document of EXPLAIN_FORMAT. */

/* Sync() -> s, SyncFull() -> s: runs a cycle and replies at its end. SyncFull() reads everything
 * from Placement again. The reply is "" after a success, also if this host must publish nothing,
 * else the reason. Reload(): reads the configuration again and replies when it is in force, or with
 * an error. Cancel(s operation): ends the running operations of that name before their time. */

/* GetReshape() -> s, Reshape() -> s, UndoReshape() -> s: the amounts that would move, were moved,
 * or were moved back, as a document (agent/reshape/image.h). The reply is "" if nothing moves. It
 * is sent at the end, or is an error if the reshape is impossible. */

/* GetRetire() -> s, Retire() -> s: a document with the providers that would be removed or were
 * removed from Placement, or with the guests that prevent it. UndoRetire() -> s: replies as Sync
 * does. */

/* Audit() -> s, Heal() -> s, HealConsumer(s consumer) -> s: the differences between Placement,
 * claims and guests, and the result of each repair, as a document (agent/audit/auditor.h). The
 * reply is an error if the state could not be read. */

/* Cordon(s device, s reason) -> s, Uncordon(s device) -> s: "" for the host, else a device by the
 * name of its provider, libvirt's name or its PCI address. They reply as Sync does. */

/* Properties: agent/bus/bus.c lists them, and the XML describes them. */

#define RESHAPE_ACCESS_UNKNOWN "unknown" /* no reshape was sent yet */
#define RESHAPE_ACCESS_ALLOWED "allowed"
#define RESHAPE_ACCESS_REFUSED "refused" /* the user of [placement] lacks the role service */

/* State: "computectl status" derives its exit code from it. */
#define STATE_OK       "ok"
#define STATE_PENDING  "pending"
#define STATE_WARNING  "warning"
#define STATE_DEGRADED "degraded"

#define SYNC_STATE_STANDALONE "standalone" /* no [placement] section */
#define SYNC_STATE_SYNCED     "synced"     /* Placement equals the host */
#define SYNC_STATE_PENDING    "pending"    /* the tree is not published, in part or as a whole */
#define SYNC_STATE_STALE      "stale"      /* part of the tree was rejected; see sync_error */
#define SYNC_STATE_OFFLINE    "offline"    /* Placement cannot be used */
#define SYNC_STATE_RETIRED    "retired"    /* the host was removed from Placement */
#define SYNC_STATE_LEFT_TO_NOVA \
        "left-to-nova" /* nova-compute reports this host; see n_differences */

/* Error names. The message of the error has the words. */
#define BUS_ERROR_INVALID       BUS_NAME ".Error.Invalid"
#define BUS_ERROR_NO_CAPACITY   BUS_NAME ".Error.NoCapacity"
#define BUS_ERROR_UNKNOWN_CLASS BUS_NAME ".Error.UnknownClass"
#define BUS_ERROR_TOO_HARD                                                    \
        BUS_NAME ".Error.TooHard" /* the fit was not decided within the bound \
                                   */
#define BUS_ERROR_CONFLICT  BUS_NAME ".Error.Conflict"
#define BUS_ERROR_NOT_FOUND BUS_NAME ".Error.NotFound"
#define BUS_ERROR_BUSY      BUS_NAME ".Error.Busy"
#define BUS_ERROR_OTHER     BUS_NAME ".Error.Mismatch" /* the request differs from what was placed */
#define BUS_ERROR_NOT_PLACED \
        BUS_NAME ".Error.NotPlaced" /* no scheduler placed it, and claim_mode is verify */
#define BUS_ERROR_REFUSED BUS_NAME ".Error.Refused" /* only nova-compute does this */
#define BUS_ERROR_PLACEMENT \
        BUS_NAME ".Error.Placement" /* Placement cannot be reached, or rejects the agent */
#define BUS_ERROR_UNAVAILABLE \
        BUS_NAME ".Error.Unavailable" /* a device is missing, replaced or withheld */
#define BUS_ERROR_STORE     BUS_NAME ".Error.StoreUnavailable" /* the claim database cannot be used */
#define BUS_ERROR_RESHAPE   BUS_NAME ".Error.Reshape"          /* the tree keeps its shape */
#define BUS_ERROR_CANCELLED BUS_NAME ".Error.Cancelled"
#define BUS_ERROR_NOT_READY BUS_NAME ".Error.NotReady" /* the host was not polled yet */
