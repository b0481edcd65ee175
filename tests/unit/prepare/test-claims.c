/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The claims of functions, read in a child process, and the child's document. */

#include "prepare/claims.h"
#include "tests/fixtures/prepare.h"

#define SECTION "[device_prepare a]\ndevice_addresses = " CARD "\n"

static void test_claims_of_the_database(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_claims_done) PrepareClaims claims = { 0 };
        Error error = ERROR_NULL;

        configure(f, SECTION);
        put_claim(f, 1, "confirmed", "0000:c1:00.4", "nvidia-1428");
        put_claim(f, 2, "claimed", "0000:c1:00.5", "nvidia-5");
        put_claim(f, 3, "pending", "0000:c1:00.6", "nvidia-5");
        put_claim(f, 4, "confirmed", "0000:c1:00.7", "");
        put_claim(f, 5, "confirmed", "0000:41:00.0", "i915-GVTg_V5_4");
        put_claim(f, 6, "confirmed", "0000:c1:01.0", "nvidia-5");
        free(run_sql(f->claims->path,
                     "UPDATE claim_devices SET mdev_uuid ="
                     " 'a297db4a-f4c2-11e6-90f6-d3b88d6c9525' WHERE claim_id = 6"));
        if (prepare_read_claims(f->config, &claims, &error) < 0)
                fail_msg("%s", error.text);
        assert_true(claims.complete);
        assert_int_equal(claims.n_items, 6);
        assert_int_equal(claims.items[0].id, 1);
        assert_string_equal(claims.items[0].address, "0000:c1:00.4");
        assert_int_equal(claims.items[0].type, 1428);
        assert_true(claims.items[0].is_confirmed);
        assert_false(claims.items[1].is_confirmed || claims.items[1].is_pending);
        assert_true(claims.items[2].is_pending);
        assert_int_equal(claims.items[3].type, 0);
        assert_int_equal(claims.items[4].type, 0);
        assert_string_equal(claims.items[5].address, "0000:c1:01.0");
        assert_int_equal(claims.items[5].type, 0); /* the type is that of a mediated device */
}

static void test_missing_database(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_claims_done) PrepareClaims claims = { .complete = true };

        configure(f, SECTION);
        assert_int_equal(unlink(f->claims->path), 0);
        assert_int_equal(prepare_read_claims(f->config, &claims, NULL), 0);
        assert_int_equal(claims.n_items, 0);
        assert_false(claims.complete);
        assert_int_equal(access(f->claims->path, F_OK), -1);
}

/* A new database beside a Placement can replace a lost one. */
static void test_unread_database(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_claims_done) PrepareClaims alone = { 0 }, claims = { 0 }, read = { 0 };

        free(run_sql(f->claims->path, "PRAGMA user_version = 1"));
        configure(f, SECTION);
        assert_int_equal(prepare_read_claims(f->config, &alone, NULL), 0);
        assert_true(alone.complete);
        configure(f, SECTION "[placement]\nendpoint_override = http://placement/\n");
        assert_int_equal(prepare_read_claims(f->config, &claims, NULL), 0);
        assert_false(claims.complete);
        free(run_sql(f->claims->path, "PRAGMA user_version = 0"));
        assert_int_equal(prepare_read_claims(f->config, &read, NULL), 0);
        assert_true(read.complete);
}

static void test_bad_database(void **state)
{
        PrepareFixture *f = *state;
        _cleanup_(prepare_claims_done) PrepareClaims claims = { 0 };
        Error error = ERROR_NULL;

        configure(f, SECTION);
        free(run_sql(f->claims->path, "UPDATE versions SET version = 99"));
        assert_int_equal(prepare_read_claims(f->config, &claims, &error), -EPROTONOSUPPORT);
        assert_text(error.text, "Install the version that wrote it");
        scratch_write(f->claims->folder, "claim.sqlite", "nonsense");
        assert_int_equal(prepare_read_claims(f->config, &claims, &error), -EUCLEAN);
        assert_text(error.text, "is damaged");
        assert_int_equal(fixture_count_files(f->claims, "claim", NULL), 1);
}

