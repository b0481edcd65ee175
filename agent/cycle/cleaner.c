/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looks at the devices that must be cleaned after their guests, at each call of cleaner_tend().
 * First, a device of a claim or a guest that has a section [device_clean NAME] but no row gets one:
 * its section is new, or the guest came while the agent was down. So does a device that Nova
 * reserved after one_time_use. Then, for each row that was there before, the facts are collected
 * and its step is made. An error ends the look, and the next one starts from the beginning.
 *
 * Order of the writes: a device is cordoned before its row says "failed", and a row is deleted
 * before the tree offers the device. A crash in between repeats the step: the program's result
 * stays in /run. After a reboot there is no result, and the units of a dirty device run again. A
 * claim can come between the facts and the write of a step. A write that changes or deletes the row
 * then changes nothing. A write that replaces the row (hold(), and begin() after a failure)
 * succeeds. In both cases the next look decides.
 *
 * LIMITATIONS: a guest that came and went while the agent was down leaves no trace, unless Nova has
 * reserved its device.
 *
 * Tests: tests/integration/claims/test_clean.py */

#include "agent/cycle/cleaner.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/cycle/clean-step.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/read-file.h"
#include "base/text.h"
#include "drivers/host/clean.h"
#include "formats/format-names.h"

#define TICK_USEC  (100 * USEC_PER_MSEC) /* interval of the looks while a device is dirty */
#define STAMP_USEC (3 * USEC_PER_SEC)    /* interval of stamps while a dirty device needs a run */
#define AGAIN_USEC (15 * USEC_PER_SEC)   /* the same while all units run, or wait for this long */
#define RECORD_MAX ((size_t)4 << 20)     /* bytes; a larger record counts as none */
#define WHO        "compute-agent"       /* author of the cordons */

struct Cleaner {
        CleanerConfig config;
        PrepareWanted wanted;
        sd_event_source *timer;
        uint64_t stamp_usec;   /* CLOCK_MONOTONIC of the last stamp */
        json_t *record;        /* CLEANED_FORMAT; NULL: none */
        int cordon_error;      /* result of the last cordon; a repeated error is logged once */
        bool logged_no_claims; /* a failure of the last look was logged */
};

Cleaner *cleaner_free(Cleaner *cleaner)
{
        if (!cleaner)
                return NULL;
        sd_event_source_disable_unref(cleaner->timer);
        prepare_wanted_done(&cleaner->wanted);
        json_decref(cleaner->record);
        free(cleaner);
        return NULL;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        cleaner_tend(userdata);
        return 0;
}

int cleaner_new(Cleaner **ret, const CleanerConfig *config)
{
        _cleanup_(cleaner_freep) Cleaner *cleaner = calloc(1, sizeof(Cleaner));
        int r;

        if (!cleaner)
                return -ENOMEM;
        cleaner->config = *config;
        r = prepare_wanted_init(&cleaner->wanted, config->runtime, "clean", "cleaned");
        if (r == 0)
                r = sd_event_add_time(config->event, &cleaner->timer, CLOCK_MONOTONIC, 0, 0,
                                      on_tick, cleaner);
        if (r >= 0)
                r = sd_event_source_set_enabled(cleaner->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(cleaner);
        return 0;
}

/* The record */

static void read_record(Cleaner *cleaner)
{
        _cleanup_free_ char *text = NULL;
        json_t *record = NULL;
        const char *format;
        size_t n;

        if (cleaner->wanted.record_path &&
            read_file_text(cleaner->wanted.record_path, RECORD_MAX, &text, &n, NULL) == 0 &&
            json_parse(text, n, &record, NULL) == 0 &&
            (json_read_string(record, "format", &format, NULL) < 0 ||
             strcmp(format, CLEANED_FORMAT) != 0)) {
                json_decref(record);
                record = NULL;
        }
        json_decref(cleaner->record);
        cleaner->record = record;
}

/* Returns the result for a row, borrowed, or NULL. The time tells rows of different databases
 * apart. */
static const json_t *find_result(const Cleaner *cleaner, const UncleanDevice *row)
{
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(cleaner->record, "devices"), i, item) {
                const char *address;
                int64_t id;
                uint64_t since;

                if (json_read_i64(item, "row", &id, NULL) == 0 && id == row->id &&
                    json_read_u64(item, "since", &since, NULL) == 0 && since == row->since_usec &&
                    json_read_string(item, "address", &address, NULL) == 0 &&
                    strcmp(address, row->address) == 0)
                        return item;
        }
        return NULL;
}

