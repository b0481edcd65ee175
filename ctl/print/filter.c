/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Selects the claims, events and guests that the command line names: by the filters of "claims" and
 * "history", and by the word of "who", "drain" and "history ID". Each selection removes the other
 * items from the document, so the printers need no filter. The guests that have a device, or are on
 * the host, without a claim are added.
 *
 * The main structures are CtlFilter (all members must match) and Sought, a word that can name many
 * kinds of things. The device of a filter matches in letters of either case. A word of Sought
 * matches exactly, with a uuid in small letters. Only the mdevs and addresses of guests also match
 * in letters of either case. If the word is a device of the host, in letters of either case, it
 * also names the provider and the virtual functions of that device. The provider of a set, which
 * lists "devices" in the tree, names these. Limit: a span of time has at most nine digits. */

#include "ctl/print/filter.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu-set.h"
#include "base/string-set.h"
#include "base/uuid.h"
#include "ctl/print/text.h"

/* The states of claims of formats/claim-json.h. */
static const char *const claim_states[] = { "pending", "claimed", "confirmed", "released", NULL };

/* The kinds of events of formats/claim-json.h. */
static const char *const event_kinds[] = { "claimed",    "adopted",  "released",  "expired",
                                           "moved",      "reshaped", "healed",    "cordoned",
                                           "uncordoned", "retired",  "unretired", NULL };

static const struct {
        const char *name;
        uint64_t usec;
} units[] = {
        { "s", USEC_PER_SEC },
        { "sec", USEC_PER_SEC },
        { "min", 60 * USEC_PER_SEC },
        { "m", 60 * USEC_PER_SEC },
        { "h", 3600 * USEC_PER_SEC },
        { "d", 86400 * USEC_PER_SEC },
        { "day", 86400 * USEC_PER_SEC },
        { "days", 86400 * USEC_PER_SEC },
        { "w", 7 * 86400 * USEC_PER_SEC },
};

/* Parses "-2h" and "2h ago" into microseconds. Returns false for any other text. */
static bool parse_span(const char *text, uint64_t *ret_usec)
{
        bool minus = text[0] == '-';
        char unit[8] = "", rest[8] = "", excess;
        unsigned n;
        int n_read;

        text += minus;
        if (!isdigit((unsigned char)text[0]) || strspn(text, "0123456789") > 9)
                return false;
        n_read = sscanf(text, "%9u %7[a-z] %7s %c", &n, unit, rest, &excess);
        if (minus ? n_read != 2 : n_read != 3 || strcmp(rest, "ago") != 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (strcmp(unit, units[i].name) == 0) {
                        *ret_usec = n * units[i].usec;
                        return true;
                }
        return false;
}

/* Parses a date, with or without a time. Returns false if text is left over. */
static bool parse_date(const char *text, struct tm *ret)
{
        static const char *const formats[] = { "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S" };

        for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
                const char *end;

                *ret = (struct tm){ 0 };
                end = strptime(text, formats[i], ret);
                if (end && !*end)
                        return true;
        }
        return false;
}

/* Returns the start of the day that is that number of days before now, in local time. -1: it cannot
 * be computed. */
static time_t find_midnight(uint64_t now_usec, int days)
{
        time_t now = (time_t)(now_usec / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&now, &tm))
                return -1;
        tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
        tm.tm_mday -= days;
        tm.tm_isdst = -1;
        return mktime(&tm);
}

/* Parses the text of --since. */
static int parse_time(const char *text, uint64_t now_usec, uint64_t *ret_usec, Error *reterr)
{
        uint64_t span_usec;
        struct tm tm;
        time_t time = -1;

        if (parse_span(text, &span_usec)) {
                *ret_usec = span_usec < now_usec ? now_usec - span_usec : 1;
                return 0;
        }
        if (strcmp(text, "today") == 0 || strcmp(text, "yesterday") == 0) {
                time = find_midnight(now_usec, text[0] == 'y');
        } else if (parse_date(text, &tm)) {
                tm.tm_isdst = -1;
                time = mktime(&tm);
        }
        if (time <= 0)
                return error_setf(
                        reterr, EINVAL,
                        "\"%.40s\" is not a time. Examples: \"2026-11-20 10:00\", today, yesterday, -2h",
                        text);
        *ret_usec = (uint64_t)time * USEC_PER_SEC;
        return 0;
}

