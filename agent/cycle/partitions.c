/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the record of active partitions with the claims, and watches it. Each answer and look
 * reads the record, because the program can write it at any time. The devices of a partition
 * without its claim stay withheld until its entry is gone, because only then its unit "deactivate"
 * has succeeded. Without a folder in /run nothing is withheld. The claims are needed only if the
 * record has entries. If the record, or the claims that it needs, cannot be read, the devices of
 * all sets with units are withheld, and no others by this file.
 *
 * A failed unit has a time (since_usec) in its entry. The devices of the entry are cordoned, except
 * those that are cordoned and those whose cordon a person has lifted since then. When all were
 * lifted, a stamp in prepare-retry lets the program start the unit again. A cordon that cannot be
 * written is logged, and the entry still withholds the device. The list of cordons keeps the times,
 * so a restart of this process changes nothing.
 *
 * Tests: tests/unit/agent/cycle/test-partitions.c tests/integration/claims/test_partitions.py */

#include "agent/cycle/partitions.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"

#define NAME       "partitions.json"
#define TICK_USEC  (100 * USEC_PER_MSEC)
#define STAMP_USEC (3 * USEC_PER_SEC)
#define WHO        "compute-agent"

/* Reads the record of this boot. ret must be zeroed. Returns -ENOENT without a folder in /run, the
 * errors of partition_record_read(), or -ENOMEM. */
static int read_record(const ClaimService *service, PartitionRecord *ret, Error *reterr)
{
        const char *record = service->wanted.record_path;
        _cleanup_free_ char *path = NULL;

        if (!record)
                return error_setf(reterr, ENOENT, "The service has no folder in /run");
        path = text_format("%.*s/" NAME, (int)(strrchr(record, '/') - record), record);
        return path ? partition_record_read(path, ret, reterr) : error_oom(reterr);
}

/* Returns the partition of a set that the claim has, borrowed from the set; NULL: none. */
static const DevicePartition *partition_of(const DeviceSet *set, const Claim *claim)
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

/* Checks the partition of the set that a claim has, like partitions_check_claim(). */
static int check_partition(const DeviceSet *set, const PartitionRecord *record,
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
                        config->shapes[i].activate ? partition_of(set, claim) : NULL;

                if (!partition)
                        continue;
                if (!is_read)
                        r = read_record(service, &record, reterr);
                is_read = true;
                if (r < 0)
                        return error_setf(reterr, EBUSY, "%s", error_text(reterr, r));
                r = check_partition(set, &record, partition, claim->id, reterr);
        }
        return r;
}

/* Adds the sentence about an entry (partitions_describe()). */
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

        if (!service->wanted.record_path || read_record(service, &record, NULL) < 0)
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
                    partition_of(set, claims->claims[i]) == partition)
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

/* Returns the set of this name, if it has units that activate its partitions; NULL: there is
 * none. */
static const HostShapes *find_shapes(const HostConfig *config, const char *name)
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
                const HostShapes *shapes = find_shapes(config, entry->set);
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
        r = read_record(service, &record, &error);
        if (r == 0 && record.n_items > 0)
                r = service->claims ? claims_list(service->claims, CLAIMS_WITH_DEVICES, NULL,
                                                  &claims, &error)
                                    : -EIO;
        if (r >= 0)
                return partition_list_left(config, &record, &claims, ret);
        log_debug("Cannot read the active partitions: %s", error_text(&error, r));
        return add_sets(config, ret);
}

/* The watch */

struct PartitionWatch {
        CleanerConfig config;
        sd_event_source *timer;
        uint64_t stamp_usec; /* CLOCK_MONOTONIC of the last stamp of this watch, also if its write
                                failed */
        StringSet left;      /* devices that no claim can get, at the last look */
        int cordon_error;    /* result of the last cordon; a repeated error is logged once */
        bool logged;         /* a failure of the last look was logged */
};

PartitionWatch *partition_watch_free(PartitionWatch *watch)
{
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->timer);
        string_set_done(&watch->left);
        free(watch);
        return NULL;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        partition_watch_tend(userdata);
        return 0;
}

