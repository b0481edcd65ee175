/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The methods that make, explain, change, move and end claims, and the methods of libvirt's hook. A
 * method reads its arguments, calls the claim queue or the claim database, logs a change of a claim
 * with its caller, and answers. Claim(), ClaimPlaced(), MoveClaim(), and Explain() of a privileged
 * caller can wait for Placement or for a poll of the guests. Such a call is kept as a WaitingCall
 * until its answer. The other methods answer at once. A claim that the consumer had before is
 * answered again, without the message about a new claim and without a notice to the watcher of the
 * claim service. PrepareGuest() recognises a new claim by its time (reply_prepared()). If the clock
 * was set back, a claim whose time falls into the call counts as new. If PrepareGuest() ends an
 * earlier claim, it logs this and notifies the watcher. A claim stays if its partition cannot be
 * used: ClaimPlaced() and CheckGuest() answer with an error. PrepareGuest() answers with an error
 * if a unit failed, and otherwise with ready false.
 *
 * Tests: tests/integration/claims/test_claims.py tests/integration/agent/test_bus_documents.py */

#include "agent/bus/methods.h"

#include <errno.h>
#include <string.h>

#include "agent/cycle/partitions.h"
#include "agent/guests/facts.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "claims/follow.h"
#include "drivers/registry.h"
#include "formats/claim-json.h"
#include "formats/format-names.h"
#include "formats/interface.h"

#define XML_MAX            (4 * 1024 * 1024) /* longest XML of a domain, in bytes */
#define PLACED_CLASSES_MAX 64                /* classes of one ClaimPlaced() */

int bus_claims_error(ClaimService *service, sd_bus_error *error, int r, const Error *words)
{
        static const char *const names[] = {
                [CLAIM_E_NO_CAPACITY] = BUS_ERROR_NO_CAPACITY,
                [CLAIM_E_UNKNOWN_CLASS] = BUS_ERROR_UNKNOWN_CLASS,
                [CLAIM_E_CONFLICT] = BUS_ERROR_CONFLICT,
                [CLAIM_E_NOT_FOUND] = BUS_ERROR_NOT_FOUND,
                [CLAIM_E_OTHER] = BUS_ERROR_OTHER,
                [CLAIM_E_TOO_HARD] = BUS_ERROR_TOO_HARD,
                [CLAIM_QUEUE_E_NOT_PLACED] = BUS_ERROR_NOT_PLACED,
                [CLAIM_QUEUE_E_REFUSED] = BUS_ERROR_REFUSED,
                [CLAIM_QUEUE_E_PLACEMENT] = BUS_ERROR_PLACEMENT,
                [CLAIM_QUEUE_E_UNAVAILABLE] = BUS_ERROR_UNAVAILABLE,
        };

        claim_service_note(service, r, words);
        if (r > 0 && r < (int)ARRAY_SIZE(names))
                return sd_bus_error_setf(error, names[r], "%s", error_text(words, -EBUSY));
        return sd_bus_error_setf(error,
                                 r == -EBUSY    ? BUS_ERROR_BUSY
                                 : r == -EINVAL ? BUS_ERROR_INVALID
                                                : BUS_ERROR_STORE,
                                 "%s", error_text(words, r));
}

int bus_claims_open(ClaimService *service, Claims **ret, sd_bus_error *error)
{
        *ret = service->claims;
        if (*ret)
                return 0;
        return sd_bus_error_setf(error, BUS_ERROR_STORE, "Claims cannot be used: %s",
                                 service->error.text);
}

/* Reads the arguments of Claim(): the consumer, then groups and options. */
static int read_request(sd_bus_message *m, ClaimRequest *request, Error *reterr)
{
        const char *consumer;
        int r = sd_bus_message_read(m, "s", &consumer);

        if (r < 0)
                return r;
        if (uuid_from_text(consumer, &request->consumer) < 0)
                return error_setf(reterr, EINVAL, "The consumer is not a uuid: \"%.40s\"",
                                  consumer);
        return bus_read_resources(m, request, reterr);
}

