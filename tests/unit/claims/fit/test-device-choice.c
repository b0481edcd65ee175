/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/fit/device-choice.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

/* Takes mdevs for claims on that device: "2 4" are their numbers. */
/* A PCI device of no cell, which guests get as a whole. */
#define WHOLE(name_, address_, provider_, class_)                                 \
        {                                                                         \
                .name = (name_), .address = (address_), .provider = (provider_),  \
                .resource_class = class_, .cell = HOST_CELL_NONE, .managed = true \
        }

static void make_taken(Taken *taken, const HostFacts *facts, const char *device,
                       const char *numbers)
{
        for (; *numbers; numbers++) {
                Uuid mdev = make_mdev(*numbers);

                if (*numbers != ' ')
                        assert_int_equal(taken_add(taken, &mdev, device, "", ""), 0);
        }
        assert_int_equal(taken_add_guests(taken, facts), 0);
}

/* The facts: GPU a has mdevs 1, 2 (of another type) and 3; GPU b has mdev 4. The guest uses the
 * mdevs of the row. */
static void test_choice(void **state)
{
        static const struct {
                const char *name;
                const char *device;
                const char *in_use, *taken;
                uint64_t available;
                char expected;      /* an mdev's number, 'n' for a new one, '-' for none */
                const char *was_on; /* name of the device when it was claimed; NULL: the same */
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
                assert_int_equal(taken_add(taken, &mdev, device->name, "", ""), 0);
                n++;
        }
        return n;
}

/* The number of free devices for the fit is the number that can be chosen, for all sets of used and
 * claimed mdevs. */
static void test_capacities_are_what_can_be_chosen(void **state)
{
        for (unsigned i = 0; i < 1 << 10; i++) {
                _cleanup_free_ DeviceCapacity *capacities = NULL;
                _cleanup_(taken_done) Taken taken = { 0 };
                char used[5] = "", claimed[5] = "";
                size_t n_capacities;
                FactsFixture facts;

                for (unsigned j = 0; j < 4; j++) {
                        if (i >> j & 1)
                                used[strlen(used)] = (char)('1' + j);
                        if (i >> (4 + j) & 1) /* mdevs 5 and 6 do not exist */
                                claimed[strlen(claimed)] = (char)('3' + j);
                }
                make_facts(&facts);
                facts_guest(&facts, 'g', used);
                facts.devices[0].available = i >> 8 & 3;
                make_taken(&taken, &facts.facts, "a", claimed);
                assert_int_equal(
                        device_capacities_make(&capacities, &n_capacities, &facts.facts, &taken),
                        0);
                for (unsigned j = 0; j < 2; j++) {
                        const char *name = j == 0 ? "host_a" : "host_b";
                        const DeviceCapacity *capacity = device_capacities_find(
                                capacities, n_capacities, "host", name, "VGPU");

                        assert_non_null(capacity);
                        assert_int_equal(capacity->n_free,
                                         choose_all(&facts.facts, &facts.devices[j], &taken));
                }
                assert_null(
                        device_capacities_find(capacities, n_capacities, "host", "host_a", "VCPU"));
                assert_null(
                        device_capacities_find(capacities, n_capacities, "hos", "host_a", "VGPU"));
        }
}

/* Two virtual functions are one capacity, and a card of another class is another one. A guest and a
 * claim use some of them. */
static void test_capacities_of_pci_devices(void **state)
{
        static const char addresses[][HOST_ADDRESS_SIZE] = { "0000:10:00.1" };
        HostPci pci[] = {
                WHOLE("pci_0000_10_00_1", "0000:10:00.1", "0000:10:00.0", "CUSTOM_VF"),
                WHOLE("pci_0000_10_00_2", "0000:10:00.2", "0000:10:00.0", "CUSTOM_VF"),
                WHOLE("pci_0000_20_0a_0", "0000:20:0a.0", "0000:20:0a.0", "CUSTOM_CARD"),
        };
        HostDomain domain = { .name = "off", .pci = addresses, .n_pci = 1 };
        const HostFacts facts = { .pci = pci, .n_pci = 3, .domains = &domain, .n_domains = 1 };
        _cleanup_free_ DeviceCapacity *capacities = NULL;
        _cleanup_(taken_done) Taken taken = { 0 };
        size_t n_capacities;

        assert_int_equal(taken_add(&taken, &UUID_NULL, pci[2].name, pci[2].address, ""), 0);
        assert_int_equal(taken_add_guests(&taken, &facts), 0);
        assert_int_equal(device_capacities_make(&capacities, &n_capacities, &facts, &taken), 0);
        assert_int_equal(n_capacities, 2);
        assert_int_equal(
                device_capacities_find(capacities, n_capacities, "h", "h_0000:10:00.0", "CUSTOM_VF")
                        ->n_free,
                1);
        assert_int_equal(device_capacities_find(capacities, n_capacities, "h", "h_0000:20:0A.0",
                                                "CUSTOM_CARD")
                                 ->n_free,
                         0);
}

