/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads YAML of unknown origin with libyaml, within limits.
 *
 * libyaml makes a graph of nodes, in which an alias is the same node again. Its time grows with the
 * square of the depth. Large and deep texts are therefore rejected before libyaml reads them. A
 * reader of the nodes must not go deeper than its schema. */

#include <yaml.h>

#include "base/error.h"

#define YAML_TEXT_MAX_BYTES (1024 * 1024)

/* Parses the first document of text, which has n bytes. The caller frees it with
 * yaml_document_delete() after a success. An empty text gives a document without a root node.
 * Returns -EINVAL with words for a text that is too large, too deep or not YAML (with the line), or
 * -ENOMEM. */
int yaml_text_parse(const char *text, size_t n, yaml_document_t *ret, Error *reterr);

/* Returns the text of a scalar, borrowed. Returns NULL for NULL, for other nodes and for a text
 * with a NUL character. */
const char *yaml_text_scalar(const yaml_node_t *node);

/* Returns the value of a key of a mapping, the last one if there are several. Returns NULL if node
 * is not a mapping or lacks the key. */
yaml_node_t *yaml_text_member(yaml_document_t *document, const yaml_node_t *node, const char *key);
