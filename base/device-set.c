/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the texts of a set of devices, counts the partitions that still fit, and chooses one. The
 * choice compares what each candidate leaves: the numbers of partitions of each amount that fit
 * afterwards. They are compared from the largest amount to the smallest, so a choice never reduces
 * the largest amount that fits more than necessary. Masks of members make each test one operation.
 * All functions are pure. A failed parse or copy leaves *ret unchanged.
 *
 * Tests: tests/unit/base/test-device-set.c */

#include "base/device-set.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"

void device_set_done(DeviceSet *set)
{
        for (size_t i = 0; i < set->n_partitions; i++)
                strings_free(set->partitions[i].devices);
        free(set->partitions);
        strings_free(set->members);
        free(set->resource_class);
        free(set->name);
        *set = (DeviceSet){ 0 };
}

int device_set_copy(const DeviceSet *set, DeviceSet *ret)
{
        DeviceSet copy = { .name = strdup(set->name),
                           .resource_class = strdup(set->resource_class),
                           .n_members = set->n_members };
        bool ok = copy.name && copy.resource_class &&
                  (!set->members || strings_copy(set->members, &copy.members) == 0);

        copy.partitions = calloc(set->n_partitions + 1, sizeof(DevicePartition));
        for (size_t i = 0; ok && copy.partitions && i < set->n_partitions; i++) {
                DevicePartition *partition = &copy.partitions[copy.n_partitions++];

                *partition = set->partitions[i];
                partition->devices = NULL;
                ok = strings_copy(set->partitions[i].devices, &partition->devices) == 0;
        }
        if (!ok || !copy.partitions) {
                device_set_done(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

/* Texts */

static void make_small(char **texts)
{
        for (; texts && *texts; texts++)
                for (char *c = *texts; *c; c++)
                        *c = (char)tolower((unsigned char)*c);
}

static bool has_text(char *const *texts, const char *text)
{
        for (; texts && *texts; texts++)
                if (strcmp(*texts, text) == 0)
                        return true;
        return false;
}

static bool is_number(const char *text)
{
        return text[0] && text[strspn(text, "0123456789")] == '\0';
}

/* Reads "members": one number of slots, or addresses. */
static int parse_members(DeviceSet *set, char *const *members, Error *reterr)
{
        size_t n = 0;

        while (members && members[n])
                n++;
        if (n == 0)
                return error_setf(reterr, EINVAL, "members must list devices or be a number");
        if (n == 1 && is_number(members[0])) {
                set->n_members = strlen(members[0]) <= 2 ? strtoul(members[0], NULL, 10) : 0;
                if (set->n_members < 1 || set->n_members > DEVICE_SET_MEMBERS_MAX)
                        return error_setf(reterr, EINVAL, "members: the number must be 1 to %d",
                                          DEVICE_SET_MEMBERS_MAX);
                return 0;
        }
        if (n > DEVICE_SET_MEMBERS_MAX)
                return error_setf(reterr, EINVAL, "members: at most %d devices",
                                  DEVICE_SET_MEMBERS_MAX);
        if (strings_copy(members, &set->members) < 0)
                return error_oom(reterr);
        set->n_members = n;
        make_small(set->members);
        for (size_t i = 0; i < n; i++)
                if (has_text(set->members + i + 1, set->members[i]))
                        return error_setf(reterr, EINVAL, "members: %.20s is listed twice",
                                          set->members[i]);
        return 0;
}

static bool read_member(const DeviceSet *set, const char **text, size_t *ret)
{
        size_t n = strspn(*text, "0123456789");

        if (n < 1 || n > 2)
                return false;
        *ret = strtoul(*text, NULL, 10);
        *text += n;
        return *ret >= 1 && *ret <= set->n_members;
}

/* Reads numbers and ranges that "+" joins. *text is left behind them, and the caller checks the
 * rest. Returns 0 for a text that is none, or that names a member twice. */
static uint64_t read_numbers(const DeviceSet *set, const char **text)
{
        uint64_t members = 0;

        for (;;) {
                size_t first, last;

                if (!read_member(set, text, &first))
                        return 0;
                last = first;
                if (**text == '-') {
                        ++*text;
                        if (!read_member(set, text, &last) || last < first)
                                return 0;
                }
                for (size_t i = first; i <= last; i++) {
                        if (members & UINT64_C(1) << (i - 1))
                                return 0;
                        members |= UINT64_C(1) << (i - 1);
                }
                if (**text != '+')
                        return members;
                ++*text;
        }
}

/* Makes the list of the members' addresses. */
static int list_members(const DeviceSet *set, uint64_t members, char ***ret)
{
        char *list[DEVICE_SET_MEMBERS_MAX + 1] = { NULL };
        size_t n = 0;

        for (size_t i = 0; i < set->n_members; i++)
                if (members & UINT64_C(1) << i)
                        list[n++] = set->members[i];
        return strings_copy(list, ret);
}

/* Makes the list of the addresses in a text that "+" joins, at most one for each member. */
static int list_devices(const char *text, uint64_t members, char ***ret, Error *reterr)
{
        char *list[DEVICE_SET_MEMBERS_MAX + 1] = { NULL };
        _cleanup_free_ char *copy = strdup(text);
        size_t n = 0;

        if (!copy)
                return error_oom(reterr);
        make_small((char *[]){ copy, NULL });
        for (char *rest = copy, *item; (item = strsep(&rest, "+"));) {
                if (!*item || n == DEVICE_SET_MEMBERS_MAX || has_text(list, item))
                        return error_setf(reterr, EINVAL,
                                          "after \"@\" must be different addresses, joined by +");
                list[n++] = item;
        }
        if (n > device_members_count(members))
                return error_setf(reterr, EINVAL,
                                  "a partition has at most one device for each slot");
        return strings_copy(list, ret) < 0 ? error_oom(reterr) : 0;
}

static bool is_id(const char *id)
{
        size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

        return n >= 1 && n <= DEVICE_SET_ID_MAX && !id[n];
}

/* Rejects a partition with the id of an earlier one. Also rejects one with the members of an
 * earlier one in a set of devices, or with a device of an earlier one in a set of slots. The header
 * explains the two kinds of sets. */
static int check_partition(const DeviceSet *set, const DevicePartition *partition, Error *reterr)
{
        for (size_t i = 0; i < set->n_partitions; i++) {
                const DevicePartition *other = &set->partitions[i];

                if (strcmp(other->id, partition->id) == 0)
                        return error_setf(reterr, EINVAL, "another partition has this id");
                if (set->members && other->members == partition->members)
                        return error_setf(reterr, EINVAL, "partition %s has the same members",
                                          other->id);
                for (char **d = partition->devices; !set->members && *d; d++)
                        if (has_text(other->devices, *d))
                                return error_setf(reterr, EINVAL, "partition %s has %.20s already",
                                                  other->id, *d);
        }
        return 0;
}

/* Reads "ID=MEMBERS" or "ID=MEMBERS@DEVICES". partition is filled as far as possible; its devices
 * are the caller's in each case. */
static int parse_partition(const DeviceSet *set, const char *text, DevicePartition *partition,
                           Error *reterr)
{
        const char *equal = strchr(text, '=');
        size_t n = equal ? (size_t)(equal - text) : 0;
        const char *rest;

        if (n < 1 || n > DEVICE_SET_ID_MAX)
                return error_setf(reterr, EINVAL, "must be ID=MEMBERS");
        memcpy(partition->id, text, n);
        if (!is_id(partition->id))
                return error_setf(reterr, EINVAL,
                                  "an id has letters, digits, \"_\", \".\" and "
                                  "\"-\"");
        rest = equal + 1;
        partition->members = read_numbers(set, &rest);
        if (!partition->members || (*rest && *rest != '@'))
                return error_setf(reterr, EINVAL,
                                  "members must be different numbers from 1 to %zu or ranges, "
                                  "joined by +",
                                  set->n_members);
        if (set->members && *rest)
                return error_setf(reterr, EINVAL, "only slots have devices after \"@\"");
        if (!set->members && !*rest)
                return error_setf(reterr, EINVAL, "slots need their devices after \"@\"");
        if (!set->members)
                return list_devices(rest + 1, partition->members, &partition->devices, reterr);
        return list_members(set, partition->members, &partition->devices) < 0 ? error_oom(reterr)
                                                                              : 0;
}

static int parse_partitions(DeviceSet *set, char *const *partitions, Error *reterr)
{
        uint64_t reached = 0;
        size_t n = 0;

        while (partitions && partitions[n])
                n++;
        if (n < 1 || n > DEVICE_SET_PARTITIONS_MAX)
                return error_setf(reterr, EINVAL, "partitions must list 1 to %d partitions",
                                  DEVICE_SET_PARTITIONS_MAX);
        set->partitions = calloc(n, sizeof(DevicePartition));
        if (!set->partitions)
                return error_oom(reterr);
        for (size_t i = 0; i < n; i++) {
                DevicePartition *partition = &set->partitions[i];
                int r = parse_partition(set, partitions[i], partition, reterr);

                if (r >= 0)
                        r = check_partition(set, partition, reterr);
                set->n_partitions++; /* also on failure, so that its devices are freed */
                if (r < 0)
                        return error_prefixf(reterr, r, "partitions: %.60s", partitions[i]);
                reached |= partition->members;
        }
        for (size_t i = 0; i < set->n_members; i++)
                if (!(reached & UINT64_C(1) << i))
                        return error_setf(reterr, EINVAL, "member %zu is in no partition", i + 1);
        return 0;
}

int device_set_parse(DeviceSet *ret, const char *name, const char *resource_class,
                     char *const *members, char *const *partitions, Error *reterr)
{
        DeviceSet set = { .name = strdup(name), .resource_class = strdup(resource_class) };
        int r = set.name && set.resource_class ? parse_members(&set, members, reterr)
                                               : error_oom(reterr);

        if (r >= 0)
                r = parse_partitions(&set, partitions, reterr);
        if (r < 0) {
                device_set_done(&set);
                return r;
        }
        *ret = set;
        return 0;
}

/* Members and devices */

const char *device_set_device(const DeviceSet *set, size_t index)
{
        if (set->members)
                return index < set->n_members ? set->members[index] : NULL;
        for (size_t i = 0; i < set->n_partitions; i++)
                for (char **d = set->partitions[i].devices; *d; d++)
                        if (index-- == 0)
                                return *d;
        return NULL;
}

/* Returns the index of the first partition of the device; n_partitions: there is none. */
static size_t find_partition(const DeviceSet *set, const char *address)
{
        size_t i = 0;

        while (i < set->n_partitions && !has_text(set->partitions[i].devices, address))
                i++;
        return i;
}

uint64_t device_set_members_of(const DeviceSet *set, const char *address)
{
        size_t place;

        for (size_t i = 0; set->members && i < set->n_members; i++)
                if (strcmp(set->members[i], address) == 0)
                        return UINT64_C(1) << i;
        place = set->members ? set->n_partitions : find_partition(set, address);
        return place < set->n_partitions ? set->partitions[place].members : 0;
}

void device_set_take(const DeviceSet *set, DeviceSetUse *use, const char *address)
{
        use->taken |= device_set_members_of(set, address);
}

void device_set_exclude(const DeviceSet *set, DeviceSetUse *use, const char *address)
{
        size_t place;

        if (set->members) {
                device_set_take(set, use, address);
                return;
        }
        place = find_partition(set, address);
        if (place < set->n_partitions)
                use->is_out[place] = true;
}

/* Amounts */

unsigned device_members_count(uint64_t members)
{
        return (unsigned)__builtin_popcountll(members);
}

static bool fits(const DeviceSet *set, const DeviceSetUse *use, size_t partition)
{
        return !(set->partitions[partition].members & use->taken) && !use->is_out[partition];
}

uint64_t device_set_amounts(const DeviceSet *set, const DeviceSetUse *use)
{
        uint64_t amounts = 0;

        for (size_t i = 0; i < set->n_partitions; i++)
                if (!use || fits(set, use, i))
                        amounts |= UINT64_C(1)
                                   << (device_members_count(set->partitions[i].members) - 1);
        return amounts;
}

unsigned device_amounts_largest(uint64_t amounts)
{
        return amounts ? 64 - (unsigned)__builtin_clzll(amounts) : 0;
}

unsigned device_amounts_smallest(uint64_t amounts, unsigned *ret_step)
{
        *ret_step = 0;
        for (unsigned amount = 1; amount <= 64; amount++) {
                unsigned other = amount;

                while (device_amounts_have(amounts, amount) && other) {
                        unsigned rest = *ret_step % other;

                        *ret_step = other;
                        other = rest;
                }
        }
        return amounts ? (unsigned)__builtin_ctzll(amounts) + 1 : 0;
}

bool device_amounts_have(uint64_t amounts, uint64_t amount)
{
        return amount >= 1 && amount <= 64 && (amounts & UINT64_C(1) << (amount - 1));
}

/* The choice */

/* Numbers of partitions that fit, the amount n at n. */
typedef struct Rest {
        uint16_t n[DEVICE_SET_MEMBERS_MAX + 1];
} Rest;

/* Counts the partitions that fit beside one that is given out. */
static Rest count_rest(const DeviceSet *set, const DeviceSetUse *use, uint64_t given)
{
        Rest rest = { { 0 } };

        for (size_t i = 0; i < set->n_partitions; i++)
                if (fits(set, use, i) && !(set->partitions[i].members & given))
                        rest.n[device_members_count(set->partitions[i].members)]++;
        return rest;
}

/* Returns whether a is the better rest. */
static bool is_better(const Rest *a, const Rest *b)
{
        for (size_t amount = DEVICE_SET_MEMBERS_MAX; amount > 0; amount--)
                if (a->n[amount] != b->n[amount])
                        return a->n[amount] > b->n[amount];
        return false;
}

const DevicePartition *device_set_choose(const DeviceSet *set, const DeviceSetUse *use,
                                         uint64_t amount)
{
        const DevicePartition *best = NULL;
        Rest best_rest = { { 0 } };

        for (size_t i = 0; i < set->n_partitions; i++) {
                const DevicePartition *partition = &set->partitions[i];
                Rest rest;

                if (device_members_count(partition->members) != amount || !fits(set, use, i))
                        continue;
                rest = count_rest(set, use, partition->members);
                if (!best || is_better(&rest, &best_rest)) {
                        best = partition;
                        best_rest = rest;
                }
        }
        return best;
}

const DevicePartition *device_set_find(const DeviceSet *set, const char *const *addresses, size_t n)
{
        for (size_t i = 0; i < set->n_partitions; i++) {
                char *const *devices = set->partitions[i].devices;
                size_t n_devices = 0, n_found = 0;

                while (devices[n_devices])
                        n_devices++;
                for (size_t j = 0; n_devices == n && j < n; j++)
                        n_found += has_text(devices, addresses[j]);
                if (n_devices == n && n_found == n)
                        return &set->partitions[i];
        }
        return NULL;
}
