/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/database.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/clock-watch.h"
#include "agent/guests/facts.h"
#include "agent/guests/reconcile.h"
#include "base/array.h"
#include "base/log.h"
#include "base/message-ids.h"

/* The main loop waits for nobody's lock longer than this: no other agent has the folder, and who
 * looks at the file by hand does not keep it. */
#define BUSY_USEC (500 * USEC_PER_MSEC)

struct ClaimService {
        char *path, *host, *node;
        uint64_t expiry_usec;
        Claims *claims;
        ProviderTree *remembered; /* as the database had it when it was opened, or NULL */
        ProviderTree *tree;       /* NULL before the first one */
        bool tree_stored;         /* claims has it */
        const DriverConfig *driver;
        Snapshot *snapshot; /* that facts borrows from, or NULL */
        Snapshot *guests;   /* the same, for the domains alone: as new or newer */
        HostFacts facts;
        bool reconcile_due; /* the snapshot was not looked at yet */
        bool started_only, owes_guests;
        ClockWatch clock;
        int64_t last_id;  /* of the claims that were made */
        int64_t known_id; /* the same, when the clock was looked at last */
        ReconcileMemory memory;
        ReconcileTouched *touched; /* since the poll of the snapshot, or a little longer */
        size_t n_touched, n_touched_allocated;
        Allocations *holding;     /* what Placement has of those that were asked about */
        ReconcileAnswer *answers; /* the same, that borrow from it */
        size_t n_answers;
        uint64_t urgent_usec; /* a poll that begins after this is to be followed by asking about all
                                 without a guest; 0: none is */
        ReconcileProblems problems, findings;
        Uuid *in_hand;
        size_t n_in_hand, n_in_hand_allocated;
        char *closed, *hint; /* see claim_service_set_closed(); NULL: nothing */
        Uuid *away;          /* guests that other hosts have */
        size_t n_away;
        uint64_t built_usec; /* since when there is an empty database, 0: it was not empty */
        ClaimWatch watch;
        void *watch_userdata;
        Error error;
        bool error_logged;
        bool lost;         /* claims is not what it was, and is closed by the next tend */
        bool write_failed; /* error is of a write that was refused; the file is open */
};

int claim_service_new(ClaimService **ret, const ClaimsConfig *config, const DriverConfig *driver)
{
        _cleanup_(claim_service_freep) ClaimService *service = calloc(1, sizeof(ClaimService));

        if (!service)
                return -ENOMEM;
        service->path = config->path ? strdup(config->path) : NULL;
        service->host = strdup(config->host);
        service->node = strdup(config->node);
        service->expiry_usec = config->expiry_usec;
        service->driver = driver;
        if ((config->path && !service->path) || !service->host || !service->node)
                return -ENOMEM;
        claim_service_tend(service);
        *ret = TAKE_PTR(service);
        return 0;
}

ClaimService *claim_service_free(ClaimService *service)
{
        if (!service)
                return NULL;
        claims_free(service->claims);
        claim_facts_done(&service->facts);
        snapshot_unref(service->snapshot);
        snapshot_unref(service->guests);
        reconcile_memory_done(&service->memory);
        free(service->touched);
        free(service->in_hand);
        free(service->answers);
        allocations_free(service->holding);
        reconcile_problems_done(&service->problems);
        reconcile_problems_done(&service->findings);
        free(service->away);
        free(service->closed);
        free(service->hint);
        provider_tree_free(service->remembered);
        provider_tree_free(service->tree);
        free(service->path);
        free(service->host);
        free(service->node);
        free(service);
        return NULL;
}

/* A file that is not what it was is closed; the next claim_service_tend() opens it. */
static void forget_lost(ClaimService *service, int result)
{
        if (result == -ESTALE || result == -EUCLEAN)
                service->claims = claims_free(service->claims);
}

/* One line when the trouble begins, one when it ends. */
static void set_error(ClaimService *service, int r, const Error *error)
{
        service->write_failed = false;
        if (r == 0) {
                if (service->error_logged)
                        log_notice("The claim database %s can be used again.", service->path);
                service->error_logged = false;
                service->error = ERROR_NULL;
                return;
        }
        error_setf(&service->error, r < 0 ? r : EBUSY, "%s", error_text(error, r < 0 ? r : -EBUSY));
        if (!service->error_logged)
                log_event(LOG_ERR, MESSAGE_CLAIM_STORE_LOST, NULL,
                          "Claims cannot be taken: %s. Everything else goes on; trying again with "
                          "every cycle.",
                          service->error.text);
        service->error_logged = true;
}

