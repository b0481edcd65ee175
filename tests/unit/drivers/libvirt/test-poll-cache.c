/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the cache without libvirt. Each test fills the same cache, marks some of it, and
 * compares the objects that the next poll would not have to read. */
#include "drivers/libvirt/poll-cache.h"
#include "tests/fixtures/host.h"

#define DOMAIN "5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02"

static int make_cache(void **state)
{
        PollCache *cache = NULL;

        if (poll_cache_new(&cache) < 0)
                return -1;
        poll_cache_keep(cache, true, true);
        *state = cache;
        return 0;
}

static int free_cache(void **state)
{
        poll_cache_free(*state);
        return 0;
}

/* Puts a device. With types it is a parent of mdevs, which changes silently. */
static void put_device(PollCache *cache, const char *name, size_t n_types)
{
        NodeDevice device = { .kind = NODE_DEVICE_DEVICE };
        const NodeDevice *kept;

        device.device.name = strdup(name);
        device.device.driver = strdup("");
        device.device.mdev_types = calloc(n_types + 1, sizeof(MdevType));
        device.device.n_mdev_types = n_types;
        assert_int_equal(poll_cache_put_device(cache, name, &device, &kept), 0);
        assert_null(device.device.name);
        assert_string_equal(kept->device.name, name);
}

/* Returns whether a poll does not have to read the domain. */
static bool knows_domain(PollCache *cache, const char *uuid)
{
        bool stale;

        return poll_cache_find_domain(cache, uuid, &stale) && !stale;
}

static void put_domain(PollCache *cache, const char *uuid)
{
        SnapshotDomain domain = { .vcpus = 4, .state = DOMAIN_RUNNING };
        const SnapshotDomain *kept;

        assert_int_equal(poll_cache_put_domain(cache, uuid, &domain, &kept), 0);
        assert_int_equal(kept->vcpus, 4);
}

/* Adds domains that polls read again before DOMAIN. */
static void put_earlier_domains(PollCache *cache)
{
        for (char letter = 'a'; letter <= 'p'; letter++) {
                const char uuid[] = { '0', letter, '\0' };

                if (!knows_domain(cache, uuid))
                        put_domain(cache, uuid);
        }
}

static void fill(PollCache *cache)
{
        poll_cache_begin(cache, 1, DRIVER_POLL_CHANGES);
        put_device(cache, "pci_b", 0);
        put_device(cache, "pci_a", 0);
        put_device(cache, "mdev_1", 0);
        put_domain(cache, DOMAIN);
        put_earlier_domains(cache);
        poll_cache_end(cache, true);
}

/* Compares the objects that a poll would not have to read: pci_a, pci_b, mdev_1, and the domain. */
static void expect(PollCache *cache, uint64_t now_usec, const char *known)
{
        char found[5] = "----";

        poll_cache_begin(cache, now_usec, DRIVER_POLL_CHANGES);
        if (poll_cache_find_device(cache, "pci_a"))
                found[0] = 'a';
        if (poll_cache_find_device(cache, "pci_b"))
                found[1] = 'b';
        if (poll_cache_find_device(cache, "mdev_1"))
                found[2] = 'm';
        if (knows_domain(cache, DOMAIN))
                found[3] = 'd';
        put_earlier_domains(cache);
        poll_cache_end(cache, true);
        assert_string_equal(found, known);
}

static void test_keeps_what_did_not_change(void **state)
{
        fill(*state);
        expect(*state, 2, "abmd");
        expect(*state, 3, "abmd");
}

static void test_mark_drops_one(void **state)
{
        fill(*state);
        poll_cache_mark_device(*state, "pci_b");
        poll_cache_mark_domain(*state, "00000000-0000-0000-0000-000000000000");
        expect(*state, 2, "a-md");
        poll_cache_mark_domain(*state, DOMAIN);
        expect(*state, 3, "a-m-");
}

/* The available instances of a parent change without an event. */
static void test_mdev_parent_is_always_read(void **state)
{
        PollCache *cache = *state;
        const NodeDevice *device;
        bool stale;
        size_t i = 0;

        fill(cache);
        poll_cache_begin(cache, 2, DRIVER_POLL_CHANGES);
        put_device(cache, "pci_gpu", 2);
        assert_null(poll_cache_find_device(cache, "pci_gpu"));
        assert_non_null(poll_cache_find_device(cache, "pci_a"));
        poll_cache_end(cache, true);
        assert_true(poll_cache_begin(cache, 3, DRIVER_POLL_CHANGES));
        device = poll_cache_next_device(cache, &i, &stale);
        assert_string_equal(device->device.name, "pci_a");
        assert_false(stale);
        device = poll_cache_next_device(cache, &i, &stale);
        assert_string_equal(device->device.name, "pci_gpu");
        assert_true(stale);
}

