/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads provider.yaml into entries. A Reader goes down the nodes of the parsed document, no deeper
 * than the schema, and the lists of the result are bounded. A provider or a list that several
 * aliases name is read for each of them, up to ITEMS_MAX items of a file.
 *
 * A function returns -EINVAL after it reported a problem. Only a newer minor version is reported
 * without this result. A problem inside an entry ends in add_entry(), which skips the entry.
 * Another problem, or -ENOMEM, ends the file and is returned to the caller; the entries before it
 * stay. An entry is added to the result only when it is complete and valid. */

#include "agent/tree/provider-yaml.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "agent/state/yaml-text.h"
#include "base/array.h"
#include "base/text.h"

#define COMPUTE_NODE "$COMPUTE_NODE"

/* Items and keys of a file that are read, each as often as aliases name it. A valid file without
 * aliases and unknown members has less. If they are used up inside an entry, this entry is skipped,
 * and the next one ends the file. */
#define ITEMS_MAX 262144

/* The document that is read, and the result. */
typedef struct Reader {
        ProviderYaml *yaml;
        const char *source;
        yaml_document_t *document;
        void (*problem)(const char *text, void *userdata);
        void *userdata;
        size_t *n_left; /* rest of ITEMS_MAX */
} Reader;

static ProviderYamlEntry *entry_free(ProviderYamlEntry *entry)
{
        if (!entry)
                return NULL;
        for (size_t i = 0; i < entry->n_inventories; i++)
                free(entry->inventories[i].resource_class);
        free(entry->inventories);
        free(entry->source);
        free(entry->name);
        string_set_done(&entry->classes);
        string_set_done(&entry->traits);
        free(entry);
        return NULL;
}
DEFINE_CLEANUP(ProviderYamlEntry *, entry_free);

void provider_yaml_done(ProviderYaml *yaml)
{
        for (size_t i = 0; i < yaml->n_entries; i++)
                entry_free(yaml->entries[i]);
        free(yaml->entries);
        *yaml = PROVIDER_YAML_INIT;
}

/* Reports a problem with the file, and with the line if there is a node. Always returns -EINVAL. */
_printf_(3, 4) static int complain(const Reader *reader, const yaml_node_t *node,
                                   const char *format, ...)
{
        char words[ERROR_TEXT_MAX];
        Error error;
        va_list ap;

        va_start(ap, format);
        vsnprintf(words, sizeof(words), format, ap);
        va_end(ap);
        /* error_setf() also replaces control characters and cuts long texts. */
        if (node)
                error_setf(&error, EINVAL, "%.100s:%zu: %s", reader->source,
                           node->start_mark.line + 1, words);
        else
                error_setf(&error, EINVAL, "%.100s: %s", reader->source, words);
        reader->problem(error.text, reader->userdata);
        return -EINVAL;
}

/* Nodes */

/* Counts an item before it is read. */
static int count_item(const Reader *reader, const yaml_node_t *item)
{
        if (*reader->n_left == 0)
                return complain(reader, item, "aliases give the file more than %d items",
                                ITEMS_MAX);
        --*reader->n_left;
        return 0;
}

