/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses XML with libxml2, and reads numbers and texts from its nodes.
 *
 * xml_parse() checks the size, libxml2 limits the depth, and the callbacks of the parser enforce
 * the other limits while it reads. So a hostile document does not use much memory. The callbacks
 * reject a document type, count elements and attributes, and skip elements of a namespace. The
 * callers see only nodes and texts, and do not use libxml2. Nodes and texts that the functions
 * return are borrowed from the document. NULL nodes are allowed everywhere. A document that breaks
 * a limit is -EBADMSG.
 *
 * Tests: tests/unit/drivers/libvirt/test-xml.c */
#include "drivers/libvirt/xml.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <string.h>

/* The state of a parser; its context points to it. */
typedef struct Limits {
        size_t n_items;
        size_t n_skipped; /* depth of open elements that are skipped */
        bool too_many;
        bool has_doctype;
} Limits;

DEFINE_CLEANUP(xmlParserCtxt *, xmlFreeParserCtxt);

/* Stops the parser. libvirt never sends a document type, and attacks through entities need one. */
static void refuse_doctype(void *context, const xmlChar *name, const xmlChar *external_id,
                           const xmlChar *system_id)
{
        xmlParserCtxt *parser = context;
        Limits *limits = parser->_private;

        limits->has_doctype = true;
        xmlStopParser(parser);
}

/* Skips elements of a namespace and everything in them. They are not libvirt's (<metadata> has
 * only such elements), so they do not count either. */
static void begin_element(void *context, const xmlChar *name, const xmlChar *prefix,
                          const xmlChar *uri, int n_namespaces, const xmlChar **namespaces,
                          int n_attributes, int n_defaulted, const xmlChar **attributes)
{
        xmlParserCtxt *parser = context;
        Limits *limits = parser->_private;

        if (uri || limits->n_skipped > 0) {
                limits->n_skipped++;
                return;
        }
        limits->n_items += 1 + (size_t)n_attributes + (size_t)n_namespaces;
        if (limits->n_items > XML_ITEMS_MAX) {
                limits->too_many = true;
                xmlStopParser(parser);
                return;
        }
        xmlSAX2StartElementNs(context, name, prefix, uri, n_namespaces, namespaces, n_attributes,
                              n_defaulted, attributes);
}

/* Ends an element that begin_element() added, or goes up one level of skipped elements. */
static void end_element(void *context, const xmlChar *name, const xmlChar *prefix,
                        const xmlChar *uri)
{
        xmlParserCtxt *parser = context;
        Limits *limits = parser->_private;

        if (limits->n_skipped > 0)
                limits->n_skipped--;
        else
                xmlSAX2EndElementNs(context, name, prefix, uri);
}

/* Adds text, including white space between elements. Text in a skipped element is dropped. */
static void add_text(void *context, const xmlChar *text, int length)
{
        const xmlParserCtxt *parser = context;
        const Limits *limits = parser->_private;

        if (limits->n_skipped == 0)
                xmlSAX2Characters(context, text, length);
}

/* Sets the error of a parse that failed: the limit that stopped it, or else the error of
 * libxml2. */
static int explain_failure(xmlParserCtxt *parser, const Limits *limits, Error *reterr)
{
        const xmlError *error = xmlCtxtGetLastError(parser);

        if (limits->has_doctype)
                return error_setf(reterr, EBADMSG, "The XML has a document type");
        if (limits->too_many)
                return error_setf(reterr, EBADMSG, "The XML has more than %d elements",
                                  XML_ITEMS_MAX);
        if (error && error->code == XML_ERR_NO_MEMORY)
                return error_oom(reterr);
        return error_setf(reterr, EBADMSG, "Not XML (line %d): %.*s", error ? error->line : 0,
                          error && error->message ? (int)strcspn(error->message, "\n") : 7,
                          error && error->message ? error->message : "unknown");
}

/* Parses the text with the callbacks above. A document that broke a limit is freed, even if
 * libxml2 accepted it. */
static int parse_document(const char *text, size_t size, xmlDoc **ret, Error *reterr)
{
        _cleanup_(xmlFreeParserCtxtp) xmlParserCtxt *parser = xmlNewParserCtxt();
        Limits limits = { 0 };
        xmlDoc *doc;

        if (!parser || !parser->sax)
                return error_oom(reterr);
        parser->_private = &limits;
        parser->sax->internalSubset = refuse_doctype;
        parser->sax->startElementNs = begin_element;
        parser->sax->endElementNs = end_element;
        parser->sax->characters = add_text;
        parser->sax->ignorableWhitespace = add_text;
        parser->sax->comment = NULL;
        parser->sax->processingInstruction = NULL;
        doc = xmlCtxtReadMemory(parser, text, (int)size, NULL, "UTF-8",
                                XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                                        XML_PARSE_NOCDATA);
        if (doc && (limits.has_doctype || limits.too_many || !parser->wellFormed)) {
                xmlFreeDoc(doc);
                doc = NULL;
        }
        if (!doc)
                return explain_failure(parser, &limits, reterr);
        *ret = doc;
        return 0;
}

