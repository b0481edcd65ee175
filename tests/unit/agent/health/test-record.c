/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/record.h"
#include "base/log.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

static HealthMessage finding(const char *rule, const char *boot_id, HealthLift lift)
{
        HealthMessage message = { .kind = HEALTH_FINDING, .lift = lift, .last_usec = 5 };

        strcpy(message.rule, rule);
        strcpy(message.address, "0000:41:00.0");
        strcpy(message.line, "line");
        strcpy(message.boot_id, boot_id);
        return message;
}

static void test_reports(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        const HealthMessage a = finding("a", "old", HEALTH_LIFT_BOOT);
        const HealthMessage b = finding("b", "old", HEALTH_LIFT_RECOVERY);
        HealthRecord record;
        const char *words;
        Uuid consumer;

        assert_int_equal(uuid_from_text("5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02", &consumer), 0);
        assert_int_equal(health_record_load(&record, folder, NULL), 0);
        assert_string_equal(record.words, "");
        assert_int_equal(health_record_add(&record, "gpu", &a), 0);
        assert_int_equal(health_record_add(&record, "gpu", &b), 0);
        health_sightings_note(&record.sightings, &a, &consumer);
        health_sightings_note(&record.sightings, &b, &UUID_NULL);
        strcpy(record.cursor, "s=1");
        assert_int_equal(health_record_save(&record, NULL), 0);
        health_record_done(&record);

        assert_int_equal(health_record_load(&record, folder, NULL), 0);
        assert_string_equal(record.words, "gpu, rule a: line; gpu, rule b: line");
        assert_string_equal(record.cursor, "s=1");
        assert_int_equal(record.sightings.n_items, 2);
        assert_string_equal(record.sightings.items[0].consumer.text, consumer.text);
        assert_true(health_sightings_recover(&record.sightings, b.rule, b.address));
        /* The last case was at 5 us. */
        assert_true(health_record_has(&record, "gpu", "a", 4));
        assert_false(health_record_has(&record, "gpu", "a", 5));
        assert_false(health_record_has(&record, "gpu2", "a", 0));
        /* The boot ends the first report; a link is read again, so its recovery ends the other one.
         */
        words = record.words;
        assert_false(health_record_end_boot(&record, "old"));
        assert_ptr_equal(record.words, words); /* a view borrows them until a change */
        assert_true(health_record_end_boot(&record, "new"));
        assert_string_equal(record.words, "gpu, rule b: line");
        assert_false(health_record_remove(&record, "gpu", "a"));
        assert_true(health_record_remove(&record, "gpu", "b"));
        assert_string_equal(record.words, "");
        for (int i = 0; i < 2 * HEALTH_REPORTS_MAX; i++) {
                char device[20];

                snprintf(device, sizeof(device), "gpu%d", i);
                assert_int_equal(health_record_add(&record, device, &a), 0);
                assert_int_equal(health_record_add(&record, device, &a), 0); /* replaces it */
        }
        assert_int_equal(record.n_reports, HEALTH_REPORTS_MAX);
        assert_string_equal(record.reports[0].device, "gpu64");
        health_record_done(&record);
}

/* Without memory the earlier report stays. */
static void test_no_memory_for_a_report(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        const HealthMessage a = finding("a", "old", HEALTH_LIFT_BOOT);
        HealthRecord record;
        const char *words;
        unsigned at;
        int r;

        assert_int_equal(health_record_load(&record, folder, NULL), 0);
        assert_int_equal(health_record_add(&record, "gpu", &a), 0);
        words = record.words;
        FAIL_ALLOC_EACH(at, r = health_record_add(&record, "gpu", &a)) {
                assert_int_equal(r, -ENOMEM);
                assert_true(health_record_has(&record, "gpu", "a", 0));
                assert_ptr_equal(record.words, words); /* a view borrows them */
        }
        assert_true(r == 0 && at > 0);
        assert_int_equal(record.n_reports, 1);
        health_record_done(&record);
}

/* Version 0.2 wrote no time. */
static void test_a_report_of_unknown_time(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        HealthRecord record;

        scratch_write(folder, "health.json",
                      "{\"format\": \"compute-agent-health/1\", \"cursor\": \"\", \"reports\": "
                      "[{\"device\": \"gpu\", \"rule\": \"a\", \"line\": \"l\", \"boot_id\": "
                      "\"\", \"lasts\": true}], \"sightings\": []}");
        assert_int_equal(health_record_load(&record, folder, NULL), 0);
        assert_string_equal(record.words, "gpu, rule a: l");
        assert_false(health_record_has(&record, "gpu", "a", 0));
        health_record_done(&record);
}

static void test_bad_files(void **state)
{
#define BEGIN "{\"format\": \"compute-agent-health/1\", \"cursor\": \"\", "
        static const char *const texts[] = {
                "",
                "{\"format\": \"compute-agent-health/1\"}",
                BEGIN "\"reports\": [{}], \"sightings\": []}",
                BEGIN "\"reports\": [], \"sightings\": [{\"rule\": \"r\"}]}",
                BEGIN
                "\"reports\": [], \"sightings\": [{\"rule\": \"r\", \"address\": \"x\", \"consumer\": "
                "\"5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02\", \"usec\": 1}]}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
                _cleanup_free_ char *left = NULL;
                HealthRecord record;
                Error error = ERROR_NULL;

                scratch_write(folder, "health.json", texts[i]);
                assert_int_equal(health_record_load(&record, folder, &error), 1);
                assert_true(error.text[0] && record.n_reports == 0);
                assert_int_equal(record.sightings.n_items, 0);
                left = scratch_read(folder, "health.json.corrupt");
                assert_non_null(left);
                assert_int_equal(health_record_save(&record, NULL), 0);
                health_record_done(&record);
        }
}

/* An unreadable file is not an absent one: the next write would replace it. */
static void test_an_unreadable_file_is_an_error(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        HealthRecord record;
        Error error = ERROR_NULL;

        scratch_mkdir(folder, "health.json");
        assert_int_equal(health_record_load(&record, folder, &error), -EISDIR);
        assert_non_null(strstr(error.text, "health.json"));
        health_record_done(&record);
}

TEST_MAIN_AFTER(log_set_level(LOG_EMERG), NULL, NULL, test_reports, test_no_memory_for_a_report,
                test_a_report_of_unknown_time, test_bad_files, test_an_unreadable_file_is_an_error)
