/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the plan of CPUs and the amounts that follow from it, for each configuration (facts
 * C3) and host. */
#include "drivers/tree/cpu-plan.h"
#include "drivers/tree/host-amounts.h"
#include "tests/fixtures/host.h"

#define CPUS(online, present) "'online_cpus': '" online "', 'present_cpus': '" present "'"

static void expect_set(const CpuSet *set, const char *expected, const char *what)
{
        _cleanup_free_ char *text = cpu_set_format(set);

        if (strcmp(text, expected) != 0)
                fail_msg("%s: %s, expected %s", what, text, expected);
}

/* C3: shared and dedicated CPUs for each configuration */
static void test_sets_c3(void **state)
{
        static const struct {
                const char *shared, *dedicated, *pin;
                bool power;
                const char *expected_shared, *expected_dedicated;
                const char *words; /* text of a problem */
                const char *shared_offline, *dedicated_offline;
        } cases[] = {
                { NULL, NULL, NULL, false, "0-7", "", NULL, "", "" },
                { "", "", "", false, "0-7", "", NULL, "", "" },
                { "0-3", NULL, NULL, false, "0-3", "", NULL, "", "" },
                { NULL, "4-7,^6", NULL, false, "", "4-5,7", NULL, "", "" },
                { " 0 , 2-3,", "4-7", NULL, false, "0,2-3", "4-7", NULL, "", "" },
                { NULL, NULL, "2-5", false, "2-5", "", NULL, "", "" },
                /* the older option counts for VCPU; the newer one is then for emulator threads */
                { "0-1", NULL, "2-5", false, "2-5", "", NULL, "", "" },
                /* power management has taken CPUs offline, but they exist */
                { "0-3", "4-9", NULL, true, "0-3", "4-9", NULL, "", "" },
                /* an offline CPU is left out alone */
                { "6-8", NULL, NULL, false, "6-7", "",
                  "[compute] cpu_shared_set names CPU 8, which is offline", "8", "" },
                { "0-3", "7-9", NULL, false, "0-3", "7",
                  "[compute] cpu_dedicated_set names CPU 8-9, which is offline", "", "8-9" },
                { NULL, "9-12", NULL, true, "", "9", "CPU 10-12, but this host has only CPU 0-9",
                  "", "" },
                { NULL, NULL, "0-8", false, "0-7", "", "vcpu_pin_set names CPU 8", "8", "" },
                { "0-3,8", "7,9", NULL, false, "0-3", "7", "cpu_shared_set names CPU 8", "8", "9" },
                /* also if its set is then empty: the other set counts */
                { "0-3", "8-9", NULL, false, "0-3", "",
                  "cpu_dedicated_set names only offline CPUs (8-9), so no PCPU is offered", "",
                  "8-9" },
                { "0-3", "8-9", NULL, false, "0-3", "", "cpu_power_management", "", "8-9" },
                { NULL, "8-9", NULL, false, "", "", "only offline CPUs", "", "8-9" },
                { "8", "4-7", NULL, true, "", "4-7", "so no VCPU is offered", "8", "" },
                { NULL, NULL, "8", false, "", "", "vcpu_pin_set names only offline CPUs", "8", "" },
                { "0-3", "9-12", NULL, false, "0-3", "", "only offline CPUs (9)", "", "9" },
        };
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(CPUS("0-7", "0-9"));

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };
                HostConfig config = config_make(NULL, 0);
                Error error = ERROR_NULL, problem = ERROR_NULL;

                config.cpu_shared_set = cases[i].shared;
                config.cpu_dedicated_set = cases[i].dedicated;
                config.vcpu_pin_set = cases[i].pin;
                config.cpu_power_management = cases[i].power;
                if (cpu_plan_make(&config, host, &plan, &problem, &error) < 0)
                        fail_msg("case %zu: %s", i, error.text);
                expect_set(&plan.shared, cases[i].expected_shared, "shared");
                expect_set(&plan.dedicated, cases[i].expected_dedicated, "dedicated");
                expect_set(&plan.shared_offline, cases[i].shared_offline, "shared and offline");
                expect_set(&plan.dedicated_offline, cases[i].dedicated_offline,
                           "dedicated and offline");
                if (cases[i].words ? !strstr(problem.text, cases[i].words) : problem.code != 0)
                        fail_msg("case %zu: %s", i, problem.text);
                assert_int_equal(cpu_plan_check(&config, NULL), 0);
        }
}

