/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/domain-capabilities.h"
#include "tests/unit/test.h"

#define HEAD "<domainCapabilities><machine> pc-q35-7.2 </machine><arch>x86_64</arch>"
#define TAIL "</domainCapabilities>"

static void test_whole(void **state)
{
        static const char text[] = HEAD
                "<os supported='yes'><enum name='firmware'/><loader supported='yes'>"
                "<enum name='type'><value>rom</value><value>pflash</value></enum>"
                "<enum name='secure'><value>yes</value><value>no</value></enum></loader></os>"
                "<devices><disk supported='yes'><enum "
                "name='diskDevice'><value>floppy</value></enum>"
                "<enum name='bus'><value>virtio</value><value>sata</value><value>sata</value>"
                "<value/></enum></disk>"
                "<video supported='yes'><enum name='modelType'><value>vga</value></enum></video>"
                "<filesystem supported='yes'><enum name='driverType'><value>virtiofs</value></enum>"
                "</filesystem>"
                "<tpm supported='yes'><enum name='model'><value>tpm-crb</value></enum>"
                "<enum name='backendModel'><value>emulator</value></enum>"
                "<enum name='backendVersion'><value>1.2</value><value>2.0</value></enum></tpm>"
                "</devices><features><sev supported='yes'><cbitpos>51</cbitpos>"
                "<maxGuests>15</maxGuests><maxESGuests>500</maxESGuests></sev>"
                "<launchSecurity supported='yes'><enum name='sectype'><value>sev</value>"
                "<value>sev-snp</value></enum></launchSecurity></features>" TAIL;
        _cleanup_(snapshot_emulator_done) SnapshotEmulator emulator = { 0 };
        Error error = ERROR_NULL;

        if (domain_capabilities_parse(text, &emulator, &error) < 0)
                fail_msg("%s", error.text);
        assert_string_equal(emulator.arch, "x86_64");
        assert_string_equal(emulator.machine, "pc-q35-7.2");
        assert_true(emulator.secure_boot);
        assert_true(string_set_contains(&emulator.disk_buses, "sata"));
        assert_false(string_set_contains(&emulator.disk_buses, "floppy"));
        assert_int_equal(emulator.video_models.n_items, 1);
        assert_int_equal(emulator.filesystem_drivers.n_items, 1);
        assert_true(string_set_contains(&emulator.tpm_models, "tpm-crb"));
        assert_true(string_set_contains(&emulator.tpm_backends, "emulator"));
        assert_int_equal(emulator.tpm_versions.n_items, 2);
        assert_true(emulator.sev && emulator.sev_es && emulator.sev_snp);
        assert_int_equal(emulator.sev_max_guests, 15);
        assert_int_equal(emulator.sev_es_max_guests, 500);
}

/* What an older libvirt does not tell, and what is there and not supported */
static void test_sparse(void **state)
{
        static const char text[] = HEAD
                "<os supported='no'/><devices>"
                "<disk supported='no'><enum name='bus'><value>sata</value></enum></disk>"
                "<tpm supported='no'><enum name='model'><value>tpm-tis</value></enum></tpm>"
                "</devices><features><sev supported='no'><maxGuests>1</maxGuests></sev></features>" TAIL;
        _cleanup_(snapshot_emulator_done) SnapshotEmulator emulator = { 0 }, bare = { 0 };

        assert_int_equal(domain_capabilities_parse(text, &emulator, NULL), 0);
        assert_int_equal(emulator.disk_buses.n_items, 0);
        assert_int_equal(emulator.tpm_models.n_items, 0);
        assert_false(emulator.secure_boot || emulator.sev || emulator.sev_es);

        assert_int_equal(domain_capabilities_parse(HEAD TAIL, &bare, NULL), 0);
        snapshot_emulator_done(&bare);
        assert_int_equal(
                domain_capabilities_parse(HEAD "<features><sev supported='yes'/></features>" TAIL,
                                          &bare, NULL),
                0);
        assert_true(bare.sev);
        assert_int_equal(bare.sev_max_guests, INT64_MAX);
        assert_false(bare.sev_es);
}

/* Intel's guests are none of AMD's. */
static void test_i8_tdx(void **state)
{
        static const char text[] =
                HEAD "<features><sev supported='no'/><tdx supported='yes'/>"
                     "<launchSecurity supported='yes'><enum name='sectype'><value>tdx</value>"
                     "</enum></launchSecurity></features>" TAIL;
        _cleanup_(snapshot_emulator_done) SnapshotEmulator emulator = { 0 };

        assert_int_equal(domain_capabilities_parse(text, &emulator, NULL), 0);
        assert_false(emulator.sev || emulator.sev_es || emulator.sev_snp);
}

/* Containers have no machine types. */
static void test_no_machine(void **state)
{
        SnapshotEmulator emulator = { 0 };

        assert_int_equal(domain_capabilities_parse("<domainCapabilities><path>/usr/lib/lxc</path>"
                                                   "<domain>lxc</domain><arch>x86_64</arch>"
                                                   "</domainCapabilities>",
                                                   &emulator, NULL),
                         0);
        assert_string_equal(emulator.arch, "x86_64");
        assert_string_equal(emulator.machine, "");
        snapshot_emulator_done(&emulator);
}

static void test_refused(void **state)
{
        static const char *const cases[] = {
                "",
                "x",
                "<capabilities/>",
                "<domainCapabilities/>",
                "<domainCapabilities><machine>x</machine></domainCapabilities>",
                HEAD
                "<features><sev supported='yes'><maxGuests>-1</maxGuests></sev></features>" TAIL,
                HEAD
                "<features><sev supported='yes'><maxESGuests>x</maxESGuests></sev></features>" TAIL,
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                SnapshotEmulator emulator = { 0 };
                Error error = ERROR_NULL;

                assert_int_equal(domain_capabilities_parse(cases[i], &emulator, &error), -EBADMSG);
                assert_int_equal(strncmp(error.text, "Domain capabilities", 19), 0);
                assert_null(emulator.arch);
        }
}

TEST_MAIN(test_whole, test_sparse, test_i8_tdx, test_no_machine, test_refused)
