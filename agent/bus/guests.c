/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Claims of guests that libvirt starts and stops, as its hook reports them. */

#include <errno.h>
#include <string.h>

#include "agent/bus/methods.h"
#include "agent/guests/facts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "drivers/registry.h"
#include "formats/interface.h"

#define XML_MAX (4 * 1024 * 1024)

/* A domain as its XML has it, and what the claims want of it. */
typedef struct Guest {
        SnapshotDomain domain;
        HostDomain facts;
} Guest;

static void guest_done(Guest *guest)
{
        snapshot_domain_done(&guest->domain);
        layout_done(&guest->facts.layout);
}

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

static void note_refused(const Guest *guest, const Error *words)
{
        log_event(LOG_WARNING, MESSAGE_GUEST_REFUSED,
                  LOG_FIELDS(LOG_FIELD_CONSUMER, guest->domain.uuid.text),
                  "Guest %s may not start: %s.", guest->domain.name, words->text);
}

static int reply_prepared(sd_bus_message *call, const BusCaller *caller, ClaimService *service,
                          const Guest *guest, uint64_t begin_usec, bool cordoned,
                          const Claim *claim)
{
        if (cordoned)
                log_event(
                        LOG_NOTICE, NULL, LOG_FIELDS(LOG_FIELD_CONSUMER, guest->domain.uuid.text),
                        "Guest %s starts on this host, which is cordoned: the hook stops no guest.",
                        guest->domain.name);
        if (claim->created_usec >= begin_usec) {
                bus_caller_note(caller, claim, "", "promised to guest %s, which starts,",
                                guest->domain.name);
                claim_service_notify(service, CLAIM_EVENT_ADDED, claim);
        }
        return sd_bus_reply_method_return(call, "x", claim->id);
}

int bus_prepare_guest(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                      sd_bus_error *error)
{
        ClaimService *service = config->claims;
        const HostFacts *facts = service->facts;
        _cleanup_(claim_freep) Claim *claim = NULL, *ended = NULL;
        _cleanup_(guest_done) Guest guest = { 0 };
        uint64_t begin_usec = clock_usec(CLOCK_REALTIME);
        Error words = ERROR_NULL;
        Claims *claims;
        int r;

        if (!facts)
                return sd_bus_error_setf(error, BUS_ERROR_NOT_READY, "The host was not polled yet");
        r = read_guest(call, facts, &guest, &words);
        if (r < 0)
                return bus_claims_error(service, error, r == -ENOMEM ? r : -EINVAL, &words);
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        claims_set_author(claims, &caller->author);
        r = claims_prepare(claims, &guest.facts, &claim, &ended, &words);
        claims_set_author(claims, NULL);
        if (ended)
                claim_service_notify(service, CLAIM_EVENT_REMOVED, ended);
        if (r > 0)
                note_refused(&guest, &words);
        /* libvirt waits: it is reported to Placement behind its back. */
        if (r == 0)
                claim_queue_settle_soon(config->queue);
        return r != 0 ? bus_claims_error(service, error, r, &words)
                      : reply_prepared(call, caller, service, &guest, begin_usec,
                                       cordon_view(config->cordon).host, claim);
}

/* The first claim of the guest that the message begins with. */
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

int bus_guest_started(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                      sd_bus_error *error)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        BusOutcome outcome = { .event = CLAIM_EVENT_CHANGED, .what = "confirmed" };
        Claims *claims;
        int r = find_guest(call, config->claims, &claims, &claim, error);

        if (r < 0)
                return r;
        if (claim->state == CLAIM_STATE_CONFIRMED)
                return sd_bus_reply_method_return(call, NULL);
        outcome.id = claim->id;
        outcome.result = claims_confirm(claims, claim->id, &outcome.words);
        return bus_claims_answer(call, caller, config->claims, &outcome, error);
}

int bus_guest_released(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                       sd_bus_error *error)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        BusOutcome outcome = { .event = CLAIM_EVENT_REMOVED, .what = "released" };
        Claims *claims;
        int r = find_guest(call, config->claims, &claims, &claim, error);

        if (r >= 0)
                r = sd_bus_message_read(call, "s", &outcome.reason);
        if (r < 0)
                return r;
        claim_service_note_stopped(config->claims, &claim->consumer);
        if (!claim_is_of_guest_alone(claim))
                return sd_bus_reply_method_return(call, NULL);
        outcome.id = claim->id;
        claims_set_author(claims, &caller->author);
        outcome.result = claim_queue_release(config->queue, claim->id, outcome.reason, false,
                                             &outcome.words);
        claims_set_author(claims, NULL);
        return bus_claims_answer(call, caller, config->claims, &outcome, error);
}