#define DOCUMENT(claims)                                                               \
        "{\"code\": 0, \"text\": \"\", \"complete\": true, \"claims\": [" claims "], " \
        "\"dirty\": []}"
#define DIRTY(dirty)                                                         \
        "{\"code\": 0, \"text\": \"\", \"complete\": true, \"claims\": [], " \
        "\"dirty\": [" dirty "]}"
#define CLAIM(id, address, type) \
        "{\"id\": " id ", \"state\": \"claimed\", \"address\": " address ", \"type\": " type "}"

static void test_documents(void **state)
{
        static const struct {
                const char *text;
                int expected;
                size_t n;
        } cases[] = {
                { DOCUMENT(""), 0, 0 },
                { DOCUMENT(CLAIM("1", "\"0000:c1:00.4\"", "\"nvidia-5\"")), 0, 1 },
                { DOCUMENT(CLAIM("1", "\"../../etc\"", "\"nvidia-5\"")), 0, 0 },
                { DOCUMENT(CLAIM("0", "\"0000:c1:00.4\"", "\"nvidia-5\"")), -EBADMSG, 0 },
                { DOCUMENT(CLAIM("1", "5", "\"nvidia-5\"")), -EBADMSG, 0 },
                { DOCUMENT(CLAIM("1", "\"0000:c1:00.4\"", "null")), -EBADMSG, 0 },
                { DOCUMENT("5"), -EBADMSG, 0 },
                { DIRTY("{\"row\": 1, \"since\": 5, \"address\": \"0000:c1:00.4\"}"), 0, 0 },
                { DIRTY("{\"row\": 0, \"since\": 5, \"address\": \"0000:c1:00.4\"}"), -EBADMSG, 0 },
                { DIRTY("{\"row\": 1, \"since\": 5, \"address\": \"../../etc\"}"), -EBADMSG, 0 },
                { DIRTY("{\"row\": 1, \"address\": \"0000:c1:00.4\"}"), -EBADMSG, 0 },
                { DIRTY("5"), -EBADMSG, 0 },
                { "{\"code\": 0}", -EBADMSG, 0 },
                { "{\"code\": 16, \"text\": \"locked\", \"complete\": false, \"claims\": []}",
                  -EBUSY, 0 },
                { "{\"code\": -9999999999, \"text\": \"\", \"complete\": false, \"claims\": []}",
                  -EPERM, 0 },
                { "[]", -EBADMSG, 0 },
                { "", -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(prepare_claims_done) PrepareClaims claims = { 0 };
                int r = prepare_parse_claims(cases[i].text, strlen(cases[i].text), &claims, NULL);

                if (r != cases[i].expected || claims.n_items != cases[i].n)
                        fail_msg("%s: %d, %zu claims", cases[i].text, r, claims.n_items);
        }
}

static void test_names_of_types(void **state)
{
        static const struct {
                const char *type;
                uint64_t expected;
        } cases[] = {
                { "nvidia-1428", 1428 },
                { "nvidia-0", 0 },
                { "nvidia-", 0 },
                { "nvidia-999999999", 999999999 },
                { "nvidia-9999999999", 0 },
                { "nvidia-14x", 0 },
                { "nvidia--1", 0 },
                { "mtty-1", 0 },
                { "", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text = text_format(
                        DOCUMENT(CLAIM("1", "\"0000:c1:00.4\"", "\"%s\"")), cases[i].type);
                _cleanup_(prepare_claims_done) PrepareClaims claims = { 0 };

                assert_int_equal(prepare_parse_claims(text, strlen(text), &claims, NULL), 0);
                assert_int_equal(claims.items[0].type, cases[i].expected);
        }
}

TEST_MAIN_WITH(prepare_setup, prepare_teardown, test_claims_of_the_database, test_missing_database,
               test_unread_database, test_bad_database, test_documents, test_names_of_types)
