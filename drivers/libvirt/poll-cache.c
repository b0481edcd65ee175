/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The cache has two sorted tables: devices by name, and domains by uuid. A poll begins with the
 * removal of marked entries, and in some cases of all (poll_cache_begin()). It ends with the
 * removal of entries that it did not use, because those objects are gone. A failed poll empties
 * both tables. Only the marks have a lock; the virt thread owns everything else. Memory is limited
 * by the number of objects, and by POLL_CACHE_MARKS_MAX.
 *
 * Tests: tests/unit/drivers/libvirt/test-poll-cache.c */

#include "drivers/libvirt/poll-cache.h"

#include <pthread.h>
#include <string.h>

#include "base/array.h"
#include "base/string-set.h"

typedef struct CacheEntry {
        char *key;
        bool seen;  /* the current poll used it */
        bool stale; /* the current poll must read its persistent definition again */
        NodeDevice device;
        SnapshotDomain domain;
} CacheEntry;

typedef struct CacheTable {
        CacheEntry **entries; /* sorted by key */
        size_t n_entries;
        size_t n_allocated;
        /* false: there are no events, so each poll begins with an empty table */
        bool keep;
} CacheTable;

/* Keys of changed objects. all: there were too many keys or memory was short, so everything is
 * marked. */
typedef struct Marks {
        StringSet keys;
        bool all;
} Marks;

struct PollCache {
        CacheTable devices;
        CacheTable domains;
        /* the table has all devices of the host */
        bool knows_devices;
        bool keeps_silent;    /* the current poll does not read devices that change silently */
        char *refreshed;      /* key of the last domain that was marked in turn; NULL: none */
        uint64_t filled_usec; /* monotonic time of the last poll that read everything; 0: never, or
                                 the last poll failed */

        pthread_mutex_t lock; /* guards the members below */
        Marks changed_devices;
        Marks changed_domains;
};

static CacheEntry *entry_free(CacheEntry *entry)
{
        if (!entry)
                return NULL;
        node_device_done(&entry->device);
        snapshot_domain_done(&entry->domain);
        free(entry->key);
        free(entry);
        return NULL;
}
DEFINE_CLEANUP(CacheEntry *, entry_free);

static int order_entry(const void *key, const void *item)
{
        return strcmp(key, (*(CacheEntry *const *)item)->key);
}

/* Returns the place of the key, or the place where it belongs. */
static size_t table_place(const CacheTable *table, const char *key, bool *ret_found)
{
        return array_find(table->entries, sizeof(CacheEntry *), table->n_entries, key, order_entry,
                          ret_found);
}

/* Returns the entry and marks it as seen, or NULL. */
static CacheEntry *table_find(CacheTable *table, const char *key)
{
        bool found;
        size_t i = table_place(table, key, &found);

        if (!found)
                return NULL;
        table->entries[i]->seen = true;
        return table->entries[i];
}

/* Replaces or inserts the entry with an empty one. */
static int table_put(CacheTable *table, const char *key, CacheEntry **ret)
{
        _cleanup_(entry_freep) CacheEntry *entry = calloc(1, sizeof(CacheEntry));
        bool found;
        size_t i;

        if (!entry || !(entry->key = strdup(key)) ||
            array_grow(&table->entries, sizeof(CacheEntry *), table->n_entries,
                       &table->n_allocated) < 0)
                return -ENOMEM;
        entry->seen = true;
        i = table_place(table, key, &found);
        if (found) {
                entry_free(table->entries[i]);
        } else {
                array_open(table->entries, sizeof(CacheEntry *), &table->n_entries, i);
        }
        *ret = table->entries[i] = TAKE_PTR(entry);
        return 0;
}

static void table_clear(CacheTable *table)
{
        for (size_t i = 0; i < table->n_entries; i++)
                entry_free(table->entries[i]);
        table->n_entries = 0;
}

/* Removes the entries for which drop() returns true. */
static void table_filter(CacheTable *table, bool (*drop)(const CacheEntry *, const void *),
                         const void *data)
{
        size_t n = 0;

        for (size_t i = 0; i < table->n_entries; i++)
                if (drop(table->entries[i], data))
                        entry_free(table->entries[i]);
                else
                        table->entries[n++] = table->entries[i];
        table->n_entries = n;
}

int poll_cache_new(PollCache **ret)
{
        PollCache *cache = calloc(1, sizeof(PollCache));

        if (!cache)
                return -ENOMEM;
        cache->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        *ret = cache;
        return 0;
}

PollCache *poll_cache_free(PollCache *cache)
{
        if (!cache)
                return NULL;
        table_clear(&cache->devices);
        table_clear(&cache->domains);
        free(cache->devices.entries);
        free(cache->domains.entries);
        free(cache->refreshed);
        string_set_done(&cache->changed_devices.keys);
        string_set_done(&cache->changed_domains.keys);
        pthread_mutex_destroy(&cache->lock);
        free(cache);
        return NULL;
}

/* Marks */

/* Adds a key. Marks everything if there are too many or memory is short. */
static void marks_add(Marks *marks, const char *key)
{
        if (marks->all)
                return;
        if (marks->keys.n_items < POLL_CACHE_MARKS_MAX && string_set_add(&marks->keys, key) >= 0)
                return;
        marks->all = true;
        string_set_done(&marks->keys);
}

void poll_cache_mark_device(PollCache *cache, const char *name)
{
        pthread_mutex_lock(&cache->lock);
        marks_add(&cache->changed_devices, name);
        pthread_mutex_unlock(&cache->lock);
}

