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

static void print(CtlStyle style, Capture *capture)
{
        _cleanup_(ctl_table_freep) CtlTable *table = NULL;

        capture_begin(capture);
        assert_int_equal(ctl_table_new(&table, &style, columns, ARRAY_SIZE(columns)), 0);
        fill(table);
        assert_int_equal(ctl_table_count(table), 2);
        assert_int_equal(ctl_table_print(table, capture->stream), 0);
        capture_end(capture);
}

static void test_pipe(void **state)
{
        _cleanup_(capture_done) Capture capture;

        print(STYLE_PIPE, &capture);
        assert_string_equal(capture.text, "NAME                       N  TEXT\n"
                                          "host1_pci_0000_41_00_0     7  one two three four\n"
                                          "ev\\x1bil                1000\n");
}

static void test_no_legend(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.legend = false;
        print(style, &capture);
        assert_lacks(capture.text, "NAME");
        assert_contains(capture.text, "host1_pci_0000_41_00_0     7");
}

static void test_narrow_terminal(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.width = 30;
        print(style, &capture);
        assert_string_equal(capture.text, "NAME            N TEXT\n"
                                          "hos…_41_00_0    7 one two\n"
                                          "                  three four\n"
                                          "ev\\x1bil     1000\n");
        /* --all cuts nothing. */
        capture_done(&capture);
        style.all = true;
        print(style, &capture);
        assert_contains(capture.text, "host1_pci_0000_41_00_0");
        assert_contains(capture.text, "one two three four");
}

static void test_colours(void **state)
{
        _cleanup_(capture_done) Capture capture;
        CtlStyle style = STYLE_PIPE;

        style.colours = true;
        print(style, &capture);
        assert_contains(capture.text, "\033[0;1;31mhost1_pci");
        assert_contains(capture.text, "ev\\x1bil");
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

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_pipe, test_no_legend,
                test_narrow_terminal, test_colours, test_empty)
