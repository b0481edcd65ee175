/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Runs the device ledger: the list of the devices that this host is expected to have, over reboots.
 * The ledger says which devices are missing or blocked, and its code is pure (device-ledger.h).
 * This file passes clock, boot id, configuration and claims to it, stores it in a file, and logs
 * its changes. It also keeps the facts about devices for the driver. The tree maker calls it for
 * each tree.
 *
 * The file is written after an update that changed the ledger, before the tree is published. A
 * crash therefore loses no device that Placement has, unless the write failed. A failed write is
 * logged, stops nothing, and is repeated after the next update. Until the first tree that was made
 * from Placement's, and for an unknown tree without base, an update is a preview: it runs on a copy
 * of the ledger and is not stored or logged. Later the ledger follows the host also while
 * Placement's tree is not known, so that an outage hides no device that is lost or comes back. */

#include "agent/tree/device-watch.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>

#include "agent/state/state-file.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"
#include "drivers/host/clean.h"

DeviceWatch *device_watch_free(DeviceWatch *watch)
{
        if (!watch)
                return NULL;
        device_ledger_done(&watch->ledger);
        device_facts_done(&watch->facts);
        free(watch->state_file);
        free(watch->missing);
        free(watch);
        return NULL;
}

/* Makes a fingerprint of these options, which decide which devices are reported: mdev types with
 * their classes and devices, [pci] device_spec and report_in_placement. A change of it means that
 * the operator changed them. */
static int make_fingerprint(const HostConfig *config, char *const device_specs[], Uuid *ret)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);
        const Uuid null = uuid_from_bytes(SD_ID128_NULL.bytes);

        if (!file)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_mdev_types; i++) {
                const HostMdevType *type = &config->mdev_types[i];

                fprintf(file, "%s %s\n", type->type, type->mdev_class);
                for (char **a = type->device_addresses; a && *a; a++)
                        fprintf(file, " %s\n", *a);
        }
        for (char *const *spec = device_specs; spec && *spec; spec++)
                fprintf(file, "%s\n", *spec);
        fprintf(file, "%d\n", config->report_in_placement);
        if (fclose(file) != 0)
                return -ENOMEM;
        *ret = uuid_make_child(&null, text);
        return 0;
}

static Uuid get_boot_id(void)
{
        sd_id128_t boot = SD_ID128_NULL;

        (void)sd_id128_get_boot(&boot);
        return uuid_from_bytes(boot.bytes);
}

static int read_ledger(const json_t *json, void *userdata, Error *reterr)
{
        return device_ledger_from_json(json, userdata, reterr);
}

/* Loads the ledger (device_watch_new()). */
static int load(DeviceWatch *watch, Error *reterr)
{
        Error error = ERROR_NULL;
        int r = state_file_load(watch->state_file, DEVICE_LEDGER_FORMAT, watch->read_only,
                                read_ledger, &watch->ledger, &error);

        if (r < 0 && r != -EBADMSG)
                return error_setf(reterr, r, "%s", error_text(&error, r));
        if (r < 0)
                log_warning("Starting a new list of expected devices: %s", error.text);
        watch->saved = r > 0;
        return 0;
}

