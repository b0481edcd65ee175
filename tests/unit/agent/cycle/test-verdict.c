/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The verdict for single and combined problems. */

#include "agent/cycle/verdict.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#include <string.h>

#define HOST "host VCPU=160 MEMORY_MB=4096; gpu<host VGPU=4; gone<host VGPU=4/4"

/* The problems of a case, with the expected verdict. Zeros mean no problem. */
typedef struct Case {
        const char *summary; /* expected summary */
        const char *reasons; /* expected reasons as "check state", separated by "; " */
        SyncState sync;
        bool not_polled;
        const char *sync_error, *hypervisor_error, *claim_error, *part_error;
        uint64_t n_differences, vcpus, vgpus, vgpus_gone;
        bool missing, held, undone;
        PendingWrites pending_writes;
        const char *pending_writes_error;
        CordonView cordons;
        HealthView health;
        const char *unclean; /* state of the device in words; NULL: it is clean */
        size_t n_disagreements, n_findings;
        bool config_warning;
} Case;

static const Case cases[] = {
        { "Placement is equal to this host", "", .sync = SYNC_SYNCED },
        { "standalone, nothing is published", "", .sync = SYNC_STANDALONE },
        { "nova-compute reports this host to Placement", "", .sync = SYNC_LEFT_TO_NOVA },
        { "a change is not published yet", "placement pending", .sync = SYNC_PENDING },
        { "the host was not polled yet", "hypervisor pending", .sync = SYNC_PENDING,
          .not_polled = true },
        { "Placement cannot be used", "placement degraded", .sync = SYNC_OFFLINE,
          .sync_error = "no route" },
        { "Placement is not equal to this host", "placement degraded", .sync = SYNC_STALE,
          .sync_error = "403" },
        { "the host cannot be polled", "hypervisor degraded", .sync = SYNC_SYNCED,
          .hypervisor_error = "gone" },
        { "the host cannot be polled", "hypervisor degraded", .sync = SYNC_STANDALONE,
          .not_polled = true, .hypervisor_error = "gone" },
        { "new claims are refused", "service degraded", .sync = SYNC_SYNCED,
          .claim_error = "disk full" },
        /* Claims above the capacity; a withheld device does not count. */
        { "Placement is equal to this host", "", .sync = SYNC_SYNCED, .vcpus = 160,
          .vgpus_gone = 1 },
        { "claims exceed the capacity of the host", "claims degraded", .sync = SYNC_SYNCED,
          .vcpus = 324 },
        { "claims exceed the capacity of the host", "claims degraded", .sync = SYNC_STANDALONE,
          .vcpus = 161 },
        { "claims exceed the capacity of the host", "claims degraded", .sync = SYNC_SYNCED,
          .vcpus = 324, .vgpus = 5 },
        /* Devices */
        { "Placement is equal to this host, but a device is withheld", "devices warning",
          .sync = SYNC_SYNCED, .missing = true },
        { "Placement is equal to this host, but a device is withheld", "devices warning",
          .sync = SYNC_SYNCED, .held = true, .vgpus_gone = 1 },
        { "a claimed device is missing (and 1 more)", "devices degraded; devices warning",
          .sync = SYNC_SYNCED, .missing = true, .vgpus_gone = 1 },
        { "Placement is equal to this host, but a device is cordoned", "devices warning",
          .sync = SYNC_SYNCED, .cordons.by_persons = "gpu by ann" },
        { "Placement is equal to this host, but a health rule withholds a device (and 1 more)",
          "devices warning; devices warning", .sync = SYNC_SYNCED,
          .cordons.by_persons = "gpu by ann", .cordons.by_rules = "gpu by rule a" },
        { "Placement is equal to this host, but a health rule reports a device", "devices warning",
          .sync = SYNC_SYNCED, .health.reported = "gpu, rule a: line" },
        { "Placement is equal to this host, but the health of devices is not watched completely",
          "health warning", .sync = SYNC_SYNCED, .health.error = "no journal" },
        { "standalone, nothing is published, but the host is cordoned", "service warning",
          .sync = SYNC_STANDALONE, .cordons.host = "by ann" },
        { "Placement is equal to this host", "devices ok", .sync = SYNC_SYNCED,
          .unclean = "not clean" },
        { "Placement is equal to this host, but a device is cordoned",
          "devices warning; devices ok", .sync = SYNC_SYNCED, .unclean = "not clean",
          .cordons.by_persons = "gone by compute-agent" },
        /* Parts of the host that are not reported */
        { "not all of this host is reported", "host degraded", .sync = SYNC_STANDALONE,
          .part_error = "guest x cannot be read" },
        { "Placement is not equal to this host", "placement degraded", .sync = SYNC_STALE,
          .sync_error = "guest x", .part_error = "guest x" },
        /* Pending work with Placement */
        { "not all claims are reported to Placement yet", "placement pending", .sync = SYNC_SYNCED,
          .pending_writes = { .n_writes = 1 } },
        { "not all claims are reported to Placement yet", "placement pending",
          .sync = SYNC_LEFT_TO_NOVA, .pending_writes = { .n_moves = 1 } },
        { "not all claims are reported to Placement yet", "placement degraded", .sync = SYNC_SYNCED,
          .pending_writes = { .n_removals = 1 }, .pending_writes_error = "forbidden" },
        { "Placement is equal to this host", "", .sync = SYNC_SYNCED,
          .pending_writes_error = "long ago" },
        { "Placement cannot be used", "placement degraded", .sync = SYNC_OFFLINE, .sync_error = "x",
          .pending_writes = { .n_writes = 1 } },
        { "standalone, nothing is published", "", .sync = SYNC_STANDALONE,
          .pending_writes = { .n_writes = 1 } },
        { "Placement is equal to this host, but some guests have no allocations", "claims warning",
          .sync = SYNC_SYNCED, .pending_writes = { .n_unallocated = 320 } },
        { "standalone, nothing is published", "", .sync = SYNC_STANDALONE,
          .pending_writes = { .n_unallocated = 320 } },
        /* A retired host has nothing in Placement, which is correct. */
        { "Placement has no provider of this host, but this is expected, because the host is retired",
          "placement warning", .sync = SYNC_RETIRED, .cordons.host = "by ann" },
        /* Other writers */
        { "nova-compute reports this host to Placement, but with differences from this agent",
          "placement warning", .sync = SYNC_LEFT_TO_NOVA, .n_differences = 3 },
        { "another writer changes this host's tree in Placement", "second reporter degraded",
          .sync = SYNC_SYNCED, .undone = true },
        { "Placement is equal to this host, but claims and guests disagree (and 1 more)",
          "guests warning; audit warning", .sync = SYNC_SYNCED, .n_disagreements = 1,
          .n_findings = 2 },
        { "Placement is equal to this host, but the configuration has warnings",
          "configuration warning", .sync = SYNC_SYNCED, .config_warning = true },
        /* A host with many problems */
        { "claims exceed the capacity of the host (and 5 more)",
          "claims degraded; devices degraded; second reporter degraded; claims warning; service warning; devices warning",
          .sync = SYNC_SYNCED, .vcpus = 324, .vgpus_gone = 2, .missing = true, .undone = true,
          .pending_writes = { .n_unallocated = 320 }, .cordons.host = "by ann" },
};

