/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ctl/print/json.h"
#include "agent/ctl/print/table.h"
#include "base/allocation.h"

static const CtlColumn finding_columns[] = {
        { "WHAT", CTL_COLUMN_LEFT },
        { "CONSUMER", CTL_COLUMN_LEFT },
        { "REMEDY", CTL_COLUMN_LEFT },
        { "DETAILS", CTL_COLUMN_WRAP },
};
static const CtlColumn consumer_columns[] = {
        { "CONSUMER", CTL_COLUMN_LEFT }, { "PROJECT", CTL_COLUMN_CUT },
        { "GUEST", CTL_COLUMN_LEFT },    { "CLAIM", CTL_COLUMN_RIGHT },
        { "HERE", CTL_COLUMN_WRAP },     { "ELSEWHERE", CTL_COLUMN_WRAP },
        { "DEVICES", CTL_COLUMN_WRAP },  { "CPUS", CTL_COLUMN_LEFT },
};

static bool is_healed(const json_t *finding)
{
        return strcmp(ctl_json_text(finding, "outcome"), "healed") == 0;
}

static bool has_failed(const json_t *finding)
{
        return strcmp(ctl_json_text(finding, "outcome"), "failed") == 0;
}

int ctl_audit_exit(const json_t *document)
{
        const json_t *findings = json_object_get(document, "findings"), *finding;
        size_t i;

        json_array_foreach((json_t *)findings, i, finding) {
                if (!is_healed(finding))
                        return CTL_AUDIT_FINDINGS;
        }
        return json_array_size(findings) > 0 ? CTL_AUDIT_REPAIRED : EXIT_SUCCESS;
}

static int add_finding(CtlTable *table, const json_t *finding, const CtlStyle *style)
{
        bool failed = has_failed(finding);

        ctl_table_line(table);
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(finding, "type"));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(finding, "consumer"));
        if (is_healed(finding))
                ctl_table_cell(table, CTL_GREEN, "%s", "done");
        else
                ctl_table_cell(table, failed ? CTL_RED : CTL_YELLOW, "%s",
                               failed ? "failed" : ctl_json_text(finding, "remedy"));
        ctl_table_cell(table, CTL_PLAIN, "%s%s%s", ctl_json_text(finding, "text"),
                       failed ? ": " : "", failed ? ctl_json_text(finding, "error") : "");
        return 0;
}

int ctl_audit_print(const json_t *document, const CtlStyle *style, FILE *output)
{
        const json_t *findings = json_object_get(document, "findings");
        uint64_t in_flight = ctl_json_u64(document, "in_flight");

        if (json_array_size(findings) == 0)
                fprintf(output, "Placement, claims and guests agree: %" PRIu64 " consumer(s).\n",
                        ctl_json_u64(document, "holding"));
        if (in_flight > 0 && style->legend)
                fprintf(output, "Skipped %" PRIu64 " recent consumer%s.\n", in_flight,
                        in_flight == 1 ? "" : "s");
        return ctl_table_print_items(findings, finding_columns, ARRAY_SIZE(finding_columns),
                                     add_finding, style, output);
}

/* "VCPU=2, MEMORY_MB=512 of host1; VGPU=1 of gpu" of [{"provider", "name", "resources"}]. */
static int print_held(const json_t *held, FILE *output)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)held, i, item) {
                _cleanup_free_ char *text =
                        ctl_json_format_resources(json_object_get(item, "resources"));
                const char *name = ctl_json_text(item, "name");

                if (!text)
                        return -ENOMEM;
                fprintf(output, "%s%s of %s", i > 0 ? "; " : "", text,
                        name[0] ? name : ctl_json_text(item, "provider"));
        }
        return 0;
}

/* How many of them are equal to this one; 0: that was shown with an earlier one. */
static size_t count_equal(const json_t *words, size_t index)
{
        const json_t *word;
        size_t i, n = 0;

        json_array_foreach((json_t *)words, i, word) {
                if (!json_equal(word, json_array_get(words, index)))
                        continue;
                if (i < index)
                        return 0;
                n++;
        }
        return n;
}

/* "0000:41:00.0 (2), 0000:81:00.0": a GPU gives several of its parts. */
static int print_words(const json_t *words, FILE *output)
{
        const json_t *word;
        size_t i;

        json_array_foreach((json_t *)words, i, word) {
                const char *text = json_string_value(word);
                size_t n = count_equal(words, i);

                if (n == 0)
                        continue;
                fprintf(output, "%s%s", i > 0 ? ", " : "", text ? text : "");
                if (n > 1)
                        fprintf(output, " (%zu)", n);
        }
        return 0;
}

static int add_list(CtlTable *table, const json_t *list,
                    int (*print)(const json_t *list, FILE *output))
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *memory = open_memstream(&text, &size);
        int r;

        if (!memory)
                return -ENOMEM;
        r = print(list, memory);
        if (fclose(memory) != 0 || r < 0)
                return -ENOMEM;
        ctl_table_text(table, text);
        return 0;
}

static int add_consumer(CtlTable *table, const json_t *consumer, const CtlStyle *style)
{
        const char *project = ctl_json_text(consumer, "project");

        ctl_table_line(table);
        ctl_table_text(table, ctl_json_text(consumer, "consumer"));
        ctl_table_text(table, strcmp(project, CONSUMER_UNKNOWN_ID) == 0 ? "" : project);
        ctl_table_text(table, ctl_json_text(consumer, "guest"));
        ctl_table_number(table, ctl_json_u64(consumer, "claim"));
        if (add_list(table, json_object_get(consumer, "here"), print_held) < 0 ||
            add_list(table, json_object_get(consumer, "elsewhere"), print_held) < 0 ||
            add_list(table, json_object_get(consumer, "devices"), print_words) < 0)
                return -ENOMEM;
        ctl_table_text(table, ctl_json_text(consumer, "cpus"));
        return 0;
}

int ctl_consumers_print(const json_t *document, const CtlStyle *style, FILE *output)
{
        const json_t *consumers = json_object_get(document, "consumers");

        if (json_array_size(consumers) == 0)
                fputs("No consumer holds anything of this host in Placement.\n", output);
        return ctl_table_print_items(consumers, consumer_columns, ARRAY_SIZE(consumer_columns),
                                     add_consumer, style, output);
}
