/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "formats/claim-json.h"

#include <limits.h>

#include "tests/unit/test.h"

static void test_whole(void **state)
{
        Uuid provider, mdev;
        char device[] = "pci_0000_41_00_0", address[] = "0000:41:00.0", type[] = "nvidia-35",
             suffix[] = "_1", card[] = "0000:05:00.0", none[] = "";
        HostMdev there;
        HostPci pci = { .name = "pci_0000_05_00_0", .address = card, .managed = false };
        HostDomain domain = { .name = "web-1" };
        HostFacts facts = { .mdevs = &there,
                            .n_mdevs = 1,
                            .pci = &pci,
                            .n_pci = 1,
                            .domains = &domain,
                            .n_domains = 1 };
        _cleanup_(claim_freep) Claim *claim = NULL;
        _cleanup_(json_decrefp) json_t *made = NULL, *blind = NULL;
        _cleanup_free_ char *text = NULL;

        assert_int_equal(uuid_from_text("11111111-1111-4111-8111-111111111111", &provider), 0);
        assert_int_equal(uuid_from_text("22222222-2222-4222-8222-222222222222", &mdev), 0);
        domain.uuid = mdev;
        there = (HostMdev){ .uuid = mdev, .device = device, .type = type };
        assert_int_equal(claim_new(&claim), 0);
        claim->id = 7;
        claim->consumer = mdev;
        claim->state = CLAIM_STATE_CONFIRMED;
        claim->created_usec = 5;
        assert_int_equal(claim_add(claim, &provider, "host", "_1", "VCPU", 2), 0);
        assert_int_equal(
                claim_add_device(claim, &(ClaimDevice){ provider, suffix, device, address, type,
                                                        mdev, (char *)"10de:20b0 1", false }),
                0);
        assert_int_equal(claim_add_device(claim, &(ClaimDevice){ provider, none, device, card, none,
                                                                 UUID_NULL, NULL, false }),
                         0);
        made = claim_to_json(claim, &facts);
        text = json_dumps(made, JSON_COMPACT);
        assert_string_equal(
                text,
                "{\"id\":7,\"consumer\":\"22222222-2222-4222-8222-222222222222\",\"guest\":\"web-1\",\"of\":\"\",\"state\":\"confirmed\",\"resize_target\":false,\"project\":\"\",\"user\":\"\",\"created_usec\":5,\"expires_usec\":0,\"ended_usec\":0,\"end_reason\":\"\","
                "\"allocations\":[{\"provider\":\"11111111-1111-4111-8111-111111111111\",\"name\":\"host\",\"resources\":{\"VCPU\":2}}],"
                "\"devices\":[{\"provider\":\"11111111-1111-4111-8111-111111111111\",\"group\":\"_1\",\"class\":\"\",\"device\":\"pci_0000_41_00_0\",\"address\":\"0000:41:00.0\",\"identity\":\"10de:20b0 1\",\"mdev_type\":\"nvidia-35\",\"mdev\":\"22222222-2222-4222-8222-222222222222\",\"exists\":true,\"managed\":false},"
                "{\"provider\":\"11111111-1111-4111-8111-111111111111\",\"group\":\"\",\"class\":\"\",\"device\":\"pci_0000_41_00_0\",\"address\":\"0000:05:00.0\",\"identity\":\"\",\"mdev_type\":\"\",\"mdev\":\"\",\"exists\":true,\"managed\":false}],"
                "\"boot_id\":\"\",\"consumer_type\":\"\",\"cells\":[],\"cpus\":[],\"held\":\"\",\"mappings\":{\"_1\":[\"11111111-1111-4111-8111-111111111111\"]},\"beyond_domain\":{}}");

        /* The consumer is a migration, and the guest is the server's. */
        json_decref(made);
        claim->guest = mdev;
        claim->consumer = provider;
        made = claim_to_json(claim, &facts);
        assert_string_equal(json_string_value(json_object_get(made, "guest")), "web-1");
        assert_string_equal(json_string_value(json_object_get(made, "of")), mdev.text);

        /* Before the first poll no mdev is known, and a card can have a driver. */
        blind = claim_to_json(claim, NULL);
        assert_string_equal(json_string_value(json_object_get(blind, "guest")), "");
        assert_true(json_is_false(
                json_object_get(json_array_get(json_object_get(blind, "devices"), 0), "exists")));
        assert_true(json_is_true(
                json_object_get(json_array_get(json_object_get(blind, "devices"), 1), "managed")));
}

