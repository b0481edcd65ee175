/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/health/message.h"
#include "tests/unit/test.h"

#define SUBJECT \
        "\"rule\":\"r\",\"address\":\"0000:41:00.0\",\"line\":\"l\",\"boot_id\":\"b\",\"last_usec\":2"
#define REST "\"first_usec\":1,\"within_usec\":9,\"guests\":2,\"lift\":\"never\",\"reports\":true"

/* A message that is read and written again is unchanged. */
static void test_both_ways(void **state)
{
        static const char *const texts[] = {
                "{\"kind\":\"finding\"," SUBJECT "," REST "}",
                "{\"kind\":\"recovered\"," SUBJECT "}",
                "{\"kind\":\"problem\",\"text\":\"t\"}",
                "{\"kind\":\"state\",\"text\":\"\",\"n_rules\":3,\"cursor\":\"s=1;i=2\"}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_free_ char *text = NULL;
                HealthMessage message;

                assert_int_equal(
                        health_message_from_text(texts[i], strlen(texts[i]), &message, NULL), 0);
                assert_int_equal(message.kind, i);
                text = health_message_to_text(&message);
                assert_string_equal(text, texts[i]);
        }
}

static void test_bad_messages(void **state)
{
        static const char *const texts[] = {
                "",
                "[]",
                "{}",
                "{\"kind\":\"other\"}",
                "{\"kind\":\"finding\"," SUBJECT "}",
                "{\"kind\":\"finding\"," REST "}",
                "{\"kind\":\"recovered\",\"rule\":\"r\",\"address\":\"x\",\"line\":\"l\",\"boot_id\":\"b\",\"last_usec\":2}",
                "{\"kind\":\"recovered\",\"rule\":\"\",\"address\":\"0000:41:00.0\",\"line\":\"l\",\"boot_id\":\"b\",\"last_usec\":2}",
                "{\"kind\":\"finding\"," SUBJECT
                ",\"first_usec\":1,\"within_usec\":9,\"guests\":2,\"lift\":\"x\",\"reports\":true}",
                "{\"kind\":\"finding\"," SUBJECT
                ",\"first_usec\":-1,\"within_usec\":9,\"guests\":2,\"lift\":\"boot\",\"reports\":true}",
                "{\"kind\":\"state\",\"text\":1,\"n_rules\":3,\"cursor\":\"\"}",
        };
        HealthMessage message = { .n_rules = 7 };
        char longest[1200] = "";

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (health_message_from_text(texts[i], strlen(texts[i]), &message, NULL) !=
                    -EBADMSG)
                        fail_msg("%s", texts[i]);
        snprintf(longest, sizeof(longest), "{\"kind\":\"problem\",\"text\":\"%1000d\"}", 1);
        assert_int_equal(health_message_from_text(longest, strlen(longest), &message, NULL),
                         -EBADMSG);
        assert_int_equal(message.n_rules, 7);
}

/* Control characters of a hostile line do not reach the journal of the agent. */
static void test_texts_are_safe(void **state)
{
        const char *text = "{\"kind\":\"problem\",\"text\":\"a\\u001b[2Jb\\n\"}";
        HealthMessage message;

        assert_int_equal(health_message_from_text(text, strlen(text), &message, NULL), 0);
        assert_string_equal(message.text, "a?[2Jb?");
}

TEST_MAIN(test_both_ways, test_bad_messages, test_texts_are_safe)
