/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Keeps the cordons of the host and its devices, and edits provider trees for them. Each
 * CordonEntry has a name as its first author wrote it, so one device can have several names. The
 * function find_provider() resolves them in a tree. The entry with the name "" is the host's.
 *
 * An entry has three states: set, set and applied, and lifted. "Applied" means that the state
 * before the cordon was read from Placement and stored in the member foreign or reserved. A lifted
 * entry stays until a tree of Placement shows that its effect is gone. Until then each tree is made
 * without the effect. The tree maker calls cordon_clear() before the driver and the device watch
 * edit a tree, and cordon_apply() after them.
 *
 * Each change by an operator or a health rule is written to the disk before it takes effect (not if
 * read_only). If the write fails, the change fails and is undone in memory. The words for people
 * are made at each change.
 *
 * LIMITATIONS: reserved amounts that cannot be written until the agent restarts are lost, and the
 * device can stay reserved after its cordon is lifted. */

#include "agent/tree/cordon.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/state/state-file.h"
#include "base/array.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "drivers/host/snapshot.h"

#define CORDON_FORMAT "compute-agent-cordon/1"
#define DEVICE_MAX    200    /* length of a device's name, in bytes */
#define LIFT_BOOT     "boot" /* CordonRule.lift of a cordon that the next boot ends */
#define LIFTED_MAX    1024   /* remembered times of lifted cordons */

/* A cordon, with the state to restore when it is lifted. */
typedef struct CordonEntry {
        char *device; /* name as its first author wrote it; "" for the host */
        char *reason, *who;
        char *rule;           /* health rule that owns the cordon; "": a person does */
        char *lift, *boot_id; /* see CordonRule; "" without a rule */
        uint64_t since_usec;  /* CLOCK_REALTIME */
        bool lifted;          /* the effect must be undone */
        bool retired;         /* only of the host: see cordon_set_retired() */
        bool applied;         /* foreign and reserved are known */
        bool foreign;         /* host: the trait existed before the cordon, and ever since */
        Resources reserved;   /* device: reserved amounts before the cordon, by class */
} CordonEntry;

/* The time at which a person lifted the cordon of a device. */
typedef struct Lifted {
        char *device;
        uint64_t usec; /* CLOCK_REALTIME */
} Lifted;

/* The texts of cordon_view(). */
typedef enum Words {
        WORDS_HOST,
        WORDS_DEVICES,
        WORDS_BY_PERSONS,
        WORDS_BY_RULES,
        _WORDS_MAX,
} Words;

struct Cordon {
        char *state_file;
        bool read_only;
        bool unsaved; /* the last write for a tree failed */
        CordonEntry *entries;
        size_t n_entries, n_allocated;
        Lifted *lifted; /* the oldest first */
        size_t n_lifted, n_lifted_allocated;
        const HostConfig *host;  /* its sets have devices without a provider; NULL: no sets */
        char *words[_WORDS_MAX]; /* for cordon_view(); "": no cordon */
};

/* Frees the texts that a change of the owner replaces. */
static void free_owner(const CordonEntry *entry)
{
        free(entry->reason);
        free(entry->who);
        free(entry->rule);
        free(entry->lift);
        free(entry->boot_id);
}

static void entry_done(CordonEntry *entry)
{
        free(entry->device);
        free_owner(entry);
        resources_done(&entry->reserved);
}

Cordon *cordon_free(Cordon *cordon)
{
        if (!cordon)
                return NULL;
        for (size_t i = 0; i < cordon->n_entries; i++)
                entry_done(&cordon->entries[i]);
        free(cordon->entries);
        for (size_t i = 0; i < cordon->n_lifted; i++)
                free(cordon->lifted[i].device);
        free(cordon->lifted);
        for (Words i = 0; i < _WORDS_MAX; i++)
                free(cordon->words[i]);
        free(cordon->state_file);
        free(cordon);
        return NULL;
}

static CordonEntry *find_entry(const Cordon *cordon, const char *device)
{
        for (size_t i = 0; i < cordon->n_entries; i++)
                if (strcmp(cordon->entries[i].device, device) == 0)
                        return &cordon->entries[i];
        return NULL;
}

