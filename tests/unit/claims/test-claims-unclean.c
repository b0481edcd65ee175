/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Unclean devices on a real database: which claims mark them, and which claims can get them. */

#include "claims/claims.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

#define A "0000:81:00.0"
#define B "0000:82:00.0"
#define HOST \
        "host VCPU=8 MEMORY_MB=4096; host_" A "<host CUSTOM_NVME=1; host_" B "<host CUSTOM_NVME=1"
#define RESERVED \
        "host VCPU=8 MEMORY_MB=4096; host_" A "<host CUSTOM_NVME=1/1; host_" B "<host CUSTOM_NVME=1"

typedef struct Host {
        HostFacts facts;
        HostPci pci[2];
        HostDomain domains[2];
        char addresses[2][HOST_ADDRESS_SIZE];
} Host;

/* Opens the database of a host with two disks, of which the first one must be cleaned. */
static void open_host(Fixture *fixture, Host *host)
{
        *host = (Host){
                .pci = { { .name = "pci_a",
                           .address = A,
                           .provider = A,
                           .identity = "8086:1:S1",
                           .resource_class = "CUSTOM_NVME",
                           .cell = HOST_CELL_NONE,
                           .must_be_cleaned = true },
                         { .name = "pci_b",
                           .address = B,
                           .provider = B,
                           .resource_class = "CUSTOM_NVME",
                           .cell = HOST_CELL_NONE } },
                .addresses = { A, B },
        };
        host->facts = (HostFacts){ .taken_usec = 1000 * USEC_PER_SEC,
                                   .pci = host->pci,
                                   .n_pci = 2,
                                   .domains = host->domains };
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, HOST);
        claims_set_facts(fixture->claims, &host->facts);
}

/* Adds a guest with the first disk. */
static const HostDomain *add_guest(Host *host, char letter)
{
        HostDomain *domain = &host->domains[host->facts.n_domains++];

        *domain = (HostDomain){ .uuid = make_guest(letter),
                                .name = "g",
                                .running = true,
                                .vcpus = 1,
                                .memory_mb = 64,
                                .pci = &host->addresses[0],
                                .n_pci = 1 };
        return domain;
}

/* Yields the row of the address. Returns false if there is none. */
static bool has_row(Fixture *fixture, const char *address, UncleanDevice *ret)
{
        _cleanup_(unclean_devices_done) UncleanDevices list = { 0 };
        const UncleanDevice *row;

        assert_int_equal(claims_list_unclean(fixture->claims, &list, NULL), 0);
        row = unclean_devices_find(&list, address);
        if (row)
                *ret = *row;
        return row;
}

static UncleanDevice find_row(Fixture *fixture, const char *address)
{
        UncleanDevice row = { 0 };

        assert_true(has_row(fixture, address, &row));
        return row;
}

static void set_state(Fixture *fixture, const UncleanDevice *row, UncleanState from,
                      UncleanState to)
{
        assert_int_equal(claims_set_unclean(fixture->claims, row->id, from, to,
                                            to == UNCLEAN_FAILED ? "no proof" : "", 7, NULL),
                         0);
}

