/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses JSON, reads members of objects, and converts inventories, amounts and sets of names to and
 * from JSON. Readers check presence and type of a member and name it in the error, which is
 * -EBADMSG for all wrong texts. They reject what the rest of the program cannot represent:
 * duplicate keys, a string with U+0000, a negative amount, and a record outside of Placement's
 * limits. Only json_parse_with_nul() accepts U+0000. A reader of a whole value builds a local copy
 * and replaces *ret only on success. */

#include "base/json.h"

#include <errno.h>
#include <string.h>

/* Parses with these flags of jansson. Rejects duplicate keys, because two readers could see
 * different values of one key. jansson has no words if it cannot allocate a value. It reports a
 * lack of memory inside of a string as a bad text, which is -EBADMSG. */
static int parse(const char *text, size_t n, size_t flags, json_t **ret, Error *reterr)
{
        json_error_t error;
        json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES | flags, &error);

        if (!json && !error.text[0])
                return error_oom(reterr);
        if (!json)
                return error_setf(reterr, EBADMSG, "Not JSON (line %d, column %d): %s", error.line,
                                  error.column, error.text);
        *ret = json;
        return 0;
}

int json_parse(const char *text, size_t n, json_t **ret, Error *reterr)
{
        return parse(text, n, 0, ret, reterr);
}

int json_parse_with_nul(const char *text, size_t n, json_t **ret, Error *reterr)
{
        return parse(text, n, JSON_ALLOW_NUL, ret, reterr);
}

/* Returns a borrowed member of one type. type_name, with its article, is for the error. */
static int read_member(const json_t *object, const char *key, json_type type, const char *type_name,
                       json_t **ret, Error *reterr)
{
        json_t *member = json_object_get(object, key);

        if (!member)
                return error_setf(reterr, EBADMSG, "\"%s\" is missing", key);
        if (json_typeof(member) != type)
                return error_setf(reterr, EBADMSG, "\"%s\" is not %s", key, type_name);
        *ret = member;
        return 0;
}

int json_read_string(const json_t *object, const char *key, const char **ret, Error *reterr)
{
        json_t *member;
        int r = read_member(object, key, JSON_STRING, "a string", &member, reterr);

        if (r < 0)
                return r;
        /* The rest of the program reads a string up to the first NUL, so a string with an
         * embedded NUL is rejected. */
        if (strlen(json_string_value(member)) != json_string_length(member))
                return error_setf(reterr, EBADMSG, "\"%s\" contains a NUL character", key);
        *ret = json_string_value(member);
        return 0;
}

int json_read_i64(const json_t *object, const char *key, int64_t *ret, Error *reterr)
{
        json_t *member;
        int r = read_member(object, key, JSON_INTEGER, "an integer", &member, reterr);

        if (r < 0)
                return r;
        *ret = json_integer_value(member);
        return 0;
}

/* Reads the member as a signed integer, and rejects a negative one. It cannot be larger than
 * INT64_MAX: jansson rejects a text with such an integer. */
int json_read_u64(const json_t *object, const char *key, uint64_t *ret, Error *reterr)
{
        int64_t value;
        int r = json_read_i64(object, key, &value, reterr);

        if (r < 0)
                return r;
        if (value < 0)
                return error_setf(reterr, EBADMSG, "\"%s\" is negative", key);
        *ret = (uint64_t)value;
        return 0;
}

/* Reads true or false without read_member(), which checks for one type: jansson has one for true
 * and one for false. */
int json_read_bool(const json_t *object, const char *key, bool *ret, Error *reterr)
{
        json_t *member = json_object_get(object, key);

        if (!member)
                return error_setf(reterr, EBADMSG, "\"%s\" is missing", key);
        if (!json_is_boolean(member))
                return error_setf(reterr, EBADMSG, "\"%s\" is not true or false", key);
        *ret = json_is_true(member);
        return 0;
}

int json_read_uuid(const json_t *object, const char *key, Uuid *ret, Error *reterr)
{
        const char *text;
        int r = json_read_string(object, key, &text, reterr);

        if (r < 0)
                return r;
        if (uuid_from_text(text, ret) < 0)
                return error_setf(reterr, EBADMSG, "\"%s\" is not a uuid: \"%.40s\"", key, text);
        return 0;
}

int json_read_object(const json_t *object, const char *key, json_t **ret, Error *reterr)
{
        return read_member(object, key, JSON_OBJECT, "an object", ret, reterr);
}

int json_read_array(const json_t *object, const char *key, json_t **ret, Error *reterr)
{
        return read_member(object, key, JSON_ARRAY, "an array", ret, reterr);
}

