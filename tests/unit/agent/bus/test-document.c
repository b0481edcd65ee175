/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/document.h"
#include "tests/unit/test.h"

/* A text of one letter; 0: there is none. */
static char *make_text(char letter)
{
        const char text[] = { letter, '\0' };

        return letter == '0' ? NULL : strdup(text);
}

/* One step, and what came of it. */
static const char *take(BusDocumentText *document, const char *step)
{
        bool asked = bus_document_is_asked(document);

        switch (step[0]) {
        case 'n':
                bus_document_note(document);
                return "";
        case 'g':
                bus_document_give_up(document);
                assert_null(document->text);
                return "";
        case 'r': /* what Describe() does */
                if (bus_document_is_missing(document))
                        bus_document_set(document, make_text(step[1]));
                bus_document_read(document);
                return document->text ? document->text : "0";
        default: /* s: what the timer does */
                if (asked)
                        bus_document_set(document, make_text(step[1]));
                return bus_document_signal(document) ? (asked ? "m+" : "+") : asked ? "m-" : "-";
        }
}

/* n: something changed; g: it is given up; ra: somebody reads it, and it is "a" if it is made; sa:
 * it is signalled, and "a" if it is made for that. Then what each reader got, whether it was made
 * for the signal (m), and whether there was one (+ or -). */
static void test_steps(void **state)
{
        static const struct {
                const char *about, *steps, *expected;
        } cases[] = {
                { "nobody reads", "n s0 ra", "-a" },
                { "signalled once for each reading", "ra sa n n sb sb n sc rc n sd", "a-m+--cm+" },
                { "the same again is no change, the next one is", "ra n sa n sb", "am-m+" },
                { "the first reader has the old text", "ra n rb s0 n sc", "ab+m+" },
                { "there and back: the second reader is wrong", "rc n rd n sc", "cd+" },
                { "given up", "ra g s0 g s0 rb", "a+-b" },
                { "it cannot be made any more", "ra n s0 rb", "am+b" },
                { "who got none is signalled the first one", "r0 n s0 n sa", "0m-m+" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(bus_document_done) BusDocumentText document = { 0 };
                char step[3], got[32] = "";
                int n;

                for (const char *p = cases[i].steps; sscanf(p, "%2s%n", step, &n) == 1; p += n)
                        strcat(got, take(&document, step));
                if (strcmp(got, cases[i].expected) != 0)
                        fail_msg("%s: %s", cases[i].about, got);
        }
}

TEST_MAIN(test_steps)
