/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The documents of Describe(). A text is made at the first read after a change, and kept. After a
 * change, bus_documents_signal() makes a short document again that a client has read. If the text
 * differs, it sends a signal. The next signal requires another read. So a client reads, waits for
 * the signal, and reads again, and a document without readers is not made. A client counts as a
 * reader also if its read of a short document failed, or if the claim database was not open for its
 * read of a long one. The document "status" counts as changed at each look, so it is made at each
 * read. systemd/org.computeagent.Agent1.xml describes its members.
 *
 * Claims, ended claims and events can be very many, so a Listing writes these three documents in
 * steps. Their old text is freed at a change. They are too large to be made only for a comparison,
 * so each change counts as a difference. */

#include "agent/bus/documents.h"

#include <errno.h>
#include <string.h>

#include "agent/bus/methods.h"
#include "agent/cycle/partitions.h"
#include "agent/cycle/verdict.h"
#include "base/json.h"
#include "drivers/tree/shape-providers.h"
#include "formats/claim-json.h"
#include "formats/format-names.h"
#include "formats/interface.h"
#include "formats/tree-json.h"
#include "report/publish/step.h"

#define LIKE_CLASSES_MAX 64 /* further resource classes are not counted */

void bus_documents_done(BusDocuments *documents)
{
        for (size_t i = 0; i < _BUS_DOCUMENT_MAX; i++)
                free(documents->texts[i].text);
        snapshot_unref(documents->snapshot);
        documents->snapshot = NULL;
}

/* The state of a text */

/* Marks the text as old. A reader of the old text becomes due for a signal. */
static void note_change(BusDocumentText *text)
{
        text->is_old = true;
        text->is_due = text->is_due || text->is_read;
        text->is_read = false;
}

/* Returns true if the text must be made before it is read. */
static bool is_missing(const BusDocumentText *text)
{
        return text->is_old || !text->text;
}

/* Replaces the text and takes ownership of made. NULL: the document cannot be made now. */
static void set_text(BusDocumentText *text, char *made)
{
        bool same = made && text->text ? strcmp(made, text->text) == 0 : made == text->text;

        text->differs |= text->is_due && !same;
        free(text->text);
        text->text = made;
        text->is_old = false;
}

/* Returns true if is_due and differs are set, and resets both, so that a signal is sent once. A
 * reader to whom a signal is due, but whose text is equal, becomes a reader of the current text. */
static bool take_signal(BusDocumentText *text)
{
        bool due = text->is_due && text->differs;

        /* After an equal text the reader needs no signal. It has the current text (is_read), so the
         * next change makes a signal due again: note_change(). */
        text->is_read = text->is_read || (text->is_due && !due);
        text->is_due = text->differs = false;
        return due;
}

/* The document "status" */

/* Lists the parts of the host that the last poll could not read, separated by "; ". The caller
 * frees. NULL: out of memory. */
static char *describe_unread(const Snapshot *snapshot)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        for (size_t i = 0; snapshot && i < snapshot->problems.n_items; i++)
                fprintf(file, "%s%s", i > 0 ? "; " : "", snapshot->problems.items[i]);
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}

static json_t *make_text(const char *text)
{
        return json_string(text ? text : "");
}

static json_t *make_number(uint64_t number)
{
        return json_from_u64(number);
}

static json_t *make_bool(bool value)
{
        return json_boolean(value);
}

