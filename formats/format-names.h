/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The "format" members of the JSON documents that programs of this project exchange. Each name has
 * its version. The members of a document are described in the file that makes it, or here. */

#define AUDIT_FORMAT   "compute-agent-audit/1"   /* agent/audit/auditor.h */
#define CLAIM_FORMAT   "compute-agent-claim/1"   /* claim-json.h, with "format" */
#define CLAIMS_FORMAT  "compute-agent-claims/1"  /* {"format", "claims": [claim-json.h]} */
#define EVENTS_FORMAT  "compute-agent-events/1"  /* {"format", "events": [claim-json.h]} */
#define EXPLAIN_FORMAT "compute-agent-explain/1" /* agent/bus/claims.c */
#define STATUS_FORMAT  "compute-agent-status/1"  /* agent/bus/documents.c; see print/status.h */
#define RETIRE_FORMAT  "compute-agent-retire/1"  /* agent/cycle/retire.h, with "done" */
#define RESHAPE_FORMAT "compute-agent-reshape/1" /* agent/reshape/image.h */
#define TREE_FORMAT    "compute-agent-tree/1"    /* tree-json.h */

/* {"format", "hosts": [{"host", "code": exit code, "output": the document that the host printed, a
 * list if it printed several, or null, "error": text of its standard error}]} */
#define HOSTS_FORMAT "compute-agent-hosts/1"

/* {"format", "problems": [{"consumer": "" for the host, "claim": 0 without one, "text"}]}: the
 * differences between claims, guests and Placement. */
#define PROBLEMS_FORMAT "compute-agent-problems/1"

/* {"format", "nodename", "errors": n, "findings": [{"level", "option", "text"}]}: options of the
 * configuration that do not fit the host (drivers/verify.h). */
#define FINDINGS_FORMAT "compute-agent-findings/1"

/* {"format", "keystone": whether one is configured, "error": "" or why there is no token,
 * "outcome", "scope", "roles": [], "endpoint", "clock_ahead_sec", "placement_error": "" or why
 * Placement cannot be read, "placement_outcome", "microversion": the newest of this Placement, ""
 * if unknown} */
#define CONNECT_FORMAT "compute-agent-connect/1"

/* {"format", "name", "state": "good" | "unknown" | "new" | "renamed" | "taken" | "taken-below" |
 * "twice" | "no-root", "text", "advice", "file", "uuid": "" without one, "placement_error": "" or
 * why Placement was not asked, "own": null or {"uuid", "name", "root": bool, "generation",
 * "consumers": -1 if unknown, "modified_usec": 0 if unknown}, "holder": the same, "below",
 * "changes": [{"uuid", "from", "to"}], "done": bool, "refused": "" or the reason} */
#define IDENTITY_FORMAT "compute-agent-identity/1"

/* {"format", "wanted": content of prepare-wanted that the run saw, "error": "" or why the pass was
 * not completed, "claims_known": bool, "cards": [{"address", "section", "virtual_functions",
 * "error"}], "functions": [{"address", "physical_function", "type": "" or "nvidia-1428", "open": it
 * is in use, or that is not known, "claim": 0 or the claim that its type belongs to or was set for,
 * "waiting": "" or why its type stays, "error": "" or why it is not as wanted}]}: the result of
 * compute-agent-prepare. */
#define PREPARED_FORMAT "compute-agent-prepared/1"

/* {"format", "wanted": content of clean-wanted that the run saw, "error": "" or why the last look
 * failed, "devices": [{"row": id of the unclean device, "since": its since_usec, "address",
 * "state": "cleaning" | "waiting" | "clean" | "failed", "unit": the unit of the state, or "",
 * "reason": "" or why the device waits or failed, "lines": last lines of the unit that failed}]}:
 * the result of compute-agent-prepare --clean. */
#define CLEANED_FORMAT "compute-agent-cleaned/1"

/* {"format", "wanted": content of prepare-wanted that the run saw, "error": "" or why the last look
 * made no step, "partitions": [{"set": name of [device_shapes NAME], "partition": its id,
 * "devices": [PCI addresses], "claim": the claim that it was activated for, "state": "activating" |
 * "active" | "failed" | "deactivating", "since_usec": time of the state or of its last error,
 * "error": "" or why the last unit failed, "waiting": "" or why no unit is started, "retry":
 * content of prepare-retry when it failed, "lines": last lines of the unit that failed}]}: the
 * partitions that compute-agent-prepare activated. */
#define PARTITIONS_FORMAT "compute-agent-partitions/1"
