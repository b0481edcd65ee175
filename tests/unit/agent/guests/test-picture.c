/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/picture.h"

#include "tests/fixtures/host.h"

#define GUEST                                                                                        \
        "\"driver\": \"static\", \"domains\": [{\"uuid\": \"11111111-1111-4111-8111-111111111111\"," \
        " \"name\": \"g\", \"state\": \"running\"}]"

static Snapshot *make_poll(const char *members, uint64_t begun_usec)
{
        Snapshot *snapshot = host_new(members);

        snapshot->begun_realtime_usec = begun_usec;
        return snapshot;
}

/* Its guests may be newer than its devices; claims that were touched since the devices' poll are
 * remembered. */
static void test_polls(void **state)
{
        const HostConfig config = config_make(NULL, 0);
        _cleanup_(snapshot_unrefp) Snapshot *first = make_poll(GUEST, 10);
        _cleanup_(snapshot_unrefp) Snapshot *second = make_poll("", 20);
        GuestPicture picture = { 0 };

        first->guests_unknown = true;
        assert_null(guest_picture_facts(&picture));
        guest_picture_touch(&picture, 1, 5);
        guest_picture_touch(&picture, 2, 15);
        assert_int_equal(guest_picture_set(&picture, &config, first, first), 0);
        assert_true(guest_picture_is_recorded(&picture));
        assert_int_equal(guest_picture_facts(&picture)->n_domains, 1);
        assert_int_equal(picture.n_touched, 1);
        assert_int_equal(picture.touched[0].claim_id, 2);

        assert_int_equal(guest_picture_set(&picture, &config, first, second), 0);
        assert_int_equal(guest_picture_facts(&picture)->n_domains, 0);
        assert_int_equal(picture.n_touched, 1);
        assert_int_equal(guest_picture_set(&picture, &config, second, second), 0);
        assert_int_equal(picture.n_touched, 0);
        guest_picture_done(&picture);
}

static void test_stopped(void **state)
{
        const HostConfig config = config_make(NULL, 0);
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_poll(GUEST, 10);
        GuestPicture picture = { 0 };
        Uuid other = uuid_make_random();

        assert_int_equal(guest_picture_set(&picture, &config, snapshot, snapshot), 0);
        guest_picture_note_stopped(&picture, &other);
        assert_true(picture.facts.domains[0].running);
        guest_picture_note_stopped(&picture, &picture.facts.domains[0].uuid);
        assert_false(picture.facts.domains[0].running);
        guest_picture_done(&picture);
}

static void test_clock(void **state)
{
        const ClockJump jump = { .by_usec = 50, .from_usec = 100, .to_usec = 150 };
        GuestPicture picture = { 0 };

        guest_picture_touch(&picture, 1, 90);
        guest_picture_follow_clock(&picture, &jump);
        assert_int_equal(picture.touched[0].when_usec, 140);
        guest_picture_done(&picture);
}

TEST_MAIN(test_polls, test_stopped, test_clock)
