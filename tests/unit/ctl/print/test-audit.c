/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/audit.h"

#include <locale.h>

#include "base/allocation.h"
#include "tests/fixtures/ctl-capture.h"

#define UUID "b5ef2f5c-74c4-4a0a-8dd7-9f6a8f0d3b11"
#define FINDING(outcome, error)                                                          \
        "{'findings': [{'type': 'leaked', 'remedy': 'release-share', 'consumer': '" UUID \
        "', 'text': 'it leaks', 'outcome': '" outcome "', 'error': '" error              \
        "'}], 'holding': 3, 'in_flight': 1}"

static void test_findings(void **state)
{
        static const PrintRow rows[] = {
                { "{'findings': [], 'holding': 3, 'in_flight': 0}",
                  .has = { "Placement, claims and guests agree: 3 consumers.\n" } },
                { FINDING("found", ""),
                  .has = { "release-share", "it leaks", "Skipped 1 recent consumer." } },
                { FINDING("healed", ""), .has = { "done", "it leaks", UUID } },
                { FINDING("failed", "refused"), .has = { "failed", "it leaks: refused" } },
                { "{'findings': [{'text': 'it leaks', 'evidence': 'it ended'}]}",
                  .has = { "it leaks; evidence: it ended" } },
                { "{'findings': [{'type': 'missing'}, {'type': 'unallocated'}]}",
                  .has = { "missing", "unallocated" } },
                /* the names of release 0.2 */
                { "{'findings': [{'type': 'untold'}, {'type': 'unheld'}]}",
                  .has = { "missing", "unallocated" }, .lacks = { "untold", "unheld" } },
                /* a document of an older or newer agent */
                { "{}", .has = { "agree: 0 consumers" } },
        };
        static const int exits[] = { EXIT_SUCCESS,       CTL_AUDIT_FINDINGS, CTL_AUDIT_REPAIRED,
                                     CTL_AUDIT_FINDINGS, CTL_AUDIT_FINDINGS, CTL_AUDIT_FINDINGS,
                                     CTL_AUDIT_FINDINGS, EXIT_SUCCESS };

        check_rows(ctl_audit_print, rows, ARRAY_SIZE(rows));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(json_done) json_t *document = parse_quoted(rows[i].document);

                assert_int_equal(ctl_audit_exit(document), exits[i]);
        }
}

#define CONSUMERS                                                                                \
        "{'consumers': [{'consumer': '" UUID "', 'project': '" CONSUMER_UNKNOWN_ID "', 'guest':" \
        " 'vm1', 'claim': 7, 'here': [{'provider': 'p', 'name': 'host1', 'resources':"           \
        " {'VCPU': 2}}, {'provider': 'q', 'name': 'gpu', 'resources': {'VGPU': 1}}],"            \
        " 'elsewhere': [{'provider': 'far', 'name': '', 'resources': {'DISK_GB': 5}}],"          \
        " 'devices': ['0000:41:00.0', '0000:42:00.0', '0000:41:00.0'], 'cpus': '2,8'}, {}]}"

static void test_consumers(void **state)
{
        static const PrintRow rows[] = {
                { CONSUMERS,
                  .has = { "vm1", "7", UUID "  -        vm1", "VCPU=2 of host1; VGPU=1 of gpu" } },
                { CONSUMERS,
                  .has = { "DISK_GB=5 of far", "0000:41:00.0 (2), 0000:42:00.0", "2,8" } },
                { "{}", .text = "No consumer has allocations on this host in Placement.\n" },
        };

        check_rows(ctl_consumers_print, rows, ARRAY_SIZE(rows));
}

TEST_MAIN(test_findings, test_consumers)