/* Returns the document of a claim, NULL if memory ran out. The caller frees it. */
static char *format_claim(const ClaimService *service, const Claim *claim)
{
        _cleanup_json_ json_t *document = claim_to_json(claim, service->facts);

        return json_object_set_new(document, "format", json_string(CLAIM_FORMAT)) < 0
                       ? NULL
                       : json_dumps(document, JSON_COMPACT);
}

/* Answers Claim() with the id and the document of the claim. */
static int reply_claim(sd_bus_message *call, const ClaimService *service, const Claim *claim)
{
        _cleanup_free_ char *text = format_claim(service, claim);

        return text ? sd_bus_reply_method_return(call, BUS_CLAIM_OUT, claim->id, text) : -ENOMEM;
}

/* A call whose answer depends on the claim queue, which waits for Placement or for the guests. When
 * the queue has the call, its callback frees the structure. */
typedef struct WaitingCall {
        sd_bus_message *call; /* owned; request borrows its texts */
        ClaimService *service;
        BusCaller caller;
        ClaimRequest request;
        StringSet classes; /* arguments of ClaimPlaced() */
        bool writes;       /* Explain(): see claim_queue_writes() */
} WaitingCall;

static WaitingCall *waiting_call_free(WaitingCall *waiting)
{
        claim_request_done(&waiting->request);
        string_set_done(&waiting->classes);
        sd_bus_message_unref(waiting->call);
        free(waiting);
        return NULL;
}
DEFINE_CLEANUP(WaitingCall *, waiting_call_free);

static int waiting_call_new(WaitingCall **ret, sd_bus_message *call, ClaimService *service)
{
        WaitingCall *waiting = calloc(1, sizeof(WaitingCall));

        if (!waiting)
                return -ENOMEM;
        waiting->call = sd_bus_message_ref(call);
        waiting->service = service;
        *ret = waiting;
        return 0;
}

/* Answers the waiting call with the bus error of a result. Does not free the call. */
static void answer_error(WaitingCall *waiting, int result, const Error *words)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

        (void)bus_claims_error(waiting->service, &error, result, words);
        (void)sd_bus_reply_method_error(waiting->call, &error);
}

/* Size of the text about the amounts and devices of a claim. Unit: bytes. */
#define HELD_MAX 400

/* Writes the amounts and devices of a claim, for example "VCPU=2 of demo; VGPU=1 of gpu;
 * 0000:41:00.0". A longer text is cut. */
static void format_held(const Claim *claim, char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < claim->n_allocations && n < size; i++) {
                _cleanup_free_ char *amounts = resources_format(&claim->allocations[i].resources);

                n += (size_t)snprintf(text + n, size - n, "%s%s of %s", i > 0 ? "; " : "",
                                      amounts ? amounts : "?", claim->provider_names[i]);
        }
        for (size_t i = 0; i < claim->n_devices && n < size; i++) {
                const ClaimDevice *device = &claim->devices[i];
                const char *name = !uuid_empty(&device->mdev) ? device->mdev.text
                                   : device->address[0]       ? device->address
                                                              : device->name;

                n += (size_t)snprintf(text + n, size - n, "%s%s", i > 0 ? ", " : "; ", name);
        }
}

/* Logs the caller's change of a claim, with its amounts and devices. The entry has fields for
 * claim, consumer, caller and first device. format yields the change, for example "created for …"
 * or "released". reason can be "" or NULL. */
static _printf_(4, 5) void log_change(const BusCaller *caller, const Claim *claim,
                                      const char *reason, const char *format, ...)
{
        char what[160], held[HELD_MAX], id[24];
        const char *device = claim->n_devices > 0 ? claim->devices[0].name : NULL;
        va_list ap;

        va_start(ap, format);
        vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        snprintf(id, sizeof(id), "%" PRId64, claim->id);
        format_held(claim, held, sizeof(held));
        log_event(LOG_INFO, MESSAGE_CLAIM_CALLED,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text,
                             LOG_FIELD_CALLER, caller->author.text, LOG_FIELD_DEVICE, device),
                  "Claim %s %s by %s%s%s; %s.", id, what, caller->author.text,
                  reason && reason[0] ? ": " : "", reason ? reason : "", held);
}

/* Answers Claim(). is_new is false if the consumer had this claim before; then nothing is
 * logged. */