/* Checks the state of a filter against the states of claims, or the kinds of events. */
static int check_state(const CtlFilter *filter, bool events, Error *reterr)
{
        const char *const *known = events ? event_kinds : claim_states;
        char names[256] = "";
        size_t n = 0;

        if (!filter->state)
                return 0;
        for (size_t i = 0; known[i]; i++) {
                if (strcmp(known[i], filter->state) == 0)
                        return 0;
                n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? ", " : "",
                                      known[i]);
        }
        return error_setf(reterr, EINVAL, "--state must be one of %s, not \"%.40s\"", names,
                          filter->state);
}

int ctl_filter_complete(CtlFilter *filter, const char *since, bool events, uint64_t now_usec,
                        Error *reterr)
{
        int r = since ? parse_time(since, now_usec, &filter->since_usec, reterr) : 0;

        return r < 0 ? error_prefixf(reterr, r, "--since") : check_state(filter, events, reterr);
}

/* The type of strcmp() and strcasecmp(). */
typedef int (*Compare)(const char *a, const char *b);

/* Checks whether an item of the array has the text as one of the members. An empty "what" matches
 * no item here, because missing members count as empty. */
static bool is_named(const json_t *array, const char *const keys[], const char *what,
                     Compare compare)
{
        const json_t *item;
        size_t i;

        json_array_foreach((json_t *)array, i, item)
                for (const char *const *key = keys; what[0] && *key; key++)
                        if (compare(ctl_json_text(item, *key), what) == 0)
                                return true;
        return false;
}

/* Keeps the items of the member "list" for which passes() returns true. Runs from the end, because
 * a removal moves the items behind it. */
static void keep(json_t *document, const char *list,
                 bool (*passes)(const json_t *item, const void *data), const void *data)
{
        json_t *items = json_object_get(document, list);

        for (size_t i = json_array_size(items); i-- > 0;)
                if (!passes(json_array_get(items, i), data))
                        (void)json_array_remove(items, i);
}

/* The filters of the command line. */

/* Checks whether a claim or event names the device or the provider. */
static bool has_device(const json_t *item, const char *what)
{
        static const char *const of_device[] = { "device", "address", "mdev", NULL },
                                 *const of_allocation[] = { "name", "provider", NULL };

        return is_named(json_object_get(item, "devices"), of_device, what, strcasecmp) ||
               is_named(json_object_get(item, "allocations"), of_allocation, what, strcasecmp);
}

/* Checks whether a claim or event belongs to the guest with this uuid: as its consumer, or as the
 * guest of a migration that took the claim over. */
static bool is_of_uuid(const json_t *item, const char *uuid)
{
        return uuid[0] && (strcmp(ctl_json_text(item, "consumer"), uuid) == 0 ||
                           strcmp(ctl_json_text(item, "of"), uuid) == 0);
}

/* Checks whether a claim or event belongs to the guest: by its name or uuid. "" names no guest. */
static bool is_of_guest(const json_t *item, const char *guest)
{
        Uuid uuid;

        if (guest[0] && strcmp(ctl_json_text(item, "guest"), guest) == 0)
                return true;
        return uuid_from_text(guest, &uuid) == 0 && is_of_uuid(item, uuid.text);
}

/* Checks an item against all members of the filter. state: the name of the member to compare. usec:
 * the time of the item. */
static bool passes(const CtlFilter *filter, const json_t *item, const char *state, uint64_t usec)
{
        return (!filter->guest || is_of_guest(item, filter->guest)) &&
               (!filter->device || has_device(item, filter->device)) &&
               (!filter->state || strcmp(ctl_json_text(item, state), filter->state) == 0) &&
               usec >= filter->since_usec;
}

