/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How long compute-agentd keeps others waiting: pings it each millisecond. For each line on stdin
 * it prints the longest time since the last line, in microseconds: that of a ping, and what the
 * daemon's main thread (its pid is the argument) ran meanwhile, which does not grow with what else
 * the machine does. */

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "agent/formats/interface.h"
#include "base/clock.h"
#include "base/macros.h"

/* What the thread has run. */
static uint64_t ran_usec(int schedstat)
{
        char text[64] = { 0 };

        if (pread(schedstat, text, sizeof(text) - 1, 0) < 0)
                return 0;
        return strtoull(text, NULL, 10) / NSEC_PER_USEC;
}

static int ping(sd_bus *bus)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call_method(bus, BUS_NAME, BUS_PATH, "org.freedesktop.DBus.Peer", "Ping",
                                   &error, NULL, "");

        if (r < 0)
                fprintf(stderr, "pinger: %s\n", error.message);
        return r;
}

int main(int argc, char *argv[])
{
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        uint64_t longest = 0, longest_run = 0;
        char path[64], line[8];
        int schedstat;

        if (argc != 2 || sd_bus_open_system(&bus) < 0)
                return EXIT_FAILURE;
        snprintf(path, sizeof(path), "/proc/%s/schedstat", argv[1]);
        schedstat = open(path, O_RDONLY | O_CLOEXEC);
        if (schedstat < 0)
                return EXIT_FAILURE;
        for (;;) {
                uint64_t begun = clock_usec(CLOCK_MONOTONIC), ran = ran_usec(schedstat);

                if (ping(bus) < 0)
                        return EXIT_FAILURE;
                longest = MAX(longest, clock_usec(CLOCK_MONOTONIC) - begun);
                longest_run = MAX(longest_run, ran_usec(schedstat) - ran);
                if (poll(&input, 1, 1) == 0)
                        continue;
                if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
                        return EXIT_SUCCESS;
                printf("%" PRIu64 " %" PRIu64 "\n", longest, longest_run);
                fflush(stdout);
                longest = longest_run = 0;
        }
}
