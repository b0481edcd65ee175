/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <poll.h>
#include <pthread.h>

#include "drivers/mailbox.h"
#include "tests/fixtures/host.h"

/* Makes the posts of a script, one letter each: s(napshot), f(ailed), l(ost), c(hanged). */
static void post(Mailbox *mailbox, const char *script)
{
        Error error = ERROR_NULL;

        for (const char *c = script; *c; c++) {
                error_setf(&error, EIO, "%c%d", *c, (int)(c - script));
                if (*c == 's')
                        mailbox_post_snapshot(mailbox, host_new(""));
                else if (*c == 'f')
                        mailbox_post_error(mailbox, DRIVER_EVENT_POLL_FAILED, &error);
                else if (*c == 'l')
                        mailbox_post_error(mailbox, DRIVER_EVENT_LOST, &error);
                else
                        mailbox_post_changed(mailbox);
        }
}

static bool readable(const Mailbox *mailbox)
{
        struct pollfd fd = { .fd = mailbox_get_fd(mailbox), .events = POLLIN };

        return poll(&fd, 1, 0) == 1;
}

/* Takes everything: the same letters, in order. The descriptor must be readable until the last. */
static void take(Mailbox *mailbox, char *script)
{
        static const char letters[] = "-sflc";
        DriverEvent event;

        for (;;) {
                bool had = readable(mailbox);

                assert_int_equal(mailbox_take(mailbox, &event), 0);
                assert_int_equal(had, event.type != DRIVER_EVENT_NONE);
                if (event.type == DRIVER_EVENT_NONE)
                        break;
                *script++ = letters[event.type];
                assert_int_equal(event.type == DRIVER_EVENT_SNAPSHOT, event.snapshot != NULL);
                if (event.type == DRIVER_EVENT_POLL_FAILED || event.type == DRIVER_EVENT_LOST)
                        assert_int_equal(event.error.text[0], letters[event.type]);
                snapshot_unref(event.snapshot);
        }
        *script = '\0';
}

static void test_table(void **state)
{
        static const struct {
                const char *posts, *taken;
        } cases[] = {
                { "", "" },     { "s", "s" },     { "f", "f" },
                { "l", "l" },   { "c", "c" },     { "ss", "s" }, /* the newer replaces the older */
                { "ccc", "c" },                                  /* merged */
                { "ffs", "s" },                                  /* a good poll ends the trouble */
                { "sf", "sf" }, /* the last good one is still worth having */
                { "ls", "s" },  { "sl", "sl" },   { "lf", "f" }, /* the failure says it, too */
                { "fl", "fl" }, { "clfs", "sc" }, { "csflc", "sflc" },
        };
        Mailbox *mailbox = NULL;

        assert_int_equal(mailbox_new(&mailbox), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char taken[8];

                post(mailbox, cases[i].posts);
                take(mailbox, taken);
                if (strcmp(taken, cases[i].taken) != 0)
                        fail_msg("%s: took %s", cases[i].posts, taken);
        }
        post(mailbox, "sf");
        assert_null(mailbox_unref(mailbox)); /* with what nobody took */
        assert_null(mailbox_unref(NULL));
}

#define N_POSTS 2000

static void *post_many(void *data)
{
        Mailbox *mailbox = data;

        for (unsigned i = 0; i < N_POSTS; i++)
                post(mailbox, i % 3 ? "c" : i % 2 ? "s" : "l");
        mailbox_unref(mailbox);
        return NULL;
}

/* Two threads post while a third takes: nothing is lost for good, and nothing is left behind. */
static void test_threads(void **state)
{
        _cleanup_(mailbox_unrefp) Mailbox *mailbox = NULL;
        struct pollfd fd = { .events = POLLIN };
        size_t n_snapshots = 0, n_changed = 0;
        pthread_t threads[2];
        DriverEvent event;

        assert_int_equal(mailbox_new(&mailbox), 0);
        fd.fd = mailbox_get_fd(mailbox);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, post_many, mailbox_ref(mailbox)),
                                 0);
        while (poll(&fd, 1, 500) == 1) {
                assert_int_equal(mailbox_take(mailbox, &event), 0);
                assert_int_not_equal(event.type, DRIVER_EVENT_NONE);
                n_snapshots += event.type == DRIVER_EVENT_SNAPSHOT;
                n_changed += event.type == DRIVER_EVENT_CHANGED;
                snapshot_unref(event.snapshot);
        }
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(n_snapshots > 0 && n_snapshots <= 2 * N_POSTS / 3);
        assert_true(n_changed > 0);
}

TEST_MAIN(test_table, test_threads)