static void remove_entry(Cordon *cordon, size_t i)
{
        entry_done(&cordon->entries[i]);
        array_close(cordon->entries, sizeof(CordonEntry), &cordon->n_entries, i);
}

/* Words */

static void write_words(const CordonEntry *entry, FILE *file)
{
        time_t seconds = (time_t)(entry->since_usec / USEC_PER_SEC);
        char date[32] = "";
        struct tm utc;

        if (gmtime_r(&seconds, &utc))
                strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &utc);
        fprintf(file, "%s cordoned%s by %s since %s%s%s",
                entry->device[0] ? entry->device : "the host is",
                entry->retired ? " and retired" : "", entry->who, date,
                entry->reason[0] ? ": " : "", entry->reason);
}

/* Returns true if the text contains the entry. */
static bool is_part(const CordonEntry *entry, Words words)
{
        if (entry->lifted || (entry->device[0] == '\0') != (words == WORDS_HOST))
                return false;
        return words < WORDS_BY_PERSONS || (entry->rule[0] != '\0') == (words == WORDS_BY_RULES);
}

/* Returns the cordons of one text in words. "": there is none. NULL: memory is short. */
static char *make_words(const Cordon *cordon, Words words)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        bool first = true;

        if (!file)
                return NULL;
        for (size_t i = 0; i < cordon->n_entries; i++) {
                if (!is_part(&cordon->entries[i], words))
                        continue;
                fputs(first ? "" : "; ", file);
                write_words(&cordon->entries[i], file);
                first = false;
        }
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}

/* Makes all texts again. They change together or not at all. */
static int update_words(Cordon *cordon, Error *reterr)
{
        char *words[_WORDS_MAX];
        bool complete = true;

        for (Words i = 0; i < _WORDS_MAX; i++) {
                words[i] = make_words(cordon, i);
                complete = complete && words[i];
        }
        for (Words i = 0; i < _WORDS_MAX; i++) {
                free(complete ? cordon->words[i] : words[i]);
                if (complete)
                        cordon->words[i] = words[i];
        }
        return complete ? 0 : error_oom(reterr);
}

/* The file */

static json_t *entry_to_json(const CordonEntry *entry)
{
        return json_pack("{ss ss ss ss ss ss sI sb sb sb sb so}", "device", entry->device, "reason",
                         entry->reason, "who", entry->who, "rule", entry->rule, "lift", entry->lift,
                         "boot_id", entry->boot_id, "since_usec", (json_int_t)entry->since_usec,
                         "lifted", (int)entry->lifted, "retired", (int)entry->retired, "applied",
                         (int)entry->applied, "foreign", (int)entry->foreign, "reserved",
                         resources_to_json(&entry->reserved));
}

/* Returns the times of lifted cordons. NULL: memory is short. */
static json_t *lifted_to_json(const Cordon *cordon)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < cordon->n_lifted; i++)
                if (json_array_append_new(array, json_pack("{ss sI}", "device",
                                                           cordon->lifted[i].device, "usec",
                                                           (json_int_t)cordon->lifted[i].usec)) < 0)
                        return NULL;
        return TAKE_PTR(array);
}

static int save(const Cordon *cordon, Error *reterr)
{
        _cleanup_json_ json_t *array = json_array(), *json = NULL;

        if (cordon->read_only)
                return 0;
        for (size_t i = 0; array && i < cordon->n_entries; i++)
                if (json_array_append_new(array, entry_to_json(&cordon->entries[i])) < 0)
                        return error_oom(reterr);
        json = array ? json_pack("{ss sO so}", "format", CORDON_FORMAT, "cordons", array, "lifted",
                                 lifted_to_json(cordon))
                     : NULL;
        return json ? state_file_write(cordon->state_file, json, reterr) : error_oom(reterr);
}

