/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The work of compute-agent-health: applies the rules to lines of the kernel and to readings of
 * sysfs, and makes messages of the results. The caller reads the lines, has the clocks and writes
 * the messages. Blocks on sysfs. */

#include "agent/health/message.h"

/* The cases of at most this number of pairs of a rule and a device are kept, for evidence of each
 * kind. */
#define HEALTH_TRACKS_MAX 512

/* A result that repeats is due at most every HEALTH_REPEAT_USEC. So a flood of lines about one
 * device costs the receiver one message of each rule in that time. */
#define HEALTH_REPEAT_USEC (2 * USEC_PER_SEC)

/* Intervals of the readings of AER counters and of links. */
#define HEALTH_AER_USEC  (5 * USEC_PER_SEC)
#define HEALTH_LINK_USEC (60 * USEC_PER_SEC)

typedef struct HealthObserver HealthObserver;

/* Creates an observer. rules and the texts are borrowed. sysfs is "/sys", boot_id this boot.
 * -ENOMEM. */
int health_observer_new(HealthObserver **ret, const HealthRules *rules, const char *sysfs,
                        const char *boot_id);
HealthObserver *health_observer_free(HealthObserver *observer);
DEFINE_CLEANUP(HealthObserver *, health_observer_free);

/* Applies all rules to a line of the kernel, which is borrowed. quiet: the receiver knows it, so it
 * counts, but makes no message. locate() returns the time of the line (CLOCK_REALTIME) and its
 * boot. It is called only for a line that matches a rule. Evidence of another boot is ignored if
 * the rule ends with the boot, or the line names an NVMe controller. Evidence about a controller
 * with an unknown address, or whose time is unknown, is ignored too. Returns 0 or -ENOMEM. */
int health_observer_line(HealthObserver *observer, const char *text, bool quiet,
                         int (*locate)(void *userdata, uint64_t *ret_usec,
                                       char ret_boot_id[HEALTH_BOOT_SIZE]),
                         void *userdata);

/* Forgets the evidence of all lines, because they will be read again. The readings of sysfs stay.
 */
void health_observer_forget_lines(HealthObserver *observer);

/* Reads sysfs if a reading is due. now_usec is CLOCK_MONOTONIC, real_usec CLOCK_REALTIME. A device
 * or attribute that cannot be read is no evidence. Returns -ENOMEM on failure; the other devices
 * then wait for the next reading. */
int health_observer_read(HealthObserver *observer, uint64_t now_usec, uint64_t real_usec);

/* Takes the next message that is due, HEALTH_RECOVERED before HEALTH_FINDING. now_usec is
 * CLOCK_MONOTONIC. Returns 1, 0 if no message is left, or -EAGAIN if those that are left are due
 * later. */
int health_observer_take(HealthObserver *observer, uint64_t now_usec, HealthMessage *ret);

/* Returns the microseconds until a reading or a message is due; UINT64_MAX: never. */
uint64_t health_observer_due_in_usec(const HealthObserver *observer, uint64_t now_usec);
