/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/database.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/follow.h"

/* The main loop waits for nobody's lock longer than this: no other agent has the folder, and who
 * looks at the file by hand does not keep it. */
#define BUSY_USEC (500 * USEC_PER_MSEC)

struct ClaimService {
        char *path, *name, *node; /* of the database, of the host, of its root provider */
        ClaimSettings settings;
        bool driver_is_new; /* since the facts were made */
        Claims *claims;
        Error error;              /* why claims cannot be used; code 0: they can */
        bool error_is_of_write;   /* the file is open, and a write is worth trying */
        bool lost;                /* claims is not what it was, and is closed by the next tend */
        uint64_t built_usec;      /* since when there is an empty database, 0: it was not empty */
        char *closed, *hint;      /* see claim_service_set_closed(); NULL: nothing */
        ProviderTree *remembered; /* the host as the database had it when it was opened, or NULL */
        ProviderTree *tree;  /* the host that claims are fitted to; NULL before the first one */
        bool tree_is_stored; /* the database has it */
        bool tree_is_absent; /* Placement did not have it when it was read last */
        ClaimComparison comparison;
        ReconcileProblems findings;
        StringSet in_hand; /* consumers */
        ClockWatch clock;
        int64_t last_id;  /* of the claims that were made */
        int64_t known_id; /* the same, when the clock was looked at last */
        ClaimWatch watch;
        void *watch_userdata;
};

int claim_service_new(ClaimService **ret, const char *path, const char *host,
                      const ClaimSettings *settings)
{
        _cleanup_(claim_service_freep) ClaimService *service = calloc(1, sizeof(ClaimService));

        if (!service)
                return -ENOMEM;
        service->path = path ? strdup(path) : NULL;
        service->name = strdup(host);
        service->node = strdup(host); /* until the first poll */
        service->settings = *settings;
        if ((path && !service->path) || !service->name || !service->node)
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
        claim_comparison_done(&service->comparison);
        reconcile_problems_done(&service->findings);
        string_set_done(&service->in_hand);
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

/* The file is not what it was, or is damaged: to be closed and opened anew. */
static bool is_lost(int result)
{
        return result == -ESTALE || result == -EUCLEAN;
}

/* One line is logged when it begins, one when it ends. result is one of claims.h, with its words; 0
 * ends it. */
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
                        "Claims cannot be taken: %s. Everything else goes on; trying again with every cycle.",
                        service->error.text);
}

/* The next claim_service_tend() opens it. */
static void forget_lost(ClaimService *service, int result)
{
        if (is_lost(result))
                service->claims = claims_free(service->claims);
}

/* Of a file that is open: what it did not take is an error until a write succeeds, but for a lock
 * that another process has, for what is the caller's own fault, and for want of memory. */
static void note_result(ClaimService *service, int result, const Error *words)
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
        const HostView *view;
        ProviderTree *tree;
        int r = claims_host(service->claims, &view, &error);

        if (r == 0 && provider_tree_copy(&tree, view->tree) < 0)
                r = error_oom(&error);
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

        if (claims_list(service->claims, CLAIMS_LIVING, NULL, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++)
                service->last_id = MAX(service->last_id, list.claims[i]->id);
}

/* A claim database that replaces a lost one does not know what consumers without a guest have. */
static bool is_unread(const ClaimService *service)
{
        return service->claims && service->settings.with_placement &&
               claims_is_unread(service->claims);
}

static void set_rules(ClaimService *service)
{
        const ClaimsRules rules = {
                .expiry_usec = service->settings.expiry_usec,
                .owes_guests = service->settings.owes_guests,
                .closed = service->closed,
                .hint = service->hint,
                .unknown = is_unread(service) ? RECONCILE_UNREAD : NULL,
        };

        if (service->claims)
                claims_set_rules(service->claims, &rules);
}

void claim_service_set_closed(ClaimService *service, const char *reason, const char *hint)
{
        free(service->closed);
        free(service->hint);
        service->closed = reason ? strdup(reason) : NULL;
        service->hint = hint ? strdup(hint) : NULL;
        if ((reason && !service->closed) || (hint && !service->hint))
                log_warning("Out of memory: claims do not know what is cordoned, ignoring.");
        set_rules(service);
}

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
        if (r < 0)
                return;
        set_rules(service);
        claims_set_facts(service->claims, claim_service_facts(service));
        note_last_id(service);
        /* An empty file, or one of an older program: the guests are looked at again. */
        claim_service_look_again(service);
        remember_tree(service);
}

void claim_service_check(ClaimService *service, int result)
{
        if (!is_lost(result) || !service->claims)
                return;
        log_warning("The claim database %s is not what it was; opening it anew.", service->path);
        service->claims = claims_free(service->claims);
        claim_service_tend(service);
}

void claim_service_note(ClaimService *service, int result, const Error *words)
{
        if (is_lost(result))
                claim_service_check(service, result);
        else
                note_result(service, result, words);
}

