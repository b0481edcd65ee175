/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the record of active partitions with the claims. Nothing is cached: the program can
 * write the record at any time, and each answer must be of now. The devices of a partition without
 * its claim stay withheld until its entry is gone, because only then its unit "deactivate" has
 * succeeded. Without a folder in /run nothing is withheld. If the record or the claims cannot be
 * read, all devices of the sets with units are withheld, and no others.
 *
 * Tests: tests/unit/agent/cycle/test-partitions.c tests/integration/claims/test_partitions.py */

#include "agent/cycle/partitions.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define NAME "partitions.json"

int partitions_read(const ClaimService *service, PartitionRecord *ret, Error *reterr)
{
        const char *record = service->wanted.record_path;
        _cleanup_free_ char *path = NULL;

        if (!record)
                return error_setf(reterr, ENOENT, "The service has no folder in /run");
        path = text_format("%.*s/" NAME, (int)(strrchr(record, '/') - record), record);
        return path ? partition_record_read(path, ret, reterr) : error_oom(reterr);
}

const DevicePartition *partition_of_claim(const DeviceSet *set, const Claim *claim)
{
        const char *devices[DEVICE_SET_MEMBERS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (!device->address || !uuid_empty(&device->mdev) ||
                    !device_set_members_of(set, device->address))
                        continue;
                if (n == DEVICE_SET_MEMBERS_MAX)
                        return NULL;
                devices[n++] = device->address;
        }
        return n > 0 ? device_set_find(set, devices, n) : NULL;
}

/* Returns an entry whose unit has failed, of this partition or of one with a common member; NULL:
 * there is none. */
static const PartitionEntry *find_obstacle(const DeviceSet *set, const PartitionRecord *record,
                                           const DevicePartition *partition)
{
        for (size_t i = 0; i < record->n_items; i++) {
                const DevicePartition *other = partition_entry_find(&record->items[i], set);

                if (other && record->items[i].error[0] && other->members & partition->members)
                        return &record->items[i];
        }
        return NULL;
}

int partition_check(const DeviceSet *set, const PartitionRecord *record,
                    const DevicePartition *partition, int64_t claim, Error *reterr)
{
        const PartitionEntry *entry = partition_record_find(record, set->name, partition->id);
        const PartitionEntry *obstacle = find_obstacle(set, record, partition);

        if (entry && entry->claim == claim && entry->state == PARTITION_ACTIVE &&
            partition_entry_find(entry, set) == partition)
                return 0;
        if (obstacle)
                return error_setf(reterr, EIO,
                                  "Partition %s of %s cannot be activated. Partition %s: %.120s",
                                  partition->id, set->name, obstacle->partition, obstacle->error);
        return error_setf(reterr, EBUSY, "Partition %s of %s is not active yet", partition->id,
                          set->name);
}

int partitions_check_claim(const ClaimService *service, const Claim *claim, Error *reterr)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        const HostConfig *config = service->settings.driver;
        bool is_read = false;
        int r = 0;

        for (size_t i = 0; config && i < config->n_shapes && r == 0; i++) {
                const DeviceSet *set = &config->shapes[i].set;
                const DevicePartition *partition =
                        config->shapes[i].activate ? partition_of_claim(set, claim) : NULL;

                if (!partition)
                        continue;
                if (!is_read)
                        r = partitions_read(service, &record, reterr);
                is_read = true;
                if (r < 0)
                        return error_setf(reterr, EBUSY, "%s", error_text(reterr, r));
                r = partition_check(set, &record, partition, claim->id, reterr);
        }
        return r;
}

/* Adds the sentence about an entry that no guest can use. */
static int describe_entry(const PartitionEntry *entry, json_t *array)
{
        char devices[512] = "";
        size_t n = 0;

        for (char **device = entry->devices; *device && n < sizeof(devices); device++)
                n += (size_t)snprintf(devices + n, sizeof(devices) - n, "%s%s", n > 0 ? ", " : "",
                                      *device);
        return json_array_append_new(
                array, json_sprintf("Partition %s of %s (%s) is %s%s%s", entry->partition,
                                    entry->set, devices, partition_state_to_text(entry->state),
                                    entry->error[0] || entry->waiting[0] ? ": " : "",
                                    entry->error[0] ? entry->error : entry->waiting));
}

int partitions_describe(const ClaimService *service, json_t *array)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };

        if (!service->wanted.record_path || partitions_read(service, &record, NULL) < 0)
                return 0;
        for (size_t i = 0; i < record.n_items; i++) {
                const PartitionEntry *entry = &record.items[i];

                if ((entry->state != PARTITION_ACTIVE || entry->error[0] || entry->waiting[0]) &&
                    describe_entry(entry, array) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Devices without a claim */

static bool is_owned(const DeviceSet *set, const PartitionEntry *entry,
                     const DevicePartition *partition, const ClaimList *claims)
{
        for (size_t i = 0; partition && i < claims->n_claims; i++)
                if (claims->claims[i]->id == entry->claim &&
                    partition_of_claim(set, claims->claims[i]) == partition)
                        return true;
        return false;
}

static int add_all(char *const *devices, StringSet *ret)
{
        for (; *devices; devices++)
                if (string_set_add(ret, *devices) < 0)
                        return -ENOMEM;
        return 0;
}

const HostShapes *partition_find_shapes(const HostConfig *config, const char *name)
{
        for (size_t i = 0; i < config->n_shapes; i++)
                if (config->shapes[i].activate && strcmp(config->shapes[i].set.name, name) == 0)
                        return &config->shapes[i];
        return NULL;
}

int partition_list_left(const HostConfig *config, const PartitionRecord *record,
                        const ClaimList *claims, StringSet *ret)
{
        for (size_t i = 0; i < record->n_items; i++) {
                const PartitionEntry *entry = &record->items[i];
                const HostShapes *shapes = partition_find_shapes(config, entry->set);
                const DeviceSet *set = shapes ? &shapes->set : NULL;
                const DevicePartition *partition = set ? partition_entry_find(entry, set) : NULL;

                if (partition && is_owned(set, entry, partition, claims))
                        continue;
                if (add_all(entry->devices, ret) < 0)
                        return -ENOMEM;
                for (size_t j = 0; partition && !set->members && j < set->n_partitions; j++)
                        if (set->partitions[j].members & partition->members &&
                            add_all(set->partitions[j].devices, ret) < 0)
                                return -ENOMEM;
        }
        return 0;
}

/* Adds all devices of the sets with units. */
static int add_sets(const HostConfig *config, StringSet *ret)
{
        const char *address;

        for (size_t i = 0; i < config->n_shapes; i++)
                for (size_t j = 0; config->shapes[i].activate &&
                                   (address = device_set_device(&config->shapes[i].set, j));
                     j++)
                        if (string_set_add(ret, address) < 0)
                                return -ENOMEM;
        return 0;
}

int partitions_list_left(ClaimService *service, const HostConfig *config, StringSet *ret)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        Error error = ERROR_NULL;
        int r;

        if (!service->wanted.record_path)
                return 0;
        r = partitions_read(service, &record, &error);
        if (r == 0 && record.n_items > 0)
                r = service->claims ? claims_list(service->claims, CLAIMS_WITH_DEVICES, NULL,
                                                  &claims, &error)
                                    : -EIO;
        if (r >= 0)
                return partition_list_left(config, &record, &claims, ret);
        log_debug("Cannot read the active partitions: %s", error_text(&error, r));
        return add_sets(config, ret);
}