/* A card with two functions, the second of which has an mdev, and a GPU with an mdev. */
typedef struct Cards {
        HostFunction functions[2];
        HostMdev mdevs[2];
        HostDevice devices[2];
        HostPci pci[4];
        HostFacts facts;
} Cards;

#define CARD       "0000:10:00.0"
#define FUNCTION_1 "0000:10:00.1"
#define FUNCTION_2 "0000:10:00.2"
#define GPU        "0000:41:00.0"

static void make_cards(Cards *ret)
{
        *ret = (Cards){
                .functions = { { FUNCTION_1, CARD, "" }, { FUNCTION_2, CARD, "" } },
                .mdevs = { { make_mdev('1'), "f2", "t", FUNCTION_2 },
                           { make_mdev('2'), "gpu", "t", GPU } },
                .devices = { { "f2", FUNCTION_2, "t", "VGPU", 1, HOST_CELL_NONE, NULL },
                             { "gpu", GPU, "t", "VGPU", 1, HOST_CELL_NONE, NULL } },
                .pci = { WHOLE("f1", FUNCTION_1, CARD, "CUSTOM_VF"),
                         WHOLE("f2", FUNCTION_2, CARD, "CUSTOM_VF"),
                         WHOLE("card", CARD, CARD, "CUSTOM_PF"),
                         WHOLE("gpu", GPU, GPU, "CUSTOM_GPU") },
        };
        ret->facts = (HostFacts){
                .functions = ret->functions,
                .n_functions = 2,
                .mdevs = ret->mdevs,
                .n_mdevs = 2,
                .devices = ret->devices,
                .n_devices = 2,
                .pci = ret->pci,
                .n_pci = 4,
        };
}

/* Compares the free devices of all classes with "VF PF GPU VGPU-of-f2 VGPU-of-gpu". */
static void expect_capacities(const HostFacts *facts, const Taken *taken, const char *name,
                              const char *expected)
{
        static const char *const providers[][2] = {
                { "h_" CARD, "CUSTOM_VF" }, { "h_" CARD, "CUSTOM_PF" }, { "h_" GPU, "CUSTOM_GPU" },
                { "h_f2", "VGPU" },         { "h_gpu", "VGPU" },
        };
        _cleanup_free_ DeviceCapacity *capacities = NULL;
        char found[ARRAY_SIZE(providers) + 1] = "";
        size_t n_capacities;

        assert_int_equal(device_capacities_make(&capacities, &n_capacities, facts, taken), 0);
        for (size_t i = 0; i < ARRAY_SIZE(providers); i++) {
                const DeviceCapacity *capacity = device_capacities_find(
                        capacities, n_capacities, "h", providers[i][0], providers[i][1]);

                assert_non_null(capacity);
                found[i] = (char)('0' + capacity->n_free);
                assert_int_equal(capacity->n_blocked > 0, capacity->blocker != NULL);
        }
        if (strcmp(found, expected) != 0)
                fail_msg("%s: %s, not %s", name, found, expected);
}

