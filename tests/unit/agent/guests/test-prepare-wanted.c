/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The stamps that start compute-agent-prepare. */

#include "agent/guests/prepare-wanted.h"

#include <string.h>
#include <sys/stat.h>

#include "tests/fixtures/json.h"
#include "tests/fixtures/scratch-folder.h"

#define MDEV "11111111-1111-4111-8111-111111111111"

static char *cards[] = { (char *)"0000:c1:00.0", NULL };
static char *other_cards[] = { (char *)"0000:c2:00.0", NULL };
static HostPrepare sections[] = {
        { .name = (char *)"a", .device_addresses = cards, .vgpu_types = true },
        { .name = (char *)"b", .device_addresses = other_cards },
};
static const HostConfig config = { .prepares = sections, .n_prepares = 2 };

static Snapshot *make_snapshot(void)
{
        json_t *json = fixture_json(
                "{'format': 'compute-agent-host/1', 'nodename': 'h', 'devices': ["
                "{'name': 'pci_0000_c1_00_4', 'is_pci': true, 'address': '0000:c1:00.4',"
                " 'physical_function': '0000:c1:00.0'},"
                "{'name': 'pci_0000_c2_00_4', 'is_pci': true, 'address': '0000:c2:00.4',"
                " 'physical_function': '0000:c2:00.0'},"
                "{'name': 'pci_0000_c1_00_0', 'is_pci': true, 'address': '0000:c1:00.0'}]}");
        Snapshot *snapshot = NULL;
        Error error = ERROR_NULL;

        if (snapshot_from_json(json, &snapshot, &error) < 0)
                fail_msg("%s", error.text);
        json_decref(json);
        return snapshot;
}

static void make_claim(Claim *claim, ClaimDevice *device, const char *address)
{
        *device = (ClaimDevice){ .address = address };
        *claim = (Claim){ .devices = device, .n_devices = 1 };
}

/* Returns true if a changed claim of the device makes a stamp. */
static bool is_stamped(const char *runtime, const HostConfig *config_, const Snapshot *snapshot,
                       const ClaimDevice *device)
{
        const Claim claim = { .devices = (ClaimDevice *)(uintptr_t)device, .n_devices = 1 };
        _cleanup_(prepare_wanted_done) PrepareWanted wanted = { 0 };

        assert_int_equal(prepare_wanted_init(&wanted, runtime, "prepare", "prepared"), 0);
        prepare_wanted_note(&wanted, config_, snapshot, &claim);
        return wanted.stamp[0];
}

static void test_devices_of_prepared_cards(void **state)
{
        static const struct {
                const char *address, *mdev;
                bool with_snapshot, expected;
        } cases[] = {
                { "0000:c1:00.4", "", true, true },
                { "0000:c2:00.4", "", true, false }, /* its section has no vgpu_types */
                { "0000:c1:00.0", "", true, false }, /* the card as a whole */
                { "0000:c1:00.5", "", true, true }, /* the host lists no such function: it can be of
                                                       the card */
                { "0000:c2:00.4", "", false, true },
                { "0000:c1:00.4", MDEV, true, false },
                { "", "", true, false },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_snapshot();
        const HostConfig none = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimDevice device = { .address = cases[i].address };

                if (cases[i].mdev[0])
                        assert_int_equal(uuid_from_text(cases[i].mdev, &device.mdev), 0);
                assert_int_equal(is_stamped(folder, &config,
                                            cases[i].with_snapshot ? snapshot : NULL, &device),
                                 cases[i].expected);
                assert_false(is_stamped(folder, &none, snapshot, &device));
        }
}

