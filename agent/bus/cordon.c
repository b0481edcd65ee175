/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/cordon.h"

#include <errno.h>

#include "agent/bus/caller.h"
#include "agent/formats/interface.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"

static int refuse(sd_bus_error *error, int r, const Error *words)
{
        const char *name = r == -ENOENT                   ? BUS_ERROR_NOT_FOUND
                           : r == -ENODEV || r == -EINVAL ? BUS_ERROR_INVALID
                                                          : BUS_ERROR_STORE;

        return sd_bus_error_setf(error, name, "%s", error_text(words, r));
}

static void on_reported(Tracker *tracker, const Error *error, void *userdata)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = userdata;

        (void)sd_bus_reply_method_return(call, "s", error->text);
}

/* Claims know at once; Placement with the next cycle, which the caller waits for. */
static int report(sd_bus_message *call, const Cordon *cordon, Tracker *tracker,
                  ClaimService *claims)
{
        int r;

        claim_service_set_closed(claims, cordon_host_words(cordon), cordon_device_words(cordon));
        r = tracker_sync(tracker, on_reported, sd_bus_message_ref(call));
        if (r >= 0)
                return 1;
        sd_bus_message_unref(call);
        return r;
}

int bus_cordon(sd_bus_message *call, const BusGate *gate, Cordon *cordon, Tracker *tracker,
               ClaimService *claims, const Uuid *root, sd_bus_error *error)
{
        const char *device, *reason, *why;
        Error words = ERROR_NULL;
        BusCaller caller;
        int r = sd_bus_message_read(call, "ss", &device, &reason);

        if (r < 0)
                return r;
        why = nova_mode_refuses(tracker_get_nova(tracker),
                                cordon_action(tracker_get_tree(tracker), root, device));
        if (why)
                return sd_bus_error_setf(error, BUS_ERROR_REFUSED, "%s", why);
        bus_caller_find(gate, call, &caller);
        r = cordon_set(cordon, tracker_get_tree(tracker), root, device, reason, caller.name,
                       clock_usec(CLOCK_REALTIME), &words);
        if (r < 0)
                return refuse(error, r, &words);
        claim_service_record(
                claims, &(EventNote){ EVENT_CORDONED, &caller.author, 0, NULL, device, reason });
        log_event(LOG_NOTICE, MESSAGE_CORDONED,
                  LOG_FIELDS(LOG_FIELD_DEVICE, device, LOG_FIELD_CALLER, caller.author.text),
                  "%s%s was cordoned by %s%s%s.", device[0] ? "Device " : "The host", device,
                  caller.name, reason[0] ? ": " : "", reason);
        return report(call, cordon, tracker, claims);
}

int bus_uncordon(sd_bus_message *call, const BusGate *gate, Cordon *cordon, Tracker *tracker,
                 ClaimService *claims, const Uuid *root, sd_bus_error *error)
{
        Error words = ERROR_NULL;
        const char *device;
        BusCaller caller;
        int r = sd_bus_message_read(call, "s", &device);

        if (r < 0)
                return r;
        r = cordon_lift(cordon, tracker_get_tree(tracker), root, device, &words);
        if (r < 0)
                return refuse(error, r, &words);
        bus_caller_find(gate, call, &caller);
        claim_service_record(
                claims, &(EventNote){ EVENT_UNCORDONED, &caller.author, 0, NULL, device, NULL });
        log_event(LOG_NOTICE, MESSAGE_UNCORDONED,
                  LOG_FIELDS(LOG_FIELD_DEVICE, device, LOG_FIELD_CALLER, caller.author.text),
                  "%s%s was uncordoned by %s.", device[0] ? "Device " : "The host", device,
                  caller.name);
        return report(call, cordon, tracker, claims);
}

int bus_undo_retire(sd_bus_message *call, const BusGate *gate, Cordon *cordon, Tracker *tracker,
                    ClaimService *claims, sd_bus_error *error)
{
        Error words = ERROR_NULL;
        BusCaller caller;
        int r;

        if (!cordon_is_retired(cordon))
                return sd_bus_error_set(error, BUS_ERROR_NOT_FOUND, "The host is not retired");
        r = cordon_set_retired(cordon, false, &words);
        if (r < 0)
                return refuse(error, r, &words);
        bus_caller_find(gate, call, &caller);
        claim_service_record(claims,
                             &(EventNote){ EVENT_UNRETIRED, &caller.author, 0, NULL, NULL, NULL });
        log_event(LOG_NOTICE, NULL, LOG_FIELDS(LOG_FIELD_CALLER, caller.author.text),
                  "The host is not retired any more, says %s; it stays cordoned.", caller.name);
        return report(call, cordon, tracker, claims);
}