/* Of a file that stays open: until something is written. */
static void note_refusal(ClaimService *service, int result, const Error *error)
{
        switch (-MIN(result, 0)) {
        case 0:
        case EINVAL:
        case ENOMEM:
        case ESTALE:
        case EUCLEAN:
                return;
        default:
                set_error(service, result, error);
                service->write_failed = true;
        }
}

static void log_opened(const ClaimService *service, int opened, const Error *error)
{
        switch (opened) {
        case CLAIMS_CREATED:
                log_info("Made the claim database %s.", service->path);
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

static void remember_tree(ClaimService *service)
{
        Error error = ERROR_NULL;
        ProviderTree *tree;
        int r = claims_get_providers(service->claims, &tree, &error);

        if (r != 0) {
                log_debug("The host before this start is not known: %s", error_text(&error, r));
                return;
        }
        provider_tree_free(service->remembered);
        service->remembered = tree;
}

static void note_last_id(ClaimService *service)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(service->claims, false, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++)
                service->last_id = MAX(service->last_id, list.claims[i]->id);
}

static uint64_t clock_usec(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static void close_or_open(ClaimService *service)
{
        if (service->claims &&
            claims_set_closed(service->claims, service->closed, service->hint) < 0)
                log_warning("Out of memory: claims do not know what is cordoned, ignoring.");
}

void claim_service_set_closed(ClaimService *service, const char *reason, const char *hint)
{
        free(service->closed);
        free(service->hint);
        service->closed = reason ? strdup(reason) : NULL;
        service->hint = hint ? strdup(hint) : NULL;
        close_or_open(service);
}

static void open_store(ClaimService *service)
{
        const ClaimsConfig config = {
                .path = service->path,
                .host = service->host,
                .node = service->node,
                .expiry_usec = service->expiry_usec,
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
        service->tree_stored = false;
        if (r < 0)
                return;
        close_or_open(service);
        claims_set_facts(service->claims, service->snapshot ? &service->facts : NULL);
        claims_set_owes_guests(service->claims, service->owes_guests);
        note_last_id(service);
        /* An empty file, or one of an older program: the guests are looked at again. */
        service->reconcile_due = service->snapshot != NULL;
        remember_tree(service);
}

void claim_service_check(ClaimService *service, int result)
{
        if ((result != -ESTALE && result != -EUCLEAN) || !service->claims)
                return;
        log_warning("The claim database %s is not what it was; opening it anew.", service->path);
        service->claims = claims_free(service->claims);
        claim_service_tend(service);
}

void claim_service_note(ClaimService *service, int result, const Error *words)
{
        claim_service_check(service, result);
        note_refusal(service, result, words);
}

/* Has the disk room again, or whatever it lacked? */
static void try_write(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = claims_probe(service->claims, &error);

        if (r == 0)
                set_error(service, 0, NULL);
        else
                note_refusal(service, r, &error);
        forget_lost(service, r);
}

static void store_tree(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = claims_set_providers(service->claims, service->tree, &error);

        service->tree_stored = r == 0;
        set_error(service, r, &error);
        forget_lost(service, r);
}

/* Those that ended at that moment. */
static void tell_expired(ClaimService *service, uint64_t ended_usec)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (!service->watch || claims_list(service->claims, true, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++)
                if (list.claims[i]->ended_usec == ended_usec)
                        claim_service_tell(service, CLAIM_EVENT_REMOVED, list.claims[i]);
}

/* Claims expire so long after they were made, whatever the clock shows meanwhile. */
static void move_expiry(ClaimService *service, const ClockJump *jump)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = claims_list(service->claims, false, &list, NULL);

        for (size_t i = 0; r == 0 && i < list.n_claims; i++) {
                Claim *claim = list.claims[i];

                if (claim->state != CLAIM_STATE_CLAIMED || claim->expires_usec == 0 ||
                    (claim->id > service->known_id &&
                     !clock_jump_is_before(jump, claim->created_usec)))
                        continue;
                claim->expires_usec = clock_jump_move(jump, claim->expires_usec);
                if (claims_extend(service->claims, claim->id, claim->expires_usec, NULL) == 0)
                        claim_service_tell(service, CLAIM_EVENT_CHANGED, claim);
        }
}

static void move_missing(ClaimService *service, const ClockJump *jump)
{
        for (size_t i = 0; i < service->memory.n_items; i++) {
                ReconcileMissing *missing = &service->memory.items[i];

                missing->since_usec = clock_jump_move(jump, missing->since_usec);
                if (missing->asked_usec > 0)
                        missing->asked_usec = clock_jump_move(jump, missing->asked_usec);
        }
        for (size_t i = 0; i < service->n_touched; i++)
                service->touched[i].when_usec =
                        clock_jump_move(jump, service->touched[i].when_usec);
}

static void tell_jump(const ClockJump *jump)
{
        bool forward = jump->by_usec > 0;

        log_event(LOG_NOTICE, MESSAGE_CLOCK_JUMPED, NULL,
                  "The clock of this host was set %s by %" PRIu64
                  " s. Claims expire when they would have expired without that.",
                  forward ? "forward" : "back",
                  (uint64_t)(forward ? jump->by_usec : -jump->by_usec) / USEC_PER_SEC);
}

static void follow_clock(ClaimService *service)
{
        const ClockJump jump = clock_watch_look(&service->clock, clock_usec(CLOCK_REALTIME),
                                                clock_usec(CLOCK_BOOTTIME));

        if (jump.by_usec != 0) {
                tell_jump(&jump);
                move_missing(service, &jump);
                move_expiry(service, &jump);
        }
        service->known_id = service->last_id;
}

static void expire(ClaimService *service, uint64_t usec)
{
        Error error = ERROR_NULL;
        uint64_t n = 0;
        int r = claims_expire(service->claims, usec, &n, &error);

        if (r != 0)
                log_debug("Claims could not be checked for expiry: %s", error_text(&error, r));
        if (n > 0) {
                log_notice("Released %" PRIu64 " claim(s) that were not confirmed in time.", n);
                tell_expired(service, usec);
        }
        note_refusal(service, r, &error);
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
        if (service->tree && !service->tree_stored)
                store_tree(service);
        if (service->claims && service->write_failed)
                try_write(service);
}

void claim_service_touch(ClaimService *service, int64_t claim)
{
        /* Without memory a poll may be believed that is a moment too old: as it is without this. */
        if (array_grow(&service->touched, sizeof(ReconcileTouched), service->n_touched,
                       &service->n_touched_allocated) < 0)
                return;
        service->touched[service->n_touched++] =
                (ReconcileTouched){ .claim_id = claim, .when_usec = clock_usec(CLOCK_REALTIME) };
}

static size_t find_in_hand(const ClaimService *service, const Uuid *consumer)
{
        size_t i = 0;

        while (i < service->n_in_hand && !uuid_equal(&service->in_hand[i], consumer))
                i++;
        return i;
}

bool claim_service_take_in_hand(ClaimService *service, const Uuid *consumer)
{
        if (find_in_hand(service, consumer) < service->n_in_hand ||
            array_grow(&service->in_hand, sizeof(Uuid), service->n_in_hand,
                       &service->n_in_hand_allocated) < 0)
                return false;
        service->in_hand[service->n_in_hand++] = *consumer;
        return true;
}

void claim_service_let_go(ClaimService *service, const Uuid *consumer)
{
        size_t i = find_in_hand(service, consumer);

        assert(i < service->n_in_hand);
        service->in_hand[i] = service->in_hand[--service->n_in_hand];
}

static void forget_touched(ClaimService *service)
{
        size_t n = 0;

        for (size_t i = 0; i < service->n_touched; i++)
                if (service->touched[i].when_usec >= service->facts.taken_usec)
                        service->touched[n++] = service->touched[i];
        service->n_touched = n;
}

/* False when it is out of memory. */
static bool set_facts(ClaimService *service, const Snapshot *snapshot, const Snapshot *guests)
{
        HostFacts facts = { 0 };

        if (claim_facts_make(service->driver, snapshot, guests, &facts) < 0) {
                log_warning("Out of memory: claims go on with the guests as they were before, "
                            "ignoring.");
                return false;
        }
        snapshot_ref(snapshot);
        snapshot_ref(guests);
        claim_facts_done(&service->facts);
        snapshot_unref(service->snapshot);
        snapshot_unref(service->guests);
        service->snapshot = (Snapshot *)snapshot;
        service->guests = (Snapshot *)guests;
        service->facts = facts;
        forget_touched(service);
        if (service->claims)
                claims_set_facts(service->claims, &service->facts);
        return true;
}

void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot)
{
        if (snapshot != service->snapshot && set_facts(service, snapshot, snapshot))
                service->reconcile_due = true;
}

void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot)
{
        if (service->snapshot && snapshot != service->guests)
                (void)set_facts(service, service->snapshot, snapshot);
}