static void test_unfinished_records(void **state)
{
        static const struct {
                const char *record;
                bool expected;
        } cases[] = {
                { NULL, true },
                { "{}", true },
                { "{'wanted': 'abc'}", false },
                { "{'wanted': 'abd'}", true },
                { "{'wanted': 5}", true },
                { "{'wanted': 'abc', 'error': ''}", false },
                { "{'wanted': 'abc', 'error': 'locked'}", true },
                { "{'wanted': 'abc', 'functions': [{'waiting': ''}, {}, null]}", false },
                { "{'wanted': 'abc', 'functions': [{'waiting': ''}, {'waiting': 'open'}]}", true },
                /* Only a change can help. */
                { "{'wanted': 'abc', 'functions': [{'waiting': '', 'error': 'EINVAL'}]}", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *runtime = scratch_path(folder, "agent"), *text = NULL;
                _cleanup_(prepare_wanted_done) PrepareWanted wanted = { 0 };

                scratch_mkdir(folder, "agent");
                if (cases[i].record) {
                        _cleanup_json_ json_t *record = fixture_json(cases[i].record);

                        text = json_dumps(record, 0);
                        scratch_write(folder, "agent-prepare/prepared.json", text);
                }
                assert_int_equal(prepare_wanted_init(&wanted, runtime, "prepare", "prepared"), 0);
                strcpy(wanted.stamp, "abc");
                prepare_wanted_tend(&wanted, &config);
                assert_int_equal(strcmp(wanted.stamp, "abc") != 0, cases[i].expected);
        }
}

static void test_stamps_follow_changes(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *runtime = scratch_path(folder, "agent"), *first = NULL, *same = NULL,
                            *second = NULL, *third = NULL, *path = NULL, *record = NULL;
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_snapshot();
        _cleanup_(prepare_wanted_done) PrepareWanted wanted = { 0 };
        ClaimDevice device;
        struct stat st;
        Claim claim;

        scratch_mkdir(folder, "agent");
        path = scratch_path(runtime, "prepare-wanted");
        assert_int_equal(prepare_wanted_init(&wanted, runtime, "prepare", "prepared"), 0);
        make_claim(&claim, &device, "0000:c2:00.4");
        prepare_wanted_note(&wanted, &config, snapshot, &claim);
        assert_int_equal(access(path, F_OK), -1);
        make_claim(&claim, &device, "0000:c1:00.4");
        prepare_wanted_note(&wanted, &config, snapshot, &claim);
        first = scratch_read(runtime, "prepare-wanted");
        assert_string_equal(first, wanted.stamp);
        assert_int_equal(strspn(first, "0123456789abcdef"), strlen(first));
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);

        record = text_format("{\"wanted\": \"%s\"}", first);
        scratch_write(folder, "agent-prepare/prepared.json", record);
        prepare_wanted_tend(&wanted, &config);
        same = scratch_read(runtime, "prepare-wanted");
        assert_string_equal(first, same);

        usleep(1);
        prepare_wanted_note(&wanted, &config, snapshot, &claim);
        second = scratch_read(runtime, "prepare-wanted");
        assert_string_not_equal(first, second);
        usleep(1);
        prepare_wanted_tend(&wanted, &config); /* no run has seen it */
        third = scratch_read(runtime, "prepare-wanted");
        assert_string_not_equal(second, third);
}

/* systemd joins a start of the service with a run that ends, and the run has not seen the stamp. */
static void test_a_missed_stamp_is_written_again(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *runtime = scratch_path(folder, "agent"), *record = NULL;
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(prepare_wanted_done) PrepareWanted wanted = { 0 };
        const HostConfig *current = &config;
        char missed[PREPARE_STAMP_SIZE];
        ClaimDevice device;
        Claim claim;

        scratch_write(folder, "agent-prepare/prepared.json", "{\"wanted\": \"an earlier one\"}");
        scratch_mkdir(folder, "agent");
        assert_int_equal(prepare_wanted_init(&wanted, runtime, "prepare", "prepared"), 0);
        assert_true(sd_event_new(&event) >= 0);
        assert_true(prepare_wanted_watch(&wanted, event, &current) >= 0);
        make_claim(&claim, &device, "0000:c1:00.4");
        prepare_wanted_note(&wanted, &config, NULL, &claim);
        strcpy(missed, wanted.stamp);
        assert_true(sd_event_run(event, 5 * USEC_PER_SEC) > 0);
        assert_string_not_equal(wanted.stamp, missed);
        /* A run has seen it. */
        prepare_wanted_note(&wanted, &config, NULL, &claim);
        strcpy(missed, wanted.stamp);
        record = text_format("{\"wanted\": \"%s\"}", missed);
        scratch_write(folder, "agent-prepare/prepared.json", record);
        assert_true(sd_event_run(event, 5 * USEC_PER_SEC) > 0);
        assert_string_equal(wanted.stamp, missed);
}

static void test_nothing_is_written_without_a_folder(void **state)
{
        _cleanup_(prepare_wanted_done) PrepareWanted none = { 0 }, gone = { 0 };
        ClaimDevice device;
        Claim claim;

        make_claim(&claim, &device, "0000:c1:00.4");
        assert_int_equal(prepare_wanted_init(&none, NULL, "prepare", "prepared"), 0);
        prepare_wanted_note(&none, &config, NULL, &claim);
        prepare_wanted_tend(&none, &config);
        assert_string_equal(none.stamp, "");
        assert_int_equal(prepare_wanted_init(&gone, "/nonexistent/a:/b", "prepare", "prepared"), 0);
        assert_string_equal(gone.path, "/nonexistent/a/prepare-wanted");
        assert_string_equal(gone.record_path, "/nonexistent/a-prepare/prepared.json");
        prepare_wanted_note(&gone, &config, NULL, &claim);
        assert_true(gone.logged);
}

TEST_MAIN(test_devices_of_prepared_cards, test_unfinished_records, test_stamps_follow_changes,
          test_a_missed_stamp_is_written_again, test_nothing_is_written_without_a_folder)