static int add_entry(Cordon *cordon, const char *device, const char *reason, const char *who,
                     CordonEntry **ret)
{
        CordonEntry entry = { .device = strdup(device),
                              .reason = strdup(reason),
                              .who = strdup(who),
                              .rule = strdup(""),
                              .lift = strdup(""),
                              .boot_id = strdup(""),
                              .reserved = RESOURCES_INIT };

        if (!entry.device || !entry.reason || !entry.who || !entry.rule || !entry.lift ||
            !entry.boot_id ||
            array_grow(&cordon->entries, sizeof(CordonEntry), cordon->n_entries,
                       &cordon->n_allocated) < 0) {
                entry_done(&entry);
                return -ENOMEM;
        }
        cordon->entries[cordon->n_entries] = entry;
        *ret = &cordon->entries[cordon->n_entries++];
        return 0;
}

/* Replaces *text by a copy of an optional member. Files of older versions lack it. */
static int read_optional(const json_t *json, const char *key, char **text, Error *reterr)
{
        const char *value = json_string_value(json_object_get(json, key));
        char *copy = strdup(value ? value : "");

        if (!copy)
                return error_oom(reterr);
        free(*text);
        *text = copy;
        return 0;
}

/* Reads the owner of a cordon. That of the host always belongs to a person. */
static int read_rule(CordonEntry *entry, const json_t *json, Error *reterr)
{
        int r = entry->device[0] ? read_optional(json, "rule", &entry->rule, reterr) : 0;

        if (r < 0 || !entry->rule[0])
                return r;
        r = read_optional(json, "lift", &entry->lift, reterr);
        return r < 0 ? r : read_optional(json, "boot_id", &entry->boot_id, reterr);
}

/* Adds the entry of a JSON object, or nothing if it is damaged. "retired" and the owner are
 * optional, because older files lack them. */
static int read_entry(Cordon *cordon, const json_t *json, Error *reterr)
{
        _cleanup_(resources_done) Resources amounts = RESOURCES_INIT;
        const char *device, *reason, *who;
        bool lifted, applied, foreign;
        json_t *reserved;
        CordonEntry *entry;
        uint64_t since;
        int r;

        if ((r = json_read_string(json, "device", &device, reterr)) < 0 ||
            (r = json_read_string(json, "reason", &reason, reterr)) < 0 ||
            (r = json_read_string(json, "who", &who, reterr)) < 0 ||
            (r = json_read_u64(json, "since_usec", &since, reterr)) < 0 ||
            (r = json_read_bool(json, "lifted", &lifted, reterr)) < 0 ||
            (r = json_read_bool(json, "applied", &applied, reterr)) < 0 ||
            (r = json_read_bool(json, "foreign", &foreign, reterr)) < 0 ||
            (r = json_read_object(json, "reserved", &reserved, reterr)) < 0 ||
            (r = resources_from_json(reserved, &amounts, reterr)) < 0)
                return r;
        if (find_entry(cordon, device))
                return error_setf(reterr, EBADMSG, "\"%.60s\" is listed twice", device);
        if (add_entry(cordon, device, reason, who, &entry) < 0)
                return error_oom(reterr);
        entry->since_usec = since;
        entry->lifted = lifted;
        entry->applied = applied;
        entry->foreign = foreign;
        entry->retired = !device[0] && json_is_true(json_object_get(json, "retired"));
        entry->reserved = TAKE_STRUCT(amounts);
        return read_rule(entry, json, reterr);
}

/* Adds the time at which a cordon was lifted. Removes the oldest time if there are too many. */
static int add_lifted(Cordon *cordon, const char *device, uint64_t usec)
{
        char *copy = strdup(device);

        if (copy && cordon->n_lifted >= LIFTED_MAX) {
                free(cordon->lifted[0].device);
                array_close(cordon->lifted, sizeof(Lifted), &cordon->n_lifted, 0);
        }
        if (!copy || array_grow(&cordon->lifted, sizeof(Lifted), cordon->n_lifted,
                                &cordon->n_lifted_allocated) < 0) {
                free(copy);
                return -ENOMEM;
        }
        cordon->lifted[cordon->n_lifted++] = (Lifted){ copy, usec };
        return 0;
}

