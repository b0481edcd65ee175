/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/driver-reshape.h"

#include "tests/unit/test.h"

static Uuid uuid_of(char digit)
{
        Uuid uuid = { "00000000-0000-4000-8000-000000000000" };

        uuid.text[0] = digit;
        return uuid;
}

static void test_guest_of_a_consumer(void **state)
{
        const ReshapeAlias aliases[] = {
                { uuid_of('1'), uuid_of('a') },
                { uuid_of('3'), uuid_of('b') },
        };
        const DriverReshape reshape = { .aliases = aliases, .n_aliases = ARRAY_SIZE(aliases) };
        static const struct {
                char consumer, guest;
        } cases[] = { { '1', 'a' }, { '2', '2' }, { '3', 'b' }, { 'a', 'a' } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Uuid consumer = uuid_of(cases[i].consumer), guest = uuid_of(cases[i].guest);

                assert_true(uuid_equal(driver_reshape_guest(&reshape, &consumer), &guest));
                assert_ptr_equal(driver_reshape_guest(&(DriverReshape){ 0 }, &consumer), &consumer);
        }
}

/* The next call removes the problems and classes of this one. The kept classes stay. */
static void test_clear_keeps_what_stays(void **state)
{
        DriverReshape reshape = { 0 };
        Uuid consumer = uuid_of('1');

        assert_int_equal(string_set_add(&reshape.kept, "VGPU"), 1);
        assert_int_equal(string_set_add(&reshape.classes, "VCPU"), 1);
        for (size_t i = 0; i < 20; i++)
                assert_int_equal(driver_reshape_add_problem(&reshape, &consumer, "VGPU", "why"), 0);
        assert_int_equal(reshape.n_problems, 20);
        assert_string_equal(reshape.problems[19].resource_class, "VGPU");
        assert_string_equal(reshape.problems[19].reason, "why");
        driver_reshape_clear(&reshape);
        assert_int_equal(reshape.n_problems + reshape.classes.n_items, 0);
        assert_true(string_set_contains(&reshape.kept, "VGPU"));
        driver_reshape_done(&reshape);
        assert_int_equal(reshape.kept.n_items, 0);
}

TEST_MAIN(test_guest_of_a_consumer, test_clear_keeps_what_stays)
