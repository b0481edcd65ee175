/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Claims that name devices, and claims of existing guests, on a real database. */

#include "claims/claims.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

#define HOST "host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3; host_b<host VGPU=2"

/* Opens the database of a host with the facts. */
static void open_host(Fixture *fixture, FactsFixture *facts)
{
        make_facts(facts);
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, HOST);
        claims_set_facts(fixture->claims, &facts->facts);
}

static void test_a_claim_names_its_devices(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *second = NULL, *again = NULL, *held = NULL;
        ClaimList list = { 0 };
        FactsFixture facts;
        int64_t id;

        open_host(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "vm1", "VCPU=1 _A:VGPU=1", &first), CLAIM_DONE);
        assert_int_equal(first->n_devices, 1);
        assert_string_equal(first->devices[0].suffix, "_A");
        assert_string_equal(first->devices[0].name, "a");
        assert_string_equal(first->devices[0].address, "0000:41:00.0");
        assert_string_equal(first->devices[0].mdev_type, "t");
        assert_string_equal(first->devices[0].mdev.text, make_mdev('1').text);
        assert_int_equal(fixture_claim(fixture, "vm1", "VCPU=1 _A:VGPU=1", &again), CLAIM_DONE);
        assert_string_equal(again->devices[0].mdev.text, make_mdev('1').text);

        /* Two more devices of a: mdev 3, and a new one. */
        assert_int_equal(fixture_claim(fixture, "vm2", "VGPU=2", &second), CLAIM_DONE);
        assert_int_equal(second->n_devices, 2);
        assert_string_not_equal(second->devices[0].mdev.text, second->devices[1].mdev.text);

        assert_int_equal(
                claims_list(fixture->claims, CLAIMS_OF_DEVICE, "0000:41:00.0", &list, NULL), 0);
        assert_true(list.n_claims >= 1);
        assert_int_equal(list.claims[0]->id, first->id);
        claim_list_done(&list);
        assert_int_equal(
                claims_list(fixture->claims, CLAIMS_OF_DEVICE, make_mdev('1').text, &list, NULL),
                0);
        assert_int_equal(list.n_claims, 1);
        claim_list_done(&list);

        /* The device of an ended claim is in the history, and free. */
        id = first->id;
        assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
        assert_int_equal(claims_get(fixture->claims, id, &held, NULL), 0);
        assert_int_equal(held->n_devices, 1);
        held = claim_free(held);
        assert_int_equal(fixture_claim(fixture, "vm3", "VGPU=1", &held), CLAIM_DONE);
        assert_int_equal(held->n_devices, 1);
        assert_store_sane(fixture->path);
}

/* Placement has the providers of the devices under other uuids than this host chose. */
static void test_devices_follow_the_uuid_of_their_provider(void **state)
{
        Fixture *fixture = *state;
        const Uuid before = make_uuid("host_a"), after = make_uuid("host_a#nova");
        _cleanup_(claim_freep) Claim *claim = NULL, *read = NULL;
        FactsFixture facts;
        bool changed;

        open_host(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=2", &claim), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "vm2", "_A:VGPU=1 _B:VGPU=1 isolate", NULL),
                         CLAIM_DONE);
        assert_string_equal(claim->devices[0].provider.text, before.text);
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096; host_a#nova<host VGPU=3;"
                                  "host_b#nova<host VGPU=2");
        assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
        assert_string_equal(read->allocations[0].provider.text, after.text);
        for (size_t i = 0; i < 2; i++)
                assert_string_equal(read->devices[i].provider.text, after.text);
        assert_sql(fixture->path,
                   "SELECT count(*) FROM claim_devices d JOIN allocations a USING (claim_id)"
                   " JOIN resource_providers p ON p.id = a.resource_provider_id"
                   " WHERE p.uuid = d.provider_uuid AND substr(p.name, 6) = d.device",
                   "4");
        /* The claim lacks no device. */
        free(run_sql(fixture->path, "UPDATE claims SET boot_id = 'old'"));
        assert_int_equal(claims_check_again(fixture->claims, claim->id, NULL, &changed, NULL),
                         CLAIM_DONE);
        read = claim_free(read);
        assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
        assert_int_equal(read->n_devices, 2);
        assert_store_sane(fixture->path);
}

/* A former version left the devices of claims under the former uuid of their provider. */
static void test_a_check_finds_the_providers_of_devices(void **state)
{
        static const char count[] = "SELECT count(*) FROM claim_devices d JOIN resource_providers p"
                                    " ON p.uuid = d.provider_uuid AND substr(p.name, 6) = d.device";
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL;
        FactsFixture facts;
        bool changed;

        open_host(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "vm1", "_A:VGPU=1 _B:VGPU=1 isolate", &claim),
                         CLAIM_DONE);
        free(run_sql(fixture->path, "UPDATE claim_devices SET provider_uuid ="
                                    " '00000000-0000-0000-0000-00000000000' || id"));
        assert_sql(fixture->path, count, "0");
        for (int i = 0; i < 2; i++) {
                assert_int_equal(
                        claims_check_again(fixture->claims, claim->id, NULL, &changed, NULL),
                        CLAIM_DONE);
                assert_int_equal(changed, i == 0);
                assert_sql(fixture->path, count, "2");
        }
        assert_sql(fixture->path, "SELECT count(*) FROM claim_devices", "2");
        assert_store_sane(fixture->path);
}

