/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Updates the ledger and the tree in three steps, each for all devices. First, find_exchanged() and
 * note_other() find devices whose place another device has. Second, note_all_present() stores each
 * other device that the driver reported, and decides whether its capacity is offered. Third,
 * handle_missing() handles the rest of the ledger. It withholds an expected device in the tree and
 * removes the others from the ledger.
 *
 * A device is in one of these states: offered; blocked, which includes not clean; missing; held,
 * which means back but not offered yet. The member withheld is not a state. It means that Placement
 * can still have reserved = total, so the next release restores the reserved amount. The member
 * since_usec has the time of the last change between missing and back, by the clock of one boot.
 *
 * An update sorts its data once, before it searches them for each provider. Pure; device-watch.c
 * calls this file and stores the ledger. */

#include "agent/tree/device-ledger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/tree/device-blocks.h"
#include "base/array.h"
#include "base/json.h"
#include "base/text.h"
#include "drivers/host/clean.h"
#include "drivers/host/pci-spec.h"
#include "drivers/tree/mdev-plan.h"

/* A device of the ledger at the begin of an update. */
typedef struct NamedDevice {
        const char *name;
        size_t place;
} NamedDevice;

/* The state of one update. */
typedef struct Update {
        DeviceLedger *ledger;
        NamedDevice *by_name; /* devices of the ledger, sorted by name */
        size_t n_by_name;
        DeviceBlocks blocks;
        const ClaimedDevice **exchanged; /* claimed devices whose address another device has */
        size_t n_exchanged;
        const Snapshot *snapshot;
        ProviderTree *tree;
        const Provider *root;
        const DeviceUpdateInput *input;
        void (*change)(const LedgerDevice *device, DeviceChange change, void *userdata);
        void *userdata;
} Update;

static void device_done(LedgerDevice *device)
{
        free(device->name);
        free(device->resource_class);
        string_set_done(&device->traits);
        string_set_done(&device->members);
        *device = (LedgerDevice){ 0 };
}

void device_ledger_done(DeviceLedger *ledger)
{
        for (size_t i = 0; i < ledger->n_devices; i++)
                device_done(&ledger->devices[i]);
        free(ledger->devices);
        vgpu_sizes_done(&ledger->sizes);
        *ledger = DEVICE_LEDGER_INIT;
}

static int add_device(DeviceLedger *ledger, LedgerDevice **ret)
{
        if (array_grow(&ledger->devices, sizeof(LedgerDevice), ledger->n_devices,
                       &ledger->n_allocated) < 0)
                return -ENOMEM;
        *ret = &ledger->devices[ledger->n_devices++];
        **ret = (LedgerDevice){ 0 };
        return 0;
}

/* Compares two states of a device, without the class, the traits, the members and "other". The
 * note_*() functions of these members compare them. */
static bool is_as_before(const LedgerDevice *a, const LedgerDevice *b)
{
        return uuid_equal(&a->provider, &b->provider) && uuid_equal(&a->parent, &b->parent) &&
               uuid_equal(&a->boot, &b->boot) && uuid_equal(&a->config, &b->config) &&
               a->total == b->total && a->reserved == b->reserved && a->missing == b->missing &&
               a->held == b->held && a->withheld == b->withheld && a->since_usec == b->since_usec &&
               a->n_soon == b->n_soon && strcmp(a->identity, b->identity) == 0;
}

/* JSON */

static json_t *device_to_json(const LedgerDevice *device)
{
        return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:s, s:s, s:b, s:b, s:b, s:I, "
                         "s:I, s:s, s:s}",
                         "name", device->name, "provider", device->provider.text, "parent",
                         device->parent.text, "class", device->resource_class, "total",
                         (json_int_t)device->total, "reserved", (json_int_t)device->reserved,
                         "traits", string_set_to_json(&device->traits), "members",
                         string_set_to_json(&device->members), "boot_id", device->boot.text,
                         "config", device->config.text, "missing", device->missing, "withheld",
                         device->withheld, "held", device->held, "since_usec",
                         (json_int_t)device->since_usec, "n_soon", (json_int_t)device->n_soon,
                         "identity", device->identity, "other", device->other);
}