static void test_mark_during_poll_counts_for_the_next(void **state)
{
        PollCache *cache = *state;

        fill(cache);
        poll_cache_begin(cache, 2, DRIVER_POLL_CHANGES);
        poll_cache_mark_device(cache, "pci_b");
        put_device(cache, "pci_b", 0); /* it might have been read before the change */
        assert_non_null(poll_cache_find_device(cache, "pci_a"));
        poll_cache_end(cache, true);
        expect(cache, 3, "a---");
}

static void test_forgets_what_is_gone(void **state)
{
        PollCache *cache = *state;

        fill(cache);
        poll_cache_begin(cache, 2, DRIVER_POLL_CHANGES);
        assert_non_null(poll_cache_find_device(cache, "pci_a"));
        poll_cache_end(cache, true);
        expect(cache, 3, "a---");
}

static void test_forgets_all_after_a_failure(void **state)
{
        fill(*state);
        poll_cache_begin(*state, 2, DRIVER_POLL_CHANGES);
        poll_cache_end(*state, false);
        expect(*state, 3, "----");
}

static void test_reads_all_now_and_then(void **state)
{
        fill(*state);
        expect(*state, POLL_CACHE_LIFE_USEC, "abmd");
        expect(*state, POLL_CACHE_LIFE_USEC + 1, "----");
}

static void test_keeps_nothing_without_events(void **state)
{
        PollCache *cache = *state;

        poll_cache_keep(cache, false, true);
        fill(cache);
        expect(cache, 2, "---d");
        poll_cache_keep(cache, true, false);
        fill(cache);
        expect(cache, 3, "abm-");
}

static bool knows_devices(PollCache *cache, uint64_t now_usec, size_t *ret_n)
{
        bool knows, stale;

        knows = poll_cache_begin(cache, now_usec, DRIVER_POLL_CHANGES);
        *ret_n = 0;
        for (size_t i = 0; poll_cache_next_device(cache, &i, &stale);)
                (*ret_n)++;
        poll_cache_end(cache, true);
        return knows;
}

static void test_knows_all_devices(void **state)
{
        PollCache *cache = *state;
        size_t n;

        assert_false(knows_devices(cache, 1, &n));
        fill(cache);
        assert_true(knows_devices(cache, 2, &n));
        assert_int_equal(n, 3);
        poll_cache_mark_domain(cache, DOMAIN);
        assert_true(knows_devices(cache, 3, &n));
        poll_cache_mark_device(cache, "pci_new");
        assert_false(knows_devices(cache, 4, &n));
        assert_true(knows_devices(cache, 5, &n));
        assert_int_equal(n, 3);
        assert_false(knows_devices(cache, POLL_CACHE_LIFE_USEC + 1, &n));
        assert_int_equal(n, 0);
        poll_cache_begin(cache, POLL_CACHE_LIFE_USEC + 2, DRIVER_POLL_CHANGES);
        poll_cache_end(cache, false);
        assert_false(knows_devices(cache, POLL_CACHE_LIFE_USEC + 3, &n));
        poll_cache_keep(cache, false, false);
        fill(cache);
        assert_false(knows_devices(cache, 2, &n));
}

static void test_flood_of_marks(void **state)
{
        PollCache *cache = *state;
        char name[32];

        fill(cache);
        for (unsigned i = 0; i < POLL_CACHE_MARKS_MAX; i++) {
                snprintf(name, sizeof(name), "net_%u", i);
                poll_cache_mark_device(cache, name);
        }
        expect(cache, 2, "abmd");
        for (unsigned i = 0; i <= POLL_CACHE_MARKS_MAX; i++) {
                snprintf(name, sizeof(name), "net_%u", i);
                poll_cache_mark_device(cache, name);
        }
        expect(cache, 3, "---d");
}

/* Compares the domains that a poll of this kind reads again. One of the 20 domains runs. */
static void expect_read(PollCache *cache, DriverPollKind kind, const char *expected)
{
        char found[32] = "";

        poll_cache_begin(cache, 3, kind);
        for (char letter = 'a'; letter < 'a' + 20; letter++) {
                const char uuid[] = { letter, '\0' };
                SnapshotDomain domain = { .state =
                                                  letter == 'c' ? DOMAIN_RUNNING : DOMAIN_SHUTOFF };
                const SnapshotDomain *kept;

                if (knows_domain(cache, uuid))
                        continue;
                found[strlen(found)] = letter;
                assert_int_equal(poll_cache_put_domain(cache, uuid, &domain, &kept), 0);
        }
        poll_cache_end(cache, true);
        assert_string_equal(found, expected);
}

