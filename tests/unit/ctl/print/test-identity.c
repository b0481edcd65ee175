/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/identity.h"

#include "tests/fixtures/ctl-capture.h"

#define GOOD                                                                                           \
        "{'state':'good','text':'Placement knows it','advice':'','name':'host','uuid':'U',"            \
        "'file':'/f','placement_error':'','own':{'uuid':'U','name':'host','root':true,'generation':4," \
        "'consumers':1,'modified_usec':1699999990000000},'holder':{'uuid':'U','name':'host'},"         \
        "'below':2,'changes':[],'done':false,'refused':''}"
#define TAKEN                                                                                                      \
        "{'state':'taken','text':'It is taken','advice':'Adopt it','name':'host','uuid':'',"                       \
        "'file':'','placement_error':'','own':null,'holder':{'uuid':'V','name':'host','root':true,'generation':0," \
        "'consumers':-1,'modified_usec':0},'below':0,'changes':[],'done':false,'refused':''}"
#define AWAY                                                                                  \
        "{'state':'unknown','text':'Not known','advice':'','name':'','uuid':'U','file':'/f'," \
        "'placement_error':'no \\u001b answer','own':null,'holder':null,'below':0,"           \
        "'changes':[],'done':false,'refused':'no answer'}"
#define PLAN                                                                       \
        "{'state':'renamed','text':'It was renamed','advice':'Rename','changes':[" \
        "{'uuid':'C','from':'a_1','to':'b_1'},{'uuid':'U','from':'a','to':'b'}],"  \
        "'done':false,'refused':''}"
#define DONE                                                                  \
        "{'state':'good','text':'Placement knows it','advice':'','changes':[" \
        "{'uuid':'U','from':'a','to':'b'}],'done':true,'refused':''}"

#define LONG                                                                     \
        "{'state': 'good', 'name': 'host', 'uuid': 'U', 'file': 'F',"            \
        " 'text': 'It is a long sentence about one host', 'own': {'uuid':"       \
        " '12345678-1234-1234-1234-123456789abc', 'name': 'host', 'root': true," \
        " 'generation': 7, 'consumers': 2}}"

static const char *word;

static void print(const json_t *document, CtlPage *page)
{
        ctl_identity_print(document, word, page);
}

static void test_words(void **state)
{
        static const struct {
                const char *word;
                int exit;
                PrintRow row;
        } cases[] = {
                { "show",
                  EXIT_SUCCESS,
                  { GOOD,
                    .has = { "Host: host\n", "Read from: /f\n",
                             "U, named host, generation 4, used by 1 consumer, changed 10s ago\n",
                             "Children: 2 providers\n" },
                    .lacks = { "Same name" } } },
                { "check",
                  EXIT_SUCCESS,
                  { GOOD, .has = { "Placement knows it.\n" }, .lacks = { "Host" } } },
                { "show",
                  EXIT_SUCCESS,
                  { TAKEN,
                    .has = { "Uuid: none yet\n", "Placement: no provider with this uuid\n",
                             "Same name: V, named host, generation 0\n",
                             "It is taken.\nAdopt it.\n" },
                    .lacks = { "Read from" } } },
                { "check",
                  EXIT_FAILURE,
                  { TAKEN, .has = { "It is taken.\nAdopt it.\n" }, .lacks = { "Host" } } },
                { "adopt",
                  EXIT_SUCCESS,
                  { TAKEN, .has = { "Would adopt: V, named host" }, .lacks = { "Host" } } },
                { "check",
                  EXIT_FAILURE,
                  { AWAY, .has = { "Not known.\n", "no \\x1b answer.\n" }, .lacks = { "Host" } } },
                { "show",
                  EXIT_FAILURE,
                  { AWAY, .has = { "does not answer", "no \\x1b answer\n" },
                    .lacks = { "Below" } } },
                { "rename",
                  EXIT_SUCCESS,
                  { PLAN, .has = { "C  a_1 → b_1\nU  a → b\n" }, .lacks = { "renamed" } } },
                /* no line is longer than the terminal, and only labels begin on the left */
                { "show",
                  EXIT_SUCCESS,
                  { LONG,
                    .has = { "   Placement: 12345678-1234-1234-1234-123456789abc, named\n"
                             "              host, generation 7, used by 2 consumers\n" },
                    .width = 60 } },
                { "check",
                  EXIT_SUCCESS,
                  { LONG, .text = "It is a long sentence about\none host.\n", .width = 30 } },
                { "rename",
                  EXIT_SUCCESS,
                  { DONE, .has = { "U  a → b\nPlacement knows it.\n" }, .lacks = { "Rename" } } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *document = parse_quoted(cases[i].row.document);

                word = cases[i].word;
                check_rows(print, &cases[i].row, 1);
                assert_int_equal(ctl_identity_exit(document, word), cases[i].exit);
        }
}

TEST_MAIN(test_words)
