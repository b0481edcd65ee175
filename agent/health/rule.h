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
 * skipped without words.
 *
 * A pattern is a regular expression that is matched with lines of the kernel. It has exactly one of
 * two named groups: "address" is a PCI address in the line, and "nvme" is the name of an NVMe
 * controller ("nvme0"). Length, steps, depth and memory of a match are limited, so a hostile line
 * costs a bounded time. A pattern is used by one thread at a time, because a match writes to its
 * memory. In agent/, only rule.c calls PCRE2. */

#include "agent/state/yaml-text.h"
#include "drivers/host/snapshot.h"

#define HEALTH_RULES_MAX     256 /* rules of all files */
#define HEALTH_RULE_NAME_MAX 64  /* bytes of a name */
#define HEALTH_COUNT_MAX     100 /* largest count */
#define HEALTH_GUESTS_MAX    8   /* largest number of guests */
#define HEALTH_WITHIN_MAX    (UINT64_C(30) * 24 * 3600 * USEC_PER_SEC)

/* Longest pattern and longest line that is matched, in bytes. The rest of a line is ignored. */
#define HEALTH_PATTERN_MAX 512
#define HEALTH_LINE_MAX    1024
#define HEALTH_NAME_SIZE   32 /* bytes of the name of a controller, with the NUL */

typedef struct HealthPattern HealthPattern;

/* The device that a line names. After a match exactly one member is not "". */
typedef struct HealthSubject {
        char address[PCI_ADDRESS_SIZE];
        char nvme[HEALTH_NAME_SIZE];
} HealthSubject;

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
        unsigned guests;         /* different guests that must have had the device; 0: guests do not
                                    count */
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

/* Returns true if the line matches and names a device: an address that can be parsed, or a name of
 * letters and digits. Only the first match in the line counts. A match that reaches a limit is no
 * match. "0000:41:00" without a function means function 0, and "41:00.0" means domain 0. */
bool health_pattern_match(const HealthPattern *pattern, const char *line, HealthSubject *ret);
