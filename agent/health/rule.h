/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Health rules: the evidence that takes a device out of use, and the events that end it
 * (compute-agent-health.d(5)). Reads them from YAML. Pure: it converts text to rules. Defaults of a
 * rule: one case, within one hour, until the next boot, or for a link until its recovery; the
 * device is withheld.
 *
 * A bad rule is skipped, and so is one whose name a rule has that was added before, and each rule
 * after HEALTH_RULES_MAX. A file that is too large, too deep, not YAML or without a list "rules" is
 * skipped as a whole. Other members of a file, and its documents after the first, are ignored. Each
 * problem is reported to the caller in words. The rest of a file after HEALTH_RULES_MAX problems is
 * skipped without words. */

#include "agent/health/pattern.h"
#include "agent/state/yaml-text.h"

#define HEALTH_RULES_MAX     256 /* rules of all files */
#define HEALTH_RULE_NAME_MAX 64  /* bytes of a name */
#define HEALTH_COUNT_MAX     100 /* largest count */
#define HEALTH_GUESTS_MAX    8   /* largest number of guests */
#define HEALTH_WITHIN_MAX    (UINT64_C(30) * 24 * 3600 * USEC_PER_SEC)

/* The kind of evidence. */
typedef enum HealthEvidence {
        HEALTH_LINE,         /* a line of the kernel matches the pattern */
        HEALTH_AER_FATAL,    /* the device counted a fatal PCIe error */
        HEALTH_AER_NONFATAL, /* the device counted a non-fatal, uncorrected PCIe error */
        HEALTH_LINK_WIDTH,   /* the link has fewer lanes than both of its ends can have */
        HEALTH_LINK_SPEED,   /* the link is slower than both of its ends can be */
        _HEALTH_EVIDENCE_MAX,
} HealthEvidence;

/* Events that end a finding, besides an order of a person. The order is that of strictness. */
typedef enum HealthLift {
        HEALTH_LIFT_BOOT,     /* the next boot of the host */
        HEALTH_LIFT_RECOVERY, /* evidence that the device works again */
        HEALTH_LIFT_NEVER,    /* nothing else */
        _HEALTH_LIFT_MAX,
        _HEALTH_LIFT_INVALID = -EINVAL,
} HealthLift;

const char *health_lift_to_text(HealthLift lift); /* "boot", "recovery", "never" */
HealthLift health_lift_from_text(const char *text);

typedef struct HealthRule {
        char *name;
        HealthEvidence evidence;
        HealthPattern *pattern;  /* HEALTH_LINE only */
        HealthPattern *recovery; /* HEALTH_LINE with HEALTH_LIFT_RECOVERY only */
        unsigned count;          /* this often … */
        uint64_t within_usec;    /* … within this time is a finding */
        unsigned guests;         /* number of different guests that had the device; 0: any */
        HealthLift lift;
        bool reports; /* withholds nothing */
} HealthRule;

typedef struct HealthRules {
        HealthRule **items;
        size_t n_items, n_allocated;
        uint64_t longest_usec; /* the longest time of the rules; 0: there are none */
} HealthRules;

#define HEALTH_RULES_INIT ((HealthRules){ 0 })

void health_rules_done(HealthRules *rules);

/* Adds the rules of one file, with source as its name in messages. text has n bytes. The
 * callback problem receives words, once for each skipped rule or file, borrowed during the call.
 * Returns 0, even if rules were skipped, or -ENOMEM; rules that were added before stay. */
int health_rules_add(HealthRules *rules, const char *source, const char *text, size_t n,
                     void (*problem)(const char *text, void *userdata), void *userdata);