/* A claim that was created from a guest with VCPU:2,PCPU:2, and its amounts in Placement. */
static void test_beyond_the_domain(void **state)
{
        static const struct {
                const char *type;
                bool was_read;
                ClaimWriteState write_state;
                uint64_t vcpu, pcpu, memory_mb;
                const char *expected;
        } rows[] = {
                { "LIBVIRT", true, CLAIM_WRITE_NONE, 2, 2, 64, "{}" },
                { "LIBVIRT", true, CLAIM_WRITE_NONE, 2, 3, 64, "{\"PCPU\":1}" },
                { "LIBVIRT", true, CLAIM_WRITE_NONE, 4, 2, 96, "{\"MEMORY_MB\":32,\"VCPU\":2}" },
                { "LIBVIRT", true, CLAIM_WRITE_NONE, 0, 4, 64, "{}" }, /* after a reshape */
                { "LIBVIRT", true, CLAIM_WRITE_NONE, 1, 4, 64, "{\"PCPU\":1}" },
                { "LIBVIRT", true, CLAIM_WRITE_WRITTEN, 2, 3, 64, "{}" },
                { "LIBVIRT", false, CLAIM_WRITE_NONE, 2, 3, 64, "{}" },
                { "INSTANCE", true, CLAIM_WRITE_NONE, 2, 3, 64, "{}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                _cleanup_(json_decrefp) json_t *made = NULL;
                _cleanup_free_ char *text = NULL;
                Uuid host;

                assert_int_equal(uuid_from_text("11111111-1111-4111-8111-111111111111", &host), 0);
                assert_int_equal(claim_new(&claim), 0);
                free(claim->request);
                free(claim->consumer_type);
                claim->request = strdup("resources=MEMORY_MB:64,PCPU:2,VCPU:2&required=A");
                claim->consumer_type = strdup(rows[i].type);
                claim->was_read = rows[i].was_read;
                claim->write_state = rows[i].write_state;
                assert_int_equal(claim_add(claim, &host, "host", "", "VCPU", rows[i].vcpu), 0);
                assert_int_equal(claim_add(claim, &host, "host", "", "PCPU", rows[i].pcpu), 0);
                assert_int_equal(
                        claim_add(claim, &host, "host", "", "MEMORY_MB", rows[i].memory_mb), 0);
                made = claim_to_json(claim, NULL);
                text = json_dumps(json_object_get(made, "beyond_domain"), JSON_COMPACT);
                if (strcmp(text, rows[i].expected) != 0)
                        fail_msg("row %zu: %s", i, text);
        }
}

/* The order is that of numbers in names, independent of uuids. */
static void test_allocations_stand_by_name(void **state)
{
        static const char *const names[] = { "host_pci_0000_81_00_0", "host_NUMA10", "host",
                                             "host_NUMA9", "host_pci_0000_41_00_0" },
                                 *const sorted[] = { "host", "host_NUMA9", "host_NUMA10",
                                                     "host_pci_0000_41_00_0",
                                                     "host_pci_0000_81_00_0" };
        _cleanup_(claim_freep) Claim *claim = NULL;
        _cleanup_(json_decrefp) json_t *made = NULL;

        assert_int_equal(claim_new(&claim), 0);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                Uuid provider = uuid_make_child(&claim->consumer, names[i]);

                assert_int_equal(claim_add(claim, &provider, names[i], "", "VCPU", i + 1), 0);
        }
        made = claim_to_json(claim, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
                assert_string_equal(
                        json_string_value(json_object_get(
                                json_array_get(json_object_get(made, "allocations"), i), "name")),
                        sorted[i]);
}

static unsigned n_formats_left = UINT_MAX; /* calls of cpu_set_format() until it fails */

/* Fails on demand, as if memory ran out. Linked with --wrap. */
char *__real_cpu_set_format(const CpuSet *set);
char *__wrap_cpu_set_format(const CpuSet *set);
char *__wrap_cpu_set_format(const CpuSet *set)
{
        return n_formats_left-- == 0 ? NULL : __real_cpu_set_format(set);
}

/* Without memory for a member there is no document, instead of one without the member. */
static void test_no_document_if_memory_runs_out(void **state)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        assert_int_equal(claim_new(&claim), 0);
        n_formats_left = 0;
        assert_null(claim_to_json(claim, NULL));
        n_formats_left = UINT_MAX;
}

