/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/fit/device-choice.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

/* "2 4": these mdevs are claimed, on that device. */
static void make_taken(Taken *taken, const HostFacts *facts, const char *device,
                       const char *numbers)
{
        for (; *numbers; numbers++) {
                Uuid mdev = make_mdev(*numbers);

                if (*numbers != ' ')
                        assert_int_equal(taken_add(taken, &mdev, device, ""), 0);
        }
        assert_int_equal(taken_add_guests(taken, facts), 0);
}

/* The facts: GPU a has mdevs 1, 2 (of another type) and 3; b has 4. Guest uses what the row says.
 */
static void test_choice(void **state)
{
        static const struct {
                const char *name;
                const char *device;
                const char *in_use, *taken;
                uint64_t available;
                char expected;      /* an mdev's number, 'n' for a new one, '-' for none */
                const char *was_on; /* name of the device when it was claimed, if another */
        } rows[] = {
                { "the lowest free one", "a", "", "", 1, '1', NULL },
                { "not one of a guest", "a", "1", "", 1, '3', NULL },
                { "not one of a claim", "a", "", "1", 1, '3', NULL },
                { "never one of another type", "a", "1 3", "", 0, '-', NULL },
                { "a new one when none is free", "a", "1", "3", 1, 'n', NULL },
                { "a claimed one that is not made takes room", "a", "1 3", "8", 1, '-', NULL },
                { "and leaves what is more", "a", "1 3", "8", 2, 'n', NULL },
                { "one that is made takes none", "a", "1", "3", 1, 'n', NULL },
                { "of its own device", "b", "", "", 1, '4', NULL },
                { "no room", "b", "4", "", 0, '-', NULL },
                { "not one that was claimed under another name", "a", "", "1", 1, '3', "was-a" },
                { "nor of a device that others are on now", "a", "", "1 3", 0, '-', "b" },
                { "what is not made takes no room of others", "a", "1 3", "8", 1, 'n', "b" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(taken_done) Taken taken = { 0 };
                Error error = ERROR_NULL;
                FactsFixture facts;
                const HostDevice *device;
                Uuid chosen = UUID_NULL;
                int r;

                make_facts(&facts);
                facts_guest(&facts, 'g', rows[i].in_use);
                facts.devices[0].available = facts.devices[1].available = rows[i].available;
                make_taken(&taken, &facts.facts, rows[i].was_on ? rows[i].was_on : rows[i].device,
                           rows[i].taken);
                device = host_facts_find_device(&facts.facts, rows[i].device);
                assert_non_null(device);
                r = device_choose(&facts.facts, device, &taken, &chosen, &error);
                if (rows[i].expected == '-') {
                        if (r != CLAIM_E_NO_CAPACITY || !strstr(error.text, rows[i].device))
                                fail_msg("%s: %d %s", rows[i].name, r, chosen.text);
                        continue;
                }
                assert_int_equal(r, CLAIM_DONE);
                if (rows[i].expected == 'n') {
                        if (uuid_empty(&chosen) || host_facts_find_mdev(&facts.facts, &chosen))
                                fail_msg("%s: %s", rows[i].name, chosen.text);
                        continue;
                }
                if (strcmp(chosen.text, make_mdev(rows[i].expected).text) != 0)
                        fail_msg("%s: %s", rows[i].name, chosen.text);
        }
}

static uint64_t choose_all(const HostFacts *facts, const HostDevice *device, Taken *taken)
{
        uint64_t n = 0;
        Uuid mdev;

        while (device_choose(facts, device, taken, &mdev, NULL) == CLAIM_DONE) {
                assert_false(taken_has(taken, mdev.text));
                assert_int_equal(taken_add(taken, &mdev, device->name, ""), 0);
                n++;
        }
        return n;
}

/* What the fit is told is what can be chosen, for all that may be in use or claimed. */
static void test_rooms_are_what_can_be_chosen(void **state)
{
        for (unsigned i = 0; i < 1 << 10; i++) {
                _cleanup_(device_rooms_done) DeviceRooms rooms = { 0 };
                _cleanup_(taken_done) Taken taken = { 0 };
                char used[5] = "", claimed[5] = "";
                FactsFixture facts;

                for (unsigned j = 0; j < 4; j++) {
                        if (i >> j & 1)
                                used[strlen(used)] = (char)('1' + j);
                        if (i >> (4 + j) & 1) /* 5 and 6 are not made */
                                claimed[strlen(claimed)] = (char)('3' + j);
                }
                make_facts(&facts);
                facts_guest(&facts, 'g', used);
                facts.devices[0].available = i >> 8 & 3;
                make_taken(&taken, &facts.facts, "a", claimed);
                assert_int_equal(device_rooms_make(&rooms, &facts.facts, &taken), 0);
                for (unsigned j = 0; j < 2; j++) {
                        const char *name = j == 0 ? "host_a" : "host_b";
                        const DeviceRoom *room = device_rooms_find(&rooms, "host", name, "VGPU");

                        assert_non_null(room);
                        assert_int_equal(room->n_free,
                                         choose_all(&facts.facts, &facts.devices[j], &taken));
                }
                assert_null(device_rooms_find(&rooms, "host", "host_a", "VCPU"));
                assert_null(device_rooms_find(&rooms, "hos", "host_a", "VGPU"));
        }
}

/* Two virtual functions and a card of another class are a room each; a guest and a claim have some.
 */
static void test_rooms_of_pci_devices(void **state)
{
        static const char addresses[][HOST_ADDRESS_SIZE] = { "0000:10:00.1" };
        HostPci pci[] = { { "pci_0000_10_00_1", "0000:10:00.1", "0000:10:00.0", "CUSTOM_VF",
                            HOST_CELL_NONE, true },
                          { "pci_0000_10_00_2", "0000:10:00.2", "0000:10:00.0", "CUSTOM_VF",
                            HOST_CELL_NONE, true },
                          { "pci_0000_20_0a_0", "0000:20:0a.0", "0000:20:0a.0", "CUSTOM_CARD",
                            HOST_CELL_NONE, true } };
        HostDomain domain = { .name = "off", .pci = addresses, .n_pci = 1 };
        const HostFacts facts = { .pci = pci, .n_pci = 3, .domains = &domain, .n_domains = 1 };
        _cleanup_(device_rooms_done) DeviceRooms rooms = { 0 };
        _cleanup_(taken_done) Taken taken = { 0 };

        assert_int_equal(taken_add(&taken, &UUID_NULL, pci[2].name, pci[2].address), 0);
        assert_int_equal(taken_add_guests(&taken, &facts), 0);
        assert_int_equal(device_rooms_make(&rooms, &facts, &taken), 0);
        assert_int_equal(rooms.n_items, 2);
        assert_int_equal(device_rooms_find(&rooms, "h", "h_0000:10:00.0", "CUSTOM_VF")->n_free, 1);
        assert_int_equal(device_rooms_find(&rooms, "h", "h_0000:20:0A.0", "CUSTOM_CARD")->n_free,
                         0);
}

static void test_provider(void **state)
{
        FactsFixture facts;

        make_facts(&facts);
        assert_ptr_equal(device_of_provider(&facts.facts, "host", "host_a", "VGPU"),
                         &facts.devices[0]);
        assert_null(device_of_provider(&facts.facts, "host", "host_a", "CUSTOM_GPU"));
        assert_null(device_of_provider(&facts.facts, "host", "host", "VGPU"));
        assert_null(device_of_provider(&facts.facts, "host", "host_c", "VGPU"));
        assert_null(device_of_provider(&facts.facts, "hos", "host_a", "VGPU"));
        assert_null(device_of_provider(&facts.facts, "other", "host_a", "VGPU"));
}

TEST_MAIN(test_choice, test_rooms_are_what_can_be_chosen, test_rooms_of_pci_devices, test_provider)