/* The allocations of a claim are replaced, without providers and classes that the host lacks. */
static void test_a_claim_is_completed(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(consumer_freep) Consumer *share =
                make_holding("one", "host VCPU=3,DISK_GB=3; host_b VGPU=1; elsewhere VCPU=9");
        _cleanup_(claim_freep) Claim *claim = NULL;
        _cleanup_free_ char *text = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "one", "VCPU=2,VGPU=1", NULL), CLAIM_DONE);
        assert_int_equal(claims_complete(fixture->claims, 1, share, NULL), CLAIM_DONE);
        assert_int_equal(claims_get(fixture->claims, 1, &claim, NULL), 0);
        text = format_claim(claim);
        assert_text(text, "VCPU=3 on host");
        assert_text(text, "VGPU=1 on host_b");
        assert_int_equal(claim->n_allocations, 2);
        assert_int_equal(claim->n_devices, 1);
        assert_int_equal(fixture_used(fixture, "host_a", "VGPU"), 0);
        assert_int_equal(claims_complete(fixture->claims, 99, share, NULL), CLAIM_E_NOT_FOUND);
        assert_store_sane(fixture->path);
}

/* The inventory has three, but the device can have no more. */
static void test_no_device_is_no_claim(void **state)
{
        Fixture *fixture = *state;
        FactsFixture facts;
        uint64_t n = 0;

        open_host(fixture, &facts);
        facts_guest(&facts, 'g', "1 3");
        facts.devices[0].available = 0;
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3");
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text,
                    "VGPU: 1 requested, but 0 of 3 are free; guests have 3 on host_a");
        assert_int_equal(claims_count(fixture->claims, &n, NULL), 0);
        assert_int_equal(n, 0);
        assert_store_sane(fixture->path);
}

/* A guest without a claim, which is off, has one GPU of two. Claims get the other one, and an
 * explanation has the same result as a claim. */
static void test_the_fit_knows_what_guests_have(void **state)
{
        Fixture *fixture = *state;
        ClaimRequest request = { .consumer = make_uuid("asks") };
        RequestGroup *group;
        FactsFixture facts;

        open_host(fixture, &facts);
        facts_guest(&facts, 'g', "1 3")->running = false;
        facts.devices[0].available = facts.devices[1].available = 0;
        fixture_set_host(fixture, "host VCPU=8; host_a<host VGPU=2; host_b<host VGPU=1");
        assert_int_equal(resource_request_group(&request.resources, "", &group, NULL), 0);
        assert_int_equal(resources_set(&group->resources, "VGPU", 1), 0);
        for (int i = 0; i < 2; i++) {
                int expected = i == 0 ? CLAIM_DONE : CLAIM_E_NO_CAPACITY;
                char name[] = { 'v', (char)('0' + i), '\0' };
                FitVerdicts verdicts = { 0 };

                assert_int_equal(claims_explain(fixture->claims, &request.resources, false, 0,
                                                &verdicts, NULL),
                                 expected);
                fit_verdicts_done(&verdicts);
                assert_int_equal(fixture_claim(fixture, name, "VGPU=1", NULL), expected);
        }
        assert_int_equal(fixture_used(fixture, "host_a", "VGPU"), 0);
        assert_int_equal(fixture_used(fixture, "host_b", "VGPU"), 1);
        resource_request_done(&request.resources);
        assert_store_sane(fixture->path);
}

/* The device of a renamed provider is not offered (drivers/tree/child-provider.h). */
static void test_device_of_renamed_provider_is_not_offered(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host VCPU=8");
        const Inventory inventory = INVENTORY_DEFAULT(3);
        const Uuid root = make_uuid("host"), gpu = uuid_make_child(&root, "host_a");
        Provider *provider;
        FactsFixture facts;

        open_host(fixture, &facts);
        assert_int_equal(provider_tree_add(tree, &gpu, "mine", &root, &provider, NULL), 0);
        assert_int_equal(provider_set_inventory(provider, "VGPU", &inventory), 0);
        assert_int_equal(claims_set_providers(fixture->claims, tree, NULL), 0);
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text, "mine is withheld");
        /* A reshape keeps it withheld. */
        assert_int_equal(claims_shift(fixture->claims, tree, NULL, 0, NULL), 0);
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=1", NULL), CLAIM_E_NO_CAPACITY);
        provider_tree_free(tree);

        tree = make_tree("host VCPU=8");
        assert_int_equal(provider_tree_add(tree, &gpu, "host_a", &root, &provider, NULL), 0);
        assert_int_equal(provider_set_inventory(provider, "VGPU", &inventory), 0);
        assert_int_equal(claims_set_providers(fixture->claims, tree, NULL), 0);
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=1", NULL), CLAIM_DONE);
        assert_store_sane(fixture->path);
}

