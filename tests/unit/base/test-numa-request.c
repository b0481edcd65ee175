/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "base/text.h"
#include "tests/fixtures/numa-words.h"

static char *run(const char *options, uint64_t vcpus, uint64_t pcpus, uint64_t memory_mb,
                 int *ret_r)
{
        _cleanup_free_ char *given = strdup(options), *layout = NULL;
        NumaWords words = { 0 };
        _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
        _cleanup_(resource_request_done) ResourceRequest request = RESOURCE_REQUEST_INIT,
                                                         copy = RESOURCE_REQUEST_INIT;
        Error error = ERROR_NULL;
        char *save = NULL;

        for (char *word = strtok_r(given, " ", &save); word; word = strtok_r(NULL, " ", &save))
                numa_words_add(&words, word);
        assert_int_equal(resources_set(&resources, "VCPU", vcpus), 0);
        assert_int_equal(resources_set(&resources, "PCPU", pcpus), 0);
        assert_int_equal(resources_set(&resources, "MEMORY_MB", memory_mb), 0);
        *ret_r = numa_request_make(&words.options, &resources, &request.numa, &error);
        if (*ret_r < 0) {
                assert_int_equal(resources_get(&resources, "PCPU"), pcpus);
                assert_int_equal(request.numa.n_cells, 0);
                return strdup(error.text);
        }
        assert_int_equal(resource_request_copy(&copy, &request), 0);
        layout = resource_request_format(&copy);
        assert_non_null(layout);
        return text_format("VCPU=%d PCPU=%d%s", (int)resources_get(&resources, "VCPU"),
                           (int)resources_get(&resources, "PCPU"), layout);
}

