/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/state/yaml-text.h"

#include <string.h>

#define DEPTH_MAX  100  /* limit of open brackets */
#define DASHES_MAX 1000 /* limit of "-", "?" and ":" in a line; each can open a level */

/* Returns true if the text is nested too deeply for libyaml. Brackets in quotes count too. That
 * does no harm: no valid file has 100 more opening brackets than closing ones. */
static bool is_deep(const char *text, size_t n)
{
        unsigned depth = 0, dashes = 0;

        for (size_t i = 0; i < n; i++) {
                if (text[i] == '[' || text[i] == '{')
                        depth++;
                else if ((text[i] == ']' || text[i] == '}') && depth > 0)
                        depth--;
                if (text[i] == '-' || text[i] == '?' || text[i] == ':')
                        dashes++;
                else if (text[i] == '\n')
                        dashes = 0;
                if (depth > DEPTH_MAX || dashes > DASHES_MAX)
                        return true;
        }
        return false;
}

int yaml_text_parse(const char *text, size_t n, yaml_document_t *ret, Error *reterr)
{
        yaml_parser_t parser;
        int r = 0;

        if (n > YAML_TEXT_MAX_BYTES)
                return error_setf(reterr, EINVAL, "larger than %d bytes", YAML_TEXT_MAX_BYTES);
        if (is_deep(text, n))
                return error_setf(reterr, EINVAL, "nested too deeply");
        if (!yaml_parser_initialize(&parser))
                return error_oom(reterr);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
        if (!yaml_parser_load(&parser, ret))
                r = parser.error == YAML_MEMORY_ERROR
                            ? error_oom(reterr)
                            : error_setf(reterr, EINVAL, "not YAML: line %zu: %s",
                                         parser.problem_mark.line + 1,
                                         parser.problem ? parser.problem : "?");
        yaml_parser_delete(&parser);
        return r;
}

const char *yaml_text_scalar(const yaml_node_t *node)
{
        const char *text;

        if (!node || node->type != YAML_SCALAR_NODE)
                return NULL;
        text = (const char *)node->data.scalar.value;
        return strlen(text) == node->data.scalar.length ? text : NULL;
}

yaml_node_t *yaml_text_member(yaml_document_t *document, const yaml_node_t *node, const char *key)
{
        yaml_node_t *found = NULL;

        if (!node || node->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++) {
                const char *name = yaml_text_scalar(yaml_document_get_node(document, pair->key));

                if (name && strcmp(name, key) == 0)
                        found = yaml_document_get_node(document, pair->value);
        }
        return found;
}