static void test_mdev_of_renamed_device_is_taken(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *second = NULL;
        Error error = ERROR_NULL;
        Claim *adopted = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=1", &first), CLAIM_DONE);
        assert_string_equal(first->devices[0].mdev.text, make_mdev('1').text);
        facts.mdevs[0].device = "b";
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096; host_b<host VGPU=3");
        assert_int_equal(fixture_claim(fixture, "vm2", "VGPU=1", &second), CLAIM_DONE);
        assert_string_equal(second->devices[0].mdev.text, make_mdev('4').text);
        facts_guest(&facts, 'g', "1");
        assert_int_equal(claims_adopt(fixture->claims, &facts.domains[0], &adopted, &error),
                         CLAIM_E_CONFLICT);
        assert_non_null(adopted);
        assert_text(error.text, "belongs to another claim");
        adopted = claim_free(adopted);
        assert_store_sane(fixture->path);
}

static void test_not_before_the_host_is_known(void **state)
{
        Fixture *fixture = *state;
        const ClaimsConfig config = {
                .path = fixture->path, .host = "compute1", .node = "host", .has_devices = true
        };
        FactsFixture facts;

        make_facts(&facts);
        assert_true(claims_open(&fixture->claims, &config, NULL) >= 0);
        fixture_set_host(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text, "before the first poll");
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=1", NULL), CLAIM_DONE);
        claims_set_facts(fixture->claims, &facts.facts);
        assert_int_equal(fixture_claim(fixture, "vm1", "VGPU=1", NULL), CLAIM_DONE);
}

static void test_adoption(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *other = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        facts_guest(&facts, 'g', "1 4");
        assert_int_equal(claims_adopt(fixture->claims, &facts.domains[0], &claim, NULL),
                         CLAIM_DONE);
        assert_int_equal(claim->state, CLAIM_STATE_CONFIRMED);
        assert_int_equal(claim->expires_usec, 0);
        assert_string_equal(claim->consumer.text, make_guest('g').text);
        assert_int_equal(claim_sum(claim, "VCPU"), 2);
        assert_int_equal(claim_sum(claim, "MEMORY_MB"), 512);
        assert_int_equal(fixture_used(fixture, "host_a", "VGPU"), 1);
        assert_int_equal(fixture_used(fixture, "host_b", "VGPU"), 1);
        assert_int_equal(claim->n_devices, 2);
        assert_true(claim_has_mdev(claim, &facts.mdevs[0].uuid));
        assert_string_equal(claim->request, "resources=MEMORY_MB:512,VCPU:2,VGPU:2");

        /* Other claims do not get its devices. */
        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=1", &other), CLAIM_DONE);
        assert_false(claim_has_mdev(other, &facts.mdevs[0].uuid));
        assert_false(claim_has_mdev(other, &facts.mdevs[3].uuid));
        assert_store_sane(fixture->path);
}

/* A running guest is counted, and the error text names each problem. */
static void test_adoption_of_what_does_not_fit(void **state)
{
        static const struct {
                const char *mdevs; /* NULL: the one that a claim got first */
                uint64_t vcpus;
                int outcome;
                const char *words;
        } cases[] = {
                { "", 12, CLAIM_E_NO_CAPACITY, "VCPU" },
                { NULL, 2, CLAIM_E_CONFLICT, "belongs to another claim" },
                { "2", 2, CLAIM_E_CONFLICT, "does not offer" },
                { "9", 2, CLAIM_E_CONFLICT, "is not on this host" },
        };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *rival = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=1", &rival), CLAIM_DONE);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HostDomain *guest =
                        facts_guest(&facts, (char)('k' + i), cases[i].mdevs ? cases[i].mdevs : "2");
                _cleanup_(claim_freep) Claim *claim = NULL;
                Error error = ERROR_NULL;
                int r;

                guest->vcpus = cases[i].vcpus;
                if (!cases[i].mdevs)
                        guest->mdevs = &rival->devices[0].mdev;
                r = claims_adopt(fixture->claims, guest, &claim, &error);
                if (r != cases[i].outcome || !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %d %s", i, r, error.text);
                assert_int_equal(claim->n_devices, 0);
                assert_int_equal(claim_sum(claim, "VCPU"), cases[i].vcpus);
        }
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 18);
}

