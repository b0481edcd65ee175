/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/table.h"

#include <locale.h>

#include "ctl/print/json.h"
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

static void print(const json_t *unused, CtlPage *page)
{
        CtlTable *table = ctl_table_new(page, columns, ARRAY_SIZE(columns));

        fill(table);
        ctl_table_print(table);
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

/* Prints the table with the columns that a document names. */
static void print_columns(const json_t *document, CtlPage *page)
{
        page->columns = ctl_json_text(document, "columns");
        print(NULL, page);
}

static void test_columns(void **state)
{
        static const PrintRow rows[] = {
                { "{'columns': 'n,NAME'}", .text = "   N  NAME\n"
                                                   "   7  host1_pci_0000_41_00_0\n"
                                                   "1000  ev\\x1bil\n" },
                { "{'columns': 'TEXT'}", .text = "TEXT\none two three four\n" },
                { "{'columns': 'N,N'}", .text = "   N\n   7\n1000\n" },
        };
        CtlPage page = { .columns = "N,SIZE", .output = stdout };

        check_rows(print_columns, rows, ARRAY_SIZE(rows));
        assert_null(ctl_table_new(&page, columns, ARRAY_SIZE(columns)));
        assert_false(page.failed);
        assert_string_equal(page.usage.text,
                            "Unknown column \"SIZE\". The columns are NAME,N,TEXT");
}

static void print_empty(const json_t *unused, CtlPage *page)
{
        ctl_table_print(ctl_table_new(page, columns, ARRAY_SIZE(columns)));
}

static void test_empty(void **state)
{
        static const PrintRow row = { "{}", .text = "" };

        check_rows(print_empty, &row, 1);
        assert_null(ctl_table_free(NULL));
}

/* Without memory no table is printed, and the page records that. */
static void test_without_a_table(void **state)
{
        CtlPage page = { .failed = false };

        ctl_json_print(NULL, CTL_JSON_SHORT, &page);
        assert_true(page.failed);
        fill(NULL);
        ctl_table_take(NULL, strdup("x"), "");
        ctl_table_skip(NULL, 1);
        ctl_table_print(NULL);
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_styles, test_columns, test_empty,
                test_without_a_table)