/* Returns whether the row has a result with this state. */
static bool has_result(const Cleaner *cleaner, const UncleanDevice *row, const char *state)
{
        const char *text = json_string_value(json_object_get(find_result(cleaner, row), "state"));

        return text && strcmp(text, state) == 0;
}

/* Returns true if a dirty device has this state for more than AGAIN_USEC. A shorter wait of its
 * units is not reported, and stamps are written often. */
static bool is_late(const UncleanDevice *row)
{
        return clock_usec(CLOCK_REALTIME) > row->since_usec + AGAIN_USEC;
}

/* Returns why the units of a dirty device wait for long, borrowed, or NULL. */
static const char *find_late(const Cleaner *cleaner, const UncleanDevice *row)
{
        const char *text = json_string_value(json_object_get(find_result(cleaner, row), "reason"));

        return text && text[0] && is_late(row) && has_result(cleaner, row, "waiting") ? text : NULL;
}

/* Writes a stamp, unless the last one is younger than age_usec, or the service has no folder in
 * /run. */
static void tend_stamp(Cleaner *cleaner, uint64_t age_usec)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        if (!cleaner->wanted.path || now < cleaner->stamp_usec + age_usec)
                return;
        cleaner->stamp_usec = now;
        prepare_wanted_write(&cleaner->wanted, false);
}

/* Facts */

static const HostConfig *get_settings(const Cleaner *cleaner)
{
        return cleaner->config.service->settings.driver;
}

/* Returns the device at an address. */
static const SnapshotDevice *find_device(const Snapshot *snapshot, const char *address)
{
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (strcmp(snapshot->devices[i].address, address) == 0)
                        return &snapshot->devices[i];
        return NULL;
}

/* Returns the expected device of a provider that counts this address, or NULL. */
static const LedgerDevice *find_expected(const TrackerView *host, const char *address)
{
        for (size_t i = 0; host->devices && i < host->devices->n_devices; i++)
                if (string_set_contains(&host->devices->devices[i].members, address))
                        return &host->devices->devices[i];
        return NULL;
}

static bool is_in_domain(const Snapshot *snapshot, const char *address)
{
        for (size_t i = 0; i < snapshot->n_domains; i++)
                if (snapshot_domain_has(&snapshot->domains[i], address, true))
                        return true;
        return false;
}

/* Returns the uuid of the domain that has the device, by any definition. UUID_NULL if there is
 * none, or more than one. */
static Uuid find_only_domain(const Snapshot *snapshot, const char *address)
{
        Uuid found = UUID_NULL;

        for (size_t i = 0; i < snapshot->n_domains; i++) {
                if (!snapshot_domain_has(&snapshot->domains[i], address, true))
                        continue;
                if (!uuid_empty(&found))
                        return UUID_NULL;
                found = snapshot->domains[i].uuid;
        }
        return found;
}

static bool has_unread_guest(const Snapshot *snapshot)
{
        for (size_t i = 0; i < snapshot->n_domains; i++)
                if (snapshot->domains[i].unread)
                        return true;
        return false;
}

/* Yields the id of the living claim of an address, 0 without one. */
static int find_claim(Claims *claims, const char *address, int64_t *ret, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = claims_list(claims, CLAIMS_OF_DEVICE, address, &list, reterr);

        if (r == 0)
                *ret = list.n_claims > 0 ? list.claims[0]->id : 0;
        return r;
}

static CordonState get_cordon(const Cleaner *cleaner, const TrackerView *host,
                              const UncleanDevice *row)
{
        return cordon_get_state(cleaner->config.cordon, host->tree, &cleaner->config.root,
                                row->address);
}

/* Returns why Placement can give an expected device to a server, has done so, or was not read;
 * NULL: none of these. Otherwise a server could start while a unit works on the device. The
 * allocation of its last consumer does not count, because it can outlive the claim. The mirror is
 * the evidence: it shows a reservation after the answer to its write, which Placement refuses if
 * the provider changed since it was read. A retired host has no provider in Placement, unless
 * [agent] nova leaves the tree to nova-compute. text: memory for the reason. */
