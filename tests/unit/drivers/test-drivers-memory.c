/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the code from untrusted text to a snapshot and from a snapshot to a tree. Each allocation
 * fails once: the result must be -ENOMEM, without a leak (AddressSanitizer finds leaks). */

#include "drivers/libvirt/capabilities.h"
#include "drivers/libvirt/domain.h"
#include "drivers/libvirt/node-device.h"
#include "drivers/registry.h"
#include "drivers/update.h"
#include "tests/fixtures/host.h"
#include "tests/shims/fail-alloc.h"

#define UUID_GUEST "bbbbbbbb-0000-4000-8000-000000000001"
#define UUID_MDEV  "11111111-1111-4111-8111-111111111111"

static const char host_members[] =
        "'online_cpus': '0-3', 'memory_kib': 1048576, 'disk_total_bytes': 1099511627776,"
        " 'cells': [{'id': 0, 'cpus': [{'id': 0, 'siblings': '0'}],"
        "             'pages': [{'size_kib': 4, 'count': 1}]}],"
        " 'devices': [{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0',"
        "   'mdev_types': [{'id': 'A', 'available_instances': 3}]}],"
        " 'mdevs': [{'uuid': '" UUID_MDEV "', 'type': 'A',"
        "            'parent': 'pci_0000_41_00_0'}],"
        " 'domains': [{'uuid': '" UUID_GUEST "', 'state': 'running',"
        "   'mdevs': ['" UUID_MDEV "'], 'pci_addresses': ['0000:05:00.0'],"
        "   'cpus': '0', 'pins': [{'vcpu': 0, 'cpus': '1'}],"
        "   'cells': [{'id': 0, 'vcpus': '0', 'host_cells': '0'}]}]";

static HostMdevType types[] = { MDEV_TYPE("A", NULL, "VGPU", 0) };

/* Each function runs its code once with the n-th allocation failing, and checks the result. */

static int read_capabilities(void)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        int r = snapshot_new(&snapshot);

        return r < 0 ? r
                     : capabilities_parse(
                               "<capabilities><host><cpu><arch>x</arch></cpu><topology><cells><cell id='0'>"
                               "<memory>1</memory><pages size='4'>1</pages>"
                               "<cpus><cpu id='0' siblings='0'/><cpu id='1' siblings='1'/></cpus>"
                               "</cell></cells></topology></host></capabilities>",
                               snapshot, NULL);
}

static int read_gpu(void)
{
        _cleanup_(node_device_done) NodeDevice device = { 0 };

        return node_device_parse(
                "<device><name>p</name><parent>c</parent><driver><name>d</name></driver>"
                "<capability type='pci'><domain>0</domain><bus>1</bus><slot>0</slot>"
                "<function>0</function><vendor id='0x1'>v</vendor><product id='0x2'>p</product>"
                "<capability type='mdev_types'><type id='A'><name>n</name>"
                "<deviceAPI>vfio-pci</deviceAPI><availableInstances>1</availableInstances></type>"
                "</capability></capability></device>",
                &device, NULL);
}

static int read_mdev(void)
{
        _cleanup_(node_device_done) NodeDevice device = { 0 };

        return node_device_parse("<device><name>m</name><parent>p</parent><capability type='mdev'>"
                                 "<type id='A'/><uuid>" UUID_MDEV "</uuid></capability></device>",
                                 &device, NULL);
}

static int read_domain(void)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

        return domain_parse(
                "<domain><name>n</name><uuid>" UUID_GUEST "</uuid><vcpu cpuset='0-3'>2</vcpu>"
                "<cputune><vcpupin vcpu='0' cpuset='1'/><vcpupin vcpu='1' cpuset='2'/></cputune>"
                "<numatune><memory nodeset='0'/><memnode cellid='0' nodeset='0'/></numatune>"
                "<memoryBacking><hugepages><page size='2048' nodeset='0'/></hugepages>"
                "</memoryBacking><cpu><numa><cell id='0' cpus='0-1' memory='1024'/></numa></cpu>"
                "<devices>"
                "<hostdev type='mdev'><source><address uuid='" UUID_MDEV "'/></source></hostdev>"
                "<hostdev type='pci'><source><address domain='0' bus='5' slot='0' function='0'/>"
                "</source></hostdev></devices></domain>",
                &domain, NULL);
}

