/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/publish/mirror-json.h"

#include "tests/fixtures/json.h"
#include "tests/unit/test.h"

#define ROOT "11111111-1111-4111-8111-111111111111"
#define GPU  "22222222-2222-4222-8222-222222222222"

#define PROVIDER(uuid, name, parent, listed, generation, inventories)         \
        "{'uuid':'" uuid "','name':'" name "','parent_provider_uuid':" parent \
        ",'generation':" listed ",'resource_provider_generation':" generation \
        ",'inventories':" inventories ",'traits':['CUSTOM_T','HW_A'],'aggregates':['" ROOT "']}"
#define VCPU                                                                                   \
        "{'VCPU':{'total':8,'reserved':1,'min_unit':1,'max_unit':8,'step_size':1,'allocation_" \
        "ratio':1.1}}"
#define HOST              PROVIDER(ROOT, "host", "null", "3", "3", VCPU)
#define CHILD             PROVIDER(GPU, "gpu", "'" ROOT "'", "5", "5", "{}")
#define MIRROR(providers) "{'modified_sec':7,'resource_providers':[" providers "]," MISSING "}"
#define MISSING           "'missing_classes':['CUSTOM_M'],'missing_traits':['HW_M']"

static void test_round_trip(void **state)
{
        _cleanup_json_ json_t *json = fixture_json(MIRROR(HOST "," CHILD)), *again = NULL;
        _cleanup_(mirror_freep) Mirror *mirror = NULL;
        const MirrorNames *names;

        assert_int_equal(mirror_from_json(json, &mirror, NULL), 0);
        assert_false(mirror_has_stale(mirror));
        assert_int_equal(mirror->list->modified_sec, 7);
        assert_int_equal(mirror->list->body.size, 0);
        names = &mirror->names;
        assert_true(string_set_contains(&names->known_traits, "CUSTOM_T"));
        assert_true(string_set_contains(&names->known_classes, "VCPU"));
        assert_true(string_set_contains(&names->missing_traits, "HW_M"));
        assert_true(string_set_contains(&names->missing_classes, "CUSTOM_M"));
        again = mirror_to_json(mirror);
        assert_true(json_equal(json, again));
}

static void test_other_forms_are_rejected(void **state)
{
        static const char *const cases[] = {
                "{}",
                "{'modified_sec':-1,'resource_providers':[]," MISSING "}",
                "{'modified_sec':7," MISSING "}",
                "{'modified_sec':7,'resource_providers':[]}",
                "{'modified_sec':7,'resource_providers':[],'missing_classes':[1],'missing_traits':[]}",
                MIRROR(HOST "," HOST),
                MIRROR(CHILD),
                MIRROR("{'uuid':'" ROOT "','name':'host','parent_provider_uuid':null,"
                       "'generation':3}"),
                MIRROR(PROVIDER(ROOT, "host", "null", "3", "4", VCPU)),
                MIRROR(PROVIDER(ROOT, "host", "null", "-3", "-3", VCPU)),
                MIRROR(PROVIDER(ROOT, "host", "null", "3", "3", "{'VCPU':{'total':-1}}")),
                MIRROR(PROVIDER("x", "host", "null", "3", "3", VCPU)),
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *json = fixture_json(cases[i]);
                Mirror *mirror = NULL;
                Error error = ERROR_NULL;

                if (mirror_from_json(json, &mirror, &error) != -EBADMSG || mirror || !error.text[0])
                        fail_msg("case %zu: %s", i, error.text);
        }
}

TEST_MAIN(test_round_trip, test_other_forms_are_rejected)