static void on_claimed(int result, const Claim *claim, bool is_new, const Error *error,
                       void *userdata)
{
        _cleanup_(waiting_call_freep) WaitingCall *waiting = userdata;

        if (result != 0) {
                answer_error(waiting, result, error);
                return;
        }
        if (is_new) {
                log_change(&waiting->caller, claim, "", "created for %s", claim->consumer.text);
                claim_service_notify(waiting->service, CLAIM_EVENT_ADDED, claim);
        }
        if (reply_claim(waiting->call, waiting->service, claim) < 0)
                answer_error(waiting, -ENOMEM, error);
}

int bus_claim(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
              sd_bus_error *error)
{
        ClaimService *service = config->claims;
        _cleanup_(waiting_call_freep) WaitingCall *waiting = NULL;
        Error words = ERROR_NULL;
        Claims *claims;
        int r;

        if (waiting_call_new(&waiting, call, service) < 0)
                return -ENOMEM;
        waiting->caller = *caller;
        r = read_request(call, &waiting->request, &words);
        if (r < 0)
                return bus_claims_error(service, error, r == -ENOMEM ? r : -EINVAL, &words);
        waiting->request.by = &waiting->caller.author;
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        claim_queue_claim(config->queue, &waiting->request, on_claimed, waiting);
        /* on_claimed() frees "waiting", possibly before claim_queue_claim() returns. */
        waiting = NULL;
        return 1;
}

/* Servers that start */

/* Reads the arguments of ClaimPlaced(). */
static int read_placed(sd_bus_message *m, Uuid *ret_consumer, StringSet *classes, Error *reterr)
{
        const char *consumer, *item;
        int r = sd_bus_message_read(m, "s", &consumer);

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        if (r < 0)
                return r;
        if (uuid_from_text(consumer, ret_consumer) < 0)
                return error_setf(reterr, EINVAL, "The consumer is not a uuid: \"%.40s\"",
                                  consumer);
        while ((r = sd_bus_message_read(m, "s", &item)) > 0) {
                if (!resource_class_valid(item))
                        return error_setf(reterr, EINVAL, "\"%.60s\" is not a resource class",
                                          item);
                if (classes->n_items >= PLACED_CLASSES_MAX)
                        return error_setf(reterr, EINVAL, "More than %d resource classes",
                                          PLACED_CLASSES_MAX);
                if (string_set_add(classes, item) < 0)
                        return error_oom(reterr);
        }
        if (r < 0)
                return r;
        return classes->n_items > 0
                       ? sd_bus_message_exit_container(m)
                       : error_setf(reterr, EINVAL, "The list of resource classes is empty");
}

int bus_check_claim(sd_bus_message *call, ClaimService *service, bool placed, sd_bus_error *error)
{
        _cleanup_(claim_request_done) ClaimRequest request = { 0 };
        _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
        Error words = ERROR_NULL;
        Uuid consumer;
        int r = placed ? read_placed(call, &consumer, &classes, &words)
                       : read_request(call, &request, &words);

        return r < 0 ? bus_claims_error(service, error, r == -ENOMEM ? r : -EINVAL, &words) : 0;
}

/* Returns 0 if a guest can use the partitions of the claim now. Otherwise returns a result for
 * bus_claims_error(), with words: -EBUSY while one is not active yet, or the record cannot be
 * read, and CLAIM_QUEUE_E_UNAVAILABLE if a unit failed. */
static int check_partitions(const ClaimService *service, const Claim *claim, Error *words)
{
        int r = partitions_check_claim(service, claim, words);

        return r == -EIO ? CLAIM_QUEUE_E_UNAVAILABLE : r;
}

/* Answers ClaimPlaced(). is_new is false if the server had this claim before. If a partition of the
 * claim is not active, the answer is an error, and the claim stays. */
