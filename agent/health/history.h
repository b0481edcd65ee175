/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counts the evidence of each rule about each device, and decides when it is a finding. Pure: the
 * caller has the clock. The memory is limited: at HEALTH_TRACKS_MAX pairs of rule and device, the
 * pair whose last case was added first is forgotten. This includes a finding that was not taken,
 * and the time of its last finding.
 *
 * A finding of a pair that is kept repeats at most every HEALTH_REPEAT_USEC. So a flood of lines
 * about one device costs the receiver one message of each rule in that time. */

#include "agent/health/rule.h"

#define HEALTH_TRACKS_MAX  512
#define HEALTH_REPEAT_USEC (2 * USEC_PER_SEC)

typedef struct HealthHistory HealthHistory;

/* The evidence for a finding: as many cases as the rule needs. */
typedef struct HealthCases {
        const HealthRule *rule; /* borrowed */
        char address[PCI_ADDRESS_SIZE];
        uint64_t first_usec, last_usec; /* CLOCK_REALTIME of the first and last case */
        const char *line;               /* line of the last case, borrowed until the next call */
        const char *boot_id;            /* its boot, borrowed likewise */
} HealthCases;

int health_history_new(HealthHistory **ret); /* -ENOMEM */
HealthHistory *health_history_free(HealthHistory *history);
DEFINE_CLEANUP(HealthHistory *, health_history_free);

/* One case of a rule. Everything is borrowed; the rule as long as the history. */
typedef struct HealthCase {
        const HealthRule *rule;
        const char *address, *line, *boot_id;
        uint64_t usec;  /* CLOCK_REALTIME */
        unsigned count; /* number of cases of a finding; the same for all cases of a pair */
        bool quiet;     /* the receiver knows it: it counts, but no finding becomes due */
} HealthCase;

/* Adds one case. A case before the last one of its pair is accepted, because the clock of the host
 * can jump. Returns -ENOMEM on failure. */
int health_history_add(HealthHistory *history, const HealthCase *new_case);

/* Forgets the cases of a pair and a finding that was not taken, because there is evidence of the
 * other kind. The time of its last finding stays. */
void health_history_forget(HealthHistory *history, const HealthRule *rule, const char *address);

/* Forgets the same for all pairs whose rule has lines as its evidence. */
void health_history_forget_lines(HealthHistory *history);

/* Takes the next finding that is due. now_usec is CLOCK_MONOTONIC. Returns false if there is
 * none. */
bool health_history_take(HealthHistory *history, uint64_t now_usec, HealthCases *ret);

/* Returns the microseconds until the next finding is due; UINT64_MAX: never. */
uint64_t health_history_due_in_usec(const HealthHistory *history, uint64_t now_usec);
