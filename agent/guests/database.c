/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Opens the claim database, keeps it open, and reports its errors. A result of the database can
 * show that the file was moved away or is damaged. Then the file is closed, and
 * claim_service_tend() opens it again and stores the tree that a new file lacks. A file that
 * rejects a write stays open, and each cycle tries a write. A lock of another process is waited for
 * at most BUSY_USEC. Such a lock is an error of the service only while the file is opened or the
 * tree is stored. The member error has the present state: a database that cannot be opened, a
 * failed write, or no error. The second half announces changes of claims to the watcher and to the
 * watcher of cards. For the facts and the next comparison it also remembers new, changed and
 * returned claims, and the vGPU functions and devices of partitions of ended ones. They stay until
 * a poll that began later replaces the facts.
 *
 * claim_service_check() and claim_service_note() open a lost file at once. A step of a cycle must
 * not get another file, so claim_service_note_step() only closes it. A watcher must not even close
 * it, because its caller uses the database. So claim_service_count() sets "lost" for the next
 * claim_service_tend(). */

#include "agent/guests/database.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/guests/facts.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"

/* Longest wait of the main loop for a lock of another process. No other agent uses the folder, and
 * a person who reads the file locks it only for a moment. */
#define BUSY_USEC (500 * USEC_PER_MSEC)

int claim_service_new(ClaimService **ret, const char *path, const char *host,
                      const ClaimSettings *settings)
{
        _cleanup_(claim_service_freep) ClaimService *service = calloc(1, sizeof(ClaimService));

        if (!service)
                return -ENOMEM;
        service->path = path ? strdup(path) : NULL;
        service->name = strdup(host);
        service->node = strdup(host); /* until claim_service_set_node() */
        service->settings = *settings;
        if ((path && !service->path) || !service->name || !service->node ||
            prepare_wanted_init(&service->wanted, path ? getenv("RUNTIME_DIRECTORY") : NULL,
                                "prepare", "prepared") < 0)
                return -ENOMEM;
        claim_service_tend(service);
        *ret = TAKE_PTR(service);
        return 0;
}

static void comparison_done(ClaimComparison *comparison)
{
        claim_facts_done(&comparison->facts);
        device_facts_done(&comparison->known);
        for (size_t i = 0; i < comparison->n_released; i++)
                free(comparison->released[i].type);
        free(comparison->released);
        snapshot_unref(comparison->snapshot);
        snapshot_unref(comparison->guests);
        allocations_free(comparison->held);
        allocations_free(comparison->holding);
        free(comparison->answers);
        reconcile_memory_done(&comparison->memory);
        reconcile_problems_done(&comparison->problems);
        free(comparison->recent);
        free(comparison->away);
}

ClaimService *claim_service_free(ClaimService *service)
{
        if (!service)
                return NULL;
        claims_free(service->claims);
        comparison_done(&service->comparison);
        prepare_wanted_done(&service->wanted);
        string_set_done(&service->locked_consumers);
        free(service->closed);
        free(service->hint);
        provider_tree_free(service->remembered);
        provider_tree_free(service->tree);
        free(service->path);
        free(service->name);
        free(service->node);
        free(service);
        return NULL;
}

/* Returns true if the file was replaced or is damaged, so that it must be closed and opened
 * again. */
static bool is_lost(int result)
{
        return result == -ESTALE || result == -EUCLEAN;
}

/* Sets the error of the service, or clears it with result 0. result and words are those of
 * claims.h. Logs the begin and the end of an error once. */
static void set_error(ClaimService *service, int result, const Error *words)
{
        bool goes_on = service->error.code;

        service->error_is_of_write = false;
        if (result == 0) {
                service->error = ERROR_NULL;
                if (goes_on)
                        log_notice("The claim database %s can be used again.", service->path);
                return;
        }
        error_setf(&service->error, result, "%s", error_text(words, result));
        if (!goes_on)
                log_event(
                        LOG_ERR, MESSAGE_CLAIM_STORE_LOST, NULL,
                        "New claims are refused: %s. Everything else continues. Retrying in each cycle.",
                        service->error.text);
}

/* Closes the file if the result shows that it is lost. The next claim_service_tend() opens it. */
static void forget_lost(ClaimService *service, int result)
{
        if (is_lost(result))
                service->claims = claims_free(service->claims);
}

/* A write that an open file rejects is an error until a write succeeds. Exceptions are a lock of
 * another process, a fault of the caller, a lack of memory, and a lost file, which is only closed.
 */