static void on_placed(int result, const Claim *claim, bool is_new, const Error *error,
                      void *userdata)
{
        _cleanup_(waiting_call_freep) WaitingCall *waiting = userdata;
        _cleanup_free_ char *text = NULL;
        Error words = ERROR_NULL;

        if (result != 0) {
                answer_error(waiting, result, error);
                return;
        }
        if (is_new) {
                log_change(&waiting->caller, claim, "", "created for server %s, which starts,",
                           claim->consumer.text);
                claim_service_notify(waiting->service, CLAIM_EVENT_ADDED, claim);
        }
        result = check_partitions(waiting->service, claim, &words);
        if (result != 0) {
                answer_error(waiting, result, &words);
                return;
        }
        text = format_claim(waiting->service, claim);
        if (text)
                (void)sd_bus_reply_method_return(waiting->call, "s", text);
        else
                (void)sd_bus_reply_method_errno(waiting->call, -ENOMEM, NULL);
}

int bus_claim_placed(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                     sd_bus_error *error)
{
        ClaimService *service = config->claims;
        _cleanup_(waiting_call_freep) WaitingCall *waiting = NULL;
        Error words = ERROR_NULL;
        Claims *claims;
        Uuid consumer;
        int r;

        if (!service->facts)
                return sd_bus_error_setf(error, BUS_ERROR_NOT_READY, "The host was not polled yet");
        if (waiting_call_new(&waiting, call, service) < 0)
                return -ENOMEM;
        waiting->caller = *caller;
        r = read_placed(call, &consumer, &waiting->classes, &words);
        if (r < 0)
                return bus_claims_error(service, error, r == -ENOMEM ? r : -EINVAL, &words);
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        claim_queue_attach(config->queue, &consumer, &waiting->classes, &waiting->caller.author,
                           on_placed, waiting);
        /* on_placed() frees "waiting", possibly before claim_queue_attach() returns. */
        waiting = NULL;
        return 1;
}

static json_t *verdict_to_json(const FitVerdict *verdict)
{
        return json_pack("{ss ss ss ss ss so so so ss}", "group", verdict->suffix, "provider",
                         verdict->provider.text, "name", verdict->provider_name, "class",
                         verdict->resource_class, "term", verdict->term, "asked",
                         json_from_u64(verdict->asked), "free", json_from_u64(verdict->free_amount),
                         "missing", json_from_u64(verdict->missing), "text", verdict->text);
}

static json_t *verdicts_to_json(const FitVerdicts *verdicts, bool fits, const char *summary)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < verdicts->n_items; i++)
                if (json_array_append_new(array, verdict_to_json(&verdicts->items[i])) < 0)
                        return NULL;
        return array ? json_pack("{ss sb ss sO sI}", "format", EXPLAIN_FORMAT, "fits", (int)fits,
                                 "summary", summary, "providers", array, "omitted",
                                 (json_int_t)verdicts->n_omitted)
                     : NULL;
}

/* Answers with the document of Explain(): whether the request fits the known state, and the reasons
 * of the providers, of which some can be omitted. */
static int explain_known(const WaitingCall *waiting, sd_bus_error *error)
{
        _cleanup_(fit_verdicts_done) FitVerdicts verdicts = { 0 };
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        Error words = ERROR_NULL;
        Claims *claims;
        int r = bus_claims_open(waiting->service, &claims, error);

        if (r < 0)
                return r;
        r = claims_explain(claims, &waiting->request.resources, waiting->writes,
                           EXPLAIN_PATIENCE_USEC, &verdicts, &words);
        if (r < 0 || r == CLAIM_E_TOO_HARD)
                return bus_claims_error(waiting->service, error, r, &words);
        document = verdicts_to_json(&verdicts, r == 0, r == 0 ? "" : words.text);
        text = document ? json_dumps(document, JSON_COMPACT) : NULL;
        return text ? sd_bus_reply_method_return(waiting->call, "s", text) : -ENOMEM;
}

/* Answers Explain() when the wait of claim_queue_refresh() has ended. */
static void on_looked(int result, const Claim *claim, bool is_new, const Error *words,
                      void *userdata)
{
        _cleanup_(waiting_call_freep) WaitingCall *waiting = userdata;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        if (result != 0) {
                answer_error(waiting, result, words);
                return;
        }
        r = explain_known(waiting, &error);
        if (r < 0)
                (void)sd_bus_reply_method_errno(waiting->call, r, &error);
}