static bool claim_passes(const json_t *claim, const void *filter)
{
        return passes(filter, claim, "state",
                      MAX(ctl_json_u64(claim, "created_usec"), ctl_json_u64(claim, "ended_usec")));
}

static bool event_passes(const json_t *event, const void *filter)
{
        return passes(filter, event, "event", ctl_json_u64(event, "usec"));
}

void ctl_filter_apply(const CtlFilter *filter, json_t *document)
{
        keep(document, "claims", claim_passes, filter);
        keep(document, "events", event_passes, filter);
}

/* Claims by their devices, providers and places. */

/* A word of the command line, parsed once. */
typedef struct Sought {
        const char *word;
        Uuid storage;     /* memory of uuid */
        const char *uuid; /* in small letters; the word itself if it is no uuid */
        bool is_uuid;
        bool is_place, is_cpu; /* parse_place() */
        unsigned number;
        const json_t *device; /* device of the host with this name or address, or of the provider
                                 with this name or uuid; borrowed, or NULL */
        const json_t *set;    /* addresses of the devices of a set's provider; borrowed, or NULL */
        StringSet parts;      /* names and addresses of the device, or of those of the set, and of
                                 their virtual functions, and uuids of their mdevs */
} Sought;

static void sought_done(Sought *sought)
{
        string_set_done(&sought->parts);
}

/* Checks whether a device of a claim or event is one of the parts, by its name or address. */
static bool has_part(const json_t *claim, const StringSet *parts)
{
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(claim, "devices"), i, item)
                if (string_set_contains(parts, ctl_json_text(item, "device")) ||
                    string_set_contains(parts, ctl_json_text(item, "address")))
                        return true;
        return false;
}

/* Checks whether the name of a provider is that of the device: ROOT_pci_0000_41_00_0 or
 * ROOT_0000:41:00.0. */
static bool is_provider_of(const char *provider, const char *device)
{
        size_t n = strlen(provider), length = strlen(device);

        return length > 0 && n > length && provider[n - length - 1] == '_' &&
               strcasecmp(provider + n - length, device) == 0;
}

/* Checks whether the claim has an allocation of the device's provider. Its virtual functions can be
 * missing from the host, for example after a reload of the driver. */
static bool has_provider_of(const json_t *claim, const json_t *device)
{
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(claim, "allocations"), i, item)
                if (is_provider_of(ctl_json_text(item, "name"), ctl_json_text(device, "name")) ||
                    is_provider_of(ctl_json_text(item, "name"), ctl_json_text(device, "address")))
                        return true;
        return false;
}

static bool has_device_or_provider(const json_t *claim, const void *data)
{
        static const char *const of_device[] = { "device", "address", "mdev", NULL },
                                 *const of_allocation[] = { "name", "provider", NULL };
        const Sought *sought = data;

        return is_named(json_object_get(claim, "devices"), of_device, sought->uuid, strcmp) ||
               is_named(json_object_get(claim, "allocations"), of_allocation, sought->uuid,
                        strcmp) ||
               has_part(claim, &sought->parts) || has_provider_of(claim, sought->device);
}

/* Parses "cpu:5" or "cell:1". Returns false for any other text. */
static bool parse_place(const char *what, bool *ret_cpu, unsigned *ret)
{
        const char *colon = strchr(what, ':');

        *ret_cpu = strncmp(what, "cpu:", 4) == 0;
        if ((!*ret_cpu && strncmp(what, "cell:", 5) != 0) || !colon[1] || strlen(colon + 1) > 9 ||
            strspn(colon + 1, "0123456789") != strlen(colon + 1))
                return false;
        *ret = (unsigned)strtoul(colon + 1, NULL, 10);
        return true;
}

