/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lets every allocation of memory fail in every operation. The result is -ENOMEM, nothing is
 * written or leaked, and the operation can be repeated. */

#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/fixtures/numa.h"
#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

#define HOST "host VCPU=8 MEMORY_MB=64 +T @A; host_a<host VGPU=4 +G; host_b<host VGPU=4 +G"

static ProviderTree *other_host;
static ClaimRequest request;
static FactsFixture facts;

static int do_open(Fixture *fixture)
{
        int r = fixture_open(fixture);

        return MIN(r, 0);
}

static int do_set_host(Fixture *fixture)
{
        return claims_set_providers(fixture->claims, other_host, &fixture->error);
}

static int do_claim(Fixture *fixture)
{
        Claim *claim = NULL;
        int r = claims_claim(fixture->claims, &request, NULL, &claim, NULL, &fixture->error);

        claim_free(claim);
        return r;
}

static int do_confirm(Fixture *fixture)
{
        return claims_confirm(fixture->claims, 1, &fixture->error);
}

static int do_get(Fixture *fixture)
{
        Claim *claim = NULL;
        int r = claims_get(fixture->claims, 1, &claim, &fixture->error);

        claim_free(claim);
        return r;
}

static int do_list(Fixture *fixture)
{
        ClaimList list = { 0 };
        int r = claims_list(fixture->claims, CLAIMS_ALL, NULL, &list, &fixture->error);

        claim_list_done(&list);
        return r;
}

static int do_host(Fixture *fixture)
{
        const HostView *view;

        return claims_host(fixture->claims, &view, &fixture->error);
}

static int do_release(Fixture *fixture)
{
        return claims_release(fixture->claims, 1, "done", &fixture->error);
}

static int do_adopt(Fixture *fixture)
{
        Claim *claim = NULL;
        int r = claims_adopt(fixture->claims, &facts.domains[0], &claim, &fixture->error);

        claim_free(claim);
        return r;
}

static int do_check_again(Fixture *fixture)
{
        return claims_check_again(fixture->claims, 1, NULL, &(bool){ 0 }, &fixture->error);
}

static int do_list_device(Fixture *fixture)
{
        ClaimList list = { 0 };
        int r = claims_list(fixture->claims, CLAIMS_OF_DEVICE, "a", &list, &fixture->error);

        claim_list_done(&list);
        return r;
}

static int do_explain(Fixture *fixture)
{
        FitVerdicts verdicts = { 0 };
        int r = claims_explain(fixture->claims, &request.resources, false, 0, &verdicts,
                               &fixture->error);

        fit_verdicts_done(&verdicts);
        /* The claim exists already, so its amounts need not fit once more. */
        return r == CLAIM_E_NO_CAPACITY ? 0 : r;
}

typedef struct Operation {
        const char *name;
        int (*run)(Fixture *fixture);
        const char *claims; /* number of living claims afterwards */
} Operation;

static void walk(Fixture *fixture, const HostFacts *host, const Operation *operations,
                 size_t n_operations, const char *claims)
{
        for (size_t i = 0; i < n_operations; i++) {
                unsigned n;
                int r;

                claims_set_facts(fixture->claims, host);
                fixture->error = ERROR_NULL;
                FAIL_ALLOC_EACH(n, r = operations[i].run(fixture)) {
                        if (r != -ENOMEM || !fixture->error.text[0])
                                fail_msg("%s, allocation %u: %d %s", operations[i].name, n, r,
                                         fixture->error.text);
                        assert_sql(fixture->path, "SELECT count(*) FROM claims", claims);
                        fixture->error = ERROR_NULL;
                }
                if (r != 0 || n == 0)
                        fail_msg("%s, after %u: %d %s", operations[i].name, n, r,
                                 fixture->error.text);
                claims = operations[i].claims;
                assert_sql(fixture->path, "SELECT count(*) FROM claims", claims);
                if (!fixture->claims)
                        assert_true(fixture_open(fixture) >= 0);
        }
        assert_store_sane(fixture->path);
}