/* If waits is true, first waits for the guests as a claim of the same request does
 * (claim_queue_refresh()). Explain() omits the second wait of a claim: a placed claim that
 * does not fit also waits for CLAIM_REFRESH_HOST. For users other than root and the agent's own
 * user, waits is false: they must not make the agent ask libvirt. */
int bus_explain(sd_bus_message *call, const BusConfig *config, bool waits, sd_bus_error *error)
{
        _cleanup_(waiting_call_freep) WaitingCall *waiting = NULL;
        Error words = ERROR_NULL;
        int r;

        if (waiting_call_new(&waiting, call, config->claims) < 0)
                return -ENOMEM;
        r = bus_read_resources(call, &waiting->request, &words);
        if (r < 0)
                return bus_claims_error(config->claims, error, r == -ENOMEM ? r : -EINVAL, &words);
        waiting->writes = claim_queue_writes(config->queue);
        if (!waits)
                return explain_known(waiting, error);
        claim_queue_refresh(config->queue, &waiting->request, on_looked, waiting);
        waiting = NULL;
        return 1;
}

/* Answers MoveClaim(). A repeated move has the same answer and is not logged. */
static void on_claim_moved(int result, const Claim *claim, bool is_new, const Error *error,
                           void *userdata)
{
        _cleanup_(waiting_call_freep) WaitingCall *waiting = userdata;

        if (result != 0 || !claim) {
                answer_error(waiting, result != 0 ? result : CLAIM_E_NOT_FOUND, error);
                return;
        }
        if (is_new) {
                log_change(&waiting->caller, claim, "", "moved to consumer %s",
                           claim->consumer.text);
                claim_service_notify(waiting->service, CLAIM_EVENT_CHANGED, claim);
        }
        (void)sd_bus_reply_method_return(waiting->call, "x", claim->id);
}

/* Reads and checks the arguments of MoveClaim(). *type is the new consumer type. It is borrowed
 * from the call. With "" the agent decides about the type. */
static int read_move(sd_bus_message *call, Uuid *from, Uuid *to, const char **type, Error *reterr)
{
        const char *texts[2];
        int r = sd_bus_message_read(call, "sss", &texts[0], &texts[1], type);

        if (r < 0)
                return r;
        if (uuid_from_text(texts[0], from) < 0 || uuid_from_text(texts[1], to) < 0 ||
            uuid_equal(from, to))
                return error_setf(reterr, EINVAL,
                                  "A move of a claim needs the uuids of two different consumers");
        if ((*type)[0] && !resource_class_valid(*type))
                return error_setf(reterr, EINVAL, "\"%.60s\" is not a consumer type", *type);
        return 0;
}

int bus_move_claim(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                   sd_bus_error *error)
{
        _cleanup_(waiting_call_freep) WaitingCall *waiting = NULL;
        Error words = ERROR_NULL;
        const char *type;
        Uuid from, to;
        int r;

        if (waiting_call_new(&waiting, call, config->claims) < 0)
                return -ENOMEM;
        waiting->caller = *caller;
        r = read_move(call, &from, &to, &type, &words);
        if (r < 0)
                return bus_claims_error(config->claims, error, r, &words);
        claim_queue_move(config->queue, &from, &to, type[0] ? type : NULL, &waiting->caller.author,
                         on_claim_moved, waiting);
        waiting = NULL;
        return 1;
}

/* The result of a method that changes a claim. answer() uses it for the reply, the journal and the
 * watcher of the claim service. */
typedef struct Outcome {
        ClaimEvent event;
        const char *what;   /* verb of the journal text, for example "released" */
        const char *reason; /* reason for the journal; NULL: none */
        int64_t id;
        int result; /* 0, or a failure of claims.h or the claim queue; words has its text */
        Error words;
} Outcome;

/* Answers a call that returns no values. After success, reads the changed claim, logs the change,
 * and notifies the watcher of the claim service. If the claim cannot be read, only answers. */
static int answer(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                  const Outcome *outcome, sd_bus_error *error)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Claims *claims = service->claims;

        if (outcome->result != 0)
                return bus_claims_error(service, error, outcome->result, &outcome->words);
        if (claims && claims_get(claims, outcome->id, &claim, NULL) == 0) {
                log_change(caller, claim, outcome->reason, "%s", outcome->what);
                claim_service_notify(service, outcome->event, claim);
        }
        return sd_bus_reply_method_return(call, NULL);
}