static const char *find_wait(const Cleaner *cleaner, const TrackerView *host,
                             const UncleanDevice *row, const LedgerDevice *expected,
                             char text[static UNCLEAN_REASON_SIZE])
{
        const char *why = nova_mode_refuses(host->nova, NOVA_ACTION_RESERVE);
        char holders[RETAINED_HOLDERS_MAX];
        const Provider *provider;

        if (!host->retained || (cordon_view(cleaner->config.cordon).is_retired &&
                                !nova_mode_refuses(host->nova, NOVA_ACTION_PUBLISH)))
                return NULL; /* without Placement */
        if (why || !host->mirror)
                return why ? why : "Placement was not read yet";
        provider = provider_tree_find(host->mirror, &expected->provider);
        if (!provider)
                return NULL;
        if (provider_offers(provider, expected->resource_class))
                return "Placement still offers it";
        switch (retained_use(host->retained, &provider->uuid, expected->resource_class,
                             &row->consumer)) {
        case RETAINED_USE_NONE:
                return NULL;
        case RETAINED_USE_UNKNOWN:
                return "its allocations in Placement were not read yet";
        case RETAINED_USE_HELD:
                retained_describe_holders(host->retained, host->snapshot, &provider->uuid,
                                          expected->resource_class, holders);
                snprintf(text, UNCLEAN_REASON_SIZE, "Placement has %s", holders);
        }
        return text;
}

/* Collects the facts about a row. wait: memory for ret->wait. Returns a negative errno of the claim
 * database. */
static int collect_facts(Cleaner *cleaner, const TrackerView *host, const UncleanDevice *row,
                         char wait[static UNCLEAN_REASON_SIZE], CleanFacts *ret, Error *reterr)
{
        const SnapshotDevice *there = find_device(host->snapshot, row->address);
        const LedgerDevice *expected = find_expected(host, row->address);
        const CordonState cordon = get_cordon(cleaner, host, row);
        char now[DEVICE_IDENTITY_SIZE] = "";
        int64_t claim = 0;
        int r = find_claim(cleaner->config.service->claims, row->address, &claim, reterr);

        if (r < 0)
                return r;
        if (there)
                snapshot_device_identity(there, now);
        *ret = (CleanFacts){
                .is_claimed = claim != 0,
                .in_domain = is_in_domain(host->snapshot, row->address),
                .guest_unread = has_unread_guest(host->snapshot),
                .poll_is_later = snapshot_begun_realtime_usec(host->snapshot) > row->since_usec,
                .is_listed = there && expected && host->tree &&
                             provider_tree_find(host->tree, &expected->provider),
                .is_other = there && device_identity_differs(row->identity, now),
                .is_configured = there && host_clean_find(get_settings(cleaner), there),
                .is_cordoned = cordon.cordoned && !cordon.rule.name[0],
                .is_lifted = cordon.lifted_usec > row->since_usec,
                .is_proved = has_result(cleaner, row, "clean"),
                .has_failed = has_result(cleaner, row, "failed"),
                .wait = row->state == UNCLEAN_DIRTY ? find_late(cleaner, row)
                        : expected                  ? find_wait(cleaner, host, row, expected, wait)
                                                    : NULL,
        };
        return 0;
}

/* Steps */

/* Writes the reason of a failure: one of the decision, or that of the result. */
static void describe_reason(const json_t *result, const char *reason,
                            char ret[static CLAIM_TEXT_MAX + 1])
{
        const char *text = reason ? reason : json_string_value(json_object_get(result, "reason"));

        (void)claim_cut_text(text && text[0] ? text : "there is no proof", ret);
        text_sanitize(ret, '?');
}

/* Returns the last lines of the unit that failed, "" if there are none. The caller frees it. NULL:
 * memory is short. */
static char *describe_lines(const json_t *result)
{
        char *text = NULL;
        size_t size, i;
        const json_t *line;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        json_array_foreach(json_object_get(result, "lines"), i, line)
                fprintf(file, "%s%s", i == 0 ? ". The unit's last lines: " : " | ",
                        json_string_value(line) ? json_string_value(line) : "");
        if (!text_close(file, &text))
                return NULL;
        text_sanitize(text, '?');
        return text;
}

