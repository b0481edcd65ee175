/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the document of an audit (agent/audit/auditor.h) for "audit", "heal" and "consumers", and
 * derives the exit code. Pure: the document goes in, text comes out.
 *
 * There are two tables: one line for each finding, and one for each consumer with its allocations
 * here and elsewhere. Invariant: only findings that are problems count for the exit code. It is
 * CTL_AUDIT_FINDINGS if a problem was not healed, else CTL_AUDIT_REPAIRED if there was one. Limit:
 * a document of an older agent has no member "problem", so each of its findings counts as a
 * problem. */

#include "ctl/print/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "base/text.h"
#include "ctl/print/json.h"
#include "ctl/print/table.h"

static const CtlColumn finding_columns[] = {
        { "FINDING", CTL_COLUMN_LEFT },
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

/* Checks whether a finding is a problem and not a remark. An older agent writes only problems and
 * no such member. */
static bool is_problem(const json_t *finding)
{
        return !json_is_false(json_object_get(finding, "problem"));
}

static size_t count_problems(const json_t *findings)
{
        const json_t *finding;
        size_t i, n = 0;

        json_array_foreach((json_t *)findings, i, finding)
                n += is_problem(finding);
        return n;
}

int ctl_audit_exit(const json_t *document)
{
        const json_t *findings = json_object_get(document, "findings"), *finding;
        size_t i;

        json_array_foreach((json_t *)findings, i, finding) {
                if (is_problem(finding) && !is_healed(finding))
                        return CTL_AUDIT_FINDINGS;
        }
        return count_problems(findings) > 0 ? CTL_AUDIT_REPAIRED : EXIT_SUCCESS;
}

/* Returns the type of a finding. An agent of release 0.2 has two types under other names. */
static const char *get_type(const json_t *finding)
{
        const char *type = ctl_json_text(finding, "type");

        return strcmp(type, "untold") == 0   ? "missing"
               : strcmp(type, "unheld") == 0 ? "unallocated"
                                             : type;
}

/* Adds the cells of a finding. The third column is the result of the repair, "done" or "failed",
 * else the remedy. */
static void add_finding(CtlTable *table, const json_t *finding, const CtlStyle *style)
{
        const char *evidence = ctl_json_text(finding, "evidence");
        bool failed = has_failed(finding);

        ctl_table_cell(table, CTL_PLAIN, "%s", get_type(finding));
        ctl_table_cell(table, CTL_PLAIN, "%s", ctl_json_text(finding, "consumer"));
        if (is_healed(finding))
                ctl_table_cell(table, CTL_GREEN, "%s", "done");
        else
                ctl_table_cell(table,
                               failed                ? CTL_RED
                               : is_problem(finding) ? CTL_YELLOW
                                                     : CTL_PLAIN,
                               "%s", failed ? "failed" : ctl_json_text(finding, "remedy"));
        ctl_table_cell(table, CTL_PLAIN, "%s%s%s%s%s", ctl_json_text(finding, "text"),
                       evidence[0] ? "; evidence: " : "", evidence, failed ? ": " : "",
                       failed ? ctl_json_text(finding, "error") : "");
}

void ctl_audit_print(const json_t *document, CtlPage *page)
{
        const json_t *findings = json_object_get(document, "findings");
        uint64_t in_flight = ctl_json_u64(document, "in_flight"),
                 holding = ctl_json_u64(document, "holding");

        if (count_problems(findings) == 0)
                fprintf(page->output,
                        "Placement, claims and guests agree: %" PRIu64 " consumer%s.\n", holding,
                        text_plural(holding));
        if (in_flight > 0 && page->style.legend)
                fprintf(page->output, "Skipped %" PRIu64 " recent consumer%s.\n", in_flight,
                        text_plural(in_flight));
        ctl_table_print_items(findings, finding_columns, ARRAY_SIZE(finding_columns), add_finding,
                              page);
}

/* Writes "VCPU=2, MEMORY_MB=512 of host1; VGPU=1 of gpu" from [{"provider", "name", "resources"}].
 * The uuid replaces an unknown name. */
static void write_held(const json_t *held, FILE *stream)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)held, i, item) {
                const char *name = ctl_json_text(item, "name");

                fputs(i > 0 ? "; " : "", stream);
                ctl_json_write_resources(json_object_get(item, "resources"), stream);
                fprintf(stream, " of %s", name[0] ? name : ctl_json_text(item, "provider"));
        }
}

/* Counts the words that equal the word at index. Returns 0 if an earlier word equals it, because
 * the count was printed there. */
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

/* Writes "0000:41:00.0 (2), 0000:81:00.0". A GPU appears once for each of its parts, so equal words
 * are counted. */
static void write_words(const json_t *words, FILE *stream)
{
        const json_t *word;
        size_t i;

        json_array_foreach((json_t *)words, i, word) {
                const char *text = json_string_value(word);
                size_t n = count_equal(words, i);

                if (n == 0)
                        continue;
                fprintf(stream, "%s%s", i > 0 ? ", " : "", text ? text : "");
                if (n > 1)
                        fprintf(stream, " (%zu)", n);
        }
}

static void add_list(CtlTable *table, const json_t *list,
                     void (*write)(const json_t *list, FILE *stream))
{
        ctl_table_take(table, ctl_json_format(list, write), "-");
}

/* Adds the cells of a consumer. An unknown project is shown as "-". */
static void add_consumer(CtlTable *table, const json_t *consumer, const CtlStyle *style)
{
        const char *project = ctl_json_text(consumer, "project");

        ctl_table_text(table, ctl_json_text(consumer, "consumer"));
        ctl_table_text(table, strcmp(project, CONSUMER_UNKNOWN_ID) == 0 ? "" : project);
        ctl_table_text(table, ctl_json_text(consumer, "guest"));
        ctl_table_number(table, ctl_json_u64(consumer, "claim"));
        add_list(table, json_object_get(consumer, "here"), write_held);
        add_list(table, json_object_get(consumer, "elsewhere"), write_held);
        add_list(table, json_object_get(consumer, "devices"), write_words);
        ctl_table_text(table, ctl_json_text(consumer, "cpus"));
}

void ctl_consumers_print(const json_t *document, CtlPage *page)
{
        const json_t *consumers = json_object_get(document, "consumers");

        if (json_array_size(consumers) == 0)
                fputs("No consumer has allocations on this host in Placement.\n", page->output);
        ctl_table_print_items(consumers, consumer_columns, ARRAY_SIZE(consumer_columns),
                              add_consumer, page);
}
