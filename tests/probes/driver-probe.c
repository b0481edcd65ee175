/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs a driver, for tests in other languages and for manual use.
 *
 *   driver-probe [options] DRIVER URI|FILE
 *     --once                end after the first result; default: run forever
 *     --interval SEC        seconds between polls (1)
 *     --keepalive SEC,COUNT (0,0: none)
 *     --instances-path DIR
 *
 * Prints one line for each event: "snapshot JSON", "failed MS WORDS", "lost WORDS", "changed". MS
 * is the time since the request of the poll. A change is followed by a poll at once. Ends with 0,
 * or with 1 if the poll of --once failed. */

#include <getopt.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "drivers/driver.h"
#include "drivers/registry.h"

typedef struct Probe {
        Driver *driver;
        bool once;
        bool failed;
        bool ended;
        uint64_t asked_msec;
} Probe;

static uint64_t now_msec(void)
{
        return clock_usec(CLOCK_MONOTONIC) / USEC_PER_MSEC;
}

static int ask(Probe *probe)
{
        int r = driver_poll(probe->driver, DRIVER_POLL_CHANGES);

        if (r == 0)
                probe->asked_msec = now_msec();
        return r < 0 ? r : 0;
}

static void print_snapshot(const Snapshot *snapshot)
{
        _cleanup_json_ json_t *json = snapshot_to_json(snapshot);
        _cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

        printf("snapshot %s\n", text ? text : "null");
}

static int handle(Probe *probe, DriverEvent *event)
{
        switch (event->type) {
        case DRIVER_EVENT_SNAPSHOT:
                print_snapshot(event->snapshot);
                snapshot_unref(event->snapshot);
                probe->ended = probe->once;
                return 0;
        case DRIVER_EVENT_POLL_FAILED:
                printf("failed %llu %s\n", (unsigned long long)(now_msec() - probe->asked_msec),
                       event->error.text);
                probe->failed = true;
                probe->ended = probe->once;
                return 0;
        case DRIVER_EVENT_LOST:
                printf("lost %s\n", event->error.text);
                return 0;
        case DRIVER_EVENT_CHANGED:
                printf("changed\n");
                return ask(probe);
        default:
                return 0;
        }
}

static int run(Probe *probe, int interval_msec)
{
        struct pollfd fd = { .fd = driver_get_fd(probe->driver), .events = POLLIN };
        int r = ask(probe);

        while (r == 0 && !probe->ended) {
                DriverEvent event;

                if (poll(&fd, 1, interval_msec) == 0)
                        r = ask(probe);
                do {
                        r = r < 0 ? r : driver_take(probe->driver, &event);
                        if (r == 0)
                                r = handle(probe, &event);
                } while (r == 0 && event.type != DRIVER_EVENT_NONE);
                fflush(stdout);
        }
        return r;
}

static int read_options(int argc, char *argv[], DriverConfig *config, Probe *probe,
                        int *interval_msec)
{
        static const struct option options[] = {
                { "once", no_argument, NULL, 'o' },
                { "interval", required_argument, NULL, 'i' },
                { "keepalive", required_argument, NULL, 'k' },
                { "instances-path", required_argument, NULL, 'p' },
                { 0 },
        };
        unsigned long interval, count;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c == 'o') {
                        probe->once = true;
                } else if (c == 'i') {
                        *interval_msec = (int)(atof(optarg) * 1000);
                } else if (c == 'k' && sscanf(optarg, "%lu,%lu", &interval, &count) == 2) {
                        config->libvirt.keepalive_interval_sec = interval;
                        config->libvirt.keepalive_count = count;
                } else if (c == 'p') {
                        config->host.instances_path = optarg;
                } else {
                        return -EINVAL;
                }
        }
        if (argc - optind != 2)
                return -EINVAL;
        config->libvirt.connection_uri = config->static_path = argv[optind + 1];
        return 0;
}

int main(int argc, char *argv[])
{
        DriverConfig config = { .host.instances_path = "/" };
        Probe probe = { 0 };
        Error error = ERROR_NULL;
        int interval_msec = 1000, r;

        if (read_options(argc, argv, &config, &probe, &interval_msec) < 0) {
                fprintf(stderr, "usage: driver-probe [--once] [--interval SEC] "
                                "[--keepalive SEC,COUNT] [--instances-path DIR] DRIVER URI|FILE\n");
                return 2;
        }
        r = driver_new(&probe.driver, argv[optind], &config, NULL, &error);
        if (r == 0)
                r = run(&probe, interval_msec);
        if (r < 0)
                fprintf(stderr, "%s\n", error_text(&error, r));
        driver_free(probe.driver);
        return r < 0 || (probe.once && probe.failed);
}
