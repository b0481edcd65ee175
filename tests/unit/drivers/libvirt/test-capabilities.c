/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses capabilities, domain capabilities and CPU models, and formats CPU models. Hostile and
 * incomplete texts are included. */
#include "drivers/libvirt/capabilities.h"
#include "tests/unit/test.h"

#define HOST(cells)                                                                           \
        "<capabilities><host><uuid>x</uuid><cpu><arch>x86_64</arch><model>EPYC</model></cpu>" \
        "<topology>" cells "</topology></host><guest/></capabilities>"

static Snapshot *make_empty(void)
{
        Snapshot *snapshot;

        assert_int_equal(snapshot_new(&snapshot), 0);
        return snapshot;
}

static void test_uneven_host(void **state)
{
        static const char text[] =
                HOST("<cells num='3'>"
                     "<cell id='0'><memory unit='KiB'>2097152</memory>"
                     "<pages unit='KiB' size='4'>262144</pages>"
                     "<pages unit='KiB' size='2048'>512</pages>"
                     "<cpus num='3'><cpu id='0' socket_id='0' siblings='0,2'/>"
                     "<cpu id='2' socket_id='0' siblings='0,2'/>"
                     "<cpu id='7'/></cpus></cell>"
                     "<cell id='5'><memory unit='KiB'>1048576</memory><cpus num='0'/></cell>"
                     "<cell id='9'><cpus num='1'><cpu id='2' siblings='2'/></cpus></cell></cells>");
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_empty();
        const SnapshotCell *cell;

        assert_int_equal(capabilities_parse(text, snapshot, NULL), 0);
        assert_string_equal(snapshot->arch, "x86_64");
        assert_string_equal(snapshot->cpu_model, "EPYC");
        assert_int_equal(snapshot->n_cells, 3);

        cell = &snapshot->cells[0];
        assert_int_equal(cell->memory_kib, 2097152);
        assert_int_equal(cell->n_pages, 2);
        assert_int_equal(cell->pages[1].size_kib, 2048);
        assert_int_equal(cell->pages[1].count, 512);
        assert_int_equal(cell->n_cpus, 3);
        assert_int_equal(cell->cpus[1].socket_id, 0);
        assert_true(cpu_set_contains(&cell->cpus[1].siblings, 0));
        assert_int_equal(cell->cpus[2].socket_id, -1); /* offline */
        assert_int_equal(cpu_set_count(&cell->cpus[2].siblings), 0);

        assert_int_equal(snapshot->cells[1].id, 5); /* an id after a gap, and memory only */
        assert_int_equal(snapshot->cells[1].n_cpus, 0);
        assert_int_equal(snapshot->cells[2].memory_kib, 0); /* with a CPU of another cell */
        assert_int_equal(snapshot->cells[2].cpus[0].id, 2);
}

