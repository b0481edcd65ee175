/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Regular expressions of health rules, matched with lines of the kernel. In agent/, only this file
 * calls PCRE2. A pattern has exactly one of two named groups: "address" is a PCI address in the
 * line, and "nvme" is the name of an NVMe controller ("nvme0"). Length, steps, depth and memory of
 * a match are limited, so a hostile line costs a bounded time. No I/O. A pattern is used by one
 * thread at a time, because a match writes to its memory. */

#include "base/error.h"
#include "drivers/host/snapshot.h"

/* Longest pattern and longest line that is matched, in bytes. The rest of a line is ignored. */
#define HEALTH_PATTERN_MAX 512
#define HEALTH_LINE_MAX    1024
#define HEALTH_NAME_SIZE   32 /* bytes of the name of a controller, with the NUL */

typedef struct HealthPattern HealthPattern;

/* The device that a line names. Exactly one member is not "". */
typedef struct HealthSubject {
        char address[PCI_ADDRESS_SIZE];
        char nvme[HEALTH_NAME_SIZE];
} HealthSubject;

/* Compiles a pattern. Returns -EINVAL with words if it is too long, if PCRE2 cannot compile it
 * (also for lack of memory), or if it does not have exactly one of the groups "address" and "nvme".
 * Returns -ENOMEM on another failure. */
int health_pattern_new(HealthPattern **ret, const char *text, Error *reterr);
HealthPattern *health_pattern_free(HealthPattern *pattern);
DEFINE_CLEANUP(HealthPattern *, health_pattern_free);

/* Returns true if the line matches and names a device: an address that can be parsed, or a name of
 * letters and digits. Only the first match in the line counts. A match that reaches a limit is no
 * match. "0000:41:00" without a function means function 0, and "41:00.0" means domain 0. */
bool health_pattern_match(const HealthPattern *pattern, const char *line, HealthSubject *ret);
