/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reading XML that a hypervisor sent, which is foreign text: guests' names and devices' strings are
 * in it.
 *
 * The one place that calls libxml2. No network, no document type, no entities but the five of XML
 * itself; bounds on size, depth and number of elements. Elements of a namespace, which are not
 * libvirt's own (what others keep in <metadata>), are as if they were not there. Nodes and texts
 * are borrowed from the document. Any thread; nothing is shared between documents. */

#include "base/error.h"
#include "drivers/host/snapshot.h"

#define XML_SIZE_MAX  (8 * 1024 * 1024) /* bytes of text */
#define XML_ITEMS_MAX 200000            /* elements and attributes */

typedef struct _xmlDoc XmlDocument;
typedef struct _xmlNode XmlNode;

/* Parses a document whose root element must have that name. -EBADMSG with words, -ENOMEM. */
int xml_parse(const char *text, const char *root_name, XmlDocument **ret, Error *reterr);
void xml_document_free(XmlDocument *document); /* NULL is allowed */
DEFINE_CLEANUP(XmlDocument *, xml_document_free);

const XmlNode *xml_root(const XmlDocument *document);

/* The first child element of that name, the next sibling of that name; NULL when there is none, and
 * for a NULL node, so that steps can be chained. */
const XmlNode *xml_child(const XmlNode *parent, const char *name);
const XmlNode *xml_next(const XmlNode *node, const char *name);

#define XML_FOREACH(child_, parent_, name_)                                 \
        for (const XmlNode *child_ = xml_child((parent_), (name_)); child_; \
             child_ = xml_next(child_, (name_)))

/* The child element of that name whose attribute "type" is type. */
const XmlNode *xml_child_of_type(const XmlNode *parent, const char *name, const char *type);

/* The text of the element up to its first child element, the value of an attribute; "" when there
 * is none. */
const char *xml_text(const XmlNode *node);
const char *xml_child_text(const XmlNode *parent, const char *name);
const char *xml_attribute(const XmlNode *node, const char *name);

/* A copy without the spaces around it. -EBADMSG above SNAPSHOT_TEXT_MAX bytes, -ENOMEM; what names
 * the thing for the words. */
int xml_copy(const char *text, const char *what, char **ret, Error *reterr);

/* The same of the text of the child of that name. */
int xml_copy_child(const XmlNode *parent, const char *name, char **ret, Error *reterr);

/* A number, decimal or 0x…, spaces around it allowed. -EBADMSG for something else or above max. */
int xml_number(const char *text, uint64_t max, const char *what, uint64_t *ret, Error *reterr);

/* The same; a missing text ("") leaves *value alone. */
int xml_optional_number(const char *text, uint64_t max, const char *what, uint64_t *value,
                        Error *reterr);

/* The same for a number that fits an int. */
int xml_optional_int(const char *text, const char *what, int *value, Error *reterr);

/* What a node gives as domain, bus, slot and function: how is xml_attribute() or xml_child_text().
 * "" for an address that does not fit. */
int xml_pci_address(const XmlNode *node, const char *(*how)(const XmlNode *, const char *),
                    char ret[static PCI_ADDRESS_SIZE], Error *reterr);

/* Makes *ret an array of zeroed items, one for each child of that name; NULL where there is none.
 * -EBADMSG for more than max of them, -ENOMEM. */
int xml_make_array(const XmlNode *parent, const char *name, size_t max, size_t item_size, void *ret,
                   Error *reterr);

/* An amount of memory, in KiB, rounded down; unit is one of libvirt's, "" is KiB. */
int xml_scaled_kib(const char *text, const char *unit, uint64_t *ret, Error *reterr);

/* An amount of memory with its attribute "unit" (KiB when missing), in KiB. 0 for a NULL node. */
int xml_memory_kib(const XmlNode *node, uint64_t *ret, Error *reterr);