/* Returns true for a scalar without quotes. YAML takes only such scalars for numbers. */
static bool is_plain(const yaml_node_t *node)
{
        return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static yaml_node_t *member(const Reader *reader, const yaml_node_t *node, const char *key)
{
        size_t n = 0;

        if (node && node->type == YAML_MAPPING_NODE)
                n = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
        *reader->n_left -= MIN(n, *reader->n_left);
        return yaml_text_member(reader->document, node, key);
}

typedef int (*ReadItem)(const Reader *reader, const yaml_node_t *item, ProviderYamlEntry *entry);

/* Calls read for each item of a list. NULL is an empty list. what names the list in messages. */
static int read_list(const Reader *reader, const yaml_node_t *list, const char *what, ReadItem read,
                     ProviderYamlEntry *entry)
{
        int r = 0;

        if (list && list->type != YAML_SEQUENCE_NODE)
                return complain(reader, list, "%s must be a list", what);
        for (yaml_node_item_t *item = list ? list->data.sequence.items.start : NULL;
             r == 0 && item && item < list->data.sequence.items.top; item++) {
                const yaml_node_t *node = yaml_document_get_node(reader->document, *item);

                r = count_item(reader, node);
                if (r == 0)
                        r = read(reader, node, entry);
        }
        return r;
}

/* Reads the list "additional" below key: "inventories" or "traits". */
static int read_additional(const Reader *reader, const yaml_node_t *node, const char *key,
                           ReadItem read, ProviderYamlEntry *entry)
{
        char what[64];

        snprintf(what, sizeof(what), "%s: additional", key);
        return read_list(reader, member(reader, member(reader, node, key), "additional"), what,
                         read, entry);
}

/* Inventories */

/* Reads a whole number of at most 18 digits, so that it fits in 64 bits. */
static int read_amount(const Reader *reader, const yaml_node_t *value, const char *key,
                       uint64_t *ret)
{
        const char *text = yaml_text_scalar(value);
        char *end;

        if (!text || !is_plain(value) || !text[0] || strspn(text, "0123456789") != strlen(text) ||
            strlen(text) > 18)
                return complain(reader, value, "%s must be a whole number", key);
        *ret = strtoull(text, &end, 10);
        return 0;
}

/* Reads a ratio: a plain, finite number above 0. */
static int read_ratio(const Reader *reader, const yaml_node_t *value, double *ret)
{
        const char *text = yaml_text_scalar(value);
        char *end = NULL;
        double number = 0;

        if (text && is_plain(value) && strspn(text, "0123456789.+-eE") == strlen(text))
                number = strtod(text, &end);
        if (!end || end == text || *end || !isfinite(number) || number <= 0)
                return complain(reader, value, "allocation_ratio must be a number above 0");
        *ret = number;
        return 0;
}

static int read_field(const Reader *reader, const yaml_node_t *value, const char *key,
                      Inventory *record)
{
        const struct {
                const char *key;
                uint64_t *value;
        } fields[] = {
                { "total", &record->total },         { "reserved", &record->reserved },
                { "min_unit", &record->min_unit },   { "max_unit", &record->max_unit },
                { "step_size", &record->step_size },
        };

        if (strcmp(key, "allocation_ratio") == 0)
                return read_ratio(reader, value, &record->allocation_ratio);
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (strcmp(fields[i].key, key) == 0)
                        return read_amount(reader, value, key, fields[i].value);
        return complain(reader, value, "\"%.40s\" is not a field of an inventory", key);
}

/* Reads the fields of an inventory. The total is required. Other fields that are not set have
 * Placement's defaults. */
static int read_record(const Reader *reader, const yaml_node_t *node, const char *resource_class,
                       Inventory *ret)
{
        Inventory record = INVENTORY_DEFAULT(0);

        if (!node || node->type != YAML_MAPPING_NODE)
                return complain(reader, node, "%.60s must be a mapping with a total",
                                resource_class);
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++) {
                const char *key =
                        yaml_text_scalar(yaml_document_get_node(reader->document, pair->key));

                if (count_item(reader, node) < 0 ||
                    read_field(reader, yaml_document_get_node(reader->document, pair->value),
                               key ? key : "?", &record) < 0)
                        return -EINVAL;
        }
        if (inventory_invalid_field(&record) || record.reserved > record.total) {
                const char *field = inventory_invalid_field(&record);

                return complain(reader, node, "%s of %.60s is missing or out of range",
                                field ? field : "reserved", resource_class);
        }
        *ret = record;
        return 0;
}

/* Adds an inventory of a custom class to the entry. A class that the entry has already is a
 * problem. */
