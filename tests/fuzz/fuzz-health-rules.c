/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/rule.h"
#include "tests/fuzz/fuzz.h"

static void ignore(const char *text, void *userdata)
{
        assert(text[0] != '\0');
}

/* Reads rules, and matches the text itself as a line with each of them. */
void fuzz_text(const char *text)
{
        HealthRules rules = HEALTH_RULES_INIT;
        HealthSubject subject;

        assert(health_rules_add(&rules, "f", text, strlen(text), ignore, NULL) == 0);
        assert(rules.n_items <= HEALTH_RULES_MAX);
        for (size_t i = 0; i < rules.n_items; i++) {
                const HealthRule *rule = rules.items[i];

                assert(rule->name[0] && rule->count >= 1 && rule->count <= HEALTH_COUNT_MAX);
                assert(rule->within_usec > 0 && rule->within_usec <= HEALTH_WITHIN_MAX);
                assert((rule->pattern != NULL) == (rule->evidence == HEALTH_LINE));
                if (rule->pattern && health_pattern_match(rule->pattern, text, &subject))
                        assert((subject.address[0] != '\0') != (subject.nvme[0] != '\0'));
        }
        health_rules_done(&rules);
}