/* Cordons the device, records this in the history, and passes the cordons to the claims. A cordon
 * of a health rule becomes one that only a person ends. Returns false if the cordon cannot be
 * written, which is logged once for the same error in a row: the device's row keeps it withheld. */
static bool cordon_device(Cleaner *cleaner, const TrackerView *host, const UncleanDevice *row,
                          const char *reason)
{
        const CleanerConfig *config = &cleaner->config;
        Error error = ERROR_NULL;
        const CordonState before = get_cordon(cleaner, host, row);
        _cleanup_free_ char *text = text_format("not proved to be clean%s%s%s: %s",
                                                before.cordoned ? " (cordoned by health rule " : "",
                                                before.cordoned ? before.rule.name : "",
                                                before.cordoned ? " before)" : "", reason);
        char cut[CLAIM_TEXT_MAX + 1];
        int r;

        (void)claim_cut_text(text ? text : reason, cut);
        r = cordon_set(config->cordon, host->tree, &config->root, row->address, cut, WHO, NULL,
                       clock_usec(CLOCK_REALTIME), &error);
        if (r < 0 && r != cleaner->cordon_error)
                log_warning("Cannot cordon device %s: %s. It stays withheld.", row->address,
                            error_text(&error, r));
        cleaner->cordon_error = r;
        if (r < 0)
                return false;
        claim_service_record(
                config->service,
                &(EventNote){ .kind = EVENT_CORDONED, .device = row->address, .reason = cut });
        claim_service_set_closed(config->service, cordon_view(config->cordon).host,
                                 cordon_view(config->cordon).devices);
        return true;
}

/* Cordons the device unless it has a cordon that no health rule owns, then sets its row to failed
 * and logs the reason. reason NULL: a failed row has it, or the result, with the unit's last lines,
 * which are logged too. A row without its cordon does not fail, because only the lift of the cordon
 * ends that state: returns CLAIM_E_NOT_FOUND then. */
static int fail(Cleaner *cleaner, const TrackerView *host, const UncleanDevice *row,
                const CleanFacts *facts, const char *reason, Error *reterr)
{
        const json_t *result = reason ? NULL : find_result(cleaner, row);
        bool is_left = nova_mode_refuses(
                host->nova, cordon_action(host->tree, &cleaner->config.root, row->address));
        _cleanup_free_ char *lines = describe_lines(result);
        char words[CLAIM_TEXT_MAX + 1];
        int r;

        if (!lines)
                return error_oom(reterr);
        if (row->state == UNCLEAN_FAILED)
                reason = row->reason;
        describe_reason(result, reason, words);
        if (!facts->is_cordoned && !cordon_device(cleaner, host, row, words))
                return CLAIM_E_NOT_FOUND;
        r = claims_set_unclean(cleaner->config.service->claims, row->id, row->state, UNCLEAN_FAILED,
                               words, clock_usec(CLOCK_REALTIME), reterr);
        if (r == 0)
                log_event(LOG_ERR, MESSAGE_DEVICE_NOT_CLEAN,
                          LOG_FIELDS(LOG_FIELD_DEVICE, row->address),
                          "Device %s was not proved to be clean, and %s: %s%s", row->address,
                          is_left ? "Placement can offer it, because of [agent] nova"
                                  : "stays withheld until its cordon is lifted",
                          words, lines);
        return r;
}

/* Sets the row to dirty, which lets compute-agent-prepare start the units: the look then writes a
 * stamp. After a failure the row gets a new id, so the old result does not count. */