static void test_table(void **state)
{
        static const struct {
                const char *text;
                const char *words; /* NULL: valid, and without cells */
        } cases[] = {
                { HOST("<cells num='0'/>"), NULL },
                { HOST(""), NULL },
                { "<capabilities/>", NULL },
                { "<capabilities><host/></capabilities>", NULL },
                { "<node/>", "Expected <capabilities>" },
                { "", "Not XML" },
                { "\n<capabilities><host>", "Not XML (line 2)" },
                { HOST("<cells><cell/></cells>"), "The id of a cell is missing" },
                { HOST("<cells><cell id='-1'/></cells>"), "not a number" },
                { HOST("<cells><cell id='4294967296'/></cells>"), "too large" },
                { HOST("<cells><cell id='1'><memory>much</memory></cell></cells>"),
                  "Cell 1: An amount of memory is not a number: \"much\"" },
                { HOST("<cells><cell id='1'><cpus><cpu id='65536'/></cpus></cell></cells>"),
                  "Cell 1: The id of a CPU is too large" },
                { HOST("<cells><cell id='1'><cpus><cpu id='1' siblings='0-x'/></cpus></cell>"
                       "</cells>"),
                  "Cell 1: CPU 1: bad siblings" },
                { HOST("<cells><cell id='1'><cpus><cpu id='1' socket_id='a'/></cpus></cell></cells>"),
                  "socket_id is not a number" },
                { HOST("<cells><cell id='1'><pages size='4'/></cell></cells>"),
                  "A number of pages is missing" },
                { HOST("<cells><cell id='1'><pages unit='MiB' size='4'>1</pages></cell></cells>"),
                  "Unknown unit of pages" },
                { HOST("<cells><cell id='1'><pages size='0'>1</pages></cell></cells>"),
                  "A page size is 0" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_empty();
                Error error = ERROR_NULL;
                int r = capabilities_parse(cases[i].text, snapshot, &error);

                if (r != (cases[i].words ? -EBADMSG : 0))
                        fail_msg("case %zu: %d (%s)", i, r, error.text);
                if (cases[i].words && !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: \"%s\"", i, error.text);
                if (r == 0)
                        assert_int_equal(snapshot->n_cells, 0);
        }
}

static void test_missing_texts(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_empty();

        assert_int_equal(capabilities_parse("<capabilities/>", snapshot, NULL), 0);
        assert_string_equal(snapshot->arch, "");
        assert_string_equal(snapshot->cpu_model, "");
}

static const char guests_text[] =
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

                assert_int_equal(guest_capabilities_parse(guests_text, cases[i].type, &found, NULL),
                                 0);
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

        assert_int_equal(guest_capabilities_parse(guests_text, "kvm", &found, NULL), 0);
        assert_string_equal(found.cpu_model, "EPYC");
        assert_int_equal(found.cpu_features.n_items, 2);
        assert_int_equal(cpu_model_format(found.cpu_arch, found.cpu_model, found.cpu_vendor,
                                          &found.cpu_features, &xml),
                         0);
        assert_string_equal(xml, "<cpu><arch>x86_64</arch><model>EPYC</model><vendor>AMD</vendor>"
                                 "<feature name='ht'/><feature name='pcid'/></cpu>");
        assert_int_equal(guest_capabilities_parse("<capabilities/>", "kvm", &bare, NULL), 0);
        assert_string_equal(bare.cpu_arch, "");
        assert_int_equal(guest_capabilities_parse("<x/>", "kvm", &bare, NULL), -EBADMSG);
}

/* Names from libvirt or the configuration cannot add elements to the XML. */
static void test_hostile_names(void **state)
{
        static const char *const names[] = { "", "<x/>", "a'b", "a\"b", "a&b", "\n", "a\001" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(string_set_done) StringSet features = STRING_SET_INIT;
                _cleanup_free_ char *xml = NULL;

                assert_int_equal(cpu_model_format(names[i], "m", NULL, NULL, &xml), -EINVAL);
                assert_int_equal(cpu_model_format("a", names[i], NULL, NULL, &xml), -EINVAL);
                assert_int_equal(string_set_add(&features, names[i]), 1);
                assert_int_equal(cpu_model_format("a", "m", NULL, &features, &xml), -EINVAL);
                assert_int_equal(cpu_model_format("a", "m", names[i], NULL, &xml), 0);
                assert_string_equal(xml, "<cpu><arch>a</arch><model>m</model></cpu>");
        }
}

static void test_cpu_features(void **state)
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

#define HEAD "<domainCapabilities><machine> pc-q35-7.2 </machine><arch>x86_64</arch>"
#define TAIL "</domainCapabilities>"

static void test_domain_capabilities(void **state)
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

/* Facts that an older libvirt does not report, and facts that are reported as not supported */
static void test_sparse_domain_capabilities(void **state)
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

/* Intel's TDX is not AMD's SEV. */
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

static void test_domain_capabilities_refused(void **state)
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

TEST_MAIN(test_uneven_host, test_table, test_missing_texts, test_guests, test_cpu,
          test_hostile_names, test_cpu_features, test_domain_capabilities,
          test_sparse_domain_capabilities, test_i8_tdx, test_no_machine,
          test_domain_capabilities_refused)
