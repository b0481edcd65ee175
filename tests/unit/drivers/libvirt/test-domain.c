/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses domain XML. DOMAIN() and DEVICES() put elements into a domain, so a row has only the
 * elements that it is about. */
#include <inttypes.h>

#include "base/text.h"
#include "drivers/libvirt/domain.h"
#include "tests/unit/test.h"

#define UUID_DOMAIN "5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e01"
#define UUID_MDEV   "c60cc60c-c60c-4c60-8c60-c60cc60cc60c"

#define DOMAIN(inside) \
        "<domain type='kvm' id='3'><name>g</name><uuid>" UUID_DOMAIN "</uuid>" inside "</domain>"

static void test_whole(void **state)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
        Error error = ERROR_NULL;
        int r;

        r = domain_parse(
                DOMAIN("<memory unit='KiB'>1048576</memory><currentMemory "
                       "unit='KiB'>1</currentMemory>"
                       "<vcpu placement='static' cpuset='0-3' current='2'>4</vcpu><devices>"
                       "<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>"
                       "<source><address uuid='" UUID_MDEV "'/></source>"
                       "<address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/>"
                       "</hostdev>"
                       "<hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/>"
                       "<source><address domain='0x0000' bus='0x05' slot='0x1f' function='0x1'/>"
                       "</source></hostdev>"
                       "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/></source>"
                       "</hostdev><hostdev mode='capabilities' type='misc'/>"
                       "<hostdev mode='subsystem' type='pci'><source>"
                       "<address domain='0x10000' bus='0' slot='0' "
                       "function='0'/></source></hostdev>"
                       "<interface type='hostdev'><source><address type='pci' domain='0x0000'"
                       " bus='0x06' slot='0x00' function='0x2'/></source></interface>"
                       "<interface type='bridge'><source bridge='br0'/></interface></devices>"),
                &domain, &error);
        if (r < 0)
                fail_msg("%s", error.text);
        assert_string_equal(domain.uuid.text, UUID_DOMAIN);
        assert_string_equal(domain.name, "g");
        assert_int_equal(domain.vcpus, 4);
        assert_int_equal(domain.memory_kib, 1048576);
        assert_int_equal(domain.n_mdevs, 1);
        assert_string_equal(domain.mdevs[0].text, UUID_MDEV);
        assert_int_equal(domain.n_pci_addresses, 2);
        assert_string_equal(domain.pci_addresses[0], "0000:05:1f.1");
        assert_string_equal(domain.pci_addresses[1], "0000:06:00.2");
}

#define DEVICES(inside) DOMAIN("<devices>" inside "</devices>")