static int begin(Cleaner *cleaner, const TrackerView *host, const UncleanDevice *row, Error *reterr)
{
        Claims *claims = cleaner->config.service->claims;
        const SnapshotDevice *there = find_device(host->snapshot, row->address);
        UncleanDevice again = *row;
        uint64_t now = clock_usec(CLOCK_REALTIME);
        int r;

        again.since_usec = now;
        again.state = UNCLEAN_DIRTY;
        again.reason[0] = '\0';
        if (there)
                snapshot_device_identity(there, again.identity);
        r = row->state == UNCLEAN_HELD ? claims_set_unclean(claims, row->id, UNCLEAN_HELD,
                                                            UNCLEAN_DIRTY, "", now, reterr)
                                       : claims_mark_unclean(claims, &again, reterr);
        if (r == 0)
                log_event(
                        LOG_NOTICE, MESSAGE_DEVICE_CLEANING,
                        LOG_FIELDS(LOG_FIELD_DEVICE, row->address),
                        row->state == UNCLEAN_HELD
                                ? "Device %s will be cleaned: claim %" PRIi64
                                  " has ended, and no guest has it."
                                : "Device %s will be cleaned again, because its cordon was lifted "
                                  "(claim %" PRIi64 " was its last).",
                        row->address, row->claim);
        return r;
}

/* Replaces the row by a held one with a new id, and warns that a device is in use that is not
 * proved to be clean. */
static int hold(Cleaner *cleaner, const UncleanDevice *row, Error *reterr)
{
        UncleanDevice again = *row;
        int r;

        again.since_usec = clock_usec(CLOCK_REALTIME);
        again.state = UNCLEAN_HELD;
        again.reason[0] = '\0';
        r = claims_mark_unclean(cleaner->config.service->claims, &again, reterr);
        if (r == 0)
                log_event(LOG_WARNING, MESSAGE_DEVICE_USED_UNCLEAN,
                          LOG_FIELDS(LOG_FIELD_DEVICE, row->address),
                          "A guest has device %s, which was not proved to be clean since its last "
                          "guest. It is cleaned after this guest.",
                          row->address);
        return r;
}

/* Deletes the row, so the next tree does not withhold the device for it. */
static int end(Cleaner *cleaner, const UncleanDevice *row, bool proved, Error *reterr)
{
        int r = claims_end_unclean(cleaner->config.service->claims, row->id, row->state, reterr);

        if (r == 0)
                log_event(
                        LOG_NOTICE, MESSAGE_DEVICE_CLEAN,
                        LOG_FIELDS(LOG_FIELD_DEVICE, row->address),
                        proved ? "Device %s is clean: its units have succeeded. Its capacity is "
                                 "offered again."
                               : "Device %s is offered without a cleaning. Its cordon was lifted, "
                                 "and no section [device_clean NAME] has it.",
                        row->address);
        return r;
}

/* Sets the time of a held or failed row to now if it is in the future, because the clock was set
 * back since. With a time in the future, each poll and each lift of a cordon would count as earlier
 * than the row. Returns 1 if it did, 0 if not, or a negative errno. */
static int bring_back(Cleaner *cleaner, const UncleanDevice *row, Error *reterr)
{
        uint64_t now = clock_usec(CLOCK_REALTIME);
        int r;

        if (row->state == UNCLEAN_DIRTY || row->since_usec <= now)
                return 0;
        r = claims_set_unclean(cleaner->config.service->claims, row->id, row->state, row->state,
                               row->reason, now, reterr);
        return r < 0 ? r : r == 0;
}

/* Stores why the units of a row wait (NULL: they do not; a failed row then keeps its reason), and
 * logs a new reason. Returns 1 if the row changed, 0 if not, or a negative errno. */
static int note_wait(Cleaner *cleaner, const UncleanDevice *row, const char *reason, Error *reterr)
{
        _cleanup_free_ char *text = text_format(
                "%s%s", reason && row->state == UNCLEAN_FAILED ? "not repeated yet: " : "",
                reason ? reason : "");
        char words[CLAIM_TEXT_MAX + 1];
        int r;

        if (!text)
                return error_oom(reterr);
        if (!reason && row->state == UNCLEAN_FAILED)
                return 0;
        (void)claim_cut_text(text, words);
        if (strcmp(words, row->reason) == 0)
                return 0;
        r = claims_set_unclean(cleaner->config.service->claims, row->id, row->state, row->state,
                               words, row->since_usec, reterr);
        if (r == 0 && reason)
                log_event(LOG_NOTICE, MESSAGE_DEVICE_CLEANING,
                          LOG_FIELDS(LOG_FIELD_DEVICE, row->address),
                          "Device %s is not cleaned yet: %s.", row->address, reason);
        return r == CLAIM_E_NOT_FOUND ? 0 : r < 0 ? r : 1;
}

