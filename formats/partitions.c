/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes and parses the record of active partitions. A missing member, an unknown state, too many
 * entries, or an entry without devices or with too many makes the whole document invalid. Otherwise
 * an active partition could look inactive. The parser ignores unknown members, and does not look
 * for duplicates. Texts with a limit are cut at it and made safe to show. The addresses of devices,
 * and "lines" (the last lines of the failed unit), are kept as they are.
 *
 * Tests: tests/unit/formats/test-partitions.c */

#include "formats/partitions.h"

#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/read-file.h"
#include "base/text.h"
#include "formats/format-names.h"

#define DOCUMENT_MAX ((size_t)4 << 20)

static const char *const states[_PARTITION_STATE_MAX] = {
        [PARTITION_ACTIVATING] = "activating",
        [PARTITION_ACTIVE] = "active",
        [PARTITION_FAILED] = "failed",
        [PARTITION_DEACTIVATING] = "deactivating",
};

static void entry_done(PartitionEntry *entry)
{
        strings_free(entry->devices);
        json_decref(entry->lines);
}

void partition_record_done(PartitionRecord *record)
{
        for (size_t i = 0; i < record->n_items; i++)
                entry_done(&record->items[i]);
        free(record->items);
        *record = (PartitionRecord){ 0 };
}

const char *partition_state_to_text(PartitionState state)
{
        return states[state];
}

static PartitionState state_from_text(const char *text)
{
        for (int i = 0; i < _PARTITION_STATE_MAX; i++)
                if (strcmp(states[i], text) == 0)
                        return (PartitionState)i;
        return _PARTITION_STATE_INVALID;
}

/* Adds a copy of the entry. Its owned members, devices and lines, are NULL: the caller sets them.
 * Returns NULL if memory is short or the record is full. */
static PartitionEntry *add(PartitionRecord *record, const PartitionEntry *entry)
{
        PartitionEntry *added;

        if (record->n_items >= PARTITION_RECORD_MAX ||
            array_grow(&record->items, sizeof(PartitionEntry), record->n_items,
                       &record->n_allocated) < 0)
                return NULL;
        added = &record->items[record->n_items];
        *added = *entry;
        added->devices = NULL;
        added->lines = NULL;
        record->n_items++;
        return added;
}

PartitionEntry *partition_record_add(PartitionRecord *record, const char *set,
                                     const DevicePartition *partition, int64_t claim)
{
        const PartitionEntry entry = { .claim = claim, .state = PARTITION_ACTIVATING };
        PartitionEntry *added = add(record, &entry);

        if (!added)
                return NULL;
        snprintf(added->set, sizeof(added->set), "%.*s", DEVICE_SET_ID_MAX, set);
        snprintf(added->partition, sizeof(added->partition), "%s", partition->id);
        if (strings_copy(partition->devices, &added->devices) < 0) {
                partition_record_remove(record, added);
                return NULL;
        }
        return added;
}

void partition_record_remove(PartitionRecord *record, PartitionEntry *entry)
{
        entry_done(entry);
        array_close(record->items, sizeof(PartitionEntry), &record->n_items,
                    (size_t)(entry - record->items));
}

PartitionEntry *partition_record_find(const PartitionRecord *record, const char *set,
                                      const char *partition)
{
        for (size_t i = 0; i < record->n_items; i++)
                if (strcmp(record->items[i].set, set) == 0 &&
                    strcmp(record->items[i].partition, partition) == 0)
                        return &record->items[i];
        return NULL;
}

const DevicePartition *partition_entry_find(const PartitionEntry *entry, const DeviceSet *set)
{
        const DevicePartition *partition;
        size_t n = 0;

        if (strcmp(entry->set, set->name) != 0)
                return NULL;
        while (entry->devices[n])
                n++;
        partition = device_set_find(set, (const char *const *)entry->devices, n);
        return partition && strcmp(partition->id, entry->partition) == 0 ? partition : NULL;
}

/* The document */