static void test_table(void **state)
{
        static const struct {
                const char *text;
                const char *words; /* NULL: valid */
        } cases[] = {
                { DOMAIN(""), NULL },
                { DOMAIN("<devices/>"), NULL },
                { DEVICES("<hostdev type='mdev'/>"), NULL },
                { "", "Not XML" },
                { "<network/>", "Expected <domain>" },
                { "<domain/>", "not a uuid" },
                { "<domain><name>\"><!--</name></domain>", "Not XML" },
                { "<domain><name>n</name><uuid>5d0b6c3e</uuid></domain>", "n: not a uuid" },
                { DOMAIN("<vcpu>-3</vcpu>"), UUID_DOMAIN ": vcpu is not a number" },
                { DOMAIN("<memory unit='?'>3</memory>"), "Unknown unit" },
                { DEVICES("<hostdev type='mdev'><source><address uuid='../..'/></source></hostdev>"),
                  "no uuid: \"../..\"" },
                { DEVICES("<hostdev type='pci'><source><address bus='0'/></source></hostdev>"),
                  "domain is missing" },
                { DEVICES("<interface type='hostdev'><source><address type='usb' bus='1' "
                          "device='2'/></source></interface>"),
                  NULL },
                { DEVICES("<interface type='hostdev'><source><address type='pci'/></source>"
                          "</interface>"),
                  "domain is missing" },
                { DEVICES("<disk type='nvme'><source><address bus='x'/></source></disk>"),
                  "domain is missing" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
                Error error = ERROR_NULL;
                int r = domain_parse(cases[i].text, &domain, &error);

                if (r != (cases[i].words ? -EBADMSG : 0))
                        fail_msg("case %zu: %d (%s)", i, r, error.text);
                if (cases[i].words && !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: \"%s\"", i, error.text);
                assert_int_equal(domain.n_mdevs, 0);
                if (r < 0)
                        assert_null(domain.name);
        }
}

#define ADDRESS(slot) "<address domain='0x0000' bus='0x05' slot='" slot "' function='0x0'/>"
#define NVME(slot)    "<source type='pci' managed='yes' namespace='1'>" ADDRESS(slot) "</source>"

/* Each image that a guest opens can be an NVMe namespace. Two namespaces of one controller are
 * one device. */
static void test_nvme_disks_are_pci_devices(void **state)
{
        static const struct {
                const char *where, *text;
                const char *expected; /* slots of the addresses */
        } rows[] = {
                { "a disk", DEVICES("<disk type='nvme' device='disk'>" NVME("0x01") "</disk>"),
                  "1" },
                { "two namespaces of a controller",
                  DEVICES("<disk type='nvme'>" NVME("0x01") "</disk><disk type='nvme'>" NVME(
                          "0x01") "</disk>"),
                  "1" },
                { "a backing image",
                  DEVICES("<disk type='file'><source file='/a'/><backingStore type='file'>"
                          "<backingStore type='nvme'>" NVME(
                                  "0x02") "<backingStore/>"
                                          "</backingStore></backingStore></disk>"),
                  "2" },
                { "the target of a copy, and the image behind it",
                  DEVICES("<disk type='file'><mirror type='nvme'>" NVME(
                          "0x03") "<backingStore type='nvme'>" NVME("0x04") "</backingStore></mirror>"
                                                                            "</disk>"),
                  "34" },
                { "the data of an image, as libvirt 11 has it",
                  DEVICES("<disk type='file'><source file='/a'><dataStore type='nvme'>" NVME(
                          "0x05") "</dataStore></source><mirror type='file'><source>"
                                  "<dataStore type='nvme'>" NVME(
                                          "0x06") "</dataStore></source></mirror>"
                                                  "</disk>"),
                  "56" },
                { "the variables of the firmware",
                  DOMAIN("<os><nvram type='nvme'>" NVME("0x07") "</nvram></os>"), "7" },
                { "no NVMe disk",
                  DEVICES("<disk type='nvme'/><disk type='block'><source>" ADDRESS(
                          "0x09") "</source></disk>"),
                  "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
                char found[8] = "";
                Error error = ERROR_NULL;

                if (domain_parse(rows[i].text, &domain, &error) < 0)
                        fail_msg("%s: %s", rows[i].where, error.text);
                for (size_t j = 0; j < domain.n_pci_addresses; j++)
                        found[j] = domain.pci_addresses[j][9];
                if (strcmp(found, rows[i].expected) != 0)
                        fail_msg("%s: \"%s\"", rows[i].where, found);
        }
}

#define OTHER_MDEV "d60cc60c-c60c-4c60-8c60-c60cc60cc60c"
#define MDEV(uuid) "<hostdev type='mdev'><source><address uuid='" uuid "'/></source></hostdev>"
#define PCI(slot)  "<hostdev type='pci'><source>" ADDRESS(slot) "</source></hostdev>"

static void parse(const char *text, SnapshotDomain *ret)
{
        Error error = ERROR_NULL;

        if (domain_parse(text, ret, &error) < 0)
                fail_msg("%s", error.text);
}

static void test_persistent_definition_adds_devices_and_cpus(void **state)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 }, config = { 0 }, none = { 0 };
        _cleanup_free_ char *cpus = NULL;

        parse(DOMAIN("<vcpu>2</vcpu><memory>1024</memory><devices>" MDEV(UUID_MDEV)
                             PCI("0x01") "</devices>"),
              &domain);
        parse(DOMAIN("<vcpu cpuset='9'>4</vcpu><memory>2048</memory><cputune>"
                     "<vcpupin vcpu='0' cpuset='6'/><vcpupin vcpu='1' cpuset='7-8'/>"
                     "<emulatorpin cpuset='10-11'/>"
                     "<iothreadpin iothread='1' cpuset='12'/></cputune>"
                     "<devices>" MDEV(UUID_MDEV) MDEV(OTHER_MDEV) PCI("0x01")
                             PCI("0x02") "</devices>"),
              &config);
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(domain_set_config(&domain, &config), 0);
        assert_int_equal(domain.vcpus, 2);
        assert_int_equal(domain.memory_kib, 1024);
        assert_int_equal(domain.n_mdevs, 1);
        assert_int_equal(domain.n_config_mdevs, 1);
        assert_string_equal(domain.config_mdevs[0].text, OTHER_MDEV);
        assert_int_equal(domain.n_pci_addresses, 1);
        assert_int_equal(domain.n_config_pci_addresses, 1);
        assert_string_equal(domain.config_pci_addresses[0], "0000:05:02.0");
        cpus = cpu_set_format(&domain.config_cpus);
        assert_string_equal(cpus, "6,9-12");
        assert_int_equal(domain_set_config(&domain, &none), 0);
        assert_int_equal(domain.n_config_mdevs, 0);
        assert_int_equal(domain.n_config_pci_addresses, 0);
        assert_int_equal(cpu_set_count(&domain.config_cpus), 0);
}

