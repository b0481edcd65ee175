/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The JSON form of a snapshot: the writer and the reader walk the tables of
 * drivers/host/snapshot-fields.h. Nesting is as deep as the tables are, whatever the text holds. */

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "drivers/host/snapshot-fields.h"

/* Writing */

static int write_fields(const FieldList *list, const void *base, json_t *object);

static bool is_plain(const FieldList *list)
{
        return !list->fields[0].key;
}

static json_t *write_cpu_set(const CpuSet *set)
{
        _cleanup_free_ char *text = cpu_set_format(set);

        return text ? json_string(text) : NULL;
}

static json_t *write_value(const Field *field, const void *base);

static json_t *write_array(const Field *field, const void *base)
{
        const char *items = *(const char *const *)((const char *)base + field->offset);
        size_t n_items = *(const size_t *)((const char *)base + field->count_offset);
        _cleanup_json_ json_t *array = json_array();

        if (!array)
                return NULL;
        for (size_t i = 0; i < n_items; i++) {
                const void *item = items + i * field->of->size;
                _cleanup_json_ json_t *value =
                        is_plain(field->of) ? write_value(field->of->fields, item) : json_object();

                if (!value || json_array_append(array, value) < 0)
                        return NULL;
                if (!is_plain(field->of) && write_fields(field->of, item, value) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

static json_t *write_value(const Field *field, const void *base)
{
        const void *member = (const char *)base + field->offset;

        switch (field->type) {
        case FIELD_TEXT:
                return json_string(*(const char *const *)member);
        case FIELD_U64:
                return json_integer((json_int_t)MIN(*(const uint64_t *)member, INT64_MAX));
        case FIELD_U32:
                return json_integer(*(const uint32_t *)member);
        case FIELD_INT:
                return json_integer(*(const int *)member);
        case FIELD_BOOL:
                return json_boolean(*(const bool *)member);
        case FIELD_UUID:
                return json_string(((const Uuid *)member)->text);
        case FIELD_ADDRESS:
                return json_string(member);
        case FIELD_CPU_SET:
                return write_cpu_set(member);
        case FIELD_STATE:
                return json_string(domain_state_to_text(*(const DomainState *)member));
        case FIELD_STRINGS:
        case FIELD_ARRAY:
                return write_array(field, base);
        }
        return NULL;
}

static int write_fields(const FieldList *list, const void *base, json_t *object)
{
        for (size_t i = 0; i < list->n_fields; i++) {
                const Field *field = &list->fields[i];

                if (json_object_set_new(object, field->key, write_value(field, base)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

json_t *snapshot_to_json(const Snapshot *snapshot)
{
        _cleanup_json_ json_t *object = json_pack("{ss}", "format", SNAPSHOT_FORMAT);

        if (!object || write_fields(&snapshot_field_list, snapshot, object) < 0)
                return NULL;
        return TAKE_PTR(object);
}

/* Reading. A value that is wrong is reported without its name, which the caller puts in front. */

static int read_fields(const FieldList *list, const json_t *object, void *base, Error *reterr);

static int read_string(const json_t *value, const char **ret, Error *reterr)
{
        if (!json_is_string(value))
                return error_setf(reterr, EBADMSG, "not a string");
        if (json_string_length(value) > SNAPSHOT_TEXT_MAX)
                return error_setf(reterr, EBADMSG, "longer than %d bytes", SNAPSHOT_TEXT_MAX);
        if (strlen(json_string_value(value)) != json_string_length(value))
                return error_setf(reterr, EBADMSG, "contains a NUL character");
        *ret = json_string_value(value);
        return 0;
}

static int read_integer(const json_t *value, int64_t min, uint64_t max, int64_t *ret, Error *reterr)
{
        int64_t number = json_integer_value(value);

        if (!json_is_integer(value))
                return error_setf(reterr, EBADMSG, "not an integer");
        if (number < min || (number > 0 && (uint64_t)number > max))
                return error_setf(reterr, EBADMSG, "out of range");
        *ret = number;
        return 0;
}

static int read_number(const Field *field, const json_t *value, void *member, Error *reterr)
{
        int64_t number;
        int r;

        if (field->type == FIELD_U64) {
                r = read_integer(value, 0, field->max, &number, reterr);
                if (r == 0)
                        *(uint64_t *)member = (uint64_t)number;
        } else if (field->type == FIELD_U32) {
                r = read_integer(value, 0, MIN(field->max, UINT32_MAX), &number, reterr);
                if (r == 0)
                        *(uint32_t *)member = (uint32_t)number;
        } else {
                r = read_integer(value, -1, INT32_MAX, &number, reterr);
                if (r == 0)
                        *(int *)member = (int)number;
        }
        return r;
}

static int read_text(const Field *field, const json_t *value, void *member, Error *reterr)
{
        const char *text;
        int r = read_string(value, &text, reterr);

        if (r < 0)
                return r;
        if (field->required && !text[0])
                return error_setf(reterr, EBADMSG, "empty");
        *(char **)member = strdup(text);
        return *(char **)member ? 0 : error_oom(reterr);
}

/* Strings with a meaning of their own. */
static int read_special(const Field *field, const json_t *value, void *member, Error *reterr)
{
        const char *text;
        int r = read_string(value, &text, reterr);

        if (r < 0)
                return r;
        switch (field->type) {
        case FIELD_UUID:
                if (uuid_from_text(text, member) < 0)
                        return error_setf(reterr, EBADMSG, "not a uuid: \"%.40s\"", text);
                return 0;
        case FIELD_ADDRESS:
                if (text[0] && pci_address_parse(text, member) < 0)
                        return error_setf(reterr, EBADMSG, "not a PCI address: \"%.40s\"", text);
                return 0;
        case FIELD_CPU_SET:
                r = cpu_set_parse(text, member, reterr);
                if (r == -EINVAL && reterr)
                        reterr->code = EBADMSG;
                return r == -EINVAL ? -EBADMSG : r;
        default:
                *(DomainState *)member = domain_state_from_text(text);
                if (*(DomainState *)member < 0)
                        return error_setf(reterr, EBADMSG, "not a domain state: \"%.40s\"", text);
                return 0;
        }
}

static int read_value(const Field *field, const json_t *value, void *base, Error *reterr);

static int read_array(const Field *field, const json_t *array, void *base, Error *reterr)
{
        void **items = (void **)((char *)base + field->offset);
        size_t *n_items = (size_t *)((char *)base + field->count_offset);
        size_t size = json_array_size(array);

        if (!json_is_array(array))
                return error_setf(reterr, EBADMSG, "not an array");
        if (size > SNAPSHOT_LIST_MAX)
                return error_setf(reterr, EBADMSG, "more than %d items", SNAPSHOT_LIST_MAX);
        if (size == 0)
                return 0;
        *items = calloc(size, field->of->size);
        if (!*items)
                return error_oom(reterr);
        *n_items = size;
        for (size_t i = 0; i < size; i++) {
                const json_t *value = json_array_get(array, i);
                void *item = (char *)*items + i * field->of->size;
                int r = is_plain(field->of) ? read_value(field->of->fields, value, item, reterr)
                                            : read_fields(field->of, value, item, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "item %zu", i);
        }
        return 0;
}

static int read_value(const Field *field, const json_t *value, void *base, Error *reterr)
{
        void *member = (char *)base + field->offset;

        switch (field->type) {
        case FIELD_TEXT:
                return read_text(field, value, member, reterr);
        case FIELD_U64:
        case FIELD_U32:
        case FIELD_INT:
                return read_number(field, value, member, reterr);
        case FIELD_BOOL:
                if (!json_is_boolean(value))
                        return error_setf(reterr, EBADMSG, "not true or false");
                *(bool *)member = json_is_true(value);
                return 0;
        case FIELD_UUID:
        case FIELD_ADDRESS:
        case FIELD_CPU_SET:
        case FIELD_STATE:
                return read_special(field, value, member, reterr);
        case FIELD_STRINGS:
        case FIELD_ARRAY:
                return read_array(field, value, base, reterr);
        }
        return -EINVAL;
}

static int read_fields(const FieldList *list, const json_t *object, void *base, Error *reterr)
{
        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "not an object");
        for (size_t i = 0; i < list->n_fields; i++) {
                const Field *field = &list->fields[i];
                const json_t *value = json_object_get(object, field->key);
                int r;

                if (!value && field->required)
                        return error_setf(reterr, EBADMSG, "\"%s\" is missing", field->key);
                if (!value && field_set_default(field, base) < 0)
                        return error_oom(reterr);
                if (!value)
                        continue;
                r = read_value(field, value, base, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s", field->key);
        }
        return 0;
}

int snapshot_from_json(const json_t *object, Snapshot **ret, Error *reterr)
{
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        const char *format;
        int r;

        if (!json_is_object(object))
                return error_setf(reterr, EBADMSG, "A host is a JSON object");
        r = json_read_string(object, "format", &format, reterr);
        if (r < 0)
                return r;
        if (strcmp(format, SNAPSHOT_FORMAT) != 0)
                return error_setf(reterr, EBADMSG, "format: \"%.40s\", expected \"%s\"", format,
                                  SNAPSHOT_FORMAT);
        snapshot = calloc(1, sizeof(Snapshot));
        if (!snapshot)
                return error_oom(reterr);
        snapshot->n_references = 1;
        r = read_fields(&snapshot_field_list, object, snapshot, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < snapshot->n_devices; i++)
                snapshot->devices[i].is_pci = snapshot->devices[i].address[0] != '\0';
        r = snapshot_seal(snapshot, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(snapshot);
        return 0;
}
