/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "formats/partitions.h"

#include <stdio.h>

#include "base/json.h"
#include "formats/format-names.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

/* Reads the text as the document of a file. */
static int read_text(const char *text, PartitionRecord *ret, Error *reterr)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "partitions.json");

        scratch_write(folder, "partitions.json", text);
        return partition_record_read(path, ret, reterr);
}

static void test_round_trip(void **state)
{
        char *devices[] = { (char *)"0000:41:00.0", (char *)"0000:42:00.0", NULL };
        const DevicePartition partition = { .id = "1", .members = 3, .devices = devices };
        _cleanup_(partition_record_done)
                PartitionRecord record = { .wanted = "1f", .error = "none" };
        _cleanup_(partition_record_done) PartitionRecord copy = { 0 };
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        PartitionEntry *entry = partition_record_add(&record, "hgx", &partition, 5);

        assert_non_null(entry);
        entry->state = PARTITION_DEACTIVATING;
        entry->since_usec = 17;
        strcpy(entry->error, "off@1.service failed");
        strcpy(entry->waiting, "a process");
        strcpy(entry->retry, "2f");
        entry->lines = json_pack("[s]", "first");
        document = partition_record_to_json(&record);
        text = json_dumps(document, 0);
        assert_non_null(text);
        assert_int_equal(read_text(text, &copy, NULL), 0);
        assert_string_equal(copy.wanted, "1f");
        assert_string_equal(copy.error, "none");
        assert_int_equal(copy.n_items, 1);
        entry = partition_record_find(&copy, "hgx", "1");
        assert_ptr_equal(entry, &copy.items[0]);
        assert_null(partition_record_find(&copy, "hgx", "2"));
        assert_null(partition_record_find(&copy, "other", "1"));
        assert_int_equal(entry->claim, 5);
        assert_int_equal(entry->state, PARTITION_DEACTIVATING);
        assert_int_equal(entry->since_usec, 17);
        assert_string_equal(entry->error, "off@1.service failed");
        assert_string_equal(entry->waiting, "a process");
        assert_string_equal(entry->retry, "2f");
        assert_string_equal(entry->devices[1], "0000:42:00.0");
        assert_null(entry->devices[2]);
        assert_int_equal(json_array_size(entry->lines), 1);
        partition_record_remove(&copy, entry);
        assert_int_equal(copy.n_items, 0);
}

#define ENTRY(state_, devices_)                                                                                 \
        "{\"format\":\"" PARTITIONS_FORMAT "\",\"wanted\":\"\",\"error\":\"\",\"partitions\":"                  \
        "[{\"set\":\"hgx\",\"partition\":\"1\",\"claim\":1,\"state\":\"" state_                                 \
        "\",\"since_usec\":1,\"error\":\"\",\"waiting\":\"\",\"retry\":\"\",\"lines\":[],\"devices\":" devices_ \
        "}]}"

static void test_invalid_documents(void **state)
{
        static const struct {
                const char *text, *error; /* NULL: valid */
        } cases[] = {
                { ENTRY("active", "[\"0000:41:00.0\"]"), NULL },
                { ENTRY("other", "[\"0000:41:00.0\"]"), "state: \"other\"" },
                { ENTRY("active", "[]"), "devices: 0 items" },
                { ENTRY("active", "[1]"), "devices: item 0 is no text" },
                { "{\"format\":\"x\"}", "the format is \"x\"" },
                { "{}", "format" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(partition_record_done) PartitionRecord record = { 0 };
                Error error = ERROR_NULL;

                assert_int_equal(read_text(cases[i].text, &record, &error),
                                 cases[i].error ? -EBADMSG : 0);
                if (cases[i].error && !strstr(error.text, cases[i].error))
                        fail_msg("\"%s\" instead of \"%s\"", error.text, cases[i].error);
                assert_int_equal(record.n_items, cases[i].error ? 0 : 1);
        }
}

static void test_a_missing_file_has_no_entries(void **state)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };

        assert_int_equal(partition_record_read("/nonexistent/partitions.json", &record, NULL), 0);
        assert_int_equal(record.n_items, 0);
}

TEST_MAIN(test_round_trip, test_invalid_documents, test_a_missing_file_has_no_entries)
