/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A claim as a member of the documents "claims" and "history":
 *
 * {"id", "consumer", "guest": the name of its domain, or for a guest without one the beginning of
 * its text (claim.h, process), "" if unknown, "of": the uuid of the guest whose claim a migration
 * took over, "" for each other claim, "state": "pending" | "claimed" | "confirmed" |
 * "released", "resize_target", "project", "user", "created_usec", "expires_usec", "ended_usec",
 * "end_reason", "allocations": [{"provider": "<uuid>", "name", "resources": {"VCPU": 2}}],
 * "devices": [{"provider", "group": suffix, "class": the resource class that counts the device, ""
 * if the host does not offer it now, "device": libvirt's name, "address": PCI address or "",
 * "identity": as recorded, or "", "mdev_type", "mdev": uuid, "exists": whether the mdev exists,
 * true for a PCI device, "managed": libvirt takes the device from its driver}], "boot_id",
 * "consumer_type", "cells": [{"cell", "host_cell", "memory_mb", "page_kib": 0 for small pages,
 * "vcpus": "0-1"}], "cpus": [{"vcpu", "dedicated", "cpus": "4"}], "held": host CPUs that no other
 * guest can get, "mappings": {suffix: [uuids of providers]}, "beyond_domain": {"VCPU": amount in
 * Placement that the domain does not show}}
 *
 * Times are microseconds of CLOCK_REALTIME; 0: never, or not yet. A whole PCI device has neither
 * type nor mdev. */

#include <jansson.h>

#include "claims/claim/claim.h"
#include "claims/claim/event.h"
#include "claims/claim/host-facts.h"

/* Makes the object of a claim. facts: of the last poll, or NULL. Without facts no domain has a
 * name, "class" is "", no mdev exists, and PCI devices are managed. Returns a new reference.
 * Returns NULL if memory ran out, or if a text of the database is not UTF-8. */
json_t *claim_to_json(const Claim *claim, const HostFacts *facts);

/* Makes an event as a member of the document "events":
 *
 * {"id", "usec": CLOCK_REALTIME, "event": "claimed" | "adopted" | "released" | "expired" | "moved"
 * | "reshaped" | "healed" | "cordoned" | "uncordoned" | "retired" | "unretired", "author": the user
 * who requested it, "" for the agent itself, "uid": -1 for the agent or if unknown, "claim": 0
 * without one, "consumer": uuid or "", "guest": the name of its domain, "" if unknown, "of": the
 * guest of a migration's claim, uuid or "", "allocations": [{"name", "class", "amount"}],
 * "devices": [{"device", "address", "mdev"}], which can lack all but the first, "reason"}
 *
 * facts: of the last poll, or NULL. Returns a new reference. Returns NULL if memory ran out, or if
 * a text of the database is not UTF-8. */
json_t *event_to_json(const Event *event, const HostFacts *facts);
