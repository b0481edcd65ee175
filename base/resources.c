/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Edits, compares, parses and formats amounts by resource class, in an array that is sorted by
 * class (base/array.h). A class with the amount 0 is never stored, so two equal sets have equal
 * arrays. The parser accepts "CLASS=AMOUNT" and Placement's "CLASS:AMOUNT" and is strict: it
 * rejects an amount of 0 or above INVENTORY_MAX_AMOUNT, an invalid name, a class that is given
 * twice, blanks, and a text without any class. It keeps the caller's old amounts on failure. Other
 * functions accept each name and each amount of 64 bits, but reject a sum that does not fit. */

#include "base/resources.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/inventory.h"
#include "base/text.h"

void resources_done(Resources *resources)
{
        for (size_t i = 0; i < resources->n_items; i++)
                free(resources->items[i].resource_class);
        free(resources->items);
        *resources = RESOURCES_INIT;
}

static int order_amount(const void *key, const void *item)
{
        return strcmp(key, ((const ResourceAmount *)item)->resource_class);
}

/* Returns the position of the class, or the position at which to insert it. */
static size_t find_position(const Resources *resources, const char *resource_class, bool *ret_found)
{
        return array_find(resources->items, sizeof(ResourceAmount), resources->n_items,
                          resource_class, order_amount, ret_found);
}

static void remove_at(Resources *resources, size_t position)
{
        free(resources->items[position].resource_class);
        array_close(resources->items, sizeof(ResourceAmount), &resources->n_items, position);
}

/* Removes the class for an amount of 0, so no stored amount is 0. */
int resources_set(Resources *resources, const char *resource_class, uint64_t amount)
{
        bool found;
        size_t position = find_position(resources, resource_class, &found);
        char *copy;

        if (found && amount == 0) {
                remove_at(resources, position);
                return 0;
        }
        if (found) {
                resources->items[position].amount = amount;
                return 0;
        }
        if (amount == 0)
                return 0;

        if (array_grow(&resources->items, sizeof(ResourceAmount), resources->n_items,
                       &resources->n_allocated) < 0)
                return -ENOMEM;
        copy = strdup(resource_class);
        if (!copy)
                return -ENOMEM;
        array_open(resources->items, sizeof(ResourceAmount), &resources->n_items, position);
        resources->items[position] = (ResourceAmount){ .resource_class = copy, .amount = amount };
        return 0;
}

int resources_add(Resources *resources, const char *resource_class, uint64_t amount)
{
        uint64_t sum;

        if (u64_add_overflow(resources_get(resources, resource_class), amount, &sum))
                return -EOVERFLOW;
        return resources_set(resources, resource_class, sum);
}

uint64_t resources_get(const Resources *resources, const char *resource_class)
{
        bool found;
        size_t position = find_position(resources, resource_class, &found);

        return found ? resources->items[position].amount : 0;
}

bool resources_equal(const Resources *a, const Resources *b)
{
        if (a->n_items != b->n_items)
                return false;
        for (size_t i = 0; i < a->n_items; i++)
                if (a->items[i].amount != b->items[i].amount ||
                    strcmp(a->items[i].resource_class, b->items[i].resource_class) != 0)
                        return false;
        return true;
}

/* Completes the copy before it frees the old amounts, so both arguments can be the same. */
int resources_copy(Resources *ret, const Resources *resources)
{
        _cleanup_(resources_done) Resources copy = RESOURCES_INIT;

        for (size_t i = 0; i < resources->n_items; i++)
                if (resources_set(&copy, resources->items[i].resource_class,
                                  resources->items[i].amount) < 0)
                        return -ENOMEM;
        resources_done(ret);
        *ret = TAKE_STRUCT(copy);
        return 0;
}

/* Reads an amount up to the end of text. The error quotes item. The first character must be a
 * digit, because strtoull() accepts blanks and signs. */
static int parse_amount(const char *text, const char *item, uint64_t *ret, Error *reterr)
{
        unsigned long long amount;
        char *end;

        errno = 0;
        amount = strtoull(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end || errno || amount == 0 ||
            amount > INVENTORY_MAX_AMOUNT)
                return error_setf(reterr, EINVAL,
                                  "\"%s\": the amount must be a number from 1 to %" PRIu64, item,
                                  INVENTORY_MAX_AMOUNT);
        *ret = amount;
        return 0;
}

/* Reads one item, "CLASS=AMOUNT" or "CLASS:AMOUNT", and adds it to resources. Modifies the text of
 * the item. */
static int parse_item(char *item, Resources *resources, Error *reterr)
{
        _cleanup_free_ char *whole = strdup(item);
        char *separator = item + strcspn(item, "=:");
        uint64_t amount;
        int r;

        if (!whole)
                return error_oom(reterr);
        if (!*separator)
                return error_setf(reterr, EINVAL, "\"%s\" is not of the form CLASS=AMOUNT", whole);
        *separator = '\0';
        if (!resource_class_valid(item))
                return error_setf(reterr, EINVAL,
                                  "\"%s\" is not a resource class (capital letters, digits and _)",
                                  item);
        r = parse_amount(separator + 1, whole, &amount, reterr);
        if (r < 0)
                return r;
        if (resources_get(resources, item) != 0)
                return error_setf(reterr, EINVAL, "%s is given twice", item);
        if (resources_set(resources, item, amount) < 0)
                return error_oom(reterr);
        return 0;
}

/* Splits at commas. strsep() also returns empty items, which parse_item() rejects. */
int resources_parse(const char *text, Resources *ret, Error *reterr)
{
        _cleanup_(resources_done) Resources parsed = RESOURCES_INIT;
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *item;
        int r;

        if (!copy)
                return error_oom(reterr);
        if (!*copy)
                return error_setf(reterr, EINVAL, "No resources given (an example: VCPU=2,VGPU=1)");
        while ((item = strsep(&rest, ","))) {
                r = parse_item(item, &parsed, reterr);
                if (r < 0)
                        return r;
        }
        resources_done(ret);
        *ret = TAKE_STRUCT(parsed);
        return 0;
}

char *resources_format(const Resources *resources)
{
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        for (size_t i = 0; i < resources->n_items; i++)
                fprintf(stream, "%s%s=%" PRIu64, i ? "," : "", resources->items[i].resource_class,
                        resources->items[i].amount);
        return text_close(stream, &text);
}
