/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/table.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

static const CtlColumn columns[] = {
        { "NAME", CTL_COLUMN_CUT },
        { "N", CTL_COLUMN_RIGHT },
        { "TEXT", CTL_COLUMN_WRAP },
};

static void fill(CtlTable *table)
{
        ctl_table_line(table);
        ctl_table_cell(table, CTL_RED, "%s", "host1_pci_0000_41_00_0");
        ctl_table_cell(table, CTL_PLAIN, "%d", 7);
        ctl_table_cell(table, CTL_PLAIN, "%s", "one two three four");
        ctl_table_line(table);
        ctl_table_cell(table, CTL_PLAIN, "%s", "ev\033il");
        ctl_table_cell(table, CTL_PLAIN, "%d", 1000);
        ctl_table_cell(table, CTL_PLAIN, "%s", "");
}

static int print(const json_t *unused, const CtlStyle *style, FILE *output)
{
        _cleanup_(ctl_table_freep) CtlTable *table = NULL;

        assert_int_equal(ctl_table_new(&table, style, columns, ARRAY_SIZE(columns)), 0);
        fill(table);
        assert_int_equal(ctl_table_count(table), 2);
        return ctl_table_print(table, output);
}

static void test_styles(void **state)
{
        static const PrintRow rows[] = {
                { "{}", .text = "NAME                       N  TEXT\n"
                                "host1_pci_0000_41_00_0     7  one two three four\n"
                                "ev\\x1bil                1000\n" },
                { "{}", .has = { "host1_pci_0000_41_00_0     7" }, .lacks = { "NAME" },
                  .no_legend = true },
                { "{}",
                  .text = "NAME            N TEXT\n"
                          "hos…_41_00_0    7 one two\n"
                          "                  three four\n"
                          "ev\\x1bil     1000\n",
                  .width = 30 },
                /* --all cuts nothing. */
                { "{}", .has = { "host1_pci_0000_41_00_0", "one two three four" }, .width = 30,
                  .all = true },
                { "{}", .has = { "\033[0;1;31mhost1_pci", "ev\\x1bil" }, .colours = true },
        };

        check_rows(print, rows, ARRAY_SIZE(rows));
}

static void test_empty(void **state)
{
        _cleanup_(ctl_table_freep) CtlTable *table = NULL;
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        capture_begin(&capture);
        assert_int_equal(ctl_table_new(&table, &style, columns, ARRAY_SIZE(columns)), 0);
        assert_int_equal(ctl_table_print(table, capture.stream), 0);
        assert_string_equal(capture_end(&capture), "");
        assert_null(ctl_table_free(NULL));
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_styles, test_empty)
