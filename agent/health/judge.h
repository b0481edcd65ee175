/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides what the agent does with a finding of a health rule. Pure. */

#include "agent/health/message.h"
#include "agent/tree/cordon.h"
#include "base/uuid.h"

/* The decision about a finding. */
typedef enum HealthDecision {
        HEALTH_UNKNOWN_DEVICE, /* ignore: the host offers no such device */
        HEALTH_OTHER_BOOT,     /* ignore: the rule ends with the boot, and the evidence is of
                                  another one */
        HEALTH_OLD,            /* ignore: a person lifted a cordon at or after the first case */
        HEALTH_KNOWN,          /* ignore. If this would be a report: the rule has reported the
                                  device since the last lift, or a rule withholds it. If not: this
                                  rule withholds it, or one whose cordon is at least as hard to
                                  lift */
        HEALTH_FEW_GUESTS,     /* wait: too few guests had the device */
        HEALTH_REPORT,         /* report it, and change no cordon: the rule or [agent] nova says
                                  so, or a person has cordoned the device */
        HEALTH_WITHHOLD,       /* cordon the device */
        _HEALTH_DECISION_MAX,
} HealthDecision;

#define HEALTH_SIGHTINGS_MAX 256

/* Cases in which a known guest had a device, and functions that a rule found broken and that have
 * not recovered since. */
typedef struct HealthSightings {
        struct HealthSighting {
                char rule[HEALTH_RULE_NAME_MAX + 1];
                char address[PCI_ADDRESS_SIZE];
                Uuid consumer; /* UUID_NULL: the rule found the device broken */
                uint64_t usec; /* CLOCK_REALTIME of the last such case */
        } items[HEALTH_SIGHTINGS_MAX];
        size_t n_items;
} HealthSightings;

/* The facts about a finding. Everything is borrowed. */
typedef struct HealthFacts {
        const HealthMessage *finding;
        const char *boot_id; /* this boot of the host */
        bool is_offered; /* the device or its physical function has a provider, or it is in a set */
        CordonState cordon; /* cordon of this provider, or of the device of the set */
        bool is_reported;   /* this rule has reported the device since the last lift of a cordon */
        bool is_permitted;  /* [agent] nova permits to withhold it */
        const HealthSightings *sightings; /* guests that had the device at a case; used only if the
                                             rule counts guests */
} HealthFacts;

/* Returns the first decision of the enum, in its order, that the facts give. */
HealthDecision health_judge(const HealthFacts *facts);

/* Notes that the consumer had the device at the last case of the finding, or with UUID_NULL that
 * the rule found the device broken. If the list is full, a new sighting replaces the oldest one. */
void health_sightings_note(HealthSightings *sightings, const HealthMessage *finding,
                           const Uuid *consumer);

/* Removes the note that the rule found the function broken. Returns true if there was one. */
bool health_sightings_recover(HealthSightings *sightings, const char *rule, const char *address);