/* C3: every error names its option and the necessary change */
static void test_refusals_c3(void **state)
{
        static const struct {
                const char *shared, *dedicated, *pin;
                uint64_t reserved;
                bool power, needs_host;
                const char *words, *advice;
        } cases[] = {
                { "0-3", "3-5", NULL, 0, false, false,
                  "cpu_dedicated_set = 3-5 have CPUs in common",
                  "Name each CPU in only one of them" },
                { "0-3", NULL, NULL, 1, false, false, "reserved_host_cpus = 1", "Set it to 0" },
                { NULL, "0-3", NULL, 2, false, false, "combined with [compute] cpu_dedicated_set",
                  "Set it to 0" },
                { NULL, "0-3", "4-7", 0, false, false, "vcpu_pin_set", "Remove vcpu_pin_set" },
                { "0-1,^0-1", NULL, NULL, 0, false, false, "[compute] cpu_shared_set",
                  "Name CPUs" },
                { NULL, "^3", NULL, 0, false, false, "[compute] cpu_dedicated_set", "Name CPUs" },
                { NULL, NULL, ",", 0, false, false, "vcpu_pin_set", "Name CPUs" },
                { "0-", NULL, NULL, 0, false, false, "[compute] cpu_shared_set", "0-3,^2,8" },
                { NULL, "a", NULL, 0, false, false, "[compute] cpu_dedicated_set", "0-3,^2,8" },
                { NULL, NULL, "5-4", 0, false, false, "vcpu_pin_set", "0-3,^2,8" },
                { "x", NULL, "4", 0, false, false, "[compute] cpu_shared_set", "0-3,^2,8" },
                { NULL, "10-12", NULL, 0, true, true, "CPU 10-12, but this host has only CPU 0-9",
                  "Remove it" },
                { NULL, "10-12", NULL, 0, false, true, "cpu_dedicated_set names CPU 10-12",
                  "Remove it" },
                { "999", NULL, NULL, 0, true, true, "cpu_shared_set names CPU 999", "Remove it" },
                { NULL, NULL, "10", 0, false, true, "vcpu_pin_set names CPU 10", "Remove it" },
        };
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(CPUS("0-7", "0-9"));

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };
                HostConfig config = config_make(NULL, 0);
                Error error = ERROR_NULL;

                config.cpu_shared_set = cases[i].shared;
                config.cpu_dedicated_set = cases[i].dedicated;
                config.vcpu_pin_set = cases[i].pin;
                config.reserved_host_cpus = cases[i].reserved;
                config.cpu_power_management = cases[i].power;
                assert_int_equal(cpu_plan_make(&config, host, &plan, NULL, &error), -EINVAL);
                if (!strstr(error.text, cases[i].words) || !strstr(error.text, cases[i].advice))
                        fail_msg("case %zu: %s", i, error.text);
                assert_int_equal(cpu_plan_check(&config, NULL), cases[i].needs_host ? 0 : -EINVAL);
        }
}

/* C3: options that Nova allows together */
static void test_reserved_cpus_beside_pin_set_c3(void **state)
{
        HostConfig config = config_make(NULL, 0);

        config.vcpu_pin_set = "0-3";
        config.reserved_host_cpus = 1;
        assert_int_equal(cpu_plan_check(&config, NULL), 0);
}

/* A class whose CPUs are all offline stays, without capacity */
static void test_cpu_amounts_are_withheld_while_cpus_are_offline(void **state)
{
        static const struct {
                const char *shared, *dedicated, *pin;
                uint64_t vcpu, vcpu_reserved, pcpu, pcpu_reserved;
        } cases[] = {
                { "0-3", "4-9", NULL, 4, 0, 4, 0 },  { "0-3", "8-9", NULL, 4, 0, 1, 1 },
                { "8", "4-7", NULL, 1, 1, 4, 0 },    { NULL, NULL, "8-9", 1, 1, 0, 0 },
                { NULL, NULL, "0,8-9", 1, 2, 0, 0 },
        };
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(CPUS("0-7", "0-9"));

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };
                HostConfig config = config_make(NULL, 0);
                HostAmounts amounts;

                config.cpu_shared_set = cases[i].shared;
                config.cpu_dedicated_set = cases[i].dedicated;
                config.vcpu_pin_set = cases[i].pin;
                config.reserved_host_cpus = cases[i].pin ? 2 : 0;
                assert_int_equal(cpu_plan_make(&config, host, &plan, NULL, NULL), 0);
                host_amounts_make(&config, host, &plan, &amounts);
                assert_int_equal(amounts.vcpu.total, cases[i].vcpu);
                assert_int_equal(amounts.vcpu.reserved, cases[i].vcpu_reserved);
                assert_int_equal(amounts.pcpu.total, cases[i].pcpu);
                assert_int_equal(amounts.pcpu.reserved, cases[i].pcpu_reserved);
        }
}

#define GUEST(number, state, more)                                                    \
        "{'uuid': 'bbbbbbbb-0000-4000-8000-00000000000" number "', 'name': 'g" number \
        "', 'state': '" state "', 'memory_kib': 1024" more "}"
#define PINNED(vcpu, cpus) "{'vcpu': " vcpu ", 'cpus': '" cpus "'}"

