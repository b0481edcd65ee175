/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/hands.h"
#include "tests/unit/test.h"

static void test_one_hand_at_a_time(void **state)
{
        const Uuid a = uuid_make_random(), b = uuid_make_random(), c = uuid_make_random();
        ConsumerHands hands = { 0 };

        assert_true(consumer_hands_take(&hands, &a) && consumer_hands_take(&hands, &b));
        assert_false(consumer_hands_take(&hands, &a));
        consumer_hands_let_go(&hands, &a);
        assert_false(consumer_hands_take(&hands, &b));
        assert_true(consumer_hands_take(&hands, &a) && consumer_hands_take(&hands, &c));
        consumer_hands_done(&hands);
        assert_true(consumer_hands_take(&hands, &b));
        consumer_hands_done(&hands);
}

TEST_MAIN(test_one_hand_at_a_time)
