/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <time.h>

#include "agent/tree/device-watch.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/shims/fail-alloc.h"

#define HOLD_USEC (200 * USEC_PER_MSEC)
#define GPU       "\"devices\": [{\"name\": \"pci_0000_41_00_0\", \"address\": \"0000:41:00.0\"}]"

/* Updates the ledger. reserved: the reserved amount of a GPU that is there, as of Placement's last
 * tree. known: that tree is Placement's now. Returns the new reserved amount; -1: no provider. */
static int apply_to(DeviceWatch *watch, Claims *claims, const char *name, bool there,
                    uint64_t reserved, bool known)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(there ? GPU : "\"devices\": []");
        Provider *root, *provider;
        _cleanup_(provider_tree_freep) ProviderTree *tree = tree_new(&root);
        Uuid uuid = uuid_make_child(&root->uuid, "gpu");
        const RetainedTrees trees = {
                .base = tree, .snapshot = host, .root = &root->uuid, .known = known
        };
        Inventory record = INVENTORY_DEFAULT(4);

        record.reserved = reserved;
        if (there) {
                assert_int_equal(provider_tree_add(tree, &uuid, name, &root->uuid, &provider, NULL),
                                 0);
                assert_int_equal(provider_set_inventory(provider, "VGPU", &record), 0);
        }
        assert_int_equal(device_watch_apply(watch, claims, &trees, NULL, tree, NULL), 0);
        provider = provider_tree_find_name(tree, name);
        return provider ? (int)provider_find_inventory(provider, "VGPU")->reserved : -1;
}

static void apply(DeviceWatch *watch, bool there)
{
        (void)apply_to(watch, NULL, "cn1_pci_0000_41_00_0", there, 0, true);
}

/* A hold can end during the cycle that looked at it. The watch reports it once as due, not never
 * and not forever. */
static void test_due_since_it_was_looked_at(void **state)
{
        static const struct timespec longer = { .tv_nsec = 2 * HOLD_USEC * NSEC_PER_USEC };
        _cleanup_(device_watch_freep) DeviceWatch *watch = NULL;
        const HostConfig config = { 0 };
        uint64_t due;

        assert_int_equal(
                device_watch_new(&watch, "/nonexistent", &config, NULL, HOLD_USEC, true, NULL), 0);
        apply(watch, true);
        assert_int_equal(device_watch_due_in_usec(watch), UINT64_MAX);
        apply(watch, false);
        apply(watch, true);
        due = device_watch_due_in_usec(watch);
        assert_true(due <= HOLD_USEC);
        nanosleep(&longer, NULL);
        assert_int_equal(device_watch_due_in_usec(watch), 0);
        assert_int_equal(device_watch_due_in_usec(watch), UINT64_MAX);
}

/* A write got no answer, so the mirror is not Placement's tree until the next read. The ledger
 * follows the host, but does not forget what it must restore in Placement. */
static void test_an_outage(void **state)
{
        static const char name[] = "cn1_0000:41:00.0";
        static const struct timespec longer = { .tv_nsec = 2 * HOLD_USEC * NSEC_PER_USEC };
        _cleanup_(device_watch_freep) DeviceWatch *watch = NULL;
        HostConfig config = { 0 };

        assert_int_equal(pci_specs_add(&config.pci_specs, "{\"address\": \"0000:41:00.0\"}", NULL),
                         0);
        assert_int_equal(
                device_watch_new(&watch, "/nonexistent", &config, NULL, HOLD_USEC, true, NULL), 0);
        /* Before the first read, each tree is a preview. */
        assert_int_equal(apply_to(watch, NULL, name, true, 1, false), 1);
        assert_int_equal(watch->ledger.n_devices, 0);
        assert_int_equal(apply_to(watch, NULL, name, true, 1, true), 1);
        for (int i = 0; i < 2; i++) {
                /* Only the first loss is written, and only this write is lost. */
                assert_int_equal(apply_to(watch, NULL, name, false, 0, i == 0), 4);
                assert_true(watch->ledger.devices[0].missing);
                assert_int_equal(watch->n_missing, 1);
                assert_int_equal(apply_to(watch, NULL, name, true, 1, false), 4);
                assert_true(watch->ledger.devices[0].held);
        }
        nanosleep(&longer, NULL);
        nanosleep(&longer, NULL);
        assert_int_equal(apply_to(watch, NULL, name, true, 1, false), 1);
        assert_false(watch->ledger.devices[0].held);
        /* The read shows that Placement has made the lost write. */
        assert_int_equal(apply_to(watch, NULL, name, true, 4, true), 1);
        assert_int_equal(apply_to(watch, NULL, name, true, 1, true), 1);
        assert_false(watch->ledger.devices[0].withheld);
        pci_specs_done(&config.pci_specs);
}