static void test_a_claim_marks_its_devices(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL;
        _cleanup_(unclean_devices_done) UncleanDevices list = { 0 };
        UncleanDevice row;
        Host host;

        open_host(fixture, &host);
        assert_int_equal(
                fixture_claim(fixture, "vm1", "VCPU=1,CUSTOM_NVME=1 _B:CUSTOM_NVME=1", &first),
                CLAIM_DONE);
        assert_int_equal(claims_list_unclean(fixture->claims, &list, NULL), 0);
        assert_int_equal(list.n_items, 1);
        row = find_row(fixture, A);
        assert_string_equal(row.identity, "8086:1:S1");
        assert_string_equal(row.name, "pci_a");
        assert_int_equal(row.claim, first->id);
        assert_int_equal(row.state, UNCLEAN_HELD);
        assert_string_equal(row.consumer.text, first->consumer.text);
        assert_ptr_equal(unclean_devices_find(&list, A), &list.items[0]);
        assert_null(unclean_devices_find(&list, B));
        /* A device of a living claim stays held. */
        assert_int_equal(claims_set_unclean(fixture->claims, row.id, UNCLEAN_HELD, UNCLEAN_DIRTY,
                                            "", 7, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_end_unclean(fixture->claims, row.id, UNCLEAN_HELD, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_store_sane(fixture->path);
}

/* The device is refused in each state after the claim, also after a restart. */
static void test_no_claim_gets_an_unclean_device(void **state)
{
        static const UncleanState states[] = { UNCLEAN_HELD, UNCLEAN_DIRTY, UNCLEAN_FAILED };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *other = NULL, *last = NULL;
        UncleanDevice row;
        Host host;

        open_host(fixture, &host);
        assert_int_equal(fixture_claim(fixture, "vm1", "CUSTOM_NVME=1", &first), CLAIM_DONE);
        assert_string_equal(first->devices[0].address, A);
        assert_int_equal(claims_release(fixture->claims, first->id, "", NULL), 0);
        assert_int_equal(fixture_claim(fixture, "vm2", "CUSTOM_NVME=1", &other), CLAIM_DONE);
        assert_string_equal(other->devices[0].address, B);
        for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
                row = find_row(fixture, A);
                if (i > 0)
                        set_state(fixture, &row, states[i - 1], states[i]);
                assert_int_equal(fixture_claim(fixture, "vm3", "CUSTOM_NVME=1", NULL),
                                 CLAIM_E_NO_CAPACITY);
                fixture_close(fixture);
                assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
                fixture_set_host(fixture, HOST);
                claims_set_facts(fixture->claims, &host.facts);
        }
        assert_int_equal(claims_end_unclean(fixture->claims, row.id, UNCLEAN_DIRTY, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_end_unclean(fixture->claims, row.id, UNCLEAN_FAILED, NULL), 0);
        assert_int_equal(fixture_claim(fixture, "vm3", "CUSTOM_NVME=1", &last), CLAIM_DONE);
        assert_string_equal(last->devices[0].address, A);
        assert_true(find_row(fixture, A).id > row.id);
        assert_store_sane(fixture->path);
}

/* A claim that Placement refused never had a guest, so the device stays clean. */
static void test_a_withdrawn_claim_leaves_no_mark(void **state)
{
        Fixture *fixture = *state;
        const ClaimPlacing pending = { .write_state = CLAIM_WRITE_UNANSWERED };
        ClaimRequest request = { .consumer = make_uuid("vm1") };
        _cleanup_(claim_freep) Claim *claim = NULL, *again = NULL;
        UncleanDevice row;
        Host host;

        open_host(fixture, &host);
        make_request(&request.resources, "CUSTOM_NVME=1");
        assert_int_equal(claims_claim(fixture->claims, &request, &pending, &claim, NULL, NULL),
                         CLAIM_DONE);
        row = find_row(fixture, A);
        assert_int_equal(row.claim, claim->id);
        assert_int_equal(claims_withdraw(fixture->claims, claim->id, "refused", NULL), 0);
        assert_false(has_row(fixture, A, &row));
        /* A mark that an earlier claim made stays. */
        assert_int_equal(fixture_claim(fixture, "vm2", "CUSTOM_NVME=1", &again), CLAIM_DONE);
        assert_int_equal(claims_release(fixture->claims, again->id, "", NULL), 0);
        assert_int_equal(find_row(fixture, A).claim, again->id);
        resource_request_done(&request.resources);
}

/* A running guest is counted whatever its device is. A new row, with a new id, belongs to it. */
static void test_a_running_guest_keeps_an_unclean_device(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *adopted = NULL;
        const HostDomain *guest;
        UncleanDevice row;
        Host host;

        open_host(fixture, &host);
        assert_int_equal(fixture_claim(fixture, "vm1", "CUSTOM_NVME=1", &first), CLAIM_DONE);
        assert_int_equal(claims_release(fixture->claims, first->id, "", NULL), 0);
        row = find_row(fixture, A);
        set_state(fixture, &row, UNCLEAN_HELD, UNCLEAN_DIRTY);
        guest = add_guest(&host, 'g');
        assert_int_equal(claims_adopt(fixture->claims, guest, &adopted, NULL), CLAIM_DONE);
        assert_int_equal(adopted->n_devices, 1);
        assert_true(find_row(fixture, A).id > row.id);
        assert_int_equal(find_row(fixture, A).state, UNCLEAN_HELD);
        assert_int_equal(find_row(fixture, A).claim, adopted->id);
}

/* The last guest can start again until the cleaning is due, although all of the device is reserved
 * from its claim on. */
static void test_a_guest_starts_with_its_own_device_only(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *other = NULL, *again = NULL, *ended = NULL;
        const HostDomain *guest, *stranger;
        Error error = ERROR_NULL;
        UncleanDevice row;
        Host host;

        open_host(fixture, &host);
        guest = add_guest(&host, 'g');
        stranger = add_guest(&host, 'h');
        host.facts.n_domains = 0;
        /* Another program reserved the device after its last guest, which had no claim here. */
        fixture_set_host(fixture, RESERVED);
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &first, &ended, NULL),
                         CLAIM_E_NO_CAPACITY);
        fixture_set_host(fixture, HOST);
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &first, &ended, NULL),
                         CLAIM_DONE);
        fixture_set_host(fixture, RESERVED);
        assert_int_equal(claims_release(fixture->claims, first->id, "", NULL), 0);
        assert_int_equal(claims_prepare(fixture->claims, stranger, NULL, &other, &ended, &error),
                         CLAIM_E_CONFLICT);
        assert_text(error.text,
                    "PCI device " A " is not clean: its guest is not proved to be gone");
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &again, &ended, NULL),
                         CLAIM_DONE);
        assert_int_equal(claims_release(fixture->claims, again->id, "", NULL), 0);
        again = claim_free(again);
        row = find_row(fixture, A);
        set_state(fixture, &row, UNCLEAN_HELD, UNCLEAN_DIRTY);
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &again, &ended, &error),
                         CLAIM_E_CONFLICT);
        assert_text(error.text, "is not clean: cleaning since 1970-01-01 00:00:00 UTC");
        set_state(fixture, &row, UNCLEAN_DIRTY, UNCLEAN_FAILED);
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &again, &ended, &error),
                         CLAIM_E_CONFLICT);
        assert_text(error.text, "cleaning failed at 1970-01-01 00:00:00 UTC: no proof");
}

