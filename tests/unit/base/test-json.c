/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/json.h"

#include "tests/unit/test.h"

/* Makes {"k": value} with a value that a foreign server can send; NULL makes an object without the
 * member. */
static json_t *object_with(const char *value)
{
        json_t *object = NULL;
        char text[128];

        snprintf(text, sizeof(text), "{%s%s}", value ? "\"k\": " : "", value ? value : "");
        object = json_loads(text, JSON_ALLOW_NUL, NULL);
        assert_non_null(object);
        return object;
}

static void test_parse_table(void **state)
{
        static const struct {
                const char *text;
                size_t n;
                int r;
        } cases[] = {
#define TEXT(t) t, sizeof(t) - 1
                { TEXT("{}"), 0 },
                { TEXT("[1, 2.5, \"\xc3\xa9\", null, true]"), 0 },
                { TEXT(" {\"a\": {\"a\": 1}} \n"), 0 },
                { TEXT(""), -EBADMSG },
                { TEXT("   "), -EBADMSG },
                { TEXT("1"), -EBADMSG },
                { TEXT("\"x\""), -EBADMSG },
                { TEXT("{\"a\": 1, \"a\": 2}"), -EBADMSG }, /* ambiguous value */
                { TEXT("{\"a\": 1} {}"), -EBADMSG },
                { TEXT("{\"a\": 1,}"), -EBADMSG },
                { TEXT("{\"a\": 1"), -EBADMSG },
                { TEXT("{a: 1}"), -EBADMSG },
                { TEXT("{\"a\": 01}"), -EBADMSG },
                { TEXT("{\"a\": NaN}"), -EBADMSG },
                { TEXT("{\"a\": Infinity}"), -EBADMSG },
                { TEXT("{\"a\": 1e999}"), -EBADMSG },
                { TEXT("{\"a\": 99999999999999999999}"), -EBADMSG },
                { TEXT("{\"a\": \"\xe9\"}"), -EBADMSG },
                { TEXT("{\"a\": \"\\u0000\"}"), -EBADMSG },
                { TEXT("{\"a\": \"x\0y\"}"), -EBADMSG },
                { TEXT("{\"a\": 1}\0"), -EBADMSG },
                { TEXT("\xef\xbb\xbf{}"), -EBADMSG },
                { TEXT("<html><body>502 Bad Gateway</body></html>"), -EBADMSG },
#undef TEXT
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *json = NULL;
                Error error = ERROR_NULL;
                int r = json_parse(cases[i].text, cases[i].n, &json, &error);

                if (r != cases[i].r)
                        fail_msg("%s: %d", cases[i].text, r);
                assert_int_equal(json != NULL, r == 0);
                if (r < 0)
                        assert_non_null(strstr(error.text, "line"));
        }
}

/* A hundred thousand brackets must not exhaust the stack. */
static void test_parse_deep(void **state)
{
        static char text[100000];
        json_t *json = NULL;

        memset(text, '[', sizeof(text));
        assert_int_equal(json_parse(text, sizeof(text), &json, NULL), -EBADMSG);
        assert_null(json);
}

static void *allocate_nothing(size_t size)
{
        return NULL;
}

static void test_parse_without_memory(void **state)
{
        json_malloc_t allocate;
        json_free_t release;
        json_t *json = NULL;
        int r;

        json_get_alloc_funcs(&allocate, &release);
        json_set_alloc_funcs(allocate_nothing, release);
        r = json_parse("{}", 2, &json, NULL);
        json_set_alloc_funcs(allocate, release);
        assert_int_equal(r, -ENOMEM);
        assert_null(json);
}

/* Only n bytes are read. Bytes behind them do not matter. */
static void test_parse_length(void **state)
{
        _cleanup_json_ json_t *json = NULL;

        assert_int_equal(json_parse("[1]garbage", 3, &json, NULL), 0);
        assert_int_equal(json_array_size(json), 1);
}