/* Returns the reasons of the verdict as an array, the worst first. */
static json_t *make_reasons(const Verdict *verdict)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < verdict->n_reasons; i++) {
                const VerdictReason *reason = &verdict->reasons[i];

                if (json_array_append_new(
                            array, json_pack("{ss ss ss ss ss ss}", "check", reason->check, "state",
                                             verdict_state_to_text(reason->state), "summary",
                                             reason->summary, "text", reason->text, "command",
                                             reason->command, "advice", reason->advice)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

/* Returns the RESHAPE_ACCESS_… name. */
static const char *access_to_text(ReshaperAccess access)
{
        return access == RESHAPER_ALLOWED     ? RESHAPE_ACCESS_ALLOWED
               : access == RESHAPER_FORBIDDEN ? RESHAPE_ACCESS_REFUSED
                                              : RESHAPE_ACCESS_UNKNOWN;
}

/* The members: M(type, name, value as an expression in add_members()) */
/* clang-format off */
#define MEMBERS(M) \
        M(text, "version", PACKAGE_VERSION) \
        M(text, "node", f->snapshot ? f->snapshot->nodename : "") \
        M(text, "root", config->root.text) \
        M(text, "driver", f->driver) \
        M(text, "sync_state", sync_state_to_text(f->status->sync_state)) \
        M(number, "sync_since_usec", f->status->sync_since_usec) \
        M(text, "sync_error", f->status->sync_error.text) \
        M(number, "last_sync_usec", f->status->last_sync_usec) \
        M(number, "last_poll_usec", f->status->last_poll_usec) \
        M(text, "hypervisor_error", f->status->hypervisor_error.text) \
        M(number, "n_providers", f->tree ? f->tree->n_providers : 0) \
        M(number, "n_like_providers", count_like_providers(f->tree)) \
        M(number, "n_claims", f->n_claims) \
        M(number, "n_requests", f->statistics->n_requests) \
        M(number, "n_writes", f->statistics->n_writes) \
        M(number, "n_conflicts", f->statistics->n_conflicts) \
        M(text, "claim_error", f->claim_error->text) \
        M(text, "reshape_access", access_to_text(f->status->reshape_access)) \
        M(number, "n_pending_writes", f->pending_writes.n_writes) \
        M(number, "n_pending_removals", f->pending_writes.n_removals) \
        M(number, "n_pending_moves", f->pending_writes.n_moves) \
        M(text, "pending_writes_error", pending_writes_sum(&f->pending_writes) > 0 ? f->pending_writes_error : "") \
        M(text, "host_cordoned", f->cordons.host) \
        M(text, "devices_cordoned", f->cordons.devices) \
        M(text, "devices_unhealthy", f->cordons.by_rules) \
        M(text, "devices_reported", f->health.reported) \
        M(text, "health_error", f->health.error) \
        M(text, "devices_withheld", withheld) \
        M(text, "local_disk", f->status->local_disk) \
        M(text, "host_unread", unread) \
        M(text, "state", verdict_state_to_text(verdict->state)) \
        M(text, "summary", verdict->summary) \
        M(text, "status", verdict->line) \
        M(text, "hook", config->hook) \
        M(text, "nova", nova_mode_to_text(f->nova)) \
        M(bool, "tree_published", f->status->tree_published) \
        M(number, "n_differences", f->status->n_differences) \
        M(text, "second_reporter", overwrites)
/* clang-format on */

/* Returns the largest number of providers that have inventory of the same class, among the first
 * LIKE_CLASSES_MAX classes. Placement takes longer to generate allocation candidates with each such
 * provider. */
static uint64_t count_like_providers(const ProviderTree *tree)
{
        struct {
                const char *resource_class;
                uint64_t n;
        } counts[LIKE_CLASSES_MAX];
        uint64_t most = 0;
        size_t n = 0, j;

        for (size_t i = 0; tree && i < tree->n_providers; i++) {
                const Provider *provider = tree->providers[i];

                for (size_t k = 0; k < provider->n_inventories; k++) {
                        const char *name = provider->inventories[k].resource_class;

                        for (j = 0; j < n && strcmp(counts[j].resource_class, name) != 0; j++)
                                ;
                        if (j == LIKE_CLASSES_MAX)
                                continue;
                        if (j == n) {
                                counts[n].resource_class = name;
                                counts[n++].n = 0;
                        }
                        most = MAX(most, ++counts[j].n);
                }
        }
        return most;
}

/* Returns one sentence for each device that is being cleaned or waits for that, or whose cleaning
 * failed. Adds one for each partition of devices that is not ready for a guest. */
static json_t *list_unclean(const DeviceLedger *devices, const ClaimService *claims)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && devices && i < devices->n_devices; i++) {
                const LedgerDevice *device = &devices->devices[i];

                if (device->unclean[0] &&
                    json_array_append_new(
                            array, json_sprintf("%s is %s", device->name, device->unclean)) < 0)
                        return NULL;
        }
        return array && partitions_describe(claims, array) == 0 ? TAKE_PTR(array) : NULL;
}

static int add_members(json_t *document, const BusConfig *config, const CycleFacts *f,
                       const Verdict *verdict)
{
        _cleanup_free_ char *overwrites = overwrites_describe(f->overwrites);
        _cleanup_free_ char *unread = describe_unread(f->snapshot);
        _cleanup_free_ char *withheld =
                f->devices ? device_ledger_describe_withheld(f->devices) : strdup("");

        if (!withheld || !unread || !overwrites)
                return -ENOMEM;
#define M(type, member, value)                                               \
        if (json_object_set_new(document, member, make_##type(value)) < 0) { \
                return -ENOMEM;                                              \
        }
        MEMBERS(M)
#undef M
        if (json_object_set_new(document, "devices_unclean",
                                list_unclean(f->devices, config->claims)) < 0)
                return -ENOMEM;
        return json_object_set_new(document, "reasons", make_reasons(verdict)) < 0 ? -ENOMEM : 0;
}

/* Makes the document from the facts of the tracker and the verdict. Counts the pending writes only
 * if they might have changed, because this reads the database. */
static int make_status(BusDocuments *documents, json_t **ret, sd_bus_error *error)
{
        _cleanup_json_ json_t *document = json_pack("{ss}", "format", STATUS_FORMAT);
        const BusConfig *config = documents->config;
        Verdict verdict;
        CycleFacts facts;
        int r;

        if (!documents->is_counted)
                documents->pending_writes_error =
                        claim_queue_count_pending_writes(config->queue, &documents->pending_writes);
        documents->is_counted = true;
        cycle_facts_look(config->tracker, &documents->pending_writes,
                         documents->pending_writes_error, &facts);
        verdict_make(&facts, &verdict);
        r = add_members(document, config, &facts, &verdict);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(document);
        return 0;
}

/* Making the other short documents */

int bus_not_ready(const BusConfig *config, sd_bus_error *error)
{
        const TrackerStatus *status = tracker_view(config->tracker).status;

        return sd_bus_error_setf(error, BUS_ERROR_NOT_READY, "%s",
                                 status->hypervisor_error.code ? status->hypervisor_error.text
                                                               : "The host was not polled yet");
}

/* Adds the names of the sharing providers. */
static int add_sharing(json_t *document, const ProviderTree *sharing)
{
        _cleanup_json_ json_t *names = json_array();

        for (size_t i = 0; sharing && i < sharing->n_providers; i++)
                if (json_array_append_new(names, json_string(sharing->providers[i]->name)) < 0)
                        return -ENOMEM;
        return json_object_set(document, "shares", names);
}

/* Returns the devices that are missing, held or not clean. The array is owned by the caller, its
 * items are borrowed. NULL: out of memory. */
static const LedgerDevice **list_withheld(const DeviceLedger *devices, size_t *ret_n)
{
        const LedgerDevice **list = calloc((devices ? devices->n_devices : 0) + 1, sizeof(*list));

        *ret_n = 0;
        for (size_t i = 0; list && devices && i < devices->n_devices; i++)
                if (devices->devices[i].missing || devices->devices[i].held ||
                    devices->devices[i].unclean[0])
                        list[(*ret_n)++] = &devices->devices[i];
        return list;
}

static const char *find_withheld(const LedgerDevice *const *list, size_t n, const char *provider)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i]->provider.text, provider) == 0)
                        return list[i]->missing ? "missing" : list[i]->held ? "held" : "unclean";
        return "";
}