static bool is_urgent(const ClaimService *service)
{
        return service->urgent_usec > 0 && service->facts.taken_usec >= service->urgent_usec;
}

/* Its guests are those of another host. */
static bool is_recorded(const ClaimService *service)
{
        return strcmp(service->snapshot->driver, "static") == 0;
}

static void compare(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        Error error = ERROR_NULL;
        ReconcileInput order = {
                .facts = &service->facts,
                .expiry_usec = service->expiry_usec,
                .started_only = service->started_only,
                .away = service->away,
                .n_away = service->n_away,
                .word = word,
                .answers = service->answers,
                .n_answers = service->n_answers,
                .urgent = is_urgent(service),
                .touched = service->touched,
                .n_touched = service->n_touched,
                .recorded = is_recorded(service),
        };
        int r;

        r = claim_reconcile(service, service->claims, &order, &service->memory, &service->problems,
                            wanted, &error);
        if (r != 0) {
                log_debug("Claims and guests could not be compared: %s", error_text(&error, r));
                service->reconcile_due = true;
        }
        note_refusal(service, r, &error);
        forget_lost(service, r);
}

static void forget_answers(ClaimService *service)
{
        free(service->answers);
        service->answers = NULL;
        service->n_answers = 0;
        service->holding = allocations_free(service->holding);
}