static void parse_placement(const char *text, SnapshotDomain *ret)
{
        Error error = ERROR_NULL;

        if (domain_parse(text, ret, &error) < 0)
                fail_msg("%s: %s", text, error.text);
}

static void assert_set(const CpuSet *set, const char *expected)
{
        _cleanup_free_ char *text = cpu_set_format(set);

        assert_string_equal(text, expected);
}

/* F7's guests with two cells, pins and hugepages, in the form of libvirt 9.0. */
static void test_whole_placement(void **state)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

        parse_placement(
                DOMAIN("<memory unit='KiB'>3145728</memory><memoryBacking><hugepages>"
                       "<page size='1048576' unit='KiB' nodeset='1'/>"
                       "<page size='2' unit='MiB'/></hugepages></memoryBacking>"
                       "<vcpu placement='static' cpuset='0-7,^3'>4</vcpu>"
                       "<cputune><shares>2048</shares><vcpupin vcpu='0' cpuset='4'/>"
                       "<vcpupin vcpu='1' cpuset='6-7'/><emulatorpin cpuset='0'/></cputune>"
                       "<numatune><memory mode='strict' nodeset='0-1'/>"
                       "<memnode cellid='0' mode='strict' nodeset='0'/>"
                       "<memnode cellid='1' mode='strict' nodeset='1'/>"
                       "<memnode cellid='9' mode='strict' nodeset='1'/></numatune>"
                       "<cpu mode='host-model'><topology sockets='1' cores='4' threads='1'/><numa>"
                       "<cell id='0' cpus='0-1' memory='1048576' unit='KiB'/>"
                       "<cell id='1' cpus='2-3' memory='2' unit='GiB' memAccess='shared'/>"
                       "<cell id='2' memory='0'/></numa></cpu>"),
                &domain);
        assert_set(&domain.cpus, "0-2,4-7");
        assert_int_equal(domain.n_pins, 2);
        assert_int_equal(domain.pins[1].vcpu, 1);
        assert_set(&domain.pins[0].cpus, "4");
        assert_set(&domain.pins[1].cpus, "6-7");
        assert_set(&domain.emulator_cpus, "0");
        assert_set(&domain.memory_cells, "0-1");
        assert_int_equal(domain.page_kib, 2048);
        assert_int_equal(domain.n_cells, 3);
        assert_set(&domain.cells[0].vcpus, "0-1");
        assert_set(&domain.cells[0].host_cells, "0");
        assert_int_equal(domain.cells[0].memory_kib, 1048576);
        assert_int_equal(domain.cells[0].page_kib,
                         2048); /* the size of the guest, because the cell has none */
        assert_int_equal(domain.cells[1].memory_kib, 2097152);
        assert_int_equal(domain.cells[1].page_kib, 1048576);
        assert_set(&domain.cells[2].vcpus, "");
}

/* A guest without pins has no places. */
static void test_no_placement(void **state)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

        parse_placement(
                DOMAIN("<vcpu placement='auto'>4</vcpu><cputune/><numatune><memory mode='strict' "
                       "placement='auto'/></numatune><memoryBacking/><cpu><numa/></cpu>"),
                &domain);
        assert_set(&domain.cpus, "");
        assert_set(&domain.emulator_cpus, "");
        assert_set(&domain.memory_cells, "");
        assert_int_equal(domain.n_pins + domain.n_cells + domain.page_kib, 0);
}