void claim_service_note_step(ClaimService *service, int result, const Error *words)
{
        forget_lost(service, result);
        if (result >= 0 || result == -EBUSY || result == -EINVAL || result == -ENOMEM ||
            is_lost(result))
                return;
        set_error(service, result, words);
        service->error_is_of_write = true;
}

static void log_opened(const ClaimService *service, int opened, const Error *error)
{
        switch (opened) {
        case CLAIMS_CREATED:
                log_info("Created the claim database %s.", service->path);
                break;
        case CLAIMS_UPGRADED:
                log_notice("Claim database %s: %s.", service->path, error->text);
                break;
        case CLAIMS_SET_ASIDE:
                log_event(LOG_ERR, MESSAGE_CLAIM_DB_SET_ASIDE, NULL, "%s", error->text);
                break;
        default:
                break;
        }
}

/* Keeps a copy of the host that the database had when it was opened. After a failure the copy
 * before stays. */
static void remember_tree(ClaimService *service)
{
        Error error = ERROR_NULL;
        const HostView *view;
        ProviderTree *tree;
        int r = claims_host(service->claims, &view, &error);

        if (r == 0 && provider_tree_copy(&tree, view->tree) < 0)
                r = error_oom(&error);
        if (r != 0) {
                log_debug("Cannot read the state of the host before this start: %s",
                          error_text(&error, r));
                return;
        }
        provider_tree_free(service->remembered);
        service->remembered = tree;
}

/* Raises last_id to the id of the newest living claim in the file. */
static void note_last_id(ClaimService *service)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(service->claims, CLAIMS_LIVING, NULL, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++)
                service->last_id = MAX(service->last_id, list.claims[i]->id);
}

/* Returns true if the file is open, and there is a Placement that was not read completely since the
 * file was created. A claim database that replaces a lost one does not know the allocations of
 * consumers without a guest. */
static bool is_unread(const ClaimService *service)
{
        bool unread = service->claims && service->settings.with_placement &&
                      claims_is_unread(service->claims);

        return unread;
}

/* Passes the settings and the reasons for refusals to the open database. */
static void set_rules(ClaimService *service)
{
        const ClaimsRules rules = {
                .expiry_usec = service->settings.expiry_usec,
                .writes_guests = service->settings.writes_guests,
                .gives_unclean = service->settings.gives_unclean,
                .closed = service->closed,
                .hint = service->hint,
                .unknown = is_unread(service) ? RECONCILE_UNREAD : NULL,
        };

        if (service->claims)
                claims_set_rules(service->claims, &rules);
}

bool claim_service_is_unread(ClaimService *service)
{
        set_rules(service);
        return is_unread(service);
}

/* Replaces the text by a copy of the new one (NULL: none). Without memory the text stays. */
static void replace_text(char **text, const char *replacement)
{
        char *copy = replacement ? strdup(replacement) : NULL;

        if (replacement && !copy) {
                log_warning("Out of memory. Claims ignore the last change of the cordons.");
                return;
        }
        free(*text);
        *text = copy;
}

void claim_service_set_closed(ClaimService *service, const char *reason, const char *hint)
{
        replace_text(&service->closed, reason);
        replace_text(&service->hint, hint);
        set_rules(service);
}

/* Opens the file, or sets the error. Passes rules and facts to it, copies the tree and the last id
 * from it, and makes a comparison due. */
static void open_store(ClaimService *service)
{
        const ClaimsConfig config = {
                .path = service->path,
                .host = service->name,
                .node = service->node,
                .busy_usec = BUSY_USEC,
                .has_devices = true,
        };
        Error error = ERROR_NULL;
        uint64_t begin_usec = clock_usec(CLOCK_REALTIME);
        int r = claims_open(&service->claims, &config, &error);

        if (r >= 0)
                log_opened(service, r, &error);
        if (r == CLAIMS_CREATED || r == CLAIMS_SET_ASIDE)
                service->built_usec = begin_usec;
        set_error(service, MIN(r, 0), &error);
        service->tree_is_stored = false;
        service->n_opened++;
        if (r < 0)
                return;
        set_rules(service);
        claims_set_facts(service->claims, service->facts);
        note_last_id(service);
        /* The file can be empty or of an older version, so the guests are compared again. */
        service->comparison.is_due = service->facts;
        remember_tree(service);
}

void claim_service_check(ClaimService *service, int result)
{
        if (!is_lost(result) || !service->claims)
                return;
        log_warning("The claim database %s was replaced. Reopening it.", service->path);
        service->claims = claims_free(service->claims);
        claim_service_tend(service);
}

