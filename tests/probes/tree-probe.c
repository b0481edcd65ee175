/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the tree that a configuration makes from its host, for tests in other languages:
 *
 *   tree-probe CONFIG
 *
 * Polls once, updates a tree that has only the root, and prints the tree as JSON. Ends with 1 and
 * words on standard error if the configuration or the host is rejected. */

#include <poll.h>
#include <string.h>

#include "base/json.h"
#include "config/config.h"
#include "drivers/registry.h"
#include "drivers/update.h"
#include "formats/tree-json.h"

#define TIMEOUT_MSEC 60000

static void print_warning(const char *text, void *userdata)
{
        fprintf(stderr, "%s\n", text);
}

static int wait_for_snapshot(Driver *driver, Snapshot **ret, Error *reterr)
{
        struct pollfd fd = { .fd = driver_get_fd(driver), .events = POLLIN };
        int r = driver_poll(driver, DRIVER_POLL_CHANGES);

        while (r >= 0 && poll(&fd, 1, TIMEOUT_MSEC) > 0) {
                DriverEvent event = { 0 };

                r = driver_take(driver, &event);
                if (r == 0 && event.type == DRIVER_EVENT_SNAPSHOT) {
                        *ret = event.snapshot;
                        return 0;
                }
                if (r == 0 && event.type == DRIVER_EVENT_POLL_FAILED)
                        return error_setf(reterr, event.error.code, "%s", event.error.text);
        }
        return error_setf(reterr, ETIMEDOUT, "No answer");
}

static int print_tree(const Config *config, Error *reterr)
{
        _cleanup_(driver_freep) Driver *driver = NULL;
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_json_ json_t *json = NULL;
        Uuid root = UUID_NULL;
        int r;

        r = driver_new(&driver, config->compute_driver, &config->driver, NULL, reterr);
        if (r == 0)
                r = wait_for_snapshot(driver, &snapshot, reterr);
        if (r < 0)
                return r;
        if (uuid_from_text("aaaaaaaa-0000-4000-8000-000000000001", &root) < 0 ||
            provider_tree_new(&tree) < 0 ||
            provider_tree_add(tree, &root, snapshot->nodename, NULL, NULL, NULL) < 0)
                return error_oom(reterr);
        r = provider_update(&config->driver.host, snapshot, NULL, tree, snapshot->nodename, NULL,
                            reterr);
        if (r < 0)
                return r;
        json = tree_to_json(tree, NULL, &root, snapshot->nodename, "");
        if (!json || json_dumpf(json, stdout, JSON_INDENT(1)) < 0)
                return error_oom(reterr);
        return 0;
}

int main(int argc, char *argv[])
{
        _cleanup_(config_freep) Config *config = NULL;
        Error error = ERROR_NULL;
        int r;

        if (argc != 2) {
                fprintf(stderr, "usage: tree-probe CONFIG\n");
                return 2;
        }
        r = config_load(&config, argv[1], print_warning, NULL, &error);
        if (r == 0)
                r = print_tree(config, &error);
        if (r < 0)
                fprintf(stderr, "%s\n", error_text(&error, r));
        return r < 0;
}