/* Adds the time of a JSON object, or nothing if it is damaged. */
static int read_lifted(Cordon *cordon, const json_t *json, Error *reterr)
{
        const char *device;
        uint64_t usec;
        int r;

        if ((r = json_read_string(json, "device", &device, reterr)) < 0 ||
            (r = json_read_u64(json, "usec", &usec, reterr)) < 0)
                return r;
        return add_lifted(cordon, device, usec) < 0 ? error_oom(reterr) : 0;
}

/* Reads the items of an array. A damaged one is logged and left out, because each of the others is
 * complete. Returns -ENOMEM on failure. */
static int read_items(Cordon *cordon, const json_t *array, const char *what,
                      int (*read)(Cordon *cordon, const json_t *json, Error *reterr), Error *reterr)
{
        const json_t *item;
        Error error;
        size_t i;
        int r;

        json_array_foreach(array, i, item) {
                r = read(cordon, item, &error);
                if (r == -ENOMEM)
                        return error_oom(reterr);
                if (r < 0)
                        log_event(LOG_ERR, MESSAGE_CORDON_LOST, NULL,
                                  "Entry %zu of \"%s\" in %s is damaged and ignored: %s.", i + 1,
                                  what, cordon->state_file, error.text);
        }
        return 0;
}

/* Files of older versions have no "lifted". */
static int read_entries(const json_t *json, void *userdata, Error *reterr)
{
        json_t *array;
        int r = json_read_array(json, "cordons", &array, reterr);

        if (r == 0)
                r = read_items(userdata, array, "cordons", read_entry, reterr);
        return r < 0 ? r
                     : read_items(userdata, json_object_get(json, "lifted"), "lifted", read_lifted,
                                  reterr);
}

int cordon_new(Cordon **ret, const char *state_dir, bool read_only, Error *reterr)
{
        _cleanup_(cordon_freep) Cordon *cordon = calloc(1, sizeof(Cordon));
        Error error = ERROR_NULL;
        int r;

        if (!cordon || !(cordon->state_file = text_format("%s/cordon.json", state_dir)))
                return error_oom(reterr);
        cordon->read_only = read_only;
        r = state_file_load(cordon->state_file, CORDON_FORMAT, read_only, read_entries, cordon,
                            &error);
        if (r < 0 && r != -EBADMSG)
                return error_setf(reterr, r, "%s", error_text(&error, r));
        if (update_words(cordon, reterr) < 0)
                return -ENOMEM;
        if (r < 0)
                log_event(LOG_ERR, MESSAGE_CORDON_LOST, NULL, "The cordons are not in force: %s",
                          error_text(&error, r));
        *ret = TAKE_PTR(cordon);
        return 0;
}

/* Providers */

/* Returns true if part names this device. part is the end of a provider's name, behind the host's
 * name and "_", for example "0000:C1:00.0" or "pci_0000_41_00_0". Case, the prefix "pci_" and the
 * kind of separator do not matter. */
static bool is_named(const char *part, const char *device)
{
        static const char prefix[] = "pci_";

        if (strcasecmp(part, device) == 0)
                return true;
        if (strncmp(part, prefix, strlen(prefix)) == 0)
                part += strlen(prefix);
        if (strncmp(device, prefix, strlen(prefix)) == 0)
                device += strlen(prefix);
        for (; *part && *device; part++, device++)
                if (tolower((unsigned char)*part) != tolower((unsigned char)*device) &&
                    !(strchr(":._", *part) && strchr(":._", *device)))
                        return false;
        return !*part && !*device;
}

/* Returns true if the provider of a device below host has this name. */
static bool has_name(const Provider *provider, const Provider *host, const char *device)
{
        size_t n = strlen(host->name);

        return strcmp(provider->name, device) == 0 || strcmp(provider->uuid.text, device) == 0 ||
               (strncmp(provider->name, host->name, n) == 0 && provider->name[n] == '_' &&
                is_named(provider->name + n + 1, device));
}

/* Returns the provider of a device below root, by any of its names. NULL: there is none. */
static Provider *find_provider(const ProviderTree *tree, const Uuid *root, const char *device)
{
        const Provider *host = provider_tree_find(tree, root);

        for (size_t i = 0; host && i < tree->n_providers; i++) {
                Provider *provider = tree->providers[i];

                if (provider != host && has_name(provider, host, device) &&
                    provider_tree_in_subtree(tree, provider, root))
                        return provider;
        }
        return NULL;
}

