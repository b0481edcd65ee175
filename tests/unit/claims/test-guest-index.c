/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/guest-index.h"

#include "tests/fixtures/audit.h"
#include "tests/fixtures/reconcile.h"

/* Consumer x with its allocations, claims and guests on this host. */
static void test_consumers(void **state)
{
        static const struct {
                const char *name;
                const char *held; /* NULL: Placement was not read */
                bool here;
                const char *type;
                const char *claims;
                char guest;     /* a domain; 0: none */
                bool processes; /* a process is its guest */
                ConsumerPlace place;
                bool migration, claimed;
                size_t n_own; /* claims of its own */
        } rows[] = {
                { "not asked", NULL, .type = "unknown", .claims = "", .place = CONSUMER_UNREAD,
                  .migration = true },
                { "here", "VCPU=1@host", true, "unknown", "", .place = CONSUMER_HERE,
                  .migration = true },
                { "elsewhere", "VCPU=1@other", false, "unknown", "", .place = CONSUMER_ELSEWHERE,
                  .migration = true },
                { "nowhere", "", false, "unknown", "", .place = CONSUMER_NOWHERE,
                  .migration = true },
                { "a migration by its type", "VCPU=1@host", true, "MIGRATION", "",
                  .place = CONSUMER_HERE, .migration = true },
                { "no migration by its type", "VCPU=1@host", true, "INSTANCE", "",
                  .place = CONSUMER_HERE },
                { "it has a guest", "VCPU=1@host", true, "unknown", "", 'x',
                  .place = CONSUMER_HERE },
                { "its guest is a process", "VCPU=1@host", true, "unknown", "", .processes = true,
                  .place = CONSUMER_HERE },
                { "a guest of another consumer", "VCPU=1@host", true, "unknown", "", 'y',
                  .place = CONSUMER_HERE, .migration = true },
                { "it has a claim", "VCPU=1@host", true, "INSTANCE", "y confirmed;x confirmed",
                  .place = CONSUMER_HERE, .claimed = true, .n_own = 1 },
                { "it has the two claims of a resize", "VCPU=1@host", true, "INSTANCE",
                  "x confirmed;y confirmed;x claimed target", .place = CONSUMER_HERE,
                  .claimed = true, .n_own = 2 },
                { "a migration has its claim", "VCPU=1@other", false, "INSTANCE",
                  "m confirmed guest=x", 'x', .place = CONSUMER_ELSEWHERE, .claimed = true },
                { "the same, and one of its own", "VCPU=1@host", true, "INSTANCE",
                  "m confirmed guest=x;x confirmed", 'x', .place = CONSUMER_HERE, .claimed = true,
                  .n_own = 1 },
        };
        const Uuid x = make_guest('x');
        const HostDomain process = { .uuid = x, .name = "process 1" };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(allocations_freep) Allocations *read = NULL;
                _cleanup_(look_done) Look look;
                ConsumerRead answer = { .consumer = x, .here = rows[i].here };
                GuestIndex index;
                const Claim *first, *second;

                assert_int_equal(allocations_new(&read), 0);
                answer.holding =
                        audit_consumer(read, 'x', rows[i].type, rows[i].held ? rows[i].held : "");
                look_begin(&look);
                if (rows[i].guest)
                        facts_guest(&look.facts, rows[i].guest, "");
                look_add_claims(&look, rows[i].claims);
                index = (GuestIndex){ .claims = &look.claims,
                                      .facts = &look.facts.facts,
                                      .processes = &process,
                                      .n_processes = rows[i].processes,
                                      .consumers = &answer,
                                      .n_consumers = rows[i].held ? 1 : 0 };
                assert_int_equal(guest_index_make(&index), 0);
                first = guest_index_claim(&index, &x, 0);
                second = guest_index_claim(&index, &x, 1);
                if (guest_index_place(&index, &x) != rows[i].place ||
                    guest_index_can_be_migration(&index, answer.holding) != rows[i].migration ||
                    guest_index_has_claim(&index, &x, NULL) != rows[i].claimed ||
                    (size_t)(first != NULL) + (second != NULL) != rows[i].n_own)
                        fail_msg("%s", rows[i].name);
                if (second)
                        assert_true(first->id < second->id);
                if (first)
                        assert_int_equal(guest_index_has_claim(&index, &x, first),
                                         second || rows[i].guest);
                for (size_t j = 0; j < look.claims.n_claims; j++)
                        if (guest_index_guest(&index, look.claims.claims[j]))
                                assert_int_equal(rows[i].guest, 'x');
                guest_index_done(&index);
        }
}

/* Each grace ends at its span, and a time in the future is within it. */
static void test_grace(void **state)
{
        static const struct {
                uint64_t now, since, span;
                bool within;
        } rows[] = {
                { 100, 100, 10, true },       { 109, 100, 10, true }, { 110, 100, 10, false },
                { 99, 100, 10, true },        { 100, 100, 0, false }, { 0, UINT64_MAX, 1, true },
                { UINT64_MAX, 0, 10, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(time_is_within(rows[i].now, rows[i].since, rows[i].span),
                                 rows[i].within);
}

/* VCPU and PCPU are one amount, and a size covers a guest that has no more of either. */
static void test_sizes(void **state)
{
        static const struct {
                const char *held;
                bool covers; /* 2 CPUs and 512 MiB */
        } rows[] = {
                { "VCPU=2@host MEMORY_MB=512@host", true },
                { "PCPU=1@host VCPU=1@cell MEMORY_MB=600@cell", true },
                { "VCPU=1@host MEMORY_MB=512@host", false },
                { "VCPU=2@host MEMORY_MB=511@host", false },
        };
        const HostDomain domain = { .vcpus = 2, .memory_mb = 512 };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(allocations_freep) Allocations *read = NULL;
                _cleanup_(claim_freep) Claim *claim = audit_claim('x', rows[i].held);
                GuestSize placed, claimed = guest_size_of_claim(claim);

                assert_int_equal(allocations_new(&read), 0);
                placed =
                        guest_size_of_consumer(audit_consumer(read, 'x', "INSTANCE", rows[i].held));
                assert_int_equal(guest_size_covers(claimed, &domain), rows[i].covers);
                assert_int_equal(guest_size_covers(placed, &domain), rows[i].covers);
        }
}

TEST_MAIN(test_consumers, test_grace, test_sizes)