static void set_error(Error *error, const char *text)
{
        if (text)
                error_setf(error, EIO, "%s", text);
}

static void judge(const Case *c, Verdict *ret)
{
        TrackerStatus status = { .sync_state = c->sync,
                                 .last_poll_usec = !c->not_polled,
                                 .n_differences = c->n_differences };
        LedgerDevice device = { .name = (char *)"gone",
                                .provider = make_uuid("gone"),
                                .resource_class = (char *)"VGPU",
                                .missing = c->missing,
                                .held = c->held };
        Overwrite part = { .is_trait = true,
                           .name = (char *)"host",
                           .part = (char *)"HW_A",
                           .how = (char *)"removed",
                           .n = c->undone ? OVERWRITES_MAX : 1 };
        const Overwrites overwrites = { .parts = &part, .n_parts = 1 };
        const DeviceLedger devices = { .devices = &device, .n_devices = 1 };
        _cleanup_(host_view_freep) HostView *view = make_view(HOST);
        const AuditorState audit = { .n_open = c->n_findings };
        Error claim_error = ERROR_NULL;
        char *warning = (char *)"x.conf:1: unknown option [agent] x, ignoring";
        const StringSet warnings = { .items = &warning, .n_items = c->config_warning };

        snprintf(device.unclean, sizeof(device.unclean), "%s", c->unclean ? c->unclean : "");
        set_error(&status.sync_error, c->sync_error);
        set_error(&status.hypervisor_error, c->hypervisor_error);
        set_error(&status.part_error, c->part_error);
        set_error(&claim_error, c->claim_error);
        if (c->vcpus > 0)
                use_some(view, "host", "VCPU", c->vcpus);
        if (c->vgpus > 0)
                use_some(view, "gpu", "VGPU", c->vgpus);
        if (c->vgpus_gone > 0)
                use_some(view, "gone", "VGPU", c->vgpus_gone);
        verdict_make(&(const CycleFacts){ .status = &status,
                                          .claim_error = &claim_error,
                                          .config_warnings = &warnings,
                                          .tree = view->tree,
                                          .view = view,
                                          .devices = &devices,
                                          .overwrites = &overwrites,
                                          .audit = &audit,
                                          .n_claims = 2,
                                          .pending_writes = c->pending_writes,
                                          .pending_writes_error = c->pending_writes_error,
                                          .cordons = c->cordons,
                                          .health = c->health,
                                          .n_disagreements = c->n_disagreements },
                     ret);
}