void poll_cache_mark_domain(PollCache *cache, const char *uuid)
{
        pthread_mutex_lock(&cache->lock);
        marks_add(&cache->changed_domains, uuid);
        pthread_mutex_unlock(&cache->lock);
}

/* A poll */

void poll_cache_keep(PollCache *cache, bool devices, bool domains)
{
        cache->devices.keep = devices;
        cache->domains.keep = domains;
}

static bool is_marked(const CacheEntry *entry, const void *data)
{
        return string_set_contains(data, entry->key);
}

/* Removes the marked entries and the marks. Returns true if there were marks. */
static bool apply_marks(CacheTable *table, Marks *marks)
{
        bool any = marks->all || marks->keys.n_items > 0;

        if (marks->all || !table->keep)
                table_clear(table);
        else if (marks->keys.n_items > 0)
                table_filter(table, is_marked, &marks->keys);
        string_set_done(&marks->keys);
        *marks = (Marks){ 0 };
        return any;
}

static void clear_seen(CacheTable *table)
{
        for (size_t i = 0; i < table->n_entries; i++)
                table->entries[i]->seen = false;
}

/* Marks the next n domains as stale, in the order of their uuids. Each poll reads some of them
 * again, because libvirt sends no event when the persistent definition of a domain changes. */
static void refresh_domains(PollCache *cache, size_t n)
{
        CacheTable *table = &cache->domains;
        bool found = false;
        size_t place = cache->refreshed ? table_place(table, cache->refreshed, &found) : 0;
        const CacheEntry *last = NULL;

        place += found;
        for (size_t i = 0; i < table->n_entries && n > 0; i++) {
                CacheEntry *entry = table->entries[(place + i) % table->n_entries];

                entry->stale = true;
                last = entry;
                n--;
        }
        free(cache->refreshed);
        cache->refreshed = last ? strdup(last->key) : NULL;
}

static void forget_all(PollCache *cache)
{
        table_clear(&cache->devices);
        table_clear(&cache->domains);
        cache->knows_devices = false;
}

bool poll_cache_begin(PollCache *cache, uint64_t now_usec, DriverPollKind kind)
{
        pthread_mutex_lock(&cache->lock);
        if (apply_marks(&cache->devices, &cache->changed_devices))
                cache->knows_devices = false;
        apply_marks(&cache->domains, &cache->changed_domains);
        pthread_mutex_unlock(&cache->lock);

        cache->keeps_silent = !(kind & DRIVER_POLL_CHANGES);
        if (cache->filled_usec == 0 || kind == DRIVER_POLL_ALL ||
            (!cache->keeps_silent && now_usec - cache->filled_usec >= POLL_CACHE_LIFE_USEC)) {
                forget_all(cache);
                cache->filled_usec = now_usec;
        }
        clear_seen(&cache->devices);
        clear_seen(&cache->domains);
        refresh_domains(cache, kind & DRIVER_POLL_GUESTS ? SIZE_MAX : POLL_CACHE_REFRESH_MAX);
        return cache->knows_devices;
}

void poll_cache_note_listed(PollCache *cache, const char *name)
{
        static const char prefix[] = "mdev_";

        if (strncmp(name, prefix, strlen(prefix)) == 0 && !table_find(&cache->devices, name))
                cache->keeps_silent = false;
}

/* Returns true if the device changes silently, and this poll must read it. */
static bool must_read(const PollCache *cache, const NodeDevice *device)
{
        return !cache->keeps_silent && device->kind == NODE_DEVICE_DEVICE &&
               snapshot_device_changes_silently(&device->device);
}

const NodeDevice *poll_cache_next_device(PollCache *cache, size_t *i, bool *ret_stale)
{
        CacheEntry *entry;

        if (*i >= cache->devices.n_entries)
                return NULL;
        entry = cache->devices.entries[(*i)++];
        entry->seen = true;
        *ret_stale = must_read(cache, &entry->device);
        return &entry->device;
}

const NodeDevice *poll_cache_find_device(PollCache *cache, const char *name)
{
        const CacheEntry *entry = table_find(&cache->devices, name);

        return entry && !must_read(cache, &entry->device) ? &entry->device : NULL;
}

const SnapshotDomain *poll_cache_find_domain(PollCache *cache, const char *uuid, bool *ret_stale)
{
        const CacheEntry *entry = table_find(&cache->domains, uuid);

        *ret_stale = entry && entry->stale;
        return entry ? &entry->domain : NULL;
}

int poll_cache_put_device(PollCache *cache, const char *name, NodeDevice *value,
                          const NodeDevice **ret)
{
        CacheEntry *entry;

        if (table_put(&cache->devices, name, &entry) < 0)
                return -ENOMEM;
        entry->device = *value;
        *value = (NodeDevice){ 0 };
        *ret = &entry->device;
        return 0;
}

int poll_cache_put_domain(PollCache *cache, const char *uuid, SnapshotDomain *value,
                          const SnapshotDomain **ret)
{
        CacheEntry *entry;

        if (table_put(&cache->domains, uuid, &entry) < 0)
                return -ENOMEM;
        entry->domain = *value;
        *value = (SnapshotDomain){ 0 };
        *ret = &entry->domain;
        return 0;
}

static bool is_unseen(const CacheEntry *entry, const void *data)
{
        return !entry->seen;
}

void poll_cache_end(PollCache *cache, bool succeeded)
{
        if (!succeeded) {
                forget_all(cache);
                cache->filled_usec = 0;
                return;
        }
        table_filter(&cache->devices, is_unseen, NULL);
        table_filter(&cache->domains, is_unseen, NULL);
        cache->knows_devices = cache->devices.keep;
}