/* Returns true if the device with this name has this provider. The tree is searched only for a name
 * of the provider, so a loop over providers and names is cheap. */
static bool is_provider_of(const ProviderTree *tree, const Uuid *root, const Provider *provider,
                           const char *device)
{
        const Provider *host = provider_tree_find(tree, root);

        return host && has_name(provider, host, device) &&
               find_provider(tree, root, device) == provider;
}

/* Returns the address of a device of a set, by any of its names. NULL: there is none. */
static const char *find_member(const Cordon *cordon, const char *device)
{
        const HostConfig *host = cordon->host;
        const char *address;

        for (size_t i = 0; host && i < host->n_shapes; i++)
                for (size_t j = 0; (address = device_set_device(&host->shapes[i].set, j)); j++)
                        if (is_named(address, device))
                                return address;
        return NULL;
}

void cordon_set_host(Cordon *cordon, const HostConfig *host)
{
        cordon->host = host;
}

bool cordon_has_member(const Cordon *cordon, const char *address)
{
        for (size_t i = 0; i < cordon->n_entries; i++)
                if (!cordon->entries[i].lifted && is_named(address, cordon->entries[i].device))
                        return true;
        return false;
}

/* A device: its provider, and its address in a set. NULL: it has none. */
typedef struct Device {
        const Provider *provider;
        const char *member;
} Device;

static Device find_device(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                          const char *name)
{
        return (Device){ .provider = tree ? find_provider(tree, root, name) : NULL,
                         .member = find_member(cordon, name) };
}

/* Returns true if the name is one of the device. */
static bool is_device(const Device *device, const ProviderTree *tree, const Uuid *root,
                      const char *name)
{
        return (device->provider && is_provider_of(tree, root, device->provider, name)) ||
               (device->member && is_named(device->member, name));
}

/* Returns the provider that the entry covers. NULL: tree does not have it. */
static Provider *provider_of(const CordonEntry *entry, const ProviderTree *tree, const Uuid *root)
{
        return entry->device[0] ? find_provider(tree, root, entry->device)
                                : provider_tree_find(tree, root);
}

bool nova_keeps_reserved(const ProviderTree *tree, const Uuid *root, const Provider *provider)
{
        const Provider *host = provider_tree_find(tree, root);
        size_t n = host ? strlen(host->name) : 0;
        char address[PCI_ADDRESS_SIZE];

        return host && strncmp(provider->name, host->name, n) == 0 && provider->name[n] == '_' &&
               pci_address_parse(provider->name + n + 1, address) >= 0;
}

NovaAction cordon_action(const ProviderTree *tree, const Uuid *root, const char *device)
{
        const Provider *provider = tree ? find_provider(tree, root, device) : NULL;

        if (!device[0])
                return NOVA_ACTION_CORDON_HOST;
        return provider && nova_keeps_reserved(tree, root, provider) ? NOVA_ACTION_CORDON_PCI
                                                                     : NOVA_ACTION_CORDON_DEVICE;
}

bool cordon_covers(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                   const Uuid *provider)
{
        const Provider *covered = provider_tree_find(tree, provider);

        for (size_t i = 0; covered && i < cordon->n_entries; i++) {
                const CordonEntry *entry = &cordon->entries[i];

                if (!entry->lifted &&
                    (entry->device[0] ? is_provider_of(tree, root, covered, entry->device)
                                      : uuid_equal(provider, root)))
                        return true;
        }
        return false;
}

/* Returns the entry of a device by any of its names, also a lifted one. It can have another
 * name. */
static CordonEntry *find_named(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                               const char *device)
{
        CordonEntry *entry = find_entry(cordon, device);
        Device meant;

        if (entry || !device[0])
                return entry;
        meant = find_device(cordon, tree, root, device);
        for (size_t i = 0; !entry && i < cordon->n_entries; i++)
                if (cordon->entries[i].device[0] &&
                    is_device(&meant, tree, root, cordon->entries[i].device))
                        entry = &cordon->entries[i];
        return entry;
}

