/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/cpu-model.h"
#include "drivers/libvirt/guest-capabilities.h"
#include "tests/unit/test.h"

static const char text[] =
        "<capabilities><host><cpu><arch>x86_64</arch><model>EPYC</model><vendor>AMD</vendor>"
        "<feature name='ht'/><feature name='pcid'/><feature/></cpu></host>"
        "<guest><arch name='i686'><emulator>/q32</emulator>"
        "<machine>pc-1</machine><machine canonical='pc-1'>pc</machine>"
        "<domain type='qemu'/></arch></guest>"
        "<guest><arch name='x86_64'><emulator>/q64</emulator>"
        "<machine canonical='pc-2'>pc</machine><machine canonical='pc-q35-2'>q35</machine>"
        "<domain type='qemu'/>"
        "<domain type='kvm'><emulator>/kvm</emulator><machine canonical='x'>own</machine></domain>"
        "</arch></guest><guest/><guest><arch/></guest></capabilities>";

static void test_guests(void **state)
{
        static const struct {
                const char *type, *path;
                size_t n_machines;
                const char *first;
        } cases[] = { { "qemu", "/q64", 2, "pc" },
                      { "kvm", "/kvm", 1, "own" },
                      { "xen", "/q64", 2, "pc" } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(guest_capabilities_done) GuestCapabilities found = { 0 };

                assert_int_equal(guest_capabilities_parse(text, cases[i].type, &found, NULL), 0);
                assert_int_equal(found.n_emulators, 2);
                assert_string_equal(found.emulators[0].path, "/q32");
                assert_string_equal(found.emulators[1].arch, "x86_64");
                assert_string_equal(found.emulators[1].path, cases[i].path);
                assert_int_equal(found.emulators[1].machines.n_items, cases[i].n_machines);
                assert_string_equal(found.emulators[1].machines.items[0], cases[i].first);
        }
}

static void test_cpu(void **state)
{
        _cleanup_(guest_capabilities_done) GuestCapabilities found = { 0 }, bare = { 0 };
        _cleanup_free_ char *xml = NULL;

        assert_int_equal(guest_capabilities_parse(text, "kvm", &found, NULL), 0);
        assert_string_equal(found.cpu_model, "EPYC");
        assert_int_equal(found.cpu_features.n_items, 2);
        xml = cpu_model_format(found.cpu_arch, found.cpu_model, found.cpu_vendor,
                               &found.cpu_features);
        assert_string_equal(xml, "<cpu><arch>x86_64</arch><model>EPYC</model><vendor>AMD</vendor>"
                                 "<feature name='ht'/><feature name='pcid'/></cpu>");
        assert_int_equal(guest_capabilities_parse("<capabilities/>", "kvm", &bare, NULL), 0);
        assert_string_equal(bare.cpu_arch, "");
        assert_int_equal(guest_capabilities_parse("<x/>", "kvm", &bare, NULL), -EBADMSG);
}

/* Nothing that libvirt or a configuration says gets out of its place in the XML. */
static void test_hostile_names(void **state)
{
        static const char *const names[] = { "", "<x/>", "a'b", "a\"b", "a&b", "\n", "a\001" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(string_set_done) StringSet features = STRING_SET_INIT;
                _cleanup_free_ char *xml = NULL;

                assert_null(cpu_model_format(names[i], "m", NULL, NULL));
                assert_null(cpu_model_format("a", names[i], NULL, NULL));
                assert_int_equal(string_set_add(&features, names[i]), 1);
                assert_null(cpu_model_format("a", "m", NULL, &features));
                xml = cpu_model_format("a", "m", names[i], NULL);
                assert_string_equal(xml, "<cpu><arch>a</arch><model>m</model></cpu>");
        }
}

static void test_features(void **state)
{
        static const char *const flags[] = { "+VMX", "-avx", "pcid", "-nothing", NULL };
        _cleanup_(string_set_done) StringSet features = STRING_SET_INIT;

        assert_int_equal(cpu_model_read_features("<cpu><feature name='avx' policy='require'/>"
                                                 "<feature name='sse' policy='disable'/>"
                                                 "<feature name='mmx' policy='forbid'/>"
                                                 "<feature name='fma'/><feature name=''/></cpu>",
                                                 &features, NULL),
                         0);
        assert_int_equal(features.n_items, 2);
        assert_int_equal(cpu_model_apply_flags((char **)flags, &features), 0);
        assert_int_equal(features.n_items, 3);
        assert_string_equal(features.items[0], "fma");
        assert_string_equal(features.items[1], "pcid");
        assert_string_equal(features.items[2], "vmx");
        assert_int_equal(cpu_model_apply_flags(NULL, &features), 0);
        assert_int_equal(cpu_model_read_features("x", &features, NULL), -EBADMSG);
        assert_string_equal(cpu_model_of_arch("x86_64"), "qemu64");
        assert_null(cpu_model_of_arch("z80"));
}

TEST_MAIN(test_guests, test_cpu, test_hostile_names, test_features)