json_t *device_ledger_to_json(const DeviceLedger *ledger)
{
        _cleanup_json_ json_t *devices = json_array();

        for (size_t i = 0; i < ledger->n_devices; i++)
                if (json_array_append_new(devices, device_to_json(&ledger->devices[i])) < 0)
                        return NULL;
        return json_pack("{s:s, s:O, s:o}", "format", DEVICE_LEDGER_FORMAT, "devices", devices,
                         "vgpu_sizes", vgpu_sizes_to_json(&ledger->sizes));
}

/* Reads the members of the hold. Ledgers of older versions lack them. */
static int read_hold(const json_t *object, LedgerDevice *device, Error *reterr)
{
        int r;

        if (!json_object_get(object, "held"))
                return 0;
        if ((r = json_read_bool(object, "held", &device->held, reterr)) < 0 ||
            (r = json_read_u64(object, "since_usec", &device->since_usec, reterr)) < 0 ||
            (r = json_read_u64(object, "n_soon", &device->n_soon, reterr)) < 0)
                return r;
        device->n_soon = MIN(device->n_soon, (uint64_t)DEVICE_DOUBLINGS_MAX);
        return 0;
}

/* Reads an identity. Ledgers of older versions lack it. */
static void read_identity(const json_t *object, const char *key,
                          char ret[static DEVICE_IDENTITY_SIZE])
{
        const char *identity = json_string_value(json_object_get(object, key));

        snprintf(ret, DEVICE_IDENTITY_SIZE, "%s", identity ? identity : "");
        text_sanitize(ret, '?');
}

/* Reads a device and checks it, because a tree with a bad inventory would be refused by
 * Placement. release() limits the reserved amount to the total. */
static int read_device(const json_t *object, LedgerDevice *device, Error *reterr)
{
        const char *name, *parent, *resource_class;
        json_t *traits, *members;
        int r;

        parent = json_string_value(json_object_get(object, "parent"));
        if (parent && parent[0] &&
            (r = json_read_uuid(object, "parent", &device->parent, reterr)) < 0)
                return r;
        if ((r = json_read_string(object, "name", &name, reterr)) < 0 ||
            (r = json_read_uuid(object, "provider", &device->provider, reterr)) < 0 ||
            (r = json_read_string(object, "class", &resource_class, reterr)) < 0 ||
            (r = json_read_u64(object, "total", &device->total, reterr)) < 0 ||
            (r = json_read_u64(object, "reserved", &device->reserved, reterr)) < 0 ||
            (r = json_read_array(object, "traits", &traits, reterr)) < 0 ||
            (r = json_read_array(object, "members", &members, reterr)) < 0 ||
            (r = json_read_uuid(object, "boot_id", &device->boot, reterr)) < 0 ||
            (r = json_read_uuid(object, "config", &device->config, reterr)) < 0 ||
            (r = json_read_bool(object, "missing", &device->missing, reterr)) < 0 ||
            (r = json_read_bool(object, "withheld", &device->withheld, reterr)) < 0 ||
            (r = read_hold(object, device, reterr)) < 0 ||
            (r = string_set_from_json(traits, &device->traits, reterr)) < 0 ||
            (r = string_set_from_json(members, &device->members, reterr)) < 0)
                return r;
        if (!resource_class_valid(resource_class) || device->total == 0 ||
            device->total > INVENTORY_MAX_AMOUNT || device->reserved > INVENTORY_MAX_AMOUNT)
                return error_setf(reterr, EBADMSG, "An inventory is out of range");
        for (size_t i = 0; i < device->traits.n_items; i++)
                if (!resource_class_valid(device->traits.items[i]))
                        return error_setf(reterr, EBADMSG, "\"%.60s\" is not a trait",
                                          device->traits.items[i]);
        read_identity(object, "identity", device->identity);
        read_identity(object, "other", device->other);
        device->name = strdup(name);
        device->resource_class = strdup(resource_class);
        return device->name && device->resource_class ? 0 : error_oom(reterr);
}

/* Checks that each device has a name, and that no two devices have the same name or provider. */
static int check_devices(const DeviceLedger *ledger, Error *reterr)
{
        size_t n = 2 * ledger->n_devices;
        _cleanup_free_ const char **keys = calloc(n + 1, sizeof(char *));

        if (!keys)
                return error_oom(reterr);
        for (size_t i = 0; i < ledger->n_devices; i++) {
                keys[2 * i] = ledger->devices[i].name;
                keys[2 * i + 1] = ledger->devices[i].provider.text;
        }
        qsort(keys, n, sizeof(char *), text_order);
        if (n > 0 && !keys[0][0])
                return error_setf(reterr, EBADMSG, "A device has no name");
        for (size_t i = 1; i < n; i++)
                if (strcmp(keys[i - 1], keys[i]) == 0)
                        return error_setf(reterr, EBADMSG, "%.60s is listed twice", keys[i]);
        return 0;
}

