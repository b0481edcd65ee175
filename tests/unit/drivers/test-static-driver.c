/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "drivers/registry.h"
#include "tests/fixtures/host.h"
#include "tests/fixtures/scratch-folder.h"

#define HOST(members) "{\"format\": \"compute-agent-host/1\", \"nodename\": \"cn1\"" members "}"

typedef struct Fixture {
        char *folder, *path;
        DriverConfig config;
        Driver *driver;
} Fixture;

static int set_up(void **state)
{
        Fixture *fixture = calloc(1, sizeof(Fixture));

        fixture->folder = scratch_folder_make();
        fixture->path = scratch_path(fixture->folder, "host.json");
        fixture->config =
                (DriverConfig){ .host = config_make(NULL, 0), .static_path = fixture->path };
        *state = fixture;
        return driver_new(&fixture->driver, "static", &fixture->config, NULL, NULL);
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        driver_free(fixture->driver);
        scratch_folder_remove(fixture->folder);
        free(fixture->path);
        free(fixture);
        return 0;
}

/* Polls and takes the only event. */
static void poll_driver(Fixture *fixture, DriverEvent *ret)
{
        struct pollfd fd = { .fd = driver_get_fd(fixture->driver), .events = POLLIN };
        DriverEvent none;

        assert_true(driver_poll(fixture->driver, DRIVER_POLL_CHANGES) >= 0);
        assert_int_equal(poll(&fd, 1, -1), 1);
        assert_int_equal(driver_take(fixture->driver, ret), 0);
        assert_int_equal(driver_take(fixture->driver, &none), 0);
        assert_int_equal(none.type, DRIVER_EVENT_NONE);
        assert_int_equal(poll(&fd, 1, 0), 0);
}

static void test_changed_file_is_read_again(void **state)
{
        Fixture *fixture = *state;
        DriverEvent event;

        scratch_write(fixture->folder, "host.json",
                      HOST(", \"driver\": \"libvirt\", \"memory_kib\": 1024"));
        poll_driver(fixture, &event);
        assert_int_equal(event.type, DRIVER_EVENT_SNAPSHOT);
        assert_int_equal(event.snapshot->memory_kib, 1024);
        assert_string_equal(event.snapshot->driver, "static");
        assert_true(event.snapshot->taken_realtime_usec > UINT64_C(1600000000000000));
        snapshot_unref(event.snapshot);

        scratch_write(fixture->folder, "host.json", HOST(", \"memory_kib\": 2048"));
        poll_driver(fixture, &event);
        assert_int_equal(event.snapshot->memory_kib, 2048);
        snapshot_unref(event.snapshot);
}

static void test_bad_files(void **state)
{
        static const struct {
                const char *text; /* NULL: no file */
                const char *words;
        } cases[] = {
                { NULL, "host.json: No such file" },
                { "", "Not JSON" },
                { "{", "Not JSON" },
                { "\xff\xfe", "Not JSON" },
                { "[]", "host.json: A host is a JSON object" },
                { HOST(", \"memory_kib\": -1"), "memory_kib: out of range" },
                { HOST(", \"nodename\": \"again\""), "duplicate" },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                DriverEvent event;

                if (cases[i].text)
                        scratch_write(fixture->folder, "host.json", cases[i].text);
                poll_driver(fixture, &event);
                assert_int_equal(event.type, DRIVER_EVENT_POLL_FAILED);
                assert_null(event.snapshot);
                if (!strstr(event.error.text, cases[i].words))
                        fail_msg("case %zu: \"%s\"", i, event.error.text);
        }
}

/* None of these files may block the main thread or use much memory. */
static void test_no_regular_files(void **state)
{
        Fixture *fixture = *state;
        DriverEvent event;
        int fd;

        assert_int_equal(mkfifo(fixture->path, 0600), 0);
        poll_driver(fixture, &event);
        assert_non_null(strstr(event.error.text, "Not a regular file"));
        unlink(fixture->path);

        assert_int_equal(symlink("/dev/zero", fixture->path), 0);
        poll_driver(fixture, &event);
        assert_non_null(strstr(event.error.text, "Not a regular file"));
        unlink(fixture->path);

        fd = open(fixture->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_int_equal(ftruncate(fd, 65 * 1024 * 1024), 0);
        close(fd);
        poll_driver(fixture, &event);
        assert_non_null(strstr(event.error.text, "Larger than 64 MiB"));
}

TEST_MAIN_WITH(set_up, tear_down, test_changed_file_is_read_again, test_bad_files,
               test_no_regular_files)