/* Checks whether a list such as "0-3,8" has the CPU. A list that cannot be parsed has none. */
static bool has_cpu(const char *list, unsigned cpu)
{
        _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;

        return cpu_set_parse(list, &set, NULL) == 0 && cpu_set_contains(&set, cpu);
}

/* Checks whether a claim uses a host CPU, pinned or held for other threads, or a host cell. */
static bool is_there(const json_t *claim, bool cpu, unsigned number)
{
        const json_t *item;
        size_t i;

        if (cpu && has_cpu(ctl_json_text(claim, "held"), number))
                return true;
        json_array_foreach(json_object_get(claim, cpu ? "cpus" : "cells"), i, item)
                if (cpu ? has_cpu(ctl_json_text(item, "cpus"), number)
                        : ctl_json_u64(item, "host_cell") == number)
                        return true;
        return false;
}

/* Adds the names and addresses of the device and of its virtual functions, and then their mdevs. */
static int add_parts(const json_t *host, const json_t *whole, Sought *sought)
{
        const char *card = ctl_json_text(whole, "address");
        const json_t *device, *mdev;
        size_t i;

        json_array_foreach(json_object_get(host, "devices"), i, device) {
                if (device != whole &&
                    (!card[0] || strcmp(ctl_json_text(device, "physical_function"), card) != 0))
                        continue;
                if (string_set_add(&sought->parts, ctl_json_text(device, "name")) < 0 ||
                    string_set_add(&sought->parts, ctl_json_text(device, "address")) < 0)
                        return -ENOMEM;
        }
        string_set_remove(&sought->parts, "");
        json_array_foreach(json_object_get(host, "mdevs"), i, mdev)
                if (string_set_contains(&sought->parts, ctl_json_text(mdev, "parent")) &&
                    string_set_add(&sought->parts, ctl_json_text(mdev, "uuid")) < 0)
                        return -ENOMEM;
        return 0;
}

/* Finds the device of the host's document with that libvirt name or PCI address, in letters of
 * either case. Borrowed, or NULL. The empty word names no device. */
static const json_t *find_device(const json_t *host, const char *what)
{
        const json_t *device;
        size_t i;

        json_array_foreach(json_object_get(host, "devices"), i, device)
                if (what[0] && (strcasecmp(ctl_json_text(device, "name"), what) == 0 ||
                                strcasecmp(ctl_json_text(device, "address"), what) == 0))
                        return device;
        return NULL;
}

/* Finds the device of the host's document whose provider has that name. Borrowed, or NULL. */
static const json_t *find_device_of(const json_t *host, const char *provider)
{
        const json_t *device;
        size_t i;

        json_array_foreach(json_object_get(host, "devices"), i, device)
                if (is_provider_of(provider, ctl_json_text(device, "name")) ||
                    is_provider_of(provider, ctl_json_text(device, "address")))
                        return device;
        return NULL;
}

/* Finds the provider with that name or uuid. Borrowed, or NULL. */
static const json_t *find_provider(const json_t *tree, const char *word)
{
        const json_t *providers = json_object_get(tree, "providers"), *provider;
        Uuid uuid;

        provider = uuid_from_text(word, &uuid) == 0 ? ctl_json_find(providers, "uuid", uuid.text)
                                                    : NULL;
        return provider ? provider : ctl_json_find(providers, "name", word);
}

/* Adds the parts of each device of a set. One that the host does not list has only its address. */
static int add_set(const json_t *host, const json_t *devices, Sought *sought)
{
        const json_t *item, *device;
        size_t i;

        json_array_foreach(devices, i, item) {
                const char *address = json_string_value(item);

                device = address ? find_device(host, address) : NULL;
                if ((address && string_set_add(&sought->parts, address) < 0) ||
                    (device && add_parts(host, device, sought) < 0))
                        return -ENOMEM;
        }
        return 0;
}

/* Parses a word. host and tree can be NULL. The caller calls sought_done(), and does not move
 * ret. */
