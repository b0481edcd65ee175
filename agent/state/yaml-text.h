/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Foreign YAML, read with libyaml and looked at with care.
 *
 * libyaml makes a graph of nodes in which an alias is the same node again, and takes quadratic time
 * for depth: texts that are large or deep are refused before it sees them, and a reader looks as
 * deep as its schema and no deeper. */

#include <yaml.h>

#include "base/error.h"

#define YAML_TEXT_MAX_BYTES (1024 * 1024)

/* Parses the first document of text. The caller frees with yaml_document_delete(). -EINVAL with
 * words for what is too large, too deep or no YAML (line included), -ENOMEM. */
int yaml_text_parse(const char *text, size_t n, yaml_document_t *ret, Error *reterr);

/* The text of a scalar, borrowed; NULL for every other node, no node, and a text with a NUL in it.
 */
const char *yaml_text_scalar(const yaml_node_t *node);

/* The value of a key, the last one when it is there twice; NULL when it is not, or node is no
 * mapping. */
yaml_node_t *yaml_text_member(yaml_document_t *document, const yaml_node_t *node, const char *key);