static void test_operations(void **state)
{
        static const Operation operations[] = {
                { "open", do_open, "1" },       { "set host", do_set_host, "1" },
                { "claim", do_claim, "2" },     { "claim again", do_claim, "2" },
                { "confirm", do_confirm, "2" }, { "get", do_get, "2" },
                { "list", do_list, "2" },       { "host", do_host, "2" },
                { "adopt", do_adopt, "3" },     { "check again", do_check_again, "3" },
                { "who", do_list_device, "3" }, { "explain", do_explain, "3" },
                { "release", do_release, "2" },
        };
        Fixture *fixture = *state;

        fixture_create(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "first", "VCPU=1 _G:VGPU=1", NULL), CLAIM_DONE);
        other_host = make_tree("host VCPU=8 MEMORY_MB=64 +T; host_b<host VGPU=5 +G");
        request = (ClaimRequest){ .consumer = make_uuid("vm") };
        make_request(&request.resources, "VCPU=1:T _G:VGPU=1:G _H:VGPU=2");
        make_facts(&facts);
        facts_guest(&facts, 'g', "4")->memory_mb = 8;
        facts.devices[0].available = facts.devices[1].available = 8;
        walk(fixture, &facts.facts, operations, ARRAY_SIZE(operations), "1");
        provider_tree_free(other_host);
        resource_request_done(&request.resources);
}

static NumaFixture cells;
static HostDomain guest;

static int do_list_some(Fixture *fixture)
{
        ClaimList list = { 0 };
        int r = claims_list_some(fixture->claims, 0, &list, &fixture->error);

        claim_list_done(&list);
        return r;
}

static int do_adopt_laid_out(Fixture *fixture)
{
        Claim *claim = NULL;
        int r = claims_adopt(fixture->claims, &guest, &claim, &fixture->error);

        claim_free(claim);
        return r;
}

/* The same operations for guests with a layout, and for whole devices. */
static void test_layouts(void **state)
{
        static const Operation operations[] = {
                { "claim", do_claim, "1" },     { "claim again", do_claim, "1" },
                { "get", do_get, "1" },         { "list", do_list, "1" },
                { "who", do_list_some, "1" },   { "adopt", do_adopt_laid_out, "2" },
                { "explain", do_explain, "2" }, { "release", do_release, "1" },
                { "history", do_list, "1" },
        };
        static const NumaCellSpec specs[] = { { 2, 2, 1, 4096, 64, 0, 0 },
                                              { 2, 2, 1, 4096, 64, 0, 1 } };
        static const char addresses[1][HOST_ADDRESS_SIZE] = { "0000:05:00.1" };
        Fixture *fixture = *state;

        numa_fixture_make(&cells, specs, 2);
        numa_fixture_nic(&cells, "p1", addresses[0], 0);
        numa_fixture_nic(&cells, "p2", "0000:05:00.2", 0);
        request = (ClaimRequest){ .consumer = make_uuid("vm") };
        make_request(&request.resources, "PCPU=2,MEMORY_MB=8 _G:CUSTOM_NIC=1"
                                         " & nodes=2 page_size=2M affinity=preferred");
        guest = (HostDomain){ .uuid = make_uuid("g"), .name = "g", .vcpus = 1, .memory_mb = 4 };
        guest.pci = addresses;
        assert_int_equal(layout_reserve(&guest.layout, 1, 1), 0);
        guest.layout.cells[guest.layout.n_cells++].n_shared = 1;
        assert_int_equal(cpu_set_add(&guest.layout.cells[0].vcpus, 0), 0);
        fixture_create(fixture, "host DISK_GB=1; host_0000:05:00.0<host CUSTOM_NIC=2;"
                                "host_NUMA0<host VCPU=2 PCPU=2 MEMORY_MB=4096 +HW_NUMA_ROOT;"
                                "host_NUMA1<host VCPU=2 PCPU=2 MEMORY_MB=4096 +HW_NUMA_ROOT");
        walk(fixture, &cells.facts, operations, ARRAY_SIZE(operations), "0");
        layout_done(&guest.layout);
        resource_request_done(&request.resources);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_operations,
                test_layouts)