/* Adds the addresses of the devices of a set of devices ([device_shapes NAME]), if the item is the
 * provider of the set. */
static int add_devices(json_t *item, const Provider *root, const HostConfig *host)
{
        const char *name = json_string_value(json_object_get(item, "name")), *address;
        size_t n = strlen(root->name);

        for (size_t i = 0; host && i < host->n_shapes; i++) {
                const DeviceSet *set = &host->shapes[i].set;
                json_t *devices = NULL;
                char end[SHAPE_NAME_SIZE];

                shape_name(set, end);
                if (strncmp(name, root->name, n) != 0 || name[n] != '_' ||
                    strcmp(name + n + 1, end) != 0)
                        continue;
                devices = json_array();
                if (json_object_set_new(item, "devices", devices) < 0)
                        return -ENOMEM;
                for (size_t j = 0; (address = device_set_device(set, j)); j++)
                        if (json_array_append_new(devices, json_string(address)) < 0)
                                return -ENOMEM;
        }
        return 0;
}

/* Adds to each provider whether a cordon covers it, and whether its device is withheld. Adds the
 * devices to the provider of a set of devices. */
static int add_marks(json_t *document, const ProviderTree *tree, const BusConfig *config)
{
        json_t *providers = json_object_get(document, "providers"), *item;
        const Provider *root = provider_tree_find(tree, &config->root);
        _cleanup_free_ const LedgerDevice **list = NULL;
        size_t i, n;

        list = list_withheld(tracker_view(config->tracker).devices, &n);
        if (!list)
                return -ENOMEM;
        json_array_foreach(providers, i, item) {
                const char *text = json_string_value(json_object_get(item, "uuid"));
                bool cordoned;
                Uuid uuid;

                if (uuid_from_text(text, &uuid) < 0)
                        return -EINVAL;
                cordoned = cordon_covers(config->cordon, tree, &config->root, &uuid);
                if (json_object_set_new(item, "cordoned", json_boolean(cordoned)) < 0 ||
                    json_object_set_new(item, "withheld",
                                        json_string(find_withheld(list, n, text))) < 0 ||
                    (root && add_devices(item, root, config->claims->settings.driver) < 0))
                        return -ENOMEM;
        }
        return 0;
}

