/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/text.h"
#include "drivers/host/snapshot.h"
#include "drivers/libvirt/xml.h"
#include "tests/unit/test.h"

static void test_walk(void **state)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        const XmlNode *root;
        size_t n = 0;

        assert_int_equal(xml_parse("<?xml version='1.0'?><!-- c --><a x='1 &amp; &#x32;'>"
                                   "<b type='p'>one</b> <c/><b type='q'><![CDATA[<t>]]>wo</b></a>",
                                   "a", &document, NULL),
                         0);
        root = xml_root(document);
        assert_string_equal(xml_attribute(root, "x"), "1 & 2");
        assert_string_equal(xml_attribute(root, "y"), "");
        assert_string_equal(xml_attribute(NULL, "x"), "");
        XML_FOREACH(b, root, "b")
                n++;
        assert_int_equal(n, 2);
        assert_string_equal(xml_text(xml_child(root, "b")), "one");
        assert_string_equal(xml_text(xml_child_of_type(root, "b", "q")), "<t>wo");
        assert_null(xml_child_of_type(root, "b", "r"));
        assert_null(xml_child(xml_child(root, "nothing"), "b"));
        assert_string_equal(xml_text(xml_child(root, "c")), "");
        assert_null(xml_next(NULL, "b"));
}

static void test_namespaces(void **state)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        const XmlNode *root;

        assert_int_equal(xml_parse("<a><m> <x:b xmlns:x='u' type='p'>one<b>two</b> </x:b></m>"
                                   "<b type='q'>three</b></a>",
                                   "a", &document, NULL),
                         0);
        root = xml_root(document);
        assert_null(xml_child(xml_child(root, "m"), "b"));
        assert_string_equal(xml_text(xml_child(root, "m")), " ");
        assert_string_equal(xml_text(xml_child(root, "b")), "three");
        assert_null(xml_next(xml_child(root, "b"), "b"));
}

static void test_hostile(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                { "", "Not XML" },
                { "garbage", "Not XML" },
                { "<a>", "Not XML" },
                { "<a></b>", "Not XML" },
                { "<a/><a/>", "Not XML" },
                { "<b/>", "Expected <a>, found <b>" },
                { "<a>&undefined;</a>", "Not XML" },
                { "<a x='&lt;' x='2'/>", "Not XML" },
                { "<a>\xff\xfe</a>", "Not XML" },
                { "<a>\x01</a>", "Not XML" },
                { "<!DOCTYPE a><a/>", "document type" },
                { "<!DOCTYPE a SYSTEM 'http://127.0.0.1:1/x.dtd'><a/>", "document type" },
                { "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>",
                  "document type" },
                { "<!DOCTYPE a [<!ENTITY l 'ha'><!ENTITY m '&l;&l;&l;&l;'>]><a x='&m;'/>",
                  "document type" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(xml_document_freep) XmlDocument *document = NULL;
                Error error = ERROR_NULL;

                if (xml_parse(cases[i].text, "a", &document, &error) != -EBADMSG)
                        fail_msg("%s: taken", cases[i].text);
                if (!strstr(error.text, cases[i].words))
                        fail_msg("%s: \"%s\"", cases[i].text, error.text);
        }
}

/* Returns prefix, n times piece, and suffix. */
static char *repeat(const char *prefix, const char *piece, size_t n, const char *suffix)
{
        size_t length = strlen(piece);
        char *text = malloc(strlen(prefix) + n * length + strlen(suffix) + 1);
        char *c = stpcpy(text, prefix);

        for (size_t i = 0; i < n; i++)
                c = stpcpy(c, piece);
        strcpy(c, suffix);
        return text;
}

