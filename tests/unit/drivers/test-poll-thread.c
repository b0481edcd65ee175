/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests drivers over a source that the test holds and releases. The suite also runs them under
 * ThreadSanitizer. */

#include "drivers/poll-thread.h"

#include <dirent.h>
#include <poll.h>

#include "base/clock.h"
#include "tests/fixtures/driver.h"
#include "tests/fixtures/host.h"

#define N_POSTS 2000

/* The events of a mailbox */

/* Posts the events of a script, one letter each: s is a snapshot, f a failure, l a loss, c a
 * change. */
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

/* Takes all events and compares the same letters, in order. The descriptor must be readable
 * until the last one. */
static void take(Mailbox *mailbox, int fd, char *script)
{
        static const char letters[] = "-sflc";
        DriverEvent event;

        for (;;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                bool had = poll(&poll_fd, 1, 0) == 1;

                mailbox_take(mailbox, &event);
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

static void test_events_that_replace_others(void **state)
{
        static const struct {
                const char *posts, *taken;
        } cases[] = {
                { "", "" },     { "s", "s" },     { "f", "f" },        { "l", "l" },
                { "c", "c" },   { "ss", "s" }, /* the newer one replaces the older one */
                { "ccc", "c" },                /* merged */
                { "ffs", "s" },                /* a good poll removes the failures */
                { "sf", "sf" },                /* the last good snapshot is still useful */
                { "ls", "s" },  { "sl", "sl" },   { "lf", "f" }, /* the failure includes the loss */
                { "fl", "fl" }, { "clfs", "sc" }, { "csflc", "sflc" },
        };
        Mailbox *mailbox = NULL;
        int fd;

        assert_int_equal(mailbox_new(&mailbox, &fd), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char taken[8];

                post(mailbox, cases[i].posts);
                take(mailbox, fd, taken);
                if (strcmp(taken, cases[i].taken) != 0)
                        fail_msg("%s: took %s", cases[i].posts, taken);
        }
        post(mailbox, "sf");
        assert_null(mailbox_unref(mailbox)); /* with events that were not taken */
        assert_null(mailbox_unref(NULL));
}

/* A source that hangs while the test holds it */

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool held;
        unsigned n_polls, n_freed; /* polls that began, and sources that were freed */
        DriverPollKind kind;       /* kind of the last poll */
} world = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void hold(bool held)
{
        pthread_mutex_lock(&world.lock);
        world.held = held;
        pthread_cond_broadcast(&world.changed);
        pthread_mutex_unlock(&world.lock);
}

/* Waits until a counter has this value. Blocks for ever if it never has. */
static void wait_until(const unsigned *counter, unsigned n)
{
        unsigned count;

        pthread_mutex_lock(&world.lock);
        while (*counter < n)
                pthread_cond_wait(&world.changed, &world.lock);
        count = *counter;
        pthread_mutex_unlock(&world.lock);
        assert_int_equal(count, n);
}

static void poll_source(void *data, DriverPollKind kind, Mailbox *mailbox)
{
        pthread_mutex_lock(&world.lock);
        world.kind = kind;
        world.n_polls++;
        pthread_cond_broadcast(&world.changed);
        while (world.held)
                pthread_cond_wait(&world.changed, &world.lock);
        pthread_mutex_unlock(&world.lock);
        mailbox_post_snapshot(mailbox, host_new(""));
}

static void free_source(void *data)
{
        pthread_mutex_lock(&world.lock);
        world.n_freed++;
        pthread_cond_broadcast(&world.changed);
        pthread_mutex_unlock(&world.lock);
}

static int reset_world(void **state)
{
        world.held = false;
        world.n_polls = world.n_freed = 0;
        return 0;
}

static Driver *make_driver(const char *name, const char *address, Driver *before)
{
        const PollSource source = {
                .poll = poll_source, .free = free_source, .fd = -1, .address = address
        };
        Driver *driver = NULL;
        Error error = ERROR_NULL;

        if (poll_thread_start(&driver, name, &source, before, &error) < 0)
                fail_msg("%s", error.text);
        return driver;
}

/* Creates a driver that hangs in its first poll. */
static Driver *make_hung(void)
{
        Driver *driver = make_driver("fake", "a", NULL);
        DriverEvent event;

        hold(true);
        assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 0);
        wait_until(&world.n_polls, 1);
        assert_int_equal(driver_take(driver, &event), 0);
        assert_int_equal(event.type, DRIVER_EVENT_NONE);
        assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 1); /* the poll still runs */
        return driver;
}

static void take_snapshot(Driver *driver)
{
        DriverEvent event;

        driver_wait(driver, DRIVER_EVENT_SNAPSHOT, &event);
        snapshot_unref(event.snapshot);
}

static double free_driver(Driver *driver)
{
        uint64_t start_usec = clock_usec(CLOCK_MONOTONIC);

        driver_free(driver);
        return (double)(clock_usec(CLOCK_MONOTONIC) - start_usec) / USEC_PER_SEC;
}