int device_ledger_from_json(const json_t *json, DeviceLedger *ret, Error *reterr)
{
        _cleanup_(device_ledger_done) DeviceLedger ledger = DEVICE_LEDGER_INIT;
        json_t *devices;
        int r = json_read_array(json, "devices", &devices, reterr);

        for (size_t i = 0; r == 0 && i < json_array_size(devices); i++) {
                LedgerDevice *device;

                r = add_device(&ledger, &device) < 0
                            ? error_oom(reterr)
                            : read_device(json_array_get(devices, i), device, reterr);
        }
        if (r == 0)
                r = check_devices(&ledger, reterr);
        /* Ledgers of older versions lack the sizes. */
        if (r == 0 && json_object_get(json, "vgpu_sizes"))
                r = vgpu_sizes_from_json(json_object_get(json, "vgpu_sizes"), &ledger.sizes,
                                         reterr);
        if (r < 0)
                return r;
        *ret = TAKE_STRUCT(ledger);
        return 0;
}

/* Time */

static bool is_of_boot(const LedgerDevice *device, const DeviceUpdateInput *input)
{
        return uuid_equal(&device->boot, &input->boot);
}

/* Returns the time for which a device that came back must stay before it is offered. */
static uint64_t hold_usec(const LedgerDevice *device, const DeviceUpdateInput *input)
{
        return input->hold_usec << device->n_soon;
}

/* Returns the time after which a device that the host does not list is no longer expected. */
static uint64_t gone_usec(const DeviceUpdateInput *input)
{
        return DEVICE_GONE_HOLDS * input->hold_usec;
}

/* Returns the microseconds since the device vanished or came back. A time in the future cannot be
 * from this clock; UINT64_MAX ends every wait for it. */
static uint64_t elapsed_usec(const LedgerDevice *device, const DeviceUpdateInput *input)
{
        if (device->since_usec > input->now_usec)
                return UINT64_MAX; /* the time belongs to another clock: do not wait */
        return input->now_usec - device->since_usec;
}

/* Returns the pause after since_usec that the state of the device needs; 0: none. */
static uint64_t pause_usec(const LedgerDevice *device, const DeviceUpdateInput *input)
{
        if (device->held)
                return hold_usec(device, input);
        return device->missing ? gone_usec(input) : 0;
}

/* A time that has passed is ignored: an update has handled it, and a guest or Placement can keep
 * the device in its state. */
uint64_t device_ledger_due_usec(const DeviceLedger *ledger, const DeviceUpdateInput *input)
{
        uint64_t due = UINT64_MAX;

        for (size_t i = 0; i < ledger->n_devices; i++) {
                const LedgerDevice *device = &ledger->devices[i];
                uint64_t at = device->since_usec + pause_usec(device, input);

                if (is_of_boot(device, input) && at > input->now_usec)
                        due = MIN(due, at);
        }
        return due;
}

/* Devices that are present */

static int order_by_name(const void *a, const void *b)
{
        return strcmp(((const NamedDevice *)a)->name, ((const NamedDevice *)b)->name);
}

/* Sorts the data that the update looks up for each provider. */
static int put_in_order(Update *update)
{
        const DeviceLedger *ledger = update->ledger;

        update->by_name = calloc(ledger->n_devices + 1, sizeof(NamedDevice));
        update->exchanged = calloc(update->input->n_claimed + 1, sizeof(ClaimedDevice *));
        if (!update->by_name || !update->exchanged)
                return -ENOMEM;
        for (size_t i = 0; i < ledger->n_devices; i++)
                update->by_name[update->n_by_name++] = (NamedDevice){ ledger->devices[i].name, i };
        qsort(update->by_name, update->n_by_name, sizeof(NamedDevice), order_by_name);
        return device_blocks_make(&update->blocks, update->input->host, update->snapshot);
}

static void update_done(Update *update)
{
        free(update->by_name);
        free(update->exchanged);
        device_blocks_done(&update->blocks);
}