typedef enum Kind { STRING, U64, I64, BOOL, UUID, OBJECT, ARRAY, _KIND_MAX } Kind;

static int read_kind(const json_t *object, Kind kind, Error *reterr)
{
        const char *string = "untouched";
        uint64_t u64 = 77;
        int64_t i64 = 77;
        bool boolean = true;
        Uuid uuid = { "untouched" };
        json_t *json = NULL;
        int r = 0;

        switch (kind) {
        case STRING:
                r = json_read_string(object, "k", &string, reterr);
                assert_true(r == 0 || strcmp(string, "untouched") == 0);
                break;
        case U64:
                r = json_read_u64(object, "k", &u64, reterr);
                assert_true(r == 0 || u64 == 77);
                break;
        case I64:
                r = json_read_i64(object, "k", &i64, reterr);
                assert_true(r == 0 || i64 == 77);
                break;
        case BOOL:
                r = json_read_bool(object, "k", &boolean, reterr);
                assert_true(r == 0 || boolean);
                break;
        case UUID:
                r = json_read_uuid(object, "k", &uuid, reterr);
                assert_true(r == 0 || strcmp(uuid.text, "untouched") == 0);
                break;
        case OBJECT:
                r = json_read_object(object, "k", &json, reterr);
                assert_true((r == 0) == json_is_object(json));
                break;
        case ARRAY:
                r = json_read_array(object, "k", &json, reterr);
                assert_true((r == 0) == json_is_array(json));
                break;
        case _KIND_MAX:
                fail();
        }
        return r;
}

/* Every reader with every value. taken_by has a bit for each reader that accepts the value. */
static void test_read_table(void **state)
{
        static const struct {
                const char *value;
                unsigned taken_by;
        } cases[] = {
                { NULL, 0 },
                { "null", 0 },
                { "\"\"", 1 << STRING },
                { "\"text\"", 1 << STRING },
                { "\"1\"", 1 << STRING },
                { "\"a\\u0000b\"", 0 },
                { "\"6BA7B810-9dad-11d1-80b4-00c04fd430c8\"", 1 << STRING | 1 << UUID },
                { "0", 1 << U64 | 1 << I64 },
                { "9223372036854775807", 1 << U64 | 1 << I64 },
                { "-1", 1 << I64 },
                { "-9223372036854775808", 1 << I64 },
                { "1.0", 0 },
                { "true", 1 << BOOL },
                { "false", 1 << BOOL },
                { "{}", 1 << OBJECT },
                { "[]", 1 << ARRAY },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *object = object_with(cases[i].value);

                for (Kind kind = 0; kind < _KIND_MAX; kind++) {
                        Error error = ERROR_NULL;
                        int r = read_kind(object, kind, &error);
                        int expected = cases[i].taken_by & 1U << kind ? 0 : -EBADMSG;

                        if (r != expected)
                                fail_msg("kind %d of %s: %d", kind, cases[i].value, r);
                        if (r < 0)
                                assert_non_null(strstr(error.text, "\"k\""));
                        assert_int_equal(read_kind(object, kind, NULL), expected);
                }
        }
}

static void test_read_values(void **state)
{
        _cleanup_json_ json_t *object = json_pack("{sI sb ss}", "n", (json_int_t)-5, "b", 0, "u",
                                                  "6BA7B810-9dad-11d1-80b4-00c04fd430c8");
        bool boolean = true;
        int64_t i64 = 0;
        Uuid uuid;

        assert_int_equal(json_read_i64(object, "n", &i64, NULL), 0);
        assert_int_equal(i64, -5);
        assert_int_equal(json_read_bool(object, "b", &boolean, NULL), 0);
        assert_false(boolean);
        assert_int_equal(json_read_uuid(object, "u", &uuid, NULL), 0);
        assert_string_equal(uuid.text, "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
}

static void test_read_from_no_object(void **state)
{
        _cleanup_json_ json_t *array = json_array();
        json_t *wrong[] = { NULL, array, json_null(), json_true() };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                for (Kind kind = 0; kind < _KIND_MAX; kind++)
                        assert_int_equal(read_kind(wrong[i], kind, NULL), -EBADMSG);
                assert_int_equal(inventory_from_json(wrong[i], &INVENTORY_DEFAULT(1), NULL),
                                 -EBADMSG);
        }
}

