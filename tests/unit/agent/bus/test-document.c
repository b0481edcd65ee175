/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/document.h"
#include "tests/unit/test.h"

/* What Describe() does. */
static const char *read_as(BusDocumentText *document, const char *text)
{
        if (bus_document_is_missing(document))
                bus_document_set(document, strdup(text));
        bus_document_read(document);
        return document->text;
}

/* What the timer does. */
static bool tell_as(BusDocumentText *document, const char *text)
{
        if (bus_document_is_asked(document))
                bus_document_set(document, text ? strdup(text) : NULL);
        return bus_document_signal(document);
}

static void test_nobody_reads(void **state)
{
        _cleanup_(bus_document_done) BusDocumentText document = { 0 };

        bus_document_note(&document);
        assert_false(bus_document_is_asked(&document));
        assert_false(bus_document_signal(&document));
        assert_string_equal(read_as(&document, "a"), "a");
}

static void test_told_once_for_each_reading(void **state)
{
        _cleanup_(bus_document_done) BusDocumentText document = { 0 };

        (void)read_as(&document, "a");
        assert_false(tell_as(&document, "a"));
        bus_document_note(&document);
        bus_document_note(&document);
        assert_true(tell_as(&document, "b"));
        assert_false(tell_as(&document, "b"));
        bus_document_note(&document);
        assert_false(bus_document_is_asked(&document));
        assert_false(tell_as(&document, "c"));
        assert_string_equal(read_as(&document, "c"), "c");
        bus_document_note(&document);
        assert_true(tell_as(&document, "d"));
}

static void test_the_same_again_is_no_change(void **state)
{
        _cleanup_(bus_document_done) BusDocumentText document = { 0 };

        (void)read_as(&document, "a");
        bus_document_note(&document);
        assert_false(tell_as(&document, "a"));
        /* and the next one is told */
        bus_document_note(&document);
        assert_true(tell_as(&document, "b"));
}

/* Between the change and the signal another one reads: the first one has the old text. */
static void test_who_read_before_is_told(void **state)
{
        _cleanup_(bus_document_done) BusDocumentText document = { 0 };

        (void)read_as(&document, "a");
        bus_document_note(&document);
        assert_string_equal(read_as(&document, "b"), "b");
        assert_false(bus_document_is_asked(&document));
        assert_true(tell_as(&document, NULL));
        bus_document_note(&document);
        assert_true(tell_as(&document, "c"));

        /* There and back within the time that changes are collected: the second reader is wrong. */
        (void)read_as(&document, "c");
        bus_document_note(&document);
        (void)read_as(&document, "d");
        bus_document_note(&document);
        assert_true(tell_as(&document, "c"));
}

static void test_given_up(void **state)
{
        _cleanup_(bus_document_done) BusDocumentText document = { 0 };

        (void)read_as(&document, "a");
        bus_document_give_up(&document);
        assert_null(document.text);
        assert_false(bus_document_is_asked(&document));
        assert_true(bus_document_signal(&document));
        assert_true(bus_document_is_missing(&document));
        bus_document_give_up(&document);
        assert_false(bus_document_signal(&document));
}

static void test_it_cannot_be_made_any_more(void **state)
{
        _cleanup_(bus_document_done) BusDocumentText document = { 0 };

        (void)read_as(&document, "a");
        bus_document_note(&document);
        assert_true(tell_as(&document, NULL));
        assert_true(bus_document_is_missing(&document));
}

/* Who was told that there is none hears of the first one, and nothing until then. */
static void test_there_is_none_yet(void **state)
{
        _cleanup_(bus_document_done) BusDocumentText document = { 0 };

        bus_document_set(&document, NULL);
        bus_document_read(&document);
        bus_document_note(&document);
        assert_false(tell_as(&document, NULL));
        bus_document_note(&document);
        assert_true(tell_as(&document, "a"));
}

TEST_MAIN(test_nobody_reads, test_told_once_for_each_reading, test_the_same_again_is_no_change,
          test_who_read_before_is_told, test_given_up, test_it_cannot_be_made_any_more,
          test_there_is_none_yet)