/* F7: the options of flavors. */
static const struct {
        const char *options; /* NumaWords */
        uint64_t vcpus, pcpus, memory_mb;
        const char *text; /* the layout; or the error text if r is not 0 */
        int r;
} cases[] = {
        { "", 4, 0, 64, "VCPU=4 PCPU=0", 0 },
        /* Dedicated CPUs have a layout in every case. */
        { "", 0, 2, 64, "VCPU=0 PCPU=2&numa0=0-1:64&dedicated=0-1&threads=prefer", 0 },
        { "nodes=2", 4, 0, 64, "VCPU=4 PCPU=0&numa0=0-1:32&numa1=2-3:32", 0 },
        { "cpu_policy=dedicated thread_policy=isolate", 2, 0, 64,
          "VCPU=0 PCPU=2&numa0=0-1:64&dedicated=0-1&threads=isolate", 0 },
        { "cpu_policy=shared", 0, 2, 0, "VCPU=2 PCPU=0&numa0=0-1:0", 0 },
        { "cpu_policy=mixed dedicated_mask=^0-1", 4, 0, 64,
          "VCPU=2 PCPU=2&numa0=0-3:64&dedicated=2-3&threads=prefer", 0 },
        { "dedicated_mask=0,3", 4, 0, 64, "VCPU=2 PCPU=2&numa0=0-3:64&dedicated=0,3&threads=prefer",
          0 },
        { "nodes=1", 1, 1, 64, "VCPU=1 PCPU=1&numa0=0-1:64&dedicated=1&threads=prefer", 0 },
        { "page_size=2M strategy=pack affinity=required", 1, 0, 64,
          "VCPU=1 PCPU=0&numa0=0:64&pages=2048&affinity=required&strategy=pack", 0 },
        { "thread_policy=prefer affinity=socket", 0, 1, 64,
          "VCPU=0 PCPU=1&numa0=0:64&dedicated=0&threads=prefer&affinity=socket", 0 },
        { "thread_policy=require affinity=preferred", 0, 1, 64,
          "VCPU=0 PCPU=1&numa0=0:64&dedicated=0&threads=require&affinity=preferred", 0 },
        { "affinity=legacy", 1, 0, 64, "VCPU=1 PCPU=0&numa0=0:64", 0 },
        { "page_size=large", 1, 0, 64, "VCPU=1 PCPU=0&numa0=0:64&pages=large", 0 },
        { "cpus=0,3 cpus=1-2 memory_mb=16 memory_mb=48", 4, 0, 64,
          "VCPU=4 PCPU=0&numa0=0,3:16&numa1=1-2:48", 0 },
        { "nodes=2", 3, 0, 64, "3 CPUs cannot be divided evenly into 2 cells. Give numa-cpus",
          -EINVAL },
        { "nodes=2", 2, 0, 63, "63 MiB cannot be divided evenly into 2 cells. Give numa-mem",
          -EINVAL },
        { "nodes=3", 2, 0, 64,
          "3 NUMA cells for 2 CPUs: each cell needs a CPU, and at most 64 cells are allowed",
          -EINVAL },
        { "nodes=18446744073709551615", 2, 0, 64, "at most 64", -EINVAL },
        { "nodes=1", 0, 0, 64, "requires CPUs", -EINVAL },
        { "nodes=1", INT64_MAX, INT64_MAX, 64, "at most 4096 CPUs", -EINVAL },
        { "cpu_policy=some", 2, 0, 64, "dedicated, shared or mixed, not \"some\"", -EINVAL },
        { "cpu_policy=mixed", 2, 0, 64, "requires cpu-dedicated-mask", -EINVAL },
        { "dedicated_mask=0-1", 2, 0, 64, "selects all of the 2 CPUs", -EINVAL },
        { "dedicated_mask=^0-1", 2, 0, 64, "selects none of the 2 CPUs", -EINVAL },
        { "dedicated_mask=2", 2, 0, 64, "does not have; its CPUs are 0 to 1", -EINVAL },
        { "dedicated_mask=x", 2, 0, 64, "cpu-dedicated-mask: Not a list", -EINVAL },
        { "cpu_policy=dedicated dedicated_mask=0", 2, 0, 64, "requires the policy \"mixed\"",
          -EINVAL },
        { "thread_policy=require", 2, 0, 64, "requires dedicated CPUs", -EINVAL },
        { "thread_policy=ht", 0, 2, 64, "require, not \"ht\"", -EINVAL },
        { "affinity=near", 2, 0, 64, "socket, not \"near\"", -EINVAL },
        { "strategy=best", 2, 0, 64, "spread or pack, not \"best\"", -EINVAL },
        { "page_size=huge", 2, 0, 64, "not \"huge\"", -EINVAL },
        { "page_size=0", 2, 0, 64, "not \"0\"", -EINVAL },
        { "page_size=99999999999G", 2, 0, 64, "not \"99999999999G\"", -EINVAL },
        { "page_size=17592186044416G", 2, 0, 64, "not \"17592186044416G\"",
          -EINVAL }, /* 2^64 KiB */
        { "page_size=17592186044417G", 2, 0, 64, "not \"17592186044417G\"", -EINVAL },
        { "page_size=1G", 2, 0, 64, "not a whole number of pages of 1048576 KiB", -EINVAL },
        { "cpus=0 cpus=0", 2, 0, 64, "CPU 0, which another cell also has", -EINVAL },
        { "cpus=0 cpus=2", 2, 0, 64, "CPU 2, which the guest does not have", -EINVAL },
        { "cpus=0 cpus=", 2, 0, 64, "cell 1 has no CPU", -EINVAL },
        { "cpus=0 cpus=1", 3, 0, 64, "gives a cell to 2 of 3 CPUs", -EINVAL },
        { "nodes=2 cpus=0-1", 2, 0, 64, "for all 2 cells", -EINVAL },
        { "nodes=2 memory_mb=60 memory_mb=8", 2, 0, 64,
          "the cells have 68 MiB, but the guest has 64", -EINVAL },
        { "nodes=2 memory_mb=64 memory_mb=0", 2, 0, 64, "numa-mem: cell 1 has no memory", -EINVAL },
        { "nodes=2 memory_mb=18446744073709551615 memory_mb=2", 2, 0, 64, "the guest has 64",
          -EINVAL },
};

static void test_words(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int r;
                _cleanup_free_ char *text = run(cases[i].options, cases[i].vcpus, cases[i].pcpus,
                                                cases[i].memory_mb, &r);

                if (r != cases[i].r ||
                    (r == 0 ? strcmp(text, cases[i].text) != 0 : !strstr(text, cases[i].text)))
                        fail_msg("case %zu: %d \"%s\"\nexpected \"%s\"", i, r, text, cases[i].text);
        }
}

TEST_MAIN(test_words)
