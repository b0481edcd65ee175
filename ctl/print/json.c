/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads and prints JSON documents. Reading is tolerant: a missing member, or one of another type,
 * is an empty text or 0, so that printers need no checks. The exception is
 * ctl_json_read_document(), which checks the format of a reply.
 *
 * On a terminal ctl_json_print() escapes all characters that are not ASCII, because names in a
 * document can come from guests. Limit: sums of amounts saturate at INT64_MAX. */

#include "ctl/print/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

void ctl_json_print(const json_t *document, CtlJson mode, CtlPage *page)
{
        /* With 15 digits 1.1 is printed as 1.1. The default of 17 digits prints
         * 1.1000000000000001. */
        size_t flags = JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY;
        _cleanup_free_ char *text = NULL;

        flags |= mode == CTL_JSON_PRETTY ? JSON_INDENT(4) : JSON_COMPACT;
        if (page->style.terminal)
                flags |= JSON_ENSURE_ASCII;
        text = json_dumps(document, flags);
        if (text)
                fprintf(page->output, "%s\n", text);
        else
                page->failed = true;
}

json_t *ctl_json_foreign(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);

        for (char *at = copy; at && *at;) {
                size_t n = text_sequence_length(at);

                if (n == 0)
                        *at = '?';
                at += MAX(n, 1U);
        }
        return copy ? json_string(copy) : NULL;
}

const char *ctl_json_text(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

const json_t *ctl_json_find(const json_t *array, const char *key, const char *text)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)array, i, item)
                if (strcmp(ctl_json_text(item, key), text) == 0)
                        return item;
        return NULL;
}

uint64_t ctl_json_u64(const json_t *object, const char *key)
{
        json_int_t value = json_integer_value(json_object_get(object, key));

        return value > 0 ? (uint64_t)value : 0;
}

int ctl_json_read_document(const char *text, const char *format, json_t **ret, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        int r = json_parse(text, strlen(text), &document, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "Cannot parse the reply of compute-agent");
        if (format ? !json_is_object(document) : !json_is_array(document))
                return error_setf(
                        reterr, EBADMSG,
                        "The reply of compute-agent is not the expected document. Do compute-agent and computectl have the same version?");
        if (format && strcmp(ctl_json_text(document, "format"), format) != 0)
                return error_setf(
                        reterr, EBADMSG,
                        "The reply of compute-agent has format \"%.60s\", not \"%s\". Use the computectl of the same version",
                        ctl_json_text(document, "format"), format);
        *ret = TAKE_PTR(document);
        return 0;
}

/* Collects the output of write in memory. */
char *ctl_json_format(const json_t *json, void (*write)(const json_t *json, FILE *stream))
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        write(json, stream);
        return fclose(stream) == 0 ? TAKE_PTR(text) : NULL;
}

void ctl_json_write_resources(const json_t *resources, FILE *stream)
{
        const char *resource_class, *separator = "";
        json_t *amount;

        json_object_foreach((json_t *)resources, resource_class, amount) {
                fprintf(stream, "%s%s=%" JSON_INTEGER_FORMAT, separator, resource_class,
                        json_integer_value(amount));
                separator = ", ";
        }
}

/* An overflow ends at the largest number, because amounts of a damaged document can have any
 * size. */
int ctl_json_add_amounts(json_t *sums, const json_t *amounts)
{
        const char *resource_class;
        json_t *amount;

        json_object_foreach((json_t *)amounts, resource_class, amount) {
                json_int_t sum;

                if (__builtin_add_overflow(
                            json_integer_value(json_object_get(sums, resource_class)),
                            json_integer_value(amount), &sum))
                        sum = INT64_MAX;
                if (json_object_set_new(sums, resource_class, json_integer(sum)) < 0)
                        return -ENOMEM;
        }
        return 0;
}