static void test_checking_again(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *checked = NULL;
        FactsFixture facts;
        bool changed;
        int64_t id;

        open_host(fixture, &facts);
        claims_set_facts(fixture->claims, NULL); /* a claim of an older program: no device */
        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=1", &claim), CLAIM_DONE);
        assert_int_equal(claim->n_devices, 0);
        id = claim->id;
        free(run_sql(fixture->path, "UPDATE claims SET boot_id = 'old'"));
        claims_set_facts(fixture->claims, &facts.facts);

        /* Its guest has mdev 3: the claim gets that one, not the first free one. */
        facts_guest(&facts, 'g', strcmp(claim->provider_names[0], "host_a") == 0 ? "3" : "4");
        assert_int_equal(claims_check_again(fixture->claims, id, &facts.domains[0], &changed, NULL),
                         CLAIM_DONE);
        assert_int_equal(claims_get(fixture->claims, id, &checked, NULL), 0);
        assert_int_equal(checked->n_devices, 1);
        assert_string_equal(checked->devices[0].mdev.text, facts.used[0][0].text);
        assert_string_equal(checked->boot_id, claims_boot_id(fixture->claims));
        assert_int_equal(claims_check_again(fixture->claims, 4711, NULL, &changed, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_store_sane(fixture->path);
}

#define CARD "0000:81:00.0"

/* A claim that names no device gets that of its guest, but not one of another claim. */
static void test_checking_names_no_device_of_another_claim(void **state)
{
        static char functions[2][HOST_ADDRESS_SIZE] = { "0000:81:00.1", "0000:81:00.2" };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *other = NULL, *claim = NULL, *checked = NULL;
        HostPci pci[2];
        HostDomain domain = { .name = "g", .running = true, .n_pci = 1 };
        HostFacts facts = { .taken_usec = 1000 * USEC_PER_SEC, .pci = pci, .n_pci = 2 };
        bool changed;

        for (size_t i = 0; i < 2; i++)
                pci[i] = (HostPci){ .name = functions[i],
                                    .address = functions[i],
                                    .provider = CARD,
                                    .resource_class = "SRIOV_NET_VF",
                                    .cell = HOST_CELL_NONE };
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8; host_" CARD "<host SRIOV_NET_VF=2");
        assert_int_equal(fixture_claim(fixture, "y", "SRIOV_NET_VF=1", &claim), CLAIM_DONE);
        assert_int_equal(claim->n_devices, 0);
        claims_set_facts(fixture->claims, &facts);
        assert_int_equal(fixture_claim(fixture, "x", "SRIOV_NET_VF=1", &other), CLAIM_DONE);
        assert_string_equal(other->devices[0].address, functions[0]);
        for (size_t i = 0; i < 2; i++) {
                Error error = ERROR_NULL;

                checked = claim_free(checked);
                domain.uuid = claim->consumer;
                domain.pci = &functions[i];
                assert_int_equal(
                        claims_check_again(fixture->claims, claim->id, &domain, &changed, &error),
                        i == 0 ? CLAIM_E_NO_CAPACITY : CLAIM_DONE);
                assert_int_equal(claims_get(fixture->claims, claim->id, &checked, NULL), 0);
                assert_int_equal(checked->n_devices, i);
        }
        assert_string_equal(checked->devices[0].address, functions[1]);
}

/* A claim of two classes of one card gets the device of the second class, too, if it has that of
 * the first. */
static void test_checking_names_the_second_class(void **state)
{
        static char functions[2][HOST_ADDRESS_SIZE] = { "0000:81:00.1", "0000:81:00.2" };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *checked = NULL;
        HostPci pci[2];
        HostDomain domain = { .name = "g", .running = true, .pci = functions };
        HostFacts facts = { .taken_usec = 1000 * USEC_PER_SEC, .pci = pci, .n_pci = 2 };
        bool changed;

        for (size_t i = 0; i < 2; i++)
                pci[i] = (HostPci){ .name = functions[i],
                                    .address = functions[i],
                                    .provider = CARD,
                                    .resource_class = { 'V', 'F', '_', (char)('A' + i) },
                                    .cell = HOST_CELL_NONE };
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8; host_" CARD "<host VF_A=1 VF_B=1");
        assert_int_equal(fixture_claim(fixture, "y", "VF_A=1,VF_B=1", &claim), CLAIM_DONE);
        claims_set_facts(fixture->claims, &facts);
        domain.uuid = claim->consumer;
        for (domain.n_pci = 1; domain.n_pci <= 2; domain.n_pci++) {
                Error error = ERROR_NULL;

                assert_int_equal(
                        claims_check_again(fixture->claims, claim->id, &domain, &changed, &error),
                        domain.n_pci == 1 ? CLAIM_E_NO_CAPACITY : CLAIM_DONE);
                checked = claim_free(checked);
                assert_int_equal(claims_get(fixture->claims, claim->id, &checked, NULL), 0);
                assert_int_equal(checked->n_devices, domain.n_pci);
        }
        /* A device whose class is unknown, or of no allocation, is not replaced. */
        strcpy(pci[0].resource_class, "VF_C");
        pci[1].address = "0000:81:00.3";
        free(run_sql(fixture->path, "UPDATE claims SET boot_id = 'old'"));
        assert_int_equal(claims_check_again(fixture->claims, claim->id, NULL, &changed, NULL),
                         CLAIM_DONE);
        checked = claim_free(checked);
        assert_int_equal(claims_get(fixture->claims, claim->id, &checked, NULL), 0);
        assert_int_equal(checked->n_devices, 2);
        assert_store_sane(fixture->path);
}

/* A claim of two vGPU types of one card gets two functions, although each can have both types. */
static void test_checking_names_functions_of_two_types(void **state)
{
        static char functions[3][HOST_ADDRESS_SIZE] = { "0000:81:00.1", "0000:81:00.2",
                                                        "0000:81:00.3" };
        static const char *const types[] = { "nvidia-1", "nvidia-2" };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *checked = NULL;
        VgpuFunction functions_of_card[3];
        VgpuCard card = { .address = CARD, .name = "card" };
        HostPci pci[4];
        HostDomain other = { .name = "o", .running = true, .pci = &functions[2], .n_pci = 1 };
        HostFacts facts = { .taken_usec = 1000 * USEC_PER_SEC,
                            .pci = pci,
                            .n_pci = 4,
                            .cards = &card,
                            .n_cards = 1,
                            .domains = &other,
                            .n_domains = 1 };
        Error error = ERROR_NULL;
        bool changed;
        int index;

        for (size_t i = 0; i < 4; i++) {
                pci[i] = (HostPci){ .name = functions[i / 2],
                                    .address = functions[i / 2],
                                    .provider = "card",
                                    .resource_class = { 'V', 'F', '_', (char)('A' + i % 2) },
                                    .cell = HOST_CELL_NONE,
                                    .vgpu_type = types[i % 2] };
                assert_int_equal(vgpu_card_ensure_type(&card, types[i % 2], &index), 0);
                card.types[index].limit = 3;
        }
        /* The last function has the first type, and the others can have both. */
        for (size_t i = 0; i < 3; i++)
                functions_of_card[i] = (VgpuFunction){ .address = functions[i],
                                                       .name = functions[i],
                                                       .type = i == 2 ? 0 : VGPU_TYPE_NONE,
                                                       .allowed = 3,
                                                       .creatable = i == 2 ? 0 : 3,
                                                       .claimed_type = VGPU_TYPE_NONE,
                                                       .former_type = VGPU_TYPE_NONE };
        card.functions = functions_of_card;
        card.n_functions = 3;
        other.uuid = make_guest('o');
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8; host_card<host VF_A=1 VF_B=1");
        assert_int_equal(fixture_claim(fixture, "y", "VF_A=1,VF_B=1", &claim), CLAIM_DONE);
        claims_set_facts(fixture->claims, &facts);
        if (claims_check_again(fixture->claims, claim->id, NULL, &changed, &error) != CLAIM_DONE)
                fail_msg("%s", error.text);
        assert_int_equal(claims_get(fixture->claims, claim->id, &checked, NULL), 0);
        assert_int_equal(checked->n_devices, 2);
        assert_string_equal(checked->devices[0].mdev_type, types[0]);
        assert_string_equal(checked->devices[1].mdev_type, types[1]);
        assert_store_sane(fixture->path);
        card.functions = NULL;
        card.n_functions = 0;
        vgpu_card_done(&card);
}

/* Calls claims_prepare() for a guest that is off, with that number of CPUs and those mdevs. */
static int prepare(Fixture *fixture, FactsFixture *facts, char letter, uint64_t vcpus,
                   const char *mdevs, Claim **ret, Claim **ret_ended)
{
        HostDomain *guest;

        facts->facts.n_domains = 0;
        guest = facts_guest(facts, letter, mdevs);
        guest->vcpus = vcpus;
        guest->running = false;
        fixture->error = ERROR_NULL;
        return claims_prepare(fixture->claims, guest, NULL, ret, ret_ended, &fixture->error);
}

/* The hook keeps a claim that was made for this start, and replaces it for another device. */
static void test_hook_keeps_the_claim_of_a_starting_server(void **state)
{
        static const struct {
                const char *mdevs;
                bool kept;
        } cases[] = { { "1", true }, { "", true }, { "3", false } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Fixture *fixture = *state;
                _cleanup_(claim_freep) Claim *first = NULL, *claim = NULL, *ended = NULL;
                _cleanup_(consumer_freep) Consumer *placed =
                        make_holding("g", "host VCPU=3,MEMORY_MB=512; host_a VGPU=1");
                _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
                ClaimPlacing placing = { .holding = placed,
                                         .write_state = CLAIM_WRITE_NONE,
                                         .reported = { .generation = 1,
                                                       .elsewhere = make_uuid("none") } };
                FactsFixture facts;

                open_host(fixture, &facts);
                placed->uuid = make_guest('g');
                assert_int_equal(string_set_add(&classes, "VGPU"), 1);
                assert_int_equal(claims_claim_starting(fixture->claims, &placing, &classes, &first,
                                                       &fixture->error),
                                 CLAIM_DONE);
                assert_true(claim_has_mdev(first, &facts.mdevs[0].uuid));
                assert_int_equal(prepare(fixture, &facts, 'g', 2, cases[i].mdevs, &claim, &ended),
                                 CLAIM_DONE);
                assert_int_equal(claim->id == first->id, cases[i].kept);
                assert_int_equal(!ended, cases[i].kept);
                claim_free(claim);
                assert_int_equal(claims_find(fixture->claims, &placed->uuid, false, &claim, NULL),
                                 0);
                assert_non_null(strstr(claim->request, "VCPU:2"));
                assert_store_sane(fixture->path);
                fixture_close(fixture);
                assert_int_equal(unlink(fixture->path), 0);
        }
}

/* Nova chooses the devices of a server that starts. The claim of its start gets their names from
 * the domain, also if another reason leads to an earlier check. Its request gets the amounts. */
static void test_claim_of_a_starting_server_follows_its_domain(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *read = NULL;
        _cleanup_(consumer_freep) Consumer *placed =
                make_holding("g", "host VCPU=3,MEMORY_MB=512; host_a VGPU=1");
        const StringSet none = STRING_SET_INIT;
        const ClaimPlacing placing = {
                .holding = placed, .reported = { .generation = 1, .elsewhere = make_uuid("none") }
        };
        FactsFixture facts;
        bool changed;

        open_host(fixture, &facts);
        placed->uuid = make_guest('g');
        assert_int_equal(
                claims_claim_starting(fixture->claims, &placing, &none, &claim, &fixture->error),
                CLAIM_DONE);
        free(run_sql(fixture->path, "UPDATE claims SET boot_id = 'old'"));
        for (size_t i = 0; i < 2; i++) {
                const HostDomain *domain = i == 0 ? NULL : facts_guest(&facts, 'g', "3");

                assert_int_equal(claims_check_again(fixture->claims, claim->id, domain, &changed,
                                                    &fixture->error),
                                 CLAIM_DONE);
                assert_true(changed);
                read = claim_free(read);
                assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
                assert_string_equal(read->boot_id, claims_boot_id(fixture->claims));
                assert_int_equal(read->n_devices, i);
        }
        assert_true(claim_has_mdev(read, &facts.mdevs[2].uuid));
        /* Nova allocates more than the domain shows. */
        assert_string_equal(read->request, "resources=MEMORY_MB:512,VCPU:3,VGPU:1");
        assert_int_equal(claims_confirm_guest(fixture->claims, read->id, &facts.domains[0], NULL),
                         0);
        read = claim_free(read);
        assert_int_equal(claims_get(fixture->claims, claim->id, &read, NULL), 0);
        assert_string_equal(read->request, "resources=MEMORY_MB:512,VCPU:2,VGPU:1");
        assert_int_equal(read->state, CLAIM_STATE_CONFIRMED);
        assert_store_sane(fixture->path);
}

static void test_a_guest_that_starts_gets_what_it_names(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *again = NULL, *ended = NULL;
        const ClaimReported reported = { .generation = 1, .elsewhere = make_uuid("none") };
        ClaimRemoval removal;
        FactsFixture facts;

        open_host(fixture, &facts);
        assert_int_equal(prepare(fixture, &facts, 'g', 2, "3 4", &claim, &ended), CLAIM_DONE);
        assert_null(ended);
        assert_int_equal(claim->state, CLAIM_STATE_CLAIMED);
        assert_true(claim->expires_usec > claim->created_usec);
        assert_string_equal(claim->consumer_type, CLAIM_TYPE_GUEST);
        assert_int_equal(claim->write_state, CLAIM_WRITE_NONE);
        /* The agent writes the claim, and knows its consumer since then. */
        assert_int_equal(claims_set_write_state(fixture->claims, claim->id, CLAIM_WRITE_NONE,
                                                CLAIM_WRITE_WRITTEN, &reported, NULL),
                         0);
        claims_set_rules(fixture->claims,
                         &(ClaimsRules){ .expiry_usec = USEC_PER_SEC, .writes_guests = true });
        assert_int_equal(claim->n_devices, 2);
        assert_true(claim_has_mdev(claim, &facts.mdevs[2].uuid));
        assert_true(claim_has_mdev(claim, &facts.mdevs[3].uuid));
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 2);

        /* The next start can have another domain, and makes another claim. */
        assert_int_equal(prepare(fixture, &facts, 'g', 4, "3", &again, &ended), CLAIM_DONE);
        assert_non_null(ended);
        assert_int_equal(ended->id, claim->id);
        assert_int_equal(again->write_state, CLAIM_WRITE_UNSENT);
        assert_int_equal(claims_next_removal(fixture->claims, 0, &again->consumer, &removal, NULL),
                         0);
        assert_int_equal(removal.claim, claim->id);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 4);
        assert_int_equal(fixture_used(fixture, "host_b", "VGPU"), 0);
        assert_store_sane(fixture->path);
}

