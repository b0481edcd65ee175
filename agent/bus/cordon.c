/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The methods that take the host or a device out of use, and give it back. */

#include "agent/bus/methods.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "formats/interface.h"

static int refuse(sd_bus_error *error, int r, const Error *words)
{
        const char *name = r == -ENOENT                   ? BUS_ERROR_NOT_FOUND
                           : r == -ENODEV || r == -EINVAL ? BUS_ERROR_INVALID
                                                          : BUS_ERROR_STORE;

        return sd_bus_error_setf(error, name, "%s", error_text(words, r));
}

/* A part of the host that could not be read, or a change of shape that waits, keeps the host from
 * being equal to Placement, but no cordon from being published. */
static void on_reported(Tracker *tracker, const Error *error, void *userdata)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = userdata;

        (void)sd_bus_reply_method_return(
                call, "s", tracker_view(tracker).status->cycle_published ? "" : error->text);
}

/* Claims know at once; Placement with the next cycle, which the caller waits for. */
static int report(sd_bus_message *call, const BusConfig *config, const EventNote *note)
{
        const Cordon *cordon = config->cordon;
        int r;

        claim_service_record(config->claims, note);
        claim_service_set_closed(config->claims, cordon_view(cordon).host,
                                 cordon_view(cordon).devices);
        r = tracker_sync(config->tracker, TRACKER_PUBLISH, on_reported, sd_bus_message_ref(call));
        if (r >= 0)
                return 1;
        sd_bus_message_unref(call);
        return r;
}

int bus_cordon(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
               sd_bus_error *error)
{
        const ProviderTree *tree = tracker_view(config->tracker).tree;
        const char *device, *reason, *why;
        Error words = ERROR_NULL;
        int r = sd_bus_message_read(call, "ss", &device, &reason);

        if (r < 0)
                return r;
        why = nova_mode_refuses(tracker_view(config->tracker).nova,
                                cordon_action(tree, &config->root, device));
        if (why)
                return sd_bus_error_setf(error, BUS_ERROR_REFUSED, "%s", why);
        r = cordon_set(config->cordon, tree, &config->root, device, reason, caller->name,
                       clock_usec(CLOCK_REALTIME), &words);
        if (r < 0)
                return refuse(error, r, &words);
        log_event(LOG_NOTICE, MESSAGE_CORDONED,
                  LOG_FIELDS(LOG_FIELD_DEVICE, device, LOG_FIELD_CALLER, caller->author.text),
                  "%s%s was cordoned by %s%s%s.", device[0] ? "Device " : "The host", device,
                  caller->name, reason[0] ? ": " : "", reason);
        return report(call, config,
                      &(EventNote){ EVENT_CORDONED, &caller->author, 0, NULL, device, reason });
}

int bus_uncordon(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                 sd_bus_error *error)
{
        Error words = ERROR_NULL;
        const char *device;
        int r = sd_bus_message_read(call, "s", &device);

        if (r < 0)
                return r;
        r = cordon_lift(config->cordon, tracker_view(config->tracker).tree, &config->root, device,
                        &words);
        if (r < 0)
                return refuse(error, r, &words);
        log_event(LOG_NOTICE, MESSAGE_UNCORDONED,
                  LOG_FIELDS(LOG_FIELD_DEVICE, device, LOG_FIELD_CALLER, caller->author.text),
                  "%s%s was uncordoned by %s.", device[0] ? "Device " : "The host", device,
                  caller->name);
        return report(call, config,
                      &(EventNote){ EVENT_UNCORDONED, &caller->author, 0, NULL, device, NULL });
}

int bus_undo_retire(sd_bus_message *call, const BusCaller *caller, const BusConfig *config,
                    sd_bus_error *error)
{
        Error words = ERROR_NULL;
        int r;

        if (!cordon_view(config->cordon).is_retired)
                return sd_bus_error_set(error, BUS_ERROR_NOT_FOUND, "The host is not retired");
        r = cordon_set_retired(config->cordon, false, &words);
        if (r < 0)
                return refuse(error, r, &words);
        log_event(LOG_NOTICE, NULL, LOG_FIELDS(LOG_FIELD_CALLER, caller->author.text),
                  "The host is not retired any more, says %s; it stays cordoned.", caller->name);
        return report(call, config,
                      &(EventNote){ EVENT_UNRETIRED, &caller->author, 0, NULL, NULL, NULL });
}
