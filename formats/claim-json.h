/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A claim as a member of the documents "claims" and "history":
 *
 * {"id", "consumer", "guest": the name of its domain, "" when it is not known, "state": "claimed" |
 * "confirmed" | "released", "resize_target", "project", "user", "created_usec", "expires_usec",
 * "ended_usec", "end_reason", "allocations": [{"provider": "<uuid>", "name", "resources": {"VCPU":
 * 2}}], "devices": [{"provider", "group": suffix, "device": libvirt's name, "address": PCI address
 * or
 * "", "mdev_type", "mdev": uuid, "exists": does the mdev, "managed": libvirt takes the device from
 * its driver}], "boot_id", "consumer_type", "cells": [{"cell", "host_cell", "memory_mb",
 * "page_kib": 0 for small ones, "vcpus": "0-1"}], "cpus": [{"vcpu", "dedicated", "cpus": "4"}],
 * "held": host CPUs that nobody else may have, "mappings": {suffix: [uuids of providers]}}
 *
 * Times are microseconds of CLOCK_REALTIME, 0: never, not yet. A whole PCI device has neither type
 * nor mdev. */

#include <jansson.h>

#include "claims/claim/claim.h"
#include "claims/claim/event.h"
#include "claims/claim/host-facts.h"

/* facts, of the last poll, may be NULL. A new reference, NULL when out of memory. */
json_t *claim_to_json(const Claim *claim, const HostFacts *facts);

/* Makes an event as a member of the document "events":
 *
 * {"id", "usec": CLOCK_REALTIME, "event": "claimed" | "adopted" | "released" | "expired" | "moved"
 * | "reshaped" | "healed" | "cordoned" | "uncordoned" | "retired" |
 * "unretired", "author": who wanted it, "" for the agent
 * itself, "uid": -1 not known, "claim": 0 of none, "consumer": uuid or "", "guest": the name of its
 * domain, "" when it is not known, "of": the guest that a migration's claim was of, uuid or "",
 * "allocations": [{"name", "class", "amount"}], "devices": [{"device", "address", "mdev"}], which
 * may lack all but the first, "reason"}
 *
 * facts, of the last poll, may be NULL. A new reference, NULL when out of memory. */
json_t *event_to_json(const Event *event, const HostFacts *facts);
