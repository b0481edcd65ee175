/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/claims.h"

#include <locale.h>

#include "tests/fixtures/ctl-capture.h"

#define ALLOCATIONS                                                                   \
        "'allocations': [{'provider': 'r', 'name': 'host1', 'resources': {'VCPU': 2," \
        " 'MEMORY_MB': 512}}, {'provider': 'g', 'name': 'gpu', 'resources': {'VGPU': 1}}]"
#define CLAIM                                                                                   \
        "{'id': 7, 'consumer': '11111111-2222-4333-8444-555555555555', 'state': 'claimed',"     \
        " 'created_usec': 1699999940000000, 'expires_usec': 1700000240000000, 'ended_usec': 0," \
        " 'end_reason': '', " ALLOCATIONS "}"
#define TARGET                                                                    \
        "{'id': 8, 'consumer': 'x', 'state': 'confirmed', 'resize_target': true," \
        " 'created_usec': 0, 'expires_usec': 0, 'allocations': []}"
#define ENDED                                                                               \
        "{'id': 5, 'consumer': 'y', 'state': 'released', 'created_usec': 1699990000000000," \
        " 'ended_usec': 1699996400000000, 'end_reason': 'gone \\u001b[m'}"
#define NAMED                                                                                 \
        "{'id': 9, 'consumer': '11111111-2222-4333-8444-555555555555', 'state': 'confirmed'," \
        " 'guest': 'web-1', 'created_usec': 0, 'expires_usec': 0, 'allocations': []}"
#define CLAIMS(claims) "{'claims': [" claims "]}"

static void print(const json_t *document, CtlPage *page)
{
        ctl_claims_print(document, false, page);
}

static void print_history(const json_t *document, CtlPage *page)
{
        ctl_claims_print(document, true, page);
}

static void test_pages(void **state)
{
        static const PrintRow rows[] = {
                { CLAIMS(CLAIM "," TARGET),
                  .text =
                          "ID  CONSUMER                              STATE              CREATED   EXPIRES    "
                          "PROVIDER  RESOURCES\n"
                          " 7  11111111-2222-4333-8444-555555555555  claimed            1min ago  4min left  "
                          "host1     VCPU=2, MEMORY_MB=512\n"
                          "                                                                                  "
                          "gpu       VGPU=1\n"
                          " 8  x                                     confirmed, resize  -         -\n"
                          "\n2 claims.\n" },
                { CLAIMS(CLAIM), .has = { " 7 11111111… claimed 4min left host1" },
                  .lacks = { "CREATED" }, .width = 80 },
                { CLAIMS(CLAIM), .has = { "11111111-2222-4333-8444-555555555555" }, .width = 80,
                  .all = true },
                /* guests stand by name */
                { CLAIMS(NAMED "," TARGET),
                  .has = { "ID  GUEST  CONSUMER ",
                           " 9  web-1  11111111-2222-4333-8444-555555555555  confirmed",
                           " 8  -      x  " } },
                { CLAIMS(NAMED "," CLAIM),
                  .has = { "ID GUEST     STATE", " 9 web-1     confirmed", " 7 11111111… claimed" },
                  .width = 80 },
                { CLAIMS(""), .text = "No claims.\n" },
                { CLAIMS(""), .text = "", .no_legend = true },
        },
        ended[] = { { CLAIMS(CLAIM "," ENDED), .has = { "ENDED", "1h ago", "gone \\x1b[m" },
                      .lacks = { "EXPIRES" } } },
        made[] = { { "{'id': 7, " ALLOCATIONS "}",
                     .text = "Claim 7\n"
                             "PROVIDER  RESOURCES\n"
                             "host1     VCPU=2, MEMORY_MB=512\n"
                             "gpu       VGPU=1\n"
                             "\n"
                             "When the guest runs, keep it: computectl confirm 7\n"
                             "When it is gone, give it back: computectl release 7\n" } };

        check_rows(print, rows, ARRAY_SIZE(rows));
        check_rows(print_history, ended, ARRAY_SIZE(ended));
        check_rows(ctl_claim_print, made, ARRAY_SIZE(made));
}

/* The ids that are left. */
static void assert_found(const char *what, const char *ids)
{
        _cleanup_(json_done) json_t *document = parse_quoted(CLAIMS(
                "{'id': 1, 'consumer': 'aaaaaaaa-2222-4333-8444-555555555555', 'devices': [{"
                "'device': 'pci_1', 'address': '0000:41:00.0', 'mdev': 'bbbbbbbb-2222-4333-8444-555555555555'"
                "}], 'cells': [{'cell': 0, 'host_cell': 1}], 'cpus': [{'vcpu': 0, 'cpus': '4-6'}],"
                " 'held': '4-6,20'},"
                "{'id': 2, 'consumer': 'aaaaaaaa-2222-4333-8444-555555555555', 'resize_target': true,"
                " 'devices': [], 'cells': [], 'cpus': [], 'held': ''},"
                "{'id': 3, 'consumer': 'c', 'guest': 'web-1', 'devices': [{'device': 'pci_1',"
                " 'address': '0000:41:00.0', 'mdev': ''}], 'allocations': [{'name': 'host_pci_1',"
                " 'provider': 'cccccccc-2222-4333-8444-555555555555'}]}"));
        char found[16] = "";
        const json_t *claim;
        size_t i;

        ctl_claims_find(document, what);
        json_array_foreach(json_object_get(document, "claims"), i, claim)
                snprintf(found + strlen(found), sizeof(found) - strlen(found), "%d",
                         (int)json_integer_value(json_object_get(claim, "id")));
        if (strcmp(found, ids) != 0)
                fail_msg("%s: \"%s\"", what, found);
}

static void test_finding(void **state)
{
        static const char *const cases[][2] = {
                { "aaaaaaaa-2222-4333-8444-555555555555", "12" },
                { "AAAAAAAA-2222-4333-8444-555555555555", "12" },
                { "bbbbbbbb-2222-4333-8444-555555555555", "1" },
                { "web-1", "3" },
                { "pci_1", "13" },
                { "host_pci_1", "3" },
                { "CCCCCCCC-2222-4333-8444-555555555555", "3" },
                { "0000:41:00.0", "13" },
                { "cell:1", "1" },
                { "cell:0", "" },
                { "cpu:5", "1" },
                { "cpu:20", "1" },
                { "cpu:7", "" },
                { "cpu:", "" },
                { "cpu:5x", "" },
                { "pci_2", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_found(cases[i][0], cases[i][1]);
}

TEST_MAIN_AFTER(setlocale(LC_CTYPE, "C.UTF-8"), NULL, NULL, test_pages, test_finding)
