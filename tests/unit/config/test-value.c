/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/value.h"

#include "base/text.h"
#include "tests/unit/test.h"

static void test_bool(void **state)
{
        static const struct {
                const char *text;
                int r;
                bool value;
        } cases[] = {
                { "true", 0, true },     { "True", 0, true },         { "1", 0, true },
                { "yes", 0, true },      { "ON", 0, true },           { "false", 0, false },
                { "0", 0, false },       { "No", 0, false },          { "off", 0, false },
                { "", -EINVAL, false },  { "2", -EINVAL, false },     { "truee", -EINVAL, false },
                { "t", -EINVAL, false }, { "true ", -EINVAL, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                bool value = !cases[i].value;

                assert_int_equal(config_value_bool(cases[i].text, &value), cases[i].r);
                assert_int_equal(value, cases[i].r == 0 ? cases[i].value : true);
        }
}

static void test_whole_numbers(void **state)
{
        static const struct {
                const char *text;
                int r;
                int64_t value;
        } cases[] = {
                { "0", 0, 0 },
                { "007", 0, 7 },
                { "-1", 0, -1 },
                { "+1", 0, 1 },
                { "9223372036854775807", 0, INT64_MAX },
                { "9223372036854775808", -ERANGE, 0 },
                { "-9223372036854775808", 0, INT64_MIN },
                { "-9223372036854775809", -ERANGE, 0 },
                { "18446744073709551616", -ERANGE, 0 },
                { "--1", -EINVAL, 0 },
                { "-", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "1.0", -EINVAL, 0 },
                { "0x10", -EINVAL, 0 },
                { "1 ", -EINVAL, 0 },
                { " 1", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
                { "one", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t value = 4711;

                assert_int_equal(config_value_i64(cases[i].text, &value), cases[i].r);
                assert_int_equal(value, cases[i].r == 0 ? cases[i].value : 4711);
        }
}

static void test_double(void **state)
{
        static const struct {
                const char *text;
                int r;
                double value;
        } cases[] = {
                { "0", 0, 0 },           { "1.5", 0, 1.5 },       { ".5", 0, 0.5 },
                { "16.0", 0, 16 },       { "1e3", 0, 1000 },      { "-2.5", 0, -2.5 },
                { "", -EINVAL, 0 },      { "nan", -EINVAL, 0 },   { "inf", -EINVAL, 0 },
                { "1e999", -EINVAL, 0 }, { "0x1p3", -EINVAL, 0 }, { "1,5", -EINVAL, 0 },
                { "1.5.1", -EINVAL, 0 }, { ".", -EINVAL, 0 },     { "1 ", -EINVAL, 0 },
                { "e", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                double value = -1;

                assert_int_equal(config_value_double(cases[i].text, &value), cases[i].r);
                assert_true(value == (cases[i].r == 0 ? cases[i].value : -1));
        }
}

static void test_list(void **state)
{
        static const struct {
                const char *text;
                const char *items[4];
        } cases[] = {
                { "", { NULL } },
                { ",", { NULL } },
                { " , ,\n", { NULL } },
                { "a", { "a" } },
                { "a,b", { "a", "b" } },
                { " a ,\tb  c , ", { "a", "b  c" } },
                { "a,  b,\tc", { "a", "b", "c" } },
                { ",a", { "a" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(strings_freep) char **items = NULL;
                size_t n = 0;

                assert_int_equal(config_value_list(cases[i].text, &items), 0);
                for (; cases[i].items[n]; n++) {
                        assert_non_null(items[n]);
                        assert_string_equal(items[n], cases[i].items[n]);
                }
                assert_null(items[n]);
        }
}

static void check_all(ConfigForm form, const char *const good[], const char *const bad[])
{
        for (; *good; good++)
                if (!config_value_has_form(*good, form))
                        fail_msg("\"%s\" is refused", *good);
        for (; *bad; bad++)
                if (config_value_has_form(*bad, form))
                        fail_msg("\"%s\" is taken", *bad);
}

#define TEXTS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define A50        "AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDDEEEEEEEEEE"
#define A250       A50 A50 A50 A50 A50

static void test_names(void **state)
{
        check_all(CONFIG_FORM_PATH, TEXTS("/", "/a"), TEXTS("", "a", "./a"));
        check_all(CONFIG_FORM_HOST_NAME, TEXTS("", "host1.example.org", A250 "ABCDE"),
                  TEXTS("a b", "a\tb", "h\xc3\xb6st", A250 "ABCDEF"));
        check_all(CONFIG_FORM_TRAIT, TEXTS("", "OWNER_NOVA", "CUSTOM_1", A250 "ABCDE"),
                  TEXTS("owner", "A-B", "A B", A250 "ABCDEF"));
        check_all(CONFIG_FORM_TOKEN, TEXTS("admin", "gAAA-_=~"),
                  TEXTS("", "a b", "a\nb", "\xc3\xa9", "\x7f"));
        check_all(CONFIG_FORM_MDEV_CLASS, TEXTS("VGPU", "CUSTOM_A", "CUSTOM_" A50),
                  TEXTS("", "VCPU", "CUSTOM_", "CUSTOM_a", "CUSTOM_A B", "xCUSTOM_A",
                        "CUSTOM_" A250));
        check_all(CONFIG_FORM_MDEV_TYPE, TEXTS("nvidia-35", "i915-GVTg_V5_4", "mtty-2"),
                  TEXTS("", ".", "..", ".x", "a/b", "a b", A250 "ABCDEF"));
        check_all(CONFIG_FORM_DEVICE_ADDRESS,
                  TEXTS("0000:41:00.0", "FFFF:ff:1F.7", "/sys/devices/virtual/mtty/mtty",
                        "/sys/devices/vfio_ap/matrix", "/sys/devices/a..b"),
                  TEXTS("", "41:00.0", "0000:41:00.8", "0000:41:00.00", "0000:4g:00.0",
                        "0000-41-00-0", "10000:41:00.0", "/sys/devices/", "/sys/class/x",
                        "/sys/devices/../x", "/sys/devices/x/..", "/sys/devices/a b",
                        "pci_0000_41_00_0"));
}

static void test_addresses(void **state)
{
        check_all(CONFIG_FORM_DRIVER_URI,
                  TEXTS("qemu:///system", "test:///default", "qemu+ssh://root@host/system",
                        "qemu+unix:///system?socket=/run/x"),
                  TEXTS("", "qemu", "qemu:", "/system", "QEMU:///system", "qemu:///a b", ":///x"));
        check_all(CONFIG_FORM_HTTP_URL,
                  TEXTS("http://127.0.0.1:8778", "https://placement/", "HTTP://h/placement",
                        "http://[::1]:8778/placement", "http://h/a@b"),
                  TEXTS("", "placement", "http://", "http:///x", "http://:80/", "ftp://h/",
                        "http://u:p@h/", "http://u@h", "http://h?x=1", "http://h/#x",
                        "http://h/a b", "unix:///x", "http://h/\xc3\xa9"));
        check_all(CONFIG_FORM_ENDPOINT, TEXTS("unix:///run/placement.sock", "http://h"),
                  TEXTS("unix://", "unix:///", "unix://run/x", "unix:/x",
                        "unix:///" A50 A50 "ABCDEFGH", "http://"));
}

TEST_MAIN(test_bool, test_whole_numbers, test_double, test_list, test_names, test_addresses)