static void test_guests_are_read_again_in_turn(void **state)
{
        PollCache *cache = *state;

        expect_read(cache, DRIVER_POLL_CHANGES, "abcdefghijklmnopqrst");
        expect_read(cache, DRIVER_POLL_CHANGES, "abcd");
        expect_read(cache, DRIVER_POLL_CHANGES, "efgh");
        expect_read(cache, DRIVER_POLL_CHANGES, "ijkl");
        expect_read(cache, DRIVER_POLL_CHANGES, "mnop");
        expect_read(cache, DRIVER_POLL_CHANGES, "qrst");
        expect_read(cache, DRIVER_POLL_CHANGES, "abcd");
        expect_read(cache, DRIVER_POLL_GUESTS, "abcdefghijklmnopqrst");
        expect_read(cache, DRIVER_POLL_ALL, "abcdefghijklmnopqrst");
}

/* A claim waits for a poll of the guests alone. It does not read devices again, even if the cache
 * is old. Together with another request, all of both is read. */
static void test_a_poll_of_guests_reads_no_device(void **state)
{
        static const struct {
                DriverPollKind kind;
                uint64_t now_usec;
                bool reads_gpu, reads_other, reads_guest;
        } cases[] = {
                { DRIVER_POLL_GUESTS, 2, false, false, true },
                { DRIVER_POLL_GUESTS, POLL_CACHE_LIFE_USEC + 2, false, false, true },
                { DRIVER_POLL_GUESTS | DRIVER_POLL_CHANGES, 2, true, false, true },
                { DRIVER_POLL_ALL, 2, true, true, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                PollCache *cache = *state;
                const NodeDevice *gpu, *device;
                bool stale;

                poll_cache_begin(cache, 1, DRIVER_POLL_ALL);
                put_device(cache, "pci_a", 0);
                put_device(cache, "pci_gpu", 2);
                put_domain(cache, DOMAIN);
                put_earlier_domains(cache);
                poll_cache_end(cache, true);
                poll_cache_begin(cache, cases[i].now_usec, cases[i].kind);
                gpu = poll_cache_find_device(cache, "pci_gpu");
                assert_int_equal(gpu == NULL, cases[i].reads_gpu);
                for (size_t j = 0; (device = poll_cache_next_device(cache, &j, &stale));)
                        assert_int_equal(stale,
                                         !gpu && strcmp(device->device.name, "pci_gpu") == 0);
                assert_int_equal(poll_cache_find_device(cache, "pci_a") == NULL,
                                 cases[i].reads_other);
                assert_int_equal(!knows_domain(cache, DOMAIN), cases[i].reads_guest);
                poll_cache_end(cache, false);
        }
}

/* The number of mdevs that a parent can still make was read before a new mdev began. With both, the
 * parent would offer one too many. The order of the listing does not matter. */
static void test_a_new_mdev_makes_a_poll_of_guests_read_parents(void **state)
{
        static const struct {
                const char *name;
                bool reads_gpu;
        } cases[] = {
                { "mdev_1", false },
                { "mdev_2", true },
                { "pci_new", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                PollCache *cache = *state;

                poll_cache_begin(cache, 1, DRIVER_POLL_ALL);
                put_device(cache, "pci_gpu", 2);
                put_device(cache, "mdev_1", 0);
                poll_cache_end(cache, true);
                poll_cache_mark_device(cache, cases[i].name[0] == 'p' ? "pci_new" : "mdev_2");
                assert_false(poll_cache_begin(cache, 2, DRIVER_POLL_GUESTS));
                poll_cache_note_listed(cache, "pci_gpu");
                poll_cache_note_listed(cache, cases[i].name);
                assert_int_equal(poll_cache_find_device(cache, "pci_gpu") == NULL,
                                 cases[i].reads_gpu);
                poll_cache_end(cache, false);
        }
}

TEST_MAIN_WITH(make_cache, free_cache, test_keeps_what_did_not_change, test_mark_drops_one,
               test_mdev_parent_is_always_read, test_mark_during_poll_counts_for_the_next,
               test_forgets_what_is_gone, test_forgets_all_after_a_failure,
               test_reads_all_now_and_then, test_keeps_nothing_without_events,
               test_knows_all_devices, test_flood_of_marks, test_guests_are_read_again_in_turn,
               test_a_poll_of_guests_reads_no_device,
               test_a_new_mdev_makes_a_poll_of_guests_read_parents)
