/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "formats/event-json.h"

/* What the store keeps as JSON; of a file that somebody changed it may be anything. */
static json_t *read_array(const char *text)
{
        json_t *array = json_loads(text, 0, NULL);

        if (json_is_array(array))
                return array;
        json_decref(array);
        return json_array();
}

static const char *find_name(const HostFacts *facts, const char *text)
{
        const HostDomain *domain = NULL;
        Uuid uuid;

        if (facts && uuid_from_text(text, &uuid) == 0)
                domain = host_facts_find_domain(facts, &uuid);
        return domain ? domain->name : "";
}

json_t *event_to_json(const Event *event, const HostFacts *facts)
{
        return json_pack("{sI sI ss ss sI sI ss ss ss so so ss}", "id", (json_int_t)event->id,
                         "usec", (json_int_t)event->usec, "event", event->kind, "author",
                         event->author, "uid", (json_int_t)event->uid, "claim",
                         (json_int_t)event->claim, "consumer", event->consumer, "guest",
                         find_name(facts, event->guest[0] ? event->guest : event->consumer), "of",
                         event->guest, "allocations", read_array(event->allocations), "devices",
                         read_array(event->devices), "reason", event->reason);
}
