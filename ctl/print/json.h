/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads and prints the JSON documents of computectl (computectl(1), "JSON"). */

#include "base/json.h"
#include "ctl/print/page.h"

typedef enum CtlJson {
        CTL_JSON_OFF,
        CTL_JSON_SHORT,
        CTL_JSON_PRETTY,
        _CTL_JSON_MAX,
        _CTL_JSON_INVALID = -EINVAL,
} CtlJson;

/* Prints a document and a newline. On a terminal characters that are not ASCII are written as
 * \uNNNN, because names in it can come from guests. Sets page->failed if memory ran out. */
void ctl_json_print(const json_t *document, CtlJson mode, CtlPage *page);

/* Makes a JSON text of foreign bytes. A byte that is not UTF-8 becomes "?", because JSON cannot
 * have it. NULL: memory ran out. */
json_t *ctl_json_foreign(const char *text);

/* Return a member for printing: "" or 0 if it is missing, negative, or of another type.
 * Borrowed. */
const char *ctl_json_text(const json_t *object, const char *key);
uint64_t ctl_json_u64(const json_t *object, const char *key);

/* Finds the first item of an array whose member has that text. Borrowed, or NULL. */
const json_t *ctl_json_find(const json_t *array, const char *key, const char *text);

/* Parses a document of the agent. Its member "format" must be that text; format NULL: it must be
 * an array. Returns -EBADMSG or -ENOMEM, with words. The caller owns the reference. */
int ctl_json_read_document(const char *text, const char *format, json_t **ret, Error *reterr);

/* Returns the text that a function writes for a value; the caller frees. NULL: memory ran out. */
char *ctl_json_format(const json_t *json, void (*write)(const json_t *json, FILE *stream));

/* Writes "VCPU=2, MEMORY_MB=512". */
void ctl_json_write_resources(const json_t *resources, FILE *stream);

/* Adds the members of an object of amounts to those of another one. Sums saturate. After -ENOMEM, a
 * part can have been added. */
int ctl_json_add_amounts(json_t *sums, const json_t *amounts);