int xml_parse(const char *text, const char *root_name, XmlDocument **ret, Error *reterr)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        size_t size = strnlen(text, XML_SIZE_MAX + 1);
        const xmlNode *root;
        int r;

        if (size > XML_SIZE_MAX)
                return error_setf(reterr, EBADMSG, "The XML is longer than %d bytes", XML_SIZE_MAX);
        r = parse_document(text, size, &document, reterr);
        if (r < 0)
                return r;
        root = xml_root(document);
        if (!root || strcmp((const char *)root->name, root_name) != 0)
                return error_setf(reterr, EBADMSG, "Expected <%s>, found <%.40s>", root_name,
                                  root ? (const char *)root->name : "");
        *ret = TAKE_PTR(document);
        return 0;
}

void xml_document_free(XmlDocument *document)
{
        xmlFreeDoc(document);
}

const XmlNode *xml_root(const XmlDocument *document)
{
        return xmlDocGetRootElement(document);
}

/* Returns the first element with this name among the node and its next siblings, or NULL. */
static const XmlNode *find_from(const XmlNode *node, const char *name)
{
        for (; node; node = node->next)
                if (node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0)
                        return node;
        return NULL;
}

const XmlNode *xml_child(const XmlNode *parent, const char *name)
{
        return parent ? find_from(parent->children, name) : NULL;
}

const XmlNode *xml_next(const XmlNode *node, const char *name)
{
        return node ? find_from(node->next, name) : NULL;
}

const XmlNode *xml_child_of_type(const XmlNode *parent, const char *name, const char *type)
{
        XML_FOREACH(child, parent, name)
                if (strcmp(xml_attribute(child, "type"), type) == 0)
                        return child;
        return NULL;
}

const char *xml_text(const XmlNode *node)
{
        const XmlNode *child = node ? node->children : NULL;

        return child && child->type == XML_TEXT_NODE && child->content
                       ? (const char *)child->content
                       : "";
}

const char *xml_child_text(const XmlNode *parent, const char *name)
{
        return xml_text(xml_child(parent, name));
}

const char *xml_attribute(const XmlNode *node, const char *name)
{
        if (!node)
                return "";
        for (const xmlAttr *attribute = node->properties; attribute; attribute = attribute->next)
                if (strcmp((const char *)attribute->name, name) == 0)
                        return attribute->children && attribute->children->content
                                       ? (const char *)attribute->children->content
                                       : "";
        return "";
}

/* Returns the start of the text without the white space around it, and its length. */
static const char *trim(const char *text, size_t *ret_length)
{
        size_t length;

        while (isspace((unsigned char)*text))
                text++;
        length = strlen(text);
        while (length > 0 && isspace((unsigned char)text[length - 1]))
                length--;
        *ret_length = length;
        return text;
}

int xml_copy(const char *text, const char *what, char **ret, Error *reterr)
{
        size_t length;
        char *copy;

        text = trim(text, &length);
        if (length > SNAPSHOT_TEXT_MAX)
                return error_setf(reterr, EBADMSG, "%s is longer than %d bytes", what,
                                  SNAPSHOT_TEXT_MAX);
        copy = strndup(text, length);
        if (!copy)
                return error_oom(reterr);
        free(*ret);
        *ret = copy;
        return 0;
}

int xml_copy_child(const XmlNode *parent, const char *name, char **ret, Error *reterr)
{
        return xml_copy(xml_child_text(parent, name), name, ret, reterr);
}

/* Returns the value of a hexadecimal digit. Returns 16 for any other character, which is too large
 * for a digit of base 10 or 16. */
static int digit_of(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char)tolower((unsigned char)c);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

int xml_number(const char *text, uint64_t max, const char *what, uint64_t *ret, Error *reterr)
{
        uint64_t value = 0, base = 10;
        size_t length;
        const char *c = trim(text, &length), *end = c + length;

        if (length > 2 && c[0] == '0' && c[1] == 'x') {
                base = 16;
                c += 2;
        }
        if (c == end)
                return error_setf(reterr, EBADMSG, "%s is missing", what);
        for (; c < end; c++) {
                uint64_t digit = (uint64_t)digit_of(*c);

                if (digit >= base)
                        return error_setf(reterr, EBADMSG, "%s is not a number: \"%.40s\"", what,
                                          text);
                if (u64_mul_overflow(value, base, &value) ||
                    u64_add_overflow(value, digit, &value) || value > max)
                        return error_setf(reterr, EBADMSG, "%s is too large: \"%.40s\"", what,
                                          text);
        }
        *ret = value;
        return 0;
}