/* Handles the methods whose first argument is the id of a claim. */
int bus_change_claim(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                     sd_bus_error *error)
{
        enum { CONFIRM, EXTEND, ABORT, RELEASE, RELEASE_ALL } i = 0;
        static const struct {
                const char *method, *types, *what;
                ClaimEvent event;
        } changes[] = {
                [CONFIRM] = { "Confirm", "x", "confirmed", CLAIM_EVENT_CHANGED },
                [EXTEND] = { "Extend", "xt", "extended", CLAIM_EVENT_CHANGED },
                [ABORT] = { "Abort", "xs", "aborted", CLAIM_EVENT_REMOVED },
                [RELEASE] = { "Release", "xs", "released", CLAIM_EVENT_REMOVED },
                [RELEASE_ALL] = { "ReleaseAllocations", "xs", "released", CLAIM_EVENT_REMOVED },
        };
        Outcome outcome = { 0 };
        uint64_t expires_usec;
        Claims *claims;
        int r;

        while (strcmp(changes[i].method, sd_bus_message_get_member(call)) != 0)
                i++;
        outcome.event = changes[i].event;
        outcome.what = changes[i].what;
        r = sd_bus_message_read(call, changes[i].types, &outcome.id,
                                i == EXTEND ? (void *)&expires_usec : &outcome.reason);
        if (r >= 0)
                r = bus_claims_open(config->claims, &claims, error);
        if (r < 0)
                return r;
        claims_set_author(claims, &caller->author);
        if (i == CONFIRM)
                r = claims_confirm(claims, outcome.id, &outcome.words);
        else if (i == EXTEND)
                r = claims_extend(claims, outcome.id, expires_usec, &outcome.words);
        else if (i == ABORT)
                r = claims_abort(claims, outcome.id, outcome.reason, &outcome.words);
        else
                r = claim_queue_release(config->queue, outcome.id, outcome.reason, i == RELEASE_ALL,
                                        &outcome.words);
        claims_set_author(claims, NULL);
        outcome.result = r;
        return answer(call, caller, config->claims, &outcome, error);
}

/* Methods of libvirt's hook, which reports that a guest starts or stops */

/* A domain that is about to start. "domain" has everything that its XML describes. "facts" has the
 * amounts, devices and layout from which a claim is made. */
typedef struct Guest {
        SnapshotDomain domain;
        HostDomain facts;
} Guest;

static void guest_done(Guest *guest)
{
        snapshot_domain_done(&guest->domain);
        layout_done(&guest->facts.layout);
}

/* Parses the XML that is the next argument of the call, and derives the facts for a claim from it.
 * The caller frees *guest with guest_done(), also after an error. */
static int read_guest(sd_bus_message *call, const HostFacts *facts, Guest *guest, Error *reterr)
{
        const char *xml;
        int r = sd_bus_message_read(call, "s", &xml);

        if (r < 0)
                return r;
        if (strlen(xml) > XML_MAX)
                return error_setf(reterr, EINVAL, "The domain's XML is longer than %d bytes",
                                  XML_MAX);
        r = driver_read_domain(xml, &guest->domain, reterr);
        if (r < 0)
                return r;
        return claim_facts_make_domain(&guest->domain, facts, &guest->facts) < 0 ? error_oom(reterr)
                                                                                 : 0;
}

/* Logs the guest and the reason why its claim was rejected. The error that answers PrepareGuest()
 * makes libvirt's hook prevent the start. */
static void note_refused(const Guest *guest, const Error *words)
{
        log_event(LOG_WARNING, MESSAGE_GUEST_REFUSED,
                  LOG_FIELDS(LOG_FIELD_CONSUMER, guest->domain.uuid.text),
                  "Guest %s cannot start: %s.", guest->domain.name, words->text);
}

/* Like check_partitions(), for a guest that libvirt starts. Logs that it cannot start if a unit has
 * failed. */
