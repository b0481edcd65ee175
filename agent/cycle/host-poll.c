/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Translates the events of a driver, which polls in its own thread, to events of the tracker, and
 * keeps the last snapshot. The driver signals its events through a file descriptor. The patience
 * timer begins with the first request that has no result, so later requests do not extend it. A
 * result ends it, or starts it again if a later request needs another poll. When it runs out, the
 * poll is reported as failed with ETIMEDOUT, and a later result is still used. If polls in a row
 * time out, the message has the time since the patience of the first one began. The nodename of the
 * first snapshot names the root provider, so a snapshot with another nodename is rejected as a
 * failed poll. A failed poll leaves the last snapshot in use.
 *
 * Tests: tests/unit/agent/cycle/test-tracker.c */

#include "agent/cycle/host-poll.h"

#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"

/* Time until a poll without an answer counts as failed. */
#define PATIENCE_USEC      (30 * USEC_PER_SEC)
#define HUNG_PATIENCE_USEC (1 * USEC_PER_SEC) /* while the hypervisor is known to hang */
#define TIMER_ACCURACY     (250 * USEC_PER_MSEC)

struct HostPoll {
        Driver *driver;
        sd_event_source *driver_source;
        sd_event_source *patience_timer; /* on from a request to its result or its timeout */
        uint64_t patience_usec;
        uint64_t asked_usec; /* CLOCK_MONOTONIC of the last request */
        Snapshot *snapshot;
        bool hangs;                 /* the last poll had no result in time */
        uint64_t silent_since_usec; /* CLOCK_MONOTONIC of the begin of the patience. It stays while
                                       polls time out */
        void (*notify)(const Snapshot *snapshot, HostPollEvent event, const Error *error,
                       void *userdata);
        void *userdata;
};

/* Begins to wait for a result. */
static void start_patience(HostPoll *poll)
{
        uint64_t patience_usec = poll->patience_usec;

        if (poll->hangs)
                patience_usec = MIN(patience_usec, HUNG_PATIENCE_USEC);
        else
                poll->silent_since_usec = clock_usec(CLOCK_MONOTONIC);
        (void)sd_event_source_set_time_relative(poll->patience_timer, patience_usec);
        (void)sd_event_source_set_enabled(poll->patience_timer, SD_EVENT_ONESHOT);
}

/* Reports the end of a poll, and ends the patience. again: starts it once more, because the driver
 * polls again for a later request. */
static void end_poll(HostPoll *poll, bool again, const Error *error)
{
        (void)sd_event_source_set_enabled(poll->patience_timer, SD_EVENT_OFF);
        poll->hangs = error->code == ETIMEDOUT;
        if (again)
                start_patience(poll);
        poll->notify(poll->snapshot, HOST_POLL_ENDED, error, poll->userdata);
}

/* Returns -EEXIST if the host has another name than in the last snapshot. */
static int check_name(const HostPoll *poll, const Snapshot *snapshot, Error *reterr)
{
        if (!poll->snapshot || strcmp(poll->snapshot->nodename, snapshot->nodename) == 0)
                return 0;
        return error_setf(
                reterr, EEXIST,
                "The host's name changed from \"%.60s\" to \"%.60s\". Restore the old name, or restart the agent",
                poll->snapshot->nodename, snapshot->nodename);
}

/* Takes ownership of the snapshot. Frees it if its nodename is not that of the last one, and keeps
 * it otherwise. */
static void take_snapshot(HostPoll *poll, Snapshot *snapshot)
{
        bool again = snapshot->began_usec < poll->asked_usec;
        Error error = ERROR_NULL;

        if (check_name(poll, snapshot, &error) < 0) {
                snapshot_unref(snapshot);
        } else {
                snapshot_unref(poll->snapshot);
                poll->snapshot = snapshot;
        }
        end_poll(poll, again, &error);
}

static void handle_event(HostPoll *poll, DriverEvent *event)
{
        switch (event->type) {
        case DRIVER_EVENT_SNAPSHOT:
                take_snapshot(poll, TAKE_PTR(event->snapshot));
                break;
        case DRIVER_EVENT_POLL_FAILED:
                end_poll(poll, false, &event->error);
                break;
        case DRIVER_EVENT_LOST:
                poll->hangs = false;
                poll->notify(poll->snapshot, HOST_POLL_LOST, &event->error, poll->userdata);
                break;
        case DRIVER_EVENT_CHANGED:
                poll->notify(poll->snapshot, HOST_POLL_CHANGED, &ERROR_NULL, poll->userdata);
                break;
        default:
                break;
        }
}

/* Takes all events of the driver: one wakeup can announce several. */
static int on_driver_event(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        HostPoll *poll = userdata;

        for (;;) {
                DriverEvent event = { 0 };

                if (driver_take(poll->driver, &event) < 0 || event.type == DRIVER_EVENT_NONE)
                        return 0;
                handle_event(poll, &event);
        }
}

static int on_patience_ended(sd_event_source *source, uint64_t usec, void *userdata)
{
        HostPoll *poll = userdata;
        Error error;

        error_setf(&error, ETIMEDOUT, "The hypervisor has not answered for %" PRIu64 " s",
                   (clock_usec(CLOCK_MONOTONIC) - poll->silent_since_usec) / USEC_PER_SEC);
        end_poll(poll, false, &error);
        return 0;
}

static int add_sources(HostPoll *poll, sd_event *event)
{
        int r;

        r = sd_event_add_io(event, &poll->driver_source, driver_get_fd(poll->driver), EPOLLIN,
                            on_driver_event, poll);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(event, &poll->patience_timer, CLOCK_MONOTONIC,
                                       poll->patience_usec, TIMER_ACCURACY, on_patience_ended,
                                       poll);
        return r < 0 ? r : sd_event_source_set_enabled(poll->patience_timer, SD_EVENT_OFF);
}

int host_poll_new(HostPoll **ret, sd_event *event, Driver *driver, const Snapshot *known,
                  uint64_t patience_usec,
                  void (*notify)(const Snapshot *snapshot, HostPollEvent event, const Error *error,
                                 void *userdata),
                  void *userdata, Error *reterr)
{
        _cleanup_(host_poll_freep) HostPoll *poll = calloc(1, sizeof(HostPoll));
        int r;

        if (!poll)
                return error_oom(reterr);
        poll->driver = driver;
        poll->patience_usec = patience_usec > 0 ? patience_usec : PATIENCE_USEC;
        poll->notify = notify;
        poll->userdata = userdata;
        if (known)
                poll->snapshot = snapshot_ref(known);
        r = add_sources(poll, event);
        if (r < 0)
                return error_setf(reterr, r, "Cannot watch the driver: %s", strerror(-r));
        *ret = TAKE_PTR(poll);
        return 0;
}

HostPoll *host_poll_free(HostPoll *poll)
{
        if (!poll)
                return NULL;
        sd_event_source_disable_unref(poll->driver_source);
        sd_event_source_disable_unref(poll->patience_timer);
        snapshot_unref(poll->snapshot);
        free(poll);
        return NULL;
}

int host_poll_begin(HostPoll *poll, DriverPollKind kind, Error *reterr)
{
        int r;

        poll->asked_usec = clock_usec(CLOCK_MONOTONIC);
        r = driver_poll(poll->driver, kind);
        if (r < 0)
                return error_setf(reterr, r, "Cannot poll the hypervisor: %s", strerror(-r));
        if (sd_event_source_get_enabled(poll->patience_timer, NULL) == 0)
                start_patience(poll);
        return 0;
}