static void format_reasons(const Verdict *verdict, char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < verdict->n_reasons; i++)
                n += (size_t)snprintf(text + n, size - n, "%s%s %s", i > 0 ? "; " : "",
                                      verdict->reasons[i].check,
                                      verdict_state_to_text(verdict->reasons[i].state));
}

static void test_table(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char reasons[512];
                Verdict verdict;

                judge(&cases[i], &verdict);
                assert_string_equal(verdict.summary, cases[i].summary);
                format_reasons(&verdict, reasons, sizeof(reasons));
                assert_string_equal(reasons, cases[i].reasons);
                /* The state is that of the worst reason, which comes first. Each reason has a
                 * command and an advice. */
                assert_int_equal(verdict.state,
                                 verdict.n_reasons > 0 ? verdict.reasons[0].state : VERDICT_OK);
                for (size_t j = 0; j < verdict.n_reasons; j++) {
                        assert_true(verdict.reasons[j].state <= verdict.state);
                        assert_true(j == 0 ||
                                    verdict.reasons[j].state <= verdict.reasons[j - 1].state);
                        assert_true(verdict.reasons[j].text[0] && verdict.reasons[j].command[0] &&
                                    verdict.reasons[j].advice[0]);
                }
        }
}

static void test_words(void **state)
{
        static const struct {
                Case of;
                const char *text;
        } words[] = {
                { { .sync = SYNC_SYNCED, .vcpus = 324 }, "Claims use 324 of 160 VCPU of host" },
                { { .sync = SYNC_SYNCED, .vcpus = 324, .vgpus = 5 },
                  "Claims use 324 of 160 VCPU of host (and 1 more)" },
                { { .sync = SYNC_SYNCED, .missing = true, .vgpus_gone = 2 },
                  "gone is missing, but claims have 2 VGPU of it" },
                { { .sync = SYNC_SYNCED, .held = true },
                  "Not offered: gone (back, and available again soon)" },
                { { .sync = SYNC_SYNCED, .undone = true },
                  "Another writer keeps overwriting these values, so the agent rewrites them "
                  "at growing intervals: trait HW_A of host: removed (overwritten 3 times)" },
                { { .sync = SYNC_SYNCED, .config_warning = true },
                  "x.conf:1: unknown option [agent] x, ignoring" },
                { { .sync = SYNC_SYNCED, .pending_writes = { .n_unallocated = 2 } },
                  "Placement has no allocation of 2 of 2 claims" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                Verdict verdict;

                judge(&words[i].of, &verdict);
                assert_string_equal(verdict.reasons[0].text, words[i].text);
        }
}

static void test_line(void **state)
{
        const Case well = { .sync = SYNC_SYNCED }, bad = { .sync = SYNC_OFFLINE,
                                                           .sync_error = "no route",
                                                           .pending_writes = { .n_removals = 1 } };
        Verdict verdict;

        judge(&well, &verdict);
        assert_string_equal(verdict.line, "Placement is equal to this host; 3 providers, 2 claims");
        judge(&bad, &verdict);
        assert_string_equal(
                verdict.line,
                "Placement cannot be used; 3 providers, 2 claims, 1 not reported yet. Placement cannot be used: no route");
}

/* Command and advice about a failed poll depend on the driver. */
static void test_words_of_drivers(void **state)
{
        static const char *const rows[][3] = {
                { NULL, "systemctl status libvirtd", "libvirt" },
                { "libvirt", "systemctl status libvirtd", "libvirt" },
                { "linux", "journalctl -u compute-agent", "/sys" },
                { "static", "computectl doctor --config-only", "[static]" }
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                TrackerStatus status = { .sync_state = SYNC_SYNCED };
                const CycleFacts facts = { .status = &status,
                                           .driver = rows[i][0],
                                           .claim_error = &ERROR_NULL };
                Verdict verdict;

                error_setf(&status.hypervisor_error, EIO, "gone");
                verdict_make(&facts, &verdict);
                assert_int_equal(verdict.n_reasons, 1);
                assert_string_equal(verdict.reasons[0].command, rows[i][1]);
                assert_non_null(strstr(verdict.reasons[0].advice, rows[i][2]));
                assert_int_equal(strstr(verdict.reasons[0].advice, "libvirt") != NULL, i < 2);
        }
}

/* The other writer of this host's tree can be another host with the same identity. Consumers that
 * are unknown here can be guests of that host, so nothing is healed. */
static void test_nothing_is_healed_beside_another_writer(void **state)
{
        const TrackerStatus status = { .sync_state = SYNC_SYNCED };
        Overwrite part = { .is_trait = true, .n = OVERWRITES_MAX - 1 };
        const Overwrites overwrites = { .parts = &part, .n_parts = 1 };

        assert_null(tracker_status_find_hindrance(&status, &overwrites));
        part.n = OVERWRITES_MAX;
        assert_non_null(strstr(tracker_status_find_hindrance(&status, &overwrites),
                               "another writer changes this host's tree"));
}

TEST_MAIN(test_table, test_words, test_line, test_words_of_drivers,
          test_nothing_is_healed_beside_another_writer)
