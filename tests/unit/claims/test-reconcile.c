/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/clock.h"
#include "tests/fixtures/reconcile.h"

static void test_table(void **state)
{
        static const struct {
                const char *name;
                const char *claims;
                const char *guest; /* letter, then its mdevs; "" for none */
                const char *actions;
                const char *problem; /* part of the only problem, or NULL */
        } rows[] = {
                { "nothing", "", "", "", NULL },
                { "a guest without a claim", "", "g", "adopt g", NULL },
                { "all is well", "g confirmed vcpus=2", "g", "", NULL },
                { "not confirmed yet", "g claimed expires=1001 vcpus=2", "g", "", NULL },
                { "never confirmed", "g claimed expires=1000 vcpus=2", "g", "confirm 1", NULL },
                { "made for the start of a server that runs",
                  "g claimed expires=9000 vcpus=2 type=LIBVIRT read", "g", "confirm 1", NULL },
                { "made by libvirt's hook", "g claimed expires=9000 vcpus=2 type=LIBVIRT", "g", "",
                  NULL },
                { "expires without a guest", "x claimed expires=1000", "g", "adopt g", NULL },
                { "another boot", "g confirmed boot=old", "g", "check 1", NULL },
                { "no device named", "g confirmed vgpus=1", "g", "check 1", NULL },
                { "more VCPUs", "g confirmed vcpus=1", "g", "",
                  "has 2 VCPUs, but its claim has 1" },
                { "the same mdevs", "g confirmed vgpus=2 mdev=1 mdev=3", "g13", "", NULL },
                { "mdev not in the XML", "g confirmed vgpus=1 mdev=1", "g", "",
                  "does not have mdev" },
                { "mdev not in the claim", "g confirmed vcpus=2", "g4", "",
                  "its claim does not name" },
                { "mdev gone", "g confirmed vgpus=1 mdev=9", "g9", "", "no longer exists on a" },
                { "while it is resized",
                  "g confirmed vcpus=1;g claimed expires=2000 target vcpus=4", "g", "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;

                look_begin(&look);
                if (rows[i].guest[0])
                        facts_guest(&look.facts, rows[i].guest[0], rows[i].guest + 1);
                look_add_claims(&look, rows[i].claims);
                look_run(&look);
                look_expect(&look, rows[i].name, rows[i].actions, rows[i].problem);
        }
}

/* A guest that cannot be read causes no problem if it has a claim: the claim stays unchanged, and
 * no claim is made. */
static void test_unread_guest(void **state)
{
        static const struct {
                const char *claim;
                ReconcileAccess access;
                const char *actions, *problem;
        } rows[] = {
                { "g confirmed vcpus=7 vgpus=1 mdev=9", RECONCILE_NO_PLACEMENT, "", NULL },
                { "g claimed expires=1000 vcpus=7", RECONCILE_CAN_READ, "", NULL },
                /* Otherwise the database would end it. */
                { "g claimed expires=1000 vcpus=7", RECONCILE_NO_PLACEMENT, "extend 1", NULL },
                { "g claimed expires=1001 vcpus=7", RECONCILE_NO_PLACEMENT, "", NULL },
                { "", RECONCILE_NO_PLACEMENT, "",
                  "guest g has no claim, and its domain cannot be read" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;

                look_begin(&look);
                look.input.access = rows[i].access;
                facts_guest(&look.facts, 'g', "")->unread = true;
                look_add_claims(&look, rows[i].claim);
                look_run(&look);
                look_expect(&look, rows[i].claim, rows[i].actions, rows[i].problem);
        }
}

/* An orphan is released after its guest was missing for the whole expiry time, and not before. */
static void test_orphan(void **state)
{
        static const struct {
                unsigned at_sec;
                bool guest;
                const char *actions;
        } polls[] = {
                { 1000, false, "" }, { 1299, false, "" }, { 1299, true, "" },
                { 1300, false, "" }, { 1599, false, "" }, { 1600, false, "release 1" },
        };
        _cleanup_(look_done) Look look;

        look_begin(&look);
        look_add_claims(&look, "g confirmed vcpus=2");
        for (size_t i = 0; i < ARRAY_SIZE(polls); i++) {
                make_facts(&look.facts);
                look.facts.facts.taken_usec = polls[i].at_sec * USEC_PER_SEC;
                if (polls[i].guest)
                        facts_guest(&look.facts, 'g', "");
                look_expect_row(&look, i, polls[i].actions, NULL);
        }
}

/* A hard reboot undefines the domain while Nova reads its image again. */
static void test_orphan_with_a_folder(void **state)
{
        _cleanup_(look_done) Look look;
        const Uuid folder = make_guest('g');

        look_begin(&look);
        look_add_claims(&look, "g confirmed vcpus=2");
        for (unsigned at_sec = 1000; at_sec <= 2000; at_sec += 500) {
                make_facts(&look.facts);
                look.facts.facts.taken_usec = at_sec * USEC_PER_SEC;
                look.facts.facts.folders = &folder;
                look.facts.facts.n_folders = at_sec < 2000;
                look_run(&look);
                look_expect(&look, "with a folder", at_sec < 2000 ? "" : "release 1", NULL);
        }
}

#define ALONE   RECONCILE_NO_PLACEMENT
#define AWAY    RECONCILE_NO_READS
#define CAN_ASK RECONCILE_CAN_READ
/* A guest's claim whose allocations were read and existed; the guest is off. */
#define OFF          "g confirmed read type=LIBVIRT"
#define ONLY_STOPPED .started_only = true, .stopped = true, .guest = 'g'

typedef struct WordRow {
        const char *name, *claim;
        ReconcileAccess access;
        char answer; /* 'h': its consumer has an allocation here, 'n': none; 0: not read */
        const char *actions;
        bool urgent, recent, started_only, stopped;
        bool folder, unread_folders; /* Nova has a folder of the claim's consumer */
        char guest;
} WordRow;

static void check_row(const WordRow *row)
{
        _cleanup_(look_done) Look look;
        const ReconcileRecent recent = { .claim_id = 1, .when_usec = 1000 * USEC_PER_SEC };
        const ConsumerRead answer = { .consumer = make_guest(row->claim[0] ? row->claim[0] : 'g'),
                                      .here = row->answer == 'h' };

        look_begin(&look);
        look.input.started_only = row->started_only;
        look.input.access = row->access;
        look.input.answers = &answer;
        look.input.n_answers = row->answer ? 1 : 0;
        look.input.urgent = row->urgent;
        look.input.recent = &recent;
        look.input.n_recent = row->recent;
        look.facts.facts.folders = &answer.consumer;
        look.facts.facts.n_folders = row->folder;
        look.facts.facts.folders_unknown = row->unread_folders ? "it hangs" : NULL;
        if (row->guest)
                facts_guest(&look.facts, row->guest, "")->running = !row->stopped;
        look_add_claims(&look, row->claim);
        look_run(&look);
        look_expect(&look, row->name, row->actions, NULL);
}

static void check_rows(const WordRow rows[], size_t n)
{
        for (size_t i = 0; i < n; i++)
                check_row(&rows[i]);
}

/* Placement's answer decides whether an unconfirmed claim ends. */
static void test_unconfirmed_by_placement(void **state)
{
        static const WordRow rows[] = {
                { "expires without Placement elsewhere", "g claimed expires=1000", ALONE,
                  .actions = "" },
                { "expired: Placement is asked", "g claimed expires=1000", CAN_ASK,
                  .actions = "ask 1" },
                { "and has it", "g claimed expires=1000", AWAY, 'h', .actions = "extend 1" },
                { "and has nothing", "g claimed expires=1000", AWAY, 'n', .actions = "release 1" },
                { "and cannot be asked", "g claimed expires=1000", AWAY, .actions = "" },
                { "the agent wrote it, and Nova builds it: Placement is asked",
                  "g claimed expires=1000 write_state=written", CAN_ASK, .actions = "ask 1",
                  .folder = true },
                { "and has it", "g claimed expires=1000 write_state=written", AWAY, 'h',
                  .actions = "extend 1", .folder = true },
                { "and has nothing", "g claimed expires=1000 write_state=written", AWAY, 'n',
                  .actions = "release 1", .folder = true },
                { "folders that cannot be read can have it",
                  "g claimed expires=1000 write_state=written", AWAY, 'h', .actions = "extend 1",
                  .unread_folders = true },
                { "not expired", "g claimed expires=1001", CAN_ASK, .actions = "" },
                { "not expired, and room is wanted", "g claimed expires=1001", CAN_ASK,
                  .actions = "ask 1", .urgent = true },
                { "that was just answered with", "g claimed expires=1001", CAN_ASK, .actions = "",
                  .urgent = true, .recent = true },
                { "the same, late", "g claimed expires=1001", AWAY, 'n', .actions = "",
                  .recent = true },
                { "and it has no allocations in Placement", "g claimed expires=1001", AWAY, 'n',
                  .actions = "release 1" },
                { "or has it", "g claimed expires=1001", AWAY, 'h', .actions = "" },
                { "being made", "g pending expires=1000 write_state=pending", CAN_ASK,
                  .actions = "", .urgent = true },
                { "what the agent wrote itself says nothing",
                  "g claimed expires=1000 write_state=written", CAN_ASK, .actions = "release 1" },
                { "not even while Placement is away", "g claimed expires=1000 write_state=written",
                  AWAY, .actions = "release 1" },
                { "but when it is gone, it is", "g claimed expires=1001 write_state=written", AWAY,
                  'n', .actions = "release 1" },
                { "not reported yet, and room is wanted", "g claimed expires=1001 write_state=owed",
                  CAN_ASK, .actions = "", .urgent = true },
                { "not reported yet, and expired", "g claimed expires=1000 write_state=owed",
                  CAN_ASK, .actions = "ask 1" },
        };

        check_rows(rows, ARRAY_SIZE(rows));
}

/* Placement's answer decides whether the claim of a missing guest ends. */
static void test_confirmed_by_placement(void **state)
{
        static const WordRow rows[] = {
                { "confirmed, and its guest is gone", "g confirmed", CAN_ASK, .actions = "ask 1" },
                { "Placement has nothing, either", "g confirmed", AWAY, 'n',
                  .actions = "release 1" },
                { "that was confirmed since the poll began", "g confirmed", AWAY, 'n',
                  .actions = "", .recent = true },
                { "Placement still has it", "g confirmed", AWAY, 'h', .actions = "" },
                { "Placement cannot be asked", "g confirmed", AWAY, .actions = "" },
                { "a migration's, whose guest is not here", "m confirmed guest=g", CAN_ASK,
                  .actions = "", .urgent = true },
                { "the same, unconfirmed: it may be its guest's again",
                  "m claimed expires=1001 guest=g", AWAY, 'n', .actions = "", .urgent = true },
                { "off, placed by others", OFF, CAN_ASK, .actions = "ask 1", ONLY_STOPPED },
                { "which still have it", OFF, CAN_ASK, 'h', .actions = "", ONLY_STOPPED },
                { "and no more", OFF, CAN_ASK, 'n', .actions = "release 1", ONLY_STOPPED },
                { "a stopped guest that holds nothing while it is",
                  "g claimed expires=1000 type=LIBVIRT write_state=owed", CAN_ASK,
                  .actions = "release 1", .started_only = true },
                { "another writer can have placed it", "g claimed expires=1000 type=LIBVIRT",
                  CAN_ASK, .actions = "ask 1", .started_only = true },
                { "and Placement is away", "g claimed expires=1000 type=LIBVIRT", AWAY,
                  .actions = "", .started_only = true },
                { "and did not", "g claimed expires=1000 type=LIBVIRT", AWAY, 'n',
                  .actions = "release 1", .started_only = true },
        };

        check_rows(rows, ARRAY_SIZE(rows));
}

/* Placement is asked about guests before they are adopted, or afterwards if it was not
 * available. */
static void test_adopted_by_placement(void **state)
{
        static const WordRow rows[] = {
                { "a guest without a claim", "", CAN_ASK, .actions = "ask g", .guest = 'g' },
                { "that holds something", "", AWAY, 'h', .actions = "adopt g", .guest = 'g' },
                { "that holds nothing", "", AWAY, 'n', .actions = "adopt g", .guest = 'g' },
                { "that cannot be asked about", "", AWAY, .actions = "adopt g", .guest = 'g' },
                { "a claim that was made without asking", "g confirmed vcpus=2 type=LIBVIRT",
                  CAN_ASK, .actions = "ask 1", .guest = 'g' },
                { "and can be completed", "g confirmed vcpus=2 type=LIBVIRT", AWAY, 'h',
                  .actions = "complete 1", .guest = 'g' },
                { "without Placement there is nothing to complete",
                  "g confirmed vcpus=2 type=LIBVIRT", ALONE, .actions = "", .guest = 'g' },
        };

        check_rows(rows, ARRAY_SIZE(rows));
}

/* A confirmed claim stays while Placement has its allocations, and is listed after the expiry time.
 * It is asked about again after twice the time, at most once each expiry time. */
static void test_pause_between_reads_grows(void **state)
{
        static const unsigned expected[] = { 1000, 1060, 1120, 1240, 1480, 1780, 2080 };
        const ConsumerRead answer = { .consumer = make_guest('g'), .here = true };
        _cleanup_(look_done) Look look;
        size_t n = 0;

        look_begin(&look);
        look_add_claims(&look, "g confirmed");
        look.input.answers = &answer;
        for (unsigned at = 1000; at < 2200; at += 60) {
                look.facts.facts.taken_usec = at * USEC_PER_SEC;
                look.input.access = CAN_ASK;
                look.input.n_answers = 0;
                look_run(&look);
                assert_int_equal(look.result.problems.n_items, at >= 1300);
                if (look.result.n_actions == 0)
                        continue;
                assert_string_equal(look.actions, "ask 1");
                assert_int_equal(expected[n++], at);
                look.input.access = AWAY;
                look.input.n_answers = 1;
                look_run(&look);
                assert_string_equal(look.actions, "");
        }
        assert_int_equal(n, ARRAY_SIZE(expected));
}

/* A recorded host has no guests here. */
static void test_recorded(void **state)
{
        _cleanup_(look_done) Look look;

        look_begin(&look);
        look.input.access = CAN_ASK;
        look.input.recorded = true;
        facts_guest(&look.facts, 'x', "");
        look_add_claims(&look, "g confirmed;h claimed expires=1000");
        look_run(&look);
        assert_string_equal(look.actions, "ask 2");
}

/* A guest that another host has is not adopted, unless it runs here. */
static void test_guest_of_another_host_is_not_adopted(void **state)
{
        const Uuid away = make_guest('g');
        _cleanup_(look_done) Look look;

        look_begin(&look);
        look.input.away = &away;
        look.input.n_away = 1;
        for (int running = 0; running < 2; running++) {
                look.facts.facts.n_domains = 0;
                facts_guest(&look.facts, 'g', "")->running = running;
                look_run(&look);
                assert_string_equal(look.actions, running ? "adopt g" : "");
        }
}

/* F8 1879878, 1849165: a guest whose claim a migration took over is not adopted. The claim is held
 * for the whole move, on whichever host the guest is. */
static void test_moved(void **state)
{
        static const struct {
                const char *name;
                const char *claims;
                const char *guest;
                const char *actions; /* after a long time, too */
        } rows[] = {
                { "not moved yet", "m confirmed guest=g vcpus=2", "g", "" },
                { "it has another size", "m confirmed guest=g vcpus=2;g confirmed vcpus=4", "g",
                  "" },
                { "it is elsewhere", "m confirmed guest=g vcpus=2", "", "" },
                { "never confirmed", "m claimed guest=g expires=1000 vcpus=2", "g", "confirm 1" },
                { "of another boot", "m confirmed guest=g boot=old vcpus=2", "g", "check 1" },
                { "another guest", "m confirmed guest=x vcpus=2", "g", "adopt g" },
                { "a claim that was not handed over", "m confirmed", "", "release 1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;

                look_begin(&look);
                look_add_claims(&look, rows[i].claims);
                if (rows[i].guest[0])
                        facts_guest(&look.facts, rows[i].guest[0], "");
                look_run(&look);
                assert_int_equal(look.result.problems.n_items, 0);
                look.facts.facts.taken_usec += EXPIRY;
                look_run(&look);
                look_expect(&look, rows[i].name, rows[i].actions, NULL);
        }
}

/* With claim_expiry_time = 0 nothing is an orphan. */
static void test_no_orphans(void **state)
{
        _cleanup_(look_done) Look look;

        look_begin(&look);
        look.input.expiry_usec = 0;
        look_add_claims(&look, "g confirmed vcpus=2");
        for (uint64_t i = 1; i < 4; i++) {
                look.facts.facts.taken_usec = i * 1000000 * USEC_PER_SEC;
                look_run(&look);
                assert_string_equal(look.actions, "");
        }
}

/* A layout of one cell with one CPU: "1:5:2048" is host cell, host CPU (-1: none), page size. */
static void make_layout(Layout *ret, unsigned host_cell, int cpu, uint64_t page_kib)
{
        LayoutCell *cell;

        assert_int_equal(layout_reserve(ret, 1, 1), 0);
        cell = &ret->cells[ret->n_cells++];
        cell->host_cell = host_cell;
        cell->page_kib = page_kib;
        cell->memory_mb = 4;
        if (cpu >= 0)
                assert_int_equal(cpu_set_add(&ret->cpus[ret->n_cpus++].cpus, (unsigned)cpu), 0);
}

/* Guests claim when they start: while they are off, they hold only claims that a caller
 * requested. */
static void test_started_only(void **state)
{
        static const struct {
                const char *claims;
                bool running;
                const char *first, *later; /* actions; "" for none */
        } cases[] = {
                { "", true, "adopt g", "adopt g" },
                { "", false, "", "" },
                { "g confirmed vcpus=2 type=LIBVIRT", true, "", "" },
                { "g confirmed vcpus=2 type=LIBVIRT", false, "", "release 1" },
                { "g confirmed vcpus=2 type=INSTANCE", false, "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(look_done) Look look;

                look_begin(&look);
                look.input.started_only = true;
                facts_guest(&look.facts, 'g', "")->running = cases[i].running;
                look_add_claims(&look, cases[i].claims);
                look_run(&look);
                look_expect(&look, cases[i].claims, cases[i].first, NULL);
                look.facts.facts.taken_usec += EXPIRY;
                look_run(&look);
                look_expect(&look, cases[i].claims, cases[i].later, NULL);
        }
}

/* The host CPUs that a claim holds for the threads of its guest, those of the guest, and those of
 * all claims. */
static void test_held_cpus(void **state)
{
        static const struct {
                const char *claim, *claimed, *guest, *all;
                const char *actions, *problem;
        } cases[] = {
                { "g confirmed vcpus=2", "", "", "", "", NULL },
                { "g confirmed vcpus=2", "4", "4", "4", "", NULL },
                { "g confirmed vcpus=2", "", "4", "5", "check 1",
                  "guest g is pinned to host CPU 4, which its claim does not have" },
                /* no action while another claim holds it */
                { "g confirmed vcpus=2", "", "4", "4", "", "is pinned to host CPU 4" },
                /* CPUs of a requested claim stay; CPUs of a claim that was made of the guest do
                 * not */
                { "g confirmed vcpus=2", "4-5", "4", "4-5", "", NULL },
                { "g confirmed type=LIBVIRT vcpus=2", "4-5", "4", "4-5", "check 1", NULL },
                { "g confirmed vcpus=2;g claimed target vcpus=2", "", "4", "", "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(look_done) Look look;
                ProviderTree tree = { 0 };
                HostView view = { .tree = &tree };
                HostDomain *guest;

                look_begin(&look);
                look.input.view = &view;
                guest = facts_guest(&look.facts, 'g', "");
                look_add_claims(&look, cases[i].claim);
                assert_int_equal(cpu_set_parse(cases[i].all, &view.held, NULL), 0);
                assert_int_equal(cpu_set_parse(cases[i].guest, &guest->layout.held, NULL), 0);
                assert_int_equal(
                        cpu_set_parse(cases[i].claimed, &look.claims.claims[0]->layout.held, NULL),
                        0);
                look_expect_row(&look, i, cases[i].actions, cases[i].problem);

                cpu_set_done(&view.held);
                layout_done(&guest->layout);
        }
}

static void test_layouts(void **state)
{
        static const struct {
                int claim_cell, claim_cpu, guest_cell, guest_cpu; /* cell -1: no layout */
                uint64_t guest_page_kib;
                const char *claim_pci;
                const char *actions, *problem;
        } cases[] = {
                { 1, 5, 1, 5, 0, NULL, "", NULL },
                { 1, 5, 1, 6, 0, NULL, "",
                  "CPU 0 of guest g runs on host CPUs 6, but its claim has 5" },
                { 1, 5, 1, -1, 0, NULL, "",
                  "CPU 0 of guest g runs on host CPUs any, but its claim" },
                { 1, -1, 0, -1, 0, NULL, "",
                  "cell 0 of guest g is in cell 0 of the host, but its claim" },
                { 1, -1, -1, -1, 0, NULL, "",
                  "names no host cell for its cell 0, but its claim has cell" },
                { 1, -1, 1, -1, 2048, NULL, "",
                  "has pages of 2048 KiB (0: small), but its claim has 0" },
                /* recorded, and no problem */
                { -1, -1, 1, 5, 0, NULL, "check 1", NULL },
                { -1, -1, -1, -1, 0, "0000:05:00.1", "",
                  "guest g does not have PCI device 0000:05:00.1, which its claim names" },
                { -1, -1, -1, -1, 1, NULL, "",
                  "guest g has PCI device 0000:05:00.2, which its claim does not name" },
        };
        static const char addresses[1][HOST_ADDRESS_SIZE] = { "0000:05:00.2" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(look_done) Look look;
                HostPci pci = { .name = "p", .address = addresses[0], .provider = "" };
                const ClaimDevice device = { .suffix = (char *)"",
                                             .name = (char *)"p1",
                                             .address = (char *)cases[i].claim_pci,
                                             .mdev_type = (char *)"" };
                HostDomain *guest;

                look_begin(&look);
                look.facts.facts.pci = &pci;
                look.facts.facts.n_pci = 1;
                guest = facts_guest(&look.facts, 'g', "");
                look_add_claims(&look, "g confirmed vcpus=2");
                if (cases[i].claim_cell >= 0)
                        make_layout(&look.claims.claims[0]->layout, (unsigned)cases[i].claim_cell,
                                    cases[i].claim_cpu, 0);
                if (cases[i].guest_cell >= 0)
                        make_layout(&guest->layout, (unsigned)cases[i].guest_cell,
                                    cases[i].guest_cpu, cases[i].guest_page_kib);
                else if (cases[i].guest_page_kib)
                        guest->pci = addresses, guest->n_pci = 1;
                if (cases[i].claim_pci)
                        assert_int_equal(claim_add_device(look.claims.claims[0], &device), 0);
                look_expect_row(&look, i, cases[i].actions, cases[i].problem);
                layout_done(&guest->layout);
        }
}

/* The layout of a guest with two claims can be that of either, so neither is compared with it. */
static void test_layout_of_two_claims(void **state)
{
        static const char *const claims[] = {
                "g confirmed vcpus=2;g claimed vcpus=4 target",
                "g confirmed vcpus=2;m confirmed vcpus=4 guest=g",
        };

        for (size_t i = 0; i < ARRAY_SIZE(claims); i++) {
                _cleanup_(look_done) Look look;
                HostDomain *guest;

                look_begin(&look);
                guest = facts_guest(&look.facts, 'g', "");
                make_layout(&guest->layout, 1, 5, 0);
                look_add_claims(&look, claims[i]);
                look_expect_row(&look, i, "", NULL);
                layout_done(&guest->layout);
        }
}

/* A guest or a claim with a PCI device that the host does not list is a problem in any state. */
static void test_a_device_that_the_host_does_not_list(void **state)
{
        static const struct {
                const char *claim;
                bool claimed, guest, listed, known;
                const char *problem; /* NULL: none */
        } cases[] = {
                { "g confirmed vcpus=2", true, true, true, true, NULL },
                { "g confirmed vcpus=2", true, true, false, false, NULL },
                { "g confirmed vcpus=2", true, true, false, true,
                  "PCI device 0000:05:00.2 of guest g is no longer on this host" },
                { "g claimed vcpus=2", true, true, false, true,
                  "PCI device 0000:05:00.2 of guest g is no longer on this host" },
                { "g confirmed vcpus=2", false, true, false, true,
                  "guest g has PCI device 0000:05:00.2, which this host does not list" },
                /* the host does not offer the device, but lists it */
                { "g confirmed vcpus=2", false, true, true, true, NULL },
                { "g claimed vcpus=2", true, false, false, true,
                  "claim 1 names PCI device 0000:05:00.2, which this host does not list" },
        };
        static const char addresses[1][HOST_ADDRESS_SIZE] = { "0000:05:00.2" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const ClaimDevice device = { .suffix = (char *)"",
                                             .name = (char *)"p1",
                                             .address = (char *)addresses[0],
                                             .mdev_type = (char *)"" };
                HostFunction functions[] = { { "0000:05:00.0", "", "" }, { addresses[0], "", "" } };
                _cleanup_(look_done) Look look;

                look_begin(&look);
                look.facts.facts.functions = cases[i].known ? functions : NULL;
                look.facts.facts.n_functions = !cases[i].known ? 0 : cases[i].listed ? 2 : 1;
                if (cases[i].guest) {
                        HostDomain *guest = facts_guest(&look.facts, 'g', "");

                        guest->pci = addresses;
                        guest->n_pci = 1;
                }
                look_add_claims(&look, cases[i].claim);
                if (cases[i].claimed)
                        assert_int_equal(claim_add_device(look.claims.claims[0], &device), 0);
                look_expect_row(&look, i, look.actions, cases[i].problem);
        }
}

/* The identity that a claim recorded, and the device that is now at the address. */
static void test_identities(void **state)
{
        static const struct {
                const char *claimed, *there;
                bool offered;
                const char *actions, *problem;
        } cases[] = {
                { "10de:20b0 1", "10de:20b0 1", true, "", NULL },
                { "10de:20b0 1", "10de:20b0", true, "", NULL },
                { "10de:20b0 1", "10de:20b0 2", true, "",
                  "another device is at 0000:05:00.2 (10de:20b0 2), but claim 1 has 10de:20b0 1" },
                { "10de:20b0", "144d:a808", false, "", "another device is at 0000:05:00.2" },
                /* A claim of an older schema: the identity is recorded if this host offers the
                   device. */
                { "", "10de:20b0 1", true, "check 1", NULL },
                { "", "144d:a808", false, "", NULL },
                { "", "", true, "", NULL },
                /* a serial number that could not be read before */
                { "10de:20b0", "10de:20b0 1", true, "check 1", NULL },
                { "10de:20b0", "10de:20b0 1", false, "", NULL },
                { "10de:20b0", "10de:20b0", true, "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(look_done) Look look;
                HostFunction function = { .address = "0000:05:00.2", .physical_function = "" };
                HostPci pci = { .name = "p", .address = "0000:05:00.2", .provider = "" };
                const ClaimDevice device = { .suffix = (char *)"",
                                             .name = (char *)"p",
                                             .address = (char *)"0000:05:00.2",
                                             .mdev_type = (char *)"",
                                             .identity = (char *)cases[i].claimed };

                strcpy(function.identity, cases[i].there);
                look_begin(&look);
                look.input.access = RECONCILE_NO_PLACEMENT;
                look.facts.facts.functions = &function;
                look.facts.facts.n_functions = 1;
                look.facts.facts.pci = &pci;
                look.facts.facts.n_pci = cases[i].offered;
                look_add_claims(&look, "g confirmed");
                assert_int_equal(claim_add_device(look.claims.claims[0], &device), 0);
                look_expect_row(&look, i, cases[i].actions, cases[i].problem);
        }
}

/* Usage above the capacity is a problem, unless all of it is reserved. */
static void test_more_than_there_is(void **state)
{
        static const struct {
                const char *host; /* VGPU: total/reserved */
                uint64_t used;
                const char *problem; /* NULL: none */
        } cases[] = {
                { "host VGPU=4", 4, NULL },
                { "host VGPU=4", 5, "host: claims and guests have 5 VGPU of 4" },
                { "host VGPU=4/3", 2, "host: claims and guests have 2 VGPU of 1" },
                { "host VGPU=4/4", 2, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(look_done) Look look;
                _cleanup_(host_view_freep) HostView *view = look_make_view(cases[i].host);

                assert_int_equal(resources_set(&view->providers[0].used, "VGPU", cases[i].used), 0);
                look_begin(&look);
                look.input.view = view;
                look_expect_row(&look, i, "", cases[i].problem);
        }
}

/* A guest that is no domain: its claim has the text that identifies it, and ends when it is
 * gone. */
static void test_lives(void **state)
{
        static const struct {
                const char *name;
                const char *claim;
                bool recorded, processes;
                uint64_t missing_sec; /* missing for this time */
                const char *actions;
        } rows[] = {
                { "runs", "x claimed process=1", false, true, 0, "confirm 1" },
                { "runs where no guests are listed", "x claimed process=1", true, true, 0,
                  "confirm 1" },
                { "runs, and is confirmed", "x confirmed process=1", false, true, 500, "" },
                { "the same there", "x confirmed process=1", true, true, 500, "" },
                { "ended just now", "x confirmed process=1", true, false, 0, "" },
                { "ended", "x confirmed process=1", true, false, 300, "release 1" },
                { "ended, beside domains", "x confirmed process=1", false, false, 300,
                  "release 1" },
                { "was never seen", "x claimed process=1", true, false, 300, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;
                const HostDomain process = { .uuid = make_guest('x'),
                                             .name = "process 1",
                                             .running = true,
                                             .unread = true };

                look_begin(&look);
                look.input.processes = &process;
                look.input.n_processes = rows[i].processes;
                look.input.recorded = rows[i].recorded;
                look_add_claims(&look, rows[i].claim);
                look.memory.items = calloc(1, sizeof(ReconcileMissing));
                assert_non_null(look.memory.items);
                look.memory.items[0] = (ReconcileMissing){
                        .claim_id = 1, .since_usec = (1000 - rows[i].missing_sec) * USEC_PER_SEC
                };
                look.memory.n_items = look.memory.n_allocated = 1;
                look_run(&look);
                look_expect(&look, rows[i].name, rows[i].actions, NULL);
        }
}

/* Returns the time for n guests, each with its claim, a VF and an mdev. */
static uint64_t measure(size_t n)
{
        _cleanup_free_ HostDomain *domains = calloc(n, sizeof(HostDomain));
        _cleanup_free_ HostMdev *mdevs = calloc(n, sizeof(HostMdev));
        _cleanup_free_ HostPci *pci = calloc(n, sizeof(HostPci));
        _cleanup_free_ char(*texts)[HOST_ADDRESS_SIZE] = calloc(n, sizeof(*texts));
        _cleanup_(look_done) Look look;
        HostFacts facts = { .domains = domains,
                            .n_domains = n,
                            .mdevs = mdevs,
                            .n_mdevs = n,
                            .pci = pci,
                            .n_pci = n };
        const Uuid base = make_guest('h');
        uint64_t begun, ended;

        look_begin(&look);
        look.input.facts = &facts;
        for (size_t i = 0; i < n; i++) {
                ClaimDevice device = { .provider = base,
                                       .suffix = (char *)"",
                                       .address = texts[i],
                                       .mdev_type = (char *)"" };

                snprintf(texts[i], sizeof(texts[i]), "0000:%02x:%02x.%x", (unsigned)(i / 256) & 255,
                         (unsigned)(i / 8) & 31, (unsigned)i & 7);
                device.name = texts[i];
                domains[i] = (HostDomain){ .uuid = uuid_make_child(&base, texts[i]),
                                           .name = texts[i],
                                           .running = true,
                                           .vcpus = 2,
                                           .pci = &texts[i],
                                           .n_pci = 1,
                                           .mdevs = &mdevs[i].uuid,
                                           .n_mdevs = 1 };
                mdevs[i] = (HostMdev){ .uuid = uuid_make_child(&domains[i].uuid, "mdev") };
                pci[i] = (HostPci){ .address = texts[i] };
                look_add_claims(&look, "h confirmed vcpus=2");
                look.claims.claims[i]->consumer = domains[i].uuid;
                assert_int_equal(claim_add_device(look.claims.claims[i], &device), 0);
                device.mdev = mdevs[i].uuid;
                assert_int_equal(claim_add_device(look.claims.claims[i], &device), 0);
        }
        begun = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        look_run(&look);
        ended = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        look_expect(&look, "many", "", NULL);
        return ended - begun;
}

/* Ten times as many claims and guests cost ten times as much, not a hundred times. */
static void test_cost_is_linear(void **state)
{
        uint64_t few = UINT64_MAX, many = UINT64_MAX;

        for (int i = 0; i < 3; i++) {
                few = MIN(few, measure(1000));
                many = MIN(many, measure(10000));
        }
        print_message("1000 claims: %.2f ms, 10000: %.2f ms\n", (double)few / 1e3,
                      (double)many / 1e3);
        assert_true(many < few * 30);
}

/* D-Bus takes only UTF-8, and the limit of a name can cut a character. */
static void test_a_problem_is_utf8(void **state)
{
        ReconcileProblems problems = { 0 };

        assert_int_equal(
                reconcile_add_problem(&problems, &UUID_NULL, 0, "guest %.3s is off", "ab\xc3\xa9"),
                0);
        assert_string_equal(problems.items[0].text, "guest ab? is off");
        reconcile_problems_done(&problems);
}

TEST_MAIN(test_a_problem_is_utf8, test_table, test_unread_guest, test_started_only,
          test_guest_of_another_host_is_not_adopted, test_layouts, test_layout_of_two_claims,
          test_held_cpus, test_a_device_that_the_host_does_not_list, test_identities, test_orphan,
          test_orphan_with_a_folder, test_unconfirmed_by_placement, test_confirmed_by_placement,
          test_adopted_by_placement, test_pause_between_reads_grows, test_recorded, test_no_orphans,
          test_moved, test_more_than_there_is, test_lives, test_cost_is_linear)
