/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/clock-watch.h"

ClockJump clock_watch_look(ClockWatch *watch, uint64_t real_usec, uint64_t boot_usec)
{
        uint64_t gap = boot_usec >= watch->boot_usec ? boot_usec - watch->boot_usec : 0;
        ClockJump jump = { .from_usec = watch->real_usec + gap,
                           .to_usec = real_usec,
                           .gap_usec = gap };
        bool first = watch->real_usec == 0;

        *watch = (ClockWatch){ .real_usec = real_usec, .boot_usec = boot_usec };
        if (first)
                return (ClockJump){ 0 };
        jump.by_usec = (int64_t)(jump.to_usec - jump.from_usec);
        if (jump.by_usec < (int64_t)CLOCK_JUMP_MIN_USEC &&
            jump.by_usec > -(int64_t)CLOCK_JUMP_MIN_USEC)
                return (ClockJump){ 0 };
        return jump;
}

bool clock_jump_is_before(const ClockJump *jump, uint64_t usec)
{
        uint64_t since = jump->to_usec > jump->gap_usec ? jump->to_usec - jump->gap_usec : 0;

        /* The clock has shown since..to_usec behind the jump, and no more than from_usec before. */
        return usec <= jump->from_usec && !(usec >= since && usec <= jump->to_usec);
}

uint64_t clock_jump_move(const ClockJump *jump, uint64_t usec)
{
        int64_t moved;

        if (__builtin_add_overflow((int64_t)MIN(usec, (uint64_t)INT64_MAX), jump->by_usec, &moved))
                return INT64_MAX;
        return moved > 0 ? (uint64_t)moved : 1;
}