static int read_word(const char *word, const json_t *host, const json_t *tree, Sought *ret)
{
        const json_t *provider = find_provider(tree, word);

        *ret = (Sought){ .word = word,
                         .uuid = word,
                         .device = find_device(host, word),
                         .set = json_object_get(provider, "devices") };
        if (!ret->device)
                ret->device =
                        find_device_of(host, provider ? ctl_json_text(provider, "name") : word);
        ret->is_place = parse_place(word, &ret->is_cpu, &ret->number);
        ret->is_uuid = uuid_from_text(word, &ret->storage) == 0;
        if (ret->is_uuid)
                ret->uuid = ret->storage.text;
        return ret->device ? add_parts(host, ret->device, ret) : add_set(host, ret->set, ret);
}

static bool claim_has(const json_t *claim, const void *data)
{
        const Sought *sought = data;

        if (sought->is_place)
                return is_there(claim, sought->is_cpu, sought->number);
        return is_of_uuid(claim, sought->uuid) ||
               strcmp(ctl_json_text(claim, "guest"), sought->word) == 0 ||
               has_device_or_provider(claim, sought);
}

/* Checks whether the host has that CPU or cell. */
static bool has_place(const json_t *host, bool cpu, unsigned number)
{
        const json_t *cell, *item;
        size_t i, j;

        json_array_foreach(json_object_get(host, "cells"), i, cell)
                if (!cpu && ctl_json_u64(cell, "id") == number)
                        return true;
                else
                        json_array_foreach(json_object_get(cell, "cpus"), j, item)
                                if (cpu && ctl_json_u64(item, "id") == number)
                                        return true;
        return false;
}

bool ctl_host_has(const json_t *host, const char *what)
{
        unsigned number;
        bool cpu;
        Uuid uuid;

        if (parse_place(what, &cpu, &number))
                return has_place(host, cpu, number);
        return uuid_from_text(what, &uuid) == 0 || find_device(host, what) ||
               ctl_json_find(json_object_get(host, "domains"), "name", what);
}

/* Checks whether an array of texts has the text, in letters of either case, or one of the parts. */
static bool lists(const json_t *array, const char *what, const StringSet *parts)
{
        const json_t *item;
        size_t i;

        json_array_foreach(array, i, item) {
                const char *text = json_string_value(item);

                if (text && (strcasecmp(text, what) == 0 || string_set_contains(parts, text)))
                        return true;
        }
        return false;
}

static bool has_by(const json_t *domain, const char *mdevs, const char *addresses,
                   const Sought *sought)
{
        return lists(json_object_get(domain, mdevs), sought->word, &sought->parts) ||
               lists(json_object_get(domain, addresses), sought->word, &sought->parts);
}

/* Checks whether one of the claims belongs to the guest with this uuid. */
static bool has_claim(const json_t *claims, const char *uuid)
{
        const json_t *claim;
        size_t i;

        json_array_foreach(claims, i, claim)
                if (is_of_uuid(claim, uuid))
                        return true;
        return false;
}

