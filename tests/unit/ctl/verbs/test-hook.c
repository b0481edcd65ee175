/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/hook.h"
#include "tests/unit/test.h"

static void test_steps(void **state)
{
        static const struct {
                const char *operation, *sub_operation;
                CtlHookStep step;
        } cases[] = {
                { "prepare", "begin", CTL_HOOK_PREPARE },
                { "start", "begin", CTL_HOOK_NOTHING },
                { "started", "begin", CTL_HOOK_STARTED },
                { "stopped", "end", CTL_HOOK_NOTHING },
                { "release", "end", CTL_HOOK_RELEASE },
                { "migrate", "begin", CTL_HOOK_NOTHING },
                { "restore", "begin", CTL_HOOK_NOTHING },
                { "attach", "begin", CTL_HOOK_NOTHING },
                { "reconnect", "begin", CTL_HOOK_NOTHING },
                { "prepare", "end", CTL_HOOK_NOTHING },
                { "", "", CTL_HOOK_NOTHING },
                { "release", "-", CTL_HOOK_NOTHING },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_int_equal(ctl_hook_step(cases[i].operation, cases[i].sub_operation),
                                 cases[i].step);
}

#define UUID "4dea22b3-1d52-48f3-8de9-1a1f9f0a0001"

static void test_uuid(void **state)
{
        static const struct {
                const char *xml, *uuid; /* NULL: none */
        } cases[] = {
                { "<domain><name>a</name><uuid>" UUID "</uuid><x/></domain>", UUID },
                { "<domain><uuid>4DEA22B3-1D52-48F3-8DE9-1A1F9F0A0001</uuid></domain>", UUID },
                { "<uuid>" UUID "</uuid><uuid>x</uuid>", UUID },
                { "<uuid>", NULL },
                { "<uuid>4dea22b3", NULL },
                { "<uuid>4dea22b3-1d52-48f3-8de9-1a1f9f0a000x</uuid>", NULL },
                { "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char uuid[37];

                assert_int_equal(ctl_hook_find_uuid(cases[i].xml, uuid), cases[i].uuid != NULL);
                if (cases[i].uuid)
                        assert_string_equal(uuid, cases[i].uuid);
        }
}

TEST_MAIN(test_steps, test_uuid)