void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        if (!service->claims)
                return;
        follow_clock(service);
        if (!service->reconcile_due || !service->tree_stored)
                return;
        service->reconcile_due = false;
        compare(service, word, wanted);
        forget_answers(service);
        if (wanted && wanted->n_uuids > 0)
                service->reconcile_due = true;
        else if (is_urgent(service))
                service->urgent_usec = 0;
        /* What expired after the poll began may have a guest that it could not see. */
        if (service->claims && word == RECONCILE_ALONE)
                expire(service, service->facts.taken_usec);
}

void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding)
{
        const HostView *view;

        forget_answers(service);
        service->holding = holding;
        if (!service->claims || claims_host(service->claims, &view, NULL) != 0 ||
            !(service->answers = calloc(asked->n_uuids + 1, sizeof(ReconcileAnswer))))
                return;
        for (size_t i = 0; i < asked->n_uuids; i++) {
                const Consumer *found = allocations_find(holding, &asked->uuids[i]);

                service->answers[service->n_answers++] = (ReconcileAnswer){
                        .consumer = asked->uuids[i],
                        .holding = found,
                        .here = found && claim_share_has(view, claims_node(service->claims), found),
                };
        }
}

void claim_service_ask_all(ClaimService *service)
{
        service->urgent_usec = clock_usec(CLOCK_REALTIME);
}

const ReconcileProblems *claim_service_problems(const ClaimService *service)
{
        return &service->problems;
}

const HostFacts *claim_service_facts(const ClaimService *service)
{
        return service->snapshot ? &service->facts : NULL;
}

const ReconcileProblems *claim_service_findings(const ClaimService *service)
{
        return &service->findings;
}

void claim_service_set_findings(ClaimService *service, ReconcileProblems *findings)
{
        reconcile_problems_done(&service->findings);
        service->findings = *findings;
        *findings = (ReconcileProblems){ 0 };
}

void claim_service_set_away(ClaimService *service, Uuid *guests, size_t n_guests)
{
        free(service->away);
        service->away = guests;
        service->n_away = n_guests;
}

