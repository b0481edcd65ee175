/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/static-driver.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/read-file.h"
#include "drivers/mailbox.h"

#define FILE_SIZE_MAX (64 * 1024 * 1024)

/* A large file takes a while: it is read on a thread, one at a time. */
typedef struct StaticState {
        Mailbox *mailbox;
        const char *path;
        pthread_t reader;
        bool reads; /* reader is to be joined */
} StaticState;

static void end_read(StaticState *state)
{
        if (state->reads)
                pthread_join(state->reader, NULL);
        state->reads = false;
}

static int static_init(Driver *driver, const DriverConfig *config, Driver *before, Error *reterr)
{
        _cleanup_free_ StaticState *state = calloc(1, sizeof(StaticState));
        int r;

        if (!state)
                return error_oom(reterr);
        if (!config->static_file.path || !config->static_file.path[0])
                return error_setf(reterr, EINVAL,
                                  "[static] path: not set, but the driver \"static\" needs it");
        r = mailbox_new(&state->mailbox);
        if (r < 0)
                return error_setf(reterr, r, "Cannot make a mailbox: %s", strerror(-r));
        state->path = config->static_file.path;
        driver->state = TAKE_PTR(state);
        return 0;
}

static void static_done(Driver *driver)
{
        StaticState *state = driver->state;

        if (!state)
                return;
        end_read(state);
        mailbox_unref(state->mailbox);
        free(state);
        driver->state = NULL;
}

static int static_get_fd(Driver *driver)
{
        return mailbox_get_fd(((const StaticState *)driver->state)->mailbox);
}

static int read_file(const char *path, char **ret, size_t *ret_size, Error *reterr)
{
        int r = read_file_text(path, FILE_SIZE_MAX, ret, ret_size, NULL);

        if (r == -EFBIG)
                return error_setf(reterr, r, "Larger than %d MiB", FILE_SIZE_MAX >> 20);
        if (r == -EISDIR || r == -EINVAL)
                return error_setf(reterr, r, "Not a regular file");
        return r < 0 ? error_setf(reterr, r, "%s", strerror(-r)) : 0;
}

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
        /* the file says which driver found it, and when */
        r = snapshot_set_text(&snapshot->driver, static_driver_ops.name, reterr);
        if (r < 0)
                return r;
        snapshot->guests_unknown = true; /* those of another host */
        snapshot->taken_realtime_usec = clock_usec(CLOCK_REALTIME);
        snapshot->begun_realtime_usec = snapshot->taken_realtime_usec;
        snapshot->began_usec = began_usec;
        *ret = TAKE_PTR(snapshot);
        return 0;
}

static void *read_and_post(void *userdata)
{
        StaticState *state = userdata;
        Snapshot *snapshot;
        Error error = ERROR_NULL;
        int r = read_host(state->path, &snapshot, &error);

        if (r < 0) {
                error_prefixf(&error, r, "%s", state->path);
                mailbox_post_error(state->mailbox, DRIVER_EVENT_POLL_FAILED, &error);
        } else {
                mailbox_post_snapshot(state->mailbox, snapshot);
        }
        return NULL;
}

static int static_poll(Driver *driver, DriverPollKind kind)
{
        StaticState *state = driver->state;
        int r;

        end_read(state);
        r = pthread_create(&state->reader, NULL, read_and_post, state);
        state->reads = r == 0;
        return -r;
}

static int static_take(Driver *driver, DriverEvent *ret)
{
        StaticState *state = driver->state;

        end_read(state);
        return mailbox_take(state->mailbox, ret);
}

const DriverOps static_driver_ops = {
        .name = "static",
        .init = static_init,
        .done = static_done,
        .get_fd = static_get_fd,
        .poll = static_poll,
        .take = static_take,
};