static int add_inventory(const Reader *reader, ProviderYamlEntry *entry, const yaml_node_t *key,
                         const yaml_node_t *value)
{
        const char *name = yaml_text_scalar(key);
        InventoryRecord record = { 0 };
        int r;

        if (!name || !resource_class_valid(name) || !resource_class_is_custom(name))
                return complain(reader, key, "\"%.60s\" is not a custom resource class (CUSTOM_…)",
                                name ? name : "");
        r = string_set_add(&entry->classes, name);
        if (r <= 0)
                return r < 0 ? r : complain(reader, key, "%.60s is listed twice", name);
        if (read_record(reader, value, name, &record.inventory) < 0)
                return -EINVAL;
        if (entry->n_inventories >= PROVIDER_YAML_MAX_ENTRIES)
                return complain(reader, key, "too many inventories");
        if (array_grow(&entry->inventories, sizeof(record), entry->n_inventories,
                       &entry->n_inventories_allocated) < 0 ||
            !(record.resource_class = strdup(name)))
                return -ENOMEM;
        entry->inventories[entry->n_inventories++] = record;
        return 0;
}

/* Reads a mapping of inventories, which is one item of the list. */
static int read_inventories(const Reader *reader, const yaml_node_t *map, ProviderYamlEntry *entry)
{
        if (!map || map->type != YAML_MAPPING_NODE)
                return complain(reader, map, "an inventory must be a mapping");
        for (yaml_node_pair_t *pair = map->data.mapping.pairs.start;
             pair < map->data.mapping.pairs.top; pair++) {
                int r = add_inventory(reader, entry,
                                      yaml_document_get_node(reader->document, pair->key),
                                      yaml_document_get_node(reader->document, pair->value));

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads one trait of the list. Only custom traits are accepted; a repeated one is no problem. */
static int read_trait(const Reader *reader, const yaml_node_t *node, ProviderYamlEntry *entry)
{
        const char *name = yaml_text_scalar(node);

        if (!name || !resource_class_valid(name) || !resource_class_is_custom(name))
                return complain(reader, node, "\"%.60s\" is not a custom trait (CUSTOM_…)",
                                name ? name : "");
        if (entry->traits.n_items >= PROVIDER_YAML_MAX_ENTRIES)
                return complain(reader, node, "too many traits");
        return MIN(string_set_add(&entry->traits, name), 0);
}

/* Entries */

/* Reads the target of an entry: exactly one of uuid and name. The uuid can be "$COMPUTE_NODE". */
static int read_identification(const Reader *reader, const yaml_node_t *node,
                               ProviderYamlEntry *entry)
{
        const yaml_node_t *identification = member(reader, node, "identification");
        const yaml_node_t *uuid = member(reader, identification, "uuid");
        const yaml_node_t *name = member(reader, identification, "name");
        const char *text = yaml_text_scalar(uuid ? uuid : name);

        if (!uuid == !name)
                return complain(reader, node, "identification must have either a uuid or a name");
        if (uuid && text && strcmp(text, COMPUTE_NODE) == 0) {
                entry->compute_node = true;
                entry->target = COMPUTE_NODE;
                return 0;
        }
        if (uuid && (!text || uuid_from_text(text, &entry->uuid) < 0))
                return complain(reader, uuid, "\"%.60s\" is neither a uuid nor " COMPUTE_NODE,
                                text ? text : "");
        entry->target = entry->uuid.text;
        if (uuid)
                return 0;
        if (!text || !text[0] || text_count_characters(text) > PROVIDER_NAME_MAX)
                return complain(reader, name, "a name has 1 to %d characters", PROVIDER_NAME_MAX);
        entry->target = entry->name = strdup(text);
        return entry->name ? 0 : -ENOMEM;
}

/* Returns true if the target of an earlier entry has the same text. read_entry() then reports the
 * second entry, and it is skipped. */
static bool is_target_taken(const ProviderYaml *yaml, const ProviderYamlEntry *entry)
{
        for (size_t i = 0; i < yaml->n_entries; i++)
                if (strcmp(yaml->entries[i]->target, entry->target) == 0)
                        return true;
        return false;
}

/* Reads an entry. Returns -EINVAL if the caller must skip it. */
static int read_entry(const Reader *reader, const yaml_node_t *node, ProviderYamlEntry *entry)
{
        int r;

        if (!node || node->type != YAML_MAPPING_NODE)
                return complain(reader, node, "a provider must be a mapping");
        if (member(reader, node, "__source_file"))
                return complain(reader, node, "__source_file is not allowed");
        if ((r = read_identification(reader, node, entry)) < 0)
                return r;
        if (is_target_taken(reader->yaml, entry))
                return complain(reader, node, "%.100s already has an entry", entry->target);
        if ((r = read_additional(reader, node, "inventories", read_inventories, entry)) < 0 ||
            (r = read_additional(reader, node, "traits", read_trait, entry)) < 0)
                return r;
        if (entry->n_inventories == 0 && entry->traits.n_items == 0)
                return complain(reader, node, "%.100s has neither inventories nor traits",
                                entry->target);
        return 0;
}

/* Adds an entry, or skips it after a problem. Returns 0 or -ENOMEM. none is always NULL; the type
 * ReadItem requires it. */
static int add_entry(const Reader *reader, const yaml_node_t *node, ProviderYamlEntry *none)
{
        _cleanup_(entry_freep) ProviderYamlEntry *entry = calloc(1, sizeof(ProviderYamlEntry));
        ProviderYaml *yaml = reader->yaml;
        int r;

        if (!entry || !(entry->source = strdup(reader->source)))
                return -ENOMEM;
        r = yaml->n_entries >= PROVIDER_YAML_MAX_ENTRIES
                    ? complain(reader, node, "too many providers")
                    : read_entry(reader, node, entry);
        if (r < 0)
                return r == -EINVAL ? 0 : r;
        if (array_grow(&yaml->entries, sizeof(ProviderYamlEntry *), yaml->n_entries,
                       &yaml->n_allocated) < 0)
                return -ENOMEM;
        yaml->entries[yaml->n_entries++] = TAKE_PTR(entry);
        return 0;
}

/* Checks schema_version against Nova's pattern ^1.([0-9]|[1-9][0-9]+)$, but with a literal dot. A
 * newer minor version is reported, and its entries are still read. */
static int check_version(const Reader *reader, const yaml_node_t *root)
{
        const yaml_node_t *node = member(reader, member(reader, root, "meta"), "schema_version");
        const char *text = yaml_text_scalar(node), *minor = text ? text + 2 : NULL;

        if (!text || is_plain(node))
                return complain(reader, node,
                                "meta: schema_version must be a text in quotes, such as '1.0'");
        if (strncmp(text, "1.", 2) != 0 || !minor[0] ||
            strspn(minor, "0123456789") != strlen(minor) || (minor[0] == '0' && minor[1]))
                return complain(reader, node, "schema_version \"%.20s\" is not supported; use 1.0",
                                text);
        if (strcmp(minor, "0") != 0)
                (void)complain(
                        reader, node,
                        "schema_version %.20s is newer than 1.0, so its new fields are ignored",
                        text);
        return 0;
}

static int read_document(const Reader *reader)
{
        const yaml_node_t *root = yaml_document_get_root_node(reader->document);
        int r = root ? check_version(reader, root) : complain(reader, NULL, "the file is empty");

        return r < 0 ? r
                     : read_list(reader, member(reader, root, "providers"), "providers", add_entry,
                                 NULL);
}

int provider_yaml_add(ProviderYaml *yaml, const char *source, const char *text, size_t n,
                      void (*problem)(const char *text, void *userdata), void *userdata)
{
        yaml_document_t document;
        size_t n_left = ITEMS_MAX;
        Reader reader = {
                .yaml = yaml,
                .source = source,
                .document = &document,
                .problem = problem,
                .userdata = userdata,
                .n_left = &n_left,
        };
        Error error = ERROR_NULL;
        int r = yaml_text_parse(text, n, &document, &error);

        if (r == -EINVAL)
                return complain(&reader, NULL, "%s", error.text);
        if (r < 0)
                return r;
        r = read_document(&reader);
        yaml_document_delete(&document);
        return r;
}
