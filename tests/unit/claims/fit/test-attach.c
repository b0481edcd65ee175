/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The verdicts about the devices of a server that starts. */

#include "claims/fit/attach.h"

#include "claims/fit/device-choice.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"
#include "tests/unit/test.h"

#define HOST                                                                                  \
        "host VCPU=8; host_a<host VGPU=3; host_b<host VGPU=2; host_0000:05:00.0<host NIC=2; " \
        "host_0000:06:00.0<host NIC=1; host_odd<host ODD=4; host_gone<host GONE=1"

/* A host with two GPUs and two network cards. The first card has two functions. */
typedef struct Host {
        FactsFixture gpus;
        HostPci pci[3];
        HostFunction functions[3];
} Host;

static void make_host(Host *host)
{
        static const char *const addresses[] = { "0000:05:00.1", "0000:05:00.2", "0000:06:00.0" };

        make_facts(&host->gpus);
        for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
                host->pci[i] = (HostPci){ .name = addresses[i],
                                          .address = addresses[i],
                                          .provider = i < 2 ? "0000:05:00.0" : "0000:06:00.0",
                                          .resource_class = "NIC",
                                          .cell = HOST_CELL_NONE,
                                          .identity = "8086:1572" };
                host->functions[i] = (HostFunction){ .address = addresses[i],
                                                     .physical_function = "",
                                                     .identity = "8086:1572" };
        }
        host->gpus.facts.pci = host->pci;
        host->gpus.facts.n_pci = ARRAY_SIZE(addresses);
        host->gpus.facts.functions = host->functions;
        host->gpus.facts.n_functions = ARRAY_SIZE(addresses);
}

/* Adds the devices of a text such as "host_a:1 host_0000:05:00.0=0000:05:00.1". An mdev is one
 * letter after a colon, a PCI function follows "=". A function with "!" had another identity. */
static void add_devices(Claim *claim, const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        char *save = NULL;

        for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
                char *equals = strchr(word, '='), *colon = strrchr(word, ':'), name[2] = "";
                ClaimDevice device = { .suffix = "", .name = "", .address = "", .mdev_type = "" };

                *(equals ? equals : colon) = '\0';
                device.provider = make_uuid(word);
                if (equals) {
                        bool other = equals[1] == '!';

                        device.name = device.address = equals + 1 + other;
                        device.identity = other ? "8086:ffff" : "8086:1572";
                } else {
                        name[0] = word[strlen("host_")];
                        device.name = name;
                        device.mdev_type = "t";
                        device.mdev = make_mdev(colon[1]);
                }
                assert_int_equal(claim_add_device(claim, &device), 0);
        }
}

/* Makes a claim of "REQUEST|devices"; a request of "GUEST" is a claim that was made of a guest. */
static Claim *make_claim(const char *text, const Consumer *held)
{
        _cleanup_free_ char *copy = strdup(text);
        char *bar = strchr(copy, '|');
        Claim *claim;

        *bar = '\0';
        assert_int_equal(claim_new(&claim), 0);
        claim->id = 7;
        free(claim->request);
        claim->request = strdup(copy);
        if (strcmp(copy, "GUEST") == 0) {
                free(claim->consumer_type);
                claim->consumer_type = strdup(CLAIM_TYPE_GUEST);
        }
        for (size_t i = 0; held && i < held->n_allocations; i++)
                for (size_t j = 0; j < held->allocations[i].resources.n_items; j++)
                        assert_int_equal(
                                claim_add(claim, &held->allocations[i].provider, "", "",
                                          held->allocations[i].resources.items[j].resource_class,
                                          held->allocations[i].resources.items[j].amount),
                                0);
        add_devices(claim, bar + 1);
        return claim;
}

