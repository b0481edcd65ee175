/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides what happens next to a device that is not proved to be clean (claims/claim/unclean.h).
 * Pure: the caller collects the facts, and acts.
 *
 *   held > dirty       The claim and its guest are gone. The units are started.
 *   dirty > (no row)   The units have proved that it is clean. It is offered.
 *   held, dirty > failed   A unit failed, or none can be started. It is cordoned.
 *   failed > dirty     A person has lifted its cordon. The units are started again.
 *   dirty, failed > held   A claim or a guest has it again.
 *
 * No unit is started while Placement can give the device to a server, or has done so.
 *
 * Rules: only evidence moves a device forward. A held device stays held while a claim or a guest
 * has it, while a guest is unreadable, and until a poll began after the last change. A device that
 * the host does not list keeps its state, unless a claim or a guest has it. A failed device also
 * waits while a guest is unreadable. Its cordon is set again if it ends without a person. A result
 * counts only for the row that it names. No step offers a device without the result of its units,
 * except that a person lifts the cordon of a device that no section [device_clean NAME] has any
 * more. */

#include <stdbool.h>

#include "claims/claim/unclean.h"

/* The facts about a device. */
typedef struct CleanFacts {
        bool is_claimed;    /* a living claim names it */
        bool in_domain;     /* a domain has it, by any of its definitions */
        bool guest_unread;  /* a guest cannot be read, so it can have any device */
        bool poll_is_later; /* the poll began after the last change of the state */
        bool is_listed;     /* the host lists it, and the tree has its provider */
        bool is_other;      /* another device is at its address */
        bool is_configured; /* a section [device_clean NAME] has it */
        bool is_cordoned;   /* by a cordon that no health rule owns */
        bool is_lifted;     /* a person lifted its cordon after the last change of the state */
        /* The result of compute-agent-prepare --clean for the row: its units have succeeded, or one
         * failed. Neither: there is no result, or they run, or wait for a process. */
        bool is_proved, has_failed;
        /* Why Placement can give it to a server, or has done so; for a dirty device, why its units
         * wait for long. NULL: neither. */
        const char *wait;
} CleanFacts;

typedef enum CleanStep {
        CLEAN_KEEP,
        CLEAN_HOLD,   /* a guest has it again */
        CLEAN_BEGIN,  /* start its units */
        CLEAN_END,    /* it is proved to be clean: delete the row */
        CLEAN_FAIL,   /* cordon it, and wait for a person */
        CLEAN_FORGET, /* a person decided that it needs no cleaning: delete the row */
} CleanStep;

/* Returns the next step for a device in this state (UncleanState). With CLEAN_FAIL, *ret_reason is
 * the reason (static), or NULL if the result has it, or a failed row. With CLEAN_KEEP it is
 * facts->wait if that delays the units, else NULL. With other steps it is NULL. */
CleanStep clean_next_step(int state, const CleanFacts *facts, const char **ret_reason);