/* Where Placement cannot reserve a device, Nova gives it to the next guest, and no unit runs. */
static void test_another_guest_starts_where_nothing_is_reserved(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *other = NULL, *again = NULL, *ended = NULL;
        const HostDomain *guest, *stranger;
        UncleanDevice row;
        Host host;

        open_host(fixture, &host);
        guest = add_guest(&host, 'g');
        stranger = add_guest(&host, 'h');
        host.facts.n_domains = 0;
        claims_set_rules(fixture->claims, &(ClaimsRules){ .gives_unclean = true });
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &first, &ended, NULL),
                         CLAIM_DONE);
        /* A living claim keeps its device. */
        assert_int_equal(claims_prepare(fixture->claims, stranger, NULL, &other, &ended, NULL),
                         CLAIM_E_CONFLICT);
        assert_int_equal(claims_release(fixture->claims, first->id, "", NULL), 0);
        assert_int_equal(claims_prepare(fixture->claims, stranger, NULL, &other, &ended, NULL),
                         CLAIM_DONE);
        row = find_row(fixture, A);
        assert_int_equal(row.claim, other->id);
        assert_string_equal(row.consumer.text, stranger->uuid.text);
        /* A unit that runs keeps the device from each guest. */
        assert_int_equal(claims_release(fixture->claims, other->id, "", NULL), 0);
        set_state(fixture, &row, UNCLEAN_HELD, UNCLEAN_DIRTY);
        assert_int_equal(claims_prepare(fixture->claims, guest, NULL, &again, &ended, NULL),
                         CLAIM_E_CONFLICT);
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_a_claim_marks_its_devices,
               test_no_claim_gets_an_unclean_device, test_a_withdrawn_claim_leaves_no_mark,
               test_a_running_guest_keeps_an_unclean_device,
               test_a_guest_starts_with_its_own_device_only,
               test_another_guest_starts_where_nothing_is_reserved)
