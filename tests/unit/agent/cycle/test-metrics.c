/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The metrics file, as text. */

#include "agent/cycle/metrics.h"
#include "base/log.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#include <sys/stat.h>

static const TrackerStatus pending = { .sync_state = SYNC_PENDING };
static const ReporterStatistics no_statistics;
static const CycleFacts no_facts = { .status = &pending,
                                     .statistics = &no_statistics,
                                     .claim_error = &ERROR_NULL };
static const Verdict no_verdict;

static char *print(const CycleFacts *facts, const ClaimList *claims)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "metrics");

        assert_int_equal(metrics_save(facts, &no_verdict, claims, path, NULL), 0);
        return scratch_read(folder, "metrics");
}

/* Asserts that the text has each of the lines, which are given without the prefix of the names. */
static void assert_lines(const char *text, const char *const *lines, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                char line[300];

                snprintf(line, sizeof(line), "\ncompute_agent_%s\n", lines[i]);
                if (!strstr(text, line))
                        fail_msg("%s is not in %s", line, text);
        }
}

static void test_before_the_first_poll(void **state)
{
        static const char *const lines[] = { "state{state=\"ok\"} 1",
                                             "state{state=\"degraded\"} 0",
                                             "sync_state{state=\"pending\"} 1",
                                             "sync_state{state=\"synced\"} 0",
                                             "last_sync_timestamp_seconds 0.000000",
                                             "hypervisor_up 0",
                                             "start_info{reason=\"unknown\"} 1",
                                             "providers 0" };
        _cleanup_free_ char *text = print(&no_facts, NULL);

        assert_lines(text, lines, ARRAY_SIZE(lines));
}

static void test_a_tree(void **state)
{
        static const char *const lines[] = {
                "placement_retries_total 2",
                "placement_responses_total{method=\"PUT\",route=\"/resource_providers/{uuid}/traits\",status=\"200\"} 1",
                "inventory_capacity_units{provider=\"a\\\"b\\\\c\",resource_class=\"VCPU\"} 28",
                "inventory_units{provider=\"a\\\"b\\\\c\",resource_class=\"VCPU\"} 8",
                "inventory_reserved_units{provider=\"a\\\"b\\\\c\",resource_class=\"VCPU\"} 1",
                "inventory_used_units{provider=\"a\\\"b\\\\c\",resource_class=\"VCPU\"} 0",
                "last_poll_timestamp_seconds 1700000000.000123",
                "placement_requests_total 12",
                "cycles_total 7",
                "hypervisor_up 1",
                "claims_up 1",
                "config_info{digest=\"0100000000000000\"} 1",
                "start_info{reason=\"crash-reboot\"} 1",
        };
        const Digest digest = { .size = 1, .hash = { 1 } };
        const TrackerStatus status = { .sync_state = SYNC_SYNCED,
                                       .last_poll_usec = UINT64_C(1700000000000123),
                                       .n_cycles = 7 };
        RequestCounts counts = {
                .items = { { .method = "PUT",
                             .route = "/resource_providers/{uuid}/traits",
                             .status = 200,
                             .n = 1 } },
                .n_items = 1,
        };
        const ReporterStatistics statistics = {
                .n_requests = 12, .n_writes = 3, .n_conflicts = 1, .n_retries = 2, .counts = &counts
        };
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        const Inventory inventory = { .total = 8,
                                      .reserved = 1,
                                      .min_unit = 1,
                                      .max_unit = 8,
                                      .step_size = 1,
                                      .allocation_ratio = 4.0 };
        CycleFacts facts = no_facts;
        _cleanup_free_ char *text = NULL;
        Uuid uuid;

        assert_int_equal(uuid_from_text("11111111-2222-4333-8444-555555555555", &uuid), 0);
        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(tree, &uuid, "a\"b\\c", NULL, NULL, NULL), 0);
        assert_int_equal(provider_set_inventory(tree->providers[0], "VCPU", &inventory), 0);
        facts.status = &status;
        facts.statistics = &statistics;
        facts.config_digest = &digest;
        facts.start_reason = START_CRASH_REBOOT;
        facts.tree = tree;
        text = print(&facts, NULL);
        assert_lines(text, lines, ARRAY_SIZE(lines));
}