/* Adds to the member "guests" those that have what is sought, and no claim in the list. */
static int add_guests(json_t *document, const json_t *host, const Sought *sought)
{
        const json_t *domain, *claims = json_object_get(document, "claims");
        json_t *guests = json_object_get(document, "guests");
        size_t i;

        json_array_foreach(json_object_get(host, "domains"), i, domain) {
                bool live = has_by(domain, "mdevs", "pci_addresses", sought);
                bool off = strcmp(ctl_json_text(domain, "state"), "shutoff") == 0;

                if (!live && !has_by(domain, "config_mdevs", "config_pci_addresses", sought))
                        continue;
                if (!has_claim(claims, ctl_json_text(domain, "uuid")) &&
                    json_array_append_new(guests, json_pack("{ss ss sb}", "uuid",
                                                            ctl_json_text(domain, "uuid"), "name",
                                                            ctl_json_text(domain, "name"),
                                                            "next_start", !live || off)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Makes the member "guests" with the guests that have no claim and might use what is sought. Each
 * one that is not off uses the host, at an unknown place. One that is unread can have any device,
 * also while it is off. */
static int add_unclaimed(json_t *document, const json_t *host, bool is_device)
{
        const json_t *domain, *claims = json_object_get(document, "claims");
        json_t *guests = json_array();
        size_t i;

        if (json_object_set_new(document, "guests", guests) < 0)
                return -ENOMEM;
        json_array_foreach(json_object_get(host, "domains"), i, domain) {
                bool can_use = is_device ? json_is_true(json_object_get(domain, "unread"))
                                         : strcmp(ctl_json_text(domain, "state"), "shutoff") != 0;

                if (can_use && !has_claim(claims, ctl_json_text(domain, "uuid")) &&
                    json_array_append_new(guests, json_pack("{ss ss}", "uuid",
                                                            ctl_json_text(domain, "uuid"), "name",
                                                            ctl_json_text(domain, "name"))) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int ctl_claims_add_guests(json_t *document, const json_t *host)
{
        return add_unclaimed(document, host, false);
}

int ctl_claims_find(json_t *document, const json_t *host, const json_t *tree, const char *what)
{
        _cleanup_(sought_done) Sought sought;
        int r = read_word(what, host, tree, &sought);

        if (r == 0)
                r = json_object_set_new(document, "guests", json_array());
        if (r < 0)
                return -ENOMEM;
        keep(document, "claims", claim_has, &sought);
        return add_guests(document, host, &sought);
}

int ctl_claims_keep(json_t *document, const json_t *host, const json_t *tree, const char *name,
                    Error *reterr)
{
        _cleanup_(sought_done) Sought sought;
        int r = read_word(name, host, tree, &sought);

        if (!find_device(host, name) && !find_provider(tree, name))
                return error_setf(
                        reterr, ENODEV,
                        "\"%.60s\" is not a device of this host. See \"computectl tree\" and \"computectl discover\"",
                        name);
        if (r == 0)
                r = add_unclaimed(document, host, sought.device || sought.set);
        if (r < 0)
                return error_oom(reterr);
        keep(document, "claims", has_device_or_provider, &sought);
        return add_guests(document, host, &sought) < 0 ? error_oom(reterr) : 0;
}

/* Events. */

/* Checks whether an event belongs to the word: the number of its claim, a consumer, guest, device,
 * or the name of a provider. "0" never matches, because events without a claim have that number. A
 * uuid also matches anywhere in the reason, for example that of a handover. */
static bool is_of(const json_t *event, const char *what, bool is_uuid)
{
        static const char *const of_event[] = { "consumer", "of", "guest" },
                                 *const of_device[] = { "device", "address", "mdev", NULL },
                                 *const of_allocation[] = { "name", NULL };
        char claim[24];

        snprintf(claim, sizeof(claim), "%" PRIu64, ctl_json_u64(event, "claim"));
        if (!what[0] || strcmp(what, "0") == 0)
                return false;
        if (strcmp(claim, what) == 0)
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(of_event); i++)
                if (strcmp(ctl_json_text(event, of_event[i]), what) == 0)
                        return true;
        /* A handover names the earlier consumer in its reason. */
        if (is_uuid && strstr(ctl_json_text(event, "reason"), what))
                return true;
        return is_named(json_object_get(event, "devices"), of_device, what, strcmp) ||
               is_named(json_object_get(event, "allocations"), of_allocation, what, strcmp);
}

static bool event_has(const json_t *event, const void *data)
{
        const Sought *sought = data;

        /* A guest can have a uuid as its name. */
        return is_of(event, sought->word, false) ||
               (sought->is_uuid && is_of(event, sought->uuid, true)) ||
               has_part(event, &sought->parts) || has_provider_of(event, sought->device);
}

int ctl_events_find(json_t *document, const json_t *host, const char *what)
{
        _cleanup_(sought_done) Sought sought;
        int r = read_word(what, host, NULL, &sought);

        if (r == 0)
                keep(document, "events", event_has, &sought);
        return r;
}