/* Returns the device of the ledger with that name. Devices that this update added are not found:
 * each provider's name is looked up once. */
static LedgerDevice *find_device(const Update *update, const char *name)
{
        const NamedDevice key = { .name = name };
        bool found;
        size_t place = array_find(update->by_name, sizeof(NamedDevice), update->n_by_name, &key,
                                  order_by_name, &found);

        return found ? &update->ledger->devices[update->by_name[place].place] : NULL;
}

/* Adds the virtual functions of the card with that address. */
static int list_functions(const Update *update, const char *address, StringSet *members)
{
        size_t n;
        const SnapshotDevice *const *functions =
                device_blocks_functions(&update->blocks, address, &n);
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = string_set_add(members, functions[i]->address);
        return r;
}

const SnapshotDevice *device_ledger_find(const Snapshot *snapshot, const char *root,
                                         const char *name)
{
        size_t n = strlen(root);
        char address[PCI_ADDRESS_SIZE];

        if (strncmp(name, root, n) != 0 || name[n] != '_')
                return NULL;
        name += n + 1;
        return pci_address_parse(name, address) < 0 ? snapshot_find_device(snapshot, name)
                                                    : snapshot_find_address(snapshot, address);
}

static const SnapshotDevice *device_of_provider(const Update *update, const char *name)
{
        return device_ledger_find(update->snapshot, update->root->name, name);
}

/* Lists the parts of a device: its address, its virtual functions and its mdevs. */
static int list_members(const Update *update, const SnapshotDevice *device, StringSet *members)
{
        const SnapshotMdev *mdevs;
        size_t n_mdevs;
        int r = device->is_pci ? string_set_add(members, device->address) : 0;

        if (r >= 0 && device->is_pci)
                r = list_functions(update, device->address, members);
        mdevs = snapshot_mdevs_of(update->snapshot, device->name, &n_mdevs);
        for (size_t i = 0; r >= 0 && i < n_mdevs; i++)
                r = string_set_add(members, mdevs[i].uuid.text);
        return r < 0 ? r : 0;
}

/* Returns whether a domain has a part of the device, by any of its definitions. */
static bool is_used(const Update *update, const LedgerDevice *device)
{
        for (size_t i = 0; i < device->members.n_items; i++)
                if (string_set_contains(&update->blocks.taken, device->members.items[i]))
                        return true;
        return false;
}

/* Another device at the same place */

/* Finds the claimed devices whose address now has a device of another identity. */
static void find_exchanged(Update *update)
{
        for (size_t i = 0; i < update->input->n_claimed; i++) {
                const ClaimedDevice *claimed = &update->input->claimed[i];
                const SnapshotDevice *there =
                        snapshot_find_address(update->snapshot, claimed->address);
                char now[DEVICE_IDENTITY_SIZE] = "";

                if (there)
                        snapshot_device_identity(there, now);
                if (device_identity_differs(claimed->identity, now))
                        update->exchanged[update->n_exchanged++] = claimed;
        }
}

/* Returns true if a claim names a part of the device. The caller has checked that this claim does
 * not have another identity, so the claim has the present device. */
static bool is_accepted(const Update *update, const LedgerDevice *device)
{
        for (size_t i = 0; i < update->input->n_claimed; i++)
                if (string_set_contains(&device->members, update->input->claimed[i].address))
                        return true;
        return false;
}

/* Sets device->other if another device is at the place of one that a claim or a domain has. While
 * the claims cannot be read, an earlier finding stays if the device there still shows the identity
 * that was found. */
static void find_other(const Update *update, LedgerDevice *device)
{
        const SnapshotDevice *there = device_of_provider(update, device->name);
        char now[DEVICE_IDENTITY_SIZE] = "", before[DEVICE_IDENTITY_SIZE];
        bool is_other;

        strcpy(before, device->other);
        device->other[0] = '\0';
        if (!there)
                return;
        snapshot_device_identity(there, now);
        is_other = update->input->claims_unknown && now[0] && strcmp(before, now) == 0;
        for (size_t i = 0; !is_other && i < update->n_exchanged; i++)
                is_other = string_set_contains(&device->members, update->exchanged[i]->address);
        if (!is_other)
                is_other = device_identity_differs(device->identity, now) &&
                           !is_accepted(update, device) && is_used(update, device);
        if (is_other)
                strcpy(device->other, now[0] ? now : "unknown");
}

