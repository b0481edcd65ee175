/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the result of the fit for hosts and guests with a layout, for a test that asks Nova the
 * same:
 *
 *   numa-probe < QUESTIONS
 *
 * Each line of the input is a question in JSON, and each line of the output is its answer:
 * {"cells": [ids of host cells, by the guest's cells], "words": ""}. If the guest does not fit,
 * "cells" is null and the words are the reason. The amounts of a question are MiB and KiB, as in
 * claims/claim/host-facts.h:
 *
 *   {"cells": [{"memory_mb", "cpus": [[id, core, "shared"|"dedicated"|""]], "pages": [[size_kib,
 *   total, reserved]]}], "used": [[cell, page_kib, memory_mb, n_shared]], "held": "2-3",
 *   "cpu_ratio", "ram_ratio", "vcpus", "memory_mb", "nodes", "cpu_policy", "mask", "threads",
 *   "page_size", "strategy"} */

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "claims/fit/numa.h"

#define CELLS_MAX 8
#define CPUS_MAX  64
#define PAGES_MAX 4
#define MUCH      1000000 /* amount of the inventories: no limit */

typedef struct Question {
        HostCell cells[CELLS_MAX];
        HostCpu cpus[CELLS_MAX][CPUS_MAX];
        HostPages pages[CELLS_MAX][PAGES_MAX];
        HostFacts facts;
        HostView *view;
        ResourceRequest request;
} Question;

static void question_done(Question *question)
{
        host_view_free(question->view);
        resource_request_done(&question->request);
}

static int read_cell(const json_t *json, size_t index, Question *ret)
{
        HostCell *cell = &ret->cells[index];
        json_t *cpus, *pages;
        json_int_t memory_mb;

        if (json_unpack((json_t *)json, "{s:I, s:o, s:o}", "memory_mb", &memory_mb, "cpus", &cpus,
                        "pages", &pages) < 0 ||
            json_array_size(cpus) > CPUS_MAX || json_array_size(pages) > PAGES_MAX)
                return -EBADMSG;
        *cell = (HostCell){ .id = (unsigned)index,
                            .socket = 0,
                            .memory_mb = (uint64_t)memory_mb,
                            .cpus = ret->cpus[index],
                            .pages = ret->pages[index] };
        for (; cell->n_cpus < json_array_size(cpus); cell->n_cpus++) {
                const char *kind;
                int id, core;

                if (json_unpack(json_array_get(cpus, cell->n_cpus), "[iis]", &id, &core, &kind) < 0)
                        return -EBADMSG;
                cell->cpus[cell->n_cpus] = (HostCpu){ .id = (unsigned)id,
                                                      .core = (unsigned)core,
                                                      .shared = strcmp(kind, "shared") == 0,
                                                      .dedicated = strcmp(kind, "dedicated") == 0 };
        }
        for (; cell->n_pages < json_array_size(pages); cell->n_pages++) {
                json_int_t size_kib, total, reserved;

                if (json_unpack(json_array_get(pages, cell->n_pages), "[III]", &size_kib, &total,
                                &reserved) < 0)
                        return -EBADMSG;
                cell->pages[cell->n_pages] = (HostPages){ .size_kib = (uint64_t)size_kib,
                                                          .total = (uint64_t)total,
                                                          .reserved = (uint64_t)reserved };
        }
        return 0;
}

static int read_used(const json_t *used, HostView *view)
{
        for (size_t i = 0; i < json_array_size(used); i++) {
                json_int_t cell, page_kib, memory_mb, n_shared;

                if (json_unpack(json_array_get(used, i), "[IIII]", &cell, &page_kib, &memory_mb,
                                &n_shared) < 0)
                        return -EBADMSG;
                if (array_grow(&view->cell_usages, sizeof(HostCellUsage), view->n_cell_usages,
                               &view->n_cell_usages_allocated) < 0)
                        return -ENOMEM;
                view->cell_usages[view->n_cell_usages++] =
                        (HostCellUsage){ .host_cell = (unsigned)cell,
                                         .page_kib = (uint64_t)page_kib,
                                         .memory_mb = (uint64_t)memory_mb,
                                         .n_shared = (uint64_t)n_shared };
        }
        return 0;
}

/* Makes a host in which only the cells limit the guest. */
static int make_view(const json_t *json, Question *ret)
{
        Inventory vcpu = INVENTORY_DEFAULT(MUCH), pcpu = vcpu, memory = vcpu;
        Uuid uuid = uuid_make_random();
        const char *held;
        ProviderTree *tree;
        Provider *root;
        json_t *used;

        if (json_unpack((json_t *)json, "{s:F, s:F, s:s, s:o}", "cpu_ratio", &vcpu.allocation_ratio,
                        "ram_ratio", &memory.allocation_ratio, "held", &held, "used", &used) < 0)
                return -EBADMSG;
        if (provider_tree_new(&tree) < 0)
                return -ENOMEM;
        if (provider_tree_add(tree, &uuid, "host", NULL, &root, NULL) < 0 ||
            provider_set_inventory(root, "VCPU", &vcpu) < 0 ||
            provider_set_inventory(root, "PCPU", &pcpu) < 0 ||
            provider_set_inventory(root, "MEMORY_MB", &memory) < 0) {
                provider_tree_free(tree);
                return -ENOMEM;
        }
        if (host_view_new(&ret->view, tree) < 0)
                return -ENOMEM;
        return cpu_set_parse(held, &ret->view->held, NULL) < 0 ? -EBADMSG
                                                               : read_used(used, ret->view);
}

/* Returns the text of a member; NULL if it is null. */
static const char *text_of(const json_t *json, const char *key)
{
        return json_string_value(json_object_get(json, key));
}

static int read_guest(const json_t *json, Question *ret, Error *reterr)
{
        NumaOptions options = { .cpu_policy = text_of(json, "cpu_policy"),
                                .dedicated_mask = text_of(json, "mask"),
                                .thread_policy = text_of(json, "threads"),
                                .page_size = text_of(json, "page_size"),
                                .strategy = text_of(json, "strategy") };
        json_int_t vcpus, memory_mb, nodes;
        RequestGroup *group;

        if (json_unpack((json_t *)json, "{s:I, s:I, s:I}", "vcpus", &vcpus, "memory_mb", &memory_mb,
                        "nodes", &nodes) < 0)
                return -EBADMSG;
        options.nodes = (uint64_t)nodes;
        if (resource_request_group(&ret->request, "", &group, reterr) < 0 ||
            resources_set(&group->resources, "VCPU", (uint64_t)vcpus) < 0 ||
            resources_set(&group->resources, "MEMORY_MB", (uint64_t)memory_mb) < 0)
                return -ENOMEM;
        return numa_request_make(&options, &group->resources, &ret->request.numa, reterr);
}

static int read_question(const json_t *json, Question *ret, Error *reterr)
{
        json_t *cells = json_object_get(json, "cells");
        int r;

        if (json_array_size(cells) > CELLS_MAX)
                return -EBADMSG;
        ret->facts = (HostFacts){ .cells = ret->cells, .small_page_kib = 4 };
        for (; ret->facts.n_cells < json_array_size(cells); ret->facts.n_cells++)
                if ((r = read_cell(json_array_get(cells, ret->facts.n_cells), ret->facts.n_cells,
                                   ret)) < 0)
                        return r;
        r = make_view(json, ret);
        return r < 0 ? r : read_guest(json, ret, reterr);
}

static json_t *make_answer(const Question *question)
{
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        FitEffort effort = fit_effort_begin(0);
        Error error = ERROR_NULL;
        json_t *cells;

        if (fit_request_numa(question->view, &question->facts, "host", &question->request, NULL,
                             &effort, &fit, &error) != CLAIM_DONE)
                return json_pack("{s:n, s:s}", "cells", "words", error.text);
        cells = json_array();
        for (size_t i = 0; i < fit.layout.n_cells; i++)
                json_array_append_new(cells, json_integer(fit.layout.cells[i].host_cell));
        return json_pack("{s:o, s:s}", "cells", cells, "words", "");
}

static int answer(const char *line)
{
        _cleanup_(question_done) Question question = { .request = RESOURCE_REQUEST_INIT };
        json_t *json = json_loads(line, 0, NULL);
        Error error = ERROR_NULL;
        int r = read_question(json, &question, &error);
        json_t *said = r == 0 ? make_answer(&question) : NULL;

        if (said) {
                json_dumpf(said, stdout, JSON_COMPACT);
                putchar('\n');
        } else
                fprintf(stderr, "%s: %s\n", error.text[0] ? error.text : "not understood", line);
        json_decref(said);
        json_decref(json);
        return said ? 0 : -EBADMSG;
}

int main(void)
{
        char *line = NULL;
        size_t size = 0;
        int r = 0;

        while (r == 0 && getline(&line, &size, stdin) > 0)
                r = answer(line);
        free(line);
        return r < 0;
}