static int check_starting(const ClaimService *service, const Claim *claim, Error *words)
{
        int r = check_partitions(service, claim, words);

        if (r > 0)
                log_event(LOG_WARNING, MESSAGE_GUEST_REFUSED,
                          LOG_FIELDS(LOG_FIELD_CONSUMER, claim->consumer.text),
                          "Guest %s cannot start: %s.", claim->consumer.text, words->text);
        return r;
}

/* Logs that the guest starts on a cordoned host, or with a cordoned device. */
static void log_cordoned(const BusConfig *config, const Guest *guest, const Claim *claim)
{
        const ClaimDevice *device = NULL;

        for (size_t i = 0; config->claims->tree && !device && i < claim->n_devices; i++)
                if (cordon_covers(config->cordon, config->claims->tree, &config->root,
                                  &claim->devices[i].provider))
                        device = &claim->devices[i];
        if (!device && !cordon_view(config->cordon).host)
                return;
        log_event(LOG_NOTICE, NULL, LOG_FIELDS(LOG_FIELD_CONSUMER, guest->domain.uuid.text),
                  "Guest %s starts %s%s, which is cordoned. A cordon does not stop guests.",
                  guest->domain.name, device ? "with " : "on this host",
                  device ? device->address : "");
}

/* Answers PrepareGuest(). Logs and announces the claim if it was created between begin_usec
 * (CLOCK_REALTIME, when the call began) and now. A claim with a later time is an old one: the clock
 * was set back after its creation. A cordon does not prevent the start. */
static int reply_prepared(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                          const Guest *guest, uint64_t begin_usec, const Claim *claim,
                          sd_bus_error *error)
{
        Error words = ERROR_NULL;
        int r;

        log_cordoned(config, guest, claim);
        if (claim->created_usec >= begin_usec &&
            claim->created_usec <= clock_usec(CLOCK_REALTIME)) {
                log_change(caller, claim, "", "created for guest %s, which starts,",
                           guest->domain.name);
                claim_service_notify(config->claims, CLAIM_EVENT_ADDED, claim);
        }
        r = check_starting(config->claims, claim, &words);
        return r == 0 || r == -EBUSY
                       ? sd_bus_reply_method_return(call, "xb", claim->id, (int)(r == 0))
                       : bus_claims_error(config->claims, error, r, &words);
}