/* Has the disk room again, or whatever it lacked? */
static void try_write(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = claims_probe(service->claims, &error);

        if (r == 0)
                set_error(service, 0, NULL);
        else
                note_result(service, r, &error);
}

static void store_tree(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = claims_set_providers(service->claims, service->tree, &error);

        service->tree_is_stored = r == 0;
        set_error(service, r, &error);
        forget_lost(service, r);
}

/* Those that ended at that moment. */
static void note_expired(ClaimService *service, uint64_t ended_usec)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(service->claims, CLAIMS_ENDED, NULL, &list, NULL) != 0)
                return;
        for (size_t i = 0; i < list.n_claims; i++) {
                const Claim *claim = list.claims[i];
                char id[24];

                if (claim->ended_usec != ended_usec)
                        continue;
                snprintf(id, sizeof(id), "%" PRId64, claim->id);
                log_event(LOG_NOTICE, NULL,
                          LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text),
                          "Released claim %s of %s: it was not confirmed in time.", id,
                          claim->consumer.text);
                claim_service_notify(service, CLAIM_EVENT_REMOVED, claim);
        }
}

/* Claims expire so long after they were made, whatever the clock shows meanwhile. */
static void move_expiry(ClaimService *service, const ClockJump *jump)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = claims_list(service->claims, CLAIMS_LIVING, NULL, &list, NULL);

        for (size_t i = 0; r == 0 && i < list.n_claims; i++) {
                Claim *claim = list.claims[i];

                if (claim->state != CLAIM_STATE_CLAIMED || claim->expires_usec == 0 ||
                    (claim->id > service->known_id &&
                     !clock_jump_is_before(jump, claim->created_usec)))
                        continue;
                claim->expires_usec = clock_jump_move(jump, claim->expires_usec);
                if (claims_extend(service->claims, claim->id, claim->expires_usec, NULL) == 0)
                        claim_service_notify(service, CLAIM_EVENT_CHANGED, claim);
        }
}

static void log_jump(const ClockJump *jump)
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
                log_jump(&jump);
                claim_comparison_follow_clock(&service->comparison, &jump);
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
        if (n > 0)
                note_expired(service, usec);
        note_result(service, r, &error);
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
        claim_comparison_touch(&service->comparison, claim, clock_usec(CLOCK_REALTIME));
}

bool claim_service_take_in_hand(ClaimService *service, const Uuid *consumer)
{
        return string_set_add(&service->in_hand, consumer->text) > 0;
}

void claim_service_let_go(ClaimService *service, const Uuid *consumer)
{
        bool was_taken = string_set_remove(&service->in_hand, consumer->text);

        assert(was_taken);
}

/* False when it is out of memory. */
static bool set_facts(ClaimService *service, const Snapshot *snapshot, const Snapshot *guests)
{
        if (claim_comparison_set_polls(&service->comparison, service->settings.driver, snapshot,
                                       guests) < 0) {
                log_warning(
                        "Out of memory: claims go on with the guests as they were before, ignoring.");
                return false;
        }
        if (service->claims)
                claims_set_facts(service->claims, &service->comparison.facts);
        return true;
}

void claim_service_set_snapshot(ClaimService *service, const Snapshot *snapshot)
{
        bool known = snapshot == service->comparison.snapshot;

        if (known && !service->driver_is_new)
                return;
        if (!set_facts(service, snapshot, known ? service->comparison.guests : snapshot))
                return;
        service->driver_is_new = false;
        service->comparison.is_due = true;
}

void claim_service_set_guests(ClaimService *service, const Snapshot *snapshot)
{
        if (service->comparison.snapshot && snapshot != service->comparison.guests)
                (void)set_facts(service, service->comparison.snapshot, snapshot);
}

static void on_event(ClaimEvent event, const Claim *claim, void *userdata)
{
        claim_service_notify(userdata, event, claim);
}

static void compare(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        Error error = ERROR_NULL;
        ReconcileInput order = claim_comparison_input(&service->comparison, word);
        const ClaimReconciling reconciling = {
                .claims = service->claims,
                .order = &order,
                .memory = &service->comparison.memory,
                .problems = &service->comparison.problems,
                .notify = on_event,
                .userdata = service,
        };
        int r;

        order.expiry_usec = service->settings.expiry_usec;
        order.started_only = service->settings.started_only;
        order.unread = is_unread(service) && !service->comparison.absent;
        r = claim_reconcile(&reconciling, wanted, &error);
        if (r != 0) {
                log_debug("Claims and guests could not be compared: %s", error_text(&error, r));
                service->comparison.is_due = true;
        }
        set_rules(service);
        note_result(service, r, &error);
}

void claim_service_reconcile(ClaimService *service, ReconcileWord word, ClaimWanted *wanted)
{
        if (!service->claims)
                return;
        follow_clock(service);
        if (word == RECONCILE_CAN_ASK && is_unread(service))
                claim_service_look_again(service);
        if (!service->comparison.is_due || !service->tree_is_stored)
                return;
        service->comparison.is_due = false;
        compare(service, word, wanted);
        claim_comparison_end(&service->comparison, wanted && !claim_wanted_is_empty(wanted));
        /* What expired after the poll began may have a guest that it could not see. */
        if (service->claims && word == RECONCILE_ALONE)
                expire(service, service->comparison.facts.taken_usec);
}