static int make_tree(BusDocuments *documents, json_t **ret, sd_bus_error *error)
{
        const BusConfig *config = documents->config;
        const ProviderTree *tree = tracker_view(config->tracker).tree;
        const Snapshot *snapshot = tracker_view(config->tracker).snapshot;
        Claims *claims = config->claims->claims;
        const HostView *view = NULL;
        _cleanup_json_ json_t *document = NULL;

        if (!tree || !snapshot)
                return bus_not_ready(config, error);
        if (claims)
                claim_service_check(config->claims, claims_host(claims, &view, NULL));
        document =
                tree_to_json(tree, view, &config->root, snapshot->nodename,
                             sync_state_to_text(tracker_view(config->tracker).status->sync_state));
        if (!document || add_sharing(document, tracker_view(config->tracker).sharing) < 0 ||
            add_marks(document, tree, config) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(document);
        return 0;
}

static int make_host(BusDocuments *documents, json_t **ret, sd_bus_error *error)
{
        const Snapshot *snapshot = tracker_view(documents->config->tracker).snapshot;

        if (!snapshot)
                return bus_not_ready(documents->config, error);
        *ret = snapshot_to_json(snapshot);
        return 0;
}

/* Appends the problems, one object for each. */
static int add_problems(json_t *array, const ReconcileProblems *problems)
{
        for (size_t i = 0; i < problems->n_items; i++)
                if (json_array_append_new(array,
                                          json_pack("{ss sI ss}", "consumer",
                                                    problems->items[i].consumer.text, "claim",
                                                    (json_int_t)problems->items[i].claim_id, "text",
                                                    problems->items[i].text)) < 0)
                        return -ENOMEM;
        return 0;
}

static int make_problems(BusDocuments *documents, json_t **ret, sd_bus_error *error)
{
        const TrackerView view = tracker_view(documents->config->tracker);
        const AuditorState *audit = auditor_get_state(view.auditor);
        _cleanup_json_ json_t *array = json_array();

        if (add_problems(array, &documents->config->claims->comparison.problems) < 0 ||
            add_problems(array, &audit->findings) < 0)
                return -ENOMEM;
        *ret = json_pack("{ss sO}", "format", PROBLEMS_FORMAT, "problems", array);
        return 0;
}

/* Makes the document of the plan (tracker_plan()): the requests that make Placement equal to the
 * tree now, also those that [agent] nova or a pause of overwrites.h prevents. */
static int make_plan(BusDocuments *documents, json_t **ret, sd_bus_error *error)
{
        _cleanup_(plan_freep) Plan *plan = NULL;
        Error words = ERROR_NULL;
        int r = tracker_plan(documents->config->tracker, &plan, &words);

        if (r < 0)
                return sd_bus_error_setf(error, BUS_ERROR_NOT_READY, "%s", error_text(&words, r));
        *ret = plan_to_json(plan);
        return 0;
}

static int make_reshape(BusDocuments *documents, json_t **ret, sd_bus_error *error)
{
        const TrackerView view = tracker_view(documents->config->tracker);
        const json_t *document = reshape_control_get_state(view.reshape)->document;

        if (!document)
                return sd_bus_error_set(error, BUS_ERROR_NOT_READY,
                                        "There was no reshape, or it moved nothing");
        *ret = json_incref((json_t *)document);
        return 0;
}

/* Yields a copy of the document of the last audit, which is a text already. */
static int copy_audit(BusDocuments *documents, char **ret, sd_bus_error *error)
{
        const TrackerView view = tracker_view(documents->config->tracker);
        const char *text = auditor_get_state(view.auditor)->document;

        if (!text)
                return sd_bus_error_set(error, BUS_ERROR_NOT_READY,
                                        "No audit has run since the agent started");
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

/* The name of each document, and the function that makes it or copies its text. */
static const struct {
        const char *name;
        int (*make)(BusDocuments *documents, json_t **ret, sd_bus_error *error);
        int (*copy)(BusDocuments *documents, char **ret, sd_bus_error *error);
} kinds[_BUS_DOCUMENT_MAX] = {
        [BUS_STATUS] = { .name = BUS_DOCUMENT_STATUS, .make = make_status },
        [BUS_TREE] = { .name = BUS_DOCUMENT_TREE, .make = make_tree },
        [BUS_HOST] = { .name = BUS_DOCUMENT_HOST, .make = make_host },
        [BUS_CLAIMS] = { .name = BUS_DOCUMENT_CLAIMS },   /* a Listing */
        [BUS_HISTORY] = { .name = BUS_DOCUMENT_HISTORY }, /* a Listing */
        [BUS_EVENTS] = { .name = BUS_DOCUMENT_EVENTS },   /* a Listing */
        [BUS_PROBLEMS] = { .name = BUS_DOCUMENT_PROBLEMS, .make = make_problems },
        [BUS_PLAN] = { .name = BUS_DOCUMENT_PLAN, .make = make_plan },
        [BUS_AUDIT] = { .name = BUS_DOCUMENT_AUDIT, .copy = copy_audit },
        [BUS_RESHAPE] = { .name = BUS_DOCUMENT_RESHAPE, .make = make_reshape },
};

/* Checks whether the document is made in steps. */
static bool is_listing(BusDocument document)
{
        return !kinds[document].make && !kinds[document].copy;
}

/* Returns _BUS_DOCUMENT_MAX if there is no document of that name. */
static BusDocument find_kind(const char *name)
{
        BusDocument document = 0;

        while (document < _BUS_DOCUMENT_MAX && strcmp(kinds[document].name, name) != 0)
                document++;
        return document;
}

bool bus_documents_is_long(sd_bus_message *call)
{
        BusDocument document = _BUS_DOCUMENT_MAX;
        const char *name;

        if (sd_bus_message_is_method_call(call, NULL, "Describe") > 0 &&
            sd_bus_message_read(call, "s", &name) > 0)
                document = find_kind(name);
        (void)sd_bus_message_rewind(call, true);
        return document < _BUS_DOCUMENT_MAX && is_listing(document);
}

/* Makes a short document and stores its text. After an error, the text is NULL. */
static int make(BusDocuments *documents, BusDocument document, sd_bus_error *error)
{
        _cleanup_json_ json_t *made = NULL;
        char *text = NULL;
        int r = kinds[document].make ? kinds[document].make(documents, &made, error)
                                     : kinds[document].copy(documents, &text, error);

        if (made)
                text = json_dumps(made, JSON_COMPACT);
        set_text(&documents->texts[document], text);
        return r < 0 ? r : text ? 0 : -ENOMEM;
}

/* Documents in steps. A change of a claim or an event during the work is in the document only if
 * the item is read after it. The document "history" reads all its items at the begin. */

/* A document that is made in steps: its text so far, and the place of the next item. */
typedef struct Listing {
        BusJob job;
        BusDocuments *documents;
        BusDocument document;
        uint64_t n_changes; /* n_changes of the document when the work began */
        FILE *file;         /* writes to text; NULL: not begun */
        char *text;
        size_t size;
        int64_t after;    /* id of the last living claim, or event, that was written */
        ClaimList ended;  /* all ended claims, for BUS_HISTORY */
        size_t n_written; /* items written so far */
} Listing;

static void listing_free(BusJob *job)
{
        Listing *listing = (Listing *)job;

        if (listing->documents->makers[listing->document] == job)
                listing->documents->makers[listing->document] = NULL;
        if (listing->file)
                fclose(listing->file);
        free(listing->text);
        claim_list_done(&listing->ended);
        free(listing);
}

/* Writes the start of the document, and registers the job as its maker. For BUS_HISTORY, reads all
 * ended claims at once. Returns an outcome of claims.h. */
static int begin(Listing *listing, Claims *claims, Error *reterr)
{
        listing->file = open_memstream(&listing->text, &listing->size);
        if (!listing->file)
                return error_oom(reterr);
        listing->n_changes = listing->documents->n_changes[listing->document];
        listing->documents->makers[listing->document] = &listing->job;
        fputs(listing->document == BUS_EVENTS ? "{\"format\":\"" EVENTS_FORMAT "\",\"events\":["
                                              : "{\"format\":\"" CLAIMS_FORMAT "\",\"claims\":[",
              listing->file);
        if (listing->document == BUS_EVENTS)
                listing->after = INT64_MAX;
        return listing->document == BUS_HISTORY
                       ? claims_list(claims, CLAIMS_ENDED, NULL, &listing->ended, reterr)
                       : 0;
}

static const HostFacts *get_facts(const Listing *listing)
{
        return listing->documents->config->claims->facts;
}

/* Appends an item and releases it. NULL counts as out of memory. */
static int write_item(Listing *listing, json_t *item)
{
        _cleanup_json_ json_t *object = item;

        if (!object)
                return -ENOMEM;
        if (listing->n_written++ > 0)
                fputc(',', listing->file);
        return json_dumpf(object, listing->file, JSON_COMPACT) < 0 ? -ENOMEM : 0;
}

static int write_claim(Listing *listing, const Claim *claim)
{
        return write_item(listing, claim_to_json(claim, get_facts(listing)));
}

/* Writes the next events, the newest first. Sets *ret_done if there were none. Returns an outcome
 * of claims.h. */
static int write_events(Listing *listing, Claims *claims, bool *ret_done, Error *reterr)
{
        _cleanup_(event_list_done) EventList list = { 0 };
        int r = claims_list_events(claims, listing->after, &list, reterr);

        for (size_t i = 0; r == 0 && i < list.n_events; i++) {
                listing->after = list.events[i].id;
                r = write_item(listing, event_to_json(&list.events[i], get_facts(listing)));
        }
        *ret_done = list.n_events == 0;
        return r;
}

/* Writes the next claims, at most CLAIMS_LOT ended ones. Sets *ret_done if there were none. Returns
 * an outcome of claims.h. */
static int write_some(Listing *listing, Claims *claims, bool *ret_done, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        size_t first = listing->n_written, end = MIN(first + CLAIMS_LOT, listing->ended.n_claims);
        int r = listing->document == BUS_HISTORY
                        ? 0
                        : claims_list_some(claims, listing->after, &list, reterr);

        for (size_t i = 0; r == 0 && i < list.n_claims; i++) {
                listing->after = list.claims[i]->id;
                r = write_claim(listing, list.claims[i]);
        }
        for (size_t i = first; r == 0 && i < end; i++)
                r = write_claim(listing, listing->ended.claims[i]);
        *ret_done = listing->n_written == first;
        return r;
}

/* Answers with the complete text. Keeps the text for other readers if no change was noted during
 * the work. */
static int finish(Listing *listing)
{
        BusDocuments *documents = listing->documents;
        BusDocumentText *text = &documents->texts[listing->document];
        bool failed;

        fputs("]}", listing->file);
        failed = fclose(listing->file) != 0;
        listing->file = NULL;
        if (failed)
                return -ENOMEM;
        text->is_read = true;
        if (listing->n_changes != documents->n_changes[listing->document]) {
                bus_documents_note(documents, listing->document);
                return sd_bus_reply_method_return(listing->job.call, "s", listing->text);
        }
        set_text(text, TAKE_PTR(listing->text));
        return sd_bus_reply_method_return(listing->job.call, "s", text->text);
}

/* Makes one step of the document, or answers with a text that another job has finished. Only one
 * job makes this document at a time; other jobs for it wait for its end. */
static int step(BusJob *job, sd_bus_error *error)
{
        Listing *listing = (Listing *)job;
        BusDocuments *documents = listing->documents;
        BusDocumentText *text = &documents->texts[listing->document];
        ClaimService *service = documents->config->claims;
        const BusJob *maker = documents->makers[listing->document];
        Error words = ERROR_NULL;
        bool done = false;
        Claims *claims;
        int r;

        if (!is_missing(text)) {
                text->is_read = true;
                r = sd_bus_reply_method_return(job->call, "s", text->text);
                return MIN(r, 0);
        }
        if (maker && maker != job)
                return 1;
        r = bus_claims_open(service, &claims, error);
        if (r < 0) {
                text->is_read = true;
                return r;
        }
        if (!listing->file)
                r = begin(listing, claims, &words);
        else if (listing->document == BUS_EVENTS)
                r = write_events(listing, claims, &done, &words);
        else
                r = write_some(listing, claims, &done, &words);
        if (r != 0)
                return bus_claims_error(service, error, r, &words);
        if (!done)
                return 1;
        r = finish(listing);
        return MIN(r, 0);
}

/* Queues a job that makes the document in steps (agent/bus/gate.h). Returns 1: the answer will
 * follow. */
static int begin_listing(BusDocuments *documents, BusDocument document, sd_bus_message *call)
{
        Listing *listing = calloc(1, sizeof(Listing));

        if (!listing)
                return -ENOMEM;
        listing->job = (BusJob){ step, listing_free, sd_bus_message_ref(call), { 0 } };
        listing->documents = documents;
        listing->document = document;
        bus_gate_begin(documents->gate, &listing->job);
        return 1;
}

/* Changes */

void bus_documents_note(BusDocuments *documents, BusDocument document)
{
        BusDocumentText *text = &documents->texts[document];

        documents->n_changes[document]++;
        note_change(text);
        if (!is_listing(document))
                return;
        /* The text of a long document is freed, so the change counts as a difference. */
        set_text(text, NULL);
        text->differs = text->is_due;
}

/* Constants of the 64-bit FNV-1a hash. */
#define SUM_START UINT64_C(14695981039346656037)
#define SUM_PRIME UINT64_C(1099511628211)

static uint64_t sum_text(uint64_t sum, const char *text)
{
        for (const char *c = text; *c; c++)
                sum = (sum ^ (unsigned char)*c) * SUM_PRIME;
        return sum;
}

/* Returns a hash of the facts about devices and guests that the documents of claims contain. */
static uint64_t sum_facts(const HostFacts *facts)
{
        uint64_t sum = SUM_START;

        for (size_t i = 0; facts && i < facts->n_mdevs; i++)
                sum = sum_text(sum, facts->mdevs[i].uuid.text);
        for (size_t i = 0; facts && i < facts->n_domains; i++)
                sum = sum_text(sum, facts->domains[i].name);
        for (size_t i = 0; facts && i < facts->n_devices; i++)
                sum = sum_text(sum, facts->devices[i].resource_class);
        for (size_t i = 0; facts && i < facts->n_pci; i++) {
                sum = sum_text(sum, facts->pci[i].resource_class);
                sum = (sum_text(sum, facts->pci[i].address) ^ facts->pci[i].managed) * SUM_PRIME;
        }
        return sum;
}

/* Notes a change of the documents of claims and events when the hash of the facts differs. */
static void note_facts(BusDocuments *documents)
{
        uint64_t sum = sum_facts(documents->config->claims->facts);

        if (sum != documents->facts_sum) {
                bus_documents_note(documents, BUS_CLAIMS);
                bus_documents_note(documents, BUS_HISTORY);
                bus_documents_note(documents, BUS_EVENTS);
        }
        documents->facts_sum = sum;
}

/* Compares the state of the tracker with its last state, and notes the documents that might have
 * changed. It does not make "status" count the pending writes again, as bus_documents_look()
 * does. */
static void look(BusDocuments *documents)
{
        static const BusDocument of_cycle[] = { BUS_TREE, BUS_PROBLEMS, BUS_PLAN, BUS_AUDIT,
                                                BUS_RESHAPE };
        const Tracker *tracker = documents->config->tracker;
        const Snapshot *snapshot = tracker_view(tracker).snapshot;
        const TrackerStatus *status = tracker_view(tracker).status;

        note_change(&documents->texts[BUS_STATUS]);
        if (status->sync_state != documents->sync_state)
                bus_documents_note(documents, BUS_TREE);
        if (snapshot != documents->snapshot)
                bus_documents_note(documents, BUS_HOST);
        if (snapshot == documents->snapshot && status->n_cycles == documents->n_cycles &&
            status->sync_state == documents->sync_state)
                return;
        note_facts(documents);
        for (size_t i = 0; i < ARRAY_SIZE(of_cycle); i++)
                bus_documents_note(documents, of_cycle[i]);
        documents->sync_state = status->sync_state;
        documents->n_cycles = status->n_cycles;
        snapshot_unref(documents->snapshot);
        documents->snapshot = snapshot ? snapshot_ref((Snapshot *)snapshot) : NULL;
}

void bus_documents_look(BusDocuments *documents)
{
        documents->is_counted = false;
        look(documents);
}

bool bus_documents_signal(BusDocuments *documents, sd_bus *bus)
{
        bool made = false;

        for (BusDocument i = 0; i < _BUS_DOCUMENT_MAX; i++) {
                _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

                BusDocumentText *text = &documents->texts[i];

                /* Make the document to compare it with the text of the reader. */
                if (text->is_due && text->is_old && !text->differs) {
                        if (made)
                                return true;
                        (void)make(documents, i, &error);
                        made = true;
                }
                if (take_signal(text))
                        (void)sd_bus_emit_signal(bus, BUS_PATH, BUS_INTERFACE, "DocumentChanged",
                                                 "s", kinds[i].name);
        }
        return false;
}

/* Compares the counters of the claim database, and notes the documents that they concern, because
 * some writes do not notify on_claim(): a pending claim, and a write of another process. */
static void inspect_claims(BusDocuments *documents)
{
        static const BusDocument of_claims[] = { BUS_TREE, BUS_CLAIMS, BUS_HISTORY };
        Claims *claims = documents->config->claims->claims;
        const HostView *view;
        int64_t event;

        if (claims && claims_last_event(claims, &event, NULL) == 0 &&
            event != documents->last_event) {
                documents->last_event = event;
                bus_documents_note(documents, BUS_EVENTS);
        }
        if (!claims || claims_host(claims, &view, NULL) != 0 ||
            (view->by_others == documents->by_others && view->by_us == documents->by_us))
                return;
        documents->by_others = view->by_others;
        documents->by_us = view->by_us;
        for (size_t i = 0; i < ARRAY_SIZE(of_claims); i++)
                bus_documents_note(documents, of_claims[i]);
}

int bus_documents_describe(BusDocuments *documents, sd_bus_message *call, sd_bus_error *error)
{
        BusDocumentText *text;
        BusDocument document;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r < 0)
                return r;
        document = find_kind(name);
        if (document == _BUS_DOCUMENT_MAX)
                return sd_bus_error_setf(error, BUS_ERROR_INVALID, "There is no document \"%.60s\"",
                                         name);
        look(documents);
        inspect_claims(documents);
        text = &documents->texts[document];
        if (is_listing(document))
                return begin_listing(documents, document, call);
        if (is_missing(text))
                r = make(documents, document, error);
        text->is_read = true;
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(call, "s", text->text);
}
