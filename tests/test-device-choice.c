/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/device-choice.h"
#include "tests/host-facts-fixture.h"
#include "tests/test.h"

/* "2 4": these mdevs are taken. */
static void make_taken(StringSet *taken, const char *numbers)
{
        for (; *numbers; numbers++)
                if (*numbers != ' ')
                        assert_true(string_set_add(taken, make_mdev(*numbers).text) >= 0);
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
                char expected; /* an mdev's number, 'n' for a new one, '-' for none */
        } rows[] = {
                { "the lowest free one", "a", "", "", 1, '1' },
                { "not one of a guest", "a", "1", "", 1, '3' },
                { "not one of a claim", "a", "", "1", 1, '3' },
                { "never one of another type", "a", "1 3", "", 0, '-' },
                { "a new one when none is free", "a", "1", "3", 1, 'n' },
                { "a claimed one that is not made takes room", "a", "1 3", "8", 1, '-' },
                { "and leaves what is more", "a", "1 3", "8", 2, 'n' },
                { "one that is made takes none", "a", "1", "3", 1, 'n' },
                { "of its own device", "b", "", "", 1, '4' },
                { "no room", "b", "4", "", 0, '-' },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(string_set_done) StringSet taken = STRING_SET_INIT;
                Error error = ERROR_NULL;
                FactsFixture facts;
                const HostDevice *device;
                Uuid chosen = UUID_NULL;
                int r;

                make_facts(&facts);
                facts_guest(&facts, 'g', rows[i].in_use);
                facts.devices[0].available = facts.devices[1].available = rows[i].available;
                make_taken(&taken, rows[i].taken);
                device = host_facts_find_device(&facts.facts, rows[i].device);
                assert_non_null(device);
                r = device_choose(&facts.facts, device, &taken, &chosen, &error);
                if (rows[i].expected == '-') {
                        if (r != DEVICE_E_NONE || !strstr(error.text, rows[i].device))
                                fail_msg("%s: %d %s", rows[i].name, r, chosen.text);
                        continue;
                }
                assert_int_equal(r, DEVICE_CHOSEN);
                if (rows[i].expected == 'n') {
                        if (uuid_empty(&chosen) || host_facts_find_mdev(&facts.facts, &chosen))
                                fail_msg("%s: %s", rows[i].name, chosen.text);
                        continue;
                }
                if (strcmp(chosen.text, make_mdev(rows[i].expected).text) != 0)
                        fail_msg("%s: %s", rows[i].name, chosen.text);
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_choice),
                cmocka_unit_test(test_provider),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