/* Makes the step of a row, or only corrects its time (bring_back()). Returns 1 if the row changed,
 * 0 if not, or a negative errno. */
static int make_step(Cleaner *cleaner, const TrackerView *host, const UncleanDevice *row,
                     Error *reterr)
{
        const char *reason;
        char wait[UNCLEAN_REASON_SIZE];
        CleanFacts facts;
        CleanStep step;
        int r = bring_back(cleaner, row, reterr);

        if (r == 0)
                r = collect_facts(cleaner, host, row, wait, &facts, reterr);
        if (r != 0)
                return r;
        step = clean_next_step(row->state, &facts, &reason);
        switch (step) {
        case CLEAN_KEEP:
                return note_wait(cleaner, row, reason, reterr);
        case CLEAN_HOLD:
                r = hold(cleaner, row, reterr);
                break;
        case CLEAN_BEGIN:
                r = begin(cleaner, host, row, reterr);
                break;
        case CLEAN_FAIL:
                r = fail(cleaner, host, row, &facts, reason, reterr);
                break;
        case CLEAN_END:
        case CLEAN_FORGET:
                r = end(cleaner, row, step == CLEAN_END, reterr);
                break;
        }
        /* A claim came between the facts and the write, or a cordon cannot be written: the next
         * look decides. */
        return r == CLAIM_E_NOT_FOUND ? 0 : r < 0 ? r : 1;
}

/* Devices without a row */

/* Returns whether Nova reserved a device of one_time_use after its only use, and nothing else
 * withholds it. Nova does so before it builds the server, so no consumer must have the device in
 * Placement. */
static bool is_used_up(const Cleaner *cleaner, const TrackerView *host,
                       const SnapshotDevice *device)
{
        const LedgerDevice *expected = find_expected(host, device->address);

        return expected && !expected->missing && !expected->withheld &&
               expected->reserved >= expected->total &&
               (!host->retained ||
                retained_use(host->retained, &expected->provider, expected->resource_class, NULL) ==
                        RETAINED_USE_NONE) &&
               host_clean_is_one_time(get_settings(cleaner), device);
}

/* Adds a held row for a device that needs one: a claim or a domain has it, or Nova reserved it
 * after its only use. Without a claim, the only domain with the device counts as its last guest, so
 * that it can start. Returns 1 if it did, 0 if not, or a negative errno. */
static int add_row(Cleaner *cleaner, const TrackerView *host, const SnapshotDevice *device,
                   Error *reterr)
{
        Claims *claims = cleaner->config.service->claims;
        bool in_domain = is_in_domain(host->snapshot, device->address), used_up;
        UncleanDevice row = { .state = UNCLEAN_HELD,
                              .consumer = find_only_domain(host->snapshot, device->address),
                              .since_usec = clock_usec(CLOCK_REALTIME) };
        int r = find_claim(claims, device->address, &row.claim, reterr);

        if (r < 0)
                return r;
        used_up = row.claim == 0 && !in_domain && is_used_up(cleaner, host, device);
        if (row.claim == 0 && !in_domain && !used_up)
                return 0;
        snprintf(row.address, sizeof(row.address), "%s", device->address);
        snprintf(row.name, sizeof(row.name), "%.*s", UNCLEAN_NAME_SIZE - 1, device->name);
        snapshot_device_identity(device, row.identity);
        r = claims_mark_unclean(claims, &row, reterr);
        if (r == 0 && used_up)
                log_event(LOG_NOTICE, MESSAGE_DEVICE_CLEANING,
                          LOG_FIELDS(LOG_FIELD_DEVICE, device->address),
                          "Device %s must be cleaned: Placement has it reserved after "
                          "one_time_use, and no guest has it.",
                          device->address);
        return r < 0 ? r : 1;
}