static const struct {
        const char *classes, *placed, *claim; /* placed NULL: Placement is away; claim NULL: none */
        AttachVerdict verdict;
        const char *words;
} cases[] = {
        { "NIC", "host VCPU=1; host_0000:05:00.0 NIC=1", NULL, ATTACH_MAKE, "" },
        { "NIC", "host VCPU=1", NULL, ATTACH_E_NOT_PLACED,
          "The server has no allocation of NIC on this host" },
        { "NIC", "elsewhere NIC=1", NULL, ATTACH_E_NOT_PLACED, "" },
        { "NIC VGPU", "host_0000:05:00.0 NIC=1", NULL, ATTACH_E_NOT_PLACED, "VGPU" },
        { "ODD", "host_odd ODD=1", NULL, ATTACH_E_UNKNOWN_CLASS,
          "ODD: host_odd counts no device of this host" },
        { "GONE", "host_gone GONE=1", NULL, ATTACH_E_UNAVAILABLE,
          "GONE: the device of host_gone is missing" },
        { "NIC", "host_0000:06:00.0 NIC=1", NULL, ATTACH_E_UNAVAILABLE,
          "NIC: host_0000:06:00.0 is withheld" },
        /* The claim of the server keeps its device, also on a withheld provider. */
        { "NIC", "host_0000:06:00.0 NIC=1", "GUEST|host_0000:06:00.0=0000:06:00.0", ATTACH_KEEP,
          "" },
        { "NIC", "host_0000:05:00.0 NIC=2",
          "|host_0000:05:00.0=0000:05:00.1 host_0000:05:00.0=0000:05:00.2", ATTACH_KEEP, "" },
        { "VGPU", "host_a VGPU=1", "resources=VGPU:1|host_a:1", ATTACH_KEEP, "" },
        /* Devices of classes that are not asked do not count. */
        { "NIC", "host_a VGPU=1; host_0000:05:00.0 NIC=1", "GUEST|host_0000:05:00.0=0000:05:00.1",
          ATTACH_KEEP, "" },
        { "NIC", "host_0000:05:00.0 NIC=1", "GUEST|host_a:1 host_0000:05:00.0=0000:05:00.1",
          ATTACH_KEEP, "" },
        /* Another amount, another provider, or no device. */
        { "NIC", "host_0000:05:00.0 NIC=2", "GUEST|host_0000:05:00.0=0000:05:00.1", ATTACH_REPLACE,
          "" },
        { "NIC", "host_0000:05:00.0 NIC=1", "GUEST|host_0000:06:00.0=0000:06:00.0", ATTACH_REPLACE,
          "" },
        { "NIC", "host_0000:05:00.0 NIC=1", "|", ATTACH_REPLACE, "" },
        { "VGPU", "host_a VGPU=1", "GUEST|host_a:1 host_b:4", ATTACH_REPLACE, "" },
        { "NIC", "host_0000:05:00.0 NIC=1", "resources=VCPU:1|", ATTACH_E_CONFLICT,
          "Claim 7 of another program has other devices than the allocations" },
        /* A lost device counts by its provider, and is no longer attached. */
        { "NIC", "host_0000:05:00.0 NIC=1", "GUEST|host_0000:05:00.0=0000:05:00.9",
          ATTACH_E_UNAVAILABLE, "Device 0000:05:00.9 of claim 7 is missing" },
        { "NIC", "host_0000:05:00.0 NIC=1", "GUEST|host_0000:05:00.0=!0000:05:00.1",
          ATTACH_E_UNAVAILABLE, "was replaced: it is 8086:1572, and was 8086:ffff" },
        /* Placement is away. */
        { "NIC", NULL, "GUEST|host_0000:05:00.0=0000:05:00.1", ATTACH_KEEP, "" },
        { "NIC VGPU", NULL, "GUEST|host_0000:05:00.0=0000:05:00.1", ATTACH_E_NOT_PLACED, "VGPU" },
        { "NIC", NULL, NULL, ATTACH_E_NOT_PLACED, "no claim with a device of NIC" },
        { "NIC", NULL, "GUEST|host_0000:05:00.0=!0000:05:00.1", ATTACH_E_UNAVAILABLE, "replaced" },
};

static void test_verdicts(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(host_view_freep) HostView *view = make_view(HOST);
                _cleanup_(consumer_freep) Consumer *placed =
                        cases[i].placed ? make_holding("server", cases[i].placed) : NULL;
                _cleanup_(claim_freep) Claim *claim =
                        cases[i].claim ? make_claim(cases[i].claim, placed) : NULL;
                _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
                _cleanup_free_ char *copy = strdup(cases[i].classes);
                Error error = ERROR_NULL;
                AttachVerdict verdict;
                char *save = NULL;
                size_t index;
                Uuid withheld[] = { make_uuid("host_0000:06:00.0"), make_uuid("host_gone") };
                Host host;

                make_host(&host);
                for (size_t j = 0; j < ARRAY_SIZE(withheld); j++) {
                        assert_true(host_view_find(view, &withheld[j], &index));
                        view->tree->providers[index]->inventories[0].inventory.reserved = 1;
                }
                for (char *word = strtok_r(copy, " ", &save); word;
                     word = strtok_r(NULL, " ", &save))
                        assert_int_equal(string_set_add(&classes, word), 1);
                verdict = attach_decide(&(AttachInput){ .facts = &host.gpus.facts,
                                                        .view = view,
                                                        .node = "host",
                                                        .classes = &classes,
                                                        .placed = placed,
                                                        .claim = claim },
                                        &error);
                if (verdict != cases[i].verdict || !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: verdict %d, \"%s\"", i, verdict, error.text);
        }
}

static void test_class_of_a_device(void **state)
{
        const ClaimDevice devices[] = {
                { .name = "a", .address = "", .mdev_type = "t", .mdev = make_mdev('1') },
                { .name = "a", .address = "", .mdev_type = "other", .mdev = make_mdev('2') },
                { .name = "x", .address = "0000:06:00.0", .mdev_type = "" },
                { .name = "x", .address = "0000:06:00.0", .mdev_type = "nvidia-1" },
                { .name = "x", .address = "0000:07:00.0", .mdev_type = "" },
        };
        static const char *const wanted[] = { "VGPU", "", "NIC", "", "" };
        Host host;

        make_host(&host);
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
                assert_string_equal(device_class_of(&host.gpus.facts, &devices[i]), wanted[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_verdicts),
                cmocka_unit_test(test_class_of_a_device),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