int device_watch_new(DeviceWatch **ret, const char *state_dir, const HostConfig *config,
                     char *const device_specs[], uint64_t hold_usec, bool read_only, Error *reterr)
{
        _cleanup_(device_watch_freep) DeviceWatch *watch = calloc(1, sizeof(DeviceWatch));
        int r;

        if (!watch || make_fingerprint(config, device_specs, &watch->input.config) < 0)
                return error_oom(reterr);
        watch->state_file = text_format("%s/devices.json", state_dir);
        if (!watch->state_file)
                return error_oom(reterr);
        watch->read_only = read_only;
        watch->input.hold_usec = hold_usec;
        watch->input.host = config;
        watch->input.boot = get_boot_id();
        r = load(watch, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

/* Writes the ledger if it changed, or if the file was neither loaded nor written before. Does
 * nothing if read_only. A failed write is repeated after the next update. The same error is logged
 * once, and a lack of memory for the JSON is not. */
static void save(DeviceWatch *watch)
{
        _cleanup_json_ json_t *json = NULL;
        Error error;
        int r;

        if (watch->read_only || (watch->saved && !watch->ledger.changed))
                return;
        json = device_ledger_to_json(&watch->ledger);
        if (!json)
                return;
        r = state_file_write(watch->state_file, json, &error);
        if (r < 0 && r != watch->write_error)
                log_warning("Cannot store the list of expected devices: %s. Retrying.", error.text);
        watch->write_error = MIN(r, 0);
        if (r < 0)
                return;
        watch->saved = true;
        watch->ledger.changed = false;
}

/* Lists the devices of claims in input. If they cannot be read, the devices of domains and the
 * stored findings still count. */
static void list_claimed(Claims *claims, ClaimedDevices *claimed, DeviceUpdateInput *input)
{
        Error error;
        int r = claims ? claims_list_identities(claims, claimed, &error) : 0;

        if (r < 0)
                log_debug("Cannot read the devices of claims: %s", error.text);
        input->claims_unknown = !claims || r < 0;
        input->claimed = claimed->items;
        input->n_claimed = claimed->n_items;
}

/* Removes the devices of claims that are not written to Placement yet. Placement refuses the write
 * while all of the device is reserved, for example for a guest that starts again. */
static void leave_out_unwritten(Claims *claims, UncleanDevices *unclean)
{
        size_t n = 0;

        for (size_t i = 0; i < unclean->n_items; i++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                const UncleanDevice *row = &unclean->items[i];
                bool unwritten = row->state == UNCLEAN_HELD && row->claim != 0 &&
                                 claims_get(claims, row->claim, &claim, NULL) == 0 &&
                                 claim->write_state != CLAIM_WRITE_NONE &&
                                 claim->write_state != CLAIM_WRITE_WRITTEN;

                if (!unwritten)
                        unclean->items[n++] = *row;
        }
        unclean->n_items = n;
}

/* Lists the devices that are not proved to be clean and must be reserved. If they cannot be read,
 * the claims count as unknown. */
static void list_unclean(Claims *claims, UncleanDevices *unclean, DeviceUpdateInput *input)
{
        Error error;
        int r = claims ? claims_list_unclean(claims, unclean, &error) : 0;

        if (r == 0 && claims)
                leave_out_unwritten(claims, unclean);
        if (r < 0)
                log_debug("Cannot read the unclean devices: %s", error.text);
        input->claims_unknown |= r < 0;
        input->unclean = unclean;
}

static DeviceUpdateInput now(const DeviceWatch *watch)
{
        DeviceUpdateInput input = watch->input;

        input.now_usec = clock_usec(CLOCK_BOOTTIME);
        return input;
}

/* Logs that a device is missing, is back, or is not expected any more. A missing device with
 * another one at its place has a message of its own. */
static void on_device_change(const LedgerDevice *device, DeviceChange change, void *userdata)
{
        const char *const *fields = LOG_FIELDS(LOG_FIELD_DEVICE, device->name, LOG_FIELD_PROVIDER,
                                               device->provider.text);

        if (device->other[0] && change == DEVICE_CHANGE_MISSING) {
                log_event(
                        LOG_WARNING, MESSAGE_DEVICE_EXCHANGED, fields,
                        "Another device (%s) is at the address of %s (%s). "
                        "Its %llu %s are withheld, because a claim or a guest has the former device.",
                        device->other, device->name, device->identity,
                        (unsigned long long)device->total, device->resource_class);
                return;
        }
        switch (change) {
        case DEVICE_CHANGE_MISSING:
                log_event(LOG_WARNING, MESSAGE_DEVICE_MISSING, fields,
                          "Device %s is missing%s. Its %llu %s are withheld until it is back.",
                          device->name,
                          device->listed ? ": the host lists it without capacity" : "",
                          (unsigned long long)device->total, device->resource_class);
                break;
        case DEVICE_CHANGE_BACK:
                log_event(LOG_NOTICE, MESSAGE_DEVICE_BACK, fields, "Device %s is back.",
                          device->name);
                break;
        case DEVICE_CHANGE_FORGOTTEN:
                log_event(LOG_NOTICE, MESSAGE_DEVICE_FORGOTTEN, fields,
                          "Device %s is still missing and not in use. It is no longer expected.",
                          device->name);
        }
}

/* Returns a guest that has this address or mdev by any definition; NULL: there is none. */
static const SnapshotDomain *find_guest(const Snapshot *snapshot, const char *thing)
{
        for (size_t i = 0; i < snapshot->n_domains; i++)
                if (snapshot_domain_has(&snapshot->domains[i], thing, true))
                        return &snapshot->domains[i];
        return NULL;
}

/* Logs the devices that the last update has blocked, and those that it has unblocked and that are
 * neither missing nor held. A change of the blocker alone is not logged. A device is blocked while
 * a guest uses its card in another way than the provider counts it (device-blocks.h). */
static void log_blocked(const DeviceLedger *ledger, const Snapshot *snapshot)
{
        for (size_t i = 0; i < ledger->n_devices; i++) {
                const LedgerDevice *device = &ledger->devices[i];
                const SnapshotDomain *guest;
                const char *const *fields = LOG_FIELDS(LOG_FIELD_DEVICE, device->name,
                                                       LOG_FIELD_PROVIDER, device->provider.text);

                if (!device->blocker[0] == !device->blocker_before[0])
                        continue;
                guest = find_guest(snapshot, device->blocker);
                if (device->blocker[0])
                        log_event(
                                LOG_NOTICE, MESSAGE_DEVICE_BLOCKED, fields,
                                "Device %s is blocked: guest %s has %s. Its %llu %s are withheld.",
                                device->name, guest ? guest->name : "?", device->blocker,
                                (unsigned long long)device->total, device->resource_class);
                else if (!device->missing && !device->held)
                        log_event(LOG_NOTICE, MESSAGE_DEVICE_UNBLOCKED, fields,
                                  "Device %s is not blocked any more; its capacity can be used.",
                                  device->name);
        }
}

/* Counts the missing devices of ledger, without those that are back and held, and stores the name
 * of the first one. */
static int note_missing(DeviceWatch *watch, const DeviceLedger *ledger, Error *reterr)
{
        const char *first = "";
        char *name;
        size_t n = 0;

        for (size_t i = 0; i < ledger->n_devices; i++)
                if (ledger->devices[i].missing && n++ == 0)
                        first = ledger->devices[i].name;
        name = strdup(first);
        if (!name)
                return error_oom(reterr);
        watch->n_missing = n;
        free(watch->missing);
        watch->missing = name;
        return 0;
}

static void ignore_device_change(const LedgerDevice *device, DeviceChange change, void *userdata)
{
}

/* Updates a copy of the ledger, for a preview. The copy goes through JSON, which needs no other
 * code. */
static int apply_to_copy(DeviceWatch *watch, const RetainedTrees *trees,
                         const DeviceUpdateInput *input, ProviderTree *tree, Error *reterr)
{
        _cleanup_json_ json_t *json = device_ledger_to_json(&watch->ledger);
        _cleanup_(device_ledger_done) DeviceLedger copy = DEVICE_LEDGER_INIT;
        int r;

        if (!json)
                return error_oom(reterr);
        r = device_ledger_from_json(json, &copy, reterr);
        if (r == 0)
                r = device_ledger_update(&copy, trees->snapshot, tree, trees->root, input,
                                         ignore_device_change, NULL, reterr);
        return r < 0 ? r : note_missing(watch, &copy, reterr);
}

/* Returns whether a listed claim or a domain has a part of the device. */
static bool is_used(const LedgerDevice *device, const DeviceUpdateInput *input,
                    const Snapshot *snapshot)
{
        for (size_t i = 0; i < input->n_claimed; i++)
                if (string_set_contains(&device->members, input->claimed[i].address))
                        return true;
        for (size_t i = 0; i < device->members.n_items; i++)
                if (find_guest(snapshot, device->members.items[i]))
                        return true;
        return false;
}

/* Sets the mark LedgerDevice.cleanable of each device, and watch->awaits_end. */
static void mark_cleanable(DeviceWatch *watch, const DeviceUpdateInput *input,
                           const RetainedTrees *trees, const ProviderTree *tree)
{
        DeviceLedger *ledger = &watch->ledger;

        watch->awaits_end = false;
        for (size_t i = 0; i < ledger->n_devices; i++) {
                LedgerDevice *device = &ledger->devices[i];
                const Provider *provider = provider_tree_find(tree, &device->provider);
                const SnapshotDevice *there = device_ledger_find(
                        trees->snapshot, trees->snapshot->nodename, device->name);

                device->cleanable = there && host_clean_find(input->host, there) && provider &&
                                    !provider_offers(provider, device->resource_class) &&
                                    !is_used(device, input, trees->snapshot);
                watch->awaits_end |=
                        device->cleanable && input->retained &&
                        retained_use(input->retained, &device->provider, device->resource_class,
                                     NULL) == RETAINED_USE_HELD;
        }
}

int device_watch_apply(DeviceWatch *watch, Claims *claims, const RetainedTrees *trees,
                       const Retained *retained, ProviderTree *tree, Error *reterr)
{
        _cleanup_(claimed_devices_done) ClaimedDevices claimed = { 0 };
        _cleanup_(unclean_devices_done) UncleanDevices unclean = { 0 };
        DeviceUpdateInput input = now(watch);
        bool is_preview = !trees->known && !(watch->is_begun && trees->base);
        int r;

        /* A preview is not published, and forgets no device, so the use in Placement does not
         * matter. */
        input.retained = is_preview ? NULL : retained;
        input.placement_unknown = !trees->known;
        input.before = trees->before;
        input.base = trees->base;
        list_claimed(claims, &claimed, &input);
        list_unclean(claims, &unclean, &input);
        if (is_preview)
                return apply_to_copy(watch, trees, &input, tree, reterr);
        watch->is_begun = true;
        watch->looked_usec = input.now_usec;
        r = device_ledger_update(&watch->ledger, trees->snapshot, tree, trees->root, &input,
                                 on_device_change, watch, reterr);
        if (r == 0)
                r = note_missing(watch, &watch->ledger, reterr);
        if (r == 0) {
                mark_cleanable(watch, &input, trees, tree);
                log_blocked(&watch->ledger, trees->snapshot);
                save(watch);
        }
        return r;
}

static bool has_vgpu_functions(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot->devices[i].is_vgpu_function)
                        return true;
        return false;
}

/* Adds the PCI devices of a claim. */
static int add_holdings(const Claim *claim, DeviceFacts *ret)
{
        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                if (uuid_empty(&device->mdev) && device->address[0] &&
                    device_facts_add_holding(ret, device->address, device->mdev_type) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Lists the PCI devices of living claims. If the claims cannot be read, the last list stays. */
static int list_holdings(DeviceWatch *watch, Claims *claims)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        Error error;
        int r = claims ? claims_list(claims, CLAIMS_WITH_DEVICES, NULL, &list, &error) : 0;

        if (r < 0)
                log_debug("Cannot read the devices of claims: %s", error.text);
        if (!claims || r < 0)
                return 0;
        device_facts_clear_holdings(&watch->facts);
        for (size_t i = 0; i < list.n_claims; i++)
                if (add_holdings(list.claims[i], &watch->facts) < 0)
                        return -ENOMEM;
        return 0;
}

/* Lists the members of sets that are cordoned alone, and the addresses in left: devices of sets
 * that no claim can get (tree-maker.h). */
static int list_withheld(DeviceWatch *watch, const Cordon *cordon, const StringSet *left)
{
        const HostConfig *host = watch->input.host;
        const char *address;

        if (string_set_copy(&watch->facts.withheld, left ? left : &STRING_SET_INIT) < 0)
                return -ENOMEM;
        for (size_t i = 0; cordon && i < host->n_shapes; i++)
                for (size_t j = 0; (address = device_set_device(&host->shapes[i].set, j)); j++)
                        if (cordon_has_member(cordon, address) &&
                            string_set_add(&watch->facts.withheld, address) < 0)
                                return -ENOMEM;
        return 0;
}

/* Lists the providers at whose place another device is than the ledger has. */
static int list_exchanged(DeviceWatch *watch, const Snapshot *snapshot)
{
        string_set_done(&watch->facts.exchanged);
        for (size_t i = 0; i < watch->ledger.n_devices; i++) {
                const LedgerDevice *device = &watch->ledger.devices[i];
                const SnapshotDevice *there =
                        device_ledger_find(snapshot, snapshot->nodename, device->name);
                char now[DEVICE_IDENTITY_SIZE] = "";

                if (there)
                        snapshot_device_identity(there, now);
                if (device_identity_differs(device->identity, now) &&
                    string_set_add(&watch->facts.exchanged, device->name) < 0)
                        return -ENOMEM;
        }
        return 0;
}

const DeviceFacts *device_watch_note_facts(DeviceWatch *watch, Claims *claims, const Cordon *cordon,
                                           const StringSet *left, const Snapshot *snapshot)
{
        bool changed;
        int r;

        if (list_exchanged(watch, snapshot) < 0)
                return NULL;
        if (!has_vgpu_functions(snapshot) && watch->input.host->n_shapes == 0)
                return &watch->facts;
        r = vgpu_sizes_note(&watch->ledger.sizes, snapshot, &changed);
        watch->ledger.changed |= changed; /* also if only some sizes were added */
        return r < 0 || vgpu_sizes_copy(&watch->facts.sizes, &watch->ledger.sizes) < 0 ||
                               list_holdings(watch, claims) < 0 ||
                               list_withheld(watch, cordon, left) < 0
                       ? NULL
                       : &watch->facts;
}

/* Calls device_ledger_due_usec() with the time of the last update or call, because this function
 * skips times that have passed. So a time that came due since then gives 0, once. */
uint64_t device_watch_due_in_usec(DeviceWatch *watch)
{
        DeviceUpdateInput input = now(watch);
        uint64_t now_usec = input.now_usec, due;

        input.now_usec = watch->looked_usec;
        due = device_ledger_due_usec(&watch->ledger, &input);
        watch->looked_usec = now_usec;
        return due == UINT64_MAX ? due : due - MIN(due, now_usec);
}
