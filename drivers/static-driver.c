/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Each poll reads the file, parses it, and corrects the members that belong to this host and
 * this poll. Tests: tests/unit/drivers/test-static-driver.c */
#include "drivers/static-driver.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/read-file.h"

/* Largest file that is read, in bytes. */
#define FILE_SIZE_MAX (64 * 1024 * 1024)

static int read_file(const char *path, char **ret, size_t *ret_size, Error *reterr)
{
        int r = read_file_text(path, FILE_SIZE_MAX, ret, ret_size, NULL);

        if (r == -EFBIG)
                return error_setf(reterr, r, "Larger than %d MiB", FILE_SIZE_MAX >> 20);
        if (r == -EISDIR || r == -EINVAL)
                return error_setf(reterr, r, "Not a regular file");
        return r < 0 ? error_setf(reterr, r, "%s", strerror(-r)) : 0;
}

/* Reads the host of the file. The driver, the times and guests_unknown describe this poll and
 * not the file. */
static int read_host(const char *path, Snapshot **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        _cleanup_json_ json_t *json = NULL;
        _cleanup_free_ char *text = NULL;
        uint64_t began_usec = clock_usec(CLOCK_MONOTONIC);
        size_t size;
        int r;

        if ((r = read_file(path, &text, &size, reterr)) < 0 ||
            (r = json_parse(text, size, &json, reterr)) < 0 ||
            (r = snapshot_from_json(json, &snapshot, reterr)) < 0)
                return r;
        /* the file has the driver that wrote it, and its time */
        r = snapshot_set_text(&snapshot->driver, static_driver_ops.name, reterr);
        if (r < 0)
                return r;
        snapshot->guests_unknown = true; /* the file lists guests of another host */
        snapshot->taken_realtime_usec = clock_usec(CLOCK_REALTIME);
        snapshot->began_usec = began_usec;
        *ret = TAKE_PTR(snapshot);
        return 0;
}

static void poll_once(void *data, DriverPollKind kind, Mailbox *mailbox)
{
        const char *path = data;
        Snapshot *snapshot;
        Error error = ERROR_NULL;
        int r = read_host(path, &snapshot, &error);

        if (r < 0) {
                error_prefixf(&error, r, "%s", path);
                mailbox_post_error(mailbox, DRIVER_EVENT_POLL_FAILED, &error);
        } else {
                mailbox_post_snapshot(mailbox, snapshot);
        }
}

static int static_open(const DriverConfig *config, PollSource *ret, Error *reterr)
{
        char *path;

        if (!config->static_path || !config->static_path[0])
                return error_setf(reterr, EINVAL,
                                  "[static] path: not set, but the driver \"static\" needs it");
        path = strdup(config->static_path);
        if (!path)
                return error_oom(reterr);
        *ret = (PollSource){
                .poll = poll_once, .free = free, .fd = -1, .address = path, .data = path
        };
        return 0;
}

const DriverOps static_driver_ops = { .name = "static", .open = static_open };