json_t *json_from_u64(uint64_t number)
{
        return json_integer((json_int_t)MIN(number, (uint64_t)INT64_MAX));
}

json_t *inventory_to_json(const Inventory *inventory)
{
        return json_pack(
                "{sI sI sI sI sI sf}", "total", (json_int_t)inventory->total, "reserved",
                (json_int_t)inventory->reserved, "min_unit", (json_int_t)inventory->min_unit,
                "max_unit", (json_int_t)inventory->max_unit, "step_size",
                (json_int_t)inventory->step_size, "allocation_ratio", inventory->allocation_ratio);
}

/* Reads a member that can be missing; *value keeps its default then. */
static int read_optional_u64(const json_t *object, const char *key, uint64_t *value, Error *reterr)
{
        return json_object_get(object, key) ? json_read_u64(object, key, value, reterr) : 0;
}

/* Requires "total". The other fields are read into a record with Placement's defaults, so a missing
 * one keeps its default. Then the whole record is checked against the limits of Placement's
 * schema. */
int inventory_from_json(const json_t *object, Inventory *ret, Error *reterr)
{
        Inventory inventory = INVENTORY_DEFAULT(0);
        const char *invalid;
        const json_t *ratio;
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "An inventory record is not an object");
        r = json_read_u64(object, "total", &inventory.total, reterr);
        if (r < 0)
                return r;
        if ((r = read_optional_u64(object, "reserved", &inventory.reserved, reterr)) < 0 ||
            (r = read_optional_u64(object, "min_unit", &inventory.min_unit, reterr)) < 0 ||
            (r = read_optional_u64(object, "max_unit", &inventory.max_unit, reterr)) < 0 ||
            (r = read_optional_u64(object, "step_size", &inventory.step_size, reterr)) < 0)
                return r;
        ratio = json_object_get(object, "allocation_ratio");
        if (ratio && !json_is_number(ratio))
                return error_setf(reterr, EBADMSG, "\"allocation_ratio\" is not a number");
        if (ratio)
                inventory.allocation_ratio = json_number_value(ratio);
        invalid = inventory_invalid_field(&inventory);
        if (invalid)
                return error_setf(reterr, EBADMSG, "\"%s\" is out of Placement's limits", invalid);
        *ret = inventory;
        return 0;
}

json_t *resources_to_json(const Resources *resources)
{
        _cleanup_json_ json_t *object = json_object();

        if (!object)
                return NULL;
        for (size_t i = 0; i < resources->n_items; i++)
                if (json_object_set_new(object, resources->items[i].resource_class,
                                        json_from_u64(resources->items[i].amount)) < 0)
                        return NULL;
        return TAKE_PTR(object);
}

/* Accepts an amount of 0, because usages list it. Such a class is not stored. */
int resources_from_json(const json_t *object, Resources *ret, Error *reterr)
{
        _cleanup_(resources_done) Resources resources = RESOURCES_INIT;
        const char *resource_class;
        json_t *amount;

        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "Resources are not an object");
        json_object_foreach((json_t *)object, resource_class, amount) {
                if (!resource_class_valid(resource_class))
                        return error_setf(reterr, EBADMSG, "\"%.60s\" is not a resource class",
                                          resource_class);
                if (!json_is_integer(amount) || json_integer_value(amount) < 0)
                        return error_setf(reterr, EBADMSG, "The amount of %.60s is not a number",
                                          resource_class);
                if (resources_set(&resources, resource_class,
                                  (uint64_t)json_integer_value(amount)) < 0)
                        return error_oom(reterr);
        }
        resources_done(ret);
        *ret = TAKE_STRUCT(resources);
        return 0;
}

json_t *string_set_to_json(const StringSet *set)
{
        _cleanup_json_ json_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < set->n_items; i++)
                if (json_array_append_new(array, json_string(set->items[i])) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

/* Rejects an item that is no string, and a string with U+0000. */
int string_set_from_json(const json_t *array, StringSet *ret, Error *reterr)
{
        _cleanup_(string_set_done) StringSet set = STRING_SET_INIT;
        json_t *item;
        size_t i;

        if (!json_is_array(array))
                return error_setf(reterr, EBADMSG, "A list of names is not an array");
        json_array_foreach(array, i, item) {
                if (!json_is_string(item) ||
                    strlen(json_string_value(item)) != json_string_length(item))
                        return error_setf(reterr, EBADMSG,
                                          "A list of names has an item that is not a name");
                if (string_set_add(&set, json_string_value(item)) < 0)
                        return error_oom(reterr);
        }
        string_set_done(ret);
        *ret = TAKE_STRUCT(set);
        return 0;
}