/* A guest without a domain is named by its process or unit. */
static void test_process(void **state)
{
        static const char *const rows[][2] = {
                { "process 12, started at 3 of boot 0123", "process 12" },
                { "unit /machine.slice/machine-a.scope", "unit /machine.slice/machine-a.scope" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                _cleanup_(json_decrefp) json_t *made = NULL;

                assert_int_equal(claim_new(&claim), 0);
                free(claim->process);
                claim->process = strdup(rows[i][0]);
                made = claim_to_json(claim, NULL);
                assert_string_equal(json_string_value(json_object_get(made, "guest")), rows[i][1]);
        }
}

#define VM "11111111-1111-4111-8111-111111111111"

static void check_event(const char *consumer, const char *guest, const char *devices,
                        const char *expected)
{
        HostDomain domain = { .name = "web-1" };
        const HostFacts facts = { .domains = &domain, .n_domains = 1 };
        char kind[] = "claimed", author[] = "root \x1b[m", none[] = "", allocations[] = "[{}]";
        Event event = { .id = 3,
                        .usec = 5,
                        .uid = -1,
                        .claim = 7,
                        .kind = kind,
                        .author = author,
                        .consumer = (char *)consumer,
                        .guest = (char *)guest,
                        .allocations = allocations,
                        .devices = (char *)devices,
                        .reason = none };
        _cleanup_free_ char *text = NULL;
        json_t *made;

        assert_int_equal(uuid_from_text(VM, &domain.uuid), 0);
        made = event_to_json(&event, &facts);
        assert_non_null(made);
        text = json_dumps(made, JSON_COMPACT);
        json_decref(made);
        assert_string_equal(text, expected);
}

#define HEAD                                                                        \
        "{\"id\":3,\"usec\":5,\"event\":\"claimed\",\"author\":\"root \\u001B[m\"," \
        "\"uid\":-1,\"claim\":7,"

static void test_events(void **state)
{
        check_event(VM, "", "[]",
                    HEAD "\"consumer\":\"" VM "\",\"guest\":\"web-1\",\"of\":\"\","
                         "\"allocations\":[{}],\"devices\":[],\"reason\":\"\"}");
        /* the event of a migration belongs to its guest */
        check_event("x", VM, "[]",
                    HEAD "\"consumer\":\"x\",\"guest\":\"web-1\",\"of\":\"" VM "\","
                         "\"allocations\":[{}],\"devices\":[],\"reason\":\"\"}");
}

/* A database with changed contents. */
static void test_damaged_events(void **state)
{
        static const char *const devices[] = { "", "{}", "[", "[\"\xff\"]", "7", "null" };

        for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
                check_event("", "", devices[i],
                            HEAD "\"consumer\":\"\",\"guest\":\"\",\"of\":\"\","
                                 "\"allocations\":[{}],\"devices\":[],\"reason\":\"\"}");
}

TEST_MAIN(test_whole, test_beyond_the_domain, test_allocations_stand_by_name,
          test_no_document_if_memory_runs_out, test_process, test_events, test_damaged_events)
