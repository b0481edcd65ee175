/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The document prepared.json. */

#include "prepare/record.h"
#include "tests/fixtures/json.h"
#include "tests/fixtures/prepare.h"

static void test_document(void **state)
{
        static const HostPrepare options = { .name = (char *)"a" };
        PrepareFunction functions[] = {
                { .address = "0000:c1:00.4", .type = 5, .open = PREPARE_OPEN_YES },
                { .address = "0000:c1:00.5", .type = 6, .recorded = 3 },
                { .address = "0000:c1:00.6", .failed = "EINVAL", .open = PREPARE_OPEN_UNKNOWN },
                { .address = "0000:c1:00.7", .recorded = 3 },
        };
        PrepareCard card = { .options = &options,
                             .address = CARD,
                             .n_virtual = 4,
                             .functions = functions,
                             .n_functions = ARRAY_SIZE(functions) };
        PrepareHost host = { .cards = &card, .n_cards = 1 };
        PrepareClaim items[] = { { .id = 7, .address = "0000:c1:00.4", .type = 5 } };
        PrepareClaims claims = { .items = items, .n_items = 1, .complete = true };
        PrepareStep steps[] = {
                { .kind = PREPARE_WAIT, .function = 1, .reason = "open" },
                { .kind = PREPARE_REFUSE, .function = PREPARE_OF_CARD, .reason = "too many" },
                { .kind = PREPARE_REFUSE, .function = 3, .reason = "no type" },
        };
        PreparePlan plan = { .steps = steps, .n_steps = ARRAY_SIZE(steps) };
        size_t n_errors;
        _cleanup_json_ json_t *document =
                prepare_record_make(&host, &claims, &plan, "abc", "", &n_errors);
        _cleanup_json_ json_t *expected = fixture_json(
                "{'format': 'compute-agent-prepared/1', 'wanted': 'abc', 'error': '',"
                " 'claims_known': true, 'cards': [{'address': '0000:c1:00.0', 'section': 'a',"
                " 'virtual_functions': 4, 'error': 'too many'}], 'functions': ["
                "{'address': '0000:c1:00.4', 'physical_function': '0000:c1:00.0',"
                " 'type': 'nvidia-5', 'open': true, 'claim': 7, 'waiting': '', 'error': ''},"
                "{'address': '0000:c1:00.5', 'physical_function': '0000:c1:00.0',"
                " 'type': 'nvidia-6', 'open': false, 'claim': 3, 'waiting': 'open', 'error': ''},"
                "{'address': '0000:c1:00.6', 'physical_function': '0000:c1:00.0', 'type': '',"
                " 'open': true, 'claim': 0, 'waiting': '', 'error': 'EINVAL'},"
                "{'address': '0000:c1:00.7', 'physical_function': '0000:c1:00.0', 'type': '',"
                " 'open': false, 'claim': 0, 'waiting': '', 'error': 'no type'}]}");

        assert_true(json_equal(document, expected));
        assert_int_equal(n_errors, 3);
}

static void test_recorded_claims_are_read_again(void **state)
{
        PrepareFixture *f = *state;
        PrepareFunction functions[] = { { .address = "0000:c1:00.4" },
                                        { .address = "0000:c1:00.5" } };
        PrepareCard card = { .functions = functions, .n_functions = 2 };
        PrepareHost host = { .cards = &card, .n_cards = 1 };
        _cleanup_json_ json_t *document =
                fixture_json("{'functions': [{'address': '0000:c1:00.5', 'claim': 7},"
                             " {'address': '0000:c1:00.4', 'claim': -1}, {'address': 5}, null]}");
        _cleanup_free_ char *path = text_format("%s/compute-agent-prepare/prepared.json", f->run);
        struct stat st;

        prepare_record_read(&f->paths, &host);
        assert_int_equal(functions[1].recorded, 0);
        assert_int_equal(
                prepare_record_write(&f->paths, PREPARE_FOLDER, PREPARE_RECORD, document, NULL), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);
        prepare_record_read(&f->paths, &host);
        assert_int_equal(functions[0].recorded, 0);
        assert_int_equal(functions[1].recorded, 7);
        functions[1].recorded = 0;
        scratch_write(f->run, "compute-agent-prepare/prepared.json", "{");
        prepare_record_read(&f->paths, &host);
        assert_int_equal(functions[1].recorded, 0);
}

static void test_unwritable_folder(void **state)
{
        PrepareFixture *f = *state;
        PreparePaths paths = { .run = "/proc/nonexistent" };
        _cleanup_json_ json_t *document = json_object();
        Error error = ERROR_NULL;

        assert_true(prepare_record_write(&paths, PREPARE_FOLDER, PREPARE_RECORD, document, &error) <
                    0);
        assert_text(error.text, "Cannot write /proc/nonexistent/");
        assert_non_null(f);
}

TEST_MAIN_WITH(prepare_setup, prepare_teardown, test_document, test_recorded_claims_are_read_again,
               test_unwritable_folder)