static int read_domain_capabilities(void)
{
        _cleanup_(snapshot_emulator_done) SnapshotEmulator emulator = { 0 };

        return domain_capabilities_parse(
                "<domainCapabilities><path>/q</path><machine>q35</machine><arch>x86_64</arch>"
                "<os><enum name='firmware'><value>efi</value></enum></os>"
                "<devices><disk supported='yes'><enum name='bus'><value>virtio</value>"
                "<value>scsi</value></enum></disk>"
                "<video supported='yes'><enum name='modelType'><value>vga</value></enum></video>"
                "<filesystem supported='yes'><enum name='driverType'><value>virtiofs</value></enum>"
                "</filesystem><tpm supported='yes'><enum name='model'><value>tpm-tis</value></enum>"
                "<enum name='backendModel'><value>emulator</value></enum>"
                "<enum name='backendVersion'><value>2.0</value></enum></tpm></devices>"
                "<features><sev supported='yes'><maxGuests>15</maxGuests>"
                "<maxESGuests>5</maxESGuests></sev></features></domainCapabilities>",
                &emulator, NULL);
}

static int read_guest_capabilities(void)
{
        _cleanup_(guest_capabilities_done) GuestCapabilities capabilities = { 0 };

        return guest_capabilities_parse(
                "<capabilities><host><cpu><arch>x86_64</arch><model>m</model><vendor>v</vendor>"
                "<feature name='vmx'/><feature name='avx'/></cpu></host>"
                "<guest><os_type>hvm</os_type><arch name='x86_64'><emulator>/q</emulator>"
                "<machine canonical='pc-q35-7.2'>q35</machine><domain type='qemu'/></arch></guest>"
                "</capabilities>",
                "qemu", &capabilities, NULL);
}

static int read_cpu_features(void)
{
        _cleanup_(string_set_done) StringSet features = STRING_SET_INIT;

        return cpu_model_read_features("<cpu><model>m</model><feature policy='require' name='avx'/>"
                                       "<feature policy='require' name='vmx'/></cpu>",
                                       &features, NULL);
}

static int read_pci_specs(void)
{
        _cleanup_(pci_specs_done) PciSpecs specs = PCI_SPECS_INIT;

        return specs_add(&specs,
                         "[{'vendor_id': '10de', 'resource_class': 'a',"
                         " 'traits': 'b,c', 'address': '0000:81:00.*'},"
                         " {'devname': 'eth0', 'physical_network': 'net'}]",
                         NULL);
}

static int parse_cpus(void)
{
        _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT, copy = CPU_SET_INIT;
        int r = cpu_set_parse("0-3,^2,200", &set, NULL);

        return r < 0 ? r : cpu_set_copy(&copy, &set);
}

static json_t *host_json; /* made while no allocation fails */

static int read_host(void)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        int r = snapshot_from_json(host_json, &snapshot, NULL);

        assert_int_equal(r == 0, snapshot != NULL);
        return r;
}

static int make_empty_snapshot(void)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;

        return snapshot_new(&snapshot);
}

static void test_parsers_without_memory(void **state)
{
        static const struct {
                const char *name;
                int (*work)(void);
        } cases[] = {
                { "capabilities", read_capabilities },
                { "gpu", read_gpu },
                { "mdev", read_mdev },
                { "domain", read_domain },
                { "domain capabilities", read_domain_capabilities },
                { "guest capabilities", read_guest_capabilities },
                { "CPU features", read_cpu_features },
                { "PCI specs", read_pci_specs },
                { "cpus", parse_cpus },
                { "host", read_host },
                { "empty", make_empty_snapshot },
        };
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(host_members);
        int r;

        host_json = snapshot_to_json(host);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                unsigned n;

                FAIL_ALLOC_EACH(n, r = cases[i].work()) {
                        if (r != -ENOMEM)
                                fail_msg("%s, allocation %u: %d", cases[i].name, n, r);
                }
                assert_int_equal(r, 0);
                assert_true(n > 0);
        }
        json_decref(host_json);
}

/* A whole update with a reshape. */
static void test_update(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(host_members);
        HostConfig config = config_make(types, ARRAY_SIZE(types));
        unsigned n = 0;

        for (bool more = true; more; n++) {
                Provider *root;
                _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
                _cleanup_(allocations_freep) Allocations *allocations = NULL;
                DriverReshape reshape = { 0 };
                int r;

                fixture_give(root, "VGPU=4");
                fixture_hold(&allocations, (Uuid){ UUID_GUEST }, root->uuid, "VGPU", 1);
                fail_alloc_at(n);
                reshape.consumers = allocations;
                r = provider_update(&config, host, NULL, tree, "cn1", &reshape, NULL);
                driver_reshape_done(&reshape);
                more = fail_alloc_done();
                if (r != (more ? -ENOMEM : DRIVER_UPDATED))
                        fail_msg("allocation %u: %d", n, r);
        }
        assert_true(n > 10);
}

TEST_MAIN(test_parsers_without_memory, test_update)
