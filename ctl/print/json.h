/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reading and writing the JSON documents that computectl prints (computectl(1), "JSON"). */

#include "base/json.h"
#include "ctl/print/page.h"

typedef enum CtlJson {
        CTL_JSON_OFF,
        CTL_JSON_SHORT,
        CTL_JSON_PRETTY,
        _CTL_JSON_MAX,
        _CTL_JSON_INVALID = -EINVAL,
} CtlJson;

CtlJson ctl_json_from_text(const char *text); /* "off", "short", "pretty" */

/* On a terminal everything that is not ASCII is written as \uNNNN: names in it are foreign. NULL:
 * memory ran out. */
void ctl_json_print(const json_t *document, CtlJson mode, CtlPage *page);

/* Members for showing: "" or 0 when they are missing or of another type. Borrowed. */
const char *ctl_json_text(const json_t *object, const char *key);
uint64_t ctl_json_u64(const json_t *object, const char *key);

/* The first item of an array with that text for a member, or NULL. Borrowed. */
const json_t *ctl_json_find(const json_t *array, const char *key, const char *text);

/* Parses a document of the agent whose member "format" must be that text; NULL: an array. -EBADMSG
 * with words. */
int ctl_json_read_document(const char *text, const char *format, json_t **ret, Error *reterr);

/* Returns the text that a function writes of a value; NULL when out of memory. The caller frees. */
char *ctl_json_format(const json_t *json, void (*write)(const json_t *json, FILE *stream));

/* "VCPU=2, MEMORY_MB=512". Of the text, NULL when out of memory; the caller frees. */
void ctl_json_write_resources(const json_t *resources, FILE *stream);
char *ctl_json_format_resources(const json_t *resources);

/* Adds the members of one object of amounts to those of another; sums saturate. -ENOMEM. */
int ctl_json_add_amounts(json_t *sums, const json_t *amounts);
