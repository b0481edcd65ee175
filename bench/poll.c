/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Measures a poll: its time and its calls of libvirt, for the first poll and later ones.
 *
 *   poll URI [POLLS]
 *
 * Prints "first MS CALLS SINGLE DEVICES DOMAINS" for the first poll. POLLS later polls (default: 9)
 * follow without a line. Then it prints "next" with the same values for another poll, "guests" for
 * a poll that reads all guests again, and "median" for the POLLS polls. SINGLE counts the calls for
 * one device or domain.
 *
 *   poll /sys [POLLS]
 *
 * Measures the reader of the linux driver, without events. Prints "first MS DEVICES" and the median
 * of the POLLS polls. Its milliseconds are CPU time. */

#include <libvirt/libvirt.h>
#include <string.h>

#include "base/clock.h"
#include "bench/libvirt-calls.h"
#include "drivers/libvirt/connection.h"
#include "drivers/libvirt/poll.h"
#include "drivers/linux/reader.h"

#define POLLS_MAX 1000

static double now_msec(void)
{
        return (double)clock_usec(CLOCK_MONOTONIC) / 1e3;
}

static int order_numbers(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

/* Polls once and returns the milliseconds. Prints a line that begins with the word in "what", or
 * nothing if that is NULL. */
static double poll_once(const LibvirtConnection *connection, DriverPollKind kind, const char *what)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;
        double begin = now_msec(), msec;

        libvirt_calls_reset();
        if (libvirt_poll(connection->handle, connection->cache, kind, NULL, &snapshot, &error) <
            0) {
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

static Snapshot *read_linux(const char *sys, const Snapshot *last, double *ret_msec)
{
        uint64_t begin_usec = clock_usec(CLOCK_PROCESS_CPUTIME_ID);
        LinuxReader reader = { .sys = sys, .proc = "/proc", .last = last, .quiet = last };
        Error error = ERROR_NULL;

        if (snapshot_new(&reader.snapshot) < 0 || linux_read_host(&reader, &error) < 0 ||
            linux_read_devices(&reader, &error) < 0 || snapshot_seal(reader.snapshot, &error) < 0) {
                fprintf(stderr, "%s\n", error.text);
                exit(EXIT_FAILURE);
        }
        *ret_msec = (double)(clock_usec(CLOCK_PROCESS_CPUTIME_ID) - begin_usec) / 1e3;
        return reader.snapshot;
}

static void compare_linux(const char *sys, size_t n)
{
        double times[POLLS_MAX];
        Snapshot *last = read_linux(sys, NULL, &times[0]);

        printf("first %.3f %zu\n", times[0], last->n_devices);
        for (size_t i = 0; i < n; i++) {
                Snapshot *next = read_linux(sys, last, &times[i]);

                snapshot_unref(last);
                last = next;
        }
        snapshot_unref(last);
        qsort(times, n, sizeof(double), order_numbers);
        printf("median %.3f of %zu\n", times[n / 2], n);
}

int main(int argc, char *argv[])
{
        _cleanup_(libvirt_connection_freep) LibvirtConnection *connection = NULL;
        Mailbox *mailbox = NULL;
        int event_fd;
        Error error = ERROR_NULL;
        size_t n = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 9;

        if (argc < 2 || n < 1 || n > POLLS_MAX) {
                fprintf(stderr, "Usage: poll URI|/sys [POLLS]\n");
                return 2;
        }
        if (argv[1][0] == '/') {
                compare_linux(argv[1], n);
                return EXIT_SUCCESS;
        }
        if (libvirt_event_loop_start(&error) < 0 || mailbox_new(&mailbox, &event_fd) < 0 ||
            libvirt_connection_open(&connection,
                                    &(DriverConfig){ .libvirt.connection_uri = argv[1] }, 0,
                                    mailbox, &error) < 0) {
                fprintf(stderr, "%s\n", error.text);
                return EXIT_FAILURE;
        }
        compare(connection, n);
        mailbox_unref(mailbox);
        return EXIT_SUCCESS;
}