void claim_service_note(ClaimService *service, int result, const Error *words)
{
        if (is_lost(result))
                claim_service_check(service, result);
        else
                claim_service_note_step(service, result, words);
}

/* Writes a test record, to check whether the cause of a rejected write is gone, for example a full
 * disk. */
static void try_write(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = claims_probe(service->claims, &error);

        if (r == 0)
                set_error(service, 0, NULL);
        else
                claim_service_note_step(service, r, &error);
}

/* Stores the tree in the database, and sets or clears the error by the result. Closes a lost file.
 */
static void store_tree(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = claims_set_providers(service->claims, service->tree, &error);

        service->tree_is_stored = r == 0;
        set_error(service, r, &error);
        forget_lost(service, r);
}

void claim_service_tend(ClaimService *service)
{
        if (service->lost)
                service->claims = claims_free(service->claims);
        service->lost = false;
        if (!service->claims && service->path)
                open_store(service);
        if (!service->claims)
                return;
        if (service->tree && !service->tree_is_stored)
                store_tree(service);
        if (service->claims && service->error_is_of_write)
                try_write(service);
}

void claim_service_touch(ClaimService *service, int64_t claim)
{
        ClaimComparison *comparison = &service->comparison;

        service->n_changes++;
        /* If memory is short, the claim is not stored. A poll that began before the claim can then
         * count as evidence that it has no guest. */
        if (array_grow(&comparison->recent, sizeof(ReconcileRecent), comparison->n_recent,
                       &comparison->n_recent_allocated) < 0)
                return;
        comparison->recent[comparison->n_recent++] =
                (ReconcileRecent){ .claim_id = claim, .when_usec = clock_usec(CLOCK_REALTIME) };
}

bool claim_service_lock_consumer(ClaimService *service, const Uuid *consumer)
{
        return string_set_add(&service->locked_consumers, consumer->text) > 0;
}

void claim_service_unlock_consumer(ClaimService *service, const Uuid *consumer)
{
        bool was_taken = string_set_remove(&service->locked_consumers, consumer->text);

        assert(was_taken);
}

void claim_service_watch(ClaimService *service,
                         void (*watch)(ClaimEvent event, const Claim *claim, void *userdata),
                         void *userdata)
{
        service->watch = watch;
        service->watch_userdata = userdata;
}

void claim_service_watch_cards(ClaimService *service, void (*watch)(void *userdata), void *userdata)
{
        if (!service || (!watch && service->watch_cards_userdata != userdata))
                return;
        service->watch_cards = watch;
        service->watch_cards_userdata = watch ? userdata : NULL;
}

void claim_service_note_cards(ClaimService *service)
{
        if (service->watch_cards)
                service->watch_cards(service->watch_cards_userdata);
}

/* Returns whether the claim has a device that must be cleaned after each guest. */
static bool has_cleaned_device(const ClaimService *service, const Claim *claim)
{
        for (size_t i = 0; service->facts && i < claim->n_devices; i++) {
                const HostPci *pci =
                        uuid_empty(&claim->devices[i].mdev)
                                ? host_facts_find_pci(service->facts, claim->devices[i].address)
                                : NULL;

                if (pci && pci->must_be_cleaned)
                        return true;
        }
        return false;
}

/* Returns whether the change of the claim changes what a card or a set of devices can offer. */
static bool changes_card(const ClaimService *service, ClaimEvent event, const Claim *claim)
{
        for (size_t i = 0; service->facts && i < claim->n_devices; i++) {
                const HostPci *pci =
                        claim_device_is_function(&claim->devices[i])
                                ? host_facts_find_pci(service->facts, claim->devices[i].address)
                                : NULL;

                if (pci && pci->vgpu_type &&
                    (event == CLAIM_EVENT_REMOVED || service->facts->cards[pci->card].n_types > 1))
                        return true;
                if (uuid_empty(&claim->devices[i].mdev) &&
                    host_facts_find_set(service->facts, claim->devices[i].address))
                        return true;
        }
        return false;
}

/* Sets former_type of the function, the type that it had for the claim that ended. */
static void mark_function(HostFacts *facts, const struct ReleasedDevice *released)
{
        for (size_t i = 0; i < facts->n_cards; i++) {
                VgpuFunction *function = vgpu_card_find(&facts->cards[i], released->address);

                if (function)
                        function->former_type =
                                vgpu_card_find_type(&facts->cards[i], released->type);
        }
}

/* Withholds the device of a partition, which is active for no claim now. */
static void withhold_device(HostFacts *facts, const char *address)
{
        for (size_t i = 0; i < facts->n_pci; i++)
                if (facts->pci[i].set && strcmp(facts->pci[i].address, address) == 0)
                        facts->pci[i].withheld = true;
}

