/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A bus in memory: a connection of the agent over a socket pair, whose other end plays dbus-daemon,
 * polkit and every caller. The name of a caller, for example ":a.1", is a user (":0." is root) and
 * a number. Answers are stored in the order of their arrival. */

#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "tests/unit/test.h"

#define FAKE_ANSWERS_MAX 64
#define FAKE_UID         60000

typedef struct FakeAnswer {
        char to[16], error[64], text[64]; /* text: the first argument, if it is a string */
        uint64_t usec;                    /* since fake_bus_begin() */
} FakeAnswer;

typedef struct FakeBus {
        sd_event *event;
        sd_bus *bus;  /* the agent's */
        sd_bus *peer; /* the other end */
        uint64_t begin_usec;
        FakeAnswer answers[FAKE_ANSWERS_MAX];
        size_t n_answers;
        uint32_t unread;     /* unread bytes of each caller and of the agent */
        const char *gone;    /* this caller has left the bus */
        const char *verdict; /* verdict of polkit: "yes", "no", "ask", or the name of an error;
                                NULL: no answer */
        size_t n_questions;  /* to polkit */
        size_t n_signals;    /* number of DocumentChanged */
} FakeBus;

static inline int fake_bus_tell_credentials(FakeBus *fake, sd_bus_message *m)
{
        const char *name;

        assert_true(sd_bus_message_read(m, "s", &name) > 0);
        if (fake->gone && strcmp(name, fake->gone) == 0)
                return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_NAME_HAS_NO_OWNER, "gone");
        return sd_bus_reply_method_return(m, "a{sv}", 2, "UnixUserID", "u",
                                          name[1] == '0' ? 0 : FAKE_UID + (uint32_t)name[1],
                                          "ProcessID", "u", (uint32_t)getpid());
}

static inline int fake_bus_ask_polkit(FakeBus *fake, sd_bus_message *m)
{
        fake->n_questions++;
        if (fake->verdict && strchr(fake->verdict, '.'))
                return sd_bus_reply_method_errorf(m, fake->verdict, "no verdict");
        return fake->verdict ? sd_bus_reply_method_return(m, "(bba{ss})", fake->verdict[0] == 'y',
                                                          fake->verdict[0] == 'a', 0)
                             : 1;
}

/* Handles the requests of the agent, and its answers. */
static inline int fake_bus_hear(sd_bus_message *m, void *userdata, sd_bus_error *unused)
{
        FakeBus *fake = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(m);
        const char *member = sd_bus_message_get_member(m), *text;
        FakeAnswer *answer = &fake->answers[fake->n_answers];

        if (member && strcmp(member, "Hello") == 0)
                return sd_bus_reply_method_return(m, "s", ":agent.1");
        if (member && strcmp(member, "GetConnectionCredentials") == 0)
                return fake_bus_tell_credentials(fake, m);
        if (member && strcmp(member, "GetConnectionStats") == 0)
                return sd_bus_reply_method_return(m, "a{sv}", 2, "OutgoingBytes", "u", fake->unread,
                                                  "IncomingBytes", "u", fake->unread);
        fake->n_signals += sd_bus_message_is_signal(m, NULL, "DocumentChanged") > 0;
        if (member && strcmp(member, "CheckAuthorization") == 0)
                return fake_bus_ask_polkit(fake, m);
        if (member)
                return 1;
        assert_true(fake->n_answers++ < FAKE_ANSWERS_MAX);
        snprintf(answer->to, sizeof(answer->to), "%s", sd_bus_message_get_destination(m));
        snprintf(answer->error, sizeof(answer->error), "%s", error ? error->name : "");
        if (!error && sd_bus_message_read(m, "s", &text) > 0)
                snprintf(answer->text, sizeof(answer->text), "%s", text);
        answer->usec = clock_usec(CLOCK_MONOTONIC) - fake->begin_usec;
        return 1;
}

static inline void fake_bus_begin(FakeBus *fake)
{
        const sd_id128_t id = { .qwords = { 1, 2 } };
        int fds[2];

        *fake = (FakeBus){ .begin_usec = clock_usec(CLOCK_MONOTONIC) };
        assert_true(sd_event_new(&fake->event) >= 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
                         0);
        assert_true(sd_bus_new(&fake->peer) >= 0 && sd_bus_new(&fake->bus) >= 0);
        assert_true(sd_bus_set_fd(fake->peer, fds[0], fds[0]) >= 0);
        assert_true(sd_bus_set_server(fake->peer, true, id) >= 0);
        assert_true(sd_bus_set_anonymous(fake->peer, true) >= 0);
        assert_true(sd_bus_set_fd(fake->bus, fds[1], fds[1]) >= 0);
        assert_true(sd_bus_set_bus_client(fake->bus, true) >= 0);
        assert_true(sd_bus_add_filter(fake->peer, NULL, fake_bus_hear, fake) >= 0);
        assert_true(sd_bus_start(fake->peer) >= 0 && sd_bus_start(fake->bus) >= 0);
        assert_true(sd_bus_attach_event(fake->peer, fake->event, 0) >= 0);
        assert_true(sd_bus_attach_event(fake->bus, fake->event, 0) >= 0);
        while (sd_bus_is_ready(fake->bus) == 0)
                assert_true(sd_event_run(fake->event, USEC_PER_SEC) > 0);
}

static inline void fake_bus_end(FakeBus *fake)
{
        sd_bus_close_unref(fake->bus);
        sd_bus_close_unref(fake->peer);
        sd_event_unref(fake->event);
}

/* Makes a call of that caller, to be filled and sent. interface can be NULL. */
static inline sd_bus_message *fake_bus_new_call(FakeBus *fake, const char *sender, const char *path,
                                                const char *interface, const char *member)
{
        sd_bus_message *m;

        assert_true(sd_bus_message_new_method_call(fake->peer, &m, NULL, path, interface, member) >=
                    0);
        assert_true(sd_bus_message_set_sender(m, sender) >= 0);
        return m;
}

/* Sends and frees the call. */
static inline void fake_bus_send(FakeBus *fake, sd_bus_message *m)
{
        uint64_t cookie; /* without it the call would expect no answer */

        assert_true(sd_bus_send(fake->peer, m, &cookie) >= 0);
        sd_bus_message_unref(m);
}

/* Runs the loop until there are n_answers answers, for at most usec. */
static inline void fake_bus_run(FakeBus *fake, size_t n_answers, uint64_t usec)
{
        uint64_t end = clock_usec(CLOCK_MONOTONIC) + usec;

        while (fake->n_answers < n_answers && clock_usec(CLOCK_MONOTONIC) < end)
                assert_true(sd_event_run(fake->event, 10 * USEC_PER_MSEC) >= 0);
}