/* Another host can have deleted it: allocations that the agent did not write are not written by
 * it. */
static void test_claim_of_running_guest_is_not_written(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *again = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        facts_guest(&facts, 'g', "1");
        claims_set_rules(fixture->claims,
                         &(ClaimsRules){ .expiry_usec = USEC_PER_SEC, .writes_guests = true });
        assert_int_equal(claims_adopt(fixture->claims, &facts.domains[0], &claim, NULL),
                         CLAIM_DONE);
        assert_int_equal(claim->write_state, CLAIM_WRITE_NONE);

        /* Allocations that the agent wrote for an earlier claim belong to the new one. */
        free(run_sql(fixture->path, "UPDATE claims SET write_state = 'written'"));
        assert_int_equal(claims_release(fixture->claims, claim->id, "by hand", NULL), CLAIM_DONE);
        assert_int_equal(claims_adopt(fixture->claims, &facts.domains[0], &again, NULL),
                         CLAIM_DONE);
        assert_int_equal(again->write_state, CLAIM_WRITE_UNSENT);
}

static void test_a_guest_that_does_not_fit_gets_nothing(void **state)
{
        static const struct {
                uint64_t vcpus;
                const char *mdevs;
                int outcome;
                const char *words;
        } cases[] = {
                { 9, "", CLAIM_E_NO_CAPACITY, "VCPU" },
                { 2, "1", CLAIM_E_CONFLICT, "belongs to another claim" },
                { 2, "2", CLAIM_E_CONFLICT, "does not offer" },
                { 2, "9", CLAIM_E_CONFLICT, "is not on this host" },
        };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *rival = NULL;
        Claim *none = NULL, *ended = NULL;
        FactsFixture facts;
        uint64_t n = 0;

        open_host(fixture, &facts);
        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=1", &rival), CLAIM_DONE);
        assert_true(claim_has_mdev(rival, &facts.mdevs[0].uuid));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(prepare(fixture, &facts, 'g', cases[i].vcpus, cases[i].mdevs,
                                         &none, &ended),
                                 cases[i].outcome);
                assert_null(none);
                assert_text(fixture->error.text, cases[i].words);
        }
        assert_int_equal(claims_count(fixture->claims, &n, NULL), 0);
        assert_int_equal(n, 1);
        fixture_set_host(fixture, "host MEMORY_MB=4096 PCPU=4");
        assert_int_equal(prepare(fixture, &facts, 'g', 2, "", &none, &ended),
                         CLAIM_E_UNKNOWN_CLASS);
        assert_text(fixture->error.text, "VCPU");
        claims_set_facts(fixture->claims, NULL);
        assert_int_equal(prepare(fixture, &facts, 'g', 2, "", &none, &ended), -EAGAIN);
}