static void test_inventory_table(void **state)
{
        static const struct {
                const char *text;
                const char *named; /* the field that the error must name; NULL: no error */
        } cases[] = {
                { "{\"total\": 8}", NULL },
                { "{\"total\": 8, \"allocation_ratio\": 16, \"unknown\": []}", NULL },
                { "{\"total\": 8, \"reserved\": 9}", NULL },
                { "{\"total\": 2147483647, \"allocation_ratio\": 3.40282e+38}", NULL },
                { "{}", "\"total\"" },
                { "{\"total\": \"8\"}", "\"total\"" },
                { "{\"total\": 8.0}", "\"total\"" },
                { "{\"total\": 0}", "\"total\"" },
                { "{\"total\": -8}", "\"total\"" },
                { "{\"total\": 2147483648}", "\"total\"" },
                { "{\"total\": 8, \"reserved\": -1}", "\"reserved\"" },
                { "{\"total\": 8, \"reserved\": null}", "\"reserved\"" },
                { "{\"total\": 8, \"reserved\": 4294967296}", "\"reserved\"" },
                { "{\"total\": 8, \"min_unit\": 0}", "\"min_unit\"" },
                { "{\"total\": 8, \"max_unit\": 0}", "\"max_unit\"" },
                { "{\"total\": 8, \"step_size\": 0}", "\"step_size\"" },
                { "{\"total\": 8, \"step_size\": true}", "\"step_size\"" },
                { "{\"total\": 8, \"allocation_ratio\": -1}", "\"allocation_ratio\"" },
                { "{\"total\": 8, \"allocation_ratio\": 1e300}", "\"allocation_ratio\"" },
                { "{\"total\": 8, \"allocation_ratio\": \"1.0\"}", "\"allocation_ratio\"" },
                { "{\"total\": 8, \"allocation_ratio\": null}", "\"allocation_ratio\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *object = json_loads(cases[i].text, 0, NULL);
                Inventory inventory = INVENTORY_DEFAULT(77);
                Error error = ERROR_NULL;
                int r = inventory_from_json(object, &inventory, &error);

                if (r != (cases[i].named ? -EBADMSG : 0))
                        fail_msg("%s: %d", cases[i].text, r);
                if (r == 0)
                        continue;
                if (!strstr(error.text, cases[i].named))
                        fail_msg("%s: \"%s\" does not name the field", cases[i].text, error.text);
                assert_true(inventory_equal(&inventory, &INVENTORY_DEFAULT(77)));
        }
}

static void test_inventory_round_trip(void **state)
{
        const Inventory records[] = {
                INVENTORY_DEFAULT(1),
                { .total = 64,
                  .reserved = 3,
                  .min_unit = 2,
                  .max_unit = 32,
                  .step_size = 2,
                  .allocation_ratio = 1.1 },
                { .total = INVENTORY_MAX_AMOUNT,
                  .reserved = INVENTORY_MAX_AMOUNT,
                  .min_unit = INVENTORY_MAX_AMOUNT,
                  .max_unit = INVENTORY_MAX_AMOUNT,
                  .step_size = INVENTORY_MAX_AMOUNT,
                  .allocation_ratio = INVENTORY_MAX_RATIO },
        };

        for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
                _cleanup_json_ json_t *object = inventory_to_json(&records[i]), *parsed = NULL;
                _cleanup_free_ char *text = json_dumps(object, 0);
                Inventory inventory = INVENTORY_DEFAULT(77);

                assert_int_equal(json_object_size(object), 6);
                assert_int_equal(json_parse(text, strlen(text), &parsed, NULL), 0);
                assert_int_equal(inventory_from_json(parsed, &inventory, NULL), 0);
                assert_true(inventory_equal(&inventory, &records[i]));
        }
}

