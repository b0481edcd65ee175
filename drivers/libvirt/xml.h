/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads XML from a hypervisor. It is untrusted text, because it has names of guests and strings
 * of devices.
 *
 * In the program, only this module calls libxml2. It allows no network, no document type, and only
 * XML's five own entities. Size, depth and the number of elements have limits. Elements of a
 * namespace do not exist for the caller: they are not libvirt's, but those of other programs in
 * <metadata>. Nodes and texts are borrowed from the document. Any thread; documents share
 * nothing. */

#include "base/error.h"
#include "drivers/host/snapshot.h"

#define XML_SIZE_MAX  (8 * 1024 * 1024) /* bytes of text */
#define XML_ITEMS_MAX 200000            /* elements and attributes */

typedef struct _xmlDoc XmlDocument;
typedef struct _xmlNode XmlNode;

/* Parses a document. Its root element must have this name. -EBADMSG with an error text, -ENOMEM. */
int xml_parse(const char *text, const char *root_name, XmlDocument **ret, Error *reterr);
void xml_document_free(XmlDocument *document); /* NULL-safe */
DEFINE_CLEANUP(XmlDocument *, xml_document_free);

const XmlNode *xml_root(const XmlDocument *document);

/* Return the first child element, or the next sibling, with this name. NULL if there is none,
 * and for a NULL node, so calls can be chained. */
const XmlNode *xml_child(const XmlNode *parent, const char *name);
const XmlNode *xml_next(const XmlNode *node, const char *name);

#define XML_FOREACH(child_, parent_, name_)                                 \
        for (const XmlNode *child_ = xml_child((parent_), (name_)); child_; \
             child_ = xml_next(child_, (name_)))

/* Returns the first child element with this name and this attribute "type", or NULL. */
const XmlNode *xml_child_of_type(const XmlNode *parent, const char *name, const char *type);

/* Return the text of an element up to its first child element, or the value of an attribute; ""
 * if there is none. */
const char *xml_text(const XmlNode *node);
const char *xml_child_text(const XmlNode *parent, const char *name);
const char *xml_attribute(const XmlNode *node, const char *name);

/* Copies the text without the white space around it, and frees the old *ret. what is the name in
 * the error text. -EBADMSG above SNAPSHOT_TEXT_MAX bytes, -ENOMEM. */
int xml_copy(const char *text, const char *what, char **ret, Error *reterr);

/* Copies the text of the child with this name in the same way. */
int xml_copy_child(const XmlNode *parent, const char *name, char **ret, Error *reterr);

/* Parses a number, decimal or 0x…, with white space around it. -EBADMSG if it is missing, malformed
 * or above max. */
int xml_number(const char *text, uint64_t max, const char *what, uint64_t *ret, Error *reterr);

/* Parses a number in the same way. An empty text leaves *value unchanged. */
int xml_optional_number(const char *text, uint64_t max, const char *what, uint64_t *value,
                        Error *reterr);

/* Parses a number from 0 to INT32_MAX in the same way. */
int xml_optional_int(const char *text, const char *what, int *value, Error *reterr);

/* Reads the four numbers of an address through how, which is xml_attribute() or xml_child_text().
 * Writes "" if the address does not fit. -EBADMSG if a number is missing, malformed or above 32
 * bits. */
int xml_pci_address(const XmlNode *node, const char *(*how)(const XmlNode *, const char *),
                    char ret[static PCI_ADDRESS_SIZE], Error *reterr);

/* Sets *ret to an array with one zeroed item for each child with this name, or to NULL if there
 * is none. -EBADMSG for more than max of them, -ENOMEM. */
int xml_make_array(const XmlNode *parent, const char *name, size_t max, size_t item_size, void *ret,
                   Error *reterr);

/* Converts an amount of memory to KiB, rounded down. unit is one of libvirt's units up to TiB; ""
 * is KiB. Another unit, or a number that is missing, malformed or too large, is -EBADMSG. */
int xml_scaled_kib(const char *text, const char *unit, uint64_t *ret, Error *reterr);

/* Converts the amount of memory in a node to KiB. Its attribute "unit" is the unit; KiB if it is
 * missing. 0 for a NULL node. Errors as above. */
int xml_memory_kib(const XmlNode *node, uint64_t *ret, Error *reterr);