/* Requests during a poll become one more poll of all their kinds, and the caller gets 1. */
static void test_requests_are_merged(void **state)
{
        Driver *driver = make_hung();

        for (unsigned i = 0; i < 1000; i++)
                assert_int_equal(
                        driver_poll(driver, i % 2 ? DRIVER_POLL_CHANGES : DRIVER_POLL_GUESTS), 1);
        hold(false);
        wait_until(&world.n_polls, 2);
        assert_int_equal(world.kind, DRIVER_POLL_CHANGES | DRIVER_POLL_GUESTS);
        driver_free(driver);
        assert_int_equal(world.n_polls, 2);
        assert_int_equal(world.n_freed, 1);
}

/* The thread keeps running, and frees the source when its call returns. */
static void test_free_does_not_hang(void **state)
{
        double seconds = free_driver(make_hung());

        assert_true(seconds > 1.5 && seconds < 3);
        assert_int_equal(world.n_freed, 0);
        hold(false);
        wait_until(&world.n_freed, 1);
}

static size_t count_entries(const char *folder)
{
        DIR *directory = opendir(folder);
        size_t n = 0;

        assert_non_null(directory);
        while (readdir(directory))
                n++;
        closedir(directory);
        return n;
}

/* Reloads while a hypervisor hangs: none waits, and no thread or descriptor is added. */
static void test_one_after_another_that_hangs(void **state)
{
        Driver *driver = make_hung();
        size_t n_threads = 0, n_files = 0;

        for (unsigned i = 1; i < 7; i++) {
                Driver *before = driver;

                driver = make_driver("fake", "a", before);
                assert_true(driver_poll(driver, DRIVER_POLL_CHANGES) >= 0);
                assert_true(free_driver(before) < 1.5);
                if (i == 1) {
                        n_threads = count_entries("/proc/self/task");
                        n_files = count_entries("/proc/self/fd");
                }
                assert_int_equal(count_entries("/proc/self/task"), n_threads);
                assert_int_equal(count_entries("/proc/self/fd"), n_files);
        }
        assert_int_equal(world.n_polls, 1);
        hold(false);
        driver_free(driver);
        wait_until(&world.n_freed, 7);
}

/* A driver with another address or another name polls at once. */
static void test_others_beside_one_that_hangs(void **state)
{
        static const struct {
                const char *name, *address;
        } cases[] = { { "fake", "b" }, { "other", "a" } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Driver *hung, *driver;

                reset_world(state);
                hung = make_hung();
                driver = make_driver(cases[i].name, cases[i].address, hung);
                assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 0);
                wait_until(&world.n_polls, 2);
                hung->replaced = true;
                assert_true(free_driver(hung) < 1.5); /* no other driver uses its thread */
                hold(false);
                take_snapshot(driver);
                driver_free(driver);
                wait_until(&world.n_freed, 2);
        }
}

/* A driver that replaces another one polls on the same thread, after it. */
static void test_takes_over(void **state)
{
        Driver *before = make_hung(), *driver = make_driver("fake", "a", before);

        assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 0);
        driver_free(before);
        assert_int_equal(world.n_polls, 1);
        hold(false);
        take_snapshot(driver);
        driver_free(driver);
        assert_int_equal(world.n_polls, 2);
        wait_until(&world.n_freed, 2);
}

/* Threads that post */

static void *post_many(void *data)
{
        for (unsigned i = 0; i < N_POSTS; i++)
                post(data, i % 3 ? "c" : i % 2 ? "s" : "l");
        return NULL;
}

static void poll_with_threads(void *data, DriverPollKind kind, Mailbox *mailbox)
{
        pthread_t threads[2];

        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, post_many, mailbox), 0);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        post(mailbox, "f");
}

/* Two threads post while a third one takes. No event is lost, except those that newer ones
 * replace, and none is left. */
static void test_threads(void **state)
{
        const PollSource source = {
                .poll = poll_with_threads, .free = free_source, .fd = -1, .address = "a"
        };
        size_t n_snapshots = 0, n_changed = 0;
        struct pollfd fd = { .events = POLLIN };
        Driver *driver = NULL;
        DriverEvent event;

        assert_int_equal(poll_thread_start(&driver, "fake", &source, NULL, NULL), 0);
        fd.fd = driver_get_fd(driver);
        assert_int_equal(driver_poll(driver, DRIVER_POLL_CHANGES), 0);
        do {
                assert_int_equal(poll(&fd, 1, -1), 1);
                assert_int_equal(driver_take(driver, &event), 0);
                assert_int_not_equal(event.type, DRIVER_EVENT_NONE);
                n_snapshots += event.type == DRIVER_EVENT_SNAPSHOT;
                n_changed += event.type == DRIVER_EVENT_CHANGED;
                snapshot_unref(event.snapshot);
        } while (event.type != DRIVER_EVENT_POLL_FAILED);
        /* A change that was posted before the failure can be taken after it. */
        do {
                assert_int_equal(driver_take(driver, &event), 0);
                n_changed += event.type == DRIVER_EVENT_CHANGED;
        } while (event.type != DRIVER_EVENT_NONE);
        assert_true(n_snapshots > 0 && n_snapshots <= 2 * N_POSTS / 3);
        assert_true(n_changed > 0);
        driver_free(driver);
        assert_int_equal(world.n_freed, 1);
}

TEST_MAIN_WITH(reset_world, NULL, test_events_that_replace_others, test_requests_are_merged,
               test_free_does_not_hang, test_one_after_another_that_hangs,
               test_others_beside_one_that_hangs, test_takes_over, test_threads)