static void test_resources_table(void **state)
{
        static const struct {
                const char *text;
                const char *formatted; /* NULL: rejected */
        } cases[] = {
                { "{}", "" },
                { "{\"VGPU\": 1, \"CUSTOM_X\": 2147483647}", "CUSTOM_X=2147483647,VGPU=1" },
                { "{\"VCPU\": 0, \"VGPU\": 1}", "VGPU=1" }, /* usages list classes with an amount of
                                                             * 0 */
                { "[]", NULL },
                { "{\"VCPU\": \"2\"}", NULL },
                { "{\"VCPU\": 2.0}", NULL },
                { "{\"VCPU\": -1}", NULL },
                { "{\"VCPU\": null}", NULL },
                { "{\"vcpu\": 1}", NULL },
                { "{\"\": 1}", NULL },
                { "{\"VGPU\": 1, \"\\u001b[2J\": 1}", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
                _cleanup_json_ json_t *json = json_loads(cases[i].text, 0, NULL), *back = NULL;
                _cleanup_free_ char *formatted = NULL;
                Error error = ERROR_NULL;
                int r;

                assert_int_equal(resources_set(&resources, "OLD", 1), 0);
                r = resources_from_json(json, &resources, &error);
                if (r != (cases[i].formatted ? 0 : -EBADMSG))
                        fail_msg("%s: %d", cases[i].text, r);
                formatted = resources_format(&resources);
                assert_string_equal(formatted, cases[i].formatted ? cases[i].formatted : "OLD=1");
                assert_int_equal(error.text[0] != '\0', r < 0);

                back = resources_to_json(&resources);
                assert_int_equal(json_object_size(back), resources.n_items);
        }
}

/* JSON integers are signed. */
static void test_large_amount(void **state)
{
        _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
        _cleanup_json_ json_t *json = NULL;

        assert_int_equal(resources_set(&resources, "VCPU", UINT64_MAX), 0);
        json = resources_to_json(&resources);
        assert_true(json_integer_value(json_object_get(json, "VCPU")) == INT64_MAX);
}

static void test_string_set_table(void **state)
{
        static const struct {
                const char *text;
                size_t n;
                bool refused;
        } cases[] = {
                { "[]", 0, false },       { "[\"B\", \"A\", \"B\"]", 2, false },
                { "[\"\"]", 1, false },   { "{}", 0, true },
                { "[1]", 0, true },       { "[\"A\", null]", 0, true },
                { "[[\"A\"]]", 0, true }, { "[\"A\\u0000B\"]", 0, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(string_set_done) StringSet set = STRING_SET_INIT;
                _cleanup_json_ json_t *json = json_loads(cases[i].text, JSON_ALLOW_NUL, NULL);
                _cleanup_json_ json_t *back = NULL;
                Error error = ERROR_NULL;
                int r;

                assert_int_equal(string_set_add(&set, "OLD"), 1);
                r = string_set_from_json(json, &set, &error);
                if (r != (cases[i].refused ? -EBADMSG : 0))
                        fail_msg("%s: %d", cases[i].text, r);
                assert_int_equal(set.n_items, cases[i].refused ? 1 : cases[i].n);
                assert_int_equal(error.text[0] != '\0', r < 0);

                back = string_set_to_json(&set);
                assert_int_equal(json_array_size(back), set.n_items);
                for (size_t j = 0; j < set.n_items; j++)
                        assert_string_equal(json_string_value(json_array_get(back, j)),
                                            set.items[j]);
        }
}

TEST_MAIN(test_parse_table, test_parse_deep, test_parse_without_memory, test_parse_length,
          test_read_table, test_read_values, test_read_from_no_object, test_inventory_table,
          test_inventory_round_trip, test_resources_table, test_large_amount, test_string_set_table)