const char *cordon_find_name(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                             const char *address, const char *card)
{
        if (find_provider(tree, root, address) || find_member(cordon, address))
                return address;
        return card[0] && find_provider(tree, root, card) ? card : NULL;
}

/* Returns the time at which a person last lifted a cordon of the device; 0: not known. */
static uint64_t find_lifted(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                            const char *device)
{
        const Device meant = find_device(cordon, tree, root, device);
        uint64_t last = 0;

        for (size_t i = 0; i < cordon->n_lifted; i++) {
                const Lifted *lifted = &cordon->lifted[i];

                if (strcmp(lifted->device, device) == 0 ||
                    is_device(&meant, tree, root, lifted->device))
                        last = MAX(last, lifted->usec);
        }
        return last;
}

static CordonRule rule_of(const CordonEntry *entry)
{
        return (CordonRule){ entry->rule, entry->lift, entry->boot_id };
}

CordonState cordon_get_state(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                             const char *device)
{
        const CordonEntry *entry = find_named(cordon, tree, root, device);
        CordonState state = { .lifted_usec = find_lifted(cordon, tree, root, device) };

        state.cordoned = entry && !entry->lifted;
        if (state.cordoned)
                state.rule = rule_of(entry);
        return state;
}

const char *cordon_find_of_other_boot(const Cordon *cordon, const char *boot_id,
                                      CordonRule *ret_rule)
{
        for (size_t i = 0; i < cordon->n_entries; i++) {
                const CordonEntry *entry = &cordon->entries[i];

                if (entry->lifted || !entry->rule[0] || strcmp(entry->lift, LIFT_BOOT) != 0 ||
                    strcmp(entry->boot_id, boot_id) == 0)
                        continue;
                *ret_rule = rule_of(entry);
                return entry->device;
        }
        return NULL;
}

/* Changes */

/* Checks the arguments of a new cordon. */
static int check_new(const Cordon *cordon, const ProviderTree *tree, const Uuid *root,
                     const char *device, const char *reason, Error *reterr)
{
        if (strlen(reason) > CORDON_TEXT_MAX || strlen(device) > DEVICE_MAX)
                return error_setf(
                        reterr, EINVAL,
                        "The reason is longer than %d bytes, or the name of the device is too long",
                        CORDON_TEXT_MAX);
        if (device[0] && tree && !find_provider(tree, root, device) && !find_member(cordon, device))
                return error_setf(
                        reterr, ENODEV,
                        "\"%.60s\" is not a device of this host with a provider. \"computectl tree\" lists them",
                        device);
        return 0;
}

/* Gives the entry another owner and reason, on the disk, too. The entry changes before the write,
 * because save() writes all entries. A failure restores it. */
static int change_owner(Cordon *cordon, CordonEntry *entry, const char *reason, const char *who,
                        const CordonRule *rule, uint64_t now_usec, Error *reterr)
{
        CordonEntry before = *entry;
        int r;

        entry->reason = strdup(reason);
        entry->who = strdup(who);
        entry->rule = strdup(rule->name);
        entry->lift = strdup(rule->lift);
        entry->boot_id = strdup(rule->boot_id);
        entry->since_usec = now_usec;
        entry->lifted = false;
        r = entry->reason && entry->who && entry->rule && entry->lift && entry->boot_id
                    ? save(cordon, reterr)
                    : error_oom(reterr);
        if (r == 0) {
                free_owner(&before);
                return 0;
        }
        free_owner(entry);
        *entry = before;
        return r;
}

int cordon_set(Cordon *cordon, const ProviderTree *tree, const Uuid *root, const char *device,
               const char *reason, const char *who, const CordonRule *rule, uint64_t now_usec,
               Error *reterr)
{
        static const CordonRule person = { "", "", "" };
        CordonEntry *entry = find_named(cordon, tree, root, device);
        bool is_new = !entry;
        int r = check_new(cordon, tree, root, device, reason, reterr);

        if (r < 0)
                return r;
        if (!entry && add_entry(cordon, device, "", "", &entry) < 0)
                return error_oom(reterr);
        r = change_owner(cordon, entry, reason, who, rule ? rule : &person, now_usec, reterr);
        if (r < 0 && is_new)
                remove_entry(cordon, (size_t)(entry - cordon->entries));
        return r < 0 ? r : update_words(cordon, reterr);
}