int xml_optional_number(const char *text, uint64_t max, const char *what, uint64_t *value,
                        Error *reterr)
{
        return text[0] ? xml_number(text, max, what, value, reterr) : 0;
}

int xml_optional_int(const char *text, const char *what, int *value, Error *reterr)
{
        uint64_t number = (uint64_t)*value;
        int r = xml_optional_number(text, INT32_MAX, what, &number, reterr);

        if (r == 0 && text[0])
                *value = (int)number;
        return r;
}

/* Formats an address. Returns -ERANGE, with ret unchanged, if a number does not fit. Guests
 * cannot have devices in a domain above 16 bits. */
static int format_address(uint64_t domain, uint64_t bus, uint64_t slot, uint64_t function,
                          char ret[PCI_ADDRESS_SIZE])
{
        if (domain > 0xffff || bus > 0xff || slot > 0x1f || function > 7)
                return -ERANGE;
        snprintf(ret, PCI_ADDRESS_SIZE, "%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".%" PRIx64,
                 domain, bus, slot, function);
        return 0;
}

int xml_pci_address(const XmlNode *node, const char *(*how)(const XmlNode *, const char *),
                    char ret[static PCI_ADDRESS_SIZE], Error *reterr)
{
        static const char *const names[] = { "domain", "bus", "slot", "function" };
        uint64_t numbers[ARRAY_SIZE(names)];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                int r = xml_number(how(node, names[i]), UINT32_MAX, names[i], &numbers[i], reterr);

                if (r < 0)
                        return r;
        }
        if (format_address(numbers[0], numbers[1], numbers[2], numbers[3], ret) < 0)
                ret[0] = '\0';
        return 0;
}

int xml_make_array(const XmlNode *parent, const char *name, size_t max, size_t item_size, void *ret,
                   Error *reterr)
{
        void **items = ret;
        size_t n = 0;

        XML_FOREACH(child, parent, name)
                n++;
        if (n > max)
                return error_setf(reterr, EBADMSG, "More than %zu elements <%s>", max, name);
        *items = n > 0 ? calloc(n, item_size) : NULL;
        return n > 0 && !*items ? error_oom(reterr) : 0;
}

/* Returns the bytes of a unit of libvirt's "scaled integers". */
static int unit_bytes(const char *unit, uint64_t *ret)
{
        static const struct {
                const char *names[3];
                uint64_t bytes;
        } units[] = {
                { { "b", "byte", "bytes" }, 1 },
                { { "KiB", "k", "" }, UINT64_C(1) << 10 },
                { { "KB", "KB", "KB" }, 1000 },
                { { "MiB", "M", "M" }, UINT64_C(1) << 20 },
                { { "MB", "MB", "MB" }, 1000000 },
                { { "GiB", "G", "G" }, UINT64_C(1) << 30 },
                { { "GB", "GB", "GB" }, 1000000000 },
                { { "TiB", "T", "T" }, UINT64_C(1) << 40 },
                { { "TB", "TB", "TB" }, UINT64_C(1000000000000) },
        };

        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                for (size_t j = 0; j < ARRAY_SIZE(units[i].names); j++)
                        if (strcmp(unit, units[i].names[j]) == 0) {
                                *ret = units[i].bytes;
                                return 0;
                        }
        return -EINVAL;
}

int xml_scaled_kib(const char *text, const char *unit, uint64_t *ret, Error *reterr)
{
        uint64_t value = 0, bytes;
        int r;

        if (unit_bytes(unit, &bytes) < 0)
                return error_setf(reterr, EBADMSG, "Unknown unit of memory: \"%.20s\"", unit);
        r = xml_number(text, INT64_MAX, "An amount of memory", &value, reterr);
        if (r < 0)
                return r;
        /* The product is in KiB for a unit that is a multiple of KiB, so that a larger amount
         * fits. For other units it is in bytes. */
        if (u64_mul_overflow(value, bytes >= 1024 && bytes % 1024 == 0 ? bytes / 1024 : bytes,
                             &value))
                return error_setf(reterr, EBADMSG, "An amount of memory is too large");
        *ret = bytes % 1024 == 0 ? value : value / 1024;
        return 0;
}

int xml_memory_kib(const XmlNode *node, uint64_t *ret, Error *reterr)
{
        if (!node) {
                *ret = 0;
                return 0;
        }
        return xml_scaled_kib(xml_text(node), xml_attribute(node, "unit"), ret, reterr);
}
