/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* computectl-discover [--verify] [FILE]: polls the hypervisor once, as the configuration (or FILE)
 * says, and prints the host as JSON, or what of the configuration does not fit the host. computectl
 * runs it when there is no service to ask.
 *
 * computectl-discover --connect CLOUD [FILE]: walks the way over Keystone to Placement, with that
 * cloud of clouds.yaml, or ("") as the configuration says. */

#include <poll.h>
#include <string.h>
#include <time.h>

#include "agent/config/config.h"
#include "agent/formats/documents.h"
#include "agent/helper/clouds.h"
#include "agent/helper/connect.h"
#include "base/json.h"
#include "drivers/driver.h"
#include "drivers/registry.h"
#include "drivers/verify.h"

#define TIMEOUT_SEC 30

static void print_warning(const char *text, void *userdata)
{
        fprintf(stderr, "computectl: %s\n", text);
}

static uint64_t now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

/* 0 when something can be taken before the deadline. */
static int wait_for_driver(Driver *driver, uint64_t deadline_usec, Error *reterr)
{
        for (;;) {
                struct pollfd descriptor = { .fd = driver_get_fd(driver), .events = POLLIN };
                uint64_t now = now_usec();
                int r;

                if (now >= deadline_usec)
                        return error_setf(reterr, ETIMEDOUT,
                                          "The hypervisor did not answer within %d s", TIMEOUT_SEC);
                r = poll(&descriptor, 1, (int)((deadline_usec - now) / USEC_PER_MSEC) + 1);
                if (r > 0)
                        return 0;
                if (r < 0 && errno != EINTR)
                        return error_setf(reterr, errno, "poll: %s", strerror(errno));
        }
}

/* 1: a snapshot is there; 0: nothing yet. */
static int take(Driver *driver, Snapshot **ret, Error *reterr)
{
        for (;;) {
                DriverEvent event = { 0 };
                int r = driver_take(driver, &event);

                if (r < 0)
                        return error_setf(reterr, r, "The driver cannot be asked: %s",
                                          strerror(-r));
                if (event.type == DRIVER_EVENT_NONE)
                        return 0;
                if (event.type == DRIVER_EVENT_SNAPSHOT) {
                        *ret = event.snapshot;
                        return 1;
                }
                snapshot_unref(event.snapshot);
                if (event.type == DRIVER_EVENT_POLL_FAILED)
                        return error_setf(reterr, event.error.code ? event.error.code : EIO, "%s",
                                          error_text(&event.error, EIO));
        }
}

static int poll_once(const Config *config, Snapshot **ret, Error *reterr)
{
        _cleanup_(driver_freep) Driver *driver = NULL;
        uint64_t deadline_usec = now_usec() + TIMEOUT_SEC * USEC_PER_SEC;
        int r = driver_new(&driver, config->compute_driver, &config->driver, NULL, reterr);

        if (r < 0)
                return r;
        r = driver_poll(driver, DRIVER_POLL_ALL);
        if (r < 0)
                return error_setf(reterr, r, "The poll cannot be started: %s", strerror(-r));
        do {
                r = wait_for_driver(driver, deadline_usec, reterr);
                if (r >= 0)
                        r = take(driver, ret, reterr);
        } while (r == 0);
        return r < 0 ? r : 0;
}

static int print_document(const json_t *document, Error *reterr)
{
        if (!document)
                return error_oom(reterr);
        if (json_dumpf(document, stdout, JSON_COMPACT) < 0 || fflush(stdout) != 0)
                return error_setf(reterr, EIO, "The output cannot be written");
        return 0;
}

static int discover(const Config *config, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *document = NULL;
        int r = poll_once(config, &snapshot, reterr);

        if (r < 0)
                return r;
        document = snapshot_to_json(snapshot);
        return print_document(document, reterr);
}

static int verify(const Config *config, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_(findings_done) Findings findings = { 0 };
        _cleanup_json_ json_t *found = NULL, *document = NULL;

        if (verify_config(&config->driver, &findings) < 0)
                return error_oom(reterr);
        /* no driver would take a configuration that is wrong by itself */
        if (findings.n_items == 0) {
                int r = poll_once(config, &snapshot, reterr);

                if (r < 0)
                        return r;
                if (verify_host(&config->driver, snapshot, &findings) < 0)
                        return error_oom(reterr);
        }
        found = findings_to_json(&findings, snapshot ? snapshot->nodename : "");
        document = json_pack("{ss}", "format", FINDINGS_FORMAT);
        if (!found || json_object_update(document, found) < 0)
                return error_oom(reterr);
        return print_document(document, reterr);
}

static int walk(Config *config, const char *cloud, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = cloud[0] ? clouds_apply(config, cloud, reterr) : 0;

        if (r == 0)
                r = connect_examine(config, &document, reterr);
        return r < 0 ? r : print_document(document, reterr);
}

int main(int argc, char *argv[])
{
        _cleanup_(config_freep) Config *config = NULL;
        const char *order = argc > 1 && strncmp(argv[1], "--", 2) == 0 ? argv[1] : "";
        bool connects = strcmp(order, "--connect") == 0 && argc > 2;
        int n_before = connects ? 3 : order[0] ? 2 : 1;
        Error error = ERROR_NULL;
        int r = config_load(&config, argc > n_before ? argv[n_before] : NULL,
                            connects ? NULL : print_warning, NULL, &error);

        if (r == 0 && connects)
                r = walk(config, argv[2], &error);
        else if (r == 0)
                r = order[0] ? verify(config, &error) : discover(config, &error);
        if (r >= 0)
                return EXIT_SUCCESS;
        fprintf(stderr, "computectl: %s\n", error_text(&error, r));
        return EXIT_FAILURE;
}
