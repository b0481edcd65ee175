/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/call-queue.h"
#include "base/macros.h"
#include "tests/unit/test.h"

/* Adds a call. In a name such as "a1", the letter is the user ("0": root), and the digit the
 * connection. */
static void add(BusCallQueue *queue, const char *name, size_t size, bool is_long)
{
        BusSender *sender;
        BusCall call = { .size = size, .is_long = is_long };

        assert_int_equal(bus_call_queue_sender(queue, name, &sender), 0);
        if (!sender->is_known)
                bus_call_queue_set_user(queue, sender, (uid_t)name[0], name[0] == '0');
        call.message = sender;
        assert_true(bus_call_queue_has_capacity(queue, sender, size));
        assert_int_equal(bus_call_queue_add(sender, &call), 0);
}

static void test_order(void **state)
{
        static const struct {
                const char *calls, *served;
        } cases[] = {
                { "", "" },
                { "a1", "a1" },
                { "a1 a1 a1 b1", "a1 b1 a1 a1" },
                /* More connections bring a user no more turns. */
                { "a1 a2 a3 b1 b1 b1", "a1 b1 a2 b1 a3 b1" },
                { "a1 a1 a2 a2 b1 c1", "a1 b1 c1 a2 a1 a2" },
                /* Root waits for no other user. */
                { "a1 a2 b1 01 01", "01 01 a1 b1 a2" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BusCallQueue queue = { 0 };
                char name[16], served[128] = "";
                BusCall call;
                int n;

                for (const char *p = cases[i].calls; sscanf(p, "%7s%n", name, &n) == 1; p += n)
                        add(&queue, name, 0, false);
                while (bus_call_queue_next(&queue, true, &call)) {
                        strcat(served, served[0] ? " " : "");
                        strcat(served, ((const BusSender *)call.message)->name);
                }
                assert_string_equal(served, cases[i].served);
                bus_call_queue_done(&queue);
        }
}

/* Only one long answer is made at a time. Calls behind a long call of the same connection wait. */
static void test_long(void **state)
{
        BusCallQueue queue = { 0 };
        BusCall call;

        add(&queue, "a1", 0, true);
        add(&queue, "a1", 0, false);
        add(&queue, "b1", 0, true);
        add(&queue, "01", 0, true);
        assert_true(bus_call_queue_next(&queue, false, &call));
        assert_string_equal(((const BusSender *)call.message)->name, "01");
        assert_false(bus_call_queue_next(&queue, false, &call));
        add(&queue, "b2", 0, false);
        assert_true(bus_call_queue_next(&queue, false, &call));
        assert_string_equal(((const BusSender *)call.message)->name, "b2");
        for (int i = 0; i < 3; i++)
                assert_true(bus_call_queue_next(&queue, true, &call));
        assert_false(bus_call_queue_next(&queue, true, &call));
        bus_call_queue_done(&queue);
}

static void test_limits(void **state)
{
        BusCallQueue queue = { 0 };
        BusSender *sender, *root;
        char name[16];

        /* The limit of a user, over all connections. */
        for (int i = 0; i < BUS_CALLS_PER_USER; i++) {
                snprintf(name, sizeof(name), "a%d", i);
                add(&queue, name, 0, false);
        }
        assert_false(bus_call_queue_has_capacity(&queue, bus_call_queue_find(&queue, "a1"), 0));
        /* Other users have their own limits, up to the limit of all users. */
        for (int i = BUS_CALLS_PER_USER; i < BUS_CALLS_OF_ALL; i++) {
                snprintf(name, sizeof(name), "%c1", 'b' + i / BUS_CALLS_PER_USER);
                add(&queue, name, 0, false);
        }
        assert_int_equal(bus_call_queue_sender(&queue, "z1", &sender), 0);
        bus_call_queue_set_user(&queue, sender, 'z', false);
        assert_false(bus_call_queue_has_capacity(&queue, sender, 0));
        /* Root has no limit. */
        assert_int_equal(bus_call_queue_sender(&queue, "01", &root), 0);
        bus_call_queue_set_user(&queue, root, 0, true);
        assert_true(bus_call_queue_has_capacity(&queue, root, BUS_CALLS_SIZE + 1));
        bus_call_queue_done(&queue);
}

static void test_size(void **state)
{
        BusCallQueue queue = { 0 };

        add(&queue, "a1", BUS_CALLS_SIZE - 10, false);
        assert_true(bus_call_queue_has_capacity(&queue, bus_call_queue_find(&queue, "a1"), 10));
        assert_false(bus_call_queue_has_capacity(&queue, bus_call_queue_find(&queue, "a1"), 11));
        bus_call_queue_done(&queue);
}

/* Makes a connection whose user is unknown. */
static BusSender *make_unknown(BusCallQueue *queue, const char *name)
{
        BusSender *sender;

        assert_int_equal(bus_call_queue_sender(queue, name, &sender), 0);
        return sender;
}

/* Calls of known users take nothing of the limits of unknown ones, who can be root. A connection
 * gets a small first call also beyond the limit of the unknown ones. */
static void test_a_new_connection_has_capacity(void **state)
{
        BusCallQueue queue = { 0 };
        BusSender *large, *many, *fresh;

        add(&queue, "a1", BUS_CALLS_SIZE, false);
        large = make_unknown(&queue, ":1");
        assert_true(bus_call_queue_has_capacity(&queue, large, BUS_CALLS_SIZE));
        assert_int_equal(bus_call_queue_add(large, &(BusCall){ .size = BUS_CALLS_SIZE }), 0);
        assert_false(bus_call_queue_has_capacity(&queue, large, 1));
        many = make_unknown(&queue, ":2");
        for (int i = 1; i < BUS_CALLS_HELD; i++)
                assert_int_equal(bus_call_queue_add(many, &(BusCall){ 0 }), 0);
        assert_false(bus_call_queue_has_capacity(&queue, many, 0));
        fresh = make_unknown(&queue, ":3");
        assert_false(bus_call_queue_has_capacity(&queue, fresh, BUS_CALL_FIRST_SIZE + 1));
        assert_true(bus_call_queue_has_capacity(&queue, fresh, BUS_CALL_FIRST_SIZE));
        assert_int_equal(bus_call_queue_add(fresh, &(BusCall){ 0 }), 0);
        assert_false(bus_call_queue_has_capacity(&queue, fresh, 0));
        bus_call_queue_done(&queue);
}

/* Calls of an unknown user are held. When the user is known, the excess is taken out again. */
static void test_unknown(void **state)
{
        BusCallQueue queue = { 0 };
        BusSender *sender;
        BusCall call = { 0 };
        int n = 0;

        assert_int_equal(bus_call_queue_sender(&queue, ":1", &sender), 0);
        while (bus_call_queue_has_capacity(&queue, sender, 0)) {
                call.message = (void *)(uintptr_t)++n;
                assert_int_equal(bus_call_queue_add(sender, &call), 0);
        }
        assert_int_equal(n, BUS_CALLS_HELD);
        assert_false(bus_call_queue_next(&queue, true, &call));
        bus_call_queue_set_user(&queue, sender, 'a', false);
        assert_true(bus_call_queue_take_over(&queue, sender, &call));
        assert_int_equal((uintptr_t)call.message, BUS_CALLS_HELD);
        for (n = 1; bus_call_queue_take_over(&queue, sender, &call);)
                n++;
        assert_int_equal(n, BUS_CALLS_HELD - BUS_CALLS_PER_USER);
        assert_true(bus_call_queue_next(&queue, true, &call));
        assert_int_equal((uintptr_t)call.message, 1);
        bus_call_queue_done(&queue);
}

/* A sender without calls is removed before a new sender is refused. */
static void test_many_senders(void **state)
{
        BusCallQueue queue = { 0 };
        BusSender *sender;
        char name[16];

        for (int i = 0; i < BUS_SENDERS_MAX; i++) {
                snprintf(name, sizeof(name), ":1.%d", i);
                assert_int_equal(bus_call_queue_sender(&queue, name, &sender), 0);
                assert_int_equal(bus_call_queue_add(sender, &(BusCall){ 0 }), 0);
        }
        assert_int_equal(bus_call_queue_sender(&queue, "new", &sender), -EBUSY);
        bus_call_queue_find(&queue, ":1.7")->n_calls = 0;
        assert_int_equal(bus_call_queue_sender(&queue, "new", &sender), 0);
        assert_null(bus_call_queue_find(&queue, ":1.7"));
        assert_int_equal(queue.n_senders, BUS_SENDERS_MAX);
        bus_call_queue_done(&queue);
}

/* A user that does not read is not served on any connection. Other users and root are served. */
static void test_reading(void **state)
{
        BusCallQueue queue = { 0 };
        BusSender *first, *second, *root;
        BusCall call;

        add(&queue, "a1", 0, false);
        add(&queue, "a2", 0, false);
        add(&queue, "b1", 0, false);
        add(&queue, "01", 0, false);
        first = bus_call_queue_find(&queue, "a1");
        second = bus_call_queue_find(&queue, "a2");
        root = bus_call_queue_find(&queue, "01");
        assert_false(bus_call_queue_answered(&queue, first, BUS_ANSWERS_ASK - 1));
        assert_int_equal(bus_call_queue_reading(&queue, second), BUS_READS);
        assert_true(bus_call_queue_answered(&queue, second, 1));
        assert_true(bus_call_queue_answered(&queue, second, BUS_ANSWERS_MAX - BUS_ANSWERS_ASK));
        assert_int_equal(bus_call_queue_reading(&queue, first), BUS_READS_PERHAPS);
        assert_true(bus_call_queue_next(&queue, true, &call));
        assert_ptr_equal(call.message, root);
        assert_true(bus_call_queue_next(&queue, true, &call));
        assert_string_equal(((const BusSender *)call.message)->name, "b1");
        assert_false(bus_call_queue_next(&queue, true, &call));
        first->n_answers = second->n_answers = 0;
        second->unread = BUS_UNREAD_MAX + 1;
        assert_int_equal(bus_call_queue_reading(&queue, first), BUS_READS_NOT);
        second->unread = BUS_UNREAD_MAX;
        assert_int_equal(bus_call_queue_reading(&queue, first), BUS_READS);
        queue.unread = BUS_UNREAD_OF_ALL + 1;
        assert_int_equal(bus_call_queue_reading(&queue, first), BUS_READS_NOT);
        assert_int_equal(bus_call_queue_reading(&queue, root), BUS_READS);
        assert_false(bus_call_queue_answered(&queue, root, BUS_ANSWERS_MAX));
        queue.no_unread_counts = true;
        assert_int_equal(bus_call_queue_reading(&queue, first), BUS_READS);
        bus_call_queue_done(&queue);
}

/* Among senders without calls, one that has read everything is removed first. */
static void test_sender_without_unread_answers_is_removed_first(void **state)
{
        BusCallQueue queue = { 0 };
        BusSender *sender;
        char name[16];

        for (unsigned i = 0; i < BUS_SENDERS_MAX; i++) {
                snprintf(name, sizeof(name), "a%u", i);
                assert_int_equal(bus_call_queue_sender(&queue, name, &sender), 0);
                (void)bus_call_queue_answered(&queue, sender, i == 7 ? 0 : 1);
        }
        assert_int_equal(bus_call_queue_sender(&queue, "b1", &sender), 0);
        assert_null(bus_call_queue_find(&queue, "a7"));
        assert_int_equal(queue.n_senders, BUS_SENDERS_MAX);
        bus_call_queue_done(&queue);
}

TEST_MAIN(test_order, test_long, test_limits, test_size, test_a_new_connection_has_capacity,
          test_unknown, test_many_senders, test_reading,
          test_sender_without_unread_answers_is_removed_first)