/* Writes a changed entry to the disk and makes the words again. Restores it if the write fails. */
static int keep(Cordon *cordon, CordonEntry *entry, const CordonEntry *before, Error *reterr)
{
        int r = save(cordon, reterr);

        if (r < 0)
                *entry = *before;
        return r < 0 ? r : update_words(cordon, reterr);
}

int cordon_lift(Cordon *cordon, const ProviderTree *tree, const Uuid *root, const char *device,
                const char *rule, uint64_t now_usec, Error *reterr)
{
        CordonEntry *entry = find_named(cordon, tree, root, device), before;
        int r;

        if (rule && (!entry || entry->lifted || strcmp(entry->rule, rule) != 0))
                return 0;
        if (!entry || entry->lifted)
                return error_setf(reterr, ENOENT, "%s%.60s%s is not cordoned",
                                  device[0] ? "\"" : "", device[0] ? device : "The host",
                                  device[0] ? "\"" : "");
        if (entry->retired)
                return error_setf(reterr, EINVAL,
                                  "The host is retired. Run \"computectl retire --undo\" first");
        before = *entry;
        if (!rule && device[0] && add_lifted(cordon, entry->device, now_usec) < 0)
                return error_oom(reterr);
        entry->lifted = true;
        r = keep(cordon, entry, &before, reterr);
        if (!entry->lifted && !rule && device[0])
                free(cordon->lifted[--cordon->n_lifted].device);
        return r < 0 ? r : 1;
}

int cordon_set_retired(Cordon *cordon, bool retired, Error *reterr)
{
        CordonEntry *entry = find_entry(cordon, ""), before;

        if (!entry || entry->lifted)
                return error_setf(reterr, ENOENT, "The host is not cordoned");
        before = *entry;
        entry->retired = retired;
        return keep(cordon, entry, &before, reterr);
}

static const char *get_words(const Cordon *cordon, Words words)
{
        return cordon->words[words][0] ? cordon->words[words] : NULL;
}

CordonView cordon_view(const Cordon *cordon)
{
        const CordonEntry *host = find_entry(cordon, "");
        CordonView view = {
                .host = get_words(cordon, WORDS_HOST),
                .devices = get_words(cordon, WORDS_DEVICES),
                .by_persons = get_words(cordon, WORDS_BY_PERSONS),
                .by_rules = get_words(cordon, WORDS_BY_RULES),
                .is_retired = host && host->retired,
        };

        for (size_t i = 0; i < cordon->n_entries; i++) {
                view.n_devices += is_part(&cordon->entries[i], WORDS_DEVICES);
                view.n_by_rules += is_part(&cordon->entries[i], WORDS_BY_RULES);
        }
        return view;
}

/* Effects on trees. apply_to_host(), reserve_all() and apply_entry() return 1 if the entry changed,
 * 2 if it must be removed, 0, or -ENOMEM. */

/* Adds the trait to the host, or removes it if the cordon was lifted. A trait that another writer
 * set before the cordon stays, unless that writer has removed it since. The first known tree after
 * the cordon decides whether it existed before. */
static int apply_to_host(CordonEntry *entry, Provider *host, bool known)
{
        bool has = string_set_contains(&host->traits, CORDON_TRAIT);
        bool changed = known && (!entry->applied || (entry->foreign && !has));

        if (entry->lifted && (!has || entry->foreign || !entry->applied))
                return 2;
        if (entry->lifted) {
                (void)string_set_remove(&host->traits, CORDON_TRAIT);
                return 0;
        }
        if (changed)
                entry->foreign = has;
        entry->applied = entry->applied || changed;
        if (string_set_add(&host->traits, CORDON_TRAIT) < 0)
                return -ENOMEM;
        return changed;
}

/* Reserves all capacity of a device. The amounts to restore follow later changes by other writers,
 * the driver and the device watch: each known tree with another reserved amount updates them. */