/* Updates device->other, and reports a new one of a missing device. note_lost() reports that of a
 * device that was not missing before. */
static void note_other(Update *update, LedgerDevice *device)
{
        char before[DEVICE_IDENTITY_SIZE];

        strcpy(before, device->other);
        find_other(update, device);
        if (strcmp(before, device->other) == 0)
                return;
        update->ledger->changed = true;
        if (device->other[0] && device->missing)
                update->change(device, DEVICE_CHANGE_MISSING, update->userdata);
}

/* Returns whether Placement is known to have the class that the provider has in the tree. The class
 * of a provider that Placement's tree (base) lacks counts as published: it has no allocations. */
static bool is_published(const Update *update, const Provider *provider)
{
        const ProviderTree *tree = update->input->base;
        const Provider *before = tree ? provider_tree_find(tree, &provider->uuid) : NULL;

        return !update->input->placement_unknown &&
               (!before ||
                provider_find_inventory(before, provider->inventories[0].resource_class));
}

/* Stores the identity of the present device. A serial number that is read later completes it. One
 * that cannot be read now does not replace a known one. The identity of another device replaces the
 * stored one if is_published(). Until then, Placement's allocations are of the former device. */
static void note_identity(const Update *update, const Provider *provider,
                          const SnapshotDevice *there, LedgerDevice *device)
{
        char now[DEVICE_IDENTITY_SIZE];

        snapshot_device_identity(there, now);
        if (device_identity_differs(device->identity, now)
                    ? is_published(update, provider)
                    : device_identity_completes(device->identity, now))
                strcpy(device->identity, now);
}

/* Clears the blocker and the words about cleaning before the update. A device that is missing has
 * neither. */
static void forget_blocker(LedgerDevice *device)
{
        strcpy(device->blocker_before, device->blocker);
        device->blocker[0] = device->unclean[0] = '\0';
}

static void note_blocker(const Update *update, LedgerDevice *device, const SnapshotDevice *there)
{
        const char *key = device->name + strlen(update->root->name) + 1,
                   *blocker = device_blocks_find(&update->blocks, key, there);

        snprintf(device->blocker, sizeof(device->blocker), "%s", blocker ? blocker : "");
}

static int note_class(Update *update, LedgerDevice *device, const char *resource_class)
{
        char *copy;

        if (device->resource_class && strcmp(device->resource_class, resource_class) == 0)
                return 0;
        copy = strdup(resource_class);
        if (!copy)
                return -ENOMEM;
        free(device->resource_class);
        device->resource_class = copy;
        update->ledger->changed = true;
        return 0;
}

static int note_traits(Update *update, LedgerDevice *device, const StringSet *traits)
{
        if (string_set_equal(&device->traits, traits))
                return 0;
        update->ledger->changed = true;
        return string_set_copy(&device->traits, traits);
}

static int note_members(Update *update, LedgerDevice *device, const SnapshotDevice *there)
{
        _cleanup_(string_set_done) StringSet members = STRING_SET_INIT;
        StringSet before = device->members;

        if (list_members(update, there, &members) < 0)
                return -ENOMEM;
        if (string_set_equal(&before, &members))
                return 0;
        update->ledger->changed = true;
        device->members = members;
        members = before;
        return 0;
}

/* Returns whether the driver computes the reserved amount, as for vGPUs, and no other writer. */
static bool is_computed(const Update *update, const LedgerDevice *device,
                        const SnapshotDevice *there)
{
        return strcmp(device->name + strlen(update->root->name) + 1, there->name) == 0;
}

/* Restores the reserved amount from before the withholding, if the record still has the withheld
 * total reserved. The mark device->withheld stays until a present tree of Placement does not have
 * all of it reserved. The total is the former one: a device can come back with another one. */
static void release(const Update *update, LedgerDevice *device, uint64_t total, Inventory *record)
{
        if (device->withheld && record->reserved == MIN(total, record->total))
                record->reserved = MIN(device->reserved, record->total);
        else
                device->withheld = device->withheld && update->input->placement_unknown;
        device->reserved = record->reserved;
}

/* Returns true if the device came back in this boot, and its hold is not over. Starts the hold of a
 * device that was missing until now. A reboot ends the hold. */