/* A stopped server keeps its claim if its next start is refused. A later start replaces it. */
static void test_a_refused_start_ends_no_claim(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *kept = NULL, *again = NULL, *ended = NULL;
        _cleanup_(consumer_freep) Consumer *share = make_holding("g", "host VCPU=2,MEMORY_MB=512");
        Claim *none = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        facts_guest(&facts, 'g', "1");
        assert_int_equal(claims_adopt(fixture->claims, &facts.domains[0], &first, NULL),
                         CLAIM_DONE);
        assert_int_equal(claims_complete(fixture->claims, first->id, share, NULL), CLAIM_DONE);
        claims_set_rules(fixture->claims,
                         &(ClaimsRules){ .expiry_usec = USEC_PER_SEC, .writes_guests = true });
        assert_int_equal(prepare(fixture, &facts, 'g', 9, "1", &none, &ended), CLAIM_E_NO_CAPACITY);
        assert_null(none);
        assert_null(ended);
        assert_int_equal(claims_find(fixture->claims, &first->consumer, false, &kept, NULL), 0);
        assert_int_equal(kept->id, first->id);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 2);
        assert_int_equal(prepare(fixture, &facts, 'g', 8, "1", &again, &ended), CLAIM_DONE);
        assert_int_equal(ended->id, first->id);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 8);
        /* Another writer placed the guest. */
        assert_int_equal(again->write_state, CLAIM_WRITE_NONE);
        assert_false(claim_is_of_guest_alone(again, true));
        assert_store_sane(fixture->path);
}