int partition_watch_new(PartitionWatch **ret, const CleanerConfig *config)
{
        _cleanup_(partition_watch_freep) PartitionWatch *watch = calloc(1, sizeof(PartitionWatch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->config = *config;
        r = sd_event_add_time(config->event, &watch->timer, CLOCK_MONOTONIC, 0, 0, on_tick, watch);
        if (r >= 0)
                r = sd_event_source_set_enabled(watch->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = prepare_wanted_watch(&config->service->wanted, config->event,
                                         &config->service->settings.driver);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

/* Writes a stamp, which starts the program, unless the last one is younger than STAMP_USEC.
 * retries: units that failed are started again. */
static void write_stamp(PartitionWatch *watch, bool retries)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        if (now < watch->stamp_usec + STAMP_USEC)
                return;
        watch->stamp_usec = now;
        prepare_wanted_write(&watch->config.service->wanted, retries);
}

/* Failures */

/* Returns true if a person has lifted the cordon of the device since the unit failed. A failure in
 * the future, after the clock was set back, counts as earlier than each lift. */
static bool is_lifted(const PartitionWatch *watch, const TrackerView *host,
                      const PartitionEntry *entry, const char *device)
{
        CordonState state =
                cordon_get_state(watch->config.cordon, host->tree, &watch->config.root, device);

        return !state.cordoned && state.lifted_usec > 0 &&
               (state.lifted_usec > entry->since_usec ||
                entry->since_usec > clock_usec(CLOCK_REALTIME));
}

static const char *describe(const PartitionEntry *entry)
{
        return entry->state == PARTITION_DEACTIVATING ? "deactivated" : "activated";
}

/* Logs the failure of an entry's unit, and what follows for its devices. is_left: Placement can
 * offer them, because [agent] nova does not let the agent withhold them there. */
static void log_failure(const PartitionEntry *entry, bool is_left)
{
        _cleanup_free_ char *lines = NULL;
        const json_t *line;
        size_t size, i;
        FILE *file = open_memstream(&lines, &size);

        if (!file)
                return;
        json_array_foreach(entry->lines, i, line)
                fprintf(file, "%s%s", i == 0 ? ". The unit's last lines: " : " | ",
                        json_string_value(line) ? json_string_value(line) : "");
        if (!text_close(file, &lines))
                return;
        text_sanitize(lines, '?');
        log_event(LOG_ERR, MESSAGE_PARTITION_FAILED,
                  LOG_FIELDS(LOG_FIELD_DEVICE, entry->devices[0]),
                  "Partition %s of %s was not %s, and %s: %s%s", entry->partition, entry->set,
                  describe(entry),
                  is_left ? "Placement can offer its devices, because of [agent] nova"
                          : "its devices stay withheld until their cordons are lifted",
                  entry->error, lines);
}

/* Cordons the devices of a partition that have no cordon, except those whose cordon a person has
 * lifted since the failure of its unit. If a cordon cannot be written, the record keeps the device
 * withheld. If one was written, logs the failure and returns true. */
static bool cordon_entry(PartitionWatch *watch, const TrackerView *host,
                         const PartitionEntry *entry)
{
        const CleanerConfig *config = &watch->config;
        _cleanup_free_ char *text =
                text_format("partition %s of %s was not %s: %s", entry->partition, entry->set,
                            describe(entry), entry->error);
        char cut[CLAIM_TEXT_MAX + 1];
        bool any = false;

        (void)claim_cut_text(text ? text : entry->error, cut);
        for (char **device = entry->devices; *device; device++) {
                Error error = ERROR_NULL;
                int r;

                if (cordon_has_member(config->cordon, *device) ||
                    is_lifted(watch, host, entry, *device))
                        continue;
                r = cordon_set(config->cordon, host->tree, &config->root, *device, cut, WHO, NULL,
                               clock_usec(CLOCK_REALTIME), &error);
                if (r < 0 && r != watch->cordon_error)
                        log_warning("Cannot cordon device %s: %s. It stays withheld.", *device,
                                    error_text(&error, r));
                watch->cordon_error = r;
                if (r < 0)
                        continue;
                claim_service_record(
                        config->service,
                        &(EventNote){ .kind = EVENT_CORDONED, .device = *device, .reason = cut });
                any = true;
        }
        if (!any)
                return false;
        claim_service_set_closed(config->service, cordon_view(config->cordon).host,
                                 cordon_view(config->cordon).devices);
        log_failure(entry, nova_mode_refuses(host->nova, cordon_action(host->tree, &config->root,
                                                                       entry->devices[0])));
        return true;
}

/* Sees to an entry whose unit failed. *ret_lifted is set if a person has lifted the cordons of all
 * its devices since then. Returns true if one of them was cordoned now. */
static bool tend_failure(PartitionWatch *watch, const TrackerView *host,
                         const PartitionEntry *entry, bool *ret_lifted)
{
        bool cordoned = cordon_entry(watch, host, entry), lifted = true;

        for (char **device = entry->devices; *device; device++)
                lifted &= is_lifted(watch, host, entry, *device);
        *ret_lifted |= lifted;
        return cordoned;
}

/* Unfinished work */

/* Returns true if a claim has a partition that is not active for it, and whose activation no failed
 * unit prevents. */
static bool has_inactive_claim(const HostConfig *config, const PartitionRecord *record,
                               const ClaimList *claims)
{
        for (size_t i = 0; i < config->n_shapes; i++) {
                const DeviceSet *set = &config->shapes[i].set;

                for (size_t j = 0; config->shapes[i].activate && j < claims->n_claims; j++) {
                        const DevicePartition *partition = partition_of(set, claims->claims[j]);

                        if (partition && check_partition(set, record, partition,
                                                         claims->claims[j]->id, NULL) == -EBUSY)
                                return true;
                }
        }
        return false;
}

/* Returns true if an entry without an error is about to change: it is not active, or no claim can
 * get its first device. */
static bool has_changing_entry(const HostConfig *config, const PartitionRecord *record,
                               const StringSet *left)
{
        for (size_t i = 0; i < record->n_items; i++) {
                const PartitionEntry *entry = &record->items[i];

                if (find_shapes(config, entry->set) && !entry->error[0] &&
                    (entry->state != PARTITION_ACTIVE ||
                     string_set_contains(left, entry->devices[0])))
                        return true;
        }
        return false;
}

/* The look */

/* Makes one look at a record that was read. Writes a stamp if something is unfinished, or the
 * program has not seen the last one. Returns true in the first case. */
static bool look(PartitionWatch *watch, const TrackerView *host, const PartitionRecord *record,
                 const ClaimList *claims, bool *ret_changed)
{
        _cleanup_(string_set_done) StringSet left = STRING_SET_INIT;
        const PrepareWanted *wanted = &watch->config.service->wanted;
        const HostConfig *config = watch->config.service->settings.driver;
        bool unfinished, lifted = false;
        int r = partition_list_left(config, record, claims, &left);

        for (size_t i = 0; i < record->n_items; i++)
                if (record->items[i].error[0] && find_shapes(config, record->items[i].set))
                        *ret_changed |= tend_failure(watch, host, &record->items[i], &lifted);
        unfinished = lifted || has_inactive_claim(config, record, claims) ||
                     has_changing_entry(config, record, &left);
        /* A run can be killed after it saw the stamp, and an entry can wait for a process. */
        if (unfinished || (wanted->stamp[0] && strcmp(record->wanted, wanted->stamp) != 0))
                write_stamp(watch, lifted);
        if (r == 0 && !string_set_equal(&left, &watch->left)) {
                *ret_changed = true;
                string_set_done(&watch->left);
                watch->left = TAKE_STRUCT(left);
        }
        return unfinished;
}

static bool has_units(const HostConfig *config)
{
        for (size_t i = 0; config && i < config->n_shapes; i++)
                if (config->shapes[i].activate)
                        return true;
        return false;
}

static void arm(PartitionWatch *watch, bool unfinished)
{
        (void)sd_event_source_set_time(watch->timer, clock_usec(CLOCK_MONOTONIC) + TICK_USEC);
        (void)sd_event_source_set_enabled(watch->timer,
                                          unfinished ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

void partition_watch_tend(PartitionWatch *watch)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        _cleanup_(claim_list_done) ClaimList claims = { 0 };
        const TrackerView host = watch->config.look(watch->config.userdata);
        ClaimService *service = watch->config.service;
        bool changed = false, unfinished = false;
        Error error = ERROR_NULL;
        int r;

        if (!has_units(service->settings.driver) || !service->claims || service->is_adopting ||
            !host.tree || !service->wanted.record_path)
                return;
        r = read_record(service, &record, &error);
        if (r == 0)
                r = claims_list(service->claims, CLAIMS_WITH_DEVICES, NULL, &claims, &error);
        if (r == 0)
                unfinished = look(watch, &host, &record, &claims, &changed);
        else if (!watch->logged)
                log_warning("Cannot follow the partitions of devices: %s. Retrying.",
                            error_text(&error, r));
        watch->logged = r != 0;
        arm(watch, unfinished);
        claim_service_note_step(service, MIN(r, 0), &error);
        if (changed)
                claim_service_note_cards(service);
}