/* Dedicated CPUs on which a running guest without pins can run */
static void test_floating_guests_withhold_dedicated_cpus(void **state)
{
        static const struct {
                const char *guests, *floated;
                const char *words;
        } cases[] = {
                { "", "", NULL },
                /* the cpuset of the domain counts */
                { GUEST("1", "running", ", 'vcpus': 2, 'cpus': '0-5'"), "4-5",
                  "The guest g1 is not pinned and can run on dedicated CPU 4-5. This CPU is not offered" },
                { GUEST("1", "running", ", 'vcpus': 2, 'cpus': '0-3'"), "", NULL },
                { GUEST("1", "paused", ", 'vcpus': 2"), "4-7", "g1" },
                { GUEST("1", "shutoff", ", 'vcpus': 2"), "", NULL },
                /* pins to several CPUs float, a pin to one does not */
                { GUEST("1", "running",
                        ", 'vcpus': 2, 'pins': [" PINNED("0", "3-4") "," PINNED("1", "3-4") "]"),
                  "4", "g1" },
                { GUEST("1", "running",
                        ", 'vcpus': 2, 'pins': [" PINNED("0", "4") "," PINNED("1", "5") "]"),
                  "", NULL },
                { GUEST("1", "running",
                        ", 'vcpus': 2, 'cpus': '6', 'pins': [" PINNED("0", "4") "]"),
                  "6", "g1" },
                /* the claim of another guest counts a CPU that is pinned for it */
                { GUEST("1", "running", ", 'vcpus': 1, 'cpus': '0-6'") "," GUEST(
                          "2", "shutoff", ", 'vcpus': 1, 'pins': [" PINNED("0", "4") "]"),
                  "5-6", "g1" },
                /* a guest that floats only over pinned CPUs is not named */
                { GUEST("1", "running", ", 'vcpus': 1, 'cpus': '4'") "," GUEST(
                          "2", "running",
                          ", 'vcpus': 1, 'cpus': '5'") "," GUEST("3", "running",
                                                                 ", 'vcpus': 1, 'pins': [" PINNED(
                                                                         "0", "4") "]"),
                  "5", "The guest g2" },
                { GUEST("1", "running", ", 'vcpus': 1, 'cpus': '5'") "," GUEST("2", "running",
                                                                               ", 'vcpus': 1"),
                  "4-7", "2 guests (g1, …)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *text =
                        text_format(CPUS("0-7", "0-7") ", 'domains': [%s]", cases[i].guests);
                _cleanup_(snapshot_unrefp) Snapshot *host = host_new(text);
                _cleanup_(cpu_plan_done) CpuPlan plan = { 0 };
                HostConfig config = config_make(NULL, 0);
                Error problem = ERROR_NULL;
                HostAmounts amounts;

                config.cpu_shared_set = "0-3";
                config.cpu_dedicated_set = "4-7";
                assert_int_equal(cpu_plan_make(&config, host, &plan, NULL, NULL), 0);
                assert_int_equal(cpu_guests_find(host, &plan, &problem), 0);
                expect_set(&plan.floated, cases[i].floated, "floated");
                if (cases[i].words ? !strstr(problem.text, cases[i].words) : problem.code != 0)
                        fail_msg("case %zu: %s", i, problem.text);
                host_amounts_make(&config, host, &plan, &amounts);
                assert_int_equal(amounts.pcpu.total, 4);
                assert_int_equal(amounts.pcpu.reserved, cpu_set_count(&plan.floated));
        }
}

/* A4: memory in files */
static void test_memory_amounts_a4(void **state)
{
        static const struct {
                uint64_t files, reserved;
                double ratio, present;
                uint64_t total;
                double expected;
        } cases[] = {
                { 0, 512, 0, 0, 8192, 1.5 },
                { 0, 512, 2.0, 0, 8192, 2.0 },
                { 0, 0, 0, 3.0, 8192, 3.0 },
                { 100000, 0, 0, 0, 100000, 1.0 },
                { 4096, 512, 1.0, 9.0, 4096, 1.0 },
                /* a ratio that another writer set in Placement does not count there */
                { 4096, 0, 0, 9.0, 4096, 1.0 },
        };
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new("'memory_kib': 8388608");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Provider *root;
                _cleanup_(provider_tree_freep) _unused_ ProviderTree *tree = tree_new(&root);
                HostConfig config = config_make(NULL, 0);
                const CpuPlan none = { 0 };
                HostAmounts amounts;
                Inventory record;

                config.file_backed_memory = cases[i].files;
                config.reserved_host_memory_mb = cases[i].reserved;
                config.ram_allocation_ratio = cases[i].ratio;
                config.initial_ram_allocation_ratio = 1.5;
                if (cases[i].present > 0) {
                        record = INVENTORY_DEFAULT(1);
                        record.allocation_ratio = cases[i].present;
                        assert_int_equal(provider_set_inventory(root, "MEMORY_MB", &record), 0);
                }
                host_amounts_make(&config, host, &none, &amounts);
                record = class_amount_record(&amounts.memory, root, NULL);
                assert_int_equal(record.total, cases[i].total);
                assert_int_equal(record.reserved, cases[i].reserved);
                assert_true(record.allocation_ratio == cases[i].expected);
        }
}

TEST_MAIN(test_sets_c3, test_refusals_c3, test_reserved_cpus_beside_pin_set_c3,
          test_cpu_amounts_are_withheld_while_cpus_are_offline,
          test_floating_guests_withhold_dedicated_cpus, test_memory_amounts_a4)