/* A cordon does not stop guests. Reserved CPUs do: the domain does not name them. So does a device
 * that another writer reserved, for example after its last guest, but not for a server of Nova. */
static void test_a_guest_starts_with_a_withheld_device(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *again = NULL, *adopted = NULL, *ended = NULL,
                                     *built = NULL;
        _cleanup_(string_set_done) StringSet cordoned = STRING_SET_INIT;
        const Uuid server = make_guest('n');
        Claim *none = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        fixture_set_host(fixture, "host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3/3");
        assert_int_equal(prepare(fixture, &facts, 'g', 2, "1", &none, &ended), CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text, "VGPU: 1 requested, but 0 of 0 are free on host_a");
        assert_int_equal(string_set_add(&cordoned, make_uuid("host_a").text), 1);
        assert_int_equal(claims_prepare(fixture->claims, &facts.domains[0], &cordoned, &claim,
                                        &ended, &fixture->error),
                         CLAIM_DONE);
        assert_true(claim_has_mdev(claim, &facts.mdevs[0].uuid));
        /* The guest had the device at its last start. */
        free(run_sql(fixture->path, "UPDATE claims SET state = 'confirmed', expires_usec = 0"));
        assert_int_equal(prepare(fixture, &facts, 'g', 2, "1", &again, &ended), CLAIM_DONE);
        assert_int_equal(ended->id, claim->id);
        ended = claim_free(ended);
        facts.facts.folders = &server;
        facts.facts.n_folders = 1;
        assert_int_equal(prepare(fixture, &facts, 'n', 2, "3", &built, &ended), CLAIM_DONE);
        assert_int_equal(claims_release(fixture->claims, built->id, "", NULL), CLAIM_DONE);
        facts_guest(&facts, 'h', "3");
        assert_int_equal(claims_adopt(fixture->claims, &facts.domains[1], &adopted, NULL),
                         CLAIM_DONE);
        fixture_set_host(fixture, "host VCPU=8/8 MEMORY_MB=4096; host_a<host VGPU=3/3");
        assert_int_equal(prepare(fixture, &facts, 'k', 2, "", &none, &ended), CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text, "VCPU: 2 requested, but 0 of 0 are free on host");
        assert_store_sane(fixture->path);
}