static void test_pages(void **state)
{
        static const struct {
                const char *text;
                uint64_t page_kib;
        } cases[] = {
                { "<hugepages/>", 2048 },
                { "<nosharepages/>", 0 },
                { "<hugepages><page size='1' unit='G'/></hugepages>", 1048576 },
                { "<hugepages><page size='65536'/></hugepages>", 65536 },
                { "<hugepages><page size='2048' nodeset='0'/></hugepages>", 2048 },
                { "<hugepages><page size='2048' nodeset='1'/></hugepages>", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
                _cleanup_free_ char *text =
                        text_format(DOMAIN("<memoryBacking>%s</memoryBacking>"), cases[i].text);

                parse_placement(text, &domain);
                if (domain.page_kib != cases[i].page_kib)
                        fail_msg("%s: %" PRIu64, cases[i].text, domain.page_kib);
        }
}

#define CPUTUNE(inside) DOMAIN("<cputune>" inside "</cputune>")
#define NUMA(inside)    DOMAIN("<cpu><numa>" inside "</numa></cpu>")
#define PAGES(inside)   DOMAIN("<memoryBacking><hugepages>" inside "</hugepages></memoryBacking>")

/* Pins of emulator threads and I/O threads, which run no guest CPU. */
static void test_other_threads(void **state)
{
        static const struct {
                const char *text, *emulator, *iothreads;
        } cases[] = {
                { CPUTUNE("<vcpupin vcpu='0' cpuset='2'/>"), "", "" },
                { CPUTUNE("<emulatorpin cpuset='4,6-7,^6'/>"), "4,7", "" },
                { CPUTUNE("<iothreadpin iothread='1' cpuset='5'/>"
                          "<iothreadpin iothread='2' cpuset='8-9'/>"),
                  "", "5,8-9" },
                { CPUTUNE("<emulatorpin cpuset='4'/><iothreadpin iothread='1' cpuset='3-4'/>"), "4",
                  "3-4" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

                parse_placement(cases[i].text, &domain);
                assert_set(&domain.emulator_cpus, cases[i].emulator);
                assert_set(&domain.iothread_cpus, cases[i].iothreads);
        }
}

static void test_hostile_placement(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                { DOMAIN("<vcpu cpuset='3-1'>2</vcpu>"),
                  UUID_DOMAIN ": cpuset is not a set: \"3-1\"" },
                { DOMAIN("<vcpu cpuset='0-65536'>2</vcpu>"), "cpuset is not a set" },
                { CPUTUNE("<vcpupin cpuset='1'/>"), "The number of a guest CPU is missing" },
                { CPUTUNE("<vcpupin vcpu='4096' cpuset='1'/>"), "guest CPU is too large" },
                { CPUTUNE("<vcpupin vcpu='2' cpuset='all'/>"), "Guest CPU 2: cpuset is not a set" },
                { CPUTUNE("<emulatorpin cpuset='all'/>"), "<emulatorpin>: cpuset is not a set" },
                { CPUTUNE("<iothreadpin iothread='1' cpuset='9-1'/>"),
                  "<iothreadpin>: cpuset is not a set" },
                { NUMA("<cell id='0' cpus='0'/>"),
                  "Guest's cell 0: An amount of memory is missing" },
                { NUMA("<cell id='1024' cpus='0'/>"), "id of a guest's cell is too large" },
                { NUMA("<cell memory='0'/><cell cpus='x' memory='1'/>"),
                  "Guest's cell 1: cpus is no" },
                { NUMA("<cell cpus='0' memory='1' unit='furlong'/>"), "Unknown unit" },
                { NUMA("<cell cpus='0' memory='9223372036854775807' unit='TiB'/>"), "too large" },
                { DOMAIN("<numatune><memory nodeset='-'/></numatune>"), "nodeset is not a set" },
                { DOMAIN("<numatune><memnode nodeset='0'/></numatune>"), "<memnode> is missing" },
                { PAGES("<page/>"), "Hugepages: An amount of memory is missing" },
                { PAGES("<page size='0'/>"), "Hugepages of size 0" },
                { PAGES("<page size='2048' nodeset='?'/>"), "Hugepages: nodeset is not a set" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                SnapshotDomain domain = { 0 };
                Error error = ERROR_NULL;
                int r = domain_parse(cases[i].text, &domain, &error);

                if (r != -EBADMSG || !strstr(error.text, cases[i].words))
                        fail_msg("%s: %d (%s)", cases[i].text, r, error.text);
                assert_null(domain.pins);
        }
}

/* A text with one element very many times. */
static void test_limits(void **state)
{
        static const struct {
                const char *start, *item, *end;
                size_t max;
        } cases[] = {
                { "<cputune>", "<vcpupin vcpu='0' cpuset='0'/>", "</cputune>", DOMAIN_VCPUS_MAX },
                { "<cpu><numa>", "<cell memory='1'/>", "</numa></cpu>", DOMAIN_CELLS_MAX },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t more = 0; more < 2; more++) {
                        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };
                        _cleanup_free_ char *text = NULL;
                        Error error = ERROR_NULL;
                        size_t size;
                        FILE *stream = open_memstream(&text, &size);

                        fputs("<domain><uuid>" UUID_DOMAIN "</uuid>", stream);
                        fputs(cases[i].start, stream);
                        for (size_t n = 0; n < cases[i].max + more; n++)
                                fputs(cases[i].item, stream);
                        fprintf(stream, "%s</domain>", cases[i].end);
                        assert_int_equal(fclose(stream), 0);
                        assert_int_equal(domain_parse(text, &domain, &error), more ? -EBADMSG : 0);
                        if (more)
                                assert_non_null(strstr(error.text, "More than"));
                }
}

TEST_MAIN(test_whole, test_table, test_nvme_disks_are_pci_devices,
          test_persistent_definition_adds_devices_and_cpus, test_whole_placement, test_no_placement,
          test_pages, test_other_threads, test_hostile_placement, test_limits)