static json_t *strings_to_json(char *const *strings)
{
        _cleanup_json_ json_t *array = json_array();

        for (; array && *strings; strings++)
                if (json_array_append_new(array, json_string(*strings)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static json_t *entry_to_json(const PartitionEntry *entry)
{
        return json_pack("{ss ss so sI ss sI ss ss ss so}", "set", entry->set, "partition",
                         entry->partition, "devices", strings_to_json(entry->devices), "claim",
                         (json_int_t)entry->claim, "state", states[entry->state], "since_usec",
                         (json_int_t)entry->since_usec, "error", entry->error, "waiting",
                         entry->waiting, "retry", entry->retry, "lines",
                         entry->lines ? json_incref(entry->lines) : json_array());
}

json_t *partition_record_to_json(const PartitionRecord *record)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < record->n_items; i++)
                if (json_array_append_new(array, entry_to_json(&record->items[i])) < 0)
                        return NULL;
        return json_pack("{ss ss ss sO}", "format", PARTITIONS_FORMAT, "wanted", record->wanted,
                         "error", record->error, "partitions", array);
}

static int read_text(const json_t *object, const char *key, char *ret, size_t size, Error *reterr)
{
        const char *text;
        int r = json_read_string(object, key, &text, reterr);

        if (r < 0)
                return r;
        snprintf(ret, size, "%.*s", (int)size - 1, text);
        text_trim_cut(ret);
        text_sanitize(ret, '?');
        return 0;
}

static int read_devices(const json_t *object, PartitionEntry *entry, Error *reterr)
{
        char *list[DEVICE_SET_MEMBERS_MAX + 1] = { NULL };
        const json_t *item;
        json_t *array;
        size_t i;
        int r = json_read_array(object, "devices", &array, reterr);

        if (r < 0)
                return r;
        if (json_array_size(array) == 0 || json_array_size(array) > DEVICE_SET_MEMBERS_MAX)
                return error_setf(reterr, EBADMSG, "devices: %zu items", json_array_size(array));
        json_array_foreach(array, i, item) {
                list[i] = (char *)json_string_value(item);
                if (!list[i])
                        return error_setf(reterr, EBADMSG, "devices: item %zu is no text", i);
        }
        return strings_copy(list, &entry->devices) < 0 ? error_oom(reterr) : 0;
}

static int read_entry(const json_t *object, PartitionRecord *record, Error *reterr)
{
        PartitionEntry entry = { 0 }, *added;
        const char *state;
        json_t *lines;
        int r = read_text(object, "set", entry.set, sizeof(entry.set), reterr);

        if (r == 0)
                r = read_text(object, "partition", entry.partition, sizeof(entry.partition),
                              reterr);
        if (r == 0)
                r = json_read_i64(object, "claim", &entry.claim, reterr);
        if (r == 0)
                r = json_read_string(object, "state", &state, reterr);
        if (r == 0)
                r = json_read_u64(object, "since_usec", &entry.since_usec, reterr);
        if (r == 0)
                r = read_text(object, "error", entry.error, sizeof(entry.error), reterr);
        if (r == 0)
                r = read_text(object, "waiting", entry.waiting, sizeof(entry.waiting), reterr);
        if (r == 0)
                r = read_text(object, "retry", entry.retry, sizeof(entry.retry), reterr);
        if (r == 0)
                r = json_read_array(object, "lines", &lines, reterr);
        if (r < 0)
                return r;
        entry.state = state_from_text(state);
        if (entry.state == _PARTITION_STATE_INVALID)
                return error_setf(reterr, EBADMSG, "state: \"%.40s\"", state);
        added = add(record, &entry);
        if (!added)
                return record->n_items < PARTITION_RECORD_MAX
                               ? error_oom(reterr)
                               : error_setf(reterr, EBADMSG, "too many partitions");
        added->lines = json_incref(lines);
        return read_devices(object, added, reterr);
}

static int read_document(const json_t *document, PartitionRecord *ret, Error *reterr)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        const char *format;
        json_t *array;
        size_t i;
        int r = json_read_string(document, "format", &format, reterr);

        if (r == 0 && strcmp(format, PARTITIONS_FORMAT) != 0)
                r = error_setf(reterr, EBADMSG, "the format is \"%.40s\"", format);
        if (r == 0)
                r = read_text(document, "wanted", record.wanted, sizeof(record.wanted), reterr);
        if (r == 0)
                r = read_text(document, "error", record.error, sizeof(record.error), reterr);
        if (r == 0)
                r = json_read_array(document, "partitions", &array, reterr);
        for (i = 0; r == 0 && i < json_array_size(array); i++)
                r = read_entry(json_array_get(array, i), &record, reterr);
        if (r == 0)
                *ret = TAKE_STRUCT(record);
        return r;
}

int partition_record_read(const char *path, PartitionRecord *ret, Error *reterr)
{
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        size_t n = 0;
        int r = read_file_text(path, DOCUMENT_MAX, &text, &n, NULL);

        if (r == -ENOENT)
                return 0;
        if (r == 0)
                r = json_parse(text, n, &document, reterr);
        if (r == 0)
                r = read_document(document, ret, reterr);
        return r < 0 ? error_prefixf(reterr, r, "The record %s cannot be used", path) : 0;
}