/* Adds the uuids of the providers that have a cordon. */
static int list_cordoned(const BusConfig *config, StringSet *ret)
{
        const ProviderTree *tree = config->claims->tree;

        for (size_t i = 0; tree && i < tree->n_providers; i++) {
                const Uuid *uuid = &tree->providers[i]->uuid;

                if (cordon_covers(config->cordon, tree, &config->root, uuid) &&
                    string_set_add(ret, uuid->text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int bus_prepare_guest(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                      sd_bus_error *error)
{
        ClaimService *service = config->claims;
        const HostFacts *facts = service->facts;
        _cleanup_(claim_freep) Claim *claim = NULL, *ended = NULL;
        _cleanup_(guest_done) Guest guest = { 0 };
        uint64_t begin_usec = clock_usec(CLOCK_REALTIME);
        _cleanup_(string_set_done) StringSet cordoned = STRING_SET_INIT;
        Error words = ERROR_NULL;
        Claims *claims;
        int r;

        if (!facts)
                return sd_bus_error_setf(error, BUS_ERROR_NOT_READY, "The host was not polled yet");
        if (list_cordoned(config, &cordoned) < 0)
                return -ENOMEM;
        r = read_guest(call, facts, &guest, &words);
        if (r < 0)
                return bus_claims_error(service, error, r == -ENOMEM ? r : -EINVAL, &words);
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        claims_set_author(claims, &caller->author);
        r = claims_prepare(claims, &guest.facts, &cordoned, &claim, &ended, &words);
        claims_set_author(claims, NULL);
        if (ended) {
                log_change(caller, ended, "", "ended for guest %s, which starts again,",
                           guest.domain.name);
                claim_service_notify(service, CLAIM_EVENT_REMOVED, ended);
        }
        if (r > 0)
                note_refused(&guest, &words);
        /* libvirt waits for this answer, so the claim is written to Placement later. */
        if (r == 0)
                claim_queue_settle_soon(config->queue);
        return r != 0 ? bus_claims_error(service, error, r, &words)
                      : reply_prepared(call, caller, config, &guest, begin_usec, claim, error);
}

/* Finds the claim of the guest whose uuid is the first argument of the call. The caller can then
 * read the second argument. */
static int find_guest(sd_bus_message *call, ClaimService *service, Claims **ret_claims, Claim **ret,
                      sd_bus_error *error)
{
        Error words = ERROR_NULL;
        const char *consumer;
        Uuid uuid;
        int r = sd_bus_message_read(call, "s", &consumer);

        if (r < 0)
                return r;
        if (uuid_from_text(consumer, &uuid) < 0)
                return sd_bus_error_setf(error, BUS_ERROR_INVALID, "\"%.40s\" is not a uuid",
                                         consumer);
        r = bus_claims_open(service, ret_claims, error);
        if (r < 0)
                return r;
        r = claims_find(*ret_claims, &uuid, false, ret, &words);
        return r == 0 ? 0 : bus_claims_error(service, error, r, &words);
}

/* Succeeds if a guest that starts can use the partitions of its claim. */
int bus_check_guest(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                    sd_bus_error *error)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        Claims *claims;
        int r = find_guest(call, config->claims, &claims, &claim, error);

        if (r < 0)
                return r;
        r = check_starting(config->claims, claim, &words);
        return r == 0 ? sd_bus_reply_method_return(call, NULL)
                      : bus_claims_error(config->claims, error, r, &words);
}

/* Confirms the claim of a guest that has started, or leaves that to the poll if the claim waits for
 * its domain. A confirmed claim is not an error. */
int bus_guest_started(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                      sd_bus_error *error)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Outcome outcome = { .event = CLAIM_EVENT_CHANGED, .what = "confirmed" };
        Claims *claims;
        int r = find_guest(call, config->claims, &claims, &claim, error);

        if (r < 0)
                return r;
        if (claim->state == CLAIM_STATE_CONFIRMED || claim_waits_for_domain(claim))
                return sd_bus_reply_method_return(call, NULL);
        outcome.id = claim->id;
        outcome.result = claims_confirm(claims, claim->id, &outcome.words);
        return answer(call, caller, config->claims, &outcome, error);
}

/* Returns true for an unconfirmed claim for which Placement was not read: the start of its guest
 * failed, or the hook did not report the start. bus_guest_released() confirms such a claim. It then
 * counts as that of a stopped guest, and the comparison asks Placement about it without waiting for
 * its expiry. */
static bool waits_for_read(const Claim *claim)
{
        return claim->state == CLAIM_STATE_CLAIMED && !claim->was_read &&
               strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0;
}

/* Notes that the guest of a claim has stopped, and ends the claim if claim_is_of_guest_alone().
 * Then the agent made the claim from the domain, and no other writer made the allocations. A claim
 * that a scheduler placed outlives a stop of its guest. A claim that waits_for_read() is confirmed
 * and kept, and the comparison reads Placement for it. */
int bus_guest_released(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                       sd_bus_error *error)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Outcome outcome = { .event = CLAIM_EVENT_REMOVED, .what = "released" };
        Claims *claims;
        int r = find_guest(call, config->claims, &claims, &claim, error);
        bool ends;

        if (r >= 0)
                r = sd_bus_message_read(call, "s", &outcome.reason);
        if (r < 0)
                return r;
        claim_service_note_stopped(config->claims, &claim->consumer);
        ends = claim_is_of_guest_alone(claim, config->claims->settings.with_placement);
        if (!ends && !waits_for_read(claim))
                return sd_bus_reply_method_return(call, NULL);
        outcome.id = claim->id;
        claims_set_author(claims, &caller->author);
        if (ends) {
                outcome.result = claim_queue_release(config->queue, claim->id, outcome.reason,
                                                     false, &outcome.words);
        } else {
                outcome.event = CLAIM_EVENT_CHANGED;
                outcome.what = "kept until Placement is read,";
                outcome.result = claims_confirm(claims, claim->id, &outcome.words);
        }
        claims_set_author(claims, NULL);
        return answer(call, caller, config->claims, &outcome, error);
}