/* A scheduler that placed the guest made a claim for it, and keeps that claim. */
static void test_scheduler_keeps_its_claim(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *adopted = NULL, *claim = NULL, *ended = NULL;
        Claim *held = NULL;
        FactsFixture facts;

        open_host(fixture, &facts);
        assert_int_equal(prepare(fixture, &facts, 'g', 2, "", &held, &ended), CLAIM_DONE);
        free(run_sql(fixture->path, "UPDATE claims SET consumer_type = 'INSTANCE'"));
        assert_int_equal(prepare(fixture, &facts, 'g', 4, "1", &claim, &ended), CLAIM_DONE);
        assert_null(ended);
        assert_int_equal(claim->id, held->id);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 2);
        claim_free(held);

        /* A guest that runs already is not started: its claim is kept. */
        claim = claim_free(claim);
        facts.facts.n_domains = 0;
        facts_guest(&facts, 'k', "");
        assert_int_equal(claims_adopt(fixture->claims, &facts.domains[0], &adopted, NULL),
                         CLAIM_DONE);
        assert_int_equal(
                claims_prepare(fixture->claims, &facts.domains[0], NULL, &claim, &ended, NULL),
                CLAIM_DONE);
        assert_null(ended);
        assert_int_equal(claim->id, adopted->id);
}

/* Compares the view, which a group changes together with the file, with a view of the file. */
static void assert_view_is_stored(const Fixture *fixture)
{
        Fixture other = { .path = fixture->path };
        const HostView *view, *stored;

        assert_true(fixture_open(&other) >= 0);
        assert_int_equal(claims_host(fixture->claims, &view, NULL), 0);
        assert_int_equal(claims_host(other.claims, &stored, NULL), 0);
        assert_int_equal(view->n_providers, stored->n_providers);
        for (size_t i = 0; i < view->n_providers; i++) {
                assert_int_equal(view->providers[i].generation, stored->providers[i].generation);
                assert_true(resources_equal(&view->providers[i].used, &stored->providers[i].used));
        }
        fixture_close(&other);
}

/* A change of a group that fails is undone alone. The others are stored at the end, together. */
static void test_a_group_is_one_transaction(void **state)
{
        static const struct {
                int result;
                uint64_t n_claims; /* after the end */
        } ends[] = { { 0, 2 }, { -ECANCELED, 2 }, { 0, 3 } };
        static const char *const guests[][2] = { { "g", "h" }, { "i", "j" }, { "g", "k" } };
        Fixture *fixture = *state;
        FactsFixture facts;

        open_host(fixture, &facts);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                uint64_t n;

                facts.facts.n_domains = 0;
                assert_int_equal(claims_begin_group(fixture->claims, NULL), 0);
                for (size_t j = 0; j < 2; j++) {
                        _cleanup_(claim_freep) Claim *claim = NULL;
                        const HostDomain *domain = facts_guest(&facts, guests[i][j][0], "");
                        /* The last group adopts a guest that has a claim. */
                        int expected = i == 2 && j == 0 ? CLAIM_E_CONFLICT : CLAIM_DONE;

                        assert_int_equal(claims_adopt(fixture->claims, domain, &claim, NULL),
                                         expected);
                        assert_int_equal(claim != NULL, expected == CLAIM_DONE);
                }
                assert_int_equal(claims_end_group(fixture->claims, ends[i].result, NULL),
                                 ends[i].result);
                assert_int_equal(claims_count(fixture->claims, &n, NULL), 0);
                assert_int_equal(n, ends[i].n_claims);
                assert_int_equal(fixture_used(fixture, "host", "MEMORY_MB"),
                                 n * facts.domains[0].memory_mb);
                assert_view_is_stored(fixture);
        }
        assert_store_sane(fixture->path);
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown,
                test_a_group_is_one_transaction, test_a_claim_names_its_devices,
                test_devices_follow_the_uuid_of_their_provider,
                test_a_check_finds_the_providers_of_devices, test_a_claim_is_completed,
                test_no_device_is_no_claim, test_the_fit_knows_what_guests_have,
                test_device_of_renamed_provider_is_not_offered,
                test_mdev_of_renamed_device_is_taken, test_not_before_the_host_is_known,
                test_adoption, test_adoption_of_what_does_not_fit, test_checking_again,
                test_checking_names_no_device_of_another_claim,
                test_checking_names_the_second_class, test_checking_names_functions_of_two_types,
                test_hook_keeps_the_claim_of_a_starting_server,
                test_claim_of_a_starting_server_follows_its_domain,
                test_a_guest_that_starts_gets_what_it_names,
                test_claim_of_running_guest_is_not_written,
                test_a_guest_that_does_not_fit_gets_nothing, test_a_refused_start_ends_no_claim,
                test_a_guest_starts_with_a_withheld_device, test_scheduler_keeps_its_claim)