static void test_pending_writes_and_audit(void **state)
{
        static const char *const lines[] = { "placement_pending_writes{action=\"write\"} 1",
                                             "placement_pending_writes{action=\"remove\"} 2",
                                             "placement_pending_writes{action=\"move\"} 3",
                                             "placement_pending_writes{action=\"move\"} 3",
                                             "claims_unallocated 5",
                                             "claims_unheld 5",
                                             "audit_findings 4",
                                             "last_audit_timestamp_seconds 1700000000.000001",
                                             "reshape_failed 1" };
        const TrackerStatus status = { .reshape_error = { .code = -EIO } };
        const AuditorState audit = { .ended_usec = UINT64_C(1700000000000001), .n_open = 4 };
        CycleFacts facts = no_facts;
        _cleanup_free_ char *text = NULL;

        facts.status = &status;
        facts.audit = &audit;
        facts.pending_writes =
                (PendingWrites){ .n_writes = 1, .n_removals = 2, .n_moves = 3, .n_unallocated = 5 };
        text = print(&facts, NULL);
        assert_lines(text, lines, ARRAY_SIZE(lines));
}

static void test_devices(void **state)
{
        LedgerDevice expected[] = {
                { .name = (char *)"h_\"1\"", .resource_class = (char *)"VGPU" },
                { .name = (char *)"h_2", .resource_class = (char *)"CUSTOM_A", .missing = true },
        };
        const DeviceLedger ledger = { .devices = expected, .n_devices = ARRAY_SIZE(expected) };
        /* Two mdevs of one card, and all of another card. */
        const char *const names[] = { "pci_1", "pci_2", "pci_1" };
        _cleanup_(claim_freep) Claim *claim = NULL;
        ClaimList claims = { .claims = &claim, .n_claims = 1 };
        CycleFacts facts = no_facts;
        _cleanup_free_ char *text = NULL;

        assert_int_equal(claim_new(&claim), 0);
        claim->id = 9;
        assert_int_equal(uuid_from_text("11111111-2222-4333-8444-555555555555", &claim->consumer),
                         0);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                assert_int_equal(claim_add_device(claim,
                                                  &(const ClaimDevice){
                                                          .suffix = (char *)"",
                                                          .name = (char *)names[i],
                                                          .address = (char *)"",
                                                          .mdev_type = (char *)"",
                                                  }),
                                 0);
        facts.devices = &ledger;
        text = print(&facts, &claims);
        assert_non_null(strstr(text, "\ncompute_agent_device_up{provider=\"h_\\\"1\\\"\","
                                     "resource_class=\"VGPU\"} 1\n"));
        assert_non_null(strstr(text, "\ncompute_agent_device_up{provider=\"h_2\","
                                     "resource_class=\"CUSTOM_A\"} 0\n"));
        assert_non_null(strstr(text, "# TYPE compute_agent_device_claimed_units gauge\n"
                                     "compute_agent_device_claimed_units{device=\"pci_1\",consumer="
                                     "\"11111111-2222-4333-8444-555555555555\",claim=\"9\"} 2\n"
                                     "compute_agent_device_claimed_units{device=\"pci_2\",consumer="
                                     "\"11111111-2222-4333-8444-555555555555\",claim=\"9\"} 1\n"));
}

static void test_the_file(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "a.prom");
        _cleanup_free_ char *nowhere = scratch_path(folder, "none/a.prom");
        Error error = ERROR_NULL;
        struct stat st;

        assert_int_equal(metrics_save(&no_facts, &no_verdict, NULL, path, NULL), 0);
        assert_int_equal(metrics_save(&no_facts, &no_verdict, NULL, path, NULL), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0644);
        assert_true(st.st_size > 500);
        assert_int_equal(metrics_save(&no_facts, &no_verdict, NULL, nowhere, &error), -ENOENT);
        assert_non_null(strstr(error.text, "Cannot write "));
}

/* A publication that leaves the state stale is no evidence that Placement is equal to the host. */
static void test_last_sync(void **state)
{
        TrackerStatus status = { .reshape_needed = true };

        log_set_level(LOG_EMERG);
        tracker_status_note_synced(&status);
        assert_int_equal(status.last_sync_usec, 0);
        status.reshape_needed = false;
        tracker_status_note_synced(&status);
        assert_int_not_equal(status.last_sync_usec, 0);
}

TEST_MAIN(test_before_the_first_poll, test_a_tree, test_pending_writes_and_audit, test_devices,
          test_the_file, test_last_sync)
