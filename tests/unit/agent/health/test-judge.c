/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/judge.h"
#include "tests/unit/test.h"

typedef struct Case {
        HealthDecision expected;
        HealthLift lift; /* lift of the rule */
        bool reports, unknown, reported, refused;
        unsigned guests;
        const char *boot; /* boot of the evidence; NULL: this one */
        size_t n_guests;
        uint64_t lifted_usec;
        const char *owner; /* rule that owns the present cordon; "": a person; NULL: no cordon */
        const char *owner_lift; /* NULL: "boot" */
} Case;

static const Case cases[] = {
        { .expected = HEALTH_WITHHOLD },
        { .expected = HEALTH_UNKNOWN_DEVICE, .unknown = true },
        { .expected = HEALTH_OTHER_BOOT, .boot = "other" },
        { .expected = HEALTH_WITHHOLD, .boot = "other", .lift = HEALTH_LIFT_NEVER },
        { .expected = HEALTH_WITHHOLD, .boot = "other", .lift = HEALTH_LIFT_RECOVERY },
        /* A person lifted the cordon before, at, or after the first case. */
        { .expected = HEALTH_WITHHOLD, .lifted_usec = 99 },
        { .expected = HEALTH_OLD, .lifted_usec = 100 },
        { .expected = HEALTH_OLD, .lifted_usec = 150 },
        /* The device is cordoned already. */
        { .expected = HEALTH_REPORT, .owner = "" },
        { .expected = HEALTH_REPORT, .owner = "", .lift = HEALTH_LIFT_NEVER },
        { .expected = HEALTH_REPORT, .owner = "", .reports = true },
        { .expected = HEALTH_REPORT, .owner = "", .refused = true },
        { .expected = HEALTH_KNOWN, .owner = "", .reported = true },
        { .expected = HEALTH_FEW_GUESTS, .owner = "", .guests = 2, .n_guests = 1 },
        { .expected = HEALTH_OLD, .owner = "", .lifted_usec = 100 },
        { .expected = HEALTH_KNOWN, .owner = "rule" },
        { .expected = HEALTH_KNOWN, .owner = "other" },
        { .expected = HEALTH_WITHHOLD, .owner = "other", .lift = HEALTH_LIFT_NEVER },
        { .expected = HEALTH_WITHHOLD, .owner = "other", .lift = HEALTH_LIFT_RECOVERY },
        { .expected = HEALTH_KNOWN, .owner = "other", .owner_lift = "never" },
        { .expected = HEALTH_KNOWN, .owner = "other", .owner_lift = "never", .reports = true },
        /* A version of the future wrote the file. */
        { .expected = HEALTH_WITHHOLD, .owner = "other", .owner_lift = "later" },
        { .expected = HEALTH_REPORT, .reports = true },
        { .expected = HEALTH_KNOWN, .reports = true, .reported = true },
        { .expected = HEALTH_WITHHOLD, .reported = true },
        { .expected = HEALTH_REPORT, .refused = true },
        { .expected = HEALTH_KNOWN, .refused = true, .reported = true },
        { .expected = HEALTH_FEW_GUESTS, .guests = 2, .n_guests = 1 },
        { .expected = HEALTH_WITHHOLD, .guests = 2, .n_guests = 2 },
        { .expected = HEALTH_FEW_GUESTS, .guests = 2, .reports = true },
};

static Uuid guest(unsigned n)
{
        char text[40];
        Uuid uuid;

        snprintf(text, sizeof(text), "5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b%04x", n);
        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

static void note(HealthSightings *sightings, HealthMessage *finding, unsigned n, uint64_t usec)
{
        Uuid consumer = guest(n);

        finding->last_usec = usec;
        health_sightings_note(sightings, finding, &consumer);
}

static void test_decisions(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *c = &cases[i];
                HealthMessage finding = { .rule = "rule",
                                          .first_usec = 100,
                                          .last_usec = 200,
                                          .lift = c->lift,
                                          .guests = c->guests,
                                          .reports = c->reports };
                HealthSightings sightings = { 0 };
                HealthFacts facts = { .finding = &finding,
                                      .boot_id = "this",
                                      .is_offered = !c->unknown,
                                      .is_reported = c->reported,
                                      .is_permitted = !c->refused,
                                      .sightings = &sightings,
                                      .cordon.lifted_usec = c->lifted_usec,
                                      .cordon.cordoned = c->owner };

                for (unsigned j = 0; j < c->n_guests; j++)
                        note(&sightings, &finding, j, 200);
                strcpy(finding.boot_id, c->boot ? c->boot : "this");
                if (c->owner)
                        facts.cordon.rule =
                                (CordonRule){ c->owner, c->owner_lift ? c->owner_lift : "boot",
                                              "this" };
                if (health_judge(&facts) != c->expected)
                        fail_msg("case %zu: %d", i, health_judge(&facts));
        }
}

/* Returns the number of guests that count, if a person has lifted the cordon at that time. */
static unsigned count(const HealthSightings *sightings, const HealthMessage *finding,
                      uint64_t lifted_usec)
{
        HealthMessage asked = *finding;
        const HealthFacts facts = { .finding = &asked,
                                    .boot_id = "",
                                    .is_offered = true,
                                    .is_permitted = true,
                                    .cordon.lifted_usec = lifted_usec,
                                    .sightings = sightings };

        asked.first_usec = lifted_usec + 1;
        for (asked.guests = 1; health_judge(&facts) == HEALTH_WITHHOLD; asked.guests++)
                ;
        assert_int_equal(health_judge(&facts), HEALTH_FEW_GUESTS);
        return asked.guests - 1;
}

static void test_sightings(void **state)
{
        static HealthSightings sightings;
        HealthMessage finding = { .rule = "r", .address = "0000:41:00.0", .within_usec = 100 };
        HealthMessage other = { .rule = "r", .address = "0000:81:00.0", .within_usec = 100 };

        note(&sightings, &finding, 1, 1000);
        note(&sightings, &finding, 1, 1010);
        assert_int_equal(count(&sightings, &finding, 0), 1);
        note(&sightings, &other, 2, 1010);
        assert_int_equal(count(&sightings, &finding, 0), 1);
        note(&sightings, &finding, 2, 1110);
        assert_int_equal(count(&sightings, &finding, 0), 2);
        /* A person lifted the cordon after the first guest. */
        assert_int_equal(count(&sightings, &finding, 1050), 1);
        note(&sightings, &finding, 2, 1111);
        assert_int_equal(count(&sightings, &finding, 0), 1);
        /* A function that the rule found broken is no guest, and recovers alone. */
        health_sightings_note(&sightings, &finding, &UUID_NULL);
        health_sightings_note(&sightings, &other, &UUID_NULL);
        assert_int_equal(count(&sightings, &finding, 0), 1);
        assert_true(health_sightings_recover(&sightings, finding.rule, finding.address));
        assert_false(health_sightings_recover(&sightings, finding.rule, finding.address));
        assert_int_equal(count(&sightings, &finding, 0), 1);
        assert_true(health_sightings_recover(&sightings, other.rule, other.address));
        /* The list stays bounded, and keeps the newest. */
        for (unsigned i = 0; i < 2 * HEALTH_SIGHTINGS_MAX; i++)
                note(&sightings, &finding, 16 + i, 2000 + i);
        assert_int_equal(sightings.n_items, HEALTH_SIGHTINGS_MAX);
        assert_int_equal(count(&sightings, &finding, 0), 101);
}

TEST_MAIN(test_decisions, test_sightings)