static bool is_held(const Update *update, LedgerDevice *device)
{
        const DeviceUpdateInput *input = update->input;

        if (!is_of_boot(device, input)) {
                device->held = false;
                device->since_usec = device->n_soon = 0;
                return false;
        }
        if (device->missing && input->hold_usec > 0) {
                device->held = true;
                device->since_usec = input->now_usec;
        }
        return device->held && elapsed_usec(device, input) < hold_usec(device, input);
}

/* Returns whether the device is not proved to be clean, and notes the words for people once its
 * guest is gone. While the claims cannot be read, a device that must be cleaned counts as not
 * clean if it was withheld before. */
static bool note_unclean(const Update *update, LedgerDevice *device, const SnapshotDevice *there)
{
        const DeviceUpdateInput *input = update->input;
        const UncleanDevice *row =
                input->unclean ? unclean_devices_find(input->unclean, there->address) : NULL;

        if (row && (row->state != UNCLEAN_HELD || row->reason[0]))
                unclean_describe(row, device->unclean);
        return row || (input->claims_unknown && device->withheld && input->host &&
                       host_clean_find(input->host, there));
}

/* Returns whether Nova reserves the device for ever after its first use, and a cleaning ends that.
 */
static bool is_reset_by_cleaning(const Update *update, const SnapshotDevice *there)
{
        const HostConfig *host = update->input->host;

        return host && host_clean_find(host, there) && host_clean_is_one_time(host, there);
}

/* Withholds a present device. The former reserved amount is restored after that. */
static void block(LedgerDevice *device, Inventory *record)
{
        if (!device->withheld)
                device->reserved = record->reserved;
        record->reserved = record->total;
        device->withheld = true;
}

/* Decides whether the capacity of a present device is offered: the hold comes first, then the
 * cleaning, then the block, then the release. */
static void settle(Update *update, LedgerDevice *device, const SnapshotDevice *there,
                   Inventory *record)
{
        bool was_away = device->missing || device->held, unclean;
        uint64_t withheld = device->total;

        device->total = record->total;
        if (is_held(update, device)) {
                block(device, record);
                device->missing = device->listed = false;
                return;
        }
        unclean = note_unclean(update, device, there);
        if (unclean || device->blocker[0]) {
                block(device, record);
                if (unclean && is_reset_by_cleaning(update, there))
                        device->reserved = 0;
        } else if (is_computed(update, device, there)) {
                device->withheld = false;
                device->reserved = 0;
        } else {
                release(update, device, withheld, record);
        }
        device->missing = device->held = device->listed = false;
        if (was_away)
                update->change(device, DEVICE_CHANGE_BACK, update->userdata);
}

/* Returns whether the provider counts mdevs, or device_spec has a function of the PCI device that
 * it counts. A device whose spec was removed is reported only while a guest has it. */
static bool is_configured(const Update *update, const char *name, const SnapshotDevice *there)
{
        const HostConfig *host = update->input->host;
        const Snapshot *snapshot = update->snapshot;

        if (!host || strcmp(name + strlen(update->root->name) + 1, there->name) == 0)
                return true;
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];

                if ((device == there || strcmp(device->physical_function, there->address) == 0) &&
                    pci_specs_find(&host->pci_specs, device))
                        return true;
        }
        return false;
}

/* Stores a present device in the ledger, a new one included. A device with another one at its place
 * is left to handle_missing(). */
static int note_present(Update *update, const Provider *provider, const SnapshotDevice *there)
{
        InventoryRecord *record = &provider->inventories[0];
        LedgerDevice *device = find_device(update, provider->name), before;
        bool is_new = !device;

        if (is_new &&
            (add_device(update->ledger, &device) < 0 || !(device->name = strdup(provider->name))))
                return -ENOMEM;
        if (device->other[0])
                return 0;
        before = *device;
        note_blocker(update, device, there);
        note_identity(update, provider, there, device);
        settle(update, device, there, &record->inventory);
        /* A card can offer several types of vGPUs, which are withheld together. */
        for (size_t i = 1; device->withheld && i < provider->n_inventories; i++)
                provider->inventories[i].inventory.reserved =
                        provider->inventories[i].inventory.total;
        device->provider = provider->uuid;
        device->parent = provider->parent;
        device->boot = update->input->boot;
        if (is_configured(update, provider->name, there))
                device->config = update->input->config;
        /* A device that was removed and added again can have another provider. */
        update->ledger->changed |= !is_as_before(device, &before);
        if (note_class(update, device, record->resource_class) < 0 ||
            note_traits(update, device, &provider->traits) < 0 ||
            note_members(update, device, there) < 0)
                return -ENOMEM;
        if (is_new)
                note_other(update, device);
        return 0;
}

