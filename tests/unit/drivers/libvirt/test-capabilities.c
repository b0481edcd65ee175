/* SPDX-License-Identifier: LGPL-2.1-or-later */

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

        assert_int_equal(snapshot->cells[1].id, 5); /* sparse, memory only */
        assert_int_equal(snapshot->cells[1].n_cpus, 0);
        assert_int_equal(snapshot->cells[2].memory_kib, 0); /* and a CPU of another cell */
        assert_int_equal(snapshot->cells[2].cpus[0].id, 2);
}

static void test_table(void **state)
{
        static const struct {
                const char *text;
                const char *words; /* NULL: fine, and no cells */
        } cases[] = {
                { HOST("<cells num='0'/>"), NULL },
                { HOST(""), NULL },
                { "<capabilities/>", NULL },
                { "<capabilities><host/></capabilities>", NULL },
                { "<node/>", "Expected <capabilities>" },
                { "", "Not XML" },
                { "\n<capabilities><host>", "Not XML (line 2)" },
                { HOST("<cells><cell/></cells>"), "The id of a cell is missing" },
                { HOST("<cells><cell id='-1'/></cells>"), "no number" },
                { HOST("<cells><cell id='4294967296'/></cells>"), "too large" },
                { HOST("<cells><cell id='1'><memory>much</memory></cell></cells>"),
                  "Cell 1: An amount of memory is no number: \"much\"" },
                { HOST("<cells><cell id='1'><cpus><cpu id='65536'/></cpus></cell></cells>"),
                  "Cell 1: The id of a CPU is too large" },
                { HOST("<cells><cell id='1'><cpus><cpu id='1' siblings='0-x'/></cpus></cell>"
                       "</cells>"),
                  "Cell 1: CPU 1: bad siblings" },
                { HOST("<cells><cell id='1'><cpus><cpu id='1' socket_id='a'/></cpus></cell></cells>"),
                  "socket_id is no number" },
                { HOST("<cells><cell id='1'><pages size='4'/></cell></cells>"),
                  "A number of pages is missing" },
                { HOST("<cells><cell id='1'><pages unit='MiB' size='4'>1</pages></cell></cells>"),
                  "Unknown unit of pages" },
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

TEST_MAIN(test_uneven_host, test_table, test_missing_texts)