/* A device that is taken whole blocks its parts, and a part blocks the whole. */
static void test_cards_and_their_parts(void **state)
{
        static const struct {
                const char *name;
                const char *pci, *config_pci;
                char mdev, config_mdev;
                const char *expected;
        } rows[] = {
                { "nothing is taken", NULL, NULL, 0, 0, "21122" },
                { "the card blocks its functions and their mdevs", CARD, NULL, 0, 0, "00102" },
                { "also by a persistent definition", NULL, CARD, 0, 0, "00102" },
                { "a function blocks its card alone", FUNCTION_1, NULL, 0, 0, "10122" },
                { "a function blocks its own mdevs", FUNCTION_2, NULL, 0, 0, "10102" },
                { "an mdev blocks its function and the card", NULL, NULL, '1', 0, "10112" },
                { "also by a persistent definition", NULL, NULL, 0, '1', "10112" },
                { "an mdev blocks its GPU, not other mdevs", NULL, NULL, '2', 0, "21021" },
                { "a GPU that is taken whole blocks its mdevs", GPU, NULL, 0, 0, "21020" },
                { "an mdev that does not exist is on no device", NULL, NULL, '9', 0, "21122" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char pci[1][HOST_ADDRESS_SIZE] = { "" }, config_pci[1][HOST_ADDRESS_SIZE] = { "" };
                const Uuid mdev = make_mdev(rows[i].mdev), other = make_mdev(rows[i].config_mdev);
                HostDomain domain = {
                        .name = "g",
                        .running = true,
                        .pci = (const char(*)[HOST_ADDRESS_SIZE])pci,
                        .n_pci = rows[i].pci != NULL,
                        .config_pci = (const char(*)[HOST_ADDRESS_SIZE])config_pci,
                        .n_config_pci = rows[i].config_pci != NULL,
                        .mdevs = &mdev,
                        .n_mdevs = rows[i].mdev != 0,
                        .config_mdevs = &other,
                        .n_config_mdevs = rows[i].config_mdev != 0,
                };
                _cleanup_(taken_done) Taken taken = { 0 };
                Cards cards;

                make_cards(&cards);
                strcpy(pci[0], rows[i].pci ? rows[i].pci : "");
                strcpy(config_pci[0], rows[i].config_pci ? rows[i].config_pci : "");
                cards.facts.domains = &domain;
                cards.facts.n_domains = 1;
                taken.facts = &cards.facts;
                assert_int_equal(taken_add_guests(&taken, &cards.facts), 0);
                expect_capacities(&cards.facts, &taken, rows[i].name, rows[i].expected);
        }
}

/* Claims block cards and parts in the same way. The devices of one claim are chosen one after the
 * other. */
static void test_claims_of_cards_and_parts(void **state)
{
        static const struct {
                const char *name, *address;
                char mdev;
                const char *expected;
        } rows[] = {
                { "a claim has the card", CARD, 0, "00102" },
                { "a claim has a function", FUNCTION_1, 0, "10122" },
                { "a claim has an mdev", FUNCTION_2, '1', "10112" },
                { "a claim has an mdev that is not made yet", FUNCTION_2, '9', "10112" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const Uuid mdev = rows[i].mdev ? make_mdev(rows[i].mdev) : UUID_NULL;
                _cleanup_(taken_done) Taken taken = { 0 };
                Uuid chosen;
                Cards cards;

                make_cards(&cards);
                taken.facts = &cards.facts;
                assert_int_equal(taken_add(&taken, &mdev, "f2", rows[i].address, ""), 0);
                expect_capacities(&cards.facts, &taken, rows[i].name, rows[i].expected);
                assert_int_equal(
                        device_choose(&cards.facts, &cards.devices[0], &taken, &chosen, NULL),
                        rows[i].expected[3] == '0' ? CLAIM_E_NO_CAPACITY : CLAIM_DONE);
        }
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

/* The claim has an amount of a lost device, which it names, and one of device a. */
static void test_missing_devices(void **state)
{
        const Uuid lost = make_mdev('l'), a = make_mdev('a');
        const ClaimDevice on_lost = { lost, "", "lost", "", "t", make_mdev('8'), "", false },
                          on_a = { a, "", "a", "", "t", make_mdev('1'), "", false };
        _cleanup_(claim_freep) Claim *claim = NULL;
        FactsFixture facts;

        make_facts(&facts);
        assert_int_equal(claim_new(&claim), 0);
        assert_int_equal(claim_add(claim, &lost, "host_lost", "", "VGPU", 1), 0);
        assert_int_equal(claim_add_device(claim, &on_lost), 0);
        assert_int_equal(claim_add(claim, &a, "host_a", "", "VGPU", 1), 0);
        assert_int_equal(device_count_missing(&facts.facts, "host", claim), 1);
        assert_int_equal(claim_add_device(claim, &on_a), 0);
        assert_int_equal(device_count_missing(&facts.facts, "host", claim), 0);
}

TEST_MAIN(test_cards_and_their_parts, test_claims_of_cards_and_parts, test_choice,
          test_capacities_are_what_can_be_chosen, test_capacities_of_pci_devices, test_provider,
          test_missing_devices)