/* An unreadable file is not an absent one: the next write would replace it. */
static void test_an_unreadable_file_is_an_error(void **state)
{
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_(device_watch_freep) DeviceWatch *watch = NULL;
        const HostConfig config = { 0 };
        Error error = ERROR_NULL;

        scratch_mkdir(folder, "devices.json");
        assert_int_equal(device_watch_new(&watch, folder, &config, NULL, HOLD_USEC, false, &error),
                         -EISDIR);
        assert_non_null(strstr(error.text, "devices.json"));
}

/* A size that memory was too short to pass on is still stored. */
static void test_a_new_size_is_stored_after_a_lack_of_memory(void **state)
{
        _cleanup_(snapshot_unrefp) Snapshot *host = host_new(
                "'devices': [{'name': 'pci_0000_c1_01_0', 'address': '0000:c1:01.0', "
                "'vendor_id': 4318, 'product_id': 9913, 'physical_function': '0000:c1:00.0', "
                "'is_vgpu_function': true, 'mdev_types': [{'id': 'nvidia-1436', "
                "'name': 'NVIDIA L40S-48Q', 'available_instances': 1, 'created_instances': 0}]}]");
        const HostConfig config = { 0 };
        bool has_failed = true;

        for (unsigned at = 0; has_failed; at++) {
                _cleanup_(device_watch_freep) DeviceWatch *watch = NULL;
                const DeviceFacts *facts;

                assert_int_equal(device_watch_new(&watch, "/nonexistent", &config, NULL, HOLD_USEC,
                                                  true, NULL),
                                 0);
                fail_alloc_at(at);
                facts = device_watch_note_facts(watch, NULL, NULL, NULL, host);
                has_failed = fail_alloc_done();
                assert_int_equal(!facts, has_failed);
                if (has_failed)
                        assert_non_null(device_watch_note_facts(watch, NULL, NULL, NULL, host));
                assert_true(watch->ledger.changed);
        }
}

/* Placement refuses the write of a claim whose device is reserved for its cleaning. */
static void test_no_device_of_a_pending_write_is_withheld(void **state)
{
        static const struct {
                ClaimWriteState write_state;
                bool withheld;
        } rows[] = {
                { CLAIM_WRITE_UNANSWERED, false }, { CLAIM_WRITE_UNSENT, false },
                { CLAIM_WRITE_SENT, false },       { CLAIM_WRITE_WRITTEN, true },
                { CLAIM_WRITE_NONE, true },
        };
        const HostConfig config = { 0 };
        HostPci pci = { .name = "pci_0000_41_00_0",
                        .address = "0000:41:00.0",
                        .provider = "0000:41:00.0",
                        .resource_class = "CUSTOM_NVME",
                        .cell = HOST_CELL_NONE,
                        .must_be_cleaned = true };
        const HostFacts facts = { .taken_usec = USEC_PER_SEC, .pci = &pci, .n_pci = 1 };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(device_watch_freep) DeviceWatch *watch = NULL;
                const ClaimPlacing placing = { .write_state = rows[i].write_state };
                void *made = NULL;
                Fixture *fixture;

                assert_int_equal(fixture_setup(&made), 0);
                fixture = made;
                fixture_create(fixture, "host VCPU=8; host_0000:41:00.0<host CUSTOM_NVME=1");
                claims_set_facts(fixture->claims, &facts);
                assert_int_equal(
                        fixture_claim_placed(fixture, "vm1", "CUSTOM_NVME=1", &placing, NULL),
                        CLAIM_DONE);
                assert_int_equal(
                        device_watch_new(&watch, "/nonexistent", &config, NULL, 0, true, NULL), 0);
                (void)apply_to(watch, fixture->claims, "cn1_pci_0000_41_00_0", true, 0, true);
                assert_int_equal(watch->ledger.n_devices, 1);
                if (watch->ledger.devices[0].withheld != rows[i].withheld)
                        fail_msg("write state \"%s\"",
                                 claim_write_state_to_text(rows[i].write_state));
                assert_int_equal(fixture_teardown(&made), 0);
        }
}

TEST_MAIN(test_due_since_it_was_looked_at, test_an_outage, test_an_unreadable_file_is_an_error,
          test_a_new_size_is_stored_after_a_lack_of_memory,
          test_no_device_of_a_pending_write_is_withheld)