void claim_service_mark_released(ClaimComparison *comparison)
{
        size_t n = 0;

        for (size_t i = 0; i < comparison->n_released; i++) {
                struct ReleasedDevice *released = &comparison->released[i];

                if (released->when_usec < comparison->facts.taken_usec) {
                        free(released->type);
                        continue;
                }
                if (released->type)
                        mark_function(&comparison->facts, released);
                else
                        withhold_device(&comparison->facts, released->address);
                comparison->released[n++] = *released;
        }
        comparison->n_released = n;
}

/* Stores the device. type: of its vGPU; NULL: it is one of a partition. */
static int add_released(ClaimComparison *comparison, const char *address, const char *type)
{
        struct ReleasedDevice *released;

        if (array_grow(&comparison->released, sizeof(struct ReleasedDevice), comparison->n_released,
                       &comparison->n_released_allocated) < 0)
                return -ENOMEM;
        released = &comparison->released[comparison->n_released];
        snprintf(released->address, sizeof(released->address), "%s", address);
        released->when_usec = clock_usec(CLOCK_REALTIME);
        released->type = type ? strdup(type) : NULL;
        if (type && !released->type)
                return -ENOMEM;
        comparison->n_released++;
        return 0;
}

/* Keeps the vGPU functions of an ended claim, and its devices of partitions, until a poll begins
 * after its end. */
static void note_released(ClaimService *service, const Claim *claim)
{
        const HostConfig *config = service->settings.driver;

        for (size_t i = 0; i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];
                bool is_function = claim_device_is_function(device);

                if (!is_function && !(config && uuid_empty(&device->mdev) &&
                                      prepare_wanted_has_units(config, device->address)))
                        continue;
                if (add_released(&service->comparison, device->address,
                                 is_function ? device->mdev_type : NULL) < 0)
                        log_warning("Out of memory. Device %s can be given away too early.",
                                    device->address);
        }
        claim_service_mark_released(&service->comparison);
}

void claim_service_record(ClaimService *service, const EventNote *note)
{
        Error error = ERROR_NULL;
        int r = service->claims ? claims_note(service->claims, note, &error) : 0;

        if (r != 0)
                log_debug("Cannot record an event: %s", error_text(&error, r));
}

void claim_service_notify(ClaimService *service, ClaimEvent event, const Claim *claim)
{
        service->n_changes++;
        if (event != CLAIM_EVENT_REMOVED)
                claim_service_touch(service, claim->id);
        else
                note_released(service, claim);
        service->last_id = MAX(service->last_id, claim->id);
        /* The announced change was written, so the disk accepts writes again. */
        if (service->error_is_of_write)
                set_error(service, 0, NULL);
        prepare_wanted_note(&service->wanted, service->settings.driver,
                            service->comparison.snapshot, claim);
        if (service->watch_cards &&
            (changes_card(service, event, claim) || has_cleaned_device(service, claim)))
                service->watch_cards(service->watch_cards_userdata);
        if (service->watch)
                service->watch(event, claim, service->watch_userdata);
}

void claim_service_on_adopted(ClaimService *service, void (*adopted)(void *userdata),
                              void *userdata)
{
        service->adopted = adopted;
        service->adopted_userdata = userdata;
}

void claim_service_set(ClaimService *service, const ClaimSettings *settings)
{
        service->settings = *settings;
        service->comparison.driver_is_new = true;
        set_rules(service);
}

void claim_service_set_tree(ClaimService *service, const ProviderTree *tree)
{
        if (service->tree_is_stored && provider_tree_equal(service->tree, tree))
                return;
        provider_tree_free(service->tree);
        service->tree = provider_tree_ref(tree);
        service->tree_is_stored = false;
        if (service->claims)
                store_tree(service);
}

void claim_service_set_node(ClaimService *service, const char *node)
{
        char *copy = strdup(node);

        if (!copy || (service->claims && claims_set_node(service->claims, node) < 0)) {
                free(copy);
                log_warning("Out of memory. New claims still belong to node %s.", service->node);
                return;
        }
        free(service->node);
        service->node = copy;
}

size_t claim_service_count(ClaimService *service)
{
        uint64_t n;
        int r;

        if (!service->claims)
                return 0;
        r = claims_count(service->claims, &n, NULL);
        /* The file is closed later: a watcher counts claims while its caller uses the database. */
        service->lost = service->lost || is_lost(r);
        return r == 0 ? n : 0;
}
