/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One client of "make bench-claims": claims and releases for some seconds, then prints the latency
 * of each Claim in microseconds. Before the first one it prints "ready" and waits for a line. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "formats/interface.h"

#define LATENCIES_MAX 1000000 /* more are not recorded */

static int call(sd_bus *bus, sd_bus_message *message, sd_bus_message **reply)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call(bus, message, 0, &error, reply);

        if (r < 0)
                fprintf(stderr, "claimer: %s\n", error.message);
        return r;
}

static int claim(sd_bus *bus, int64_t *ret_id)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        const Uuid consumer = uuid_make_random();
        int r;

        r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, BUS_PATH, BUS_INTERFACE, "Claim");
        if (r >= 0)
                r = sd_bus_message_append(m, BUS_CLAIM_IN, consumer.text, 1, "", 2, "VCPU",
                                          UINT64_C(1), "MEMORY_MB", UINT64_C(1), 0, 0, 0);
        if (r >= 0)
                r = call(bus, m, &reply);
        return r < 0 ? r : sd_bus_message_read(reply, "x", ret_id);
}

static int release(sd_bus *bus, int64_t id)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, BUS_PATH, BUS_INTERFACE, "Release");
        if (r >= 0)
                r = sd_bus_message_append(m, "xs", id, "bench");
        return r < 0 ? r : call(bus, m, &reply);
}

int main(int argc, char *argv[])
{
        double seconds = argc > 1 ? atof(argv[1]) : 5;
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_free_ uint64_t *latencies = calloc(LATENCIES_MAX, sizeof(uint64_t));
        uint64_t end;
        size_t n = 0;

        if (!latencies || sd_bus_open_system(&bus) < 0)
                return EXIT_FAILURE;
        puts("ready");
        fflush(stdout);
        if (getchar() == EOF)
                return EXIT_FAILURE;
        end = clock_usec(CLOCK_MONOTONIC) + (uint64_t)(seconds * (double)USEC_PER_SEC);
        while (n < LATENCIES_MAX && clock_usec(CLOCK_MONOTONIC) < end) {
                uint64_t begin = clock_usec(CLOCK_MONOTONIC);
                int64_t id;

                if (claim(bus, &id) < 0)
                        return EXIT_FAILURE;
                latencies[n++] = clock_usec(CLOCK_MONOTONIC) - begin;
                if (release(bus, id) < 0)
                        return EXIT_FAILURE;
        }
        for (size_t i = 0; i < n; i++)
                printf("%" PRIu64 "\n", latencies[i]);
        return EXIT_SUCCESS;
}