static bool has_follower(ClaimService *service)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (claims_list(service->claims, CLAIMS_LIVING, NULL, &list, NULL) != 0)
                return false;
        for (size_t i = 0; i < list.n_claims; i++)
                if (claim_follows(list.claims[i]))
                        return true;
        return false;
}

bool claim_service_wants_held(ClaimService *service, uint64_t stamp)
{
        /* A complete read, which is wanted for a new database, includes these. */
        if (!service->claims || !service->comparison.is_due || !service->tree_is_stored ||
            stamp == service->comparison.held_stamp || is_unread(service))
                return false;
        if (has_follower(service))
                return true;
        /* A claim that is made from here on is made of what Placement has by then. */
        claim_comparison_set_held(&service->comparison, stamp, NULL);
        return false;
}

void claim_service_set_held(ClaimService *service, uint64_t stamp, Allocations *held)
{
        claim_comparison_set_held(&service->comparison, stamp, held);
}

void claim_service_answer(ClaimService *service, const ClaimWanted *asked, Allocations *holding)
{
        const HostView *view = NULL;

        if (service->claims && claims_host(service->claims, &view, NULL) != 0)
                view = NULL;
        service->tree_is_absent = asked->absent;
        claim_comparison_answer(&service->comparison, asked, holding, view,
                                view ? claims_node(service->claims) : NULL);
}

void claim_service_note_published(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = 0;

        if (service->tree_is_absent && is_unread(service))
                r = claims_note_read(service->claims, &error);
        service->tree_is_absent = false;
        set_rules(service);
        note_result(service, r, &error);
}

void claim_service_ask_all(ClaimService *service)
{
        service->comparison.urgent_usec = clock_usec(CLOCK_REALTIME);
}

const ReconcileProblems *claim_service_problems(const ClaimService *service)
{
        return &service->comparison.problems;
}

const HostFacts *claim_service_facts(const ClaimService *service)
{
        return service->comparison.snapshot ? &service->comparison.facts : NULL;
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
        free(service->comparison.away);
        service->comparison.away = guests;
        service->comparison.n_away = n_guests;
}

void claim_service_look_again(ClaimService *service)
{
        service->comparison.is_due = service->comparison.snapshot != NULL;
}

uint64_t claim_service_get_built_usec(const ClaimService *service)
{
        return service->built_usec;
}

void claim_service_watch(ClaimService *service, ClaimWatch watch, void *userdata)
{
        service->watch = watch;
        service->watch_userdata = userdata;
}

void claim_service_record(ClaimService *service, const EventNote *note)
{
        Error error = ERROR_NULL;
        int r = service->claims ? claims_note(service->claims, note, &error) : 0;

        if (r != 0)
                log_debug("What happened is not written down: %s", error_text(&error, r));
}

void claim_service_notify(ClaimService *service, ClaimEvent event, const Claim *claim)
{
        if (event != CLAIM_EVENT_REMOVED)
                claim_service_touch(service, claim->id);
        service->last_id = MAX(service->last_id, claim->id);
        /* what is announced was written */
        if (service->error_is_of_write)
                set_error(service, 0, NULL);
        if (service->watch)
                service->watch(event, claim, service->watch_userdata);
}

void claim_service_set(ClaimService *service, const ClaimSettings *settings)
{
        service->settings = *settings;
        service->driver_is_new = true;
        set_rules(service);
}

bool claim_service_is_started_only(const ClaimService *service)
{
        return service->settings.started_only;
}

static bool is_away(const ClaimComparison *comparison, const Uuid *guest)
{
        for (size_t i = 0; i < comparison->n_away; i++)
                if (uuid_equal(&comparison->away[i], guest))
                        return true;
        return false;
}

bool claim_service_has_guest(ClaimService *service, const Uuid *consumer)
{
        const HostDomain *domain = host_facts_find_domain(&service->comparison.facts, consumer);
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (!domain || !service->claims || service->comparison.snapshot->guests_unknown ||
            (service->settings.started_only && !domain->running))
                return false;
        return (domain->running || !is_away(&service->comparison, consumer)) &&
               claims_list(service->claims, CLAIMS_OF_GUEST, consumer->text, &list, NULL) == 0 &&
               list.n_claims == 0;
}

void claim_service_note_stopped(ClaimService *service, const Uuid *guest)
{
        HostFacts *facts = &service->comparison.facts;

        for (size_t i = 0; i < facts->n_domains; i++)
                if (uuid_equal(&facts->domains[i].uuid, guest))
                        facts->domains[i].running = false;
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
        service->lost = service->lost || is_lost(r);
        return r == 0 ? n : 0;
}
