/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a poll costs: time and calls of libvirt, first poll and later ones.
 *
 *   poll URI [POLLS]
 *
 * One line each: "first MS CALLS SINGLE DEVICES DOMAINS", then "next …" with the median of the
 * later ones (9). SINGLE counts the calls that ask for one device or domain. */

#include <libvirt/libvirt.h>
#include <string.h>
#include <time.h>

#include "drivers/libvirt/connection.h"
#include "drivers/libvirt/event-loop.h"
#include "drivers/libvirt/poll.h"
#include "tests/bench/libvirt-calls.h"

#define POLLS_MAX 1000

static double now_msec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int order_numbers(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double poll_once(const LibvirtConnection *connection, DriverPollKind kind, const char *what)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;
        double begin = now_msec(), msec;

        libvirt_calls_reset();
        if (libvirt_poll(libvirt_connection_get(connection), libvirt_connection_cache(connection),
                         kind, "/", &snapshot, &error) < 0) {
                fprintf(stderr, "%s\n", error.text);
                exit(EXIT_FAILURE);
        }
        msec = now_msec() - begin;
        if (what)
                printf("%s %.3f %u %u %zu %zu\n", what, msec, libvirt_calls_all(),
                       libvirt_calls_single(), snapshot->n_devices, snapshot->n_domains);
        return msec;
}

static void compare(const LibvirtConnection *connection, size_t n)
{
        double times[POLLS_MAX];

        poll_once(connection, DRIVER_POLL_CHANGES, "first");
        for (size_t i = 0; i < n; i++)
                times[i] = poll_once(connection, DRIVER_POLL_CHANGES, NULL);
        qsort(times, n, sizeof(double), order_numbers);
        poll_once(connection, DRIVER_POLL_CHANGES, "next");
        poll_once(connection, DRIVER_POLL_GUESTS, "guests");
        printf("median %.3f of %zu\n", times[n / 2], n);
}

int main(int argc, char *argv[])
{
        _cleanup_(libvirt_connection_freep) LibvirtConnection *connection = NULL;
        Mailbox *mailbox = NULL;
        Error error = ERROR_NULL;
        size_t n = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 9;

        if (argc < 2 || n < 1 || n > POLLS_MAX) {
                fprintf(stderr, "Usage: poll URI [POLLS]\n");
                return 2;
        }
        if (libvirt_event_loop_start(&error) < 0 || mailbox_new(&mailbox) < 0 ||
            libvirt_connection_open(&connection, &(LibvirtAddress){ .uri = argv[1] }, 0, mailbox,
                                    &error) < 0) {
                fprintf(stderr, "%s\n", error.text);
                return EXIT_FAILURE;
        }
        compare(connection, n);
        mailbox_unref(mailbox);
        return EXIT_SUCCESS;
}