/* Stores the devices of all providers below the root with an inventory. */
static int note_all_present(Update *update)
{
        for (size_t i = 0; i < update->tree->n_providers; i++) {
                const Provider *provider = update->tree->providers[i];
                const SnapshotDevice *device = device_of_provider(update, provider->name);

                if (device && provider->n_inventories > 0 &&
                    provider_tree_in_subtree(update->tree, provider, &update->root->uuid) &&
                    note_present(update, provider, device) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Devices that are missing */

static bool is_present(const Update *update, const LedgerDevice *device,
                       const SnapshotDevice *there)
{
        const Provider *provider = provider_tree_find_name(update->tree, device->name);

        return provider && provider->n_inventories > 0 && !device->other[0] && there;
}

/* Returns true if the types of a listed device without capacity in the tree were read. Then it
 * cannot create a vGPU of a configured type now: a vGPU of another type exists on it, or
 * [mdev_TYPE] max_instances is reached. Or the tree has an older shape, without the provider of the
 * card. Always true for a function that becomes a vGPU without an mdev: only the older shape has a
 * provider for it. False for a provider of PCI devices, or if the types cannot be read. */
static bool is_exhausted(const Update *update, const LedgerDevice *device,
                         const SnapshotDevice *there)
{
        const HostConfig *host = update->input->host;
        const HostMdevType *type = host ? mdev_type_of_device(host, there) : NULL;
        const char *name = device->name + strlen(update->root->name) + 1;

        if (strcmp(name, there->name) != 0)
                return false; /* the provider counts PCI devices */
        return there->is_vgpu_function || snapshot_has_read_vgpus(update->snapshot, there) ||
               (type && snapshot_find_mdev_type(there, type->type));
}

/* Returns true if a device of another identity is at the address. The caller has excluded devices
 * with device->other. So neither a claim nor a domain has the former device, or a claim names the
 * new one. */
static bool is_replaced(const LedgerDevice *device, const SnapshotDevice *there)
{
        char now[DEVICE_IDENTITY_SIZE];

        snapshot_device_identity(there, now);
        return device_identity_differs(device->identity, now);
}

/* Returns true if Placement has an allocation from the device, or might have one that was not read
 * yet. */
static bool is_held_in_placement(const Update *update, const LedgerDevice *device)
{
        const Retained *retained = update->input->retained;

        return retained && retained_use(retained, &device->provider, device->resource_class,
                                        NULL) != RETAINED_USE_NONE;
}

/* Returns true if a device that is not present must stay in the tree, by the rules in the header.
 * The order of the conditions matters. The name of the provider comes first, then another device at
 * the place. For a listed device the configuration comes next, before the uses. For all others the
 * uses come before the configuration, and the configuration before time. */
static bool is_expected(const Update *update, const LedgerDevice *device,
                        const SnapshotDevice *there)
{
        const Provider *provider = provider_tree_find(update->tree, &device->provider);
        const DeviceUpdateInput *input = update->input;
        bool configured = uuid_equal(&device->config, &input->config);
        size_t n = strlen(update->root->name);

        if (strncmp(device->name, update->root->name, n) != 0 || device->name[n] != '_' ||
            (provider && strcmp(provider->name, device->name) != 0))
                return false; /* another host, another provider with its uuid, or another name */
        if (device->other[0])
                return true;
        if (there &&
            (!configured || is_exhausted(update, device, there) || is_replaced(device, there)))
                return false;
        if (is_used(update, device) || is_held_in_placement(update, device))
                return true;
        if (!configured)
                return false;
        if (there || !is_of_boot(device, input))
                return true;
        return input->hold_usec > 0 &&
               (!device->missing || elapsed_usec(device, input) < gone_usec(input));
}

/* Marks a device as missing. A loss soon after a return doubles the next hold. */
static void note_lost(Update *update, LedgerDevice *device)
{
        const DeviceUpdateInput *input = update->input;
        bool soon = device->since_usec > 0 && elapsed_usec(device, input) < DEVICE_SOON_USEC;

        if (!device->held)
                update->change(device, DEVICE_CHANGE_MISSING, update->userdata);
        device->n_soon = soon ? MIN(device->n_soon + 1, (uint64_t)DEVICE_DOUBLINGS_MAX) : 0;
        device->since_usec = input->now_usec;
        device->held = false;
        device->missing = true;
}

/* Returns the inventory that is published for a missing device. If Placement's provider (before)
 * has the inventory, the other fields are from there, so that an operator's ratio survives. */
static Inventory withheld_record(const LedgerDevice *device, const Provider *before)
{
        const Inventory *there =
                before ? provider_find_inventory(before, device->resource_class) : NULL;
        Inventory record = INVENTORY_DEFAULT(device->total);

        record.max_unit = device->total;
        if (there && !inventory_invalid_field(there))
                record = *there;
        record.total = record.reserved = device->total;
        return record;
}

/* Puts the provider of a missing device back in the tree, with all capacity reserved. Traits and
 * aggregates are those of Placement's provider, if there is one, because these can change while the
 * device is missing. */
static int withhold(Update *update, LedgerDevice *device, Error *reterr)
{
        const ProviderTree *tree = update->input->before;
        const Provider *before = tree ? provider_tree_find(tree, &device->provider) : NULL;
        const Inventory record = withheld_record(device, before);
        const Provider *parent = provider_tree_find(update->tree, &device->parent);
        Provider *provider = provider_tree_find_name(update->tree, device->name);
        int r = 0;

        if (!parent || !provider_tree_in_subtree(update->tree, parent, &update->root->uuid))
                parent = update->root;
        if (!provider)
                r = provider_tree_add(update->tree, &device->provider, device->name, &parent->uuid,
                                      &provider, reterr);
        if (r < 0)
                return r == -EEXIST ? -EINVAL : r;
        provider_clear_inventories(provider);
        if (provider_set_inventory(provider, device->resource_class, &record) < 0 ||
            string_set_copy(&provider->traits, before ? &before->traits : &device->traits) < 0 ||
            (before && string_set_copy(&provider->aggregates, &before->aggregates) < 0))
                return error_oom(reterr);
        if (!device->missing)
                note_lost(update, device);
        device->withheld = true;
        return 0;
}

/* Removes devices from the ledger that are not expected, and withholds the expected ones. After an
 * error the loop continues without withholding, so that the array stays valid. */
static int handle_missing(Update *update, Error *reterr)
{
        DeviceLedger *ledger = update->ledger;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < ledger->n_devices; i++) {
                LedgerDevice *device = &ledger->devices[i];
                const LedgerDevice before = *device;
                const SnapshotDevice *there = device_of_provider(update, device->name);
                bool present = is_present(update, device, there);

                device->listed = !present && there;
                if (!present && !is_expected(update, device, there)) {
                        if (device->missing)
                                update->change(device, DEVICE_CHANGE_FORGOTTEN, update->userdata);
                        device_done(device);
                        ledger->changed = true;
                        continue;
                }
                if (!present && r == 0)
                        r = withhold(update, device, reterr);
                ledger->changed |= !is_as_before(device, &before);
                if (n != i) {
                        ledger->devices[n] = *device;
                        *device = (LedgerDevice){ 0 };
                }
                n++;
        }
        ledger->n_devices = n;
        return r;
}

int device_ledger_update(DeviceLedger *ledger, const Snapshot *snapshot, ProviderTree *tree,
                         const Uuid *root, const DeviceUpdateInput *input,
                         void (*change)(const LedgerDevice *device, DeviceChange change,
                                        void *userdata),
                         void *userdata, Error *reterr)
{
        _cleanup_(update_done) Update update = {
                .ledger = ledger,
                .snapshot = snapshot,
                .tree = tree,
                .root = provider_tree_find(tree, root),
                .input = input,
                .change = change,
                .userdata = userdata,
        };

        if (!update.root)
                return error_setf(reterr, EINVAL, "The tree has no root provider %s", root->text);
        if (put_in_order(&update) < 0)
                return error_oom(reterr);
        find_exchanged(&update);
        for (size_t i = 0; i < ledger->n_devices; i++) {
                note_other(&update, &ledger->devices[i]);
                forget_blocker(&ledger->devices[i]);
        }
        if (note_all_present(&update) < 0)
                return error_oom(reterr);
        return handle_missing(&update, reterr);
}