static int reserve_all(CordonEntry *entry, Provider *provider, bool known)
{
        bool changed = known && !entry->applied;

        for (size_t i = 0; i < provider->n_inventories; i++) {
                InventoryRecord *record = &provider->inventories[i];
                uint64_t *reserved = &record->inventory.reserved;

                if (known &&
                    (!entry->applied ||
                     *reserved != resources_get(&entry->reserved, record->resource_class))) {
                        if (resources_set(&entry->reserved, record->resource_class, *reserved) < 0)
                                return -ENOMEM;
                        changed = true;
                }
                *reserved = record->inventory.total;
        }
        entry->applied = entry->applied || known;
        return changed;
}

/* Restores the reserved amounts of a device where all capacity is reserved and the amount before
 * the cordon is smaller. Returns false if there is no such class, so the cordon has no effect in
 * this tree. */
static bool give_back(const CordonEntry *entry, Provider *provider)
{
        bool any = false;

        for (size_t i = 0; entry->applied && i < provider->n_inventories; i++) {
                InventoryRecord *record = &provider->inventories[i];
                uint64_t before = resources_get(&entry->reserved, record->resource_class);

                if (record->inventory.reserved < record->inventory.total ||
                    before >= record->inventory.total)
                        continue;
                record->inventory.reserved = before;
                any = true;
        }
        return any;
}

/* Writes the entries. A failure is logged once, and cordon_apply() repeats the write for each tree
 * of Placement. Returns false if the write failed. */
static bool save_quietly(Cordon *cordon)
{
        Error error;
        bool failed = save(cordon, &error) < 0;

        if (failed && !cordon->unsaved)
                log_warning("Cannot store the list of cordons: %s. Retrying.", error.text);
        cordon->unsaved = failed;
        return !failed;
}

void cordon_clear(Cordon *cordon, ProviderTree *tree, const Uuid *root, bool known)
{
        bool changed = false;

        /* The order is backwards, because an entry can be removed. */
        for (size_t i = cordon->n_entries; i > 0; i--) {
                const CordonEntry *entry = &cordon->entries[i - 1];
                Provider *provider = entry->device[0] ? provider_of(entry, tree, root) : NULL;
                bool undone = provider && give_back(entry, provider);

                if (!entry->device[0] || !entry->lifted || undone || !known)
                        continue;
                remove_entry(cordon, i - 1);
                changed = true;
        }
        if (changed)
                (void)save_quietly(cordon);
}

/* Applies one entry. If the tree has no provider of the host, a lifted cordon of the host must be
 * removed. A lifted cordon of a device is cordon_clear()'s task. */
static int apply_entry(CordonEntry *entry, ProviderTree *tree, const Uuid *root, bool known)
{
        Provider *provider = provider_of(entry, tree, root);

        if (!entry->device[0])
                return provider ? apply_to_host(entry, provider, known) : entry->lifted ? 2 : 0;
        return provider && !entry->lifted ? reserve_all(entry, provider, known) : 0;
}

int cordon_apply(Cordon *cordon, ProviderTree *tree, const Uuid *root, bool known, Error *reterr)
{
        bool changed = known && cordon->unsaved, begins = false;
        CordonEntry *entry;

        /* The order is backwards, because an entry can be removed. */
        for (size_t i = cordon->n_entries; i > 0; i--) {
                int r = apply_entry(entry = &cordon->entries[i - 1], tree, root, known);

                if (r < 0)
                        return error_oom(reterr);
                begins = begins || (r == 1 && !entry->device[0]);
                if (r == 2 && known)
                        remove_entry(cordon, i - 1);
                changed = changed || (known && r > 0);
        }
        /* After a restart, a trait that the file does not have counts as that of another writer. So
         * a new one is removed again. */
        if (changed && !save_quietly(cordon) && begins) {
                entry = find_entry(cordon, "");
                if (!entry->foreign)
                        (void)string_set_remove(&provider_tree_find(tree, root)->traits,
                                                CORDON_TRAIT);
                entry->applied = false;
        }
        return 0;
}
