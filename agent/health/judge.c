/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides about findings. The order of the checks is that of HealthDecision: the reasons to ignore
 * a finding come first.
 *
 * A device has one cordon. If two rules that withhold find it broken, the rule whose cordon is
 * harder to lift owns it. Otherwise the end of the other rule would offer a device with a lasting
 * fault. No decision changes a cordon of a person. A finding under it is reported once. Otherwise
 * the person who lifts it would not know the finding, and older findings than the lift do not
 * count.
 *
 * Tests: tests/unit/agent/health/test-judge.c */

#include "agent/health/judge.h"

#include <string.h>

#include "base/array.h"

/* Returns true if the cordon of a rule makes another one by this rule unnecessary. */
static bool is_covered(const HealthFacts *facts)
{
        const CordonState *cordon = &facts->cordon;

        return cordon->cordoned &&
               (strcmp(cordon->rule.name, facts->finding->rule) == 0 ||
                health_lift_from_text(cordon->rule.lift) >= facts->finding->lift);
}

static bool is_about(const struct HealthSighting *sighting, const char *rule, const char *address)
{
        return strcmp(sighting->rule, rule) == 0 && strcmp(sighting->address, address) == 0;
}

/* Returns the number of different consumers that had the device at cases of this rule. A case
 * counts if it is after the last lift of the cordon, and at most the time of the rule before the
 * last case of the finding. */
static size_t count_guests(const HealthFacts *facts)
{
        const HealthMessage *finding = facts->finding;
        size_t n = 0;

        for (size_t i = 0; i < facts->sightings->n_items; i++) {
                const struct HealthSighting *sighting = &facts->sightings->items[i];

                n += is_about(sighting, finding->rule, finding->address) &&
                     !uuid_empty(&sighting->consumer) &&
                     sighting->usec > facts->cordon.lifted_usec &&
                     sighting->usec + finding->within_usec >= finding->last_usec;
        }
        return n;
}

HealthDecision health_judge(const HealthFacts *facts)
{
        const HealthMessage *finding = facts->finding;
        bool of_person = facts->cordon.cordoned && !facts->cordon.rule.name[0];
        bool reports = finding->reports || !facts->is_permitted || of_person;

        if (!facts->is_offered)
                return HEALTH_UNKNOWN_DEVICE;
        if (finding->lift == HEALTH_LIFT_BOOT && strcmp(finding->boot_id, facts->boot_id) != 0)
                return HEALTH_OTHER_BOOT;
        if (finding->first_usec <= facts->cordon.lifted_usec)
                return HEALTH_OLD;
        if (reports ? facts->is_reported || (facts->cordon.cordoned && !of_person)
                    : is_covered(facts))
                return HEALTH_KNOWN;
        if (finding->guests > 0 && count_guests(facts) < finding->guests)
                return HEALTH_FEW_GUESTS;
        return reports ? HEALTH_REPORT : HEALTH_WITHHOLD;
}

void health_sightings_note(HealthSightings *sightings, const HealthMessage *finding,
                           const Uuid *consumer)
{
        size_t at = 0, oldest = 0;

        for (; at < sightings->n_items; at++) {
                if (is_about(&sightings->items[at], finding->rule, finding->address) &&
                    uuid_equal(&sightings->items[at].consumer, consumer))
                        break;
                if (sightings->items[at].usec < sightings->items[oldest].usec)
                        oldest = at;
        }
        if (at == HEALTH_SIGHTINGS_MAX)
                at = oldest;
        if (at == sightings->n_items)
                sightings->n_items++;
        sightings->items[at] =
                (struct HealthSighting){ .consumer = *consumer, .usec = finding->last_usec };
        strcpy(sightings->items[at].rule, finding->rule);
        strcpy(sightings->items[at].address, finding->address);
}

bool health_sightings_recover(HealthSightings *sightings, const char *rule, const char *address)
{
        for (size_t i = 0; i < sightings->n_items; i++)
                if (is_about(&sightings->items[i], rule, address) &&
                    uuid_empty(&sightings->items[i].consumer)) {
                        array_close(sightings->items, sizeof(sightings->items[0]),
                                    &sightings->n_items, i);
                        return true;
                }
        return false;
}
