/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/claim-build.h"
#include "tests/fixtures/audit.h"

#define HOST                                                                          \
        "host DISK_GB=10 CUSTOM_LICENCE=4; cell0<host VCPU=8 PCPU=8 MEMORY_MB=4096; " \
        "cell1<host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3; host_b<host VGPU=2"

static void test_table(void **state)
{
        static const struct {
                const char *name;
                const char *claimed;
                const char *held;     /* in Placement; "!": the agent wrote it */
                const char *device;   /* provider of one that the guest has */
                bool cell;            /* the guest says where it is */
                const char *expected; /* NULL: the claim stays as it is */
        } rows[] = {
                { "the same", "VCPU=2@cell0", "VCPU=2@cell0", NULL, false, NULL },
                { "Placement's cell, which the guest does not bind", "VCPU=2@cell0", "VCPU=2@cell1",
                  NULL, false, "VCPU=2@cell1" },
                { "in parts", "VCPU=3@cell0", "VCPU=2@cell1 VCPU=1@cell0", NULL, false,
                  "VCPU=1@cell0 VCPU=2@cell1" },
                { "the guest's cell, which it binds", "VCPU=2@cell0", "VCPU=2@cell1", NULL, true,
                  NULL },
                { "issue 31: another writer's larger amount", "VCPU=2@cell0", "VCPU=3@cell1", NULL,
                  false, "VCPU=3@cell1" },
                { "a larger amount that an ended claim left", "VCPU=2@cell0", "!VCPU=3@cell1", NULL,
                  false, NULL },
                { "a smaller amount", "VCPU=2@cell0", "VCPU=1@cell1", NULL, false, NULL },
                { "a larger amount of a guest that is bound", "VCPU=2@cell0", "VCPU=3@cell0", NULL,
                  true, "VCPU=3@cell0" },
                { "the same, in another cell", "VCPU=2@cell0", "VCPU=3@cell1", NULL, true,
                  "VCPU=2@cell0 VCPU=1@cell1" },
                { "issue 31: isolated emulator threads", "PCPU=2@cell0 MEMORY_MB=512@cell0",
                  "PCPU=3@cell0 MEMORY_MB=512@cell0", NULL, true,
                  "MEMORY_MB=512@cell0 PCPU=3@cell0" },
                { "CPUs of another class, before a reshape", "PCPU=2@cell0", "VCPU=4@cell0", NULL,
                  true, NULL },
                { "more than a claim can count", "VCPU=2@cell0", "VCPU=1@cell0 VCPU=3@host_a", NULL,
                  false, NULL },
                { "the guest's GPU", "VGPU=1@host_a", "VGPU=1@host_b", "host_a", false, NULL },
                { "a provider that is not here", "VCPU=2@cell0", "VCPU=2@elsewhere", NULL, false,
                  NULL },
                { "a provider that has no such class", "VCPU=2@cell0", "VCPU=2@host_a", NULL, false,
                  NULL },
                { "what no guest tells", "VCPU=2@cell0",
                  "VCPU=2@cell0 DISK_GB=5@host CUSTOM_LICENCE=1@host", NULL, false,
                  "CUSTOM_LICENCE=1@host DISK_GB=5@host VCPU=2@cell0" },
                { "but no device that it has not", "VCPU=2@cell0", "VCPU=2@cell0 VGPU=1@host_a",
                  NULL, false, NULL },
                { "a class of which the guest has nothing", "VCPU=2@cell0",
                  "VCPU=2@cell0 PCPU=1@cell0", NULL, false, "PCPU=1@cell0 VCPU=2@cell0" },
                { "nothing of another root", "VCPU=2@cell0", "VCPU=2@cell0 DISK_GB=5@store", NULL,
                  false, NULL },
                { "nothing of a sharing provider", "VCPU=2@cell0", "VCPU=2@cell0 DISK_GB=5@pool",
                  NULL, false, NULL },
                { "the part of this host beside that", "VCPU=2@cell0",
                  "VCPU=2@cell0 DISK_GB=5@pool DISK_GB=1@host", NULL, false,
                  "DISK_GB=1@host VCPU=2@cell0" },
        };
        _cleanup_(provider_tree_freep) ProviderTree *tree =
                make_tree(HOST "; store DISK_GB=9; pool DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE");
        const Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(allocations_freep) Allocations *consumers = NULL;
                _cleanup_(claim_freep) Claim *claim = audit_claim('g', rows[i].claimed);
                _cleanup_(consumer_freep) Consumer *share = NULL;
                bool is_ours = rows[i].held[0] == '!';
                char text[256] = "";
                int r;

                assert_int_equal(allocations_new(&consumers), 0);
                if (rows[i].device) {
                        const ClaimDevice device = { .provider = make_uuid(rows[i].device),
                                                     .suffix = (char *)"",
                                                     .name = (char *)"a",
                                                     .address = (char *)"",
                                                     .mdev_type = (char *)"t",
                                                     .mdev = make_mdev('1') };

                        assert_int_equal(claim_add_device(claim, &device), 0);
                }
                if (rows[i].cell) {
                        assert_int_equal(layout_reserve(&claim->layout, 1, 0), 0);
                        (void)layout_add_cell(&claim->layout);
                }
                r = claim_build_share(
                        claim, audit_consumer(consumers, 'g', "INSTANCE", rows[i].held + is_ours),
                        tree, &root, is_ours, &share);
                if (share)
                        audit_format(share, tree, text);
                if (r != (rows[i].expected ? 0 : 1) ||
                    (rows[i].expected && strcmp(text, rows[i].expected) != 0))
                        fail_msg("%s: %d %s", rows[i].name, r, text);
        }
}

TEST_MAIN(test_table)