const Uuid *claim_service_get_away(const ClaimService *service, size_t *ret_n)
{
        *ret_n = service->n_away;
        return service->away;
}

void claim_service_look_again(ClaimService *service)
{
        service->reconcile_due = service->snapshot != NULL;
}

const HostFacts *claim_service_get_facts(const ClaimService *service)
{
        return service->snapshot ? &service->facts : NULL;
}

uint64_t claim_service_get_built_usec(const ClaimService *service)
{
        return service->built_usec;
}

bool claim_service_mdev_exists(const ClaimService *service, const Uuid *mdev)
{
        return service->snapshot && host_facts_find_mdev(&service->facts, mdev);
}

void claim_service_watch(ClaimService *service, ClaimWatch watch, void *userdata)
{
        service->watch = watch;
        service->watch_userdata = userdata;
}

void claim_service_tell(ClaimService *service, ClaimEvent event, const Claim *claim)
{
        if (event != CLAIM_EVENT_REMOVED)
                claim_service_touch(service, claim->id);
        service->last_id = MAX(service->last_id, claim->id);
        /* what is told was written */
        if (service->write_failed)
                set_error(service, 0, NULL);
        if (service->watch)
                service->watch(event, claim, service->watch_userdata);
}

void claim_service_set_config(ClaimService *service, uint64_t expiry_usec,
                              const DriverConfig *driver)
{
        service->driver = driver;
        if (service->expiry_usec == expiry_usec)
                return;
        service->expiry_usec = expiry_usec;
        service->claims = claims_free(service->claims);
        claim_service_tend(service);
}

void claim_service_set_started_only(ClaimService *service, bool started_only)
{
        service->started_only = started_only;
}

bool claim_service_is_started_only(const ClaimService *service)
{
        return service->started_only;
}

bool claim_service_has_guest(ClaimService *service, const Uuid *consumer)
{
        const HostDomain *domain = host_facts_find_domain(&service->facts, consumer);
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        bool away = false;

        if (!domain || !service->claims || is_recorded(service) ||
            (service->started_only && !domain->running))
                return false;
        for (size_t i = 0; i < service->n_away && !domain->running; i++)
                away = away || uuid_equal(&service->away[i], consumer);
        return !away && claims_list_guest(service->claims, consumer, &list, NULL) == 0 &&
               list.n_claims == 0;
}

void claim_service_note_stopped(ClaimService *service, const Uuid *guest)
{
        for (size_t i = 0; i < service->facts.n_domains; i++)
                if (uuid_equal(&service->facts.domains[i].uuid, guest))
                        service->facts.domains[i].running = false;
}

void claim_service_set_owes_guests(ClaimService *service, bool owes)
{
        service->owes_guests = owes;
        if (service->claims)
                claims_set_owes_guests(service->claims, owes);
}

void claim_service_set_tree(ClaimService *service, const ProviderTree *tree)
{
        ProviderTree *copy;

        if (service->tree_stored && provider_tree_equal(service->tree, tree))
                return;
        if (provider_tree_copy(&copy, tree) < 0) {
                log_warning(
                        "Out of memory: claims go on with the host as it was before, ignoring.");
                return;
        }
        provider_tree_free(service->tree);
        service->tree = copy;
        service->tree_stored = false;
        if (service->claims)
                store_tree(service);
}

void claim_service_set_node(ClaimService *service, const char *node)
{
        char *copy = strdup(node);

        if (!copy || (service->claims && claims_set_node(service->claims, node) < 0)) {
                free(copy);
                log_warning("Out of memory: new claims are of node %s, ignoring.", service->node);
                return;
        }
        free(service->node);
        service->node = copy;
}

const ProviderTree *claim_service_get_remembered_tree(ClaimService *service)
{
        return service->remembered;
}

Claims *claim_service_get(ClaimService *service)
{
        return service->claims;
}

const Error *claim_service_error(const ClaimService *service)
{
        return &service->error;
}

size_t claim_service_count(ClaimService *service)
{
        uint64_t n;
        int r;

        if (!service->claims)
                return 0;
        r = claims_count(service->claims, &n, NULL);
        /* Not now: who watches claims counts them, while somebody goes through them. */
        service->lost = service->lost || r == -ESTALE || r == -EUCLEAN;
        return r == 0 ? n : 0;
}