static int add_rows(Cleaner *cleaner, const TrackerView *host, const UncleanDevices *rows,
                    bool *ret_added, Error *reterr)
{
        const HostConfig *config = get_settings(cleaner);

        for (size_t i = 0; config->n_cleans > 0 && i < host->snapshot->n_devices; i++) {
                const SnapshotDevice *device = &host->snapshot->devices[i];
                int r;

                if (unclean_devices_find(rows, device->address) || !host_clean_find(config, device))
                        continue;
                r = add_row(cleaner, host, device, reterr);
                if (r < 0)
                        return r;
                *ret_added |= r > 0;
        }
        return 0;
}

/* The look */

/* Arms the timer while a device is dirty, and sees to the stamp. A device can wait for a process,
 * and a run can be killed after it saw the stamp, so stamps are written while a device is dirty. A
 * run that is still at work only reads the rows again. While all dirty devices wait for long or
 * have running units, stamps are written less often. */
static void wait_for_results(Cleaner *cleaner, const UncleanDevices *rows, bool begun)
{
        const char *seen = json_string_value(json_object_get(cleaner->record, "wanted"));
        bool dirty = false, urgent = !seen || strcmp(seen, cleaner->wanted.stamp) != 0;

        for (size_t i = 0; i < rows->n_items; i++) {
                const UncleanDevice *row = &rows->items[i];

                if (row->state != UNCLEAN_DIRTY)
                        continue;
                dirty = true;
                urgent = urgent || !find_result(cleaner, row) ||
                         (has_result(cleaner, row, "waiting") && !is_late(row));
        }
        if (dirty)
                tend_stamp(cleaner, begun ? 0 : urgent ? STAMP_USEC : AGAIN_USEC);
        (void)sd_event_source_set_time(cleaner->timer, clock_usec(CLOCK_MONOTONIC) + TICK_USEC);
        (void)sd_event_source_set_enabled(cleaner->timer, dirty ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* Names cordoned and unclean devices in the words of a refusal for lack of capacity. */
static void set_hint(Cleaner *cleaner, const TrackerView *host)
{
        const CordonView view = cordon_view(cleaner->config.cordon);
        _cleanup_free_ char *unclean =
                host->devices ? device_ledger_describe_unclean(host->devices) : NULL;
        _cleanup_free_ char *both = NULL;
        const char *hint = view.devices;

        if (unclean && unclean[0])
                both = text_format("%s%s%s", view.devices ? view.devices : "",
                                   view.devices ? "; " : "", unclean);
        if (both)
                hint = both;
        claim_service_set_closed(cleaner->config.service, view.host, hint);
}

/* Makes one look. Returns 0 or a negative errno. *ret_changed (false before) is set if a row was
 * added or changed, also before an error. */
static int look(Cleaner *cleaner, const TrackerView *host, bool *ret_changed, Error *reterr)
{
        _cleanup_(unclean_devices_done) UncleanDevices rows = { 0 }, after = { 0 };
        Claims *claims = cleaner->config.service->claims;
        int r = claims_list_unclean(claims, &rows, reterr);

        if (r < 0)
                return r;
        r = add_rows(cleaner, host, &rows, ret_changed, reterr);
        if (rows.n_items > 0)
                read_record(cleaner);
        for (size_t i = 0; r >= 0 && i < rows.n_items; i++) {
                r = make_step(cleaner, host, &rows.items[i], reterr);
                *ret_changed |= r > 0;
        }
        if (r >= 0)
                r = claims_list_unclean(claims, &after, reterr);
        if (r < 0)
                return r;
        wait_for_results(cleaner, &after, *ret_changed);
        if (get_settings(cleaner)->n_cleans > 0 || after.n_items > 0)
                set_hint(cleaner, host);
        return 0;
}

void cleaner_tend(Cleaner *cleaner)
{
        ClaimService *service = cleaner->config.service;
        const TrackerView host = cleaner->config.look(cleaner->config.userdata);
        Error error = ERROR_NULL;
        bool changed = false;
        int r;

        if (!service->claims || service->is_adopting || !host.snapshot || !host.tree)
                return;
        r = look(cleaner, &host, &changed, &error);
        if (r < 0 && !cleaner->logged_no_claims)
                log_warning("Cannot tend the devices that must be cleaned: %s. Retrying.",
                            error_text(&error, r));
        cleaner->logged_no_claims = r < 0;
        claim_service_note_step(service, MIN(r, 0), &error);
        if (changed)
                claim_service_note_cards(service);
}
