/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Did somebody set the clock? CLOCK_REALTIME beside CLOCK_BOOTTIME, which nobody can set and which
 * goes on while the host sleeps. Pure. */

#include "base/macros.h"

/* What is corrected bit by bit stays below it between two looks. */
#define CLOCK_JUMP_MIN_USEC (10 * USEC_PER_SEC)

typedef struct ClockWatch {
        uint64_t real_usec, boot_usec; /* of the last look; 0: none yet */
} ClockWatch;

/* A claim's time before a jump, or behind it? */
typedef struct ClockJump {
        int64_t by_usec;    /* 0: none; > 0: forward */
        uint64_t from_usec; /* what the clock would show now without it */
        uint64_t to_usec;   /* what it shows */
        uint64_t gap_usec;  /* since the look before */
} ClockJump;

ClockJump clock_watch_look(ClockWatch *watch, uint64_t real_usec, uint64_t boot_usec);

/* Was a moment that the clock showed before the jump? Where both can be, no. */
bool clock_jump_is_before(const ClockJump *jump, uint64_t usec);

/* The same distance from now, by the clock that there is now. Never 0. */
uint64_t clock_jump_move(const ClockJump *jump, uint64_t usec);