static void test_bounds(void **state)
{
        static const struct {
                const char *prefix, *piece;
                size_t n;
                const char *suffix;
                const char *words; /* NULL: valid */
        } cases[] = {
                { "<a>", "<b/>", XML_ITEMS_MAX - 1, "</a>", NULL },
                { "<a>", "<b/>", XML_ITEMS_MAX, "</a>", "more than 200000 elements" },
                { "<a>", "<b x='' y=''/>", XML_ITEMS_MAX / 3 + 1, "</a>", "more than 200000" },
                { "<a>", "x", XML_SIZE_MAX, "</a>", "longer than" },
                { "<a>", "<!-- -->", 500000, "</a>", NULL },
                /* data of other programs, with a namespace */
                { "<a><metadata><x:y xmlns:x='u'>", "<x:z w='1'/>", 500000, "</x:y></metadata></a>",
                  NULL },
                { "<a><y xmlns='u'>", "<z w='1'/>", 500000, "</y></a>", NULL },
                { "<a><x:y xmlns:x='u'>", "<z w='1'/>", 500000, "</x:y></a>", NULL },
                { "<a><x:y xmlns:x='u'>", "<z>", 100000, "", "Not XML" },
                { "<a>", "<b>", 100000, "", "Not XML" }, /* deep */
                { "<", "n", 1000000, "/>", "Not XML" },
                { "<a ", "n", 1000000, "='1'/>", "Not XML" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(xml_document_freep) XmlDocument *document = NULL;
                _cleanup_free_ char *text =
                        repeat(cases[i].prefix, cases[i].piece, cases[i].n, cases[i].suffix);
                Error error = ERROR_NULL;
                int r = xml_parse(text, "a", &document, &error);

                if (r != (cases[i].words ? -EBADMSG : 0) ||
                    (cases[i].words && !strstr(error.text, cases[i].words)))
                        fail_msg("case %zu: %d, \"%s\"", i, r, error.text);
        }
}

static void test_numbers(void **state)
{
        static const struct {
                const char *text;
                uint64_t max;
                int r;
                uint64_t value;
        } cases[] = {
                { "0", 10, 0, 0 },
                { " \n10\t", 10, 0, 10 },
                { "11", 10, -EBADMSG, 0 },
                { "0x1F", 100, 0, 31 },
                { "010", 100, 0, 10 },
                { "0x", 100, -EBADMSG, 0 },
                { "", 100, -EBADMSG, 0 },
                { " ", 100, -EBADMSG, 0 },
                { "-1", 100, -EBADMSG, 0 },
                { "+1", 100, -EBADMSG, 0 },
                { "1 2", 100, -EBADMSG, 0 },
                { "1.5", 100, -EBADMSG, 0 },
                { "f", 100, -EBADMSG, 0 },
                { "18446744073709551615", UINT64_MAX, 0, UINT64_MAX },
                { "18446744073709551616", UINT64_MAX, -EBADMSG, 0 },
                { "99999999999999999999999999", UINT64_MAX, -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t value = 0;
                Error error = ERROR_NULL;
                int r = xml_number(cases[i].text, cases[i].max, "it", &value, &error);

                if (r != cases[i].r || value != cases[i].value)
                        fail_msg("\"%s\": %d", cases[i].text, r);
        }
}

static void test_memory(void **state)
{
        static const struct {
                const char *text;
                int r;
                uint64_t kib;
        } cases[] = {
                { "<m unit='KiB'>2048</m>", 0, 2048 },
                { "<m>2048</m>", 0, 2048 },
                { "<m unit='bytes'>2048</m>", 0, 2 },
                { "<m unit='b'>1023</m>", 0, 0 },
                { "<m unit='KB'>1024</m>", 0, 1000 },
                { "<m unit='MiB'>2</m>", 0, 2048 },
                { "<m unit='M'>2</m>", 0, 2048 },
                { "<m unit='GiB'>1</m>", 0, 1048576 },
                { "<m unit='TiB'>1</m>", 0, 1073741824 },
                { "<m unit='furlong'>1</m>", -EBADMSG, 0 },
                { "<m unit='TiB'>9223372036854775807</m>", -EBADMSG, 0 },
                { "<m unit='KiB'></m>", -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(xml_document_freep) XmlDocument *document = NULL;
                uint64_t kib = 0;

                assert_int_equal(xml_parse(cases[i].text, "m", &document, NULL), 0);
                if (xml_memory_kib(xml_root(document), &kib, NULL) != cases[i].r ||
                    kib != cases[i].kib)
                        fail_msg("%s: %llu", cases[i].text, (unsigned long long)kib);
        }
}

static void test_copy(void **state)
{
        _cleanup_free_ char *copy = NULL;
        _cleanup_free_ char *text = repeat("", "x", SNAPSHOT_TEXT_MAX + 1, "");
        Error error = ERROR_NULL;

        assert_int_equal(xml_copy(" \n a b ", "it", &copy, &error), 0);
        assert_string_equal(copy, "a b");
        assert_int_equal(xml_copy(text, "it", &copy, &error), -EBADMSG);
        assert_string_equal(copy, "a b");
        assert_int_equal(xml_copy("", "it", &copy, &error), 0);
        assert_string_equal(copy, "");
}

static void test_pci_address(void **state)
{
        static const struct {
                const char *domain, *bus, *slot, *function, *expected; /* NULL: not a number */
        } cases[] = {
                { "0x10000", "0", "0", "0", "" },
                { "0", "0x100", "0", "0", "" },
                { "0", "0", "0x20", "0", "" },
                { "0", "0", "0", "8", "" },
                { "0xffff", "0xff", "0x1f", "7", "ffff:ff:1f.7" },
                { "0", "65", "0", "0", "0000:41:00.0" },
                { "0", "x", "0", "0", NULL },
                { "0", "0", "0", "0x100000000", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(xml_document_freep) XmlDocument *document = NULL;
                _cleanup_free_ char *text = text_format(
                        "<a domain='%s' bus='%s' slot='%s' function='%s'/>", cases[i].domain,
                        cases[i].bus, cases[i].slot, cases[i].function);
                char address[PCI_ADDRESS_SIZE] = "untouched";
                int r;

                assert_int_equal(xml_parse(text, "a", &document, NULL), 0);
                r = xml_pci_address(xml_root(document), xml_attribute, address, NULL);
                assert_int_equal(r, cases[i].expected ? 0 : -EBADMSG);
                assert_string_equal(address, cases[i].expected ? cases[i].expected : "untouched");
        }
}

TEST_MAIN(test_walk, test_namespaces, test_hostile, test_bounds, test_numbers, test_memory,
          test_copy, test_pci_address)
