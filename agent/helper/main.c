/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* computectl-helper ORDER … [FILE]: what computectl cannot do without the libraries of the agent,
 * as one JSON document. FILE is the configuration, without it the host's own.
 *
 *   discover DRIVER
 *                polls the hypervisor once: the host (drivers/host/snapshot.h); DRIVER is a name,
 *                or "" for the one of the configuration
 *   verify       polls, too: what of the configuration does not fit the host (FINDINGS_FORMAT)
 *   connect CLOUD
 *                walks the way over Keystone to Placement (CONNECT_FORMAT), with that cloud of
 *                clouds.yaml, or ("") as the configuration says
 *   identity ACTION FLAGS NAME CLOUD
 *                who this host is for Placement (agent/helper/identity-work.h); FLAGS are "force",
 *                "dry-run", both or ""; NAME is the host's, "" when it is not known */

#include <poll.h>
#include <string.h>

#include "agent/helper/clouds.h"
#include "agent/helper/connect.h"
#include "agent/helper/identity-work.h"
#include "base/clock.h"
#include "base/folder-owner.h"
#include "base/json.h"
#include "config/config.h"
#include "drivers/driver.h"
#include "drivers/registry.h"
#include "drivers/verify.h"
#include "formats/format-names.h"

#define TIMEOUT_SEC 30

static void print_warning(const char *text, void *userdata)
{
        fprintf(stderr, "computectl: %s\n", text);
}

/* 0 when something can be taken before the deadline. */
static int wait_for_driver(Driver *driver, uint64_t deadline_usec, Error *reterr)
{
        for (;;) {
                struct pollfd descriptor = { .fd = driver_get_fd(driver), .events = POLLIN };
                uint64_t now = clock_usec(CLOCK_MONOTONIC);
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

/* driver "": the one of the configuration. */
static int poll_once(const Config *config, const char *driver_name, Snapshot **ret, Error *reterr)
{
        _cleanup_(driver_freep) Driver *driver = NULL;
        uint64_t deadline_usec = clock_usec(CLOCK_MONOTONIC) + TIMEOUT_SEC * USEC_PER_SEC;
        int r = driver_new(&driver, driver_name[0] ? driver_name : config->compute_driver,
                           &config->driver, NULL, reterr);

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

/* The orders. Each leaves its document to the caller; arguments are those behind the order. */

static int discover(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        int r = poll_once(config, arguments[0], &snapshot, reterr);

        if (r < 0)
                return r;
        *ret = snapshot_to_json(snapshot);
        return *ret ? 0 : error_oom(reterr);
}

static int verify(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *document = NULL;
        int r = poll_once(config, "", &snapshot, reterr);

        if (r < 0)
                return r;
        document = verify_host(&config->driver.host, snapshot);
        if (json_object_set_new(document, "format", json_string(FINDINGS_FORMAT)) < 0)
                return error_oom(reterr);
        *ret = TAKE_PTR(document);
        return 0;
}

static int walk(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        int r = arguments[0][0] ? clouds_apply(config, arguments[0], reterr) : 0;

        return r < 0 ? r : connect_examine(config, ret, reterr);
}

static int identify(Config *config, char *arguments[], json_t **ret, Error *reterr)
{
        enum { ACTION, FLAGS, NAME, CLOUD };
        const IdentityTask task = {
                .config = config,
                .name = arguments[NAME],
                .order = identity_order_from_text(arguments[ACTION]),
                .force = strstr(arguments[FLAGS], "force"),
                .dry_run = strstr(arguments[FLAGS], "dry-run"),
        };
        int r;

        if ((int)task.order < 0)
                return error_setf(reterr, EINVAL, "No action: %.20s", arguments[ACTION]);
        r = arguments[CLOUD][0] ? clouds_apply(config, arguments[CLOUD], reterr) : 0;
        if (r >= 0)
                r = folder_owner_become(config->state_dir, reterr);
        return r < 0 ? r : identity_work(&task, ret, reterr);
}

static const struct {
        const char *name;
        int n_arguments;
        bool warns; /* of what is odd in the configuration */
        int (*run)(Config *config, char *arguments[], json_t **ret, Error *reterr);
} orders[] = {
        { "discover", 1, true, discover },
        { "verify", 0, true, verify },
        { "connect", 1, false, walk },
        { "identity", 4, false, identify },
};

static int run(int argc, char *argv[], Error *reterr)
{
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_json_ json_t *document = NULL;
        size_t i = 0;
        int r;

        while (i < ARRAY_SIZE(orders) && (argc < 2 || strcmp(orders[i].name, argv[1]) != 0))
                i++;
        if (i == ARRAY_SIZE(orders) || argc < 2 + orders[i].n_arguments)
                return error_setf(reterr, EINVAL, "ORDER … [FILE]");
        r = config_load(&config, argv[2 + orders[i].n_arguments],
                        orders[i].warns ? print_warning : NULL, NULL, reterr);
        if (r >= 0)
                r = orders[i].run(config, argv + 2, &document, reterr);
        if (r < 0)
                return r;
        if (json_dumpf(document, stdout, JSON_COMPACT) < 0 || fflush(stdout) != 0)
                return error_setf(reterr, EIO, "The output cannot be written");
        return 0;
}

int main(int argc, char *argv[])
{
        Error error = ERROR_NULL;
        int r = run(argc, argv, &error);

        if (r >= 0)
                return EXIT_SUCCESS;
        fprintf(stderr, "computectl: %s\n", error_text(&error, r));
        return EXIT_FAILURE;
}
