/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <inttypes.h>

#include "base/text.h"
#include "drivers/libvirt/domain-placement.h"
#include "drivers/libvirt/domain.h"
#include "tests/unit/test.h"

#define UUID_DOMAIN "5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e01"

#define DOMAIN(inside) "<domain><name>g</name><uuid>" UUID_DOMAIN "</uuid>" inside "</domain>"

static void parse(const char *text, SnapshotDomain *ret)
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

/* As libvirt 9.0 prints it: F7's guests, with two cells, pins and hugepages. */
static void test_whole(void **state)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

        parse(DOMAIN("<memory unit='KiB'>3145728</memory><memoryBacking><hugepages>"
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
        assert_int_equal(domain.cells[0].page_kib, 2048); /* what has none of its own */
        assert_int_equal(domain.cells[1].memory_kib, 2097152);
        assert_int_equal(domain.cells[1].page_kib, 1048576);
        assert_set(&domain.cells[2].vcpus, "");
}

/* A guest that was told nothing holds nothing in particular. */
static void test_nothing(void **state)
{
        _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

        parse(DOMAIN("<vcpu placement='auto'>4</vcpu><cputune/><numatune><memory mode='strict' "
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

                parse(text, &domain);
                if (domain.page_kib != cases[i].page_kib)
                        fail_msg("%s: %" PRIu64, cases[i].text, domain.page_kib);
        }
}

#define CPUTUNE(inside) DOMAIN("<cputune>" inside "</cputune>")
#define NUMA(inside)    DOMAIN("<cpu><numa>" inside "</numa></cpu>")
#define PAGES(inside)   DOMAIN("<memoryBacking><hugepages>" inside "</hugepages></memoryBacking>")

/* Threads of the emulator and of disks, which run no guest CPU. */
static void test_other_threads(void **state)
{
        static const struct {
                const char *text, *cpus;
        } cases[] = {
                { CPUTUNE("<vcpupin vcpu='0' cpuset='2'/>"), "" },
                { CPUTUNE("<emulatorpin cpuset='4,6-7,^6'/>"), "4,7" },
                { CPUTUNE("<iothreadpin iothread='1' cpuset='5'/>"
                          "<iothreadpin iothread='2' cpuset='8-9'/>"),
                  "5,8-9" },
                { CPUTUNE("<emulatorpin cpuset='4'/><iothreadpin iothread='1' cpuset='3-4'/>"),
                  "3-4" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_domain_done) SnapshotDomain domain = { 0 };

                parse(cases[i].text, &domain);
                assert_set(&domain.emulator_cpus, cases[i].cpus);
        }
}

static void test_hostile(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                { DOMAIN("<vcpu cpuset='3-1'>2</vcpu>"),
                  UUID_DOMAIN ": cpuset is no set: \"3-1\"" },
                { DOMAIN("<vcpu cpuset='0-65536'>2</vcpu>"), "cpuset is no set" },
                { CPUTUNE("<vcpupin cpuset='1'/>"), "The number of a guest CPU is missing" },
                { CPUTUNE("<vcpupin vcpu='4096' cpuset='1'/>"), "guest CPU is too large" },
                { CPUTUNE("<vcpupin vcpu='2' cpuset='all'/>"), "Guest CPU 2: cpuset is no set" },
                { CPUTUNE("<emulatorpin cpuset='all'/>"), "<emulatorpin>: cpuset is no set" },
                { CPUTUNE("<iothreadpin iothread='1' cpuset='9-1'/>"),
                  "<iothreadpin>: cpuset is no set" },
                { NUMA("<cell id='0' cpus='0'/>"),
                  "Guest's cell 0: An amount of memory is missing" },
                { NUMA("<cell id='1024' cpus='0'/>"), "id of a guest's cell is too large" },
                { NUMA("<cell memory='0'/><cell cpus='x' memory='1'/>"),
                  "Guest's cell 1: cpus is no" },
                { NUMA("<cell cpus='0' memory='1' unit='furlong'/>"), "Unknown unit" },
                { NUMA("<cell cpus='0' memory='9223372036854775807' unit='TiB'/>"), "too large" },
                { DOMAIN("<numatune><memory nodeset='-'/></numatune>"), "nodeset is no set" },
                { DOMAIN("<numatune><memnode nodeset='0'/></numatune>"), "<memnode> is missing" },
                { PAGES("<page/>"), "Hugepages: An amount of memory is missing" },
                { PAGES("<page size='0'/>"), "Hugepages of size 0" },
                { PAGES("<page size='2048' nodeset='?'/>"), "Hugepages: nodeset is no set" },
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

/* A text that repeats an element without end. */
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

TEST_MAIN(test_whole, test_nothing, test_pages, test_other_threads, test_hostile, test_limits)
