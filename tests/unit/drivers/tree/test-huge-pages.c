/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/tree/huge-pages.h"

#include "drivers/driver-config.h"
#include "tests/fixtures/host.h"

/* A4: reserved_huge_pages */
static void test_parse_a4(void **state)
{
        static const struct {
                const char *text;
                int r;
                HugePagesReserve expected;
        } cases[] = {
                { "node:0,size:2048,count:64", 0, { 0, 2048, 64 } },
                { " node : 0 ,\tsize:2048, count: 64 ", 0, { 0, 2048, 64 } },
                { "node:1,size:1GB,count:1", 0, { 1, 1048576, 1 } },
                { "size:2MB,node:12,count:0", 0, { 12, 2048, 0 } },
                { "count:3,size:64KiB,node:0", 0, { 0, 64, 3 } },
                { "NODE:0,Size:1g,count:3", 0, { 0, 1048576, 3 } },
                { "", -EINVAL, { 0 } },
                { "node:0,size:2048", -EINVAL, { 0 } },
                { "node:0,size:2048,count:64,", -EINVAL, { 0 } },
                { "node:0,size:2048,count:64, ", -EINVAL, { 0 } },
                { "node:0,size:0,count:1", -EINVAL, { 0 } },
                { "node:0,size:2048,count:1,count:2", -EINVAL, { 0 } },
                { "node:0,size:2048,count:-1", -EINVAL, { 0 } },
                { "node:0,size:2048,count:1x", -EINVAL, { 0 } },
                { "node:0,size:2TB,count:1", -EINVAL, { 0 } },
                { "node:0 size:2048 count:1", -EINVAL, { 0 } },
                { "nodes:0,size:2048,count:1", -EINVAL, { 0 } },
                { "node:0,size:99999999999999999999,count:1", -EINVAL, { 0 } },
                { "node:0,size:9999999999999999GB,count:1", -EINVAL, { 0 } },
                { "node:2147483648,size:4,count:1", -EINVAL, { 0 } },
                { "node:0,size:4,count:2147483648", -EINVAL, { 0 } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HugePagesReserve reserve = { 0 };
                Error error = ERROR_NULL;
                int r = huge_pages_parse_reserve(cases[i].text, &reserve, &error);

                if (r != cases[i].r || memcmp(&reserve, &cases[i].expected, sizeof(reserve)) != 0)
                        fail_msg("%s: %d %s", cases[i].text, r, error.text);
                assert_true(r == 0 || strstr(error.text, "node:0,size:2048,count:64"));
        }
}

static void test_option(void **state)
{
        char *values[] = { TEXT("node:0,size:2048,count:64"), TEXT("node:1,size:2MB,count:5"),
                           TEXT("node:0,size:1GB,count:1"), NULL };
        HostConfig config = { .reserved_huge_pages = values };
        Error error = ERROR_NULL;

        assert_int_equal(driver_config_check(&config, NULL), 0);
        assert_int_equal(huge_pages_reserved(&config, 0, 2048), 64);
        assert_int_equal(huge_pages_reserved(&config, 1, 2048), 5);
        assert_int_equal(huge_pages_reserved(&config, 0, 1048576), 1);
        assert_int_equal(huge_pages_reserved(&config, 1, 1048576), 0);
        assert_int_equal(huge_pages_reserved(&config, 2, 2048), 0);
        values[2] = TEXT("node:0,size:2MB,count:1");
        assert_int_equal(driver_config_check(&config, &error), -EINVAL);
        assert_non_null(strstr(error.text, "are for the same pages"));
        values[2] = TEXT("64");
        assert_int_equal(driver_config_check(&config, &error), -EINVAL);
        assert_non_null(strstr(error.text, "reserved_huge_pages"));
        config.reserved_huge_pages = NULL;
        assert_int_equal(driver_config_check(&config, NULL), 0);
        assert_int_equal(huge_pages_reserved(&config, 0, 2048), 0);
}

static void test_class_names(void **state)
{
        static const struct {
                uint64_t size_kib;
                const char *name;
        } cases[] = {
                { 2048, "CUSTOM_HUGEPAGES_2M" },
                { 1048576, "CUSTOM_HUGEPAGES_1G" },
                { 64, "CUSTOM_HUGEPAGES_64K" },
                { 524288, "CUSTOM_HUGEPAGES_512M" },
                { 16777216, "CUSTOM_HUGEPAGES_16G" },
                { 1536, "CUSTOM_HUGEPAGES_1536K" },
                { UINT64_MAX, "CUSTOM_HUGEPAGES_18446744073709551615K" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char name[HUGE_PAGES_CLASS_SIZE];

                assert_string_equal(huge_pages_class(cases[i].size_kib, name), cases[i].name);
                assert_true(resource_class_valid(name));
        }
}

#define PAGES(size) "'cells': [{'id': 0, 'pages': [" size "]}]"
#define PAGE(size)  "{'size_kib': " size ", 'count': 1}"

static void test_ordinary_size(void **state)
{
        static const struct {
                const char *host;
                uint64_t expected;
        } cases[] = {
                { PAGES(PAGE("4") "," PAGE("2048")), 4 },
                { PAGES(PAGE("2048") "," PAGE("4") "," PAGE("64")), 4 },
                { PAGES(PAGE("64") "," PAGE("524288")), 64 },
                { PAGES(PAGE("2048")), 0 },
                { PAGES(""), 0 },
                { "", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(cases[i].host);

                assert_int_equal(huge_pages_ordinary_size(host), cases[i].expected);
        }
}

TEST_MAIN(test_parse_a4, test_option, test_class_names, test_ordinary_size)
